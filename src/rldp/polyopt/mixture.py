"""The relaxed programme, in which every block mixes its vertices by itself."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from rldp.optimise.master import Optimum, Programme

Array = NDArray[np.float64]

_TOTAL, _MASS, _LOSS = np.arange(3, dtype=np.int32)  # columns t, p and -p log(p/t) of a group
_TANGENTS = 5
_POLISH = 1  # further tangents at the optimum itself
_TOUCHING = 1e-6  # nats by which a tangent may be off
_MOST_ROWS, _MOST_COLUMNS = 700, 8000  # of groups, and of all
_NEGLIGIBLE = 1e-12
_HELD = 1e-9


Parts = list[tuple[Array, Array]]  # of every block: weights and vertices


class Mixed(NamedTuple):
    """The value, the price of every cell, and the blocks' mixtures of every group that is used."""

    value: float
    prices: Array
    groups: dict[Hashable, Parts]
    whole: Array  # whole columns that are used
    held: NDArray[np.bool_]  # bounds on prices that are in use: the value is too large then


class _Group(NamedTuple):
    """The place of a group among the blocks, and its first row and column."""

    place: int
    row: int
    column: int


class Mixture:
    """max Σ_g Σ_s Σ_v θ_{g,s,v} μ(v) - p_g log(p_g/t_g) + Σ θ_w μ(w) over vertices and columns w.

    Vertices of one group may be combined freely: Σ_v θ_{g,s,v} = t_g for every s, p_g is the mass
    of all its vertices, and every cell sums to 1.
    """

    def __init__(self, p_su: Array, is_bound: NDArray[np.bool_], largest: float) -> None:
        """Take P̂, the cells that count, and the largest |log p/t| that can occur."""
        self._p_su, self._is_bound, self._largest = p_su, is_bound, largest
        self._n_s, self._n_cells = p_su.shape[0], int(is_bound.sum())
        self._row = np.full(p_su.shape, -1)
        self._row[is_bound] = np.arange(self._n_cells)
        self._programme, self._n_rows = Programme(np.ones(self._n_cells)), self._n_cells
        self._owner: list[int] = []  # group and S value, -1 for a whole column, or -2
        self._held: list[Array] = []
        self._groups: dict[Hashable, _Group] = {}
        self._seen: set[tuple[Hashable, int, bytes]] = set()
        self._add_bounds()

    @property
    def is_full(self) -> bool:
        """Whether it would be solved sooner without what is not in use."""
        return len(self._owner) > _MOST_COLUMNS

    def has_room(self, group: Hashable) -> bool:
        """Whether a group is known or may still be added."""
        return group in self._groups or len(self._groups) * (self._n_s + 1) < _MOST_ROWS

    def _group(self, key: Hashable) -> _Group:
        if key not in self._groups:
            group = _Group(len(self._groups), self._n_rows, len(self._owner))
            self._groups[key] = group
            self._programme.add_rows(np.zeros(self._n_s + 1))
            self._n_rows += self._n_s + 1
            first = np.zeros((3, self._n_rows))
            first[_TOTAL, group.row : -1] = first[_MASS, -1] = -1.0
            self._programme.add_columns(first, np.array([0.0, 0.0, 1.0]))
            self._programme.free(group.column + int(_LOSS))
            self._owner += [-2] * 3
            self._held += [np.zeros(0)] * 3
            for x in np.linspace(-self._largest, self._largest, _TANGENTS):
                self._add_tangent(group, x)
        return self._groups[key]

    def expect(self, key: Hashable, columns: Array) -> None:
        """Begin a group for the vertices of these columns, whose masses it will have."""
        if key not in self._groups:
            group = self._group(key)
            masses = np.log(np.einsum("vsu,su->v", columns, self._p_su))
            for x in np.unique(np.quantile(masses, np.linspace(0, 1, _TANGENTS)).round(3)):
                self._add_tangent(group, x)

    def _add_tangent(self, group: _Group, x: float) -> None:
        """-p log(p/t) ≤ e^x t - (1 + x) p, with equality at p/t = e^x."""
        columns = np.array([_TOTAL, _MASS, _LOSS], np.int32) + np.int32(group.column)
        self._programme.add_limit(columns, np.array([-np.exp(x), 1 + x, 1.0]))
        self._n_rows += 1

    def _add_bounds(self) -> None:
        """Let every cell sum to less than 1: no price is negative then, and as a rule none is.

        Without that the prices of the first programmes are wild.
        """
        cells = np.eye(self._n_cells)
        self._bounds = len(self._owner) + np.arange(self._n_cells, dtype=np.int32)
        self._programme.add_columns(cells, np.zeros(self._n_cells))
        self._owner += [-2] * self._n_cells
        self._held += [np.zeros(0)] * self._n_cells

    def release(self, mixed: Mixed) -> bool:
        """Give up the bounds on prices that hold the optimum back; whether there are any."""
        used = self._bounds[mixed.held]
        self._programme.close(used)
        return bool(used.size)

    def add_vertices(self, key: Hashable, s: int, T: Array) -> int:
        """Add vertices of one block to a group, shape (vertices, n_u); how many are new."""
        group = self._group(key)
        keys = [(key, s, np.round(row, 9).tobytes()) for row in T]
        new = [i for i, own in enumerate(keys) if own not in self._seen and own not in keys[:i]]
        if not new:
            return 0
        self._seen.update(keys[i] for i in new)
        T = T[new]
        p = self._p_su[s]
        columns = np.zeros((len(new), group.row + self._n_s + 1))
        some = self._is_bound[s]
        columns[:, self._row[s, some]] = T[:, some]
        columns[:, group.row + s] = 1.0
        columns[:, -1] = T @ p
        self._programme.add_columns(columns, -entr(T) @ p)
        self._owner += [group.place * self._n_s + s] * len(new)
        self._held += list(T)
        return len(new)

    def add_columns(self, columns: Array) -> None:
        """Add whole columns, shape (columns, n_s, n_u)."""
        if not len(columns):
            return
        columns = columns / np.einsum("vsu,su->v", columns, self._p_su)[:, None, None]
        gains = -np.einsum("vsu,su->v", entr(columns), self._p_su)
        self._programme.add_columns(columns[:, self._is_bound], gains)
        self._owner += [-1] * len(columns)
        self._held += list(columns)

    def _touch(self, optimum: Optimum) -> bool:
        """Add tangents where the optimum lies beyond them; whether there are any."""
        is_beyond = False
        for group in self._groups.values():
            total, mass, loss = optimum.weights[group.column : group.column + 3]
            if min(total, mass) <= _NEGLIGIBLE:
                continue
            if loss > -mass * np.log(mass / total) + _TOUCHING:
                self._add_tangent(group, np.log(mass / total))
                is_beyond = True
        return is_beyond

    def solved(self) -> Mixed:
        """The optimum, with tangents where it lies."""
        optimum = self._programme.solved()
        for _ in range(_POLISH):
            if not self._touch(optimum):
                break
            optimum = self._programme.solved(after_rows=True)
        prices = np.zeros(self._p_su.shape)
        prices[self._is_bound] = optimum.prices[: self._n_cells]
        owner, used = np.array(self._owner), optimum.weights > _NEGLIGIBLE
        groups = {}
        for key, group in self._groups.items():
            if optimum.weights[group.column] > _NEGLIGIBLE:
                own = group.place * self._n_s + np.arange(self._n_s)
                which = [np.flatnonzero(used & (owner == i)) for i in own]
                if all(some.size for some in which):
                    groups[key] = [
                        (optimum.weights[some], np.array([self._held[i] for i in some]))
                        for some in which
                    ]
        some = np.flatnonzero(used & (owner == -1))
        whole = np.array([self._held[i] for i in some]).reshape(-1, *self._p_su.shape)
        held = optimum.weights[self._bounds] > _HELD
        return Mixed(optimum.value, prices, groups, whole, held)


