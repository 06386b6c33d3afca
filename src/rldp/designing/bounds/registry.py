"""The list of bounds, and the best of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from rldp.designing.bounds.given_u import given_u
from rldp.designing.bounds.known_p import known_p
from rldp.designing.bounds.problem import Bound, BoundProblem

BOUNDS: Mapping[str, Callable[[BoundProblem], float | None]] = MappingProxyType(
    {"given-u": given_u, "known-p": known_p}
)


def best_bound(problem: BoundProblem) -> Bound | None:
    """The largest of all bounds and its name; None where none is known."""
    best: Bound | None = None
    try:
        for name, bound in BOUNDS.items():
            value = bound(problem)
            if value is not None and value > (best.value if best else 0.0):
                best = Bound(value, name)
    except KeyboardInterrupt:
        return best._replace(is_interrupted=True) if best else Bound(0.0, "", is_interrupted=True)
    return best
