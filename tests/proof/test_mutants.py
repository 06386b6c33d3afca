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
from rldp.designing import certify
from rldp.leakage import worst_pairs
from rldp.proof import check
from rldp.protocol import documents
from rldp.uncertainty import ConfidenceSet, Guarantee
from tests.support import forgeries
from tests.support.effort import share
from tests.support.forgeries import BITS, CHANNELS, SETS, exceeds, forged
from tests.support.mutants import mutant

ENOUGH = share(10_000)
MOST_BASES = 1000  # of which about a hundred are enough


class Base(NamedTuple):
    """A certified table and what it is proved for."""

    F: rldp.UncertaintySet
    epsilon: float
    table: certify.Certified

    def document(self, integers, proof=None) -> dict:
        """The document of another table with the same claim, and its own certificate or another."""
        return {
            "epsilon": self.epsilon,
            "uncertainty": documents.uncertainty_document(self.F),
            "channel": documents.channel_document(self.table.channel, integers, BITS),
            "certificate": copy.deepcopy(self.table.certificate) if proof is None else proof,
        }

    def channel(self, integers) -> rldp.Channel:
        return self.table.channel.from_integers(integers, BITS)

    def honest(self, integers) -> dict:
        """The certificate that would be made for this table: what the best forger can do."""
        channel = self.channel(integers)
        return certify.certificate(channel, integers, Guarantee(self.F, self.epsilon), BITS)


def random_base(rng, kind: str) -> Base:
    """A table that spends ε over F itself (so that the shared budget counts), or over more."""
    n_s, n_u = (2, 2) if kind == "cells" else (int(rng.integers(2, 4)), int(rng.integers(1, 4)))
    counts = rng.integers(0, 10 ** int(rng.integers(1, 5)), (n_s, n_u))
    counts[rng.integers(n_s)] *= int(rng.integers(0, 5) > 0)
    counts[0, 0] += counts.sum() == 0
    set_kind = "all" if kind == "cells" else str(rng.choice([*SETS]))
    F = SETS[set_kind](rldp.Table(counts), 0.05)
    channel = forgeries.random_channel(rng, kind, n_s, n_u)
    audit = rldp.audit(channel, F)
    epsilon = max(audit.epsilon if rng.random() < 0.7 else audit.epsilon_apart, 1e-3)
    return Base(F, epsilon, certify.certified(channel, [Guarantee(F, epsilon)]))


def exact_levels(base: Base, tables) -> np.ndarray:
    """The true ε over F of many tables: that of the mixture that also tells which one was used."""
    Q = np.concatenate([base.channel(integers).matrix for integers in tables], axis=2)
    comparisons = rldp.DenseChannel(Q / len(tables)).comparisons()
    apart = worst_pairs.pairs(comparisons, base.F)
    one, two = apart.first, apart.second
    T, s = comparisons.vectors, comparisons.s
    ratios = base.F.worst_log_ratios(T[one], s[one], T[two], s[two])
    levels = np.zeros(len(tables))
    np.maximum.at(levels, comparisons.group[one] // (Q.shape[2] // len(tables)), ratios)
    return levels


def is_accepted(document: dict) -> bool:
    return forgeries.is_accepted(document, check)


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
    if not isinstance(base.F, ConfidenceSet):
        return
    name = "radius" if isinstance(base.F, rldp.TotalVariationSet) else "quantile"
    for _ in range(6):
        if rng.random() < 0.5:
            counts = base.F.table.counts // int(rng.integers(2, 20))
            counts[0, 0] += counts.sum() == 0
            F = _similar(base.F, rldp.Table(counts), 0.05)
        else:
            F = _similar(base.F, base.F.table, 0.05 * 10 ** -rng.uniform(0.1, 4))
        claim = base._replace(F=F)
        if exceeds(rldp.audit(base.table.channel, F).epsilon, base.epsilon):
            proof = claim.honest(base.table.integers)
            small = proof | {name: base.table.certificate[name]}
            for forgery in (base.table.certificate, proof, small, forged(rng, proof)):
                assert not is_accepted(claim.document(base.table.integers, forgery)), claim
                tally["leaking"] += 1


def _similar(F: ConfidenceSet, table: rldp.Table, alpha: float) -> ConfidenceSet:
    """The same kind of set around another table, or at another level."""
    if type(F) is rldp.RenyiSet:
        return rldp.RenyiSet(table, alpha, order=F.exact_order)
    return type(F)(table, alpha)


@pytest.mark.slow
def test_thousands_of_tables_that_leak_are_refused():
    rng, tally, kinds = np.random.default_rng(20), Counter(), Counter()
    for _ in range(MOST_BASES):
        if tally["leaking"] >= ENOUGH:
            break
        kind = CHANNELS[kinds.total() % len(CHANNELS)]
        base = random_base(rng, kind)
        assert is_accepted(base.document(base.table.integers))
        for spoil in (spoiled_tables, lowered_claims, larger_sets):
            spoil(rng, base, tally)
        kinds[kind] += 1
    assert tally["leaking"] >= ENOUGH
    # mutants that keep the claim, so that it does not only refuse
    assert tally["accepted"] > ENOUGH // 20
    assert min(kinds.values()) >= ENOUGH // 2_000


@pytest.mark.parametrize("kind", CHANNELS)
def test_the_levels_of_many_tables_are_those_of_the_audit(kind):
    rng = np.random.default_rng(7)
    base = random_base(rng, kind)
    tables = [mutant(rng, base.table.integers) for _ in range(5)]
    audits = [rldp.audit(base.channel(integers), base.F).epsilon for integers in tables]
    assert exact_levels(base, tables) == pytest.approx(audits, rel=1e-9, abs=1e-12)
