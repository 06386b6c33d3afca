"""Protocols that come out of a linear programme rather than a formula.

Privacy is a condition on one output at a time and does not change with the output's scale. So
outputs of different private protocols, each times some factor, make a private protocol wherever
they sum to 1 for every input, and the best such mixture is a linear programme.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from rldp.channel import Channel, DenseChannel
from rldp.errors import ParameterError
from rldp.optimal.solve import optimal_columns
from rldp.polyopt.columns import Progress
from rldp.polyopt.robust import robust_columns
from rldp.polyopt.solve import best_columns, is_optimal
from rldp.protocol import Parameter
from rldp.protocols import srr
from rldp.table import Table
from rldp.uncertainty import AllDistributions, KnownDistribution, UncertaintySet

Array = NDArray[np.float64]

PAIRS = ("distinct", "all")
OBJECTIVES = ("empirical", "robust")
_THRESHOLD_STEP = 1e-3


@dataclass(frozen=True)
class Options:
    """What a programme may be told."""

    pairs: str = "distinct"
    objective: str = "empirical"
    hidden: bool = False
    time_limit: float = 30.0
    progress: Progress | None = None

    def __post_init__(self) -> None:
        """Refuse what nobody knows."""
        if self.pairs not in PAIRS:
            raise ParameterError(f"Expected pairs among {', '.join(PAIRS)}, got {self.pairs!r}.")
        if self.objective not in OBJECTIVES:
            raise ParameterError(
                f"Expected objective among {', '.join(OBJECTIVES)}, got {self.objective!r}."
            )
        if not self.time_limit > 0:
            raise ParameterError(f"Expected time_limit > 0 seconds, got {self.time_limit}.")

    @property
    def deadline(self) -> float:
        """When to stop, by time.monotonic()."""
        return time.monotonic() + self.time_limit


@dataclass(frozen=True)
class Outcome:
    """A channel, and what no protocol of its kind can exceed; ∞ where nothing is known."""

    channel: Channel
    bound: float
    parameters: dict[str, Parameter] = field(default_factory=dict)


def polyopt(
    F: UncertaintySet, epsilon: float, options: Options, channels: Sequence[Channel] = ()
) -> Outcome:
    """The best protocol with columns in Γ, thm:poly2; outputs of channels begin the search.

    Formal guarantee: private for every P with P_{u|s} ≥ P^min_{u|s}, a set that contains F.
    """
    distinct = options.pairs == "distinct"
    p_su, p_min = F.table.p_su, F.conditional_bounds[0]
    if options.objective == "robust":
        robust = robust_columns(
            F, epsilon, distinct=distinct, deadline=options.deadline, progress=options.progress
        )
        return Outcome(DenseChannel(robust.Q), robust.bound, {"guaranteed_utility": robust.utility})
    found = best_columns(
        p_su,
        p_min,
        epsilon,
        distinct=distinct,
        seeds=_columns(channels),
        deadline=options.deadline,
        progress=options.progress,
    )
    return Outcome(DenseChannel(found.Q), min(found.bound, F.table.entropy))


def optimal(
    F: UncertaintySet, epsilon: float, options: Options, channels: Sequence[Channel] = ()
) -> Outcome:
    """The best protocol found among all that are private over F, with what none can exceed.

    Outputs of channels that are private over F are mixed in. Over all distributions, or a known
    one, the cone of PolyOpt holds every private column, and the optimum is exact. With `hidden` no
    output depends on s.
    """
    if isinstance(F, AllDistributions | KnownDistribution) and not options.hidden:
        return polyopt(F, epsilon, replace(options, pairs="distinct", objective="empirical"))
    found = optimal_columns(
        F,
        epsilon,
        hidden=options.hidden,
        seeds=_columns(channels),
        deadline=options.deadline,
        progress=options.progress,
    )
    shape = (F.table.n_s, F.table.n_u, found.Q.shape[2])
    return Outcome(DenseChannel(np.broadcast_to(found.Q, shape)), found.bound)


def ldp_optimal(F: UncertaintySet, epsilon: float, options: Options) -> Outcome:
    """The best protocol that protects the whole record: plain ε-LDP for (S, U).

    Every cell counts as an S value of its own, and Γ becomes the cone of staircase mechanisms.
    """
    n_s, n_u = F.table.n_s, F.table.n_u
    found = best_columns(
        F.table.p_su.reshape(-1, 1),
        np.ones((n_s * n_u, 1)),
        epsilon,
        distinct=False,
        deadline=options.deadline,
        progress=options.progress,
    )
    return Outcome(DenseChannel(found.Q.reshape(n_s, n_u, -1)), found.bound)


def ceiling(F: UncertaintySet, epsilon: float, time_limit: float = 30.0) -> float:
    """What no protocol can exceed, in nats: a bound on the optimum for known P = P̂.

    A protocol that is private over F is private at P̂, which belongs to F.

    >>> from rldp import ChiSquareSet, Table
    >>> F = ChiSquareSet(Table([[30, 30], [20, 20]]))  # U tells nothing of S: it is sent as it is,
    >>> round(float(ceiling(F, 1.0) - np.log(2)), 4)  # and S by randomised response
    0.1067
    """
    known = KnownDistribution(F.table)
    found = best_columns(
        F.table.p_su,
        known.conditional_bounds[0],
        epsilon,
        distinct=True,
        deadline=Options(time_limit=time_limit).deadline,
    )
    return min(found.bound, F.table.entropy)


def srr_threshold(table: Table, largest: float = 20.0) -> float:
    """The ε_0 from which on SRR is the best protocol for all distributions (thm:sgrr); ∞ if none.

    >>> srr_threshold(Table([[300, 0], [100, 500]]))  # an empty cell
    inf
    """
    F = AllDistributions(table)

    def is_best(epsilon: float) -> bool:
        Q = srr.channel(F, epsilon, {}).matrix
        return is_optimal(Q, table.p_su, F.conditional_bounds[0], epsilon)

    if not is_best(largest):
        return np.inf
    low, high = 0.0, largest
    while high - low > _THRESHOLD_STEP:
        middle = (low + high) / 2
        low, high = (low, middle) if is_best(middle) else (middle, high)
    return high


def _columns(channels: Sequence[Channel]) -> Array | None:
    """The outputs of channels, shape (columns, n_s, n_u)."""
    columns = [np.moveaxis(_distinct(channel.matrix), 2, 0) for channel in channels]
    return np.concatenate(columns) if columns else None


def _distinct(Q: Array) -> Array:
    """Q without outputs that tell the same as others, or that cannot occur at all."""
    Q = Q[:, :, Q.max(axis=(0, 1)) > 0]
    shape = (Q / Q.sum(axis=(0, 1))).round(12)
    _, first = np.unique(shape.reshape(-1, Q.shape[2]), axis=1, return_index=True)
    return np.asarray(Q[:, :, np.sort(first)])
