"""Matrices for other tools: a protocol as what sdcMicro's pram() and RRreg take, and audited.

A protocol's integers have up to 62 bits; a text of decimals has less. The matrix is rounded to
units of 10^-digits whose rows sum to exactly 1, pulled in as little as it takes to keep every level
that the file promises, and audited as it is written. What another tool then draws from it is that
tool's word.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import Any

import numpy as np

from rldp._types import Array, Integers
from rldp.channel import DenseChannel
from rldp.channel.base import check_size
from rldp.checks import checked_integer
from rldp.errors import ParameterError
from rldp.leakage.views import worst_levels
from rldp.uncertainty import Guarantee

FORMATS = ("csv", "pram", "rrreg")
_PULLS = (0.0, *(10.0**-e for e in range(12, 1, -1)))
_MOST_CELLS = 2**22


@dataclass(frozen=True, eq=False)
class ExportedMatrix:
    """A matrix as text, with what it promises as it is written.

    Attributes:
        text: a CSV file with names in the first row and column.
        matrix: what the text says: rows are records (pram, csv) or reports (rrreg).
        rows, columns: their names.
        promised: the largest level of each guarantee of the file.
        audited: the level that the written matrix has over the same set.
        remarks: what to know about it.
    """

    text: str
    matrix: Array
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    promised: tuple[float, ...]
    audited: tuple[float, ...]
    remarks: tuple[str, ...]


def export_matrix(p: Any, format: str = "csv", digits: int = 9) -> ExportedMatrix:  # noqa: A002  # as the option is called
    """A protocol as a matrix for another tool.

    Args:
        p: a protocol, whole or public. A public one names no sets; then the matrix is rounded, and
            nothing is audited.
        format: "csv": rows are records, columns reports. "pram": the same, square, with the labels
            of records on both sides, as sdcMicro's pram(pd=) takes it. "rrreg": square and
            transposed, entry [i, j] is the chance of report i for record j, as RRreg has it.
        digits: decimals of each entry.
    """
    if format not in FORMATS:
        raise ParameterError(
            f"Expected format among {', '.join(FORMATS)}, got {format!r}.", argument="format"
        )
    digits = checked_integer(digits, "digits", 2, 15)
    n_s, n_u = p.channel.shape
    check_size(n_s, n_u, p.channel.n_outputs)
    Q = np.asarray(p.channel.matrix)
    guarantees = list(getattr(p, "guarantees", ()))
    N, kept = _rounded(Q, 10**digits, guarantees)
    shown = np.asarray(N.any(axis=(0, 1)))
    labels = [label for label, is_shown in zip(p.report_labels.all, shown, strict=True) if is_shown]
    N = N[..., shown]
    rows, values = _rows(p, N)
    remarks = ["Rounded to units of 10^-" + str(digits) + "; rows sum to exactly 1."]
    if not guarantees:
        remarks.append("The public file names no sets, so the rounded matrix was not audited.")
    if (~shown).any():
        remarks.append(f"{int((~shown).sum())} reports that practically never occur are left out.")
    columns = tuple(labels)
    if format != "csv":
        if len(columns) != len(rows):
            raise ParameterError(
                f"Expected as many reports as records for {format}, which takes square matrices: "
                f"{p.name} has {len(columns)} reports and {len(rows)} records. grr and srr are "
                f"square; the format csv takes any.",
                argument="format",
            )
        if set(columns) == set(rows):
            order = [columns.index(label) for label in rows]
            values, columns = values[:, order], rows
        else:
            some = list(zip(rows, columns, strict=True))[:4]
            names = ", ".join(f"{a} stands for the report {b}" for a, b in some)
            remarks.append(f"Its reports have names of their own: {names}, and so on.")
            columns = rows
        remarks.append(
            "The other tool draws by its own generator, in R one with a seed, and not from the "
            "operating system: release with rldp or the R package of rldp where that matters."
        )
    table = values.T if format == "rrreg" else values
    heads = (columns, rows) if format == "rrreg" else (rows, columns)
    text = _csv(table, heads[0], heads[1], digits)
    return ExportedMatrix(
        text,
        table / 10.0**digits,
        heads[0],
        heads[1],
        tuple(g.epsilon for g in guarantees),
        kept,
        tuple(remarks),
    )


def _rounded(
    Q: Array, unit: int, guarantees: list[Guarantee]
) -> tuple[Integers, tuple[float, ...]]:
    """Integers over `unit`, mixed with the mean as little as it takes, and their levels."""
    found: tuple[Integers, tuple[float, ...]] | None = None
    mean = Q.mean(axis=(0, 1))
    for t in _PULLS:
        N = _units((1 - t) * Q + t * mean, unit)
        channel = DenseChannel(N / unit)
        levels = [_levels(channel, g) for g in guarantees]
        found = N, tuple(level for level, _ in levels)
        if all(is_kept for _, is_kept in levels):
            return found
    assert found is not None
    return found


def _levels(channel: DenseChannel, guarantee: Guarantee) -> tuple[float, bool]:
    worst = np.max([worst_levels(c, guarantee) for c in channel.comparison_blocks()], axis=0)
    promised = guarantee.levels
    told = np.isfinite(promised)
    return float(worst[told].max()), bool((worst <= promised)[told].all())


def _units(Q: Array, unit: int) -> Integers:
    """Rows that sum to the unit, by largest remainders."""
    scaled = Q * unit
    N = np.floor(scaled + 1e-6).astype(np.int64)
    order = np.argsort(N - scaled, axis=-1, kind="stable")
    rank = np.argsort(order, axis=-1, kind="stable")
    return np.asarray(N + (rank < (unit - N.sum(axis=-1))[..., None]))


def _rows(p: Any, N: Integers) -> tuple[tuple[str, ...], Integers]:
    """A row for each value of S where U does not count, else for each record."""
    s, u = p.schema.s_labels, p.schema.u_labels
    if (N[:, :1] == N).all():
        return tuple(s), N[:, 0]
    return tuple(f"{a} | {b}" for a in s for b in u), N.reshape(-1, N.shape[2])


def _csv(N: Integers, rows: tuple[str, ...], columns: tuple[str, ...], digits: int) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["", *columns])
    for name, row in zip(rows, N.tolist(), strict=True):
        writer.writerow([name, *(_decimal(x, digits) for x in row)])
    return out.getvalue()


def _decimal(x: int, digits: int) -> str:
    whole, rest = divmod(x, 10**digits)
    return f"{whole}.{rest:0{digits}d}"
