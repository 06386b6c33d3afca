"""Whether a protocol file proves its own claims: exact arithmetic, no solver, nothing else of rldp.

A claim is robust local differential privacy: for every distribution P of the set F, every output y
and all s1 ≠ s2 that have a level ε, P(y|s1) ≤ e^ε P(y|s2). Most documents have one level for all
pairs; others have several guarantees, each with its set and levels. A document holds the levels,
the counts that define F, the channel as integers q in units of 2^-bits, and multipliers. Each
multiplier turns into a bound by Lemma 1 or Lemma 2, whatever its value: a poor one gives a weak
bound, none gives a wrong one.

Notation. R_s = P_{U|s}; p_s and r_u = r_{u|s} are frequencies of the counts; E ≤ e^ε for the level
of the pair; x is at least the (1-α)-quantile of χ² with n_s n_u - 1 degrees of freedom. Sums are
over positive counts. Where s was never seen, nothing is known of R_s, and no lemma below speaks of
it: its means lie between the extremes of their column. Lemmas on two s speak of two different ones
that were both seen. The code states the preconditions of a lemma where it uses it.

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

Lemma 5 (someone who knows U). Let F be all P with P(U = u) = 1 for some u. The claim over F holds
iff for each u it holds over all distributions for the channel of S alone that has Q(y|s,u), one U
value. This channel has the same kind: rows of one u, and the same `other`. Proof. P(y|s) = Q(y|s,u)
if P(U = u) = 1, and every s1, s2 and u occur. With a block for each cell, the blocks of other cells
than (s, u) draw from `other` for every s and cancel.

Polytopes, F = all mixtures Σ λ_i P^i of the frequencies P^0 = p and of further corners P^1, P^2...
The conditional of s in a mixture is a mean of those of the corners with P^i(s) > 0: a mean under it
lies between theirs.

Lemma 6 (two s). For c_1, c_2 ≥ 0 let α_i = P^i(s1), a_i = Σ_u c_1u P^i(s1, u), and β_i, b_i
likewise with c_2 and s2; g_ij = α_i b_j - a_i β_j. Then c_1·R_1 ≤ c_2·R_2 for all P in F with P_1,
P_2 > 0 if and only if g_ii ≥ 0 and g_ij + g_ji ≥ -2 √(g_ii g_jj) for all i, j.
Proof. P_1 P_2 (c_2·R_2 - c_1·R_1) = Σ_ij λ_i λ_j g_ij =: g(λ) for a mixture, and with x = P_1/(P_1
+ P_2) this is (P_1 + P_2) Σ λ_i (x b_i - (1-x) a_i). Suppose that g < 0 for some λ. Among all λ ≥ 0
of sum 1 with the same x, that is with Σ λ_i ((1-x) α_i - x β_i) = 0, the linear function is least,
and negative, at one that has two positive entries at most; g is negative there too. For two corners
g is a quadratic form, and not negative for λ ≥ 0 just under these conditions.

Lemma 7 (someone who knows part of U). U is a product of columns, some of which someone knows. The
claim compares P(y|s1,k) with P(y|s2,k) for each of their values k, and all P in F that give both a
positive probability. It is the claim above for s1, s2, with the table and the channel cut down to
the u that have k, p_s the share of (s, k) in *all* records, R_s = P_{U|s,k}, and b, δ and the
corners unchanged. Proof. P(y|s,k) = q·R_s with the q_u of these u. The table whose rows are all
(s, k) has the same cells, so F is the same set of tables, and its size does not depend on rows.
(1) and Lemmas 3, 4 and 6 speak of one or two rows of a table and hold for every way to divide its
cells into rows; 1 and 2 speak of a row with (1). A unary channel with a block for each s draws the
others from `other` for every s; with a block for each cell, blocks of u outside k cancel.

Evidence, F = {P : L_i P ∈ B_i for all i}: reports y of a channel M, z = Mᵀ P near their frequencies
ŷ; rows·P ≤ limits; and a distribution of the document that lies in all B_i, so that F has one.

Lemma 8 (one s). Let a_i be multipliers with cost Σ_i max {a_i·z : z ∈ B_i} ≤ 0 and v = Σ_i L_iᵀ a_i
with v ≥ 0 outside the cells of s. Then q·R_s ≤ max_u (q_u - v_su), and q·R_s ≥ min_u (q_u + w_su)
for w from such multipliers. Σ P = 1 is evidence too: κ for all cells, at the cost κ. Costs are:
- rows·P ≤ limits: w·limits for w ≥ 0, or any w where they are equal; intervals [l, h] of P(H|s) are
  the rows 1_s (1_H - h) and 1_s (l - 1_H), with limits 0;
- Σ ŷ²/z ≤ 1 + B, B = x/m: μ + ν (1 + B) - 2 Σ ŷ_y √(ν (μ - a_y)), for all μ ≥ max a and ν ≥ 0;
- Σ ŷ log(ŷ/z) ≤ b: μ + ν (b - 1) - ν Σ ŷ_y log((μ - a_y)/ν);
- Σ |ŷ - z| ≤ r: ŷ·a + (r/2) (max a - min a).
Proof. Σ_x v_x P_x = Σ_i a_i·L_i P ≤ 0; with v ≥ 0 elsewhere Σ_u v_su P_su ≤ 0, and q_u ≤ hi + v_su
gives Σ_u (q_u - hi) P_su ≤ 0. For the balls, Σ z = 1, and (a_y - μ) z_y - ν ŷ_y²/z_y, likewise
(a_y - μ) z_y + ν ŷ_y log(z_y/ŷ_y), are largest at z_y = ŷ_y √(ν/(μ - a_y)) and ν ŷ_y/(μ - a_y).
By rows (s, k) this holds for someone who knows part of U as it stands.

Modules: `parsing` reads values, `uncertainty` proves the size of F, `sets` has the lemmas,
`evidence` the last of them, `channels` states the claim for each kind of channel, `levels` has the
levels of pairs, `parts` the parts of U, `numbers` computes, and `work` counts.

Numbers are integers in units of 1/ONE, each rounded to its safe side: E, A, G, V, h and lower
bounds down, σ, b, δ and upper bounds up. V and h grow with A and G, h with t: smaller ones may be
taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from rldp.proof.channels import Channel, Claims, read_channel
from rldp.proof.levels import MOST, Levels, read_levels
from rldp.proof.numbers import exp_below, is_quantile
from rldp.proof.parsing import ProofError, field, only, real
from rldp.proof.parts import groups_of
from rldp.proof.sets import GivenUSet, Set
from rldp.proof.uncertainty import read_set
from rldp.proof.work import budget

__all__ = ["Proof", "ProofError", "ProvedGuarantee", "check", "exp_below", "is_quantile"]

_ENTRIES = "uncertainty", "levels", "knows", "certificate"  # of a guarantee


@dataclass(frozen=True)
class ProvedGuarantee:
    """Privacy over one set at the levels of ordered pairs, by so many inequalities."""

    uncertainty: str
    levels: Levels
    conditions: int
    slack: float  # the least 1 - lhs/rhs among the inequalities lhs ≤ rhs
    knows: tuple[str, ...] = ()  # the useful columns that someone is supposed to know

    @property
    def epsilon(self) -> Fraction:
        """The largest level."""
        return self.levels.epsilon


@dataclass(frozen=True)
class Proof:
    """What was established: privacy at level `epsilon` over a set, and all other guarantees."""

    epsilon: Fraction
    uncertainty: str
    conditions: int  # of all guarantees
    slack: float  # the least of all
    guarantees: tuple[ProvedGuarantee, ...] = ()  # the first is that of `epsilon`


def check(document: dict[str, Any]) -> Proof:
    """Prove every claim of a protocol document, or raise ProofError.

    >>> Q = [[["3", "1"]], [["1", "3"]]]  # randomised response on one bit, in quarters: e^ε = 3
    >>> channel = {"kind": "dense", "bits": 2, "Q": Q}
    >>> document = {"uncertainty": {"kind": "all", "counts": [[1], [1]]}, "channel": channel}
    >>> check({"epsilon": 1.0986123, **document}).conditions
    4
    >>> check({"epsilon": 1.0986122, **document})
    Traceback (most recent call last):
    rldp.proof.parsing.ProofError: Not proved: output 0 at s = 0 against s = 1.
    """
    with budget(document):
        return _checked(document)


def _checked(document: dict[str, Any]) -> Proof:
    epsilon = real(document, "epsilon", MOST)
    if "knows" in document:
        raise ProofError("Expected knows in a guarantee, and none beside.")
    if "guarantees" not in document:
        F = read_set(document)
        levels = read_levels(document["epsilon"], F.shape[0], "epsilon")
        proved = [_proved(document, F, levels, read_channel(document, F.shape))]
    else:
        proved = _each_proved(document)
    first = proved[0]
    if first.epsilon != epsilon:
        raise ProofError("Expected epsilon as the largest level of the first guarantee.")
    conditions, slack = sum(g.conditions for g in proved), min(g.slack for g in proved)
    return Proof(epsilon, first.uncertainty, conditions, slack, tuple(proved))


def _each_proved(document: dict[str, Any]) -> list[ProvedGuarantee]:
    """All guarantees of a document that lists them, over one channel."""
    if "uncertainty" in document or "certificate" in document:
        raise ProofError("Expected a set and a certificate in each guarantee, and none beside.")
    proved: list[ProvedGuarantee] = []
    channel: Channel | None = None
    for i, claim in enumerate(field(document, "guarantees", list)):
        try:
            only(claim, _ENTRIES, f"guarantees[{i}]")
            F = read_set(claim)
            if channel is None or F.shape != channel.shape:
                channel = read_channel(document, F.shape)
            proved.append(_listed_proved(document, claim, F, channel, is_first=not proved))
        except ProofError as error:
            raise ProofError(f"Guarantee {i + 1}: {error}") from None
    if not proved:
        raise ProofError("Expected at least one guarantee.")
    return proved


def _listed_proved(
    document: dict[str, Any], claim: dict[str, Any], F: Set, channel: Channel, *, is_first: bool
) -> ProvedGuarantee:
    levels = read_levels(claim.get("levels"), F.shape[0], "levels")
    if "knows" not in claim:
        return _proved(claim, F, levels, channel)
    if is_first:
        raise ProofError("Expected no knows: epsilon is for someone who knows nothing of U.")
    return _proved_for_part(document, claim, F, levels, channel)


def _proved(claim: dict[str, Any], F: Set, levels: Levels, channel: Channel) -> ProvedGuarantee:
    claims = Claims(claim, F, levels)
    if isinstance(F, GivenUSet):
        channel.prove_given_u(claims)
    else:
        channel.prove(claims)
    return ProvedGuarantee(F.words, levels, claims.conditions, claims.slack)


def _proved_for_part(
    document: dict[str, Any], claim: dict[str, Any], F: Set, levels: Levels, channel: Channel
) -> ProvedGuarantee:
    """By Lemma 7, each value of the known columns with a certificate of its own."""
    if isinstance(F, GivenUSet):
        raise ProofError("Expected no knows where all of U is known.")
    groups = groups_of(document, claim["knows"], F.shape[1])
    parts = field(claim, "certificate.parts", list)
    if len(parts) != len(groups):
        raise ProofError(f"Expected {len(groups)} entries at certificate.parts, got {len(parts)}.")
    conditions, slack = 0, 1.0
    for k, (group, part) in enumerate(zip(groups, parts, strict=True)):
        claims = Claims({"certificate": part}, F.given(group), levels)
        try:
            field(claims.certificate, "certificate", dict)
            channel.given(group).prove(claims)
        except ProofError as error:
            raise ProofError(f"Part {k}: {error}") from None
        conditions, slack = conditions + claims.conditions, min(slack, claims.slack)
    return ProvedGuarantee(F.words, levels, conditions, slack, tuple(claim["knows"]))
