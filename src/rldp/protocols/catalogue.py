"""All families, and the two things to do with them: design one, compare all."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from rldp.certificate import certified
from rldp.errors import ParameterError
from rldp.protocol import Parameter, ReleaseProtocol
from rldp.protocols import exact, grr, grr_cr, ir, srr, ue, ue_cr
from rldp.protocols.budget import Bounds
from rldp.protocols.family import Family, Parameters, Pinned
from rldp.uncertainty import UncertaintySet

Array = NDArray[np.float64]

FAMILIES: dict[str, Family] = {family.NAME: family for family in (grr, ue, srr, ir, grr_cr, ue_cr)}
NAMES = tuple(FAMILIES)
BOUNDS = ("sharp", "exact", "paper")
BEST = "best"
LARGEST_EPSILON = 100.0

_CELLS_AT_ONCE = 2**14  # cells times ε values searched together: bounds the memory


class Record(TypedDict):
    """One line of a comparison."""

    protocol: str
    epsilon: float
    utility: float
    normalised: float
    seconds: float


def design(
    uncertainty: UncertaintySet,
    epsilon: float,
    protocol: str = BEST,
    *,
    bounds: str = "sharp",
    parameters: Mapping[str, float | str] | None = None,
) -> ReleaseProtocol:
    """The most useful protocol of a family, or of all families, that is (ε, F)-RLDP.

    It maximises I(X;Y) at the frequencies of the table over the parameters of the family, those
    pinned by `parameters` apart (for example {"epsilon_2": 0.3}).

    Args:
        uncertainty: the set F of distributions that may be true.
        epsilon: privacy level in nats, above 0.
        protocol: "grr", "ue", "srr", "ir", "grr-cr", "ue-cr", or "best" for the best of them.
        bounds: "sharp"; "exact", which spends all of ε over F and takes longer; or "paper", the
            conditions as the paper prints them.
        parameters: parameters to pin, under the names that the result reports.

    >>> from rldp import ChiSquareSet, Table
    >>> p = design(ChiSquareSet(Table([[30, 10], [10, 50]])), epsilon=1.0, protocol="srr")
    >>> p.matrix.shape
    (2, 2, 4)
    """
    _check_set(uncertainty)
    pinned = dict(parameters or {})
    if protocol == BEST:
        if pinned:
            raise ParameterError("Expected a named protocol to pin parameters of, got 'best'.")
        records = compare(uncertainty, epsilon, bounds=bounds)
        protocol = max(records, key=itemgetter("utility"))["protocol"]
    solution = _optimum(protocol, uncertainty, _checked([epsilon]), bounds, pinned)
    chosen = {name: _plain(values[0]) for name, values in solution.items()}
    designed = FAMILIES[protocol].channel(uncertainty, float(epsilon), chosen)
    table = certified(designed, uncertainty, float(epsilon))
    p_su = uncertainty.table.p_su
    lost = designed.mutual_information(p_su) - table.channel.mutual_information(p_su)
    return ReleaseProtocol(
        name=protocol,
        epsilon=float(epsilon),
        uncertainty=uncertainty,
        channel=table.channel,
        integers=table.integers,
        bits=table.bits,
        certificate=table.certificate,
        parameters=chosen,
        bounds=bounds,
        rounding_loss=max(0.0, lost),
    )


def compare(
    uncertainty: UncertaintySet,
    epsilons: float | Iterable[float],
    *,
    protocols: Sequence[str] | None = None,
    bounds: str = "sharp",
) -> list[Record]:
    """What every family keeps at every ε, one record each (see `Record`).

    Utilities are in nats; `normalised` is the share of H(X). All ε of a family are searched
    together; `seconds` is that time divided by their number.
    """
    _check_set(uncertainty)
    if isinstance(epsilons, np.ndarray):
        epsilons = epsilons.tolist()  # of shape () too
    values = _checked(epsilons if isinstance(epsilons, Iterable) else [epsilons])
    entropy = uncertainty.table.entropy
    records: list[Record] = []
    for name in NAMES if protocols is None else protocols:
        start = time.perf_counter()
        parameters = _optimum(name, uncertainty, values, bounds, {})
        utility = FAMILIES[name].utility(uncertainty, values, parameters).clip(0.0, entropy)
        seconds = (time.perf_counter() - start) / values.size
        records += [
            {
                "protocol": name,
                "epsilon": float(epsilon),
                "utility": float(kept),
                "normalised": float(kept / entropy) if entropy > 0 else 0.0,
                "seconds": seconds,
            }
            for epsilon, kept in zip(values, utility, strict=True)
        ]
    return records


def _optimum(
    name: str, F: UncertaintySet, epsilons: Array, bounds: str, pinned: Pinned
) -> Parameters:
    """The best parameters of one family at all ε, a bounded number of cells at a time."""
    if name not in FAMILIES:
        raise ParameterError(f"Expected a protocol among {', '.join(NAMES)}, got {name!r}.")
    if bounds not in BOUNDS:
        raise ParameterError(f"Expected bounds among {', '.join(BOUNDS)}, got {bounds!r}.")
    family = FAMILIES[name]
    for parameter in pinned:
        if parameter not in family.PARAMETERS:
            known = ", ".join(family.PARAMETERS) or "none"
            raise ParameterError(f"{name} has no parameter {parameter!r} to pin; it has: {known}.")
    if bounds == "exact":
        parts = [exact.calibrated(family, F, float(epsilon), pinned) for epsilon in epsilons]
        return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    step = max(1, _CELLS_AT_ONCE // (F.table.n_s * F.table.n_u))
    parts = [
        family.optimum(F, epsilons[i : i + step], cast(Bounds, bounds), pinned)
        for i in range(0, epsilons.size, step)
    ]
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def _check_set(uncertainty: UncertaintySet) -> None:
    if not isinstance(uncertainty, UncertaintySet):
        raise ParameterError(
            f"Expected an uncertainty set such as ChiSquareSet(table), "
            f"got {type(uncertainty).__name__}."
        )


def _checked(epsilons: Iterable[float]) -> Array:
    epsilons = list(epsilons)
    if not epsilons:
        raise ParameterError("Expected at least one epsilon, got none.")
    for epsilon in epsilons:
        if isinstance(epsilon, bool) or not isinstance(
            epsilon, int | float | np.integer | np.floating
        ):
            raise ParameterError(f"Expected epsilon as a number, got {epsilon!r}.")
        if not 0 < epsilon <= LARGEST_EPSILON:
            raise ParameterError(f"Expected 0 < epsilon ≤ {LARGEST_EPSILON:g}, got {epsilon}.")
    return np.array([float(epsilon) for epsilon in epsilons])


def _plain(value: Array) -> Parameter:
    return float(value) if np.ndim(value) == 0 else tuple(float(x) for x in value)
