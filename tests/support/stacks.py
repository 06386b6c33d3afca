"""Several guarantees over one table: their truth by pair, and documents that claim less than it.

The truth is the exact audit in floats of the matrix itself, output by output and pair by pair. It
shares no code with the checkers, and none of the comparisons that structured channels save.
"""

from __future__ import annotations

import copy
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import rldp
from rldp import GivenU, Guarantee
from rldp.designing import certify
from rldp.errors import RldpError
from rldp.protocol import documents
from rldp.protocol.guarantees import levels_document
from tests.support import forgeries
from tests.support.forgeries import BITS, exceeds, is_accepted
from tests.support.mutants import mutant

Document = dict[str, Any]
Rng = np.random.Generator
Levels = np.ndarray
Sets = list[rldp.UncertaintySet]

KINDS = (*forgeries.CHANNELS, "dense")
SETS: dict[str, Callable[[rldp.Table, float], rldp.UncertaintySet]] = {
    **forgeries.SETS,
    "given-u": lambda table, _: GivenU(table),
}


def pair_truth(channel: rldp.Channel, F: rldp.UncertaintySet) -> Levels:
    """The largest log-ratio over F of each ordered pair of S values; ∞ on the diagonal."""
    Q, n_s = channel.matrix.transpose(2, 0, 1), channel.shape[0]
    y, s_1, s_2 = np.nonzero(np.broadcast_to(~np.eye(n_s, dtype=bool), (len(Q), n_s, n_s)))
    occurs = Q[y, s_1].any(axis=1)  # an output that s_1 never has cannot violate a level
    y, s_1, s_2 = y[occurs], s_1[occurs], s_2[occurs]
    with np.errstate(divide="ignore"):
        ratios = F.worst_log_ratios(Q[y, s_1], s_1, Q[y, s_2], s_2)
    assert not np.isnan(ratios).any()
    truth = np.zeros((n_s, n_s))
    np.maximum.at(truth, (s_1, s_2), ratios)
    np.fill_diagonal(truth, np.inf)
    return truth


class Stack(NamedTuple):
    """An integer table, several sets, and what the table leaks over each, pair by pair."""

    channel: rldp.Channel
    integers: dict[str, np.ndarray]
    sets: Sets
    truths: list[Levels]

    @classmethod
    def of(cls, channel: rldp.Channel, sets: Sets) -> Stack:
        """The rounded table of a channel."""
        integers = channel.rounded(BITS)
        exact = channel.from_integers(integers, BITS)
        return cls(exact, integers, sets, [pair_truth(exact, F) for F in sets])

    def over(self, i: int, F: rldp.UncertaintySet) -> Stack:
        """The same table with another set in one place."""
        sets, truths = list(self.sets), list(self.truths)
        sets[i], truths[i] = F, pair_truth(self.channel, F)
        return self._replace(sets=sets, truths=truths)

    def spoiled(self, integers: dict[str, np.ndarray]) -> Stack:
        """Another table of the same kind over the same sets."""
        channel = self.channel.from_integers(integers, BITS)
        return Stack(channel, integers, self.sets, [pair_truth(channel, F) for F in self.sets])

    def honest(self, claims: list[Levels]) -> list[Document]:
        """The certificates that the library makes: the best multipliers there are."""
        found = []
        for F, E in zip(self.sets, claims, strict=True):
            guarantee = Guarantee(F, E)
            try:
                proof = certify.certificate(self.channel, self.integers, guarantee, BITS)
            except (RldpError, ValueError):  # where a table leaks without limit there are none
                proof = {"multipliers": None, "joint": []}
            found.append(proof)
        return found

    def document(self, claims: list[Levels], proofs: list[Document]) -> Document:
        """What a file of version 2 says to the checkers."""
        return {
            "version": 2,
            "epsilon": float(claims[0][np.isfinite(claims[0])].max()),
            "channel": documents.channel_document(self.channel, self.integers, BITS),
            "guarantees": [
                {
                    "uncertainty": documents.uncertainty_document(F),
                    "levels": levels_document(E),
                    "certificate": proof,
                }
                for F, E, proof in zip(self.sets, claims, proofs, strict=True)
            ],
        }

    def broken(self, claims: list[Levels]) -> list[str]:
        """The kinds of set over which some pair leaks more than it is claimed to."""
        return [
            documents.uncertainty_document(F)["kind"]
            for F, truth, E in zip(self.sets, self.truths, claims, strict=True)
            if any(
                exceeds(float(truth[pair]), float(E[pair]))
                for pair in zip(*np.nonzero(np.isfinite(E)), strict=True)
            )
        ]

    def is_false(self, claims: list[Levels]) -> bool:
        """Whether some pair of some guarantee leaks more than it is claimed to."""
        return bool(self.broken(claims))

    @property
    def true_claims(self) -> list[Levels] | None:
        """Levels a hair above the truth, ∞ where it is too large; None if a set has no promise."""
        claims = [truth * (1 + 1e-6) + 1e-8 for truth in self.truths]
        claims = [np.where(E < 50, E, np.inf) for E in claims]
        return claims if all(np.isfinite(E).any() for E in claims) else None


