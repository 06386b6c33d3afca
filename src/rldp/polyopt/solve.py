"""Column generation: columns from prices, prices from columns, until the gap is closed."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from rldp.errors import TooLargeError
from rldp.optimise.master import Optimum
from rldp.polyopt.blocks import Block
from rldp.polyopt.columns import Master, Progress, is_bound, simple_columns, untold
from rldp.polyopt.listed import Listed
from rldp.polyopt.relaxed import Relaxed

Array = NDArray[np.float64]

_CLOSED, _CLOSED_SHARE = 1e-9, 1e-7  # nats, and of a column's gain: a gap that counts as none
_FINEST = 1e-13  # nats that rounding leaves
_AT_ONCE = 200  # columns added together
_MOST_CELLS = 49  # beyond, exact pricing closes the gap too slowly
_MOST_QUICK = 30  # beyond, the search for large tables goes ahead of exact pricing
_AHEAD, _AHEAD_SHARE = 10.0, 0.3  # seconds that it may take, and of the time
MOST_LISTED = 5e7  # numbers in the lists of vertices


class Solution(NamedTuple):
    """The columns of a protocol, shape (n_s, n_u, n_y), and a bound on what any can keep."""

    Q: Array
    utility: float
    bound: float


def best_columns(
    p_su: Array,
    p_min: Array,
    epsilon: float,
    *,
    distinct: bool,
    seeds: Array | None = None,
    deadline: float = np.inf,
    progress: Progress | None = None,
) -> Solution:
    """The protocol with the most I(X;Y) at p_su among those with columns in Γ or among the seeds.

    Args:
        p_su: the distribution at which utility counts, shape (n_s, n_u).
        p_min: P^min_{u|s}, the same shape.
        epsilon: privacy level in nats.
        distinct: compare s1 ≠ s2 only.
        seeds: further columns that are private for another reason, shape (columns, n_s, n_u).
        deadline: time.monotonic() at which to stop with the best so far.
        progress: told after every round.
    """
    factor = float(np.exp(epsilon))
    blocks = [Block(m, p) for m, p in zip(p_min, p_su, strict=True)]
    master = Master(p_su, is_bound(blocks))
    master.add(simple_columns(p_su.shape, factor, distinct=distinct))
    if seeds is not None:
        master.add(seeds)
    told = progress or untold
    is_listed = Listed.size(blocks, factor, distinct=distinct) <= MOST_LISTED
    is_large = p_su.size > _MOST_CELLS or not is_listed
    bound = np.inf
    if is_large or p_su.size > _MOST_QUICK:
        search = Relaxed(p_su, blocks, factor, distinct=distinct)
        now = time.monotonic()
        until = deadline if is_large else now + min(_AHEAD, _AHEAD_SHARE * (deadline - now))
        optimum, bound = search.solved(master, until, told)
    if not is_large:
        pricing = Listed(blocks, factor, distinct=distinct)
        optimum, bound = _closed(master, pricing, deadline, told, bound)
    return Solution(master.protocol(optimum), optimum.value, bound)


def _closed(
    master: Master, pricing: Listed, deadline: float, progress: Progress, bound: float
) -> tuple[Optimum, float]:
    """Exact pricing until nothing is left to add, from a bound that is known already."""
    optimum = master.solved()
    closed = float(np.clip(_CLOSED_SHARE * master.unit, _FINEST, _CLOSED))
    try:
        while True:
            priced = pricing.priced(master.prices(optimum), closed, _AT_ONCE, deadline)
            bound = min(bound, optimum.value + priced.bound)
            progress(optimum.value, bound)
            if not priced.worth.size or time.monotonic() > deadline:
                break
            master.add(priced.columns)
            optimum = master.solved()
    except KeyboardInterrupt:
        pass  # the best so far is what was asked for
    return optimum, bound


def is_optimal(Q: Array, p_su: Array, p_min: Array, epsilon: float) -> bool:
    """Whether no column in Γ improves on a protocol with n_s n_u independent outputs.

    Such a protocol is a basis of the programme, so it has prices of its own.
    """
    factor = float(np.exp(epsilon))
    blocks = [Block(m, p) for m, p in zip(p_min, p_su, strict=True)]
    if Listed.size(blocks, factor, distinct=True) > MOST_LISTED:
        raise TooLargeError(f"{p_su.shape[0]} × {p_su.shape[1]} cells have too many vertices.")
    columns = np.moveaxis(Q, 2, 0)
    columns = columns / np.einsum("vsu,su->v", columns, p_su)[:, None, None]
    gains = -np.einsum("vsu,su->v", entr(columns), p_su)
    prices = np.linalg.solve(columns.reshape(len(columns), -1), gains).reshape(p_su.shape)
    pricing = Listed(blocks, factor, distinct=True)
    return not pricing.priced(prices, _CLOSED, _AT_ONCE).worth.size
