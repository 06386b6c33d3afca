"""Closed forms with the parameters that make the error of a goal smallest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from rldp.channel import Channel
from rldp.designing.closed_forms import closed_form
from rldp.designing.problem import Found, Problem
from rldp.designing.solvers.one_thread import on_one_thread
from rldp.designing.stack import UNLAYERED, Layers
from rldp.errors import ParameterError
from rldp.estimation.goal_errors import MOST_LISTED

_FREE: dict[str, tuple[str, ...]] = {  # parameters that are searched for
    "ir": ("epsilon_2",),
    "grr-cr": ("epsilon_2",),
    "ue-cr": ("epsilon_2", "kappa"),
    "ue": ("kappa",),
}
_POINTS = {1: 13, 2: 5}  # of a grid, by the number of parameters
_ZOOMS = 3  # into the best of a grid of parameters


@on_one_thread
def closed_form_for_goal(
    name: str,
    problem: Problem,
    epsilon: float,
    layers: Layers = UNLAYERED,
    *,
    is_allowed: Callable[[Channel], bool] = lambda _: True,
) -> Found:
    """The channel of a family with the smallest error at levels, by a grid that zooms in.

    Where no parameters make the goal estimable, those for information are kept; they must be
    allowed. Where none keep the limit on the influence, those with the least influence are.
    """
    pinned = problem.pinned

    def made(chosen: Mapping[str, float | str]) -> tuple[tuple[float, float], Found]:
        found = closed_form(name, problem.F, epsilon, "sharp", {**pinned, **chosen}, layers)
        return problem.cost(found.channel), found

    best, found = made({})
    assert is_allowed(found.channel)
    free = [parameter for parameter in _FREE.get(name, ()) if parameter not in pinned]
    if free and found.channel.n_outputs <= MOST_LISTED:
        low = np.zeros(len(free))
        high = np.array([epsilon if parameter == "epsilon_2" else 1.0 for parameter in free])
        for _ in range(_ZOOMS):
            axes = [np.linspace(a, b, _POINTS[len(free)]) for a, b in zip(low, high, strict=True)]
            points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(free))
            centre = None
            for point in points:
                try:
                    cost, one = made(dict(zip(free, point.tolist(), strict=True)))
                except ParameterError:  # a point outside of what the family allows
                    continue
                if cost < best and is_allowed(one.channel):  # the audit takes the longest
                    best, found, centre = cost, one, point
            if centre is None:
                break
            step = np.array([axis[1] - axis[0] for axis in axes])
            low, high = np.maximum(low, centre - step), np.minimum(high, centre + step)
    elif name == "ue" and not pinned:  # too many outputs for a grid: best for rare cells
        cost, one = made({"variant": "optimised"})
        if cost < best and is_allowed(one.channel):
            found = one
    return replace(found, goal=problem.goal)
