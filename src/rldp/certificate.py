"""From a designed channel to the integer table that runs, and the proof of its ε.

The table is the channel rounded to units of 2^-bits. Where rounding, or a design that is exact to
the last digit, breaks ε by a hair, the channel is pulled in by the least amount that restores it.
`rldp.proof` then checks the certificate with integers only; nothing that it refuses leaves here.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rldp import documents
from rldp.channel import (
    ANYONE,
    Channel,
    ChoiceChannel,
    Contests,
    DenseChannel,
    IndependentChannel,
    IntegerParts,
)
from rldp.contest import pairs
from rldp.errors import CertificateError, DataError
from rldp.proof import Proof, ProofError, check
from rldp.uncertainty import AllDistributions, BudgetSet, TotalVariationSet, UncertaintySet

Array = NDArray[np.float64]
Document = dict[str, Any]

BITS = 62
_PULLS = tuple(2.0**-e for e in range(44, 9, -6))
_TIGHT = 1e-13  # log-ratios this close to ε do not survive rounding
_NEAR = 1e-9  # log-ratios this close to ε count as tight


class Certified(NamedTuple):
    """The channel that runs, as integers, and what proves its ε."""

    channel: Channel
    integers: IntegerParts
    bits: int
    certificate: Document
    proof: Proof


def certified(channel: Channel, F: UncertaintySet, epsilon: float, bits: int = BITS) -> Certified:
    """Round a channel to an integer table that is provably (ε, F)-RLDP."""
    refusal = ""
    is_tight = pairs(channel.contests(), F).log_ratio.max(initial=0.0) > epsilon - _TIGHT
    for t in _PULLS if is_tight else (0.0, *_PULLS):
        integers = (channel.pulled_in(t) if t else channel).rounded(bits)
        try:
            exact = type(channel)(**{name: N / 2.0**bits for name, N in integers.items()})
            certificate = _certificate(exact, integers, F, epsilon, bits)
            document = {
                "epsilon": epsilon,
                "uncertainty": documents.uncertainty_document(F),
                "channel": documents.channel_document(exact, integers, bits),
                "certificate": certificate,
            }
            return Certified(exact, integers, bits, certificate, check(document))
        except (DataError, ProofError) as error:  # too few bits for all outputs, or for the proof
            refusal = str(error)
    raise CertificateError(f"No table of {bits} bits proves ε = {epsilon:g}. {refusal}")


def _certificate(
    channel: Channel, integers: IntegerParts, F: UncertaintySet, epsilon: float, bits: int
) -> Document:
    """The multipliers that make the checker's bounds as tight as they can be."""
    contests = channel.contests()
    certificate: Document = {"multipliers": None, "joint": []}
    above = 1 + Fraction(1, 10**12)  # what the checker can prove without doubt
    if isinstance(F, TotalVariationSet):
        certificate["radius"] = str(Fraction(F.radius) * above)
    if not isinstance(F, BudgetSet):
        return certificate  # no multipliers are needed
    certificate["quantile"] = str(Fraction(F.quantile) * above)
    if pairs(contests, AllDistributions(F.table)).log_ratio.max(initial=0.0) <= epsilon:
        return certificate  # largest and smallest entries are enough
    certificate["multipliers"] = _multipliers(channel, integers, F, bits)
    apart = pairs(contests, F)
    if apart.log_ratio.max() > epsilon + _NEAR:
        tight = (apart.log_ratio > epsilon - _NEAR) & np.isfinite(apart.log_ratio)
        first, second = apart.first[tight], apart.second[tight]
        certificate["joint"] = _joint(channel, integers, contests, F, epsilon, first, second)
    return certificate


def _multipliers(channel: Channel, integers: IntegerParts, F: BudgetSet, bits: int) -> Document:
    """η of every vector in both directions, as integers beyond its extreme entries."""
    q, s = _vectors(channel, integers)
    low, high = F.extrema(q / 2.0**bits, s)
    return {
        "upper": _beyond(q.max(axis=-1), high.distance, 2.0**bits),
        "lower": _beyond(q.min(axis=-1), -low.distance, 2.0**bits),
    }


