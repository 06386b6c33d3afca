r"""Reports ⇄ labels: the text of a report, which people read and estimators parse.

The text of a cell is the labels of its sensitive and useful columns joined by " | ". A backslash,
bar or semicolon inside a label is escaped by a backslash, and an empty label is "\-", so that every
text can be parsed in one way only. A report of

- a choice or independent channel is the text of a cell: "White | Male";
- a dense channel, whose outputs mean nothing by themselves, is "y0", "y1", ...;
- a unary channel is the set of its cells: "{White | Male; Black | Female}", "{}" if all are silent.

A part with a different number of outputs than its column has labels is "y0", "y1", ... instead.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rldp.channel import Channel
from rldp.checks import checked_tuple, shown, unmasked
from rldp.errors import DataError
from rldp.release.formulas import is_formula, unescaped
from rldp.tables.arrow_arrays import (
    check_lengths,
    integer_array,
    numbers_of,
    sound_indices,
    text_array,
)
from rldp.tables.schema import Schema, shown_list

_MOST_LISTED = 65_536  # labels at most for a dictionary of all labels
_JOINED = 65_536  # sets that are converted at a time
_SPECIAL = re.compile(r"([\\|;])")
_CELL = re.compile(r"((?:[^\\;]++|\\.)++)(?:; |$)", re.DOTALL)  # gives nothing back


class ReportLabels:
    """The labels of a protocol's reports, both ways.

    >>> import rldp
    >>> p = rldp.design(rldp.AllDistributions(rldp.Table([[1, 1], [1, 1]])), 1.0, "srr")
    >>> texts = p.report_labels.texts(np.array([0, 3]))
    >>> texts.to_pylist(), p.report_labels.reports(texts)
    (['0 | 0', '1 | 1'], array([0, 3]))
    """

    def __init__(self, schema: Schema, channel: Channel) -> None:
        """Name the outputs of a channel over a schema."""
        s = [_joined(schema.s_levels(code)) for code in range(schema.n_s)]
        u = [_joined(schema.u_levels(code)) for code in range(schema.n_u)]
        names: dict[str, list[str | None]] = {"s": s, "u": u, "bit": [None]}
        if any(what == "cell" for what, _ in channel.naming):
            names["cell"] = [_cell(pair) for pair in product(s, u)]
        self._sets = channel.reports_sets
        self._parts = [_texts_or_numbers(names.get(what, []), n) for what, n in channel.naming]

    @cached_property
    def all(self) -> tuple[str, ...]:
        """The text of every output, or of every cell that a set can hold."""
        return tuple(_cell(pair) for pair in product(*self._parts))

    @cached_property
    def formulas(self) -> tuple[str, ...]:
        """The reports that a spreadsheet may take for formulas."""
        return () if self._sets else tuple(text for text in self.all if is_formula(text))

    def texts(self, reports: NDArray[Any]) -> Any:
        """The labels of reports as an Arrow array: a dictionary, or text if there are many labels.

        Args:
            reports: what `p.release(codes)` gives, shape (n,) or, for sets, (n, blocks).
        """
        if self._sets:
            parts = [
                self._set_texts(reports[i : i + _JOINED]) for i in range(0, len(reports), _JOINED)
            ]
            return pa.concat_arrays(parts or [pa.nulls(0, pa.string())])
        size = int(np.prod([len(part) for part in self._parts]))
        if size <= _MOST_LISTED:
            return _dictionary(reports, self.all)
        found, places = np.unique(reports, return_inverse=True)  # too many to list them all
        numbers = np.unravel_index(found, [len(part) for part in self._parts])
        pairs = zip(*numbers, strict=True)
        listed = [_cell([p[i] for p, i in zip(self._parts, pair, strict=True)]) for pair in pairs]
        return _dictionary(places, listed).cast(pa.string())

    def reports(self, texts: Any) -> NDArray[Any]:
        """The reports that have these labels, an Arrow array or a sequence of texts."""
        values = texts
        if not isinstance(texts, pa.Array | pa.ChunkedArray):
            expected = "reports as texts"
            unmasked(texts, expected, argument="reports")
            values = pa.array(checked_tuple(texts, expected, argument="reports"))
        if not pa.types.is_dictionary(values.type):
            values = values.dictionary_encode()
        if isinstance(values, pa.ChunkedArray):
            values = values.unify_dictionaries().combine_chunks()
        if values.null_count:
            row = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
            raise DataError(f"Expected a report in every row, row {row} has none.")
        check_lengths(values.dictionary, "reports")
        indices = numbers_of(sound_indices(values, "the reports"))
        known = []
        for place, text in enumerate(values.dictionary.to_pylist()):
            report = self.report(text)
            if report is None and place in indices:
                raise DataError(
                    f"Expected a report of this protocol, got {shown(text)} in row "
                    f"{int(np.argmax(indices == place))}; reports look like {self._examples()}."
                )
            known.append(self._silence if report is None else report)
        table = np.array(known, dtype=np.int64).reshape(len(known), *np.shape(self._silence))
        return np.asarray(table[indices])

    @cached_property
    def _places(self) -> dict[str, int]:
        # blanks around a text are ignored, as everywhere
        return {text.strip(): place for place, text in enumerate(self.all)}

    def _place(self, text: Any) -> int | None:
        """The number of an output; an apostrophe before a formula is not part of the label."""
        if not isinstance(text, str):
            return None
        found = self._places.get(text.strip())
        return self._places.get(unescaped(text).strip()) if found is None else found

    @property
    def _silence(self) -> int | list[int]:
        return [-1] * len(self._parts[0]) if self._sets else -1

    def report(self, text: Any) -> int | list[int] | None:
        """The report of one label, None where it has none."""
        if not self._sets:
            return self._place(text)
        text = text.strip() if isinstance(text, str) else ""
        if text[:1] + text[-1:] != "{}":
            return None
        report = np.full(len(self._parts[0]), -1)
        body, cells, place = text[1:-1], list[str](), 0
        while place < len(body):  # once from left to right, however long the text is
            match = _CELL.match(body, place)
            if match is None or len(cells) == len(report):
                return None
            cells.append(match[1])
            place = match.end()
        if "; ".join(cells) != body:
            return None
        for cell in cells:
            block, symbol = divmod(self._places.get(cell.strip(), -1), len(self._parts[1]))
            if block < 0 or report[block] >= 0:
                return None
            report[block] = symbol
        return list(map(int, report))

    def _set_texts(self, reports: NDArray[Any]) -> Any:
        n_z = len(self._parts[1])
        blocks = []
        for b, column in enumerate(reports.T):
            # silence is a text too, because Arrow drops rows with nothing to join
            texts = [f"; {text}" for text in self.all[b * n_z : (b + 1) * n_z]]
            blocks.append(_dictionary(np.where(column < 0, n_z, column), [*texts, ""]))
        joined = pc.binary_join_element_wise(*(block.cast(pa.string()) for block in blocks), "")
        return pc.binary_join_element_wise("{", pc.utf8_slice_codeunits(joined, 2), "}", "")

    def _examples(self) -> str:
        return shown_list([f"{{{text}}}" if self._sets else text for text in self.all])


def _dictionary(codes: NDArray[Any], texts: Sequence[str]) -> Any:
    """Codes as a dictionary array."""
    small = codes.astype(np.min_scalar_type(-max(1, len(texts))))
    return pa.DictionaryArray.from_arrays(integer_array(small), text_array(texts))


def _texts_or_numbers(texts: Sequence[str | None], size: int) -> list[str | None]:
    return list(texts) if len(texts) == size else [f"y{place}" for place in range(size)]


def _joined(levels: Sequence[str]) -> str | None:
    """The text of one part, None where it has no columns."""
    return " | ".join(_SPECIAL.sub(r"\\\1", level) or r"\-" for level in levels) or None


def _cell(parts: Sequence[str | None]) -> str:
    return " | ".join(part for part in parts if part is not None)
