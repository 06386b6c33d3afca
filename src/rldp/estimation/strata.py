"""Reports of a finite population, also of one in strata."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from rldp.errors import DataError, ParameterError
from rldp.estimation.counts import ReportCounts
from rldp.estimation.inversion import Inverse, Inverted, inverted

Array = NDArray[np.float64]


def combined(
    inverse: Inverse, parts: Mapping[str, ReportCounts], population: object
) -> tuple[ReportCounts, Inverted]:
    """All counts together, and the estimate of the table of the population.

    In each stratum n of N people were drawn without replacement, so that the sampling part of the
    variance, (diag(p) - ppᵀ)/n, loses (diag(p) - ppᵀ)/N; the noise of the release stays whole.
    Strata are then summed with weights N/ΣN.
    """
    sizes = population if isinstance(population, Mapping) else {"": population}
    found = {label: _size(sizes, label, part.n) for label, part in parts.items()}
    absent = set(sizes) - set(found)
    if absent:
        raise DataError(f"Expected reports of every stratum, got none of {min(absent)!r}.")
    total = sum(found.values())
    p, covariance = np.zeros(len(inverse.p0)), np.zeros((len(inverse.p0),) * 2)
    projection = inverse.V @ inverse.V.T
    for label, part in parts.items():
        one, share = inverted(inverse, part), found[label] / total
        q = np.maximum(one.p, 0.0)
        q /= q.sum()
        sampled = projection @ (np.diag(q) - np.outer(q, q)) @ projection / found[label]
        p += share * one.p
        covariance += share**2 * (one.covariance - sampled)
    values, vectors = np.linalg.eigh(covariance)
    covariance = (vectors * np.maximum(values, 0.0)) @ vectors.T
    weights = {label: found[label] / total / part.weight for label, part in parts.items()}
    counts = ReportCounts(
        sums=np.sum([weights[x] * part.sums for x, part in parts.items()], axis=0),
        squares=np.sum([weights[x] ** 2 * part.squares for x, part in parts.items()], axis=0),
        n=sum(part.n for part in parts.values()),
        weight=1.0,
        squared_weight=sum(weights[x] ** 2 * part.squared_weight for x, part in parts.items()),
    )
    lost = sum((found[x] / total) ** 2 / found[x] for x in parts)
    fraction = min(1.0, counts.effective_n * lost)
    return counts, Inverted(inverse, p, covariance, counts.effective_n, fraction)


def _size(sizes: Mapping[str, object], label: str, n: int) -> int:
    size = sizes.get(label)
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
        where = f" of stratum {label!r}" if label else ""
        raise ParameterError(f"Expected the population{where} as an integer ≥ 1, got {size!r}.")
    if size < n:
        raise DataError(f"Expected at most {size} reports, the size of the population, got {n}.")
    return int(size)
