"""Estimates as tidy tables for frames and files, and as integers with rounded margins."""

from __future__ import annotations

import os
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from scipy.optimize import Bounds, LinearConstraint, milp

from rldp._types import Array, Integers
from rldp.checks import checked_path
from rldp.errors import DataError, MissingExtraError, ParameterError
from rldp.estimation.interval_estimates import IntervalEstimates
from rldp.io.atomic_files import whole_file
from rldp.release.writers import write_rows
from rldp.tables.schema import Schema
from rldp.tables.sources import file_format, is_compressed
from rldp.utility.contrasts import sums_over_s, sums_over_u

_TOTAL = "(all)"
_SDMX = {
    "estimate": "OBS_VALUE",
    "std_error": "STD_ERROR",
    "low": "CONF_LOW",
    "high": "CONF_HIGH",
}


class Exported(Protocol):
    """What is exported of an estimate."""

    @property
    def schema(self) -> Schema:
        """The alphabets of S and U."""

    @property
    def level(self) -> float:
        """Of confidence."""

    @property
    def cells(self) -> IntervalEstimates:
        """Estimates of all cells, shape (n_s, n_u)."""

    @property
    def s(self) -> IntervalEstimates:
        """Estimates of P(S=s)."""

    @property
    def u(self) -> IntervalEstimates:
        """Estimates of P(U=u)."""


def tidy(e: Exported, kind: str = "pyarrow", *, sdmx: bool = False) -> Any:
    """One row for each cell, then for each value of S and of U.

    Columns: those of the schema with their labels, "(all)" if a marginal sums over them; then
    estimate, std_error, low, high, estimate_in_interval, identified. With `sdmx` the dimensions are
    in capitals, totals are "_T", and measures are OBS_VALUE, STD_ERROR, CONF_LOW, CONF_HIGH with
    OBS_STATUS "E" for an estimate and "M" where there is none. Values of `estimate` add up, those
    of `estimate_in_interval` need not.

    Args:
        e: the estimate.
        kind: "pyarrow", "pandas" or "polars".
        sdmx: whether to name columns as SDMX does.
    """
    return framed(arrow_table(e, sdmx=sdmx), kind)


def framed(rows: Any, kind: str) -> Any:
    """An Arrow table as a frame of another library: "pyarrow", "pandas" or "polars"."""
    match kind:
        case "pyarrow":
            return rows
        case "pandas":
            try:
                return rows.to_pandas()
            except ImportError:
                raise MissingExtraError("This needs pandas: pip install 'rldp[pandas]'.") from None
        case "polars":
            try:
                import polars as pl
            except ImportError:
                raise MissingExtraError("This needs polars: pip install 'rldp[polars]'.") from None
            return pl.from_arrow(rows)
        case _:
            raise ParameterError(
                f"Expected kind pyarrow, pandas or polars, got {kind!r}.", argument="kind"
            )


def arrow_table(e: Exported, *, sdmx: bool) -> Any:
    """The same as an Arrow table."""
    schema, total = e.schema, "_T" if sdmx else _TOTAL
    s = [schema.s_levels(code) for code in range(schema.n_s)]
    u = [schema.u_levels(code) for code in range(schema.n_u)]
    no_s, no_u = (total,) * len(schema.sensitive), (total,) * len(schema.useful)
    labels = [a + b for a in s for b in u]
    figures = [e.cells]
    if schema.useful:
        labels += [a + no_u for a in s] + [no_s + b for b in u]
        figures += [e.s, e.u]
    names = [column.name for column in schema.sensitive + schema.useful]
    columns: dict[str, Any] = {
        _dimension(name) if sdmx else name: [row[place] for row in labels]
        for place, name in enumerate(names)
    }
    titles = _SDMX if sdmx else {field: field for field in (*_SDMX, "estimate_in_interval")}
    for field, title in titles.items():
        values = np.concatenate([np.ravel(getattr(part, field)) for part in figures])
        columns[title] = pa.array(values, mask=np.isnan(values))
    known = np.concatenate([np.ravel(part.identified) for part in figures])
    if sdmx:
        columns["OBS_STATUS"] = np.where(known, "E", "M").tolist()
        columns["CONF_LEVEL"] = np.full(len(known), e.level)
    else:
        columns["identified"] = known
    return pa.table(columns)


def save(e: Exported, path: str | os.PathLike[str], *, sdmx: bool = False) -> None:
    """Write the tidy table as CSV, TSV, Parquet or Arrow, by the name of the file."""
    save_rows(arrow_table(e, sdmx=sdmx), path)


def save_rows(rows: Any, path: str | os.PathLike[str]) -> None:
    """Write an Arrow table as the name of the file says."""
    target = checked_path(path)
    form = file_format(target)
    with whole_file(target) as file:
        write_rows(rows, form, file, compressed=is_compressed(target))


def figure_records(names: list[str], figures: IntervalEstimates) -> list[dict[str, Any]]:
    """Estimates as plain values, None where there is no number."""
    fields = (*_SDMX, "estimate_in_interval", "identified")
    rows = zip(
        names, *(np.ravel(getattr(figures, field)).tolist() for field in fields), strict=True
    )
    keys = ("name", *fields)
    return [
        {key: None if value != value else value for key, value in zip(keys, row, strict=True)}
        for row in rows
    ]


def _dimension(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in name.upper())


def nearest_distribution(p: Array) -> Array:
    """The distribution with the least Euclidean distance to a vector.

    >>> nearest_distribution(np.array([0.7, 0.5, -0.2]))
    array([0.6, 0.4, 0. ])
    """
    ordered = np.sort(p)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, len(p) + 1)
    last = int(np.flatnonzero(ordered > excess)[-1])
    return np.asarray(np.maximum(p - excess[last], 0.0))


def controlled_rounding(table: Array) -> Integers:
    """A table of integers in which cells, row sums, column sums and the total are rounded.

    Each becomes one of the two integers around it. Such a table always exists, because it is a flow
    in a network. This one has the least total distance.

    >>> controlled_rounding(np.array([[1.5, 1.5], [1.5, 1.5]])).sum(axis=0)
    array([3, 3])
    """
    n_s, n_u = table.shape
    exact = np.round(table, 9)
    floor = np.floor(exact)
    rest = (exact - floor).ravel()
    sums = np.concatenate([sums_over_u(n_s, n_u), sums_over_s(n_s, n_u), np.ones((1, n_s * n_u))])
    wanted = np.round(sums @ exact.ravel(), 6)
    wanted[-1] = round(float(table.sum()))
    done = sums @ floor.ravel()
    result = milp(
        1 - 2 * rest,
        integrality=np.ones(len(rest), dtype=np.int64),
        bounds=Bounds(np.zeros(len(rest)), np.ceil(rest)),
        constraints=LinearConstraint(sums, np.floor(wanted) - done, np.ceil(wanted) - done),
    )
    if result.x is None:
        raise DataError(f"Expected a table that can be rounded, got {table!r}.")
    return np.asarray(floor + np.rint(result.x).reshape(table.shape), dtype=np.int64)
