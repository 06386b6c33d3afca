"""The ids of records as texts, some at a time: an array of bytes, and where each text is in it.

An id that is an integer is its decimal text. Eight digits are found at once: a word of 64 bits is
split into two numbers of four digits, four of two digits, and eight digits, one in each byte.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rldp._types import Integers, Words

_GROUP, _BASE = 8, 10**8  # digits of a word
_POWERS = [10**k for k in range(1, 20)]


class Texts(NamedTuple):
    """Texts inside an array of bytes.

    Args:
        data: the bytes.
        starts: where each text begins.
        sizes: how many bytes it has.
        step: from each start to the next, if all texts have the same size and distance; else 0.
    """

    data: NDArray[np.uint8]
    starts: Integers
    sizes: Integers
    step: int = 0


class RecordIds(Protocol):
    """Ids of records in their order."""

    def texts(self, first: int, n: int) -> Texts:
        """The texts of the ids first, first + 1, ..., first + n - 1."""


class TextIds:
    """Ids that are Arrow texts, one after the other."""

    def __init__(self, texts: Any) -> None:
        """Take a large_string array."""
        _, offsets, data = texts.buffers()
        bounds = np.frombuffer(offsets, dtype=np.int64) if len(texts) else np.zeros(1, np.int64)
        self._bounds = bounds[texts.offset :]
        self._data = np.frombuffer(b"" if data is None else data, dtype=np.uint8)

    def texts(self, first: int, n: int) -> Texts:
        """A part of the buffer."""
        bounds = self._bounds[first : first + n + 1]
        data = self._data[bounds[0] : bounds[-1]]
        sizes = np.diff(bounds)
        is_regular = n > 0 and sizes.min() == sizes.max()
        return Texts(data, bounds[:-1] - bounds[0], sizes, int(sizes[0]) if is_regular else 0)


class IntegerIds:
    """Ids that are integers of 0 or more.

    >>> ids = IntegerIds(np.array([7, 1234567890]))
    >>> data, starts, sizes, _ = ids.texts(0, 2)
    >>> [data[start : start + size].tobytes() for start, size in zip(starts, sizes)]
    [b'7', b'1234567890']
    """

    def __init__(self, values: NDArray[Any]) -> None:
        """Take an array of integers."""
        self._values = values

    def texts(self, first: int, n: int) -> Texts:
        """Digits with zeros before them, which do not belong to the text."""
        values = self._values[first : first + n].astype(np.uint64)
        largest, smallest = (int(values.max()), int(values.min())) if n else (0, 0)
        width = -(-len(str(largest)) // _GROUP)
        digits = np.empty((n, width), dtype="<u8")
        for group in range(width - 1, 0, -1):
            quotient = values // np.uint64(_BASE)
            digits[:, group] = _digits(values - quotient * np.uint64(_BASE))
            values = quotient
        digits[:, 0] = _digits(values)
        sizes = np.full(n, len(str(smallest)), dtype=np.int64)
        for power in _POWERS:
            if smallest < power <= largest:
                sizes += self._values[first : first + n] >= power
        step = _GROUP * width
        starts = np.arange(step, step * (n + 1), step, dtype=np.int64) - sizes
        is_regular = len(str(smallest)) == len(str(largest))
        return Texts(digits.reshape(-1).view(np.uint8), starts, sizes, step if is_regular else 0)


def _digits(values: Words) -> Words:
    """Numbers below 10^8 as eight digits in ASCII, the highest in the lowest byte."""
    word = np.uint64
    high = values // word(10_000)
    pairs = high | ((values - high * word(10_000)) << word(32))
    high = ((pairs * word(10_486)) >> word(20)) & word(0x0000007F_0000007F)
    pairs = high | ((pairs - high * word(100)) << word(16))
    high = ((pairs * word(103)) >> word(10)) & word(0x000F000F_000F000F)
    pairs = high | ((pairs - high * word(10)) << word(8))
    digits: Words = pairs | word(0x30303030_30303030)
    return digits


def record_ids(values: Any) -> RecordIds:
    """The ids in an Arrow array of texts or integers, without missing ones."""
    import pyarrow as pa

    from rldp.tables.arrow_arrays import numbers_of

    if pa.types.is_integer(values.type):
        numbers = numbers_of(values)
        if not len(numbers) or numbers.min() >= 0:
            return IntegerIds(numbers)
        values = values.cast(pa.large_string())
    return TextIds(values)
