"""The text of a report ⇄ the bytes that a store keeps.

A report that is one of a list is its number, 4 bytes, highest first. A report that is a set has one
byte for each block, two if there are more than 255 symbols: 0 for silence, z + 1 for symbol z.

A report of a questionnaire is the number of its block, a blank, and the text of the block's
report; its bytes are the number in two bytes, highest first, and those of the report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rldp._types import Integers
from rldp.estimation.moments import moments
from rldp.protocol.public_protocol import PublicProtocol
from rldp.protocol.questionnaire import PublicQuestionnaire

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


class BlockCodes:
    """The same for a questionnaire."""

    def __init__(self, q: PublicQuestionnaire) -> None:
        """Learn the outputs of every block."""
        self.names = q.names
        self._blocks = [ReportCodes(p) for p in q.blocks]

    def packed(self, text: str) -> bytes | None:
        """The bytes of a report, None if the questionnaire has no such report."""
        number, _, report = text.partition(" ")
        block = self._numbers.get(number)
        found = None if block is None else self._blocks[block].packed(report)
        return None if found is None or block is None else block.to_bytes(2) + found

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {str(block): block for block in range(len(self._blocks))}

    def reports(self, packed: Sequence[bytes]) -> Iterator[tuple[int, NDArray[Any]]]:
        """The reports of each block, by its number."""
        by_block: dict[int, list[bytes]] = {}
        for report in packed:
            by_block.setdefault(int.from_bytes(report[:2]), []).append(report[2:])
        for block in sorted(by_block):
            yield block, self._blocks[block].reports(by_block[block])

    def counts(self, groups: Iterable[tuple[bytes, int]]) -> dict[str, Integers]:
        """How often each output of each block occurs, by the names of the blocks with reports."""
        by_block: dict[int, list[tuple[bytes, int]]] = {}
        for packed, times in groups:
            by_block.setdefault(int.from_bytes(packed[:2]), []).append((packed[2:], times))
        return {self.names[j]: self._blocks[j].counts(by_block[j]) for j in sorted(by_block)}
