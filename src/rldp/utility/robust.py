"""How useful a channel is at worst: min I_P(X;Y) over F, proven from below and attained from above.

I_P is concave in P. From above, a linear step decreases it: minimise its tangent over F, again and
again. From below, for any numbers q_y > 0 and shares θ_y ≥ 0 that sum to 1, with p_y = Σ P_x Q_xy
and D_x = Σ_y Q_xy log(Q_xy/q_y),

    I_P  =  D·P - Σ_y p_y log(p_y/q_y)  =  Σ_y [θ_y D·P + p_y - p_y log(p_y/q_y)] - 1,

and every bracket has a minimum over F that can be proven (`entropy_minimum`). With q the law of Y
at the worst P, each bracket is smallest at that P once its share suffices; nothing is lost then.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from rldp._types import Array
from rldp.arithmetic import log, matmul
from rldp.channel import Channel
from rldp.errors import DataError
from rldp.uncertainty import KnownDistribution, UncertaintySet
from rldp.utility.entropy_minimum import Minima, smallest_sums

_ULP = float(np.finfo(float).eps)
_MOST_ENTRIES = 2**18  # of a matrix whose outputs are listed
_FEW_ENTRIES = 2**16  # of one whose shares are improved
_MOST_STARTS = 24  # cells, and outputs, that a descent starts towards and away from
_STEPS = 200  # of a descent at most; a dozen is usual
_ROUNDS = 12  # of better shares at most
_ATOL = 1e-9  # between both values where the search may end
_FEW_STEPS = 1  # of a descent without outputs, after the first


@dataclass(frozen=True)
class RobustUtility:
    """min I_P(X;Y) over F in nats: at least `lower`, and `upper` at `distribution`, which is in F.

    Where outputs are too many to list, `lower` rests on data processing and may be far below.
    """

    lower: float
    upper: float
    distribution: Array


def robust_utility(channel: Channel, F: UncertaintySet) -> RobustUtility:
    """How useful a channel is under the worst distribution in F.

    >>> from rldp import AllDistributions, DenseChannel, Table
    >>> reveal = DenseChannel(np.eye(4).reshape(2, 2, 4))
    >>> robust_utility(reveal, AllDistributions(Table([[1, 1], [1, 1]]))).upper  # X is a constant
    0.0
    """
    table = F.table
    if channel.shape != (table.n_s, table.n_u):
        raise DataError(
            f"Expected a channel for {table.n_s} × {table.n_u} cells, got {channel.shape}."
        )
    if isinstance(F, KnownDistribution):
        return _result(*channel.mutual_information_bounds(table.p_su), table.p_su)
    if table.counts.size * channel.n_outputs > _MOST_ENTRIES:
        return _unlisted(channel, F)
    v = channel.matrix.transpose(2, 0, 1)
    v = v[v.any(axis=(1, 2))]
    upper, P = _descent(v, F, _starts(v, F))
    lower = _split_bound(v, F, P, upper) if upper > _ATOL else 0.0
    if upper - lower > _ATOL:
        apart = smallest_informations(v, F)
        lower = max(lower, math.fsum(apart.lower))
        other, elsewhere = _descent(v, F, _some(apart.distributions))
        if other < upper - _ATOL:
            upper, P = other, elsewhere
            lower = max(lower, _split_bound(v, F, P, upper))
    return _result(lower, upper, P)


def smallest_informations(columns: Array, F: UncertaintySet) -> Minima:
    """μ² of thm:poly2 for columns v of shape (n, n_s, n_u), v ≥ 0, each with a worst P of its own.

    μ²(v) = min over P in F of Σ v_x P_x log(v_x/p), p = Σ v_x P_x; μ²(c v) = c μ²(v). Summed over
    the columns of a channel it is at most min I_P(X;Y).
    """
    v = np.asarray(columns, dtype=float)
    size = v.max(axis=(1, 2))
    v = v / np.where(size > 0, size, 1.0)[:, None, None]
    lower, upper, P = smallest_sums(np.asarray(xlogy(v, v), dtype=float), v, F)
    return Minima(size * np.maximum(lower, 0.0), size * np.maximum(upper, 0.0), P)


def _result(lower: float, upper: float, P: Array) -> RobustUtility:
    P = np.array(P)
    P.setflags(write=False)
    return RobustUtility(max(0.0, min(lower, upper)), max(0.0, upper), P)


def _starts(v: Array, F: UncertaintySet) -> Array:
    """P̂, and the ends of F towards and away from cells and outputs."""
    cells = np.eye(v[0].size).reshape(-1, *v.shape[1:])
    directions = np.concatenate([_some(cells), _some(v)])
    directions = np.concatenate([directions, -directions])
    return np.concatenate([F.table.p_su[None], F.smallest_expectation(directions)[1]])


def _some(rows: Array) -> Array:
    return rows[:: -(-len(rows) // _MOST_STARTS)]


def _descent(v: Array, F: UncertaintySet, P: Array) -> tuple[float, Array]:
    """The smallest I_P that tangents lead to from these P, shape (n, n_s, n_u), and where."""
    Q = v.reshape(len(v), -1).T
    h = xlogy(Q, Q).sum(axis=1)
    best, value = np.full(len(P), np.inf), _informations(P, Q, h)
    for _ in range(_STEPS):
        if not (value < best - 1e-14).any():
            break
        best = value
        p = np.maximum(matmul(P.reshape(len(P), -1), Q), 1e-300)
        P = F.smallest_expectation((h - matmul(log(p), Q.T)).reshape(P.shape))[1]
        value = _informations(P, Q, h)
    i = int(value.argmin())
    return float(value[i]), P[i]


def _informations(P: Array, Q: Array, h: Array) -> Array:
    flat = P.reshape(len(P), -1)
    p = matmul(flat, Q)
    return np.asarray(matmul(flat, h) - xlogy(p, p).sum(axis=1))


def _split_bound(v: Array, F: UncertaintySet, P: Array, upper: float) -> float:
    """A proven lower bound on I over F from the P where it seems to be smallest."""
    # an output that P never shows gets a little, so that D is finite
    q = np.maximum((v * P).sum(axis=(1, 2)), 1e-9 * v.max(axis=(1, 2)))
    ratio = v / q[:, None, None]
    terms = xlogy(v, ratio)
    D = terms.sum(axis=0)
    # p_y log p_y bends as the variance of Q_xy over p_y, for which its share must make up
    share = np.maximum((v * ratio * P).sum(axis=(1, 2)) - q, 0.0)
    share = share / share.sum() if share.sum() > 0 else np.full(len(v), 1 / len(v))
    rounding = _ULP * (len(v) + 16) * (1 + abs(terms).sum(axis=0).max())
    constant = float(v.sum(axis=0).max() + rounding)  # Σ_y p_y, which is 1 up to rounding

    def brackets(shares: Array) -> tuple[Array, Array]:
        """The least value of each bracket at each row of shares, and its slope in the share."""
        a = (shares / q)[..., None, None] * D + ratio
        many = np.broadcast_to(ratio, a.shape)
        found = smallest_sums(a.reshape(-1, *D.shape), many.reshape(-1, *D.shape), F)
        slopes = (found.distributions * D).sum(axis=(1, 2)).reshape(shares.shape)
        return q * found.lower.reshape(shares.shape), slopes

    values, slopes = brackets(share[None])
    lower = float(values.sum()) - constant
    points, new = share[None], share * np.array([[0.25], [0.5], [2.0], [4.0]])
    for step in range(_ROUNDS if v.size <= _FEW_ENTRIES else 0):
        if upper - lower <= _ATOL:
            break
        found, slope = brackets(new)
        points, values, slopes = (
            np.concatenate(pair) for pair in ((points, new), (values, found), (slopes, slope))
        )
        new, ceiling = _best_shares(points, values, slopes)
        if step:
            lower = max(lower, float(found.sum()) - constant)
        if ceiling - constant - lower < 0.01 * (upper - lower):
            break  # no shares do better
    return lower


def _best_shares(points: Array, values: Array, slopes: Array) -> tuple[Array, float]:
    """Shares that maximise a sum of concave functions as their tangents bound it, and this bound.

    All arrays have shape (points, outputs). At a price c every function asks for the share where
    its slope falls below c, and the right price is the one at which they ask for 1 together.
    """
    order = points.argsort(axis=0, kind="stable")
    t, h, g = (np.take_along_axis(each, order, 0) for each in (points, values, slopes))
    g = np.minimum.accumulate(g, axis=0)
    drop = g[:-1] - g[1:]
    is_bent = drop > 0
    cross = np.diff(h - g * t, axis=0) / np.where(is_bent, drop, 1.0)
    cross = np.clip(np.where(is_bent, cross, t[1:]), t[:-1], t[1:])
    asked = np.concatenate([np.zeros((1, t.shape[1])), cross, np.ones((1, t.shape[1]))])

    def shares(price: float) -> Array:
        count = (g > price).sum(axis=0)[None]
        return np.asarray(np.take_along_axis(asked, count, 0)[0])

    low, high = float(g.min()) - 1.0, float(g.max())
    for _ in range(60):
        price = (low + high) / 2
        low, high = (price, high) if shares(price).sum() > 1 else (low, price)
    more, less = shares(low), shares(high)
    part = (1 - less.sum()) / (more.sum() - less.sum())
    best = less + part * (more - less)
    best /= best.sum()  # what is proven holds for a sum of exactly 1
    return best[None], float((values + slopes * (best - points)).min(axis=0).sum())


def _unlisted(channel: Channel, F: UncertaintySet) -> RobustUtility:
    """The same without outputs, by data processing.

    With q the law of Y at any P*, and D_x = D(Q_x‖q), I_P = D·P - KL(P_Y‖q) ≥ D·P - KL(P‖P*).
    """
    center, divergence = F.divergence_ball()
    D = channel.divergences(center)
    lower = float(F.smallest_expectation(D)[0]) - divergence - 1e-12
    P = [F.table.p_su, F.smallest_expectation(D)[1]]
    for _ in range(_FEW_STEPS):
        D = np.minimum(channel.divergences(P[-1]), 1e6)  # ∞ where P shows no such report
        P.append(F.smallest_expectation(D)[1])
    uppers = [channel.mutual_information_bounds(each)[1] for each in P]
    return _result(lower, min(uppers), P[int(np.argmin(uppers))])
