"""The text of a report ⇄ the bytes that a store keeps.

A report that is one of a list is its number, 4 bytes, highest first. A report that is a set has one
byte for each block, two if there are more than 255 symbols: 0 for silence, z + 1 for symbol z.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rldp._types import Integers
from rldp.estimation.moments import moments
from rldp.protocol.public_protocol import PublicProtocol

_NUMBER = ">u4"


class ReportCodes:
    """Packs the reports of a protocol that can occur, and refuses all others.

    A report of probability zero would make every estimate fail, so it is not taken.
    """

    def __init__(self, p: PublicProtocol) -> None:
        """Learn the outputs of a protocol."""
        self._labels, self._is_set = p.report_labels, p.channel.reports_sets
        possible = moments(p.channel).possible
        self._places: dict[str, bytes] = {}
        if self._is_set:
            n_symbols = len(possible) // len(self._silence)
            self._possible = possible.reshape(-1, n_symbols)
            self._type = np.dtype(">u1" if n_symbols <= 256 else ">u2")
            self._shape: tuple[int, ...] = self._possible.shape
        else:
            self._type, self._shape = np.dtype(_NUMBER), possible.shape
            self._places = {
                text: number.to_bytes(4)
                for number, text in enumerate(self._labels.all)
                if possible[number]
            }

    @property
    def _silence(self) -> list[int]:
        found = self._labels.report("{}")
        assert isinstance(found, list)
        return found

    def packed(self, text: str) -> bytes | None:
        """The bytes of a report, None if the protocol has no such report."""
        if not self._is_set:
            return self._places.get(text)
        found = self._labels.report(text)
        if found is None:
            return None
        symbols = np.array(found) + 1
        if not self._possible[np.arange(len(symbols)), symbols].all():
            return None
        return symbols.astype(self._type).tobytes()

    def reports(self, packed: Sequence[bytes]) -> NDArray[Any]:
        """Reports as `p.release(codes)` gives them, shape (n,) or for sets (n, blocks)."""
        flat = np.frombuffer(b"".join(packed), self._type).astype(np.int64)
        return flat.reshape(-1, self._shape[0]) - 1 if self._is_set else flat

    def counts(self, groups: Iterable[tuple[bytes, int]]) -> Integers:
        """How often each output occurs, or for sets each symbol of each block."""
        total = np.zeros(self._shape, dtype=np.int64)
        for packed, times in groups:
            if self._is_set:
                symbols = np.frombuffer(packed, self._type).astype(np.int64)
                total[np.arange(len(symbols)), symbols] += times
            else:
                total[int.from_bytes(packed)] += times
        return total
