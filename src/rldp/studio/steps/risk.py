"""Step 4, risk: what someone may learn, and the certificate checked while one looks."""

from __future__ import annotations

import math
import time
from dataclasses import asdict
from typing import Any

from rldp.disclosure import risk
from rldp.protocol import ReleaseProtocol, verify
from rldp.studio import code
from rldp.studio.choices import Choice
from rldp.studio.session import Session
from rldp.wording import holds, not_covered, set_in_words, worst_case


def found(session: Session, body: dict[str, Any]) -> dict[str, Any]:
    """The worst cases, and prior → highest posterior for each S value."""
    choice = Choice.from_request(body)
    p = session.design(choice)
    return described(p) | {"code": code.snippets("risk", choice, session.file(choice.data).name)}


def described(p: ReleaseProtocol) -> dict[str, Any]:
    """The same of a protocol."""
    result = risk(p)
    audit = result.audit
    S = ", ".join(column.name for column in p.schema.sensitive)
    levels = {
        "over F": audit.epsilon,
        "over F, each conditional by itself": audit.epsilon_apart,
        "over all distributions": audit.epsilon_all,
        "on the whole record (plain LDP)": audit.epsilon_plain,
    }
    return {
        "sensitive": S,
        "set": set_in_words(p.uncertainty).removeprefix("private for ").partition(";")[0],
        "claimed": p.epsilon,
        "holds": holds(result, p.epsilon),
        "levels": [
            {"over": over, "epsilon": epsilon, "odds": math.exp(epsilon) if epsilon < 700 else None}
            for over, epsilon in levels.items()
        ],
        "worst_case": worst_case(result, p.uncertainty, p.channel, S, is_protocol=True),
        "values": [asdict(value) for value in result.values],
        "guess": asdict(result.guess),
        "second_report": asdict(result.second_report),
        "coverage": None if result.coverage is None else asdict(result.coverage),
        "not_covered": not_covered(p.uncertainty),
    }


def proof(session: Session, body: dict[str, Any]) -> dict[str, Any]:
    """Prove ε again, now, in exact arithmetic."""
    p = session.design(Choice.from_request(body))
    start = time.perf_counter()
    checked = verify(p)
    return {
        "epsilon": float(checked.epsilon),
        "uncertainty": checked.uncertainty,
        "conditions": checked.conditions,
        "slack": checked.slack,
        "seconds": time.perf_counter() - start,
        "fingerprint": p.fingerprint,
    }
