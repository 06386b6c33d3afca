"""Global maximisation in one or two variables, for many problems at once.

The objectives have corners and several local maxima, so no local search is started anywhere: a
grid with both ends finds every peak that it can tell apart, and the highest are zoomed into, each
until it is found or hopeless.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Objective = Callable[..., Array]

_MARGIN = 1.25  # steps kept on each side of the best point: corners need not lie in the next cell
_HOPE = 3.0  # a peak may rise by this many times what its surroundings differ from it


class Optimum(NamedTuple):
    """The best point of each problem, shape (problems, variables), and its value (problems,)."""

    point: Array
    value: Array


def maximise(
    objective: Objective,
    low: Array,
    high: Array,
    *,
    points: Sequence[int],
    zoom: int,
    peaks: int = 5,
    rtol: float = 1e-8,
    first: Objective | None = None,
    floor: Array | None = None,
) -> Optimum:
    """Maximise the objective over the box from `low` to `high`, both (problems, variables).

    `objective(problem, x_1, ..., x_d)` gets the numbers of the problems, shape (boxes, 1, ..., 1),
    and for each variable an array of shape (boxes, 1, .., points_i, .., 1), and returns the values
    on their product grid. The first grid has one box for each problem; the `peaks` highest local
    maxima are zoomed into until boxes are `rtol` of the first, or hopeless.

    Args:
        objective: what to maximise.
        low: one end of each box.
        high: the other end.
        points: of the first grid, along every axis.
        zoom: points of each later grid along every axis.
        peaks: local maxima to follow for each problem.
        rtol: width of the last boxes.
        first: stands in for the objective on the first grid, where it is cheaper.
        floor: a value for each problem below which nothing is of interest.
    """
    everyone = np.arange(low.shape[0])
    x = _grid(low, high, points)
    values = _values(first or objective, everyone, x)
    problem, centre, value, hope = _peaks(x, values, peaks)
    best, point = np.full(low.shape[0], -np.inf), np.empty_like(low)
    if first is not None:
        value = np.full(value.shape, -np.inf)  # nothing that was measured
    floor = best.copy() if floor is None else floor
    half = (_MARGIN * (high - low) / (np.array(points) - 1))[problem]
    width, shrink = _MARGIN * 2 / (min(points) - 1), _MARGIN * 2 / (zoom - 1)
    while True:
        order = np.argsort(value, kind="stable")  # the best of a problem's boxes writes last
        best[problem[order]], point[problem[order]] = value[order], centre[order]
        alive = hope >= np.maximum(best, floor)[problem]
        if width <= rtol or not alive.any():
            return Optimum(point, best)
        problem, centre, value, half = problem[alive], centre[alive], value[alive], half[alive]
        inside = np.maximum(centre - half, low[problem]), np.minimum(centre + half, high[problem])
        x = _grid(*inside, [zoom] * low.shape[1])
        values = _values(objective, problem, x)
        found, highest, lowest = _best_of_each_box(x, values)
        hope = highest + _HOPE * (highest - lowest)
        rises = highest > value
        centre, value = np.where(rises[:, None], found, centre), np.maximum(highest, value)
        half, width = half * shrink, width * shrink


def _grid(low: Array, high: Array, points: Sequence[int]) -> list[Array]:
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
    """The highest local maxima of the first grid: problems, points, values, and hopes."""
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
    hope = value + _HOPE * drop.reshape(n, -1)[problem, chosen]
    return problem, _points(x, problem, chosen, shape), value, hope


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
