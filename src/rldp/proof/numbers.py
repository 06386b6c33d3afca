"""Roots, exponentials, logarithms and the χ² law, each rounded to a known side.

Reals are integers in units of 1/ONE.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from rldp.proof.work import spend

ONE = 1 << 128
BITS = 384  # working precision for exp and the χ² law
_WIDTH = 160  # working precision for logarithms
_HIGH = 32  # a degree from which on roots take more work than logarithms
PI = Fraction(  # an upper bound of π: rounded up at the 99th decimal
    "3.1415926535897932384626433832795028841971693993751"
    "05820974944592307816406286208998628034825342117068"
)


def ceil(a: int, b: int) -> int:
    """The smallest integer from a/b on."""
    return -(-a // b)


def root(n: int, k: int) -> int:
    """The integer part of the k-th root of n ≥ 0.

    Each of Newton's steps from above falls, but not below it. The start is above: its logarithm is
    too large by 1e-9, and that of a float is right to 1e-10.

    >>> [root(n, 3) for n in (0, 7, 8, 10**30)]
    [0, 1, 2, 10000000000]
    """
    if k == 1 or n < 2:
        return n
    if k == 2:
        return math.isqrt(n)
    bits = n.bit_length()
    spend(3 * (bits // (30 * k)).bit_length() + 6, bits)  # from 30 digits on, a step doubles them
    whole, rest = divmod(math.log2(n) / k, 1.0)
    x: int = (math.ceil(2.0 ** (rest + 53) * (1 + 2.0**-30)) << int(whole) >> 53) + 1
    while (quotient := n // pow(x, k - 1)) < x:
        x = ((k - 1) * x + quotient) // k
    return x


def power_below(x: int, top: int, bottom: int) -> int:
    """A lower bound of x^(top/bottom), both in units of 1/ONE: its integer part for low degrees.

    Roots of high degrees are of numbers with thousands of digits, so these go by logarithms, and
    lose a part of 2^-120.
    """
    if max(top, bottom) > _HIGH:
        return power_of_e_below(log_below(x) * top // bottom) if x else 0
    more = bottom - top
    spend(2, x.bit_length() * max(top, bottom))
    return root(x**top * ONE**more if more >= 0 else x**top // ONE**-more, bottom)


def log_below(x: int) -> int:
    """A lower bound of log(x) for x > 0, both in units of 1/ONE, and less than 4 units below it.

    With x = 2^e m, 1 ≤ m < 2, and z = (r-1)/(r+1) for r = m^(1/8), log m = 16 (z + z³/3 + ...). All
    terms are positive, and rounded down.

    >>> log_below(2 * ONE) * 10**30 // ONE
    693147180559945309417232121458
    """
    spend(_WIDTH // 2, _WIDTH)
    e, one = x.bit_length() - 1, 1 << _WIDTH
    r = x << (_WIDTH - e) if e <= _WIDTH else x >> (e - _WIDTH)
    for _ in range(3):
        r = math.isqrt(r << _WIDTH)
    unit = ONE.bit_length() - 1
    e -= unit
    log_2 = _LOG_2 if e >= 0 else _LOG_2 + (1 << 10)
    log_m = 16 * _series((r - one) * one // (r + one))
    return (log_m + e * log_2) >> (_WIDTH - unit)


def log_above(x: int) -> int:
    """An upper bound of log(x) for x > 0, both in units of 1/ONE."""
    return log_below(x) + 4


def _series(z: int) -> int:
    """z + z³/3 + z⁵/5 + ... from below, less by 2^9 units at most for z ≤ 1/3."""
    square, total, j = z * z >> _WIDTH, 0, 1
    while z:
        total, z, j = total + z // j, z * square >> _WIDTH, j + 2
    return total


_LOG_2 = 2 * _series((1 << _WIDTH) // 3)  # log 2 = 2 (1/3 + 1/3³/3 + ...), 2^10 units too small


@lru_cache(maxsize=16)  # many proofs of one ε
def exp_below(x: Fraction, bits: int = BITS) -> tuple[int, int]:
    """Integers m, e with m 2^e ≤ exp(x), less by a part of 2^(4-bits) at most.

    1 + y ≤ exp(y) for every y, so (1 + x/2^h)^(2^h) ≤ exp(x): h squarings, each rounded down.
    The logarithms differ by x²/2^h at most, and each squaring doubles the relative error.

    >>> m, e = exp_below(Fraction(1))
    >>> math.floor(m * Fraction(2)**e * 10**30)
    2718281828459045235360287471352
    """
    h = bits + 2 * math.ceil(abs(x)).bit_length()
    width = h + bits
    spend(2 * h, 2 * width)
    m, e = math.floor((1 + x / 2**h) * 2**width), -width
    for _ in range(h):
        cut = max(0, 2 * m.bit_length() - width)
        m, e = m * m >> cut, 2 * e + cut
    return m, e


def is_quantile(x: Fraction, df: int, alpha: Fraction) -> bool:
    """Whether it is proved that χ² with df degrees of freedom exceeds x with chance α at most.

    The chance to stay below x = 2t is e^-t Σ_j t^(j/2)/Γ(j/2 + 1) over j = df, df+2, ... As
    Γ(j/2 + 1) = j/2 (j-2)/2 ... down to 2/2, or to 1/2 times √π, the summand is (x/j)(x/(j-2)) ...
    down to x/2, or to x/1 over √(πt). All are positive: any of them make a lower bound.

    >>> [is_quantile(Fraction(x), 3, Fraction(1, 20)) for x in ("7.8147279", "7.8147280")]
    [False, True]
    """
    # the chance grows with x, so any smaller x proves no less: one in binary digits that keeps the
    # loop short; all is precise enough for α > 1e-80
    step = math.floor(min(x, Fraction(2 * df + 1000)) * 2**BITS)
    if step <= 0:
        return False
    spend(4 * (df + 1000), 4 * BITS)
    j, term, total, exponent = 2 - df % 2, 1 << BITS, 0, -BITS
    while term:  # ends, as x/j < 1/2 from some j on
        term = (term * step // j) >> BITS
        total += term if j >= df else 0
        cut = BITS if term.bit_length() > 3 * BITS else 0
        j, term, total, exponent = j + 2, term >> cut, total >> cut, exponent + cut
    t = Fraction(step, 2 ** (BITS + 1))
    m, e = exp_below(-t)
    shift = exponent + e + BITS
    chance = Fraction(total * m << shift if shift > 0 else total * m >> -shift, 2**BITS)
    return chance**2 >= (1 - alpha) ** 2 * (PI * t if df % 2 else 1)


def is_finite_quantile(x: Fraction, df: int, alpha: Fraction) -> bool:
    """Whether it is proved that 2n KL(P̂‖P) of df + 1 cells exceeds x with chance α at most.

    For t = x/2 ≥ df the chance is at most e^(df-t) (t/df)^df, for every n and P (docs/guarantee.md,
    Theorem 19). This falls as t grows, so t may be rounded down.

    >>> [is_finite_quantile(Fraction(x), 3, Fraction(1, 20)) for x in ("18.864644", "18.864645")]
    [False, True]
    """
    t = math.floor(x * ONE / 2)
    log_alpha = log_below(alpha.numerator * ONE) - log_above(alpha.denominator * ONE)
    return t >= df * ONE and t - df * ONE - df * log_above(ceil(t, df)) + log_alpha >= 0


def is_binomial_tail(k: int, n: int, p: Fraction, alpha: Fraction) -> bool:
    """Whether it is proved that Bin(n, p) is k or less with chance α at most.

    The chance is (1-p)^n Σ_{j≤k} r_j, r_0 = 1 and r_j = r_(j-1) (n-j+1) p/(j (1-p)), each rounded
    up. Where k > n/2 the terms are taken from j = k on downwards, as those of n - j hits of 1-p.

    >>> [is_binomial_tail(0, 10, Fraction(p), Fraction(1, 20)) for p in ("0.25", "0.26")]
    [False, True]
    """
    if k >= n or p <= 0:
        return alpha >= 1
    if p >= 1:
        return True
    top, bottom = p.numerator, p.denominator
    width = BITS
    spend(4 * (k + 64), width + 2 * bottom.bit_length())
    rest = bottom - top  # (1-p) · bottom
    mantissa, exponent = _power_above(rest, bottom, n)
    term = total = 1 << width  # in units of 2^-width, and of 2^shift
    shift = 0
    for j in range(1, k + 1):
        term = ceil(term * (n - j + 1) * top, j * rest)
        total += term
        if total.bit_length() > 3 * width:
            term, total, shift = (term >> width) + 1, (total >> width) + 1, shift + width
    exponent += shift - width
    chance = mantissa * total
    above, below = max(exponent, 0), max(-exponent, 0)
    return (chance * alpha.denominator) << above <= alpha.numerator << below


def _power_above(top: int, bottom: int, n: int) -> tuple[int, int]:
    """Integers m, e with (top/bottom)^n ≤ m 2^e, for 0 < top ≤ bottom, by squares rounded up."""
    width = BITS
    square, e_square = ceil(top << width, bottom), -width
    m, e = 1, 0
    while n:
        if n & 1:
            m, e = m * square, e + e_square
            cut = max(0, m.bit_length() - width)
            m, e = ceil(m, 1 << cut), e + cut
        square, e_square = square * square, 2 * e_square
        cut = max(0, square.bit_length() - width)
        square, e_square = ceil(square, 1 << cut), e_square + cut
        n >>= 1
    return m, e


def power_of_e_below(x: int) -> int:
    """A lower bound of e^x, both in units of 1/ONE."""
    m, e = exp_below(Fraction(x, ONE), 192)
    e += ONE.bit_length() - 1
    return m << e if e >= 0 else m >> -e
