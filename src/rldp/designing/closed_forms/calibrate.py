"""bounds="exact": all of ε over F itself, with the exact audit as the judge.

The sharp conditions are tight where conditionals of different s vary independently. Over F they
share one budget, so IR and UE-CR keep slack: their conditions on two S values are exceeded by as
much `room` as the audit allows. GRR-CR compares one conditional at a time and has no slack.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.optimize import brentq

from rldp._types import Array
from rldp.auditing.audit import worst_log_ratio
from rldp.designing.closed_forms.base import (
    Family,
    ParameterProblem,
    Parameters,
    Pinned,
)
from rldp.designing.stack import UNLAYERED, Layers
from rldp.uncertainty import UncertaintySet

_COARSE = 8  # halvings while the other parameters are searched anew each time
_MOST_ROOM = 200.0  # nats: e to this power is as good as ∞
_SPENT = 1e-9  # an audit this close to ε has spent it


def calibrated(
    family: Family,
    F: UncertaintySet,
    epsilon: float,
    pinned: Pinned,
    layers: Layers = UNLAYERED,
) -> Parameters:
    """The parameters of one ε that spend it over F, never less useful than the sharp ones."""
    epsilons = np.array([epsilon])

    def parameters(room: float, pins: Pinned) -> Parameters:
        return family.optimum(ParameterProblem(F, epsilons, "sharp", pins, room, layers))

    def excess(chosen: Parameters) -> float:
        one = {name: values[0] for name, values in chosen.items()}
        return worst_log_ratio(family.channel(F, epsilon, one), F) - epsilon

    def utility(chosen: Parameters) -> float:
        return float(family.utility(F, epsilons, chosen)[0])

    sharp = best = parameters(0.0, pinned)
    left = -excess(sharp)
    if left <= _SPENT:
        return sharp
    if layers != UNLAYERED:
        most = parameters(_MOST_ROOM, pinned)
        if utility(most) <= utility(sharp):  # the other levels bind, and not ε over F
            return sharp
    low, high = 0.0, 2 * left
    for _ in range(_COARSE):
        middle = (low + high) / 2
        chosen = parameters(middle, pinned)
        if excess(chosen) <= 0:
            low, best = middle, chosen
        else:
            high = middle
    # the last bit at fixed splits, where the audit is continuous in the room
    splits, share = _splits(family, best), _share(best, epsilon + low)

    def at_fixed_splits(room: float) -> Parameters:
        pins = dict(pinned) | splits
        if share is not None and "epsilon_2" not in pinned:
            pins["epsilon_2"] = share * (epsilon + room)
        return parameters(room, pins)

    top = max(high, 2 * left)
    while excess(at_fixed_splits(top)) < 0:
        if top > min(
            64 * (epsilon + left), _MOST_ROOM
        ):  # U goes as it is: nothing more to spend on
            return max(sharp, best, at_fixed_splits(top), key=utility)
        low, top = top, 2 * top
    if excess(at_fixed_splits(low)) >= 0:  # spent already, to the last digit
        return max(sharp, best, key=utility)
    room = brentq(lambda x: excess(at_fixed_splits(x)), low, top, xtol=1e-12, rtol=1e-12)
    return max(sharp, at_fixed_splits(room), key=utility)


def _share(chosen: Mapping[str, Array], total: float) -> float | None:
    """What part of both directions' budget the first has, where no single S value binds it."""
    is_free = "kappa" in chosen and chosen["kappa"][0] == 1
    return float(chosen["epsilon_2"][0]) / total if is_free else None


def _splits(family: Family, chosen: Mapping[str, Array]) -> dict[str, float | str]:
    """The chosen parameters that can be pinned; λ follows from the others."""
    names = [name for name in family.parameters if name in chosen and name != "lambda"]
    return {name: float(chosen[name][0]) for name in names}
