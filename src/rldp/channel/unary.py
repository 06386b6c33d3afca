"""Every block reports or stays silent, independently."""

from __future__ import annotations

import math
from collections import Counter
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from rldp._types import Array, Codes, Indices, Integers
from rldp.arithmetic import log, matmul
from rldp.channel.base import (
    Channel,
    Comparisons,
    IntegerParts,
    Sides,
    check_sums,
    checked,
    integer_rows,
    largest_ratio,
    largest_ratio_between,
    register,
)
from rldp.channel.sum_laws import Law, bracketing_laws, coins, expected_w_log_w
from rldp.errors import DataError
from rldp.information import distribution, divergence_sum, relative_entropy_terms

FEW_ATOMS = 2**12  # of a law behind divergences, of which there are many


@register
class UnaryChannel(Channel):
    """Every block b draws its symbol by itself: own[s, u] if (s, u) belongs to b, else other[b].

    Symbol 0 is silence. The blocks are the S values, or the cells (s, u) if there are n_s n_u.
    """

    kind = "unary"
    reports_sets = True

    def __init__(self, own: ArrayLike, other: ArrayLike) -> None:
        """Take own, shape (n_s, n_u, n_z), and other, shape (blocks, n_z); rows sum to 1."""
        self.own, self.other = checked(own, "own", 3), checked(other, "other", 2)
        n_s, n_u, n_z = self.own.shape
        if self.other.shape not in ((n_s, n_z), (n_s * n_u, n_z)):
            raise DataError(f"Expected other of shape (blocks, {n_z}), got {self.other.shape}.")
        check_sums(self.own.sum(axis=2), "own")
        check_sums(self.other.sum(axis=1), "other")

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
    def block(self) -> Indices:
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
        reference, is_shared = self.other[self.block], self.other > 0
        block_mass, ratio = self._block_masses(p_su)

        gain = divergence_sum(p_su[:, :, None], self.own, reference)
        # where other = 0 the reference of divergence_sum counts nothing: compare with the block
        alone = np.where(is_shared, 1.0, block_mass)[self.block]
        gain += divergence_sum(np.where(reference > 0, 0.0, p_su[:, :, None]), self.own, alone)

        offset, laws = _independent_laws(ratio, self.other)
        low, high = expected_w_log_w(laws, offset)
        return self._within_entropy(gain - high, gain - low, p_su)

    def divergences(self, p_su: ArrayLike) -> Array:
        """E[log(own/other) - log W] given the record, its block's symbol identifying it or not.

        Given symbol z in block b, W is V_b(z) plus the independent V of all other blocks. The law
        of these is replaced by one below it in convex order, where the mean of log W is larger.
        """
        block_mass, ratio = self._block_masses(distribution(p_su, self.shape))
        log_w = np.zeros(self.other.shape)
        others: dict[bytes, Law] = {}  # equal blocks, of which unary encoding has many, share one
        for b, row in enumerate(ratio):
            key = row.tobytes() + self.other[b].tobytes()
            if key not in others:
                rest = np.arange(self.n_blocks) != b
                offset, laws = _independent_laws(ratio[rest], self.other[rest])
                others[key] = bracketing_laws(laws, offset, FEW_ATOMS)[0]
            W = np.maximum(others[key].atoms + row[:, None], 1e-300)
            log_w[b] = matmul(log(W), others[key].masses)
        is_shared = self.other > 0
        reference = np.where(is_shared, self.other, block_mass)[self.block]
        gain = (
            relative_entropy_terms(self.own, reference)
            - self.own * np.where(is_shared, log_w, 0.0)[self.block]
        )
        return np.asarray(gain.sum(axis=2))

    def _block_masses(self, p_su: Array) -> tuple[Array, Array]:
        """Σ p own of each block and symbol, and the same over other where that is positive."""
        block_mass = np.zeros(self.other.shape)
        np.add.at(block_mass, self.block, p_su[:, :, None] * self.own)
        ratio = np.zeros(self.other.shape)
        np.divide(block_mass, self.other, out=ratio, where=self.other > 0)
        return block_mass, ratio

    @cached_property
    def _ratio(self) -> Array:
        """own/other for each cell and symbol; 1 where neither occurs, ∞ where other alone is 0."""
        other = self.other[self.block]
        ratio = np.where(self.own > 0, np.inf, 1.0)
        np.divide(self.own, other, out=ratio, where=other > 0)
        return ratio

    def comparisons(self) -> Comparisons:
        """One group for all: the rest of the word cancels, so any two symbols of two s compete.

        With a block for each cell the symbols of one s may all be the likeliest, or all the least
        likely, at once.
        """
        n_s, n_u, n_z = self.own.shape
        if self.n_blocks == n_s:
            vectors = self._ratio.transpose(2, 0, 1).reshape(n_z * n_s, n_u)
            s, symbol = np.tile(np.arange(n_s), n_z), np.repeat(np.arange(n_z), n_s)
            is_shared, is_endless = self.other.T.ravel() > 0, np.isinf(vectors)
            # 0 where neither this cell nor any other S value shows the symbol
            vectors = np.where(is_shared[:, None] | is_endless, vectors, 0.0)
            occurs = is_shared | is_endless.any(axis=1)
            vectors, s, symbol = vectors[occurs], s[occurs], symbol[occurs]
        else:
            vectors = np.concatenate([self._ratio.max(axis=2), self._ratio.min(axis=2)])
            s, symbol = np.tile(np.arange(n_s), 2), np.repeat([1, 0], n_s)
        return Comparisons(vectors, s, np.zeros_like(s), symbol)

    def output(self, comparisons: Comparisons, first: int, second: int) -> tuple[int, ...]:
        """For each block its symbol less 1: -1 for silence; the rest take their likeliest."""
        word = self.other.argmax(axis=1)
        for entry in (first, second):
            s, symbol = comparisons.s[entry], comparisons.symbol[entry]
            if self.n_blocks == self.shape[0]:
                word[s] = symbol
            else:  # the likeliest symbols of all cells of s, or the least likely
                ratio = self._ratio[s] if symbol else -self._ratio[s]
                word[self.block[s]] = ratio.argmax(axis=1)
        return tuple(int(z) - 1 for z in word)

    def pulled_in(self, t: float) -> UnaryChannel:
        """Each block mixed with what it draws for others."""
        return UnaryChannel((1 - t) * self.own + t * self.other[self.block], self.other)

    def rounded(self, bits: int) -> IntegerParts:
        """Every row of both sums to 2^bits."""
        return {"own": integer_rows(self.own, bits), "other": integer_rows(self.other, bits)}

    def plain_ratio(self) -> float:
        """Two records of one block differ by one symbol, of two blocks by two."""
        top, bottom = self._extreme_ratios
        if self.n_blocks != self.shape[0]:
            return largest_ratio_between(top.ravel(), bottom.ravel())
        within = largest_ratio(self.own.max(axis=1), self.own.min(axis=1))
        return max(within, self.ratio_over_all())

    def ratio_over_all(self) -> float:
        """Two S values differ by a symbol in a block of each."""
        top, bottom = self._extreme_ratios
        return largest_ratio_between(top.max(axis=1), bottom.min(axis=1))

    def ratio_given_u(self) -> float:
        """The same with one u for both."""
        return largest_ratio_between(*self._extreme_ratios)

    @cached_property
    def _extreme_ratios(self) -> tuple[Array, Array]:
        """The largest and the smallest own/other of each cell, each of shape (n_s, n_u)."""
        # a symbol that never occurs counts neither as likely nor as unlikely
        occurs = self.other[self.block] + self.own > 0
        return (
            np.where(occurs, self._ratio, 0.0).max(axis=2),
            np.where(occurs, self._ratio, np.inf).min(axis=2),
        )

    @property
    def naming(self) -> tuple[tuple[str, int], ...]:
        """A block, which is a value of S or a cell, and a symbol that is not silence."""
        symbols = self.other.shape[1] - 1
        if self.n_blocks == self.shape[0]:
            return ("s", self.n_blocks), ("u", symbols)
        return ("cell", self.n_blocks), ("bit", symbols)

    def bounded_vectors(self, integers: IntegerParts) -> tuple[Integers, Codes]:
        """The own symbols of each s."""
        q = integers["own"].transpose(2, 0, 1)
        return q, np.repeat(np.arange(self.shape[0])[None], q.shape[0], axis=0)

    def sides(
        self, integers: IntegerParts, comparisons: Comparisons, first: int, second: int
    ) -> Sides:
        """A symbol in the block of each, times what the other makes up there."""
        (s_1, z_1), (s_2, z_2) = (
            (int(comparisons.s[e]), int(comparisons.symbol[e])) for e in (first, second)
        )
        own, other = integers["own"], integers["other"]
        a_1, a_2 = int(other[s_2, z_2]), int(other[s_1, z_1])
        unit = float(a_1) * float(a_2)
        return Sides([s_1, z_1, s_2, z_2], a_1, own[s_1, :, z_1], a_2, own[s_2, :, z_2], unit)


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
