"""Exact alias tables: one word of k random bits gives one output of a row that sums to 2^k."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rldp._types import Integers, Words
from rldp.compiled import loops
from rldp.errors import TooLargeError

_MOST_BUCKETS = 2**25  # about half a gibibyte of tables
_BUILT = 2**20  # buckets that are built at a time
_ZERO: Integers = np.zeros(1, dtype=np.int64)


class AliasRows:
    """The rows of a table N, each as 2^j buckets with a threshold and an alias (see the package).

    Law: of the 2^bits values of the highest bits of a word, exactly N[row, y] give y.

    >>> rows = AliasRows(np.array([[3, 1], [0, 4]]), bits=2)
    >>> words = np.arange(4, dtype=np.uint64) << np.uint64(62)
    >>> rows.draw(np.array([0, 0, 0, 0]), words).tolist()
    [0, 0, 1, 0]
    >>> rows.draw(np.array([1, 1, 1, 1]), words).tolist()
    [1, 1, 1, 1]
    """

    def __init__(self, N: Integers, bits: int) -> None:
        """Take N of shape (rows, outputs), every row with the sum 2^bits."""
        n_rows, self.n_outputs = self.n_rows, _ = N.shape
        self._bits = bits
        self.bucket_bits = j = min(bits, max(1, (self.n_outputs - 1).bit_length()))
        if n_rows << j > _MOST_BUCKETS:
            raise TooLargeError(
                f"Expected a table of at most {_MOST_BUCKETS} buckets to draw from, {n_rows} rows "
                f"of {self.n_outputs} outputs need {n_rows << j}; ir and ue-cr need far fewer."
            )
        limits = np.empty((n_rows, 2**j), dtype=np.uint64)
        self._width = 8 * np.min_scalar_type(self.n_outputs - 1).itemsize  # bits of an output
        pairs = np.empty((n_rows, 2**j), dtype=f"u{self._width // 4}")
        starts = np.arange(2**j, dtype=np.int64) << (bits - j)
        step = max(1, _BUILT >> j)
        for part in (slice(first, first + step) for first in range(0, n_rows, step)):
            items, R = _items(N[part], j)
            thresholds, aliases = _buckets(R, 2 ** (bits - j))
            # the first word of the alias; 2^64 wraps to 0, and then the alias is the item itself
            limits[part] = (starts + thresholds).astype(np.uint64) << np.uint64(64 - bits)
            pairs[part] = np.take_along_axis(items, aliases, axis=1) << self._width | items
        self.limits, self._pairs = limits.ravel(), pairs.ravel()

    def draw(self, rows: Integers, words: Words, room: Room | None = None) -> NDArray[Any]:
        """An output for each row number and word; `rows` may be overwritten.

        The result is an array of the `room`, and the next draw overwrites it.
        """
        room = Room() if room is None else room
        if loops is None:
            return self._drawn(rows, words, room)
        out: Integers = room.array("outputs", words.shape, np.int64)
        flat = rows.reshape(-1), words.reshape(-1), out.reshape(-1)
        if not self.draw_codes(flat[:1], (self.n_rows,), *flat[1:], room):
            raise IndexError(f"Expected rows from 0 to {self.n_rows - 1}.")
        return out

    def draw_codes(
        self,
        codes: Sequence[NDArray[Any]],
        shape: tuple[int, ...],
        words: Words,
        out: Integers,
        room: Room,
    ) -> bool:
        """Write an output for each record and word into `out`.

        Codes (s, u) of a table of shape (n_s, n_u) have row s n_u + u, and codes (s,) have row s.
        Returns False, with outputs of some records only, if a code is out of range.
        """
        if loops is None:
            if any(first_beyond(*pair) is not None for pair in zip(codes, shape, strict=True)):
                return False
            out[...] = self._drawn(cell_numbers(codes, shape, room), words, room)
            return True
        s, *others = (_native(numbers, f"codes {i}", room) for i, numbers in enumerate(codes))
        u = others[0] if others else np.broadcast_to(_ZERO, words.shape)
        (n_s, *_), n_u = shape, shape[1] if others else 1
        table = self.limits, self._pairs, self.bucket_bits
        return bool(loops.draw(*table, s, n_s, u, n_u, words, out) == len(words))

    def _drawn(self, rows: Integers, words: Words, room: Room) -> NDArray[Any]:
        """Every step in place: the arrays of a chunk stay in the cache."""
        limits = room.array("limits", words.shape, np.uint64)
        np.left_shift(rows, self.bucket_bits, out=rows)
        np.right_shift(words, np.uint64(64 - self.bucket_bits), out=limits)
        np.add(rows, limits.view(np.int64), out=rows)
        np.take(self.limits, rows, out=limits, mode="clip")
        is_beyond = room.array("beyond", words.shape, np.bool_)
        np.greater_equal(words, limits, out=is_beyond)
        pairs, shifts = (
            room.array(of, words.shape, self._pairs.dtype) for of in ("pairs", "shifts")
        )
        np.take(self._pairs, rows, out=pairs, mode="clip")
        np.multiply(is_beyond, self._width, out=shifts, dtype=shifts.dtype)
        np.right_shift(pairs, shifts, out=pairs)
        np.bitwise_and(pairs, 2**self._width - 1, out=pairs)
        return pairs

    def common(self, first: int, second: int) -> Integers:
        """How many of the 2^bits words give each pair of outputs of two rows, exactly."""
        j, bits = self.bucket_bits, self._bits
        buckets, c = np.arange(2**j, dtype=np.int64), 2 ** (bits - j)
        rows = [buckets + (row << j) for row in (first, second)]
        beyond = [(self.limits[row] >> np.uint64(64 - bits)).astype(np.int64) for row in rows]
        one, two = ((limit - buckets * c) % 2**bits for limit in beyond)  # thresholds
        pairs = [self._pairs[row].astype(np.intp) for row in rows]
        items = [pair % 2**self._width for pair in pairs]
        others = [pair >> self._width for pair in pairs]
        between = np.where(one > two, items[0], others[0]), np.where(two > one, items[1], others[1])
        low, high = np.minimum(one, two), np.maximum(one, two)
        counts = np.zeros((self.n_outputs, self.n_outputs), dtype=np.int64)
        for places, times in ((items, low), (between, high - low), (others, c - high)):
            np.add.at(counts, tuple(places), times)
        return counts


class Room:
    """Arrays that all chunks of a release reuse, which is faster than new ones for each chunk."""

    def __init__(self) -> None:
        """Start with no arrays."""
        self._arrays: dict[str, NDArray[Any]] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """An array of this shape, with undefined content."""
        n = math.prod(shape)
        found = self._arrays.get(name)
        if found is None or found.size < n or found.dtype != dtype:
            self._arrays[name] = found = np.empty(n, dtype)
        return found[:n].reshape(shape)


def first_beyond(codes: NDArray[Any], n: int) -> int | None:
    """Where the first code that is not from 0 to n - 1 is, None if there is none."""
    # as unsigned numbers negative codes are huge, so one comparison finds all errors
    unsigned = codes.view(codes.dtype.str.replace("i", "u"))
    return int(np.argmax(unsigned >= n)) if unsigned.max(initial=0) >= n else None


def cell_numbers(codes: Sequence[NDArray[Any]], shape: tuple[int, ...], room: Room) -> Integers:
    """The number of each cell, the last code varying fastest."""
    first, *others = codes
    cells: Integers = room.array("cells", first.shape, np.int64)
    cells[...] = first
    for numbers, n in zip(others, shape[1:], strict=True):
        cells *= n
        np.add(cells, numbers, out=cells, dtype=np.int64)
    return cells


def _native(codes: NDArray[Any], name: str, room: Room) -> NDArray[Any]:
    """Codes of 64 bits as the loop takes them, a copy unless they are."""
    if codes.dtype in (np.int64, np.uint64) and codes.flags.aligned:
        return codes
    wide = room.array(name, codes.shape, np.int64)
    wide[...] = codes
    return wide


def _items(N: Integers, j: int) -> tuple[Integers, Integers]:
    """The outputs that own the buckets, those with N > 0 first, and their integers; 0 if none."""
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
