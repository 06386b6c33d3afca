"""Spark: records released and counted on the cluster.

Only keyed releases: Spark runs a task again when it fails or lingers, and a report must not be
drawn again with it. The key travels to the executors with the job, so they must be trusted as much
as the records are.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from rldp.counting import Levels, Missing, Names, chosen_columns, column_names, unknown_column
from rldp.errors import DataError, MissingExtraError, ParameterError
from rldp.protocol import PublicProtocol, ReleaseProtocol
from rldp.release.columns import read_columns
from rldp.release.randomness import checked_key
from rldp.table import Table

_NO_LABELS = {  # type → why its values are no labels
    "timestamp": "whose text depends on the session's time zone",
    "timestamp_ltz": "whose text depends on the session's time zone",
    "array": "which has several values",
    "map": "which has several values",
    "struct": "which has several values",
    "variant": "which may have several values",
}
_IDS = ("string", "char", "varchar", "tinyint", "smallint", "int", "bigint")


def release(
    df: Any,
    p: ReleaseProtocol | PublicProtocol,
    *,
    record_id: str,
    key: bytes,
    keep: str | Iterable[str] = (),
    column: str = "y",
) -> Any:
    """A Spark DataFrame with one report for each record, drawn when Spark computes it.

    The reports are those of `p.release(frame, record_id=..., key=...)` on the same records, however
    Spark splits them and however often it runs a task. A record that cannot be released fails its
    task, and so the job.

    Args:
        df: a Spark DataFrame with the columns of the schema.
        p: the protocol, whole or public; the executors get the public version.
        record_id: the column with each person's id, text or integers.
        key: a secret of at least 16 bytes, see `rldp.new_key`.
        keep: other columns to keep in their types; S and U only if they are named here.
        column: the name of the column with the reports, which is text.
    """
    _require_spark()
    from pyspark.sql.types import StringType, StructField, StructType

    secret = checked_key(key)
    kept = (keep,) if isinstance(keep, str) else tuple(keep)
    if column in kept or len(set(kept)) < len(kept):
        raise ParameterError(f"Expected different columns in the result, got {(*kept, column)}.")
    names = read_columns(p)
    needed = tuple(dict.fromkeys((*names, *kept, record_id)))
    kinds = _kinds(df, needed)
    _check_labels({name: kinds[name] for name in names})
    if kinds[record_id].split("(")[0] not in _IDS:
        raise DataError(
            f"Expected ids as text or integers, column {record_id!r} has {kinds[record_id]}; "
            f"cast it first."
        )
    public = p.public() if isinstance(p, ReleaseProtocol) else p

    def released(batches: Iterator[Any]) -> Iterator[Any]:
        return _released(batches, public, record_id, secret, kept, column)

    fields = [df.schema[name] for name in kept]
    schema = StructType([*fields, StructField(column, StringType(), nullable=False)])
    with warnings.catch_warnings():  # of a pandas too new for Spark's frames, which are not made
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
        return _selected(df, needed).mapInArrow(released, schema)


def table(
    df: Any,
    sensitive: Names,
    useful: Names | None = None,
    *,
    missing: Missing = "error",
    levels: Levels | None = None,
) -> Table:
    """Count the records on the cluster; nothing but the counts comes to the driver.

    The result equals `rldp.Table.from_frame` of the same records; arguments as there.
    """
    _require_spark()
    names = sum(chosen_columns(column_names(df), sensitive, useful), ())
    _check_labels(_kinds(df, names))
    return Table.from_frame(_selected(df, names), sensitive, useful, missing=missing, levels=levels)


def _released(
    batches: Iterator[Any],
    p: PublicProtocol,
    record_id: str,
    key: bytes,
    keep: tuple[str, ...],
    column: str,
) -> Iterator[Any]:
    """What runs in a task: its batches, with the reports as plain text."""
    import pyarrow as pa
    from pyspark import TaskContext

    for batch in batches:
        try:
            out = p.release(batch, record_id=record_id, key=key, keep=keep, column=column)
        except DataError as error:
            context = TaskContext.get()
            place = "?" if context is None else context.partitionId()
            raise DataError(f"In a batch of partition {place}: {error}") from None
        texts = out.column(column).cast(pa.string())
        columns = [out.column(name) for name in keep]
        yield pa.RecordBatch.from_arrays([*columns, texts], names=[*keep, column])


def _require_spark() -> None:
    try:
        import pyspark  # noqa: F401
    except ImportError:
        raise MissingExtraError("Spark needs pyspark: pip install 'rldp[spark]'.") from None


def _kinds(df: Any, names: Iterable[str]) -> dict[str, str]:
    """Spark's types of columns that must be there, once each."""
    available = column_names(df)
    for name in names:
        if name not in available:
            raise DataError(unknown_column(name, available))
    return {name: df.schema[name].dataType.simpleString() for name in names}


def _check_labels(kinds: dict[str, str]) -> None:
    for name, kind in kinds.items():
        plain = kind.split("(")[0].split("<")[0]
        if plain in _NO_LABELS:
            raise DataError(
                f"Expected labels in column {name!r}, got {kind}, {_NO_LABELS[plain]}; "
                f"cast it to text first."
            )


def _selected(df: Any, names: Iterable[str]) -> Any:
    return df.select(*(df[f"`{name.replace('`', '``')}`"] for name in names))
