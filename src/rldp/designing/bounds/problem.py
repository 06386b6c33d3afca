"""What every bound is told, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from rldp._types import Array
from rldp.arithmetic import PositiveSystem, exp, matmul
from rldp.designing.ceilings import is_around
from rldp.designing.masters import simple_columns
from rldp.designing.problem import Effort
from rldp.uncertainty import AllDistributions, ConfidenceSet, GivenU, Guarantee

ROUNDING = 1e-13  # of the terms that are added up
_RARE = 1e-9  # mass of an output that tells nothing
_SHARE = 0.05  # of randomised response in a protocol to begin with
_LOST = 1e-6  # of a functional's size: what may lie outside of the range of J


@dataclass(frozen=True, eq=False)
class BoundProblem:
    """Estimates, the guarantees under which they are made, and how hard to look for a bound.

    Attributes:
        guarantees: what every protocol in question keeps; the table of the first has P̂.
        A: the functionals with the roots of their weights, shape (cells, k), over all n_s·n_u
            cells even where s is hidden.
        effort: how much work bounds may take.
        design: Q[s, u, y] of a protocol with these guarantees: bounds that search start from it,
            and a gap that it closes ends the work.
        hidden: whether the randomiser does not read s.
        deadline: time.monotonic() at which to stop.
    """

    guarantees: Sequence[Guarantee]
    A: Array
    effort: Effort
    design: Array | None = None
    hidden: bool = False
    deadline: float = np.inf

    @property
    def p_su(self) -> Array:
        """P̂, shape (n_s, n_u)."""
        return self.guarantees[0].table.p_su

    @cached_property
    def known(self) -> float:
        """‖Aᵀ P̂‖²: second moments less this are variances."""
        return float((matmul(self.p_su.ravel(), self.A) ** 2).sum())

    @cached_property
    def columns(self) -> Array | None:
        """Columns of the design with P̂·T = 1, shape (columns, n_s, n_u), without very rare ones."""
        return None if self.design is None else _columns(self.design, self.p_su)[0]

    @cached_property
    def variance_of_design(self) -> float:
        """V of the design; ∞ without one, or if it cannot estimate everything."""
        if self.design is None:
            return np.inf
        T, masses = _columns(self.design, self.p_su)
        flat = T.reshape(len(T), -1)
        J = PositiveSystem(matmul(flat.T * masses, flat))
        lost = self.A - matmul(matmul(flat.T * masses, flat), J.solved(self.A))
        if np.abs(lost).max() > _LOST * np.abs(self.A).max():
            return np.inf
        return float((J.whitened(self.A) ** 2).sum()) - self.known

    def begin(self, factor: float) -> tuple[Array, Array]:
        """Columns, shape (columns, cells), and masses: of the design, or of randomised response.

        Those of randomised response by `factor` are always among the columns.
        """
        p_su = self.p_su
        response = simple_columns(p_su.shape, factor, distinct=True)[: p_su.size]
        sums = (response * p_su).sum(axis=(1, 2))
        masses = sums / (factor + p_su.size - 1)
        columns = (response / sums[:, None, None]).reshape(len(response), -1)
        if self.design is None:
            return columns, masses
        T, theta = _columns(self.design, p_su)
        columns = np.concatenate([columns, T.reshape(len(T), -1)])
        return columns, np.concatenate([_SHARE * masses, (1 - _SHARE) * theta])

    @cached_property
    def at_p(self) -> list[tuple[Guarantee, float]]:
        """Guarantees for all pairs over sets that hold P̂, and the largest e^E of each.

        A set around the frequencies of another table need not hold those of the first.
        """
        return [
            (g, float(g.factors[g.is_promised_pair].max()))
            for g in self.guarantees
            if g.is_complete and g.part is None
            if is_around(g.uncertainty) and g.uncertainty.contains(self.p_su)
        ]

    @cached_property
    def around_p(self) -> list[tuple[Guarantee, float]]:
        """Guarantees for all pairs over sets made around P̂, and the largest e^E of each.

        Without those that promise no more than what someone who knows U is promised: `inner` and
        `halves` were the best bound on none of seven tables then, and took up to 12 s.
        """
        given_u = float(factors_given_u(self.guarantees).max())
        return [
            (g, factor)
            for g in self.guarantees
            if g.is_complete and g.part is None and np.array_equal(g.table.p_su, self.p_su)
            if (factor := float(g.factors[g.is_promised_pair].max())) < given_u / (1 + ROUNDING)
        ]

    def variance(self, moment: float) -> float:
        """What is left of a sum of second moments, and never more."""
        return moment - self.known - ROUNDING * (abs(moment) + self.known)


def _columns(Q: Array, p_su: Array) -> tuple[Array, Array]:
    """Columns with P̂·T = 1, shape (columns, n_s, n_u), and their masses."""
    p_y = np.einsum("su,suy->y", p_su, Q)
    kept = p_y > _RARE
    return np.moveaxis(Q[:, :, kept] / p_y[kept], 2, 0), p_y[kept]


def second_moment(M: Array, A: Array, alpha: Array, columns: Array) -> float:
    """⟨M, A⟩² / (Σ α + δ): what no protocol falls below whose columns are mixtures of these.

    Columns, shape (columns, cells), have P̂·T = 1, and δ is the most by which ‖MᵀT‖² exceeds α·T:
    as ‖MᵀT‖² - (α·T)(P̂·T) is convex there, (M, α + δ P̂) satisfies the condition for every mixture.
    What rounding may have done counts against the bound.
    """
    broken = float((((columns @ M) ** 2).sum(axis=1) - columns @ alpha).max(initial=0.0))
    size = ((columns @ np.abs(M)) ** 2).sum(axis=1) + columns @ np.abs(alpha)
    value = float((M * A).sum()) - ROUNDING * float(np.abs(M * A).sum())
    bought = float(alpha.sum()) + broken + ROUNDING * float(size.max() + np.abs(alpha).sum())
    return value**2 / bought if value > 0 and bought > 0 else 0.0


class Bound(NamedTuple):
    """What no weighted sum of variances of one report falls below, and which bound says so."""

    value: float
    by: str  # a key of BOUNDS
    is_interrupted: bool = False


def factors_given_u(guarantees: Sequence[Guarantee]) -> Array:
    """The least e^E that is promised for every pair to someone who knows U; ∞ where none is.

    A promise for (s, s') and one for (s', s'') make one for (s, s'').
    """
    n_s = guarantees[0].table.n_s
    levels = np.full((n_s, n_s), np.inf)
    for g in guarantees:
        if isinstance(g.uncertainty, GivenU | AllDistributions) or _is_all_of_u(g):
            levels = np.minimum(levels, g.levels)
    np.fill_diagonal(levels, 0.0)
    for s in range(n_s):
        levels = np.minimum(levels, levels[:, [s]] + levels[[s]])
    return np.asarray(exp(levels) * (1 + ROUNDING))


def _is_all_of_u(g: Guarantee) -> bool:
    """Whether the part of U that someone knows is all of it, and F has every distribution of S."""
    is_all = g.part is not None and len(g.part.names) == len(g.table.schema.useful)
    return is_all and isinstance(g.uncertainty, ConfidenceSet)
