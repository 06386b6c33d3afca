"""The list of bounds, and the best of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from rldp.designing.bounds.given_u import given_u
from rldp.designing.bounds.inner import halves, inner
from rldp.designing.bounds.known_p import known_p
from rldp.designing.bounds.known_p_alone import known_p_alone
from rldp.designing.bounds.pairs_of_columns import pairs_of_columns
from rldp.designing.bounds.problem import Bound, BoundProblem
from rldp.designing.bounds.regions import regions
from rldp.designing.solvers.one_thread import on_one_thread
from rldp.designing.solvers.work import is_past

_CLOSE = 0.02  # of the variance of a design: a gap that needs no further bound

BOUNDS: Mapping[str, Callable[[BoundProblem], float | None]] = MappingProxyType(
    {  # cheap ones first
        "given-u": given_u,
        "known-p-alone": known_p_alone,
        "known-p": known_p,
        "pairs": pairs_of_columns,
        "regions": regions,
        "inner": inner,
        "halves": halves,
    }
)


@on_one_thread
def best_bound(problem: BoundProblem) -> Bound | None:
    """The largest of all bounds and its name; None where none is known."""
    seen = problem.A[problem.p_su.ravel() > 0]
    if not np.ptp(problem.A, axis=0).any() or not seen.any():
        return None  # a constant is known without reports; nobody has what is estimated
    best: Bound | None = None
    try:
        for name, bound in BOUNDS.items():
            value = bound(problem)
            if value is not None and value > (best.value if best else 0.0):
                best = Bound(value, name)
            is_close = best and best.value >= (1 - _CLOSE) * problem.variance_of_design
            if is_close or is_past(problem.deadline):
                break
    except KeyboardInterrupt:
        return best._replace(is_interrupted=True) if best else Bound(0.0, "", is_interrupted=True)
    return best
