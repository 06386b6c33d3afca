"""Arrays of codes to arrays of reports, chunk by chunk."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rldp.errors import DataError
from rldp.release.randomness import WordSource
from rldp.release.sampler import Sampler

_CHUNK = 32_768  # words at a time: they and what is made of them fit into the cache


def drawn_reports(
    sampler: Sampler, s: NDArray[Any], u: NDArray[Any], source: WordSource
) -> NDArray[Any]:
    """A report for each record with valid codes s and u."""
    reports = sampler.empty(len(s))
    step = max(1, _CHUNK // sampler.words)
    for first in range(0, len(s), step):
        part = slice(first, min(first + step, len(s)))
        words = source.words(first, part.stop - first, sampler.words)
        sampler.draw(s[part], u[part], words, reports[part])
    return reports


def checked_codes(codes: NDArray[Any], n_s: int, n_u: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The codes s and u of an array of shape (n, 2), each within its alphabet."""
    if codes.ndim != 2 or codes.shape[1] != 2:
        raise DataError(f"Expected codes of shape (n, 2), one (s, u) a row, got {codes.shape}.")
    if codes.dtype.kind not in "iu":
        raise DataError(
            f"Expected codes as integers, got {codes.dtype}; for labels pass a frame or dicts."
        )
    sides = codes[:, 0], codes[:, 1]
    # negative codes are huge without their sign, so one comparison finds all that is wrong
    unsigned = codes.view(f"u{codes.itemsize}") if codes.dtype.isnative else codes
    for part, n, name in ((unsigned[:, 0], n_s, "s"), (unsigned[:, 1], n_u, "u")):
        if len(part) and part.max() >= n:
            row = int(np.argmax(part >= n))
            value = int(codes[row, "su".index(name)])
            raise DataError(
                f"Expected codes of {name} from 0 to {n - 1}, got {value} in row {row}."
            )
    return sides
