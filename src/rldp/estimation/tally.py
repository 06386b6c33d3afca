"""Tally sheets: how often each report was ticked, in a CSV file with the columns y and count."""

from __future__ import annotations

import csv
import os
from typing import Any

import numpy as np

from rldp._types import Integers
from rldp.checks import checked_path
from rldp.errors import DataError, FileError

_REPORT, _COUNT = "y", "count"


def read_tally(p: Any, path: str | os.PathLike[str]) -> Integers:
    """The counts of a filled-in tally sheet, for `p.estimate(counts=...)`.

    Args:
        p: the protocol of the sheet.
        path: a CSV file as `rldp sheet --tally` writes it, with the counts filled in; separated by
            commas, semicolons or tabs. Reports that are not listed were never ticked.
    """
    labels = {label: y for y, label in enumerate(p.report_labels.all)}
    counts = np.zeros(p.channel.n_outputs, dtype=np.int64)
    for line, row in _rows(checked_path(path)):
        label, text = ((row[name] or "").strip() for name in (_REPORT, _COUNT))
        if label not in labels:
            raise DataError(
                f"{path}, line {line}: expected a report of {p.name}, got {label!r}.",
                column=_REPORT,
            )
        if not text.isascii() or not text.isdigit():
            raise DataError(
                f"{path}, line {line}: expected a count, 0 if {label!r} was never ticked, "
                f"got {text!r}.",
                column=_COUNT,
            )
        counts[labels.pop(label)] = int(text)
    return counts


def _rows(path: Any) -> list[tuple[int, dict[str, Any]]]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise FileError(f"{path}: expected UTF-8 text; save the file as UTF-8.") from None
    except OSError as error:
        raise FileError(f"{path}: expected a file that can be read: {error.strerror}.") from None
    head = lines[0] if lines else ""
    delimiter = next((mark for mark in "\t;" if mark in head), ",")
    reader = csv.DictReader(lines, delimiter=delimiter)
    if not {_REPORT, _COUNT} <= set(reader.fieldnames or ()):
        raise FileError(f"{path}: expected a tally sheet with the columns y and count.")
    return [(reader.line_num, row) for row in reader if any(row.values())]
