"""Forty ε at 5×5: one call of `rldp.compare` against plain loops, over the peer and over design."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

import rldp
from benchmarks import peer
from benchmarks.timing import Effort, best_of, milliseconds, ratio, show
from rldp.designing.closed_forms.noise_odds import Bounds

EPSILONS = np.linspace(0.2, 8.0, 40)
NAMES = tuple(peer.PEERS)
N_S, N_U = 5, 5
BOUNDS: tuple[Bounds, ...] = ("paper", "sharp")
SAME = 1e-6  # nats; beyond, the two found different optima


def run(_: Effort) -> None:
    table = rldp.datasets.jeffreys(N_S, N_U, 1000, seed=0).table
    rows, remarks = [], []
    total = dict.fromkeys(("paper", "sharp", "designs", "peer"), 0.0)
    exact = total.copy()
    for name in NAMES:
        seconds = best_of(
            {
                "paper": partial(_compared, table, [name], "paper"),
                "sharp": partial(_compared, table, [name], "sharp"),
                "designs": partial(_designed, table, name),
                "peer": partial(_peered, table, name),
            },
            enough=3.0,
        )
        is_exact = peer.is_exact(name, N_S, N_U)
        for key, value in seconds.items():
            total[key] += value
            exact[key] += value if is_exact else 0.0
        rows.append(_row(name if is_exact else f"{name} (peer: Monte Carlo)", seconds))
        ahead = _compared(table, [name], "paper") - _peered(table, name)
        remarks.append(f"{name}: {_agreement(ahead, is_exact)}")
    rows += [_row("sum, ue apart", exact), _row("sum", total)]
    at_once = best_of({bounds: partial(_compared, table, NAMES, bounds) for bounds in BOUNDS})
    rows.append(_row("all in one call", total | at_once))
    show(
        f"Forty ε from {EPSILONS[0]:g} to {EPSILONS[-1]:g} at 5×5, n = 1,000: milliseconds",
        ["protocol", "compare, paper", "compare, sharp", "40 designs, paper", "40 peers",
         "designs/compare", "peers/compare"],
        rows,
        "rldp - peer at the forty ε, nats:",
        *remarks,
    )  # fmt: skip


def _row(label: str, seconds: dict[str, float]) -> list[str]:
    compared = seconds["paper"]
    return [
        label,
        *map(milliseconds, seconds.values()),
        ratio(seconds["designs"], compared),
        ratio(seconds["peer"], compared),
    ]


def _agreement(ahead: peer.Array, is_exact: bool) -> str:
    if not is_exact:
        return f"the peer is a Monte Carlo mean, differences up to {abs(ahead).max():.1e}"
    is_same = abs(ahead) <= SAME
    text = f"same optimum at {is_same.sum()} ε to {abs(ahead[is_same]).max(initial=0.0):.1e}"
    if is_same.all():
        return text
    return (
        f"{text}; rldp better at {(ahead > SAME).sum()} by up to {ahead.max():.1e}, "
        f"the peer better at {(ahead < -SAME).sum()} by up to {max(0.0, -ahead.min()):.1e}"
    )


def _compared(table: rldp.Table, names: Sequence[str], bounds: Bounds) -> peer.Array:
    F = rldp.ChiSquareSet(table)
    records = rldp.compare(F, EPSILONS, protocols=names, bounds=bounds)
    return np.array([record["utility"] for record in records])


def _designed(table: rldp.Table, name: str) -> peer.Array:
    F = rldp.ChiSquareSet(table)
    return np.array([rldp.design(F, e, name, bounds="paper").utility for e in EPSILONS])


def _peered(table: rldp.Table, name: str) -> peer.Array:
    sample = peer.Sample(table.counts)
    return np.array([peer.PEERS[name](sample, e) for e in EPSILONS])
