"""objective="robust": the most utility that is guaranteed for every P in F; thm:poly2, Q².

A column v has the gain μ²(v) = min over P in F of Σ v_x P_x log v_x - p log p, and L = Σ θ_v μ²(v)
is a lower bound on I_P(X;Y) for all P in F. Where all vertices can be listed, the optimum over them
is exact, and the bound says no more than that: μ² is not convex, so columns inside Γ may have more,
and the theorem leaves them out. On larger tables columns that are good at P̂ are tried, and since
μ² ≤ μ their bound holds here too.
"""

from __future__ import annotations

import numpy as np

from rldp._types import Array
from rldp.arithmetic import exp
from rldp.designing.column_generation.master import Master, simple_columns
from rldp.designing.column_generation.progress import Progress, untold
from rldp.designing.column_generation.solution import Solution
from rldp.designing.polyopt.cone import is_extreme
from rldp.designing.polyopt.exact_pricing import ExactPricing
from rldp.designing.polyopt.s_block import Block, possible_cells
from rldp.designing.solvers.work import is_past
from rldp.errors import TooLargeError
from rldp.uncertainty import UncertaintySet
from rldp.utility.robust import smallest_informations


def robust_columns(
    F: UncertaintySet,
    epsilon: float,
    *,
    distinct: bool,
    deadline: float = np.inf,
    progress: Progress | None = None,
) -> Solution:
    """The protocol of vertices of Γ that has the largest L, and a bound on every such L.

    Other columns of Γ may have more. The bound is a proof in real numbers, computed in doubles.
    """
    p_su, p_min = F.table.p_su, F.conditional_bounds[0]
    factor = float(exp(epsilon))
    blocks = [Block(m, p) for m, p in zip(p_min, p_su, strict=True)]
    if not ExactPricing.is_possible(blocks, factor, distinct=distinct):
        raise TooLargeError(
            f"The robust objective needs a list of all vertices, and {len(blocks)} × "
            f"{blocks[0].n_u} cells have too many; use objective='empirical' and robust_utility()."
        )
    pricing = ExactPricing(blocks, factor, distinct=distinct)
    master = Master(p_su, possible_cells(blocks), lambda v: smallest_informations(v, F).lower)
    if pricing.n_columns <= 60_000:
        columns = pricing.columns()
        master.add(columns[is_extreme(columns, blocks, factor, distinct=distinct)])
        optimum = master.solved()
        bound = optimum.value + 1e-9
        return Solution(master.protocol(optimum), optimum.value, bound)
    master.add(simple_columns(p_su.shape, factor, distinct=distinct))
    return _generated(master, pricing, deadline, progress or untold)


def _generated(
    master: Master, pricing: ExactPricing, deadline: float, progress: Progress
) -> Solution:
    """Column generation with the pricing of μ, keeping the columns that improve L."""
    optimum, bound = master.solved(), np.inf
    try:
        while not is_past(deadline):
            duals = master.duals(optimum)
            priced = pricing.price(duals, 1e-9, 200)
            bound = min(bound, optimum.value + priced.bound)
            progress(optimum.value, bound)
            reduced_costs = _reduced_costs(master, priced.columns, duals)
            if not (reduced_costs > 1e-9).any():
                break
            master.add(priced.columns[reduced_costs > 1e-9])
            optimum = master.solved()
    except KeyboardInterrupt:
        return Solution(master.protocol(optimum), optimum.value, bound, is_interrupted=True)
    return Solution(master.protocol(optimum), optimum.value, bound)


def _reduced_costs(master: Master, columns: Array, duals: Array) -> Array:
    return np.asarray(master.gains(columns) - np.einsum("vsu,su->v", columns, duals))
