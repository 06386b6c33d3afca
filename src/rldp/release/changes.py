"""Two keyed reports of a person whose record changed in between: their joint distribution.

Per person, both reports are drawn with the same random words, so their joint law is that of two
rows of a table drawn by one word. Per record, the words are independent, and the joint law is the
product. In both modes the words of one record are independent of each other, so one joint law for
each word is enough.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rldp._types import Array
from rldp.checks import checked_tuple, is_one_of, shown
from rldp.errors import DataError, ParameterError, TooLargeError
from rldp.release.interface import Released
from rldp.release.randomness import Per

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
