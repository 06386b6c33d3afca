"""Arrays of codes to arrays of reports, chunk by chunk."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rldp.errors import DataError
from rldp.release.alias_table import Room
from rldp.release.randomness import WordSource
from rldp.release.sampler import Sampler

_CHUNK = 32_768  # words at a time, so that all arrays fit into the cache


def drawn_reports(
    sampler: Sampler, s: NDArray[Any], u: NDArray[Any], source: WordSource
) -> NDArray[Any]:
    """A report for each record with codes s and u, which are checked."""
    reports = sampler.empty(len(s))
    step, room = max(1, _CHUNK // sampler.words), Room()
    for first in range(0, len(s), step):
        part = slice(first, min(first + step, len(s)))
        words = source.words(first, part.stop - first, sampler.words)
        for codes, n, name in zip((s, u), sampler.shape, "su", strict=True):
            _check(codes[part], n, name, first)
        sampler.draw(s[part], u[part], words, reports[part], room)
    return reports


def separate_codes(codes: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The codes s and u of an array of shape (n, 2)."""
    if codes.ndim != 2 or codes.shape[1] != 2:
        raise DataError(f"Expected codes of shape (n, 2), one (s, u) per row, got {codes.shape}.")
    if codes.dtype.kind not in "iu":
        raise DataError(
            f"Expected codes as integers, got {codes.dtype}; for labels pass a frame or dicts."
        )
    return codes[:, 0], codes[:, 1]


def _check(codes: NDArray[Any], n: int, name: str, first: int) -> None:
    # as unsigned numbers negative codes are huge, so one comparison finds all errors
    unsigned = codes.view(codes.dtype.str.replace("i", "u"))
    if unsigned.max() >= n:
        place = int(np.argmax(unsigned >= n))
        raise DataError(
            f"Expected codes of {name} from 0 to {n - 1}, "
            f"got {codes[place]} in row {first + place}."
        )
