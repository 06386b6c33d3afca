"""Risk in words: natural frequencies, several reports, and how often F contains the truth."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rldp.decimals import ratio_up, rounded_up, shortest
from rldp.presentation.texts import finite, sensitive_names, useful_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rldp.auditing.attackers import Attacker
    from rldp.auditing.coverage import Coverage
    from rldp.auditing.groups import WorstGroup
    from rldp.auditing.guarantees import AuditedGuarantee
    from rldp.auditing.repeated import Repeated
    from rldp.tables.schema import Schema

_SOURCES = {"all": "through ε over all distributions", "given_u": "through ε given U"}
_PEOPLE = 1000
_MOST_VALUES = 6  # of a group that are named
_ROUNDING = 1e-9


def people(share: float) -> str:
    """A share as how many of 1,000 people, rounded up.

    >>> people(0.0), people(0.0001), people(0.85404), people(0.012), people(1.0)
    ('0', '<1', '855', '12', '1,000')
    """
    count = _PEOPLE * share
    if _ROUNDING < count < 1 - _ROUNDING:
        return "<1"
    return f"{math.ceil(count - _ROUNDING):,}"


def odds(epsilon: float) -> str:
    """The factor by which odds can change, rounded up."""
    return f"× {ratio_up(math.exp(epsilon))}" if epsilon < 700 else "no limit"


def who(attacker: Attacker, schema: Schema) -> str:
    """An attacker by what they know."""
    match attacker.name:
        case "stranger":
            return "a stranger"
        case "knows_part":
            return f"someone who knows only {' and '.join(attacker.knows)}"
        case "knows_u":
            return f"someone who knows {useful_names(schema)}"
        case "knows_more":
            return "anyone else, whatever is true"
        case "several_reports":
            return f"a stranger with {attacker.reports} fresh reports"


def attacker_rows(attackers: Sequence[Attacker], schema: Schema) -> list[tuple[str, ...]]:
    """Of 1,000 people for each attacker: guessed rightly, over 95 and 99 % certain; and the odds.

    Each figure is told before → after a report.
    """
    rows = []
    for a in attackers:
        most = "≤" * (a.is_bound or a.name == "knows_more")
        figures = zip(a.without, a.with_report, strict=True)
        told = (f"{people(before)} → {most}{people(after)}" for before, after in figures)
        rows.append((who(a, schema), *told, odds(a.epsilon)))
    return rows


def attacker_in_words(attacker: Attacker, schema: Schema) -> str:
    """The same in a sentence."""
    S, most = sensitive_names(schema), "at most " * attacker.is_bound
    if attacker.name == "knows_more" and not attacker.is_bound:
        most = "at worst "
    before, after = attacker.without, attacker.with_report
    seen = "one" if attacker.reports == 1 else "them"
    without = "a report" if attacker.reports == 1 else "reports"
    whom = who(attacker, schema)
    beyond = ""
    if attacker.name == "knows_more":  # whose row begins from what a stranger knows
        beyond = f" Whoever knows more of {S} before guesses better, with the same limit."
    limit = f"a factor of {odds(attacker.epsilon).removeprefix('× ')} at most"
    if math.isinf(attacker.epsilon):
        limit = "any factor"
    return (
        f"{whom[0].upper()}{whom[1:]}: of {_PEOPLE:,} people, the best guess at {S} is right for "
        f"{people(before.right)} without {without} and for {most}{people(after.right)} with "
        f"{seen}; {S} is more than 95 % certain for {people(before.over_95)} without and "
        f"{most}{people(after.over_95)} with {seen}, more than 99 % certain for "
        f"{people(before.over_99)} and {most}{people(after.over_99)}; "
        f"the odds change by {limit}.{beyond}"
    )


def risk_line(attackers: Sequence[Attacker], schema: Schema) -> str:
    """The guesses of all attackers in one line."""
    S, without, parts = sensitive_names(schema), people(attackers[0].without.right), []
    for a in attackers:
        most = "≤" * (a.is_bound or a.name == "knows_more")
        before = people(a.without.right)
        change = f", {before} without" * (before != without)
        parts.append(f"{most}{people(a.with_report.right)} ({_who_briefly(a, schema)}{change})")
    return (
        f"risk: {S} is guessed rightly for {without} of {_PEOPLE:,} people without a report; with "
        f"one for {', '.join(parts)}"
    )


def _who_briefly(attacker: Attacker, schema: Schema) -> str:
    return who(attacker, schema).removeprefix("a ").removeprefix("someone who ")


def attacker_summary(attacker: Attacker) -> dict[str, Any]:
    """An attacker for machines: shares of people, and ε."""
    return asdict(attacker) | {
        "without": attacker.without._asdict(),
        "with_report": attacker.with_report._asdict(),
    }


def repeated_in_words(found: Repeated, schema: Schema) -> str:
    """What several fresh reports of one person tell together, and to whom."""
    U, most = useful_names(schema), "at most " * found.is_bound
    knows = f", ε = {rounded_up(found.epsilon_given_u)} for someone who knows {U}" if U else ""
    bounds = [f"{rounded_up(x)} {_SOURCES[name]}" for name, x in found.bounds.items() if x < 700]
    listed = f" Bounds that need no list of outputs: {', '.join(bounds)}." if bounds else ""
    return (
        f"{found.reports} fresh reports of one person: {most}ε = {rounded_up(found.epsilon)} "
        f"together over F, odds {odds(found.epsilon)}{knows}, and "
        f"ε = {rounded_up(found.epsilon_all)} whatever is true.{listed}"
    )


def refreshed_in_words(one: Repeated, found: Repeated, claim: float | None) -> str:
    """What reports drawn from one kept answer tell: one of them, several, and any number."""
    most = "at most " * found.is_bound
    several = f", {found.reports} of them {most}{rounded_up(found.epsilon)} together"
    proved = "what is promised for the kept answer"
    limit = f"ε = {shortest(claim)}, {proved}" if claim is not None else "that of the kept answer"
    return (
        f"Reports refreshed from one kept answer, which is sent as it is with chance "
        f"{shortest(one.keep or 1.0)}: one has {'at most ' * one.is_bound}"
        f"ε = {rounded_up(one.epsilon)} over F{several if found.reports > 1 else ''}, and any "
        f"number of them at most {limit}, against the same people."
    )


def coverage_in_words(c: Coverage) -> str:
    """How often F holds the truth, in simulated samples."""
    return (
        f"F held the truth in {_percent(c.simulated)} ± {100 * c.std_error:.1f} % of "
        f"{c.simulations:,} simulated samples of people like those in the table, in "
        f"{_percent(c.at_frequencies)} at its frequencies and in {_percent(c.at_uniform)} where "
        f"all cells are equally likely (nominal {100 * c.nominal:g} %)."
    )


def short_advice(c: Coverage) -> str | None:
    """What to take where F holds the truth less often than it promises."""
    if not c.is_short:
        return None
    return (
        "F holds the truth less often than it promises for a table like this one: its test is "
        "exact for many records only. Take a set that holds for every number of records: the "
        "finite Kullback-Leibler set, or total variation."
    )


def guarantee_rows(guarantees: Sequence[AuditedGuarantee]) -> list[dict[str, Any]]:
    """Each guarantee of a protocol for machines: its set, its claim and what an audit finds."""
    rows = []
    for g in guarantees:
        knows = {"knows": list(g.guarantee.knows)} if g.guarantee.knows else {}
        row = {"set": g.uncertainty.kind, **knows, "claimed": g.claimed, "epsilon": g.epsilon}
        pairs = {} if g.guarantee.is_uniform else {"pairs": [pair._asdict() for pair in g.pairs]}
        rows.append(finite(row | {"slack": g.slack, "holds": g.holds} | pairs))
    return rows


def guarantee_in_words(g: AuditedGuarantee, schema: Schema) -> tuple[str, ...]:
    """Whom a guarantee speaks of, the claimed ε, the audited one, and whether it holds.

    Where pairs of S values have levels of their own, the figures are of the pair with least room.
    """
    whom, claimed, audited = _whom(g, schema), g.claimed, g.epsilon
    if not g.guarantee.is_uniform:
        worst = g.pairs[0]
        claimed, audited = worst.claimed, worst.audited
        whom += f", {worst.s} against {worst.other_s}"
    verdict = "holds" if g.holds else "is BROKEN"
    return whom, f"ε ≤ {shortest(claimed)}", f"audited {rounded_up(audited)}", verdict


def _whom(g: AuditedGuarantee, schema: Schema) -> str:
    from rldp.uncertainty import AllDistributions, ConfidenceSet, GivenU

    F, U = g.uncertainty, useful_names(schema)
    level = f" at α = {shortest(F.alpha)}" if isinstance(F, ConfidenceSet) else ""
    if g.guarantee.knows:
        return f"someone who knows only {' and '.join(g.guarantee.knows)}, {F.kind}{level}"
    if isinstance(F, AllDistributions):
        return "whatever is true and known"
    if isinstance(F, GivenU):
        return f"someone who knows {U}" if U else "anyone"
    return f"a stranger, {F.kind}{level}"


def _percent(x: float) -> str:
    return f"{100 * x:.1f} %"


def part_rows(by_part: Mapping[tuple[str, ...], float]) -> list[tuple[str, ...]]:
    """The audited ε over F, and the odds, for someone who knows each part of U."""
    return [
        (
            f"someone who knows only {' and '.join(names)}",
            f"ε = {rounded_up(epsilon)}",
            odds(epsilon),
        )
        for names, epsilon in by_part.items()
    ]


def group_in_words(found: WorstGroup, schema: Schema) -> str:
    """Who learns most by knowing that U is one of some values, in a sentence."""
    S, U, values = sensitive_names(schema), useful_names(schema) or "U", found.values
    named = [schema.u_labels[u] for u in values[:_MOST_VALUES]]
    more = len(values) - len(named)
    listed = ", ".join(f"“{label}”" for label in named) + f" and {more} more" * bool(more)
    who_knows = f"that {U} is one of {listed}" if len(values) > 1 else f"that {U} is {listed}"
    if not more and len(values) == schema.n_u:
        who_knows = "nothing of it"
    s, other_s = (schema.s_labels[code] for code in (found.s, found.other_s))
    epsilon = f"odds {odds(found.epsilon)}, ε = {rounded_up(found.epsilon)}"
    search = "as far as a search finds groups; no group has more than "
    beyond = "" if found.is_exact else f", {search}ε = {rounded_up(found.at_most)} there"
    return (
        f"Of all who know that {U} is one of some values, a report tells most about {S} to someone "
        f"who knows {who_knows}: {epsilon}, for {s} against {other_s}, at the frequencies of the "
        f"table{beyond}. Over F it may be more."
    )


def group_summary(found: WorstGroup, schema: Schema) -> dict[str, Any]:
    """The same for machines, in labels."""
    return asdict(found) | {
        "values": [schema.u_labels[u] for u in found.values],
        "s": schema.s_labels[found.s],
        "other_s": schema.s_labels[found.other_s],
    }
