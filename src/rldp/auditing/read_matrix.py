"""Channels from elsewhere: matrices in arrays, frames and files, put in the order of a schema."""

from __future__ import annotations

import csv
import math
import os
from collections import Counter
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from rldp._types import Array, Indices
from rldp.channel import Channel, DenseChannel, IndependentChannel
from rldp.checks import checked_path, discreet, is_one_of, shown, unmasked
from rldp.errors import DataError, FileError, ParameterError
from rldp.tables.schema import Schema, label_text, shown_list
from rldp.tables.table import Table

Useful = Literal["dropped", "released"]

MATRIX_FILES = (".npy", ".csv", ".tsv", ".txt")
_ATOL = 1e-6  # of the sums of rows, which are then made 1
_DELIMITERS = "\t;,|"  # in this order, as numbers may have commas and labels bars


class _Matrix(NamedTuple):
    """Numbers as they came, the labels of their rows if there are any, and where they are from."""

    values: Array
    labels: list[str] | None
    name: str


def read_matrix(
    source: str | os.PathLike[str] | ArrayLike | Any,
    table: Table,
    *,
    useful: Useful = "dropped",
    transposed: bool = False,
) -> Channel:
    """A matrix of chances, rows = true values, columns = reports, as a channel over a table.

    Args:
        source: a .npy or CSV file, an array, or a pandas, polars or pyarrow frame. Its shape says
            what it is: (n_s, n_u, n_y) the channel itself; (n_s·n_u, n_y) a row for each cell, u
            fastest; (n_s, n_y) a matrix for S alone, as PRAM has it. Rows may be labelled, in the
            index or in the first columns, by S labels or by "s | u"; they may then come in any
            order. Row labels 0, 1, ... or 1, 2, ... that no schema knows are taken for numbering.
        table: the table whose schema the rows speak of.
        transposed: whether columns are true values and rows reports, as RRreg has it.
        useful: with a matrix for S alone, whether U is dropped or released beside it as it is.

    >>> pram = [[0.9, 0.1], [0.2, 0.8]]
    >>> read_matrix(pram, Table([[5, 5, 5], [5, 5, 5]]), useful="released").matrix.shape
    (2, 3, 6)
    """
    if not is_one_of(useful, get_args(Useful)):
        raise ParameterError(f"Expected useful as 'dropped' or 'released', got {shown(useful)}.")
    if not isinstance(table, Table):
        raise ParameterError(f"Expected a table, got {shown(table)}.", argument="table")
    return _channel(_read(source, table.schema, transposed=transposed), table.schema, useful)


def _turned(source: Any) -> _Matrix:
    """A matrix of reports by true values: a CSV file with names all around, or numbers."""
    if not isinstance(source, str | os.PathLike):
        values = _float_array(source, "matrix")
        if values.ndim != 2:
            raise DataError(f"matrix: expected two axes to turn, got shape {values.shape}.")
        return _Matrix(values.T, None, "matrix")
    path = checked_path(source)
    _check_file(path)
    try:
        rows, _ = _csv_rows(path.read_text(encoding="utf-8-sig"), path)
    except UnicodeDecodeError:
        raise FileError(f"{path}: expected UTF-8 text; save the file as UTF-8.") from None
    if len(rows) < 2 or any(len(row) != len(rows[0]) for row in rows):
        raise DataError(f"{path}: expected names in the first row and column, and rows alike.")
    values = _numbers([row[1:] for row in rows[1:]], str(path))
    return _Matrix(values.T, [_spelling(name) for name in rows[0][1:]], str(path))


