"""Codes of records and random words to reports, one sampler for each kind of channel.

NumPy alone draws here: a client that releases codes imports nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import singledispatch
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rldp._types import Indices, Integers, Words
from rldp.channel import Channel, IndependentChannel, IntegerParts, SetChannel, UnaryChannel
from rldp.channel.base import check_size
from rldp.errors import DataError
from rldp.release.alias_table import AliasRows, Room, cell_numbers, first_beyond
from rldp.release.randomness import WordSource
from rldp.tables.schema import Schema

if TYPE_CHECKING:
    from rldp.release.report_labels import ReportLabels

CHUNK = 32_768  # words at a time, so that all arrays fit into the cache


class Released(Protocol):
    """What a release uses of a protocol: alphabets, sampler, and labels of reports."""

    @property
    def name(self) -> str:
        """Name of the protocol."""

    @property
    def epsilon(self) -> float:
        """Its ε in nats."""

    @property
    def schema(self) -> Schema:
        """The alphabets of S and U."""

    @property
    def reads_sensitive(self) -> bool:
        """Whether the randomiser needs S."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the public version."""

    @property
    def sampler(self) -> Sampler:
        """The exact sampler of the integer table."""

    @property
    def report_labels(self) -> ReportLabels:
        """Reports ⇄ labels."""


class TableRows(Protocol):
    """TableRows of a table from which single words draw."""

    @property
    def n_outputs(self) -> int:
        """Length of a row."""

    def common(self, first: int, second: int) -> Integers:
        """How many of the words give each pair of outputs of two rows."""


class Sampler(ABC):
    """What a protocol draws: `words` words for each record, and a report from them."""

    shape: tuple[int, int]  # (n_s, n_u)
    words: int
    width: int | None = None  # entries of a report, None where it is one number
    dtype: np.dtype[Any] = np.dtype(np.int64)

    @abstractmethod
    def draw(self, s: Integers, u: Integers, words: Words, out: NDArray[Any], room: Room) -> bool:
        """Write the reports of records (s, u), with words of shape (n, `words`), into `out`.

        Returns False, with reports of some records only, if a code is out of range.
        """

    @abstractmethod
    def tables(self, s: int, u: int) -> list[tuple[TableRows, int]]:
        """The rows, and the number of the row among them, that each word of a record draws from."""

    def empty(self, n: int) -> NDArray[Any]:
        """An uninitialised array for n reports."""
        return np.empty(n if self.width is None else (n, self.width), dtype=self.dtype)


class RowSampler(Sampler):
    """One row for each (s, u): dense and choice channels."""

    words = 1

    def __init__(self, N: Integers, bits: int) -> None:
        """Take N of shape (n_s, n_u, n_y)."""
        self.shape = N.shape[0], N.shape[1]
        self._rows = AliasRows(N.reshape(-1, N.shape[2]), bits)

    def draw(self, s: Integers, u: Integers, words: Words, out: NDArray[Any], room: Room) -> bool:
        """One word, one output."""
        return self._rows.draw_codes((s, u), self.shape, words[:, 0], out, room)

    def tables(self, s: int, u: int) -> list[tuple[TableRows, int]]:
        """One row."""
        return [(self._rows, s * self.shape[1] + u)]


class PairSampler(Sampler):
    """S and U each by a row of its own: independent channels."""

    words = 2

    def __init__(self, r_s: Integers, r_u: Integers, bits: int) -> None:
        """Take the two tables, inputs first."""
        self.shape = len(r_s), len(r_u)
        self._s, self._u = AliasRows(r_s, bits), AliasRows(r_u, bits)

    def draw(self, s: Integers, u: Integers, words: Words, out: NDArray[Any], room: Room) -> bool:
        """The first word for S, the second for U."""
        n_s, n_u = self.shape
        second: Integers = room.array("second", u.shape, np.int64)
        if not (
            self._s.draw_codes((s,), (n_s,), words[:, 0], out, room)
            and self._u.draw_codes((u,), (n_u,), words[:, 1], second, room)
        ):
            return False
        out *= self._u.n_outputs
        out += second
        return True

    def tables(self, s: int, u: int) -> list[tuple[TableRows, int]]:
        """One row for S and one for U."""
        return [(self._s, s), (self._u, u)]


class BlockSampler(Sampler):
    """Every block by itself: unary channels."""

    def __init__(self, own: Integers, other: Integers, block: Indices, bits: int) -> None:
        """Take own, shape (n_s, n_u, n_z), other, shape (blocks, n_z), and the block of a cell."""
        n_z = own.shape[2]
        self.shape = block.shape[0], block.shape[1]
        self._block = block.ravel()
        self._rows = AliasRows(np.concatenate([own.reshape(-1, n_z), other]), bits)
        self.words = self.width = len(other)
        self.dtype = np.min_scalar_type(-n_z)

    def draw(self, s: Integers, u: Integers, words: Words, out: NDArray[Any], room: Room) -> bool:
        """A symbol for each block, less 1, so that silence is -1."""
        if any(first_beyond(*pair) is not None for pair in zip((s, u), self.shape, strict=True)):
            return False
        cells = cell_numbers((s, u), self.shape, room)
        rows = room.array("block rows", words.shape, np.int64)
        rows[...] = np.arange(self._block.size, self._block.size + self.words)
        rows[np.arange(len(cells)), self._block[cells]] = cells
        np.subtract(self._rows.draw(rows, words, room), 1, out=out, dtype=self.dtype)
        return True

    def tables(self, s: int, u: int) -> list[tuple[TableRows, int]]:
        """The row of the cell for its own block, and that of the block for all others."""
        cell = s * self.shape[1] + u
        own = int(self._block[cell])
        others = range(self._block.size, self._block.size + self.words)
        return [(self._rows, cell if b == own else row) for b, row in enumerate(others)]


