"""Rows of integers that sum to 2^k as exact alias tables: one k-bit word, one output."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rldp.errors import TooLargeError

Integers = NDArray[np.int64]
Words = NDArray[np.uint64]

_MOST_BUCKETS = 2**26  # about a gibibyte of tables


class AliasRows:
    """The rows of a table N, each as 2^j buckets with a threshold and an alias (see the package).

    Law: of the 2^bits values of the highest bits of a word, exactly N[row, y] give y.

    >>> rows = AliasRows(np.array([[3, 1], [0, 4]]), bits=2)
    >>> words = np.arange(4, dtype=np.uint64) << np.uint64(62)
    >>> rows.draw(np.array([0, 0, 0, 0]), words), rows.draw(np.array([1, 1, 1, 1]), words)
    (array([0, 0, 1, 0]), array([1, 1, 1, 1]))
    """

    def __init__(self, N: Integers, bits: int) -> None:
        """Take N of shape (rows, outputs), every row with the sum 2^bits."""
        n_rows, self.n_outputs = N.shape
        self.bucket_bits = j = min(bits, max(1, (self.n_outputs - 1).bit_length()))
        if n_rows << j > _MOST_BUCKETS:
            raise TooLargeError(
                f"A table of {n_rows} × {self.n_outputs} outputs is too large to draw from: it "
                f"would have {n_rows << j} buckets, {_MOST_BUCKETS} at most are built."
            )
        items, R = _items(N, j)
        thresholds, aliases = _buckets(R, 2 ** (bits - j))
        starts = np.arange(2**j, dtype=np.int64) << (bits - j)
        # the first word beyond the item; 2^64 becomes 0, where the alias is the item itself
        limits = (starts + thresholds).astype(np.uint64) << np.uint64(64 - bits)
        outputs = np.stack([items, np.take_along_axis(items, aliases, axis=1)], axis=2)
        self._limits = limits.ravel()
        self._outputs = outputs.astype(np.min_scalar_type(-self.n_outputs)).ravel()

    def draw(self, rows: Integers, words: Words, out: Integers | None = None) -> Integers:
        """An output for each pair of a row's number and a word; `rows` is overwritten."""
        # every step in place: the arrays of a chunk stay in the cache
        np.left_shift(rows, self.bucket_bits, out=rows)
        buckets = words >> np.uint64(64 - self.bucket_bits)
        np.add(rows, buckets.view(np.int64), out=rows)
        limits = np.take(self._limits, rows, out=buckets, mode="clip")
        np.left_shift(rows, 1, out=rows)
        np.add(rows, (words >= limits).view(np.uint8), out=rows)
        drawn = np.take(self._outputs, rows, mode="clip")
        if out is None:
            return drawn.astype(np.int64)
        out[...] = drawn
        return out


def _items(N: Integers, j: int) -> tuple[Integers, Integers]:
    """The outputs that own the buckets, what occurs first, and their integers; 0 where none is."""
    kept = np.argsort(N == 0, axis=1, kind="stable")[:, : 2**j]
    items = np.zeros((N.shape[0], 2**j), dtype=np.int64)
    R = np.zeros_like(items)
    items[:, : kept.shape[1]] = kept
    R[:, : kept.shape[1]] = np.take_along_axis(N, kept, axis=1)
    return items, R


def _buckets(R: Integers, c: int) -> tuple[Integers, Integers]:
    """Thresholds and aliases of every row at once; R is overwritten."""
    n_rows, n = R.shape
    is_small = c > R
    n_small = is_small.sum(axis=1)
    order = np.argsort(~is_small, axis=1, kind="stable")  # small ones, then large ones, ascending
    thresholds = np.full(R.shape, c, dtype=np.int64)
    aliases = np.tile(np.arange(n), (n_rows, 1))
    rows = np.flatnonzero(n_small)  # those that are not done
    current, small, large = order[rows, 0], np.ones(rows.size, dtype=np.intp), n_small[rows]
    while rows.size:
        other = order[rows, large]
        left = R[rows, current]
        thresholds[rows, current], aliases[rows, current] = left, other
        left += R[rows, other] - c
        R[rows, other] = left
        is_spent = left < c
        goes_on = is_spent | (small < n_small[rows])
        following = order[rows, np.minimum(small, n - 1)]
        current = np.where(is_spent, other, following)[goes_on]
        small, large = (small + ~is_spent)[goes_on], (large + is_spent)[goes_on]
        rows = rows[goes_on]
    return thresholds, aliases