@discreet
def _read(source: Any, schema: Schema, *, transposed: bool = False) -> _Matrix:
    if transposed:
        return _turned(source)
    if isinstance(source, str | os.PathLike):
        path = checked_path(source)
        read = {".npy": _from_npy}.get(path.suffix.lower(), _from_csv)
        return read(path, schema)
    import narwhals as nw  # worth loading only here

    frame = nw.from_native(source, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, nw.DataFrame):
        index = getattr(source, "index", None)
        rows = [list(row) for row in frame.iter_rows()]
        if index is None or index.tolist() == list(range(len(rows))):
            return _labelled(rows, list(frame.columns), schema, "matrix")
        return _Matrix(_numbers(rows, "matrix"), [_label(x) for x in index.tolist()], "matrix")
    return _Matrix(_float_array(source, "matrix"), None, "matrix")


def _float_array(values: Any, name: str) -> Array:
    unmasked(values, "a matrix of chances")
    try:
        array = np.asarray(values)
    except ValueError:
        raise DataError(f"{name}: expected rows of one length, got a ragged list.") from None
    if array.dtype.kind == "O" and array.ndim == 2:
        return _numbers(array.tolist(), name)
    if array.dtype.kind not in "biuf":
        raise DataError(f"{name}: expected numbers, got an array of type {array.dtype}.")
    return array.astype(float)


# --- files ---------------------------------------------------------------------------------------


def _from_npy(path: Path, _: Schema) -> _Matrix:
    _check_file(path)
    try:
        with path.open("rb") as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
    except (ValueError, OSError, EOFError, MemoryError) as error:
        reason = " ".join(str(error).split())[:200].rstrip(".")
        raise FileError(f"{path}: expected a whole .npy file of numbers: {reason}.") from None
    return _Matrix(_float_array(array, str(path)), None, str(path))


