"""Fresh reports from one kept answer: each is the answer itself, or the report of a made-up person.

A person's answer z is drawn once, by `p.release`, and kept for ever. A refreshed report y has the
law W(y|z) = a·1[y=z] + (1-a)·P_Z(y), where P_Z is what the protocol reports of a record drawn from
given frequencies. It depends on the person through z alone, so any number of refreshed reports
tells no more than z, and the guarantees of z cover them all.

Of the words of a report the first keeps the answer if it is below ⌊a·2^64⌋, the second draws the
record of the made-up person, and the others draw that person's report.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rldp.channel import Channel
from rldp.channel.base import integer_rows
from rldp.checks import checked_number, unmasked
from rldp.errors import DataError
from rldp.information import distribution
from rldp.release.alias_table import AliasRows
from rldp.release.draw import drawn_reports
from rldp.release.randomness import WordSource
from rldp.release.sampler import Sampler

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
