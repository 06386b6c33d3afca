"""Counts of reports: all that an estimate needs to know of them, added up piece by piece."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rldp.errors import DataError, TooLargeError
from rldp.estimation.moments import ListedMoments, Moments, UnaryMoments

Array = NDArray[np.float64]

_MOST_WORDS = 2**22  # different reports of a unary protocol that are kept for the likelihood
_PENDING = 2**18  # reports that wait until they are merged


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
    words: NDArray[np.int64] | None = None
    word_weights: Array | None = None

    @property
    def mean(self) -> Array:
        """The mean of the features."""
        return np.asarray(self.sums / self.weight)

    @property
    def squares_mean(self) -> Array:
        """The same with w² for weights, as variances have it."""
        return np.asarray(self.squares / self.squared_weight)

    @property
    def effective_n(self) -> float:
        """(Σw)²/Σw²: the number of reports with equal weights that tell as much."""
        return self.weight**2 / self.squared_weight


class Counting:
    """Reports added up piece by piece, in memory that does not grow unless words are kept."""

    def __init__(self, features: Moments, *, keep_words: bool = False) -> None:
        """Start with no reports."""
        self._features = features
        self._keep = keep_words and isinstance(features, UnaryMoments)
        self._sums, self._squares = np.zeros((2, features.n_features))
        self._n, self._weight, self._squared = 0, 0.0, 0.0
        self._words: list[NDArray[np.int64]] = []
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
                f"protocol, got more; use method='inversion', which needs no list of them."
            )

    def result(self) -> ReportCounts:
        """What was counted; refuses reports that the channel cannot give."""
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
    """Counts that were made elsewhere: of each output, or for unary of each block and symbol.

    Args:
        features: of the channel.
        counts: shape (n_y,), or (blocks, symbols) with silence first; non-negative integers.
    """
    shape: tuple[int, ...] = (features.n_features,)
    if isinstance(features, UnaryMoments):
        shape = features.other.shape
    try:
        values = np.asarray(counts, dtype=float)
    except (TypeError, ValueError):
        raise DataError(f"Expected counts as numbers of shape {shape}, got {counts!r}.") from None
    if values.shape != shape:
        raise DataError(f"Expected counts of shape {shape}, got {values.shape}.")
    wrong = np.argwhere(~(np.isfinite(values) & (values >= 0) & (values == np.floor(values))))
    if wrong.size:
        place = tuple(int(i) for i in wrong[0])
        raise DataError(
            f"Expected counts as non-negative integers, got {values[place]} at {place}."
        )
    n = values.sum() if isinstance(features, ListedMoments) else values[0].sum()
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
    try:
        w = np.array([float(x) for x in weights]) if _is_plain(weights) else np.asarray(weights)
        w = w.astype(float)
    except (TypeError, ValueError):
        raise DataError("Expected weights as numbers, got something else.") from None
    if w.shape != (n,):
        raise DataError(f"Expected one weight for each of {n} reports, got shape {w.shape}.")
    wrong = np.flatnonzero(~(np.isfinite(w) & (w >= 0)))
    if wrong.size:
        raise DataError(
            f"Expected weights that are finite and not negative, got {w[wrong[0]]} in row "
            f"{wrong[0]}."
        )
    return w


def _is_plain(weights: Any) -> bool:
    return isinstance(weights, list | tuple) or np.asarray(weights).dtype.kind == "O"
