"""Records in random order, in bounded memory.

Every record goes to one of 128 unnamed files on disk, chosen at random, and then every file is read
back, put into random order and written out. All orders are equally likely (Rao 1961, Sandelius
1962), and memory holds one file at a time, a hundredth of all records.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa

from rldp._types import Indices
from rldp.release.randomness import WordSource
from rldp.tables.arrow_arrays import integer_array

_PILE_BITS = 7
_ROWS = 131_072


class Shuffle:
    """Record batches to be given back in random order."""

    def __init__(
        self, schema: Any, source: WordSource, folder: Path | None, stack: ExitStack
    ) -> None:
        """Open unnamed files in a folder until the stack closes them."""
        self._source = source
        self._files: list[IO[bytes]] = []
        for _ in range(2**_PILE_BITS):
            file: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # the stack closes it
            self._files.append(stack.enter_context(file))
        self._writers = [pa.ipc.new_stream(file, schema) for file in self._files]

    def add(self, batch: Any) -> None:
        """Append each record to a random file."""
        words = self._source.words(0, batch.num_rows, 1)[:, 0]
        pile = (words >> np.uint64(64 - _PILE_BITS)).astype(np.int64)
        sorted_batch = batch.take(integer_array(np.argsort(pile, kind="stable")))
        ends = np.cumsum(np.bincount(pile, minlength=2**_PILE_BITS))
        for writer, start, end in zip(self._writers, [0, *ends[:-1]], ends, strict=True):
            if end > start:
                writer.write_batch(sorted_batch.slice(start, end - start))

    def batches(self) -> Iterator[Any]:
        """All records, file by file, each file in random order."""
        for writer, file in zip(self._writers, self._files, strict=True):
            writer.close()
            file.seek(0)
            with pa.ipc.open_stream(file) as reader:
                pile = reader.read_all()
            shuffled = pile.take(integer_array(random_order(pile.num_rows, self._source)))
            yield from shuffled.combine_chunks().to_batches(max_chunksize=_ROWS)
            file.truncate(0)


def random_order(n: int, source: WordSource) -> Indices:
    """A uniformly random permutation of n things, by sorting distinct random words."""
    while True:
        words = source.words(0, n, 1)[:, 0].copy()
        order = np.argsort(words)
        if not np.any(np.diff(words[order]) == 0):
            return order
