"""AES-256-CMAC (NIST SP 800-38B) of many messages at once, each of which ends with a record's id.

The ids come as texts, some at a time: an array of bytes, and where each text is in it. An id that
is an integer is its decimal text. Eight digits are found at once: a word of 64 bits is split into
two numbers of four digits, four of two digits, and eight digits, one in each byte.

The blocks of a message are windows of 16 bytes in one long text. Bytes that are not of the message
are masked, and in its last block the padding and the subkey are added, both from tables with an
entry for each number of bytes. So messages of all lengths are encrypted together, block by block.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rldp._types import Integers, Words
from rldp.errors import RldpError

_GROUP, _BASE = 8, 10**8  # digits of a word
_POWERS = [10**k for k in range(1, 20)]


class IdTexts(NamedTuple):
    """IdTexts inside an array of bytes.

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

    def texts(self, first: int, n: int) -> IdTexts:
        """The texts of the ids first, first + 1, ..., first + n - 1."""


class TextIds:
    """Ids that are Arrow texts, one after the other."""

    def __init__(self, texts: Any) -> None:
        """Take a large_string array."""
        _, offsets, data = texts.buffers()
        bounds = np.frombuffer(offsets, dtype=np.int64) if len(texts) else np.zeros(1, np.int64)
        self._bounds = bounds[texts.offset :]
        self._data = np.frombuffer(b"" if data is None else data, dtype=np.uint8)

    def texts(self, first: int, n: int) -> IdTexts:
        """A part of the buffer."""
        bounds = self._bounds[first : first + n + 1]
        data = self._data[bounds[0] : bounds[-1]]
        sizes = np.diff(bounds)
        is_regular = n > 0 and sizes.min() == sizes.max()
        return IdTexts(data, bounds[:-1] - bounds[0], sizes, int(sizes[0]) if is_regular else 0)


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

    def texts(self, first: int, n: int) -> IdTexts:
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
        return IdTexts(digits.reshape(-1).view(np.uint8), starts, sizes, step if is_regular else 0)


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


_BLOCK = 16
_INNER = _BLOCK + 1  # stands for a block that is not the last


class Cmac:
    """CMACs under one key."""

    def __init__(self, key: bytes) -> None:
        """Derive the subkeys."""
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        self._encrypt: Any = Cipher(algorithms.AES(key), modes.ECB()).encryptor().update_into
        whole = _doubled(self._encrypted(_table([bytes(_BLOCK)])).tobytes())
        padded = int.from_bytes(_doubled(whole), "big")
        ends = [padded ^ 0x80 << 8 * (_BLOCK - 1 - size) for size in range(_BLOCK)]
        rows = [number.to_bytes(_BLOCK, "big") for number in ends] + [whole, bytes(_BLOCK)]
        self._ends = _table(rows)  # what is added to a block with so many bytes

    def tags(
        self, texts: IdTexts, head: bytes, middles: NDArray[np.uint8] | None = None
    ) -> NDArray[np.uint64]:
        """The tags of messages, shape (n, 2): the two halves of each, lowest byte first.

        Args:
            texts: the end of each message.
            head: the beginning of all, less than 8 bytes.
            middles: what is between them, shape (n, bytes); at most 16 bytes with the head.
        """
        data, starts, sizes, step = texts
        width = len(head) + (0 if middles is None else middles.shape[1])
        room = np.zeros(width + len(data) + _BLOCK, dtype=np.uint8)
        room[width : width + len(data)] = data
        if step:
            block = self._equal_blocks(room, starts, int(sizes[0]) + width, step, width)
        else:
            block = self._blocks(room, starts, sizes + width, width)
        if any(head):
            block[:, 0] ^= np.frombuffer(head.ljust(8, b"\0"), dtype=np.uint64)
        if middles is not None:
            block.view(np.uint8)[:, len(head) : width] ^= middles
        tags, done = self._encrypted(block), _BLOCK - width
        places = np.flatnonzero(sizes > done)
        while places.size:
            block = self._blocks(room, starts[places] + done + width, sizes[places] - done, 0)
            block ^= tags[places]
            tags[places] = self._encrypted(block)
            done += _BLOCK
            places = np.flatnonzero(sizes > done)
        return tags.view("<u8").astype(np.uint64, copy=False)

    def _encrypted(self, block: NDArray[np.uint64]) -> NDArray[np.uint64]:
        out = np.empty(block.nbytes + _BLOCK, dtype=np.uint8)  # room for one more, as it must be
        if self._encrypt(block.data.cast("B"), out.data) != block.nbytes:
            raise RldpError("The cipher gave fewer words than it should: nothing is released.")
        return out[: block.nbytes].view(np.uint64).reshape(block.shape)

    def _blocks(
        self, room: NDArray[np.uint8], starts: Integers, left: Integers, head: int
    ) -> NDArray[np.uint64]:
        """The blocks that begin at `starts`, masked and with their ends, shape (n, 2)."""
        windows = np.ndarray(len(room) - _BLOCK + 1, "V16", room, strides=(1,))
        block = windows[starts].view(np.uint64).reshape(-1, 2)
        kinds = np.minimum(left, _INNER)
        block &= np.take(_masks(head), kinds, axis=0)
        block ^= np.take(self._ends, kinds, axis=0)
        return block

    def _equal_blocks(
        self, room: NDArray[np.uint8], starts: Integers, left: int, step: int, head: int
    ) -> NDArray[np.uint64]:
        """The same where all have as many bytes left and are `step` bytes apart."""
        windows = np.ndarray(len(starts), "V16", room, int(starts[0]), (step,))
        block = windows.copy().view(np.uint64).reshape(-1, 2)
        kind = min(left, _INNER)
        for half in (0, 1):
            block[:, half] &= _masks(head)[kind, half]
            block[:, half] ^= self._ends[kind, half]
        return block


@cache
def _masks(head: int) -> NDArray[np.uint64]:
    """For each number of bytes in a block the mask of those after the head."""
    kept = [bytes(head) + b"\xff" * (size - head) for size in range(head, _BLOCK + 1)]
    rows = [bytes(_BLOCK)] * head + [row.ljust(_BLOCK, b"\0") for row in kept] + [kept[-1]]
    return _table(rows)


def _table(rows: list[bytes]) -> NDArray[np.uint64]:
    return np.frombuffer(b"".join(rows), dtype=np.uint64).reshape(-1, 2)


def _doubled(block: bytes) -> bytes:
    """Twice a block in the field of 2^128 elements, as CMAC's subkeys are made."""
    number = int.from_bytes(block, "big") << 1
    if number >> 128:
        number ^= (1 << 128) | 0x87
    return number.to_bytes(_BLOCK, "big")