# --- random stacks -------------------------------------------------------------------------------


def random_stack(rng: Rng, kind: str, set_kinds: tuple[str, ...]) -> Stack:
    """A random table over sets of these kinds around one table of counts, or around two."""
    n_s, n_u = int(rng.integers(2, 4)), int(rng.integers(1, 4))
    if kind == "cells":
        n_s, n_u = int(rng.integers(2, 4)), 2
    zeros = float(rng.choice([0.0, 0.0, 0.3]))
    channel = forgeries.random_channel(rng, kind, n_s, n_u, zeros)
    counts = forgeries.random_counts(rng, n_s, n_u, int(rng.integers(0, 2)))
    tables = [rldp.Table(counts)] * len(set_kinds)
    if rng.random() < 0.2:  # the last is around another sample
        tables[-1] = rldp.Table(forgeries.random_counts(rng, n_s, n_u, 0))
    alphas = [float(rng.choice([0.05, 0.5, 1e-6])) for _ in set_kinds]
    sets = [SETS[x](*given) for x, *given in zip(set_kinds, tables, alphas, strict=True)]
    return Stack.of(channel, sets)


def stacks(rng: Rng) -> Iterator[Stack]:
    """Every kind of channel with every kind of set as one of one to three layers, for ever."""
    cases = list(itertools.product(KINDS, SETS))
    while True:
        for i in rng.permutation(len(cases)):
            kind, set_kind = cases[i]
            others = rng.choice([*SETS], int(rng.integers(0, 3))).tolist()
            yield random_stack(rng, kind, tuple(rng.permutation([set_kind, *others]).tolist()))


# --- claims that are false -----------------------------------------------------------------------


def lowered(rng: Rng, stack: Stack, claims: list[Levels]) -> list[Levels]:
    """One pair of one guarantee below the truth, by a hair or by far."""
    claims, i = [E.copy() for E in claims], int(rng.integers(len(claims)))
    pairs = np.argwhere(np.isfinite(claims[i]) & (stack.truths[i] > 1e-6))
    if len(pairs):
        pair = tuple(rng.choice(pairs))
        claims[i][pair] = rng.choice(forgeries.false_levels(rng, stack.truths[i][pair], 20))
    return claims


def swapped(rng: Rng, _: Stack, claims: list[Levels]) -> list[Levels]:
    """Levels of two S values exchanged, or all pairs turned round, or two guarantees exchanged."""
    claims, i = [E.copy() for E in claims], int(rng.integers(len(claims)))
    way = rng.integers(3)
    if way == 0:
        claims[i] = claims[i].T.copy()
    elif way == 1:
        order = rng.permutation(len(claims[i]))
        claims[i] = claims[i][np.ix_(order, order)]
    else:
        claims = [claims[j] for j in rng.permutation(len(claims))]
    return claims


def hidden(rng: Rng, _: Stack, claims: list[Levels]) -> list[Levels]:
    """A pair that is not protected, or hardly, said to be as protected as the best."""
    claims, i = [E.copy() for E in claims], int(rng.integers(len(claims)))
    least = float(claims[i][np.isfinite(claims[i])].min())
    off = ~np.eye(len(claims[i]), dtype=bool)
    endless = np.argwhere(np.isinf(claims[i]) & off)
    if len(endless) and rng.random() < 0.7:
        pair = tuple(rng.choice(endless))
        claims[i][pair] = min(99.0, rng.choice([least, 2 * least, 20.0, 99.0]))
    else:
        claims[i][off] = float(rng.choice([least, np.median(claims[i][np.isfinite(claims[i])])]))
    return claims


