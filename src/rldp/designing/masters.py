"""The restricted master of whole columns: θ_v ≥ 0, Σ θ_v v = 1 is a protocol with outputs θ_v v."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import entr, rel_entr

from rldp._types import Array, Flags
from rldp.arithmetic import PositiveSystem, matmul
from rldp.designing.solvers.linear import Optimum, Programme

_NEGLIGIBLE = 1e-12  # weight of an output
_RARE = 1e-10  # below, units of 2^-62 are so coarse that the proof costs more than the output
_LEAST_UNIT = 1e-8  # nats
_LARGEST = 1e12  # entry of a column,
_LARGEST_SOLVED = 1e4  # and of one in the programme, whose weights are exact to 1e-10 or so


class Master:
    """The programme max Σ θ_v μ(v), Σ θ_v v = 1 over columns v with Σ P̂ v = 1."""

    def __init__(
        self,
        p_su: Array,
        is_possible: Flags,
        gains: Callable[[Array], Array] | None = None,
    ) -> None:
        """Take P̂, which cells are possible at all, and μ if it is not that of I(X;Y) at P̂."""
        self._p_su, self.is_possible = p_su, is_possible
        self.gains = gains or self._informations
        self._programme = Programme(np.ones(int(is_possible.sum())))
        self.unit = 1.0  # nats
        self._incumbent: Optimum | None = None
        self._scales: list[Array] = []  # factors by which columns are smaller in the programme
        self._columns: list[Array] = []  # scaled to Σ P̂ v = 1 where that is possible

    def add(self, columns: Array) -> None:
        """Add columns of shape (columns, n_s, n_u), of any scale; columns of zeros are ignored."""
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
            # at small ε all gains are small, and the solver's tolerances must be smaller still
            self.unit = float(np.clip(np.abs(gains).max(), _LEAST_UNIT, 1.0))
        scale = np.minimum(1.0, _LARGEST_SOLVED / columns.max(axis=(1, 2)))
        self._scales.append(scale)
        self._programme.add_columns(
            columns[:, self.is_possible] * scale[:, None], gains / self.unit * scale
        )

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
        """The optimum over the columns so far."""
        value, duals, weights = self._programme.solved()
        weights = weights * np.concatenate(self._scales)
        self._incumbent = Optimum(value * self.unit, duals * self.unit, weights)
        return self._incumbent

    @property
    def incumbent(self) -> Optimum:
        """The optimum of the last solve."""
        return self.solved() if self._incumbent is None else self._incumbent

    def duals(self, optimum: Optimum) -> Array:
        """The dual of every cell, shape (n_s, n_u); 0 where the cell is impossible."""
        duals = np.zeros(self._p_su.shape)
        duals[self.is_possible] = optimum.duals
        return duals

    def protocol(self, optimum: Optimum) -> Array:
        """Q[s, u, y] of the optimum; an impossible cell releases the average of its s."""
        some = np.flatnonzero(optimum.weights > 0)
        columns, weights = np.concatenate(self._columns)[some], optimum.weights[some]
        # a column on cells with few records has huge entries: scale each to a largest entry of 1
        largest = columns.max(axis=(1, 2))
        columns, weights = columns / largest[:, None, None], weights * largest
        is_used = weights > _NEGLIGIBLE
        columns, weights = columns[is_used], weights[is_used]
        # the solver's equations hold to its tolerance only, which small ε does not allow
        A = columns[:, self.is_possible].T
        repair = PositiveSystem(matmul(A, A.T)).solved(1 - matmul(A, weights))
        weights = weights + matmul(A.T, repair)
        # outputs with a negligible weight are too rare to be proved
        is_used = weights > _NEGLIGIBLE
        Q = np.moveaxis(columns[is_used], 0, 2) * weights[is_used]
        p_s = self._p_su.sum(axis=1, keepdims=True)
        p_u_given_s = np.divide(self._p_su, p_s, out=np.zeros_like(self._p_su), where=p_s > 0)
        average = np.einsum("su,suy->sy", p_u_given_s, Q)
        Q = np.where(self.is_possible[:, :, None], Q, average[:, None, :])
        return self._without_rare(Q / Q.sum(axis=2, keepdims=True))

    def _without_rare(self, Q: Array) -> Array:
        """Merge every output that is too rare into the one with the most similar posterior.

        This processes the output alone, so a private protocol stays private.
        """
        is_rare = Q.max(axis=(0, 1)) < _RARE
        if not is_rare.any():
            return np.asarray(Q)
        joint = (Q * self._p_su[:, :, None])[self._p_su > 0]
        mass = joint.sum(axis=0)
        posterior = np.divide(joint, mass, out=np.zeros_like(joint), where=mass > 0)
        lost = rel_entr(posterior[:, is_rare, None], posterior[:, None, ~is_rare]).sum(axis=0)
        kept = Q[:, :, ~is_rare]
        for y, nearest in zip(np.flatnonzero(is_rare), lost.argmin(axis=1), strict=True):
            kept[:, :, nearest] += Q[:, :, y]
        return np.asarray(kept)


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
