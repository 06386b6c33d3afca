"""The masses of columns with the least error, by an interior-point method.

Over columns T_y with P̂·T_y = 1 the programme is min tr(Aᵀ J⁻¹ A), J = Σ θ_y T_y T_yᵀ, subject to
Σ θ_y T_y = 1 and θ ≥ 0. It is convex. With M = J⁻¹ A and W = M Mᵀ its gradient is -T_yᵀ W T_y and
its Hessian 2 (T_yᵀ J⁻¹ T_z)(T_yᵀ W T_z), so a Newton step is one linear system. The multipliers α
of the equations price further columns: T_yᵀ W T_y - α·T_y is what a unit of T_y would bring. They
come from the middle of what is optimal rather than from a corner, which steadies the search.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rldp._types import Array, Flags, Indices
from rldp.arithmetic import PositiveSystem, matmul

_TO_BOUNDARY = 0.9  # of the way to the nearest θ = 0 or z = 0
_RIDGE = 1e-12  # of the diagonals of J and of the Hessian
_MOST_COUPLED, _LEAST_COUPLED = 2, 300  # columns in a step, times the cells, and at least
_REPAIRS = 2  # of masses whose columns do not sum to 1 quite exactly
_START = 1e-3  # mass of a new column, of the mean mass


class _Hessian(NamedTuple):
    """A matrix with its diagonal, and other entries between some rows only."""

    diagonal: Array
    coupled: Indices
    system: PositiveSystem  # of the coupled rows

    def solved(self, b: Array) -> Array:
        """K⁻¹ b, for one vector or for columns."""
        found = b / (self.diagonal if b.ndim == 1 else self.diagonal[:, None])
        found[self.coupled] = self.system.solved(b[self.coupled])
        return found


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
        self.update()
        self.z = np.full(len(columns), self.error / len(columns)) / np.maximum(self.theta, 1e-9)
        self.z = np.minimum(self.z, self.error * 10)

    def update(self) -> None:
        """Compute J⁻¹ A and the error at the present masses."""
        J = matmul(self.columns.T * self.theta, self.columns)
        J[np.diag_indices_from(J)] *= 1 + _RIDGE
        self._system = PositiveSystem(J)
        self.M = self._system.solved(self.A)
        self.error = float(np.sum(self.A * self.M))

    @property
    def W(self) -> Array:  # noqa: N802  # as in the docstring
        """J⁻¹ A Aᵀ J⁻¹."""
        return np.asarray(matmul(self.M, self.M.T))

    def second_moments(self) -> Array:
        """aᵀ J⁻¹ a of every functional, a column of A."""
        return np.asarray((self.A * self.M).sum(axis=0))

    @property
    def barrier(self) -> float:
        """Σ θ z as a part of the error: what the masses are from the best ones, about."""
        return float(matmul(self.theta, self.z)) / self.error

    def add(self, columns: Array) -> None:
        """Add columns, with a small mass."""
        mass = _START * float(self.theta.mean())
        mu = float(matmul(self.theta, self.z)) / len(self.theta)
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
        self.update()
        across = matmul(T, self.M)
        gains = np.einsum("yk,yk->y", across, across)
        mu = barrier * self.error / len(theta)
        right = gains + mu / theta  # minus the gradient of the error, and of the barrier
        lack = 1 - matmul(T.T, theta)
        hessian = self._hessian(across, gains)
        KT, Kr = hessian.solved(T), hessian.solved(right)
        # K d - right = -Tα and Tᵀ d = lack
        alpha = PositiveSystem(matmul(T.T, KT)).solved(matmul(T.T, Kr) - lack)
        d = Kr - matmul(KT, alpha)
        dz = (mu - z * d) / theta - z
        length = min(1.0, _TO_BOUNDARY * _room(theta, d))
        dual_length = min(1.0, _TO_BOUNDARY * _room(z, dz))
        self.theta = theta + length * d
        self.z = z + dual_length * dz
        self.alpha = alpha

    def _hessian(self, across: Array, gains: Array) -> _Hessian:
        """The Hessian of the error and of the barrier.

        Columns whose part θ T·J⁻¹T of J is small hardly change what others bring. So only those
        with the largest parts are coupled, and the others keep their diagonal entry.
        """
        T, theta = self.columns, self.theta
        JT = self._system.solved(T.T)
        own = np.einsum("yx,xy->y", T, JT)
        diagonal = 2 * own * gains + self.z / theta
        most = max(_MOST_COUPLED * T.shape[1], _LEAST_COUPLED)
        coupled = np.argsort(-theta * own, kind="stable")[:most]
        K = matmul(T[coupled], JT[:, coupled])
        K *= matmul(across[coupled], across[coupled].T)
        K *= 2.0
        K[np.diag_indices_from(K)] = diagonal[coupled] * (1 + _RIDGE)
        return _Hessian(diagonal, coupled, PositiveSystem(K))

    def settle(self, barrier: float, most: int) -> None:
        """Steps until Σ θ z is this part of the error."""
        for _ in range(most):
            self.step(max(barrier / 2, 0.3 * self.barrier))
            if self.barrier < barrier and np.abs(1 - matmul(self.theta, self.columns)).max() < 1e-9:
                break
        self.update()

    def repair(self) -> None:
        """Change the masses a little, so that the columns sum to 1 up to rounding."""
        for _ in range(_REPAIRS):
            self.update()
            lack = 1 - matmul(self.theta, self.columns)
            self.theta = self.theta * (1 + matmul(self.columns, self._system.solved(lack)))
        self.update()

    def gains(self, columns: Array) -> Array:
        """T·W·T - α·T of columns (columns, cells): above 0 where they would bring something."""
        across = matmul(columns, self.M)
        return np.asarray(np.einsum("yk,yk->y", across, across) - matmul(columns, self.alpha))


def _room(x: Array, d: Array) -> float:
    """How often d fits from x until some entry is 0."""
    falls = d < 0
    return float((-x[falls] / d[falls]).min(initial=np.inf))
