"""What every bound is told, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from rldp._types import Array
from rldp.arithmetic import matmul
from rldp.designing.effort import Effort
from rldp.uncertainty import Guarantee

ROUNDING = 1e-13  # of the terms that are added up


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

    def variance(self, moment: float) -> float:
        """What is left of a sum of second moments, and never more."""
        return moment - self.known - ROUNDING * (abs(moment) + self.known)


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
