"""The exact audit and the proof of ε, against nested searches with scipy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

import rldp
from benchmarks.timing import Effort, best_of, milliseconds, ratio, show
from rldp.channel import DenseChannel
from rldp.designing.certify import certified

Array = NDArray[np.float64]

SIZES = ((3, 3, 9, 1000), (5, 5, 25, 1000), (16, 15, 240, 32561))
MOST_OUTPUTS = 3  # of the peer's; its time is proportional to them


def run(_: Effort) -> None:
    rows = []
    for n_s, n_u, n_y, n in SIZES:
        table = rldp.datasets.jeffreys(n_s, n_u, n, seed=0).table
        F = rldp.ChiSquareSet(table)
        Q = _channel(n_s, n_u, n_y)
        claim = rldp.audit(Q, F).epsilon * 1.01
        proved = certified(DenseChannel(Q), [rldp.Guarantee(F, claim)])
        protocol = rldp.ReleaseProtocol("dense", claim, F, *proved[:3], proved.certificate)
        outputs = min(MOST_OUTPUTS, n_y) if n_s > 3 else n_y
        works: dict[str, Callable[[], object]] = {
            "audit": partial(rldp.audit, Q, F),
            "verify": partial(rldp.verify, protocol),
            "peer": partial(_peer, Q[:, :, :outputs], F),
        }
        seconds = best_of(works, times=3 if n_s < 16 else 1)
        seconds["peer"] *= n_y / outputs
        rows.append(
            [
                f"{n_s}×{n_u}, {n_y} outputs",
                milliseconds(seconds["audit"]),
                milliseconds(seconds["peer"]) + ("" if outputs == n_y else " (scaled up)"),
                ratio(seconds["peer"], seconds["audit"]),
                milliseconds(seconds["verify"]),
            ]
        )
    show(
        "Exact worst case over F of a dense channel, and its proof (ms)",
        ["channel", "rldp.audit", "nested scipy", "ratio", "rldp.verify"],
        rows,
    )


def _channel(n_s: int, n_u: int, n_y: int) -> Array:
    """A random channel, mild enough to have a moderate ε."""
    Q = np.random.default_rng(0).dirichlet(np.ones(n_y), size=(n_s, n_u))
    return np.asarray(0.3 * Q + 0.7 * Q.mean(axis=(0, 1)))


def _peer(Q: Array, F: rldp.ChiSquareSet) -> float:
    """The same by one bounded search for the split and two inside for the means."""
    p, p_s, budget = F.table.p_u_given_s, F.table.p_s, np.sqrt(1 + F.radius) - 1
    worst = 0.0
    for T in Q.transpose(2, 0, 1):
        for one in range(len(p_s)):
            for two in range(len(p_s)):
                if one != two:
                    arguments = T[one], p[one], p_s[one], T[two], p[two], p_s[two], budget
                    found = minimize_scalar(
                        lambda share, a=arguments: -_log_ratio(share, *a),
                        bounds=(0, 1),
                        method="bounded",
                        options={"xatol": 1e-7},
                    )
                    worst = max(worst, -found.fun)
    return worst


def _log_ratio(
    share: float,
    T: Array,
    p: Array,
    p_s: float,
    T_2: Array,
    p_2: Array,
    p_s_2: float,
    budget: float,
) -> float:
    top = _largest(T, p, 1 + share * budget / p_s)
    return float(np.log(top) - np.log(-_largest(-T_2, p_2, 1 + (1 - share) * budget / p_s_2)))


def _largest(T: Array, p: Array, k: float) -> float:
    top, span = T.max(), np.ptp(T)
    dual = minimize_scalar(
        lambda x: top + np.exp(x) - (p @ np.sqrt(top + np.exp(x) - T) / k) ** 2,
        bounds=(np.log(span * 1e-9), np.log(span * 1e5)),
        method="bounded",
    )
    return float(dual.fun)
