"""Which columns may stand beside a report, without metadata that could tell more."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from rldp.checks import checked_texts, shown
from rldp.errors import KeptColumnsWarning, ParameterError, Remedy
from rldp.release.encode import Missing, check_missing
from rldp.release.sampler import Released
from rldp.tables.arrow_arrays import integer_array
from rldp.tables.schema import shown_list

FINGERPRINT_COLUMN = "protocol"
_FINGERPRINT_DIGITS = 12
_FINGERPRINT = re.compile(f"[0-9a-f]{{{_FINGERPRINT_DIGITS}}}")


def short_fingerprint(fingerprint: str) -> str:
    """The first digits of a fingerprint, which text files have beside every report."""
    return fingerprint[:_FINGERPRINT_DIGITS]


def is_short_fingerprint(text: object) -> bool:
    """Whether a text could be the first digits of a fingerprint."""
    return isinstance(text, str) and _FINGERPRINT.fullmatch(text) is not None


@dataclass(frozen=True)
class Layout:
    """The columns of a release beside those of the record, and which records it has.

    Args:
        keep: columns that stand beside the report.
        record_id: the column with each person's id, which is read but not released.
        column: the name of the column with the reports.
        fingerprint: whether a column says for each report which protocol gave it.
        missing: whether records with missing values are refused or left out.
        labels: whether sets are written by their labels; None means small ones.
    """

    keep: tuple[str, ...] = ()
    record_id: str | None = None
    column: str = "y"
    fingerprint: bool = False
    missing: Missing = "error"
    labels: bool | None = None

    @classmethod
    def checked(
        cls,
        p: Released,
        *,
        keep: str | Iterable[str],
        record_id: Any,
        column: Any,
        keep_anyway: bool,
        fingerprint: bool,
        missing: Missing = "error",
    ) -> Layout:
        """A layout without a column of the record, unless `keep_anyway` says so."""
        check_missing(missing)
        kept = checked_texts(keep, "names of columns", argument="keep")
        if not isinstance(column, str) or not column or not _is_unicode(column):
            raise ParameterError(
                f"Expected a name for the column of the reports, got {shown(column)}.",
                argument="column",
            )
        if record_id is not None and not isinstance(record_id, str):
            raise ParameterError(
                f"Expected the name of the column with the ids, got {shown(record_id)}.",
                argument="record_id",
            )
        if column in record_names(p):
            raise ParameterError(
                f"Expected a name for the reports that no column of the record has, "
                f"got {column!r}.",
                argument="column",
                column=column,
            )
        names = (*kept, column)
        if fingerprint and FINGERPRINT_COLUMN in names:
            raise ParameterError(
                f"Expected no other column {FINGERPRINT_COLUMN!r} beside the one with the "
                f"protocol's fingerprint; rename it, or leave the fingerprint out.",
                argument="fingerprint",
                column=FINGERPRINT_COLUMN,
            )
        if len(set(names)) < len(names):
            raise ParameterError(
                f"Expected different columns in the result, got {shown_list(names)}.",
                argument="keep",
            )
        revealing = kept_of_record(p, kept)
        if revealing and not keep_anyway:
            raise ParameterError(
                f"Expected no column of the record beside its report, got {shown_list(revealing)}: "
                f"the report would hide nothing.",
                argument="keep",
                column=revealing[0],
                remedies=[Remedy("keep_anyway", True, "to keep it anyway")],
            )
        return cls(kept, record_id, column, fingerprint, missing)

    def written(self, labels: bool | None) -> Layout:
        """The same with sets by their labels, in bits, or as their size says."""
        if labels is not None and not isinstance(labels, bool):
            raise ParameterError(
                f"Expected labels as True, False or None, got {labels!r}.", argument="labels"
            )
        return replace(self, labels=labels)

    @property
    def needed(self) -> tuple[str, ...]:
        """Columns that the input must have, apart from those of the record."""
        return self.keep if self.record_id is None else (*self.keep, self.record_id)

    def warn(self, p: Released, stacklevel: int) -> None:
        """Warn once that no guarantee covers the kept columns."""
        if not self.keep:
            return
        about = f"The guarantee does not cover the kept columns {shown_list(self.keep)}"
        revealing = kept_of_record(p, self.keep)
        if revealing:
            about += f"; {shown_list(revealing)} shows what the report shall hide"
        if isinstance(self.record_id, str) and self.record_id in self.keep:
            about += f"; {self.record_id!r} says whose report it is"
        about += ": they can identify people, and what correlates with S reveals part of it."
        warnings.warn(about, KeptColumnsWarning, stacklevel=stacklevel + 1)


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def record_names(p: Released) -> tuple[str, ...]:
    """Names of the columns of S and U."""
    return tuple(column.name for column in p.schema.sensitive + p.schema.useful)


def kept_of_record(p: Released, kept: Iterable[str]) -> list[str]:
    """Those of the kept columns that are of S or U."""
    names = record_names(p)
    return [name for name in kept if name in names]


def bare_type(kind: Any) -> Any:
    """An Arrow type without dictionaries and without the metadata of its inner fields."""
    if pa.types.is_dictionary(kind):
        return bare_type(kind.value_type)
    if pa.types.is_struct(kind):
        return pa.struct([bare_field(kind.field(i)) for i in range(kind.num_fields)])
    if pa.types.is_map(kind):
        return pa.map_(bare_type(kind.key_type), bare_type(kind.item_type))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(bare_field(kind.value_field), kind.list_size)
    if pa.types.is_list(kind):
        return pa.list_(bare_field(kind.value_field))
    if pa.types.is_large_list(kind):
        return pa.large_list(bare_field(kind.value_field))
    return kind


def bare_field(field: Any) -> Any:
    """A field of an Arrow schema without metadata."""
    return pa.field(field.name, bare_type(field.type), field.nullable)


def bare_column(values: Any, kind: Any) -> Any:
    """The values of an Arrow array alone, as this type.

    They are copied: an array that is part of a longer one holds all of it, and a pickle shows it.
    """
    whole = values.cast(kind)
    return whole.take(integer_array(np.arange(len(whole))))
