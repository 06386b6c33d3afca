"""FiniteKLSet: its radius is valid for every sample size (docs/guarantee.md, Section 11)."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rldp
from rldp import FiniteKLSet, KLSet, Table, TotalVariationSet
from rldp.intervals import check_with_intervals
from rldp.proof import ProofError, check
from rldp.proof.numbers import is_finite_quantile

ALPHAS = (1e-6, 0.05, 0.5, 0.9)


def words(n: int, cells: int):
    """All counts of n records."""
    for bars in itertools.combinations(range(n + cells - 1), cells - 1):
        ends = (-1, *bars, n + cells - 1)
        yield tuple(b - a - 1 for a, b in itertools.pairwise(ends))


def grid(cells: int, steps: int) -> list[np.ndarray]:
    """Distributions on a grid of the simplex, its faces among them."""
    return [np.array(word) / steps for word in words(steps, cells)]


def chance(counts, P) -> float:
    """Of these counts under the multinomial law."""
    if any(c and not p for c, p in zip(counts, P, strict=True)):
        return 0.0
    log = math.lgamma(sum(counts) + 1) - sum(math.lgamma(c + 1) for c in counts)
    return math.exp(log + sum(c * math.log(p) for c, p in zip(counts, P, strict=True) if c))


def divergence(counts, P) -> float:
    """n KL(P̂‖P)."""
    n, total = sum(counts), 0.0
    for c, p in zip(counts, P, strict=True):
        if c and not p:
            return math.inf
        total += c * math.log(c / n / p) if c else 0.0
    return total


# --- the theorem ---------------------------------------------------------------------------------


@given(st.fractions(-3, 5, max_denominator=9), st.fractions(-3, 5, max_denominator=9))
def test_the_identity_of_abel(a, b):
    """Σ C(m,x) (a+x)^x (b+m-x)^(m-x) = Σ m!/(m-j)! (a+b+m)^(m-j), in fractions."""
    for m in range(9):
        left = sum(math.comb(m, x) * (a + x) ** x * (b + m - x) ** (m - x) for x in range(m + 1))
        right = sum(math.perm(m, j) * (a + b + m) ** (m - j) for j in range(m + 1))
        assert left == right


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.05, 0.5, 0.9, 0.99])
@pytest.mark.parametrize(("cells", "steps"), [(2, 40), (3, 10), (4, 6)])
def test_the_mean_of_the_exponential(cells, steps, share):
    """E e^(λ n KL) ≤ (1-λ)^(1-c), whatever n and P are."""
    for n in (1, 2, 3, 6, 11):
        for P in grid(cells, steps):
            mean = sum(
                chance(counts, P) * math.exp(share * divergence(counts, P))
                for counts in words(n, cells)
                if divergence(counts, P) < math.inf
            )
            assert mean <= (1 - share) ** (1 - cells) * (1 + 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "steps"), [((2, 1), 60), ((2, 2), 8), ((3, 2), 4)])
def test_coverage_is_exact_and_enough(shape, steps):
    """The chance that a sample gives a set without the truth, summed over all samples."""
    cells = math.prod(shape)
    for n in (1, 2, 3, 5, 8):
        table = Table(np.eye(1, cells, 0, int).reshape(shape) * n)
        radii = {alpha: FiniteKLSet(table, alpha).radius for alpha in ALPHAS}
        for P in grid(cells, steps):
            samples = [(chance(c, P), divergence(c, P)) for c in words(n, cells)]
            for alpha, radius in radii.items():
                assert sum(p for p, far in samples if far > n * radius) <= alpha + 1e-12


def test_the_asymptotic_set_does_not_cover_as_often_as_it_says():
    """So that the enumeration above can fail."""
    n, P = 8, np.array([0.4, 0.2, 0.2, 0.2])
    radius = KLSet(Table([[8, 0], [0, 0]]), 0.05).radius
    missed = sum(chance(c, P) for c in words(n, 4) if divergence(c, P) > n * radius)
    assert missed > 0.09


def test_membership_is_by_the_radius():
    table, rng = Table([[3, 0], [1, 2]]), np.random.default_rng(0)
    F = FiniteKLSet(table, 0.3)
    for P in rng.dirichlet(np.full(4, 0.5), 200):
        inside = divergence(table.counts.ravel(), P) <= table.n * F.radius
        assert F.contains(P.reshape(2, 2)) == inside


# --- the radius ----------------------------------------------------------------------------------


@given(st.integers(1, 400), st.floats(1e-300, 0.999999), st.integers(1, 10**6))
def test_the_radius_solves_its_equation(half, alpha, n):
    counts = np.zeros((2, half), int)
    counts[0, 0] = n
    F = FiniteKLSet(Table(counts), alpha)
    t, k = F.radius * n, 2 * half - 1
    assert t >= k
    assert t - k - k * math.log(t / k) == pytest.approx(math.log(1 / alpha), abs=1e-9 * t)
    x = Fraction(F.quantile)
    assert is_finite_quantile(x * (1 + Fraction(1, 10**12)), k, Fraction(alpha))
    assert not is_finite_quantile(x * (1 - Fraction(1, 10**9)), k, Fraction(alpha))


def test_quantiles_out_of_range_prove_nothing():
    """Below c - 1 the bound on the chance rises again, and a small x would pass it."""
    assert not is_finite_quantile(Fraction(1, 1000), 3, Fraction(1, 2))
    assert not is_finite_quantile(Fraction(0), 3, Fraction(1, 2))
    assert not is_finite_quantile(Fraction(-5), 3, Fraction(1, 2))
    assert is_finite_quantile(Fraction(10**399), 3, Fraction(1, 2))


@pytest.mark.parametrize("quantile", ["18.8646", "7.9", "0", "-20", "1/1000000"])
def test_both_checkers_refuse_a_radius_that_is_too_small(quantile):
    pytest.importorskip("flint")
    document = rldp.design(FiniteKLSet(Table([[62, 14], [876, 48]])), 1.0, "srr").document()
    check(document)
    check_with_intervals(document)
    document["certificate"]["quantile"] = str(Fraction(quantile))
    for checker in (check, check_with_intervals):
        with pytest.raises(ProofError):
            checker(document)


def test_a_file_of_one_kind_does_not_pass_for_the_other():
    """The asymptotic radius is smaller, and the same multipliers with it prove another claim."""
    pytest.importorskip("flint")
    document = rldp.design(KLSet(Table([[62, 14], [876, 48]])), 1.0, "ir").document()
    document["uncertainty"]["kind"] = "kl-finite"
    for checker in (check, check_with_intervals):
        with pytest.raises(ProofError, match="quantile"):
            checker(document)


# --- the class -----------------------------------------------------------------------------------


def test_finite_is_a_way_to_ask_for_it():
    table = Table([[62, 14], [876, 48]])
    F = KLSet(table, 0.01, finite=True)
    assert type(F) is FiniteKLSet
    assert (F.alpha, F.radius) == (0.01, FiniteKLSet(table, 0.01).radius)
    assert type(KLSet(table)) is type(KLSet(table, finite=False)) is KLSet
    for twin in (copy.copy(F), pickle.loads(pickle.dumps(F))):
        assert type(twin) is FiniteKLSet
        assert twin.radius == F.radius


def test_what_it_costs():
    """Less than total variation even at α = 1e-6, and a little more than the asymptotic set."""
    table = rldp.datasets.adult(sensitive="race", useful="sex")
    sets = (
        KLSet(table, 0.05),
        FiniteKLSet(table, 0.05),
        FiniteKLSet(table, 1e-6),
        TotalVariationSet(table, 0.05),
    )
    kept = [rldp.design(F, 1.0, "ir").normalised_utility for F in sets]
    assert kept == sorted(kept, reverse=True)
    assert kept[0] - kept[1] < 0.01


def test_files_come_back(tmp_path):
    p = rldp.design(FiniteKLSet(Table([[62, 14], [876, 48]]), 0.01), 1.0, "grr-cr")
    p.save(tmp_path / "p.json")
    again = rldp.load(tmp_path / "p.json")
    assert again.document()["uncertainty"]["kind"] == "kl-finite"
    assert type(again.uncertainty) is FiniteKLSet
    assert again.uncertainty.alpha == 0.01
