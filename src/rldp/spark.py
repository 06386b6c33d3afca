"""Spark: records released and counted on the cluster.

Only keyed releases: Spark may run a task twice, if it fails or is slow, and a report must not be
drawn twice. The key is sent to the executors with the job: trust them as you do with the records.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from rldp.errors import DataError, MissingExtraError
from rldp.protocol.public_protocol import PublicProtocol
from rldp.protocol.release_protocol import ReleaseProtocol
from rldp.release.encode import Missing as ReleaseMissing
from rldp.release.encode import read_columns
from rldp.release.frames import released_frame
from rldp.release.keeping import FINGERPRINT_COLUMN, Layout
from rldp.release.randomness import Per, Randomness, checked_key
from rldp.tables.frame_columns import Names, chosen_columns, column_names, unknown_column
from rldp.tables.table import Table
from rldp.tables.tally import Levels, Missing

_NO_LABELS = {  # type → why its values cannot be labels
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
    per: Per = "person",
    keep: str | Iterable[str] = (),
    column: str = "y",
    keep_anyway: bool = False,
    fingerprint: bool = False,
    missing: ReleaseMissing = "error",
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
        per: same random bits per "person", or new ones for a changed "record", as in `p.release`.
        keep: other columns to keep in their types, without their metadata and with a
            `KeptColumnsWarning`.
        column: the name of the column with the reports, which is text. Its metadata name the
            protocol, for `estimate`.
        keep_anyway: allow columns of S and U in `keep`.
        fingerprint: add the column `protocol`, for targets that keep no metadata, such as CSV.
        missing: "error" fails the job at a record with a missing value, "drop" leaves it out.
    """
    _require_spark()
    from pyspark.sql.types import StringType, StructField, StructType

    randomness = Randomness(key=checked_key(key), per=per)
    layout = Layout.checked(
        p,
        keep=keep,
        record_id=record_id,
        column=column,
        keep_anyway=keep_anyway,
        fingerprint=fingerprint,
        missing=missing,
    )
    names = read_columns(p)
    needed = tuple(dict.fromkeys((*names, *layout.needed)))
    kinds = _kinds(df, needed)
    _check_labels({name: kinds[name] for name in names})
    if kinds[record_id].split("(")[0] not in _IDS:
        raise DataError(
            f"Expected ids as text or integers, column {record_id!r} has {kinds[record_id]}; "
            f"cast it first.",
            argument="record_id",
            column=record_id,
        )
    layout.warn(p, stacklevel=2)
    public = p.public() if isinstance(p, ReleaseProtocol) else p

    def released(batches: Iterator[Any]) -> Iterator[Any]:
        return _released(batches, public, randomness, layout)

    note = json.dumps(randomness.note(p.name, p.epsilon, p.fingerprint))
    fields = [_bare_field(df.schema[name]) for name in layout.keep]
    fields.append(StructField(column, StringType(), nullable=False, metadata={"rldp": note}))
    if fingerprint:
        fields.append(StructField(FINGERPRINT_COLUMN, StringType(), nullable=False))
    schema = StructType(fields)
    with warnings.catch_warnings():  # Spark warns of a new pandas, which is not used here
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas")
        return _selected(df, needed).mapInArrow(released, schema)


def table(
    df: Any,
    sensitive: Names,
    useful: Names | None = None,
    *,
    missing: Missing = "error",
    levels: Levels | None = None,
    levels_limit: int | None = None,
) -> Table:
    """Count the records on the cluster; only the counts are sent to the driver.

    The result equals `rldp.Table.from_frame` of the same records; arguments as there.
    """
    _require_spark()
    names = sum(chosen_columns(column_names(df), sensitive, useful), ())
    _check_labels(_kinds(df, names))
    return Table.from_frame(
        _selected(df, names),
        sensitive,
        useful,
        missing=missing,
        levels=levels,
        levels_limit=levels_limit,
    )


def _released(
    batches: Iterator[Any], p: PublicProtocol, randomness: Randomness, layout: Layout
) -> Iterator[Any]:
    """What runs in a task: its batches, with the reports as plain text."""
    import pyarrow as pa
    from pyspark import TaskContext

    for batch in batches:
        try:
            out = released_frame(p, batch, randomness, layout)
        except DataError as error:
            context = TaskContext.get()
            place = "?" if context is None else context.partitionId()
            raise error.within(f"In a batch of partition {place}") from None
        place = out.schema.get_field_index(layout.column)
        texts = out.column(place).cast(pa.string())
        yield out.set_column(place, layout.column, texts).replace_schema_metadata(None)


def _bare_field(field: Any) -> Any:
    """A field of a Spark schema without metadata, which may list values or describe the data."""
    from pyspark.sql.types import StructField

    return StructField(field.name, _bare_type(field.dataType), field.nullable)


def _bare_type(kind: Any) -> Any:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, StructType):
        return StructType([_bare_field(field) for field in kind.fields])
    if isinstance(kind, ArrayType):
        return ArrayType(_bare_type(kind.elementType), kind.containsNull)
    if isinstance(kind, MapType):
        key, value = _bare_type(kind.keyType), _bare_type(kind.valueType)
        return MapType(key, value, kind.valueContainsNull)
    return kind


def _require_spark() -> None:
    try:
        import pyspark  # noqa: F401  # whether it is installed
    except ImportError:
        raise MissingExtraError("Spark needs pyspark: pip install 'rldp[spark]'.") from None


def _kinds(df: Any, names: Iterable[str]) -> dict[str, str]:
    """The Spark types of columns, each of which must exist once."""
    available = column_names(df)
    for name in names:
        if name not in available:
            raise unknown_column(name, available)
    return {name: df.schema[name].dataType.simpleString() for name in names}


def _check_labels(kinds: dict[str, str]) -> None:
    for name, kind in kinds.items():
        plain = kind.split("(")[0].split("<")[0]
        if plain in _NO_LABELS:
            raise DataError(
                f"Expected labels in column {name!r}, got {kind}, {_NO_LABELS[plain]}; "
                f"cast it to text first.",
                column=name,
            )


def _selected(df: Any, names: Iterable[str]) -> Any:
    return df.select(*(df[f"`{name.replace('`', '``')}`"] for name in names))
