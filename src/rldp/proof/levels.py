"""Levels of ordered pairs (s1, s2): how far a claim lets P(y|s1) exceed P(y|s2)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import permutations
from typing import Any

from rldp.proof.numbers import ONE, exp_below
from rldp.proof.parsing import ProofError, positive
from rldp.proof.work import spend

MOST = 100  # nats; a larger level is no promise


@dataclass(frozen=True)
class Levels:
    """A level in nats for each ordered pair; None where nothing is promised, and on the diagonal.

    E of a pair is a lower bound of e^level in units of 1/ONE.
    """

    exact: tuple[tuple[Fraction | None, ...], ...]

    @cached_property
    def epsilon(self) -> Fraction:
        """The largest level."""
        return max(level for row in self.exact for level in row if level is not None)

    @cached_property
    def is_uniform(self) -> bool:
        """Whether all pairs have the same level."""
        return all(self.exact[s1][s2] == self.epsilon for s1, s2 in self._pairs)

    @property
    def promised(self) -> Iterator[tuple[int, int, int]]:
        """The pairs s1 ≠ s2 that have a level, and E of each."""
        for s1, s2 in self._pairs:
            level = self.exact[s1][s2]
            if level is not None:
                yield s1, s2, _factor(level)

    def hardest(self, highs: list[int], lows: list[int]) -> Iterator[tuple[int, int, int]]:
        """Pairs with a level such that high(s1) ≤ E low(s2) for these says it for all.

        With one level for all pairs, each s1 meets the smallest low of the others.
        """
        if not self.is_uniform:
            yield from self.promised
            return
        E = _factor(self.epsilon)
        order = sorted(range(len(lows)), key=lows.__getitem__)
        for s1 in range(len(highs)):
            yield s1, order[1] if order[0] == s1 else order[0], E

    def least_of(self, s: int) -> int | None:
        """The smallest E of s against another; None where s has no promise against anyone."""
        return _least(self.exact[s])

    def least_against(self, s: int) -> int | None:
        """The smallest E of another against s; None where there is none."""
        return _least(tuple(row[s] for row in self.exact))

    @property
    def _pairs(self) -> Iterator[tuple[int, int]]:
        return permutations(range(len(self.exact)), 2)


@lru_cache(maxsize=4096)
def _factor(level: Fraction) -> int:
    mantissa, exponent = exp_below(level)
    return math.floor(mantissa * Fraction(2) ** exponent * ONE)


def _least(levels: tuple[Fraction | None, ...]) -> int | None:
    promised = [level for level in levels if level is not None]
    return _factor(min(promised)) if promised else None


def read_levels(value: Any, n_s: int, name: str) -> Levels:
    """One number for all pairs, or a table of numbers and "inf" with "inf" on its diagonal."""
    spend(25 * n_s * n_s)  # they are kept
    if not isinstance(value, list):
        level = positive(value, name, MOST)
        return Levels(
            tuple(tuple(None if s1 == s2 else level for s2 in range(n_s)) for s1 in range(n_s))
        )
    if len(value) != n_s or not all(isinstance(row, list) and len(row) == n_s for row in value):
        raise ProofError(f"Expected {n_s} rows of {n_s} levels at {name}.")
    if any(row[s] != "inf" for s, row in enumerate(value)):
        raise ProofError(f'Expected "inf" on the diagonal of {name}.')
    exact = tuple(
        tuple(
            None if level == "inf" else positive(level, f"{name}[{s1}][{s2}]", MOST)
            for s2, level in enumerate(row)
        )
        for s1, row in enumerate(value)
    )
    if all(level is None for row in exact for level in row):
        raise ProofError(f"Expected a level for some pair at {name}: nothing is promised.")
    return Levels(exact)
