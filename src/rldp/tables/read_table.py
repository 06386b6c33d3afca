"""Files to tables: CSV, Parquet and Arrow, streamed in batches of constant size."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from rldp._types import StepProgress
from rldp.checks import checked_path, discreet
from rldp.errors import FileError, ReadingWarning
from rldp.tables.csv import MISSING_TEXTS
from rldp.tables.frame_columns import Names, chosen_columns, frame_label, unknown_column
from rldp.tables.limits import MOST_CELLS, MOST_LABELS
from rldp.tables.record_files import (
    file_size,
    is_remote,
    open_records,
    parquet_files,
    remote_records,
)
from rldp.tables.sources import Source
from rldp.tables.table import Table
from rldp.tables.tally import Label, Levels, Missing, Tally, tally_frame


class Counting(Protocol):
    """What counts records batch by batch: a tally, or several."""

    @property
    def names(self) -> tuple[str, ...]:
        """Its columns."""

    @property
    def records(self) -> int:
        """Records so far."""

    def add_batch(self, batch: Any, label: Label, declared: Collection[str] | None) -> None:
        """Count the records of an Arrow batch."""

    def settle(self) -> None:
        """Take over what the batches have counted."""

    def point_decimals(self) -> tuple[str, ...]:
        """Change decimal commas to points; returns the columns that had them."""


_Counted = TypeVar("_Counted", bound=Counting)


def read_table(
    path: str | os.PathLike[str] | Any,  # Any: a frame of a library that may not be installed
    sensitive: Names,
    useful: Names | None = None,
    *,
    missing: Missing = "error",
    levels: Levels | None = None,
    levels_limit: int | None = None,
    cells_limit: int = MOST_CELLS,
    encoding: str | None = None,
    progress: StepProgress | None = None,
) -> Table:
    """Count the records of a file of any size, reading only the columns that are needed.

    The result equals ``Table.from_frame`` of the whole file. In CSV every value is text without
    the blanks around it; empty, NA, N/A, NaN, nan, NULL, null, None and #N/A are missing values.

    Args:
        path: a .csv or .tsv file with a header, also with .gz, a .parquet or an .arrow file; the
            delimiter of a .csv file is recognised from its header: comma, semicolon, tab or bar.
            If it is not a comma, columns of numbers may have decimal commas: 1,5 is 1.5.
            A folder of Parquet files is one table; so is the address of Parquet or Arrow files in
            an object store, such as s3://bucket/folder, which pyarrow.dataset reads.
            Or a frame, which is counted as by ``Table.from_frame``: a polars LazyFrame, a DuckDB
            relation and a Spark DataFrame count in their own engine.
        sensitive: name or names of the sensitive columns.
        useful: name or names of the useful columns; None means all others, none of which may be
            an identifier: a column that has another value in most records must be named.
        missing: "error" refuses missing values, "keep" makes "(missing)" a label of its own,
            "drop" leaves these records out and says in ``dropped`` how many.
        levels: column name → its labels in order, for columns whose alphabet is fixed.
        levels_limit: the most different values in a column, instead of 500 numbers or 10,000 texts.
        cells_limit: the most cells of the table; reading stops with an error as soon as there are
            more, and the error names columns that would fit.
        encoding: of a text file, such as "cp1252". None recognises it: UTF-8, UTF-16 if the file
            begins with its byte order mark, or cp1252 if it is not UTF-8. A `ReadingWarning` tells
            of UTF-16 and cp1252.
        progress: called after each batch with the bytes read so far and the bytes of the file.
    """
    options: dict[str, Any] = {
        "missing": missing,
        "levels": levels,
        "levels_limit": levels_limit,
        "cells_limit": cells_limit,
    }
    if not isinstance(path, str | os.PathLike):
        return _table(tally_frame(path, sensitive, useful, **options))
    if is_remote(path):
        return _table(tally_frame(remote_records(path), sensitive, useful, **options))

    def tally(available: Sequence[str]) -> Tally:
        s_names, u_names = chosen_columns(available, sensitive, useful)
        return Tally(s_names, u_names, unnamed=u_names if useful is None else (), **options)

    return _table(tally_files(checked_path(path), tally, encoding, progress))


@discreet
def tally_files(
    path: Path,
    started: Callable[[Sequence[str]], _Counted],
    encoding: str | None,
    progress: StepProgress | None,
) -> _Counted:
    """Count all records of a file or folder, in what is started for the columns of the first."""
    paths = parquet_files(path) if path.is_dir() else [path]
    sizes = [file_size(each) for each in paths]
    tally: _Counted | None = None
    for place, each in enumerate(paths):
        with ExitStack() as stack:
            source = open_records(each, stack, encoding=encoding)
            tally = tally or started(source.names)
            _check_unique(each, source.names, tally.names)
            for _ in _counted(source, tally, tally.names):
                if progress is not None:
                    done = sum(sizes[:place]) + int(sizes[place] * (source.share() or 0))
                    progress(done, sum(sizes))
    if tally is None or tally.records == 0:
        raise FileError(f"{path}: expected records, the file has a header only.")
    return tally


@discreet
def column_sizes(
    path: str | os.PathLike[str], *, encoding: str | None = None
) -> dict[str, int | None]:
    """How many different values each column of a file has; None where there are too many to list.

    Every column is forgotten as soon as it has more values than a label column can have.
    """
    if is_remote(path):
        return dict.fromkeys(remote_records(path).schema.names)
    path = checked_path(path)
    found: dict[str, set[str] | None] = {}
    for each in parquet_files(path) if path.is_dir() else [path]:
        file_size(each)
        with ExitStack() as stack, warnings.catch_warnings():
            warnings.simplefilter("ignore", ReadingWarning)  # the reading itself will tell
            source = open_records(each, stack, encoding=encoding)
            label = _csv_label if source.is_text else frame_label
            _check_unique(each, source.names, source.names)
            for name in source.names:
                is_nested = pa.types.is_nested(source.schema.field(name).type)
                found.setdefault(name, None if is_nested else set())
            names = [name for name in source.names if found[name] is not None]
            for batch in source.batches(names, dictionaries=names) if names else ():
                for name, values in zip(names, batch.columns, strict=True):
                    labels = found[name]
                    if labels is not None:
                        labels |= _labels(values, label)
                        found[name] = labels if len(labels) <= MOST_LABELS else None
    return {name: None if labels is None else len(labels) for name, labels in found.items()}


def _labels(values: Any, label: Label) -> set[str]:
    """The different labels of an array; of a dictionary those that occur."""
    entries = values.unique()
    if pa.types.is_dictionary(entries.type):
        entries = entries.dictionary.take(entries.indices)
    return {text for value in entries.to_pylist() if (text := label(value)) is not None}


def _counted(source: Source, tally: Counting, names: Sequence[str]) -> Iterator[None]:
    """Count a source batch by batch."""
    for name in names:
        if name not in source.names:
            raise unknown_column(name, source.names).within(source.place(0))
    label = _csv_label if source.is_text else frame_label
    schema = source.schema
    kinds = {name: schema.field(name).type for name in names}
    declared = {name for name in names if pa.types.is_dictionary(kinds[name])}
    for batch in source.batches(names, dictionaries=names):
        tally.add_batch(batch, label, declared)
        yield
    tally.settle()
    for name in tally.point_decimals() if source.has_decimal_commas else ():
        source.tell(f"decimal commas of column {name!r} were read as points")
    source.warn()


def _check_unique(path: Path, available: Sequence[str], names: Sequence[str]) -> None:
    times = Counter(available)
    for name in names:
        if times[name] > 1:
            raise FileError(
                f"{path}: expected column {name!r} once in the header, it is there "
                f"{times[name]} times; rename one.",
                column=name,
            )


def _csv_label(value: bytes) -> str | None:
    """The text of a value without the blanks around it, None for a missing value."""
    text = value.decode("utf-8").strip()
    return None if text in MISSING_TEXTS else text


def _table(tally: Tally) -> Table:
    schema = tally.schema()
    return Table.from_schema(tally.counts(schema), schema, dropped=tally.dropped)
