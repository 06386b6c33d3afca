"""Subset selection with few outputs: balanced subsets of the cells instead of all of one size.

Subset selection reports a random subset of d cells, e^ε times as likely if it holds the true one.
Its estimates depend on how often a report holds one cell, or two, alone. So a set of subsets that
holds every cell, and every pair of cells, equally often has the same errors. The shifts of one
subset around a circle hold every cell equally often, and every pair by their distance;
non-negative least squares mix shifts of random subsets so that all distances are equally frequent.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from rldp._types import Array, Flags

_TRIED = 8  # random subsets, times the number of cells
_BALANCED = 1e-9  # what frequencies of distances may differ by


def usual_variance(p: Array, d: int, factor: float) -> float:
    """Σ of the variances of the usual estimates of all cells from one report of d cells."""
    n = p.size
    total = d * factor + n - d
    high = d * factor / total
    low = (d * (d - 1) * factor + d * (n - d)) / ((n - 1) * total)
    q = low + (high - low) * p.ravel()
    return float((q * (1 - q)).sum() / (high - low) ** 2)


def subset_selection(p_su: Array, factor: float) -> Array | None:
    """Q[s, u, y] with the errors of subset selection of the best size; None if none is found."""
    n = p_su.size
    d = min(range(1, n), key=lambda size: usual_variance(p_su, size, factor))
    found = _balanced(n, d)
    if found is None:
        return None
    chosen, weights = found
    Q = np.where(chosen, factor, 1.0) * weights[:, None]
    Q /= Q.sum(axis=0)
    return np.asarray(Q.T.reshape(*p_su.shape, -1))


def _balanced(n: int, d: int) -> tuple[Flags, Array] | None:
    """Subsets of d of n cells, shape (subsets, n), and weights with which all pairs are alike."""
    random = np.random.default_rng(0)  # the same protocol every time
    rank = random.random((_TRIED * n, n)).argsort(axis=1).argsort(axis=1)
    blocks = (rank < d).astype(float)
    spectrum = np.abs(np.fft.rfft(blocks, axis=1)) ** 2
    distances = np.fft.irfft(spectrum, n, axis=1).round()[:, 1 : n // 2 + 1]
    rows = np.concatenate([distances, np.ones((len(blocks), 1))], axis=1).T
    weights, off = nnls(rows, np.append(np.full(n // 2, d * (d - 1) / (n - 1)), 1.0))
    if off > _BALANCED:
        return None
    used = np.flatnonzero(weights > 0)
    place = (np.arange(n)[None, :] + np.arange(n)[:, None]) % n
    shifts = blocks[used][:, place].reshape(-1, n)  # all shifts of a subset, one after the other
    return shifts > 0, np.repeat(weights[used], n)
