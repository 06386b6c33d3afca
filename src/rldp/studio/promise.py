"""What one report may reveal about S, and to whom: the audited ε of a protocol in sentences."""

from __future__ import annotations

import math
from typing import Any

from rldp.auditing.audit import Audit
from rldp.decimals import ratio_up, shortest
from rldp.presentation.texts import set_in_words
from rldp.protocol.release_protocol import ReleaseProtocol

_MOST_ODDS = 1e6


def promises(p: ReleaseProtocol, audit: Audit) -> list[dict[str, Any]]:
    """Against whom which factor holds.

    Over F speaks of someone who knows nothing of the person but that they belong to the
    population. Over all distributions holds for whoever knows anything about S and U.
    """
    S = ", ".join(column.name for column in p.schema.sensitive)
    U = ", ".join(column.name for column in p.schema.useful)
    known = set_in_words(p.uncertainty).removeprefix("private for ").partition(";")[0]
    found = [
        _promise(
            "Someone who knows nothing else about the person",
            f"One report changes their odds between any two values of {S} by at most a factor "
            f"e^{shortest(p.epsilon)} ≤ {ratio_up(math.exp(p.epsilon))}. "
            f"This is proved for {known}.",
            p.epsilon,
        )
    ]
    if U:
        epsilon = audit.epsilon_given_u
        found.append(_promise(f"Someone who knows the person's {U}", _limit(epsilon), epsilon))
    everyone = "Whatever is true of the population, and whatever else someone knows"
    found.append(_promise(everyone, _limit(audit.epsilon_all), audit.epsilon_all))
    return found


def _limit(epsilon: float) -> str:
    if epsilon <= math.log(_MOST_ODDS):
        return f"One report changes the odds by at most a factor {ratio_up(math.exp(epsilon))}."
    if math.isinf(epsilon):
        return "One report can change the odds without limit, and so show the value."
    return "One report can change the odds by a factor of over a million: no protection."


def _promise(against: str, text: str, epsilon: float) -> dict[str, Any]:
    return {"against": against, "text": text, "epsilon": epsilon}
