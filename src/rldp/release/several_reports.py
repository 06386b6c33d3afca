"""More than one report of a person: fresh ones from a kept answer, two of a changed record.

**Fresh reports.** A person's answer z is drawn once, by `p.release`, and kept for ever. A refreshed
report y has the law W(y|z) = a·1[y=z] + (1-a)·P_Z(y), where P_Z is what the protocol reports of a
record drawn from given frequencies. It depends on the person through z alone, so any number of
refreshed reports tells no more than z, and the guarantees of z cover them all. Of the words of a
report the first keeps the answer if it is below ⌊a·2^64⌋, the second draws the record of the
made-up person, and the others draw that person's report.

**A changed record.** Two keyed reports of a person have a joint distribution. Per person, both are
drawn with the same random words, so their joint law is that of two rows of a table drawn by one
word. Per record, the words are independent, and the joint law is the product. In both modes the
words of one record are independent of each other, so one joint law for each word is enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rldp._types import Array
from rldp.channel import Channel
from rldp.channel.base import integer_rows
from rldp.checks import checked_number, checked_tuple, is_one_of, shown, unmasked
from rldp.errors import DataError, ParameterError, TooLargeError
from rldp.information import distribution
from rldp.release.alias_table import AliasRows
from rldp.release.randomness import Per, WordSource
from rldp.release.sampler import Released, Sampler, drawn_reports

_BITS = 62  # of the frequencies as integers
_CHUNK = 65_536  # reports at a time


def checked_keep(keep: object) -> float:
    """The chance that a refreshed report is the kept answer."""
    return checked_number(keep, "keep between 0 and 1", 0.0, 1.0)


def refreshed_reports(
    sampler: Sampler, kept: NDArray[Any], keep: float, p_su: ArrayLike, source: WordSource
) -> NDArray[Any]:
    """A refreshed report for each kept answer, an array as `p.release(codes)` gives."""
    people = AliasRows(integer_rows(distribution(p_su, sampler.shape).reshape(1, -1), _BITS), _BITS)
    threshold, fresh = np.uint64(int(keep * 2.0**64)), sampler.empty(len(kept))
    for first in range(0, len(kept), _CHUNK):
        part = slice(first, min(first + _CHUNK, len(kept)))
        words = source.words(first, part.stop - first, 2)
        is_kept = words[:, 0] < threshold
        cells = people.draw(np.zeros(is_kept.size, dtype=np.int64), words[:, 1]).astype(np.int64)
        made_up = drawn_reports(sampler, *np.divmod(cells, sampler.shape[1]), source)
        is_kept = is_kept if sampler.width is None else is_kept[:, None]
        fresh[part] = np.where(is_kept, kept[part], made_up)
    return fresh


def checked_reports(reports: NDArray[Any], channel: Channel) -> NDArray[Any]:
    """An array of reports as `p.release(codes)` gives, refused if it cannot be one."""
    reports = np.asarray(unmasked(reports, "the kept report of everyone", argument="reports"))
    low, high = 0, channel.n_outputs
    width: tuple[int, ...] = ()
    if channel.reports_sets:
        (_, n_blocks), (_, high) = channel.naming
        low, width = -1, (n_blocks,)
    if reports.ndim == 0 or reports.shape[1:] != width or reports.dtype.kind not in "iu":
        shape = ", ".join(map(str, ("n", *width)))
        raise DataError(
            f"Expected reports as integers of shape ({shape}), as p.release(codes) gives them, got "
            f"{reports.dtype} of shape {reports.shape}."
        )
    bad = np.argwhere((reports < low) | (reports >= high))
    if bad.size:
        place = tuple(int(i) for i in bad[0])
        raise DataError(
            f"Expected reports from {low} to {high - 1}, got {reports[place]} in row {place[0]}."
        )
    return reports


Cell = Sequence[int]  # (s, u)

_MOST_ENTRIES = 2**24


@dataclass(frozen=True, eq=False)
class ChangedRecord:
    """The law of the reports (y1, y2) of a record before and after a change.

    Args:
        words: for each word of a record the counts of the pairs of symbols, exact integers; all
            entries of one array sum to the same power of two.
    """

    words: tuple[NDArray[Any], ...]

    @property
    def law(self) -> Array:
        """P(y1, y2), shape (n_y, n_y)."""
        n_y = math.prod(len(counts) for counts in self.words)
        if n_y**2 > _MOST_ENTRIES:
            raise TooLargeError(f"Expected a law of at most {_MOST_ENTRIES} pairs, got {n_y**2}.")
        law: NDArray[Any] = np.ones((1, 1))
        for word in self.laws:
            law = np.kron(law, word)
        return law

    @property
    def shows(self) -> float:
        """P(y1 ≠ y2): the chance that the two reports prove the change."""
        return 1 - math.prod(float(np.trace(law)) for law in self.laws)

    @property
    def laws(self) -> list[Array]:
        """The laws of the pairs of symbols, one for each word."""
        return [(counts / counts.sum()).astype(float) for counts in self.words]


def changed_record(p: Released, old: Cell, new: Cell, *, per: Per = "person") -> ChangedRecord:
    """The exact joint law of the two keyed reports of a record that changed.

    Args:
        p: the protocol.
        old: codes (s, u) of the record at the first report.
        new: codes at the second.
        per: "person" for the same random words, "record" for independent ones.
    """
    if not is_one_of(per, ("person", "record")):
        raise ParameterError(
            f"Expected per as 'person' or 'record', got {shown(per)}.", argument="per"
        )
    n_s, n_u = p.sampler.shape
    for cell in (old, new):
        codes = checked_tuple(cell, "a cell as codes (s, u)")
        is_integer = all(isinstance(code, int | np.integer) for code in codes)
        if len(codes) != 2 or not (is_integer and 0 <= codes[0] < n_s and 0 <= codes[1] < n_u):
            raise DataError(f"Expected codes of {n_s} × {n_u} cells, got {shown(cell)}.")
    words = []
    pairs = zip(p.sampler.tables(*old), p.sampler.tables(*new), strict=True)
    for (rows, first), (_, second) in pairs:
        if per == "person":
            words.append(rows.common(first, second))
        else:
            alone = (rows.common(row, row).diagonal().astype(object) for row in (first, second))
            words.append(np.multiply.outer(*alone))
    return ChangedRecord(tuple(words))


def change_epsilon(p: Released, *, per: Per = "person") -> float:
    """The largest log P(y1, y2 | x → x') / P(y1, y2 | z → z') over all reports and changes.

    It bounds what someone who knows that the record changed, and sees both reports, can learn about
    the change. It is infinite if a pair of reports excludes some change. Per record it is at most
    twice the ε of plain local differential privacy.
    """
    if not hasattr(p, "sampler"):
        raise ParameterError(f"Expected a protocol, got {shown(p)}.")
    cells = list(product(*map(range, p.sampler.shape)))
    changes = list(permutations(cells, 2))
    sizes = [rows.n_outputs**2 for rows, _ in p.sampler.tables(0, 0)]
    if len(changes) ** 2 * sum(sizes) > _MOST_ENTRIES:
        raise TooLargeError(
            f"Expected at most {_MOST_ENTRIES} comparisons, {len(cells)} cells need "
            f"{len(changes) ** 2 * sum(sizes)}; compare chosen changes by changed_record."
        )
    laws = [changed_record(p, *change, per=per).laws for change in changes]
    worst = 0.0
    for first, second in permutations(laws, 2):
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = (np.nanmax(np.log(a / b)) for a, b in zip(first, second, strict=True))
            worst = max(worst, float(sum(ratios)))
    return worst
