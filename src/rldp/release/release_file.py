"""Release of files of any size: constant memory, and all or nothing."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from rldp._types import RecordProgress
from rldp.checks import checked_path, discreet
from rldp.errors import DataError, FileError, ParameterError, Remedy
from rldp.io.atomic_files import sync, whole_file, whole_folder, whole_output
from rldp.release.encode import (
    Label,
    Missing,
    complete_rows,
    decimal_label,
    id_values,
    plain_label,
    read_columns,
    record_codes,
    text_label,
)
from rldp.release.frames import no_texts
from rldp.release.keeping import FINGERPRINT_COLUMN, Layout, bare_type, short_fingerprint
from rldp.release.mixin import Blocks, ReleasingBlocks, block_name
from rldp.release.questionnaire import (
    BLOCK_COLUMN,
    Drawing,
    block_texts,
    checked_layout,
)
from rldp.release.randomness import (
    Per,
    Randomness,
    SecureWords,
    Simulation,
    WordSource,
    check_ids_with_key,
)
from rldp.release.report_labels import drawn_texts, escaped, escaped_column
from rldp.release.sampler import Released
from rldp.release.writers import BatchWriter, Shuffle, random_order
from rldp.tables.arrow_arrays import integer_array, text_array
from rldp.tables.frame_columns import unknown_column
from rldp.tables.record_files import STANDARD, open_records, parquet_files
from rldp.tables.schema import Column
from rldp.tables.sources import Format, Source, file_format, has_metadata, is_compressed, is_text


def release_file(
    p: Released | ReleasingBlocks,
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    keep: str | Iterable[str] = (),
    record_id: str | None = None,
    key: bytes | None = None,
    per: Per = "person",
    rng: Simulation | None = None,
    column: str = "y",
    keep_anyway: bool = False,
    fingerprint: bool | None = None,
    escape_formulas: bool = False,
    shuffle: bool = False,
    missing: Missing = "error",
    labels: bool | None = None,
    encoding: str | None = None,
    keep_file_names: bool = False,
    replace: bool = False,
    progress: RecordProgress | None = None,
) -> Records:
    """Release every record of a file to another file, and say how many there were.

    The target appears only once it is complete; an error, an interrupt or a kill leaves nothing.
    The reports are those of `p.release` on the whole file.

    Args:
        p: the protocol or questionnaire, whole or public.
        source: CSV or TSV (also with .gz), Parquet or Arrow by its name, a folder of Parquet files,
            or "-" for CSV from the standard input.
        target: a file of one of these formats, by its name. If the source is a folder, a name
            without an extension is a folder with as many files. "-" is CSV to the standard output,
            which gets nothing before the end.
        keep: other columns to keep, with a `KeptColumnsWarning`.
        record_id: column with each person's id.
        key: secret of at least 16 bytes that goes with it.
        per: with a key, the same random bits per "person" or per "record", as in `p.release`.
        rng: `rldp.Simulation(seed)` for experiments; recorded in the metadata of Parquet and Arrow.
        column: name of the column with the reports.
        keep_anyway: allow columns of S and U in `keep`.
        fingerprint: whether the column `protocol` has the first 12 digits of the protocol's
            fingerprint beside every report; None means in text files, which have no metadata.
        escape_formulas: put an apostrophe before texts of a text file that a spreadsheet may take
            for formulas; `estimate` reads such reports too.
        shuffle: whether the reports come out in random order. Otherwise they keep the order of the
            records, and anyone who knows that order can link reports to people.
        missing: "error" refuses records with missing values, "drop" leaves them out and counts them
            in `dropped` of the result. A missing value is no error if the protocol was designed
            with missing="keep", which makes it a label.
        labels: whether the report of a unary protocol names its cells, or is written in bits, as in
            `p.release`.
        encoding: of a text file as in `rldp.read_table`; None recognises it.
        keep_file_names: whether the files of a folder keep their names, which may tell who is in
            them. Otherwise they are numbered in random order.
        replace: whether a file that is the target may be replaced. Its people then have a second
            report: if anyone saw the first, ε does not cover what the two tell together.
        progress: called after each batch with the number of records and the share of the input
            that is done, None if it is unknown.
    """
    check_ids_with_key(record_id, key)
    start = checked_path(source)
    end = _Target.of(start, checked_path(target))
    if escape_formulas:
        _check_escapes(p, end.form)
    each: Any = p  # both have what is asked of them below
    is_questionnaire = isinstance(p, ReleasingBlocks)
    layout = (checked_layout if is_questionnaire else Layout.checked)(
        each,
        keep=keep,
        record_id=record_id,
        column=column,
        keep_anyway=keep_anyway,
        fingerprint=not has_metadata(end.form) if fingerprint is None else fingerprint,
        missing=missing,
    ).written(labels)
    batches = BlockBatches if is_questionnaire else BatchRelease
    job = batches(each, Randomness(rng, key, per), layout, progress, is_escaped=escape_formulas)
    end.check(shuffle=shuffle, keep_file_names=keep_file_names, replace=replace)
    words = SecureWords() if rng is None else rng  # for random orders
    with ExitStack() as stack:
        sources = _sources(start, stack, encoding)
        first = next(sources)
        schema = job.schema(first)
        layout.warn(each, stacklevel=2)  # once the columns are known to exist
        if end.is_folder:
            return _release_folder(job, start, end.path, None if keep_file_names else words)
        writer = end.writer(job, schema, stack, replace=replace)
        if not shuffle:
            job.release(chain([first], sources), schema, writer.write)
            return job.result
        shuffled = Shuffle(schema, words, None if end.is_output else end.path.parent, stack)
        job.release(chain([first], sources), schema, shuffled.add)
        for batch in shuffled.batches():
            writer.write(batch)
        return job.result


@dataclass(frozen=True)
class _Target:
    """Where reports go: a file, a folder of Parquet files, or the standard output as CSV."""

    path: Path
    form: Format
    is_output: bool = False
    is_folder: bool = False

    @classmethod
    def of(cls, source: Path, target: Path) -> _Target:
        if str(target) == STANDARD:
            return cls(target, "csv", is_output=True)
        if target.exists() and source.exists() and source.samefile(target):
            raise FileError(f"Expected another target than the source, got {target} for both.")
        if source.is_dir() and not target.suffix:
            return cls(target, "parquet", is_folder=True)
        return cls(target, file_format(target))

    def check(self, *, shuffle: bool, keep_file_names: bool, replace: bool) -> None:
        """Refuse a shuffle into a folder, file names to keep without one, and a second draw."""
        if self.is_folder and shuffle:
            raise ParameterError(
                "Expected one file as target of a shuffle, got a folder.", argument="shuffle"
            )
        if keep_file_names and not self.is_folder:
            raise ParameterError(
                "Expected a folder as source and as target to keep file names.",
                argument="keep_file_names",
            )
        if self.path.is_file() and not (replace or self.is_output):
            raise FileError(
                f"{self.path} already exists: draw once, and keep the reports. ε does not cover "
                f"two fresh reports of one person, which may tell up to twice the ε that holds "
                f"whatever is true. For other people give another name",
                remedies=[Remedy("replace", value=True, effect="if nobody has seen the first")],
            )

    @discreet
    def writer(
        self, job: BatchRelease, schema: Any, stack: ExitStack, *, replace: bool
    ) -> BatchWriter:
        """A writer of the file, which appears once the stack has closed."""
        whole = whole_output() if self.is_output else whole_file(self.path, is_new=not replace)
        file = stack.enter_context(whole)
        writer = BatchWriter(
            self.form,
            file,
            schema,
            compressed=is_compressed(self.path),
            bare=job.is_bare,
            column=job.layout.column,
        )
        return stack.enter_context(writer)


def _check_escapes(p: Any, form: Format) -> None:
    """Refuse escapes in binary files, and escapes that a reader could not undo."""
    if not is_text(form):
        raise ParameterError(
            "Expected a CSV or TSV file as target of escaped formulas.", argument="escape_formulas"
        )
    for each in getattr(p, "blocks", (p,)):
        labels = each.report_labels
        others = set(labels.all)
        clash = next((text for text in labels.formulas if escaped(text) in others), None)
        if clash is None:
            continue
        raise ParameterError(
            f"Expected reports that an apostrophe leaves different, got {clash!r} and "
            f"{escaped(clash)!r}; write Parquet instead.",
            argument="escape_formulas",
            label=clash,
        )


def _release_folder(job: BatchRelease, start: Path, end: Path, words: WordSource | None) -> Records:
    """Release every file of a folder to a file in another folder.

    With words the files are numbered in random order, and written in that order: otherwise their
    times and inodes would tell the original order.
    """
    paths = parquet_files(start)
    names = [path.name for path in paths]
    if words is not None:
        paths = [paths[place] for place in random_order(len(paths), words)]
        names = [f"part-{number:05d}.parquet" for number in range(len(paths))]
    with whole_folder(end) as part:
        for path, name in zip(paths, names, strict=True):
            with ExitStack() as stack:
                source = open_records(path, stack)
                schema = job.schema(source)
                file = stack.enter_context((part / name).open("xb"))
                with BatchWriter("parquet", file, schema, column=job.layout.column) as writer:
                    job.release([source], schema, writer.write)
                sync(file)
    return job.result


def _sources(start: Path, stack: ExitStack, encoding: str | None) -> Iterator[Source]:
    """The files to be read: one, the standard input, or all files of a folder."""
    for path in parquet_files(start) if start.is_dir() else [start]:
        yield open_records(path, stack, encoding=encoding)


_QUOTED = re.compile('[",\\t\\r\\n]')


class Records(int):
    """How many records were released, and how many were left out for missing values."""

    dropped = 0


@dataclass
class BatchRelease:
    """Record batches to batches of reports, with the number of records so far."""

    p: Released
    randomness: Randomness
    layout: Layout
    progress: RecordProgress | None
    is_escaped: bool = False
    records: int = 0
    dropped: int = 0
    source: WordSource | None = field(init=False)

    def __post_init__(self) -> None:
        """Open the source of randomness."""
        # one source for all batches; with a key, each batch has one made from its ids
        is_keyed = self.layout.record_id is not None
        self.source = None if is_keyed else self.randomness.source(self.p.fingerprint)

    @property
    def result(self) -> Records:
        """The number of records released so far."""
        result = Records(self.records)
        result.dropped = self.dropped
        return result

    @property
    def needed(self) -> tuple[str, ...]:
        """Columns that the input must have."""
        return tuple(dict.fromkeys((*read_columns(self.p), *self.layout.needed)))

    @property
    def listed(self) -> tuple[str, ...]:
        """Those of them that have few different labels and are not released as they are."""
        return tuple(name for name in read_columns(self.p) if name not in self.layout.needed)

    @property
    def is_bare(self) -> bool:
        """Whether nothing in the result needs quotes in a text file."""
        texts = (self.layout.column, *self.p.report_labels.all)
        return not self.layout.keep and not any(_QUOTED.search(text) for text in texts)

    def _fields(self, schema: Any) -> list[Any]:
        """Columns of the result but that of the fingerprint."""
        kind = pa.string() if self.is_escaped else no_texts(self.p).type
        return [*self._kept_fields(schema), pa.field(self.layout.column, kind)]

    def _kept_fields(self, schema: Any) -> list[Any]:
        return [pa.field(name, bare_type(schema.field(name).type)) for name in self.layout.keep]

    @discreet
    def schema(self, source: Source) -> Any:
        """Columns and metadata of the result."""
        for name in self.needed:
            if name not in source.names:
                raise unknown_column(name, source.names)
            if source.names.count(name) > 1:
                raise FileError(
                    f"Expected column {name!r} once, the file has it more than once.", column=name
                )
        note = self.randomness.note(self.p.name, self.p.epsilon, self.p.fingerprint)
        fields = self._fields(source.schema)
        if self.layout.fingerprint:
            fields.append(pa.field(FINGERPRINT_COLUMN, pa.string()))
        return pa.schema(fields, metadata={"rldp": json.dumps(note)})

    @discreet
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
            for batch in source.batches(self.needed, self.listed):
                released = self._released(batch, source, schema, first)
                write(released)
                first += batch.num_rows
                self.records += released.num_rows
                self.dropped += batch.num_rows - released.num_rows
                if self.progress is not None:
                    self.progress(self.records, source.share())
            source.warn()

    def _released(self, batch: Any, source: Source, schema: Any, first: int) -> Any:
        rows: Any = range(batch.num_rows)

        def place(row: int) -> str:
            return source.place(first + int(rows[row]))

        label = _label(source)
        if self.layout.missing == "drop":
            rows = np.flatnonzero(complete_rows(_by_name(batch), self.p, label))
            batch = batch if len(rows) == batch.num_rows else batch.take(integer_array(rows))
        columns = _by_name(batch)
        s, u = record_codes(columns, self.p, label=label, place=place)
        kept = [columns[name].cast(schema.field(name).type) for name in self.layout.keep]
        words = self.source or self._keyed(columns, source.is_text, place, s, u)
        labels = drawn_texts(self.p, s, u, words, labels=self.layout.labels)
        out = [*kept, labels]
        if self.is_escaped:
            out = [escaped_column(values) for values in out]
        if self.layout.fingerprint:
            mark = text_array([short_fingerprint(self.p.fingerprint)])[0]
            out.append(pa.repeat(mark, batch.num_rows))
        return pa.RecordBatch.from_arrays(out, schema=schema)

    def _keyed(
        self, columns: Any, is_text: bool, place: Callable[[int], str], s: Any, u: Any
    ) -> WordSource:
        ids = self._ids(columns, is_text, place)
        return self.randomness.source(self.p.fingerprint, ids, s, u)

    def _ids(self, columns: Any, is_text: bool, place: Callable[[int], str]) -> Any:
        name = self.layout.record_id or ""
        ids = columns[name]
        if is_text:
            ids = pa.compute.utf8_trim_whitespace(ids.cast(pa.string()))
        return id_values(ids, name, place)


@dataclass
class BlockBatches(BatchRelease):
    """Record batches to batches of blocks and reports, for a questionnaire."""

    def __post_init__(self) -> None:
        """Open the source of randomness."""
        self.source = None
        self._q: Blocks = self.p  # type: ignore[assignment]  # a questionnaire, by `release_file`
        self._drawing = Drawing(self._q, self.randomness, self.layout.missing, self.layout.labels)

    @property
    def is_bare(self) -> bool:
        """Whether nothing in the result needs quotes in a text file."""
        labels = [text for p in self._q.blocks for text in p.report_labels.all]
        texts = (self.layout.column, *(block_name(p.schema) for p in self._q.blocks), *labels)
        return not self.layout.keep and not any(_QUOTED.search(text) for text in texts)

    def _fields(self, schema: Any) -> list[Any]:
        return [
            *self._kept_fields(schema),
            pa.field(BLOCK_COLUMN, pa.string()),
            pa.field(self.layout.column, pa.string()),
        ]

    def _released(self, batch: Any, source: Source, schema: Any, first: int) -> Any:
        columns = _by_name(batch)

        def place(row: int) -> str:
            return source.place(first + row)

        ids = None
        if self.layout.record_id is not None:
            ids = self._ids(columns, source.is_text, place)
        found = self._drawing.drawn(columns, ids, _label(source), place)
        rows = integer_array(found.rows)
        out = [columns[name].take(rows).cast(schema.field(name).type) for name in self.layout.keep]
        out += [block_texts(self._q, found.blocks).cast(pa.string()), found.texts]
        if self.is_escaped:
            out = [escaped_column(values) for values in out]
        if self.layout.fingerprint:
            mark = text_array([short_fingerprint(self._q.fingerprint)])[0]
            out.append(pa.repeat(mark, len(found.rows)))
        return pa.RecordBatch.from_arrays(out, schema=schema)


def _by_name(batch: Any) -> dict[str, Any]:
    return dict(zip(batch.schema.names, batch.columns, strict=True))


def _label(source: Source) -> Label:
    """The function that reads a value of a source as a label."""
    if not source.is_text:
        return plain_label
    if not source.has_decimal_commas:
        return text_label

    def label(value: bytes, column: Column) -> str | None:
        text = decimal_label(value, column)
        if text is not None and text != text_label(value, column):
            source.tell(f"decimal commas of column {column.name!r} were read as points")
        return text

    return label
