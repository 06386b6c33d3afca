"""Closed forms that keep further levels: against someone who knows U, and whatever is true."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rldp
from rldp import ChiSquareSet, KnownDistribution, ParameterError, Table
from rldp.designing.closed_forms import FAMILIES, closed_form, optimum
from rldp.designing.stack import UNLAYERED, Layers
from tests.support import brute
from tests.support import strategies as some

CLOSE = 1e-9
levels = some.log_uniform(0.05, 12.0)


def log_ratio(a: float, b: float) -> float:
    return math.log(a / b) if a > 0 and b > 0 else math.inf if a > 0 else 0.0


def looked_up(Q: np.ndarray) -> tuple[float, float]:
    """The levels over all distributions and given U, entry by entry."""
    n_s, n_u, n_y = Q.shape
    over_all = given_u = 0.0
    for s, t in itertools.permutations(range(n_s), 2):
        for u, v, y in itertools.product(range(n_u), range(n_u), range(n_y)):
            ratio = log_ratio(Q[s, u, y], Q[t, v, y])
            over_all = max(over_all, ratio)
            given_u = max(given_u, ratio) if u == v else given_u
    return over_all, given_u


@pytest.mark.slow
@settings(max_examples=60)
@given(
    some.uncertainty_sets(max_s=3, max_u=3),
    some.log_uniform(0.05, 5.0),
    levels,
    levels,
    st.sampled_from(list(FAMILIES)),
)
def test_all_levels_hold(F, epsilon, c, c_u, name):
    for layers in (Layers(c, c_u), Layers(epsilon_all=c), Layers(epsilon_given_u=c_u)):
        channel = closed_form(name, F, epsilon, "sharp", {}, layers).channel
        over_all, given_u = looked_up(channel.matrix)
        assert over_all <= layers.epsilon_all + CLOSE
        assert given_u <= layers.epsilon_given_u + CLOSE
        assert rldp.audit(channel, F).epsilon <= epsilon + CLOSE


@pytest.mark.slow
@settings(max_examples=60)
@given(
    some.uncertainty_sets(max_s=4, max_u=4),
    some.log_uniform(0.05, 5.0),
    levels,
    st.sampled_from(["ir", "grr-cr"]),
)
def test_a_level_that_costs_anything_is_reached(F, epsilon, c, name):
    """Where U would be sent with less noise but for the level, all of the level is spent."""
    layered = closed_form(name, F, epsilon, "sharp", {}, Layers(epsilon_all=c))
    if epsilon > c:
        return  # the level over F itself is c then
    pinned = {"epsilon_2": layered.parameters["epsilon_2"]}
    free = closed_form(name, F, epsilon, "sharp", pinned)
    noise = "delta_2" if name == "ir" else "delta_s"
    costs = np.array(free.parameters[noise]) > np.array(layered.parameters[noise]) + CLOSE
    if costs.any() and F.table.n_u > 1:
        assert rldp.audit(layered.channel, F).epsilon_all == pytest.approx(c, abs=1e-7)
    else:
        assert layered.utility(F) == pytest.approx(free.utility(F), abs=CLOSE)


@settings(max_examples=30)
@given(some.uncertainty_sets(), some.epsilons, st.sampled_from(list(FAMILIES)))
def test_levels_that_ask_for_nothing_change_nothing(F, epsilon, name):
    with_none = optimum(name, F, np.array([epsilon]), "sharp", {}, UNLAYERED)
    without = optimum(name, F, np.array([epsilon]), "sharp", {})
    assert with_none.keys() == without.keys()
    for key, values in with_none.items():
        np.testing.assert_array_equal(values, without[key])


@pytest.mark.parametrize(
    ("name", "share"), [("ir", 0.464), ("grr-cr", 0.211), ("ue-cr", 0.409), ("srr", 0.0743)]
)
def test_race_and_sex_with_a_fallback_of_four(name, share):
    F = ChiSquareSet(rldp.datasets.adult(sensitive="race", useful="sex"))
    found = closed_form(name, F, 1.0, "sharp", {}, Layers(epsilon_all=4.0))
    assert found.utility(F) / F.table.entropy == pytest.approx(share, abs=1e-3)
    reached = rldp.audit(found.channel, F).epsilon_all
    assert reached == pytest.approx(1.0 if name == "srr" else 4.0, abs=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_no_grid_of_parameters_does_better(seed):
    """Dumb loops over ε_2, κ and the split of c, each judged by its conditions alone."""
    rng = np.random.default_rng(seed)
    table = Table(rng.multinomial(500, rng.dirichlet(np.full(6, 0.7))).reshape(2, 3))
    F, epsilon, c = ChiSquareSet(table), 1.0, float(rng.uniform(1.5, 5.0))
    p, r, (low, high) = table.p_su, table.p_u_given_s, F.conditional_bounds
    kept = {
        name: closed_form(name, F, epsilon, "sharp", {}, Layers(epsilon_all=c)).utility(F)
        for name in ("ir", "grr-cr", "ue-cr")
    }

    def noise(s, a, b, bounds):
        ratios = [math.inf]
        for y in range(3):
            for top, below, level in ((bounds[1][s, y], r[s, y], a), (r[s, y], bounds[0][s, y], b)):
                if top > math.exp(level) * below:
                    ratios.append(math.expm1(level) / (top - math.exp(level) * below))
        return min(ratios)

    anything = np.zeros((2, 3)), np.ones((2, 3))
    for e_2 in np.linspace(0, epsilon, 9):
        e_1 = epsilon - e_2
        caps = [
            math.expm1(e_2) / x
            for s, t, y in itertools.product(range(2), range(2), range(3))
            if s != t and (x := high[s, y] - math.exp(e_2) * low[t, y]) > 0
        ]
        k = min([*caps, math.expm1(c - e_1)])
        Q = brute.ir_matrix(2, 3, e_1, math.log1p(k))
        assert brute.mutual_information(p, Q) <= kept["ir"] + CLOSE
        k_s = [
            min(noise(s, e_2, epsilon + e_1, (low, high)), noise(s, c - e_1, c + e_1, anything))
            for s in range(2)
        ]
        Q = brute.grr_cr_matrix(r, e_1, [math.log1p(k) for k in k_s])
        assert brute.mutual_information(p, Q) <= kept["grr-cr"] + CLOSE
        for a, kappa in itertools.product(np.linspace(0.1, c - e_1, 6), (0.4, 0.8, 1.0)):
            k_s = [
                min(noise(s, e_2, epsilon - e_2, (low, high)), noise(s, a, c - a, anything))
                for s in range(2)
            ]
            lam = kappa / (kappa + (1 - kappa) * math.exp(e_1))
            Q = brute.ue_cr_matrix(r, kappa, lam, [math.log1p(k) for k in k_s])
            assert brute.mutual_information(p, Q) <= kept["ue-cr"] + 1e-5


def test_plain_protocols_take_the_smallest_level():
    F = ChiSquareSet(Table([[30, 10, 5], [10, 50, 20]]))
    for name in ("grr", "srr", "ue"):
        asked = closed_form(name, F, 2.0, "sharp", {}, Layers(epsilon_all=1.5, epsilon_given_u=0.7))
        plain = closed_form(name, F, 0.7, "sharp", {})
        np.testing.assert_allclose(asked.channel.matrix, plain.channel.matrix, rtol=0, atol=1e-9)
        families_word = FAMILIES[name].utility(
            F,
            np.array([2.0]),
            optimum(name, F, np.array([2.0]), "sharp", {}, Layers(1.5, 0.7)),
        )
        assert families_word[0] == pytest.approx(plain.utility(F), abs=1e-9)


def test_someone_who_knows_u_costs_ir_nothing_but_its_report_on_s():
    F = KnownDistribution(Table([[30, 30], [20, 20]]))  # independent: U may be sent as it is
    found = closed_form("ir", F, 1.0, "sharp", {}, Layers(epsilon_given_u=0.25))
    audit = rldp.audit(found.channel, F)
    assert audit.epsilon_given_u == pytest.approx(0.25)
    assert math.isinf(audit.epsilon_all)


def test_pinned_parameters_that_break_a_level_are_refused():
    F = ChiSquareSet(Table([[30, 10, 5], [10, 50, 20]]))
    with pytest.raises(ParameterError, match=r"epsilon_2 between 0\.5 and 1"):
        closed_form("ir", F, 1.0, "sharp", {"epsilon_2": 0.1}, Layers(epsilon_given_u=0.5))
    pins = {"kappa": 0.7, "lambda": 0.4}
    with pytest.raises(ParameterError, match="smallest of all levels"):
        closed_form("ue-cr", F, 2.0, "sharp", pins, Layers(epsilon_given_u=0.5))
    with pytest.raises(ParameterError, match="smallest of all levels"):
        closed_form("ue", F, 2.0, "sharp", pins, Layers(epsilon_all=0.5))
    with pytest.raises(ParameterError, match="epsilon"):
        Layers(epsilon_all=-1.0)


@pytest.mark.slow
@pytest.mark.parametrize("layers", [UNLAYERED, Layers(3.0, 0.8)])
@pytest.mark.parametrize("bounds", ["sharp", "exact"])
@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_keeps_all_levels(name, bounds, layers):
    F = ChiSquareSet(Table([[30, 10, 5], [10, 50, 20], [4, 0, 9]]))
    audit = rldp.audit(closed_form(name, F, 1.0, bounds, {}, layers).channel, F)
    assert audit.epsilon <= 1.0 + CLOSE
    assert audit.epsilon_all <= layers.epsilon_all + CLOSE
    assert audit.epsilon_given_u <= layers.epsilon_given_u + CLOSE
