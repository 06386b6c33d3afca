"""An audit in words: how far reports move the odds on S, who learns what, what is not promised."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from rldp.cli.printing import note, paragraph, visible
from rldp.cli.show import scope
from rldp.decimals import AUDIT_ATOL, ratio_up, rounded_up, shortest
from rldp.presentation.promises import (
    covered,
    further_promises,
    is_kept,
    level_rows,
    not_covered,
    promise,
    risk_levels,
    worst_case,
)
from rldp.presentation.risk_texts import (
    attacker_rows,
    attacker_summary,
    coverage_in_words,
    group_in_words,
    group_summary,
    guarantee_in_words,
    guarantee_rows,
    part_rows,
    refreshed_in_words,
    repeated_in_words,
    short_advice,
)
from rldp.presentation.texts import columns_title, finite, sensitive_names, set_in_words

if TYPE_CHECKING:
    from rldp.auditing.repeated import Repeated
    from rldp.auditing.risk import Risk
    from rldp.channel import Channel
    from rldp.uncertainty import UncertaintySet
    from rldp.utility.robust import RobustUtility

_MOST_ROWS = 24  # S values that are listed
_LONGEST = 40  # characters of a label


class Subject(NamedTuple):
    """What was audited: the file, the protocol's name (None for a matrix), and the ε claimed."""

    file: str
    name: str | None
    claim: float | None


class Refreshed(NamedTuple):
    """One report that is refreshed from a kept answer, and several."""

    one: Repeated
    several: Repeated


def risk(found: Risk, subject: Subject, refreshed: Refreshed | None = None) -> None:
    """Print the worst case, and what a report can reveal about S."""
    F, channel, claim = found.audit.uncertainty, found.audit.channel, subject.claim
    S = sensitive_names(F.table.schema)
    note(f"{subject.file}: {subject.name or 'a matrix'}   {columns_title(F.table)}")
    paragraph("F: " + set_in_words(F).removeprefix("private for ").partition(";")[0])

    told = risk_levels(found, claim)
    if told.plain <= told.over_f + AUDIT_ATOL:
        paragraph(f"{promise(told, F)[0].upper()}{promise(told, F)[1:]}.", after_space=True)
    note(f"\nHow far one report can move the odds on {S}")
    rows = level_rows(found, F.table.schema)
    _columns([(line, f"ε = {rounded_up(x)}", _odds(x)) for line, x in rows.items()])
    _claims(found, claim)
    is_protocol = subject.name is not None
    paragraph(worst_case(found, F, channel, S, is_protocol=is_protocol), after_space=True)

    _attackers(found, S)
    _parts(found)
    _values(found, S)
    paragraph(repeated_in_words(found.repeated, F.table.schema), after_space=True)
    if refreshed is not None:
        paragraph(refreshed_in_words(*refreshed, claim))
    if found.coverage is not None:
        paragraph(coverage_in_words(found.coverage), after_space=True)
        if (advice := short_advice(found.coverage)) is not None:
            paragraph(f"{advice} (--set kl-finite, --set total-variation)")
    note("")
    scope(told, F)


def _claims(found: Risk, claim: float | None) -> None:
    """What was claimed, and whether it holds."""
    guarantees = found.audit.guarantees
    if guarantees and claim == found.audit.claimed and len(guarantees) > 1:
        note("\nWhat is promised, and what the audit finds")
        schema = found.audit.uncertainty.table.schema
        _columns([guarantee_in_words(g, schema) for g in guarantees])
    elif claim is not None:
        verdict = "holds" if is_kept(found, claim) else "is BROKEN"
        note(f"  the claim ε = {shortest(claim)} {verdict}")


def _attackers(found: Risk, S: str) -> None:
    paragraph(
        f"Of 1,000 people, before → after a report, at the frequencies of the table: whose {S} is "
        f"guessed rightly, and is more than 95 % or 99 % certain, by who guesses",
        after_space=True,
    )
    rows = attacker_rows(found.attackers, found.audit.uncertainty.table.schema)
    heads = ("", "right", "> 95 %", "> 99 %", "odds")
    _columns([heads, *rows])
    if any(a.is_bound or a.name == "knows_more" for a in found.attackers):
        note("  ≤: at most; the odds of strangers, and of those who know part of U, are over F")
    paragraph(
        f"Anyone else: from no more knowledge of {S} than a stranger has. Whoever knows more "
        f"before guesses better before and after, with the same limit on the odds."
    )


