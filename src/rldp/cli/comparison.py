"""The table that `rldp compare` shows: what every protocol keeps, tells, and promises to whom."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box

from rldp.cli.printing import Grid, heading, note, paragraph, show_grid
from rldp.decimals import shortest
from rldp.presentation.texts import columns_title, set_in_words

if TYPE_CHECKING:
    from rldp.uncertainty import UncertaintySet

_CELLS = "cells"  # the usual goal
_BEST = "best"
_ESTIMATED = {
    _CELLS: "the cells",
    "s": "the shares of S",
    "u": "the shares of U",
    "u_given_s": "the shares of U within each S value",
}
_HEADS = ("±", "reports for ± 1", "estimated", "bits", "of H(X)", "ε, U known", "ε, always")
# where U has several columns: one level more, and no bits, which would make it too wide
_HEADS_WITH_PARTS = (*_HEADS[:3], *_HEADS[4:6], "ε, part", _HEADS[6])


def comparison(records: Sequence[Mapping[str, Any]], F: UncertaintySet, goal: str = _CELLS) -> None:
    """A grid for each ε, one row for each protocol, the best marked."""
    heading(columns_title(F.table))
    for i, epsilon in enumerate(dict.fromkeys(record["epsilon"] for record in records)):
        if i:
            note("")
        show_grid(_grid([r for r in records if r["epsilon"] == epsilon], epsilon))
    bits = F.table.entropy / math.log(2)
    what = _ESTIMATED.get(goal, _ESTIMATED[_CELLS])
    has_best = any(record["protocol"] == _BEST for record in records)
    of = f" of those that promise as much as {_BEST}" if has_best else ""
    private = set_in_words(F).partition(";")[0]
    sampling = f" {F.assumption[:1].upper()}{F.assumption[1:]}." if F.assumption else ""
    part = "ε over F against those who know some of its columns but not all, " * _has_parts(records)
    paragraph(
        f"± the root mean squared error, in percentage points, of estimates of {what} from "
        f"{F.table.n:,} reports, ★ the smallest{of}; how many reports estimate all of them to ± 1 "
        f"percentage point (95 % intervals), and what share of them can be estimated; the "
        f"information that is kept of H(X) = {bits:.3f} bits. All are {private} against someone "
        f"who knows nothing else about the person. What else each promises: ε against "
        f"someone who knows U, {part}and ε whatever is true.{sampling}"
    )


def _grid(records: Sequence[Mapping[str, Any]], epsilon: float) -> Grid:
    grid = Grid(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    grid.add_column(f"ε = {shortest(epsilon)}", no_wrap=True)
    heads = _HEADS_WITH_PARTS if _has_parts(records) else _HEADS
    for head in heads:
        grid.add_column(head, justify="right", no_wrap=len(head) < 9)
    rivals = [r for r in records if r["error"] >= 0 and _promises_as_much(r, records)]
    best = min((r["error"] for r in rivals), default=math.inf)
    for record in records:
        is_best = record in rivals and record["error"] <= best < math.inf
        cells = {
            "±": _error(record["error"], is_best=is_best),
            "reports for ± 1": _reports(record["reports"]),
            "estimated": _share(record["estimable"]),
            "bits": f"{record['utility'] / math.log(2):.3f}",
            "of H(X)": f"{100 * record['normalised']:.1f} %",
            "ε, U known": _level(record["epsilon_given_u"]),
            "ε, part": _level(record["epsilon_given_part"]),
            "ε, always": _level(record["epsilon_all"]),
        }
        grid.add_row(record["protocol"], *map(cells.get, heads), style="bold" if is_best else None)
    return grid


def _has_parts(records: Sequence[Mapping[str, Any]]) -> bool:
    """Whether someone can know part of U."""
    return not all(math.isnan(record["epsilon_given_part"]) for record in records)


def _promises_as_much(record: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a protocol keeps the further levels that `best` keeps, if that is compared."""
    return not any(
        record[level] > other[level] * (1 + 1e-9)  # never where both are NaN
        for other in records
        if other["protocol"] == _BEST
        for level in ("epsilon_given_u", "epsilon_all", "epsilon_given_part")
    )


def _error(error: float, *, is_best: bool) -> str:
    if math.isnan(error):
        return ""
    return "none" if math.isinf(error) else f"{'★ ' * is_best}{100 * error:.2f}"


def _reports(needed: float) -> str:
    if math.isnan(needed):
        return ""
    return "never" if math.isinf(needed) else _brief(needed)


def _brief(count: float) -> str:
    """A number of reports, large ones to three digits."""
    return f"{count:,.0f}" if count < 1e6 else f"{count:.2e}".replace("e+0", "e").replace("+", "")


def _share(estimable: float) -> str:
    return "" if math.isnan(estimable) else f"{100 * estimable:.0f} %"


def _level(epsilon: float) -> str:
    if math.isnan(epsilon):
        return ""
    return "none" if math.isinf(epsilon) else f"{epsilon:.3g}"
