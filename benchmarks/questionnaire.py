"""Whole questionnaires about Adult: errors by formula and by simulation, beside multi-freq-ldpy.

A sensitive column and eight useful ones, 32,561 people, ε = 1. The peers protect the useful answers
as well, and let no sample speak for them; ours protect the sensitive one, with the default layers.
Errors are root mean squared errors × 1000 of the cells of a question, the mean of all questions.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

import rldp
from benchmarks.timing import Effort, console, show
from rldp._types import Integers
from rldp.datasets import ADULT_COLUMNS, adult
from rldp.estimation.questionnaire import margin_weights, table_covariance
from rldp.utility.contrasts import sums_over_s

EPSILON, LEVEL = 1.0, 0.95
SURVEYS = 500  # simulated, of ours
COLLECTIONS = 20  # of the peers, person by person


class Errors(NamedTuple):
    """Of P(S), every P(U_j), and every P(S, U_j)."""

    s: float
    useful: float
    tables: float

    def shown(self) -> list[str]:
        return ["–" if np.isnan(x) else f"{1000 * x:.2f}" for x in self]


def run(
    _: Effort,
    sensitive_columns: Sequence[str] = ("income",),
    surveys: int = SURVEYS,
    collections: int = COLLECTIONS,
) -> None:
    """A block for each column; with S = race the designs alone take more than six minutes."""
    for sensitive in sensitive_columns:
        rows = _ours(sensitive, surveys)
        if find_spec("multi_freq_ldpy"):
            rows += _peers(sensitive, collections)
        else:
            console.print("multi-freq-ldpy is not installed: pip install 'rldp[bench]'")
        columns = ("", "P(S)", "P(U)", "P(S,U)", "simulated P(S)", "P(U)", "P(S,U)", "covered", "s")
        show(f"Questionnaire of Adult, S = {sensitive}, eight useful columns", columns, rows)


def _tables(sensitive: str) -> dict[str, rldp.Table]:
    return {name: adult(sensitive, name) for name in ADULT_COLUMNS if name != sensitive}


def _ours(sensitive: str, surveys: int) -> list[list[str]]:
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of labels such as "?"
        tables = _tables(sensitive)
        start = time.process_time()
        q = rldp.design_questionnaire(tables, epsilon=EPSILON, effort="quick", workers=0)
        seconds = time.process_time() - start
    n = next(iter(tables.values())).n
    simulated, covered = simulation(q, n, surveys)
    rows.append(
        [
            "rldp, a block each, quick",
            *formula(q, n).shown(),
            *simulated.shown(),
            f"{covered:.1%}",
            f"{seconds:.0f}",
        ]
    )
    return rows


def formula(q: rldp.Questionnaire, n: int) -> Errors:
    """Errors at the frequencies of the design sample, by the covariance of least squares."""
    _, C = margin_weights(q._laws, q.weights.tolist())
    useful, tables = [], []
    for p, law, w in zip(q.blocks, q._laws, q.weights.tolist(), strict=True):
        V = table_covariance(law, w, C)
        of_u = sums_over_s(p.schema.n_s, p.schema.n_u)
        tables.append(np.sqrt(np.diag(V).mean() / n))
        useful.append(np.sqrt(np.diag(of_u @ V @ of_u.T).mean() / n))
    return Errors(float(np.sqrt(np.diag(C).mean() / n)), *map(_mean, (useful, tables)))


def simulation(q: rldp.Questionnaire, n: int, surveys: int) -> tuple[Errors, float]:
    """The same in simulated surveys at these frequencies, and how often intervals cover them."""
    rng = np.random.default_rng(20)
    laws = {
        name: np.einsum("su,suy->y", p.table.p_su, p.matrix)
        for name, p in zip(q.names, q.blocks, strict=True)
    }
    truth = {p.schema.useful[0].name: p.table.p_su for p in q.blocks}
    p_s = q.blocks[0].table.p_s
    squares = {kind: dict.fromkeys(truth, 0.0) for kind in ("u", "cells")}
    of_s, hits = 0.0, []
    for _ in range(surveys):
        sizes = rng.multinomial(n, q.weights)
        counts = {
            name: rng.multinomial(size, laws[name] / laws[name].sum())
            for name, size in zip(q.names, sizes, strict=True)
        }
        e = q.estimate(counts=counts)
        of_s += float(((e.s.estimate - p_s) ** 2).mean()) / surveys
        parts = [(e.s, p_s)]
        for name, table in e.tables.items():
            for kind, figures, P in (
                ("u", table.u, truth[name].sum(axis=0)),
                ("cells", table.cells, truth[name]),
            ):
                squares[kind][name] += float(((figures.estimate - P) ** 2).mean()) / surveys
                parts.append((figures, P))
        hits.append(np.mean([((f.low <= P) & (f.high >= P)).mean() for f, P in parts]))
    found = [_mean([np.sqrt(x) for x in squares[kind].values()]) for kind in ("u", "cells")]
    return Errors(float(np.sqrt(of_s)), *found), float(np.mean(hits))


def _mean(values: Any) -> float:
    return float(np.mean(values))


# --- the peers ------------------------------------------------------------------------------------


class Peer(NamedTuple):
    """A client and an aggregator of multi-freq-ldpy, for all columns or for pairs with S."""

    title: str
    client: Callable[..., Any]
    aggregator: Callable[..., Any]
    is_of_pairs: bool = False


def _peers(sensitive: str, collections: int) -> list[list[str]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of their own imports
        from multi_freq_ldpy.mdim_freq_est import RSpFD_solution, SMP_solution, SPL_solution

        peers = (
            Peer("SPL", SPL_solution.SPL_ADP_Client, SPL_solution.SPL_ADP_Aggregator_MI),
            Peer("SMP", SMP_solution.SMP_ADP_Client, SMP_solution.SMP_ADP_Aggregator_MI),
            Peer("RS+FD", RSpFD_solution.RSpFD_ADP_Client, RSpFD_solution.RSpFD_ADP_Aggregator_MI),
            Peer(
                "SMP of pairs with S",
                SMP_solution.SMP_ADP_Client,
                SMP_solution.SMP_ADP_Aggregator_MI,
                is_of_pairs=True,
            ),
        )
        tables = _tables(sensitive)
        rows = []
        for peer in peers:
            start = time.process_time()
            errors = _of_peer(peer, tables, collections)
            seconds = (time.process_time() - start) / collections
            title = f"multi-freq-ldpy, {peer.title}"
            rows.append([title, *["–"] * 3, *errors.shown(), "–", f"{seconds:.0f}"])
    return rows


def _of_peer(peer: Peer, tables: Mapping[str, rldp.Table], collections: int) -> Errors:
    """What its own estimates are off by; people are drawn so that S and U_j are as in the tables.

    Given S their answers are independent, which no estimate of a single table notices.
    """
    rng = np.random.default_rng(21)
    first = next(iter(tables.values()))
    n, n_s = first.n, first.n_s
    of_s = 0.0
    useful, cells = (dict.fromkeys(tables, 0.0) for _ in range(2))
    for _ in range(collections):
        s = rng.choice(n_s, size=n, p=first.p_s)
        answers = [_answers(rng, table, s) for table in tables.values()]
        if peer.is_of_pairs:
            sizes = [table.counts.size for table in tables.values()]
            data = [s * t.n_u + u for t, u in zip(tables.values(), answers, strict=True)]
        else:
            sizes, data = [n_s, *(table.n_u for table in tables.values())], [s, *answers]
        columns = np.array(data).T.tolist()
        reports = [peer.client(tuple(row), sizes, len(sizes), EPSILON) for row in columns]
        found = [np.asarray(x) for x in peer.aggregator(reports, sizes, len(sizes), EPSILON)]
        if not peer.is_of_pairs:
            of_s += float(((found[0] - first.p_s) ** 2).mean()) / collections
        for (name, table), p in zip(tables.items(), found[not peer.is_of_pairs :], strict=True):
            P = p.reshape(n_s, -1) if peer.is_of_pairs else p[None]
            margin = P.sum(axis=0) - table.p_su.sum(axis=0)
            useful[name] += float((margin**2).mean()) / collections
            if peer.is_of_pairs:
                cells[name] += float(((P - table.p_su) ** 2).mean()) / collections
                off = P.sum(axis=1) - first.p_s  # each pair has a margin of its own
                of_s += float((off**2).mean()) / collections / len(tables)
    of_tables = _mean([np.sqrt(x) for x in cells.values()]) if peer.is_of_pairs else np.nan
    of_useful = _mean([np.sqrt(x) for x in useful.values()])
    return Errors(float(np.sqrt(of_s)), of_useful, of_tables)


def _answers(rng: np.random.Generator, table: rldp.Table, s: Integers) -> Any:
    ends = table.p_u_given_s.cumsum(axis=1)[s]
    return np.minimum((rng.random(len(s))[:, None] > ends).sum(axis=1), table.n_u - 1)
