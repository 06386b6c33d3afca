"""UE: unary encoding of the whole record, ε-LDP whatever F is.

A bit for each cell: 1 with probability κ for the own cell and λ for the others. The popular choices
of (κ, λ) are "symmetric", "optimised" and "transposed"; without one, the best κ is searched.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import expit

from rldp._types import Array, Indices
from rldp.channel import UnaryChannel
from rldp.designing.families import unary_encoding
from rldp.designing.families.base import Parameters, Problem
from rldp.designing.families.subset_law import SubsetLaw
from rldp.designing.solvers.grid_search import Grid, maximise
from rldp.errors import ParameterError
from rldp.uncertainty import UncertaintySet

NAME = "ue"
PARAMETERS = ("variant", "kappa", "lambda")


def optimum(problem: Problem) -> Parameters:
    """The best κ with the smallest λ, or the pinned or popular choice."""
    pinned, epsilons = problem.pinned, problem.smallest_levels  # bits tell everyone the same
    law = SubsetLaw(problem.F.table.counts.ravel())

    def objective(i: Indices, logit: Array) -> Array:
        return law.information(logit, logit - epsilons[i])

    kappa = unary_encoding.pinned_kappa(pinned, epsilons.size)
    lam = unary_encoding.pinned_lambda(pinned, kappa)
    if "variant" in pinned:
        if kappa is not None:
            raise ParameterError("Expected a variant or kappa, got both.", argument="parameters")
        # below 1 also where it rounds to 1, at which no bit would tell anything
        kappa = np.minimum(popular_kappa(str(pinned["variant"]), epsilons), 1 - 2.0**-53)
    if kappa is None:
        low, high = (end[:, None] for end in unary_encoding.logit_range(None, epsilons.size))
        best = maximise(objective, low, high, Grid([65], 9, peaks=3, rtol=1e-6))
        kappa = unary_encoding.kappa_of(best.point[:, 0])
    if lam is None:
        lam = unary_encoding.smallest_lambda(kappa, epsilons)
    excess = unary_encoding.log_odds(kappa, lam) - epsilons
    if np.any(excess > 1e-9):
        raise ParameterError(
            f"Expected odds of kappa and lambda up to e^epsilon, for the smallest of all levels; "
            f"they exceed it by a factor e^{excess.max():.6g}. Raise lambda.",
            argument="parameters",
        )
    return {"kappa": kappa, "lambda": lam}


def utility(F: UncertaintySet, epsilons: Array, parameters: Parameters) -> Array:
    """I(X;Y) at P̂."""
    return unary_encoding.information(
        F.table.counts.ravel(), parameters["kappa"], parameters["lambda"]
    )


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


def channel(F: UncertaintySet, epsilon: float, parameters: Mapping[str, Any]) -> UnaryChannel:
    """One bit for each cell."""
    return unary_encoding.bits(F.table.p_su.shape, parameters["kappa"], parameters["lambda"])
