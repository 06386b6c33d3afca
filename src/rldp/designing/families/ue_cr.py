"""UE-CR: unary encoding of S, and with each reported s a noisy U, the true one or a made-up one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logit

from rldp._types import Array, Indices
from rldp.arithmetic import expm1, log1p
from rldp.channel import UnaryChannel
from rldp.designing.families import unary_encoding
from rldp.designing.families.base import (
    Parameters,
    Pinned,
    Problem,
    conditional_response,
    information_on_u,
    pinned_number,
)
from rldp.designing.families.noise_odds import Bounds, conditional_odds, conditional_odds_of_all
from rldp.designing.families.subset_law import InformationSpline, SubsetLaw
from rldp.designing.solvers.grid_search import Grid, Optimum, maximise
from rldp.errors import ParameterError
from rldp.uncertainty import UncertaintySet

NAME = "ue-cr"
PARAMETERS = ("epsilon_2", "kappa", "lambda")

_MANY = 6  # values of ε that are worth a table
_SPLITS, _ROUNDS = 17, 4  # of c between both directions: points of a grid, and how often it zooms


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


def optimum(problem: Problem) -> Parameters:
    """The best ε_2 and κ with the smallest λ, and the corner κ = λ = 1 that tells nothing of S.

    Reports compare any cell of one s with any of another, so that someone who knows U can see as
    much as all distributions together.
    """
    epsilons, pinned = problem.smallest_levels, problem.pinned
    c = problem.layers.all_or_given_u
    noise = _Odds(problem.F, epsilons, problem.bounds, problem.room, c)
    kappa = unary_encoding.pinned_kappa(pinned, epsilons.size)
    lam = unary_encoding.pinned_lambda(pinned, kappa)
    budgets = _budgets_for_u(noise, pinned, kappa, lam)
    if kappa is None:
        corner = _corner(noise, *budgets)
        inner = _inner(noise, budgets, None, None, corner.value)
        is_corner = corner.value >= inner.value
        epsilon_2 = np.where(is_corner, corner.point[:, 0], inner.point[:, 0])
        kappa = np.where(is_corner, 1.0, unary_encoding.kappa_of(inner.point[:, 1]))
    else:
        is_corner = kappa == 1
        best = _corner(noise, *budgets) if is_corner[0] else _inner(noise, budgets, kappa, lam)
        epsilon_2 = best.point[:, 0]
    if lam is None:
        lam = np.where(is_corner, 1.0, unary_encoding.smallest_lambda(kappa, epsilons - epsilon_2))
    epsilon_1 = unary_encoding.log_odds(kappa, lam)
    return {
        "epsilon_1": epsilon_1,
        "epsilon_2": epsilon_2,
        "kappa": kappa,
        "lambda": lam,
        "delta_s": log1p(noise.odds(np.arange(epsilons.size), epsilon_2, epsilon_1)),
    }


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
    ends = unary_encoding.logit_range(kappa, epsilons.size)

    def objective(i: Indices, epsilon_2: Array, logits: Array) -> Array:
        lower = logits - (epsilons[i] - epsilon_2) if lam is None else logit(lam)[i]
        about_u = noise.about_u(i, epsilon_2)
        return law.information(logits, lower) + unary_encoding.kappa_of(logits) * about_u

    def interpolated(i: Indices, epsilon_2: Array, logits: Array) -> Array:
        on_s = spline.information(logits, np.maximum(0.0, epsilons[i] - epsilon_2))
        return on_s + unary_encoding.kappa_of(logits) * noise.about_u(i, epsilon_2)

    def on_the_grid(i: Indices, epsilon_2: Array, logits: Array) -> Array:
        values = spline.on_grid(logits[0].ravel(), (epsilons[i] - epsilon_2)[..., 0])
        return values + unary_encoding.kappa_of(logits) * noise.about_u(i, epsilon_2)

    searched, first = objective, None
    if kappa is None and _MANY <= epsilons.size >= epsilons.max():
        spline = InformationSpline(law, ends[0].min(), ends[1].max(), float(epsilons.max()))
        searched, first = interpolated, on_the_grid
    box = [np.stack([x, end], axis=1) for x, end in zip(budgets, ends, strict=True)]
    grid = Grid([33, 53], 7, peaks=4)
    return maximise(searched, box[0], box[1], grid, first=first, floor=floor)


def utility(F: UncertaintySet, epsilons: Array, parameters: Parameters) -> Array:
    """I(X;Y) at P̂ with randomised response inside (thm:ueuti)."""
    kappa, lam = parameters["kappa"], parameters["lambda"]
    on_s = unary_encoding.information(F.table.counts.sum(axis=1), kappa, lam)
    return on_s + kappa * information_on_u(F, expm1(parameters["delta_s"]))


def _budgets_for_u(
    noise: _Odds, pinned: Pinned, kappa: Array | None, lam: Array | None
) -> tuple[Array, Array]:
    """The range of ε_2: thm:uepriv asks for 2 ε_2 ≤ ε, the sharp bounds for ε_2 ≤ ε."""
    epsilons = noise.epsilons
    largest = epsilons / 2 if noise.bounds == "paper" else epsilons
    if kappa is not None and lam is not None:
        largest = np.minimum(largest, epsilons - unary_encoding.log_odds(kappa, lam) * (1 - 1e-12))
        if np.any(largest < 0):
            raise ParameterError(
                f"Expected odds of kappa and lambda up to e^epsilon, for the smallest of all "
                f"levels; they exceed it by a factor e^{-largest.min():.6g}. Raise lambda.",
                argument="parameters",
            )
    room = noise.room if kappa is not None and kappa[0] == 1 else 0.0
    epsilon_2 = pinned_number(pinned, "epsilon_2", 0.0, largest + room)
    return (np.zeros_like(epsilons), largest) if epsilon_2 is None else (epsilon_2, epsilon_2)


def channel(F: UncertaintySet, epsilon: float, parameters: Mapping[str, Any]) -> UnaryChannel:
    """Block s is silent, or holds R^s(u) for those with s and R^s of a draw from P̂_{U|s} else."""
    kappa, lam = parameters["kappa"], parameters["lambda"]
    R, made_up = conditional_response(F, parameters["delta_s"])
    own = np.concatenate([np.full((*R.shape[:2], 1), 1 - kappa), kappa * R], axis=2)
    other = np.concatenate([np.full((made_up.shape[0], 1), 1 - lam), lam * made_up], axis=1)
    return UnaryChannel(own, other)
