"""Minima over F of a·P - p log p with p = v·P, proven for many pairs (a, v) at once.

Since -p log p = min_λ (e^(λ-1) - λ p),

    min_P a·P - p log p  =  min_λ e^(λ-1) + g(λ),    g(λ) = min_P (a - λ v)·P.

g is concave with slope -p, so between two points it lies above its chord: the least e^(λ-1) plus
chord is a proven bound. Intervals that may still hold the minimum are split until every bound has
met the smallest value seen.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import entr

from rldp._types import Array, Flags, Indices
from rldp.arithmetic import exp, log
from rldp.uncertainty import UncertaintySet

_ULP = float(np.finfo(float).eps)
_ATOL = 1e-12  # of a minimum, in units of the largest coefficient
_ROUNDS = 80  # of splitting at most; what is still open keeps its proven bound
_TINY = 1e-18  # a smaller p is not told from this one, which costs at most as much
_ENTRIES = 2**20  # numbers that are worked on at once


class Minima(NamedTuple):
    """Proven bounds, values that are attained, and the P, shape (n, n_s, n_u), that attain them."""

    lower: Array
    upper: Array
    distributions: Array


def smallest_sums(a: Array, v: Array, F: UncertaintySet) -> Minima:
    """min over P in F of a·P - p log p, p = v·P, v ≥ 0, row by row; shapes (n, n_s, n_u)."""
    step = max(1, _ENTRIES // v[:1].size)
    rows = [slice(i, i + step) for i in range(0, len(v), step)]
    parts = [_Search(a[part], v[part], F).minima() for part in rows]
    return Minima(*(np.concatenate(each) for each in zip(*parts, strict=True)))


class _Points(NamedTuple):
    """Values of λ, bounds from below on g there, and p = -g'."""

    at: Array
    g: Array
    p: Array

    def kept(self, rows: Flags) -> _Points:
        return _Points(self.at[rows], self.g[rows], self.p[rows])


class _Search:
    """Branch and bound over λ for all rows together; each interval knows its row."""

    def __init__(self, a: Array, v: Array, F: UncertaintySet) -> None:
        self.a, self.v, self.F = a, v, F
        self.a_size, self.v_size = abs(a).max(axis=(1, 2)), v.max(axis=(1, 2))
        self.lower, self.upper = np.full(len(v), np.inf), np.full(len(v), np.inf)
        self.P = np.zeros(v.shape)

    def minima(self) -> Minima:
        row = np.arange(len(self.v))
        low = np.maximum(self.F.smallest_expectation(self.v)[0], _TINY)
        high = np.maximum(-self.F.smallest_expectation(-self.v)[0], low)
        # the best λ is 1 + log p for some p of the range
        left, right = self._at(row, 1 + log(low)), self._at(row, 1 + log(high))
        for step in range(_ROUNDS):
            bound = _bounds(left, right)
            is_open = bound < self.upper[row] - _ATOL * (1 + self.a_size[row])
            is_open &= (right.at - left.at > 1e-14) & (step < _ROUNDS - 1)
            np.minimum.at(self.lower, row[~is_open], bound[~is_open])
            if not is_open.any():
                break
            row, left, right = row[is_open], left.kept(is_open), right.kept(is_open)
            first, second = (self._at(row, at) for at in _splits(left, right, step))
            row = np.concatenate([row, row, row])
            left, right = _joined(left, first, second), _joined(first, second, right)
        return Minima(self.lower - _TINY, self.upper, self.P)

    def _at(self, row: Indices, at: Array) -> _Points:
        """g at one λ for each of these rows; the P that are found may be the best so far."""
        a, v = self.a[row], self.v[row]
        g, P = self.F.smallest_expectation(a - at[:, None, None] * v)
        p = (v * P).sum(axis=(1, 2))
        value = (a * P).sum(axis=(1, 2)) + entr(p)
        order = np.argsort(-value, kind="stable")  # the smallest of each row is written last
        best = order[value[order] < self.upper[row[order]]]
        self.upper[row[best]], self.P[row[best]] = value[best], P[best]
        rounding = 4 * _ULP * (self.a_size[row] + abs(at) * self.v_size[row])
        return _Points(at, g - rounding, p)


def _bounds(left: _Points, right: _Points) -> Array:
    """The least e^(λ-1) plus chord of g between two points."""
    width = right.at - left.at
    safe = np.where(width > 0, width, 1.0)
    slope = np.maximum((left.g - right.g) / safe, _TINY)
    share = np.clip((1 + log(slope) - left.at) / safe, 0.0, 1.0)
    at = left.at + share * width
    power, chord = exp(at - 1), (1 - share) * left.g + share * right.g
    size = (2 + abs(at)) * power + np.maximum(abs(left.g), abs(right.g))
    return np.asarray(power + chord - 4 * _ULP * size)


def _splits(left: _Points, right: _Points, step: int) -> tuple[Array, Array]:
    """Two points inside: close around the expected zero of e^(λ-1) - p, or where tangents meet."""
    width = right.at - left.at
    low, high = exp(left.at - 1) - left.p, exp(right.at - 1) - right.p
    has_zero = (low < 0) & (high > 0) & (step % 4 < 3)
    zero = left.at + width * np.where(has_zero, -low, 1.0) / np.where(has_zero, high - low, 2.0)
    # the error of a secant is quadratic; below 1e-7 the chord is exact anyway
    reach = np.maximum(width**2 / 4, 1e-7)
    bend = right.p - left.p
    is_bent = bend > 0
    # a polytope F makes g piecewise linear, and then its corner is found at once
    ahead = (right.g - left.g + right.p * width) / np.where(is_bent, bend, 1.0)
    corner = left.at + np.where(is_bent, ahead, width / 2)
    first = np.where(has_zero, zero - reach, corner)
    second = np.where(has_zero, zero + reach, corner + width / 10)
    edge = 0.02 * width
    return (
        np.clip(first, left.at + edge, right.at - 2 * edge),
        np.clip(second, left.at + 2 * edge, right.at - edge),
    )


def _joined(*points: _Points) -> _Points:
    return _Points(*(np.concatenate(each) for each in zip(*points, strict=True)))
