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
from rldp.arithmetic import cube_root, exp, log

_ALL = 40.0  # log(β_1/β_2) where one ball has all of a shared budget, up to rounding
_STEPS = 60  # of Newton at most; a handful is usual
_MANY = 64  # rows that are worth a look at which of them are left
_ULP = float(np.finfo(float).eps)
_NO_DISTANCE = 1e-18  # of the size of a vector
_LEAST = 1e-300  # instead of nothing, to divide by


def total(terms: Array) -> Array:
    """Σ_u, with less overhead on small arrays than `terms.sum(axis=-1)`."""
    return np.asarray(np.add.reduce(terms, axis=-1))


class Extremum(NamedTuple):
    """A bound from the dual, how far its η lies beyond the extreme entry, and the slope in k."""

    value: Array
    distance: Array
    slope: Array


LargestMean = Callable[[Array, Array, Array], Extremum]
Excess = Callable[[Array, Array, Array], tuple[Array, Array]]


def largest_mean(T: Array, p: Array, k: Array) -> Extremum:
    """max R·T over the ball, with η = max T + distance; k = ∞ stands for all distributions."""
    top = T.max(axis=-1)
    gap = top[..., None] - T
    x = _distance_to_top(gap, p, k)
    S = total(p * np.sqrt(gap + x[..., None])) / k
    fall = S * S
    return Extremum(top + (x - fall), x, 2 * fall / k)


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
    """x = η - max T with S Z = k², and 0 where S Z is at most k² for all x.

    Products √((x + g)(x + h)) are x + (g + h)/2 - ∫ ρ(s)/(x + s) ds with ρ ≥ 0, so the derivative
    of S² is S Z = 1 + ∫ ρ(s)/(x + s)² ds.
    """
    seen = p > 0
    lowest = np.where(seen, gap, np.inf).min(axis=-1)  # no empty cell has a part in S and Z
    gap = np.where(seen, gap - lowest[..., None], 0.0)
    D = gap.max(axis=-1)
    is_zero = (D == 0) | np.isinf(k)
    D = np.where(is_zero, 1.0, D)
    gap = gap / D[..., None]  # so that no size of T under- or overflows
    B = np.where(is_zero, np.inf, np.maximum((k - 1) * (k + 1), 1e-15))
    x = np.where(is_zero, 1.0, _below_the_distance(gap, p, B))
    x = newton_from_below(_excess, gap, p, B, x)
    return np.where(is_zero, 0.0, np.maximum(D * x - lowest, 0.0))


def _excess(gap: Array, p: Array, x: Array) -> tuple[Array, Array]:
    """S Z - 1 and its slope over log x."""
    a = np.sqrt(gap + x[..., None])
    inverse = p / a
    S, Z, W = total(p * a), total(inverse), total(inverse / (a * a))
    return np.maximum(S * Z - 1, 0.0), x * (Z * Z - S * W) / 2


def newton_from_below(excess: Excess, gap: Array, p: Array, B: Array, x: Array) -> Array:
    """Where an excess of the form ∫ ρ(s)/(x + s)² ds, ρ ≥ 0, is B, from an x below.

    By Minkowski 1/√excess is concave in x, so that Newton's steps towards 1/√B never pass it.
    """
    for _ in range(_STEPS):
        value, slope = excess(gap, p, x)
        step = 2 * value * (1 - np.sqrt(value / B)) / np.minimum(slope, -_LEAST)
        step = np.maximum(step, 0.0)  # back is rounding
        x = x + x * step
        is_open = step > 1e-8
        n_open = np.count_nonzero(is_open)
        if n_open == 0:
            break
        if 2 * n_open < x.size >= _MANY:  # go on with the others alone
            p = np.broadcast_to(p, gap.shape)[is_open]
            x[is_open] = newton_from_below(excess, gap[is_open], p, B[is_open], x[is_open])
            break
    return x