def _from_csv(path: Path, schema: Schema) -> _Matrix:
    if path.suffix.lower() not in MATRIX_FILES:
        expected = ", ".join(MATRIX_FILES)
        raise FileError(f"{path}: expected a matrix in a file {expected}, got {path.suffix!r}.")
    _check_file(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise FileError(f"{path}: expected UTF-8 text; save the file as UTF-8.") from None
    except OSError as error:
        raise FileError(f"{path}: expected a file that can be read: {error.strerror}.") from None
    rows, lines = _csv_rows(text, path)
    header = None
    if _is_header(rows, schema):
        header, rows, lines = rows[0], rows[1:], lines[1:]
    for row, line in zip(rows, lines, strict=True):
        if len(row) != len(rows[0]):
            raise DataError(
                f"{path}: expected rows of one length, line {line} has {len(row)} fields and "
                f"line {lines[0]} has {len(rows[0])}."
            )
    return _labelled(rows, header, schema, str(path), lines)


def _csv_rows(text: str, path: Path) -> tuple[list[list[str]], list[int]]:
    """Fields without the blanks around them, and the line of each row."""
    rows: list[list[str]] = []
    lines: list[int] = []
    text_lines = text.splitlines()
    first = next((line for line in text_lines if line.strip()), "")
    unquoted = "".join(first.split('"')[::2])
    delimiter = next((mark for mark in _DELIMITERS if mark in unquoted), " ")
    if delimiter == " ":
        text_lines = [" ".join(line.split()) for line in text_lines]
    reader = csv.reader(text_lines, delimiter=delimiter)
    try:
        for row in reader:
            if any(field.strip() for field in row):
                rows.append([field.strip() for field in row])
                lines.append(reader.line_num)
    except csv.Error as error:
        raise FileError(f"{path}: expected CSV, line {reader.line_num}: {error}.") from None
    if not rows:
        raise FileError(f"{path}: expected a matrix, the file is empty.")
    return rows, lines


def _is_header(rows: list[list[str]], schema: Schema) -> bool:
    """Whether the first row names the outputs: it is text, or it would be a row too many."""
    first, others = rows[0], rows[1:]
    if others and (first[0] == "" or len(first) == len(others[0]) - 1):  # as pandas and R write it
        return True
    sizes = {schema.n_s, schema.n_s * schema.n_u}
    is_text = [_number(field) is None for field in first]
    return all(is_text) or (len(rows) not in sizes and len(others) in sizes)


def _check_file(path: Path) -> None:
    if not path.is_file():
        raise FileError(f"{path}: expected a file, there is none.")
    if path.stat().st_size == 0:
        raise FileError(f"{path}: expected a matrix, the file is empty.")


# --- rows and their labels -----------------------------------------------------------------------


def _labelled(
    rows: list[list[Any]],
    header: list[str] | None,
    schema: Schema,
    name: str,
    lines: list[int] | None = None,
) -> _Matrix:
    """Rows of fields with their leading labels taken off."""
    if not rows or not rows[0]:
        raise DataError(f"{name}: expected rows of numbers, got a header only.")
    k = _label_columns(rows, header, schema)
    labels = [" | ".join(_label(field) for field in row[:k]) for row in rows] if k else None
    return _Matrix(_numbers([row[k:] for row in rows], name, lines, k), labels, name)


def _label_columns(rows: list[list[Any]], header: list[str] | None, schema: Schema) -> int:
    """How many of the first columns are labels."""
    is_text = ([_number(field) is None for field in column] for column in zip(*rows, strict=True))
    k = sum(1 for _ in takewhile(all, is_text))
    if k:
        return k if k < len(rows[0]) else 0
    known = {*_codes(_cell_labels(schema)), *_codes(schema.s_labels)}
    first = [_number(row[0]) for row in rows]
    is_known = [_spelling(row[0]) in known for row in rows]
    if header is not None and (header[0] == "" or len(header) < len(rows[0])):
        return 1
    if None in first:
        return 1 if any(is_known) else 0
    # labels that are numbers: the rest sums to 1 without them, and not with them
    sums = [math.fsum(_number(field) or 0.0 for field in row[1:]) for row in rows]
    is_whole = all(abs(total - 1) <= _ATOL for total in sums)
    return 1 if all(is_known) and is_whole and any(first) else 0


def _numbers(
    rows: Sequence[Sequence[Any]], name: str, lines: list[int] | None = None, offset: int = 0
) -> Array:
    values = np.empty((len(rows), len(rows[0]) if len(rows) else 0))
    for i, row in enumerate(rows):
        for j, field in enumerate(row):
            number = _number(field)
            if number is None:
                place = f"row {i}, column {j}"
                if lines is not None:
                    place = f"line {lines[i]}, field {j + offset + 1}"
                raise DataError(f"{name}: expected a number in {place}, got {field!r}.")
            values[i, j] = number
    return values


def _number(field: Any) -> float | None:
    if isinstance(field, str) and "_" in field:
        return None  # float() would read 1_0 as 10
    if field is None or isinstance(field, complex | np.ma.MaskedArray):
        return None
    try:
        # a decimal comma can only stand where the comma is no delimiter
        return float(field.replace(",", ".") if isinstance(field, str) else field)
    except (TypeError, ValueError):
        return None


def _label(value: Any) -> str:
    if isinstance(value, tuple):
        return " | ".join(map(label_text, value))
    return label_text(value)


def _spelling(label: Any) -> str:
    """A label with one blank on each side of its bars."""
    return " | ".join(part.strip() for part in str(label).split("|"))


def _codes(labels: Sequence[str]) -> dict[str, int]:
    return {_spelling(label): code for code, label in enumerate(labels)}


def _cell_labels(schema: Schema) -> tuple[str, ...]:
    return tuple(f"{s} | {u}" for s in schema.s_labels for u in schema.u_labels)


# --- from numbers to a channel -------------------------------------------------------------------


def _channel(matrix: _Matrix, schema: Schema, useful: Useful) -> Channel:
    values, labels, name = matrix
    n_s, n_u = schema.n_s, schema.n_u
    is_on_s = values.ndim == 2 and values.shape[0] == n_s
    is_cells = values.shape[:-1] in ((n_s, n_u), (n_s * n_u,))
    fits = values.size > 0 and (is_on_s or is_cells)
    names = labels
    if fits and labels is None:
        names = list(schema.s_labels if is_on_s else _cell_labels(schema))
    if values.ndim in (2, 3) and values.size:
        _refuse_entries(values, names, name)
        _refuse_transposed(values, name)
    order: Indices | slice = slice(None)
    if labels is not None and values.ndim == 2:
        order = _order(labels, schema, name)
    elif not fits:
        raise DataError(
            f"{name}: expected a matrix of shape ({n_s}, {n_u}, n_y), ({n_s * n_u}, n_y) or "
            f"({n_s}, n_y), got {values.shape}."
        )
    assert names is not None
    rows = values.reshape(len(names), -1)
    sums = rows.sum(axis=1)
    worst = int(np.abs(sums - 1).argmax())
    if abs(sums[worst] - 1) > _ATOL:
        raise DataError(
            f"{name}: expected rows that sum to 1, row {worst} ({names[worst]}) sums to "
            f"{sums[worst]:.9g}, off by {sums[worst] - 1:.3g}."
        )
    rows = (rows / sums[:, None])[order]
    if is_on_s:
        return IndependentChannel(rows, np.eye(n_u) if useful == "released" else np.ones((n_u, 1)))
    if useful == "released" and n_u > 1:
        raise DataError(
            f"{name}: expected a matrix of shape ({n_s}, n_y) for S alone to release U beside it, "
            f"got {values.shape}, which acts on U already."
        )
    return DenseChannel(rows.reshape(n_s, n_u, -1))


def _order(labels: list[str], schema: Schema, name: str) -> Indices:
    """Which row comes first, second, ... in the order of the schema."""
    by_s, by_cell = _codes(schema.s_labels), _codes(_cell_labels(schema))
    given = [_spelling(label) for label in labels]
    known_s, known_cells = (sum(label in codes for label in given) for codes in (by_s, by_cell))
    has_all_cells = len(given) == len(by_cell) > len(by_s)
    is_cells = known_cells > known_s or (known_cells == known_s and has_all_cells)
    codes = by_cell if is_cells else by_s
    places = range(len(given))
    is_numbering = given in ([str(i) for i in places], [str(i + 1) for i in places])
    if not known_s and not known_cells and is_numbering and len(given) == len(codes):
        return np.arange(len(given))
    wrong = [
        f"{what} {shown_list(some)}"
        for what, some in (
            ("unknown:", [label for label in given if label not in codes]),
            ("missing:", [label for label in codes if label not in given]),
            ("more than once:", [label for label, n in Counter(given).items() if n > 1]),
        )
        if some
    ]
    if wrong:
        what = "cell" if is_cells else "value of S"
        raise DataError(f"{name}: expected one row for each {what}; {'; '.join(wrong)}.")
    return np.argsort([codes[label] for label in given])


def _refuse_entries(values: Array, names: list[str] | None, name: str) -> None:
    """Refuse what is no chance at all, naming its place."""
    for wrong, what in ((~np.isfinite(values), "finite numbers"), (values < 0, "chances ≥ 0")):
        if wrong.any():
            place = tuple(int(i) for i in np.argwhere(wrong)[0])
            row = place[0] if len(place) == 2 else place[0] * values.shape[1] + place[1]
            label = f" ({names[row]})" if names else ""
            raise DataError(
                f"{name}: expected {what}, row {row}{label}, column {place[-1]} is {values[place]}."
            )


def _refuse_transposed(values: Array, name: str) -> None:
    def is_one(axis: int) -> bool:
        return bool((np.abs(values.sum(axis=axis) - 1) <= _ATOL).all())

    if is_one(0) and not is_one(-1):
        raise DataError(
            f"{name}: expected rows that sum to 1, but the columns do: this looks like the "
            f"transpose; rows must be inputs and the last axis the outputs. Matrices of RRreg are "
            f"such: read them with transposed=True (--transposed)."
        )
