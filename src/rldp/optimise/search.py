"""Global maximisation in one or two variables, for many problems at once.

The objectives have corners and several local maxima, so no local search is started anywhere: a
grid with both ends finds every peak that it can tell apart, and the highest are zoomed into.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Objective = Callable[..., Array]

_MARGIN = 1.25  # steps kept on each side of the best point: corners need not lie in the next cell


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
) -> Optimum:
    """Maximise the objective over the box from `low` to `high`, both (problems, variables).

    `objective(x_1, ..., x_d)` gets one array for each variable, of shape
    (problems, boxes, 1, .., points_i, .., 1), and returns the values on their product grid.
    `points` are the numbers of points of the first grid, `zoom` those of each later one along
    every axis; the `peaks` highest local maxima are followed until boxes are `rtol` of the first.
    """
    span = high - low
    x = _grid(low[:, None], high[:, None], points)
    values = _values(objective, x)
    centre, best = _peaks(x, values, peaks)
    half = np.broadcast_to((_MARGIN * span / (np.array(points) - 1))[:, None], centre.shape)
    width = _MARGIN * 2 / (min(points) - 1)
    while width > rtol:
        inside = np.maximum(centre - half, low[:, None]), np.minimum(centre + half, high[:, None])
        x = _grid(*inside, [zoom] * low.shape[1])
        values = _values(objective, x)
        point, value = _best_of_each_box(x, values)
        rises = value > best
        centre, best = np.where(rises[..., None], point, centre), np.maximum(value, best)
        half = half * (_MARGIN * 2 / (zoom - 1))
        width *= _MARGIN * 2 / (zoom - 1)
    winner = best.argmax(axis=1)
    problem = np.arange(low.shape[0])
    return Optimum(centre[problem, winner], best[problem, winner])


def _grid(low: Array, high: Array, points: Sequence[int]) -> list[Array]:
    """One open-mesh array per variable; low and high have shape (problems, boxes, variables)."""
    x = []
    for i, n in enumerate(points):
        share = np.linspace(0.0, 1.0, n)
        axis = low[..., i, None] * (1 - share) + high[..., i, None] * share
        x.append(axis.reshape(*axis.shape[:2], *(n if j == i else 1 for j in range(len(points)))))
    return x


def _values(objective: Objective, x: list[Array]) -> Array:
    values = np.asarray(objective(*x), dtype=float)
    return np.broadcast_to(values, np.broadcast_shapes(*(a.shape for a in x)))


def _peaks(x: list[Array], values: Array, most: int) -> tuple[Array, Array]:
    """The highest local maxima of the first grid: (problems, peaks, variables) and values."""
    n, _, *shape = values.shape
    values = values[:, 0]
    is_peak = np.ones(values.shape, dtype=bool)
    for axis in range(1, values.ndim):
        rise = np.diff(values, axis=axis)
        end = np.zeros_like(values.take([0], axis=axis))
        is_peak &= np.concatenate([end, rise], axis=axis) >= 0
        is_peak &= np.concatenate([rise, end], axis=axis) <= 0
    score = np.where(is_peak, values, -np.inf).reshape(n, -1)
    most = min(most, int(np.isfinite(score).sum(axis=1).max()))  # no boxes where no peak is
    chosen = np.argsort(-score, axis=1, kind="stable")[:, :most]
    return _points(x, chosen, shape, np.zeros_like(chosen)), np.take_along_axis(score, chosen, 1)


def _best_of_each_box(x: list[Array], values: Array) -> tuple[Array, Array]:
    """The highest point of each box: (problems, boxes, variables) and values."""
    n, boxes, *shape = values.shape
    flat = values.reshape(n, boxes, -1)
    chosen = flat.argmax(axis=2)
    box = np.broadcast_to(np.arange(boxes), chosen.shape)
    return _points(x, chosen, shape, box), flat.max(axis=2)


def _points(
    x: list[Array], chosen: NDArray[np.intp], shape: Sequence[int], box: NDArray[np.intp]
) -> Array:
    index = np.unravel_index(chosen, shape)
    problem = np.arange(chosen.shape[0])[:, None]
    coordinates = []
    for i, axis in enumerate(x):
        place = [index[j] if j == i else np.zeros_like(chosen) for j in range(len(shape))]
        coordinates.append(axis[(problem, box, *place)])
    return np.stack(coordinates, axis=-1)
