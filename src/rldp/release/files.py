"""Release of files of any size: constant memory, and all or nothing."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute

from rldp.counting import unknown_column
from rldp.errors import DataError, FileError, ParameterError
from rldp.release.codes import drawn_reports
from rldp.release.columns import id_texts, plain_label, read_columns, record_codes, text_label
from rldp.release.frames import no_texts
from rldp.release.randomness import Randomness, SecureWords, Simulation, WordSource
from rldp.release.released import Released
from rldp.release.shuffle import Shuffle
from rldp.release.standard_input import standard_input
from rldp.release.targets import sync, whole_file, whole_folder, whole_output
from rldp.release.writers import BatchWriter, plain_type
from rldp.sources import ArrowSource, CsvSource, ParquetSource, Source, file_kind, file_size

Progress = Callable[[int, float | None], object]

_QUOTED = re.compile('[",\\t\\r\\n]')
_STANDARD = "-"  # the standard input or output


def release_file(
    p: Released,
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    keep: str | Iterable[str] = (),
    record_id: str | None = None,
    key: bytes | None = None,
    rng: Simulation | None = None,
    column: str = "y",
    shuffle: bool = False,
    progress: Progress | None = None,
) -> int:
    """Release every record of a file to another file, and say how many there were.

    The target appears, or is replaced, only once it is whole; after an error, an interrupt or a
    kill there is none. The reports are those of `p.release` on the whole file.

    Args:
        p: the protocol, whole or public.
        source: CSV or TSV (also with .gz), Parquet or Arrow by its name, a folder of Parquet files,
            or "-" for CSV from the standard input.
        target: the same kinds by its name; for a folder, a name without extension is a folder with
            the same files; "-" is CSV to the standard output, which gets nothing before the end.
        keep: other columns to keep; S and U only if they are named here.
        record_id: column with each person's id.
        key: secret of at least 16 bytes that goes with it.
        rng: `rldp.Simulation(seed)` for experiments; recorded in the metadata of Parquet and Arrow.
        column: name of the column with the reports.
        shuffle: whether the records come out in random order; else the order is kept, and who
            knows the order of the people knows whose report is whose.
        progress: called after each batch with the number of records and the share of the input
            that is done, None where it is unknown.
    """
    if (record_id is None) != (key is None):
        raise ParameterError("Expected record_id and key together, got only one of them.")
    kept = (keep,) if isinstance(keep, str) else tuple(keep)
    if column in kept or len(set(kept)) < len(kept):
        raise ParameterError(f"Expected different columns in the result, got {(*kept, column)}.")
    job = _Job(p, Randomness(rng, key), kept, record_id, column, progress)
    start, end = Path(source), Path(target)
    if str(target) == _STANDARD:
        kind = "csv"
    elif end.exists() and start.exists() and start.samefile(end):
        raise FileError(f"Expected another target than the source, got {end} for both.")
    elif start.is_dir() and not end.suffix:
        if shuffle:
            raise ParameterError("Expected one file as target of a shuffle, got a folder.")
        return _release_folder(job, start, end)
    else:
        kind = file_kind(end, arrow=True)
    with ExitStack() as stack:
        sources = _sources(start, read_columns(p), stack)
        first = next(sources)
        schema = job.schema(first)
        is_output = str(target) == _STANDARD
        file = stack.enter_context(whole_output() if is_output else whole_file(end))
        compressed = end.suffix.lower() == ".gz"
        writer = BatchWriter(kind, file, schema, compressed=compressed, bare=job.is_bare)
        stack.enter_context(writer)
        if not shuffle:
            job.release(chain([first], sources), schema, writer.write)
            return job.records
        words = SecureWords() if rng is None else rng
        shuffled = Shuffle(schema, words, None if is_output else end.parent, stack)
        job.release(chain([first], sources), schema, shuffled.add)
        for batch in shuffled.batches():
            writer.write(batch)
        return job.records


@dataclass
class _Job:
    """What is to be released, and how much has been."""

    p: Released
    randomness: Randomness
    keep: tuple[str, ...]
    record_id: str | None
    column: str
    progress: Progress | None
    records: int = 0
    source: WordSource | None = field(init=False)

    def __post_init__(self) -> None:
        # one source for all batches; with a key each batch has the source of its ids
        is_keyed = self.record_id is not None
        self.source = None if is_keyed else self.randomness.source(self.p.fingerprint)

    @property
    def needed(self) -> tuple[str, ...]:
        """Columns that must be there."""
        id_column = () if self.record_id is None else (self.record_id,)
        return tuple(dict.fromkeys((*read_columns(self.p), *self.keep, *id_column)))

    @property
    def is_bare(self) -> bool:
        """Whether nothing in the result needs quotes in a text file."""
        texts = (self.column, *self.p.report_labels.all)
        return not self.keep and not any(_QUOTED.search(text) for text in texts)

    def schema(self, source: Source) -> Any:
        """Columns and metadata of the result."""
        for name in self.needed:
            if name not in source.names:
                raise DataError(unknown_column(name, source.names))
            if source.names.count(name) > 1:
                raise FileError(f"Expected column {name!r} once, it is there more than once.")
        kept = [pa.field(name, plain_type(source.field(name).type)) for name in self.keep]
        note = self.randomness.note(self.p.name, self.p.epsilon, self.p.fingerprint)
        fields = [*kept, pa.field(self.column, no_texts(self.p).type)]
        return pa.schema(fields, metadata={"rldp": json.dumps(note)})

    def release(
        self, sources: Iterable[Source], schema: Any, write: Callable[[Any], object]
    ) -> None:
        """Release all records of the sources, batch by batch."""
        for source in sources:
            if not self.schema(source).equals(schema):
                raise DataError(
                    f"Expected the same types in all files, {source.place(0)} differs: "
                    f"{self.schema(source).types} instead of {schema.types}."
                )
            first = 0
            for batch in source.batches(self.needed):
                try:
                    write(self._released(batch, source, schema, first))
                except UnicodeDecodeError as error:
                    if not isinstance(source, CsvSource):
                        raise
                    raise source.not_utf8(batch, error) from None
                first += batch.num_rows
                self.records += batch.num_rows
                if self.progress is not None:
                    self.progress(self.records, source.share())

    def _released(self, batch: Any, source: Source, schema: Any, first: int) -> Any:
        def place(row: int) -> str:
            return source.place(first + row)

        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        label = text_label if source.is_text else plain_label
        s, u = record_codes(columns, self.p, label=label, place=place)
        try:
            kept = [columns[name].cast(schema.field(name).type) for name in self.keep]
            words = self.source or self._keyed(columns[self.record_id or ""], source.is_text, place)
        except pa.ArrowInvalid as error:  # bytes that are no text
            raise FileError(f"Cannot keep what is no UTF-8, near {place(0)}: {error}.") from None
        labels = self.p.report_labels.texts(drawn_reports(self.p.sampler, s, u, words))
        return pa.RecordBatch.from_arrays([*kept, labels], schema=schema)

    def _keyed(self, ids: Any, is_text: bool, place: Callable[[int], str]) -> WordSource:
        if is_text:
            ids = pa.compute.utf8_trim_whitespace(ids.cast(pa.string()))
        texts = id_texts(ids, self.record_id or "", place)
        return self.randomness.source(self.p.fingerprint, texts)


def _release_folder(job: _Job, start: Path, end: Path) -> int:
    """Release every file of a folder to a file of the same name in another."""
    with whole_folder(end) as part:
        for path in _parquet_files(start):
            with ExitStack() as stack:
                source = ParquetSource(path, stack, read_columns(job.p))
                schema = job.schema(source)
                file = stack.enter_context((part / path.name).open("xb"))
                with BatchWriter("parquet", file, schema) as writer:
                    job.release([source], schema, writer.write)
                sync(file)
    return job.records


def _sources(start: Path, names: Sequence[str], stack: ExitStack) -> Iterator[Source]:
    """What is to be read: one file, the standard input, or the files of a folder one by one."""
    if str(start) == _STANDARD:
        yield CsvSource(Path("standard input"), stack, standard_input(stack))
    elif start.is_dir():
        for path in _parquet_files(start):
            yield ParquetSource(path, stack, names)
    else:
        kind = file_kind(start, arrow=True)
        file_size(start)
        if kind == "parquet":
            yield ParquetSource(start, stack, names)
        elif kind == "arrow":
            yield ArrowSource(start, stack)
        else:
            yield CsvSource(start, stack)


def _parquet_files(folder: Path) -> list[Path]:
    """The Parquet files of a folder by name, without hidden ones and notes such as _SUCCESS."""
    paths = sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lower() in (".parquet", ".pq") and path.name[0] not in "._"
    )
    if not paths:
        raise FileError(f"{folder}: expected Parquet files in the folder, there are none.")
    return paths
