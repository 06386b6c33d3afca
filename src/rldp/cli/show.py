"""Tables and texts for people, JSON for machines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rldp.cli import printing
from rldp.cli.printing import Grid, dim, show_grid
from rldp.cli.printing import note as note
from rldp.cli.printing import paragraph as paragraph
from rldp.decimals import brief_up, shortest
from rldp.presentation.promises import covered, further_promises, not_covered, promise
from rldp.presentation.risk_texts import attacker_summary, risk_line
from rldp.presentation.texts import (
    error_gap_in_words,
    finite,
    gap_in_words,
    meaning,
    set_in_words,
    title,
)

if TYPE_CHECKING:
    from rldp.auditing.audit import Promise
    from rldp.auditing.levels import Levels
    from rldp.proof import Proof
    from rldp.protocol.release_protocol import ReleaseProtocol
    from rldp.uncertainty import UncertaintySet

_MOST_PLANNED = 64  # cells whose estimates are foretold at once
_LEVEL = 0.95
_LISTED = 10  # labels of a column

_CHANGED = {
    "person": "A changed record is reported with the same words: anyone who sees two different "
    "reports knows of the change, and may learn both records with certainty; see --per record.",
    "record": "A changed record is reported with new words: anyone who sees two different reports "
    "knows of the change. The guarantee covers one report, not both.",
}


def labels(F: UncertaintySet) -> None:
    """The labels that were found in each column."""
    schema = F.table.schema
    for part, columns in (("S", schema.sensitive), ("U", schema.useful)):
        for column in columns:
            listed = ", ".join(map(repr, column.labels[:_LISTED]))
            n = len(column.labels)
            note(f"{part}  {column.name}: {listed}{f', ... ({n:,} in all)' * (n > _LISTED)}")
    note("")


def release(summary: Mapping[str, Any]) -> None:
    """What was released, and what to know about it."""
    claims = "" if summary["proved"] else "claims "
    note(
        f"Released {summary['records']:,} records by {summary['protocol']} "
        f"({claims}ε = {shortest(summary['epsilon'])}) to {summary['output']}"
    )
    if summary["dropped"]:
        note(dropped(summary["dropped"]))
    if summary["randomness"] == "simulation":
        note("A simulation: anyone who knows the seed can undo it. Not for people's data.")
    if summary["randomness"] == "secure":
        note(
            "New random draws: do not release the same people again; a second report reveals more."
        )
    if summary["per"] is not None:
        note("Keyed: a person whose record is unchanged gets the same report again.")
        note(_CHANGED[summary["per"]])
    if summary["folder"]:
        note("Each file holds the reports of one input file. If files differ by a sensitive value,")
        note("the reports of a file reveal it: release to one file with --shuffle instead.")
    if not summary["shuffled"]:
        note("In the order of the records: anyone who knows it can link reports; use --shuffle.")


def dropped(records: int) -> str:
    """How many records have no report."""
    return f"{records:,} records with missing values dropped: they have no report."


def as_json(value: Any) -> None:
    """The value as JSON, null where a number is not finite."""
    printing.as_json(_finite(value))


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def protocol(p: ReleaseProtocol) -> None:
    """What was designed, what it keeps and what it promises."""
    from rldp.auditing.attackers import attackers_of
    from rldp.auditing.levels import levels
    from rldp.utility.goal import INFORMATION

    F, beyond = p.uncertainty, levels(p)
    note(f"{p.name}: {title(p.name)}")
    grid = Grid.grid(padding=(0, 2))
    for name, value in p.parameters.items():
        grid.add_row(f"  {name}", _numbers(value), dim(meaning(name)))
    show_grid(grid)
    note(f"keeps {p.utility / math.log(2):.4f} bits, {100 * p.normalised_utility:.1f} % of H(X)")
    if p.is_interrupted:
        note("interrupted: this is the best so far")
    if p.optimality_gap is not None:
        note(gap_in_words(p))
    paragraph(f"promised: {promise(beyond, F)}")
    for sentence in further_promises(beyond, F):
        paragraph(f"promised: {sentence}")
    paragraph(f"F: {set_in_words(F).removeprefix('private for ')}")
    scope(beyond, F)
    paragraph(risk_line(attackers_of(p), p.schema))
    if p.table.counts.size <= _MOST_PLANNED:
        paragraph(_estimates(p))
    if p.options.get("goal", INFORMATION) != INFORMATION and (least := error_gap_in_words(p.error)):
        paragraph(least)


def is_plain(p: ReleaseProtocol) -> bool:
    """Whether ε holds whatever is true and known, so that there is no weaker limit."""
    from rldp.auditing.levels import levels

    found = levels(p)
    return found.everything <= found.over_f


def _estimates(p: ReleaseProtocol) -> str:
    """How well as many reports as the table has records would estimate its cells."""
    from rldp.errors import DataError
    from rldp.estimation.sample_size import plan

    try:
        found = plan(p, level=_LEVEL)
    except DataError:
        return (
            "the reports identify no cell of the table; a design with --goal cells identifies all"
        )
    cells, known = p.table.counts.size, len(found.names)
    margin = float(found.margins(p.table.n).max())
    which = f"all {cells}" if known == cells else f"{known} of {cells}"
    told = (
        f"{p.table.n:,} reports would estimate {which} cells to ± {100 * margin:.2g} percentage "
        f"points or better ({100 * _LEVEL:g} % intervals, if the table is the truth)"
    )
    return told if known == cells else f"{told}; with --goal cells all are estimated"


def scope(beyond: Levels, F: UncertaintySet) -> None:
    """What ε covers beyond F, and what is not promised."""
    also = f"Also covered by ε = {brief_up(beyond.over_f)}"
    parts = {also: covered(beyond, F), "Not promised": not_covered(beyond, F)}
    for head, sentences in parts.items():
        if sentences:
            note(head)
        for sentence in sentences:
            paragraph(f"- {sentence}")


def written(file: Path | None, *, holds_records: bool = True) -> None:
    """Where a protocol is, and who may have it."""
    if file is None:
        note("Nothing was saved; -o FILE writes the protocol.")
        return
    note(f"Written: {file}")
    if not holds_records:
        note(f"It holds no record, and may be published. For clients:  rldp public {file} -o OUT")
        return
    note(
        f"It holds the counts of the sample: store it only where those may be. "
        f"For clients:  rldp public {file} -o OUT"
    )


def _numbers(value: float | tuple[float, ...]) -> str:
    if not isinstance(value, tuple):
        return f"{value:.6g}"
    shown = ", ".join(f"{x:.4g}" for x in value[:6])
    return shown + (f", … ({len(value)} values)" if len(value) > 6 else "")


def protocol_summary(p: ReleaseProtocol, output: Path | None) -> dict[str, Any]:
    """The same for machines; infinite parameters as text."""
    from rldp.auditing.attackers import attackers_of
    from rldp.protocol.documents import parameters_document

    return {
        "protocol": p.name,
        "epsilon": p.epsilon,
        "options": dict(p.options),
        "parameters": parameters_document(p.parameters),
        "utility": p.utility,
        "normalised": p.normalised_utility,
        "optimality_gap": p.optimality_gap,
        "influence": None if p.goal is None else p.error.influence,
        "interrupted": p.is_interrupted,
        "attackers": finite([attacker_summary(attacker) for attacker in attackers_of(p)]),
        "file": None if output is None else str(output),
    }


def public_promise(found: Promise, file: Path) -> None:
    """What the table of a public file promises, as it holds no proof of more."""
    note(f"{file} is a public file: it holds the table, and no proof. Nothing was proved.")
    note("By itself the table promises, whatever distribution is true:")
    for line, epsilon in _promises(found).items():
        note(f"  {line:<34} {epsilon}")


def promise_in_words(found: Promise, file: Path, claim: float) -> str:
    """The same in one paragraph."""
    levels = ", ".join(f"{epsilon} {line}" for line, epsilon in _promises(found).items())
    return (
        f"{file} is a public file: its ε = {shortest(claim)} over F is a claim that this file does "
        f"not prove. By itself the table promises {levels}."
    )


def promise_summary(found: Promise, file: Path, claim: float) -> dict[str, Any]:
    """The same for machines; infinite numbers as text."""
    levels = {
        name: "inf" if math.isinf(epsilon) else epsilon for name, epsilon in asdict(found).items()
    }
    return {"file": str(file), "proved": False, "claimed": claim, **levels}


def _promises(found: Promise) -> dict[str, str]:
    levels = {
        "over all distributions": found.epsilon_all,
        "against someone who knows U": found.epsilon_given_u,
        "on the whole record (plain LDP)": found.epsilon_plain,
    }
    nothing = " (nothing)"
    return {
        line: f"ε = {brief_up(epsilon)}{nothing * math.isinf(epsilon)}"
        for line, epsilon in levels.items()
    }


def proof(found: Proof, *, with_intervals: bool) -> None:
    """What was proved against whom, and how tightly."""
    for guarantee in found.guarantees:
        level = f"ε = {shortest(guarantee.epsilon)}"
        if not guarantee.levels.is_uniform:
            level = f"ε up to {shortest(guarantee.epsilon)}, by pair of S values,"
        knows = f", for someone who knows {' and '.join(guarantee.knows)}" * bool(guarantee.knows)
        paragraph(
            f"proved: {level} over {guarantee.uncertainty}{knows}: "
            f"{guarantee.conditions:,} inequalities, least room {guarantee.slack:.2g}"
        )
    if with_intervals:
        note("proved again in interval arithmetic, by independent code")


def proof_summary(found: Proof, file: Path, *, with_intervals: bool) -> dict[str, Any]:
    """The same for machines."""
    return {
        "file": str(file),
        "proved": True,
        "epsilon": float(found.epsilon),
        "uncertainty": found.uncertainty,
        "conditions": found.conditions,
        "slack": found.slack,
        "guarantees": [
            {
                "uncertainty": guarantee.uncertainty,
                **({"knows": list(guarantee.knows)} if guarantee.knows else {}),
                "epsilon": float(guarantee.epsilon),
                "by_pair": not guarantee.levels.is_uniform,
                "conditions": guarantee.conditions,
                "slack": guarantee.slack,
            }
            for guarantee in found.guarantees
        ],
        "intervals": with_intervals,
    }
