"""Hypothesis strategies: tables with all their awkward corners, distributions, levels, channels.

And `ideal`, the design of a protocol before it is rounded to integers, of which the laws speak.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from rldp import (
    AllDistributions,
    Channel,
    ChiSquareSet,
    ChoiceChannel,
    DenseChannel,
    IndependentChannel,
    KnownDistribution,
    Table,
    UnaryChannel,
    UncertaintySet,
)
from rldp.designing.closed_forms import FAMILIES
from rldp.designing.closed_forms.base import ParameterProblem


def log_uniform(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(math.log(low), math.log(high)).map(math.exp)


epsilons = log_uniform(1e-3, 20.0)
alphas = log_uniform(1e-6, 0.5) | st.floats(0.5, 0.99)
radii = log_uniform(1e-4, 0.999) | log_uniform(1.0, 50.0) | st.just(1.0)
seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)

SETS = (ChiSquareSet, AllDistributions, KnownDistribution)


def random_set(seed: int) -> tuple[UncertaintySet, float]:
    """F of one of these kinds on a small table, and ε."""
    rng = np.random.default_rng(seed)
    shape = rng.integers(2, 4), rng.integers(1, 4)
    p = rng.dirichlet(np.full(shape[0] * shape[1], 0.5))
    counts = rng.multinomial(int(10 ** rng.uniform(0.5, 4)), p).reshape(shape)
    return SETS[seed % 3](Table(counts)), float(10 ** rng.uniform(-1.5, 0.8))


_cells = st.just(0) | st.integers(0, 5) | st.integers(0, 2000)


@st.composite
def tables(draw, max_s: int = 4, max_u: int = 4, min_u: int = 1) -> Table:
    """Counts of 2..max_s × min_u..max_u with empty cells, S values never seen, down to n = 1."""
    n_s, n_u = draw(st.integers(2, max_s)), draw(st.integers(min_u, max_u))
    if draw(st.integers(0, 9)) == 0:
        counts = np.zeros((n_s, n_u), dtype=int)  # a single record
    else:
        counts = np.array(draw(st.lists(_cells, min_size=n_s * n_u, max_size=n_s * n_u)))
        counts = counts.reshape(n_s, n_u)
        is_unseen = draw(st.lists(st.integers(0, 7), min_size=n_s, max_size=n_s))
        counts[np.array(is_unseen) == 7] = 0
    if counts.sum() == 0:
        counts.flat[draw(st.integers(0, counts.size - 1))] = 1
    return Table(counts)


@st.composite
def full_tables(draw, max_s: int = 4, max_u: int = 4, min_u: int = 1) -> Table:
    """Counts without an empty cell."""
    table = draw(tables(max_s, max_u, min_u))
    return Table(table.counts + 1)


@st.composite
def uncertainty_sets(draw, max_s: int = 4, max_u: int = 4):
    """Any of the three kinds of F."""
    table = draw(tables(max_s, max_u))
    kind = draw(st.sampled_from(["chi-square", "chi-square", "all", "known"]))
    if kind == "chi-square":
        return ChiSquareSet(table, draw(alphas))
    return AllDistributions(table) if kind == "all" else KnownDistribution(table)


@st.composite
def distributions(draw, *shape: int) -> np.ndarray:
    """A distribution of this shape, cells of probability zero among it."""
    weights = st.just(0.0) | st.floats(0.0, 1.0) | log_uniform(1e-6, 1.0)
    w = np.array(draw(st.lists(weights, min_size=math.prod(shape), max_size=math.prod(shape))))
    if w.sum() < 1e-6:
        w.flat[draw(st.integers(0, w.size - 1))] = 1.0
    return (w / w.sum()).reshape(shape)


def rows(rng: np.random.Generator, *shape: int, zeros: float = 0.2) -> np.ndarray:
    """Random rows (last axis) that sum to 1, some entries zero."""
    w = rng.dirichlet(np.ones(shape[-1]), shape[:-1])
    w *= rng.random(shape) >= zeros
    w[..., 0] += w.sum(axis=-1) == 0
    return w / w.sum(axis=-1, keepdims=True)


@st.composite
def channels(draw, kinds=("dense", "independent", "choice", "unary", "cells")):
    """A random channel of any structure, zeros among its entries."""
    rng, kind = draw(seeds), draw(st.sampled_from(kinds))
    n_s, n_u, n_z = draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    if kind == "dense":
        return DenseChannel(rows(rng, n_s, n_u, n_z + 1))
    if kind == "independent":
        return IndependentChannel(rows(rng, n_s, n_z), rows(rng, n_u, n_z + 1))
    if kind == "choice":
        other = rows(rng, n_s * n_z).reshape(n_s, n_z) * rng.random()
        mine = 1 - (other.sum() - other.sum(axis=1))
        return ChoiceChannel(rows(rng, n_s, n_u, n_z) * mine[:, None, None], other)
    blocks = n_s if kind == "unary" else n_s * n_u
    n_z = 2 if kind == "cells" else n_z + 1
    return UnaryChannel(rows(rng, n_s, n_u, n_z), rows(rng, blocks, n_z))


@dataclass(frozen=True)
class Ideal:
    """A designed protocol in real numbers."""

    name: str
    epsilon: float
    uncertainty: UncertaintySet
    parameters: Mapping[str, Any]
    channel: Channel

    @property
    def table(self) -> Table:
        return self.uncertainty.table

    @property
    def matrix(self) -> np.ndarray:
        return self.channel.matrix

    @property
    def utility(self) -> float:
        return self.channel.mutual_information(self.table.p_su)


def ideal(F, epsilon: float, name: str, *, bounds: str = "sharp", parameters=None) -> Ideal:
    """The optimum of a family, some of its parameters pinned."""
    optimum = FAMILIES[name].optimum(
        ParameterProblem(F, np.array([epsilon]), bounds, parameters or {})
    )
    chosen = {key: values[0].tolist() for key, values in optimum.items()}
    return Ideal(name, epsilon, F, chosen, FAMILIES[name].channel(F, epsilon, chosen))
