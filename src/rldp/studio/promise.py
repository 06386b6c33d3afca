"""What one report may reveal about S, and to whom: the audited ε of a protocol in sentences."""

from __future__ import annotations

import math
from typing import Any

from rldp.auditing.audit import Audit
from rldp.decimals import AUDIT_ATOL, ratio_up, shortest
from rldp.presentation.texts import set_in_words
from rldp.protocol.release_protocol import ReleaseProtocol
from rldp.uncertainty import AllDistributions, GivenU, UncertaintySet

MOST = math.log(1e6)  # an ε above it protects nothing


def promises(p: ReleaseProtocol, audit: Audit) -> list[dict[str, Any]]:
    """Against whom which factor holds.

    Over F speaks of someone who knows nothing of the person but that they belong to the
    population. Over all distributions holds for whoever knows anything about S and U.
    """
    S = ", ".join(column.name for column in p.schema.sensitive)
    U = ", ".join(column.name for column in p.schema.useful)
    known = set_in_words(p.uncertainty).removeprefix("private for ").partition(";")[0]
    found = [] if audit.epsilon_plain > p.epsilon + AUDIT_ATOL else [_to_everyone(p)]
    found += [
        _promise(
            "Someone who knows nothing else about the person",
            f"One report changes their odds between any two values of {S} by at most a factor "
            f"e^{shortest(p.epsilon)} ≤ {ratio_up(math.exp(p.epsilon))}. "
            f"This is proved for {known}.",
            p.epsilon,
        )
    ]
    found += _to_parts(p, audit, known)
    if U:
        text = _limit(audit.epsilon_given_u, _promised(p, GivenU, AllDistributions))
        found.append(_promise(f"Someone who knows the person's {U}", text, audit.epsilon_given_u))
    such = f", such as which values of {U} are possible" if p.table.n_u > 2 else ""
    everyone = f"Whatever is true of the population, and whatever else someone knows{such}"
    text = _limit(audit.epsilon_all, _promised(p, AllDistributions))
    found.append(_promise(everyone, text, audit.epsilon_all))
    return found


def _to_everyone(p: ReleaseProtocol) -> dict[str, Any]:
    """What is said first of a protocol that is plainly private."""
    return _promise(
        "Everyone, for the whole record",
        f"An audit of the table finds plain local differential privacy: one report changes the "
        f"odds between any two records by at most a factor {ratio_up(math.exp(p.epsilon))}, "
        f"whatever is true and known, and k fresh reports by e^(k · {shortest(p.epsilon)}).",
        p.epsilon,
    )


def _to_parts(p: ReleaseProtocol, audit: Audit, known: str) -> list[dict[str, Any]]:
    """Someone who knows some columns of U: the parts that are promised, and the worst of others."""
    if audit.epsilon_all <= p.epsilon + AUDIT_ATOL:
        return []  # the same holds for everyone
    promised: dict[float, list[str]] = {}
    others: dict[str, float] = {}
    for part, epsilon in audit.epsilon_given_part.items():
        levels = [g.epsilon for g in p.guarantees if g.knows == part and g.is_complete]
        name = " and ".join(part)
        if levels:
            promised.setdefault(min(levels), []).append(name)
        else:
            others[name] = epsilon
    found = [
        _promise(
            f"Someone who knows only {', or only '.join(names)} of the person",
            f"One report changes their odds by at most a factor e^{shortest(level)} ≤ "
            f"{ratio_up(math.exp(level))}. This is proved for {known}.",
            level,
        )
        for level, names in promised.items()
    ]
    if others:
        worst = max(others, key=lambda name: others[name])
        text = _limit(others[worst], _promised(p, AllDistributions))
        found.append(_promise(f"Someone who knows only {worst} of the person", text, others[worst]))
    return found


def _promised(p: ReleaseProtocol, *sets: type[UncertaintySet]) -> float | None:
    """The smallest level that is proved over one of these sets, None if none is."""
    levels = [g.epsilon for g in p.guarantees if isinstance(g.uncertainty, sets) and not g.knows]
    return min(levels, default=None)


def _limit(epsilon: float, promised: float | None) -> str:
    if promised is not None:
        return (
            f"One report changes their odds by at most a factor e^{shortest(promised)} ≤ "
            f"{ratio_up(math.exp(promised))}. This is proved, whatever distribution is true."
        )
    if epsilon <= MOST:
        return (
            f"One report changes the odds by at most a factor {ratio_up(math.exp(epsilon))}. "
            f"The design did not promise it; this is what an audit of its table finds."
        )
    if math.isinf(epsilon):
        return "One report can change the odds without limit, and so show the value."
    return "One report can change the odds by a factor of over a million: no protection."


def _promise(against: str, text: str, epsilon: float) -> dict[str, Any]:
    return {"against": against, "text": text, "epsilon": epsilon}
