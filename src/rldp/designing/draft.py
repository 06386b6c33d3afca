"""A designed protocol before it is rounded and proved, and the step to a proven one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rldp.channel import Channel, IntegerParts
from rldp.designing.certify import certified, certified_as_it_is
from rldp.designing.solvers.one_thread import on_one_thread
from rldp.protocol.guarantees import CertifiedGuarantee
from rldp.protocol.release_protocol import CLOSED, Parameter, ReleaseProtocol
from rldp.uncertainty import Guarantee, UncertaintySet
from rldp.utility.goal import Goal
from rldp.utility.robust import smallest_informations

_GUARANTEED = "guaranteed_utility"


@dataclass(frozen=True)
class Draft:
    """What was designed, under the name and with the parameters of what is released."""

    name: str
    channel: Channel
    parameters: Mapping[str, Parameter]
    options: Mapping[str, str]
    bound: float = np.inf  # nats that no protocol of this kind exceeds
    ended: str = CLOSED
    goal: Goal | None = None  # what it was designed for; None for information
    integers: IntegerParts | None = None  # the table itself where it must not be rounded

    def utility(self, F: UncertaintySet) -> float:
        """I(X;Y) at the frequencies of the table, in nats."""
        return self.channel.mutual_information(F.table.p_su)


@on_one_thread
def proved(draft: Draft, guarantees: Sequence[Guarantee]) -> ReleaseProtocol:
    """The protocol with an integer table that provably keeps all guarantees.

    The set of the first is the F that the protocol was designed for.
    """
    first, *others = guarantees
    F = first.uncertainty
    if draft.integers is None:
        table = certified(draft.channel, guarantees)
    else:
        table = certified_as_it_is(draft.channel, draft.integers, guarantees)
    kept = reached = table.channel.mutual_information(F.table.p_su)
    parameters = dict(draft.parameters)
    if _GUARANTEED in parameters:  # of the table that runs, which may be mixed or pulled in
        columns = table.channel.matrix.transpose(2, 0, 1)
        parameters[_GUARANTEED] = reached = math.fsum(smallest_informations(columns, F).lower)
    return ReleaseProtocol(
        name=draft.name,
        epsilon=first.epsilon,
        uncertainty=F,
        channel=table.channel,
        integers=table.integers,
        bits=table.bits,
        certificate=table.certificate,
        parameters=parameters,
        options=draft.options,
        optimality_gap=None if np.isinf(draft.bound) else max(0.0, draft.bound - reached),
        rounding_loss=max(0.0, draft.utility(F) - kept),
        ended=draft.ended,
        goal=draft.goal,
        levels=first.levels,
        others=tuple(map(CertifiedGuarantee, others, table.certificates[1:])),
    )
