"""Files to tables: CSV and Parquet, streamed in batches of constant size."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from rldp.counting import Levels, Missing, Names, Tally, chosen_columns
from rldp.errors import FileError
from rldp.sources import CsvSource, ParquetSource, csv_label, file_kind, file_size
from rldp.table import Table

Progress = Callable[[int, int], object]


def read_table(
    path: str | os.PathLike[str] | Any,  # Any: a frame of a library that need not be here
    sensitive: Names,
    useful: Names | None = None,
    *,
    missing: Missing = "error",
    levels: Levels | None = None,
    progress: Progress | None = None,
) -> Table:
    """Count the records of a file of any size, reading only the columns that are needed.

    The result equals ``Table.from_frame`` of the whole file. In CSV every value is text without
    the blanks around it; empty, NA, N/A, NaN, nan, NULL, null, None and #N/A are missing values.

    Args:
        path: a .csv or .tsv file with a header in UTF-8, also with .gz, or a .parquet file; the
            delimiter of a .csv file is found from its header among comma, semicolon, tab and bar.
            Or a frame, which is counted as by ``Table.from_frame``: a polars LazyFrame, a DuckDB
            relation and a Spark DataFrame count in their own engine.
        sensitive: name or names of the sensitive columns.
        useful: name or names of the useful columns; None means all others.
        missing: "error" refuses missing values, "keep" makes "(missing)" a label of its own,
            "drop" leaves these records out and says in ``dropped`` how many.
        levels: column name → its labels in order, for columns whose alphabet is fixed.
        progress: called after each batch with the bytes read so far and the bytes of the file.
    """
    if not isinstance(path, str | os.PathLike):
        return Table.from_frame(path, sensitive, useful, missing=missing, levels=levels)
    path = Path(path)
    kind = file_kind(path)
    size = file_size(path)
    with ExitStack() as stack:
        is_parquet = kind == "parquet"
        source = ParquetSource(path, stack) if is_parquet else CsvSource(path, stack)
        s_names, u_names = chosen_columns(source.names, sensitive, useful)
        names = s_names + u_names
        for name in names:
            if source.names.count(name) > 1:
                raise FileError(
                    f"{path}: expected column {name!r} once in the header, it is there "
                    f"{source.names.count(name)} times; rename one."
                )
        tally = Tally(s_names, u_names, missing=missing, levels=levels)
        for batch in source.batches(names):
            if isinstance(source, CsvSource):
                try:
                    tally.add(batch, csv_label)
                except UnicodeDecodeError as error:
                    raise source.not_utf8(batch, error) from None
            else:
                tally.add(batch)
            if progress is not None:
                progress(int(size * (source.share() or 0)), size)
    if tally.records == 0:
        raise FileError(f"{path}: expected records, the file has a header only.")
    schema = tally.schema()
    return Table.from_schema(tally.counts(schema), schema, dropped=tally.dropped)
