"""The least number of reports that cannot have been drawn by the protocol."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from rldp._types import Array
from rldp.estimation.interval_estimates import normal_quantile
from rldp.estimation.moments import Moments
from rldp.estimation.report_counts import ReportCounts

_LEVEL = 0.999  # with which honest reports alone are not suspected


def suspected(features: Moments, counts: ReportCounts) -> int:
    """How many of the reports are forged at least, with a confidence of 99.9 %.

    If a share f is forged, the frequencies m of the features are at least (1 - f) M p, but for
    chance. So 1 - f is at most max{Σ p : M p ≤ m + chance, p ≥ 0}. Forgers who draw by the protocol
    for a record of their choice are not found: nothing tells them from people.
    """
    n, mean = counts.n, counts.mean
    z = normal_quantile(_LEVEL, features.n_features)
    most: Array = mean + z * np.sqrt(np.maximum(mean * (1 - mean), 1 / n) / n) + z**2 / n
    cells = features.M.shape[1]
    found = linprog(-np.ones(cells), A_ub=features.M, b_ub=most, bounds=(0, None))
    share = 1.0 if found.x is None else float(found.x.sum())
    return max(0, int(np.floor(n * (1 - share) + 1e-9)))
