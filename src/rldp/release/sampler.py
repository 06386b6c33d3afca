"""Codes of records and words to reports, one sampler for each kind of channel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rldp.channel import (
    Channel,
    ChoiceChannel,
    DenseChannel,
    IndependentChannel,
    IntegerParts,
    UnaryChannel,
)
from rldp.errors import ParameterError
from rldp.release.alias import AliasRows, Integers, Words


class Sampler(ABC):
    """What a protocol draws: `words` words for each record, and a report from them."""

    shape: tuple[int, int]  # (n_s, n_u)
    words: int
    width: int | None = None  # entries of a report, None where it is one number
    dtype: np.dtype[Any] = np.dtype(np.int64)

    @abstractmethod
    def draw(self, s: Integers, u: Integers, words: Words, out: NDArray[Any]) -> None:
        """Write the reports of records (s, u), with words of shape (n, `words`), into `out`."""

    def empty(self, n: int) -> NDArray[Any]:
        """Room for n reports."""
        return np.empty(n if self.width is None else (n, self.width), dtype=self.dtype)


class RowSampler(Sampler):
    """One row for each (s, u): dense and choice channels."""

    words = 1

    def __init__(self, N: Integers, bits: int) -> None:
        """Take N of shape (n_s, n_u, n_y)."""
        self.shape = N.shape[0], N.shape[1]
        self._rows = AliasRows(N.reshape(-1, N.shape[2]), bits)

    def draw(self, s: Integers, u: Integers, words: Words, out: NDArray[Any]) -> None:
        """One word, one output."""
        rows = np.multiply(s, self.shape[1], dtype=np.int64)
        rows += u
        self._rows.draw(rows, words[:, 0], out)


class PairSampler(Sampler):
    """S and U each by a row of its own: independent channels."""

    words = 2

    def __init__(self, r_s: Integers, r_u: Integers, bits: int) -> None:
        """Take the two tables, inputs first."""
        self.shape = len(r_s), len(r_u)
        self._s, self._u = AliasRows(r_s, bits), AliasRows(r_u, bits)

    def draw(self, s: Integers, u: Integers, words: Words, out: NDArray[Any]) -> None:
        """The first word for S, the second for U."""
        self._s.draw(s.astype(np.int64), words[:, 0], out)
        out *= self._u.n_outputs
        out += self._u.draw(u.astype(np.int64), words[:, 1])


class BlockSampler(Sampler):
    """Every block by itself: unary channels."""

    def __init__(self, own: Integers, other: Integers, block: NDArray[np.intp], bits: int) -> None:
        """Take own, shape (n_s, n_u, n_z), other, shape (blocks, n_z), and the block of a cell."""
        n_z = own.shape[2]
        self.shape = block.shape[0], block.shape[1]
        self._block = block.ravel()
        self._rows = AliasRows(np.concatenate([own.reshape(-1, n_z), other]), bits)
        self.words = self.width = len(other)
        self.dtype = np.min_scalar_type(-n_z)

    def draw(self, s: Integers, u: Integers, words: Words, out: NDArray[Any]) -> None:
        """A symbol for each block, less 1, so that silence is -1."""
        cells = np.multiply(s, self.shape[1], dtype=np.int64)
        cells += u
        rows = np.empty(words.shape, dtype=np.int64)
        rows[...] = np.arange(self._block.size, self._block.size + self.words)
        rows[np.arange(len(cells)), self._block[cells]] = cells
        self._rows.draw(rows, words, out)
        out -= 1


def sampler(channel: Channel, integers: IntegerParts, bits: int) -> Sampler:
    """The sampler of an integer table, by the kind of its channel."""
    match channel:
        case DenseChannel():
            return RowSampler(integers["Q"], bits)
        case ChoiceChannel():
            return RowSampler(_choice_rows(integers["own"], integers["other"]), bits)
        case IndependentChannel():
            return PairSampler(integers["r_s"], integers["r_u"], bits)
        case UnaryChannel():
            return BlockSampler(integers["own"], integers["other"], channel.block, bits)
    raise ParameterError(f"Expected a channel of a known kind, got {type(channel).__name__}.")


def _choice_rows(own: Integers, other: Integers) -> Integers:
    """N[s, u, y] over all pairs y = (b, z): other, with the own block in its place."""
    n_s, n_u, _ = own.shape
    N = np.broadcast_to(other, (n_s, n_u, *other.shape)).copy()
    s = np.arange(n_s)
    N[s, :, s] = own
    return N.reshape(n_s, n_u, -1)
