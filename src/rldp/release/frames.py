"""Frames and dicts to reports of the same kind."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa

from rldp.counting import column_names, frame_label, narwhal, series_labels, unknown_column
from rldp.errors import DataError
from rldp.release.codes import drawn_reports
from rldp.release.columns import (
    Place,
    id_texts,
    python_ids,
    read_columns,
    record_codes,
    row_place,
)
from rldp.release.randomness import Randomness
from rldp.release.released import Released


def is_frame(data: Any) -> bool:
    """Whether data is a pandas, polars or pyarrow frame."""
    seen = nw.from_native(data, pass_through=True)
    return isinstance(seen, nw.DataFrame | nw.LazyFrame) or isinstance(data, pa.RecordBatch)


def is_reader(data: Any) -> bool:
    """Whether data is a stream of record batches, which can be read once."""
    return isinstance(data, pa.RecordBatchReader)


def released_frame(
    p: Released,
    frame: Any,
    randomness: Randomness,
    *,
    keep: Sequence[str],
    record_id: str | None,
    column: str,
    first: int = 0,
) -> Any:
    """The kept columns and the reports, as a frame of the same kind; rows count from `first`."""

    def place(row: int) -> str:
        return row_place(first + row)

    available = column_names(frame)
    data = narwhal(frame)
    if isinstance(data, nw.LazyFrame):
        return released_lazily(p, frame, randomness, keep=keep, record_id=record_id, column=column)
    names = read_columns(p)
    for name in (*names, *keep, *([] if record_id is None else [record_id])):
        if name not in available:
            raise DataError(unknown_column(name, available))
    ids = None if record_id is None else _ids(data[record_id], record_id, place)
    s, u = record_codes({name: _arrow(data[name]) for name in names}, p, place=place)
    source = randomness.source(p.fingerprint, ids)
    texts = p.report_labels.texts(drawn_reports(p.sampler, s, u, source))
    note = randomness.note(p.name, p.epsilon, p.fingerprint)
    if isinstance(frame, pa.Table | pa.RecordBatch):
        return _arrow_frame(frame, keep, column, texts, note)
    if data.implementation.is_polars():
        return _polars_frame(frame, keep, column, texts)
    return _pandas_frame(frame, keep, column, texts, note)


def released_lazily(
    p: Released,
    frame: Any,
    randomness: Randomness,
    *,
    keep: Sequence[str],
    record_id: str | None,
    column: str,
) -> Any:
    """A LazyFrame that draws when it is collected, with a key alone: it may be collected twice."""
    kind = f"{type(frame).__module__.split('.')[0].strip('_')} {type(frame).__name__}"
    if "polars" not in kind:
        raise DataError(
            f"Expected a frame in memory, got a {kind}; release the reader of a DuckDB relation, "
            f"as in p.release(relation.to_arrow_reader()), and Spark by rldp.spark.release."
        )
    if record_id is None:
        raise DataError(
            "Expected record_id and key for a LazyFrame, which may be computed more than once and "
            "would draw again each time; give both, or collect it first."
        )
    import polars as pl

    needed = tuple(dict.fromkeys((*read_columns(p), *keep, record_id)))
    kinds = frame.collect_schema()
    for name in needed:
        if name not in kinds:
            raise DataError(unknown_column(name, kinds.names()))
    labels = no_texts(p)
    is_listed = pa.types.is_dictionary(labels.type)
    reports = pl.Enum(labels.dictionary.to_pylist()) if is_listed else pl.String()
    options: dict[str, Any] = {"keep": keep, "record_id": record_id, "column": column}
    return frame.select(needed).map_batches(
        lambda part: released_frame(p, part, randomness, **options),
        schema={**{name: kinds[name] for name in keep}, column: reports},
        projection_pushdown=False,  # the record is needed also where the report alone is wanted
        streamable=True,
    )


def released_reader(
    p: Released,
    reader: Any,
    randomness: Randomness,
    *,
    keep: Sequence[str],
    record_id: str | None,
    column: str,
) -> Any:
    """A reader of record batches that releases each batch when it is asked for."""
    options: dict[str, Any] = {"keep": keep, "record_id": record_id, "column": column}
    nothing = released_frame(p, reader.schema.empty_table(), randomness, **options)

    def batches() -> Iterator[Any]:
        first = 0
        for batch in reader:
            yield released_frame(p, batch, randomness, **options, first=first)
            first += batch.num_rows

    return pa.RecordBatchReader.from_batches(nothing.schema, batches())


def no_texts(p: Released) -> Any:
    """The labels of no reports: their type, and the labels that a dictionary lists."""
    return p.report_labels.texts(p.sampler.empty(0))


def released_records(
    p: Released,
    records: Iterable[Any],
    randomness: Randomness,
    *,
    keep: Sequence[str],
    record_id: str | None,
    column: str,
) -> list[dict[str, Any]]:
    """The kept values and the report of every dict."""
    rows = list(records)
    names = read_columns(p)
    for row, record in enumerate(rows):
        if not isinstance(record, Mapping):
            raise DataError(
                f"Expected a frame, an array of codes or dicts, got {type(record).__name__} "
                f"in row {row}."
            )
        for name in (*names, *keep, *([] if record_id is None else [record_id])):
            if name not in record:
                raise DataError(f"{unknown_column(name, list(record))[:-1]}, in row {row}.")
    columns = {}
    for name in names:
        texts = [_record_label(record[name], name, row) for row, record in enumerate(rows)]
        columns[name] = pa.array(texts, pa.string())
    ids = None
    if record_id is not None:
        ids = python_ids((record[record_id] for record in rows), record_id)
    s, u = record_codes(columns, p)
    source = randomness.source(p.fingerprint, ids)
    labels = p.report_labels.texts(drawn_reports(p.sampler, s, u, source)).to_pylist()
    return [
        {**{name: record[name] for name in keep}, column: text}
        for record, text in zip(rows, labels, strict=True)
    ]


def _record_label(value: Any, name: str, row: int) -> str | None:
    try:
        return frame_label(value)
    except (DataError, ValueError) as error:  # ValueError: an array has no truth value
        raise DataError(f"In column {name!r}, row {row}: {error}") from None


def _arrow(series: nw.Series[Any]) -> Any:
    """A column as Arrow, in which equal labels may stand for values that Arrow does not know."""
    native = series.to_native()
    if isinstance(native, pa.ChunkedArray):
        return native
    if series.dtype.is_nested():
        raise DataError(
            f"Expected one value per record in column {series.name!r}, got {series.dtype}; "
            f"unnest it first."
        )
    if series.dtype in (nw.Categorical, nw.Enum) and series.implementation.is_pandas_like():
        labels = [frame_label(category) for category in native.cat.categories]
        codes = np.asarray(native.cat.codes)
        indices = pa.array(codes, mask=codes < 0)
        return pa.DictionaryArray.from_arrays(indices, pa.array(labels, pa.string()))
    is_known = series.dtype.is_numeric() or series.dtype in (
        nw.String,
        nw.Boolean,
        nw.Categorical,
        nw.Enum,
    )
    if is_known:
        return series.to_arrow()
    return pa.array(series_labels(series, frame_label), pa.string())  # as its library spells it


def _ids(series: nw.Series[Any], name: str, place: Place) -> Any:
    if series.dtype == nw.Object:
        return python_ids(series.to_list(), name, place)
    native = series.to_native()
    values = native if isinstance(native, pa.ChunkedArray) else series.to_arrow()
    return id_texts(values, name, place)


def _arrow_frame(
    frame: Any, keep: Sequence[str], column: str, texts: Any, note: Mapping[str, Any]
) -> Any:
    kept = [frame.column(name) for name in keep]
    fields = [frame.schema.field(name) for name in keep]
    schema = pa.schema([*fields, pa.field(column, texts.type)], metadata={"rldp": json.dumps(note)})
    return type(frame).from_arrays([*kept, texts], schema=schema)


def _polars_frame(frame: Any, keep: Sequence[str], column: str, texts: Any) -> Any:
    import polars as pl

    series = pl.Series(column, texts)
    if pa.types.is_dictionary(texts.type):
        series = series.cast(pl.Enum(texts.dictionary.to_pylist()))
    return frame.select(keep).with_columns(series) if keep else series.to_frame()


def _pandas_frame(
    frame: Any, keep: Sequence[str], column: str, texts: Any, note: Mapping[str, Any]
) -> Any:
    import pandas as pd

    if pa.types.is_dictionary(texts.type):
        values = pd.Categorical.from_codes(
            texts.indices.to_numpy(), categories=texts.dictionary.to_pylist()
        )
    else:
        values = pd.array(texts.to_pylist(), dtype="str")
    out = frame[list(keep)].copy()
    out[column] = values
    out.attrs = {"rldp": dict(note)}
    return out
