"""Any channel, as its matrix."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rldp._types import Array, Integers
from rldp.channel.base import (
    Channel,
    Comparisons,
    IntegerParts,
    check_sums,
    checked,
    integer_rows,
    largest_ratio,
    largest_ratio_between,
    register,
)
from rldp.information import distribution, mutual_information, relative_entropy_terms


@register
class DenseChannel(Channel):
    """Any channel, as its matrix Q[s, u, y].

    >>> DenseChannel(np.full((2, 3, 2), 0.5)).mutual_information(np.full((2, 3), 1 / 6)) < 1e-15
    True
    """

    kind = "dense"

    def __init__(self, Q: ArrayLike) -> None:
        """Take Q of shape (n_s, n_u, n_y) with rows that sum to 1."""
        self.Q = checked(Q, "Q", 3)
        check_sums(self.Q.sum(axis=2), "Q")

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

    def divergences(self, p_su: ArrayLike) -> Array:
        """Exact."""
        p_y = np.einsum("su,suy->y", distribution(p_su, self.shape), self.Q)
        return np.asarray(relative_entropy_terms(self.Q, p_y).sum(axis=2))

    def comparisons(self) -> Comparisons:
        """One group for each output, one entry for each s."""
        n_s, n_u, n_y = self.Q.shape
        vectors = self.Q.transpose(2, 0, 1).reshape(n_y * n_s, n_u)
        s, group = np.tile(np.arange(n_s), n_y), np.repeat(np.arange(n_y), n_s)
        return Comparisons(vectors, s, group, symbol=group)

    def pulled_in(self, t: float) -> DenseChannel:
        """Mixed with the mean of its rows."""
        return DenseChannel((1 - t) * self.Q + t * self.Q.mean(axis=(0, 1)))

    def rounded(self, bits: int) -> IntegerParts:
        """Every row sums to 2^bits."""
        return {"Q": integer_rows(self.Q, bits)}

    def plain_ratio(self) -> float:
        """The largest ratio within a column."""
        return largest_ratio(self.Q.max(axis=(0, 1)), self.Q.min(axis=(0, 1)))

    def ratio_over_all(self) -> float:
        """The largest entry of one s over the smallest of another."""
        return largest_ratio_between(self.Q.max(axis=1), self.Q.min(axis=1))

    def ratio_given_u(self) -> float:
        """The largest ratio within a column of one u."""
        return largest_ratio(self.Q.max(axis=0), self.Q.min(axis=0))

    def listed(self, integers: IntegerParts) -> Integers:
        """The matrix."""
        return integers["Q"]

    def reads_sensitive(self, integers: IntegerParts) -> bool:
        """Whether rows of one u differ."""
        return bool(np.ptp(integers["Q"], axis=0).any())
