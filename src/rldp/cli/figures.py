"""Estimates and plans for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rldp.cli.printing import Grid, note, paragraph, show_grid
from rldp.presentation.texts import schema_title

if TYPE_CHECKING:
    from rldp.estimation.interval_estimates import IntervalEstimates
    from rldp.estimation.regression.result import Regression
    from rldp.estimation.result import Estimate
    from rldp.estimation.sample_size import Plan

_MOST_ROWS = 60  # that are listed
_DOUBTFUL = 0.01  # p-value below which a fit is called poor


def estimate(e: Estimate, name: str, forged: int) -> None:
    """Cells and marginals with their intervals, and what to know about them."""
    from rldp.presentation.estimate_texts import forgery_in_words  # it needs NumPy, help does not

    schema = e.schema
    note(schema_title(schema))
    weighted = e.counts.effective_n < 0.999 * e.n
    worth = f", worth {e.counts.effective_n:,.0f} with equal weights" if weighted else ""
    note(
        f"{e.n:,} reports of {name}{worth}; {e.method}, {100 * e.level:g} % intervals"
        f"{' that all hold at the same time' if e.simultaneous else ''}"
    )
    shift = e.influence(forged).ravel().tolist() if forged else None
    labels = [(s, u) for s in schema.s_labels for u in schema.u_labels]
    heads = ("S", "U") if schema.useful else ("S", "")
    figure_grid(heads, labels, e.cells, shift, forged)
    if schema.useful:
        figure_grid(("S", ""), [(s, "") for s in schema.s_labels], e.s)
        figure_grid(("U", ""), [(u, "") for u in schema.u_labels], e.u)
    _remarks(e)
    if e.method == "inversion":
        paragraph(forgery_in_words(e, forged))


def _remarks(e: Estimate) -> None:
    for remark in e.remarks:
        paragraph(f"{remark} --json and --csv have both.")
    hidden = int((~e.identified).sum())
    if hidden:
        paragraph(
            f"{hidden} of {e.identified.size} cells are not identified: different tables give the "
            f"same law of reports. Their intervals are bounds on what the reports leave possible, "
            f"and more reports will not close them."
        )
    if not e.is_protocol_checked:
        paragraph(
            "NOT CHECKED whether this protocol released these reports: they carry no fingerprint. "
            "Reports of another protocol can fit and still give wrong estimates."
        )
    fit = e.goodness_of_fit
    if fit.p_value < _DOUBTFUL:
        paragraph(
            f"POOR FIT (p = {fit.p_value:.2g}): these reports can hardly come from this protocol. "
            f"They may be forged, of another protocol, or not one per person."
        )
    else:
        note(f"The reports fit the protocol (p = {fit.p_value:.2g}).")


def figure_grid(
    heads: tuple[str, str],
    labels: Sequence[tuple[str, str]],
    figures: IntervalEstimates,
    shift: Sequence[float] | None = None,
    forged: int = 0,
) -> None:
    """A table of estimates with their intervals."""
    grid = Grid()
    for head in heads:
        if head:
            grid.add_column(head)
    for head in ("estimate", "std. error", "low", "high"):
        grid.add_column(head, justify="right", no_wrap=True)
    if shift is not None:
        grid.add_column(f"{forged} forged", justify="right", no_wrap=True)
    columns = (figures.estimate_in_interval, figures.std_error, figures.low, figures.high)
    numbers = list(zip(*(column.ravel().tolist() for column in columns), strict=True))
    for row, (label, values) in enumerate(zip(labels, numbers, strict=True)):
        if row == _MOST_ROWS:
            break
        texts = [text for head, text in zip(heads, label, strict=True) if head]
        moved = [] if shift is None else [f"± {_percent(shift[row])}"]
        grid.add_row(*texts, *(_percent(value) for value in values), *moved)
    show_grid(grid)
    if len(labels) > _MOST_ROWS:
        note(f"… and {len(labels) - _MOST_ROWS} more; --csv writes all of them")


def _percent(value: float) -> str:
    return "–" if value != value else f"{100 * value:.2f} %"


def regression(found: Regression) -> None:
    """Coefficients with their intervals, one table for each value."""
    for line in found.about:
        note(line)
    records = found.records()
    for value in found.values:
        grid = Grid()
        grid.add_column("", overflow="fold")
        for head in ("coef.", "s.e.", "p", "low", "high", "odds"):
            grid.add_column(head, justify="right", no_wrap=True)
        for record in (record for record in records if record["value"] == value):
            numbers = [f"{record[name]:.3f}" for name in ("coefficient", "std_error")]
            numbers.append(f"{record['p_value']:.2g}")
            numbers += [f"{record[name]:.3f}" for name in ("low", "high")]
            grid.add_row(record["term"], *numbers, f"{record['odds_ratio']:.4g}")
        show_grid(grid, found.compared(value))
    for remark in found.remarks:
        paragraph(remark)


def plan(found: Plan) -> None:
    """How many reports each quantity needs, and what they will tell."""
    note(
        f"{found.needed:,} reports for ± {_percent(found.margin)} at {100 * found.level:g} %, "
        f"if the design sample is right"
    )
    grid = Grid()
    grid.add_column("what")
    for head in ("expected", "reports", f"std. error at {found.needed:,}"):
        grid.add_column(head, justify="right", no_wrap=True)
    errors = found.std_error(found.needed)
    rows = zip(found.names, found.expected, found.reports, errors, strict=True)
    for row, (name, expected, reports, error) in enumerate(rows):
        if row == _MOST_ROWS:
            break
        grid.add_row(name, _percent(expected), f"{reports:,}", _percent(error))
    show_grid(grid)
