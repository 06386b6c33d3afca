"""Reports of a store as a file, in random order."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa

from rldp.collect.opening import Collection
from rldp.collect.report_codes import BlockCodes, ReportCodes
from rldp.errors import DataError, FileError
from rldp.io.atomic_files import whole_file
from rldp.protocol.public_protocol import PublicProtocol
from rldp.protocol.questionnaire import PublicQuestionnaire
from rldp.release.keeping import FINGERPRINT_COLUMN, short_fingerprint
from rldp.release.questionnaire import BLOCK_COLUMN
from rldp.release.randomness import SecureWords
from rldp.release.writers import BatchWriter, Shuffle
from rldp.tables.arrow_arrays import text_array
from rldp.tables.sources import file_format, has_metadata, is_compressed

_ROWS = 65_536
_COLUMN = "y"


def export(collection: Collection, target: Path) -> int:
    """Write the labels of all reports to a CSV, Parquet or Arrow file; their number.

    The file has what `rldp release` writes: the column y, the fingerprint beside each report in
    text files and in the metadata of others. All orders are equally likely.
    """
    p, codes = collection.protocol, collection.codes
    form = file_format(target)
    note = {"protocol": p.name, "epsilon": p.epsilon, "fingerprint": p.fingerprint}
    names = [BLOCK_COLUMN, _COLUMN] if isinstance(codes, BlockCodes) else [_COLUMN]
    fields = [pa.field(name, pa.string()) for name in names]
    if not has_metadata(form):
        fields.append(pa.field(FINGERPRINT_COLUMN, pa.string()))
    schema = pa.schema(fields, {b"rldp": json.dumps(note).encode()})
    n = 0
    with ExitStack() as stack:
        if target.exists() and collection.where == str(target):
            raise FileError(f"Expected another target than the store, got {target} for both.")
        shuffled = Shuffle(schema, SecureWords(), target.absolute().parent, stack)
        for part in collection.store.batches(_ROWS):
            columns = _columns(collection, part)
            columns.append(pa.repeat(text_array([short_fingerprint(p.fingerprint)])[0], len(part)))
            shuffled.add(pa.RecordBatch.from_arrays(columns[: len(fields)], schema=schema))
            n += len(part)
        if not n:
            raise DataError(f"Expected at least one report, {collection.where} has none.")
        file = stack.enter_context(whole_file(target))
        writer = BatchWriter(form, file, schema, compressed=is_compressed(target), column=_COLUMN)
        with writer:
            for batch in shuffled.batches():
                writer.write(batch)
    return n


def _columns(collection: Collection, part: Sequence[bytes]) -> list[Any]:
    """The labels of some reports; of a questionnaire after their blocks, block by block."""
    p, codes = collection.protocol, collection.codes
    if isinstance(p, PublicProtocol) and isinstance(codes, ReportCodes):
        return [p.report_labels.texts(codes.reports(part)).cast(pa.string())]
    assert isinstance(p, PublicQuestionnaire)
    assert isinstance(codes, BlockCodes)
    blocks, labels = [], []
    for j, reports in codes.reports(part):
        texts = p.blocks[j].report_labels.texts(reports).cast(pa.string())
        labels.append(texts)
        blocks.append(pa.repeat(text_array([p.names[j]])[0], len(texts)))
    return [pa.concat_arrays([x.cast(pa.string()) for x in parts]) for parts in (blocks, labels)]
