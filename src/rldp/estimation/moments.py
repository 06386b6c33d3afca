"""Features of a report whose means are linear in p, with their exact covariance.

A report of a listed channel has one feature for each output. A report of a unary channel has one
for each block and symbol, so that its many outputs are never listed. Cells (s, u) are one axis
here, u fastest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property, reduce, singledispatch

import numpy as np

from rldp._types import Array, Flags, Integers
from rldp.channel import Channel, SetChannel, UnaryChannel
from rldp.errors import DataError

_CHUNK = 2**18  # symbols at a time, so that all arrays fit into the cache


class Moments(ABC):
    """Features of a report: E[features] = M p, with M of shape (features, cells)."""

    @property
    @abstractmethod
    def M(self) -> Array:  # noqa: N802  # a matrix
        """Means of the features given each cell; large for wide tables, see `mean`."""

    @abstractmethod
    def mean(self, p: Array) -> Array:
        """M p."""

    @abstractmethod
    def tally(self, reports: Integers, weights: Array | None) -> Array:
        """The sum of the features of some reports, each times its weight."""

    @abstractmethod
    def sandwich(self, A: Array, mean: Array) -> Array:
        """A Cov Aᵀ, with the covariance of the features of one report whose mean is `mean`."""

    @abstractmethod
    def covariances(self, A: Array, B: Array, mean: Array) -> Array:
        """A_j Cov B_jᵀ of every row, with the same covariance, shape (rows,)."""

    @abstractmethod
    def whitened(self, X: Array, mean: Array) -> Array:
        """W X, with WᵀW a generalised inverse of that covariance."""

    @abstractmethod
    def unwhitened(self, Y: Array, mean: Array) -> Array:
        """Y W, with the same W."""

    @abstractmethod
    def squares(self, A: Array, offset: Array) -> Array:
        """E[(A·features + offset)²] given each cell, shape (len(A), cells)."""

    @abstractmethod
    def extremes(self, A: Array) -> tuple[Array, Array]:
        """The least and the largest A·features that a report can have."""

    @abstractmethod
    def jumps(self, A: Array) -> Array:
        """How much A·features can change with one symbol."""

    @abstractmethod
    def place(self, feature: int) -> str:
        """What a message calls a feature."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Number of features."""

    @property
    @abstractmethod
    def possible(self) -> Flags:
        """Whether each feature can occur at all."""


class ListedMoments(Moments):
    """One feature for each output: the features of a report are a unit vector."""

    def __init__(self, Q: Array) -> None:
        """Take Q[s, u, y]."""
        self._M = Q.reshape(-1, Q.shape[2]).T

    @property
    def M(self) -> Array:  # noqa: N802  # a matrix
        """Q[x, y], transposed."""
        return self._M

    def mean(self, p: Array) -> Array:
        """The law of the output."""
        return np.asarray(self._M @ p)

    @property
    def n_features(self) -> int:
        """Number of outputs."""
        return int(self._M.shape[0])

    @cached_property
    def possible(self) -> Flags:
        """Whether some record can give the output."""
        return np.asarray(self._M.max(axis=1) > 0)

    def tally(self, reports: Integers, weights: Array | None) -> Array:
        """Counts of the outputs."""
        check_reports(reports, (self.n_features,), lowest=0)
        return np.bincount(reports, weights, self.n_features).astype(float)

    def sandwich(self, A: Array, mean: Array) -> Array:
        """The multinomial covariance, diag(mean) - mean meanᵀ."""
        return np.asarray((A * mean) @ A.T - np.outer(A @ mean, A @ mean))

    def covariances(self, A: Array, B: Array, mean: Array) -> Array:
        """The same law."""
        return np.asarray((A * B) @ mean - (A @ mean) * (B @ mean))

    def whitened(self, X: Array, mean: Array) -> Array:
        """1/mean is a generalised inverse of the multinomial covariance."""
        return np.asarray(_inverse_root(mean)[:, None] * X)

    def unwhitened(self, Y: Array, mean: Array) -> Array:
        """The same from the right."""
        return np.asarray(Y * _inverse_root(mean))

    def squares(self, A: Array, offset: Array) -> Array:
        """One value for each output."""
        return np.asarray((A + offset[:, None]) ** 2 @ self.M)

    def extremes(self, A: Array) -> tuple[Array, Array]:
        """Over the outputs that can occur."""
        return A[:, self.possible].min(axis=1), A[:, self.possible].max(axis=1)

    def jumps(self, A: Array) -> Array:
        """From any output to any other."""
        low, high = self.extremes(A)
        return np.asarray(high - low)

    def place(self, feature: int) -> str:
        """The number of the output."""
        return f"report {feature}"


