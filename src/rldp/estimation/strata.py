"""Reports of a finite population, with or without strata."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rldp.checks import checked_integer, shown
from rldp.errors import DataError, ParameterError
from rldp.estimation.inversion import Inverse, Inverted, inverted
from rldp.estimation.report_counts import ReportCounts


def combined(
    inverse: Inverse, parts: Mapping[str, ReportCounts], population: object
) -> tuple[ReportCounts, Inverted]:
    """All counts together, and the estimate of the table of the population.

    In each stratum n of N people were drawn without replacement. So the sampling variance
    (diag(p) - ppᵀ)/n is smaller by (diag(p) - ppᵀ)/N; the variance of the noise is unchanged.
    Strata are then summed with weights N/ΣN.
    """
    sizes = population if isinstance(population, Mapping) else {"": population}
    found = {label: _size(sizes, label, part.n) for label, part in parts.items()}
    absent = set(sizes) - set(found)
    if absent:
        raise DataError(f"Expected reports of every stratum, got none of {min(absent)!r}.")
    total = sum(found.values())
    inverse.check_size("A finite population")
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
    seen, n = counts.squares_mean, counts.effective_n
    return counts, Inverted(inverse, p, n, seen, np.zeros(len(p)), covariance, fraction)


def _size(sizes: Mapping[str, object], label: str, n: int) -> int:
    where = f" of stratum {label!r}" if label else ""
    if label not in sizes:
        raise ParameterError(
            f"Expected the population{where}, there are only {shown(list(sizes))}.",
            argument="population",
            label=label,
        )
    size = checked_integer(sizes[label], "population", 1, name=f"the population{where}")
    if size < n:
        raise DataError(f"Expected at most {size} reports, the size of the population, got {n}.")
    return size
