"""scikit-learn: a release as a step of a pipeline."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any
from weakref import WeakSet

import numpy as np

from rldp.errors import DataError, FreshDrawWarning, MissingExtraError, ParameterError
from rldp.protocol.public_protocol import PublicProtocol
from rldp.protocol.release_protocol import ReleaseProtocol
from rldp.release.encode import read_columns
from rldp.release.frames import is_frame
from rldp.release.randomness import Per, read_key
from rldp.tables.frame_columns import column_names, unknown_column

try:
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise MissingExtraError(
        "Transformers need scikit-learn: pip install 'rldp[sklearn]'."
    ) from None


_FRESH = (
    "Without a key every call of transform draws new reports, also within a pipeline: ε covers one "
    "report of a person, and each further one tells more. Use record_id and key_file, which give a "
    "person the same report again, or transform once and keep the reports."
)
_warned: WeakSet[ReleaseTransformer] = WeakSet()  # no attribute, because transform changes none


class ReleaseTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # has no types
    """Turns frames with the columns of a protocol into reports, one column of labels.

    Every call of `transform` draws new reports, and each further report of a person costs privacy.
    A pipeline transforms its training data in `fit` and may do so again in `predict`. With
    `record_id` and `key_file` a person gets the same report every time; without, the first call
    gives a `FreshDrawWarning`.

    Args:
        protocol: the protocol, whole or public.
        record_id: the column with each person's id.
        key_file: the file with the secret key, see `rldp new-key`. It is read when reports are
            drawn, so that neither a printed nor a stored pipeline holds the key.
        per: with a key, the same random bits per "person" or per "record", as in `p.release`.
        keep: other columns to keep before the report, with a `KeptColumnsWarning`.
        column: the name of the column with the reports.
        keep_anyway: allow columns of S and U in `keep`.
    """

    def __init__(
        self,
        protocol: ReleaseProtocol | PublicProtocol,
        *,
        record_id: str | None = None,
        key_file: str | os.PathLike[str] | None = None,
        per: Per = "person",
        keep: str | Iterable[str] = (),
        column: str = "y",
        keep_anyway: bool = False,
    ) -> None:
        """Take the parameters as they are."""
        self.protocol = protocol
        self.record_id = record_id
        self.key_file = key_file
        self.per = per
        self.keep = keep
        self.column = column
        self.keep_anyway = keep_anyway

    def fit(self, X: Any, y: Any = None) -> ReleaseTransformer:  # noqa: ARG002  # scikit-learn passes it
        """Learn the names of the columns; no report is drawn and no value is used."""
        self._check(X)
        validate_data(self, X, reset=True, skip_check_array=True)
        return self

    def transform(self, X: Any) -> Any:
        """The kept columns and the reports, an array of shape (n, columns) unless `set_output`."""
        check_is_fitted(self, "feature_names_in_")
        self._check(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        if self.key_file is None and self.record_id is None and self not in _warned:
            _warned.add(self)
            warnings.warn(_FRESH, FreshDrawWarning, stacklevel=4)
        released = self.protocol.release(
            X,
            record_id=self.record_id,
            key=None if self.key_file is None else read_key(self.key_file),
            per=self.per,
            keep=self._kept,
            column=self.column,
            keep_anyway=self.keep_anyway,
        )
        columns = [np.asarray(released[name], dtype=object) for name in (*self._kept, self.column)]
        return np.stack(columns, axis=1)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """The kept columns and the column of the reports."""
        check_is_fitted(self, "feature_names_in_")
        if input_features is not None and list(input_features) != list(self.feature_names_in_):
            raise ParameterError(
                f"Expected input_features to be {list(self.feature_names_in_)}, "
                f"got {list(input_features)}."
            )
        return np.array([*self._kept, self.column], dtype=object)

    @property
    def _kept(self) -> tuple[str, ...]:
        return (self.keep,) if isinstance(self.keep, str) else tuple(self.keep)

    def _check(self, X: Any) -> None:
        if not is_frame(X):
            raise DataError(
                f"Expected a pandas, polars or pyarrow frame with named columns, "
                f"got {type(X).__name__}."
            )
        levels = getattr(getattr(X, "index", None), "names", ())
        available = [*column_names(X), *(name for name in levels if name is not None)]
        id_column = () if self.record_id is None else (self.record_id,)
        for name in (*read_columns(self.protocol), *self._kept, *id_column):
            if name not in available:
                raise unknown_column(name, available)

    def __sklearn_tags__(self) -> Any:
        """Categorical columns with names; arrays of numbers are not accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.categorical = tags.input_tags.string = True
        tags.non_deterministic = self.key_file is None
        return tags


def _with_new_index(transform: Callable[..., Any]) -> Callable[..., Any]:
    """`transform` without the index of the records, which `set_output` gives to pandas frames."""

    @wraps(transform)
    def transformed(self: ReleaseTransformer, X: Any) -> Any:
        out = transform(self, X)
        if not hasattr(out, "reset_index"):
            return out
        numbers = np.arange(len(out))
        found = np.asarray(out.index)
        if found.dtype.kind in "iu" and (found != numbers).any() and set(found) == set(numbers):
            raise DataError(
                "Expected rows numbered in their order, got another order, by which a "
                "ColumnTransformer would mix up the reports; use X.reset_index(drop=True) first."
            )
        return out.reset_index(drop=True)

    return transformed


# scikit-learn wraps `transform` when the class is made, and its wrapper adds the index of X
ReleaseTransformer.transform = _with_new_index(  # type: ignore[method-assign]  # so it must come after
    ReleaseTransformer.transform
)
