"""One block is reported: the person's own or another."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rldp._types import Array, Codes, Integers
from rldp.channel.base import (
    ANYONE,
    Channel,
    Comparisons,
    IntegerParts,
    check_sums,
    checked,
    in_units,
    integer_rows,
    largest_ratio,
    register,
)
from rldp.errors import DataError
from rldp.information import distribution, divergence_sum, relative_entropy_terms


@register
class ChoiceChannel(Channel):
    """One block b is chosen: Q(b, z | s, u) = own[s, u, z] if b = s, else other[b, z]."""

    kind = "choice"

    def __init__(self, own: ArrayLike, other: ArrayLike) -> None:
        """Take own, shape (n_s, n_u, n_z), and other, shape (n_s, n_z)."""
        self.own, self.other = checked(own, "own", 3), checked(other, "other", 2)
        if self.other.shape != (self.own.shape[0], self.own.shape[2]):
            raise DataError(f"Expected other of shape (n_s, n_z), got {self.other.shape}.")
        elsewhere = self.other.sum() - self.other.sum(axis=1)
        check_sums(self.own.sum(axis=2) + elsewhere[:, None], "own and other")

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
        return _listed(self.own, self.other)

    def mutual_information_bounds(self, p_su: ArrayLike) -> tuple[float, float]:
        """I(X;Y), exact, from the blocks."""
        p_su = distribution(p_su, self.shape)
        absent, p_y = self._law(p_su)
        value = divergence_sum(p_su[:, :, None], self.own, p_y[:, None, :])
        value += divergence_sum(absent, self.other, p_y)
        return self._within_entropy(value, value, p_su)

    def divergences(self, p_su: ArrayLike) -> Array:
        """Exact, from the blocks."""
        p_y = self._law(distribution(p_su, self.shape))[1]
        elsewhere = relative_entropy_terms(self.other, p_y).sum(axis=1)
        elsewhere = np.where(np.eye(elsewhere.size, dtype=bool), 0.0, elsewhere).sum(axis=1)
        own = relative_entropy_terms(self.own, p_y[:, None, :]).sum(axis=2)
        return np.asarray(own + elsewhere[:, None])

    def _law(self, p_su: Array) -> tuple[Array, Array]:
        """The mass outside each block, and P_Y."""
        absent = 1 - p_su.sum(axis=1, keepdims=True)
        return absent, np.einsum("su,suz->sz", p_su, self.own) + absent * self.other

    def comparisons(self) -> Comparisons:
        """One group for each (b, z): those with s = b against everyone else."""
        n_s, n_u, n_z = self.own.shape
        own = self.own.transpose(0, 2, 1).reshape(n_s * n_z, n_u)
        other = np.repeat(self.other.reshape(-1, 1), n_u, axis=1)
        s = np.concatenate([np.repeat(np.arange(n_s), n_z), np.full(n_s * n_z, ANYONE)])
        group = np.tile(np.arange(n_s * n_z), 2)
        return Comparisons(np.concatenate([own, other]), s, group, symbol=group)

    def pulled_in(self, t: float) -> ChoiceChannel:
        """Mixed with a choice in proportion to `other`, the same for every record."""
        made_up = self.other / self.other.sum()
        return ChoiceChannel(
            (1 - t) * self.own + t * made_up[:, None, :], (1 - t) * self.other + t * made_up
        )

    def rounded(self, bits: int) -> IntegerParts:
        """Every row of own sums to what the other blocks leave of 2^bits."""
        other = in_units(self.other, bits)
        left = 2**bits - (other.sum() - other.sum(axis=1))
        total = np.repeat(left[:, None], self.shape[1], axis=1)
        return {"own": integer_rows(self.own, bits, total), "other": other}

    def plain_ratio(self) -> float:
        """The largest ratio within a column."""
        top, bottom = self.own.max(axis=1), self.own.min(axis=1)
        return largest_ratio(np.maximum(top, self.other), np.minimum(bottom, self.other))

    def ratio_over_all(self) -> float:
        """The block of s against what others make up in it."""
        if len(self.other) == 1:
            return 1.0  # there are no others
        top, bottom = self.own.max(axis=1), self.own.min(axis=1)
        return max(largest_ratio(top, self.other), largest_ratio(self.other, bottom))

    def ratio_given_u(self) -> float:
        """The same: what others make up does not depend on u."""
        return self.ratio_over_all()

    @classmethod
    def row_sums(cls, integers: IntegerParts) -> IntegerParts:
        """A row of own with all blocks of other but its own."""
        other = integers["other"].sum(axis=-1)
        return {"own": integers["own"].sum(axis=-1) + (other.sum() - other)[:, None]}

    def listed(self, integers: IntegerParts) -> Integers:
        """All pairs y = (b, z): other, with the own block in its place."""
        return _listed(integers["own"], integers["other"])

    @property
    def naming(self) -> tuple[tuple[str, int], ...]:
        """A block and a symbol."""
        return ("s", self.shape[0]), ("u", self.other.shape[1])

    def bounded_vectors(self, integers: IntegerParts) -> tuple[Integers, Codes]:
        """The own blocks: what others make up does not depend on u."""
        q = integers["own"].transpose(0, 2, 1)
        return q, np.repeat(np.arange(self.shape[0])[:, None], q.shape[1], axis=1)


def _listed(own: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
    n_s, n_u, _ = own.shape
    Q = np.broadcast_to(other, (n_s, n_u, *other.shape)).copy()
    s = np.arange(n_s)
    Q[s, :, s] = own
    return Q.reshape(n_s, n_u, -1)
