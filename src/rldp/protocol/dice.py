"""Tables that people can carry out: probabilities in units of 1/D for a small D.

A file holds tables in units of 2^-bits. If 2^bits = m D + r, a table n[s, u, y] in units of 1/D is
the table m n[s, u, y] with one more output, the r words that are left over. These are the same for
all records and tell nothing; with 62 bits nobody ever sees them.
"""

from __future__ import annotations

import numpy as np

from rldp._types import Integers

NAME = "dice"
CLASSIC = ("crosswise", "forced-response", "unrelated-question", "triangular")
MOST_DENOMINATOR = 10_000
_BITS = 62


def with_remainder(n: Integers, denominator: int) -> Integers:
    """A table in units of 1/denominator as one of 2^62, with one more output where that is needed.

    >>> N = with_remainder(np.array([[[1, 5]], [[5, 1]]]), 6)
    >>> N[..., 2].ravel().tolist(), int(N[0, 0].sum()) == 2**62
    ([4, 4], True)
    """
    m, rest = divmod(2**_BITS, denominator)
    scaled = m * n.astype(np.int64)
    if not rest:
        return np.asarray(scaled)
    return np.concatenate([scaled, np.full((*n.shape[:2], 1), rest, np.int64)], axis=2)


def dice_table(integers: Integers, bits: int) -> tuple[Integers, int] | None:
    """n[s, u, y] and D of a table that can be thrown, None if it is none.

    >>> n, D = dice_table(with_remainder(np.array([[[1, 5]], [[5, 1]]]), 6), 62)
    >>> n.tolist(), D
    ([[[1, 5]], [[5, 1]]], 6)
    """
    last = integers[..., -1]
    for kept in (integers, integers[..., :-1]):
        if kept.shape[2] < integers.shape[2] and (last != last.flat[0]).any():
            return None
        unit = int(np.gcd.reduce(kept.ravel())) if kept.size else 0
        total = int(kept[0, 0].sum()) if kept.size else 0
        if unit and total // unit <= MOST_DENOMINATOR and 2**bits - total < unit:
            return kept // unit, total // unit
    return None
