"""Release of files of any size: constant memory, and all or nothing."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from rldp._types import RecordProgress
from rldp.checks import checked_path, discreet
from rldp.errors import FileError, ParameterError, Remedy
from rldp.io.atomic_files import sync, whole_file, whole_folder, whole_output
from rldp.release.batches import BatchRelease, Records
from rldp.release.encode import Missing
from rldp.release.formulas import escaped
from rldp.release.interface import Released
from rldp.release.keeping import Layout
from rldp.release.questionnaire import BlockBatches, ReleasingBlocks, checked_layout
from rldp.release.randomness import (
    Per,
    Randomness,
    SecureWords,
    Simulation,
    WordSource,
    check_ids_with_key,
)
from rldp.release.shuffle import Shuffle, random_order
from rldp.release.writers import BatchWriter
from rldp.tables.file_formats import Format, file_format, is_compressed, is_text
from rldp.tables.record_files import STANDARD, open_records, parquet_files
from rldp.tables.sources import Source


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
        fingerprint=is_text(end.form) if fingerprint is None else fingerprint,
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
