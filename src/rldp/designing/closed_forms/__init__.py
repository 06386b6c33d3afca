"""The closed-form protocols by name: the best parameters of each, and the channels they make.

base         the problem that a family solves, and what it must offer
noise_odds   how much noise on U a share of ε requires
response     GRR, SRR, IR, GRR-CR
unary        UE, UE-CR
subset_law   the information in random subsets, tabulated
calibrate    bounds="exact": closed forms that spend all of ε over F
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from rldp._types import Array
from rldp.designing.closed_forms import calibrate
from rldp.designing.closed_forms.base import (
    Family,
    ParameterProblem,
    Parameters,
    Pinned,
)
from rldp.designing.closed_forms.noise_odds import Bounds
from rldp.designing.closed_forms.response import GRR, GRRCR, IR, SRR
from rldp.designing.closed_forms.unary import UE, UECR
from rldp.designing.problem import Found
from rldp.designing.solvers.one_thread import on_one_thread
from rldp.designing.stack import UNLAYERED, Layers
from rldp.errors import ParameterError
from rldp.protocol.release_protocol import Parameter
from rldp.uncertainty import UncertaintySet

FAMILIES: dict[str, Family] = {
    family.name: family for family in (GRR(), UE(), SRR(), IR(), GRRCR(), UECR())
}
BOUNDS = ("sharp", "exact", "paper")

_CELLS_AT_ONCE = 2**14  # cells times ε values searched together: bounds the memory
_LAYERED_CELLS_AT_ONCE = 2**11  # where UE-CR searches how to share a further level


@on_one_thread
def optimum(
    name: str,
    F: UncertaintySet,
    epsilons: Array,
    bounds: str,
    pinned: Pinned,
    layers: Layers = UNLAYERED,
) -> Parameters:
    """The best parameters of one family at all ε, a bounded number of cells at a time."""
    if name not in FAMILIES:
        raise ParameterError(
            f"Expected a protocol among {', '.join(FAMILIES)}, got {name!r}.", argument="protocol"
        )
    if bounds not in BOUNDS:
        raise ParameterError(
            f"Expected bounds among {', '.join(BOUNDS)}, got {bounds!r}.", argument="bounds"
        )
    family = FAMILIES[name]
    for parameter in pinned:
        if parameter not in family.parameters:
            known = ", ".join(family.parameters) or "none"
            raise ParameterError(
                f"{name} has no parameter {parameter!r} to pin; it has: {known}.",
                argument="parameters",
            )
    if bounds == "exact":
        parts = [calibrate.calibrated(family, F, float(e), pinned, layers) for e in epsilons]
    else:
        most = _CELLS_AT_ONCE if layers == UNLAYERED else _LAYERED_CELLS_AT_ONCE
        problem = ParameterProblem(F, epsilons, cast(Bounds, bounds), pinned, layers=layers)
        step = max(1, most // (F.table.n_s * F.table.n_u))
        parts = [
            family.optimum(replace(problem, epsilons=epsilons[i : i + step]))
            for i in range(0, epsilons.size, step)
        ]
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


@on_one_thread
def closed_form(
    name: str,
    F: UncertaintySet,
    epsilon: float,
    bounds: str,
    pinned: Pinned,
    layers: Layers = UNLAYERED,
) -> Found:
    """The best channel of one family."""
    solution = optimum(name, F, np.array([epsilon]), bounds, pinned, layers)
    chosen = {key: plain(values[0]) for key, values in solution.items()}
    channel = FAMILIES[name].channel(F, epsilon, chosen)
    return Found(channel, name=name, parameters=chosen, options={"bounds": bounds})


def plain(value: Array) -> Parameter:
    """A parameter as plain numbers."""
    return float(value) if np.ndim(value) == 0 else tuple(float(x) for x in value)