class SetMoments(ListedMoments):
    """The same for columns that are constant on sets, without the matrix of all of them."""

    def __init__(self, channel: SetChannel) -> None:
        """Take the channel."""
        self.channel = channel

    @property
    def M(self) -> Array:  # noqa: N802  # a matrix
        """All columns, where they can be listed."""
        n_s, n_u = self.channel.shape
        return np.asarray(self.channel.matrix.reshape(n_s * n_u, -1).T)

    @property
    def n_features(self) -> int:
        """Number of outputs."""
        return self.channel.n_outputs

    @cached_property
    def possible(self) -> Flags:
        """Whether some record can give the output."""
        return np.asarray(self.channel.law(np.ones(self.channel.shape)) > 0)

    def mean(self, p: Array) -> Array:
        """The law of the output."""
        return self.channel.law(p.reshape(self.channel.shape))

    def squares(self, A: Array, offset: Array) -> Array:
        """Some columns after the others."""
        total = np.zeros((len(A), int(np.prod(self.channel.shape))))
        for part, columns in self.channel.columns():
            total += (A[:, part] + offset[:, None]) ** 2 @ columns.reshape(len(columns), -1)
        return total


class UnaryMoments(Moments):
    """One feature for each block b and symbol z: whether b drew z.

    Given the record the blocks are independent, and of any two blocks at least one draws from
    o_b = other[b]. So blocks b ≠ b' with means m have covariance -(m_b - o_b)(m_b' - o_b')ᵀ, and
    the counts of single symbols determine all covariances.
    """

    def __init__(self, channel: UnaryChannel) -> None:
        """Take own and other of the channel."""
        self.own = channel.own.reshape(-1, channel.own.shape[2])
        self.other = channel.other
        self.block = channel.block.ravel()

    @cached_property
    def M(self) -> Array:  # noqa: N802  # a matrix
        """What the block of each cell draws, and what all others draw."""
        cells = np.arange(len(self.own))
        M = np.repeat(self.other[:, :, None], len(cells), axis=2)
        M[self.block, :, cells] = self.own
        return np.asarray(M.reshape(-1, len(cells)))

    @cached_property
    def is_one_bit_each(self) -> bool:
        """Whether each cell has a block of its own, with one bit that says something of it."""
        is_bit = self.other.shape == (len(self.own), 2)
        return is_bit and bool((self.own[:, 1] != self.other[:, 1]).all())

    def mean(self, p: Array) -> Array:
        """`other`, but for the share of people who belong to the block."""
        shift = np.zeros(self.other.shape)
        np.add.at(shift, self.block, p[:, None] * (self.own - self.other[self.block]))
        return np.asarray((p.sum() * self.other + shift).ravel())

    @property
    def n_features(self) -> int:
        """Number of blocks times symbols."""
        return self.other.size

    @cached_property
    def possible(self) -> Flags:
        """Whether somebody can draw the symbol in the block."""
        most = np.zeros(self.other.shape)
        np.maximum.at(most, self.block, self.own)
        is_shared = (len(self.other) > 1) & (self.other > 0)
        return np.asarray((is_shared | (most > 0)).ravel())

    def tally(self, reports: Integers, weights: Array | None) -> Array:
        """Counts of the symbols of each block; silence is -1 in a report and symbol 0 here."""
        n_blocks, n_z = self.other.shape
        check_reports(reports, (n_z - 1,), lowest=-1, columns=n_blocks)
        total = np.zeros(n_blocks * n_z)
        places = n_z * np.arange(n_blocks) + 1
        step = max(1, _CHUNK // n_blocks)
        for start in range(0, len(reports), step):
            part = slice(start, start + step)
            w = None if weights is None else np.repeat(weights[part], n_blocks)
            total += np.bincount((reports[part] + places).ravel(), w, n_blocks * n_z)
        return total

    def sandwich(self, A: Array, mean: Array) -> Array:
        """Multinomial within a block, and of rank one between blocks."""
        means, shift = self._by_block(A, mean), self._by_block(A, mean - self.other.ravel())
        within = (A * mean) @ A.T - means @ means.T
        total = shift.sum(axis=1)
        return np.asarray(within + shift @ shift.T - np.outer(total, total))

    def covariances(self, A: Array, B: Array, mean: Array) -> Array:
        """The same law."""
        (a, b), away = (self._by_block(X, mean) for X in (A, B)), mean - self.other.ravel()
        c, d = (self._by_block(X, away) for X in (A, B))
        within = (A * B) @ mean - (a * b).sum(axis=1)
        return np.asarray(within + (c * d).sum(axis=1) - c.sum(axis=1) * d.sum(axis=1))

    def _by_block(self, A: Array, x: Array) -> Array:
        """A_b·x_b of each row of A and each block."""
        return np.asarray((A * x).reshape(len(A), *self.other.shape).sum(axis=2))

    def _root(self, mean: Array) -> Array:
        values, vectors = np.linalg.eigh(self.sandwich(np.eye(self.n_features), mean))
        seen = values > 1e-13  # each block sums to 1: one direction per block has no variance
        return np.asarray((vectors[:, seen] / np.sqrt(values[seen])).T)

    def whitened(self, X: Array, mean: Array) -> Array:
        """By the eigenvectors."""
        return np.asarray(self._root(mean) @ X)

    def unwhitened(self, Y: Array, mean: Array) -> Array:
        """The same from the right."""
        return np.asarray(Y @ self._root(mean))

    def squares(self, A: Array, offset: Array) -> Array:
        """Mean squared plus variance, which adds up over the independent blocks."""
        values = A.reshape(len(A), *self.other.shape)
        mean = np.einsum("jbz,bz->jb", values, self.other)
        variance = np.einsum("jbz,bz->jb", values**2, self.other) - mean**2
        own = values[:, self.block]
        own_mean = np.einsum("jxz,xz->jx", own, self.own)
        own_variance = np.einsum("jxz,xz->jx", own**2, self.own) - own_mean**2
        elsewhere = mean.sum(axis=1, keepdims=True) - mean[:, self.block]
        noise = variance.sum(axis=1, keepdims=True) - variance[:, self.block]
        return np.asarray((elsewhere + own_mean + offset[:, None]) ** 2 + noise + own_variance)

    def _ranges(self, A: Array) -> tuple[Array, Array]:
        values = A.reshape(len(A), *self.other.shape)
        possible = self.possible.reshape(self.other.shape)
        lows, highs = (np.where(possible, values, end) for end in (np.inf, -np.inf))
        symbols = range(values.shape[2])  # few: faster one by one than along the last axis
        return (
            reduce(np.minimum, [lows[:, :, z] for z in symbols]),
            reduce(np.maximum, [highs[:, :, z] for z in symbols]),
        )

    def extremes(self, A: Array) -> tuple[Array, Array]:
        """All blocks at their extremes."""
        low, high = self._ranges(A)
        return low.sum(axis=1), high.sum(axis=1)

    def jumps(self, A: Array) -> Array:
        """The largest range of one block."""
        low, high = self._ranges(A)
        return np.asarray((high - low).max(axis=1))

    def place(self, feature: int) -> str:
        """Block and symbol, as a report has them."""
        block, symbol = divmod(feature, self.other.shape[1])
        return f"symbol {symbol - 1} in block {block}"


@singledispatch
def moments(channel: Channel) -> Moments:
    """The features of a channel's reports."""
    return ListedMoments(channel.matrix)


@moments.register
def _(channel: SetChannel) -> Moments:
    return SetMoments(channel)


@moments.register
def _(channel: UnaryChannel) -> Moments:
    return UnaryMoments(channel)


def _inverse_root(mean: Array) -> Array:
    root = np.zeros_like(mean)
    np.divide(1.0, np.sqrt(np.maximum(mean, 0.0)), out=root, where=mean > 0)
    return root


def check_reports(
    reports: Integers, sizes: tuple[int], *, lowest: int, columns: int | None = None
) -> None:
    """Refuse reports of another shape, or with codes out of range."""
    expected = "(n,)" if columns is None else f"(n, {columns})"
    if reports.ndim != (1 if columns is None else 2) or (columns and reports.shape[1] != columns):
        raise DataError(f"Expected reports of shape {expected}, got {reports.shape}.")
    if reports.dtype.kind not in "iu":
        raise DataError(f"Expected reports as integer codes, got {reports.dtype}.")
    if reports.size and not lowest <= reports.min() <= reports.max() < sizes[0]:
        wrong = (reports < lowest) | (reports >= sizes[0])
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise DataError(
            f"Expected reports from {lowest} to {sizes[0] - 1}, got {reports[place]} in row "
            f"{place[0]}; are they reports of this protocol?"
        )
