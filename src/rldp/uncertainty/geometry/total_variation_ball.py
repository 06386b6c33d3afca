"""Means over balls of total variation, one or two that share a budget, by moving mass.

Let a_u = p r_u be the masses of one s, of sum p, and let δ be a budget of mass. A conditional with
mass m keeps y ≤ min(p, m) of these masses where they are, the best places first, and has the other
m - y at the best place of all. With L(y) the least Σ (max T - T_u) b_u over 0 ≤ b ≤ a, Σ b = y,
which is convex, its mean of T is max T - L(y)/m. One s alone has m = p and y = p - δ. Two values
have m_1 + m_2 = p_1 + p_2 =: w and y_1 + y_2 = w - δ, and L_1(y_1)/m_1 + L_2(y_2)/m_2 is smallest
at a corner of L_1 or L_2: there are a few to try, each with its best m in closed form.
All functions are vectorised over rows: T and a have shape (rows, n_u).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rldp._types import Array, Indices
from rldp.arithmetic import log

_ROUNDS = 60  # of better ratios at most; a handful is usual
_ULP = float(np.finfo(float).eps)


class Corners(NamedTuple):
    """L of each row: its corners y from 0 to p, shape (rows, n_u + 1), its values and slopes."""

    y: Array
    L: Array
    slope: Array
    order: Indices

    def at(self, y: Array) -> Array:
        """L at points of shape (rows, n)."""
        n = self.y.shape[1]
        order = np.argsort(np.concatenate([self.y, y], axis=1), axis=1, kind="stable")
        place = np.empty_like(order)
        np.put_along_axis(place, order, np.cumsum(order < n, axis=1), 1)
        i = np.clip(place[:, n:] - 1, 0, n - 2)  # the last corner at or before each point
        start, value, slope = (
            np.take_along_axis(each, i, 1) for each in (self.y, self.L, self.slope)
        )
        return np.asarray(value + slope * np.maximum(y - start, 0.0))


def corners(T: Array, a: Array) -> Corners:
    """L of each row, for the largest mean."""
    gap = T.max(axis=1, keepdims=True) - T
    order = np.argsort(gap, axis=1, kind="stable")
    gap, a = np.take_along_axis(gap, order, 1), np.take_along_axis(a, order, 1)
    zero = np.zeros((len(T), 1))
    y, L = (np.concatenate([zero, np.cumsum(x, axis=1)], axis=1) for x in (a, a * gap))
    return Corners(y, L, gap, order)


def largest_mean(T: Array, a: Array, budget: float) -> Array:
    """max R·T over ‖R - r‖₁ ≤ 2 · budget/p, row by row; everything where a has no mass."""
    p = a.sum(axis=1)
    fall = corners(T, a).at(np.maximum(p - budget, 0.0)[:, None])[:, 0]
    return np.asarray(T.max(axis=1) - np.where(p > 0, fall / np.where(p > 0, p, 1.0), 0.0))


class Pair(NamedTuple):
    """The worst way for two conditionals: masses that stay, masses in all, and both means."""

    y_1: Array
    m_1: Array
    y_2: Array
    m_2: Array
    top: Array
    bottom: Array

    @property
    def log_ratio(self) -> Array:
        """The logarithm of the ratio of the two means."""
        return np.asarray(log(self.top) - log(self.bottom))


def worst_pair(
    T_1: Array, a_1: Array, T_2: Array, a_2: Array, budget: float, ratio: Array | float
) -> Pair:
    """The pair in F with the largest R_1·T_1 - ratio · R_2·T_2, row by row."""
    L_1, L_2 = corners(T_1, a_1), corners(-T_2, a_2)
    p_1, p_2 = L_1.y[:, -1:], L_2.y[:, -1:]
    w = p_1 + p_2
    kept = np.maximum(w - budget, 0.0)
    y_1 = np.concatenate([L_1.y, kept - L_2.y], axis=1)
    y_1 = np.clip(y_1, np.maximum(kept - p_2, 0.0), np.minimum(p_1, kept))
    y_2 = np.clip(kept - y_1, 0.0, p_2)
    fall_1, fall_2 = L_1.at(y_1), L_2.at(y_2)
    # Σ fall/m over m_1 + m_2 = w is smallest where the m are as the roots, or at an end
    root_1, root_2 = np.sqrt(fall_1), np.sqrt(np.reshape(ratio, (-1, 1)) * fall_2)
    both = root_1 + root_2
    m_1 = w * np.where(both > 0, root_1 / np.where(both > 0, both, 1.0), 0.5)
    m_1 = np.clip(m_1, y_1, np.maximum(w - y_2, y_1))
    m_2 = np.maximum(w - m_1, y_2)
    top = T_1.max(axis=1, keepdims=True) - _share(fall_1, m_1)
    bottom = T_2.min(axis=1, keepdims=True) + _share(fall_2, m_2)
    best = (top - np.reshape(ratio, (-1, 1)) * bottom).argmax(axis=1)[:, None]
    chosen = (np.take_along_axis(x, best, 1)[:, 0] for x in (y_1, m_1, y_2, m_2, top, bottom))
    return Pair(*chosen)


def worst_ratio(T_1: Array, a_1: Array, T_2: Array, a_2: Array, budget: float) -> Pair:
    """The pair in F with the largest R_1·T_1 / R_2·T_2, where it is finite, by Dinkelbach."""
    pair = worst_pair(T_1, a_1, T_2, a_2, budget, 1.0)
    for _ in range(_ROUNDS):
        ratio = pair.top / pair.bottom
        pair = worst_pair(T_1, a_1, T_2, a_2, budget, ratio)
        if (pair.top - ratio * pair.bottom <= 4 * _ULP * pair.top).all():
            break
    return pair


def conditionals(T: Array, a: Array, y: Array, m: Array) -> Array:
    """The conditionals of mass m that keep y of the masses a and have the rest at the top of T."""
    L = corners(T, a)
    sorted_a = np.take_along_axis(a, L.order, 1)
    kept = np.clip(y[:, None] - L.y[:, :-1], 0.0, sorted_a)
    R = np.zeros(T.shape)
    np.put_along_axis(R, L.order, kept, 1)
    end = T.argmax(axis=1)[:, None]
    rest = np.maximum(m - y, 0.0)[:, None]
    rest = np.where(m[:, None] > 0, rest, 1.0)
    np.put_along_axis(R, end, np.take_along_axis(R, end, 1) + rest, 1)
    return np.asarray(R / R.sum(axis=1, keepdims=True))


def _share(fall: Array, m: Array) -> Array:
    return np.where(m > 0, fall / np.where(m > 0, m, 1.0), 0.0)
