"""Reports of every kind to counts: arrays, frames, texts, dicts, and files of any size.

`ReportOrigin` compares the fingerprints that reports carry, in metadata or in a column, with that
of the protocol that estimates: those of another protocol are refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rldp._types import Array
from rldp.checks import as_array, checked_path, checked_tuple, discreet, unmasked
from rldp.errors import DataError, ParameterError
from rldp.estimation.mixin import EstimateOptions
from rldp.estimation.moments import Moments
from rldp.estimation.report_counts import Counting, ReportCounts, checked_weights
from rldp.release.frames import is_frame
from rldp.release.keeping import FINGERPRINT_COLUMN, is_short_fingerprint, short_fingerprint
from rldp.release.report_labels import ReportLabels
from rldp.tables.frame_columns import column_names, is_missing, narwhal, unknown_column
from rldp.tables.record_files import open_records
from rldp.tables.schema import label_text
from rldp.tables.sources import Source

_DECIMAL_COMMA = r"^([+-]?\d*),(\d+)$"
_THOUSANDS = r"^[+-]?[1-9]\d{0,2},\d{3}$"  # might be


class ReportReader:
    """Reads reports, and counts them for each stratum.

    Args:
        features: of the channel.
        labels: of its reports.
        fingerprint: of the protocol, compared with that of the reports; None if unknown.
        options: which columns have reports, weights and strata, and how a file is read.
    """

    def __init__(
        self,
        features: Moments,
        labels: ReportLabels,
        fingerprint: str | None,
        options: EstimateOptions,
    ) -> None:
        """Start with no reports."""
        self._features, self._labels, self._options = features, labels, options
        self._column, self._weights, self._strata = options.column, options.weights, options.strata
        self._origin = ReportOrigin(fingerprint)
        self._countings: dict[str, Counting] = {}
        self._n = 0

    @property
    def is_checked(self) -> bool:
        """Whether all reports had the fingerprint of this protocol."""
        return self._origin.is_checked

    @discreet
    def counted(self, reports: Any) -> dict[str, ReportCounts]:
        """Counts of all reports by stratum, "" where there are no strata."""
        if isinstance(reports, str | os.PathLike):
            self._add_file(checked_path(reports))
        elif isinstance(reports, np.ndarray) and reports.dtype.kind in "iu":
            self._add_alone(reports)
        elif isinstance(reports, np.ndarray):
            texts = checked_tuple(reports.tolist(), "an array of reports", argument="reports")
            self._add_texts(list(texts), self._given(self._weights), self._given(self._strata))
        elif isinstance(reports, pa.Array | pa.ChunkedArray):
            self._add_texts(reports, self._given(self._weights), self._given(self._strata))
        elif is_frame(reports):
            self._add_frame(reports)
        else:
            self._add_sequence(reports)
        if not self._n:
            raise DataError("Expected at least one report, got none.", argument="reports")
        return self.result()

    def add_texts(self, texts: Any, weights: Any = None) -> None:
        """Count some reports, an Arrow array of texts, with their weights."""
        self._add_texts(texts, weights, None)

    def result(self) -> dict[str, ReportCounts]:
        """The counts so far by stratum."""
        return {label: counting.result() for label, counting in self._countings.items()}

    def _add_sequence(self, reports: Iterable[Any]) -> None:
        try:
            rows = list(reports)
        except TypeError:
            raise DataError(
                f"Expected reports as a file, frame, array, texts or dicts, "
                f"got {type(reports).__name__}.",
                argument="reports",
            ) from None
        if rows and isinstance(rows[0], Mapping):
            self._add_dicts(rows)
        elif rows and not isinstance(rows[0], str):
            self._add_alone(as_array(rows, "reports", dtype=None, argument="reports"))
        else:
            self._add_texts(rows, self._given(self._weights), self._given(self._strata))

    def _add_dicts(self, rows: Sequence[Mapping[str, Any]]) -> None:
        for row, record in enumerate(rows):
            for name in self._needed:
                if name not in record:
                    raise unknown_column(name, list(rows[0])).within(f"In row {row}")
        columns = {name: [record[name] for record in rows] for name in self._needed}
        self._check_marks(record.get(FINGERPRINT_COLUMN) for record in rows)
        self._add_frame(pa.table(columns))

    def _add_frame(self, frame: Any) -> None:
        self._origin.check_note(frame_note(frame, self._column))
        available = column_names(frame)
        for name in self._needed:
            if name not in available:
                raise unknown_column(name, available)
        data = narwhal(frame).select(*self._read(available))
        if isinstance(data, nw.LazyFrame):
            data = data.collect()
        if FINGERPRINT_COLUMN in data.columns:
            self._check_marks(data[FINGERPRINT_COLUMN].unique().to_list())
        weights, strata = (
            data[choice].to_list() if isinstance(choice, str) else self._given(choice)
            for choice in (self._weights, self._strata)
        )
        if isinstance(self._weights, str):
            weights = _with_points(weights)
        self._add_texts(data[self._column].to_arrow(), weights, strata)

    def _add_file(self, path: Path) -> None:
        for choice, name in ((self._weights, "weights"), (self._strata, "strata")):
            if choice is not None and not isinstance(choice, str):
                raise ParameterError(
                    f"Expected {name} as the name of a column of {path}.", argument=name
                )
        with ExitStack() as stack:
            source = open_records(path, stack, encoding=self._options.encoding)
            self._origin.check_note(arrow_note(source.schema))
            for name in self._needed:
                if name not in source.names:
                    raise unknown_column(name, source.names).within(str(path))
            listed = () if source.is_text else (self._column,)
            for batch in source.batches(self._read(source.names), listed):
                self._add_batch(batch, source)
                if self._options.progress is not None:
                    self._options.progress(self._n, source.share())
            source.warn()

    def _add_batch(self, batch: Any, source: Source) -> None:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        place = source.place(self._n)
        try:
            if source.is_text:
                trimmed = pc.utf8_trim_whitespace
                columns = {name: trimmed(x.cast(pa.string())) for name, x in columns.items()}
            if isinstance(self._weights, str):
                is_sure = source.has_decimal_commas
                found = columns[self._weights]
                columns[self._weights] = _pointed(found, is_sure=is_sure)
                if columns[self._weights] is not found:
                    source.tell("decimal commas of the weights were read as points")
            if FINGERPRINT_COLUMN in columns:
                self._check_marks(columns[FINGERPRINT_COLUMN].unique().to_pylist())
            weights, strata = (
                columns[choice].to_pylist() if isinstance(choice, str) else None
                for choice in (self._weights, self._strata)
            )
            self._add_texts(columns[self._column], weights, strata)
        except DataError as error:
            raise error.within(f"Counted from {place} on") from None

    @property
    def _needed(self) -> tuple[str, ...]:
        choices = (self._column, self._weights, self._strata)
        return tuple(dict.fromkeys(choice for choice in choices if isinstance(choice, str)))

    def _read(self, available: Sequence[str]) -> list[str]:
        """Columns to read: those that are needed, and the fingerprints if the file has them."""
        is_marked = available.count(FINGERPRINT_COLUMN) == 1
        return list(dict.fromkeys((*self._needed, *[FINGERPRINT_COLUMN][:is_marked])))

    def _check_marks(self, values: Iterable[Any]) -> None:
        if self._column != FINGERPRINT_COLUMN:  # else it holds the reports
            self._origin.check_marks(values)

    def _codes(self, texts: Any) -> NDArray[Any]:
        if isinstance(texts, pa.Array | pa.ChunkedArray) and pa.types.is_integer(texts.type):
            if texts.null_count:
                row = int(np.argmax(np.asarray(texts.is_null())))
                raise DataError(f"Expected a report in every row, row {row} has none.")
            return np.asarray(texts.to_numpy())
        return self._labels.reports(texts)

    def _add_alone(self, codes: NDArray[Any]) -> None:
        """Count reports without columns; weights and strata are arrays beside them."""
        codes = as_array(codes, "a report of everyone", dtype=None, argument="reports")
        self._add(codes, self._given(self._weights), self._given(self._strata))

    def _add_texts(self, texts: Any, weights: Any, strata: Any) -> None:
        """Count a column of reports, so many at a time as memory allows."""
        step = self._labels.at_once
        if len(texts) <= step:
            self._add(self._codes(texts), weights, strata)
            return
        weights = None if weights is None else checked_weights(weights, len(texts))
        strata = None if strata is None else _checked_strata(strata, len(texts))
        for start in range(0, len(texts), step):
            part = slice(start, start + step)
            try:
                codes = self._codes(texts[part])
            except DataError as error:
                raise error.within(f"Counted from row {start} on") from None
            w, labels = (x if x is None else x[part] for x in (weights, strata))
            self._add(codes, w, labels)

    def _add(self, codes: NDArray[Any], weights: Any, strata: Any) -> None:
        self._n += len(codes)
        if strata is None:
            self._counting("").add(codes, weights)
            return
        texts = _checked_strata(strata, len(codes))
        w = None if weights is None else checked_weights(weights, len(codes))
        for label in np.unique(texts):
            part = texts == label
            self._counting(str(label)).add(codes[part], None if w is None else w[part])

    def _counting(self, label: str) -> Counting:
        if label not in self._countings:
            keep_words = self._options.method == "likelihood"
            self._countings[label] = Counting(self._features, keep_words=keep_words)
        return self._countings[label]

    @staticmethod
    def _given(values: Any) -> Any:
        """Values beside the reports; an error if it is the name of a column."""
        if isinstance(values, str):
            raise ParameterError(
                f"Expected weights and strata as arrays beside an array of reports, got "
                f"the name {values!r}; pass a frame or a file with that column.",
                column=values,
            )
        return values


def _checked_strata(labels: Any, n: int) -> NDArray[Any]:
    """The stratum of each of n reports, as text."""
    expected = "one stratum for each report, or the name of a column"
    listed = checked_tuple(
        unmasked(labels, expected, argument="strata"), expected, argument="strata"
    )
    texts = ["" if is_missing(label) else label_text(label) for label in listed]
    if "" in texts:
        raise DataError(
            f"Expected a stratum for every report, report {texts.index('')} has none.",
            argument="strata",
        )
    if len(texts) != n:
        raise DataError(
            f"Expected {n} strata, one for each report, got {len(texts)}.", argument="strata"
        )
    return np.array(texts)


def _pointed(weights: Any, *, is_sure: bool = False) -> Any:
    """Texts with decimal points instead of commas, as a release keeps them from such a file.

    Unless it is sure that commas are decimal, a column with 1,250 is left as it is, and refused
    later: it might be a thousand.
    """
    if pa.types.is_dictionary(weights.type):
        weights = weights.cast(weights.type.value_type)
    if not (pa.types.is_string(weights.type) or pa.types.is_large_string(weights.type)):
        return weights
    if not is_sure and (pc.any(pc.match_substring_regex(weights, _THOUSANDS)).as_py() or False):
        return weights
    found = pc.replace_substring_regex(weights, _DECIMAL_COMMA, r"\1.\2")
    return weights if found.equals(weights) else found


def _with_points(weights: list[Any]) -> list[Any]:
    """The same for a column of a frame, if it is text."""
    if not all(isinstance(w, str) for w in weights):
        return weights
    return list(_pointed(pa.array(weights, pa.string())).to_pylist())


def weights_in(path: str | os.PathLike[str], column: str) -> Array:
    """The numbers of a column of a file, as weights."""
    found: list[Any] = []
    with ExitStack() as stack:
        source = open_records(checked_path(path), stack)
        if column not in source.names:
            raise unknown_column(column, source.names).within(str(path))
        for batch in source.batches([column], ()):
            values = batch.columns[0]
            if source.is_text:
                values = pc.utf8_trim_whitespace(values.cast(pa.string()))
            found += _pointed(values, is_sure=source.has_decimal_commas).to_pylist()
    return checked_weights(found, len(found))


_SPARK_SCHEMA = b"org.apache.spark.sql.parquet.row.metadata"


class ReportOrigin:
    """Compares the fingerprints of reports with that of the protocol that estimates.

    Args:
        fingerprint: of the protocol that estimates, None if it has none.
    """

    def __init__(self, fingerprint: str | None) -> None:
        """Start with no reports seen."""
        self._fingerprint = fingerprint
        self._is_noted = False  # in metadata
        self._marks: set[str | None] = set()  # in a column

    @property
    def is_checked(self) -> bool:
        """Whether all reports had the fingerprint of this protocol."""
        return self._is_noted or self._marks == {short_fingerprint(self._fingerprint or "")}

    def check_note(self, note: Mapping[str, Any]) -> None:
        """Refuse metadata that name another protocol."""
        other = note.get("fingerprint")
        if other is None or self._fingerprint is None:
            return
        if other != self._fingerprint:
            what = f" ({note.get('protocol')}, epsilon {note.get('epsilon')})"
            raise _of_another(self._fingerprint, str(other), what)
        self._is_noted = True

    def check_marks(self, values: Iterable[Any]) -> None:
        """Refuse other fingerprints in a column; other values are the user's own."""
        if self._fingerprint is None:
            return
        marks = {_mark(value) for value in values}
        for mark in marks - {None, short_fingerprint(self._fingerprint)}:
            raise _of_another(self._fingerprint, str(mark))
        self._marks |= marks


