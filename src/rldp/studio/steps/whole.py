"""Step 6, code: from the saved protocol on, as a script, as commands, and as a report."""

from __future__ import annotations

from typing import Any

from rldp.studio import code
from rldp.studio.choices import Choice
from rldp.studio.session import Session


def shown(session: Session, body: dict[str, Any]) -> dict[str, Any]:
    """Script and commands for a finished design, and the files that they begin from."""
    choice = Choice.from_request(body)
    p, file = session.design(choice), session.file(choice.data).name
    return {
        "python": code.script(choice, file, p.fingerprint),
        "command": code.commands(choice, file),
        "protocol_file": code.protocol_name(choice),
        "records_file": code.records_name(choice, file),
        "needs_records": code.needs_records(choice),
        "fingerprint": p.fingerprint,
    }
