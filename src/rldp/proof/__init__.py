"""Whether a protocol file proves its own claim: exact arithmetic, no solver, nothing else of rldp.

The claim is robust local differential privacy: for every distribution P of the set F, every output
y and all s1 ≠ s2, P(y|s1) ≤ e^ε P(y|s2). A document holds ε, the counts that define F, the channel
as integers q in units of 2^-bits, and multipliers. Each multiplier turns into a bound by Lemma 1 or
Lemma 2, whatever its value: a poor one gives a weak bound, none gives a wrong one.

Notation. R_s = P_{U|s}; p_s and r_u = r_{u|s} are frequencies of the counts; E ≤ e^ε; x is at least
the (1-α)-quantile of χ² with n_s n_u - 1 degrees of freedom. Sums are over positive counts. Where s
was never seen, nothing is known of R_s.

Sets with one budget. F has a cost κ_s ≥ 0 of each R_s and a budget b such that, for all P in F,
    p_s κ_s ≤ b,    p_1 κ_1 + p_2 κ_2 ≤ b  for two s.                                        (1)
- Power sets of order q > 1, F = {P : Σ p_su^q P_su^(1-q) ≤ σ^q}, σ^q ≥ 1 + q(q-1) x/2n; order 2 is
  the χ² set. κ_s = k_s - 1 with k_s^q = Σ_u r_u^q R_u^(1-q), and b = σ - 1: Σ_s p_s k_s ≤
  (Σ p_s^q k_s^q P_s^(1-q))^(1/q) (Σ P_s)^(1-1/q) ≤ σ by Hölder, and k_s ≥ 1 in the same way.
- F = {P : Σ p_su log(p_su/P_su) ≤ b}, b ≥ x/2n. κ_s = Σ_u r_u log(r_u/R_u), which is ≥ 0, and the
  sum is Σ_s p_s κ_s + Σ_s p_s log(p_s/P_s), whose second part is ≥ 0.

Lemma 1 (one s). If μ ≥ max c then c·R ≤ μ - V(κ), where
- V(κ) = (A/(1+κ))^(q/(q-1)) for power sets, with A = Σ r_u (μ - c_u)^(1-1/q);
- V(κ) = G e^-κ for Kullback-Leibler, with log G = Σ r_u log(μ - c_u).
Proof. A = Σ (r_u R_u^(1/q-1)) (R_u (μ - c_u))^(1-1/q) ≤ k (μ - c·R)^(1-1/q) by Hölder; and
log G - κ = Σ r_u log(R_u (μ - c_u)/r_u) ≤ log(μ - c·R) by Jensen.
With (1), q·R_s ≤ μ - V(b/p_s); for c = -q and μ = -ν it says q·R_s ≥ ν + V(b/p_s), ν ≤ min q.

Lemma 2 (two s). With η ≥ 0, and μ_i, V_i as in Lemma 1 for the vector c_i, for all P in F
    c_1·R_1 + c_2·R_2 ≤ μ_1 + μ_2 + η b - h_1(η p_1) - h_2(η p_2),
where h(t) = min_{κ ≥ 0} V(κ) + t κ is
- A^(q/(q-1)) if q A^(q/(q-1)) ≤ (q-1) t, else (2q-1)/q ((q/(q-1))^(q-1) (A t)^q)^(1/(2q-1)) - t;
- G if G ≤ t, else t + t log(G/t).
Proof. Add Lemma 1 for both and η times the room of (1), which is not negative; then each κ_i occurs
in -(V_i(κ_i) + η p_i κ_i) only. The derivatives vanish at (1+κ)^((2q-1)/(q-1)) = q A^(q/(q-1)) /
((q-1) t) and at e^κ = G/t. The second forms are never above h.

Total variation, F = {P : Σ |p_su - P_su| ≤ 2δ}, all n (2δ)² ≥ 2 log((2^c - 2)/α) with c cells. For
P in F, Σ_su min(p_su, P_su) ≥ 1 - δ. Let y_s = Σ_u min(p_su, P_su) ≤ min(p_s, P_s), and let L(y) be
the least Σ (max c - c_u) b_u over 0 ≤ b_u ≤ p_s r_u, Σ b = y: a convex function with L(0) = 0.

Lemma 3 (one s). c·R ≤ max c - L(y_s)/P_s, as P_s R_u ≥ b_u := min(p_su, P_su); and for P in F
c·R ≤ max c - L((p_s - δ)⁺)/p_s. Proof of the second. Σ y ≥ 1 - δ and y ≤ p leave y_s ≥ p_s - δ; and
Σ y ≤ y_s + 1 - P_s gives y_s ≥ P_s - δ. If P_s ≤ p_s, L(y_s) ≥ L(p_s - δ) and 1/P_s ≥ 1/p_s. If
P_s > p_s, L(P_s - δ)/P_s ≥ L(p_s - δ)/p_s, as L(y - δ)/y does not fall where L is convex.

Lemma 4 (two s). With w = p_1 + p_2 and K = (w - δ)⁺, c_1·R_1 + c_2·R_2 ≤ 0 for all P in F if
    L_1(y)/m + L_2(K - y)/(w - m) ≥ C := max c_1 + max c_2    for y ≤ m ≤ y + w - K,          (2)
at every y that is a corner of L_1, or K less a corner of L_2, or an end of the range in which both
are defined. Proof. As before y_1 + y_2 ≥ K and y_1 + y_2 ≥ P_1 + P_2 - δ; as in Lemma 3 the case
P_1 + P_2 = w, y_1 + y_2 = K is the worst. For one m the left side of (2) is convex and piecewise
linear in y, so its minimum is at such a y or at an end y = m or y = m - w + K. Along these ends
each quotient is a constant less a multiple of 1/m, or of 1/(w - m), between corners, hence concave,
and its minimum is at corners too. (2) is a quadratic inequality in m.

Numbers are integers in units of 1/ONE, each rounded to its safe side: E, A, G, V, h and lower
bounds down, σ, b, δ and upper bounds up. V and h grow with A and G, h with t: smaller ones may be
taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from rldp.proof.channels import Claims, choice, dense, independent, unary
from rldp.proof.numbers import ONE, exp_below, is_quantile
from rldp.proof.reading import ProofError, field, real
from rldp.proof.sets import read_set

__all__ = ["Proof", "ProofError", "check", "exp_below", "is_quantile"]


@dataclass(frozen=True)
class Proof:
    """What was established: privacy at level `epsilon` over a set, by so many inequalities."""

    epsilon: Fraction
    uncertainty: str
    conditions: int
    slack: float  # the least 1 - lhs/rhs among the inequalities lhs ≤ rhs


def check(document: dict[str, Any]) -> Proof:
    """Prove the claim of a protocol document, or raise ProofError.

    >>> Q = [[["3", "1"]], [["1", "3"]]]  # randomised response on one bit, in quarters: e^ε = 3
    >>> channel = {"kind": "dense", "bits": 2, "Q": Q}
    >>> document = {"uncertainty": {"kind": "all", "counts": [[1], [1]]}, "channel": channel}
    >>> check({"epsilon": 1.0986123, **document}).conditions
    4
    >>> check({"epsilon": 1.0986122, **document})
    Traceback (most recent call last):
    rldp.proof.reading.ProofError: Not proved: output 0 at s = 0 against s = 1.
    """
    epsilon, F = real(document, "epsilon", 100), read_set(document)
    mantissa, exponent = exp_below(epsilon)
    claims = Claims(document, F, math.floor(mantissa * Fraction(2) ** exponent * ONE))
    kind, bits = field(document, "channel.kind", str), field(document, "channel.bits", int)
    kinds = {"dense": dense, "independent": independent, "choice": choice, "unary": unary}
    if kind not in kinds or not 1 <= bits <= 256:
        raise ProofError(f"Expected channel.kind in {', '.join(kinds)}; channel.bits in 1 to 256.")
    kinds[kind](claims, 1 << bits)
    return Proof(epsilon, F.words, claims.conditions, claims.slack)
