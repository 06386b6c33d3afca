"""From a designed channel to the integer table that runs, and the proof of all it promises.

The table is the channel rounded to units of 2^-bits. Where rounding, or a design that is exact to
the last digit, exceeds a level slightly, the channel is pulled in by the least amount that restores
it. `rldp.proof` then checks a certificate for each guarantee, all over the one table, with integers
only; a table that it refuses is never returned.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from rldp._types import Array, Indices, Integers
from rldp.arithmetic import exp
from rldp.channel import ANYONE, Channel, IntegerParts
from rldp.decimals import shortest
from rldp.designing.problem import Found
from rldp.designing.solvers.one_thread import on_one_thread
from rldp.errors import CertificateError, DataError
from rldp.leakage.views import View, views
from rldp.leakage.worst_pairs import pairs, relative_to, unsettled
from rldp.proof import Proof, ProofError, check
from rldp.protocol import documents
from rldp.protocol.guarantees import CertifiedGuarantee, proof_document
from rldp.protocol.release_protocol import ReleaseProtocol
from rldp.uncertainty import AllDistributions, BudgetSet, EvidenceSet, Guarantee

Document = dict[str, Any]

BITS = 62  # of a table that runs: the rounding of probabilities to units of 2^-62
_PULLS = tuple(2.0**-e for e in range(44, 9, -6))  # tried against rounding, the least first
_TIGHT = 1e-13  # log-ratios this close to their level do not survive rounding
_NEAR = 1e-9  # log-ratios this close to their level count as tight


class Certified(NamedTuple):
    """The channel that runs, as integers, and what proves each of its guarantees."""

    channel: Channel
    integers: IntegerParts
    bits: int
    certificates: tuple[Document, ...]
    proof: Proof

    @property
    def certificate(self) -> Document:
        """That of the first guarantee."""
        return self.certificates[0]


@on_one_thread
def proved(found: Found, guarantees: Sequence[Guarantee]) -> ReleaseProtocol:
    """The protocol with an integer table that provably keeps all guarantees.

    The set of the first is the F that the protocol was designed for.
    """
    first, *others = guarantees
    F = first.uncertainty
    if found.integers is None:
        table = certified(found.channel, guarantees)
    else:
        table = certified_as_it_is(found.channel, found.integers, guarantees)
    kept = table.channel.mutual_information(F.table.p_su)
    return ReleaseProtocol(
        name=found.name,
        epsilon=first.epsilon,
        uncertainty=F,
        channel=table.channel,
        integers=table.integers,
        bits=table.bits,
        certificate=table.certificate,
        parameters=dict(found.parameters),
        options=found.options,
        optimality_gap=None if np.isinf(found.bound) else max(0.0, found.bound - kept),
        rounding_loss=max(0.0, found.utility(F) - kept),
        ended=found.ended,
        goal=found.goal,
        levels=first.levels,
        others=tuple(map(CertifiedGuarantee, others, table.certificates[1:])),
    )


def certified(channel: Channel, guarantees: Sequence[Guarantee], bits: int = BITS) -> Certified:
    """Round a channel to an integer table that provably keeps all guarantees."""
    refusal = ""
    is_tight = any(_is_tight(channel, g) for g in guarantees)
    for t in _PULLS if is_tight else (0.0, *_PULLS):
        integers = (channel.pulled_in(t) if t else channel).rounded(bits)
        try:
            return certified_as_it_is(channel, integers, guarantees, bits)
        except (DataError, ProofError) as error:  # too few bits for all outputs, or for the proof
            refusal = str(error)
    levels = " and ".join(f"ε = {shortest(g.epsilon)}" for g in guarantees)
    raise CertificateError(f"No table of {bits} bits proves {levels}. {refusal}")


def certified_as_it_is(
    channel: Channel, integers: IntegerParts, guarantees: Sequence[Guarantee], bits: int = BITS
) -> Certified:
    """A table of integers with certificates that prove all guarantees; refused without proof."""
    exact = channel.from_integers(integers, bits)
    certificates = tuple(certificate(exact, integers, g, bits) for g in guarantees)
    document = {
        "epsilon": guarantees[0].epsilon,
        "schema": documents.schema_document(guarantees[0].table.schema),
        "channel": documents.channel_document(exact, integers, bits),
        **proof_document(list(map(CertifiedGuarantee, guarantees, certificates))),
    }
    return Certified(exact, integers, bits, certificates, check(document))


def _is_tight(channel: Channel, guarantee: Guarantee) -> bool:
    """Whether a log-ratio is at the level of its pair, where each conditional varies apart."""
    for comparisons in channel.comparison_blocks():
        for view in views(comparisons, guarantee):
            F, levels = view.uncertainty, view.levels - _TIGHT
            some = unsettled(view.comparisons, F, levels)
            if some is not None and (pairs(relative_to(some, levels), F).log_ratio > 0).any():
                return True
    return False


def certificate(
    channel: Channel, integers: IntegerParts, guarantee: Guarantee, bits: int
) -> Document:
    """The multipliers that make the checker's bounds as tight as they can be."""
    F = guarantee.uncertainty
    above = 1 + Fraction(1, 10**12)  # what the checker can prove without doubt
    constants = F.certificate_constants(above)
    parts: list[Document] = []
    for comparisons in channel.comparison_blocks():
        found = [_of_view(channel, integers, view, bits) for view in views(comparisons, guarantee)]
        for part, more in zip(parts, found, strict=bool(parts)):
            part["joint"] += more["joint"]
        parts = parts or found
    return {**constants, "parts": parts} if guarantee.knows else {**parts[0], **constants}


