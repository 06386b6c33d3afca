"""The exact audit: reference values, witnesses, laws, and brute force from below."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import rldp
from rldp import AllDistributions, ChiSquareSet, DenseChannel, KnownDistribution, Table
from rldp.auditing.audit import promise
from rldp.designing.closed_forms import FAMILIES
from rldp.leakage import worst_pairs
from tests.support import brute
from tests.support import strategies as some
from tests.support.files import REFERENCE

CASES = {f"{case['id']} {case['tag']}": case for case in REFERENCE["cases"]}
CLOSED_FORMS = ("grr", "srr", "ir", "grr-cr", "ue-cr")
PINNED = {"eps2": "epsilon_2", "kappa": "kappa", "lam": "lambda"}
COUNTS = st.just(0) | st.integers(0, 5) | st.integers(0, 2000)
FIELDS = {
    "epsilon": "audit_F",
    "epsilon_apart": "audit_Fprime",
    "epsilon_all": "audit_maxF",
    "epsilon_plain": "audit_LDP",
}


def levels(audit) -> np.ndarray:
    """All four ε of an audit, from the smallest set to the largest."""
    return np.array([getattr(audit, name) for name in FIELDS])


def uncertainty(draw, shape):
    """Any of the three sets over a table of this shape, with empty cells and S values unseen."""
    size = math.prod(shape)
    cells = np.array(draw(st.lists(COUNTS, min_size=size, max_size=size))).reshape(shape)
    if draw(st.integers(0, 3)) == 3:
        cells[draw(st.integers(0, shape[0] - 1))] = 0
    cells[0, 0] += cells.sum() == 0
    kind = draw(st.sampled_from([ChiSquareSet, ChiSquareSet, AllDistributions, KnownDistribution]))
    table = Table(cells)
    return ChiSquareSet(table, draw(some.alphas)) if kind is ChiSquareSet else kind(table)


@st.composite
def audited(draw, kinds=("dense",), max_s: int = 3):
    """A channel of one of these kinds, zeros among its entries, with a set F."""
    channel = draw(some.channels(kinds))
    assume(2 <= channel.shape[0] <= max_s)
    return channel, uncertainty(draw, channel.shape)


# --- reference values ----------------------------------------------------------------------------


def reference_channel(F, case, name):
    """The stored matrix Q[y][x], or our closed form at the stored parameters; else nothing."""
    stored = case["protocols"][name]
    if "Q" in stored:
        return np.array(stored["Q"]).T.reshape(case["a1"], case["a2"], -1)
    if name not in CLOSED_FORMS:
        return None
    parameters = {PINNED[key]: stored[key] for key in PINNED if key in stored}
    p = rldp.design(F, case["eps"], name, bounds="paper", parameters=parameters)
    return FAMILIES[name].channel(F, p.epsilon, p.parameters)  # before it is rounded to integers


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_audits_of_the_reference_cases(case):
    """Both implementations agree to 1e-10, a thousand times better than the reference claims."""
    F = ChiSquareSet(Table(case["counts"]), case["alpha"])
    for name, stored in case["protocols"].items():
        channel = reference_channel(F, case, name)
        if channel is None:
            continue
        audit = rldp.audit(channel, F)
        for ours, theirs in FIELDS.items():
            if stored.get(theirs) is not None:
                expected = pytest.approx(float(stored[theirs]), rel=0, abs=1e-10)
                assert getattr(audit, ours) == expected, (name, ours)


def test_the_reference_cases_are_all_there():
    stored = [p for case in CASES.values() for p in case["protocols"].values()]
    assert sum("Q" in p for p in stored) >= 30
    assert sum(p.get("audit_F") is not None and "Q" not in p for p in stored) >= 43 * 5


# --- the witness ---------------------------------------------------------------------------------


def index_of(channel, y) -> int:
    """The column of an output: words count in base n_z, symbols from -1, the last block fastest."""
    if isinstance(y, int):
        return y
    return int(np.ravel_multi_index([z + 1 for z in y], [channel.other.shape[1]] * len(y)))


def check_witness(channel, F, audit) -> None:
    """P lies in F, and P(y|s) = e^ε P(y|s') by the matrix itself."""
    witness, y = audit.witness, index_of(channel, audit.witness.y)
    assert F.contains(witness.p_su)
    assert witness.s != witness.other_s
    rows = witness.p_su[[witness.s, witness.other_s]]
    assert np.all(rows.sum(axis=1) > 0)
    Q = channel.matrix[[witness.s, witness.other_s], :, y]
    high, low = (rows * Q).sum(axis=1) / rows.sum(axis=1)
    assert witness.ratio == pytest.approx(math.exp(audit.epsilon))
    if math.isinf(audit.epsilon):
        assert low == 0 < high
    elif high > 0 or low > 0:
        assert high / low == pytest.approx(math.exp(audit.epsilon), rel=1e-6)
    else:
        assert audit.epsilon == 0  # an output that never occurs is as good a witness


@pytest.mark.slow
@settings(max_examples=200)
@given(audited())
def test_the_witness_has_the_ratio_that_the_audit_claims(case):
    channel, F = case
    check_witness(channel, F, rldp.audit(channel, F))


@pytest.mark.slow
@settings(max_examples=100)
@given(audited(("independent", "choice", "unary")))
def test_the_witness_of_a_structured_channel_names_the_output(case):
    channel, F = case
    check_witness(channel, F, rldp.audit(channel, F))


def test_the_witness_shows_no_symbol_that_its_value_of_s_cannot_show():
    """S = 1 never has U = 1, the one cell that shows symbol 0 in its block."""
    own = [[[0.5, 0.5], [0.0, 1.0]], [[0.0, 1.0], [0.5, 0.5]]]
    channel = rldp.UnaryChannel(np.array(own), np.array([[0.5, 0.5], [0.0, 1.0]]))
    F = rldp.KnownDistribution(rldp.Table([[0, 0], [1, 0]]))
    audit = rldp.audit(channel, F)
    assert math.isinf(audit.epsilon)
    assert audit.witness.y[1] == 0
    check_witness(channel, F, audit)


@given(audited(("cells",)))
def test_the_witness_of_unary_encoding_names_the_word(case):
    """A bit for each cell, both bits possible."""
    channel, F = case
    channel = rldp.UnaryChannel((channel.own + 0.1) / 1.2, (channel.other + 0.1) / 1.2)
    check_witness(channel, F, rldp.audit(channel, F))


@pytest.mark.parametrize("kind", [ChiSquareSet, AllDistributions, KnownDistribution])
@pytest.mark.parametrize("name", ["grr", "ue", "srr", "ir", "grr-cr", "ue-cr"])
def test_the_witness_of_a_design(name, kind):
    F = kind(Table([[30, 10, 2], [10, 0, 20], [0, 0, 0]]))
    p = rldp.design(F, 1.0, name)
    audit = rldp.audit(p)
    check_witness(p.channel, F, audit)
    assert audit.claimed == 1.0
    assert audit.slack == 1.0 - audit.epsilon >= -1e-9


def test_a_witness_with_an_infinite_ratio_shows_the_output():
    """Only an empty cell of s sends y, and no cell of s': all of the budget must go to s."""
    F = ChiSquareSet(Table([[5, 0], [4, 4]]))
    Q = DenseChannel([[[1, 0], [0.5, 0.5]], [[1, 0], [1, 0]]])
    audit = rldp.audit(Q, F)
    assert audit.epsilon == math.inf
    assert (audit.witness.s, audit.witness.other_s, audit.witness.y) == (0, 1, 1)
    check_witness(Q, F, audit)


def test_a_witness_cannot_be_changed():
    witness = rldp.audit(np.full((2, 2, 2), 0.5), AllDistributions(Table([[1, 1], [1, 1]]))).witness
    with pytest.raises(ValueError, match="read-only"):
        witness.p_su[0, 0] = 1


# --- dense and structured ------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["independent", "choice", "unary", "cells"])
@given(data=st.data())
def test_a_structured_channel_leaks_what_its_matrix_leaks(kind, data):
    channel, F = data.draw(audited((kind,)))
    ours, dense = (levels(rldp.audit(c, F)) for c in (channel, DenseChannel(channel.matrix)))
    np.testing.assert_allclose(ours, dense, rtol=1e-9, atol=1e-9)


# --- brute force ---------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=100)
@given(audited(("dense", "independent", "choice", "unary")), some.seeds)
def test_no_distribution_of_the_set_leaks_more(case, rng):
    """Points of F from below, most of them on its boundary and one next to the witness."""
    channel, F = case
    assume(isinstance(F, ChiSquareSet))
    audit = rldp.audit(channel, F)
    for P in [*brute.random_points(rng, F.table.p_su, F.radius, 20), audit.witness.p_su]:
        seen = np.flatnonzero(P.sum(axis=1))
        p_y = np.einsum(
            "su,suy->sy", P[seen] / P[seen].sum(axis=1, keepdims=True), channel.matrix[seen]
        )
        for one, two in itertools.permutations(p_y, 2):
            positive = (one > 0) & (two > 0)
            assert np.log(one[positive] / two[positive]).max(initial=0) <= audit.epsilon + 1e-9
            assert math.isinf(audit.epsilon) or not np.any((one > 1e-300) & (two == 0))


@pytest.mark.slow
@settings(max_examples=25)
@given(audited())
def test_the_slow_audits_agree(case):
    channel, F = case
    audit, Q = rldp.audit(channel, F), channel.matrix
    p_u = F.table.p_u_given_s
    slow = {
        "epsilon_apart": brute.audit_separate(Q, p_u, brute.radii_of(F)),
        "epsilon_all": brute.audit_all(Q),
        "epsilon_plain": brute.audit_ldp(Q),
    }
    if isinstance(F, ChiSquareSet):
        slow["epsilon"] = brute.audit_joint(Q, F.table, F.radius)
    for name, epsilon in slow.items():
        assert getattr(audit, name) == pytest.approx(max(0.0, epsilon), rel=1e-7, abs=1e-7), name


@settings(max_examples=60)
@given(some.channels())
def test_what_a_table_promises_by_itself_is_what_the_loop_over_its_matrix_says(channel):
    Q = channel.matrix
    n_s, n_u, n_y = Q.shape
    assume(n_s > 1)
    over_all, given_u, plain = [0.0], [0.0], [0.0]
    for one, two in itertools.permutations(itertools.product(range(n_s), range(n_u)), 2):
        for y in range(n_y):
            a, b = Q[*one, y], Q[*two, y]
            level = -math.inf if a == 0 else math.inf if b == 0 else math.log(a / b)
            plain.append(level)
            if one[0] != two[0]:
                over_all.append(level)
                if one[1] == two[1]:
                    given_u.append(level)
    found = promise(channel)
    assert found.epsilon_all == pytest.approx(max(over_all), abs=1e-9)
    assert found.epsilon_given_u == pytest.approx(max(given_u), abs=1e-9)
    assert found.epsilon_plain == pytest.approx(max(plain), abs=1e-9)


def test_a_public_protocol_is_audited_over_a_set_that_is_given():
    F = ChiSquareSet(Table([[30, 10], [10, 50]]))
    p = rldp.design(F, 1.0, "ir")
    whole, public = rldp.audit(p), rldp.audit(p.public(), F)
    assert (public.epsilon, public.claimed) == (whole.epsilon, 1.0)
    assert whole.epsilon_given_u == pytest.approx(math.log(p.channel.ratio_given_u()))
    with pytest.raises(rldp.ParameterError, match="uncertainty set"):
        rldp.audit(p.public())


# --- laws ----------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=100)
@given(audited(("dense", "independent", "choice", "unary", "cells")), some.alphas)
def test_larger_sets_leak_more(case, alpha):
    """P̂ ≤ F ≤ F' ≤ all distributions ≤ plain LDP; and a smaller α has the larger F."""
    channel, F = case
    known, narrow, wide = (
        rldp.audit(channel, G)
        for G in (
            KnownDistribution(F.table),
            ChiSquareSet(F.table, alpha),
            ChiSquareSet(F.table, alpha / 10),
        )
    )
    chain = np.array([known.epsilon, *levels(narrow)])
    assert np.all(chain[1:] >= chain[:-1] - 1e-9)
    assert np.all(levels(wide) >= levels(narrow) - 1e-9)


@pytest.mark.slow
@given(audited(), some.seeds)
def test_merging_outputs_never_leaks_more(case, rng):
    """Data processing: what is computed from a report is as private as the report."""
    channel, F = case
    merged = channel.matrix @ np.eye(channel.n_outputs)[rng.integers(0, 2, channel.n_outputs)]
    assert np.all(levels(rldp.audit(merged, F)) <= levels(rldp.audit(channel, F)) + 1e-9)


@pytest.mark.slow
@given(audited(), some.seeds)
def test_splitting_an_output_changes_nothing(case, rng):
    channel, F = case
    share = np.append(np.ones(channel.n_outputs), 0.0)
    share[0] = rng.uniform(0.1, 0.9)
    share[-1] = 1 - share[0]
    split = np.concatenate([channel.matrix, channel.matrix[:, :, :1]], axis=2) * share
    np.testing.assert_allclose(
        levels(rldp.audit(split, F)), levels(rldp.audit(channel, F)), rtol=1e-9, atol=1e-9
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "limits", [{"_MOST_PAIRS": 0}, {"_AT_ONCE": 2, "_RUNGS": 3}, {"_MOST_PAIRS": 0, "_AT_ONCE": 1}]
)
@settings(max_examples=40)
@given(case=audited(("dense", "unary", "unary", "cells"), max_s=4))
def test_small_limits_give_the_same_answer(case, limits):
    """Leaving out what is always outdone, and going in small steps, loses nothing."""
    channel, F = case
    usual = rldp.audit(channel, F)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in limits.items():
            patch.setattr(worst_pairs, name, value)
        small = rldp.audit(channel, F)
    np.testing.assert_allclose(levels(small), levels(usual), rtol=1e-9, atol=1e-9)


def test_small_limits_on_a_large_alphabet():
    rng = np.random.default_rng(5)
    F = ChiSquareSet(Table(rng.integers(0, 60, (6, 4))))
    own, other = some.rows(rng, 6, 4, 7, zeros=0), some.rows(rng, 6, 7, zeros=0)
    channel = rldp.UnaryChannel((own + 1) / 8, (other + 1) / 8)
    usual = levels(rldp.audit(channel, F))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worst_pairs, "_MOST_PAIRS", 0)
        patch.setattr(worst_pairs, "_AT_ONCE", 8)
        np.testing.assert_allclose(levels(rldp.audit(channel, F)), usual, rtol=1e-10)


