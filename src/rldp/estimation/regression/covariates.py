"""Reports with their covariates, and these as a design matrix: numbers, and levels as dummies."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.linalg import qr

from rldp._types import Array, Flags, Integers, RecordProgress
from rldp.checks import as_array, checked_path, checked_tuple, shown
from rldp.errors import DataError, ParameterError
from rldp.estimation.read_reports import ReportOrigin, arrow_note, frame_note
from rldp.release.frames import is_frame
from rldp.release.keeping import FINGERPRINT_COLUMN
from rldp.release.report_labels import ReportLabels
from rldp.tables.frame_columns import column_names, is_missing, narwhal, unknown_column
from rldp.tables.record_files import open_records
from rldp.tables.schema import label_text, shown_list, sorted_labels

INTERCEPT = "(intercept)"
_MOST_LEVELS = 100
_DEPENDENT = 1e-9  # share of a column that others leave unexplained, below which it is collinear


class Values(NamedTuple):
    """One column: numbers, or texts; missing values are NaN or ""."""

    numbers: Array | None
    texts: list[str] | None

    @property
    def missing(self) -> Flags:
        """Where there is no value."""
        if self.numbers is not None:
            return np.isnan(self.numbers)
        return np.array([not text for text in self.texts or ()], dtype=np.bool_)

    def kept(self, rows: Flags) -> Values:
        """Those of some rows."""
        if self.numbers is not None:
            return Values(self.numbers[rows], None)
        pairs = zip(self.texts or (), rows, strict=True)
        return Values(None, [text for text, is_kept in pairs if is_kept])


def read_values(column: Any, name: str, *, as_levels: bool, is_text: bool) -> Values:
    """An Arrow array as numbers or texts.

    Args:
        column: the array.
        name: of the column.
        as_levels: whether numbers shall be taken as levels.
        is_text: whether the column comes from a text file, where numbers are written as texts.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    is_number = any(test(kind) for test in tests)
    if is_text and not as_levels and (parsed := _parsed(column)) is not None:
        return Values(parsed, None)
    if is_number and not as_levels:
        numbers = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return Values(np.asarray(numbers, dtype=float), None)
    return Values(None, [_text(value, name, row) for row, value in enumerate(column.to_pylist())])


def _text(value: Any, name: str, row: int) -> str:
    if is_missing(value):
        return ""
    try:
        return label_text(value)
    except DataError as error:
        raise error.within(f"In row {row} of column {name!r}") from None


def _parsed(column: Any) -> Array | None:
    """Texts as numbers, None where one of them is none; an empty text is a missing value."""
    texts = column.cast(pa.string())
    filled = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
    try:
        numbers = filled.cast(pa.float64())
    except pa.ArrowInvalid:
        return None
    return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=float)


@dataclass(frozen=True)
class Covariate:
    """A column of numbers, or one of levels with the reference first."""

    name: str
    levels: tuple[str, ...] | None = None

    @property
    def terms(self) -> tuple[str, ...]:
        """What the rows of a table of coefficients are called."""
        if self.levels is None:
            return (self.name,)
        return tuple(f"{self.name}={level}" for level in self.levels[1:])

    def columns(self, values: Values) -> Array:
        """Its part of the design matrix, shape (rows, terms)."""
        if self.levels is None:
            if values.numbers is None:
                raise DataError(
                    f"Expected numbers in column {self.name!r}, got "
                    f"{shown((values.texts or [''])[0])}.",
                    column=self.name,
                )
            infinite = np.flatnonzero(np.isinf(values.numbers))
            if infinite.size:
                raise DataError(
                    f"Expected finite numbers in column {self.name!r}, got an infinite one in row "
                    f"{infinite[0]}.",
                    column=self.name,
                )
            return values.numbers[:, None]
        texts = values.texts or []
        known = {level: place for place, level in enumerate(self.levels)}
        for text in texts:
            if text not in known:
                raise DataError(
                    f"Unknown level {text!r} in column {self.name!r}; known are "
                    f"{shown_list(self.levels)}.",
                    column=self.name,
                    label=text,
                )
        codes = np.array([known[text] for text in texts], dtype=np.intp)
        return np.asarray(codes[:, None] == np.arange(1, len(self.levels)), dtype=float)


