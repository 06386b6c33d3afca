"""Ten thousand tables that leak more than they claim, each with a forged or an honest certificate.

The mutants start from certified tables that spend all of their ε. Their true ε over F is found by
the exact audit in floats, which shares no code with the checker.
"""

from __future__ import annotations

import copy
from collections import Counter
from typing import NamedTuple

import numpy as np
import pytest

import rldp
import strategies as some
from rldp import certificate, contest, documents
from rldp.proof import ProofError, check

BITS = certificate.BITS
KINDS = ("dense", "independent", "choice", "unary", "cells")
ENOUGH = 10_000


class Base(NamedTuple):
    """A certified table and what it is proved for."""

    F: rldp.UncertaintySet
    epsilon: float
    table: certificate.Certified

    def document(self, integers, proof=None) -> dict:
        """The document of another table with the same claim, and its own certificate or another."""
        return {
            "epsilon": self.epsilon,
            "uncertainty": documents.uncertainty_document(self.F),
            "channel": documents.channel_document(self.table.channel, integers, BITS),
            "certificate": copy.deepcopy(self.table.certificate) if proof is None else proof,
        }

    def channel(self, integers) -> rldp.Channel:
        return type(self.table.channel)(**{name: N / 2.0**BITS for name, N in integers.items()})

    def honest(self, integers) -> dict:
        """The certificate that would be made for this table: what the best forger can do."""
        channel = self.channel(integers)
        return certificate._certificate(channel, integers, self.F, self.epsilon, BITS)


def random_channel(rng, kind: str, n_s: int, n_u: int) -> rldp.Channel:
    """Positive probabilities, pulled in toward uniform by a random amount."""
    pull = rng.uniform(0.2, 0.8)

    def rows(*shape):
        return (1 - pull) * some.rows(rng, *shape, zeros=0) + pull / shape[-1]

    if kind == "dense":
        return rldp.DenseChannel(rows(n_s, n_u, 3))
    if kind == "independent":
        return rldp.IndependentChannel(rows(n_s, 2), rows(n_u, 2))
    if kind == "unary":
        return rldp.UnaryChannel(rows(n_s, n_u, 2), rows(n_s, 2))
    if kind == "cells":
        return rldp.UnaryChannel(rows(n_s, n_u, 2), rows(n_s * n_u, 2))
    other = rows(n_s * 2).reshape(n_s, 2)
    mine = 1 - (other.sum() - other.sum(axis=1))
    return rldp.ChoiceChannel(rows(n_s, n_u, 2) * mine[:, None, None], other)


def random_base(rng, kind: str) -> Base:
    """A table that spends ε over F itself (so that the shared budget counts), or over more."""
    n_s, n_u = (2, 2) if kind == "cells" else (int(rng.integers(2, 4)), int(rng.integers(1, 4)))
    counts = rng.integers(0, 10 ** int(rng.integers(1, 5)), (n_s, n_u))
    counts[rng.integers(n_s)] *= int(rng.integers(0, 5) > 0)
    counts[0, 0] += counts.sum() == 0
    table = rldp.Table(counts)
    sets = [rldp.AllDistributions, rldp.KnownDistribution, *[rldp.ChiSquareSet] * 3]
    F = sets[0 if kind == "cells" else rng.integers(len(sets))](table)
    channel = random_channel(rng, kind, n_s, n_u)
    audit = rldp.audit(channel, F)
    epsilon = max(audit.epsilon if rng.random() < 0.7 else audit.epsilon_apart, 1e-3)
    return Base(F, epsilon, certificate.certified(channel, F, epsilon))


