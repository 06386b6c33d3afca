"""What a report tells each attacker: how often the best guess at S is right, and how often certain.

Figures are shares of people at the frequencies P̂ of the table. They are exact sums over all
outputs, or upper bounds that say so where a channel has too many outputs to list them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import Literal, NamedTuple

import numpy as np

from rldp._types import Array
from rldp.auditing.audit import promise
from rldp.auditing.levels import PartLevels, part_levels
from rldp.auditing.repeated import law_of_several
from rldp.channel import Channel, UnaryChannel
from rldp.protocol.release_protocol import ReleaseProtocol
from rldp.tables.parts import Part
from rldp.tables.table import Table

Name = Literal["stranger", "knows_part", "knows_u", "knows_more", "several_reports"]

_RTOL = 1e-12  # a chance that is at a limit but for rounding counts as above it
_MOST_ENTRIES = 2**22  # of a matrix that is built to be exact
_MOST_RELATIONS = 2**12  # between S and U that are tried one by one


class Knowledge(NamedTuple):
    """Shares of people: whose S is guessed rightly, and whose S is more than 95 or 99 % certain."""

    right: float
    over_95: float
    over_99: float


@dataclass(frozen=True)
class Attacker:
    """What someone knows of people's S without a report and with one.

    Attributes:
        name: "stranger", who knows the population only; "knows_part", who knows some columns of a
            person's U and not the rest; "knows_u", who knows all of U; "knows_more", for whom S and
            U go together in any way, as they know something else, such as that U is one of some
            values, or as the table is wrong; "several_reports", a stranger with several fresh
            reports of one person.
        reports: how many reports they see.
        without: what they know before.
        with_report: what they know after; at most that if `is_bound`.
        epsilon: the largest log of the factor by which their odds can change, in nats.
        is_bound: whether `with_report` are upper bounds.
        knows: the columns of U that "knows_part" knows.
    """

    name: Name
    reports: int
    without: Knowledge
    with_report: Knowledge
    epsilon: float
    is_bound: bool
    knows: tuple[str, ...] = ()


def attackers_of(p: ReleaseProtocol) -> tuple[Attacker, ...]:
    """Everyone who has one report, from the one who knows least to the one who knows most."""
    alone, channel, table = promise(p.channel), p.channel, p.table
    return (
        stranger(channel, table, p.epsilon),
        *knows_part(channel, table, part_levels(p)),
        *([knows_u(channel, table, alone.epsilon_given_u)] if table.n_u > 1 else []),
        knows_more(channel, table, alone.epsilon_all),
    )


def stranger(channel: Channel, table: Table, epsilon: float, reports: int = 1) -> Attacker:
    """Someone who knows the frequencies of the table and sees reports of one person.

    Args:
        channel: what a person reports through.
        table: whose frequencies are the truth.
        epsilon: of all these reports together, over a set that holds the frequencies.
        reports: how many they see, each drawn anew.
    """
    name: Name = "stranger" if reports == 1 else "several_reports"
    p_s = table.p_s[:, None]
    n_words = math.comb(channel.n_outputs + reports - 1, reports)
    if table.counts.size * n_words > _MOST_ENTRIES:
        bound = at_most(p_s, epsilon)
        if reports == 1 and isinstance(channel, UnaryChannel) and channel.n_blocks == table.n_s:
            bound = _no_more_than(_right(channel, table.p_su), bound)
        return Attacker(name, reports, knowledge(p_s), bound, epsilon, is_bound=True)
    law = channel.matrix if reports == 1 else law_of_several(channel.matrix, reports)
    found = knowledge(np.einsum("su,suy->sy", table.p_su, law))
    return Attacker(name, reports, knowledge(p_s), found, epsilon, is_bound=False)


def knows_part(channel: Channel, table: Table, levels: PartLevels) -> tuple[Attacker, ...]:
    """Someone who knows the frequencies and the part of each person's U that tells most.

    Args:
        channel: what a person reports through.
        table: whose frequencies are the truth.
        levels: ε against those who know each part of U, over a set that holds the frequencies. The
            largest counts, and of several the one who guesses best.
    """
    worst = max(levels.values(), default=0.0)
    told = [
        _knows_one_part(channel, table, names, epsilon)
        for names, epsilon in levels.items()
        if epsilon >= worst
    ]
    return (max(told, key=lambda attacker: attacker.with_report.right),) if told else ()


def _knows_one_part(
    channel: Channel, table: Table, names: tuple[str, ...], epsilon: float
) -> Attacker:
    cells = Part.of(table.schema, names).cells
    p_sk = table.p_su[:, cells].sum(axis=2)
    if table.counts.size * channel.n_outputs > _MOST_ENTRIES:
        all_of_u = knows_u(channel, table, math.inf).with_report  # who knows more guesses no worse
        found, is_bound = _no_more_than(all_of_u.right, at_most(p_sk, epsilon)), True
    else:
        joint = np.einsum("skr,skry->sky", table.p_su[:, cells], channel.matrix[:, cells])
        found, is_bound = knowledge(joint.reshape(table.n_s, -1)), False
    return Attacker("knows_part", 1, knowledge(p_sk), found, epsilon, is_bound, names)


def knows_u(channel: Channel, table: Table, epsilon: float) -> Attacker:
    """Someone who knows the frequencies and each person's U, with ε against them."""
    without = knowledge(table.p_su)
    if table.counts.size * channel.n_outputs > _MOST_ENTRIES:
        bound = at_most(table.p_su, epsilon)
        if isinstance(channel, UnaryChannel):
            each = np.eye(table.n_u, dtype=bool)
            right = sum(_right(channel, np.where(is_u, table.p_su, 0.0)) for is_u in each)
            bound = _no_more_than(right, bound)
        return Attacker("knows_u", 1, without, bound, epsilon, is_bound=True)
    found = knowledge((table.p_su[:, :, None] * channel.matrix).reshape(table.n_s, -1))
    return Attacker("knows_u", 1, without, found, epsilon, is_bound=False)


