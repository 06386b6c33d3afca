"""What a protocol promises, guarantee by guarantee, beside what an audit finds."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from rldp._types import Array
from rldp.channel import Channel
from rldp.decimals import AUDIT_ATOL
from rldp.leakage.views import views, worst_levels
from rldp.leakage.worst_pairs import pairs, worst_pair
from rldp.uncertainty import Guarantee, UncertaintySet


class Pair(NamedTuple):
    """An ordered pair of S values: its claimed and its audited level of P(y|s)/P(y|s'), in nats."""

    s: str
    other_s: str
    claimed: float
    audited: float

    @property
    def slack(self) -> float:
        """What the claim leaves unused; negative where it is broken."""
        return self.claimed - self.audited


@dataclass(frozen=True)
class AuditedGuarantee:
    """A guarantee (F, levels) and the exact worst case of a channel over the same F.

    Everything is computed when it is first asked for.
    """

    guarantee: Guarantee
    channel: Channel = field(repr=False, compare=False)

    @property
    def uncertainty(self) -> UncertaintySet:
        """The set that the guarantee speaks of."""
        return self.guarantee.uncertainty

    @property
    def claimed(self) -> float:
        """The largest level that is promised, in nats."""
        return self.guarantee.epsilon

    @cached_property
    def levels(self) -> Array:
        """The audited level of every ordered pair, shape (n_s, n_s); -∞ on the diagonal."""
        blocks = self.channel.comparison_blocks()
        levels: Array = np.max([worst_levels(block, self.guarantee) for block in blocks], axis=0)
        levels.setflags(write=False)
        return levels

    @cached_property
    def epsilon(self) -> float:
        """The largest audited level of the pairs with a promise, in nats."""
        if not self.guarantee.is_complete:
            return float(self.levels[self.guarantee.is_promised_pair].max())
        found = 0.0
        for block in self.channel.comparison_blocks():
            for view in views(block, self.guarantee):
                apart = pairs(view.comparisons, view.uncertainty)
                if apart.log_ratio.max(initial=0.0) > found:
                    worst = worst_pair(view.comparisons, view.uncertainty, apart)
                    found = max(found, worst.log_ratio)
        return found

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """The pairs with a promise, the least slack first."""
        g, labels = self.guarantee, self.guarantee.table.schema.s_labels
        found = [
            Pair(labels[s], labels[t], float(g.levels[s, t]), float(self.levels[s, t]))
            for s, t in np.argwhere(g.is_promised_pair).tolist()
        ]
        return tuple(sorted(found, key=lambda pair: pair.slack))

    @cached_property
    def slack(self) -> float:
        """The least that a claimed level leaves unused; negative where the claim is broken."""
        if self.guarantee.is_uniform:
            return self.claimed - self.epsilon
        return self.pairs[0].slack

    @property
    def holds(self) -> bool:
        """Whether every audited level is within its claim, up to rounding."""
        return self.slack >= -AUDIT_ATOL
