"""UE-CR: unary encoding of S, and with each reported s a noisy U, the true one or a made-up one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit

from rldp.channel import UnaryChannel
from rldp.errors import ParameterError
from rldp.optimise.search import Optimum, maximise
from rldp.protocols import unary
from rldp.protocols.budget import Bounds, conditional_odds
from rldp.protocols.family import (
    Parameters,
    Pinned,
    conditional_response,
    information_on_u,
    pinned_number,
)
from rldp.sums import InformationSpline, SubsetLaw
from rldp.uncertainty import UncertaintySet

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

NAME = "ue-cr"
PARAMETERS = ("epsilon_2", "kappa", "lambda")

_MANY = 6  # values of ε that are worth a table


def optimum(
    F: UncertaintySet, epsilons: Array, bounds: Bounds, pinned: Pinned, room: float = 0.0
) -> Parameters:
    """The best ε_2 and κ with the smallest λ, and the corner κ = λ = 1 that tells nothing of S."""
    law = SubsetLaw(F.table.counts.sum(axis=1))
    kappa = unary.pinned_kappa(pinned, epsilons.size)
    lam = unary.pinned_lambda(pinned, kappa)
    low, high = _budgets_for_u(epsilons, bounds, pinned, kappa, lam, room)

    def odds(i: Indices, epsilon_2: Array) -> Array:
        # T_s/T̂_s ≤ e^{ε_2} goes with odds e^{ε - ε_2} on S; T_s T̂_{s'}/(T̂_s T_{s'}) ≤ e^ε leaves
        # e^{ε - ε_2} for T̂_s/T_s
        return conditional_odds(F, epsilon_2, epsilons[i] - epsilon_2 + room, bounds)

    def about_u(i: Indices, epsilon_2: Array) -> Array:
        return information_on_u(F, odds(i, epsilon_2))

    def objective(i: Indices, epsilon_2: Array, logits: Array) -> Array:
        lower = logits - (epsilons[i] - epsilon_2) if lam is None else logit(lam)[i]
        return law.information(logits, lower) + unary.kappa_of(logits) * about_u(i, epsilon_2)

    def interpolated(i: Indices, epsilon_2: Array, logits: Array) -> Array:
        on_s = spline.information(logits, np.maximum(0.0, epsilons[i] - epsilon_2))
        return on_s + unary.kappa_of(logits) * about_u(i, epsilon_2)

    def on_the_grid(i: Indices, epsilon_2: Array, logits: Array) -> Array:
        values = spline.on_grid(logits[0].ravel(), (epsilons[i] - epsilon_2)[..., 0])
        return values + unary.kappa_of(logits) * about_u(i, epsilon_2)

    # only the corner, which compares no single S value with silence, may give its room to ε_2
    beyond = np.where(high > low, high + room, high)
    if bounds == "paper":  # the smaller of both directions counts, and ε_2 is
        corner = Optimum(beyond[:, None], about_u(np.arange(epsilons.size), beyond))
    else:
        corner = maximise(about_u, low[:, None], beyond[:, None], points=[129], zoom=17)
    epsilon_2, is_corner = corner.point[:, 0], np.full(epsilons.shape, True)
    if kappa is None or kappa[0] < 1:
        ends = unary.logit_range(kappa, epsilons.size)
        floor = corner.value if kappa is None else None
        searched, first = objective, None
        if kappa is None and _MANY <= epsilons.size >= epsilons.max():
            spline = InformationSpline(law, ends[0].min(), ends[1].max(), float(epsilons.max()))
            searched, first = interpolated, on_the_grid
        box = (np.stack([x, end], axis=1) for x, end in zip((low, high), ends, strict=True))
        inner = maximise(searched, *box, points=[33, 53], zoom=7, peaks=4, first=first, floor=floor)
        is_corner = (corner.value >= inner.value) & (kappa is None)
        epsilon_2 = np.where(is_corner, epsilon_2, inner.point[:, 0])
        kappa = unary.kappa_of(inner.point[:, 1]) if kappa is None else kappa
        kappa = np.where(is_corner, 1.0, kappa)
    if lam is None:
        lam = np.where(is_corner, 1.0, unary.smallest_lambda(kappa, epsilons - epsilon_2))
    return {
        "epsilon_1": unary.log_odds(kappa, lam),
        "epsilon_2": epsilon_2,
        "kappa": kappa,
        "lambda": lam,
        "delta_s": np.log1p(odds(np.arange(epsilons.size), epsilon_2)),
    }


def utility(F: UncertaintySet, epsilons: Array, parameters: Parameters) -> Array:
    """I(X;Y) at P̂ with randomised response inside (thm:ueuti)."""
    kappa, lam = parameters["kappa"], parameters["lambda"]
    on_s = unary.information(F.table.counts.sum(axis=1), kappa, lam)
    return on_s + kappa * information_on_u(F, np.expm1(parameters["delta_s"]))


def _budgets_for_u(
    epsilons: Array,
    bounds: Bounds,
    pinned: Pinned,
    kappa: Array | None,
    lam: Array | None,
    room: float,
) -> tuple[Array, Array]:
    """The range of ε_2: thm:uepriv asks for 2 ε_2 ≤ ε, the sharp bounds for ε_2 ≤ ε."""
    largest = epsilons / 2 if bounds == "paper" else epsilons
    if kappa is not None and lam is not None:
        largest = np.minimum(largest, epsilons - unary.log_odds(kappa, lam) * (1 - 1e-12))
        if np.any(largest < 0):
            raise ParameterError(
                f"Expected odds of kappa and lambda up to e^epsilon; they exceed it by "
                f"a factor e^{-largest.min():.6g}. Raise lambda."
            )
    is_corner = kappa is not None and kappa[0] == 1
    epsilon_2 = pinned_number(pinned, "epsilon_2", 0.0, largest + (room if is_corner else 0.0))
    return (np.zeros_like(epsilons), largest) if epsilon_2 is None else (epsilon_2, epsilon_2)


def channel(F: UncertaintySet, epsilon: float, parameters: Mapping[str, Any]) -> UnaryChannel:
    """Block s is silent, or holds R^s(u) for those with s and R^s of a draw from P̂_{U|s} else."""
    kappa, lam = parameters["kappa"], parameters["lambda"]
    R, made_up = conditional_response(F, parameters["delta_s"])
    own = np.concatenate([np.full((*R.shape[:2], 1), 1 - kappa), kappa * R], axis=2)
    other = np.concatenate([np.full((made_up.shape[0], 1), 1 - lam), lam * made_up], axis=1)
    return UnaryChannel(own, other)
