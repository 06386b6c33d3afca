"""Reports of a store as a file, in random order."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa

from rldp.collect.opening import Collection
from rldp.errors import DataError, FileError
from rldp.io.atomic_files import whole_file
from rldp.release.keeping import FINGERPRINT_COLUMN, short_fingerprint
from rldp.release.randomness import SecureWords
from rldp.release.writers import BatchWriter, Shuffle
from rldp.tables.arrow_arrays import text_array
from rldp.tables.sources import file_format, is_compressed, is_text

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
    fields = [pa.field(_COLUMN, pa.string())]
    if is_text(form):
        fields.append(pa.field(FINGERPRINT_COLUMN, pa.string()))
    schema = pa.schema(fields, {b"rldp": json.dumps(note).encode()})
    n = 0
    with ExitStack() as stack:
        if target.exists() and collection.where == str(target):
            raise FileError(f"Expected another target than the store, got {target} for both.")
        shuffled = Shuffle(schema, SecureWords(), target.absolute().parent, stack)
        for part in collection.store.batches(_ROWS):
            labels = p.report_labels.texts(codes.reports(part)).cast(pa.string())
            marks = pa.repeat(text_array([short_fingerprint(p.fingerprint)])[0], len(part))
            shuffled.add(pa.RecordBatch.from_arrays([labels, marks][: len(fields)], schema=schema))
            n += len(part)
        if not n:
            raise DataError(f"Expected at least one report, {collection.where} has none.")
        file = stack.enter_context(whole_file(target))
        writer = BatchWriter(form, file, schema, compressed=is_compressed(target), column=_COLUMN)
        with writer:
            for batch in shuffled.batches():
                writer.write(batch)
    return n