def _of_view(channel: Channel, integers: IntegerParts, view: View, bits: int) -> Document:
    found: Document = {"multipliers": None, "joint": []}
    F = view.uncertainty
    if isinstance(F, EvidenceSet):
        return found | {"multipliers": _vectors(channel, integers, view, F, bits)}
    if not isinstance(F, BudgetSet):
        return found  # no multipliers are needed
    if not channel.has_multipliers:  # what is within its level by extremes needs no look
        everything = AllDistributions(F.table)
        some = unsettled(view.comparisons, everything, view.levels)
        some = None if some is None else unsettled(some, F, view.levels)
        if some is None:
            return found
        view = view._replace(comparisons=some)
    comparisons = relative_to(view.comparisons, view.levels)
    if pairs(comparisons, AllDistributions(F.table)).log_ratio.max(initial=-np.inf) <= 0:
        return found  # largest and smallest entries are enough
    if channel.has_multipliers:
        found["multipliers"] = _multipliers(channel, integers, view, F, bits)
    apart = pairs(comparisons, F)
    if apart.log_ratio.max() > _NEAR:
        tight = (apart.log_ratio > -_NEAR) & np.isfinite(apart.log_ratio)
        first, second = apart.first[tight], apart.second[tight]
        found["joint"] = _joint(channel, integers, view, F, first, second)
    return found


def _vectors(
    channel: Channel, integers: IntegerParts, view: View, F: EvidenceSet, bits: int
) -> Document | None:
    """Multipliers of every vector in both directions, as integers in units of the table."""
    if not channel.has_multipliers:
        return None
    everything = AllDistributions(F.table)
    comparisons = relative_to(view.comparisons, view.levels)
    if pairs(comparisons, everything).log_ratio.max(initial=-np.inf) <= 0:
        return None  # largest and smallest entries are enough
    whole, s = channel.bounded_vectors(integers)
    q, rows = whole[..., view.cells], view.rows(s)
    found: dict[str, list[list[str]]] = {"upper": [], "lower": []}
    for vectors, of_s in zip(q, np.broadcast_to(rows, q.shape[:2]), strict=True):
        for name, sign in (("upper", 1.0), ("lower", -1.0)):
            cores = (
                F.bound(sign * (x / 2.0**bits), int(r))[1]
                for x, r in zip(vectors, of_s, strict=True)
            )
            found[name].append(
                [
                    "" if v is None else " ".join(str(round(x * 2.0**bits)) for x in v.tolist())
                    for v in cores
                ]
            )
    return found


def _multipliers(
    channel: Channel, integers: IntegerParts, view: View, F: BudgetSet, bits: int
) -> Document:
    """η of every vector in both directions, as integers beyond its extreme entries."""
    whole, s = channel.bounded_vectors(integers)
    q = whole[..., view.cells]
    low, high = F.extrema(q / 2.0**bits, view.rows(s))
    return {
        "upper": _beyond(q.max(axis=-1), high.distance, 2.0**bits),
        "lower": _beyond(q.min(axis=-1), -low.distance, 2.0**bits),
    }


def _beyond(extreme: Integers, distance: Array, unit: float) -> list[list[str]]:
    return [
        [str(int(q) + round(float(x) * unit)) for q, x in zip(*row, strict=True)]
        for row in zip(extreme, distance, strict=True)
    ]


def _joint(
    channel: Channel,
    integers: IntegerParts,
    view: View,
    F: BudgetSet,
    first: Indices,
    second: Indices,
) -> list[list[Any]]:
    """μ_1, μ_2 and η of each pair that only the shared budget of F keeps within its level."""
    comparisons = view.comparisons
    s_1, s_2 = comparisons.s[first], comparisons.s[second]
    shares = (s_1 != ANYONE) & (s_2 != ANYONE) & (F.table.p_s[s_1] > 0) & (F.table.p_s[s_2] > 0)
    first, second, s_1, s_2 = first[shares], second[shares], s_1[shares], s_2[shares]
    p_s, E = F.table.p_s, exp(view.levels[s_1, s_2])
    factor = np.ones(first.size) if comparisons.factors is None else comparisons.factors[s_1, s_2]
    T_1, T_2 = factor[:, None] * comparisons.vectors[first], comparisons.vectors[second]
    split = F.split(T_1, s_1, T_2, s_2, F.budget, ratio=E)
    # the price of budget: both sides agree on it, unless one of them has all and would take more
    eta = np.maximum(split.top.slope / p_s[s_1], -E * split.bottom.slope / p_s[s_2])
    entries = []
    for i, (e_1, e_2) in enumerate(zip(first, second, strict=True)):
        sides = channel.sides(integers, view.of_channel, int(e_1), int(e_2))
        index, a_1, q_1, a_2, q_2, unit = sides._replace(
            q_1=sides.q_1[view.cells], q_2=sides.q_2[view.cells]
        )
        below_E = Fraction(float(E[i])) * (1 - Fraction(1, 2**50))
        mu_1 = a_1 * int(q_1.max()) + round(float(split.top.distance[i]) * unit)
        fall = round(float(E[i]) * float(split.bottom.distance[i]) * unit)
        mu_2 = -below_E * a_2 * int(q_2.min()) + fall
        entries.append(
            [
                *index,
                str(mu_1),
                str(-(-mu_2.numerator // mu_2.denominator)),
                str(round(float(eta[i]) * unit)),
            ]
        )
    return entries
