"""All of it: tasks → rows → pictures, claims and the index."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from rldp._types import StepProgress
from rldp.errors import FileError, ParameterError
from rldp.io.atomic_files import write_text
from rldp.reproduction import claims, index_pages
from rldp.reproduction.curves import AS_PRINTED, FULL, QUICK, VERSIONS, Row
from rldp.reproduction.figure import Figure
from rldp.reproduction.figures import FIGURES
from rldp.reproduction.store import HERE, Backend, Store, finish

WORK = "work"  # folder of finished tasks
_FEW_PICTURES = 2  # that are not worth a process
_TITLE = "protocols on tables"  # of the progress

Picture = tuple[Figure, list[Row], str, list[Path]]


@dataclass(frozen=True)
class Reproduction:
    """What was made.

    Args:
        folder: where everything is.
        files: all that were written, tables and pictures.
        computed: parts that were not there before.
        seconds: that it took.
        verdicts: the claims that could be judged.
    """

    folder: Path
    files: tuple[Path, ...]
    computed: int
    seconds: float
    verdicts: tuple[claims.Verdict, ...]


def reproduce(
    names: Collection[str] = (),
    folder: str | Path = "rldp-figures",
    *,
    quick: bool = False,
    versions: Sequence[str] = VERSIONS,
    only: Collection[str] = (),
    backend: Backend = HERE,
    progress: Callable[[str], StepProgress | None] | None = None,
) -> Reproduction:
    """Make figures of the paper: tables, pictures, and an index with a verdict on every claim.

    Args:
        names: labels of figures as the paper has them, such as "opt"; all if none is given.
        folder: where they go; what was finished there is not computed again.
        quick: from few tables, to look at first.
        versions: "paper", as printed, and "beyond", with what is gained.
        only: protocols to compute anew, such as "optimal"; rows of others are kept as they are.
        backend: where tasks are computed; by default in as many processes as there are cores.
        progress: called with a title; gives what to tell the numbers of parts done and to do.
    """
    started = time.perf_counter()
    chosen, scale = _chosen(names), QUICK if quick else FULL
    for version in versions:
        if version not in VERSIONS:
            raise ParameterError(f"Expected versions among {', '.join(VERSIONS)}, got {version!r}.")
    folder = Path(folder)
    store = Store(folder / WORK)
    files: list[Path] = []
    wanted = [(figure, version) for figure in chosen for version in versions]
    tasks = [task for figure, version in wanted for task in figure.tasks(version, scale, only)]
    told = progress(_TITLE) if progress is not None else None
    computed = finish(tasks, store, backend, progress=told)
    pictures: list[Picture] = []
    for figure, version in wanted:
        if not figure.tasks(version, scale, only):
            continue
        rows = figure.rows(version, scale, store.outcome, only)
        table = folder / f"{file_name(figure, version)}.csv"
        if only:
            rows = _merged(rows, table)
        write_text(table, _as_csv(rows))
        drawn = [table.with_suffix(suffix) for suffix in (".png", ".svg")]
        pictures.append((figure, read_rows(table), version, drawn))
        files += [table, *drawn]
    _draw(pictures, backend.processes)
    tables = tables_in(folder)
    verdicts = claims.verdicts(tables)
    seconds = time.perf_counter() - started
    files += index_pages.write(folder, FIGURES, tables, verdicts, quick=quick)
    return Reproduction(folder, tuple(files), computed, seconds, tuple(verdicts))


def _draw(pictures: Sequence[Picture], processes: int) -> None:
    """Draw, in as many processes as compute; a single picture is sooner drawn here."""
    if len(pictures) <= _FEW_PICTURES or processes == 1:
        for figure, rows, version, paths in pictures:
            figure.draw(rows, version, paths)
        return
    from joblib import Parallel, delayed  # it was there to compute with

    calls = (delayed(figure.draw)(*arguments) for figure, *arguments in pictures)
    Parallel(n_jobs=processes)(calls)


def file_name(figure: Figure, version: str) -> str:
    """Of a figure's table and pictures, without the suffix.

    >>> file_name(FIGURES["IRvsGRRCR"], "beyond")
    'irvsgrrcr-beyond'
    """
    return figure.name.lower() + ("" if version == AS_PRINTED else f"-{version}")


def tables_in(folder: Path) -> dict[str, list[Row]]:
    """The rows of all figures in a folder, by file name."""
    names = [file_name(figure, version) for figure in FIGURES.values() for version in VERSIONS]
    paths = {name: folder / f"{name}.csv" for name in names}
    return {name: read_rows(path) for name, path in paths.items() if path.exists()}


def read_rows(path: Path) -> list[Row]:
    """The rows of a table, numbers as numbers."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return [
                {name: _number(text) for name, text in row.items()} for row in csv.DictReader(file)
            ]
    except OSError as error:
        raise FileError(f"Cannot read {path}: {error.strerror or error}.") from None


def _chosen(names: Collection[str]) -> list[Figure]:
    known = {name.lower(): figure for name, figure in FIGURES.items()}
    for name in names:
        if name.lower().removeprefix("fig:") not in known:
            raise ParameterError(f"Expected figures among {', '.join(FIGURES)}, got {name!r}.")
    return [known[name.lower().removeprefix("fig:")] for name in names] or list(FIGURES.values())


def _merged(rows: list[Row], table: Path) -> list[Row]:
    """New rows with those of the table that they do not replace, in the table's order."""
    if not table.exists():
        return rows

    def place(row: Mapping[str, Any]) -> tuple[str, str]:
        return str(row["panel"]), str(row["protocol"])

    replaced = {place(row) for row in rows}
    old = [row for row in read_rows(table) if place(row) not in replaced]
    panels = list(dict.fromkeys(str(row["panel"]) for row in [*old, *rows]))
    return sorted([*old, *rows], key=lambda row: panels.index(str(row["panel"])))


def _as_csv(rows: Sequence[Row]) -> str:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _number(text: str) -> Any:
    try:
        return float(text) if any(c in text for c in ".einf") else int(text)
    except ValueError:
        return text
