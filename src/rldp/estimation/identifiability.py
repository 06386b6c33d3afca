"""What reports can determine: the null space of the channel, and bounds on the rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import LinearConstraint, milp
from scipy.sparse import csr_array

from rldp._types import Array, Flags
from rldp.channel import Channel
from rldp.checks import shown
from rldp.errors import DataError, ParameterError
from rldp.estimation.contrasts import sums_over_s, sums_over_u
from rldp.estimation.interval_estimates import normal_quantile
from rldp.estimation.inversion import Inverse
from rldp.estimation.moments import moments

_WIDENINGS = 60  # by which a confidence box without a distribution is widened


@dataclass(frozen=True, eq=False)
class Identifiability:
    """Which quantities the law of the reports determines.

    Args:
        rank: 1 + the dimension of the distributions that reports can distinguish; at most n_s n_u.
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
    cells: Flags
    s: Flags
    u: Flags


def identifiability(channel: Channel) -> Identifiability:
    """What reports of a channel can determine, if there are enough of them.

    >>> from rldp.channel import DenseChannel
    >>> merged = identifiability(DenseChannel([[[0.9, 0.1], [0.9, 0.1]], [[0.2, 0.8], [0.2, 0.8]]]))
    >>> merged.rank, merged.s.tolist(), merged.u.tolist()
    (2, [True, True], [False, False])
    """
    if not isinstance(channel, Channel):
        raise ParameterError(f"Expected a channel, such as p.channel, got {shown(channel)}.")
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

    These are all p ≥ 0 with sum 1 for which the mean of every feature lies in its confidence
    interval; all intervals hold at once by Šidák's inequality. With more reports the bounds
    approach the range that the law of the reports leaves possible. If there is no such
    distribution, the intervals are widened until there is one.
    """
    M = inverse.features.M
    # p sums to 1, so a constant may be subtracted from each row: then most have few entries
    common = np.median(M, axis=1, keepdims=True)
    rows, place = np.unique(np.round(M - common, 15), axis=0, return_index=True)
    centre = (M @ p - common[:, 0])[place]
    variance = np.einsum("kx,xy,ky->k", rows, covariance, rows)
    spread = normal_quantile(level, len(rows)) * np.sqrt(np.maximum(variance, 0)) + 1e-12
    sparse = csr_array(np.concatenate([rows, np.ones((1, len(p)))]))
    for _ in range(_WIDENINGS):
        box = LinearConstraint(
            sparse, np.append(centre - spread, 1.0), np.append(centre + spread, 1.0)
        )
        if _least(np.zeros(len(p)), box) is not None:
            break
        spread = 1.3 * spread
    least, most = C.min(axis=1), C.max(axis=1)
    low = [_least(c, box) for c in C]
    high = [_least(-c, box) for c in C]
    return (
        np.array(
            [a if x is None else np.clip(x, a, b) for x, a, b in zip(low, least, most, strict=True)]
        ),
        np.array(
            [
                b if x is None else np.clip(-x, a, b)
                for x, a, b in zip(high, least, most, strict=True)
            ]
        ),
    )


def _least(c: Array, box: LinearConstraint) -> float | None:
    """The least c·p over p ≥ 0 in the box, None where there is no such p."""
    result = milp(c, constraints=box)
    return None if result.fun is None or result.status != 0 else float(result.fun)


def full_table(inverse: Inverse, purpose: str) -> None:
    """Raise an error if not all cells are identified, and `purpose` needs all of them."""
    missing = len(inverse.p0) - 1 - inverse.V.shape[1]
    if missing:
        raise DataError(
            f"Expected a table that the reports determine for {purpose}, this protocol leaves "
            f"{missing} directions open; see e.identified."
        )
