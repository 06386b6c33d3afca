"""How far one report can move the odds on S, by what someone knows and what is true."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rldp.auditing.audit import Promise, promise
from rldp.auditing.guarantees import AuditedGuarantee
from rldp.decimals import AUDIT_ATOL
from rldp.protocol.release_protocol import ReleaseProtocol
from rldp.tables.parts import parts_of
from rldp.uncertainty import AllDistributions, GivenU, Guarantee

PartLevels = Mapping[tuple[str, ...], float]


@dataclass(frozen=True)
class Levels:
    """ε in nats; all but `over_f` and `given_part` hold whatever the distribution is.

    A level that a protocol guarantees is the guaranteed one, any other is what an audit finds.

    Attributes:
        over_f: against someone who knows nothing about the person but that P is in F.
        given_part: over F too, against someone who knows these columns of U and not the rest; empty
            where U has one column, or where `everything` is no more than `over_f`.
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
    given_part: PartLevels = field(default_factory=dict)

    @property
    def unpromised_parts(self) -> PartLevels:
        """The audited levels of parts of U that no guarantee for all pairs speaks of."""
        promised = {g.knows for g in self.guarantees if g.is_complete}
        return {part: e for part, e in self.given_part.items() if part not in promised}

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
    found = promise(p.channel)
    parts: PartLevels = {}
    if not _is_within(found.epsilon_all, p.epsilon):
        parts = part_levels(p)
    return levels_of(p.epsilon, found, p.guarantees, parts)


def part_levels(p: ReleaseProtocol) -> PartLevels:
    """For each part of U the level that a protocol promises to those who know it, or an audit's."""
    F, found = p.uncertainty, {}
    for part in () if isinstance(F, GivenU) else parts_of(p.schema):
        promised = _promised_to(part, p.guarantees)
        asked = AuditedGuarantee(Guarantee(F, 1.0, knows=part), p.channel)  # at any level
        found[part] = asked.epsilon if promised is None else promised
    return found


def levels_of(
    over_f: float,
    found: Promise,
    guarantees: Iterable[Guarantee] = (),
    audited_parts: PartLevels | None = None,
) -> Levels:
    """Levels from an audit and from guarantees that it does not contradict."""
    guarantees = tuple(guarantees)
    given_u = _least(guarantees, GivenU, found.epsilon_given_u)
    everything = _least(guarantees, AllDistributions, found.epsilon_all)
    parts = dict(audited_parts or {})
    if _is_within(found.epsilon_all, over_f):
        everything, parts = min(everything, over_f), {}  # ε itself holds for everyone
    for part in parts:
        promised = _promised_to(part, guarantees)
        parts[part] = parts[part] if promised is None else promised
    return Levels(over_f, given_u, everything, found.epsilon_plain, guarantees, parts)


def _is_within(level: float, epsilon: float) -> bool:
    return level <= epsilon + AUDIT_ATOL


def _promised_to(part: tuple[str, ...], guarantees: Iterable[Guarantee]) -> float | None:
    """The least level for all pairs that is guaranteed to those who know a part."""
    return min((g.epsilon for g in guarantees if g.knows == part and g.is_complete), default=None)


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
