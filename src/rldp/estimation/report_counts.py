"""Counts of reports: all that an estimate needs, summed up batch by batch."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rldp._types import Array, Integers
from rldp.checks import MOST_COUNTED, as_array, checked_tuple, shown, unmasked
from rldp.errors import DataError, Remedy, TooLargeError
from rldp.estimation.moments import ListedMoments, Moments, UnaryMoments

_MOST_WORDS = 2**22  # different reports of a unary protocol that are kept for the likelihood
_MOST_WEIGHT = 1e100  # above, sums of squares may overflow
_PENDING = 2**18  # reports that are collected before they are merged


@dataclass(frozen=True, eq=False)
class ReportCounts:
    """Sums over reports with weights w: of w and w² times their features, and their number.

    For unary protocols `words` and `word_weights` hold the different reports, if they were kept.
    """

    sums: Array
    squares: Array
    n: int
    weight: float
    squared_weight: float
    words: Integers | None = None
    word_weights: Array | None = None

    @property
    def mean(self) -> Array:
        """The mean of the features."""
        return np.asarray(self.sums / self.weight)

    @property
    def squares_mean(self) -> Array:
        """The same with weights w², which variances need."""
        return np.asarray(self.squares / self.squared_weight)

    @property
    def effective_n(self) -> float:
        """(Σw)²/Σw²: the number of reports with equal weights that have the same information."""
        return self.weight**2 / self.squared_weight


class Counting:
    """Reports summed up batch by batch, in constant memory unless words are kept."""

    def __init__(self, features: Moments, *, keep_words: bool = False) -> None:
        """Start with no reports."""
        self._features = features
        self._keep = keep_words and isinstance(features, UnaryMoments)
        self._sums, self._squares = np.zeros((2, features.n_features))
        self._n, self._weight, self._squared = 0, 0.0, 0.0
        self._words: list[Integers] = []
        self._word_weights: list[Array] = []
        self._pending = 0

    def add(self, reports: NDArray[Any], weights: Any = None) -> None:
        """Count reports as `p.release(codes)` gives them, with decimal weights if there are any."""
        w = None if weights is None else checked_weights(weights, len(reports))
        sums = self._features.tally(reports, w)
        self._sums += sums
        self._squares += sums if w is None else self._features.tally(reports, w**2)
        self._n += len(reports)
        self._weight += len(reports) if w is None else float(w.sum())
        self._squared += len(reports) if w is None else float(w @ w)
        if self._keep:
            self._words.append(np.asarray(reports, dtype=np.int64))
            self._word_weights.append(np.ones(len(reports)) if w is None else w)
            self._pending += len(reports)
            if self._pending > _PENDING:
                self._merge()

    def _merge(self) -> None:
        words, weights = np.concatenate(self._words), np.concatenate(self._word_weights)
        n_z = int(words.max(initial=0)) + 2
        if n_z < 256:  # rows of bytes are compared at once
            small = np.ascontiguousarray((words + 1).astype(np.uint8))
            keys = small.view(np.dtype((np.void, small.shape[1]))).ravel()
            _, first, place = np.unique(keys, return_index=True, return_inverse=True)
        else:
            _, first, place = np.unique(words, axis=0, return_index=True, return_inverse=True)
        self._words = [words[first]]
        self._word_weights = [np.bincount(place.ravel(), weights, len(first)).astype(float)]
        self._pending = 0
        if len(first) > _MOST_WORDS:
            raise TooLargeError(
                f"Expected at most {_MOST_WORDS} different reports for the likelihood of a unary "
                f"protocol, got more.",
                argument="method",
                remedies=[Remedy("method", "inversion", "to do without a list of them")],
            )

    def result(self) -> ReportCounts:
        """The counts; an error if the channel cannot produce some of the reports."""
        impossible = np.flatnonzero((self._sums > 0) & ~self._features.possible)
        if impossible.size:
            raise DataError(
                f"Expected reports of this protocol, {self._features.place(int(impossible[0]))} "
                f"never occurs in it; are they reports of another one?"
            )
        words = weights = None
        if self._keep and self._words:
            self._merge()
            words, weights = self._words[0], self._word_weights[0]
        return ReportCounts(
            self._sums, self._squares, self._n, self._weight, self._squared, words, weights
        )


def counts_from(features: Moments, counts: Any) -> ReportCounts:
    """Counts made by the caller: of each output, or for unary of each block and symbol.

    Args:
        features: of the channel.
        counts: shape (n_y,), or (blocks, symbols) with silence first; non-negative integers.
    """
    shape: tuple[int, ...] = (features.n_features,)
    if isinstance(features, UnaryMoments):
        shape = features.other.shape
    values = as_array(counts, f"counts as numbers of shape {shape}", argument="counts")
    if values.shape != shape:
        raise DataError(f"Expected counts of shape {shape}, got {values.shape}.")
    wrong = np.argwhere(~(np.isfinite(values) & (values >= 0) & (values == np.floor(values))))
    if wrong.size:
        place = tuple(int(i) for i in wrong[0])
        raise DataError(
            f"Expected counts as non-negative integers, got {values[place]} at {place}."
        )
    n = values.sum() if isinstance(features, ListedMoments) else values[0].sum()
    if n > MOST_COUNTED:
        raise DataError(f"Expected at most 2**53 reports, the counts sum to {n:g}.")
    if values.ndim == 2 and not np.all(values.sum(axis=1) == n):
        raise DataError(
            f"Expected the same number of reports in every block, got {values.sum(axis=1)}."
        )
    impossible = np.flatnonzero((values.ravel() > 0) & ~features.possible)
    if impossible.size:
        raise DataError(f"Expected no count of {features.place(int(impossible[0]))}, got some.")
    return ReportCounts(values.ravel(), values.ravel(), int(n), float(n), float(n))


def checked_weights(weights: Any, n: int) -> Array:
    """Weights as floats: one for each report, finite, none negative."""
    expected = "one weight for each report, or the name of a column"
    if isinstance(weights, list | tuple):
        values: Any = unmasked(weights, expected, argument="weights")
    else:
        values = as_array(weights, expected, dtype=None, argument="weights")
    if isinstance(values, np.ndarray) and values.dtype.kind in "iufb":
        w = values.astype(float)
    else:
        listed = checked_tuple(values, expected, argument="weights")
        w = np.array([_weight(x, row) for row, x in enumerate(listed)])
    if w.shape != (n,):
        raise DataError(f"Expected one weight for each of {n} reports, got shape {w.shape}.")
    wrong = np.flatnonzero(~(np.isfinite(w) & (w >= 0)))
    if wrong.size:
        raise DataError(
            f"Expected weights that are finite and not negative, got {w[wrong[0]]} in row "
            f"{wrong[0]}."
        )
    extreme = np.flatnonzero((w > _MOST_WEIGHT) | ((w > 0) & (w < 1 / _MOST_WEIGHT)))
    if extreme.size:
        raise DataError(
            f"Expected weights from {1 / _MOST_WEIGHT:g} to {_MOST_WEIGHT:g}, or 0, got "
            f"{w[extreme[0]]} in row {extreme[0]}; divide all of them by the same number."
        )
    return w


def _weight(value: Any, row: int) -> float:
    """One weight, as a number or as the text of a file."""
    try:
        if isinstance(value, str | Real | Decimal):
            return float(value)
    except OverflowError:
        return np.inf
    except ValueError:
        pass
    raise DataError(f"Expected weights as numbers, got {shown(value)} in row {row}.")
