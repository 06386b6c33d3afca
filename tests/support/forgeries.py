"""Protocol documents that claim less than their tables leak, with every certificate a forger has.

The truth comes from the exact audit in floats, which shares no code with the checkers. `run` tries
claims on all kinds of sets and channels, with S values that were never seen, empty cells, and
extreme levels and sizes; tests run it for a while, and `python -m benchmarks forgeries` for long.
"""

from __future__ import annotations

import copy
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

import rldp
from rldp.auditing.audit import worst_log_ratio
from rldp.designing import certify
from rldp.errors import RldpError
from rldp.proof import ProofError
from rldp.protocol import documents
from rldp.uncertainty import Guarantee
from tests.support import strategies as some

BITS = certify.BITS
CHANNELS = ("dense", "independent", "choice", "unary", "cells", "sets")
SETS: dict[str, Callable[[rldp.Table, float], rldp.UncertaintySet]] = {
    "all": lambda table, _: rldp.AllDistributions(table),
    "known": lambda table, _: rldp.KnownDistribution(table),
    "chi-square": rldp.ChiSquareSet,
    "renyi 3/2": lambda table, alpha: rldp.RenyiSet(table, alpha, order=Fraction(3, 2)),
    "renyi 5": lambda table, alpha: rldp.RenyiSet(table, alpha, order=5),
    "kl": rldp.KLSet,
    "kl-finite": rldp.FiniteKLSet,
    "total-variation": rldp.TotalVariationSet,
}


def _polytope(table: rldp.Table, alpha: float) -> rldp.UncertaintySet:
    """Corners in which S values have other probabilities, or none; α only makes them differ."""
    moved = np.roll(table.counts, 1, axis=0) + (alpha < 0.5)
    heavy = table.counts * np.arange(1, table.n_s + 1)[:, None] ** 3
    one = np.zeros_like(table.counts)
    one[0] = 1
    return rldp.PolytopeSet(table, [x for x in (moved, heavy, one) if x.any()])


SETS["polytope"] = _polytope
_ALPHAS = (0.05, 0.05, 0.5, 0.999, 1e-6, 1e-30)
Document = dict[str, Any]
Rng = np.random.Generator


class Base(NamedTuple):
    """An integer table, a set F, and what the table leaks over F in truth."""

    channel: rldp.Channel
    integers: dict[str, np.ndarray]
    F: rldp.UncertaintySet
    truth: float

    @classmethod
    def of(cls, channel: rldp.Channel, F: rldp.UncertaintySet, bits: int = BITS) -> Base:
        """The rounded table of a channel, and its exact ε."""
        integers = channel.rounded(bits)
        exact = channel.from_integers(integers, bits)
        return cls(exact, integers, F, worst_log_ratio(exact, F))

    def document(self, epsilon: float, proof: Document) -> Document:
        """A claim about this table, with any certificate."""
        return {
            "epsilon": epsilon,
            "uncertainty": documents.uncertainty_document(self.F),
            "channel": documents.channel_document(self.channel, self.integers, BITS),
            "certificate": proof,
        }

    def honest(self, epsilon: float) -> Document:
        """The certificate that the library makes for this claim: the best multipliers there are."""
        return certify.certificate(self.channel, self.integers, Guarantee(self.F, epsilon), BITS)


def is_accepted(document: Document, check: Callable[[Document], object]) -> bool:
    """Whether a checker takes a claim for proved; it may raise ProofError and nothing else."""
    try:
        check(document)
    except ProofError:
        return False
    return True


def exceeds(level: float, epsilon: float) -> bool:
    """Whether a table leaks more than ε, by more than what floats can tell."""
    return level > epsilon * (1 + 1e-9) + 1e-11


# --- tables and sets -----------------------------------------------------------------------------


