"""Columns of records to codes and ids, with errors that name column, row and value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute

from rldp._types import Flags, Integers
from rldp.checks import checked_tuple, is_one_of, shown, unmasked
from rldp.errors import DataError, ParameterError, Remedy
from rldp.release.sampler import Released
from rldp.tables.arrow_arrays import check_lengths
from rldp.tables.csv import MISSING_TEXTS
from rldp.tables.encodings import decimal_point
from rldp.tables.frame_columns import frame_label
from rldp.tables.schema import Column, shown_list
from rldp.tables.tally import MISSING_LABEL, taken_codes

Missing = Literal["error", "drop"]
Place = Callable[[int], str]
Label = Callable[[Any, Column], str | None]

_UNKNOWN, _MISSING = -1, -2


def plain_label(value: Any, column: Column) -> str | None:  # noqa: ARG001  # every `Label` takes it
    """The label of a value of a frame, None where it is missing."""
    return frame_label(value)


def text_label(value: bytes, column: Column) -> str | None:
    """The label in a text file; words such as NA are missing values unless they are labels."""
    text = value.decode("utf-8").strip()
    return None if text in MISSING_TEXTS and text not in column.labels else text


def decimal_label(value: bytes, column: Column) -> str | None:
    """The same in a file with decimal commas: 1,5 is the label 1.5, unless 1,5 is a label."""
    text = text_label(value, column)
    if text is None or "," not in text or text in column.labels:
        return text
    return decimal_point(text)


def row_place(row: int) -> str:
    """How a message names a row of a frame, the first being row 0."""
    return f"row {row}"


def read_columns(p: Released) -> tuple[str, ...]:
    """Names of the columns that the randomiser reads: all of U, and S if it depends on S."""
    sensitive = p.schema.sensitive if p.reads_sensitive else ()
    return tuple(column.name for column in sensitive + p.schema.useful)


def check_missing(missing: object) -> None:
    """Refuse an unknown treatment of missing values."""
    if not is_one_of(missing, get_args(Missing)):
        raise ParameterError(
            f"Expected missing to be 'error' or 'drop', got {shown(missing)}; a missing value is a "
            f"label of its own wherever the protocol was designed with it.",
            argument="missing",
        )


def complete_rows(columns: Mapping[str, Any], p: Released, label: Label = plain_label) -> Flags:
    """Which records have all values that the randomiser needs, shape (n,)."""
    parts = (p.schema.sensitive if p.reads_sensitive else ()) + p.schema.useful
    masks = [
        _has_value(columns[column.name], column, label)
        for column in parts
        if MISSING_LABEL not in column.labels
    ]
    n = len(next(iter(columns.values())))
    return np.asarray(np.logical_and.reduce([np.ones(n, dtype=bool), *masks]))


def _has_value(values: Any, column: Column, label: Label) -> Flags:
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    parts = [np.zeros(0, dtype=bool)]
    for chunk in chunks:
        _check_plain(chunk, column)
        listed = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
        known = [label(entry.as_py(), column) is not None for entry in listed.dictionary]
        parts.append(taken_codes(np.array([*known, False]), listed, column.name))
    return np.concatenate(parts)


def record_codes(
    columns: Mapping[str, Any],
    p: Released,
    *,
    label: Label = plain_label,
    place: Place = row_place,
) -> tuple[Integers, Integers]:
    """Codes s and u of records given by Arrow columns; s = 0 if the randomiser does not read S.

    Args:
        columns: column name → Arrow array or chunked array, for all of `read_columns`.
        p: the protocol with the alphabets.
        label: the text of a value, None where it is missing.
        place: what a message calls the record with a number.
    """

    def codes(part: tuple[Column, ...]) -> Integers:
        total: Integers | None = None
        for column in part:
            found = column_codes(columns[column.name], column, label=label, place=place)
            if total is None:
                total = found
            else:
                total *= len(column.labels)
                total += found
        return np.zeros_like(s) if total is None else total

    if not p.reads_sensitive:
        u = codes(p.schema.useful)
        return np.zeros_like(u), u
    s = codes(p.schema.sensitive)
    return s, codes(p.schema.useful)


def column_codes(
    values: Any, column: Column, *, label: Label = plain_label, place: Place = row_place
) -> Integers:
    """Codes of one column; a missing value has a code only if "(missing)" is a label."""
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    parts, first = [], 0
    for chunk in chunks:
        parts.append(_chunk_codes(chunk, column, label, place, first))
        first += len(chunk)
    return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.int64), *parts])


def _chunk_codes(values: Any, column: Column, label: Label, place: Place, first: int) -> Integers:
    is_declared = pa.types.is_dictionary(values.type)
    _check_plain(values, column)
    if not is_declared:
        values = values.dictionary_encode()
    entries = values.dictionary
    check_lengths(entries, column.name)
    codes = np.full(len(entries) + 1, _UNKNOWN, dtype=np.int64)
    codes[-1] = _code(None, column)
    for i in range(len(entries)):
        codes[i] = _code(label(entries[i].as_py(), column), column)
        if codes[i] < 0 and not is_declared:
            break  # it occurs for certain, and there may be millions of others
    drawn = taken_codes(codes, values, column.name)
    if len(drawn) and drawn.min() < 0:
        row = int(np.argmax(drawn < 0))
        raise _refused(values[row].as_py(), drawn[row] == _MISSING, column, place(first + row))
    return drawn


def _check_plain(values: Any, column: Column) -> None:
    if pa.types.is_nested(values.type):
        raise DataError(
            f"Expected one value per record in column {column.name!r}, got {values.type}; "
            f"unnest it first.",
            column=column.name,
        )


def _code(text: str | None, column: Column) -> int:
    if text is None and MISSING_LABEL not in column.labels:
        return _MISSING
    try:
        return column.code(MISSING_LABEL if text is None else text)
    except DataError:
        return _UNKNOWN


def _refused(value: Any, is_missing: bool, column: Column, place: str) -> DataError:
    known = f"known are {shown_list(column.labels)}"
    if is_missing:
        return DataError(
            f"Expected a value in column {column.name!r}, {place} has no value; {known}.",
            argument="missing",
            column=column.name,
            remedies=[
                Remedy("missing", "drop", "to leave such records out"),
                Remedy("missing", "keep", "in the design to make them a label"),
            ],
        )
    if isinstance(value, bytes):
        value = value.decode("utf-8", "backslashreplace").strip()
    return DataError(
        f"Unknown label {shown(value)} in column {column.name!r}, {place}; {known}.",
        column=column.name,
        label=str(value),
    )


def id_values(values: Any, name: str, place: Place = row_place) -> Any:
    """Ids as an Arrow array of text or integers, so that 7 and "7" are one person."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    kind = values.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    is_text |= pa.types.is_string_view(kind)
    if not (is_text or pa.types.is_integer(kind)):
        raise DataError(
            f"Expected ids as text or integers, column {name!r} has {kind}; cast it first.",
            argument="record_id",
            column=name,
        )
    if is_text:
        kind = pa.large_string()
        values = values.cast(kind)
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks or [pa.nulls(0, kind)])
    is_missing = values.is_null() if values.null_count else None
    if is_missing is None and is_text:
        is_missing = pa.compute.invert(pa.compute.binary_length(values).cast(pa.bool_()))
    if is_missing is not None and pa.compute.any(is_missing).as_py():
        row = int(np.argmax(is_missing.to_numpy(zero_copy_only=False)))
        raise DataError(
            f"Expected an id in column {name!r}, {place(row)} has no value.",
            argument="record_id",
            column=name,
        )
    return values