def joined(parts: Parts, p_su: Array) -> Array:
    """Products of the blocks' mixtures with these marginals and nearly equal masses.

    Blocks are joined one after the other, the heaviest product so far with the lightest vertex.
    """
    masses = [T @ p for (_, T), p in zip(parts, p_su, strict=True)]
    spread = [
        float(w @ (mass - w @ mass / w.sum()) ** 2)
        for (w, _), mass in zip(parts, masses, strict=True)
    ]
    order = np.argsort(spread)[::-1]
    weight, mass = np.ones(1), np.zeros(1)
    choice = np.zeros((1, len(parts)), np.intp)
    for s in order:
        w, own = parts[s][0], masses[s]
        heavy, light = np.argsort(-mass), np.argsort(own)
        ends = [np.cumsum(x) / x.sum() for x in (weight[heavy], w[light])]
        cuts = np.unique(np.concatenate([[0.0], *ends]))
        length = np.diff(cuts)
        keep = length > _NEGLIGIBLE
        middle, length = ((cuts[1:] + cuts[:-1]) / 2)[keep], length[keep]
        i, k = (
            side[np.minimum(np.searchsorted(end, middle), side.size - 1)]
            for side, end in ((heavy, ends[0]), (light, ends[1]))
        )
        weight, mass, choice = length, mass[i] + own[k], choice[i]
        choice[:, s] = k
    return np.stack([T[choice[:, s]] for s, (_, T) in enumerate(parts)], axis=1)