def random_counts(rng: Rng, n_s: int, n_u: int, n_unseen: int) -> np.ndarray:
    """Counts of any size with empty cells, and S values that were never seen."""
    scale = 10 ** rng.uniform(0, 3.5) if rng.random() < 0.8 else 10 ** rng.uniform(4, 15)
    counts = (rng.dirichlet(np.ones(n_s * n_u)) * scale * n_s * n_u).astype(np.int64)
    counts = counts.reshape(n_s, n_u)
    if rng.random() < 0.3:
        counts[rng.random(counts.shape) < 0.3] = 0
    counts[rng.permutation(n_s)[:n_unseen]] = 0
    if not counts.any():
        counts[0, 0] = 1 + int(scale)
    return counts


def random_channel(rng: Rng, kind: str, n_s: int, n_u: int, zeros: float = 0.0) -> rldp.Channel:
    """Random rows, pulled in towards uniform ones by a random amount unless zeros are wanted."""
    pull = 0.0 if zeros else rng.choice([rng.uniform(0.1, 0.9), 1 - 10 ** -rng.uniform(1, 6)])

    def rows(*shape: int) -> np.ndarray:
        return (1 - pull) * some.rows(rng, *shape, zeros=zeros) + pull / shape[-1]

    n_z = int(rng.integers(2, 4))
    if kind == "dense":
        return rldp.DenseChannel(rows(n_s, n_u, n_z))
    if kind == "independent":
        return rldp.IndependentChannel(rows(n_s, 2), rows(n_u, n_z))
    if kind == "unary":
        return rldp.UnaryChannel(rows(n_s, n_u, n_z), rows(n_s, n_z))
    if kind == "sets":
        return random_sets(rng, n_s, n_u, zeros)
    if kind == "cells":
        return rldp.UnaryChannel(rows(n_s, n_u, 2), rows(n_s * n_u, 2))
    other = 0.9 * rows(n_s * n_z).reshape(n_s, n_z)
    mine = 1 - (other.sum() - other.sum(axis=1))
    return rldp.ChoiceChannel(rows(n_s, n_u, n_z) * mine[:, None, None], other)


def random_sets(rng: Rng, n_s: int, n_u: int, zeros: float = 0.0) -> rldp.Channel:
    """A few outputs on random partitions, and a remainder that may be most of all, or little."""
    s, u, flat, outputs = [], [], [], int(rng.integers(1, 4))
    for _ in range(outputs):
        for classes, n in ((s, n_s), (u, n_u)):
            found = rng.integers(0, 3, n)
            classes.append(np.unique(found, return_inverse=True)[1])
        levels = 10 ** -rng.uniform(
            0, rng.choice([0.3, 2.0]), (s[-1].max() + 1) * (u[-1].max() + 1)
        )
        levels[rng.random(levels.size) < zeros] = 0
        flat.append(levels)
    levels = np.concatenate(flat) * rng.choice([0.5, 1 - 1e-6]) / outputs
    places = np.stack([np.arange(outputs)] * 2, axis=1)
    return rldp.SetChannel(np.array(s), np.array(u), places, levels)


def random_base(rng: Rng, kind: str, set_kind: str, n_unseen: int) -> Base:
    """A random table of this kind over a random set of that kind."""
    n_s, n_u = int(rng.integers(2, 4)), int(rng.integers(1, 4))
    n_s = max(n_s, n_unseen + 1)
    table = rldp.Table(random_counts(rng, n_s, n_u, n_unseen))
    alpha = float(rng.choice(_ALPHAS))
    zeros = float(rng.choice([0.0, 0.0, 0.0, 0.0, 0.1]))
    return Base.of(random_channel(rng, kind, n_s, n_u, zeros), SETS[set_kind](table, alpha))


# --- claims and certificates ---------------------------------------------------------------------


def false_levels(rng: Rng, truth: float, n: int) -> list[float]:
    """Levels below the truth: by a hair, by a part, by nearly everything."""
    top = min(truth, 90.0)
    hair = top * (1 - 10.0 ** -rng.uniform(0.1, 8, n))
    far = top * 10.0 ** -rng.uniform(0, 4, n)
    levels = np.where(rng.random(n) < 0.6, hair, far)
    return [float(epsilon) for epsilon in levels if epsilon > 0 and exceeds(truth, epsilon)]


