"""An audit in words: how far reports move the odds on S, and what is not covered."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rldp.cli.show import columns_title, note, paragraph, set_in_words

if TYPE_CHECKING:
    from rldp.auditing import Witness
    from rldp.channel import Channel
    from rldp.disclosure import Risk
    from rldp.robust import RobustUtility
    from rldp.uncertainty import UncertaintySet

CLAIM_ATOL = 1e-9  # by which an audited ε may exceed a claimed one, for rounding
_MOST_ROWS = 24  # S values that are listed
_LONGEST = 40  # characters of a label
_MOST_SAID = 4  # parts of a report that are named


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
    paragraph(_worst_case(found, F, channel, S, is_protocol=name is not None), after_space=True)

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
    for sentence in _not_covered(F):
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
        "not_covered": _not_covered(F),
    }
    return {key: _finite(value) for key, value in summary.items()}


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


def holds(found: Risk, claim: float) -> bool:
    """Whether the audited ε is within a claimed one."""
    return found.audit.epsilon <= claim + CLAIM_ATOL


def _worst_case(
    found: Risk, F: UncertaintySet, channel: Channel, S: str, *, is_protocol: bool
) -> str:
    witness = found.audit.witness
    if found.audit.epsilon < CLAIM_ATOL:
        return f"No single report tells anything of {S}."
    report = _report_in_words(channel, F, witness, is_protocol=is_protocol)
    s, other_s = (F.table.schema.s_labels[code] for code in (witness.s, witness.other_s))
    likely = f"is {witness.ratio:.4g} times as likely for {s} as for {other_s}"
    if math.isinf(witness.ratio):
        likely = f"may come from {s} and never comes from {other_s}"
    return f"Worst case: report {report} {likely}, under a distribution in F."


def _report_in_words(
    channel: Channel, F: UncertaintySet, witness: Witness, *, is_protocol: bool
) -> str:
    """An output by the labels that it shows; the columns of a matrix have numbers only."""
    from rldp.channel import IndependentChannel

    s_labels, u_labels = F.table.schema.s_labels, F.table.schema.u_labels
    n_s, n_u, y = len(s_labels), len(u_labels), witness.y
    if isinstance(y, tuple):  # what each block says, -1 where it is silent; two of them matter
        both = [witness.s, witness.other_s]
        blocks = both if len(y) == n_s else [s * n_u + u for s in both for u in range(n_u)]
        cells = [(b, y[b]) if len(y) == n_s else divmod(b, n_u) for b in blocks if y[b] >= 0]
        said = [f"{s_labels[s]} | {u_labels[u]}" for s, u in cells]
        if len(said) > _MOST_SAID:
            said[_MOST_SAID - 1 :] = [f"… {len(said)} in all"]
        return f"with “{', '.join(said)}”" if said else "without either"
    n_second = channel.r_u.shape[1] if isinstance(channel, IndependentChannel) else n_u
    first, second = divmod(y, n_second)
    if is_protocol and channel.n_outputs == n_s * n_u:
        return f"“{s_labels[first]} | {u_labels[second]}”"
    if isinstance(channel, IndependentChannel):
        return f"of column {first}" + (f" with “{u_labels[second]}”" if n_second > 1 else "")
    return f"of column {y}"


def _not_covered(F: UncertaintySet) -> list[str]:
    U = ", ".join(column.name for column in F.table.schema.useful)
    about_u = [
        f"{U}: reports may tell all of it that plain LDP above allows",
        f"someone who knows a person's {U}: “over all distributions” is all that holds",
    ]
    return [
        *(about_u if U else []),
        "a truth outside F: again “over all distributions” is all that holds",
        "a second fresh report: ε does not add up; draw once and keep the answer",
        "the people in the table that F is built from: it must be public or protected",
    ]


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


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return "inf" if isinstance(value, float) and math.isinf(value) else value
