"""Step 1, data: which records, which columns are S and U, and the joint table."""

from __future__ import annotations

from typing import Any

from rldp.checks import shown
from rldp.studio import code
from rldp.studio.answers import FieldError, bits
from rldp.studio.choices import Choice
from rldp.studio.session import Session
from rldp.studio.uploads import Loaded
from rldp.tables.schema import doubles_in_words, no_answers_in_words
from rldp.tables.tally import MISSING_LABEL

_LONGEST_NAME = 255  # as most systems allow
_HEADS_OFF = 1000  # levels beyond which a column is an identifier rather than a category


def described(session: Session, identity: str) -> dict[str, Any]:
    """The columns of a file, with their levels and what is missing."""
    file = session.file(identity)
    return {
        "id": identity,
        "name": file.name,
        "records": file.records,
        "is_bundled": file.frame is None,
        "columns": [column | {"advice": _advice(column, file)} for column in file.columns],
    }


def _advice(column: dict[str, Any], file: Loaded) -> str:
    levels = column["n_levels"]
    if levels is None:
        return "values without levels: cannot be used"
    if levels > _HEADS_OFF:
        return "an identifier or a measurement: group it into bands first"
    return "one level only" if levels == 1 and file.records > 1 else ""


def upload(session: Session, name: str, content: bytes) -> dict[str, Any]:
    """Take a file; its name is shown, and stands in the code that the page hands out."""
    if len(name) > _LONGEST_NAME or not name.isprintable():
        raise FieldError(
            "data",
            f"Expected the name of a file of at most {_LONGEST_NAME} printable characters, got "
            f"{shown(name)}: rename it.",
        )
    return described(session, session.add_file(name, content))


def joint_table(session: Session, body: dict[str, Any]) -> dict[str, Any]:
    """The counts of S and U, with what to know about them."""
    choice = Choice.from_request(body)
    file = session.file(choice.data)
    table = session.table(choice)
    counts = table.counts.tolist() if table.counts.size <= session.limits.drawn else None
    schema = table.schema
    if table.n_s == 1:
        raise FieldError("sensitive", "S has one value only: there is nothing to protect.")
    missing = {c["name"]: c["missing"] for c in file.columns}
    chosen = {name: missing.get(name, 0) for name in choice.sensitive + choice.useful}
    return {
        "n": table.n,
        "dropped": table.dropped,
        "n_s": table.n_s,
        "n_u": table.n_u,
        "s_labels": list(schema.s_labels),
        "u_labels": list(schema.u_labels) if schema.useful else ["(all)"],
        "counts": counts,
        "empty_cells": int((table.counts == 0).sum()),
        "empty_rows": [
            label
            for label, row in zip(schema.s_labels, table.counts.sum(axis=1), strict=True)
            if row == 0
        ],
        "entropy_bits": bits(table.entropy),
        "missing": {name: count for name, count in chosen.items() if count},
        "missing_label": MISSING_LABEL,
        "remarks": [
            remark
            for column in (*schema.sensitive, *schema.useful)
            for remark in (*doubles_in_words(column), *no_answers_in_words(column))
        ],
        "code": code.snippets("data", choice, file.name),
    }