def _vectors(
    channel: Channel, integers: IntegerParts
) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """The vectors that the checker bounds, with two leading axes in its order, and their s."""
    n_s = channel.shape[0]
    match channel:
        case DenseChannel():
            q = integers["Q"].transpose(2, 0, 1)
        case IndependentChannel():
            q = np.repeat(integers["r_u"].T[:, None, :], n_s, axis=1)
        case ChoiceChannel():
            q = integers["own"].transpose(0, 2, 1)
            return q, np.repeat(np.arange(n_s)[:, None], q.shape[1], axis=1)
        case _:
            q = integers["own"].transpose(2, 0, 1)
    return q, np.repeat(np.arange(n_s)[None], q.shape[0], axis=0)


def _beyond(extreme: NDArray[np.int64], distance: Array, unit: float) -> list[list[str]]:
    return [
        [str(int(q) + round(float(x) * unit)) for q, x in zip(*row, strict=True)]
        for row in zip(extreme, distance, strict=True)
    ]


def _joint(
    channel: Channel,
    integers: IntegerParts,
    contests: Contests,
    F: BudgetSet,
    epsilon: float,
    first: NDArray[np.intp],
    second: NDArray[np.intp],
) -> list[list[Any]]:
    """μ_1, μ_2 and η of each pair that only the shared budget of F keeps within ε."""
    s_1, s_2 = contests.s[first], contests.s[second]
    shares = (s_1 != ANYONE) & (s_2 != ANYONE) & (F.table.p_s[s_1] > 0) & (F.table.p_s[s_2] > 0)
    first, second, s_1, s_2 = first[shares], second[shares], s_1[shares], s_2[shares]
    p_s = F.table.p_s
    factor = np.ones(first.size) if contests.factors is None else contests.factors[s_1, s_2]
    E = float(np.exp(epsilon))
    T_1, T_2 = factor[:, None] * contests.vectors[first], contests.vectors[second]
    split = F.split(T_1, s_1, T_2, s_2, F.budget, ratio=E)
    # the price of budget: both sides agree on it, unless one of them has all and would take more
    eta = np.maximum(split.top.slope / p_s[s_1], -E * split.bottom.slope / p_s[s_2])
    entries = []
    below_E = Fraction(E) * (1 - Fraction(1, 2**50))
    for i, (e_1, e_2) in enumerate(zip(first, second, strict=True)):
        index, a_1, q_1, a_2, q_2, unit = _sides(channel, integers, contests, int(e_1), int(e_2))
        mu_1 = a_1 * int(q_1.max()) + round(float(split.top.distance[i]) * unit)
        mu_2 = -below_E * a_2 * int(q_2.min()) + round(E * float(split.bottom.distance[i]) * unit)
        entries.append(
            [
                *index,
                str(mu_1),
                str(-(-mu_2.numerator // mu_2.denominator)),
                str(round(float(eta[i]) * unit)),
            ]
        )
    return entries


def _sides(
    channel: Channel, integers: IntegerParts, contests: Contests, e_1: int, e_2: int
) -> tuple[list[int], int, NDArray[np.int64], int, NDArray[np.int64], float]:
    """Where the checker finds a pair, its two integer vectors with their factors, and its unit."""
    s_1, s_2 = int(contests.s[e_1]), int(contests.s[e_2])
    z_1, z_2 = int(contests.symbol[e_1]), int(contests.symbol[e_2])
    match channel:
        case DenseChannel():
            Q = integers["Q"]
            return [z_1, s_1, s_2], 1, Q[s_1, :, z_1], 1, Q[s_2, :, z_1], float(Q[0, 0].sum())
        case IndependentChannel():
            r_s, q = integers["r_s"], integers["r_u"][:, z_1]
            seen = (r_s[s_1] > 0) & (r_s[s_2] > 0)
            rho = max(
                Fraction(int(a), int(b))
                for a, b in zip(r_s[s_1][seen], r_s[s_2][seen], strict=True)
            )
            unit = float(r_s[0].sum()) * rho.denominator
            return [z_1, s_1, s_2], rho.numerator, q, rho.denominator, q, unit
        case _:
            own, other = integers["own"], integers["other"]
            a_1, a_2 = int(other[s_2, z_2]), int(other[s_1, z_1])
            return (
                [s_1, z_1, s_2, z_2],
                a_1,
                own[s_1, :, z_1],
                a_2,
                own[s_2, :, z_2],
                float(a_1) * float(a_2),
            )
