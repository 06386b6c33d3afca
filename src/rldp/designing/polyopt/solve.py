"""PolyOpt: columns from duals, duals from columns, until the gap is closed."""

from __future__ import annotations

import numpy as np
from scipy.special import entr

from rldp._types import Array, SearchProgress
from rldp.arithmetic import exp
from rldp.designing.masters import Master, simple_columns
from rldp.designing.polyopt.exact_pricing import ExactPricing
from rldp.designing.polyopt.large_tables import LargeTableSearch
from rldp.designing.polyopt.s_block import Block, possible_cells
from rldp.designing.polyopt.settings import SETTINGS
from rldp.designing.problem import Found, how_ended, untold
from rldp.designing.solvers.linear import Optimum
from rldp.designing.solvers.work import Clock, Limit
from rldp.errors import TooLargeError


def best_columns(
    p_su: Array,
    p_min: Array,
    epsilon: float,
    *,
    distinct: bool,
    seeds: Array | None = None,
    deadline: float | Limit = np.inf,
    progress: SearchProgress = untold,
) -> Found:
    """The protocol with the most I(X;Y) at p_su among those with columns in Γ or among the seeds.

    The bound of the solution holds for all protocols with columns in Γ. It is a proof in real
    numbers that is computed in doubles, without outward rounding.

    Args:
        p_su: the distribution at which utility counts, shape (n_s, n_u).
        p_min: P^min_{u|s}, the same shape.
        epsilon: privacy level in nats.
        distinct: compare s1 ≠ s2 only.
        seeds: further columns that are private for another reason, shape (columns, n_s, n_u).
        deadline: time.monotonic() at which to stop with the incumbent, or a limit of work and time.
            The work is that of a search on a large table; where all vertices are listed it may
            take many times as long.
        progress: told after every round.
    """
    settings = SETTINGS.methods
    limit = deadline if isinstance(deadline, Limit) else Limit(settings.work, deadline)
    factor = float(exp(epsilon))
    blocks = [Block(m, p) for m, p in zip(p_min, p_su, strict=True)]
    master = Master(p_su, possible_cells(blocks))
    master.add(simple_columns(p_su.shape, factor, distinct=distinct))
    if seeds is not None:
        master.add(seeds)
    is_listed = ExactPricing.is_possible(blocks, factor, distinct=distinct)
    is_large = p_su.size > settings.most_exact_cells or not is_listed
    bound, is_interrupted, is_hurried = np.inf, False, False
    if is_large or p_su.size > settings.most_direct_cells:
        search = LargeTableSearch(p_su, blocks, factor, distinct=distinct)
        clock = Clock(limit.work if is_large else settings.head_start, limit.deadline)
        optimum, bound, is_interrupted = search.run(master, clock, progress)
        is_hurried = clock.is_hurried
    if not is_large and not is_interrupted:
        pricing = ExactPricing(blocks, factor, distinct=distinct)
        clock = Clock(SETTINGS.exact.patience * limit.work, limit.deadline)
        optimum, bound, is_interrupted = closed(master, pricing, clock, progress, bound)
        is_hurried = clock.is_hurried and clock.now() > 1
    ended = how_ended(optimum.value, bound, is_interrupted=is_interrupted, is_hurried=is_hurried)
    return Found.of_columns(master.protocol(optimum), optimum.value, bound, ended)


def closed(
    master: Master, pricing: ExactPricing, clock: Clock, progress: SearchProgress, bound: float
) -> tuple[Optimum, float, bool]:
    """Exact pricing until no reduced cost is positive, from a bound that is known already.

    The answer is the optimum, the bound, and whether Ctrl-C ended the search.
    """
    settings = SETTINGS.exact
    optimum, is_over = master.solved(), clock.passes(1.0)
    least = float(
        np.clip(settings.closed_relative * master.unit, settings.rounding, settings.closed)
    )
    try:
        while True:
            duals = master.duals(optimum)
            priced = pricing.price(duals, least, settings.columns_per_round, is_over)
            bound = min(bound, optimum.value + priced.bound)
            progress(optimum.value, bound)
            if not priced.reduced_cost.size or is_over():
                break
            master.add(priced.columns)
            optimum = master.solved()
    except KeyboardInterrupt:
        return optimum, bound, True
    return optimum, bound, False


def is_optimal(Q: Array, p_su: Array, p_min: Array, epsilon: float) -> bool:
    """Whether no column in Γ improves on a protocol with n_s n_u independent outputs.

    Such a protocol is a basis of the master, so it determines the duals.
    """
    factor = float(exp(epsilon))
    blocks = [Block(m, p) for m, p in zip(p_min, p_su, strict=True)]
    if not ExactPricing.is_possible(blocks, factor, distinct=True):
        raise TooLargeError(f"{p_su.shape[0]} × {p_su.shape[1]} cells have too many vertices.")
    columns = np.moveaxis(Q, 2, 0)
    columns = columns / np.einsum("vsu,su->v", columns, p_su)[:, None, None]
    gains = -np.einsum("vsu,su->v", entr(columns), p_su)
    duals = np.linalg.solve(columns.reshape(len(columns), -1), gains).reshape(p_su.shape)
    pricing = ExactPricing(blocks, factor, distinct=True)
    settings = SETTINGS.exact
    return not pricing.price(duals, settings.closed, settings.columns_per_round).reduced_cost.size
