"""Frames and dicts to reports of the same kind."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
from narwhals.exceptions import DuplicateError

from rldp.checks import checked_tuple, discreet
from rldp.errors import DataError
from rldp.release.encode import (
    Place,
    arrow_values,
    complete_rows,
    id_values,
    python_ids,
    python_texts,
    read_columns,
    record_codes,
    row_place,
)
from rldp.release.keeping import (
    FINGERPRINT_COLUMN,
    Layout,
    bare_column,
    bare_field,
    short_fingerprint,
)
from rldp.release.randomness import Randomness
from rldp.release.report_labels import drawn_texts
from rldp.release.sampler import Released
from rldp.tables.frame_columns import (
    column_names,
    frame_label,
    narwhal,
    series_labels,
    unknown_column,
)


def is_frame(data: Any) -> bool:
    """Whether data is a pandas, polars or pyarrow frame."""
    try:
        seen = nw.from_native(data, pass_through=True)
    except DuplicateError:  # of columns, about which `column_names` has the error
        return True
    return isinstance(seen, nw.DataFrame | nw.LazyFrame) or isinstance(data, pa.RecordBatch)


def is_reader(data: Any) -> bool:
    """Whether data is a stream of record batches, which can be read once."""
    return isinstance(data, pa.RecordBatchReader)


@discreet
def released_frame(
    p: Released, frame: Any, randomness: Randomness, layout: Layout, *, first: int = 0
) -> Any:
    """The kept columns and the reports, as a frame of the same kind; its first row is `first`."""

    rows: Any = None

    def place(row: int) -> str:
        return row_place(first + (row if rows is None else int(rows[row])))

    frame = with_index_levels(frame, layout.needed)
    available = column_names(frame)
    data = narwhal(frame)
    if isinstance(data, nw.LazyFrame):
        return released_lazily(p, frame, randomness, layout)
    names = read_columns(p)
    for name in (*names, *layout.needed):
        if name not in available:
            raise unknown_column(name, available)
    columns = {name: arrow_column(data[name]) for name in names}
    is_complete = complete_rows(columns, p) if layout.missing == "drop" else np.ones(1, dtype=bool)
    if not is_complete.all():
        rows = np.flatnonzero(is_complete)
        columns = {name: values.filter(pa.array(is_complete)) for name, values in columns.items()}
        data = data.filter(is_complete.tolist())
        frame = frame.filter(pa.array(is_complete)) if is_arrow(frame) else data.to_native()
    record_id = layout.record_id
    ids = None if record_id is None else ids_of(data[record_id], record_id, place)
    s, u = record_codes(columns, p, place=place)
    source = randomness.source(p.fingerprint, ids, s, u)
    texts = drawn_texts(p, s, u, source, labels=layout.labels)
    return assembled(frame, layout, texts, randomness.note(p.name, p.epsilon, p.fingerprint))


def assembled(frame: Any, layout: Layout, texts: Any, note: Mapping[str, Any]) -> Any:
    """The kept columns of a frame and the reports, as a frame of the same kind."""
    if is_arrow(frame):
        return _arrow_frame(frame, layout, texts, note)
    if narwhal(frame).implementation.is_polars():
        return _polars_frame(frame, layout, texts, str(note["fingerprint"]))
    return _pandas_frame(frame, layout, texts, note)


def released_lazily(p: Released, frame: Any, randomness: Randomness, layout: Layout) -> Any:
    """A LazyFrame that draws when it is collected, perhaps twice: so only with a key."""
    kind = f"{type(frame).__module__.split('.')[0].strip('_')} {type(frame).__name__}"
    if "polars" not in kind:
        raise DataError(
            f"Expected a frame in memory, got a {kind}; release the reader of a DuckDB relation, "
            f"as in p.release(relation.to_arrow_reader()), and Spark by rldp.spark.release."
        )
    if layout.record_id is None:
        raise DataError(
            "Expected ids and a key for a LazyFrame, which may be computed twice, with new "
            "reports each time; pass record_id and key, or collect it first."
        )
    import polars as pl

    needed = tuple(dict.fromkeys((*read_columns(p), *layout.needed)))
    kinds = frame.collect_schema()
    for name in needed:
        if name not in kinds:
            raise unknown_column(name, kinds.names())
    labels = no_texts(p)
    is_listed = pa.types.is_dictionary(labels.type)
    reports = pl.Enum(labels.dictionary.to_pylist()) if is_listed else pl.String()
    schema: dict[str, Any] = {name: _plain_polars(kinds[name]) for name in layout.keep}
    schema[layout.column] = reports
    if layout.fingerprint:
        schema[FINGERPRINT_COLUMN] = pl.String()
    return frame.select(needed).map_batches(
        lambda part: released_frame(p, part, randomness, layout),
        schema=schema,
        projection_pushdown=False,  # the record is needed even if only the report is selected
        streamable=True,
    )


def released_reader(p: Released, reader: Any, randomness: Randomness, layout: Layout) -> Any:
    """A reader of record batches that releases each batch when it is read."""
    nothing = released_frame(p, reader.schema.empty_table(), randomness, layout)

    def batches() -> Iterator[Any]:
        first = 0
        for batch in reader:
            yield released_frame(p, batch, randomness, layout, first=first)
            first += batch.num_rows

    return pa.RecordBatchReader.from_batches(nothing.schema, batches())


def no_texts(p: Released) -> Any:
    """An empty column of reports, with its type and the labels of its dictionary."""
    return p.report_labels.texts(p.sampler.empty(0))


@discreet
def released_records(
    p: Released, records: Iterable[Any], randomness: Randomness, layout: Layout
) -> list[dict[str, Any]]:
    """The kept values and the report of every dict."""
    expected = "a frame, an array of codes or dicts"
    rows = list(checked_tuple(records, expected, argument="data"))
    names = read_columns(p)
    for row, record in enumerate(rows):
        if not isinstance(record, Mapping):
            raise DataError(f"Expected {expected}, got {type(record).__name__} in row {row}.")
        for name in (*names, *layout.needed):
            if name not in record:
                raise unknown_column(name, list(record)).within(f"In row {row}")
    columns = {}
    for name in names:
        texts = [record_label(record[name], name, row) for row, record in enumerate(rows)]
        columns[name] = python_texts(texts, name)
    places: Any = range(len(rows))
    if layout.missing == "drop":
        places = np.flatnonzero(complete_rows(columns, p)).tolist()
        columns = {
            name: texts.take(pa.array(places, pa.int64())) for name, texts in columns.items()
        }
        rows = [rows[row] for row in places]

    def place(row: int) -> str:
        return row_place(places[row])

    ids = None
    if layout.record_id is not None:
        ids = python_ids((record[layout.record_id] for record in rows), layout.record_id, place)
    s, u = record_codes(columns, p, place=place)
    source = randomness.source(p.fingerprint, ids, s, u)
    labels = drawn_texts(p, s, u, source, labels=layout.labels).to_pylist()
    by = {FINGERPRINT_COLUMN: short_fingerprint(p.fingerprint)} if layout.fingerprint else {}
    return [
        {**{name: record[name] for name in layout.keep}, layout.column: text, **by}
        for record, text in zip(rows, labels, strict=True)
    ]


def record_label(value: Any, name: str, row: int) -> str | None:
    """The label of a value of a dict, None where it is missing."""
    try:
        return frame_label(value)
    except (DataError, ValueError) as error:  # ValueError: an array has no truth value
        raise DataError(f"In column {name!r}, row {row}: {error}", column=name) from None


def is_arrow(frame: Any) -> bool:
    """Whether a frame is a table or a batch of pyarrow."""
    return isinstance(frame, pa.Table | pa.RecordBatch)


def arrow_column(series: nw.Series[Any]) -> Any:
    """A column as Arrow; values of types that Arrow does not have become labels."""
    native = series.to_native()
    if isinstance(native, pa.ChunkedArray):
        return native
    if series.dtype.is_nested():
        raise DataError(
            f"Expected one value per record in column {series.name!r}, got {series.dtype}; "
            f"unnest it first.",
            column=str(series.name),
        )
    if series.dtype in (nw.Categorical, nw.Enum) and series.implementation.is_pandas_like():
        labels = [frame_label(category) for category in native.cat.categories]
        codes = np.asarray(native.cat.codes)
        indices = pa.array(codes, mask=codes < 0)
        return pa.DictionaryArray.from_arrays(indices, python_texts(labels, str(series.name)))
    is_known = series.dtype.is_numeric() or series.dtype in (
        nw.String,
        nw.Boolean,
        nw.Categorical,
        nw.Enum,
    )
    if is_known:
        return arrow_values(series.to_arrow, str(series.name))
    texts = series_labels(series, frame_label)  # as its library writes it
    return python_texts(texts, str(series.name))


def ids_of(series: nw.Series[Any], name: str, place: Place) -> Any:
    """The ids in a column of a frame, as Arrow text or integers."""
    if series.dtype == nw.Object:
        return python_ids(series.to_list(), name, place)
    native = series.to_native()
    is_arrow = isinstance(native, pa.ChunkedArray)
    values = native if is_arrow else arrow_values(series.to_arrow, name)
    return id_values(values, name, place)


def with_index_levels(frame: Any, names: Iterable[str]) -> Any:
    """A pandas frame with these levels of its index as columns; other frames are unchanged."""
    index = getattr(frame, "index", None)
    levels = [name for name in names if name in getattr(index, "names", ())]
    wanted = [name for name in dict.fromkeys(levels) if name not in frame.columns]
    return frame.reset_index(level=wanted) if wanted else frame


def _arrow_frame(frame: Any, layout: Layout, texts: Any, note: Mapping[str, Any]) -> Any:
    fields = [bare_field(frame.schema.field(name)) for name in layout.keep]
    columns = [bare_column(frame.column(field.name), field.type) for field in fields]
    fields.append(pa.field(layout.column, texts.type))
    columns.append(texts)
    if layout.fingerprint:
        fields.append(pa.field(FINGERPRINT_COLUMN, pa.string()))
        columns.append(pa.repeat(short_fingerprint(note["fingerprint"]), len(texts)))
    schema = pa.schema(fields, metadata={"rldp": json.dumps(note)})
    return type(frame).from_arrays(columns, schema=schema)


def _polars_frame(frame: Any, layout: Layout, texts: Any, fingerprint: str) -> Any:
    import polars as pl

    series = pl.Series(layout.column, texts)
    if pa.types.is_dictionary(texts.type):
        series = series.cast(pl.Enum(texts.dictionary.to_pylist()))
    kept = [frame[name].cast(_plain_polars(frame.schema[name])) for name in layout.keep]
    out = pl.DataFrame([*kept, series])
    if not layout.fingerprint:
        return out
    short = pl.lit(short_fingerprint(fingerprint), pl.String())
    return out.with_columns(short.alias(FINGERPRINT_COLUMN))


def _plain_polars(kind: Any) -> Any:
    """The type of a kept column; text instead of a type that lists labels."""
    import polars as pl

    return pl.String() if kind in (pl.Categorical, pl.Enum) else kind


def _pandas_frame(frame: Any, layout: Layout, texts: Any, note: Mapping[str, Any]) -> Any:
    import pandas as pd

    if pa.types.is_dictionary(texts.type):
        values = pd.Categorical.from_codes(
            texts.indices.to_numpy(), categories=texts.dictionary.to_pylist()
        )
    else:
        values = pd.array(texts.to_pylist(), dtype="str")
    columns = {name: _plain_pandas(frame[name]) for name in layout.keep}
    columns[layout.column] = values
    if layout.fingerprint:
        columns[FINGERPRINT_COLUMN] = [short_fingerprint(note["fingerprint"])] * len(texts)
    out = pd.DataFrame(columns, index=pd.RangeIndex(len(texts)))
    out.attrs = {"rldp": dict(note)}
    return out


def _plain_pandas(series: Any) -> Any:
    """The values of a kept column, without its index and without unused categories."""
    import pandas as pd

    if isinstance(series.dtype, pd.CategoricalDtype):
        return series.array.remove_unused_categories()
    if isinstance(series.dtype, pd.ArrowDtype):
        values = pa.chunked_array([pa.array(series.array)])
        kind = bare_field(pa.field("", series.dtype.pyarrow_dtype)).type
        return pd.arrays.ArrowExtensionArray(bare_column(values, kind))
    return series.array.copy()
