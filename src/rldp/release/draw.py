"""Arrays of codes to arrays of reports, chunk by chunk."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from rldp.errors import DataError
from rldp.release.alias_table import Room, first_beyond
from rldp.release.interface import Released
from rldp.release.randomness import WordSource
from rldp.release.sampler import Sampler

_CHUNK = 32_768  # words at a time, so that all arrays fit into the cache


def drawn_reports(
    sampler: Sampler, s: NDArray[Any], u: NDArray[Any], source: WordSource, start: int = 0
) -> NDArray[Any]:
    """A report for each record with codes s and u, which must be in their ranges.

    The first record has number `start` in the source.
    """
    reports = sampler.empty(len(s))
    step, room = max(1, _CHUNK // sampler.words), Room()
    for first in range(0, len(s), step):
        part = slice(first, min(first + step, len(s)))
        words = source.words(start + first, part.stop - first, sampler.words)
        if not sampler.draw(s[part], u[part], words, reports[part], room):
            raise _out_of_range((s[part], u[part]), sampler.shape, start + first)
    return reports


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
    import pyarrow as pa  # releases of codes do without it

    return pa.concat_arrays(parts)


def separate_codes(codes: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The codes s and u of an array of shape (n, 2)."""
    if codes.ndim != 2 or codes.shape[1] != 2:
        raise DataError(f"Expected codes of shape (n, 2), one (s, u) per row, got {codes.shape}.")
    if codes.dtype.kind not in "iu":
        raise DataError(
            f"Expected codes as integers, got {codes.dtype}; for labels pass a frame or dicts."
        )
    return codes[:, 0], codes[:, 1]


def _out_of_range(
    codes: tuple[NDArray[Any], NDArray[Any]], shape: tuple[int, int], first: int
) -> DataError:
    for numbers, n, name in zip(codes, shape, "su", strict=True):
        place = first_beyond(numbers, n)
        if place is not None:
            return DataError(
                f"Expected codes of {name} from 0 to {n - 1}, "
                f"got {numbers[place]} in row {first + place}."
            )
    return DataError("Expected codes that stay as they are, they were changed during the release.")
