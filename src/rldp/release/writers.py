"""Record batches to files: CSV, Parquet, Arrow; and records in random order, in bounded memory.

`Shuffle` sends every record to one of 128 unnamed files on disk, chosen at random. Then every file
is read back, put into random order and written out. All orders are equally likely (Rao 1961,
Sandelius 1962), and memory holds one file at a time, a hundredth of all records.
"""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from rldp._types import Indices
from rldp.release.keeping import bare_type
from rldp.release.randomness import WordSource
from rldp.tables.arrow_arrays import integer_array
from rldp.tables.sources import Format, is_text

GROUP_ROWS, _GROUP_BYTES = 1 << 20, 64 << 20  # of a row group of Parquet


class BatchWriter:
    """A writer of record batches with one schema.

    Args:
        form: of the file.
        file: where the bytes go.
        schema: columns, and metadata if the format can hold them.
        compressed: whether text is compressed by gzip.
        bare: whether no value needs quotes in a text file.
        column: the name of the column with the reports, if there is one.
    """

    def __init__(
        self,
        form: Format,
        file: IO[bytes],
        schema: Any,
        *,
        compressed: bool = False,
        bare: bool = False,
        column: str | None = None,
    ) -> None:
        """Write the header."""
        self._stack = ExitStack()
        self._schema, self._is_text = schema, is_text(form)
        self._limit = GROUP_ROWS if form == "parquet" else 0
        self._waiting: list[Any] = []
        self._writer: Any
        if self._is_text:
            sink: Any = file
            if compressed:
                sink = self._stack.enter_context(gzip.GzipFile("", "wb", 6, file, mtime=0))
            self._schema = pa.schema([pa.field(f.name, bare_type(f.type)) for f in schema])
            options = pa.csv.WriteOptions(
                delimiter="\t" if form == "tsv" else ",",
                quoting_style="none" if bare else "needed",
            )
            self._writer = pa.csv.CSVWriter(sink, self._schema, write_options=options)
        elif form == "parquet":
            # no statistics of the reports, which are random
            named = [name for name in schema.names if name != column] or False
            self._writer = pa.parquet.ParquetWriter(file, schema, write_statistics=named)
        else:
            self._writer = pa.ipc.new_file(file, schema)
        self._stack.enter_context(self._writer)

    def write(self, batch: Any) -> None:
        """Write a batch, or keep it until a row group is full."""
        if self._is_text:
            columns = [column.cast(bare_type(column.type)) for column in batch.columns]
            batch = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        self._waiting.append(batch)
        rows = sum(part.num_rows for part in self._waiting)
        if rows >= self._limit or sum(part.nbytes for part in self._waiting) >= _GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            table = pa.Table.from_batches(self._waiting, schema=self._schema)
            self._waiting = []
            self._writer.write_table(table)

    def __enter__(self) -> Self:
        """The file is already open."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Write the remaining batches, unless an error occurred."""
        with self._stack:
            if kind is None:
                self._flush()


def write_rows(rows: Any, form: Format, file: IO[bytes], *, compressed: bool = False) -> None:
    """Write a whole Arrow table to a file of this format."""
    with BatchWriter(form, file, rows.schema, compressed=compressed) as writer:
        for batch in rows.to_batches():
            writer.write(batch)


PILE_BITS = 7
_ROWS = 131_072


class Shuffle:
    """Record batches to be given back in random order."""

    def __init__(
        self, schema: Any, source: WordSource, folder: Path | None, stack: ExitStack
    ) -> None:
        """Open unnamed files in a folder until the stack closes them."""
        self._source = source
        self._files: list[IO[bytes]] = []
        for _ in range(2**PILE_BITS):
            file: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # the stack closes it
            self._files.append(stack.enter_context(file))
        self._writers = [pa.ipc.new_stream(file, schema) for file in self._files]

    def add(self, batch: Any) -> None:
        """Append each record to a random file."""
        words = self._source.words(0, batch.num_rows, 1)[:, 0]
        pile = (words >> np.uint64(64 - PILE_BITS)).astype(np.int64)
        sorted_batch = batch.take(integer_array(np.argsort(pile, kind="stable")))
        ends = np.cumsum(np.bincount(pile, minlength=2**PILE_BITS))
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