def certificates(rng: Rng, base: Base, epsilon: float) -> Iterator[Document]:
    """What a forger may hand in for a claim below the truth."""
    honest = base.honest(epsilon)
    yield honest
    yield forged(rng, honest)
    true = base.honest(min(base.truth * (1 + 1e-9), 99.0))
    yield true
    yield forged(rng, true)
    yield honest | {"multipliers": None, "joint": every_pair(rng, base, honest)}
    yield smaller_set(rng, honest)


def forged(rng: Rng, proof: Document) -> Document:
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


def every_pair(rng: Rng, base: Base, proof: Document) -> list[list[Any]]:
    """Entries for every pair of indices, of either length, with one triple of values for all."""
    n_s, sizes = base.F.table.n_s, (0, 1, 2.0**-20, 1, 2.0**60, 2.0**130)
    values = [str(int(x * rng.choice(sizes))) for x in 2.0**BITS * rng.random(3) * (1, -1, 1)]
    if proof["joint"] and rng.random() < 0.5:
        values = proof["joint"][rng.integers(len(proof["joint"]))][-3:]
    n_indices = 4 if isinstance(base.channel, rldp.UnaryChannel) else 3
    if rng.random() < 0.05:
        n_indices = 7 - n_indices  # the wrong length
    spans = [range(n_s)] * n_indices if n_indices == 4 else [range(4), range(n_s), range(n_s)]
    return [[*indices, *values] for indices in itertools.product(*spans)]


def smaller_set(rng: Rng, proof: Document) -> Document:
    """A quantile or radius that is too small, so that the set would be smaller."""
    shrunk = 1 - Fraction(float(10.0 ** -rng.uniform(0, 9)))
    names = [name for name in ("quantile", "radius") if name in proof]
    return proof | {name: str(Fraction(proof[name]) * shrunk) for name in names}


# --- the run -------------------------------------------------------------------------------------


def bases(rng: Rng) -> Iterator[Base]:
    """All kinds of channels × all kinds of sets × 0, 1 or 2 unseen S values, again and again."""
    while True:
        for kind, set_kind, n_unseen in itertools.product(CHANNELS, SETS, range(3)):
            yield random_base(rng, kind, set_kind, n_unseen)


def false_claims(rng: Rng, base: Base, n_levels: int = 3) -> Iterator[Document]:
    """Documents about one table, none of which is true."""
    for epsilon in false_levels(rng, base.truth, n_levels):
        try:
            for proof in certificates(rng, base, epsilon):
                yield base.document(epsilon, proof)
        except RldpError:  # the library finds no multipliers where a table leaks without limit
            yield base.document(epsilon, {"multipliers": None, "joint": []})


def is_exact(base: Base) -> bool:
    """Whether the checker's conditions are needed too: for cells they are only enough."""
    by_cell = (
        isinstance(base.channel, rldp.UnaryChannel) and base.channel.n_blocks > base.F.table.n_s
    )
    return not by_cell or isinstance(base.F, rldp.AllDistributions)


def run(rng: Rng, check: Callable[[Document], object], n_claims: int) -> Counter[str]:
    """Try false claims until there were so many; stop at the first that is accepted."""
    tally: Counter[str] = Counter()
    for base in bases(rng):
        for document in false_claims(rng, base):
            if is_accepted(document, check):
                raise AssertionError(f"ε = {base.truth} in truth, and yet accepted: {document}")
            tally["false"] += 1
        if base.truth < 50 and is_exact(base):
            epsilon = base.truth * (1 + 1e-6) + 1e-8
            tally["true"] += 1
            tally["true and accepted"] += is_accepted(
                base.document(epsilon, base.honest(epsilon)), check
            )
        if tally["false"] >= n_claims:
            return tally
    raise AssertionError("bases never end")
