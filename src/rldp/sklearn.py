"""scikit-learn: a release as a step of a pipeline."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from rldp.counting import column_names, unknown_column
from rldp.errors import DataError, MissingExtraError, ParameterError
from rldp.protocol import PublicProtocol, ReleaseProtocol
from rldp.release.columns import read_columns
from rldp.release.frames import is_frame
from rldp.release.keys import read_key

try:
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise MissingExtraError(
        "Transformers need scikit-learn: pip install 'rldp[sklearn]'."
    ) from None


class ReleaseTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # has no types
    """Frames with the columns of a protocol to their reports, as one column of labels.

    Every call of `transform` draws anew, and a second report of a person costs more than the
    first; a pipeline transforms its training data in `fit` and again in `predict`. With `record_id`
    and `key_file` a person's report stays the same.

    Args:
        protocol: the protocol, whole or public.
        record_id: the column with each person's id.
        key_file: the file with the secret that goes with it, see `rldp new-key`. It is read when
            reports are drawn, so that neither a printed nor a stored pipeline holds the secret.
        keep: other columns to keep before the report.
        column: the name of the column with the reports.
    """

    def __init__(
        self,
        protocol: ReleaseProtocol | PublicProtocol,
        *,
        record_id: str | None = None,
        key_file: str | os.PathLike[str] | None = None,
        keep: str | Iterable[str] = (),
        column: str = "y",
    ) -> None:
        """Take the parameters as they are."""
        self.protocol = protocol
        self.record_id = record_id
        self.key_file = key_file
        self.keep = keep
        self.column = column

    def fit(self, X: Any, y: Any = None) -> ReleaseTransformer:  # noqa: ARG002
        """Learn the names of the columns; nothing is drawn and nothing of the values is learnt."""
        self._check(X)
        validate_data(self, X, reset=True, skip_check_array=True)
        return self

    def transform(self, X: Any) -> Any:
        """The kept columns and the reports, an array of shape (n, columns) unless `set_output`."""
        check_is_fitted(self, "feature_names_in_")
        self._check(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        released = self.protocol.release(
            X,
            record_id=self.record_id,
            key=None if self.key_file is None else read_key(self.key_file),
            keep=self._kept,
            column=self.column,
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
        available = column_names(X)
        id_column = () if self.record_id is None else (self.record_id,)
        for name in (*read_columns(self.protocol), *self._kept, *id_column):
            if name not in available:
                raise DataError(unknown_column(name, available))

    def __sklearn_tags__(self) -> Any:
        """Labelled columns of categories; an array of numbers is no input."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.categorical = tags.input_tags.string = True
        tags.non_deterministic = self.key_file is None
        return tags
