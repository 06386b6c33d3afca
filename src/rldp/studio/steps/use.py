"""Step 5, use: protocol files, a release, estimates from reports, and how many are needed."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.csv

from rldp.checks import is_one_of, shown
from rldp.errors import DataError, RldpError
from rldp.estimation.export import figure_records
from rldp.estimation.sample_size import plan
from rldp.presentation.estimate_texts import forgery_in_words
from rldp.protocol.documents import file_text
from rldp.protocol.public_protocol import PublicProtocol
from rldp.protocol.release_protocol import ReleaseProtocol
from rldp.release.randomness import SecureWords
from rldp.release.writers import random_order, write_rows
from rldp.studio import code
from rldp.studio.answers import FieldError
from rldp.studio.choices import Choice, number
from rldp.studio.jobs import Job
from rldp.studio.session import Session
from rldp.studio.uploads import people, profiled
from rldp.tables.sources import Format

_ROWS = 20_000  # records drawn between two words on progress
_METHODS = ("inversion", "likelihood", "bayes")
FORMATS = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}


def protocol_file(session: Session, choice: Choice, *, is_public: bool) -> tuple[str, bytes]:
    """The protocol, or its version for clients, with a name to save it by."""
    p = session.design(choice)
    saved: ReleaseProtocol | PublicProtocol = p.public() if is_public else p
    name = f"{choice.stem}.client.json" if is_public else code.protocol_name(choice)
    return name, file_text(saved.document()).encode()


def records_file(session: Session, choice: Choice) -> tuple[str, bytes]:
    """The records that were counted, S and U alone, where no file of the user's holds just these.

    Parquet keeps a text such as NA apart from a missing value.
    """
    if not code.needs_records(choice):
        raise FieldError("download", "These records are in the file that was loaded.", 404)
    return code.records_name(choice, ""), written(people(session.table(choice)), "parquet")


def release(session: Session, body: dict[str, Any]) -> dict[str, Any]:
    """Start a release of the chosen records, in memory; the page downloads it at the end."""
    choice = Choice.from_request(body)
    p = session.design(choice)
    kind = body.get("format", "csv")
    if not is_one_of(kind, FORMATS):
        raise FieldError("format", f"Expected one of {', '.join(FORMATS)}, got {shown(kind)}.")
    file = session.file(choice.data if body.get("records") is None else str(body["records"]))
    frame = people(session.table(choice)) if file.frame is None else file.frame
    is_shuffled = body.get("shuffle", True) is True
    if choice.missing == "drop":
        names = [column.name for column in (*p.schema.sensitive, *p.schema.useful)]
        frame = frame.select(names).drop_null()

    def work(job: Job) -> tuple[str, str]:
        parts = []
        for start in range(0, frame.num_rows, _ROWS):
            job.tell(records=start, of=frame.num_rows, share=start / frame.num_rows)
            parts.append(p.release(frame.slice(start, _ROWS), fingerprint=kind == "csv"))
        reports = pa.concat_tables(parts)
        if is_shuffled:
            reports = reports.take(pa.array(random_order(reports.num_rows, SecureWords())))
        name = f"{choice.stem}-reports.{kind}"
        identity = session.add(profiled(name, reports))  # to be saved, and estimated from
        job.tell(records=frame.num_rows, of=frame.num_rows, share=1.0, reports=identity)
        return identity, kind

    return session.jobs.start("release", work).summary()


def reports_file(session: Session, job: Job) -> tuple[str, str, bytes]:
    """The reports of a finished release, with a name and a content type."""
    if job.kind != "release" or job.result is None:
        raise FieldError("release", "There is no finished release with this name.", 404)
    identity, kind = job.result
    reports = session.file(identity)
    return reports.name, FORMATS[kind], written(reports.frame, kind)


def written(reports: Any, form: Format) -> bytes:
    """A table as the bytes of a file."""
    file = BytesIO()
    write_rows(reports, form, file)
    return file.getvalue()


def estimate(session: Session, body: dict[str, Any]) -> dict[str, Any]:
    """The table back from reports, beside the design sample."""
    choice = Choice.from_request(body)
    p = session.design(choice)
    method = body.get("method", "inversion")
    if not is_one_of(method, _METHODS):
        raise FieldError("method", f"Expected one of {', '.join(_METHODS)}, got {shown(method)}.")
    level = number(body, "level", 0.0, 1.0, 0.95, below=True)
    reports = session.file(str(body.get("reports", "")))
    if reports.frame is None:
        raise FieldError("reports", "Expected reports, these are the bundled counts.")
    try:
        e = p.estimate(reports.frame, method=method, level=level)
    except RldpError as error:
        raise FieldError.beside("reports", error) from None
    schema, sample = p.schema, p.table
    cells = [f"{s} | {u}" if schema.useful else s for s in schema.s_labels for u in schema.u_labels]
    return {
        "reports": e.n,
        "level": e.level,
        "method": e.method,
        "fit": e.goodness_of_fit.p_value,
        "hidden": int((~e.identified).sum()),
        "remarks": e.remarks,
        "forgery": forgery_in_words(e) if e.method == "inversion" else "",
        "cells": _beside(figure_records(cells, e.cells), sample.p_su.ravel().tolist()),
        "s": _beside(figure_records(list(schema.s_labels), e.s), sample.p_s.tolist()),
        "u": _beside(figure_records(list(schema.u_labels), e.u), sample.p_su.sum(axis=0).tolist())
        if schema.useful
        else [],
        "code": code.snippets("use", choice, session.file(choice.data).name),
    }


def _beside(records: list[Any], sample: list[float]) -> list[dict[str, Any]]:
    return [dict(record) | {"sample": share} for record, share in zip(records, sample, strict=True)]


def needed(session: Session, body: dict[str, Any]) -> dict[str, Any]:
    """How many reports estimate the cells, or one share, to a margin."""
    choice = Choice.from_request(body)
    p = session.design(choice)
    margin = number(body, "margin", 0.0, 1.0, 0.01, below=True)
    level = number(body, "level", 0.0, 1.0, 0.95, below=True)
    cell = body.get("cell") or None
    if cell is not None and not isinstance(cell, dict):
        raise FieldError("cell", f"Expected column and label, got {shown(cell)}.")
    try:
        found = plan(p, margin, cell=cell, level=level)
    except DataError as error:
        raise FieldError.beside("cell", error) from None
    rows = zip(found.names, found.expected.tolist(), found.reports.tolist(), strict=True)
    return {
        "needed": found.needed,
        "margin": margin,
        "level": level,
        "quantities": [
            {"name": name, "expected": expected, "reports": reports}
            for name, expected, reports in rows
        ],
    }


def overview(session: Session, body: dict[str, Any]) -> dict[str, Any]:
    """What the step offers: names of files, and the columns that a plan can ask for."""
    choice = Choice.from_request(body)
    p = session.design(choice)
    file = session.file(choice.data)
    return {
        "file": file.name,
        "protocol_file": code.protocol_name(choice),
        "is_bundled": file.frame is None,
        "records": file.records,
        "marginals": [
            {"column": column.name, "labels": list(column.labels)}
            for column in (*p.schema.sensitive, *p.schema.useful)
        ],
        "fingerprint": p.fingerprint,
        "code": code.snippets("use", choice, file.name),
    }
