"""Many tables of one file or frame, counted in one pass over its records."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Sequence
from typing import Any

import pyarrow as pa

from rldp._types import StepProgress
from rldp.checks import checked_path, checked_texts, discreet, shown
from rldp.errors import DataError, ParameterError
from rldp.tables.arrow_arrays import is_countable
from rldp.tables.frame_columns import (
    Names,
    arrow_batches,
    chosen_columns,
    column_names,
    frame_label,
    with_reader,
)
from rldp.tables.limits import MOST_CELLS
from rldp.tables.read_table import tally_files
from rldp.tables.record_files import is_remote, remote_records
from rldp.tables.schema import Schema
from rldp.tables.table import Table
from rldp.tables.tally import Levels, Missing, Tally

Block = tuple[str, ...]


def read_tables(
    data: str | os.PathLike[str] | Any,  # Any: a frame of a library that may not be installed
    sensitive: Names,
    blocks: Sequence[Names] | None = None,
    *,
    pairs_within: int = 0,
    missing: Missing = "error",
    levels: Levels | None = None,
    levels_limit: int | None = None,
    cells_limit: int = MOST_CELLS,
    encoding: str | None = None,
    progress: StepProgress | None = None,
) -> dict[Block, Table]:
    """The table of S with each block of useful columns, all from one pass over the records.

    All tables have the same values of S. A record that misses a value counts in the tables whose
    columns it has, where `missing` is "drop".

    Args:
        data: a file or a frame, as in `rldp.read_table`.
        sensitive: name or names of the sensitive columns.
        blocks: for each table the name or names of its useful columns; None for all other columns,
            each by itself.
        pairs_within: also the tables of S with two useful columns, wherever they have at most so
            many cells.
        missing: as in `rldp.read_table`, where the arguments below are explained too.
        levels: of columns whose alphabet is fixed.
        levels_limit: the most different values in a column.
        cells_limit: the most cells of a table.
        encoding: of a text file.
        progress: called after each batch.

    >>> frame = pa.table({"income": ["low", "high"], "sex": ["f", "m"], "age": [30, 40]})
    >>> tables = read_tables(frame, "income")
    >>> list(tables), tables["age",].counts.tolist()
    ([('sex',), ('age',)], [[0, 1], [1, 0]])
    """
    options: dict[str, Any] = {"missing": missing, "levels_limit": levels_limit}

    def tallies(available: Sequence[str]) -> _Tallies:
        given = None if blocks is None else [_names(block) for block in blocks]
        named = None if given is None else list(dict.fromkeys(n for block in given for n in block))
        s_names, u_names = chosen_columns(available, sensitive, named)
        wanted = [(name,) for name in u_names] if given is None else given
        unnamed = u_names if given is None else ()
        return _Tallies(
            s_names, wanted, levels or {}, unnamed, pairs_within, cells_limit, **options
        )

    is_file = isinstance(data, str | os.PathLike)
    if is_file and not is_remote(data):
        return tally_files(checked_path(data), tallies, encoding, progress).tables()
    return _of_frame(remote_records(str(data)) if is_file else data, tallies)


@discreet
def _of_frame(frame: Any, tallies: Callable[[Sequence[str]], _Tallies]) -> dict[Block, Table]:
    frame = with_reader(frame)
    counted = tallies(column_names(frame))
    batches = arrow_batches(frame, counted.names)
    if batches is None:
        counted.add(frame)
    else:
        for batch in batches:
            counted.add_batch(batch)
        counted.settle()
    return counted.tables()


def _names(block: Names) -> Block:
    names = checked_texts(block, "names of columns", argument="blocks")
    if not names:
        raise ParameterError("Expected columns in every block, got none.", argument="blocks")
    return names


class _Tallies:
    """Counts for several tables, fed together as one `Tally` is.

    A pair that nobody asked for by name is forgotten as soon as its table has too many cells.
    """

    def __init__(
        self,
        sensitive: Sequence[str],
        blocks: Sequence[Block],
        levels: Levels,
        unnamed: Collection[str],
        pairs_within: int,
        cells_limit: int,
        **options: Any,
    ) -> None:
        """Start with no records."""
        twice = [block for i, block in enumerate(blocks) if set(block) in map(set, blocks[:i])]
        if twice:
            raise ParameterError(
                f"Expected every block once, got {', '.join(twice[0])} twice.", argument="blocks"
            )
        useful = list(dict.fromkeys(name for block in blocks for name in block))
        self.names = (*sensitive, *useful)
        unknown = [name for name in levels if name not in self.names]
        if unknown:
            raise DataError(
                f"Expected levels of columns that are read, got {shown(unknown[0])}.",
                argument="levels",
            )

        def tally(block: Sequence[str], most: int) -> Tally:
            fixed = {name: levels[name] for name in (*sensitive, *block) if name in levels}
            ids = [name for name in block if name in unnamed]
            return Tally(sensitive, block, levels=fixed, unnamed=ids, cells_limit=most, **options)

        self._s = tally((), cells_limit)
        self._wanted = {block: tally(block, cells_limit) for block in blocks}
        known = {frozenset(block) for block in blocks}
        pairs = [(a, b) for i, a in enumerate(useful) for b in useful[i + 1 :]]
        self._pairs = {
            pair: tally(pair, pairs_within)
            for pair in pairs
            if pairs_within and frozenset(pair) not in known
        }

    @property
    def records(self) -> int:
        """Records so far."""
        return self._s.records

    def add(self, frame: Any, label: Callable[[Any], str | None] = frame_label) -> None:
        """Count the records of a frame."""
        self._each(lambda tally: tally.add(frame, label))

    def add_batch(
        self,
        batch: Any,
        label: Callable[[Any], str | None] = frame_label,
        declared: Collection[str] | None = None,
    ) -> None:
        """Count the records of an Arrow batch, whose columns are made dictionaries once for all."""
        columns = [batch.column(name) for name in self.names]
        is_listed = [pa.types.is_dictionary(column.type) for column in columns]
        if declared is None:
            declared = [name for name, yes in zip(self.names, is_listed, strict=True) if yes]
        coded = [
            column if yes or not is_countable(column.type) else column.dictionary_encode()
            for column, yes in zip(columns, is_listed, strict=True)
        ]
        whole = pa.RecordBatch.from_arrays(coded, names=list(self.names))
        self._each(lambda tally: tally.add_batch(whole, label, declared))

    def settle(self) -> None:
        """Take over what the batches have counted."""
        self._each(Tally.settle)

    def point_decimals(self) -> tuple[str, ...]:
        """Change 1,5 to 1.5 in columns of numbers with decimal commas; returns these columns."""
        changed = [tally.point_decimals() for tally in self._all]
        return tuple(dict.fromkeys(name for names in changed for name in names))

    def tables(self) -> dict[Block, Table]:
        """All tables, over the S values of all records."""
        found = {}
        with warnings.catch_warnings(record=True) as hints:  # of a column in each of its tables
            warnings.simplefilter("always")
            sensitive = self._s.schema().sensitive
            for block, tally in (*self._wanted.items(), *self._pairs.items()):
                schema = Schema(sensitive, tally.schema().useful)
                counts = tally.counts(schema)
                found[block] = Table.from_schema(counts, schema, dropped=tally.dropped)
        told = {str(hint.message): hint for hint in hints}
        for text, hint in told.items():
            warnings.warn(text, hint.category, stacklevel=3)
        return found

    @property
    def _all(self) -> list[Tally]:
        return [self._s, *self._wanted.values(), *self._pairs.values()]

    def _each(self, step: Callable[[Tally], object]) -> None:
        for tally in (self._s, *self._wanted.values()):
            step(tally)
        for pair, tally in list(self._pairs.items()):
            try:
                step(tally)
            except DataError:  # too many cells: whatever else is wrong, single columns have told
                self._pairs.pop(pair)
