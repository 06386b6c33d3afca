"""What the paper says of the best parameters, and of IR against GRR-CR."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import spearmanr

from rldp._types import Array
from rldp.reproduction.claims.judging import Data, Finding, Row, claim, listed, percent

_SMALL = 1.0  # ε


# --- parameters ---------------------------------------------------------------------------------


def _at_ends(data: Data, protocol: str, low: float, high: float) -> tuple[Array, Array]:
    """Shares of tables with ε₂ = 0 and with ε₂ = ε, for ε in a range."""
    wanted = {"panel": "mean", "protocol": protocol, "quantity": "split"}
    epsilons = np.sort(data.epsilons("param", **wanted))
    inside = (epsilons > low) & (epsilons < high)
    shares = (data.curve("param", f"share_at_{end}", **wanted)[inside] for end in (0, 1))
    return next(shares), next(shares)


@claim("param", "For low ε it is optimal to take either ε₂ = 0 or ε₂ = ε (IR, GRR-CR).")
def _(data: Data) -> Finding:
    shares = {
        name: float(np.sum(_at_ends(data, name, 0, 1.0), axis=0).min()) for name in ("ir", "grr-cr")
    }
    return Finding(
        min(shares.values()) >= 0.95,
        f"share of tables with ε < 1, at least: {listed(shares, '.3f')}",
    )


@claim(
    "param",
    "For GRR-CR it is beneficial for any P to spend the entire budget on U for ε < 1.",
    "It depends on P: the two drawn tables did so by chance.",
)
def _(data: Data) -> Finding:
    on_s, on_u = _at_ends(data, "grr-cr", 0, 1.0)
    ours = (
        f"all on U in {percent(on_u[-1])} of the tables at the largest ε < 1, all on S in "
        f"{percent(on_s[-1])}"
    )
    return Finding(bool(on_u.min() > 0.99), ours)


@claim(
    "param",
    "GRR-CR spends the entire budget on S for slightly higher 1 < ε < 3, whatever P.",
    "It depends on P here, too.",
)
def _(data: Data) -> Finding:
    on_s, _ = _at_ends(data, "grr-cr", 1.0, 3.0)
    return Finding(
        bool(on_s.min() > 0.99), f"in {percent(on_s.min())} to {percent(on_s.max())} of the tables"
    )


@claim("param", "It depends on P whether IR spends its budget on S or on U for low ε.")
def _(data: Data) -> Finding:
    on_s, on_u = _at_ends(data, "ir", 0, 1.0)
    ours = f"at the smallest ε: {percent(on_s[0])} of the tables on S, {percent(on_u[0])} on U"
    return Finding(bool(min(on_s[0], on_u[0]) > 0.02), ours)


@claim(
    "param",
    "For IR the average of ε₂/ε is close to 0.5 regardless of ε.",
    "It drifts with ε, and lies on one side of 0.5 for most of it.",
)
def _(data: Data) -> Finding:
    split = data.curve("param", panel="mean", protocol="ir", quantity="split")
    return Finding(
        bool(abs(split - 0.5).max() < 0.1), f"between {split.min():.2f} and {split.max():.2f}"
    )


@claim("param", "UE-CR at low ε has κ = λ = 1: nothing is told of S.")
def _(data: Data) -> Finding:
    wanted = {"panel": "mean", "protocol": "ue-cr", "quantity": "kappa"}
    low = np.sort(data.epsilons("param", **wanted)) < _SMALL
    share = data.curve("param", "share_at_1", **wanted)[low]
    return Finding(
        bool(share.min() >= 0.95), f"for ε < 1 in at least {percent(share.min())} of the tables"
    )


@claim(
    "param",
    "Only when ε grows larger does UE-CR divide its budget among S and U, at an ε that depends on "
    "P.",
)
def _(data: Data) -> Finding:
    wanted = {"panel": "mean", "protocol": "ue-cr", "quantity": "kappa"}
    share = data.curve("param", "share_at_1", **wanted)
    between = ((share > 0.02) & (share < 0.98)).sum()
    ours = (
        f"κ = 1 in {percent(share[0])} of the tables at the smallest ε, in {percent(share[-1])} "
        "at the largest"
    )
    return Finding(bool(share[0] > share[-1] and between >= 2), ours)


# --- IR against GRR-CR --------------------------------------------------------------------------


def _both_on_s(rows: Sequence[Row]) -> Array:
    return np.array([row["ir_split"] < 1e-6 and row["grr_cr_split"] < 1e-6 for row in rows])


@claim("IRvsGRRCR", "IR and GRR-CR coincide when the whole budget is spent on S.")
def _(data: Data) -> Finding:
    rows = data.rows("irvsgrrcr")
    same = np.array([row["difference"] for row in rows])[_both_on_s(rows)]
    apart = abs(same).max(initial=0.0)
    return Finding(
        bool(same.size and apart < 1e-9), f"{same.size} such tables, apart by at most {apart:.1g}"
    )


@claim("IRvsGRRCR", "There are many distributions where the two have equal utility.")
def _(data: Data) -> Finding:
    share = np.mean([abs(row["difference"]) < 1e-6 for row in data.rows("irvsgrrcr")])
    return Finding(bool(share > 0.1), percent(float(share)))


@claim("IRvsGRRCR", "Among the others, a downward trend: GRR-CR outperforms IR for large H(X).")
def _(data: Data) -> Finding:
    rows = data.rows("irvsgrrcr")
    rest = [row for row, same in zip(rows, _both_on_s(rows), strict=True) if not same]
    H, gap = (np.array([row[name] for row in rest]) for name in ("entropy", "difference"))
    trend = spearmanr(H, gap)
    top = gap[np.quantile(H, 0.75) <= H].mean()
    ours = (
        f"rank correlation {trend.statistic:+.2f} (p = {trend.pvalue:.1g}); mean in the top "
        f"quarter {top:+.3f} of H(X)"
    )
    return Finding(bool(trend.statistic < 0 and trend.pvalue < 0.01 and top < 0), ours)
