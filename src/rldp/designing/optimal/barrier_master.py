"""The masses of columns with the least error, by an interior-point method.

Over columns T_y with P̂·T_y = 1 the programme is min tr(Aᵀ J⁻¹ A), J = Σ θ_y T_y T_yᵀ, subject to
Σ θ_y T_y = 1 and θ ≥ 0. It is convex. With M = J⁻¹ A and W = M Mᵀ its gradient is -T_yᵀ W T_y and
its Hessian 2 (T_yᵀ J⁻¹ T_z)(T_yᵀ W T_z), so a Newton step is one linear system. The multipliers α
of the equations price further columns: T_yᵀ W T_y - α·T_y is what a unit of T_y would bring. They
come from the middle of what is optimal rather than from a corner, which steadies the search.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from rldp._types import Array, Flags
from rldp.arithmetic import PositiveSystem
from rldp.designing.solvers.work import spend

_TO_BOUNDARY = 0.9  # of the way to the nearest θ = 0 or z = 0
_RIDGES = (1e-12, 1e-9, 1e-6)  # of the diagonals of J and of the Hessian, until one is enough
_REPAIRS = 2  # of masses whose columns do not sum to 1 quite exactly
_START = 1e-3  # mass of a new column, of the mean mass
_STEPS = 30  # of Newton to the next barrier, at most: a handful is usual
_WHOLE = 0.8  # of a step: near enough to where Newton's steps lead
_FASTER = 0.5  # of the barrier, in one step
_NEAR, _SUMS = 1.5, 1e-3  # times the barrier, and what columns may miss of 1: near enough
_FLOPS = 3e10  # in a nominal second


class _System:
    """Solutions of A x = b for a symmetric matrix, positive definite up to a small ridge."""

    solved: Callable[[Array], Array]

    def __init__(self, A: Array) -> None:
        diagonal = np.diagonal(A).copy()
        for ridge in _RIDGES:
            A[np.diag_indices_from(A)] = diagonal * (1 + ridge)
            with suppress(LinAlgError):
                factor = cho_factor(A, check_finite=False)
                self.solved = partial(cho_solve, factor, check_finite=False)
                return
        self.solved = PositiveSystem(A).solved  # which leaves out rows that depend on others


class BarrierMaster:
    """Columns so far, their masses θ, the reduced costs z ≥ 0 of leaving them out, and α."""

    def __init__(self, A: Array, columns: Array, masses: Array) -> None:
        """Take the functionals (cells, k), columns (columns, cells), and masses of a protocol.

        The masses may be 0 for some columns; those that are not make a protocol.
        """
        self.A = A
        self.columns = columns
        self.theta = np.maximum(masses, _START / len(columns))
        self.alpha = np.zeros(columns.shape[1])
        self._length = 0.0  # of the last step, as a part of Newton's
        self.update()
        self.z = np.full(len(columns), self.error / len(columns)) / np.maximum(self.theta, 1e-9)
        self.z = np.minimum(self.z, self.error * 10)

    def update(self) -> None:
        """Compute J⁻¹ A and the error at the present masses."""
        self._system = _System((self.columns.T * self.theta) @ self.columns)
        self.M = self._system.solved(self.A)
        self.error = float(np.sum(self.A * self.M))

    @property
    def W(self) -> Array:  # noqa: N802  # as in the docstring
        """J⁻¹ A Aᵀ J⁻¹."""
        return np.asarray(self.M @ self.M.T)

    def second_moments(self) -> Array:
        """aᵀ J⁻¹ a of every functional, a column of A."""
        return np.asarray((self.A * self.M).sum(axis=0))

    @property
    def barrier(self) -> float:
        """Σ θ z as a part of the error: what the masses are from the best ones, about."""
        return float(self.theta @ self.z) / self.error

    def add(self, columns: Array) -> None:
        """Add columns, with a small mass."""
        mass = _START * float(self.theta.mean())
        mu = float(self.theta @ self.z) / len(self.theta)
        self.columns = np.concatenate([self.columns, columns])
        self.theta = np.concatenate([self.theta, np.full(len(columns), mass)])
        self.z = np.concatenate([self.z, np.full(len(columns), min(mu / mass, self.error))])

    def add_within(self, columns: Array, most: int) -> None:
        """Add columns, in place of those with the least mass where there would be too many."""
        surplus = len(self.columns) + len(columns) - most
        if surplus > 0:
            kept = np.ones(len(self.columns), bool)
            kept[np.argsort(self.theta, kind="stable")[:surplus]] = False
            self.keep(kept)
        self.add(columns)

    def keep(self, kept: Flags) -> None:
        """Forget all other columns; the next steps make up for their mass."""
        self.columns, self.theta, self.z = self.columns[kept], self.theta[kept], self.z[kept]

    def step(self, barrier: float) -> None:
        """One Newton step towards Σ θ z of this part of the error."""
        T, theta, z = self.columns, self.theta, self.z
        n, cells = T.shape
        spend((n**3 / 3 + 4 * n * n * (cells + self.A.shape[1])) / _FLOPS)
        self.update()
        across = T @ self.M
        gains = np.einsum("yk,yk->y", across, across)
        mu = barrier * self.error / n
        right = gains + mu / theta  # minus the gradient of the error, and of the barrier
        lack = 1 - T.T @ theta
        hessian = T @ self._system.solved(T.T)
        hessian *= across @ across.T
        hessian *= 2.0
        hessian[np.diag_indices_from(hessian)] += z / theta
        system = _System(hessian)
        KT, Kr = system.solved(T), system.solved(right)
        # K d - right = -Tα and Tᵀ d = lack
        alpha = _System(T.T @ KT).solved(T.T @ Kr - lack)
        d = Kr - KT @ alpha
        dz = (mu - z * d) / theta - z
        length = min(1.0, _TO_BOUNDARY * _room(theta, d))
        dual_length = min(1.0, _TO_BOUNDARY * _room(z, dz))
        self.theta = theta + length * d
        self.z = z + dual_length * dz
        self.alpha = alpha
        self._length = min(length, dual_length)

    def center(self, barrier: float) -> None:
        """Steps until Σ θ z is about this part of the error, and columns sum to 1 nearly.

        Prices that come before are worth little: with four steps in each round, whatever they
        reached, 2 × 29 cells took ten times as many rounds.
        """
        for _ in range(_STEPS):
            self.step(max(barrier, _FASTER * self.barrier))
            is_near = self.barrier <= _NEAR * barrier and self._lack() < _SUMS
            # new columns have hardly any mass yet as long as steps are cut short
            if is_near and self._length > _WHOLE:
                break

    @property
    def is_settled(self) -> bool:
        """Whether the masses are those of a protocol, up to what `repair` repairs."""
        return self._lack() < _SUMS

    def _lack(self) -> float:
        """What the sum of all columns differs from 1 by, at most."""
        return float(np.abs(1 - self.theta @ self.columns).max())

    def settle(self, barrier: float, most: int) -> None:
        """Steps until Σ θ z is this part of the error."""
        for _ in range(most):
            self.step(max(barrier / 2, 0.3 * self.barrier))
            if self.barrier < barrier and self._lack() < 1e-9:
                break
        self.update()

    def repair(self) -> None:
        """Change the masses a little, so that the columns sum to 1 up to rounding."""
        for _ in range(_REPAIRS):
            self.update()
            lack = 1 - self.theta @ self.columns
            self.theta = self.theta * (1 + self.columns @ self._system.solved(lack))
        self.update()

    def gains(self, columns: Array) -> Array:
        """T·W·T - α·T of columns (columns, cells): above 0 where they would bring something."""
        across = columns @ self.M
        return np.asarray(np.einsum("yk,yk->y", across, across) - columns @ self.alpha)


def _room(x: Array, d: Array) -> float:
    """How often d fits from x until some entry is 0."""
    falls = d < 0
    return float((-x[falls] / d[falls]).min(initial=np.inf))
