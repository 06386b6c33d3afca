"""Parquet and Arrow files in batches of constant size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from rldp.tables.sources import DAMAGE, Source, damaged

_ROWS = 131_072  # records decoded at a time,
_VALUES = 1 << 19  # and values at most, so that wide files need no more memory


class ParquetSource(Source):
    """Batches of a Parquet file in its own types; some text columns as dictionaries, if asked."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        """Open the file for as long as the stack lasts."""
        self._path, self._stack = path, stack
        self._file = self._opened()
        self._schema = self._file.schema_arrow  # made anew by every call
        self.names: list[str] = list(self._schema.names)
        self._done = 0

    def _opened(self, dictionaries: Sequence[str] = (), metadata: Any = None) -> Any:
        try:
            # a buffer filled in advance would stay in memory until the end of the file
            return self._stack.enter_context(
                pa.parquet.ParquetFile(
                    self._path,
                    metadata=metadata,
                    read_dictionary=list(dictionaries),
                    pre_buffer=False,
                )
            )
        except DAMAGE as error:
            raise damaged(self._path, "Parquet", error) from None

    @property
    def schema(self) -> Any:
        """The Arrow schema, with what the file says of itself."""
        return self._schema

    def batches(self, names: Sequence[str], dictionaries: Sequence[str] = ()) -> Iterator[Any]:
        """Record batches of these columns; the dictionaries of the file are kept, if asked."""
        texts = [name for name in dictionaries if _is_text(self.schema.field(name).type)]
        file = self._opened(texts, self._file.metadata) if texts else self._file
        batches = file.iter_batches(batch_size=_rows(names), columns=list(names))
        while True:
            try:
                batch = next(batches, None)
            except DAMAGE as error:
                raise damaged(self._path, "Parquet", error) from None
            if batch is None:
                return
            self._done += batch.num_rows
            yield batch

    def place(self, row: int) -> str:
        """Rows are counted from 0."""
        return f"row {row} of {self._path}"

    def share(self) -> float:
        """The share of the records."""
        return self._done / max(1, int(self._file.metadata.num_rows))


def _rows(names: Sequence[str]) -> int:
    """Records of these columns in a batch."""
    return max(1, min(_ROWS, _VALUES // max(1, len(names))))


def _is_text(kind: Any) -> bool:
    return any(
        is_kind(kind)
        for is_kind in (
            pa.types.is_string,
            pa.types.is_large_string,
            pa.types.is_binary,
            pa.types.is_large_binary,
        )
    )


class ArrowSource(Source):
    """Batches of an Arrow IPC file or stream."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        """Open the file for as long as the stack lasts."""
        self._path = path
        file = stack.enter_context(pa.OSFile(str(path)))
        try:
            self._reader = stack.enter_context(self._open(file))
        except DAMAGE as error:
            raise damaged(path, "Arrow", error) from None
        self.names: list[str] = list(self._reader.schema.names)
        self._file, self._size = file, file.size()
        self._share = 0.0

    @staticmethod
    def _open(file: Any) -> Any:
        if file.read(6) == b"ARROW1":
            file.seek(0)
            return pa.ipc.open_file(file)
        file.seek(0)
        return pa.ipc.open_stream(file)

    @property
    def schema(self) -> Any:
        """The Arrow schema, with what the file says of itself."""
        return self._reader.schema

    def batches(
        self,
        names: Sequence[str],
        dictionaries: Sequence[str] = (),  # noqa: ARG002  # types are those of the file
    ) -> Iterator[Any]:
        """Record batches of these columns."""
        for whole in self._whole_batches():
            batch = whole.select(list(names))
            step = _rows(names)
            for start in range(0, batch.num_rows, step):
                yield batch.slice(start, step)

    def _whole_batches(self) -> Iterator[Any]:
        try:
            if hasattr(self._reader, "num_record_batches"):
                for place in range(self._reader.num_record_batches):
                    self._share = (place + 1) / self._reader.num_record_batches
                    yield self._reader.get_batch(place)
            else:
                for batch in self._reader:
                    self._share = self._file.tell() / self._size
                    yield batch
        except DAMAGE as error:
            raise damaged(self._path, "Arrow", error) from None

    def place(self, row: int) -> str:
        """Rows are counted from 0."""
        return f"row {row} of {self._path}"

    def share(self) -> float:
        """The share of the batches, or of the bytes of a stream."""
        return min(1.0, self._share)
