"""Channels Q(y|s,u), inputs first: what a person with record (s, u) reports.

    Channel
    ├── DenseChannel        any matrix Q[s, u, y]
    ├── IndependentChannel  S and U reported each by its own matrix            (IR)
    ├── ChoiceChannel       one block is reported: one's own or another        (GRR, SRR, GRR-CR)
    └── UnaryChannel        every block reports or stays silent, independently (UE, UE-CR)

A choice or unary channel has a block for each s (or each cell). It is given by `own[s, u, z]`,
the law of symbol z in the block that the person belongs to, and `other[b, z]`, the law in the
blocks that the person does not belong to, which does not depend on the person. So neither the
(n_s n_u)² entries of the one nor the (n_u + 1)^n_s outputs of the other are ever built unasked.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr

from rldp.errors import DataError, TooLargeError
from rldp.information import distribution, divergence_sum, entropy, mutual_information
from rldp.sums import Law, coins, expected_w_log_w

Array = NDArray[np.float64]

_MOST_ENTRIES = 2**27  # one gibibyte of matrix


class Channel(ABC):
    """A release channel from S × U to a finite set of outputs."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(n_s, n_u)."""

    @property
    @abstractmethod
    def n_outputs(self) -> int:
        """Number of outputs n_y."""

    @abstractmethod
    def _build(self) -> Array:
        """Q[s, u, y], built from the structure."""

    @property
    @abstractmethod
    def parts(self) -> dict[str, Array]:
        """The arrays that define the channel, under the names of the constructor's arguments."""

    @cached_property
    def matrix(self) -> Array:
        """Q[s, u, y], shape (n_s, n_u, n_y); the last axis sums to 1."""
        n_s, n_u = self.shape
        if n_s * n_u * self.n_outputs > _MOST_ENTRIES:
            raise TooLargeError(
                f"The matrix would have {n_s} × {n_u} × {_readable(self.n_outputs)} entries; "
                "use the channel itself, which never builds them."
            )
        Q = self._build()
        Q.setflags(write=False)
        return Q

    @abstractmethod
    def mutual_information_bounds(self, p_su: ArrayLike) -> tuple[float, float]:
        """Two numbers that bracket I(X;Y) at p_su; equal wherever it is computed exactly."""

    def mutual_information(self, p_su: ArrayLike) -> float:
        """I(X;Y) in nats for X ~ p_su, shape (n_s, n_u)."""
        return sum(self.mutual_information_bounds(p_su)) / 2

    @staticmethod
    def _within_entropy(low: float, high: float, p_su: Array) -> tuple[float, float]:
        # 0 ≤ I(X;Y) ≤ H(X) also where rounding says otherwise
        most = entropy(p_su)
        return min(max(0.0, low), most), min(max(0.0, high), most)


class DenseChannel(Channel):
    """Any channel, as its matrix Q[s, u, y].

    >>> DenseChannel(np.full((2, 3, 2), 0.5)).mutual_information(np.full((2, 3), 1 / 6))
    0.0
    """

    def __init__(self, Q: ArrayLike) -> None:
        """Take Q of shape (n_s, n_u, n_y) with rows that sum to 1."""
        self.Q = _checked(Q, "Q", 3)
        _check_sums(self.Q.sum(axis=2), "Q")

    @property
    def shape(self) -> tuple[int, int]:
        """(n_s, n_u)."""
        return self.Q.shape[0], self.Q.shape[1]

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return int(self.Q.shape[2])

    @property
    def parts(self) -> dict[str, Array]:
        """The matrix."""
        return {"Q": self.Q}

    def _build(self) -> Array:
        return self.Q.copy()

    def mutual_information_bounds(self, p_su: ArrayLike) -> tuple[float, float]:
        """I(X;Y), exact."""
        p_su = distribution(p_su, self.shape)
        value = mutual_information(p_su, self.Q)
        return self._within_entropy(value, value, p_su)


class IndependentChannel(Channel):
    """S and U reported independently: Q(y1, y2 | s, u) = r_s[s, y1] r_u[u, y2], Protocol alg:ir."""

    def __init__(self, r_s: ArrayLike, r_u: ArrayLike) -> None:
        """Take the two matrices, inputs first, rows summing to 1."""
        self.r_s, self.r_u = _checked(r_s, "r_s", 2), _checked(r_u, "r_u", 2)
        _check_sums(self.r_s.sum(axis=1), "r_s")
        _check_sums(self.r_u.sum(axis=1), "r_u")

    @property
    def shape(self) -> tuple[int, int]:
        """(n_s, n_u)."""
        return self.r_s.shape[0], self.r_u.shape[0]

    @property
    def n_outputs(self) -> int:
        """Pairs of outputs; the second varies fastest."""
        return int(self.r_s.shape[1] * self.r_u.shape[1])

    @property
    def parts(self) -> dict[str, Array]:
        """The two matrices."""
        return {"r_s": self.r_s, "r_u": self.r_u}

    def _build(self) -> Array:
        Q: Array = np.einsum("sa,ub->suab", self.r_s, self.r_u)
        return Q.reshape(*self.shape, -1)

    def mutual_information_bounds(self, p_su: ArrayLike) -> tuple[float, float]:
        """H(Y) - H(Y1|S) - H(Y2|U), exact."""
        p_su = distribution(p_su, self.shape)
        noise_s = p_su.sum(axis=1) @ entr(self.r_s).sum(axis=1)
        noise_u = p_su.sum(axis=0) @ entr(self.r_u).sum(axis=1)
        value = float(entr(self.r_s.T @ p_su @ self.r_u).sum() - noise_s - noise_u)
        return self._within_entropy(value, value, p_su)


class ChoiceChannel(Channel):
    """One block b is chosen: Q(b, z | s, u) = own[s, u, z] if b = s, else other[b, z]."""

    def __init__(self, own: ArrayLike, other: ArrayLike) -> None:
        """Take own, shape (n_s, n_u, n_z), and other, shape (n_s, n_z)."""
        self.own, self.other = _checked(own, "own", 3), _checked(other, "other", 2)
        if self.other.shape != (self.own.shape[0], self.own.shape[2]):
            raise DataError(f"Expected other of shape (n_s, n_z), got {self.other.shape}.")
        elsewhere = self.other.sum() - self.other.sum(axis=1)
        _check_sums(self.own.sum(axis=2) + elsewhere[:, None], "own and other")

    @property
    def shape(self) -> tuple[int, int]:
        """(n_s, n_u)."""
        return self.own.shape[0], self.own.shape[1]

    @property
    def n_outputs(self) -> int:
        """Pairs (b, z); the symbol z varies fastest."""
        return self.other.size

    @property
    def parts(self) -> dict[str, Array]:
        """Own and other."""
        return {"own": self.own, "other": self.other}

    def _build(self) -> Array:
        n_s, n_u = self.shape
        Q = np.broadcast_to(self.other, (n_s, n_u, *self.other.shape)).copy()
        s = np.arange(n_s)
        Q[s, :, s] = self.own
        return Q.reshape(n_s, n_u, -1)

    def mutual_information_bounds(self, p_su: ArrayLike) -> tuple[float, float]:
        """I(X;Y), exact, from the blocks."""
        p_su = distribution(p_su, self.shape)
        absent = 1 - p_su.sum(axis=1, keepdims=True)
        p_y = np.einsum("su,suz->sz", p_su, self.own) + absent * self.other
        value = divergence_sum(p_su[:, :, None], self.own, p_y[:, None, :])
        value += divergence_sum(absent, self.other, p_y)
        return self._within_entropy(value, value, p_su)


