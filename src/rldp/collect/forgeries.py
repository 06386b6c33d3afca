"""The least number of reports that cannot have been drawn by the protocol."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, hstack

from rldp._types import Array
from rldp.estimation.interval_estimates import normal_quantile
from rldp.estimation.moments import Moments, SetMoments, UnaryMoments
from rldp.estimation.report_counts import ReportCounts

_LEVEL = 0.999  # with which honest reports alone are not suspected
_MOST_ENTRIES = 2**24  # of M, where nothing of it is left out


def suspected(features: Moments, counts: ReportCounts) -> int:
    """How many of the reports are forged at least, with a confidence of 99.9 %.

    If a share f is forged, the frequencies m of the features are at least (1 - f) M p, but for
    chance. So 1 - f is at most max{Σ p : M p ≤ m + chance, p ≥ 0}. Forgers who draw by the protocol
    for a record of their choice are not found: nothing tells them from people. Nor is anybody where
    M is too large to look at, and 0 are forged at least.
    """
    n, mean = counts.n, counts.mean
    z = normal_quantile(_LEVEL, features.n_features)
    most: Array = mean + z * np.sqrt(np.maximum(mean * (1 - mean), 1 / n) / n) + z**2 / n
    parts = _parts(features)
    if parts is None:
        return 0
    D, o = parts
    cells = D.shape[1]
    total = np.append(np.ones(cells), -1.0)[None]  # the last variable is Σ p
    found = linprog(
        -np.append(np.zeros(cells), 1.0),
        A_ub=hstack([D, o[:, None]], format="csr"),
        b_ub=most,
        A_eq=csr_array(total),
        b_eq=np.zeros(1),
        bounds=(0, None),
    )
    share = 1.0 if found.x is None else float(found.x[-1])
    return max(0, int(np.floor(n * (1 - share) + 1e-9)))


def _parts(features: Moments) -> tuple[csr_array, Array] | None:
    """D, mostly zeros, and o with M = D + o 1ᵀ; None where D would be huge."""
    if isinstance(features, UnaryMoments):  # all but the own block draw from `other`
        own, other, block = features.own, features.other, features.block
        cells, n_z = own.shape
        rows = block[:, None] * n_z + np.arange(n_z)
        columns = np.repeat(np.arange(cells), n_z)
        entries = ((own - other[block]).ravel(), (rows.ravel(), columns))
        return csr_array(entries, shape=(other.size, cells)), other.ravel()
    sets = features.channel.shape if isinstance(features, SetMoments) else ()
    if features.n_features * np.prod(sets) > _MOST_ENTRIES:
        return None
    return csr_array(features.M), np.zeros(features.n_features)