@dataclass(frozen=True)
class Coding:
    """All covariates, in order."""

    covariates: tuple[Covariate, ...]

    @classmethod
    def learnt(cls, columns: Mapping[str, Values], reference: Mapping[str, Any]) -> Coding:
        """Levels as they occur, with the reference that was asked for, or else the first."""
        for name in reference:
            if name not in columns:
                raise unknown_column(name, list(columns), argument="reference")
        found = []
        for name, values in columns.items():
            if values.texts is None:
                if name in reference:
                    raise ParameterError(
                        f"Expected a reference for columns of levels only, {name!r} has numbers; "
                        f"name it as categorical first.",
                        argument="reference",
                        column=name,
                    )
                found.append(Covariate(name))
            else:
                found.append(Covariate(name, _levels(name, values.texts, reference.get(name))))
        return cls(tuple(found))

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of the columns of the design matrix."""
        return (INTERCEPT, *(term for covariate in self.covariates for term in covariate.terms))

    def matrix(self, columns: Mapping[str, Values], rows: int) -> Array:
        """The design matrix, with a first column of ones."""
        parts = [covariate.columns(columns[covariate.name]) for covariate in self.covariates]
        return np.concatenate([np.ones((rows, 1)), *parts], axis=1)


def _levels(name: str, texts: Sequence[str], reference: Any) -> tuple[str, ...]:
    levels = sorted_labels({text for text in texts if text})
    if len(levels) > _MOST_LEVELS:
        raise DataError(
            f"Expected at most {_MOST_LEVELS} levels in column {name!r}, got {len(levels)}; "
            f"group them first, or give numbers as numbers.",
            argument="covariates",
            column=name,
        )
    if reference is None:
        return levels
    wanted = label_text(reference)
    if wanted not in levels:
        raise ParameterError(
            f"Expected a reference of column {name!r} among {shown_list(levels)}, got {wanted!r}.",
            argument="reference",
            column=name,
            label=wanted,
        )
    return (wanted, *(level for level in levels if level != wanted))


def check_independent(X: Array, weight: Array, terms: Sequence[str]) -> None:
    """Refuse a design matrix with a column that is a combination of the others."""
    for place in range(1, X.shape[1]):
        if (X[:, place] == X[0, place]).all():
            column = terms[place].partition("=")[0]
            raise DataError(
                f"Expected covariates that vary, {terms[place]!r} is {X[0, place]:g} for every "
                f"report; leave it out.",
                argument="covariates",
                column=column,
            )
    scaled = np.sqrt(weight)[:, None] * X
    mean = weight @ X[:, 1:] / weight.sum()
    scaled[:, 1:] -= np.sqrt(weight)[:, None] * mean
    scaled /= np.linalg.norm(scaled, axis=0)
    _, R, order = qr(scaled, mode="economic", pivoting=True)
    small = np.flatnonzero(np.abs(np.diag(R)) < _DEPENDENT)
    if len(X) < X.shape[1] or small.size:
        place = int(order[small[0]]) if small.size else X.shape[1] - 1
        raise DataError(
            f"Expected covariates that are not collinear, {terms[place]!r} is a combination of "
            f"the others; leave one of them out.",
            argument="covariates",
            column=terms[place].partition("=")[0],
        )


_DECIMAL_COMMA = r"^([+-]?\d*),(\d+)$"


@dataclass(frozen=True, eq=False)
class CovariateRows:
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

    def read(self, reports: Any, names: Sequence[str]) -> CovariateRows:
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

    def beside(self, reports: Any, columns: Any) -> CovariateRows:
        """Reports alone, and columns of the same length in a frame or as {name: values}."""
        if is_frame(reports):  # as a release gives them
            self.origin.check_note(frame_note(reports, self.column))
            held = arrow_columns(reports, self._wanted((), column_names(reports)))
            rows = self._rows([held], (), is_text=False)
            codes = rows.codes
        elif isinstance(reports, np.ndarray) and reports.dtype.kind in "iu":
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
        return CovariateRows(codes, found)

    def _wanted(self, names: Sequence[str], available: Sequence[str]) -> list[str]:
        for name in (self.column, *names):
            if name not in available:
                argument = "column" if name == self.column else "covariates"
                raise unknown_column(name, available, argument=argument)
        marks = [FINGERPRINT_COLUMN] if list(available).count(FINGERPRINT_COLUMN) == 1 else []
        return list(dict.fromkeys((self.column, *names, *marks)))

    def _frame(self, frame: Any, names: Sequence[str]) -> CovariateRows:
        self.origin.check_note(frame_note(frame, self.column))
        columns = arrow_columns(frame, self._wanted(names, column_names(frame)))
        return self._rows([columns], names, is_text=False)

    def _file(self, path: Path, names: Sequence[str]) -> CovariateRows:
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
    ) -> CovariateRows:
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
        return CovariateRows(np.concatenate(codes), columns, is_text)


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
