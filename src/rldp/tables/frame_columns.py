"""Frames of every library: their columns by name, and their values as labels."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa
from narwhals.exceptions import DuplicateError

from rldp.checks import checked_texts
from rldp.errors import DataError
from rldp.tables.schema import label_text, shown_list

Names = str | Sequence[str]


def with_reader(data: Any) -> Any:
    """A reader instead of an Arrow stream of another library or a Scanner; other data as it is."""
    if _is_of_dataset(data) and hasattr(data, "to_reader"):
        return data.to_reader()
    if not hasattr(data, "__arrow_c_stream__") or _is_arrow(data):
        return data
    try:
        is_frame = nw.from_native(data, pass_through=True) is not data
        return data if is_frame else pa.RecordBatchReader.from_stream(data)
    except (DuplicateError, pa.ArrowException):  # a column, for example; others say what is wrong
        return data


def arrow_batches(frame: Any, names: Sequence[str]) -> Iterable[Any] | None:
    """Record batches of Arrow data with at least these columns; None for other frames."""
    batches: Iterable[Any] | None = None
    if isinstance(frame, pa.RecordBatch):
        batches = [frame]
    elif isinstance(frame, pa.Table):
        batches = frame.select(list(names)).to_batches()
    elif isinstance(frame, pa.RecordBatchReader):
        batches = frame
    elif _is_of_dataset(frame):
        options = {"batch_readahead": 2, "fragment_readahead": 1}  # memory stays constant
        batches = frame.scanner(columns=list(names), **options).to_batches()
    return batches


def _is_arrow(data: Any) -> bool:
    return isinstance(data, pa.Table | pa.RecordBatch | pa.RecordBatchReader)


def _is_of_dataset(data: Any) -> bool:
    """Whether data is a Dataset or Scanner of pyarrow.dataset, which takes long to import."""
    return type(data).__module__ == "pyarrow._dataset"


def narwhal(frame: Any) -> nw.DataFrame[Any] | nw.LazyFrame[Any]:
    """A frame of any library, wrapped by narwhals."""
    if isinstance(frame, pa.RecordBatch):
        frame = pa.Table.from_batches([frame])
    if isinstance(frame, pa.Table):
        frame = frame.unify_dictionaries()  # grouping needs one dictionary per column
    try:
        data: nw.DataFrame[Any] | nw.LazyFrame[Any] = nw.from_native(frame)
    except TypeError:
        raise DataError(
            f"Expected a pandas, polars, pyarrow, DuckDB or Spark frame, or an Arrow stream, "
            f"got {type(frame).__name__}."
        ) from None
    return data


def frame_label(value: Any) -> str | None:
    """Label of one value of a frame, None where it is missing (None, NaN, NaT, NA, masked)."""
    return None if is_missing(value) else label_text(value)


def is_missing(value: Any) -> bool:
    """Whether a value of a frame is None, NaN, NaT, NA of pandas, or hidden by a mask of NumPy."""
    if value is None or value is np.ma.masked:
        return True
    try:
        return bool(value != value)
    except Exception:  # of whatever type; a signalling NaN of decimal, or NA, which is neither
        return isinstance(value, Decimal) or type(value).__name__ == "NAType"


def series_labels(series: nw.Series[Any], label: Callable[[Any], str | None]) -> list[str | None]:
    """Labels of all values of a series, one by one."""
    pairs = zip(series.to_list(), series.is_null().to_list(), strict=True)
    return [None if is_null else label(value) for value, is_null in pairs]


def column_names(frame: Any) -> list[str]:
    """Names of a frame's columns, all text and all different."""
    try:
        if isinstance(frame, pa.RecordBatchReader) or _is_of_dataset(frame):
            names = list(frame.schema.names)
        else:
            names = list(narwhal(frame).collect_schema().names())
    except DuplicateError:  # its message has several lines
        names = list(getattr(frame, "column_names", frame.columns))
    for name in names:
        if not isinstance(name, str):
            raise DataError(
                f"Expected column names as text, got {name!r} of type {type(name).__name__}; "
                f"rename it first, as in frame.columns = frame.columns.map(str)."
            )
        if any("\ud800" <= character <= "\udfff" for character in name):
            raise DataError(
                f"Expected valid Unicode in the name of a column, got {name!r} with a lone "
                f"surrogate, which is half a character."
            )
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise DataError(
            f"Expected different column names, got more than once: {shown_list(repeated)}.",
            column=repeated[0],
        )
    return names


def chosen_columns(
    available: Sequence[str], sensitive: Names, useful: Names | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Sensitive and useful column names, checked against the ``available`` ones.

    ``useful=None`` chooses every column that is not sensitive.

    >>> chosen_columns(["a", "b", "c"], "b", None)
    (('b',), ('a', 'c'))
    """
    s_names = checked_texts(sensitive, "names of columns", argument="sensitive")
    if useful is None:
        u_names = tuple(name for name in available if name not in s_names)
    else:
        u_names = checked_texts(useful, "names of columns", argument="useful")
    if not s_names:
        raise DataError("Expected at least one sensitive column, got none.", argument="sensitive")
    known = set(available)
    for name in s_names + u_names:
        if name not in known:
            raise unknown_column(
                name, available, argument="sensitive" if name in s_names else "useful"
            )
    for name, times in Counter(s_names + u_names).items():
        if times > 1:
            both = name in s_names and name in u_names
            where = "both sensitive and useful" if both else "named twice"
            raise DataError(
                f"Expected each column once, column {name!r} is {where}.",
                argument="useful" if name in u_names else "sensitive",
                column=name,
            )
    return s_names, u_names


def unknown_column(
    name: object, available: Sequence[str], *, argument: str | None = None
) -> DataError:
    """The error for a column that does not exist; it suggests the most similar name."""
    near = difflib.get_close_matches(str(name), available, n=1)
    hint = f"did you mean {near[0]!r}? The" if near else "the"
    return DataError(
        f"Unknown column {name!r}; {hint} columns are {shown_list(available)}.",
        argument=argument,
        column=str(name),
    )