def python_ids(values: Iterable[Any], name: str, place: Place = row_place) -> Any:
    """Ids given as Python objects, as Arrow text; only text and integers are accepted."""
    texts: list[str] = []
    for row, value in enumerate(values):
        is_number = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if not (is_number or isinstance(value, str)) or value == "":
            raise DataError(
                f"Expected ids as text or integers in column {name!r}, "
                f"got {shown(value)} in {place(row)}.",
                argument="record_id",
                column=name,
            )
        texts.append(str(value))
    return python_texts(texts, name, pa.large_string(), place)


def python_texts(
    texts: Sequence[str | None], name: str, kind: Any = None, place: Place = row_place
) -> Any:
    """Texts of a column as Arrow; each must be valid Unicode."""
    try:
        return pa.array(texts, kind or pa.string())
    except UnicodeEncodeError:
        row = next(i for i, text in enumerate(texts) if text and _has_surrogate(text))
        raise DataError(
            f"Expected valid Unicode in column {name!r}, {place(row)} has {texts[row]!r} with a "
            f"lone surrogate, which is half a character.",
            column=name,
        ) from None


def arrow_values(convert: Callable[[], Any], name: str) -> Any:
    """A column converted to Arrow by its own library; texts must be valid Unicode."""
    try:
        return convert()
    except UnicodeEncodeError as error:
        raise DataError(
            f"Expected valid Unicode in column {name!r}, it has {error.object!r:.60} with a lone "
            f"surrogate, which is half a character.",
            column=name,
        ) from None


def _has_surrogate(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def array_ids(values: Any, n: int) -> Any:
    """Ids of n records that come as an array or a list."""
    expected = f"{n} ids, one for each record"
    unmasked(values, expected, argument="record_id")
    ids = () if isinstance(values, str) else checked_tuple(values, expected, argument="record_id")
    if len(ids) != n or (isinstance(values, np.ndarray) and values.ndim != 1):
        raise DataError(f"Expected {expected}, got {shown(values)}.", argument="record_id")
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        return id_values(pa.array(values), "record_id")
    return python_ids(values, "record_id")
