"""An audit in words: how far reports move the odds on S, and what is not covered."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rldp.cli.show import note, paragraph
from rldp.wording import columns_title, finite, holds, not_covered, set_in_words, worst_case

if TYPE_CHECKING:
    from rldp.channel import Channel
    from rldp.disclosure import Risk
    from rldp.robust import RobustUtility
    from rldp.uncertainty import UncertaintySet

_MOST_ROWS = 24  # S values that are listed
_LONGEST = 40  # characters of a label


def risk(
    found: Risk,
    F: UncertaintySet,
    channel: Channel,
    *,
    file: str,
    name: str | None,
    claim: float | None,
) -> None:
    """Print the worst case, and what a report can tell of S.

    Args:
        found: what to print.
        F: the set that it is about.
        channel: the channel that it is about, to name its reports.
        file: the file's name.
        name: of the protocol; None for a matrix.
        claim: an ε to compare with.
    """
    S = ", ".join(column.name for column in F.table.schema.sensitive)
    note(f"{file}: {name or 'a matrix'}   {columns_title(F.table)}")
    paragraph("F: " + set_in_words(F).removeprefix("private for ").partition(";")[0])

    note(f"\nHow far one report can move the odds on {S}")
    audit = found.audit
    rows = {
        "over F": audit.epsilon,
        "over F, each conditional by itself": audit.epsilon_apart,
        "over all distributions": audit.epsilon_all,
        "on the whole record (plain LDP)": audit.epsilon_plain,
    }
    _columns([(line, f"ε = {_epsilon(x)}", _odds(x)) for line, x in rows.items()])
    if claim is not None:
        note(f"  the claim ε = {claim:g} {'holds' if holds(found, claim) else 'is BROKEN'}")
    paragraph(worst_case(found, F, channel, S, is_protocol=name is not None), after_space=True)

    note(f"\n{S}: share of people, and at most after any report")
    shown = found.values[:_MOST_ROWS]
    _columns(
        [
            (v.label, _percent(v.prior), "→", _percent(v.posterior) if v.prior else "never seen")
            for v in shown
        ]
    )
    if len(found.values) > len(shown):
        note(f"  … and {len(found.values) - len(shown)} more; --json lists them all")

    guess, two, at_most = found.guess, found.second_report, "at most "
    paragraph(
        f"Best guess: right for {_percent(guess.without_report)} of people without a report, "
        f"and for {at_most * guess.is_bound}{_percent(guess.with_report)} with it.",
        after_space=True,
    )
    paragraph(
        f"Two fresh reports of one person: {at_most * two.is_bound}ε = {_epsilon(two.epsilon)} "
        f"together, {_odds(two.epsilon)}."
    )
    if found.coverage is not None:
        c = found.coverage
        paragraph(
            f"F held the truth in {100 * c.simulated:.1f} ± {100 * c.std_error:.1f} % of "
            f"{c.simulations:,} simulated samples (promised {100 * c.nominal:g} %)."
        )
    note("\nNot covered")
    for sentence in not_covered(F):
        paragraph(f"- {sentence}")


def risk_summary(
    found: Risk, F: UncertaintySet, *, file: str, name: str | None, claim: float | None
) -> dict[str, Any]:
    """The same for machines; infinite numbers as text."""
    audit, labels = found.audit, F.table.schema.s_labels
    witness = asdict(audit.witness) | {
        "s": labels[audit.witness.s],
        "other_s": labels[audit.witness.other_s],
        "p_su": audit.witness.p_su.tolist(),
    }
    summary = {
        "file": file,
        "protocol": name,
        "claimed": claim,
        "holds": None if claim is None else holds(found, claim),
        "epsilon": audit.epsilon,
        "epsilon_apart": audit.epsilon_apart,
        "epsilon_all": audit.epsilon_all,
        "epsilon_plain": audit.epsilon_plain,
        "witness": witness,
        "values": [asdict(value) for value in found.values],
        "guess": asdict(found.guess),
        "second_report": asdict(found.second_report),
        "coverage": None if found.coverage is None else asdict(found.coverage),
        "not_covered": not_covered(F),
    }
    return {key: finite(value) for key, value in summary.items()}


def usefulness(least: RobustUtility, F: UncertaintySet, channel: Channel) -> None:
    """Print how much reports tell of a record: at the frequencies, and at worst over F."""
    rows = {
        "at the frequencies of the sample": channel.mutual_information(F.table.p_su),
        "under every distribution in F, at least": least.lower,
        "under the worst one found": least.upper,
    }
    note("\nHow much one report tells of the whole record")
    H = F.table.entropy
    shares = {line: f"{100 * x / H:.2f} % of H(X)" if H > 0 else "" for line, x in rows.items()}
    _columns([(line, f"{x / math.log(2):.5f} bits", shares[line]) for line, x in rows.items()])


def usefulness_summary(least: RobustUtility, F: UncertaintySet, channel: Channel) -> dict[str, Any]:
    """The same for machines, in nats."""
    robust = {"lower": least.lower, "upper": least.upper, "p_su": least.distribution.tolist()}
    return {"utility": channel.mutual_information(F.table.p_su), "robust_utility": robust}


def _columns(rows: Sequence[Sequence[str]]) -> None:
    """Rows of texts in aligned columns, all but the first to the right."""
    rows = [[_short(label), *cells] for label, *cells in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for label, *cells in rows:
        aligned = [f"{cell:>{width}}" for cell, width in zip(cells, widths[1:], strict=True)]
        note("  " + "  ".join([f"{label:<{widths[0]}}", *aligned]))


def _short(label: str) -> str:
    return label if len(label) <= _LONGEST + 10 else f"{label[:_LONGEST]}…"


def _epsilon(x: float) -> str:
    return "∞" if math.isinf(x) else f"{x:.4f}"


def _odds(x: float) -> str:
    return f"odds × {math.exp(x):.4g}" if x < 700 else "no limit"


def _percent(x: float) -> str:
    return f"{100 * x:.1f} %"
