"""PolytopeSet: mixtures of given distributions, and the pairs of corners that decide over them."""

from __future__ import annotations

import itertools
import json
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from typer.testing import CliRunner

import rldp
from rldp import AllDistributions, KnownDistribution, PolytopeSet, Table
from rldp.cli import app
from rldp.errors import ParameterError, RldpError, TooLargeError
from rldp.proof import check
from rldp.uncertainty.geometry import vertex_enumeration
from rldp.utility.robust import smallest_informations
from tests.support import strategies as some

TABLE = Table([[30, 10, 5], [10, 50, 20]])
CORNERS = [[[5, 5, 5], [1, 1, 1]], [[1, 2, 0], [8, 0, 3]]]


@st.composite
def polytopes(draw, max_s: int = 3, max_u: int = 3, most: int = 4) -> PolytopeSet:
    table = draw(some.tables(max_s, max_u))
    rng, n = draw(some.seeds), draw(st.integers(1, most))
    corners = rng.integers(0, 9, (n, *table.counts.shape))
    corners[rng.random(corners.shape) < 0.3] = 0
    corners[rng.random(corners.shape[:2]) < 0.2] = 0  # an S value that a corner does not have
    corners[:, 0, 0] += (corners.sum(axis=(1, 2)) == 0).astype(int)
    return PolytopeSet(table, corners.tolist())


def all_corners(F: PolytopeSet) -> np.ndarray:
    given_corners = [[[float(x) for x in row] for row in P] for P in F.distributions]
    return np.array([F.table.p_su.tolist(), *given_corners])


def mixtures(rng, F: PolytopeSet, n: int) -> np.ndarray:
    """Some near a corner, some in the middle."""
    P = all_corners(F)
    odds = np.exp(rng.normal(size=(n, len(P))) * rng.choice([0.5, 4.0], (n, 1)))
    return np.einsum("nk,ksu->nsu", odds / odds.sum(axis=1, keepdims=True), P)


def log_ratio(P: np.ndarray, Q: np.ndarray) -> float:
    """The largest log P(y|s)/P(y|s') of one distribution, loop by loop."""
    worst = -math.inf
    for s, t in itertools.permutations(range(len(P)), 2):
        for y in range(Q.shape[2]):
            if P[s].sum() > 0 and P[t].sum() > 0:
                a, b = P[s] @ Q[s, :, y] / P[s].sum(), P[t] @ Q[t, :, y] / P[t].sum()
                worst = max(worst, math.log(a / b))
    return worst


# --- the worst mixture ---------------------------------------------------------------------------


@settings(max_examples=40)
@given(polytopes(), some.seeds)
def test_no_mixture_exceeds_the_audit_and_one_attains_it(F, rng):
    Q = 0.9 * some.rows(rng, *F.table.counts.shape, 3, zeros=0.0) + 0.1 / 3
    found = rldp.audit(Q, F)
    for P in mixtures(rng, F, 60):
        assert log_ratio(P, Q) <= found.epsilon + 1e-9
    if found.epsilon > 1e-9 and (found.witness.p_su.sum(axis=1) > 1e-12).all():
        assert log_ratio(found.witness.p_su, Q) == pytest.approx(found.epsilon, abs=1e-6)


def test_the_worst_mixture_may_lie_between_two_corners():
    """One corner has most of s = 0 and the other most of s = 1: both lend their conditional."""
    first, second = [[98, 0], [1, 1]], [[1, 1], [0, 98]]
    table = Table(first)
    Q = np.array([[[0.9, 0.1], [0.5, 0.5]], [[0.5, 0.5], [0.1, 0.9]]])
    F = PolytopeSet(table, [second])
    corners = max(log_ratio(np.array(P) / 100, Q) for P in (first, second))

    def mixed(t):
        return log_ratio((1 - t) * np.array(first) / 100 + t * np.array(second) / 100, Q)

    best = minimize_scalar(lambda t: -mixed(t), bounds=(0, 1), method="bounded")
    audited = rldp.audit(Q, F)
    assert audited.epsilon == pytest.approx(-best.fun, abs=1e-6)
    assert audited.epsilon > corners + 0.2
    assert mixed(0.5) == pytest.approx(audited.epsilon, abs=0.05)


