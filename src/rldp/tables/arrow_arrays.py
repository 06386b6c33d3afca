"""NumPy arrays and texts to Arrow and back.

`pa.array` and `to_numpy` import pandas wherever it is installed, which takes a quarter of a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from rldp.errors import DataError, TooLargeError

_COUNTABLE = (  # types of plain Arrow columns that have a fast path
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_string_view,
    pa.types.is_binary_view,
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_float32,
    pa.types.is_float64,
    pa.types.is_decimal128,
    pa.types.is_date,
    pa.types.is_null,
)
_TEXTS = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
)
_LONGEST_LABEL = 1 << 20  # bytes, as many as a header may have
_MOST_BYTES = 2**31 - 1  # what the offsets of an Arrow array can count


def numbers_of(integers: Any) -> NDArray[Any]:
    """Arrow integers without nulls as a view.

    >>> numbers_of(pa.array([5, 6, 7], pa.int8())[1:])
    array([6, 7], dtype=int8)
    """
    if not len(integers):
        return np.zeros(0, dtype=str(integers.type))
    numbers = np.frombuffer(integers.buffers()[1], dtype=str(integers.type))
    return numbers[integers.offset : integers.offset + len(integers)]


def sound_indices(values: Any, where: str, column: str | None = None) -> Any:
    """The indices of a dictionary array, refused if one has no entry; damaged files have such."""
    try:
        pa.DictionaryArray.from_arrays(values.indices, values.dictionary)  # which looks at each
    except pa.ArrowIndexError as error:
        raise DataError(
            f"Expected indices of {len(values.dictionary)} dictionary entries in {where}, "
            f"got others: {error}; the data are damaged.",
            column=column,
        ) from None
    return values.indices


def check_lengths(entries: Any, column: str) -> None:
    """Refuse texts so long that they are no labels, before anything is made of them."""
    kind = entries.type
    if is_view(kind):
        longest = int(view_lengths(entries).max(initial=0))
    elif any(is_kind(kind) for is_kind in _TEXTS):
        longest = pa.compute.max(pa.compute.binary_length(entries)).as_py() or 0
    else:
        return
    if longest > _LONGEST_LABEL:
        raise DataError(
            f"Expected labels of at most {_LONGEST_LABEL >> 20} MB in column {column!r}, got one "
            f"of {longest:,} bytes; leave the column out.",
            column=column,
        )


def is_view(kind: Any) -> bool:
    """Whether values of a type are views, many of which may show the same long text."""
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def view_lengths(views: Any) -> NDArray[Any]:
    """Bytes of each text of an array of views."""
    if not len(views):
        return np.zeros(0, np.int32)
    lengths = np.frombuffer(views.buffers()[1], np.int32)[4 * views.offset :: 4][: len(views)]
    return np.where(np.asarray(views.is_valid()), lengths, 0)


def integer_array(numbers: NDArray[Any]) -> Any:
    """Integers as an Arrow array that shares their memory.

    >>> integer_array(np.array([3, 4], dtype=np.uint16)).type
    DataType(uint16)
    """
    whole = np.ascontiguousarray(numbers)
    kind = pa.from_numpy_dtype(whole.dtype)
    return pa.Array.from_buffers(kind, whole.size, [None, pa.py_buffer(whole)])


def text_array(texts: Sequence[str]) -> Any:
    """A few texts as an Arrow array; longer columns are better left to `pa.array`.

    >>> text_array(["a", "", "ü"]).to_pylist()
    ['a', '', 'ü']
    """
    return binary_array([text.encode() for text in texts], pa.string())


def binary_array(texts: Sequence[bytes], kind: Any = None) -> Any:
    """The same from bytes, as text only where the type says so."""
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    if ends[-1] > _MOST_BYTES:
        raise TooLargeError(f"Expected labels of at most 2 GB in all, got {int(ends[-1])} bytes.")
    buffers = [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(texts))]
    return pa.Array.from_buffers(kind or pa.binary(), len(texts), buffers)


def is_countable(kind: Any) -> bool:
    """Whether Arrow can list the values of a type in a dictionary."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return any(is_kind(kind) for is_kind in _COUNTABLE)
