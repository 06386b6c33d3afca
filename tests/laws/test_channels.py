"""Laws of channels and of the information they carry: every fast path against the dumb loop."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logit
from scipy.stats import binom

from rldp import (
    ChiSquareSet,
    DenseChannel,
    Table,
    TooLargeError,
    UnaryChannel,
    compare,
    entropy,
    mutual_information,
)
from rldp.channel.sum_laws import Law, coins, expected_w_log_w
from rldp.designing.closed_forms import FAMILIES as NAMES
from rldp.designing.closed_forms import unary
from rldp.designing.closed_forms.subset_law import InformationSpline, SubsetLaw
from rldp.information import response_information, response_matrix, retention
from tests.support import brute
from tests.support import strategies as some


def near(value, reference):
    return value == pytest.approx(reference, rel=0, abs=1e-12)


# --- structure = matrix = listing ----------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=40)
@given(some.uncertainty_sets(max_s=3, max_u=3), some.epsilons, st.sampled_from(["sharp", "paper"]))
def test_channels_are_the_listings_of_the_paper(F, epsilon, bounds):
    """The matrix of each protocol equals its listing, built literally."""
    for name in NAMES:
        p = some.ideal(F, epsilon, name, bounds=bounds)
        can_occur = F.conditional_bounds[1] > 0  # other cells may send anything
        assert near(p.matrix[can_occur], brute.matrix_of(p)[can_occur]), name
        assert near(p.matrix.sum(axis=2), np.ones(p.matrix.shape[:2])), name


@given(some.channels(), some.seeds)
def test_structured_information_is_that_of_the_matrix(channel, rng):
    """At any P, not at P̂ only: structure = matrix = triple loop."""
    n_s, n_u = channel.shape
    for P in (some.rows(rng, n_s * n_u), rng.dirichlet(np.ones(n_s * n_u))):
        P = P.reshape(n_s, n_u)
        loop = brute.mutual_information(P, channel.matrix)
        low, high = channel.mutual_information_bounds(P)
        assert low - 1e-12 <= loop <= high + 1e-12
        assert near(channel.mutual_information(P), loop)
        assert near(mutual_information(P, channel.matrix), loop)


@given(some.channels())
def test_rows_of_channels_sum_to_1(channel):
    Q = channel.matrix
    assert Q.shape == (*channel.shape, channel.n_outputs)
    assert np.all(Q >= 0)
    assert near(Q.sum(axis=2), np.ones(channel.shape))


def test_a_matrix_of_42_blocks_is_refused():
    channel = UnaryChannel(np.full((42, 6, 7), 1 / 7), np.full((42, 7), 1 / 7))
    with pytest.raises(TooLargeError, match=r"42 × 6 × about 10\^35 entries"):
        _ = channel.matrix
    assert channel.mutual_information(np.full((42, 6), 1 / 252)) == 0


# --- inequalities ------------------------------------------------------------------------------


@given(some.channels(), some.seeds, st.integers(1, 4))
def test_data_processing(channel, rng, n_z):
    """0 ≤ I(X;Z) ≤ I(X;Y) ≤ H(X) for Z made from Y; merging outputs is a case of it."""
    P = some.rows(rng, math.prod(channel.shape)).reshape(channel.shape)
    kept, Q = channel.mutual_information(P), channel.matrix
    merged = np.concatenate([Q[:, :, :1] + Q[:, :, 1:2], Q[:, :, 2:]], axis=2)
    processed = Q @ some.rows(rng, Q.shape[2], n_z)
    for after in (merged, processed):
        assert 0 <= mutual_information(P, after) <= kept + 1e-12
    assert kept <= entropy(P) + 1e-12


def test_revealing_keeps_everything_and_silence_nothing():
    P = np.array([[0.1, 0.2], [0.3, 0.4]])
    assert near(DenseChannel(np.eye(4).reshape(2, 2, 4)).mutual_information(P), entropy(P))
    assert DenseChannel(np.ones((2, 2, 1))).mutual_information(P) == 0


@given(some.distributions(3, 4))
def test_entropy(p):
    assert near(entropy(p), brute.entropy(p))
    assert 0 <= entropy(p) <= math.log(12) + 1e-12


@given(some.distributions(4), some.epsilons)
def test_randomised_response(p, epsilon):
    """The closed form of I(GRR(X);X), and GRR by retention."""
    k = np.expm1(epsilon)
    theta = retention(k, 4)
    assert near(response_matrix(k, 4), brute.grr(epsilon, 4))
    assert near(float(response_information(p, theta)), brute.information(p, brute.grr(epsilon, 4)))


# --- the utility theorems ----------------------------------------------------------------------


def on_u_given_s(P, delta_s) -> float:
    """I_P(R^S(U);U|S) by loops."""
    n_u, total = P.shape[1], 0.0
    for row, delta in zip(P, delta_s, strict=True):
        if row.sum() > 0:
            total += row.sum() * brute.information(row / row.sum(), brute.grr(delta, n_u))
    return total


def theorem(p, P) -> float:
    """The right-hand side of thm:iruti, thm:grrcruti or thm:ueuti at P."""
    n_s, values = P.shape[0], p.parameters
    if p.name == "ue-cr":
        # unary encoding of S is that of (s, u) with a single u
        UE = brute.ue_matrix(n_s, 1, values["kappa"], values["lambda"])
        kept = values["kappa"] * on_u_given_s(P, values["delta_s"])
        return brute.mutual_information(P.sum(axis=1, keepdims=True), UE) + kept
    R1 = brute.grr(values["epsilon_1"], n_s)
    on_s = brute.information(P.sum(axis=1), R1)
    if p.name == "grr-cr":
        return on_s + R1[0, 0] * on_u_given_s(P, values["delta_s"])
    joint = R1.T @ P  # of R¹(S) and U
    return on_s + on_u_given_s(joint, [values["delta_2"]] * n_s)


@pytest.mark.slow
@settings(max_examples=40)
@given(some.uncertainty_sets(max_s=3, max_u=3), some.epsilons, st.sampled_from(["sharp", "paper"]))
def test_utility_theorems(F, epsilon, bounds):
    """thm:iruti, thm:grrcruti, thm:ueuti at P̂: theorem = channel = matrix = comparison."""
    for name in ("ir", "grr-cr", "ue-cr"):
        p = some.ideal(F, epsilon, name, bounds=bounds)
        kept = theorem(p, F.table.p_su)
        assert near(p.utility, kept), name
        assert near(mutual_information(F.table.p_su, p.matrix), kept), name
        assert near(compare(F, epsilon, protocols=[name], bounds=bounds)[0]["utility"], kept), name


@given(some.tables(max_s=3, max_u=3), some.epsilons, some.seeds)
def test_thm_iruti_holds_at_any_distribution(table, epsilon, rng):
    p = some.ideal(ChiSquareSet(table), epsilon, "ir")
    P = rng.dirichlet(np.ones(table.p_su.size)).reshape(table.p_su.shape)
    assert near(p.channel.mutual_information(P), theorem(p, P))


@pytest.mark.parametrize("name", ["grr-cr", "ue-cr"])
def test_the_theorems_on_conditional_reporting_hold_at_the_estimate_only(name):
    """Elsewhere made-up and true U differ, which reveals part of S; the channel is right."""
    p = some.ideal(
        ChiSquareSet(Table([[60, 40], [30, 70]])), 2.0, name, parameters={"epsilon_2": 0.5}
    )
    P = np.array([[0.1, 0.4], [0.4, 0.1]])
    assert abs(theorem(p, P) - p.channel.mutual_information(P)) > 1e-3
    assert near(p.channel.mutual_information(P), brute.mutual_information(P, p.matrix))


# --- sums of many independent variables ----------------------------------------------------------


def brute_w_log_w(laws, offset: float) -> float:
    """E[W log W] over all outcomes."""
    total = 0.0
    for outcome in itertools.product(*(zip(*law, strict=True) for law in laws)):
        w = offset + sum(atom for atom, _ in outcome)
        total += math.prod(mass for _, mass in outcome) * (w * math.log(w) if w > 0 else 0.0)
    return total


def random_laws(rng, n: int) -> list[Law]:
    sizes = rng.integers(2, 4, n)
    return [Law(np.sort(rng.random(k)), rng.dirichlet(np.ones(k))) for k in sizes]


@given(some.seeds, st.integers(1, 6), st.floats(0, 1), st.integers(5, 40))
def test_brackets_contain_the_truth_also_when_atoms_are_merged(rng, n, offset, most_atoms):
    laws = random_laws(rng, n)
    truth = brute_w_log_w(laws, offset)
    low, high = expected_w_log_w(laws, offset, most_atoms)
    assert low - 1e-12 <= truth <= high + 1e-12
    assert near(expected_w_log_w(laws, offset), (truth, truth))


def test_brackets_close_with_the_number_of_atoms():
    laws = random_laws(np.random.default_rng(8), 11)
    widths = [np.ptp(expected_w_log_w(laws, 0.1, most)) for most in (8, 32, 128, 512, 2048)]
    assert widths[0] > 1e-4
    assert all(after < before / 4 for before, after in itertools.pairwise(widths))


@given(st.floats(0.01, 2), st.floats(0, 1), st.integers(1, 30))
def test_equal_coins_are_binomial(size, chance, n):
    atoms, masses = coins(size, chance, n)
    assert near(atoms, size * np.arange(n + 1))
    assert near(masses, binom.pmf(np.arange(n + 1), n, chance))


logits = st.floats(-8, 12)


@pytest.mark.slow
@given(some.seeds, st.lists(st.integers(0, 300), min_size=1, max_size=9), st.floats(0.5, 8))
def test_the_spline_errs_by_less_than_a_ten_millionth(rng, counts, largest):
    law = SubsetLaw(np.array([1, *counts]))
    spline = InformationSpline(law, -8.0, 18.0, largest)
    v, w = rng.uniform(-8, 18, (4, 1, 6)), rng.uniform(0, largest, (4, 5, 1))
    v[0, 0] = np.linspace(-8, 18, 6)
    w[0, :2, 0] = 0.0, largest
    assert np.abs(spline.information(v, w) - law.information(v, v - w)).max() < 1e-7
    on_grid = spline.on_grid(v[0, 0], w[0])
    assert np.abs(on_grid[:, 0] - spline.information(v[:1], w[:1])[0]).max() < 1e-12


@given(st.lists(st.integers(0, 50), min_size=1, max_size=7), logits, st.floats(0, 12))
def test_subset_law_is_that_of_all_subsets(counts, high, gap):
    """I(UE(S);S) from the law of P(e) by size equals the sum over all subsets e."""
    counts = np.array([1, *counts])
    law, p = SubsetLaw(counts), counts / counts.sum()
    kappa, lam = 1 / (1 + math.exp(-high)), 1 / (1 + math.exp(gap - high))
    UE = brute.ue_matrix(len(counts), 1, kappa, lam)
    value = float(law.information(np.array(high), np.array(high - gap)))
    assert law.is_exact
    assert near(value, brute.mutual_information(p[:, None], UE))


# --- unary encoding of 42 values ---------------------------------------------------------------


def lattice_information(counts, kappa: float, lam: float) -> float:
    """I(UE(S);S) from the exact law of the number of records in a random subset."""
    n = int(counts.sum())
    law = np.zeros(n + 1)
    law[0] = 1.0
    for count in counts:
        moved = np.zeros(n + 1)
        moved[count:] = law[: n + 1 - count]
        law = (1 - lam) * law + lam * moved
    rho_1, rho_0 = kappa / lam, (1 - kappa) / (1 - lam)
    W = rho_0 + (rho_1 - rho_0) * np.arange(n + 1) / n
    return kappa * math.log(rho_1) + (1 - kappa) * math.log(rho_0) - float(law @ (W * np.log(W)))


def jeffreys(n_s: int, n: int, seed: int):
    rng = np.random.default_rng(seed)
    return rng.multinomial(n, rng.dirichlet(np.full(n_s, 0.5)))


POPULAR = [(0.5, 1 / (math.e + 1)), (math.e / (math.e + 1), 0.5), (0.9, 0.2), (0.999, 0.99)]


@pytest.mark.slow
@pytest.mark.parametrize(("kappa", "lam"), POPULAR)
@pytest.mark.parametrize(("n", "error"), [(1000, 1e-12), (32561, 1e-12), (500_000, 1e-8)])
def test_unary_encoding_of_42_values(n, error, kappa, lam):
    """Within a bracket of the stated width, against a convolution on the lattice of records."""
    counts = jeffreys(42, n, seed=42)
    exact = lattice_information(counts, kappa, lam)
    p = (counts / n)[:, None]
    low, high = unary.bits(p.shape, kappa, lam).mutual_information_bounds(p)
    assert low - 1e-12 <= exact <= high + 1e-12
    assert high - low <= error
    assert abs(float(unary.information(counts, np.array([kappa]), np.array([lam]))[0]) - exact) <= (
        1e-12 + error
    )


@pytest.mark.parametrize(("kappa", "lam"), POPULAR)
def test_unary_encoding_of_uniform_values(kappa, lam):
    """P(e) = |e|/n with a binomial |e|: a sum of n + 1 terms."""
    for n in (42, 300):
        rho_1, rho_0 = kappa / lam, (1 - kappa) / (1 - lam)
        W = rho_0 + (rho_1 - rho_0) * np.arange(n + 1) / n
        expected = binom.pmf(np.arange(n + 1), n, lam) @ (W * np.log(W))
        exact = kappa * math.log(rho_1) + (1 - kappa) * math.log(rho_0) - expected
        channel = unary.bits((n, 1), kappa, lam)
        assert near(channel.mutual_information(np.full((n, 1), 1 / n)), exact)


def test_searching_law_of_42_values_is_close():
    """On the even grid, which serves for searching only, the error stays below 1e-4."""
    counts = jeffreys(42, 500_000, seed=42)
    law = SubsetLaw(counts)
    assert not law.is_exact
    for kappa, lam in POPULAR:
        value = float(law.information(logit(np.array(kappa)), logit(np.array(lam))))
        assert abs(value - lattice_information(counts, kappa, lam)) <= 1e-4
