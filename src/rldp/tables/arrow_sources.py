"""Parquet and Arrow files in batches of constant size."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet

from rldp.errors import FileError
from rldp.tables.arrow_arrays import is_view, sound_indices, view_lengths
from rldp.tables.arrow_messages import unpacked_bytes
from rldp.tables.parquet_pages import column_pages
from rldp.tables.sources import DAMAGE, Source, damaged

_ROWS = 131_072  # records decoded at a time,
_VALUES = 1 << 19  # values at most, so that wide files need no more memory,
_DECODED = 1 << 26  # and bytes of text
_LARGEST_PAGES = 1 << 28  # bytes of pages that are unpacked at a time; most writers make 1 MB
_LARGEST_BATCH = 1 << 28  # bytes of an Arrow batch and of all dictionaries, if compressed
_LARGEST_FOOTER = 1 << 25  # bytes, which take up to thirty times as much once read
_VARIABLE, _FIXED = "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"


class ParquetSource(Source):
    """Batches of a Parquet file in its own types; some text columns as dictionaries, if asked.

    Memory is bounded by what the pages are, whatever the footer says: a text that stands once in
    a dictionary may be the value of every record.

    Args:
        path: of the file; what messages call it.
        stack: closes it.
        content: the bytes of the file if they are in memory.
    """

    def __init__(self, path: Path, stack: ExitStack, content: bytes | None = None) -> None:
        """Open the file for as long as the stack lasts."""
        self._path, self._stack, self._content = path, stack, content
        self._bytes = stack.enter_context(path.open("rb") if content is None else BytesIO(content))
        self._check_footer()
        self._file = self._opened()
        self._schema = self._file.schema_arrow  # made anew by every call
        self.names: list[str] = list(self._schema.names)
        self._done = 0

    def _check_footer(self) -> None:
        size = self._bytes.seek(0, os.SEEK_END)
        self._bytes.seek(max(0, size - 8))
        footer = int.from_bytes(self._bytes.read(4), "little")
        if _LARGEST_FOOTER < footer < size:  # else it is none
            raise FileError(
                f"{self._path}: expected a footer of at most {_LARGEST_FOOTER >> 20} MB, it has "
                f"{footer >> 20} MB; write the file again with fewer row groups."
            )

    def _opened(self, dictionaries: Sequence[str] = (), metadata: Any = None) -> Any:
        try:
            # a buffer filled in advance would stay in memory until the end of the file
            return self._stack.enter_context(
                pa.parquet.ParquetFile(
                    self._path if self._content is None else pa.BufferReader(self._content),
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
        plain = [name for name in names if name not in dictionaries]
        for batch in self._whole_batches(file, names, plain):
            for part in bounded_slices(batch, plain):
                self._done += part.num_rows
                yield part

    def _whole_batches(
        self, file: Any, names: Sequence[str], plain: Collection[str]
    ) -> Iterator[Any]:
        try:
            for group in range(file.metadata.num_row_groups):
                rows = self._rows(group, names, plain)
                yield from file.iter_batches(rows, [group], columns=list(names))
        except DAMAGE as error:
            if isinstance(error, FileError):
                raise
            raise damaged(self._path, "Parquet", error) from None

    def _rows(self, group: int, names: Sequence[str], plain: Collection[str]) -> int:
        """Records of a row group to decode at a time; an error if its pages are too large."""
        rows, largest = _rows(names), 0
        chunks = self._file.metadata.row_group(group)
        for place in range(chunks.num_columns):
            chunk, leaf = chunks.column(place), self._file.schema.column(place)
            name = leaf.path if leaf.path in names else leaf.path.partition(".")[0]
            if name not in names:
                continue
            pages = column_pages(self._bytes, chunk)
            largest += pages.bytes
            if largest > _LARGEST_PAGES:
                raise FileError(
                    f"{self._path}: expected pages of at most {_LARGEST_PAGES >> 20} MB in the "
                    f"columns that are read, they have {largest >> 20} MB once unpacked; write "
                    f"the file again with smaller pages or row groups."
                )
            width = max(pages.width, leaf.length if leaf.physical_type == _FIXED else 0)
            if leaf.physical_type == _VARIABLE:
                is_text = _is_text(self.schema.field(name).type)
                if pages.repeats or (pages.has_dictionary and not is_text):
                    width = pages.bytes  # as long as a value may be
                elif pages.has_dictionary and name in plain:
                    width = max(width, self._longest_text(group, name, pages.bytes))
            rows = min(rows, _DECODED // max(1, width))
        return max(1, rows)

    def _longest_text(self, group: int, name: str, most: int) -> int:
        """Bytes of the longest text in the dictionary of a row group, `most` if it is unknown."""
        file = self._opened([name], self._file.metadata)
        batch = next(file.iter_batches(1, [group], columns=[name]), None)
        if batch is None or not pa.types.is_dictionary(batch.column(0).type):
            return most
        longest = pa.compute.max(pa.compute.binary_length(batch.column(0).dictionary)).as_py()
        return most if longest is None else int(longest)

    def place(self, row: int) -> str:
        """Rows are counted from 0."""
        return f"row {row} of {self._path}"

    def share(self) -> float:
        """The share of the records."""
        return self._done / max(1, int(self._file.metadata.num_rows))


def bounded_slices(batch: Any, names: Sequence[str]) -> Iterator[Any]:
    """Slices of a batch whose dictionaries and views take little memory as plain values.

    >>> texts = pa.DictionaryArray.from_arrays([0] * 3, ["x" * _DECODED])
    >>> [part.num_rows for part in bounded_slices(pa.record_batch({"a": texts}), ["a"])]
    [1, 1, 1]
    """
    sizes = np.zeros(batch.num_rows, dtype=np.int64)
    for name in names:
        values = batch.column(name)
        if pa.types.is_dictionary(values.type) and _is_text(values.type.value_type):
            lengths = pa.compute.binary_length(values.dictionary).cast(pa.int64())
            indices = sound_indices(values, f"column {name!r}", name)
            sizes += np.asarray(lengths.take(indices).fill_null(0))
        elif is_view(values.type):
            sizes += view_lengths(values)
    if sizes.sum() <= _DECODED:
        yield batch
        return
    start, taken = 0, np.cumsum(sizes)
    while start < batch.num_rows:
        before = taken[start - 1] if start else 0
        end = max(start + 1, int(np.searchsorted(taken, before + _DECODED, side="right")))
        yield batch.slice(start, end - start)
        start = end


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
            pa.types.is_string_view,
            pa.types.is_binary_view,
        )
    )


class ArrowSource(Source):
    """Batches of an Arrow IPC file or stream."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        """Open the file for as long as the stack lasts."""
        self._path = path
        self._check_size(stack)
        file = stack.enter_context(pa.OSFile(str(path)))
        try:
            self._reader = stack.enter_context(self._open(file))
        except DAMAGE as error:
            raise damaged(path, "Arrow", error) from None
        self.names: list[str] = list(self._reader.schema.names)
        self._file, self._size = file, file.size()
        self._share = 0.0

    def _check_size(self, stack: ExitStack) -> None:
        """Refuse batches that are small on disk and would not be in memory."""
        try:
            unpacked = unpacked_bytes(stack.enter_context(self._path.open("rb")))
        except OSError as error:
            raise damaged(self._path, "Arrow", error) from None
        if unpacked > _LARGEST_BATCH:
            raise FileError(
                f"{self._path}: expected dictionaries and batches of at most "
                f"{_LARGEST_BATCH >> 20} MB, they have {unpacked >> 20} MB once unpacked; write "
                f"the file again in smaller batches, or as Parquet."
            )

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
        dictionaries: Sequence[str] = (),
    ) -> Iterator[Any]:
        """Record batches of these columns; types are those of the file."""
        plain = [name for name in names if name not in dictionaries]
        for whole in self._whole_batches():
            batch = whole.select(list(names))
            self._check_values(batch)
            step = _rows(names)
            for start in range(0, batch.num_rows, step):
                yield from bounded_slices(batch.slice(start, step), plain)

    def _check_values(self, batch: Any) -> None:
        """Refuse offsets outside of a column, on which Arrow would crash, and text that is none.

        Indices of dictionaries are left to those who use them.
        """
        for name, values in zip(batch.schema.names, batch.columns, strict=True):
            try:
                values.validate()
                is_listed = pa.types.is_dictionary(values.type)
                (values.dictionary if is_listed else values).validate(full=True)
            except pa.ArrowException:
                fault = FileError(
                    f"{self._path}: expected a sound Arrow file, column {name!r} is damaged, or "
                    f"its text is not UTF-8.",
                    column=name,
                )
            else:
                continue
            raise fault  # not chained: Arrow's error may quote records

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
