"""Step 6, code: the whole way as a script, as commands, and as a report that stands alone."""

from __future__ import annotations

from typing import Any

from rldp.studio import code
from rldp.studio.choices import Choice
from rldp.studio.session import Session


def shown(session: Session, body: dict[str, Any]) -> dict[str, Any]:
    """Script and commands for the choice."""
    choice = Choice.from_request(body)
    file = session.file(choice.data).name
    job = session.design_job(choice)
    return {
        "python": code.script(choice, file),
        "command": code.commands(choice, file),
        "is_designed": job is not None and job.result is not None,
        "stem": choice.stem,
    }
