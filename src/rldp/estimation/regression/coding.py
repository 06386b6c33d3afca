"""Covariates as the columns of a design matrix: numbers as they are, levels against a reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.linalg import qr

from rldp._types import Array, Flags
from rldp.checks import shown
from rldp.errors import DataError, ParameterError
from rldp.tables.frame_columns import is_missing, unknown_column
from rldp.tables.schema import label_text, shown_list, sorted_labels

INTERCEPT = "(intercept)"
_MOST_LEVELS = 100
_DEPENDENT = 1e-9  # share of a column that others leave unexplained, below which it is collinear


class Values(NamedTuple):
    """One column: numbers, or texts; missing values are NaN or ""."""

    numbers: Array | None
    texts: list[str] | None

    @property
    def missing(self) -> Flags:
        """Where there is no value."""
        if self.numbers is not None:
            return np.isnan(self.numbers)
        return np.array([not text for text in self.texts or ()], dtype=np.bool_)

    def kept(self, rows: Flags) -> Values:
        """Those of some rows."""
        if self.numbers is not None:
            return Values(self.numbers[rows], None)
        pairs = zip(self.texts or (), rows, strict=True)
        return Values(None, [text for text, is_kept in pairs if is_kept])


def read_values(column: Any, name: str, *, as_levels: bool, is_text: bool) -> Values:
    """An Arrow array as numbers or texts.

    Args:
        column: the array.
        name: of the column.
        as_levels: whether numbers shall be taken as levels.
        is_text: whether the column comes from a text file, where numbers are written as texts.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    is_number = any(test(kind) for test in tests)
    if is_text and not as_levels and (parsed := _parsed(column)) is not None:
        return Values(parsed, None)
    if is_number and not as_levels:
        numbers = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        return Values(np.asarray(numbers, dtype=float), None)
    return Values(None, [_text(value, name, row) for row, value in enumerate(column.to_pylist())])


def _text(value: Any, name: str, row: int) -> str:
    if is_missing(value):
        return ""
    try:
        return label_text(value)
    except DataError as error:
        raise error.within(f"In row {row} of column {name!r}") from None


def _parsed(column: Any) -> Array | None:
    """Texts as numbers, None where one of them is none; an empty text is a missing value."""
    texts = column.cast(pa.string())
    filled = pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
    try:
        numbers = filled.cast(pa.float64())
    except pa.ArrowInvalid:
        return None
    return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=float)


@dataclass(frozen=True)
class Covariate:
    """A column of numbers, or one of levels with the reference first."""

    name: str
    levels: tuple[str, ...] | None = None

    @property
    def terms(self) -> tuple[str, ...]:
        """What the rows of a table of coefficients are called."""
        if self.levels is None:
            return (self.name,)
        return tuple(f"{self.name}={level}" for level in self.levels[1:])

    def columns(self, values: Values) -> Array:
        """Its part of the design matrix, shape (rows, terms)."""
        if self.levels is None:
            if values.numbers is None:
                raise DataError(
                    f"Expected numbers in column {self.name!r}, got "
                    f"{shown((values.texts or [''])[0])}.",
                    column=self.name,
                )
            infinite = np.flatnonzero(np.isinf(values.numbers))
            if infinite.size:
                raise DataError(
                    f"Expected finite numbers in column {self.name!r}, got an infinite one in row "
                    f"{infinite[0]}.",
                    column=self.name,
                )
            return values.numbers[:, None]
        texts = values.texts or []
        known = {level: place for place, level in enumerate(self.levels)}
        for text in texts:
            if text not in known:
                raise DataError(
                    f"Unknown level {text!r} in column {self.name!r}; known are "
                    f"{shown_list(self.levels)}.",
                    column=self.name,
                    label=text,
                )
        codes = np.array([known[text] for text in texts], dtype=np.intp)
        return np.asarray(codes[:, None] == np.arange(1, len(self.levels)), dtype=float)


@dataclass(frozen=True)
class Coding:
    """All covariates, in order."""

    covariates: tuple[Covariate, ...]

    @classmethod
    def learnt(cls, columns: Mapping[str, Values], reference: Mapping[str, Any]) -> Coding:
        """Levels as they occur, with the reference that was asked for, or else the first."""
        for name in reference:
            if name not in columns:
                raise unknown_column(name, list(columns), argument="reference")
        found = []
        for name, values in columns.items():
            if values.texts is None:
                if name in reference:
                    raise ParameterError(
                        f"Expected a reference for columns of levels only, {name!r} has numbers; "
                        f"name it as categorical first.",
                        argument="reference",
                        column=name,
                    )
                found.append(Covariate(name))
            else:
                found.append(Covariate(name, _levels(name, values.texts, reference.get(name))))
        return cls(tuple(found))

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of the columns of the design matrix."""
        return (INTERCEPT, *(term for covariate in self.covariates for term in covariate.terms))

    def matrix(self, columns: Mapping[str, Values], rows: int) -> Array:
        """The design matrix, with a first column of ones."""
        parts = [covariate.columns(columns[covariate.name]) for covariate in self.covariates]
        return np.concatenate([np.ones((rows, 1)), *parts], axis=1)


def _levels(name: str, texts: Sequence[str], reference: Any) -> tuple[str, ...]:
    levels = sorted_labels({text for text in texts if text})
    if len(levels) > _MOST_LEVELS:
        raise DataError(
            f"Expected at most {_MOST_LEVELS} levels in column {name!r}, got {len(levels)}; "
            f"group them first, or give numbers as numbers.",
            argument="covariates",
            column=name,
        )
    if reference is None:
        return levels
    wanted = label_text(reference)
    if wanted not in levels:
        raise ParameterError(
            f"Expected a reference of column {name!r} among {shown_list(levels)}, got {wanted!r}.",
            argument="reference",
            column=name,
            label=wanted,
        )
    return (wanted, *(level for level in levels if level != wanted))


def check_independent(X: Array, weight: Array, terms: Sequence[str]) -> None:
    """Refuse a design matrix with a column that is a combination of the others."""
    for place in range(1, X.shape[1]):
        if (X[:, place] == X[0, place]).all():
            column = terms[place].partition("=")[0]
            raise DataError(
                f"Expected covariates that vary, {terms[place]!r} is {X[0, place]:g} for every "
                f"report; leave it out.",
                argument="covariates",
                column=column,
            )
    scaled = np.sqrt(weight)[:, None] * X
    mean = weight @ X[:, 1:] / weight.sum()
    scaled[:, 1:] -= np.sqrt(weight)[:, None] * mean
    scaled /= np.linalg.norm(scaled, axis=0)
    _, R, order = qr(scaled, mode="economic", pivoting=True)
    small = np.flatnonzero(np.abs(np.diag(R)) < _DEPENDENT)
    if len(X) < X.shape[1] or small.size:
        place = int(order[small[0]]) if small.size else X.shape[1] - 1
        raise DataError(
            f"Expected covariates that are not collinear, {terms[place]!r} is a combination of "
            f"the others; leave one of them out.",
            argument="covariates",
            column=terms[place].partition("=")[0],
        )
