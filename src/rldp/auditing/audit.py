"""The exact worst case of any channel over any set F, with the distribution that attains it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rldp._types import Array
from rldp.auditing.groups import WorstGroup, worst_group
from rldp.auditing.guarantees import AuditedGuarantee
from rldp.channel import ANYONE, Channel, Comparisons, DenseChannel
from rldp.channel.base import Output
from rldp.checks import as_float, checked_tuple, shown
from rldp.display import Displayed, Grid, nats
from rldp.errors import DataError, ParameterError
from rldp.leakage.worst_pairs import WorstPair, pairs, worst_pair
from rldp.protocol.public_protocol import PublicProtocol
from rldp.protocol.questionnaire import Questionnaire
from rldp.protocol.release_protocol import ReleaseProtocol
from rldp.tables.parts import parts_of
from rldp.uncertainty import ConfidenceSet, GivenU, Guarantee, UncertaintySet


@dataclass(frozen=True)
class Witness:
    """Where the worst case is: P(y|s) = ratio · P(y|other_s) under the distribution p_su in F."""

    s: int
    other_s: int
    y: Output
    p_su: Array
    ratio: float


@dataclass(frozen=True)
class Promise:
    """What a table promises by itself, whatever distribution is true, in nats."""

    epsilon_all: float
    epsilon_given_u: float
    epsilon_plain: float


@dataclass(frozen=True)
class Audit(Displayed):
    """What ε a channel really has, in nats.

    `epsilon` is the exact worst case over F. `epsilon_apart` is that over the larger set in which
    the conditionals of different s vary independently, and `epsilon_all` that over all
    distributions. `epsilon_given_u` holds against those who know a person's U, and `epsilon_plain`
    is that of plain local differential privacy of the whole record. `guarantees` has what each
    guarantee of a protocol claims and what the audit finds, by pair of S values too. Those who know
    part of U have `epsilon_given_part`, over F, and `worst_group`, at the table's frequencies; both
    are computed when they are first asked for.
    """

    epsilon: float
    epsilon_apart: float
    epsilon_all: float
    epsilon_given_u: float
    epsilon_plain: float
    witness: Witness
    claimed: float | None = None
    guarantees: tuple[AuditedGuarantee, ...] = ()
    channel: Channel = field(kw_only=True, repr=False, compare=False)
    uncertainty: UncertaintySet = field(kw_only=True, repr=False, compare=False)

    @cached_property
    def epsilon_given_part(self) -> dict[tuple[str, ...], float]:
        """The exact worst case over F for someone who knows some useful columns of a person.

        By the names of the columns, for every part of U (`rldp.tables.parts.parts_of`); empty where
        U has one column, or F itself speaks of someone who knows all of U.
        """
        return given_part(self.channel, self.uncertainty)

    @cached_property
    def worst_group(self) -> WorstGroup | None:
        """Someone who knows that U is one of some values, and whom a report tells most.

        This is at the frequencies of the table and not over F, where such a person may learn more.
        None where the table has fewer than two S values with records.
        """
        return worst_group(self.channel, self.uncertainty.table)

    def _grid(self) -> Grid:
        levels = {
            "someone who knows nothing else, for the truth in F": self.epsilon,
            **{
                f"someone who knows only {' and '.join(part)}, for the truth in F": epsilon
                for part, epsilon in self.epsilon_given_part.items()
            },
            "someone who knows U, whatever is true": self.epsilon_given_u,
            "anyone, whatever is true": self.epsilon_all,
            "anyone who wants to learn any of the record": self.epsilon_plain,
        }
        rows = tuple(
            (who, nats(e), "any" if e == np.inf else f"{np.exp(e):.4g}")
            for who, e in levels.items()
        )
        return Grid("What one report reveals", ("to", "ε", "odds change by at most"), rows)

    @property
    def slack(self) -> float | None:
        """What the claimed ε leaves unused; negative where the claim is broken."""
        return None if self.claimed is None else self.claimed - self.epsilon

    def profile(self, alphas: Iterable[float]) -> dict[float, float]:
        """The exact ε over the same kind of confidence set at each of these levels α.

        A smaller α gives a larger set, and an ε that is no smaller. If the set holds for every
        number of records, the truth lies outside it, so that ε may be larger, with probability α at
        most, for all α at once.

        >>> from rldp import ChiSquareSet, Table, design
        >>> a = audit(design(ChiSquareSet(Table([[40, 10], [20, 30]])), 1.0, "ir"))
        >>> wider = a.profile([0.05, 1e-6])
        >>> wider[0.05] == a.epsilon < wider[1e-6]
        True
        """
        levels = [as_float(alpha) for alpha in checked_tuple(alphas, "several levels alpha")]
        if not isinstance(self.uncertainty, ConfidenceSet):
            raise ParameterError(
                f"Expected an audit over a confidence set, which has an α to change, got one over "
                f"{type(self.uncertainty).__name__}. Audit the protocol over a confidence set "
                f"first: rldp.audit(p, rldp.ChiSquareSet(table)).profile(...)."
            )
        F = self.uncertainty
        sets = {a: type(F)(F.table, **F.arguments | {"alpha": a}) for a in levels}
        return {a: worst_log_ratio(self.channel, wider) for a, wider in sets.items()}


def audit(
    channel: ReleaseProtocol | PublicProtocol | Channel | ArrayLike,
    uncertainty: UncertaintySet | None = None,
) -> Audit:
    """The exact worst case of P(Y=y|S=s)/P(Y=y|S=s') over F, all y and all s ≠ s'.

    Args:
        channel: a protocol, a channel, or a matrix Q[s, u, y] of shape (n_s, n_u, n_y).
        uncertainty: the set F; a protocol brings its own, unless it is the public version.

    >>> from rldp import AllDistributions, Table, design
    >>> F = AllDistributions(Table([[1, 1], [1, 1]]))
    >>> round(audit(design(F, epsilon=1.0, protocol="srr")).epsilon, 9)
    1.0
    """
    claimed: float | None = None
    guarantees: tuple[AuditedGuarantee, ...] = ()
    if isinstance(channel, ReleaseProtocol):
        uncertainty = channel.uncertainty if uncertainty is None else uncertainty
        guarantees = tuple(AuditedGuarantee(g, channel.channel) for g in channel.guarantees)
    if isinstance(channel, ReleaseProtocol | PublicProtocol):
        claimed, channel = channel.epsilon, channel.channel
    if isinstance(channel, Questionnaire):
        raise ParameterError(
            "Expected one protocol, got a questionnaire: audit_questionnaire(q) audits all of it."
        )
    if uncertainty is None:
        raise ParameterError("Expected an uncertainty set F beside a channel or matrix, got none.")
    if not isinstance(uncertainty, UncertaintySet):
        raise ParameterError(
            f"Expected an uncertainty set such as ChiSquareSet(table), got {shown(uncertainty)}."
        )
    if not isinstance(channel, Channel):
        channel = DenseChannel(channel)
    table = uncertainty.table
    if channel.shape != (table.n_s, table.n_u):
        raise DataError(
            f"Expected a channel for {table.n_s} × {table.n_u} cells, got {channel.shape}."
        )
    found = _worst(channel, uncertainty)
    alone = promise(channel)
    return Audit(
        epsilon=max(0.0, found.pair.log_ratio),
        epsilon_apart=found.apart,
        epsilon_all=alone.epsilon_all,
        epsilon_given_u=alone.epsilon_given_u,
        epsilon_plain=alone.epsilon_plain,
        witness=_witness(channel, found.comparisons, uncertainty, found.pair),
        claimed=claimed,
        guarantees=guarantees,
        channel=channel,
        uncertainty=uncertainty,
    )


def promise(channel: Channel) -> Promise:
    """The three ε of a channel that need no set F, without listing its outputs.

    >>> promise(DenseChannel([[[0.75, 0.25]], [[0.25, 0.75]]])).epsilon_given_u == math.log(3)
    True
    """
    ratios = channel.ratio_over_all(), channel.ratio_given_u(), channel.plain_ratio()
    return Promise(*(max(0.0, math.log(ratio)) for ratio in ratios))


def given_part(channel: Channel, F: UncertaintySet) -> dict[tuple[str, ...], float]:
    """The exact ε of a channel over F for someone who knows some useful columns, by their names."""
    parts = () if isinstance(F, GivenU) else parts_of(F.table.schema)
    asked = {part: Guarantee(F, 1.0, knows=part) for part in parts}  # the level plays no role
    return {part: AuditedGuarantee(g, channel).epsilon for part, g in asked.items()}


def worst_log_ratio(channel: Channel, F: UncertaintySet) -> float:
    """The exact ε of a channel over F, without a witness."""
    return max(0.0, _worst(channel, F).pair.log_ratio)


class _Worst(NamedTuple):
    """The worst pair, among which comparisons, and the worst log-ratio of conditionals apart."""

    comparisons: Comparisons
    pair: WorstPair
    apart: float


def _worst(channel: Channel, F: UncertaintySet) -> _Worst:
    """The worst pair over F, of all that may be it by its conditionals apart."""
    found: _Worst | None = None
    for comparisons in channel.comparison_blocks():
        apart = pairs(comparisons, F)
        most = float(apart.log_ratio.max(initial=0.0))
        if found is not None and most <= found.pair.log_ratio:
            continue
        worst = worst_pair(comparisons, F, apart)
        if found is None or worst.log_ratio > found.pair.log_ratio:
            found = _Worst(comparisons, worst, max(most, found.apart if found else 0.0))
        else:
            found = found._replace(apart=max(most, found.apart))
    assert found is not None
    return found


def _witness(
    channel: Channel, comparisons: Comparisons, F: UncertaintySet, worst: WorstPair
) -> Witness:
    """The distribution behind the worst pair, checked to lie in F."""
    s_1, s_2 = int(comparisons.s[worst.first]), int(comparisons.s[worst.second])
    others = [s for s in range(F.table.n_s) if s not in (s_1, s_2)]
    s_1, s_2 = (others[0] if s == ANYONE else s for s in (s_1, s_2))
    T_1, T_2 = (comparisons.vectors[e] for e in (worst.first, worst.second))
    T_1, T_2 = (np.where(np.isinf(T), 1e100, T) for T in (T_1, T_2))
    p_su = F.worst_distribution(T_1, s_1, T_2, s_2)
    assert F.contains(p_su), "the witness must lie in F"
    p_su.setflags(write=False)
    y = channel.output(comparisons, worst.first, worst.second)
    return Witness(s_1, s_2, y, p_su, math.exp(worst.log_ratio))
