"""Reports of every kind to counts: arrays, frames, texts, dicts, and files of any size."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from rldp.counting import column_names, narwhal, unknown_column
from rldp.errors import DataError, FileError, ParameterError
from rldp.estimation.counts import Counting, ReportCounts
from rldp.estimation.moments import Moments
from rldp.release.frames import is_frame
from rldp.release.labels import ReportLabels
from rldp.schema import label_text
from rldp.sources import ArrowSource, CsvSource, ParquetSource, Source, file_kind, file_size

Progress = Callable[[int, float | None], object]


@dataclass
class ReportReader:
    """Reads reports, and counts them for each stratum.

    Args:
        features: of the channel.
        labels: of its reports.
        fingerprint: of the protocol, compared with what reports say of theirs; None where unknown.
        column: the name of the column with the reports.
        weights: column with the weights, or the weights themselves; None for equal ones.
        strata: column with the strata, or their labels; None where there is one only.
        keep_words: whether the different reports of a unary protocol are kept.
        progress: called after each batch with the number of reports and the share that is read.
    """

    features: Moments
    labels: ReportLabels
    fingerprint: str | None = None
    column: str = "y"
    weights: Any = None
    strata: Any = None
    keep_words: bool = False
    progress: Progress | None = None
    _countings: dict[str, Counting] = field(default_factory=dict, init=False)
    _n: int = field(default=0, init=False)

    def counted(self, reports: Any) -> dict[str, ReportCounts]:
        """Counts of all reports by stratum, "" where there are no strata."""
        if isinstance(reports, str | os.PathLike):
            self._file(Path(reports))
        elif isinstance(reports, np.ndarray) and reports.dtype.kind in "iu":
            self._add(reports, self._given(self.weights), self._given(self.strata))
        elif isinstance(reports, np.ndarray | pa.Array | pa.ChunkedArray):
            texts = reports.tolist() if isinstance(reports, np.ndarray) else reports
            self._add(self._codes(texts), self._given(self.weights), self._given(self.strata))
        elif is_frame(reports):
            self._frame(reports)
        else:
            self._sequence(reports)
        if not self._n:
            raise DataError("Expected at least one report, got none.")
        return {label: counting.result() for label, counting in self._countings.items()}

    def _sequence(self, reports: Iterable[Any]) -> None:
        try:
            rows = list(reports)
        except TypeError:
            kind = type(reports).__name__
            raise DataError(
                f"Expected reports as a file, frame, array, texts or dicts, got {kind}."
            ) from None
        if rows and isinstance(rows[0], Mapping):
            names = list(rows[0])
            for row, record in enumerate(rows):
                missing = [name for name in self._needed if name not in record]
                if missing:
                    raise DataError(f"{unknown_column(missing[0], names)[:-1]}, in row {row}.")
            self._frame(pa.table({name: [r[name] for r in rows] for name in self._needed}))
        elif rows and not isinstance(rows[0], str):
            self._add(np.asarray(rows), self._given(self.weights), self._given(self.strata))
        else:
            self._add(self._codes(rows), self._given(self.weights), self._given(self.strata))

    def _frame(self, frame: Any) -> None:
        self._check_note(_note(frame))
        available = column_names(frame)
        for name in self._needed:
            if name not in available:
                raise DataError(unknown_column(name, available))
        data = narwhal(frame).select(*self._needed)
        if isinstance(data, nw.LazyFrame):
            data = data.collect()
        weights, strata = (
            data[choice].to_list() if isinstance(choice, str) else self._given(choice)
            for choice in (self.weights, self.strata)
        )
        self._add(self._codes(data[self.column].to_arrow()), weights, strata)

    def _file(self, path: Path) -> None:
        file_size(path)
        kind = file_kind(path, arrow=True)
        for choice, name in ((self.weights, "weights"), (self.strata, "strata")):
            if choice is not None and not isinstance(choice, str):
                raise ParameterError(f"Expected the name of a column of {path} as {name}.")
        with ExitStack() as stack:
            source: Source
            if kind == "parquet":
                source = ParquetSource(path, stack, [self.column])
                self._check_note(arrow_note(source.schema))
            elif kind == "arrow":
                source = ArrowSource(path, stack)
                self._check_note(arrow_note(source.schema))
            else:
                source = CsvSource(path, stack)
            for name in self._needed:
                if name not in source.names:
                    raise DataError(f"{path}: {unknown_column(name, source.names)}")
            for batch in source.batches(list(self._needed)):
                self._batch(batch, source)
                if self.progress is not None:
                    self.progress(self._n, source.share())

    def _batch(self, batch: Any, source: Source) -> None:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        place = source.place(self._n)
        try:
            if source.is_text:
                trimmed = pa.compute.utf8_trim_whitespace
                columns = {name: trimmed(x.cast(pa.string())) for name, x in columns.items()}
            weights, strata = (
                columns[choice].to_pylist() if isinstance(choice, str) else None
                for choice in (self.weights, self.strata)
            )
            self._add(self._codes(columns[self.column]), weights, strata)
        except pa.ArrowInvalid as error:
            raise FileError(f"Expected UTF-8 in all reports from {place} on: {error}.") from None
        except DataError as error:
            raise DataError(f"Counted from {place} on: {error}") from None

    @property
    def _needed(self) -> tuple[str, ...]:
        choices = (self.column, self.weights, self.strata)
        return tuple(dict.fromkeys(choice for choice in choices if isinstance(choice, str)))

    def _codes(self, texts: Any) -> NDArray[Any]:
        if isinstance(texts, pa.Array | pa.ChunkedArray) and pa.types.is_integer(texts.type):
            return np.asarray(texts.to_numpy())
        return self.labels.reports(texts)

    def _add(self, codes: NDArray[Any], weights: Any, strata: Any) -> None:
        self._n += len(codes)
        if strata is None:
            self._counting("").add(codes, weights)
            return
        texts = np.array([label_text(label) for label in strata])
        if len(texts) != len(codes):
            raise DataError(f"Expected {len(codes)} strata, one a report, got {len(texts)}.")
        w = None if weights is None else np.array([float(x) for x in weights])
        for label in np.unique(texts):
            part = texts == label
            self._counting(str(label)).add(codes[part], None if w is None else w[part])

    def _counting(self, label: str) -> Counting:
        if label not in self._countings:
            self._countings[label] = Counting(self.features, keep_words=self.keep_words)
        return self._countings[label]

    @staticmethod
    def _given(values: Any) -> Any:
        """Values that came beside the reports, not as the name of a column."""
        if isinstance(values, str):
            raise ParameterError(
                f"Expected weights and strata as arrays beside an array of reports, got "
                f"the name {values!r}; pass a frame or a file with that column."
            )
        return values

    def _check_note(self, note: Mapping[str, Any]) -> None:
        other = note.get("fingerprint")
        if other is not None and self.fingerprint is not None and other != self.fingerprint:
            raise DataError(
                f"Expected reports of the protocol {self.fingerprint[:12]}…, these say that they "
                f"are of {str(other)[:12]}… ({note.get('protocol')}, epsilon "
                f"{note.get('epsilon')}); load the protocol that released them."
            )


def _note(frame: Any) -> Mapping[str, Any]:
    """What a released frame says of its protocol."""
    attributes = getattr(frame, "attrs", None)
    if isinstance(attributes, Mapping) and isinstance(attributes.get("rldp"), Mapping):
        return dict(attributes["rldp"])
    if isinstance(frame, pa.Table | pa.RecordBatch):
        return arrow_note(frame.schema)
    return {}


def arrow_note(schema: Any) -> Mapping[str, Any]:
    """The same of an Arrow schema."""
    text = (schema.metadata or {}).get(b"rldp")
    try:
        note = json.loads(text) if text else {}
    except ValueError:
        return {}
    return note if isinstance(note, dict) else {}
