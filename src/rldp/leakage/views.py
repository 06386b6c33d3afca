"""What a reader compares: all of a channel, or its rows (s, k) for each value k that is known.

For someone who knows part of U, the comparisons are those of the channel with vectors cut down to
the useful values that have k, and with codes of rows in the place of s. Sets and levels are those
of the table whose rows are (s, k), so that all that compares pairs takes them as it stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rldp._types import Array, Codes, Indices
from rldp.channel import ANYONE, Comparisons
from rldp.leakage.worst_pairs import worst_by_pair
from rldp.tables.parts import Part
from rldp.uncertainty import Guarantee, UncertaintySet


class View(NamedTuple):
    """What is compared where one value k is known, and in all where nothing is.

    `uncertainty` and `levels` have rows s · n_known + known, and `cells` are the useful values that
    are possible.
    """

    comparisons: Comparisons
    uncertainty: UncertaintySet
    levels: Array
    cells: Indices
    known: int = 0
    n_known: int = 1

    def rows(self, s: Codes) -> Codes:
        """The rows of S values."""
        return np.asarray(s * self.n_known + self.known)

    @property
    def of_channel(self) -> Comparisons:
        """The comparisons with S values again, in the order of this view."""
        return self.comparisons._replace(s=self.comparisons.s // self.n_known)  # ANYONE stays -1


def views(comparisons: Comparisons, guarantee: Guarantee) -> Iterator[View]:
    """One for each value of what is known, or one where nothing is."""
    g, part = guarantee.by_rows, guarantee.part
    if part is None:
        yield View(comparisons, g.uncertainty, g.levels, np.arange(comparisons.vectors.shape[1]))
        return
    for k in range(part.n_values):
        seen = _seen(comparisons, part, k)
        yield View(seen, g.uncertainty, g.levels, part.cells[k], k, part.n_values)


def worst_levels(comparisons: Comparisons, guarantee: Guarantee) -> Array:
    """The largest log-ratio of every ordered pair of S values, -∞ for s = s'.

    It is over the set of the guarantee, and over all values of what someone knows.
    """
    s = np.arange(guarantee.table.n_s)
    found = [
        worst_by_pair(view.comparisons, view.uncertainty)[np.ix_(view.rows(s), view.rows(s))]
        for view in views(comparisons, guarantee)
    ]
    return np.asarray(np.max(found, axis=0))


def is_kept(comparisons: Comparisons, guarantee: Guarantee, tolerance: float) -> bool:
    """Whether an exact audit finds every level kept, up to this share of it."""
    return all(
        bool(
            (
                worst_by_pair(view.comparisons, view.uncertainty) <= view.levels * (1 + tolerance)
            ).all()
        )
        for view in views(comparisons, guarantee)
    )


def _seen(comparisons: Comparisons, part: Part, k: int) -> Comparisons:
    """The comparisons of someone who knows k."""
    vectors, s, group, symbol, factors = comparisons
    seen = vectors[:, part.cells[k]]
    # a symbol that someone shows at another k only is none that this reader ever sees
    never = np.isinf(vectors).any(axis=1) & ~seen.any(axis=1)
    keep = ~never
    n_k = part.n_values
    rows = np.where(s == ANYONE, ANYONE, s * n_k + k)
    if factors is not None:
        factors = factors.repeat(n_k, axis=0).repeat(n_k, axis=1)
    return Comparisons(seen[keep], rows[keep], group[keep], symbol[keep], factors)
