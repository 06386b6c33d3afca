"""Plain LDP of the record by other people's programs, as they come, beside `ldp-optimal`.

multi-freq-ldpy clips its estimates at 0 and scales them to sum to 1, pure-LDP does not; ours are
told both ways. All are given the same people.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import rldp
from rldp._types import Array, Indices
from rldp.utility.goal import information_matrix

PEERS = (
    "GRR of multi-freq-ldpy",
    "OUE of multi-freq-ldpy",
    "subset selection of multi-freq-ldpy",
    "GRR of pure-LDP",
    "OUE of pure-LDP",
)


def line(title: str, table: rldp.Table, epsilon: float, people: int, collections: int) -> list[str]:
    """Root mean squared errors × 1000 of the cells, measured."""
    rng, truth = np.random.default_rng(0), table.p_su.ravel()
    programs = [*_programs(truth.size, epsilon), *_ours(table, epsilon, rng)]
    squares = np.zeros(len(programs))
    for _ in range(collections):
        cells = rng.choice(truth.size, size=people, p=truth)
        own = np.bincount(cells, minlength=truth.size)
        for i, program in enumerate(programs):
            squares[i] += ((program(cells, own) - truth) ** 2).mean() / collections
    return [title, *(f"{1000 * x:.2f}" for x in np.sqrt(squares))]


Program = Callable[[Indices, Indices], Array]


def _programs(n: int, epsilon: float) -> list[Program]:
    """Estimates of n cells from the cells of people, in the order of PEERS."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of their own imports
        from multi_freq_ldpy.pure_frequency_oracles import GRR, SS, UE
        from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
        from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

    def joint(client: Any, server: Any) -> Program:
        return lambda cells, _: np.asarray(
            server([client(int(x), n, epsilon) for x in cells], n, epsilon)
        )

    def one_by_one(client: Any, make: Callable[[], Any]) -> Program:
        def estimated(cells: Indices, _: Indices) -> Array:
            server = make()
            for x in cells:  # their items are counted from 1
                server.aggregate(client.privatise(int(x) + 1))
            found = [server.estimate(x, suppress_warnings=True) for x in range(1, n + 1)]
            return np.array(found, dtype=float).ravel() / len(cells)

        return estimated

    return [
        joint(GRR.GRR_Client, GRR.GRR_Aggregator_MI),
        joint(UE.UE_Client, lambda reports, _, epsilon: UE.UE_Aggregator_MI(reports, epsilon)),
        joint(SS.SS_Client, SS.SS_Aggregator_MI),
        one_by_one(DEClient(epsilon, n), lambda: DEServer(epsilon, n)),
        one_by_one(UEClient(epsilon, n, use_oue=True), lambda: UEServer(epsilon, n, use_oue=True)),
    ]


def _ours(table: rldp.Table, epsilon: float, rng: np.random.Generator) -> list[Program]:
    p = rldp.design(rldp.ChiSquareSet(table), epsilon, "ldp-optimal", goal="cells", effort="quick")
    truth = table.p_su.ravel()
    Q = p.matrix.reshape(truth.size, -1)
    e = np.linalg.solve(information_matrix(p.matrix, table.p_su), Q / (truth @ Q))

    def unbiased(_: Indices, own: Indices) -> Array:
        counts = np.sum([rng.multinomial(m, row) for m, row in zip(own, Q, strict=True)], axis=0)
        return np.asarray(e @ counts / own.sum())

    def clipped(cells: Indices, own: Indices) -> Array:
        found = np.maximum(unbiased(cells, own), 0.0)
        return np.asarray(found / found.sum())

    return [unbiased, clipped]
