"""The answer of a search: a protocol, what it keeps, and a bound on what any can keep."""

from __future__ import annotations

from typing import NamedTuple

from rldp._types import Array


class Solution(NamedTuple):
    """The columns of a protocol, shape (n_s, n_u, n_y), and a bound on what any can keep.

    The bound is a proof in real numbers that is computed in doubles, without outward rounding.
    """

    Q: Array
    utility: float
    bound: float
    is_interrupted: bool = False  # by Ctrl-C: the incumbent
    is_hurried: bool = False  # by a time limit: the incumbent too
