"""What the loops take and give. Wrong arguments are a ValueError or a TypeError.

Arrays are of aligned native integers. They are in C order, but `s`, `u` and `words` may have
strides.
"""

from typing import Any

from numpy.typing import NDArray

from rldp._types import Integers, Words

def count(counts: Integers, /, *columns: Any) -> int:
    """Add 1 to the cell of each record in `counts`, which is the sum of its columns' parts.

    Args:
        counts: of the cells.
        columns: four arguments for each of 1 to 21 columns. The indices of its records; a bit for
            each index that is 0 for a missing value, or None; the number of the first such bit; and
            64 bits for each entry that an index may have and, at the end, for a missing value.

    Returns:
        The number of records that were counted: all, or some of those before the first one whose
        index or cell is out of range.
    """

def draw(
    limits: Words,
    pairs: NDArray[Any],
    bucket_bits: int,
    s: NDArray[Any],
    n_s: int,
    u: NDArray[Any],
    n_u: int,
    words: Words,
    out: Integers,
    /,
) -> int:
    """Write an output for each record into `out`; row s·n_u + u has its 2^bucket_bits buckets.

    Codes have 64 bits. Returns the number of records that were drawn: all, or those before the
    first one with a code that is not in its range.
    """

def label_lists(columns: int, /) -> Any:
    """Lists without labels, one for each of 1 to 255 wanted columns."""

def scan(
    lists: Any,
    text: bytearray,
    size: int,
    delimiter: int,
    column_of: bytes,
    numbers: NDArray[Any],
    /,
) -> tuple[int, int, bool]:
    """Number the labels of the records in `text[:size]`, which has 8 more bytes after it.

    Args:
        lists: of the labels that are known; new ones are added.
        text: begins with a record.
        size: its bytes.
        delimiter: of fields.
        column_of: a byte for each field of a record, the number of its wanted column from 1 on,
            or 0.
        numbers: 32 bits; receives for each column the numbers of its labels, record by record.

    Returns:
        The number of records, the bytes that they have, and whether all that is left is the
        beginning of a record or has no room in `numbers`; False if the next record is irregular
        or a label of it has no room in its list.
    """

def listed(lists: Any, column: int, first: int, /) -> list[bytes]:
    """The labels of a column from the number `first` on, as they are written."""
