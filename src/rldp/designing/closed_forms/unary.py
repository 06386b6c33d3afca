"""UE and UE-CR: unary encoding of the record, or of S with a noisy U beside each reported s."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from rldp._types import Array, Indices, Integers
from rldp.arithmetic import exp, expm1, log1p
from rldp.channel import UnaryChannel
from rldp.designing.closed_forms.base import (
    Chosen,
    Family,
    ParameterProblem,
    Parameters,
    Pinned,
    pinned_number,
)
from rldp.designing.closed_forms.noise_odds import (
    Bounds,
    conditional_odds,
    conditional_odds_of_all,
    conditional_response,
    information_on_u,
)
from rldp.designing.closed_forms.subset_law import InformationSpline, SubsetLaw
from rldp.designing.solvers.grid_search import Grid, Optimum, maximise
from rldp.errors import ParameterError
from rldp.uncertainty import UncertaintySet

# logits of κ that are searched: beyond them 1 - κ drowns in rounding, and the corner κ = λ = 1,
# which UE-CR tries apart, is as good
_LOWEST_LOGIT, _HIGHEST_LOGIT = -8.0, 18.0
_MANY = 6  # values of ε that are worth a table
_SPLITS, _ROUNDS = 17, 4  # of c between both directions: points of a grid, and how often it zooms


class UE(Family):
    """UE: unary encoding of the whole record, ε-LDP whatever F is.

    A bit for each cell: 1 with probability κ for the own cell and λ for the others. The popular
    choices of (κ, λ) are "symmetric", "optimised" and "transposed"; without one, the best κ is
    searched.
    """

    name = "ue"
    parameters = ("variant", "kappa", "lambda")

    def optimum(self, problem: ParameterProblem) -> Parameters:
        """The best κ with the smallest λ, or the pinned or popular choice."""
        pinned, epsilons = problem.pinned, problem.smallest_levels  # bits tell everyone the same
        law = SubsetLaw(problem.F.table.counts.ravel())

        def objective(i: Indices, logit: Array) -> Array:
            return law.information(logit, logit - epsilons[i])

        kappa = pinned_kappa(pinned, epsilons.size)
        lam = pinned_lambda(pinned, kappa)
        if "variant" in pinned:
            if kappa is not None:
                raise ParameterError(
                    "Expected a variant or kappa, got both.", argument="parameters"
                )
            # below 1 also where it rounds to 1, at which no bit would tell anything
            kappa = np.minimum(popular_kappa(str(pinned["variant"]), epsilons), 1 - 2.0**-53)
        if kappa is None:
            low, high = (end[:, None] for end in logit_range(None, epsilons.size))
            best = maximise(objective, low, high, Grid([65], 9, peaks=3, rtol=1e-6))
            kappa = kappa_of(best.point[:, 0])
        if lam is None:
            lam = smallest_lambda(kappa, epsilons)
        excess = log_odds(kappa, lam) - epsilons
        if np.any(excess > 1e-9):
            raise ParameterError(
                f"Expected odds of kappa and lambda up to e^epsilon, for the smallest of all "
                f"levels; they exceed it by a factor e^{excess.max():.6g}. Raise lambda.",
                argument="parameters",
            )
        return {"kappa": kappa, "lambda": lam}

    def utility(self, F: UncertaintySet, epsilons: Array, parameters: Parameters) -> Array:
        """I(X;Y) at P̂."""
        return information(F.table.counts.ravel(), parameters["kappa"], parameters["lambda"])

    def channel(self, F: UncertaintySet, epsilon: float, parameters: Chosen) -> UnaryChannel:
        """One bit for each cell."""
        return bits(F.table.p_su.shape, parameters["kappa"], parameters["lambda"])


def popular_kappa(variant: str, epsilons: Array) -> Array:
    """κ of a popular choice; its λ is the smallest that ε allows."""
    match variant:
        case "symmetric":
            return np.asarray(expit(epsilons / 2))  # λ = 1/(e^{ε/2} + 1)
        case "optimised":
            return np.full(epsilons.shape, 0.5)  # λ = 1/(e^ε + 1)
        case "transposed":
            return np.asarray(expit(epsilons))  # λ = 1/2
    raise ParameterError(
        f"Expected the variant symmetric, optimised or transposed, got {variant!r}.",
        argument="parameters",
    )


class UECR(Family):
    """UE-CR: unary encoding of S, and beside each reported s a noisy U, true or made up."""

    name = "ue-cr"
    parameters = ("epsilon_2", "kappa", "lambda")

    def optimum(self, problem: ParameterProblem) -> Parameters:
        """The best ε_2 and κ with the smallest λ, or the corner κ = λ = 1 that tells nothing of S.

        Reports compare any cell of one s with any of another, so that someone who knows U can see
        as much as all distributions together.
        """
        epsilons, pinned = problem.smallest_levels, problem.pinned
        c = problem.layers.all_or_given_u
        noise = _Odds(problem.F, epsilons, problem.bounds, problem.room, c)
        kappa = pinned_kappa(pinned, epsilons.size)
        lam = pinned_lambda(pinned, kappa)
        budgets = _budgets_for_u(noise, pinned, kappa, lam)
        if kappa is None:
            corner = _corner(noise, *budgets)
            inner = _inner(noise, budgets, None, None, corner.value)
            is_corner = corner.value >= inner.value
            epsilon_2 = np.where(is_corner, corner.point[:, 0], inner.point[:, 0])
            kappa = np.where(is_corner, 1.0, kappa_of(inner.point[:, 1]))
        else:
            is_corner = kappa == 1
            best = _corner(noise, *budgets) if is_corner[0] else _inner(noise, budgets, kappa, lam)
            epsilon_2 = best.point[:, 0]
        if lam is None:
            lam = np.where(is_corner, 1.0, smallest_lambda(kappa, epsilons - epsilon_2))
        epsilon_1 = log_odds(kappa, lam)
        return {
            "epsilon_1": epsilon_1,
            "epsilon_2": epsilon_2,
            "kappa": kappa,
            "lambda": lam,
            "delta_s": log1p(noise.odds(np.arange(epsilons.size), epsilon_2, epsilon_1)),
        }

    def utility(self, F: UncertaintySet, epsilons: Array, parameters: Parameters) -> Array:
        """I(X;Y) at P̂ with randomised response inside (thm:ueuti)."""
        kappa, lam = parameters["kappa"], parameters["lambda"]
        on_s = information(F.table.counts.sum(axis=1), kappa, lam)
        return on_s + kappa * information_on_u(F, expm1(parameters["delta_s"]))

    def channel(self, F: UncertaintySet, epsilon: float, parameters: Chosen) -> UnaryChannel:
        """Block s is silent, or holds R^s of the true u, or of a draw from P̂_{U|s} without s."""
        kappa, lam = parameters["kappa"], parameters["lambda"]
        R, made_up = conditional_response(F, parameters["delta_s"])
        own = np.concatenate([np.full((*R.shape[:2], 1), 1 - kappa), kappa * R], axis=2)
        other = np.concatenate([np.full((made_up.shape[0], 1), 1 - lam), lam * made_up], axis=1)
        return UnaryChannel(own, other)


@dataclass(frozen=True)
class _Odds:
    """The noise on U for every ε: k_s = e^{δ_s} - 1 as a function of ε_2 and of the odds on S."""

    F: UncertaintySet
    epsilons: Array
    bounds: Bounds
    room: float
    c: float  # the level over all distributions

    def over_f(self, i: Indices, epsilon_2: Array) -> Array:
        """The largest k_s that are private over F, shape (..., n_s)."""
        # T_s/T̂_s ≤ e^{ε_2} goes with odds e^{ε - ε_2} on S; T_s T̂_{s'}/(T̂_s T_{s'}) ≤ e^ε leaves
        # e^{ε - ε_2} for T̂_s/T_s
        b = self.epsilons[i] - epsilon_2 + self.room
        return conditional_odds(self.F, epsilon_2, b, self.bounds)

    def odds(self, i: Indices, epsilon_2: Array, epsilon_1: Array | float) -> Array:
        """The most useful k_s that keep c as well, where S has odds e^{ε_1}, shape (..., n_s)."""
        k = self.over_f(i, epsilon_2)
        if np.isinf(self.c):
            return k
        # as over F, T_s/T̂_s ≤ e^a and T̂_s/T_s ≤ e^{c-a} with a ≤ c - ε_1; no single a is best
        low = np.zeros(k.shape[:-1])
        high = np.maximum(0.0, np.broadcast_to(self.c - np.asarray(epsilon_1), low.shape))
        share = np.linspace(0.0, 1.0, _SPLITS)
        for _ in range(_ROUNDS):
            a = low[..., None] + (high - low)[..., None] * share
            tried = np.minimum(k[..., None, :], conditional_odds_of_all(self.F, a, self.c - a))
            best = information_on_u(self.F, tried).argmax(axis=-1)[..., None]
            step = (high - low) / (_SPLITS - 1)
            middle = np.take_along_axis(a, best, -1)[..., 0]
            low, high = np.maximum(low, middle - step), np.minimum(high, middle + step)
        return np.asarray(np.take_along_axis(tried, best[..., None], -2)[..., 0, :])

    def about_u(self, i: Indices, epsilon_2: Array) -> Array:
        """What U tells beside odds e^{ε - ε_2} on S."""
        epsilon_1 = np.maximum(0.0, self.epsilons[i] - epsilon_2)
        return information_on_u(self.F, self.odds(i, epsilon_2, epsilon_1))

    def about_u_alone(self, i: Indices, epsilon_2: Array) -> Array:
        """What U tells where nothing is told of S itself."""
        return information_on_u(self.F, self.odds(i, epsilon_2, 0.0))


def _corner(noise: _Odds, low: Array, high: Array) -> Optimum:
    """The best ε_2 at κ = λ = 1."""
    # only the corner, which compares no single S value with silence, may give its room to ε_2
    beyond = np.where(high > low, high + noise.room, high)
    if noise.bounds == "paper":  # the smaller of both directions counts, and ε_2 is
        return Optimum(beyond[:, None], noise.about_u_alone(np.arange(beyond.size), beyond))
    ends = low[:, None], beyond[:, None]
    return maximise(noise.about_u_alone, *ends, Grid([129], 17))


def _inner(
    noise: _Odds,
    budgets: tuple[Array, Array],
    kappa: Array | None,
    lam: Array | None,
    floor: Array | None = None,
) -> Optimum:
    """The best (ε_2, logit of κ) apart from the corner."""
    epsilons = noise.epsilons
    law = SubsetLaw(noise.F.table.counts.sum(axis=1))
    ends = logit_range(kappa, epsilons.size)

    def objective(i: Indices, epsilon_2: Array, logits: Array) -> Array:
        lower = logits - (epsilons[i] - epsilon_2) if lam is None else logit(lam)[i]
        about_u = noise.about_u(i, epsilon_2)
        return law.information(logits, lower) + kappa_of(logits) * about_u

    def interpolated(i: Indices, epsilon_2: Array, logits: Array) -> Array:
        on_s = spline.information(logits, np.maximum(0.0, epsilons[i] - epsilon_2))
        return on_s + kappa_of(logits) * noise.about_u(i, epsilon_2)

    def on_the_grid(i: Indices, epsilon_2: Array, logits: Array) -> Array:
        values = spline.on_grid(logits[0].ravel(), (epsilons[i] - epsilon_2)[..., 0])
        return values + kappa_of(logits) * noise.about_u(i, epsilon_2)

    searched, first = objective, None
    if kappa is None and _MANY <= epsilons.size >= epsilons.max():
        spline = InformationSpline(law, ends[0].min(), ends[1].max(), float(epsilons.max()))
        searched, first = interpolated, on_the_grid
    box = [np.stack([x, end], axis=1) for x, end in zip(budgets, ends, strict=True)]
    grid = Grid([33, 53], 7, peaks=4)
    return maximise(searched, box[0], box[1], grid, first=first, floor=floor)


def _budgets_for_u(
    noise: _Odds, pinned: Pinned, kappa: Array | None, lam: Array | None
) -> tuple[Array, Array]:
    """The range of ε_2: thm:uepriv asks for 2 ε_2 ≤ ε, the sharp bounds for ε_2 ≤ ε."""
    epsilons = noise.epsilons
    largest = epsilons / 2 if noise.bounds == "paper" else epsilons
    if kappa is not None and lam is not None:
        largest = np.minimum(largest, epsilons - log_odds(kappa, lam) * (1 - 1e-12))
        if np.any(largest < 0):
            raise ParameterError(
                f"Expected odds of kappa and lambda up to e^epsilon, for the smallest of all "
                f"levels; they exceed it by a factor e^{-largest.min():.6g}. Raise lambda.",
                argument="parameters",
            )
    room = noise.room if kappa is not None and kappa[0] == 1 else 0.0
    epsilon_2 = pinned_number(pinned, "epsilon_2", 0.0, largest + room)
    return (np.zeros_like(epsilons), largest) if epsilon_2 is None else (epsilon_2, epsilon_2)


def logit_range(kappa: Array | None, n: int) -> tuple[Array, Array]:
    """The range of logits to search for each of n problems: one point where κ is pinned."""
    if kappa is None:
        return np.full(n, _LOWEST_LOGIT), np.full(n, _HIGHEST_LOGIT)
    return logit(kappa), logit(kappa)


def kappa_of(logits: Array) -> Array:
    """κ as a float; 1 - κ is then exact wherever κ ≥ 1/2."""
    return np.asarray(expit(logits), dtype=float)


def log_odds(kappa: Array, lam: Array) -> Array:
    """log κ(1-λ)/(λ(1-κ)), the ε that unary encoding costs by itself; 0 at κ = λ = 1."""
    is_corner = (kappa == 1) & (lam == 1)
    kappa, lam = np.where(is_corner, 0.5, kappa), np.where(is_corner, 0.5, lam)
    return np.asarray(logit(kappa) - logit(lam), dtype=float)


def smallest_lambda(kappa: Array, epsilon_1: Array) -> Array:
    """The smallest λ whose odds are at most e^{ε_1}, rounded to the safe side."""
    r = exp(-epsilon_1)  # λ = κ/(κ + (1-κ) e^{ε_1}), written so that nothing overflows
    lam = kappa * r / (kappa * r + (1 - kappa))
    return np.asarray(np.minimum(np.nextafter(lam, 1.0), kappa))


def pinned_kappa(pinned: Pinned, n: int) -> Array | None:
    """A pinned κ for each of n problems, or None."""
    if "kappa" not in pinned and "lambda" in pinned:
        raise ParameterError(
            "Expected kappa together with lambda, got lambda alone.", argument="parameters"
        )
    return pinned_number(pinned, "kappa", np.full(n, 1e-9), 1.0)


def pinned_lambda(pinned: Pinned, kappa: Array | None) -> Array | None:
    """A pinned λ ≤ κ for each problem, or None."""
    return None if kappa is None else pinned_number(pinned, "lambda", 1e-12, kappa)


def information(counts: Integers, kappa: Array, lam: Array) -> Array:
    """I(UE(S);S) at each pair (κ, λ) for S with these counts, as exactly as it can be had."""
    law, p = SubsetLaw(counts), (counts / counts.sum())[:, None]
    is_corner = kappa == 1
    kappa, lam = np.where(is_corner, 0.5, kappa), np.where(is_corner, 0.5, lam)
    if law.is_exact:
        values = law.information(logit(kappa), logit(lam))
    else:
        pairs = zip(kappa, lam, strict=True)
        values = np.array([bits(p.shape, *pair).mutual_information(p) for pair in pairs])
    return np.where(is_corner, 0.0, values)


def bits(shape: tuple[int, ...], kappa: float, lam: float) -> UnaryChannel:
    """One bit for each cell: 1 with probability κ for the own cell and λ for the others."""
    own = np.tile([1 - kappa, kappa], (*shape, 1))
    return UnaryChannel(own, np.tile([1 - lam, lam], (math.prod(shape), 1)))
