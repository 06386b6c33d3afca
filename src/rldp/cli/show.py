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

from rldp.wording import MEANINGS, TITLES, columns_title, gap_in_words, set_in_words

if TYPE_CHECKING:
    from rldp.proof import Proof
    from rldp.protocol import ReleaseProtocol
    from rldp.uncertainty import UncertaintySet

_NAME_WIDTH, _CELL_WIDTH = 12, 19  # of a column in a comparison


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
            cells += [f"{rows[epsilons[0]]['seconds']:.3f}", TITLES.get(name, "")]
        grid.add_row(name, *cells)
    return grid


def _kept(record: Mapping[str, Any], *, is_best: bool) -> str:
    text = f"{record['utility'] / math.log(2):.4f} {100 * record['normalised']:5.1f} %"
    return f"[bold]★ {text}[/bold]" if is_best else text


def protocol(p: ReleaseProtocol) -> None:
    """What was designed, what it keeps and what it promises."""
    names = ", ".join(column.name for column in p.schema.sensitive)
    note(f"{p.name}: {TITLES.get(p.name, '')}")
    grid = Grid.grid(padding=(0, 2))
    for name, value in p.parameters.items():
        grid.add_row(f"  {name}", _numbers(value), f"[dim]{MEANINGS.get(name, '')}[/dim]")
    Console(highlight=False).print(grid)
    note(
        f"keeps {p.utility / math.log(2):.4f} bits, {100 * p.normalised_utility:.1f} % of H(X); "
        f"no answer changes anyone's odds on {names} by more than e^{p.epsilon:g} "
        f"= {math.exp(p.epsilon):.4g}"
    )
    if p.optimality_gap is not None:
        note(gap_in_words(p))
    note(set_in_words(p.uncertainty))
    note("not promised: privacy of U itself, against other distributions, or for repeated answers")


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
