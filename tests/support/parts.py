"""Claims about someone who knows some of the columns of U, and what is true of them.

The truth is the ordinary one of the table reshaped by numpy: rows are pairs of S and the known part
of U, columns what is left of U, and only rows with one known part are compared. The exact audit in
floats tells it; it shares no code with the checkers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import rldp
from rldp.designing import certify
from rldp.protocol import documents
from rldp.protocol.guarantees import levels_document
from rldp.uncertainty import Guarantee
from tests.support import forgeries
from tests.support.forgeries import BITS
from tests.support.stacks import pair_truth

Document = dict[str, Any]
Rng = np.random.Generator
Levels = np.ndarray
Sizes = tuple[int, ...]

SIZES = ((2, 2), (2, 3), (3, 2), (2, 2, 2), (4,), (2, 1, 2))  # labels of the useful columns


def reshaped(x: np.ndarray, sizes: Sizes, known: Sizes) -> np.ndarray:
    """Shape (n_s, n_u, ...) to (n_s · known parts, the rest of U, ...)."""
    x = np.asarray(x)
    others = [axis for axis in range(len(sizes)) if axis not in known]
    apart = x.reshape(len(x), *sizes, *x.shape[2:])
    apart = np.moveaxis(apart, [1 + axis for axis in (*known, *others)], range(1, 1 + len(sizes)))
    n_k = math.prod(sizes[axis] for axis in known)
    return apart.reshape(len(x) * n_k, x.shape[1] // n_k, *x.shape[2:])


def reshaped_set(F: rldp.UncertaintySet, sizes: Sizes, known: Sizes) -> rldp.UncertaintySet:
    """The same distributions, over the reshaped table."""
    arguments = F.arguments
    if isinstance(F, rldp.PolytopeSet):
        exact = np.array(arguments["distributions"], dtype=object)
        arguments["distributions"] = [reshaped(P, sizes, known) for P in exact]
    return type(F)(rldp.Table(reshaped(F.table.counts, sizes, known)), **arguments)


def schema(n_s: int, sizes: Sizes) -> Document:
    """Columns a, b, ... of U with so many labels each."""
    useful = [
        {"name": name, "labels": list(map(str, range(size)))}
        for name, size in zip("abcd", sizes, strict=False)
    ]
    return {"sensitive": [{"name": "s", "labels": list(map(str, range(n_s)))}], "useful": useful}


class Parted(NamedTuple):
    """An integer table, a set, and what it leaks to someone who knows these columns."""

    channel: rldp.Channel
    integers: dict[str, np.ndarray]
    F: rldp.UncertaintySet
    sizes: Sizes
    known: Sizes
    truth: Levels  # the largest of all parts, for each pair

    @classmethod
    def of(
        cls, channel: rldp.Channel, F: rldp.UncertaintySet, sizes: Sizes, known: Sizes
    ) -> Parted:
        """The rounded table of a channel, with the truth of the reshaped one."""
        integers = channel.rounded(BITS)
        exact = channel.from_integers(integers, BITS)
        rows = rldp.DenseChannel(reshaped(exact.matrix, sizes, known))
        by_row = pair_truth(rows, reshaped_set(F, sizes, known))
        n_s = F.table.n_s
        n_k = len(by_row) // n_s
        apart = by_row.reshape(n_s, n_k, n_s, n_k)
        truth = np.max([apart[:, k, :, k] for k in range(n_k)], axis=0)
        return cls(exact, integers, F, sizes, known, truth)

    @property
    def schema(self) -> Document:
        """Whose useful columns the claim speaks of."""
        return schema(self.F.table.n_s, self.sizes)

    @property
    def knows(self) -> list[str]:
        """Names of the known columns."""
        return ["abcd"[axis] for axis in self.known]

    @property
    def plain(self) -> tuple[rldp.UncertaintySet, Levels]:
        """A set and levels over it that are proved without multipliers."""
        by_cell = isinstance(self.channel, rldp.UnaryChannel) and (
            self.channel.n_blocks > self.F.table.n_s
        )
        F = (rldp.AllDistributions if by_cell else rldp.KnownDistribution)(self.F.table)
        return F, capped(pair_truth(self.channel, F))

    @property
    def n_parts(self) -> int:
        """Values of the known part."""
        return math.prod(self.sizes[axis] for axis in self.known)

    def guarantee(self, levels: Any, proof: Document) -> Document:
        """The claim, as an entry of a document."""
        levels = levels_document(levels) if isinstance(levels, np.ndarray) else levels
        return {
            "uncertainty": documents.uncertainty_document(self.F),
            "levels": levels,
            "knows": self.knows,
            "certificate": proof,
        }

    def document(self, *guarantees: Document) -> Document:
        """The claims after a plain one that is true."""
        F, levels = self.plain
        first = {
            "uncertainty": documents.uncertainty_document(F),
            "levels": levels_document(levels),
            "certificate": {"multipliers": None, "joint": []},
        }
        return {
            "version": 3,
            "epsilon": float(levels[np.isfinite(levels)].max()),
            "schema": self.schema,
            "channel": documents.channel_document(self.channel, self.integers, BITS),
            "guarantees": [first, *guarantees],
        }

    def constants(self) -> Document:
        """A proof that the set is large enough, and parts without multipliers."""
        proof = certify.certificate(self.channel, self.integers, Guarantee(self.F, 99.0), BITS)
        size = {name: proof[name] for name in ("quantile", "radius") if name in proof}
        return size | {"parts": [{"multipliers": None, "joint": []} for _ in range(self.n_parts)]}


def capped(truth: Levels) -> Levels:
    """Levels a hair above the truth, ∞ where it is too large."""
    levels = truth * (1 + 1e-6) + 1e-8
    return np.where(levels < 90, levels, np.inf)


def random_parted(
    rng: Rng, kind: str, make_set: Callable[[rldp.Table, float], rldp.UncertaintySet]
) -> Parted:
    """A random table of this kind, a random set, and columns that someone knows."""
    sizes = (2, 2) if kind == "cells" else SIZES[rng.integers(len(SIZES))]  # words are listed
    n_s, n_u = int(rng.integers(2, 4)), math.prod(sizes)
    known = tuple(sorted(rng.permutation(len(sizes))[: rng.integers(1, len(sizes) + 1)].tolist()))
    counts = forgeries.random_counts(rng, n_s, n_u, int(rng.integers(0, 2)))
    counts = np.minimum(counts, 2**47)  # a table holds 2^53 records at most
    F = make_set(rldp.Table(counts), float(rng.choice([0.05, 0.5, 1e-6])))
    zeros = float(rng.choice([0.0, 0.0, 0.0, 0.1]))
    some = Parted.of(forgeries.random_channel(rng, kind, n_s, n_u, zeros), F, sizes, known)
    if np.isfinite(capped(some.truth)).any() and np.isfinite(some.plain[1]).any():
        return some
    return random_parted(rng, kind, make_set)
