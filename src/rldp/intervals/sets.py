"""What a set F says of means, and the three sets that need no lemma.

A vector is given by its gaps, how far its entries lie from the best of them: all are at least 0. A
set bounds the mean of the gaps of one S value from below, and decides for two S values whether
the sum of their mean gaps is at least some number for every P in F.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeVar

from rldp.intervals.balls import ball
from rldp.intervals.work import spend

if TYPE_CHECKING:
    from flint import arb

Side = tuple[int, "list[arb]"]  # s and its gaps
X = TypeVar("X")


@dataclass(frozen=True)
class Set:
    """F around a table of counts. This one has all distributions."""

    counts: list[list[int]]
    n: int  # all records, also those of U values that are not in the table

    @cached_property
    def totals(self) -> list[int]:
        """Records of each s."""
        return [sum(row) for row in self.counts]

    def within(self, columns: list[int]) -> Self:
        """The same F for someone who knows that U has one of these values.

        What holds for any partition of the cells into rows holds for that into pairs of S and the
        known part of U: masses are shares of all n records, and each row is looked at by itself.
        """
        return replace(self, counts=taken(self.counts, columns))

    def merged(self, groups: list[list[int]]) -> Self:
        """A set with the images of all P in F if each group of U values becomes one.

        Divergences of images are no larger (guarantee.md, Theorem 31), so the same budget will do.
        """
        spend(3 * len(self.counts) * len(self.counts[0]))
        return replace(self, counts=summed(self.counts, groups))

    def mean_gap(self, s: int, gaps: list[int]) -> arb:  # noqa: ARG002  # true of any s
        """A lower bound of gaps·R_s over F."""
        return ball(min(gaps))

    def is_sum_at_least(self, C: arb, first: Side, second: Side) -> bool:  # noqa: ARG002  # no more is known
        """Whether gaps_1·R_1 + gaps_2·R_2 ≥ C all over F is proved."""
        return bool(C <= 0)


def summed(table: list[list[X]], groups: list[list[int]]) -> list[list[X]]:
    """The sums of each row over each group of columns: integers, or fractions."""
    added: Any = sum
    return [[added(row[u] for u in group) for group in groups] for row in table]


def taken(table: list[list[X]], columns: list[int]) -> list[list[X]]:
    """These columns of a table."""
    return [[row[u] for u in columns] for row in table]


class GivenU(Set):
    """All distributions in which U has one value, the same for all S values.

    Two vectors are compared entry by entry; a mean against a constant as over all distributions.
    """


class KnownSet(Set):
    """The frequencies alone, with any conditional for an s without records."""

    def mean_gap(self, s: int, gaps: list[int]) -> arb:
        """The mean itself."""
        spend(len(gaps))
        total = self.totals[s]
        if not total:
            return super().mean_gap(s, gaps)
        return ball(sum(map(int.__mul__, self.counts[s], gaps))) / total