def other_set(rng: Rng, stack: Stack) -> Stack:
    """A guarantee over a larger set, or around other counts, at the levels of the old one."""
    i = int(rng.integers(len(stack.sets)))
    F, table = stack.sets[i], stack.sets[i].table
    if rng.random() < 0.4:
        table = rldp.Table(np.maximum(table.counts // int(rng.integers(2, 50)), table.counts > 0))
    elif rng.random() < 0.3:
        table = rldp.Table(table.counts[rng.permutation(table.n_s)])
    if rng.random() < 0.5:
        return stack.over(i, SETS[str(rng.choice([*SETS]))](table, float(rng.choice([0.05, 1e-9]))))
    arguments = F.arguments
    if "alpha" in arguments:
        arguments["alpha"] *= 1e-3
    return stack.over(i, type(F)(table, **arguments))


def certificates(rng: Rng, stack: Stack, claims: list[Levels], old: list[Document]) -> list[Any]:
    """What a forger may hand in: the best there are, those of the true claim, or of others."""
    way = rng.integers(5)
    proofs = copy.deepcopy(old) if way == 0 else stack.honest(claims)
    if way == 2:
        proofs = [forgeries.forged(rng, proof) for proof in proofs]
    if way == 3:
        proofs = [proofs[j] for j in rng.permutation(len(proofs))]
    if way == 4:
        proofs = [forgeries.smaller_set(rng, proof) for proof in proofs]
    return proofs


def false_claims(rng: Rng, stack: Stack, n: int = 20) -> Iterator[tuple[str, Document]]:
    """Documents about one table, none of which is true, each with how it was made."""
    claims = stack.true_claims
    if claims is None:
        return
    old = stack.honest(claims)
    ways = (lowered, lowered, swapped, hidden)
    for _ in range(n):
        chance, forged, there = rng.random(), claims, stack
        if chance < 0.25:
            name, there = "other set", other_set(rng, stack)
        elif chance < 0.4:
            name, there = "spoiled", stack.spoiled(mutant(rng, stack.integers))
        else:
            way = ways[rng.integers(len(ways))]
            name, forged = way.__name__, way(rng, stack, claims)
        if there.is_false(forged):
            yield name, there.document(forged, certificates(rng, there, forged, old))


def is_exact(stack: Stack) -> bool:
    """Whether the checker's conditions are needed too: for cells they are only enough."""
    return all(
        forgeries.is_exact(forgeries.Base(stack.channel, stack.integers, F, 0.0))
        or isinstance(F, GivenU)
        for F in stack.sets
    )


def run(rng: Rng, check: Callable[[Document], object], n_claims: int) -> Counter[str]:
    """Try false claims until there were so many; stop at the first that is accepted."""
    tally: Counter[str] = Counter()
    for stack in stacks(rng):
        for way, document in false_claims(rng, stack):
            if is_accepted(document, check):
                raise AssertionError(
                    f"{way}: {stack.truths} in truth, and yet accepted: {document}"
                )
            tally.update(["false", way])
        claims = stack.true_claims
        if claims is not None and is_exact(stack):
            document = stack.document(claims, stack.honest(claims))
            tally.update(["true"] + ["true and accepted"] * is_accepted(document, check))
        if tally["false"] >= n_claims:
            return tally
    raise AssertionError("stacks never end")


def run_mutants(rng: Rng, check: Callable[[Document], object], n_tables: int) -> Counter[str]:
    """Spoil tables until so many break a level; stop at the first that is accepted.

    Every spoiled table comes with the certificates of the good one, with the best that there are,
    and with forged ones. What is counted is which layers it breaks.
    """
    tally: Counter[str] = Counter()
    for stack in stacks(rng):
        claims = stack.true_claims
        if claims is None:
            continue
        old = stack.honest(claims)
        for _ in range(8):
            there = stack.spoiled(mutant(rng, stack.integers))
            broken = there.broken(claims)
            if not broken:
                continue
            best = there.honest(claims)
            for proofs in (old, best, [forgeries.forged(rng, proof) for proof in best]):
                document = there.document(claims, copy.deepcopy(proofs))
                assert not is_accepted(document, check), f"accepted, though it leaks: {document}"
                tally["documents"] += 1
            tally.update(["tables", *broken, *(["one layer alone"] if len(broken) == 1 else [])])
        if tally["tables"] >= n_tables:
            return tally
    raise AssertionError("stacks never end")