@settings(max_examples=30)
@given(some.full_tables(max_s=3, max_u=3), some.seeds)
def test_corners_are_enough_where_s_has_one_law(table, rng):
    """With the same P(s) in all corners the ratio is that of two linear functions."""
    R = rng.dirichlet(np.ones(table.n_u), (3, table.n_s))
    F = PolytopeSet(table, (table.p_s[:, None] * R).tolist())
    Q = 0.9 * some.rows(rng, *table.counts.shape, 3, zeros=0.0) + 0.1 / 3
    corners = max(log_ratio(corner, Q) for corner in all_corners(F))
    assert rldp.audit(Q, F).epsilon == pytest.approx(max(0.0, corners), abs=1e-9)


@settings(max_examples=25)
@given(some.tables(max_s=3, max_u=3), some.seeds)
def test_the_smallest_and_the_largest_polytope(table, rng):
    """No other corner: the frequencies alone. One corner for each cell: all distributions."""
    Q = 0.9 * some.rows(rng, *table.counts.shape, 3, zeros=0.0) + 0.1 / 3
    cells = np.eye(table.counts.size, dtype=int).reshape(-1, *table.counts.shape)
    pairs = (
        (PolytopeSet(table, [table.counts.tolist()]), KnownDistribution(table)),
        (PolytopeSet(table, cells.tolist()), AllDistributions(table)),
    )
    for ours, theirs in pairs:
        assert rldp.audit(Q, ours).epsilon == pytest.approx(rldp.audit(Q, theirs).epsilon, abs=1e-9)
        for one, other in zip(ours.conditional_bounds, theirs.conditional_bounds, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-12)


@settings(max_examples=30)
@given(polytopes(), some.seeds, st.floats(1.0, 20.0))
def test_the_largest_difference_is_that_of_its_conditionals(F, rng, ratio):
    s, t = rng.permutation(F.table.n_s)[:2]
    T = rng.random((2, F.table.n_u))
    one, two = (T[:1], np.array([s])), (T[1:], np.array([t]))
    R_1, R_2 = F.worst_conditionals(*one, *two, ratio)
    assert R_1.sum() == pytest.approx(1)
    assert R_2.sum() == pytest.approx(1)
    most = float(R_1[0] @ T[0] - ratio * R_2[0] @ T[1])
    for P in mixtures(rng, F, 60):
        if P[s].sum() > 0 and P[t].sum() > 0:
            mine, other = P[s] @ T[0] / P[s].sum(), P[t] @ T[1] / P[t].sum()
            assert mine - ratio * other <= most + 1e-9


@settings(max_examples=30)
@given(polytopes(), some.seeds)
def test_what_it_says_of_one_value_of_s(F, rng):
    c, T = rng.normal(size=F.table.counts.shape), rng.normal(size=F.table.n_u)
    low, high = F.conditional_bounds
    least, attained = F.smallest_expectation(c)
    center, radius = F.divergence_ball()
    assert all(map(F.contains, mixtures(rng, F, 3)))
    for P in mixtures(rng, F, 40):
        assert (P * c).sum() >= least - 1e-12
        positive = P > 0
        divergence = (P[positive] * np.log(P[positive] / center[positive])).sum()
        assert divergence <= radius
        for s in np.flatnonzero(P.sum(axis=1) > 0):
            R = P[s] / P[s].sum()
            assert (low[s] - 1e-12 <= R).all()
            assert (high[s] + 1e-12 >= R).all()
            assert np.abs(R - F.table.p_u_given_s[s]).sum() <= F.l1_radii[s] + 1e-9
            bottom, top = F.mean_range(T[None], np.array([s]))
            assert bottom[0] - 1e-12 <= R @ T <= top[0] + 1e-12
    assert (attained * c).sum() == pytest.approx(float(least), abs=1e-9)


