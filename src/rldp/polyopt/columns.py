"""The mixture of whole columns: θ_v ≥ 0 with Σ θ_v v = 1 is a protocol with outputs θ_v v."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, rel_entr

from rldp.optimise.master import Optimum, Programme
from rldp.polyopt.blocks import Block

Array = NDArray[np.float64]
Progress = Callable[[float, float], None]  # nats kept so far, and what nothing can exceed

_NEGLIGIBLE = 1e-12
_RARE = 1e-10  # below, units of 2^-62 are so coarse that the proof costs more than the output
_LEAST_UNIT = 1e-8
_LARGEST = 1e12  # entry of a column


class Master:
    """The programme max Σ θ_v μ(v), Σ θ_v v = 1 over columns v with Σ P̂ v = 1."""

    def __init__(
        self,
        p_su: Array,
        is_bound: NDArray[np.bool_],
        gains: Callable[[Array], Array] | None = None,
    ) -> None:
        """Take P̂, which cells are possible at all, and μ if it is not that of I(X;Y) at P̂."""
        self._p_su, self.is_bound = p_su, is_bound
        self.gains = gains or self._informations
        self._programme = Programme(np.ones(int(is_bound.sum())))
        self.unit = 1.0  # nats
        self._columns: list[Array] = []  # scaled to Σ P̂ v = 1 where that can be

    def add(self, columns: Array) -> None:
        """Add columns of shape (columns, n_s, n_u), of any scale; those of zeros say nothing."""
        columns = columns[columns.max(axis=(1, 2)) > 0]
        if not len(columns):
            return
        # entries on cells without records can be huge beside Σ P̂ v
        mass = np.einsum("vsu,su->v", columns, self._p_su)
        mass = np.maximum(mass, columns.max(axis=(1, 2)) / _LARGEST)
        columns = columns / mass[:, None, None]
        self._columns.append(columns)
        gains = self.gains(columns)
        if not self._columns[:-1]:
            # at small ε all gains are small: the solver's tolerances shall be small beside them
            self.unit = float(np.clip(np.abs(gains).max(), _LEAST_UNIT, 1.0))
        self._programme.add_columns(columns[:, self.is_bound], gains / self.unit)

    def _informations(self, columns: Array) -> Array:
        mass = np.einsum("vsu,su->v", columns, self._p_su)
        return np.asarray(entr(mass) - np.einsum("vsu,su->v", entr(columns), self._p_su))

    @property
    def columns(self) -> Array:
        """All columns so far, with Σ P̂ v = 1."""
        columns = np.concatenate(self._columns)
        mass = np.einsum("vsu,su->v", columns, self._p_su)
        return np.asarray(columns / mass[:, None, None])

    def solved(self) -> Optimum:
        """The best mixture of the columns so far."""
        value, prices, weights = self._programme.solved()
        return Optimum(value * self.unit, prices * self.unit, weights)

    def prices(self, optimum: Optimum) -> Array:
        """The price of every cell, shape (n_s, n_u); 0 where the cell is impossible."""
        prices = np.zeros(self._p_su.shape)
        prices[self.is_bound] = optimum.prices
        return prices

    def protocol(self, optimum: Optimum) -> Array:
        """Q[s, u, y] of the mixture; an impossible cell releases what the others of its s do."""
        some = np.flatnonzero(optimum.weights > _NEGLIGIBLE)
        columns = np.concatenate(self._columns)[some]
        weights = optimum.weights[some]
        # the solver's equations hold to its tolerance only; small ε asks for more
        A = columns[:, self.is_bound].T
        weights = weights + np.linalg.lstsq(A, 1 - A @ weights)[0]
        # what is left of a column that is not needed is too rare to be proved
        is_left = weights > _NEGLIGIBLE
        Q = np.moveaxis(columns[is_left], 0, 2) * weights[is_left]
        p_s = self._p_su.sum(axis=1, keepdims=True)
        p_u_given_s = np.divide(self._p_su, p_s, out=np.zeros_like(self._p_su), where=p_s > 0)
        average = np.einsum("su,suy->sy", p_u_given_s, Q)
        Q = np.where(self.is_bound[:, :, None], Q, average[:, None, :])
        return self._without_rare(Q / Q.sum(axis=2, keepdims=True))

    def _without_rare(self, Q: Array) -> Array:
        """Release the output that says most nearly the same in place of one that hardly ever comes.

        That is done to the output alone, so what was private remains so.
        """
        is_rare = Q.max(axis=(0, 1)) < _RARE
        if not is_rare.any():
            return np.asarray(Q)
        joint = (Q * self._p_su[:, :, None])[self._p_su > 0]
        mass = joint.sum(axis=0)
        given = np.divide(joint, mass, out=np.zeros_like(joint), where=mass > 0)
        lost = rel_entr(given[:, is_rare, None], given[:, None, ~is_rare]).sum(axis=0)
        kept = Q[:, :, ~is_rare]
        for y, nearest in zip(np.flatnonzero(is_rare), lost.argmin(axis=1), strict=True):
            kept[:, :, nearest] += Q[:, :, y]
        return np.asarray(kept)


def is_bound(blocks: Sequence[Block]) -> NDArray[np.bool_]:
    """The cells that are possible at all, shape (n_s, n_u)."""
    return np.array([(block.m > 0) | (block.c > 0) for block in blocks])


def simple_columns(shape: tuple[int, ...], factor: float, *, distinct: bool) -> Array:
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


def untold(utility: float, bound: float) -> None:
    """Tell nobody."""