def exact_levels(base: Base, tables) -> np.ndarray:
    """The true ε over F of many tables: that of the mixture that also tells which one was used."""
    Q = np.concatenate([base.channel(integers).matrix for integers in tables], axis=2)
    contests = rldp.DenseChannel(Q / len(tables)).contests()
    apart = contest.pairs(contests, base.F)
    one, two = apart.first, apart.second
    T, s = contests.vectors, contests.s
    ratios = base.F.worst_log_ratios(T[one], s[one], T[two], s[two])
    levels = np.zeros(len(tables))
    np.maximum.at(levels, contests.group[one] // (Q.shape[2] // len(tables)), ratios)
    return levels


# --- how a table is spoiled ----------------------------------------------------------------------


def moved(rng, integers):
    """Mass moved between two entries of a row; its sum stays."""
    N = integers[str(rng.choice(list(integers)))]
    row = N.reshape(-1, N.shape[-1])[rng.integers(N.size // N.shape[-1])]
    one, two = rng.permutation(row.size)[:2]
    amount = int(row[one] * 2.0 ** -rng.uniform(0.5, 24))
    row[one] -= amount
    row[two] += amount


def swapped(rng, integers):
    """Two rows of one table exchanged, within one s where their sums ask for it."""
    name = "own" if "own" in integers else str(rng.choice(list(integers)))
    N = integers[name]
    if name == "own":
        N = N[rng.integers(N.shape[0])]
    rows = N.reshape(-1, N.shape[-1])
    one, two = rng.integers(len(rows), size=2)
    rows[[one, two]] = rows[[two, one]]


def scaled(rng, integers):
    """A column of one s scaled; the next column makes up for it."""
    N = integers[{"Q": "Q", "r_s": "r_u", "own": "own"}[next(iter(integers))]]
    block = N[rng.integers(N.shape[0])] if N.ndim == 3 else N
    one, two = rng.permutation(block.shape[-1])[:2]
    change = (block[:, one] * rng.uniform(0.01, 0.5)).astype(np.int64)
    change = np.minimum(change, block[:, two])
    block[:, one] += change
    block[:, two] -= change


def mutant(rng, integers):
    """A spoiled copy."""
    spoiled = {name: N.copy() for name, N in integers.items()}
    for _ in range(rng.integers(1, 3)):
        (moved, moved, swapped, scaled)[rng.integers(4)](rng, spoiled)
    return spoiled


# --- how a certificate is forged -----------------------------------------------------------------


def forged(rng, proof: dict) -> dict:
    """Multipliers shifted or made up, entries of pairs dropped, doubled or shifted."""
    proof = copy.deepcopy(proof)
    for table in (proof["multipliers"] or {}).values():
        for row in table:
            i, shift = rng.integers(len(row)), int(2.0 ** rng.uniform(0, 90))
            row[i] = str(int(row[i]) + int(rng.choice([-1, 1])) * shift)
    for entry in proof["joint"]:
        i = int(rng.integers(1, 4))
        entry[-i] = str(int(int(entry[-i]) * rng.uniform(0, 2)))
    if proof["joint"] and rng.random() < 0.3:
        del proof["joint"][rng.integers(len(proof["joint"]))]
    if rng.random() < 0.2:
        proof["multipliers"] = None
    return proof


def is_accepted(document: dict) -> bool:
    try:
        check(document)
    except ProofError:
        return False
    return True


def exceeds(level: float, epsilon: float) -> bool:
    """By more than what floats can tell."""
    return level > epsilon * (1 + 1e-9) + 1e-12


# --- the tests -----------------------------------------------------------------------------------


def spoiled_tables(rng, base: Base, tally: Counter) -> None:
    """Two hundred mutants of one base: none is accepted if it leaks more than the claim."""
    tables = [mutant(rng, base.table.integers) for _ in range(200)]
    for integers, level in zip(tables, exact_levels(base, tables), strict=True):
        leaks = exceeds(level, base.epsilon)
        chance = rng.random()
        if not leaks and chance > 0.1:
            continue  # the leaking ones are what counts
        proof = base.table.certificate
        if chance < 0.1:
            proof = base.honest(integers)
        elif chance < 0.6:
            proof = forged(rng, proof)
        accepted = is_accepted(base.document(integers, proof))
        assert not (leaks and accepted), (base, integers, proof)
        tally["leaking" if leaks else "accepted" if accepted else "refused"] += 1
        if level < base.epsilon * (1 - 1e-6) - 1e-9 and chance < 0.1:
            assert accepted, (base, integers)  # within the claim, and an honest certificate


def lowered_claims(rng, base: Base, tally: Counter) -> None:
    """The same table, a smaller ε: the certificate of the larger one, forged or not."""
    level = rldp.audit(base.table.channel, base.F).epsilon
    for _ in range(25):
        epsilon = base.epsilon * (1 - 10.0 ** rng.uniform(-8, -0.1))
        if exceeds(level, epsilon):
            claim = base._replace(epsilon=epsilon)
            proof = claim.honest(base.table.integers)
            for forgery in (base.table.certificate, proof, forged(rng, proof)):
                assert not is_accepted(claim.document(base.table.integers, forgery)), claim
                tally["leaking"] += 1


def larger_sets(rng, base: Base, tally: Counter) -> None:
    """Fewer records or a smaller α: F grows, and the old quantile no longer covers it."""
    if not isinstance(base.F, rldp.ChiSquareSet):
        return
    for _ in range(6):
        if rng.random() < 0.5:
            counts = base.F.table.counts // int(rng.integers(2, 20))
            counts[0, 0] += counts.sum() == 0
            F = rldp.ChiSquareSet(rldp.Table(counts))
        else:
            F = rldp.ChiSquareSet(base.F.table, 0.05 * 10 ** -rng.uniform(0.1, 4))
        claim = base._replace(F=F)
        if exceeds(rldp.audit(base.table.channel, F).epsilon, base.epsilon):
            proof = claim.honest(base.table.integers)
            small = proof | {"quantile": base.table.certificate["quantile"]}
            for forgery in (base.table.certificate, proof, small, forged(rng, proof)):
                assert not is_accepted(claim.document(base.table.integers, forgery)), claim
                tally["leaking"] += 1


def test_ten_thousand_tables_that_leak_are_refused():
    rng, tally, kinds = np.random.default_rng(20), Counter(), Counter()
    while tally["leaking"] < ENOUGH:
        kind = KINDS[kinds.total() % len(KINDS)]
        base = random_base(rng, kind)
        assert is_accepted(base.document(base.table.integers))
        for spoil in (spoiled_tables, lowered_claims, larger_sets):
            spoil(rng, base, tally)
        kinds[kind] += 1
    assert tally["leaking"] >= ENOUGH
    assert tally["accepted"] > 500  # mutants that keep the claim, so that it does not only refuse
    assert min(kinds.values()) >= 5


@pytest.mark.parametrize("kind", KINDS)
def test_the_levels_of_many_tables_are_those_of_the_audit(kind):
    rng = np.random.default_rng(7)
    base = random_base(rng, kind)
    tables = [mutant(rng, base.table.integers) for _ in range(5)]
    audits = [rldp.audit(base.channel(integers), base.F).epsilon for integers in tables]
    assert exact_levels(base, tables) == pytest.approx(audits, rel=1e-9, abs=1e-12)
