"""objective="robust": the most that is kept for certain, whatever P in F is true; thm:poly2, Q².

Every column v is worth μ²(v) = min over P in F of Σ v_x P_x log v_x - p log p, and L = Σ θ_v μ²(v)
is a lower bound on I_P(X;Y) for all P in F. Where all vertices can be listed the optimum over them
is exact; μ² is not convex, so columns inside Γ may have more, and the theorem leaves them out. On
larger tables columns that are good at P̂ are tried, and since μ² ≤ μ their bound holds here too.
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from rldp.errors import TooLargeError
from rldp.polyopt.blocks import Block
from rldp.polyopt.columns import Master, Progress, is_bound, simple_columns, untold
from rldp.polyopt.cone import is_extreme
from rldp.polyopt.listed import Listed
from rldp.polyopt.solve import MOST_LISTED, Solution
from rldp.robust import smallest_informations
from rldp.uncertainty import UncertaintySet

Array = NDArray[np.float64]

_MOST_COLUMNS = 60_000  # that are all written down
_CLOSED = 1e-9
_AT_ONCE = 100


def robust_columns(
    F: UncertaintySet,
    epsilon: float,
    *,
    distinct: bool,
    deadline: float = np.inf,
    progress: Progress | None = None,
) -> Solution:
    """The protocol with columns in Γ that has the largest L, and a bound on every L."""
    p_su, p_min = F.table.p_su, F.conditional_bounds[0]
    factor = float(np.exp(epsilon))
    blocks = [Block(m, p) for m, p in zip(p_min, p_su, strict=True)]
    size = Listed.size(blocks, factor, distinct=distinct)
    if size > MOST_LISTED:
        raise TooLargeError(
            f"The robust objective needs a list of all vertices, and {len(blocks)} × "
            f"{blocks[0].n_u} cells have too many; use objective='empirical' and robust_utility()."
        )
    pricing = Listed(blocks, factor, distinct=distinct)
    master = Master(p_su, is_bound(blocks), lambda v: smallest_informations(v, F).lower)
    if pricing.n_columns <= _MOST_COLUMNS:
        columns = pricing.columns()
        master.add(columns[is_extreme(columns, blocks, factor, distinct=distinct)])
        optimum = master.solved()
        return Solution(master.protocol(optimum), optimum.value, optimum.value + _CLOSED)
    master.add(simple_columns(p_su.shape, factor, distinct=distinct))
    return _generated(master, pricing, deadline, progress or untold)


def _generated(master: Master, pricing: Listed, deadline: float, progress: Progress) -> Solution:
    optimum, bound = master.solved(), np.inf
    try:
        while time.monotonic() < deadline:
            prices = master.prices(optimum)
            priced = pricing.priced(prices, _CLOSED, _AT_ONCE)
            bound = min(bound, optimum.value + priced.bound)
            progress(optimum.value, bound)
            worth = master.gains(priced.columns) - np.einsum("vsu,su->v", priced.columns, prices)
            if not (worth > _CLOSED).any():
                break
            master.add(priced.columns[worth > _CLOSED])
            optimum = master.solved()
    except KeyboardInterrupt:
        pass  # the best so far is what was asked for
    return Solution(master.protocol(optimum), optimum.value, bound)