# --- infinities and edges ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("Q", "counts", "expected"),
    [  # ε over F, over all distributions, and plain
        ([[[1, 0]], [[0, 1]]], [[1], [1]], (math.inf, math.inf, math.inf)),
        ([[[1, 0]], [[1, 0]]], [[1], [1]], (0, 0, 0)),
        ([[[1, 0], [0, 1]], [[1, 0], [0, 1]]], [[1, 1], [1, 1]], (None, math.inf, math.inf)),
        ([[[1, 0], [0, 1]], [[1, 0], [0, 1]]], [[1, 1], [1, 0]], (math.inf, math.inf, math.inf)),
        ([[[1, 0], [0, 1]], [[0.5, 0.5]] * 2], [[1, 1], [1, 1]], (None, math.inf, math.inf)),
        ([[[0.5, 0.5]] * 2, [[0.5, 0.5]] * 2], [[1, 1], [0, 0]], (0, 0, 0)),
    ],
)
def test_zeros(Q, counts, expected):
    audit = rldp.audit(Q, ChiSquareSet(Table(counts)))
    over_f, over_all, plain = expected
    assert (audit.epsilon_all, audit.epsilon_plain) == (over_all, plain)
    if over_f is None:  # every cell of both s keeps some probability: a finite level
        assert 0 < audit.epsilon < math.inf
    else:
        assert audit.epsilon == over_f


def test_an_s_value_without_records_is_audited_at_its_worst():
    Q = [[[0.5, 0.5], [0.4, 0.6]], [[0.7, 0.3], [0.1, 0.9]]]
    for kind in (ChiSquareSet, KnownDistribution):
        audit = rldp.audit(Q, kind(Table([[3, 3], [0, 0]])))
        assert audit.epsilon >= math.log(0.45 / 0.1) - 1e-12
        assert audit.epsilon == pytest.approx(audit.epsilon_apart, abs=1e-12)


def test_a_value_never_seen_among_billions_of_records_has_a_witness():
    """The mass that an unseen value needs is small beside the radius, however small that is."""
    F = rldp.ChiSquareSet(rldp.Table([[74_167_267_644], [0]]))
    found = rldp.audit([[[0.75, 0.25]], [[0.25, 0.75]]], F)
    assert found.epsilon == pytest.approx(np.log(3), abs=1e-9)
    assert F.contains(found.witness.p_su)
    assert found.witness.p_su[1, 0] > 0
