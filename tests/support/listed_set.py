"""A set F of one's own, as a user of the package would add it: a class and its entries.

F is a list of distributions. The conditionals of two S values come from the same distribution, so
they do not vary independently, and F is not convex.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

import rldp.intervals.uncertainty
import rldp.proof.uncertainty
from rldp.errors import ParameterError
from rldp.intervals.balls import ball
from rldp.intervals.sets import Set as IntervalSet
from rldp.proof.numbers import ONE
from rldp.proof.sets import Set as ProofSet
from rldp.uncertainty import UncertaintySet, log_ratio, register
from rldp.uncertainty.parameters import Parameter


@register
class ListedDistributions(UncertaintySet):
    """Some distributions, all cells positive, one of which is true."""

    kind = "listed"
    title = "some listed distributions"
    parameters = (
        Parameter("distributions", title="the distributions", help="A list of tables P(s, u)"),
    )

    def __init__(self, table, distributions) -> None:
        super().__init__(table)
        self.distributions = distributions
        self._P = np.array(distributions, dtype=float)
        if self._P.shape[1:] != table.counts.shape or not (self._P > 0).all():
            raise ParameterError(f"Expected positive tables like the counts, got {distributions}.")

    @cached_property
    def _given_s(self):
        return self._P / self._P.sum(axis=2, keepdims=True)

    @property
    def conditional_bounds(self):
        return self._given_s.min(axis=0), self._given_s.max(axis=0)

    @property
    def l1_radii(self):
        return np.abs(self._given_s - self.table.p_u_given_s).sum(axis=2).max(axis=0)

    def contains(self, p_su) -> bool:
        return any(np.allclose(p_su, P, rtol=0, atol=1e-12) for P in self._P)

    def _means(self, T, s):
        return np.einsum("iu,kiu->ki", T, self._given_s[:, s])

    def mean_range(self, T, s):
        means = self._means(T, s)
        return means.min(axis=0), means.max(axis=0)

    def worst_log_ratios(self, T_1, s_1, T_2, s_2):
        return log_ratio(self._means(T_1, s_1), self._means(T_2, s_2)).max(axis=0)

    def worst_conditionals(self, T_1, s_1, T_2, s_2, ratio):
        k = (self._means(T_1, s_1) - ratio * self._means(T_2, s_2)).argmax(axis=0)
        return self._given_s[k, s_1], self._given_s[k, s_2]

    def worst_distribution(self, T_1, s_1, T_2, s_2):
        one, two = (T_1[None], np.array([s_1])), (T_2[None], np.array([s_2]))
        return self._P[log_ratio(self._means(*one), self._means(*two))[:, 0].argmax()]

    def smallest_expectation(self, c):
        values = np.einsum("...su,ksu->...k", c, self._P)
        return values.min(axis=-1), self._P[values.argmin(axis=-1)]


def _fractions(document: dict[str, Any]) -> list[list[list[Fraction]]]:
    """Conditionals of each s in each distribution."""
    tables = document["uncertainty"]["distributions"]
    exact = [[[Fraction(p) for p in row] for row in table] for table in tables]
    return [[[p / sum(row) for p in row] for row in table] for table in exact]


def _mean(R: list[Fraction], q) -> Fraction:
    return sum((p * x for p, x in zip(R, q, strict=True)), Fraction(0))


class ListedInProof(ProofSet):
    """For `rldp.proof`: exact means, all of which are tried."""

    R: list[list[list[Fraction]]]

    def bounds(self, s, q, mu, nu):  # noqa: ARG002  # every set takes them
        means = [_mean(R[s], q) * ONE for R in self.R]
        return -(-max(means) // 1), min(means) // 1

    def room(self, E, mu, first, second):  # noqa: ARG002  # every set takes them
        return min(
            E * second.a * _mean(R[second.s], second.q) - ONE * first.a * _mean(R[first.s], first.q)
            for R in self.R
        )  # fmt: skip


class ListedInIntervals(IntervalSet):
    """For `rldp.intervals`."""

    R: list[list[list[Fraction]]]

    def mean_gap(self, s, gaps):
        return ball(min(_mean(R[s], gaps) for R in self.R))

    def is_sum_at_least(self, C, first, second) -> bool:
        def mean(R, side):
            s, gaps = side
            return sum((ball(p) * gap for p, gap in zip(R[s], gaps, strict=True)), ball(0))

        return all(bool(mean(R, first) + mean(R, second) >= C) for R in self.R)


def _in_proof(document, table) -> ProofSet:
    F = ListedInProof("listed distributions", *table)
    object.__setattr__(F, "R", _fractions(document))
    return F


def _in_intervals(document, counts) -> IntervalSet:
    F = ListedInIntervals(counts, sum(map(sum, counts)))
    object.__setattr__(F, "R", _fractions(document))
    return F


rldp.proof.uncertainty.SETS["listed"] = _in_proof
rldp.intervals.uncertainty.SETS["listed"] = _in_intervals
