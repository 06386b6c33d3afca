"""Largest and smallest mean over a χ² ball, with the multiplier that proves it.

For a vector T, a distribution p and a radius k ≥ 1 the ball is {R : Σ p_u²/R_u ≤ k²}. By duality

    max R·T = min over η ≥ max T of η - (Σ_u p_u √(η - T_u))² / k²,

and any η at all gives an upper bound, so that η is a certificate of one number. The minimiser has
S Z = k² with S = Σ p √(η - T) and Z = Σ p/√(η - T), and the maximiser is R_u ∝ p_u/√(η - T_u).
All functions are vectorised: T and p have shape (..., n_u), k has shape (...).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rldp._types import Array, Flags

_ALL = 40.0  # log(β_1/β_2) where one ball has all of a shared budget, up to rounding
_STEPS = 60  # of Newton at most; a handful is usual
_ULP = float(np.finfo(float).eps)
_NO_DISTANCE = 1e-18  # of the size of a vector


class Extremum(NamedTuple):
    """A bound from the dual, how far its η lies beyond the extreme entry, and the slope in k."""

    value: Array
    distance: Array
    slope: Array


LargestMean = Callable[[Array, Array, Array], Extremum]


def largest_mean(T: Array, p: Array, k: Array) -> Extremum:
    """max R·T over the ball, with η = max T + distance; k = ∞ stands for all distributions."""
    T, p = np.broadcast_arrays(T, p)
    k = np.broadcast_to(k, T.shape[:-1])
    top = T.max(axis=-1)
    gap = top[..., None] - T
    x = _distance_to_top(gap, p, k)
    S = (p * np.sqrt(gap + x[..., None])).sum(axis=-1)
    finite = np.isfinite(k)
    safe = np.where(finite, k, 1.0)
    value = np.where(finite, top + (x - (S / safe) ** 2), top)
    return Extremum(value, x, np.where(finite, 2 * S**2 / safe**3, 0.0))


def negated(found: Extremum) -> Extremum:
    """The smallest mean of T from the largest of -T; its multiplier is min T - distance."""
    return Extremum(-found.value, found.distance, -found.slope)


def maximiser(T: Array, p: Array, k: ArrayLike) -> Array:
    """The distributions in the balls that attain the largest means, shape (..., n_u)."""
    T, p = np.broadcast_arrays(T, p)
    k = np.broadcast_to(np.asarray(k, dtype=float), T.shape[:-1])
    gap = T.max(axis=-1, keepdims=True) - T
    D = gap.max(axis=-1, keepdims=True)
    gap = gap / np.where(D > 0, D, 1.0)
    gap += _distance_to_top(gap, p, k)[..., None]
    at_top = gap == 0
    safe = np.where(at_top, 1.0, gap)
    R = np.where(at_top, 0.0, p / np.sqrt(safe))
    is_tilted = ~at_top.any(axis=-1, keepdims=True)
    total = np.where(is_tilted, R.sum(axis=-1, keepdims=True), 1.0)
    S = np.where(at_top, 0.0, p * np.sqrt(safe)).sum(axis=-1)
    # empty cells at the top get what the others can spare: theirs is Σ p²/R = k² on less mass
    R *= np.where(is_tilted, 1 / total, (S / k**2)[..., None])
    spare = np.where(is_tilted[..., 0], 0.0, np.maximum(1 - R.sum(axis=-1), 0.0))
    end = T.argmax(axis=-1)[..., None]
    np.put_along_axis(R, end, np.take_along_axis(R, end, -1) + spare[..., None], -1)
    is_there = (at_top & (p > 0)).any(axis=-1) & np.isfinite(k)  # all mass at the top already
    return np.asarray(np.where(is_there[..., None], p, R))


class Attained(NamedTuple):
    """A bound on the safe side of rounding, and an R in the ball that attains it."""

    value: Array
    R: Array


def attained_minimum(T: Array, p: Array, B: float) -> Attained:
    """min R·T over the ball with k² = 1 + B from below, and an R in the ball that attains it."""
    T, p = np.broadcast_arrays(T, p)
    low = T.min(axis=-1)
    gap = T - low[..., None]
    D = gap.max(axis=-1)
    gap /= np.where(D > 0, D, 1.0)[..., None]
    k = np.broadcast_to(1 + B / (np.sqrt(1 + B) + 1), D.shape)
    x = _distance_to_top(gap, p, k)
    root = np.sqrt(x)[..., None]
    a = np.sqrt(gap + x[..., None])
    # S = √x + h, and S² - x without the cancellation of two large numbers
    h = (p * gap / np.where(a + root > 0, a + root, 1.0)).sum(axis=-1)
    gain, loss = h * (h + 2 * root[..., 0]), B * x
    rounding = _ULP * ((p.shape[-1] / 4 + 16) * (gain + loss) * D + 2 * abs(low))
    value = low + D * (gain - loss) / (1 + B) - rounding
    at_end = a == 0
    R = np.where(at_end, 0.0, p / np.where(at_end, 1.0, a))
    is_tilted = (x > 0)[..., None]
    total = np.where(is_tilted, R.sum(axis=-1, keepdims=True), 1.0)
    R *= np.where(is_tilted, 1 / total, (h / (1 + B))[..., None])
    # empty cells at the end get what the others can spare
    spare = np.where(is_tilted[..., 0], 0.0, np.maximum(1 - R.sum(axis=-1), 0.0))
    end = T.argmin(axis=-1)[..., None]
    np.put_along_axis(R, end, np.take_along_axis(R, end, -1) + spare[..., None], -1)
    is_there = (at_end & (p > 0)).any(axis=-1, keepdims=True)  # all mass at the end already
    return Attained(value, np.where(is_there, p, R))


def _distance_to_top(gap: Array, p: Array, k: Array) -> Array:
    """x = η - max T with S Z = k²."""
    A = np.where(np.isfinite(k), k, 1.0) ** 2
    D = gap.max(axis=-1)
    gap = gap / np.where(D > 0, D, 1.0)[..., None]  # so that no size of T under- or overflows
    at_top = gap == 0
    mass = np.where(at_top, p, 0.0).sum(axis=-1)
    below = np.where(at_top, 0.0, p)
    root = np.sqrt(np.where(at_top, 1.0, gap))
    S_0, Z_0 = (below * root).sum(axis=-1), (below / root).sum(axis=-1)
    # no x is needed where the top is empty and the rest already reaches k², or nothing varies
    is_zero = (mass == 0) & (S_0 * Z_0 <= A) | (S_0 == 0) | (D == 0) | ~np.isfinite(k)
    A_1 = np.where(is_zero, 2.0, np.maximum(A, 1 + 1e-15))
    # S Z ≤ (r+1)²/4r with r² = 1 + 1/x (Kantorovich), and S Z ≥ mass · S_0/√x
    r = 2 * A_1 - 1 + 2 * np.sqrt(A_1 * (A_1 - 1))
    high = 1 / ((r - 1) * (r + 1))
    low = np.where(mass > 0, (mass * S_0 / A_1) ** 2, 1e-30)
    low = np.log(np.maximum(np.minimum(low, high), 1e-200))  # where a³ does not underflow yet
    high = np.log(high)
    log_x = high
    for _ in range(_STEPS):
        # Newton on log log S Z, which is nearly linear in log x, kept inside the bracket
        x = np.exp(log_x)[..., None]
        a = np.sqrt(gap + x)
        S, Z, W = (p * a).sum(axis=-1), (p / a).sum(axis=-1), (p / a**3).sum(axis=-1)
        excess = np.maximum(np.log(S * Z), 1e-17)
        is_low = excess > np.log(A_1)
        low, high = np.where(is_low, log_x, low), np.where(is_low, high, log_x)
        slope = x[..., 0] * (Z / S - W / Z) / (2 * excess)
        step = np.log(excess / np.log(A_1)) / np.where(slope == 0, -1.0, slope)
        step = np.where(is_zero, 0.0, step)
        new, is_there = log_x - step, np.abs(step) < 1e-8
        halved = np.where((new > low) & (new < high), new, (low + high) / 2)
        log_x = np.where(is_there, new, halved)
        if is_there.all():
            break
    return np.where(is_zero, 0.0, D * np.exp(log_x))


class Split(NamedTuple):
    """The worst split of a shared budget: its first part and both extrema."""

    first: Array
    top: Extremum
    bottom: Extremum

    @property
    def log_ratio(self) -> Array:
        """The logarithm of the worst ratio of the two means."""
        with np.errstate(divide="ignore"):
            low = np.log(np.maximum(self.bottom.value, 0.0))
        return np.asarray(np.log(self.top.value) - low)


class Side(NamedTuple):
    """One of two balls that share a budget: a linear function T, the center p and a weight."""

    T: Array
    p: Array
    weight: Array


def worst_split(
    one: Side,
    two: Side,
    budget: float,
    ratio: Array | float | None = None,
    largest: LargestMean = largest_mean,
) -> Split:
    """Two balls with k_i = 1 + β_i/weight_i that share β_1 + β_2 = budget in the worst way.

    The worst way has the largest R_1·T_1 / R_2·T_2 or, where a `ratio` is given, the largest
    R_1·T_1 - ratio · R_2·T_2. The larger mean is concave and the smaller convex in β, so either has
    one peak, where gain and loss of a shift of budget agree. Both means change with the root of
    their budgets at first, so log(gain/loss) is nearly -log(β_1/β_2)/2 and secants find its zero.
    Where one mean is constant, the other gets all of the budget.
    Balls of another kind bring their own `largest`.
    """
    shape = one.weight.shape
    low, high = np.full(shape, -_ALL), np.full(shape, _ALL)
    x, old_x, old_y = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for step in range(_STEPS):
        first, second = budget / (1 + np.exp(-x)), budget / (1 + np.exp(x))  # x = log(β_1/β_2)
        top = largest(one.T, one.p, 1 + first / one.weight)
        bottom = negated(largest(-two.T, two.p, 1 + second / two.weight))
        gain, loss = top.slope / one.weight, -bottom.slope / two.weight
        if ratio is None:
            gain, loss = gain * bottom.value, loss * top.value
        else:
            loss = loss * ratio
        y = np.log(np.maximum(gain, 1e-300)) - np.log(np.maximum(loss, 1e-300))
        low, high = np.where(y > 0, x, low), np.where(y > 0, high, x)
        slope = np.full(y.shape, -0.5)
        if step:
            np.divide(y - old_y, x - old_x, out=slope, where=x != old_x)
        new = x - y / np.where(slope < -1e-6, slope, -1e-6)
        # half of the digits of the split give all of the ratio, which is flat at its peak
        is_there = (np.abs(new - x) < 1e-7) | (high - low < 1e-7) | (gain + loss == 0)
        is_one_sided = (gain == 0) != (loss == 0)
        end = np.where(gain > 0, _ALL, -_ALL)
        is_there |= is_one_sided & (x == end)
        if is_there.all():
            break
        old_x, old_y = x, y
        is_inside = (new > low) & (new < high) & (step % 4 < 3)  # halving now and then
        new = np.where(is_one_sided, end, np.where(is_inside, new, (low + high) / 2))
        x = np.where(is_there, x, new)
    return Split(first, top, bottom)


def shared_maximum(
    c_1: Array,
    p_1: Array,
    weight_1: Array,
    c_2: Array,
    p_2: Array,
    weight_2: Array,
    budget: float,
) -> Array:
    """max R_1·c_1 + R_2·c_2 over two balls that share a budget as in `worst_split`, from above.

    With S_i = Σ p_i √(μ_i - c_i), K = budget + weight_1 + weight_2 and W = Σ (weight_i S_i/2)^(2/3)
    the dual is the minimum over μ_i ≥ max c_i of μ_1 + μ_2 - 4 W³/K², and any μ gives a bound.
    """
    c, p = np.stack([c_1, c_2]), np.stack([p_1, p_2])
    weight = np.stack([weight_1, weight_2])
    top = c.max(axis=-1)
    gap = top[..., None] - c
    K = budget + weight.sum(axis=0)
    size = gap.max(axis=(0, -1))
    size = np.where(size > 0, size, 1.0)
    gap /= size[..., None]
    x = np.maximum(_distance_to_top(gap, p, 1 + budget / 2 / weight), _NO_DISTANCE)
    # at the minimum S_i² is η weight_i k_i³/2, and no k_i is far from 1
    square = (p * np.sqrt(gap + x[..., None])).sum(axis=-1) ** 2
    x = np.maximum(x, (square / weight).max(axis=0) * weight - square)
    shape = K.shape
    gap, p = (part.reshape(2, -1, c.shape[-1]) for part in (gap, p))
    weight, x, K = weight.reshape(2, -1), x.reshape(2, -1), K.reshape(-1)
    least, rows = np.full(K.shape, np.inf), np.arange(K.size)
    at, best = x, least
    for _ in range(_STEPS):
        new, value, is_there = _newton(gap, p, weight, K, x, at, best)
        at, best = np.where(value <= best, x, at), np.minimum(best, value)
        least[rows] = best
        if is_there.all():
            break
        x = np.maximum(new, _NO_DISTANCE)
        if 2 * np.count_nonzero(is_there) > rows.size:  # go on with the others alone
            left = ~is_there
            rows, K, best = rows[left], K[left], best[left]
            gap, p, weight, x, at = (part[:, left] for part in (gap, p, weight, x, at))
    return np.asarray(top.sum(axis=0) + size * least.reshape(shape))


def _newton(
    gap: Array, p: Array, weight: Array, K: Array, x: Array, at: Array, best: Array
) -> tuple[Array, Array, Flags]:
    """One step of Newton on a convex function of two positive numbers x, row by row.

    The answer is where it leads, the function at x, and whether x is the minimum. A step that led
    up from the best point so far is taken half way back to it.
    """
    a = np.sqrt(gap + x[..., None])
    inverse = p / a
    S, Z = (p * a).sum(axis=-1), inverse.sum(axis=-1) / 2
    V = -(inverse / (a * a)).sum(axis=-1) / 4
    part = np.cbrt((weight * S / 2) ** 2)
    W = part.sum(axis=0)
    value = x.sum(axis=0) - 4 * W**3 / K**2
    slope = 2 / 3 * part * Z / S
    bend = 2 / 3 * part * (V / S - (Z / S) ** 2 / 3)
    g = 1 - 12 * W**2 / K**2 * slope
    h = -12 / K**2 * (2 * W * slope**2 + W**2 * bend)
    cross = -24 / K**2 * W * slope[0] * slope[1]
    determinant = np.maximum(h[0] * h[1] - cross**2, 1e-6 * h[0] * h[1])
    step = -np.stack([h[1] * g[0] - cross * g[1], h[0] * g[1] - cross * g[0]]) / determinant
    kept = np.clip(step, -0.9 * x, 9 * x)
    # where a number is held back, the other one answers to that
    is_held = np.abs(step - kept) > 0
    answer = np.clip(-(g + cross * kept[::-1]) / h, -0.9 * x, 9 * x)
    first = is_held[0] & ((step[0] / x[0]) ** 2 >= (step[1] / x[1]) ** 2)
    kept[1] = np.where(first, answer[1], kept[1])
    kept[0] = np.where(is_held.any(axis=0) & ~first, answer[0], kept[0])
    new = np.where(value <= best, x + kept, (x + at) / 2)
    is_small = np.abs(g * (new - x)).sum(axis=0) <= 1e-12
    return new, value, is_small & (np.abs(new - x) < x / 2).all(axis=0)