class LazySampler(Sampler):
    """TableRows of thousands of outputs, each summed up when somebody draws from it.

    Of the 2^bits values of the highest bits of a word, those from N[0] + ... + N[y-1] up to, but
    without, N[0] + ... + N[y] give y. So exactly N[y] give y, and nothing is kept but the rows of
    the records at hand.
    """

    words = 1

    def __init__(self, channel: SetChannel, integers: IntegerParts, bits: int) -> None:
        """Take the table, and a channel with it if it is that of this table."""
        self.channel = channel if channel.is_exact else channel.from_integers(integers, bits)
        self.shape, self._integers, self._bits = channel.shape, integers, bits

    def draw(self, s: Integers, u: Integers, words: Words, out: NDArray[Any], room: Room) -> bool:
        """One word, one output, the records of each cell together."""
        if any(first_beyond(*pair) is not None for pair in zip((s, u), self.shape, strict=True)):
            return False
        cells = cell_numbers((s, u), self.shape, room)
        values = (words[:, 0] >> np.uint64(64 - self._bits)).astype(np.int64)
        order = np.argsort(cells, kind="stable")
        firsts = np.flatnonzero(np.diff(cells[order], prepend=-1))
        for some in np.split(order, firsts[1:]):
            if some.size:
                ends = self.ends(*divmod(int(cells[some[0]]), self.shape[1]))
                out[some] = np.searchsorted(ends, values[some], side="right")
        return True

    def ends(self, s: int, u: int) -> Integers:
        """Where the values of each output end."""
        return np.cumsum(self.channel.integer_row(self._integers, s, u))

    def tables(self, s: int, u: int) -> list[tuple[TableRows, int]]:
        """One row."""
        return [(SummedRows(self), s * self.shape[1] + u)]


class SummedRows:
    """The rows of such a sampler, by number."""

    def __init__(self, rows: LazySampler) -> None:
        """Take the sampler."""
        self._rows = rows

    @property
    def n_outputs(self) -> int:
        """Length of a row."""
        return self._rows.channel.n_outputs

    def common(self, first: int, second: int) -> Integers:
        """How many of the 2^bits words give each pair of outputs of two rows, exactly."""
        check_size(1, self.n_outputs, self.n_outputs)
        n_u = self._rows.shape[1]
        one, two = (self._rows.ends(*divmod(row, n_u)) for row in (first, second))
        ends = np.union1d(one, two)
        ends = ends[ends > 0]
        lengths = np.diff(ends, prepend=0)
        pair = tuple(np.searchsorted(e, ends - lengths, side="right") for e in (one, two))
        counts = np.zeros((self.n_outputs, self.n_outputs), dtype=np.int64)
        np.add.at(counts, pair, lengths)
        return counts


@singledispatch
def sampler_of(channel: Channel, integers: IntegerParts, bits: int) -> Sampler:
    """The sampler of an integer table: one draw from a row, unless its kind has another one."""
    return RowSampler(channel.listed(integers), bits)


@sampler_of.register
def _(_: IndependentChannel, integers: IntegerParts, bits: int) -> Sampler:
    return PairSampler(integers["r_s"], integers["r_u"], bits)


@sampler_of.register
def _(channel: SetChannel, integers: IntegerParts, bits: int) -> Sampler:
    return LazySampler(channel, integers, bits)


@sampler_of.register
def _(channel: UnaryChannel, integers: IntegerParts, bits: int) -> Sampler:
    return BlockSampler(integers["own"], integers["other"], channel.block, bits)


def drawn_reports(
    sampler: Sampler, s: NDArray[Any], u: NDArray[Any], source: WordSource, start: int = 0
) -> NDArray[Any]:
    """A report for each record with codes s and u, which must be in their ranges.

    The first record has number `start` in the source.
    """
    reports = sampler.empty(len(s))
    step, room = max(1, CHUNK // sampler.words), Room()
    for first in range(0, len(s), step):
        part = slice(first, min(first + step, len(s)))
        words = source.words(start + first, part.stop - first, sampler.words)
        if not sampler.draw(s[part], u[part], words, reports[part], room):
            raise _out_of_range((s[part], u[part]), sampler.shape, start + first)
    return reports


def separate_codes(codes: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The codes s and u of an array of shape (n, 2)."""
    if codes.ndim != 2 or codes.shape[1] != 2:
        raise DataError(f"Expected codes of shape (n, 2), one (s, u) per row, got {codes.shape}.")
    if codes.dtype.kind not in "iu":
        raise DataError(
            f"Expected codes as integers, got {codes.dtype}; for labels pass a frame or dicts."
        )
    return codes[:, 0], codes[:, 1]


def _out_of_range(
    codes: tuple[NDArray[Any], NDArray[Any]], shape: tuple[int, int], first: int
) -> DataError:
    for numbers, n, name in zip(codes, shape, "su", strict=True):
        place = first_beyond(numbers, n)
        if place is not None:
            return DataError(
                f"Expected codes of {name} from 0 to {n - 1}, "
                f"got {numbers[place]} in row {first + place}."
            )
    return DataError("Expected codes that stay as they are, they were changed during the release.")
