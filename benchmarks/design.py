"""The time to design one protocol: every closed form, at four sizes, against the plain peer.

The peer finds parameters and a utility and proves nothing, so its like is `compare` at one ε;
`design` makes the integer table and its proof besides.
"""

from __future__ import annotations

from functools import partial

import rldp
from benchmarks import peer
from benchmarks.timing import Effort, best_of, milliseconds, ratio, show, time_limit
from rldp.designing.closed_forms.noise_odds import Bounds

EPSILON = 1.0
BOUNDS: Bounds = "paper"  # as the peer has them
SAME = 1e-6  # nats; beyond, the two found different optima


def tables() -> dict[str, rldp.Table]:
    adult = rldp.datasets.adult
    return {
        "5×5, n = 1,000, random": rldp.datasets.jeffreys(5, 5, 1000, seed=0).table,
        "16×15, Adult education × occupation": adult("education", "occupation"),
        "6×42, Adult relationship × native-country": adult("relationship", "native-country"),
        "42×6, Adult native-country × relationship": adult("native-country", "relationship"),
    }


def run(effort: Effort) -> None:
    for title, table in tables().items():
        rows, same, other = [], [0.0], []
        for name in peer.PEERS:
            works: dict[str, partial[float]] = {
                "design": partial(_designed, table, name),
                "optimum": partial(_utility, table, name),
            }
            plain = partial(_peer_utility, table, name)
            try:
                with time_limit(effort.cap):
                    ahead = _utility(table, name) - plain()
            except TimeoutError:
                own = map(milliseconds, best_of(works).values())
                rows.append([name, *own, "not run", "", f"over {effort.cap:g} s"])
                continue
            seconds = best_of(works | {"peer": plain})
            is_exact = peer.is_exact(name, table.n_s, table.n_u)
            remark = "" if is_exact else " (Monte Carlo)"
            rows.append(
                [
                    name,
                    *map(milliseconds, seconds.values()),
                    ratio(seconds["peer"], seconds["optimum"]),
                    f"{ahead:+.1e}{remark}",
                ]
            )
            if is_exact and abs(ahead) <= SAME:
                same.append(abs(ahead))
            elif is_exact:
                other.append(f"{name} ({'rldp' if ahead > 0 else 'the peer'} is better)")
        show(
            f"Design at ε = {EPSILON:g}: {title}",
            [
                "protocol",
                "with proof, ms",
                "optimum, ms",
                "peer, ms",
                "peer/optimum",
                "rldp - peer, nats",
            ],
            rows,
            f"Where the peer is exact and finds the same optimum: equal to {max(same):.1e} nats.",
            *(f"Another optimum: {name}." for name in other),
        )


def _designed(table: rldp.Table, name: str) -> float:
    return rldp.design(rldp.ChiSquareSet(table), EPSILON, name).utility


def _utility(table: rldp.Table, name: str) -> float:
    F = rldp.ChiSquareSet(table)
    return rldp.compare(F, EPSILON, protocols=[name], bounds=BOUNDS)[0]["utility"]


def _peer_utility(table: rldp.Table, name: str) -> float:
    return peer.PEERS[name](peer.Sample(table.counts), EPSILON)
