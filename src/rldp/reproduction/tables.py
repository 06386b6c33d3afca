"""Tables to experiment on, each named by a seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from rldp import datasets
from rldp._types import Array
from rldp.tables.table import Table

FIRST_SEED = 20240  # draw i of every experiment has the seed FIRST_SEED + i


class Draw(NamedTuple):
    """A table, and the distribution that it was drawn from, or its frequencies for real data."""

    table: Table
    truth: Array


@dataclass(frozen=True)
class Jeffreys:
    """Samples of n records, each from a distribution of its own, drawn from Jeffreys' prior.

    The same seed gives the same distribution for every n.
    """

    n_s: int
    n_u: int
    n: int = 1000

    def draw(self, seed: int) -> Draw:
        """The table with this seed."""
        drawn = datasets.jeffreys(self.n_s, self.n_u, self.n, seed)
        return Draw(drawn.table, drawn.distribution)


@dataclass(frozen=True)
class Adult:
    """Two columns of the Adult data: one table, whatever the seed."""

    sensitive: str
    useful: str
    n_s: int
    n_u: int
    n: int = 32561

    def draw(self, seed: int) -> Draw:  # noqa: ARG002  # there is one table only
        """The counts of the two columns."""
        table = datasets.adult(self.sensitive, self.useful)
        return Draw(table, table.p_su)


Source = Jeffreys | Adult


def seeds(draws: int) -> tuple[int, ...]:
    """The seeds of so many draws.

    >>> seeds(3)
    (20240, 20241, 20242)
    """
    return tuple(range(FIRST_SEED, FIRST_SEED + draws))
