"""The relaxed programme, in which every block mixes its vertices by itself."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from rldp.optimise.master import Programme

Array = NDArray[np.float64]

_TOTAL, _MASS, _LOSS = np.arange(3, dtype=np.int32)  # columns t, p and -p log(p/t)
_TANGENTS = 24
_POLISH = 1  # further tangents at the optimum itself
_NEGLIGIBLE = 1e-12
_HELD = 1e-9


class Mixed(NamedTuple):
    """The value, the price of every cell, and what is mixed: blocks' vertices and whole columns."""

    value: float
    prices: Array
    parts: list[tuple[Array, Array]]  # of every block: weights and vertices; empty if none is used
    columns: Array
    weights: Array
    held: NDArray[np.bool_]  # bounds on prices that are in use: the value is too large then


class Mixture:
    """max Σ_s Σ_v θ_{s,v} μ(v) - p log(p/t) + Σ θ_w μ(w) over vertices v of blocks and columns w.

    Σ_v θ_{s,v} = t for every s, p is the mass of all vertices, and every cell sums to 1.
    """

    def __init__(self, p_su: Array, is_bound: NDArray[np.bool_], largest: float) -> None:
        """Take P̂, the cells that count, and the largest log p/t that can occur."""
        self._p_su, self._is_bound = p_su, is_bound
        n_s, n_cells = p_su.shape[0], int(is_bound.sum())
        self._row = np.full(p_su.shape, -1)
        self._row[is_bound] = np.arange(n_cells)
        self._n_cells, self._n_rows = n_cells, n_cells + n_s + 1
        programme = Programme(np.concatenate([np.ones(n_cells), np.zeros(n_s + 1)]))
        first = np.zeros((3, self._n_rows))
        first[_TOTAL, n_cells:-1] = first[_MASS, -1] = -1.0
        programme.add_columns(first, np.array([0.0, 0.0, 1.0]))
        programme.free(int(_LOSS))
        self._programme = programme
        for x in 1 + np.linspace(0, largest, _TANGENTS):
            self._add_tangent(x)
        self._owner: list[int] = [-2] * 3  # an S value, or -1 for a whole column
        self._held: list[Array] = [np.zeros(0)] * 3
        self._add_bounds()
        self._seen: set[tuple[int, bytes]] = set()

    def _add_tangent(self, x: float) -> None:
        """-p log(p/t) ≤ e^{x-1} t - x p."""
        self._programme.add_limit(
            np.array([_TOTAL, _MASS, _LOSS]), np.array([-np.exp(x - 1), x, 1.0])
        )

    def _add_bounds(self) -> None:
        """Let every cell sum to less than 1: no price is negative then, and as a rule none is.

        Without that the prices of the first programmes are wild.
        """
        cells = np.zeros((self._n_cells, self._n_rows))
        np.fill_diagonal(cells, 1.0)
        self._bounds = len(self._owner) + np.arange(self._n_cells, dtype=np.int32)
        self._programme.add_columns(cells, np.zeros(self._n_cells))
        self._owner += [-2] * self._n_cells
        self._held += [np.zeros(0)] * self._n_cells

    def release(self, mixed: Mixed) -> bool:
        """Give up the bounds on prices that hold the optimum back; whether there are any."""
        used = self._bounds[mixed.held]
        self._programme.close(used)
        return bool(used.size)

    def add_vertices(self, s: int, T: Array) -> int:
        """Add vertices of one block, shape (vertices, n_u); how many are new."""
        keys = [(s, np.round(row, 9).tobytes()) for row in T]
        new = [i for i, key in enumerate(keys) if key not in self._seen and key not in keys[:i]]
        if not new:
            return 0
        self._seen.update(keys[i] for i in new)
        T = T[new]
        p = self._p_su[s]
        columns = np.zeros((len(new), self._n_rows))
        some = self._is_bound[s]
        columns[:, self._row[s, some]] = T[:, some]
        columns[:, self._n_cells + s] = 1.0
        columns[:, -1] = T @ p
        self._programme.add_columns(columns, -entr(T) @ p)
        self._owner += [s] * len(new)
        self._held += list(T)
        return len(new)

    def add_columns(self, columns: Array) -> None:
        """Add whole columns with Σ P̂ T = 1, shape (columns, n_s, n_u)."""
        if not len(columns):
            return
        rows = np.zeros((len(columns), self._n_rows))
        rows[:, : self._n_cells] = columns[:, self._is_bound]
        self._programme.add_columns(rows, -np.einsum("vsu,su->v", entr(columns), self._p_su))
        self._owner += [-1] * len(columns)
        self._held += list(columns)

    def solved(self) -> Mixed:
        """The optimum, with tangents where it lies."""
        for _ in range(_POLISH):
            optimum = self._programme.solved()
            total, mass = optimum.weights[_TOTAL], optimum.weights[_MASS]
            if total <= _NEGLIGIBLE:
                break
            self._add_tangent(1 + np.log(mass / total))
        optimum = self._programme.solved()
        prices = np.zeros(self._p_su.shape)
        prices[self._is_bound] = optimum.prices[: self._n_cells]
        used = np.flatnonzero(optimum.weights > _NEGLIGIBLE)
        used = used[used > _LOSS]
        held = optimum.weights[self._bounds] > _HELD
        owner = np.array(self._owner)[used]
        parts = [
            (optimum.weights[own], np.array([self._held[i] for i in own]))
            for own in (used[owner == s] for s in range(self._p_su.shape[0]))
        ]
        whole = used[owner == -1]
        columns = np.array([self._held[i] for i in whole]).reshape(-1, *self._p_su.shape)
        return Mixed(optimum.value, prices, parts, columns, optimum.weights[whole], held)


def joined(parts: list[tuple[Array, Array]], p_su: Array) -> Array:
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
