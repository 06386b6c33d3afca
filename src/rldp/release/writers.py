"""Record batches to files: CSV, Parquet, Arrow."""

from __future__ import annotations

import gzip
from contextlib import ExitStack
from types import TracebackType
from typing import IO, Any, Self

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from rldp.release.keeping import bare_type
from rldp.tables.sources import Format, is_text

_GROUP_ROWS, _GROUP_BYTES = 1 << 20, 64 << 20  # of a row group of Parquet


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
        self._limit = _GROUP_ROWS if form == "parquet" else 0
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
