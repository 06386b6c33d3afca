"""How often 95 % intervals hold the truth, over thousands of simulated collections."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

import rldp
from benchmarks.timing import Effort, show
from rldp.channel import Channel, DenseChannel, UnaryChannel
from rldp.estimation.identifiability import identifiability
from rldp.estimation.interval_estimates import IntervalEstimates
from rldp.estimation.inversion import Inverse, design_point, inverted
from rldp.estimation.likelihood import maximum
from rldp.estimation.moments import ListedMoments, Moments, moments
from rldp.estimation.report_counts import ReportCounts, counts_from

Array = NDArray[np.float64]

COLLECTIONS = 2_000
FEW_COLLECTIONS = 150  # of those that need a likelihood and its profiles
EPSILON = 2.0
PROTOCOLS = ("grr", "srr", "ir", "grr-cr", "ue-cr", "polyopt")
# shares of U that leave something for S, so that the table is identified
PINS = {name: {"epsilon_2": 0.5} for name in ("ir", "grr-cr", "ue-cr")}


def interior() -> dict[str, tuple[rldp.Table, int]]:
    """Tables without small cells; of their cells those count that are not within 3 errors of 0."""
    return {
        "sex × income": (rldp.datasets.adult("sex", "income"), 20_000),
        "3×3": (rldp.Table([[80, 120, 60], [150, 90, 110], [130, 160, 100]]), 20_000),
        "4×3": (rldp.Table([[60, 80, 40], [50, 90, 70], [120, 30, 60], [80, 50, 70]]), 20_000),
    }


def boundary() -> dict[str, tuple[rldp.Table, int]]:
    """Tables with cells that are empty or nearly so, and few reports."""
    return {
        "race × sex": (rldp.datasets.adult("race", "sex"), 2_000),
        "3×3 with zeros": (rldp.Table([[0, 310, 2], [196, 40, 60], [200, 23, 169]]), 1_000),
        "rare u": (rldp.Table([[500, 1, 250], [400, 0, 600]]), 1_000),
    }


def run(_: Effort) -> None:
    for title, tables in (("Interior", interior()), ("Boundary", boundary())):
        rows = [
            [label, name, *cells]
            for label, (table, n) in tables.items()
            for name in PROTOCOLS
            for cells in _rows(table, name, n, is_interior=title == "Interior")
        ]
        show(
            f"{title} tables, ε = {EPSILON:g}, {COLLECTIONS:,} collections: coverage in %",
            ["table", "protocol", "cells", "reports", "mean", "least", "most", "marginals",
             "bias/its error", "plan/seen se"],
            rows,
            f"Monte Carlo error of one cell: {100 * np.sqrt(0.95 * 0.05 / COLLECTIONS):.2f}.",
        )  # fmt: skip
    _show_designed()
    _show_likelihood()


def _show_designed() -> None:
    """Designs for the cells at ε = 1 under the default layers: promised errors and those seen."""
    tables = {
        "race × sex": rldp.datasets.adult("race", "sex"),
        "sex × race": rldp.datasets.adult("sex", "race"),
        **{label: interior()[label][0] for label in ("3×3", "4×3")},
    }
    rows = []
    for label, table in tables.items():
        found = rldp.design(rldp.ChiSquareSet(table), 1.0, effort="quick")
        features, p, n = moments(found.channel), table.p_su.ravel(), max(table.n, 20_000)
        inverse = Inverse.at(features, design_point(found.channel, table))
        C = np.eye(len(p))
        near = C @ p <= 3 * np.sqrt(inverse.variance(C, p) / n)
        squares, hits = np.zeros((2, len(p)))
        for counts in collections(found.channel, features, p, n, COLLECTIONS, seed=1):
            figures = inverted(inverse, counts).figures(C, 0.95)
            squares += (figures.estimate - p) ** 2
            hits += _holds(figures, p)
        seen, promised = np.sqrt(squares.mean() / COLLECTIONS), found.error.rmse(n)
        cover = 100 * hits / COLLECTIONS
        close = f"{cover[near].min():.1f} to {cover[near].max():.1f}" if near.any() else "–"
        rows.append([
            label, f"{n:,}", f"{1000 * promised:.2f}", f"{1000 * seen:.2f}",
            f"{100 * (seen / promised - 1):+.1f} %", f"{cover[~near].mean():.2f}", close,
        ])  # fmt: skip
    show(
        f"Designed for the cells, ε = 1, default layers, {COLLECTIONS:,} collections",
        ["table", "reports", "promised error × 1000", "seen", "difference", "coverage in %",
         "of cells within 3 errors of 0"],
        rows,
    )  # fmt: skip


def channel_of(table: rldp.Table, name: str) -> Channel:
    """The channel of a protocol."""
    F = rldp.ChiSquareSet(table)
    if name != "polyopt":
        return rldp.design(F, EPSILON, name, parameters=PINS.get(name, {})).channel
    from rldp.designing.polyopt.solve import best_columns

    p_min = F.conditional_bounds[0]
    return DenseChannel(best_columns(table.p_su, p_min, EPSILON, distinct=True).Q)


def collections(
    channel: Channel, features: Moments, p: Array, n: int, times: int, seed: int
) -> Iterator[ReportCounts]:
    """Counts of n reports, many times, by NumPy alone."""
    rng = np.random.default_rng(seed)
    if isinstance(features, ListedMoments):
        q = features.M @ p
        for counts in rng.multinomial(n, q / q.sum(), size=times):
            yield counts_from(features, counts)
        return
    assert isinstance(channel, UnaryChannel)
    own, block = channel.own.reshape(len(p), -1), channel.block.ravel()
    for _ in range(times):
        people = rng.multinomial(n, p)
        counts = np.zeros(channel.other.shape)
        for x, many in enumerate(people):
            for b, other in enumerate(channel.other):
                row = own[x] if b == block[x] else other
                counts[b] += rng.multinomial(many, row / row.sum())
        yield counts_from(features, counts)


def _rows(table: rldp.Table, name: str, n: int, *, is_interior: bool) -> Iterator[list[str]]:
    channel = channel_of(table, name)
    features, p = moments(channel), table.p_su.ravel()
    inverse = Inverse.at(features, design_point(channel, table))
    C = np.eye(len(p))[inverse.identified(np.eye(len(p)))]
    sums = np.concatenate([np.repeat(np.eye(table.n_s), table.n_u, 1),
                           np.tile(np.eye(table.n_u), (1, table.n_s))])  # fmt: skip
    sums = sums[inverse.identified(sums)]
    if is_interior:  # at least three standard errors away from 0
        C = C[C @ p > 3 * np.sqrt(inverse.variance(C, p) / n)]
    if not len(C):
        yield [f"0 of {len(p)}", f"{n:,}", *["–"] * 6]
        return
    hits, sum_hits, estimates = np.zeros(len(C)), np.zeros(len(sums)), []
    for counts in collections(channel, features, p, n, COLLECTIONS, seed=1):
        e = inverted(inverse, counts)
        figures, margins = e.figures(C, 0.95), e.figures(sums, 0.95)
        hits += _holds(figures, C @ p)
        sum_hits += _holds(margins, sums @ p)
        estimates.append(figures.estimate)
    cover = 100 * hits / COLLECTIONS
    seen = np.array(estimates)
    error = seen.std(axis=0, ddof=1)
    bias = (seen.mean(axis=0) - C @ p) / (error / np.sqrt(COLLECTIONS))
    planned = np.sqrt(inverse.variance(C, p) / n) / error
    yield [
        f"{len(C)} of {len(p)}", f"{n:,}", f"{cover.mean():.2f}", f"{cover.min():.2f}",
        f"{cover.max():.2f}", f"{100 * sum_hits.min() / COLLECTIONS:.2f}" if len(sums) else "–",
        f"{np.abs(bias).max():.1f}", f"{planned.min():.3f} to {planned.max():.3f}",
    ]  # fmt: skip


def _holds(figures: IntervalEstimates, truth: Array) -> NDArray[np.bool_]:
    return np.asarray((figures.low <= truth + 1e-12) & (truth - 1e-12 <= figures.high))


def _show_likelihood() -> None:
    rows = []
    every: list[tuple[str, Callable[[], dict[str, tuple[rldp.Table, int]]]]] = [
        ("interior", interior), ("boundary", boundary),
    ]  # fmt: skip
    for kind, tables in every:
        for label, (table, n) in tables().items():
            for name in ("grr", "srr", "grr-cr"):
                channel = channel_of(table, name)
                if not identifiability(channel).is_full:
                    continue
                features, p = moments(channel), table.p_su.ravel()
                inverse = Inverse.at(features, design_point(channel, table))
                hits, widths = np.zeros(len(p)), np.zeros(2)
                for counts in collections(channel, features, p, n, FEW_COLLECTIONS, seed=2):
                    first = inverted(inverse, counts)
                    figures = maximum(inverse, counts, first).figures(np.eye(len(p)), 0.95)
                    plain = first.figures(np.eye(len(p)), 0.95)
                    hits += _holds(figures, p)
                    widths += [(x.high - x.low).mean() for x in (figures, plain)]
                cover = 100 * hits / FEW_COLLECTIONS
                rows.append([
                    label, kind, name, f"{cover.mean():.2f}", f"{cover.min():.2f}",
                    f"{widths[0] / widths[1]:.2f}",
                ])  # fmt: skip
    show(
        f"Likelihood-ratio intervals, {FEW_COLLECTIONS} collections: coverage in %",
        ["table", "kind", "protocol", "mean", "least", "width against inversion"],
        rows,
    )