def test_an_s_value_that_no_corner_has_may_be_anything():
    table = Table([[30, 10], [10, 50], [0, 0]])
    F = PolytopeSet(table, [[[1, 1], [1, 1], [0, 0]]])
    Q = np.array([[[0.5, 0.5]] * 2, [[0.5, 0.5]] * 2, [[0.2, 0.8], [0.7, 0.3]]])
    assert rldp.audit(Q, F).epsilon == pytest.approx(math.log(0.5 / 0.2))
    assert F.conditional_bounds[0][2].tolist() == [0, 0]
    G = PolytopeSet(table, [[[1, 1], [1, 1], [1, 1]]])  # here it has one
    assert rldp.audit(Q, G).epsilon == pytest.approx(math.log(0.5 / 0.45), abs=1e-9)


# --- inequalities --------------------------------------------------------------------------------


def bases(rows, limits, n: int) -> list[tuple[Fraction, ...]]:
    """All vertices, by trying all ways in which inequalities can be tight."""
    cells = [([Fraction(-int(i == j)) for j in range(n)], Fraction(0)) for i in range(n)]
    conditions, found = [*cells, *zip(rows, limits, strict=True)], set()
    for chosen in itertools.combinations(conditions, n - 1):
        system = [[*row, limit] for row, limit in chosen] + [[Fraction(1)] * (n + 1)]
        P = solved(system)
        if P and all(
            sum(a * p for a, p in zip(row, P, strict=True)) <= limit for row, limit in conditions
        ):
            found.add(P)
    return sorted(found)


def solved(system) -> tuple[Fraction, ...] | None:
    """Gauss-Jordan elimination in fractions; None where the solution is not unique."""
    n = len(system)
    for column in range(n):
        pivot = next((i for i in range(column, n) if system[i][column]), None)
        if pivot is None:
            return None
        system[column], system[pivot] = system[pivot], system[column]
        system[column] = [x / system[column][column] for x in system[column]]
        for i in range(n):
            if i != column:
                factor = system[i][column]
                system[i] = [x - factor * y for x, y in zip(system[i], system[column], strict=True)]
    return tuple(row[n] for row in system)


@settings(max_examples=60)
@given(st.data())
def test_vertices_are_those_of_all_bases(data):
    n, m = data.draw(st.integers(2, 4)), data.draw(st.integers(0, 4))
    small = st.integers(-2, 2).map(Fraction)
    rows = [data.draw(st.lists(small, min_size=n, max_size=n)) for _ in range(m)]
    limits = data.draw(st.lists(st.fractions(0, 1, max_denominator=7), min_size=m, max_size=m))
    expected = bases(rows, limits, n)
    if expected:
        assert vertex_enumeration.vertices(rows, limits, n) == expected
    else:
        with pytest.raises(ParameterError, match="some distribution"):
            vertex_enumeration.vertices(rows, limits, n)


def test_inequalities_and_their_vertices():
    """P(s = 0) between 0.2 and 0.6, and P(u = 0|s = 0) at most 0.8."""
    rows = [[[1, 1, 1], [0, 0, 0]], [[-1, -1, -1], [0, 0, 0]], [[0.25, -0.75, -0.75], [0, 0, 0]]]
    F = PolytopeSet.from_inequalities(TABLE, rows, ["3/5", "-1/5", 0])
    for P in F.distributions:
        p_0 = sum(P[0])
        assert Fraction(1, 5) <= p_0 <= Fraction(3, 5)
        assert P[0][0] * 4 <= 3 * p_0
    assert F.conditional_bounds[1][0, 0] == pytest.approx(0.75)
    assert F.contains(TABLE.p_su)
    assert not F.contains([[0.7, 0, 0], [0.3, 0, 0]])


