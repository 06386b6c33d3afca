"""The guarantees of a design: to strangers, to those who know some or all of U, and to everyone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rldp._types import Array
from rldp.checks import checked_epsilon, checked_tuple, shown
from rldp.errors import ParameterError
from rldp.tables.parts import Part, parts_of
from rldp.tables.schema import Schema
from rldp.uncertainty import AllDistributions, GivenU, Guarantee, UncertaintySet

AUTO = "auto"  # the layers of what is recommended, none for protocols that are asked for by name
LEAST_FALLBACK = 6.0  # nats that hold whatever distribution is true
PART_FACTOR = 2.0  # of ε over F: ε itself costs 1.3 to 24 times as many people, this 3 to 66 % more

Stack = tuple[Guarantee, ...]


@dataclass(frozen=True)
class Layers:
    """Two further levels, in nats; ∞ where nothing is asked for.

    Attributes:
        epsilon_all: P(y|s) ≤ e^c P(y|s') for every distribution, whatever someone knows beside S.
        epsilon_given_u: Q(y|s,u) ≤ e^c Q(y|s',u), against someone who knows U.

    >>> Layers(epsilon_all=4.0).all_or_given_u
    4.0
    """

    epsilon_all: float = math.inf
    epsilon_given_u: float = math.inf

    def __post_init__(self) -> None:
        """Refuse what is no level."""
        for name in ("epsilon_all", "epsilon_given_u"):
            level = getattr(self, name)
            if level != math.inf:
                object.__setattr__(self, name, checked_epsilon(level))

    @property
    def all_or_given_u(self) -> float:
        """The smaller level, for families in which both attackers see the same."""
        return min(self.epsilon_all, self.epsilon_given_u)

    def smallest(self, epsilons: Array) -> Array:
        """The smallest of all levels, for protocols that promise ε over all distributions."""
        return np.minimum(epsilons, self.all_or_given_u)


UNLAYERED = Layers()


def stack(
    F: UncertaintySet,
    epsilon: Any,
    *,
    epsilon_given_u: Any = None,
    epsilon_all: Any = None,
    epsilon_given_part: Any = None,
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
        epsilon_given_part: levels over F against someone who knows some columns of U but not all:
            for every part of `parts_of`, or a mapping from parts to what each of them has; "auto"
            for 2ε or None. Where U has one column there is no part, and a level adds nothing.
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
    for names, levels in _by_part(epsilon_given_part, F.table.schema):
        if isinstance(levels, str) and levels == AUTO:
            levels = PART_FACTOR * first.levels if is_recommended else None
        if levels is not None:
            further = Guarantee(F, levels, knows=names)
            guarantees += [] if _is_implied(further, guarantees) else [further]
    others = checked_tuple(also, "further guarantees", argument="also")
    guarantees += [_checked(guarantee, F) for guarantee in others]
    return tuple(guarantees)


def _by_part(asked: Any, schema: Schema) -> Iterable[tuple[tuple[str, ...], Any]]:
    """Parts with what is asked for each of them."""
    if not isinstance(asked, Mapping):
        return dict.fromkeys(parts_of(schema), asked).items()
    levels = {_named(part, schema): level for part, level in asked.items()}
    if len(levels) < len(asked):
        raise ParameterError(
            "Expected every part of U once, got the same columns twice, in another order.",
            argument="epsilon_given_part",
        )
    return levels.items()


def _named(part: object, schema: Schema) -> tuple[str, ...]:
    """Names of some useful columns, in the order of the schema."""
    is_names = isinstance(part, tuple) and all(isinstance(name, str) for name in part)
    if not isinstance(part, str) and not is_names:
        raise ParameterError(
            f"Expected parts of U as a name of a column or a tuple of names, got {shown(part)}.",
            argument="epsilon_given_part",
        )
    names = Part.of(schema, part).names  # type: ignore[arg-type]  # checked
    if len(names) == len(schema.useful):
        raise ParameterError(
            f"Expected some useful columns but not all, got {', '.join(names)}: someone who knows "
            "all of U is the one of epsilon_given_u.",
            argument="epsilon_given_part",
        )
    return names


def _is_implied(guarantee: Guarantee, by: Sequence[Guarantee]) -> bool:
    """Whether others say it already, by levels that are no larger."""
    return any(_covers(g, guarantee.part) and (g.levels <= guarantee.levels).all() for g in by)


def _covers(g: Guarantee, part: Part | None) -> bool:
    """Whether a guarantee speaks of all that someone who knows a part compares over F, or more."""
    if g.knows:
        return False
    if part is not None and part.n_values == 1 and not isinstance(g.uncertainty, GivenU):
        return True  # columns with one label: someone who knows nothing
    if part is not None and part.cells.shape[1] == 1 and isinstance(g.uncertainty, GivenU):
        return True  # the other columns have one label: someone who knows all of U
    return isinstance(g.uncertainty, AllDistributions)


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