def _parts(found: Risk) -> None:
    """Those who know part of U: some of its columns, or that it is one of some values."""
    schema, group = found.audit.uncertainty.table.schema, found.audit.worst_group
    if found.audit.epsilon_given_part:
        note("\nOver F, for someone who knows some useful columns of the person but not all")
        _columns(part_rows(found.audit.epsilon_given_part))
    is_more = found.audit.epsilon_all > found.audit.epsilon  # than ε, which then holds for all
    if group is not None and is_more and schema.n_u > 2:  # of two: a stranger, or who knows U
        paragraph(group_in_words(group, schema), after_space=True)


def _values(found: Risk, S: str) -> None:
    note(f"\n{S}: share in the table, and at most after any report, over F, for someone who")
    note("knows nothing else about the person")
    shown = found.values[:_MOST_ROWS]
    _columns(
        [
            (v.label, _percent(v.prior), "→", _percent(v.posterior) if v.prior else "never seen")
            for v in shown
        ]
    )
    if len(found.values) > len(shown):
        note(f"  … and {len(found.values) - len(shown)} more; --json lists them all")


def risk_summary(found: Risk, subject: Subject, refreshed: Refreshed | None) -> dict[str, Any]:
    """The same for machines; infinite numbers as text."""
    audit, claim = found.audit, subject.claim
    F, labels = audit.uncertainty, audit.uncertainty.table.schema.s_labels
    levels = risk_levels(found, claim)
    witness = asdict(audit.witness) | {
        "s": labels[audit.witness.s],
        "other_s": labels[audit.witness.other_s],
        "p_su": audit.witness.p_su.tolist(),
    }
    summary = {
        "file": subject.file,
        "protocol": subject.name,
        "claimed": claim,
        "holds": None if claim is None else is_kept(found, claim),
        "epsilon": audit.epsilon,
        "epsilon_apart": audit.epsilon_apart,
        "epsilon_all": audit.epsilon_all,
        "epsilon_given_u": audit.epsilon_given_u,
        "epsilon_plain": audit.epsilon_plain,
        "epsilon_given_part": [
            {"knows": list(names), "epsilon": epsilon}
            for names, epsilon in audit.epsilon_given_part.items()
        ],
        "worst_group": None
        if audit.worst_group is None
        else group_summary(audit.worst_group, F.table.schema),
        "guarantees": guarantee_rows(audit.guarantees),
        "witness": witness,
        "values": [asdict(value) for value in found.values],
        "attackers": [attacker_summary(attacker) for attacker in found.attackers],
        "guess": asdict(found.guess),
        "repeated": asdict(found.repeated),
        "refreshed": None if refreshed is None else [asdict(r) for r in refreshed],
        "coverage": None if found.coverage is None else asdict(found.coverage),
        "also_promised": further_promises(levels, F),
        "also_covered": covered(levels, F),
        "not_covered": not_covered(levels, F),
    }
    return {key: finite(value) for key, value in summary.items()}


def usefulness(least: RobustUtility, F: UncertaintySet, channel: Channel) -> None:
    """Print how much reports reveal about a record: at the frequencies, and at worst over F."""
    rows = {
        "at the frequencies of the sample": channel.mutual_information(F.table.p_su),
        "under every distribution in F, at least": least.lower,
        "under the worst one found": least.upper,
    }
    note("\nHow much one report reveals about the whole record")
    H = F.table.entropy
    shares = {line: f"{100 * x / H:.2f} % of H(X)" if H > 0 else "" for line, x in rows.items()}
    _columns([(line, f"{x / math.log(2):.5f} bits", shares[line]) for line, x in rows.items()])


def usefulness_summary(least: RobustUtility, F: UncertaintySet, channel: Channel) -> dict[str, Any]:
    """The same for machines, in nats."""
    robust = {"lower": least.lower, "upper": least.upper, "p_su": least.distribution.tolist()}
    return {"utility": channel.mutual_information(F.table.p_su), "robust_utility": robust}


def _columns(rows: Sequence[Sequence[str]]) -> None:
    """Rows of texts in aligned columns, all but the first to the right."""
    rows = [[_short(visible(label)), *cells] for label, *cells in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for label, *cells in rows:
        aligned = [f"{cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True)]
        note("  " + "  ".join([f"{label:<{widths[0]}}", *aligned]))


def _short(label: str) -> str:
    return label if len(label) <= _LONGEST + 10 else f"{label[:_LONGEST]}…"


def _odds(x: float) -> str:
    return f"odds × {ratio_up(math.exp(x))}" if x < 700 else "no limit"


def _percent(x: float) -> str:
    return f"{100 * x:.1f} %"
