"""Every protocol under every kind of further guarantee: kept by audit, or refused in words."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rldp
from rldp import (
    AllDistributions,
    ChiSquareSet,
    GivenU,
    Guarantee,
    KnownDistribution,
    ParameterError,
    Table,
    TotalVariationSet,
    levels,
)
from rldp.designing.catalogue import NAMES
from rldp.designing.closed_forms import FAMILIES, closed_form
from rldp.designing.problem import Problem
from rldp.designing.tuning import REDUCED, is_kept, shrunk_closed_form
from tests.support import strategies as some

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("little_work")]

TABLE = Table([[30, 10, 5], [10, 50, 20], [7, 0, 9]])
F = ChiSquareSet(TABLE)
BY_PAIR = np.array([[0, 1.0, 2.0], [0.7, 0, 1.0], [1.0, 1.5, 0]])
STACKS = {
    "given U": {"epsilon_given_u": 0.6},
    "all": {"epsilon_all": 3.0},
    "both": {"epsilon_given_u": 0.6, "epsilon_all": 3.0},
    "further sets": {
        "also": [
            Guarantee(ChiSquareSet(TABLE, alpha=1e-6), 1.1),
            Guarantee(TotalVariationSet(TABLE), 1.3),
        ]
    },
    "by pair": {"epsilon": BY_PAIR},
    "exempt": {"epsilon": levels.exempt(TABLE.schema, ["2"], 1.0)},
    "given U by pair": {"epsilon_given_u": BY_PAIR},
    "all by pair": {"epsilon_all": 3 * BY_PAIR},
}


def broken(Q: np.ndarray, guarantee: Guarantee) -> float:
    """By how much the worst of all pairs exceeds its level: entry by entry, over all outputs."""
    F, worst = guarantee.uncertainty, -math.inf
    for s, t in itertools.permutations(range(Q.shape[0]), 2):
        if math.isinf(guarantee.levels[s, t]):
            continue
        a, b = (Q[i, :, Q[s].max(axis=0) > 0] for i in (s, t))  # (outputs that occur, n_u)
        if isinstance(F, GivenU):
            ratios = np.log(np.divide(a, b, where=a > 0, out=np.zeros_like(a))).max(axis=1)
        elif isinstance(F, AllDistributions):
            ratios = np.log(a.max(axis=1) / b.min(axis=1))
        else:
            ratios = F.worst_log_ratios(a, np.full(len(a), s), b, np.full(len(a), t))
        worst = max(worst, ratios.max() - guarantee.levels[s, t])
    return float(worst)


SEARCHED = {"optimal": ["by pair"], "best": ["all by pair"]}  # the others: tests of layers


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name in NAMES for kind in SEARCHED.get(name, STACKS)]
)
def test_every_protocol_keeps_every_guarantee(name, kind):
    asked = {"epsilon": 1.0, "epsilon_given_u": None, "epsilon_all": None, **STACKS[kind]}
    p = rldp.design(F, protocol=name, goal="information", effort="quick", **asked)
    assert len(rldp.verify(p).guarantees) == len(p.guarantees)
    for audited in rldp.audit(p).guarantees:
        assert (audited.levels <= audited.guarantee.levels + 1e-9).all()
        assert broken(p.matrix, audited.guarantee) <= 1e-9


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", ["given U", "further sets", "by pair"])
@pytest.mark.parametrize("name", ["grr", "grr-cr", "polyopt", "ldp-optimal"])
def test_goals_go_with_every_guarantee(name, kind):
    asked = {"epsilon": 1.0, **STACKS[kind]}
    p = rldp.design(F, protocol=name, goal="cells", effort="quick", **asked)
    assert p.error.is_estimable
    assert all(broken(p.matrix, g) <= 1e-9 for g in p.guarantees)
    if kind != "further sets":  # whose search takes a minute
        assert least_error(kind) <= p.error.total


@cache
def least_error(kind: str) -> float:
    asked = {"epsilon": 1.0, **STACKS[kind]}
    return rldp.design(F, protocol="optimal", goal="cells", effort="quick", **asked).error.total


@settings(max_examples=10)
@given(
    some.uncertainty_sets(max_s=3, max_u=3),
    some.log_uniform(0.1, 3.0),
    some.log_uniform(0.1, 3.0),
    st.sampled_from(list(FAMILIES)),
)
def test_any_other_set_is_kept(F, epsilon, other, name):
    wide = ChiSquareSet(F.table, alpha=1e-9)
    guarantees = (Guarantee(F, epsilon), Guarantee(wide, other))
    draft = shrunk_closed_form(name, Problem(tuple(guarantees)))
    assert is_kept(draft.channel, guarantees)


@pytest.mark.parametrize("name", FAMILIES)
def test_nothing_is_lost_where_nothing_is_asked(name):
    """A level that the closed form keeps anyway changes nothing."""
    plain = closed_form(name, F, 1.0, "sharp", {})
    loose = shrunk_closed_form(name, Problem((Guarantee(F, 1.0), Guarantee(F, 1.5))))
    assert loose.utility(F) == pytest.approx(plain.utility(F), rel=1e-9)
    assert loose.parameters[REDUCED[0]] == 1.0


@pytest.mark.parametrize(("name", "level"), [("ir", 1.1), ("grr-cr", 1.5), ("ue-cr", 1.5)])
def test_a_set_that_costs_something_is_spent(name, level):
    """A negative control: the plain one breaks the level, which the shrunk one spends."""
    guarantees = (Guarantee(F, 1.0), Guarantee(AllDistributions(TABLE), levels_of(level)))
    plain = closed_form(name, F, 1.0, "sharp", {})
    assert not is_kept(plain.channel, guarantees)
    shrunk = shrunk_closed_form(name, Problem(tuple(guarantees)))
    assert shrunk.utility(F) < plain.utility(F)
    assert broken(shrunk.channel.matrix, guarantees[1]) == pytest.approx(0.0, abs=2e-2)


def levels_of(epsilon: float) -> np.ndarray:
    """One pair has another level, so that formulas do not know them."""
    by_pair = np.full((3, 3), epsilon)
    by_pair[0, 1] = 1.01 * epsilon
    return by_pair


def test_a_set_where_less_over_f_is_not_enough():
    """U is sent as it is at every ε over a known distribution, which another set does not allow."""
    known = Table([[30, 30], [20, 20]])
    F, around = KnownDistribution(known), ChiSquareSet(known)
    guarantees = (Guarantee(F, 1.0), Guarantee(around, 0.1))
    draft = shrunk_closed_form("ir", Problem(tuple(guarantees)))
    assert is_kept(draft.channel, guarantees)
    assert REDUCED[1] in draft.parameters
    assert draft.utility(F) > 0


def test_what_cannot_be_is_named():
    wide = [Guarantee(ChiSquareSet(TABLE, alpha=1e-6), 0.05)]
    with pytest.raises(ParameterError, match="Leave them free"):
        rldp.design(F, 1.0, "ue", parameters={"kappa": 0.7, "lambda": 0.5}, also=wide)
    with pytest.raises(ParameterError, match="do not go with the paper's bounds"):
        rldp.design(F, 1.0, "ir", also=wide, bounds="paper")
