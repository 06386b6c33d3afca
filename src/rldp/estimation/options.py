"""The options of an estimate, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from rldp._types import RecordProgress
from rldp.checks import MOST_COUNTED, checked_number, is_one_of, shown
from rldp.errors import ParameterError

Method = Literal["inversion", "likelihood", "bayes"]


@dataclass(frozen=True, kw_only=True)
class EstimateOptions:
    """The options of `p.estimate`, which documents them."""

    method: Method = "inversion"
    level: float = 0.95
    simultaneous: bool = False
    weights: Any = None
    strata: Any = None
    population: int | Mapping[str, int] | None = None
    prior_records: float | None = None
    column: str = "y"
    allow_few: bool = False
    encoding: str | None = None
    progress: RecordProgress | None = None

    def __post_init__(self) -> None:
        """Refuse values out of range, and options that exclude each other."""
        if not is_one_of(self.method, get_args(Method)):
            raise ParameterError(
                f"Expected method as one of {', '.join(get_args(Method))}, "
                f"got {shown(self.method)}.",
                argument="method",
            )
        if not isinstance(self.column, str):
            raise ParameterError(
                f"Expected the name of the column of the reports, got {shown(self.column)}.",
                argument="column",
            )
        object.__setattr__(self, "level", checked_share(self.level, "level", 0.95))
        if (self.strata is not None) != isinstance(self.population, Mapping):
            raise ParameterError(
                "Expected strata together with a population that has a size for each label.",
                argument="population" if self.strata is not None else "strata",
            )
        if self.population is not None and self.method != "inversion":
            raise ParameterError(
                f"Expected the method 'inversion' for a finite population, got {self.method!r}.",
                argument="method",
            )
        if self.prior_records is not None:
            object.__setattr__(self, "prior_records", self._checked_prior())

    def _checked_prior(self) -> float:
        if self.method != "bayes":
            raise ParameterError(
                f"Expected prior_records with the method 'bayes' only, got {self.method!r}.",
                argument="prior_records",
            )
        return checked_number(
            self.prior_records, "prior_records > 0", 0, MOST_COUNTED, argument="prior_records"
        )


def checked_share(value: object, argument: str, example: float) -> float:
    """A number strictly between 0 and 1."""
    expected = f"{argument} between 0 and 1, such as {example}"
    return checked_number(value, expected, 0, 1, argument=argument)