def test_inequalities_that_make_no_sense_are_refused():
    rows = [[[1, 1, 1], [0, 0, 0]]]
    with pytest.raises(ParameterError, match="hold for the frequencies"):
        PolytopeSet.from_inequalities(TABLE, rows, ["1/100"])
    with pytest.raises(ParameterError, match="1 limits"):
        PolytopeSet.from_inequalities(TABLE, rows, [1, 1])
    with pytest.raises(ParameterError, match="tables of 2 × 3"):
        PolytopeSet.from_inequalities(TABLE, [[[1, 1], [0, 0]]], [1])


def test_too_many_vertices_are_refused(monkeypatch):
    monkeypatch.setattr(vertex_enumeration, "_MOST", 5)
    with pytest.raises(TooLargeError, match="vertices"):
        PolytopeSet.from_inequalities(TABLE, [[[1, 0, 0], [0, 1, 1]]], ["9/10"])


# --- designs -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_optimal_protocol_by_cutting_planes():
    F = PolytopeSet(TABLE, CORNERS)
    best = rldp.design(F, 0.9, "optimal", effort="quick")
    known = rldp.design(F, 0.9, "polyopt")
    assert rldp.audit(best).epsilon <= 0.9 + 1e-12
    assert known.utility - 1e-9 <= best.utility <= rldp.ceiling(F, 0.9) + 1e-9
    check(best.document())


def test_files_and_commands(tmp_path):
    p = rldp.design(PolytopeSet(TABLE, CORNERS), 0.9, "ir")
    p.save(tmp_path / "p.json")
    again = rldp.load(tmp_path / "p.json")
    assert again.uncertainty.distributions == p.uncertainty.distributions
    corners, file = tmp_path / "corners.json", tmp_path / "q.json"
    corners.write_text(json.dumps([[[1, 1]] * 5, [["1/3", "2/3"]] * 5]))
    data = ["adult", "-s", "race", "-u", "sex", "--set", "polytope"]
    options = ["--distributions", str(corners), "-e", "1", "-p", "ir", "-o", str(file)]
    ran = CliRunner().invoke(app, ["design", *data, *options])
    assert ran.exit_code == 0, ran.output
    assert "every mixture of the frequencies" in " ".join(ran.output.split())
    ran = CliRunner().invoke(app, ["verify", str(file)])
    assert ran.exit_code == 0, ran.output


# --- what it is told -----------------------------------------------------------------------------


def test_numbers_of_every_kind_are_exact():
    third = Fraction(1, 3)
    kinds = [[[2, Fraction(1, 2), "1/2"], [np.int64(1), 1.0, Decimal(1)]], np.full((2, 3), 1 / 6)]
    F = PolytopeSet(TABLE, kinds)
    assert F.distributions[0][0] == (third, Fraction(1, 12), Fraction(1, 12))
    assert all(sum(map(sum, P)) == 1 for P in F.distributions)
    assert F.distributions[1] == ((Fraction(1, 6),) * 3,) * 2
    assert repr(F).endswith("2 distributions)")


@pytest.mark.parametrize(
    "distributions",
    [
        None,
        3,
        [],
        [[[1, 2, 3]]],
        [[[1, 2], [3, 4]]],
        [[[0, 0, 0], [0, 0, 0]]],
        [[[1, -1, 1], [1, 1, 1]]],
        [[[1, math.nan, 1], [1, 1, 1]]],
        [[[1, math.inf, 1], [1, 1, 1]]],
        [[[1, True, 1], [1, 1, 1]]],
        [[[1, "x", 1], [1, 1, 1]]],
        [[[1, "1/0", 1], [1, 1, 1]]],
    ],
)
def test_what_is_no_distribution_is_refused(distributions):
    with pytest.raises(RldpError, match="Expected"):
        PolytopeSet(TABLE, distributions)


def test_the_least_information_over_a_polytope():
    F = PolytopeSet(TABLE, CORNERS)
    p = rldp.design(F, 0.9, "srr")
    columns = p.matrix.transpose(2, 0, 1)
    least = math.fsum(smallest_informations(columns, F).lower)
    rng = np.random.default_rng(0)
    values = [p.mutual_information(P) for P in mixtures(rng, F, 30)]
    assert 0 <= least <= min(values) + 1e-9
