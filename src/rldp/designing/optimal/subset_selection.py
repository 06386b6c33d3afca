"""Subset selection with few outputs: balanced subsets of the cells instead of all of one size.

Subset selection reports a random subset of d cells, e^ε times as likely if it holds the true one.
Its estimates depend on how often a report holds one cell, or two, alone. So a set of subsets that
holds every cell, and every pair of cells, equally often has the same errors. The shifts of one
subset around a circle hold every cell equally often, and every pair by their distance;
a linear programme mixes shifts of random subsets so that all distances are equally frequent.

That takes half as many subsets as there are cells, each with all its shifts. On a circle of a prime
number of places fewer are enough: subsets that stay the same when places are multiplied by the
elements of a group have all distances of a class equally often, so that only classes must be
balanced. Places beyond the number of cells stay empty, which changes errors hardly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rldp._types import Array, Flags, Indices
from rldp.arithmetic import PositiveSystem, matmul
from rldp.designing.solvers.linear import Programme
from rldp.utility.goal import information_matrix

_MOST_EXACT = 100  # cells up to which the circle has no empty places
_MOST_EMPTY = 30  # places
_MOST_ENTRIES = 1_500_000  # of the table: cells times outputs
_MOST_LOST = 0.01  # of the variance: what a size of subsets may cost
_AS_GOOD = 1e-5  # of the variance, which counts as none
_TRIED = 8  # random subsets, times the number of places
_NEGLIGIBLE = 1e-6  # of the largest weight
_REPAIRS = 3  # of weights, each of which leaves less for the next
_BALANCED = 1e-9  # what frequencies of distances may differ by


class _Circle(NamedTuple):
    """Subsets of d of so many places that a group of multipliers of a given order keeps."""

    places: int
    order: int
    d: int

    @property
    def n_classes(self) -> int:
        """Of distances: x and -x are the same, and in the same class if the order is even."""
        classes = (self.places - 1) // self.order
        return classes if self.order % 2 == 0 else (classes + 1) // 2

    @property
    def n_outputs(self) -> int:
        """At most: one subset for every class, with all its shifts."""
        return self.n_classes * self.places


def usual_variance(p: Array, d: int, factor: float) -> float:
    """Σ of the variances of the usual estimates of all cells from one report of d cells."""
    n = p.size
    total = d * factor + n - d
    high = d * factor / total
    low = (d * (d - 1) * factor + d * (n - d)) / ((n - 1) * total)
    q = low + (high - low) * p.ravel()
    return float((q * (1 - q)).sum() / (high - low) ** 2)


def subset_selection(p_su: Array, factor: float) -> Array | None:
    """Q[s, u, y] with the errors of subset selection of the best size, or nearly; None if none is.

    Up to 100 cells they are the same. Beyond, it is the protocol with the fewest outputs whose
    errors are not larger, or with the smallest errors.
    """
    n = p_su.size
    d = min(range(1, n), key=lambda size: usual_variance(p_su, size, factor))
    if n <= _MOST_EXACT:
        return _channel(_Circle(n, 1, d), p_su, factor)
    enough = usual_variance(p_su, d, factor) * (1 + _AS_GOOD)
    best, least = None, np.inf
    for circle in _circles(n, factor):
        Q = _channel(circle, p_su, factor)
        error = np.inf if Q is None else _error(Q, p_su)
        if error < least:
            best, least = Q, error
        if least <= enough:
            break
    return best


def balanced_subsets(n: int, factor: float, most: int) -> Flags | None:
    """At most so many subsets of n cells that are nearly as good as all of the best size."""
    circles = [circle for circle in _circles(n, factor) if circle.n_outputs <= most]
    found = _balanced(circles[-1]) if circles else None
    return None if found is None else found[0][:, :n]


def _error(Q: Array, p_su: Array) -> float:
    """Σ of the variances of the best estimates of all cells from one report."""
    root = PositiveSystem(information_matrix(Q, p_su)).whitened(np.eye(p_su.size))
    return float((root**2).sum() - (p_su**2).sum())


def _channel(circle: _Circle, p_su: Array, factor: float) -> Array | None:
    found = _balanced(circle)
    if found is None:
        return None
    chosen, weights = found
    Q = np.where(chosen[:, : p_su.size], factor, 1.0) * weights[:, None]
    Q /= Q.sum(axis=0)
    return np.asarray(Q.T.reshape(*p_su.shape, -1))


def _circles(n: int, factor: float) -> Iterator[_Circle]:
    """Circles for n cells, those with few outputs first, each better than those before.

    What they lose is told for equally frequent cells, for which Σ of the variances of all but one
    degree of freedom is the same on every place.
    """

    def per_place(places: int, d: int) -> float:
        return usual_variance(np.full(places, 1 / places), d, factor) / (places - 1)

    best = min(range(1, n), key=lambda d: per_place(n, d))
    optimum = per_place(n, best)
    found = [(_Circle(n, 1, best), 0.0)]
    for places in filter(_is_prime, range(n, n + _MOST_EMPTY + 1)):
        loss = {d: per_place(places, d) / optimum - 1 for d in range(1, places)}
        for order in range(2, places):
            sizes = [d for d in loss if d % order < 2]
            if (places - 1) % order == 0 and sizes:
                d = min(sizes, key=lambda size: loss[size])
                found.append((_Circle(places, order, d), loss[d]))
    lost = _MOST_LOST
    for circle, loss_of_it in sorted(found, key=lambda each: (each[0].n_outputs, each[1])):
        if circle.n_outputs * n <= _MOST_ENTRIES and loss_of_it < lost:
            lost = loss_of_it
            yield circle


def _balanced(circle: _Circle) -> tuple[Flags, Array] | None:
    """Subsets, shape (subsets, places), and weights with which all pairs of places are alike."""
    n, order, d = circle
    random = np.random.default_rng(0)  # the same protocol every time
    classes = _classes(n, order)
    rank = _ranks(random.random((_TRIED * n, classes.max() + 1)))
    blocks = (rank < d // order).astype(float)[:, classes]
    if order > 1:
        blocks[:, 0] = d % order  # the only place that every multiplier keeps
        blocks = np.unique(blocks, axis=0)
    spectrum = np.abs(np.fft.rfft(blocks, axis=1)) ** 2
    _, first = np.unique(classes[1 : n // 2 + 1], return_index=True)
    distances = np.fft.irfft(spectrum, n, axis=1).round()[:, 1 + np.sort(first)]
    rows = np.concatenate([distances, np.ones((len(blocks), 1))], axis=1).T
    weights = _mixture(rows, np.append(np.full(len(first), d * (d - 1) / (n - 1)), 1.0))
    if weights is None:
        return None
    used = np.flatnonzero(weights > 0)
    place = (np.arange(n)[None, :] + np.arange(n)[:, None]) % n
    shifts = blocks[used][:, place].reshape(-1, n)  # all shifts of a subset, one after the other
    return shifts > 0, np.repeat(weights[used], n)


def _mixture(columns: Array, values: Array) -> Array | None:
    """Weights x ≥ 0 of a few columns with columns·x = values; None if there are none."""
    programme = Programme(values)
    programme.add_columns(columns.T, np.zeros(columns.shape[1]))
    slack = np.eye(len(values))
    programme.add_columns(np.concatenate([slack, -slack]), np.full(2 * len(values), -1.0))
    weights = programme.solved().weights[: columns.shape[1]]
    used = np.flatnonzero(weights > _NEGLIGIBLE * weights.max())
    A = columns[:, used]  # the solver's equations hold to its tolerance only
    x, normal = weights[used], PositiveSystem(matmul(A.T, A))
    for _ in range(_REPAIRS):
        x = x + normal.solved(matmul(A.T, values - matmul(A, x)))
    if (x < 0).any() or np.linalg.norm(matmul(A, x) - values) > _BALANCED:
        return None
    mixture = np.zeros_like(weights)
    mixture[used] = x
    return mixture


def _ranks(numbers: Array) -> Indices:
    """The rank of every number in its row."""
    return numbers.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")


def _classes(n: int, order: int) -> Indices:
    """The class of every place under the multipliers; 0, which they keep, is in any."""
    if order == 1:
        return np.arange(n)
    powers = next(x for g in range(2, n) if len(x := _powers(g, n)) == n - 1)
    classes = np.zeros(n, dtype=np.intp)
    classes[powers] = np.arange(n - 1) % ((n - 1) // order)
    return classes


def _powers(g: int, prime: int) -> Indices:
    """All powers of g."""
    powers = [1]
    while (x := powers[-1] * g % prime) != 1:
        powers.append(x)
    return np.array(powers)


def _is_prime(n: int) -> bool:
    return n > 1 and all(n % k for k in range(2, int(n**0.5) + 1))