def frame_note(frame: Any, column: str) -> Mapping[str, Any]:
    """The metadata of a released frame about its protocol."""
    attributes = getattr(frame, "attrs", None)
    if isinstance(attributes, Mapping) and isinstance(attributes.get("rldp"), Mapping):
        return dict(attributes["rldp"])
    if isinstance(frame, pa.Table | pa.RecordBatch):
        return arrow_note(frame.schema)
    is_spark = type(frame).__module__.startswith("pyspark")
    fields = frame.schema.fields if is_spark else ()
    return next((_parsed(f.metadata.get("rldp")) for f in fields if f.name == column), {})


def arrow_note(schema: Any) -> Mapping[str, Any]:
    """The same from an Arrow schema, also from a file that Spark wrote."""
    metadata = schema.metadata or {}
    if b"rldp" in metadata:
        return _parsed(metadata[b"rldp"])
    fields = _parsed(metadata.get(_SPARK_SCHEMA)).get("fields", [])
    notes = (_parsed(f.get("metadata", {}).get("rldp")) for f in fields)
    return next((note for note in notes if note), {})


def _parsed(text: Any) -> Mapping[str, Any]:
    try:
        note = json.loads(text) if text else {}
    except ValueError:
        return {}
    return note if isinstance(note, dict) else {}


def _mark(value: Any) -> str | None:
    """A fingerprint, None for any other value; digits alone may have been read as a number."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    text = f"{value:012d}" if is_number else value
    return text if is_short_fingerprint(text) else None


def _of_another(expected: str, found: str, what: str = "") -> DataError:
    return DataError(
        f"Expected reports of the protocol {short_fingerprint(expected)}…, these are of the "
        f"protocol {short_fingerprint(found)}…{what}; use the protocol that released them."
    )
