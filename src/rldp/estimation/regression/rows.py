"""Reports with the columns beside them: frames, dicts, files, or arrays side by side."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rldp._types import Integers, RecordProgress
from rldp.checks import as_array, checked_path, checked_tuple
from rldp.errors import DataError, ParameterError
from rldp.estimation.report_origin import ReportOrigin, arrow_note, frame_note
from rldp.release.frames import is_frame
from rldp.release.keeping import FINGERPRINT_COLUMN
from rldp.release.report_labels import ReportLabels
from rldp.tables.frame_columns import column_names, narwhal, unknown_column
from rldp.tables.record_files import open_records

_DECIMAL_COMMA = r"^([+-]?\d*),(\d+)$"


@dataclass(frozen=True, eq=False)
class Rows:
    """Reports as codes, and Arrow columns of the same length.

    Args:
        codes: of the reports, shape (n,) or (n, blocks).
        columns: the columns beside them.
        is_text: whether the columns come from a text file, so that numbers are texts.
    """

    codes: Integers
    columns: dict[str, Any]
    is_text: bool = False


@dataclass(frozen=True)
class RowReader:
    """Reads the column of the reports and others beside it.

    Args:
        labels: of the reports.
        origin: checks the fingerprint of the reports.
        column: name of the column with the reports.
        encoding: of a text file; None recognises it.
        progress: called after each batch of a file.
    """

    labels: ReportLabels
    origin: ReportOrigin
    column: str = "y"
    encoding: str | None = None
    progress: RecordProgress | None = None

    def read(self, reports: Any, names: Sequence[str]) -> Rows:
        """Reports in a file, frame or dicts, with these columns."""
        if isinstance(reports, str | os.PathLike):
            return self._file(checked_path(reports), names)
        if is_frame(reports):
            return self._frame(reports, names)
        if isinstance(reports, Sequence) and reports and isinstance(reports[0], Mapping):
            available = list(reports[0])
            wanted = self._wanted(names, available)
            for row, record in enumerate(reports):
                for name in wanted:
                    if name not in record:
                        raise unknown_column(name, available).within(f"In row {row}")
            return self._frame(
                pa.table({name: [record[name] for record in reports] for name in wanted}), names
            )
        raise ParameterError(
            f"Expected reports in a frame, in dicts or in a file beside the columns "
            f"{', '.join(map(repr, names))}, got {type(reports).__name__}; or pass the covariates "
            f"as a frame or as {{name: values}}.",
            argument="reports",
        )

    def beside(self, reports: Any, columns: Any) -> Rows:
        """Reports alone, and columns of the same length in a frame or as {name: values}."""
        if isinstance(reports, np.ndarray) and reports.dtype.kind in "iu":
            expected = "a report of everyone"
            codes = as_array(reports, expected, dtype=np.int64, argument="reports")
        else:
            texts = (
                reports
                if isinstance(reports, pa.Array | pa.ChunkedArray)
                else list(checked_tuple(reports, "reports as codes or texts", argument="reports"))
            )
            codes = self.labels.reports(texts)
        found = arrow_columns(columns)
        for name, values in found.items():
            if len(values) != len(codes):
                raise DataError(
                    f"Expected {len(codes)} values of {name!r}, one for each report, got "
                    f"{len(values)}.",
                    argument="covariates",
                    column=name,
                )
        return Rows(codes, found)

    def _wanted(self, names: Sequence[str], available: Sequence[str]) -> list[str]:
        for name in (self.column, *names):
            if name not in available:
                argument = "column" if name == self.column else "covariates"
                raise unknown_column(name, available, argument=argument)
        marks = [FINGERPRINT_COLUMN] if list(available).count(FINGERPRINT_COLUMN) == 1 else []
        return list(dict.fromkeys((self.column, *names, *marks)))

    def _frame(self, frame: Any, names: Sequence[str]) -> Rows:
        self.origin.check_note(frame_note(frame, self.column))
        columns = arrow_columns(frame, self._wanted(names, column_names(frame)))
        return self._rows([columns], names, is_text=False)

    def _file(self, path: Path, names: Sequence[str]) -> Rows:
        parts = []
        with ExitStack() as stack:
            source = open_records(path, stack, encoding=self.encoding)
            self.origin.check_note(arrow_note(source.schema))
            try:
                wanted = self._wanted(names, source.names)
            except DataError as error:
                raise error.within(str(path)) from None
            n = 0
            for batch in source.batches(wanted):
                columns = dict(zip(batch.schema.names, batch.columns, strict=True))
                if source.is_text:
                    columns = {name: _trimmed(values) for name, values in columns.items()}
                if source.has_decimal_commas:
                    columns |= {name: _pointed(columns[name]) for name in names}
                parts.append(columns)
                n += len(batch)
                if self.progress is not None:
                    self.progress(n, source.share())
            source.warn()
            if not n:
                raise DataError("Expected at least one report, got none.", argument="reports")
            return self._rows(parts, names, is_text=source.is_text)

    def _rows(
        self, parts: Sequence[Mapping[str, Any]], names: Sequence[str], *, is_text: bool
    ) -> Rows:
        codes, n = [], 0
        for part in parts:
            if FINGERPRINT_COLUMN in part and self.column != FINGERPRINT_COLUMN:
                self.origin.check_marks(part[FINGERPRINT_COLUMN].unique().to_pylist())
            values = part[self.column]
            try:
                codes.append(
                    np.asarray(values.to_numpy())
                    if pa.types.is_integer(values.type)
                    else self.labels.reports(values)
                )
            except DataError as error:
                raise error.within(f"Counted from report {n} on") from None
            n += len(values)
        columns = {name: _joined([part[name] for part in parts]) for name in names}
        return Rows(np.concatenate(codes), columns, is_text)


def arrow_columns(columns: Any, names: Sequence[str] | None = None) -> dict[str, Any]:
    """Columns of a frame, or a mapping of names to values, as Arrow arrays."""
    if isinstance(columns, Mapping):
        return {str(name): _array(values, str(name)) for name, values in columns.items()}
    if not is_frame(columns):
        raise ParameterError(
            f"Expected covariates as names of columns, a frame or {{name: values}}, got "
            f"{type(columns).__name__}.",
            argument="covariates",
        )
    data = narwhal(columns)
    data = data if names is None else data.select(*names)
    if isinstance(data, nw.LazyFrame):
        data = data.collect()
    return {name: _joined([data[name].to_arrow()]) for name in data.columns}


def _array(values: Any, name: str) -> Any:
    try:
        array = pa.array(values)
    except Exception:  # of whatever library the values come from
        array = None
    if not isinstance(array, pa.Array | pa.ChunkedArray):
        raise DataError(
            f"Expected values of one kind in {name!r}, numbers or texts.",
            argument="covariates",
            column=name,
        )
    return _joined([array])


def _pointed(values: Any) -> Any:
    """Numbers with decimal points instead of commas."""
    return pc.replace_substring_regex(values, _DECIMAL_COMMA, r"\1.\2")


def _trimmed(values: Any) -> Any:
    return pc.utf8_trim_whitespace(values.cast(pa.string()))


def _joined(arrays: Sequence[Any]) -> Any:
    """Arrow arrays, chunked or not, as one array."""
    chunks = [
        chunk
        for array in arrays
        for chunk in (array.chunks if isinstance(array, pa.ChunkedArray) else [array])
    ]
    chunks = [c.cast(c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in chunks]
    return pa.concat_arrays(chunks) if chunks else pa.array([], pa.null())
