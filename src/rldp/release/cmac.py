"""AES-256-CMAC (NIST SP 800-38B) of many messages at once.

The blocks of a message are windows of 16 bytes in one long text. Bytes that are not of the message
are masked, and in its last block the padding and the subkey are added, both from tables with an
entry for each number of bytes. So messages of all lengths are encrypted together, block by block.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rldp._types import Integers
from rldp.errors import RldpError
from rldp.release.record_ids import Texts

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
        self, texts: Texts, head: bytes, middles: NDArray[np.uint8] | None = None
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
