"""What a protocol promises: a set of distributions with levels for ordered pairs of S values.

A guarantee (F, E) says P(y|s) ≤ e^E[s,s'] P(y|s') for every P in F, every output y and all s ≠ s'.
A level of ∞ promises nothing of its pair. A protocol can keep several guarantees at once, each
against another attacker.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rldp._types import Array, Flags
from rldp.arithmetic import exp
from rldp.checks import as_array, checked_epsilon, checked_texts, shown
from rldp.errors import ParameterError
from rldp.tables.parts import Part
from rldp.tables.table import Table
from rldp.uncertainty.base import UncertaintySet
from rldp.uncertainty.given_u import GivenU

Levels = float | Mapping[tuple[str, str], float] | ArrayLike

_LARGEST = 100.0  # nats; beyond, a level is no promise, and ∞ says so


@dataclass(frozen=True, eq=False)
class Guarantee:
    """Privacy over a set at levels for ordered pairs of S values.

    Args:
        uncertainty: the set F of distributions for which it holds.
        levels: one ε in nats for all pairs; a mapping from ordered pairs of labels (s, s'), which
            bounds P(y|s)/P(y|s'); or an array of shape (n_s, n_s), whose diagonal does not count.
            ∞ leaves a pair without a promise.
        knows: useful columns that someone is supposed to know of the person, by name: for each of
            their values k, P(y|s,k) is compared with P(y|s',k). None means that they know nothing
            of U.

    >>> from rldp import AllDistributions, Table
    >>> table = Table([[10, 20], [30, 40]], sensitive=["no", "yes"])
    >>> g = Guarantee(AllDistributions(table), {("yes", "no"): 1.0, ("no", "yes"): float("inf")})
    >>> g.epsilon, g.is_uniform
    (1.0, False)
    """

    uncertainty: UncertaintySet
    levels: Any
    knows: str | Sequence[str] = ()
    part: Part | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the levels and give them one form: an array with ∞ on its diagonal."""
        if not isinstance(self.uncertainty, UncertaintySet):
            raise ParameterError(
                f"Expected a set of distributions such as ChiSquareSet(table), "
                f"got {type(self.uncertainty).__name__}."
            )
        levels = as_levels(self.levels, self.uncertainty.table)
        levels.setflags(write=False)
        object.__setattr__(self, "levels", levels)
        knows = checked_texts(self.knows, "names of useful columns", argument="knows")
        part = Part.of(self.table.schema, knows) if knows else None
        object.__setattr__(self, "knows", () if part is None else part.names)
        object.__setattr__(self, "part", part)
        if part is not None and isinstance(self.uncertainty, GivenU):
            self.uncertainty.for_part(part)  # which refuses it

    @property
    def table(self) -> Table:
        """The table that the set speaks of."""
        return self.uncertainty.table

    @cached_property
    def epsilon(self) -> float:
        """The largest level that is promised, in nats."""
        return float(self.levels[np.isfinite(self.levels)].max())

    @cached_property
    def is_uniform(self) -> bool:
        """Whether all pairs have the same level."""
        return bool((self.levels[self.is_promised_pair] == self.epsilon).all() and self.is_complete)

    @cached_property
    def is_complete(self) -> bool:
        """Whether every pair has a promise."""
        return int(self.is_promised_pair.sum()) == self.table.n_s * (self.table.n_s - 1)

    @property
    def is_promised_pair(self) -> Flags:
        """The pairs with a level below ∞, shape (n_s, n_s)."""
        return np.asarray(np.isfinite(self.levels))

    @cached_property
    def factors(self) -> Array:
        """e^level for every pair, shape (n_s, n_s); ∞ where nothing is promised."""
        return np.asarray(exp(self.levels))

    @cached_property
    def by_rows(self) -> Guarantee:
        """The same promise for the table whose rows are (s, k), k being what someone knows.

        Only rows with one k have a level. Without `knows` it is this guarantee.
        """
        if self.part is None:
            return self
        return Guarantee(self.uncertainty.for_part(self.part), self.part.levels(self.levels))

    def __repr__(self) -> str:
        """The set and its level, and who it speaks of."""
        pairs = "" if self.is_uniform else ", levels by pair"
        knows = f", for someone who knows {' and '.join(self.knows)}" if self.knows else ""
        return f"<Guarantee: epsilon {self.epsilon:g} over {self.uncertainty!r}{pairs}{knows}>"


def as_levels(levels: Any, table: Table) -> Array:
    """Levels as an array of shape (n_s, n_s) with ∞ on its diagonal, all checked."""
    n_s, labels = table.n_s, table.schema.s_labels
    if isinstance(levels, Mapping):
        matrix = _from_mapping(levels, tuple(labels))
    elif _is_one_number(levels):
        matrix = np.full((n_s, n_s), checked_epsilon(levels))
    else:
        expected = f"levels as numbers of shape {n_s} × {n_s}"
        matrix = np.array(as_array(levels, expected, argument="epsilon"))
        if matrix.shape != (n_s, n_s):
            raise ParameterError(
                f"Expected levels of shape {n_s} × {n_s}, one for each ordered pair of S values, "
                f"got shape {matrix.shape}."
            )
    np.fill_diagonal(matrix, np.inf)
    is_level = (matrix > 0) & ((matrix <= _LARGEST) | np.isinf(matrix))
    if not is_level.all():
        i, j = np.argwhere(~is_level)[0].tolist()
        raise ParameterError(
            f"Expected a level above 0 and up to {_LARGEST:g}, or ∞, for {labels[i]!r} against "
            f"{labels[j]!r}, got {shown(float(matrix[i, j]))}."
        )
    if not np.isfinite(matrix).any():
        raise ParameterError("Expected a finite level for some pair of S values, got ∞ for all.")
    return matrix


def _is_one_number(levels: Any) -> bool:
    if isinstance(levels, np.ndarray | np.generic):
        return levels.ndim == 0 and not np.ma.is_masked(levels)
    return not isinstance(levels, list | tuple) and not hasattr(levels, "__array__")


def _from_mapping(levels: Mapping[Any, Any], labels: tuple[str, ...]) -> Array:
    matrix = np.full((len(labels), len(labels)), np.nan)
    for pair, level in levels.items():
        if not isinstance(pair, tuple) or len(pair) != 2 or any(x not in labels for x in pair):
            raise ParameterError(
                f"Expected ordered pairs of S values among {', '.join(map(repr, labels[:20]))}, "
                f"got {shown(pair)}."
            )
        i, j = (labels.index(x) for x in pair)
        if i == j:
            raise ParameterError(f"Expected two different S values in a pair, got {shown(pair)}.")
        matrix[i, j] = np.inf if level == np.inf else checked_epsilon(level)
    np.fill_diagonal(matrix, np.inf)
    if np.isnan(matrix).any():
        i, j = np.argwhere(np.isnan(matrix))[0].tolist()
        raise ParameterError(
            f"Expected a level for every ordered pair of S values; {labels[i]!r} against "
            f"{labels[j]!r} has none. Give ∞ (float('inf')) where nothing shall be promised."
        )
    return matrix
