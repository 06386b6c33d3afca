"""Step 4, risk: what someone may learn, and the certificate checked while one looks."""

from __future__ import annotations

import math
import time
from dataclasses import asdict
from typing import Any

from rldp.auditing.coverage import Coverage
from rldp.auditing.risk import risk
from rldp.decimals import ratio_up, rounded_up, shortest
from rldp.presentation.promises import (
    covered,
    is_kept,
    level_rows,
    not_covered,
    promise,
    risk_levels,
    worst_case,
)
from rldp.presentation.risk_texts import (
    attacker_in_words,
    attacker_rows,
    coverage_in_words,
    group_in_words,
    repeated_in_words,
    short_advice,
)
from rldp.presentation.texts import set_in_words
from rldp.protocol.files import verify
from rldp.protocol.release_protocol import ReleaseProtocol
from rldp.studio import code
from rldp.studio.choices import Choice
from rldp.studio.promise import MOST, promises
from rldp.studio.session import Session


def found(session: Session, body: dict[str, Any]) -> dict[str, Any]:
    """The worst cases, and prior → highest posterior for each S value."""
    choice = Choice.from_request(body)
    p = session.design(choice)
    return described(p) | {"code": code.snippets("risk", choice, session.file(choice.data).name)}


def described(p: ReleaseProtocol) -> dict[str, Any]:
    """The same of a protocol."""
    result = risk(p)
    beyond = risk_levels(result, p.epsilon)
    parts = {
        f"over F, for someone who knows only {' and '.join(part)}": epsilon
        for part, epsilon in result.audit.epsilon_given_part.items()
    }
    group = result.audit.worst_group if p.table.n_u > 2 else None
    if result.audit.epsilon_all <= result.audit.epsilon:
        group = None  # ε holds for everyone
    S = ", ".join(column.name for column in p.schema.sensitive)
    return {
        "sensitive": S,
        "set": set_in_words(p.uncertainty).removeprefix("private for ").partition(";")[0],
        "claimed": p.epsilon,
        "promises": promises(p, result.audit),
        "holds": is_kept(result, p.epsilon),
        "levels": [
            {"over": over, "epsilon": epsilon, "text": rounded_up(epsilon), "odds": _odds(epsilon)}
            for over, epsilon in (level_rows(result, p.schema) | parts).items()
        ],
        "worst_case": worst_case(result, p.uncertainty, p.channel, S, is_protocol=True),
        "values": [asdict(value) for value in result.values],
        "attackers": attacker_rows(result.attackers, p.schema),
        "sentences": [
            *(attacker_in_words(attacker, p.schema) for attacker in result.attackers),
            *([] if group is None else [group_in_words(group, p.schema)]),
            repeated_in_words(result.repeated, p.schema),
            *_coverage(result.coverage),
        ],
        "promise": promise(beyond, p.uncertainty),
        "also_covered": covered(beyond, p.uncertainty),
        "not_covered": not_covered(beyond, p.uncertainty),
    }


def _odds(epsilon: float) -> str:
    """A factor of odds, never smaller than it is."""
    if math.isinf(epsilon):
        return "no limit"
    return "over a million" if epsilon > MOST else f"× {ratio_up(math.exp(epsilon))}"


def _coverage(found: Coverage | None) -> list[str]:
    if found is None:
        return []
    advice = short_advice(found)
    return [coverage_in_words(found), *([] if advice is None else [advice])]


def proof(session: Session, body: dict[str, Any]) -> dict[str, Any]:
    """Prove ε again, now, in exact arithmetic."""
    p = session.design(Choice.from_request(body))
    start = time.perf_counter()
    checked = verify(p)
    return {
        "epsilon": float(checked.epsilon),
        "uncertainty": checked.uncertainty,
        "proved": [
            f"ε = {shortest(one.epsilon)} over {one.uncertainty}"
            + f", for someone who knows {' and '.join(one.knows)}" * bool(one.knows)
            for one in checked.guarantees
        ],
        "conditions": checked.conditions,
        "slack": checked.slack,
        "seconds": time.perf_counter() - start,
        "fingerprint": p.fingerprint,
    }
