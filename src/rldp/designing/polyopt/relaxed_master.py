"""The relaxed restricted master, in which every block chooses its vertices independently.

For one τ and s* any product of vertices is a column, and there are far too many products. So each
block has weights on its own vertices, with one total for all blocks of a group. This counts the
masses of the products as equal, which overestimates their gain: the master is a relaxation.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np
from scipy.special import entr

from rldp._types import Array, Flags
from rldp.arithmetic import exp, log, matmul
from rldp.designing.polyopt.coupling import Marginals
from rldp.designing.polyopt.settings import SETTINGS
from rldp.designing.solvers.linear import Optimum, Programme

_TOTAL, _MASS, _LOSS = np.arange(3, dtype=np.int32)  # columns t, p and -p log(p/t) of a group
_WHOLE, _AUXILIARY = -1, -2  # in place of the block that a column of the programme belongs to


class RelaxedOptimum(NamedTuple):
    """The value, the dual of every cell, and the marginals of every group that is used."""

    value: float
    duals: Array
    groups: dict[Hashable, Marginals]
    columns: Array  # whole columns that are used
    is_limited: Flags  # limits on duals that are active: the value is too large then


class _Group(NamedTuple):
    """The place of a group among the blocks, and its first row and column."""

    place: int
    row: int
    column: int


class RelaxedMaster:
    """max Σ_g Σ_s Σ_v θ_{g,s,v} μ(v) - p_g log(p_g/t_g) + Σ θ_w μ(w) over vertices and columns w.

    Vertices of one group may be combined freely: Σ_v θ_{g,s,v} = t_g for every s, p_g is the mass
    of all its vertices, and every cell sums to 1. The concave term -p log(p/t) is approximated from
    above by tangents.
    """

    def __init__(self, p_su: Array, has_row: Flags, largest: float) -> None:
        """Take P̂, the cells that have a row, and the largest |log p/t| that can occur."""
        self._p_su, self._has_row, self._largest = p_su, has_row, largest
        self._n_s, self._n_cells = p_su.shape[0], int(has_row.sum())
        self._row = np.full(p_su.shape, -1)
        self._row[has_row] = np.arange(self._n_cells)
        self._programme, self._n_rows = Programme(np.ones(self._n_cells)), self._n_cells
        self._owner: list[int] = []  # of every column: group and S value, _WHOLE or _AUXILIARY
        self._content: list[Array] = []  # the vertex or whole column that it stands for
        self._groups: dict[Hashable, _Group] = {}
        self._known: set[tuple[Hashable, int, bytes]] = set()
        self._add_dual_limits()

    def has_room(self, group: Hashable) -> bool:
        """Whether a group is known or may still be added."""
        n_rows = len(self._groups) * (self._n_s + 1)
        return group in self._groups or n_rows < SETTINGS.relaxed.most_group_rows

    def _group(self, key: Hashable) -> _Group:
        if key not in self._groups:
            group = _Group(len(self._groups), self._n_rows, len(self._owner))
            self._groups[key] = group
            self._programme.add_rows(np.zeros(self._n_s + 1))
            self._n_rows += self._n_s + 1
            first = np.zeros((3, self._n_rows))
            first[_TOTAL, group.row : -1] = first[_MASS, -1] = -1.0
            self._programme.add_columns(first, np.array([0.0, 0.0, 1.0]))
            self._programme.set_free(group.column + int(_LOSS))
            self._owner += [_AUXILIARY] * 3
            self._content += [np.zeros(0)] * 3
            for x in np.linspace(-self._largest, self._largest, SETTINGS.relaxed.tangents):
                self._add_tangent(group, x)
        return self._groups[key]

    def begin_group(self, key: Hashable, columns: Array) -> None:
        """Begin a group, if it is new, with tangents at the masses of these columns."""
        if key not in self._groups:
            group = self._group(key)
            masses = log(np.einsum("vsu,su->v", columns, self._p_su))
            shares = np.linspace(0, 1, SETTINGS.relaxed.tangents)
            for x in np.unique(np.quantile(masses, shares).round(3)):
                self._add_tangent(group, x)

    def _add_tangent(self, group: _Group, x: float) -> None:
        """-p log(p/t) ≤ e^x t - (1 + x) p, with equality at p/t = e^x."""
        columns = np.array([_TOTAL, _MASS, _LOSS], np.int32) + np.int32(group.column)
        self._programme.add_limit(columns, np.array([-exp(x), 1 + x, 1.0]))
        self._n_rows += 1

    def _add_dual_limits(self) -> None:
        """Let every cell sum to less than 1, so that no dual is negative; as a rule none is.

        Without these limits the duals of the first rounds are far off.
        """
        cells = np.eye(self._n_cells)
        self._dual_limits = len(self._owner) + np.arange(self._n_cells, dtype=np.int32)
        self._programme.add_columns(cells, np.zeros(self._n_cells))
        self._owner += [_AUXILIARY] * self._n_cells
        self._content += [np.zeros(0)] * self._n_cells

    def lift_dual_limits(self, optimum: RelaxedOptimum) -> bool:
        """Remove the limits on duals that are active at an optimum; whether there are any."""
        active = self._dual_limits[optimum.is_limited]
        self._programme.fix_at_zero(active)
        return bool(active.size)

    def add_vertices(self, key: Hashable, s: int, T: Array) -> int:
        """Add vertices of one block to a group, shape (vertices, n_u); how many are new."""
        group = self._group(key)
        digits = SETTINGS.tolerances.digits
        keys = [(key, s, np.round(row, digits).tobytes()) for row in T]
        new = [i for i, own in enumerate(keys) if own not in self._known and own not in keys[:i]]
        if not new:
            return 0
        self._known.update(keys[i] for i in new)
        T = T[new]
        p = self._p_su[s]
        columns = np.zeros((len(new), group.row + self._n_s + 1))
        some = self._has_row[s]
        columns[:, self._row[s, some]] = T[:, some]
        columns[:, group.row + s] = 1.0
        columns[:, -1] = matmul(T, p)
        self._programme.add_columns(columns, matmul(-entr(T), p))
        self._owner += [group.place * self._n_s + s] * len(new)
        self._content += list(T)
        return len(new)

    def add_columns(self, columns: Array) -> None:
        """Add whole columns, shape (columns, n_s, n_u)."""
        if not len(columns):
            return
        columns = columns / np.einsum("vsu,su->v", columns, self._p_su)[:, None, None]
        gains = -np.einsum("vsu,su->v", entr(columns), self._p_su)
        self._programme.add_columns(columns[:, self._has_row], gains)
        self._owner += [_WHOLE] * len(columns)
        self._content += list(columns)

    def _add_missing_tangents(self, optimum: Optimum) -> bool:
        """Add tangents where the optimum lies above the concave term; whether there are any."""
        is_above = False
        for group in self._groups.values():
            total, mass, loss = optimum.weights[group.column : group.column + 3]
            if min(total, mass) <= SETTINGS.tolerances.weight:
                continue
            if loss > -mass * log(mass / total) + SETTINGS.large.least_reduced_cost:
                self._add_tangent(group, log(mass / total))
                is_above = True
        return is_above

    def solved(self) -> RelaxedOptimum:
        """The optimum, with tangents where it lies."""
        optimum = self._programme.solved()
        if self._add_missing_tangents(optimum):
            optimum = self._programme.solved(after_rows=True)
        duals = np.zeros(self._p_su.shape)
        duals[self._has_row] = optimum.duals[: self._n_cells]
        owner, used = np.array(self._owner), optimum.weights > SETTINGS.tolerances.weight
        groups = {}
        for key, group in self._groups.items():
            if optimum.weights[group.column] > SETTINGS.tolerances.weight:
                own = group.place * self._n_s + np.arange(self._n_s)
                which = [np.flatnonzero(used & (owner == i)) for i in own]
                if all(some.size for some in which):
                    groups[key] = [
                        (optimum.weights[some], np.array([self._content[i] for i in some]))
                        for some in which
                    ]
        some = np.flatnonzero(used & (owner == _WHOLE))
        columns = np.array([self._content[i] for i in some]).reshape(-1, *self._p_su.shape)
        is_limited = optimum.weights[self._dual_limits] > SETTINGS.tolerances.weight
        return RelaxedOptimum(optimum.value, duals, groups, columns, is_limited)
