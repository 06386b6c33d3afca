"""Tables and texts for people, JSON for machines."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table as Grid

if TYPE_CHECKING:
    from rldp.proof import Proof
    from rldp.protocol import ReleaseProtocol
    from rldp.schema import Schema
    from rldp.table import Table
    from rldp.uncertainty import UncertaintySet

_MEANINGS = {
    "epsilon_1": "budget spent on S",
    "epsilon_2": "budget spent on U",
    "delta_2": "log-odds of the truth in the report of U (inf: sent as it is)",
    "delta_s": "log-odds of the truth in the report of U, for each s (inf: sent as it is)",
    "kappa": "chance that the own value is reported",
    "lambda": "chance that another value is reported",
    "mixed_share": "share of a closed form mixed in, so that every cell can be estimated",
    "identifiability_cost": "nats that this costs",
    "guaranteed_utility": "nats kept whatever distribution of the set is true",
}
_NAME_WIDTH, _CELL_WIDTH = 12, 19  # of a column in a comparison
_TITLES = {
    "grr": "randomised response on the whole record",
    "ue": "unary encoding of the whole record",
    "srr": "secret randomised response",
    "ir": "S and U reported independently",
    "grr-cr": "one noisy S, with U if it is right and a made-up U if not",
    "ue-cr": "a noisy set of S values, each with a true or made-up U",
    "polyopt": "the best outputs for a simplex around F, by linear programming",
    "ldp-optimal": "the best that protects the whole record",
    "best": "the best mixture of the outputs of all others",
    "ceiling": "nothing can keep more, even if the frequencies were the truth",
}


def note(text: str) -> None:
    """A line of plain text."""
    Console(highlight=False).print(text, markup=False, soft_wrap=not text.endswith("\n"))


def release(summary: Mapping[str, Any]) -> None:
    """What was released, and what to know about it."""
    note(
        f"Released {summary['records']:,} records by {summary['protocol']} "
        f"(ε = {summary['epsilon']:g}) to {summary['output']}"
    )
    if summary["randomness"] == "simulation":
        note("A simulation: anyone who knows the seed can undo it. Not for people's data.")
    if summary["randomness"] == "secure":
        note("Drawn afresh: do not release the same people again, a second report tells more.")
    if not summary["shuffled"]:
        note("In the order of the records: who knows it knows whose report is whose (--shuffle).")


def as_json(value: Any) -> None:
    """The value as JSON."""
    print(json.dumps(value, indent=1, ensure_ascii=False))


def columns_title(table: Table) -> str:
    """Which columns are S and which are U."""
    return schema_title(table.schema)


def schema_title(schema: Schema) -> str:
    """The same of a schema alone."""
    s, u = ([column.name for column in side] for side in (schema.sensitive, schema.useful))
    return f"S = {', '.join(s)} ({schema.n_s})   U = {', '.join(u) or 'nothing'} ({schema.n_u})"


def comparison(records: Sequence[Mapping[str, Any]], F: UncertaintySet) -> None:
    """One row for each protocol, one column for each ε, the best of each column marked."""
    console = Console(highlight=False)
    epsilons = list(dict.fromkeys(record["epsilon"] for record in records))
    console.print(columns_title(F.table), style="bold")
    at_once = max(1, (console.width - _NAME_WIDTH) // _CELL_WIDTH)
    for i in range(0, len(epsilons), at_once):
        console.print(_grid(records, epsilons[i : i + at_once], with_notes=len(epsilons) == 1))
    bits = F.table.entropy / math.log(2)
    note(f"bits kept of H(X) = {bits:.3f} bits, and the share; ★ the most at this ε")
    note(set_in_words(F))


def _grid(
    records: Sequence[Mapping[str, Any]], epsilons: Sequence[float], *, with_notes: bool
) -> Grid:
    grid = Grid()
    grid.add_column("protocol", no_wrap=True)
    for epsilon in epsilons:
        grid.add_column(f"ε = {epsilon:g}", justify="right", no_wrap=True)
    if with_notes:
        grid.add_column("seconds", justify="right", no_wrap=True)
        grid.add_column("how")
    real = [record for record in records if record["protocol"] != "ceiling"]
    best = {
        e: max((r["utility"] for r in real if r["epsilon"] == e), default=0.0) for e in epsilons
    }
    for name in dict.fromkeys(record["protocol"] for record in records):
        rows = {r["epsilon"]: r for r in records if r["protocol"] == name}
        is_real = name != "ceiling"
        cells = [
            _kept(rows[e], is_best=is_real and rows[e]["utility"] >= best[e]) for e in epsilons
        ]
        if with_notes:
            cells += [f"{rows[epsilons[0]]['seconds']:.3f}", _TITLES.get(name, "")]
        grid.add_row(name, *cells)
    return grid


def _kept(record: Mapping[str, Any], *, is_best: bool) -> str:
    text = f"{record['utility'] / math.log(2):.4f} {100 * record['normalised']:5.1f} %"
    return f"[bold]★ {text}[/bold]" if is_best else text


def set_in_words(F: UncertaintySet) -> str:
    """For which distributions there is privacy."""
    from rldp.uncertainty import (
        AllDistributions,
        ConfidenceSet,
        KLSet,
        RenyiSet,
        TotalVariationSet,
    )

    people = f"{F.table.n:,} records"
    if F.table.dropped:
        people += f" ({F.table.dropped:,} with missing values dropped)"
    if isinstance(F, AllDistributions):
        return f"private for every distribution; usefulness measured on {people}"
    if not isinstance(F, ConfidenceSet):
        return f"private for the frequencies of {people} only"
    if isinstance(F, TotalVariationSet):
        return (
            f"private for every distribution within total variation {F.budget:.3g} of the "
            f"frequencies of {people} (α = {F.alpha:g}, for any number of records)"
        )
    test = "a χ² test"
    if isinstance(F, KLSet):
        test = "a likelihood ratio test"
    elif isinstance(F, RenyiSet):
        test = f"a power-divergence test of order {F.order:g}"
    return f"private for every distribution that {test} on {people} accepts at α = {F.alpha:g}"


def protocol(p: ReleaseProtocol) -> None:
    """What was designed, what it keeps and what it promises."""
    names = ", ".join(column.name for column in p.schema.sensitive)
    note(f"{p.name}: {_TITLES.get(p.name, '')}")
    grid = Grid.grid(padding=(0, 2))
    for name, value in p.parameters.items():
        grid.add_row(f"  {name}", _numbers(value), f"[dim]{_MEANINGS.get(name, '')}[/dim]")
    Console(highlight=False).print(grid)
    note(
        f"keeps {p.utility / math.log(2):.4f} bits, {100 * p.normalised_utility:.1f} % of H(X); "
        f"no answer changes anyone's odds on {names} by more than e^{p.epsilon:g} "
        f"= {math.exp(p.epsilon):.4g}"
    )
    if p.optimality_gap is not None:
        note(f"no protocol of its kind keeps {_gap(p)} more")
    note(set_in_words(p.uncertainty))
    note("not promised: privacy of U itself, against other distributions, or for repeated answers")


def _gap(p: ReleaseProtocol) -> str:
    gap = (p.optimality_gap or 0.0) / math.log(2)
    return f"than {gap:.2g} bits" if gap >= 1e-6 else "than a millionth of a bit"


def _numbers(value: float | tuple[float, ...]) -> str:
    if not isinstance(value, tuple):
        return f"{value:.6g}"
    shown = ", ".join(f"{x:.4g}" for x in value[:6])
    return shown + (f", … ({len(value)} values)" if len(value) > 6 else "")


def protocol_summary(p: ReleaseProtocol, output: Path | None) -> dict[str, Any]:
    """The same for machines; infinite parameters as text."""
    from rldp.documents import parameters_document

    return {
        "protocol": p.name,
        "epsilon": p.epsilon,
        "options": dict(p.options),
        "parameters": parameters_document(p.parameters),
        "utility": p.utility,
        "normalised": p.normalised_utility,
        "optimality_gap": p.optimality_gap,
        "file": None if output is None else str(output),
    }


def proof(found: Proof, *, with_intervals: bool) -> None:
    """What was proved, and how tightly."""
    paragraph(
        f"proved: ε = {float(found.epsilon):g} over {found.uncertainty}: "
        f"{found.conditions:,} inequalities, least room {found.slack:.2g}"
    )
    if with_intervals:
        note("proved again in interval arithmetic, by independent code")


def proof_summary(found: Proof, file: Path, *, with_intervals: bool) -> dict[str, Any]:
    """The same for machines."""
    return {
        "file": str(file),
        "epsilon": float(found.epsilon),
        "uncertainty": found.uncertainty,
        "conditions": found.conditions,
        "slack": found.slack,
        "intervals": with_intervals,
    }


def paragraph(text: str, *, after_space: bool = False) -> None:
    """Text wrapped to the width of the screen, after an empty line if asked for."""
    indent = "  " if text.startswith("- ") else ""
    width = min(Console().width, 100)
    wrapped = textwrap.fill(text, width, subsequent_indent=indent, break_on_hyphens=False)
    note("\n" * after_space + wrapped)
