"""Column generation: columns from prices, prices from columns, until the gap is closed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from rldp.optimise.master import Optimum, Programme
from rldp.polyopt.blocks import Block
from rldp.polyopt.listed import Listed

Array = NDArray[np.float64]
Progress = Callable[[float, float], None]  # nats kept so far, and what nothing can exceed

_CLOSED = 1e-9  # nats: a gap that counts as none
_AT_ONCE = 200  # columns added together
_NEGLIGIBLE = 1e-13


class Solution(NamedTuple):
    """The columns of a protocol, shape (n_s, n_u, n_y), and a bound on what any can keep."""

    Q: Array
    utility: float
    bound: float


def best_columns(
    p_su: Array,
    p_min: Array,
    epsilon: float,
    *,
    distinct: bool,
    seeds: Array | None = None,
    deadline: float = np.inf,
    progress: Progress | None = None,
) -> Solution:
    """The protocol with the most I(X;Y) at p_su among those with columns in Γ or among the seeds.

    Args:
        p_su: the distribution at which utility counts, shape (n_s, n_u).
        p_min: P^min_{u|s}, the same shape.
        epsilon: privacy level in nats.
        distinct: compare s1 ≠ s2 only.
        seeds: further columns that are private for another reason, shape (columns, n_s, n_u).
        deadline: time.monotonic() at which to stop with the best so far.
        progress: told after every round.
    """
    factor = float(np.exp(epsilon))
    blocks = [Block(m, p) for m, p in zip(p_min, p_su, strict=True)]
    master = Master(p_su, is_bound=_is_bound(blocks))
    master.add(_simple_columns(p_su.shape, factor, distinct=distinct))
    if seeds is not None:
        master.add(seeds)
    pricing = Listed(blocks, factor, distinct=distinct)
    bound = np.inf
    optimum = master.solved()
    try:
        while True:
            priced = pricing.priced(master.prices(optimum), _CLOSED, _AT_ONCE)
            bound = min(bound, optimum.value + priced.bound)
            if progress is not None:
                progress(optimum.value, bound)
            if not priced.worth.size or time.monotonic() > deadline:
                break
            master.add(priced.columns)
            optimum = master.solved()
    except KeyboardInterrupt:
        pass  # the best so far is what was asked for
    return Solution(master.protocol(optimum), optimum.value, bound)


class Master:
    """The programme max Σ θ_v μ(v), Σ θ_v v = 1 over columns v with Σ P̂ v = 1."""

    def __init__(self, p_su: Array, is_bound: NDArray[np.bool_]) -> None:
        """Take P̂ and which cells are possible at all."""
        self._p_su, self._is_bound = p_su, is_bound
        self._programme = Programme(np.ones(int(is_bound.sum())))
        self._columns: list[Array] = []

    def add(self, columns: Array) -> None:
        """Add columns of shape (columns, n_s, n_u), of any scale."""
        columns = columns / np.einsum("vsu,su->v", columns, self._p_su)[:, None, None]
        self._columns.append(columns)
        gains = -np.einsum("vsu,su->v", entr(columns), self._p_su)
        self._programme.add_columns(columns[:, self._is_bound], gains)

    def solved(self) -> Optimum:
        """The best mixture of the columns so far."""
        return self._programme.solved()

    def prices(self, optimum: Optimum) -> Array:
        """The price of every cell, shape (n_s, n_u); 0 where the cell is impossible."""
        prices = np.zeros(self._p_su.shape)
        prices[self._is_bound] = optimum.prices
        return prices

    def protocol(self, optimum: Optimum) -> Array:
        """Q[s, u, y] of the mixture; an impossible cell releases what the others of its s do."""
        some = np.flatnonzero(optimum.weights > _NEGLIGIBLE)
        Q = np.moveaxis(np.concatenate(self._columns)[some], 0, 2) * optimum.weights[some]
        p_s = self._p_su.sum(axis=1, keepdims=True)
        p_u_given_s = np.divide(self._p_su, p_s, out=np.zeros_like(self._p_su), where=p_s > 0)
        average = np.einsum("su,suy->sy", p_u_given_s, Q)
        Q = np.where(self._is_bound[:, :, None], Q, average[:, None, :])
        return np.asarray(Q / Q.sum(axis=2, keepdims=True))


def _is_bound(blocks: Sequence[Block]) -> NDArray[np.bool_]:
    return np.array([(block.m > 0) | (block.c > 0) for block in blocks])


def _simple_columns(shape: tuple[int, ...], factor: float, *, distinct: bool) -> Array:
    """The columns of GRR, and of SRR where only distinct s are compared: both lie in Γ."""
    n_s, n_u = shape
    cells = np.eye(n_s * n_u).reshape(-1, n_s, n_u)
    columns = 1 + (factor - 1) * cells
    if not distinct:
        return columns
    own = cells.max(axis=2, keepdims=True)
    return np.concatenate(
        [columns, np.where(cells > 0, factor, np.where(own > 0, 1 / factor, 1.0))]
    )
