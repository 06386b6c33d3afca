"""Questionnaires on the command line: what the commands do with a file of several blocks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rldp.cli import show
from rldp.cli.figures import figure_grid
from rldp.cli.printing import Grid, print_line, show_grid
from rldp.cli.progress import step_bars
from rldp.decimals import brief_up, shortest
from rldp.errors import ParameterError

if TYPE_CHECKING:
    from rldp.auditing.questionnaire import QuestionnaireAudit
    from rldp.designing.questionnaire import Workload
    from rldp.estimation.questionnaire import Question, QuestionnaireEstimate
    from rldp.proof.questionnaire import QuestionnaireProof
    from rldp.protocol.questionnaire import Questionnaire

_READERS = {
    "levels": "someone who knows nothing of the person but that the truth is in all sets",
    "given_u": "someone who knows the answers to all useful questions, whatever is true",
    "all": "anyone, whatever distribution is true and whatever else is known",
}
_DOUBTFUL = 0.01  # p-value below which a fit is called poor


def blocks_of(texts: list[str]) -> Any:
    """What --blocks asks for: a word, or the columns of each block."""
    if len(texts) == 1 and texts[0] in ("auto", "single"):
        return texts[0]
    return [[name.strip() for name in text.split(",")] for text in texts]


def epsilon_of(epsilon: float | None, by_column: list[str] | None) -> Any:
    """One level, or one for each sensitive column."""
    if not by_column:
        if epsilon is None:
            raise ParameterError("Expected --epsilon with --blocks.")
        return epsilon
    from rldp.cli.estimate import pair

    levels: dict[str, float] = {}
    for text in by_column:
        name, value = pair(text, "--epsilon-of COL=ε")
        try:
            levels[name] = float(value)
        except ValueError:
            raise ParameterError(f"Expected --epsilon-of COL=ε, got {text!r}.") from None
    return levels if epsilon is None else {**levels, "all": epsilon}


def design(
    data: str,
    sensitive: list[str],
    useful: list[str] | None,
    epsilon: Any,
    output: Path | None,
    options: dict[str, Any],
    *,
    json: bool,
) -> None:
    """Design a questionnaire, and write it to a file."""
    from rldp.designing.questionnaire import design_questionnaire

    with step_bars() as bars:
        tell = None
        if bars is not None:
            steps = bars("designing blocks")

            def tell(done: int, planned: int, name: str) -> None:  # noqa: ARG001  # no room for it
                steps(done, planned)

        q = design_questionnaire(
            data, sensitive, useful, epsilon, begun=_tell_work, progress=tell, **options
        )
    if output is not None:
        q.save(output)
    if json:
        show.as_json(summary(q) | {"output": None if output is None else str(output)})
        return
    designed(q)
    show.written(output)


def _tell_work(found: Workload) -> None:
    processes = f"{found.processes} processes" if found.processes else "one process"
    print_line(
        f"{found.designs} designs in {processes}: at most about {found.seconds:,.0f} s and "
        f"{found.gigabytes:.0f} GB; blocks that are joined come on top"
    )


def summary(q: Questionnaire) -> dict[str, Any]:
    """A questionnaire for machines."""
    document = q.document()
    lines = ("epsilon", "levels", "given_u", "all", "columns", "alpha", "promise")
    return {
        "name": q.name,
        **{line: document[line] for line in lines if line in document},
        "fingerprint": q.fingerprint,
        "blocks": [
            {"name": name, "share": share, "protocol": p.name, "cells": p.table.counts.size}
            for name, share, p in zip(q.names, q.weights.tolist(), q.blocks, strict=True)
        ],
        "questions": [vars(row) for row in _questions(q)],
    }


def designed(q: Questionnaire) -> None:
    """Blocks with their shares, what they cost, and what is promised to whom."""
    show.note(
        f"{len(q.blocks)} blocks; each person reports one, drawn by its share, whatever the answers"
    )
    grid = Grid()
    for head in ("block", "share", "cells", "± 1 point: P(S,U)", "P(U)"):
        grid.add_column(head, justify="left" if head == "block" else "right")
    rows = {row.name: row for row in _questions(q)}
    for name, share, p in zip(q.names, q.weights.tolist(), q.blocks, strict=True):
        asked = [rows[c.name] for c in p.schema.useful if c.name in rows]
        tables, margins = (
            f"{max((getattr(row, field) for row in asked), default=0):,}" if asked else "–"
            for field in ("tables", "useful")
        )
        grid.add_row(name, f"{100 * share:.1f} %", f"{p.table.counts.size:,}", tables, margins)
    show_grid(grid)
    if "P(S)" in rows:
        show.note(f"P(S) to ± 1 percentage point: {rows['P(S)'].tables:,} reports in all")
    promises(q)


def promises(q: Any) -> None:
    """What holds for the report of a person, against whom."""
    document = q.document()
    for line, reader in _READERS.items():
        if line in document:
            show.paragraph(f"{_level(document[line])} against {reader}")
    for name, level in document.get("columns", {}).items():
        show.paragraph(f"{_level(level)} about {name} alone, against the first of these")
    if "alpha" in document:
        show.paragraph(
            f"The sets of some block miss the truth with probability {shortest(document['alpha'])} "
            f"at most; then the levels for anyone still hold."
        )
    show.paragraph(
        "A second report of the same person, also of another block, is not covered: draw once. "
        "Someone who knows some answers but not all is between the lines: rldp audit with --data."
    )


def _level(levels: Any) -> str:
    if isinstance(levels, list):
        finite = [x for row in levels for x in row if x != "inf"]
        return f"ε up to {shortest(max(finite))}, by pair of S values,"
    return f"ε = {shortest(levels)}" if levels != "inf" else "no promise"


def _questions(q: Questionnaire) -> list[Question]:
    from rldp.estimation.questionnaire import planned

    return planned(q)


def plan(q: Any, margin: float, level: float, *, json: bool) -> None:
    """How many reports each question needs."""
    from rldp.estimation.questionnaire import planned

    rows = planned(q, margin, level)
    needed = max((row.tables or row.useful for row in rows), default=0)
    if json:
        asked = {"margin": margin, "level": level, "needed": needed}
        show.as_json(asked | {"questions": [vars(row) for row in rows]})
        return
    grid = Grid()
    for head in ("question", "block", "share", "every P(S, U)", "every P(U)"):
        grid.add_column(head, justify="left" if head in ("question", "block") else "right")
    for row in rows:
        texts = (f"{n:,}" if n else "–" for n in (row.tables, row.useful))
        grid.add_row(row.name, row.block, f"{100 * row.share:.1f} %", *texts)
    show_grid(grid, f"reports of the questionnaire for ± {100 * margin:g} percentage points")
    show.paragraph(
        f"All tables to this margin: {needed:,} reports. A column costs the share of its block: "
        f"without it the others would have as many reports from so much fewer people."
    )


def proof(found: QuestionnaireProof, q: Questionnaire, *, with_intervals: bool) -> None:
    """What was proved of the whole, and of each block."""
    show.note(
        f"proved: {len(found.blocks)} blocks, {found.conditions:,} inequalities, least room "
        f"{found.slack:.2g}; the shares sum to 1 exactly and depend on no answer"
    )
    promises(q)
    if with_intervals:
        show.note("proved again in interval arithmetic, by independent code")


def proof_summary(found: QuestionnaireProof, file: Path, *, with_intervals: bool) -> dict[str, Any]:
    """The same for machines."""
    return {
        "file": str(file),
        "proved": True,
        "epsilon": float(found.epsilon),
        "readers": list(found.readers),
        "shares": [float(share) for share in found.shares],
        "conditions": found.conditions,
        "slack": found.slack,
        "blocks": [
            {"epsilon": float(one.epsilon), "conditions": one.conditions, "slack": one.slack}
            for one in found.blocks
        ],
        "intervals": with_intervals,
    }


def audit(q: Questionnaire, data: str | None, missing: str, waves: int, *, json: bool) -> bool:
    """Who learns what from a report; whether every block keeps its claims."""
    from rldp.auditing.questionnaire import audit_questionnaire

    found = audit_questionnaire(q, data, **({} if data is None else {"missing": missing}))
    is_kept = all(guarantee.holds for one in found.blocks.values() for guarantee in one.guarantees)
    if json:
        show.as_json(
            {
                "epsilon": found.epsilon,
                "epsilon_given_u": found.epsilon_given_u,
                "epsilon_all": found.epsilon_all,
                "epsilon_knows": {k: dict(v) for k, v in found.epsilon_knows.items()},
                "skipped": [list(pair) for pair in found.skipped],
                "waves": {"reports": waves, **found.waves(waves)},
                "holds": is_kept,
            }
        )
        return is_kept
    _show_audit(found, waves)
    return is_kept


def _show_audit(found: QuestionnaireAudit, waves: int) -> None:
    grid = Grid()
    for head in ("block", "knows nothing", "knows its answers", "anyone"):
        grid.add_column(head, justify="left" if head == "block" else "right")
    for name, one in found.blocks.items():
        levels = (one.epsilon, one.epsilon_given_u, one.epsilon_all)
        grid.add_row(name, *(brief_up(x) for x in levels))
    show_grid(grid, "ε of a report, by what its reader knows")
    if found.epsilon_knows:
        grid = Grid()
        for head in ("who knows the answer to", "learns most from", "ε"):
            grid.add_column(head, justify="right" if head == "ε" else "left")
        for column, known in found.epsilon_knows.items():
            block = max(known, key=known.__getitem__)
            grid.add_row(column, block, brief_up(known[block]))
        show_grid(grid, "readers of another answer, over F of the joint tables; not promised")
        if found.skipped:
            show.note(f"{len(found.skipped)} joint tables are too large to audit")
    else:
        show.paragraph(
            "Someone who knows the answer to another question is between the first and the last "
            "column: give the sample with --data to see where."
        )
    bounds = found.waves(waves)
    show.paragraph(
        f"{waves} fresh reports of one person: ε up to {brief_up(bounds['epsilon'])} for someone "
        f"who knows nothing, {brief_up(bounds['epsilon_given_u'])} for someone who knows all "
        f"answers, {brief_up(bounds['epsilon_all'])} for anyone."
    )


def estimate(e: QuestionnaireEstimate, name: str) -> None:
    """P(S), and every table with its intervals."""
    show.note(f"{e.n:,} reports of {name}; {100 * e.level:g} % intervals")
    figure_grid(("S", ""), [(s, "") for s in e.schemas[0].s_labels], e.s)
    for column, table in e.tables.items():
        u = table.schema.u_labels
        figure_grid(("S", column), [(s, x) for s in table.schema.s_labels for x in u], table.cells)
        figure_grid((column, ""), [(x, "") for x in u], table.u)
    if not e.is_protocol_checked:
        show.paragraph(
            "NOT CHECKED whether this questionnaire released these reports: they carry no "
            "fingerprint."
        )
    poor = {name: fit.p_value for name, fit in e.goodness_of_fit.items() if fit.p_value < _DOUBTFUL}
    for block, p_value in poor.items():
        show.paragraph(
            f"POOR FIT of block {block} (p = {p_value:.2g}): these reports can hardly come from "
            f"its protocol."
        )
    if not poor:
        show.note("The reports of every block fit its protocol.")


def estimate_summary(e: QuestionnaireEstimate, name: str) -> dict[str, Any]:
    """The same for machines."""
    from rldp.estimation.export import figure_records

    return {
        "questionnaire": name,
        "reports": e.n,
        "reports_by_block": e.reports,
        "protocol_checked": e.is_protocol_checked,
        "level": e.level,
        "simultaneous": e.simultaneous,
        "s": figure_records(list(e.schemas[0].s_labels), e.s),
        "tables": {
            column: {
                "cells": figure_records(
                    [f"{s} | {u}" for s in t.schema.s_labels for u in t.schema.u_labels], t.cells
                ),
                "u": figure_records(list(t.schema.u_labels), t.u),
            }
            for column, t in e.tables.items()
        },
        "goodness_of_fit": {name: fit.p_value for name, fit in e.goodness_of_fit.items()},
    }
