"""The least number of reports that cannot have been drawn by the protocol."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

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
    rows = _rows(features)
    if rows is None:
        return 0
    cells = rows.shape[1] - 1
    found = linprog(
        -np.append(np.zeros(cells), 1.0),
        A_ub=rows,
        b_ub=most,
        A_eq=np.append(np.ones(cells), -1.0)[None],  # the last variable is Σ p
        b_eq=np.zeros(1),
        bounds=(0, None),
    )
    share = 1.0 if found.x is None else float(found.x[-1])
    return max(0, int(np.floor(n * (1 - share) + 1e-9)))


def _rows(features: Moments) -> Any:  # a sparse matrix; the stubs of linprog know dense ones
    """M p as a function of p and Σ p, with few entries if it can be; None where M is huge."""
    if isinstance(features, UnaryMoments):  # all but the own block draw from `other`
        own, other, block = features.own, features.other, features.block
        cells, n_z = own.shape
        row = np.append(block[:, None] * n_z + np.arange(n_z), np.arange(other.size))
        column = np.append(np.repeat(np.arange(cells), n_z), np.full(other.size, cells))
        entries = np.append(own - other[block], other)
        return csr_array((entries, (row, column)), shape=(other.size, cells + 1))
    sets = features.channel.shape if isinstance(features, SetMoments) else ()
    if features.n_features * np.prod(sets) > _MOST_ENTRIES:
        return None
    return csr_array(np.append(features.M, np.zeros((features.n_features, 1)), axis=1))
