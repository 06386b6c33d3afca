"""Records of files to reports, batch by batch."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from rldp._types import RecordProgress
from rldp.checks import discreet
from rldp.errors import DataError, FileError
from rldp.release.draw import drawn_texts
from rldp.release.encode import (
    Label,
    complete_rows,
    decimal_label,
    id_values,
    plain_label,
    read_columns,
    record_codes,
    text_label,
)
from rldp.release.formulas import escaped_column
from rldp.release.frames import no_texts
from rldp.release.interface import Released
from rldp.release.keeping import FINGERPRINT_COLUMN, Layout, bare_type, short_fingerprint
from rldp.release.randomness import Randomness, WordSource
from rldp.tables.arrow_arrays import integer_array, text_array
from rldp.tables.frame_columns import unknown_column
from rldp.tables.schema import Column
from rldp.tables.sources import Source

_QUOTED = re.compile('[",\\t\\r\\n]')


class Records(int):
    """How many records were released, and how many were left out for missing values."""

    dropped = 0


@dataclass
class BatchRelease:
    """Record batches to batches of reports, with the number of records so far."""

    p: Released
    randomness: Randomness
    layout: Layout
    progress: RecordProgress | None
    is_escaped: bool = False
    records: int = 0
    dropped: int = 0
    source: WordSource | None = field(init=False)

    def __post_init__(self) -> None:
        """Open the source of randomness."""
        # one source for all batches; with a key, each batch has one made from its ids
        is_keyed = self.layout.record_id is not None
        self.source = None if is_keyed else self.randomness.source(self.p.fingerprint)

    @property
    def result(self) -> Records:
        """The number of records released so far."""
        result = Records(self.records)
        result.dropped = self.dropped
        return result

    @property
    def needed(self) -> tuple[str, ...]:
        """Columns that the input must have."""
        return tuple(dict.fromkeys((*read_columns(self.p), *self.layout.needed)))

    @property
    def listed(self) -> tuple[str, ...]:
        """Those of them that have few different labels and are not released as they are."""
        return tuple(name for name in read_columns(self.p) if name not in self.layout.needed)

    @property
    def is_bare(self) -> bool:
        """Whether nothing in the result needs quotes in a text file."""
        texts = (self.layout.column, *self.p.report_labels.all)
        return not self.layout.keep and not any(map(needs_quotes, texts))

    @discreet
    def schema(self, source: Source) -> Any:
        """Columns and metadata of the result."""
        for name in self.needed:
            if name not in source.names:
                raise unknown_column(name, source.names)
            if source.names.count(name) > 1:
                raise FileError(
                    f"Expected column {name!r} once, the file has it more than once.", column=name
                )
        note = self.randomness.note(self.p.name, self.p.epsilon, self.p.fingerprint)
        fields = self._fields(source.schema)
        if self.layout.fingerprint:
            fields.append(pa.field(FINGERPRINT_COLUMN, pa.string()))
        return pa.schema(fields, metadata={"rldp": json.dumps(note)})

    def _fields(self, schema: Any) -> list[Any]:
        kept = [pa.field(name, bare_type(schema.field(name).type)) for name in self.layout.keep]
        kind = pa.string() if self.is_escaped else no_texts(self.p).type
        return [*kept, pa.field(self.layout.column, kind)]

    @discreet
    def release(
        self, sources: Iterable[Source], schema: Any, write: Callable[[Any], object]
    ) -> None:
        """Release all records of the sources, batch by batch."""
        for source in sources:
            if not self.schema(source).equals(schema):
                raise DataError(
                    f"Expected the same types in all files, {source.place(0)} differs: "
                    f"{self.schema(source).types} instead of {schema.types}."
                )
            first = 0
            for batch in source.batches(self.needed, self.listed):
                released = self._released(batch, source, schema, first)
                write(released)
                first += batch.num_rows
                self.records += released.num_rows
                self.dropped += batch.num_rows - released.num_rows
                if self.progress is not None:
                    self.progress(self.records, source.share())
            source.warn()

    def _released(self, batch: Any, source: Source, schema: Any, first: int) -> Any:
        rows: Any = range(batch.num_rows)

        def place(row: int) -> str:
            return source.place(first + int(rows[row]))

        label = label_of(source)
        if self.layout.missing == "drop":
            rows = np.flatnonzero(complete_rows(by_name(batch), self.p, label))
            batch = batch if len(rows) == batch.num_rows else batch.take(integer_array(rows))
        columns = by_name(batch)
        s, u = record_codes(columns, self.p, label=label, place=place)
        kept = [columns[name].cast(schema.field(name).type) for name in self.layout.keep]
        words = self.source or self._keyed(columns, source.is_text, place, s, u)
        labels = drawn_texts(self.p, s, u, words, labels=self.layout.labels)
        out = [*kept, labels]
        if self.is_escaped:
            out = [escaped_column(values) for values in out]
        if self.layout.fingerprint:
            mark = text_array([short_fingerprint(self.p.fingerprint)])[0]
            out.append(pa.repeat(mark, batch.num_rows))
        return pa.RecordBatch.from_arrays(out, schema=schema)

    def _keyed(
        self, columns: Any, is_text: bool, place: Callable[[int], str], s: Any, u: Any
    ) -> WordSource:
        ids = self._ids(columns, is_text, place)
        return self.randomness.source(self.p.fingerprint, ids, s, u)

    def _ids(self, columns: Any, is_text: bool, place: Callable[[int], str]) -> Any:
        name = self.layout.record_id or ""
        ids = columns[name]
        if is_text:
            ids = pa.compute.utf8_trim_whitespace(ids.cast(pa.string()))
        return id_values(ids, name, place)


def needs_quotes(text: str) -> bool:
    """Whether a text needs quotes in a text file."""
    return _QUOTED.search(text) is not None


def by_name(batch: Any) -> dict[str, Any]:
    """The columns of a batch."""
    return dict(zip(batch.schema.names, batch.columns, strict=True))


def label_of(source: Source) -> Label:
    """The function that reads a value of a source as a label."""
    if not source.is_text:
        return plain_label
    if not source.has_decimal_commas:
        return text_label

    def label(value: bytes, column: Column) -> str | None:
        text = decimal_label(value, column)
        if text is not None and text != text_label(value, column):
            source.tell(f"decimal commas of column {column.name!r} were read as points")
        return text

    return label