def _below_the_distance(gap: Array, p: Array, B: Array) -> Array:
    """An x with S Z ≥ 1 + B; it is the largest one where gaps have two values, of which 0 is one.

    With the mass m at gap 0 and S', Z' of the others, S Z is m² + S' Z' + m (S'/√x + √x Z'). Here
    S' Z' ≥ (1 - m)², and S'²/x ≥ S'(0)²/x + (1 - m)² =: (1 - m)² r². So S Z ≥ 1 + B if
    m (1 - m) (√r - 1/√r)² = B.
    """
    at_top = gap == 0
    m, others = total(p * at_top), total(p * ~at_top)
    b = np.sqrt(B / np.maximum(m * others, _LEAST))
    root = (b + np.sqrt(b * b + 4)) / 2  # of r
    mean = total(p * np.sqrt(gap)) / np.maximum(others, _LEAST)
    x = mean * mean / (b * root * (root * root + 1))  # b √r = r - 1
    return np.asarray(np.maximum(x, 1e-200))  # where a³ does not underflow yet


class Split(NamedTuple):
    """The worst split of a shared budget: its first part and both extrema."""

    first: Array
    top: Extremum
    bottom: Extremum

    @property
    def log_ratio(self) -> Array:
        """The logarithm of the worst ratio of the two means."""
        with np.errstate(divide="ignore"):
            low = log(np.maximum(self.bottom.value, 0.0))
        return np.asarray(log(self.top.value) - low)


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
    # both means at once, the smaller one as the largest of -T
    T, p = np.stack([one.T, -two.T]), np.stack([one.p, two.p])
    weight, shape = np.stack([one.weight, two.weight]), one.weight.shape
    low, high = np.full(shape, -_ALL), np.full(shape, _ALL)
    x, old_x, old_y = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for step in range(_STEPS):
        parts = budget / (1 + exp(np.stack([-x, x])))  # x = log(β_1/β_2)
        found = largest(T, p, 1 + parts / weight)
        gain, loss = found.slope / weight
        if ratio is None:
            gain, loss = gain * -found.value[1], loss * found.value[0]
        else:
            loss = loss * ratio
        y = log(np.maximum(gain, 1e-300)) - log(np.maximum(loss, 1e-300))
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
        is_inside = (new > low) & (new < high) & (step < 8 or step % 4 < 3)  # halving now and then
        new = np.where(is_one_sided, end, np.where(is_inside, new, (low + high) / 2))
        x = np.where(is_there, x, new)
    top, bottom = (Extremum(*each) for each in zip(*found, strict=True))
    return Split(parts[0], top, negated(bottom))


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
    S, Z, V = total(p * a), total(inverse) / 2, -total(inverse / (a * a)) / 4
    part = cube_root((weight * S / 2) ** 2)
    W = part[0] + part[1]
    c = 12 * W / (K * K)
    value = x[0] + x[1] - c * W * W / 3
    ratio = Z / S
    slope = 2 / 3 * part * ratio
    bend = 2 / 3 * part * (V / S - ratio * ratio / 3)
    g = 1 - c * W * slope
    h = -c * (2 * slope * slope + W * bend)
    cross = -2 * c * slope[0] * slope[1]
    product = h[0] * h[1]
    determinant = np.maximum(product - cross * cross, 1e-6 * product)
    step = (cross * g[::-1] - h[::-1] * g) / determinant
    low, high = -0.9 * x, 9 * x
    kept = np.minimum(np.maximum(step, low), high)
    is_held = step != kept
    if is_held.any():  # where a number is held back, the other one answers to that
        answer = np.minimum(np.maximum(-(g + cross * kept[::-1]) / h, low), high)
        size = np.abs(step / x)
        first = is_held[0] & (size[0] >= size[1])
        kept[1] = np.where(first, answer[1], kept[1])
        kept[0] = np.where(is_held.any(axis=0) & ~first, answer[0], kept[0])
    new = np.where(value <= best, x + kept, (x + at) / 2)
    change = np.abs(new - x)
    is_small = np.abs(g * change).sum(axis=0) <= 1e-12
    return new, value, is_small & (change < x / 2).all(axis=0)