def knows_more(channel: Channel, table: Table, epsilon: float) -> Attacker:
    """Anyone else at worst: they know which U goes with each S value of this person, any u(s).

    For given shares of S, no knowledge of U makes a report tell more. Each figure is the largest
    over all functions, which are tried one by one where they are few.

    Args:
        channel: what a person reports through.
        table: whose frequencies of S are the truth.
        epsilon: over all distributions.
    """
    p_s = table.p_s[:, None]
    without, bound = knowledge(p_s), at_most(p_s, epsilon)
    if table.counts.size * channel.n_outputs > _MOST_ENTRIES:
        return Attacker("knows_more", 1, without, bound, epsilon, is_bound=True)
    joint = p_s[:, :, None] * channel.matrix
    is_bound = table.n_u**table.n_s > _MOST_RELATIONS
    found = _over_extremes(joint) if is_bound else _over_functions(joint)
    least = Knowledge(*map(min, found, bound))
    return Attacker("knows_more", 1, without, least, epsilon, is_bound=is_bound)


def knowledge(p_sy: Array) -> Knowledge:
    """What the best guess at S achieves where it sees y, for joint chances of shape (n_s, n_y).

    >>> knowledge(np.array([[0.48, 0.25], [0.02, 0.25]]))
    Knowledge(right=0.73, over_95=0.5, over_99=0.0)
    """
    top, p_y = p_sy.max(axis=0), p_sy.sum(axis=0)
    over = (p_y[(top >= t * (1 - _RTOL) * p_y) & (p_y > 0)].sum() for t in (0.95, 0.99))
    return Knowledge(*(min(1.0, float(share)) for share in (top.sum(), *over)))


def at_most(p_su: Array, epsilon: float) -> Knowledge:
    """Bounds for anyone who knows u and whose odds change by e^ε at most, shape (n_s, n_u).

    A share π can become π e^ε / (π e^ε + 1 - π) at most. The mean of the largest chance after a
    report is how often the best guess is right, so by Markov's inequality it is above t for no more
    than 1/t of that.

    >>> at_most(np.array([[0.5], [0.5]]), math.log(3))
    Knowledge(right=0.75, over_95=0.0, over_99=0.0)
    """
    p_u = p_su.sum(axis=0)
    top, rest = p_su.max(axis=0), p_u - p_su.max(axis=0)
    chance = np.ones_like(top)  # where ε is infinite, or nothing else is possible
    np.divide(top, top + rest * math.exp(-epsilon), out=chance, where=rest > 0)
    right = float(p_u @ chance)
    over = (float(p_u @ np.where(chance < t, 0.0, np.minimum(1, chance / t))) for t in (0.95, 0.99))
    return Knowledge(*(min(1.0, share) for share in (right, *over)))


def _no_more_than(right: float, bound: Knowledge) -> Knowledge:
    """Bounds where it is known how often the best guess is right."""
    least = min(right, bound.right)
    return Knowledge(least, min(bound.over_95, least / 0.95), min(bound.over_99, least / 0.99))


def _right(channel: UnaryChannel, p_su: Array) -> float:
    """Σ_y max_s P(s, y) exactly, without listing outputs, where each s has one block that matters.

    Against the law in which every block draws from `other`, P(s, y) has the density
    V_s = Σ_u p_su own/other, which depends on the block of s alone. So the V_s are independent, and
    the mean of their maximum follows from the product of their distribution functions. A symbol
    that nobody else draws proves s. With a block for each cell, p_su must have a single u.
    """
    theirs, n_s = channel.other[channel.block], len(p_su)
    mine = p_su[:, :, None] * channel.own
    proved = float(mine[theirs <= 0].sum())
    ratio = np.divide(mine, theirs, out=np.zeros_like(mine), where=theirs > 0)
    u = int(p_su.sum(axis=0).argmax())
    values, chances = ratio.sum(axis=1), theirs[:, u]
    atoms = np.unique(np.append(values, 0.0))
    below = np.ones(atoms.size)
    for s in range(n_s):
        below *= (chances[s] * (values[s] <= atoms[:, None])).sum(axis=1)
    return proved + float(atoms[1:] @ np.diff(below))


def _over_functions(joint: Array) -> Knowledge:
    """The largest figures over all functions u(s), for p_s Q[s, u, y]."""
    n_s, n_u, _ = joint.shape
    s = np.arange(n_s)
    found = [knowledge(joint[s, list(u)]) for u in product(range(n_u), repeat=n_s)]
    return Knowledge(*(max(shares) for shares in zip(*found, strict=True)))


def _over_extremes(joint: Array) -> Knowledge:
    """Bounds on the same: every output with the best function for it."""
    low, high = joint.min(axis=1), joint.max(axis=1)
    largest = high / np.maximum(high + low.sum(axis=0) - low, np.finfo(float).tiny)
    top, mass = largest.max(axis=0), high.sum(axis=0)
    over = (mass[top >= t * (1 - _RTOL)].sum() for t in (0.95, 0.99))
    shares = (high.max(axis=0).sum(), *over)
    return Knowledge(*(min(1.0, float(share)) for share in shares))
