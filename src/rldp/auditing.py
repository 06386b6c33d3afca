"""The exact worst case of any channel over any set F, with the distribution that attains it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rldp.channel import ANYONE, Channel, Contests, DenseChannel
from rldp.channel.base import Output
from rldp.contest import WorstPair, pairs, worst_pair
from rldp.errors import DataError, ParameterError
from rldp.protocol import ReleaseProtocol
from rldp.uncertainty import AllDistributions, UncertaintySet

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Witness:
    """Where the worst case is: P(y|s) = ratio · P(y|other_s) under the distribution p_su in F."""

    s: int
    other_s: int
    y: Output
    p_su: Array
    ratio: float


@dataclass(frozen=True)
class Audit:
    """What ε a channel really has, in nats.

    `epsilon` is the exact worst case over F. `epsilon_apart` is that over the larger set in which
    the conditionals of different s vary independently, `epsilon_all` that over all distributions,
    and `epsilon_plain` that of plain local differential privacy of the whole record.
    """

    epsilon: float
    epsilon_apart: float
    epsilon_all: float
    epsilon_plain: float
    witness: Witness
    claimed: float | None = None

    @property
    def slack(self) -> float | None:
        """What the claimed ε leaves unused; negative where the claim is broken."""
        return None if self.claimed is None else self.claimed - self.epsilon


def audit(
    channel: ReleaseProtocol | Channel | ArrayLike, uncertainty: UncertaintySet | None = None
) -> Audit:
    """The exact worst case of P(Y=y|S=s)/P(Y=y|S=s') over F, all y and all s ≠ s'.

    Args:
        channel: a protocol, a channel, or a matrix Q[s, u, y] of shape (n_s, n_u, n_y).
        uncertainty: the set F; a protocol brings its own.

    >>> from rldp import AllDistributions, Table, design
    >>> F = AllDistributions(Table([[1, 1], [1, 1]]))
    >>> round(audit(design(F, epsilon=1.0, protocol="srr")).epsilon, 9)
    1.0
    """
    claimed = None
    if isinstance(channel, ReleaseProtocol):
        uncertainty = channel.uncertainty if uncertainty is None else uncertainty
        claimed, channel = channel.epsilon, channel.channel
    if uncertainty is None:
        raise ParameterError("Expected an uncertainty set F beside a channel or matrix, got none.")
    if not isinstance(channel, Channel):
        channel = DenseChannel(channel)
    table = uncertainty.table
    if channel.shape != (table.n_s, table.n_u):
        raise DataError(
            f"Expected a channel for {table.n_s} × {table.n_u} cells, got {channel.shape}."
        )
    contests = channel.contests()
    apart = pairs(contests, uncertainty)
    worst = worst_pair(contests, uncertainty, apart)
    everything = pairs(contests, AllDistributions(table))
    return Audit(
        epsilon=max(0.0, worst.log_ratio),
        epsilon_apart=float(apart.log_ratio.max(initial=0.0)),
        epsilon_all=float(everything.log_ratio.max(initial=0.0)),
        epsilon_plain=math.log(channel.plain_ratio()),
        witness=_witness(channel, contests, uncertainty, worst),
        claimed=claimed,
    )


def worst_log_ratio(channel: Channel, F: UncertaintySet) -> float:
    """The exact ε of a channel over F, without a witness."""
    contests = channel.contests()
    return max(0.0, worst_pair(contests, F, pairs(contests, F)).log_ratio)


def _witness(channel: Channel, contests: Contests, F: UncertaintySet, worst: WorstPair) -> Witness:
    """The distribution behind the worst pair, checked to lie in F."""
    s_1, s_2 = int(contests.s[worst.first]), int(contests.s[worst.second])
    others = [s for s in range(F.table.n_s) if s not in (s_1, s_2)]
    s_1, s_2 = (others[0] if s == ANYONE else s for s in (s_1, s_2))
    T_1, T_2 = (contests.vectors[e] for e in (worst.first, worst.second))
    T_1, T_2 = (np.where(np.isinf(T), 1e100, T) for T in (T_1, T_2))
    p_su = F.worst_distribution(T_1, s_1, T_2, s_2)
    assert F.contains(p_su), "the witness must lie in F"
    p_su.setflags(write=False)
    y = channel.output(contests, worst.first, worst.second)
    return Witness(s_1, s_2, y, p_su, math.exp(worst.log_ratio))
