"""Releases of questionnaires: a block is drawn for each person, then a report of that block alone.

The block comes first and does not read the record: block j is drawn with probability shares[j] /
2^bits, by the highest bits of one random word. With a key the word is a function of the key, the
person's id and the fingerprint of the questionnaire, whatever `per` says, so that a person keeps
the block in every release, also with a changed record. The report is drawn by the exact sampler of
the block's protocol, with words of its own.

Every value that any block could ask for is checked before the first block is drawn: whether a
release fails does not depend on chance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa

from rldp._types import Flags, Indices, Integers
from rldp.checks import checked_tuple, discreet, is_one_of
from rldp.errors import DataError, ParameterError
from rldp.release import frames
from rldp.release.encode import (
    Label,
    Missing,
    Place,
    complete_rows,
    plain_label,
    python_ids,
    python_texts,
    read_columns,
    record_codes,
    row_place,
)
from rldp.release.keeping import FINGERPRINT_COLUMN, Layout, short_fingerprint
from rldp.release.mixin import Blocks, block_name
from rldp.release.randomness import (
    Randomness,
    WordSource,
)
from rldp.release.report_labels import drawn_texts
from rldp.release.sampler import Released
from rldp.tables.arrow_arrays import integer_array, text_array
from rldp.tables.frame_columns import column_names, narwhal, unknown_column, with_reader

BLOCK_COLUMN = "block"
_AT_ONCE = 2**17  # records whose codes are held together


class Drawn(NamedTuple):
    """Which records have a report, the number of its block, and its text."""

    rows: Indices
    blocks: Integers
    texts: Any


def drawn_blocks(q: Blocks, source: WordSource, first: int, n: int) -> Integers:
    """The number of a block for each of n records, exactly with the probabilities of the shares."""
    words = source.words(first, n, 1)[:, 0] >> np.uint64(64 - q.bits)
    ends = np.cumsum(np.array(q.shares, dtype=np.uint64))
    return np.searchsorted(ends, words, side="right").astype(np.int64)


class _Codes(NamedTuple):
    """The codes of all records for one block; `complete` says which have them."""

    s: Integers
    u: Integers
    complete: Flags


def _codes(
    p: Released, columns: Mapping[str, Any], missing: Missing, label: Label, place: Place
) -> _Codes:
    n = len(next(iter(columns.values())))
    needed = {name: columns[name] for name in read_columns(p)}
    complete = np.ones(n, dtype=np.bool_)
    if missing == "drop" and needed:
        complete = complete_rows(needed, p, label)
    if complete.all():
        return _Codes(*record_codes(needed, p, label=label, place=place), complete)
    rows = np.flatnonzero(complete)
    some = {name: values.take(integer_array(rows)) for name, values in needed.items()}
    found = record_codes(some, p, label=label, place=lambda row: place(int(rows[row])))
    s, u = (np.zeros(n, dtype=np.int64) for _ in range(2))
    s[rows], u[rows] = found
    return _Codes(s, u, complete)


@dataclass
class Drawing:
    """Records to blocks and reports, some after the others.

    Args:
        q: the questionnaire.
        randomness: where random words come from.
        missing: whether records that miss what their block asks for are refused or left out.
        labels: whether sets are written by their labels.
    """

    q: Blocks
    randomness: Randomness
    missing: Missing
    labels: bool | None = None

    def __post_init__(self) -> None:
        """Open the source of randomness; with a key, every part has one made from its ids."""
        is_keyed = self.randomness.key is not None
        self._source = None if is_keyed else self.randomness.source(self.q.fingerprint)
        self._first = 0

    def check(self, columns: Mapping[str, Any], label: Label, place: Place) -> None:
        """Refuse values that no block knows, whichever will be drawn."""
        for p in self.q.blocks:
            _codes(p, columns, self.missing, label, place)

    def drawn(
        self,
        columns: Mapping[str, Any],
        ids: Any,
        label: Label = plain_label,
        place: Place = row_place,
    ) -> Drawn:
        """A report for each record that has what its block asks for.

        Args:
            columns: column name → Arrow array, all of one length.
            ids: of the people, Arrow text or integers; None without a key.
            label: the text of a value, None where it is missing.
            place: what a message calls the record with a number.
        """
        n = len(next(iter(columns.values())))
        known = [_codes(p, columns, self.missing, label, place) for p in self.q.blocks]
        blocks = drawn_blocks(self.q, self._words_of_blocks(ids), self._first, n)
        rows_of, texts_of = [], []
        for place_of_block, (p, codes) in enumerate(zip(self.q.blocks, known, strict=True)):
            rows = np.flatnonzero((blocks == place_of_block) & codes.complete)
            s, u = codes.s[rows], codes.u[rows]
            theirs = None if ids is None else ids.take(integer_array(rows))
            words = self._source or self.randomness.source(p.fingerprint, theirs, s, u)
            rows_of.append(rows)
            texts_of.append(drawn_texts(p, s, u, words, labels=self.labels).cast(pa.string()))
        self._first += n
        rows = np.concatenate(rows_of)
        order = np.argsort(rows, kind="stable")
        texts = pa.concat_arrays(texts_of).take(integer_array(order))
        return Drawn(rows[order], blocks[rows[order]], texts)

    def _words_of_blocks(self, ids: Any) -> WordSource:
        if self._source is not None:
            return self._source
        # the draw of a block must not read the record: words per person, also where reports
        # have words per record
        return Randomness(key=self.randomness.key).source(self.q.fingerprint, ids)


def released(
    q: Blocks,
    data: Any,
    *,
    randomness: Randomness,
    record_id: Any,
    missing: Missing,
    labels: bool | None,
    **columns: Any,
) -> Any:
    """What `q.release` gives, for checked randomness."""
    if is_one_of(missing, ["drop"]) and isinstance(data, Mapping):
        raise ParameterError(
            "Expected several records to drop some of them, got one record.",
            argument="missing",
        )
    layout = checked_layout(
        q,
        record_id=record_id,
        missing=missing,
        **columns,
    ).written(labels)
    layout.warn(q, stacklevel=3)  # type: ignore[arg-type]  # it asks for names only
    drawing = Drawing(q, randomness, layout.missing, layout.labels)
    data = with_reader(data)
    if isinstance(data, Mapping):
        return _released_records(drawing, [data], layout)[0]
    if frames.is_reader(data):
        return _released_reader(drawing, data, layout)
    if frames.is_frame(data):
        return _released_frame(drawing, data, layout)
    return _released_records(drawing, data, layout)


def checked_layout(q: Blocks, **options: Any) -> Layout:
    """The columns of a release, among which is that of the blocks."""
    layout = Layout.checked(q, **options)  # type: ignore[arg-type]  # it asks for names only
    if BLOCK_COLUMN in (*layout.keep, layout.column):
        raise ParameterError(
            f"Expected no other column {BLOCK_COLUMN!r} beside the one with the blocks; rename it.",
            argument="keep" if BLOCK_COLUMN in layout.keep else "column",
            column=BLOCK_COLUMN,
        )
    return layout


@discreet
def _released_frame(drawing: Drawing, frame: Any, layout: Layout, *, first: int = 0) -> Any:
    q, randomness = drawing.q, drawing.randomness
    frame = frames.with_index_levels(frame, layout.needed)
    available, data = column_names(frame), narwhal(frame)
    if isinstance(data, nw.LazyFrame):
        raise DataError("Expected a frame in memory, got a lazy one; collect it first.")
    names = read_columns(q)  # type: ignore[arg-type]  # it asks for names only
    for name in (*names, *layout.needed):
        if name not in available:
            raise unknown_column(name, available)
    columns = {name: _chunked(frames.arrow_column(data[name])) for name in names}
    record_id = layout.record_id
    ids = None if record_id is None else frames.ids_of(data[record_id], record_id, row_place)
    n = len(data)
    parts = [(i, min(i + _AT_ONCE, n)) for i in range(0, max(1, n), _AT_ONCE)]

    def part(i: int, j: int) -> tuple[dict[str, Any], Place]:
        cut = {name: values.slice(i, j - i) for name, values in columns.items()}
        return cut, lambda row: row_place(first + i + row)

    if len(parts) > 1:
        for i, j in parts:
            cut, place = part(i, j)
            drawing.check(cut, plain_label, place)
    found = []
    for i, j in parts:
        cut, place = part(i, j)
        theirs = None if ids is None else ids.slice(i, j - i)
        one = drawing.drawn(cut, theirs, plain_label, place)
        found.append(one._replace(rows=one.rows + i))
    rows, blocks = (np.concatenate([one[i] for one in found]) for i in range(2))
    texts = pa.concat_arrays([one.texts for one in found])
    if len(rows) < n:
        is_left = np.zeros(n, dtype=bool)
        is_left[rows] = True
        data = data.filter(is_left.tolist())
        frame = frame.filter(pa.array(is_left)) if frames.is_arrow(frame) else data.to_native()
    note = randomness.note(q.name, q.epsilon, q.fingerprint)
    return _with_blocks(
        frames.assembled(frame, layout, texts, note), block_texts(q, blocks), layout
    )


def _chunked(values: Any) -> Any:
    return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])


def block_texts(q: Blocks, blocks: Integers) -> Any:
    """The names of blocks, as an Arrow dictionary."""
    names = [block_name(p.schema) for p in q.blocks]
    codes = integer_array(blocks.astype(np.int32))
    return pa.DictionaryArray.from_arrays(codes, text_array(names))


def _with_blocks(out: Any, blocks: Any, layout: Layout) -> Any:
    """A released frame with the column of the blocks before that of the reports."""
    place = len(layout.keep)
    if frames.is_arrow(out):
        fields = list(out.schema)
        fields.insert(place, pa.field(BLOCK_COLUMN, blocks.type))
        columns = list(out.columns)
        columns.insert(place, blocks)
        schema = pa.schema(fields, metadata=out.schema.metadata)
        return type(out).from_arrays(columns, schema=schema)
    if narwhal(out).implementation.is_polars():
        import polars as pl

        names = blocks.dictionary.to_pylist()
        return out.insert_column(place, pl.Series(BLOCK_COLUMN, blocks).cast(pl.Enum(names)))
    import pandas as pd

    values = pd.Categorical.from_codes(
        blocks.indices.to_numpy(), categories=blocks.dictionary.to_pylist()
    )
    out.insert(place, BLOCK_COLUMN, values)
    return out


def _released_reader(drawing: Drawing, reader: Any, layout: Layout) -> Any:
    """A reader of record batches that releases each batch when it is read."""
    nothing = _released_frame(drawing, reader.schema.empty_table(), layout)

    def batches() -> Iterator[Any]:
        first = 0
        for batch in reader:
            yield _released_frame(drawing, batch, layout, first=first)
            first += batch.num_rows

    return pa.RecordBatchReader.from_batches(nothing.schema, batches())


@discreet
def _released_records(
    drawing: Drawing, records: Iterable[Any], layout: Layout
) -> list[dict[str, Any]]:
    expected = "a frame or dicts with the columns of the questionnaire"
    rows = list(checked_tuple(records, expected, argument="data"))
    names = read_columns(drawing.q)  # type: ignore[arg-type]  # it asks for names only
    for row, record in enumerate(rows):
        if not isinstance(record, Mapping):
            raise DataError(f"Expected {expected}, got {type(record).__name__} in row {row}.")
        for name in (*names, *layout.needed):
            if name not in record:
                raise unknown_column(name, list(record)).within(f"In row {row}")
    columns = {
        name: python_texts(
            [frames.record_label(r[name], name, i) for i, r in enumerate(rows)], name
        )
        for name in names
    }
    ids = None
    if layout.record_id is not None:
        ids = python_ids((record[layout.record_id] for record in rows), layout.record_id)
    if not rows:
        return []
    found = drawing.drawn(columns, ids)
    q = drawing.q
    by = {FINGERPRINT_COLUMN: short_fingerprint(q.fingerprint)} if layout.fingerprint else {}
    listed = [block_name(p.schema) for p in q.blocks]
    return [
        {
            **{name: rows[row][name] for name in layout.keep},
            BLOCK_COLUMN: listed[block],
            layout.column: text,
            **by,
        }
        for row, block, text in zip(
            found.rows.tolist(), found.blocks.tolist(), found.texts.to_pylist(), strict=True
        )
    ]
