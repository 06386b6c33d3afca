"""Global maximisation in one or two variables, for many problems at once.

The objectives have corners and several local maxima, so a local search is not enough. A grid that
includes both ends finds every peak that it resolves. The search zooms into the highest peaks, each
until it is located or cannot exceed the best one any more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from rldp._types import Array, Indices

Objective = Callable[..., Array]

_MARGIN = 1.25  # steps kept on each side of the best point: corners need not lie in the next cell
_RISE = 3.0  # a peak may rise by this many times the differences to its neighbours


class Optimum(NamedTuple):
    """The best point of each problem, shape (problems, variables), and its value (problems,)."""

    point: Array
    value: Array


class Grid(NamedTuple):
    """How finely to search.

    Args:
        points: of the first grid, along every axis.
        zoom: points of each later grid, along every axis.
        peaks: local maxima to follow for each problem.
        rtol: width of the last boxes, relative to the first.
    """

    points: Sequence[int]
    zoom: int
    peaks: int = 5
    rtol: float = 1e-8


def maximise(
    objective: Objective,
    low: Array,
    high: Array,
    grid: Grid,
    *,
    first: Objective | None = None,
    floor: Array | None = None,
) -> Optimum:
    """Maximise the objective over the box from `low` to `high`, both (problems, variables).

    `objective(problem, x_1, ..., x_d)` gets the numbers of the problems, shape (boxes, 1, ..., 1),
    and for each variable an array of shape (boxes, 1, .., points_i, .., 1), and returns the values
    on their product grid. The first grid has one box for each problem. The search zooms into its
    highest local maxima until boxes are small enough, or cannot contain the maximum.

    Args:
        objective: what to maximise.
        low: one end of each box.
        high: the other end.
        grid: how finely.
        first: stands in for the objective on the first grid, where it is cheaper.
        floor: a value for each problem below which nothing is of interest.
    """
    points, zoom, peaks, rtol = grid
    x = _mesh(low, high, points)
    values = _values(first or objective, np.arange(low.shape[0]), x)
    problem, centre, value, potential = _peaks(x, values, peaks)
    best, point = np.full(low.shape[0], -np.inf), np.empty_like(low)
    if first is not None:
        value = np.full(value.shape, -np.inf)  # the objective itself was not evaluated yet
    floor = best.copy() if floor is None else floor
    half = (_MARGIN * (high - low) / (np.array(points) - 1))[problem]
    width, shrink = _MARGIN * 2 / (min(points) - 1), _MARGIN * 2 / (zoom - 1)
    while True:
        order = np.argsort(value, kind="stable")  # the best of a problem's boxes writes last
        best[problem[order]], point[problem[order]] = value[order], centre[order]
        is_open = potential >= np.maximum(best, floor)[problem]
        if width <= rtol or not is_open.any():
            return Optimum(point, best)
        problem, centre = problem[is_open], centre[is_open]
        value, half = value[is_open], half[is_open]
        inside = np.maximum(centre - half, low[problem]), np.minimum(centre + half, high[problem])
        x = _mesh(*inside, [zoom] * low.shape[1])
        values = _values(objective, problem, x)
        found, highest, lowest = _best_of_each_box(x, values)
        potential = highest + _RISE * (highest - lowest)
        rises = highest > value
        centre, value = np.where(rises[:, None], found, centre), np.maximum(highest, value)
        half, width = half * shrink, width * shrink


def _mesh(low: Array, high: Array, points: Sequence[int]) -> list[Array]:
    """One open-mesh array per variable; low and high have shape (boxes, variables)."""
    x = []
    for i, n in enumerate(points):
        share = np.linspace(0.0, 1.0, n)
        axis = low[:, i, None] * (1 - share) + high[:, i, None] * share
        x.append(axis.reshape(-1, *(n if j == i else 1 for j in range(len(points)))))
    return x


def _values(objective: Objective, problem: Indices, x: list[Array]) -> Array:
    values = np.asarray(objective(problem.reshape(-1, *[1] * len(x)), *x), dtype=float)
    return np.broadcast_to(values, np.broadcast_shapes(*(a.shape for a in x)))


def _peaks(x: list[Array], values: Array, most: int) -> tuple[Indices, Array, Array, Array]:
    """The highest local maxima of the first grid: problems, points, values, and potentials."""
    n, *shape = values.shape
    is_peak, drop = np.ones(values.shape, dtype=bool), np.zeros(values.shape)
    for axis in range(1, values.ndim):
        rise = np.diff(values, axis=axis)
        end = np.zeros_like(values.take([0], axis=axis))
        before, after = (np.concatenate(pair, axis=axis) for pair in ((end, rise), (rise, end)))
        is_peak &= (before >= 0) & (after <= 0)
        drop += np.maximum(abs(before), abs(after))
    flat = values.reshape(n, -1)
    problem, chosen = np.nonzero(is_peak.reshape(n, -1) & np.isfinite(flat))
    order = np.lexsort((-flat[problem, chosen], problem))
    problem, chosen = problem[order], chosen[order]
    rank = np.arange(problem.size) - np.searchsorted(problem, problem)
    problem, chosen = problem[rank < most], chosen[rank < most]
    value = flat[problem, chosen]
    potential = value + _RISE * drop.reshape(n, -1)[problem, chosen]
    return problem, _points(x, problem, chosen, shape), value, potential


def _best_of_each_box(x: list[Array], values: Array) -> tuple[Array, Array, Array]:
    """The highest point of each box, (boxes, variables), its value, and the lowest value."""
    boxes, *shape = values.shape
    flat = values.reshape(boxes, -1)
    chosen = flat.argmax(axis=1)
    return _points(x, np.arange(boxes), chosen, shape), flat.max(axis=1), flat.min(axis=1)


def _points(x: list[Array], box: Indices, chosen: Indices, shape: Sequence[int]) -> Array:
    index = np.unravel_index(chosen, shape)
    coordinates = []
    for i, axis in enumerate(x):
        place = [index[j] if j == i else np.zeros_like(chosen) for j in range(len(shape))]
        coordinates.append(axis[(box, *place)])
    return np.stack(coordinates, axis=-1)
