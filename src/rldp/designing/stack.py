"""The guarantees of a design: over F, against someone who knows U, and over all distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rldp.checks import checked_tuple, shown
from rldp.errors import ParameterError
from rldp.uncertainty import AllDistributions, GivenU, Guarantee, UncertaintySet

AUTO = "auto"  # the layers of what is recommended, none for protocols that are asked for by name
LEAST_FALLBACK = 6.0  # nats that hold whatever distribution is true

Stack = tuple[Guarantee, ...]


def stack(
    F: UncertaintySet,
    epsilon: Any,
    *,
    epsilon_given_u: Any = None,
    epsilon_all: Any = None,
    also: Sequence[Guarantee] = (),
    is_recommended: bool = False,
) -> Stack:
    """All guarantees of a design, the one over F first.

    Args:
        F: the set of distributions that may be true.
        epsilon: its levels.
        epsilon_given_u: levels against someone who knows U; None for no such promise, "auto" for ε
            where the design is the recommended one and None otherwise.
        epsilon_all: levels whatever distribution is true; "auto" for max(6, 2ε) or None.
        also: further guarantees.
        is_recommended: whether "auto" means the recommended layers.
    """
    first = Guarantee(F, epsilon)
    given_u, everything = epsilon_given_u, epsilon_all
    if isinstance(given_u, str) and given_u == AUTO:
        given_u = first.levels if is_recommended else None
    if isinstance(everything, str) and everything == AUTO:
        fallback = np.maximum(LEAST_FALLBACK, 2 * first.levels)
        everything = fallback if is_recommended else None
    guarantees = [first]
    for layer, levels in ((GivenU, given_u), (AllDistributions, everything)):
        if levels is not None:
            further = Guarantee(layer(F.table), levels)
            guarantees += [] if _is_implied(further, guarantees) else [further]
    for guarantee in checked_tuple(also, "further guarantees", argument="also"):
        guarantees.append(_checked(guarantee, F))
    return tuple(guarantees)


def _is_implied(guarantee: Guarantee, by: Sequence[Guarantee]) -> bool:
    """Whether privacy over all distributions says it already."""
    return any(
        isinstance(g.uncertainty, AllDistributions)
        and not g.knows
        and (g.levels <= guarantee.levels).all()
        for g in by
    )


def _checked(guarantee: object, F: UncertaintySet) -> Guarantee:
    if not isinstance(guarantee, Guarantee):
        raise ParameterError(
            f"Expected also as a list of Guarantee(set, epsilon), got {shown(guarantee)}.",
            argument="also",
        )
    if guarantee.table.schema != F.table.schema:
        raise ParameterError(
            "Expected further guarantees over the same values of S and U, got another schema.",
            argument="also",
        )
    return guarantee