class UnaryChannel(Channel):
    """Every block b draws its symbol by itself: own[s, u] if (s, u) belongs to b, else other[b].

    Symbol 0 is silence. The blocks are the S values, or the cells (s, u) if there are n_s n_u.
    """

    def __init__(self, own: ArrayLike, other: ArrayLike) -> None:
        """Take own, shape (n_s, n_u, n_z), and other, shape (blocks, n_z); rows sum to 1."""
        self.own, self.other = _checked(own, "own", 3), _checked(other, "other", 2)
        n_s, n_u, n_z = self.own.shape
        if self.other.shape not in ((n_s, n_z), (n_s * n_u, n_z)):
            raise DataError(f"Expected other of shape (blocks, {n_z}), got {self.other.shape}.")
        _check_sums(self.own.sum(axis=2), "own")
        _check_sums(self.other.sum(axis=1), "other")

    @property
    def shape(self) -> tuple[int, int]:
        """(n_s, n_u)."""
        return self.own.shape[0], self.own.shape[1]

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return int(self.other.shape[0])

    @property
    def n_outputs(self) -> int:
        """All words of one symbol for each block; the last block varies fastest."""
        return math.prod([self.other.shape[1]] * self.n_blocks)

    @property
    def parts(self) -> dict[str, Array]:
        """Own and other."""
        return {"own": self.own, "other": self.other}

    @cached_property
    def block(self) -> NDArray[np.intp]:
        """The block of each cell, shape (n_s, n_u)."""
        n_s, n_u = self.shape
        if self.n_blocks == n_s:
            return np.repeat(np.arange(n_s), n_u).reshape(n_s, n_u)
        return np.arange(n_s * n_u).reshape(n_s, n_u)

    def _build(self) -> Array:
        n_s, n_u = self.shape
        Q = np.ones((n_s, n_u, 1))
        for b in range(self.n_blocks):
            factor = np.where((self.block == b)[:, :, None], self.own, self.other[b])
            Q = (Q[..., None] * factor[:, :, None, :]).reshape(n_s, n_u, -1)
        return Q

    def mutual_information_bounds(self, p_su: ArrayLike) -> tuple[float, float]:
        """I(X;Y) bracketed from both sides, at any p_su, without its outputs.

        Against the law in which every block draws from `other`, Q(·|s,u) has density
        own[s,u,z]/other[b,z] and P_Y has density W = Σ_b V_b with independent V_b, so that
        I = Σ p own log(own/other) - E[W log W]. A symbol that `other` never draws identifies its
        block, and is counted apart.
        """
        p_su = distribution(p_su, self.shape)
        weight = p_su[:, :, None] * self.own
        reference = self.other[self.block]
        block_mass = np.zeros(self.other.shape)
        np.add.at(block_mass, self.block, weight)
        is_shared = self.other > 0
        ratio = np.zeros(self.other.shape)
        np.divide(block_mass, self.other, out=ratio, where=is_shared)

        gain = divergence_sum(p_su[:, :, None], self.own, reference)
        # where other = 0 the reference of divergence_sum counts nothing: compare with the block
        alone = np.where(is_shared, 1.0, block_mass)[self.block]
        gain += divergence_sum(np.where(reference > 0, 0.0, p_su[:, :, None]), self.own, alone)

        offset, laws = _independent_laws(ratio, self.other)
        low, high = expected_w_log_w(laws, offset)
        return self._within_entropy(gain - high, gain - low, p_su)


def _independent_laws(values: Array, chances: Array) -> tuple[float, list[Law]]:
    """The laws of rows of values drawn with rows of chances, less their minima, and those summed.

    Equal coins, of which unary encoding has many, come as one law.
    """
    offset, laws, piles = 0.0, [], Counter[tuple[float, float]]()
    for row, chance in zip(values, chances, strict=True):
        atoms, place = np.unique(row[chance > 0], return_inverse=True)
        masses = np.asarray(np.bincount(place, chance[chance > 0]), dtype=float)
        offset += float(atoms[0])
        if atoms.size == 2:
            piles[float(atoms[1] - atoms[0]), float(masses[1])] += 1
        elif atoms.size > 2:
            laws.append(Law(atoms - atoms[0], masses))
    return offset, laws + [coins(*coin, n) for coin, n in piles.items()]


def _checked(values: ArrayLike, name: str, n_axes: int) -> Array:
    """A private float copy with probabilities only."""
    a = np.array(values, dtype=float)
    if a.ndim != n_axes or 0 in a.shape:
        raise DataError(f"Expected {name} with {n_axes} non-empty axes, got shape {a.shape}.")
    bad = np.argwhere(~((a >= 0) & (a <= 1 + 1e-9)))
    if bad.size:
        place = tuple(int(i) for i in bad[0])
        raise DataError(f"Expected probabilities in {name}, got {a[place]} at {place}.")
    a.setflags(write=False)
    return a


def _check_sums(sums: Array, name: str) -> None:
    worst = np.unravel_index(int(np.abs(sums - 1).argmax()), sums.shape)
    if abs(sums[worst] - 1) > 1e-9:
        place = tuple(int(i) for i in worst)
        raise DataError(f"Expected {name} to sum to 1 at input {place}, got {sums[worst]:.12g}.")


def _readable(count: int) -> str:
    return str(count) if count < 10**12 else f"about 10^{len(str(count)) - 1}"
