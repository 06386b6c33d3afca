"""What reports can tell at all: the null space of the channel, and bounds on what lies in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from rldp.channel import Channel
from rldp.errors import DataError
from rldp.estimation.cells import sums_over_s, sums_over_u
from rldp.estimation.figures import normal_quantile
from rldp.estimation.inversion import Inverse
from rldp.estimation.moments import moments

Array = NDArray[np.float64]

_WIDENINGS = 60  # of a confidence box that holds no distribution


@dataclass(frozen=True, eq=False)
class Identifiability:
    """Which quantities the law of the reports determines.

    Args:
        rank: dimension of the distributions that reports tell apart, plus 1; n_s n_u at most.
        is_full: whether the whole table is identified.
        condition: 1 over the smallest canonical correlation of record and report for records that
            are uniform: how much larger standard errors are in the worst direction than without
            any noise. Infinite unless `is_full`.
        cells: mask of identified cells, shape (n_s, n_u).
        s: mask of identified marginal probabilities of S.
        u: mask of identified marginal probabilities of U.
    """

    rank: int
    is_full: bool
    condition: float
    cells: NDArray[np.bool_]
    s: NDArray[np.bool_]
    u: NDArray[np.bool_]


def identifiability(channel: Channel) -> Identifiability:
    """What reports of a channel can tell, whatever their number.

    >>> from rldp.channel import DenseChannel
    >>> merged = identifiability(DenseChannel([[[0.9, 0.1], [0.9, 0.1]], [[0.2, 0.8], [0.2, 0.8]]]))
    >>> merged.rank, merged.s.tolist(), merged.u.tolist()
    (2, [True, True], [False, False])
    """
    n_s, n_u = channel.shape
    m = n_s * n_u
    inverse = Inverse.at(moments(channel), np.full(m, 1 / m))
    rank = inverse.V.shape[1] + 1
    return Identifiability(
        rank=rank,
        is_full=rank == m,
        condition=float(1 / inverse.correlations[m - 2]) if 1 < rank == m else float(np.inf),
        cells=inverse.identified(np.eye(m)).reshape(n_s, n_u),
        s=inverse.identified(sums_over_u(n_s, n_u)),
        u=inverse.identified(sums_over_s(n_s, n_u)),
    )


def bounds(
    inverse: Inverse, p: Array, covariance: Array, C: Array, level: float
) -> tuple[Array, Array]:
    """The least and largest C·p over distributions that the reports do not exclude.

    These are all p ≥ 0 with sum 1 whose identified directions lie in a box around their estimates:
    with the eigenvectors of their covariance for axes, each at the level that Šidák's inequality
    asks for if all shall hold at once. With ever more reports the bounds become sharp: what the law
    of the reports leaves possible. If no distribution is in the box, it is widened until one is.
    """
    values, axes = np.linalg.eigh(inverse.V.T @ covariance @ inverse.V)
    directions = (inverse.V @ axes).T
    centre = directions @ p
    spread = normal_quantile(level, max(1, len(values))) * np.sqrt(np.maximum(values, 0)) + 1e-12
    if _extreme(np.zeros(len(p)), directions, centre, spread) is None:
        for _ in range(_WIDENINGS):
            spread = 1.3 * spread
            if _extreme(np.zeros(len(p)), directions, centre, spread) is not None:
                break
    ends = np.empty((2, len(C)))
    for j, c in enumerate(C):
        for row, sign in enumerate((1.0, -1.0)):
            value = _extreme(sign * c, directions, centre, spread)
            ends[row, j] = c.min() if sign > 0 else c.max()
            if value is not None:
                ends[row, j] = np.clip(sign * value, c.min(), c.max())
    return ends[0], ends[1]


def _extreme(c: Array, directions: Array, centre: Array, spread: Array) -> float | None:
    """The least c·p, None where there is no such p."""
    result = linprog(
        c,
        A_ub=np.concatenate([directions, -directions]) if len(directions) else None,
        b_ub=np.concatenate([centre + spread, spread - centre]) if len(directions) else None,
        A_eq=np.ones((1, len(c))),
        b_eq=[1.0],
        method="highs",
    )
    return None if result.fun is None or result.status != 0 else float(result.fun)


def full_table(inverse: Inverse, purpose: str) -> None:
    """Refuse a purpose that needs every cell where some are not identified."""
    missing = len(inverse.p0) - 1 - inverse.V.shape[1]
    if missing:
        raise DataError(
            f"Expected a table that the reports determine for {purpose}, this protocol leaves "
            f"{missing} directions open; see e.identified."
        )
