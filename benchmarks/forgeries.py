"""How many false claims the checkers refuse: all that are tried, or the run stops there."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import Effort, show
from rldp.intervals import check_with_intervals
from rldp.proof import check
from tests.support import forgeries, part_forgeries, questionnaire_forgeries, stacks
from tests.support.questionnaires import small

CLAIMS = 600_000  # with those of the second checker about an hour
SECOND_CLAIMS = 50_000
LAYERED_CLAIMS = 10_000  # several guarantees at once, of each checker
SPOILED_TABLES = 10_000  # under several guarantees, of the exact checker
QUESTIONNAIRES = 5_000  # of each kind as many, for both checkers
PART_CLAIMS = 20_000  # about someone who knows part of U, of both checkers and the client

Checker = Callable[[dict[str, Any]], object]
Run = Callable[[np.random.Generator, Checker, int], Counter[str]]


def run(
    _: Effort,
    n_claims: int = CLAIMS,
    n_second: int = SECOND_CLAIMS,
    n_layered: int = LAYERED_CLAIMS,
    n_spoiled: int = SPOILED_TABLES,
    n_parts: int = PART_CLAIMS,
    n_questionnaires: int = QUESTIONNAIRES,
    seed: int = 2026,
) -> None:
    """False claims on all kinds of sets and channels, with S values that were never seen."""
    second = "second checker"
    rows = [
        _tried("exact checker", forgeries.run, check, n_claims, seed),
        _tried(second, forgeries.run, check_with_intervals, n_second, seed + 1),
        _tried("exact, several guarantees", stacks.run, check, n_layered, seed + 2),
        _tried(f"{second}, several", stacks.run, check_with_intervals, n_layered, seed + 3),
    ]
    columns = ("", "false claims", "accepted", "true claims", "accepted", "processor time")
    show("Forged claims", columns, rows)
    start = time.process_time()
    tally = stacks.run_mutants(np.random.default_rng(seed + 4), check, n_spoiled)
    seconds = time.process_time() - start
    counted = [(name, f"{n:,}", "0") for name, n in sorted(tally.items())]
    title = f"Spoiled tables under several guarantees, {seconds:.0f} s"
    show(title, ("what is broken", "refused", "accepted"), counted)
    show_parts(n_parts, seed + 5)
    show_questionnaires(n_questionnaires, seed + 7)


def show_questionnaires(n: int = QUESTIONNAIRES, seed: int = 2033) -> None:
    """Files of questionnaires that claim what they do not prove, or are not what they say."""
    start = time.process_time()
    tried: Counter[str] = Counter()
    for name, document in questionnaire_forgeries.forged(small().document(), n, seed):
        tried[name] += 1
        if questionnaire_forgeries.accepted(document):
            raise SystemExit(f"A checker accepted a forged questionnaire: {name}, {document}")
    rows = [(name.replace("_", " "), f"{times:,}", "0") for name, times in sorted(tried.items())]
    seconds = time.process_time() - start
    show(f"Forged questionnaires, {n:,}, {seconds:.0f} s", ("what", "tried", "accepted"), rows)


def show_parts(n_claims: int = PART_CLAIMS, seed: int = 2031) -> None:
    """The same claims for both checkers and the JavaScript client."""
    start = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        checkers = {
            "exact checker": part_forgeries.one_by_one(check),
            "second checker": part_forgeries.one_by_one(check_with_intervals),
            "JavaScript client": part_forgeries.by_the_client(Path(folder)),
        }
        tally = part_forgeries.run(np.random.default_rng(seed), checkers, n_claims)
    seconds = time.process_time() - start
    columns = ("", "false claims", "accepted", "true claims", "accepted")
    rows = [
        (name, f"{tally['false']:,}", "0", f"{tally['true']:,}", f"{tally[f'{name} proved']:,}")
        for name in checkers
    ]
    show(f"Forged claims about someone who knows part of U, {seconds:.0f} s", columns, rows)
    ways: Counter[str] = Counter()
    for way, n in tally.items():
        if way not in ("false", "true") and not way.endswith(" proved"):
            ways[way.partition(",")[0].partition(":")[0]] += n
    counted = [(way, f"{n:,}", "0") for way, n in ways.most_common()]
    show("How they were made", ("", "refused", "accepted"), counted)


def _tried(name: str, tried: Run, checker: Checker, n_claims: int, seed: int) -> tuple[str, ...]:
    """The run ends with the claim, should a false one be accepted."""
    start = time.process_time()
    tally = tried(np.random.default_rng(seed), checker, n_claims)
    seconds = time.process_time() - start
    true = f"{tally['true']:,}", f"{tally['true and accepted']:,}"
    return name, f"{tally['false']:,}", "0", *true, f"{seconds:.0f} s"
