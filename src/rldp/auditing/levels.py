"""How far one report can move the odds on S, by what someone knows and what is true."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rldp.auditing.audit import Promise, promise
from rldp.protocol.release_protocol import ReleaseProtocol
from rldp.uncertainty import AllDistributions, GivenU, Guarantee


@dataclass(frozen=True)
class Levels:
    """ε in nats; every level but the first holds whatever the distribution is.

    A level that a protocol guarantees is the guaranteed one, any other is what an audit finds.

    Attributes:
        over_f: against someone who knows nothing about the person but that P is in F.
        given_u: against someone who knows U.
        everything: against someone who knows anything else, with S itself unknown.
        plain: of the whole record (S, U), plain local differential privacy.
        guarantees: what the protocol promises, the guarantee over its own F first.
    """

    over_f: float
    given_u: float
    everything: float
    plain: float
    guarantees: tuple[Guarantee, ...] = ()

    @property
    def is_given_u_promised(self) -> bool:
        """Whether a guarantee for all pairs speaks of someone who knows U."""
        return bool(_levels_over(self.guarantees, GivenU))

    @property
    def is_everything_promised(self) -> bool:
        """Whether a guarantee for all pairs speaks of all distributions."""
        return bool(_levels_over(self.guarantees, AllDistributions))


def levels(p: ReleaseProtocol) -> Levels:
    """The proved levels of a protocol, and those that hold beyond."""
    return levels_of(p.epsilon, promise(p.channel), p.guarantees)


def levels_of(over_f: float, found: Promise, guarantees: Iterable[Guarantee] = ()) -> Levels:
    """Levels from an audit and from guarantees that it does not contradict."""
    guarantees = tuple(guarantees)
    given_u = _least(guarantees, GivenU, found.epsilon_given_u)
    everything = _least(guarantees, AllDistributions, found.epsilon_all)
    return Levels(over_f, given_u, everything, found.epsilon_plain, guarantees)


def _least(guarantees: tuple[Guarantee, ...], kind: type, audited: float) -> float:
    """The least level that is guaranteed for all pairs over a kind of set, else the audited one."""
    return min(_levels_over(guarantees, kind), default=audited)


def _levels_over(guarantees: Iterable[Guarantee], kind: type) -> list[float]:
    """Levels for all pairs that are guaranteed over a kind of set, whatever someone knows of U."""
    return [
        g.epsilon
        for g in guarantees
        if isinstance(g.uncertainty, kind) and g.is_complete and not g.knows
    ]
