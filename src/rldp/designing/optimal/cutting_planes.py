"""The cone of private columns from outside: linear inequalities that all of them satisfy.

A column that breaks a guarantee for one pair of conditionals breaks one linear inequality, which
cuts it off. A set needs to tell its worst conditionals only. Inequalities hold for every private
column, so they are kept for all objectives.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rldp._types import Array, Flags, Indices
from rldp.arithmetic import matmul
from rldp.designing.optimal.privacy_cones import Seen
from rldp.designing.solvers.linear import Optimum, Programme
from rldp.uncertainty import AllDistributions, ConfidenceSet, Guarantee, KnownDistribution

_LARGEST = 1e12  # entry of a column that no guarantee and no record limits
_LARGEST_FACTOR = 1e9  # e^level beyond which an inequality is left out: the solver refuses it
_ROUNDS = 60  # of cutting, at most
_BROKEN = 1e-8  # of a column's size


class Cuts:
    """max c·T over T ≥ 0 with weights·T = 1 and all inequalities so far."""

    def __init__(self, guarantees: Sequence[Guarantee], variable: Indices, weights: Array) -> None:
        """Take the guarantees, the index of the variable T[s, u], and the weights of variables."""
        self._seen = [Seen.of(g, variable) for g in guarantees]
        self._weights = weights.ravel()
        self.rows = np.zeros((0, weights.size))  # of inequalities row·T ≤ 0
        self._programme = Programme(np.zeros(weights.size))
        self._programme.add_columns(self._weights[None], np.zeros(1))
        self._programme.set_free(0)
        for sign in (1.0, -1.0):
            self._programme.add_columns(sign * np.eye(weights.size), np.zeros(weights.size))
        self.highest = largest_entries(guarantees, self._weights)

    def best(self, c: Array) -> Array:
        """The best column, after as many cuts as needed; it may lie slightly outside the cone."""
        c = c / max(float(np.abs(c).max()), 1e-300)  # the solver takes large numbers for infinite
        for _ in range(_ROUNDS):
            T = self.maximum(c).weights
            if not self.cut(T[None], _BROKEN).any():
                break
        return T

    def maximum(self, c: Array) -> Optimum:
        """The best column under the inequalities so far."""
        found = self._solved(c, np.zeros(c.size), self.highest)
        assert found is not None  # the constant column satisfies all inequalities
        return found

    def maximum_within(self, c: Array, low: Array, high: Array) -> Optimum | None:
        """The same with every entry between limits, None where nothing is.

        Its value is a bound that holds whatever the solver's tolerances are: the dual value of
        the solver's multipliers, clipped so that they are feasible.
        """
        found = self._solved(c, low, high)
        return None if found is None else found._replace(value=self._dual(c, low, high, found))

    def _solved(self, c: Array, low: Array, high: Array) -> Optimum | None:
        """max c·T by its dual, which has few rows: inequalities are columns y ≥ 0 of it.

        It is the least y_0 + high·p - low·q with y_0 weights + Σ y_i row_i + p - q = c.
        """
        gains = np.concatenate([[-1.0], -high, low, np.zeros(len(self.rows))])
        self._programme.set_row_values(c)
        self._programme.set_gains(gains)
        found = self._programme.solved_if_bounded()
        if found is None:
            return None
        T = np.clip(-found.duals, low, high)
        y = np.delete(found.weights, slice(1, 1 + 2 * c.size))
        return Optimum(-found.value, y, T)

    def _dual(self, c: Array, low: Array, high: Array, found: Optimum) -> float:
        """y_0 + Σ max(r·low, r·high) for the reduced costs r = c - y_0 weights - Σ y_i row_i."""
        mass, *others = found.duals
        reduced = c - mass * self._weights
        size = np.abs(c) + abs(mass) * self._weights
        if others:
            y = np.maximum(others, 0.0)
            reduced = reduced - matmul(y, self.rows)
            size = size + matmul(y, np.abs(self.rows))
        # what rounding can have done to the sums
        error = 4 * np.finfo(float).eps * (len(others) + 3) * size
        reached = np.maximum((reduced + error) * low, (reduced + error) * high)
        rounding = np.finfo(float).eps * (c.size + 2) * (abs(mass) + np.abs(reached).sum())
        return float(mass + reached.sum() + rounding)

    def cut(self, columns: Array, least: Array | float) -> Flags:
        """Add what columns, shape (n, variables), break by more than this part of their size."""
        is_broken = np.zeros(len(columns), bool)
        for seen in self._seen:
            is_broken |= self._cut(seen, columns, least)
        return is_broken

    def _cut(self, seen: Seen, columns: Array, least: Array | float) -> Flags:
        guarantee, variable = seen
        told = guarantee.is_promised_pair & (guarantee.factors <= _LARGEST_FACTOR)
        if not told.any():
            return np.zeros(len(columns), bool)
        F, T, pairs = guarantee.uncertainty, columns[:, variable], np.argwhere(told).T
        limit = np.broadcast_to(least * columns.max(axis=1), len(T))
        # most pairs keep their level even where both means vary apart, which is quick to see
        low, high = F.mean_range(T.reshape(-1, T.shape[2]), np.tile(np.arange(T.shape[1]), len(T)))
        low, high = low.reshape(T.shape[:2]), high.reshape(T.shape[:2])
        apart = high[:, pairs[0]] - guarantee.factors[tuple(pairs)] * low[:, pairs[1]]
        of, pair = np.nonzero(apart > limit[:, None])
        if not of.size:
            return np.zeros(len(T), bool)
        s_1, s_2 = pairs[:, pair]
        T_1, T_2, factor = T[of, s_1], T[of, s_2], guarantee.factors[s_1, s_2]
        R_1, R_2 = F.worst_conditionals(T_1, s_1, T_2, s_2, factor)
        excess = (R_1 * T_1).sum(axis=1) - factor * (R_2 * T_2).sum(axis=1)
        broken = excess > limit[of]
        rows = np.zeros((int(broken.sum()), columns.shape[1]))
        for row, i in zip(rows, np.flatnonzero(broken), strict=True):
            np.add.at(row, variable[s_1[i]], R_1[i])
            np.add.at(row, variable[s_2[i]], -factor[i] * R_2[i])
        if len(rows):
            self._programme.add_columns(rows, np.zeros(len(rows)))
        self.rows = np.concatenate([self.rows, rows])
        return np.isin(np.arange(len(T)), of[broken])


def largest_entries(guarantees: Sequence[Guarantee], weights: Array) -> Array:
    """A bound on every entry of a private column T with weights·T = 1.

    It is 1/weight where that is finite. And in a set around P̂ the conditional R of s that attains
    P^max_{u|s} occurs together with P̂_{U|s'}, so P^max_{u|s} T[s, u] ≤ R·T_s ≤ e^E[s,s'] / P̂_s'.
    """
    highest = np.full(weights.size, _LARGEST)
    np.divide(1.0, weights, out=highest, where=weights > 1 / _LARGEST)
    for guarantee in guarantees:
        F, table = guarantee.uncertainty, guarantee.table
        is_around = isinstance(F, ConfidenceSet | AllDistributions | KnownDistribution)
        if guarantee.knows or not is_around or not np.array_equal(table.p_su.ravel(), weights):
            continue
        p_max, p_s = F.conditional_bounds[1], table.p_s
        factors = np.where(p_s > 0, guarantee.factors, np.inf) / np.where(p_s > 0, p_s, 1.0)
        limit = np.full(p_max.shape, _LARGEST)
        np.divide(factors.min(axis=1)[:, None], p_max, out=limit, where=p_max > 0)
        highest = np.minimum(highest, limit.ravel())
    return np.minimum(highest * (1 + 1e-9), _LARGEST)
