"""The two checkers, one in integers and one in interval arithmetic, draw the line at one place.

The second uses no multipliers: where the first refuses a true claim for want of good ones, the
second proves it all the same.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rldp.errors import MissingExtraError
from rldp.intervals import balls, check_with_intervals
from rldp.proof import ProofError, check
from rldp.proof.numbers import PI
from tests.proof import test_proof as made

pytest.importorskip("flint", reason="python-flint comes with rldp[intervals]")


def accepts(checker, document) -> bool:
    try:
        checker(document)
    except ProofError:
        return False
    return True


def is_true(document) -> bool:
    """The audit of a document that both have read."""
    uncertainty = document["uncertainty"]
    maker = made.Maker(uncertainty["counts"], uncertainty["kind"], uncertainty.get("alpha"))
    return maker.audit(document) <= document["epsilon"] * (1 + 1e-9)


@pytest.mark.sampled(4)
@pytest.mark.slow
@made.cases
@pytest.mark.parametrize("factor", [0.8, 1 - 1e-7, 1 + 1e-7, 1.2])
def test_both_draw_the_line_at_the_worst_case(kind, set_kind, counts, factor):
    maker, parts, worst = made.example(kind, set_kind, counts)
    document = maker.document(kind, parts, worst * factor)
    assert accepts(check_with_intervals, document) == accepts(check, document) == (factor > 1)


POOR_MULTIPLIERS = (
    "below its column",
    "above its column",
    "left out",
    "_1 forged",
    "_2 forged",
    "η forged",
    "of other pairs",
)


@pytest.mark.parametrize("flaw", made.refused_documents())
def test_flawed_documents_are_refused_unless_only_multipliers_are_poor(flaw):
    document = made.refused_documents()[flaw]
    if flaw.endswith(POOR_MULTIPLIERS):
        check_with_intervals(document)
        return
    with pytest.raises(ProofError) as refusal:
        check_with_intervals(document)
    assert "\n" not in str(refusal.value)


@pytest.mark.slow
@settings(max_examples=100)
@given(
    st.sampled_from(["dense", "independent", "choice", "unary"]),
    st.sampled_from(sorted(made.COUNTS)),
    st.floats(0.9, 1 - 1e-6) | st.floats(1 + 1e-6, 1.3),
    st.integers(0, 2**32 - 1).map(np.random.default_rng),
)
def test_spoiled_certificates_change_nothing(kind, counts, factor, rng):
    maker, parts, worst = made.example(kind, "chi-square", counts)
    document = maker.document(kind, parts, worst * factor)
    made.spoil(document["certificate"], rng)
    assert accepts(check_with_intervals, document) == (factor > 1)


@pytest.mark.slow
@settings(max_examples=400)
@given(made.mutants())
def test_both_agree_on_mutated_documents(document):
    """But for true claims whose multipliers are there and do not prove them."""
    if accepts(check, document):
        check_with_intervals(document)
    elif accepts(check_with_intervals, document):
        with pytest.raises(ProofError, match=r"Not proved|A multiplier of s"):
            check(document)
        assert is_true(document)


@given(made.json_values)
def test_anything_is_refused(document):
    with pytest.raises(ProofError):
        check_with_intervals(document)


def test_quantiles_to_twelve_digits():
    """The χ² tail is a second implementation, too."""
    document = made.valid("choice", room=0.5)
    x = made.Fraction(document["certificate"]["quantile"])
    for factor, is_enough in ((1, True), (1 - made.Fraction(1, 10**11), False)):
        document["certificate"]["quantile"] = str(x * factor)
        assert accepts(check_with_intervals, document) == accepts(check, document) == is_enough


def test_the_quoted_digits_of_pi_bound_it_from_above():
    with balls.flint.ctx.workprec(500):
        excess = balls.ball(PI) - balls.flint.arb.pi()
        assert excess > 0
        assert excess < balls.ball(10) ** -99


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(balls, "flint", None)
    with pytest.raises(MissingExtraError, match=r"rldp\[intervals\]"):
        check_with_intervals(made.valid("dense"))
