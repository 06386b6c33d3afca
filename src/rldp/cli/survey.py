"""Survey weights and strata as they are expected, from files: options of plan and design."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rldp.errors import DataError, FileError, ParameterError

if TYPE_CHECKING:
    from rldp._types import Array
    from rldp.estimation.sample_size import Stratum

Weights = Annotated[
    str | None,
    typer.Option(
        metavar="FILE:COL",
        help="Survey weights as they are expected, such as those of an earlier wave: a column of a "
        "CSV or Parquet file.",
    ),
]
Strata = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Strata as they are expected: a CSV file with the columns stratum, share (of the "
        "population) and, if reports are not in proportion, reports (share of all reports).",
    ),
]


def weights(text: str | None) -> Array | None:
    """The numbers in a column of a file, given as FILE:COL."""
    if text is None:
        return None
    name, colon, column = text.rpartition(":")
    if not colon or not name or not column:
        raise ParameterError(
            f"Expected --weights FILE:COL, such as survey.csv:weight, got {text!r}."
        )
    from rldp.estimation.read_reports import weights_in

    return weights_in(Path(name), column)


def strata(path: Path | None) -> dict[str, Stratum] | None:
    """Strata in a file."""
    if path is None:
        return None
    from rldp.estimation.sample_size import Stratum

    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        raise FileError(f"{path}: expected a CSV file in UTF-8 that can be read.") from None
    delimiter = next((mark for mark in "\t;" if lines and mark in lines[0]), ",")
    reader = csv.DictReader(lines, delimiter=delimiter)
    if not {"stratum", "share"} <= set(reader.fieldnames or ()):
        raise FileError(
            f"{path}: expected the columns stratum and share, and reports if it is told."
        )
    found: dict[str, Stratum] = {}
    for row in reader:
        place, label = f"{path}, line {reader.line_num}", (row["stratum"] or "").strip()
        if not label or label in found:
            raise DataError(f"{place}: expected a new stratum, got {label!r}.", column="stratum")
        share, reports = (_number(row.get(name), name, place) for name in ("share", "reports"))
        if share is None:
            raise DataError(f"{place}: expected a share.", column="share")
        found[label] = Stratum(share, reports=reports)
    return found


def _number(text: str | None, name: str, place: str) -> float | None:
    text = (text or "").strip()
    if not text:
        return None
    try:
        return float(text.replace(",", ".", 1))
    except ValueError:
        raise DataError(f"{place}: expected a number, got {text!r}.", column=name) from None


def effective_reports(reports: int, w: Array | None, parts: dict[str, Stratum] | None) -> int:
    """Reports with equal weights from one sample that have the same information.

    Variances grow by m Σw²/(Σw)² with weights, and with strata by Σ share²/reports, if the same
    distribution is true in all of them.
    """
    factor = 1.0
    if w is not None:
        factor *= float(len(w) * (w**2).sum() / w.sum() ** 2)
    if parts is not None:
        factor *= sum(
            part.share**2 / (part.share if part.reports is None else part.reports)
            for part in parts.values()
        )
    return max(1, int(reports / factor))
