"""Record batches to files: CSV, Parquet, Arrow."""

from __future__ import annotations

import gzip
from contextlib import ExitStack
from types import TracebackType
from typing import IO, Any, Self

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

_GROUP_ROWS, _GROUP_BYTES = 1 << 20, 64 << 20  # of a row group of Parquet


class BatchWriter:
    """A writer of record batches with one schema.

    Args:
        kind: csv, tsv, parquet or arrow.
        file: where the bytes go.
        schema: columns, and metadata where the kind has a place for them.
        compressed: whether text is compressed by gzip.
        bare: whether no value needs quotes in a text file.
    """

    def __init__(
        self,
        kind: str,
        file: IO[bytes],
        schema: Any,
        *,
        compressed: bool = False,
        bare: bool = False,
    ) -> None:
        """Write what stands before the first batch."""
        self._stack = ExitStack()
        self._schema, self._is_text = schema, kind in ("csv", "tsv")
        self._limit = _GROUP_ROWS if kind == "parquet" else 0
        self._waiting: list[Any] = []
        self._writer: Any
        if self._is_text:
            sink: Any = file
            if compressed:
                sink = self._stack.enter_context(gzip.GzipFile("", "wb", 6, file, mtime=0))
            self._schema = pa.schema([pa.field(f.name, plain_type(f.type)) for f in schema])
            options = pa.csv.WriteOptions(
                delimiter="\t" if kind == "tsv" else ",",
                quoting_style="none" if bare else "needed",
            )
            self._writer = pa.csv.CSVWriter(sink, self._schema, write_options=options)
        elif kind == "parquet":
            # the last column is random: its least and greatest label would tell nothing
            named = schema.names[:-1] or False
            self._writer = pa.parquet.ParquetWriter(file, schema, write_statistics=named)
        else:
            self._writer = pa.ipc.new_file(file, schema)
        self._stack.enter_context(self._writer)

    def write(self, batch: Any) -> None:
        """Write a batch, or put it aside until a row group is full."""
        if self._is_text:
            columns = [column.cast(plain_type(column.type)) for column in batch.columns]
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
        """Nothing more to open."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Write the rest, unless something failed."""
        with self._stack:
            if kind is None:
                self._flush()


def plain_type(kind: Any) -> Any:
    """The type of the values of a dictionary, and any other type itself."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind
