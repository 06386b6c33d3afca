"""Files in memory: bytes to an Arrow table that counts, releases and is described by columns."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from io import BytesIO, RawIOBase
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rldp.datasets import ADULT_COLUMNS, adult
from rldp.errors import DataError, FileError
from rldp.studio.limits import Limits
from rldp.tables.arrow import ParquetSource
from rldp.tables.csv import MISSING_TEXTS, CsvSource
from rldp.tables.frame_columns import column_names, frame_label
from rldp.tables.sources import Source, damaged, file_format, is_compressed
from rldp.tables.table import Table

ADULT = "adult"
_LISTED = 12  # levels of a column that are named


@dataclass(frozen=True)
class Loaded:
    """Records to work with; `frame` is None for the bundled tables, of which only counts exist."""

    name: str
    frame: Any
    columns: tuple[dict[str, Any], ...]
    records: int

    @property
    def bytes(self) -> int:
        """What the records take in memory."""
        return 0 if self.frame is None else int(self.frame.nbytes)

    def table(self, sensitive: list[str], useful: list[str], missing: Any) -> Table:
        """The counts of some columns."""
        if self.frame is not None:
            return Table.from_frame(self.frame, sensitive, useful, missing=missing)
        if len(sensitive) != 1 or len(useful) != 1:
            raise DataError(
                f"Expected one S and one U column: the bundled data are counts of pairs; "
                f"got {len(sensitive)} and {len(useful)}.",
                argument="sensitive" if len(sensitive) != 1 else "useful",
            )
        return adult(sensitive[0], useful[0])


def bundled() -> Loaded:
    """The Adult data."""
    columns, records = [], 0
    for name in ADULT_COLUMNS:
        other = "sex" if name != "sex" else "race"
        table = adult(name, other)
        counts = table.counts.sum(axis=1).tolist()
        levels = [
            {"label": label, "count": count}
            for label, count in zip(table.schema.s_labels, counts, strict=True)
        ]
        columns.append(_described(name, levels, 0))
        records = table.n
    return Loaded("UCI Adult", None, tuple(columns), records)


def loaded(name: str, content: bytes, limits: Limits) -> Loaded:
    """A file that was dropped, every column described; errors say what is wrong with it."""
    path = Path(name)
    form = file_format(path, ("csv", "tsv", "parquet"))
    if not content:
        raise FileError(f"{name}: expected a header and records, the file is empty.")
    with ExitStack() as stack:
        if form == "parquet":
            source: Source = ParquetSource(path, stack, content)
        else:
            source = _csv(path, stack, content, limits)
        _check_names(path, source.names, limits)
        read = _Unpacked(path, limits)
        frame = read.parquet(source) if form == "parquet" else read.csv(source)
    if frame.num_rows == 0:
        raise FileError(f"{name}: expected records, the file has a header only.")
    found = profiled(name, frame)
    by_name = {column["name"]: column for column in found.columns}
    columns = (by_name.get(each, _without_levels(each, 0)) for each in source.names)
    return replace(found, columns=tuple(columns))


def _check_names(path: Path, names: Sequence[str], limits: Limits) -> None:
    if len(names) > limits.columns:
        raise FileError(f"{path}: expected at most {limits.columns} columns, got {len(names)}.")
    twice = sorted(name for name, times in Counter(names).items() if times > 1)
    if twice or not all(names):
        found = f"{twice[0]!r} more than once" if twice else "one without a name"
        raise FileError(f"{path}: expected columns with different names, got {found}.")


def profiled(name: str, frame: Any) -> Loaded:
    """Records in memory, every column described."""
    columns = tuple(_profile(column, frame[column]) for column in column_names(frame))
    return Loaded(name, frame, columns, frame.num_rows)


def people(table: Table) -> Any:
    """The records behind counts, one row each, as an Arrow table."""
    schema = table.schema
    cells = np.repeat(np.arange(table.counts.size), table.counts.ravel())
    s, u = np.divmod(cells, table.n_u)
    columns = {}
    for part, codes, levels in (
        (schema.sensitive, s, schema.s_levels),
        (schema.useful, u, schema.u_levels),
    ):
        size = table.n_s if part is schema.sensitive else table.n_u
        for place, column in enumerate(part):
            labels = pa.array([levels(code)[place] for code in range(size)])
            columns[column.name] = labels.take(pa.array(codes))
    return pa.table(columns)


@dataclass
class _Unpacked:
    """Reads a file into memory in batches, as long as what is really there is within the limit."""

    path: Path
    limits: Limits
    size: int = 0

    def parquet(self, source: Source) -> Any:
        """Its columns that have levels, one after the other; lists and the like have none."""
        fields = [field for field in source.schema if _has_levels(field.type)]
        columns = [pa.chunked_array(self._column(source, field), field.type) for field in fields]
        try:
            return pa.table(columns, schema=pa.schema(fields))
        except pa.ArrowException as error:  # columns of different lengths
            raise damaged(self.path, "Parquet", error) from None

    def _column(self, source: Source, field: Any) -> Iterator[Any]:
        listed = [field.name] if pa.types.is_dictionary(field.type) else []
        for batch in source.batches([field.name], listed):
            self._add(batch)
            yield batch.column(0)

    def csv(self, source: Source) -> Any:
        """Every value as text without the blanks around it, as `rldp.read_table` has it."""
        schema = pa.schema([(name, pa.string()) for name in source.names])
        batches = []
        for batch in source.batches(source.names):
            batches.append(_texts(batch))
            self._add(batches[-1])
        return pa.Table.from_batches(batches, schema)

    def _add(self, batch: Any) -> None:
        self.size += max(batch.nbytes, batch.num_rows * batch.num_columns)  # nulls take no bytes
        if self.size > self.limits.unpacked:
            raise FileError(_too_large(self.path, self.limits))


class _Measured(RawIOBase):
    """The bytes of a compressed file, up to a limit."""

    def __init__(self, path: Path, stream: Any, limits: Limits) -> None:
        self._path, self._stream, self._limits = path, stream, limits
        self._left = limits.unpacked

    def read(self, size: int = -1) -> bytes:
        return self._counted(self._stream.read(self._left + 1 if size < 0 else size))

    def readline(self, size: int | None = -1) -> bytes:
        return self._counted(self._stream.readline(-1 if size is None else size))

    def _counted(self, block: bytes) -> bytes:
        self._left -= len(block)
        if self._left < 0:
            raise FileError(_too_large(self._path, self._limits))
        return block


def _csv(path: Path, stack: ExitStack, content: bytes, limits: Limits) -> CsvSource:
    stream: Any = BytesIO(content)
    if is_compressed(path):
        stream = _Measured(path, stack.enter_context(gzip.GzipFile(fileobj=stream)), limits)
    return CsvSource(path, stack, stream, "utf-8")


def _has_levels(kind: Any) -> bool:
    return not (pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType))


def _texts(batch: Any) -> Any:
    columns = []
    for values in batch.columns:
        texts = pc.utf8_trim_whitespace(values.cast(pa.string()))
        is_missing = pc.is_in(texts, value_set=pa.array(sorted(MISSING_TEXTS)))
        columns.append(pc.if_else(is_missing, pa.scalar(None, pa.string()), texts))
    return pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _profile(name: str, values: Any) -> dict[str, Any]:
    """How many levels a column has, the most frequent ones, and what is missing."""
    try:
        counted = pc.value_counts(values)
    except pa.ArrowException:  # lists and the like have no levels
        return _without_levels(name, values.null_count)
    levels, missing = [], 0
    order = pc.sort_indices(counted.field("counts"), sort_keys=[("", "descending")])
    kinds = len(counted)
    for entry in counted.take(order[: _LISTED + 2]).to_pylist():
        try:
            label = frame_label(entry["values"])
        except DataError:
            return _without_levels(name, values.null_count)
        if label is not None:
            levels.append({"label": label, "count": entry["counts"]})
    missing = values.null_count
    if pa.types.is_floating(values.type):
        missing += pc.sum(pc.is_nan(values)).as_py() or 0
    return _described(name, levels, missing, kinds - (values.null_count > 0))


def _described(
    name: str, levels: list[dict[str, Any]], missing: int, n_levels: int | None = None
) -> dict[str, Any]:
    count = len(levels) if n_levels is None else n_levels
    listed = sorted(levels, key=lambda level: -level["count"])[:_LISTED]
    return {"name": name, "levels": listed, "n_levels": count, "missing": missing}


def _without_levels(name: str, missing: int) -> dict[str, Any]:
    return {"name": name, "levels": [], "n_levels": None, "missing": missing}


def _too_large(path: Path, limits: Limits) -> str:
    size = limits.unpacked >> 20
    return f"{path}: expected at most {size} MB of records; use the command line, which streams."
