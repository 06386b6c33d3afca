"""All protocols by name, and what is asked of their arguments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from rldp._types import Array
from rldp.checks import checked_epsilon, checked_texts, shown
from rldp.designing import programmes
from rldp.designing.closed_forms import FAMILIES
from rldp.errors import ParameterError
from rldp.uncertainty import UncertaintySet

PROGRAMMES = {
    "polyopt": programmes.polyopt,
    "optimal": programmes.optimal,
    "ldp-optimal": programmes.ldp_optimal,
}
BEST, CEILING = "best", "ceiling"
NAMES = (*FAMILIES, *PROGRAMMES, BEST)
COMPARED = (*FAMILIES, "polyopt", BEST, CEILING)


def check_set(uncertainty: UncertaintySet) -> None:
    """Refuse what is no set of distributions, or none that holds the frequencies."""
    if not isinstance(uncertainty, UncertaintySet):
        raise ParameterError(
            f"Expected an uncertainty set such as ChiSquareSet(table), "
            f"got {type(uncertainty).__name__}.",
            argument="uncertainty",
        )
    uncertainty.check_frequencies()


def checked_names(protocols: str | Sequence[str]) -> tuple[str, ...]:
    """Names of protocols, all known."""
    names: tuple[Any, ...] = checked_texts(protocols, "names of protocols")
    for name in names:
        if not isinstance(name, str) or name not in (*NAMES, CEILING):
            known = ", ".join(NAMES)
            raise ParameterError(f"Expected a protocol among {known}, got {shown(name)}.")
    return names


def checked_epsilons(epsilons: Iterable[float]) -> Array:
    """Privacy levels, at least one."""
    epsilons = list(epsilons)
    if not epsilons:
        raise ParameterError("Expected at least one epsilon, got none.")
    return np.array([checked_epsilon(epsilon) for epsilon in epsilons])
