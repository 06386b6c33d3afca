r"""Reports ⇄ labels: the text of a report, which people read and estimators parse.

The text of a cell is the labels of its sensitive and useful columns joined by " | ". A backslash,
bar or semicolon inside a label is escaped by a backslash, and an empty label is "\-", so that every
text can be parsed in one way only. A report of

- a choice or independent channel is the text of a cell: "White | Male";
- a dense channel, whose outputs mean nothing by themselves, is "y0", "y1", ...;
- a unary channel is the set of its cells: "{White | Male; Black | Female}", "{}" if all are silent;
- a unary channel of more than 32 blocks, unless labels are asked for, is "bits:" and its symbols, a
  bit each, or as many as the largest symbol needs: silence is 0, the first block comes first, the
  highest bit of a symbol first. Zeros fill up the last of the characters, which are those of
  base64url (RFC 4648), 6 bits each: "bits:gA" has 7 to 12 bits, of which the first is 1.

Both texts of a set are read, whatever a protocol writes. A part with a different number of outputs
than its column has labels is "y0", "y1", ... instead.
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
from rldp.release.randomness import WordSource
from rldp.release.sampler import Released, drawn_reports
from rldp.tables.arrow_arrays import (
    check_lengths,
    integer_array,
    numbers_of,
    sound_indices,
    text_array,
)
from rldp.tables.schema import Schema, shown_list

_MOST_LISTED = 65_536  # labels at most for a dictionary of all labels
_MOST_NAMED = 32  # blocks of a set whose text names its cells
_JOINED = 2**24  # symbols of sets that are converted at a time
_BITS = "bits:"
_DIGITS = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", dtype=np.uint8
)
_DIGIT = 6  # bits of a character
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

    @property
    def at_once(self) -> int:
        """Reports that are drawn or read together, so that sets of many blocks need no gigabyte."""
        return max(1, _JOINED // len(self._parts[0])) if self._sets else 2**62

    def texts(self, reports: NDArray[Any], *, labels: bool | None = None) -> Any:
        """The labels of reports as an Arrow array: a dictionary, or text if there are many labels.

        Args:
            reports: what `p.release(codes)` gives, shape (n,) or, for sets, (n, blocks).
            labels: whether sets are written by their labels, or in bits; None means by labels up to
                32 blocks.
        """
        if self._sets:
            is_named = len(self._parts[0]) <= _MOST_NAMED if labels is None else labels
            written, step = self._set_texts if is_named else self._bit_texts, self.at_once
            parts = [written(reports[i : i + step]) for i in range(0, len(reports), step)]
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
        if self._sets and (sets := self._from_bits(values.dictionary)) is not None:
            return np.asarray(sets[indices])
        known: list[int | list[int]] = []
        for place, text in enumerate(values.dictionary.to_pylist()):
            report = self.report(text)
            if report is None and place in indices:
                raise DataError(
                    f"Expected a report of this protocol, got {shown(text)} in row "
                    f"{int(np.argmax(indices == place))}; reports look like {self._examples()}."
                )
            known.append(self._silence if report is None else report)
        table = np.array(known, dtype=self._type).reshape(len(known), *np.shape(self._silence))
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
        if text.startswith(_BITS):
            found = self._from_bits(pa.array([text.encode("ascii", "replace").decode()]))
            return None if found is None else list(map(int, found[0]))
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

    @property
    def _type(self) -> np.dtype[Any]:
        """Wide enough for the symbols of sets, and for numbers of outputs."""
        return np.min_scalar_type(-len(self._parts[1]) - 1) if self._sets else np.dtype(np.int64)

    @property
    def _bit_counts(self) -> tuple[int, int, int]:
        """Bits of a symbol, of a report, and characters that hold them."""
        each = len(self._parts[1]).bit_length()
        total = each * len(self._parts[0])
        return each, total, -(-total // _DIGIT)

    def _bit_texts(self, reports: NDArray[Any]) -> Any:
        (each, total, size), n = self._bit_counts, len(reports)
        bits = np.zeros((n, size * _DIGIT), dtype=np.uint8)
        for place in range(each):
            bits[:, place:total:each] = ((reports + 1) >> (each - 1 - place)) & 1
        characters = np.empty((n, len(_BITS) + size), dtype=np.uint8)
        characters[:, : len(_BITS)] = np.frombuffer(_BITS.encode(), dtype=np.uint8)
        digits = np.zeros((n, size), dtype=np.uint8)
        for place in range(_DIGIT):
            digits |= bits[:, place::_DIGIT] << (_DIGIT - 1 - place)
        np.take(_DIGITS, digits, out=characters[:, len(_BITS) :])
        ends = np.arange(n + 1, dtype=np.int32) * np.int32(characters.shape[1])
        buffers = pa.py_buffer(ends.tobytes()), pa.py_buffer(characters.tobytes())
        return pa.StringArray.from_buffers(n, *buffers)

    def _from_bits(self, texts: Any) -> NDArray[Any] | None:
        """The sets that are all written in bits; None if some text is not."""
        each, total, size = self._bit_counts
        lengths = pc.binary_length(pc.utf8_trim_whitespace(texts.cast(pa.large_string())))
        if not pc.all(pc.equal(lengths, len(_BITS) + size)).as_py():
            return None
        joined = "".join(pc.utf8_trim_whitespace(texts.cast(pa.large_string())).to_pylist())
        characters = np.frombuffer(joined.encode(), dtype=np.uint8).reshape(len(texts), -1)
        value = np.full(256, 255, dtype=np.uint8)
        value[_DIGITS] = np.arange(len(_DIGITS))
        digits = value[characters[:, len(_BITS) :]]
        is_marked = characters[:, : len(_BITS)] == np.frombuffer(_BITS.encode(), dtype=np.uint8)
        if not is_marked.all() or digits.max(initial=0) == 255:
            return None
        bits = np.zeros((len(texts), size * _DIGIT), dtype=np.uint8)
        for place in range(_DIGIT):
            bits[:, place::_DIGIT] = (digits >> (_DIGIT - 1 - place)) & 1
        if bits[:, total:].any():
            return None
        symbols = np.zeros((len(texts), len(self._parts[0])), dtype=self._type)
        for place in range(each):
            symbols |= bits[:, place:total:each].astype(self._type) << (each - 1 - place)
        if symbols.max(initial=0) > len(self._parts[1]):
            return None
        return symbols - 1

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


def drawn_texts(
    p: Released,
    s: NDArray[Any],
    u: NDArray[Any],
    source: WordSource,
    *,
    labels: bool | None = None,
) -> Any:
    """The texts of these reports as an Arrow array, drawn so many at a time as memory allows."""
    written, step = p.report_labels, p.report_labels.at_once
    parts = []
    for start in range(0, max(1, len(s)), step):
        part = slice(start, start + step)
        drawn = drawn_reports(p.sampler, s[part], u[part], source, start)
        parts.append(written.texts(drawn, labels=labels))
    if len(parts) == 1:
        return parts[0]
    return pa.concat_arrays(parts)


# Texts that a spreadsheet would run. A program that opens a CSV file may run a value that begins
# with =, +, -, @, a tab or a carriage return as a formula, unless it is a number. With an
# apostrophe before it, it is a text.

_ESCAPE = "'"
_START = r"^[=+\-@\t\r]"
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


def is_formula(text: str) -> bool:
    """Whether a spreadsheet may take a text for a formula.

    >>> [is_formula(text) for text in ("=1+1", "-5 to 0", "-5", "a=b", "@sum")]
    [True, True, False, False, True]
    """
    return re.match(_START, text) is not None and re.match(_NUMBER, text) is None


def escaped(text: str) -> str:
    """A text with an apostrophe before it if it looks like a formula."""
    return _ESCAPE + text if is_formula(text) else text


def unescaped(text: str) -> str:
    """The text that `escaped` was given."""
    rest = text.removeprefix(_ESCAPE)
    return rest if is_formula(rest) else text


def escaped_column(values: Any) -> Any:
    """The same for a column of Arrow text; other types are unchanged."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
        return values
    is_number = pc.match_substring_regex(values, _NUMBER)
    is_escaped = pc.and_(pc.match_substring_regex(values, _START), pc.invert(is_number))
    return pc.if_else(is_escaped, pc.binary_join_element_wise(_ESCAPE, values, ""), values)
