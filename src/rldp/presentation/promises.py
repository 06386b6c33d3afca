"""What is promised to whom, what else holds, and what is not promised: every sentence is derived.

Levels come from the guarantees of a protocol and from an audit of its table. No sentence is
shown only because it holds for most protocols.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rldp.decimals import AUDIT_ATOL, brief_up, ratio_up
from rldp.presentation.texts import sensitive_names, set_in_words, useful_names

if TYPE_CHECKING:
    from rldp.auditing.audit import Witness
    from rldp.auditing.levels import Levels
    from rldp.auditing.risk import Risk
    from rldp.channel import Channel
    from rldp.tables.schema import Schema
    from rldp.uncertainty import Guarantee, UncertaintySet

_MOST_SAID = 4  # parts of a report that are named
_LONG = 20.0  # an ε whose factor is not spelled out


def holds(found: Risk, claim: float) -> bool:
    """Whether the audited ε is within a claimed one."""
    return found.audit.epsilon <= claim + AUDIT_ATOL


def is_kept(found: Risk, claim: float | None) -> bool:
    """Whether the audit contradicts no guarantee, nor a claim that is made instead."""
    if claim is not None and (not found.audit.guarantees or claim != found.audit.claimed):
        return holds(found, claim)
    return all(guarantee.holds for guarantee in found.audit.guarantees)


def risk_levels(found: Risk, claim: float | None = None) -> Levels:
    """The levels of an audit; guaranteed and claimed ones where they hold."""
    from rldp.auditing.audit import Promise
    from rldp.auditing.levels import levels_of

    audit = found.audit
    alone = Promise(audit.epsilon_all, audit.epsilon_given_u, audit.epsilon_plain)
    kept = [g.guarantee for g in audit.guarantees if g.holds]
    over_f = claim if claim is not None and is_kept(found, claim) else audit.epsilon
    return levels_of(over_f, alone, kept, audit.epsilon_given_part)


def level_rows(found: Risk, schema: Schema) -> dict[str, float]:
    """The audited ε of one report against those who know more and more."""
    U, audit = useful_names(schema), found.audit
    return {
        "over F, for someone who knows nothing else": audit.epsilon,
        "the same, each conditional by itself": audit.epsilon_apart,
        **({f"for someone who knows {U}": found.audit.epsilon_given_u} if U else {}),
        "over all distributions, whatever else is known": audit.epsilon_all,
        "on the whole record (plain LDP)": audit.epsilon_plain,
    }


# --- the worst case ------------------------------------------------------------------------------


def worst_case(
    found: Risk, F: UncertaintySet, channel: Channel, S: str, *, is_protocol: bool
) -> str:
    """Which report tells the most, of whom, in a sentence."""
    witness = found.audit.witness
    if found.audit.epsilon_all < AUDIT_ATOL:
        return f"No single report tells anything of {S}."
    if found.audit.epsilon < AUDIT_ATOL:
        return f"No single report tells anything of {S} to someone who knows nothing else, over F."
    report = _report_in_words(channel, F, witness, is_protocol=is_protocol)
    s, other_s = (F.table.schema.s_labels[code] for code in (witness.s, witness.other_s))
    likely = f"is {ratio_up(witness.ratio)} times as likely for {s} as for {other_s}"
    if math.isinf(witness.ratio):
        likely = f"may come from {s} and never comes from {other_s}"
    return f"Worst case: report {report} {likely}, under a distribution in F."


def _report_in_words(
    channel: Channel, F: UncertaintySet, witness: Witness, *, is_protocol: bool
) -> str:
    """An output by the labels that it shows; the columns of a matrix have numbers only."""
    from rldp.channel import DenseChannel, IndependentChannel

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
    if is_protocol and isinstance(channel, DenseChannel):
        return f"“y{y}”"  # as releases label it
    n_second = channel.r_u.shape[1] if isinstance(channel, IndependentChannel) else n_u
    first, second = divmod(y, n_second)
    if is_protocol and channel.n_outputs == n_s * n_u:
        return f"“{s_labels[first]} | {u_labels[second]}”"
    if isinstance(channel, IndependentChannel):
        return f"of column {first}" + (f" with “{u_labels[second]}”" if n_second > 1 else "")
    return f"of column {y}"


# --- promised, also covered, not promised --------------------------------------------------------


def promise(levels: Levels, F: UncertaintySet) -> str:
    """What ε means for one report, and against whom."""
    S = sensitive_names(F.table.schema)
    if math.isinf(levels.over_f):
        return f"nothing limits what one report reveals about {S}"
    changes = _changes(levels.guarantees[0] if levels.guarantees else None, levels.over_f, S)
    if _is_within(levels.plain, levels.over_f):
        return (
            f"{changes}, and those of any two whole records too (plain LDP), whatever distribution "
            f"is true and whatever else is known of the person; k fresh reports by "
            f"e^(k · {brief_up(levels.over_f)}) at most"
        )
    if _is_within(levels.everything, levels.over_f):
        return f"{changes}, whatever distribution is true and whatever else is known of the person"
    return f"{changes}, {F.condition}, for someone who knows nothing else about the person"


def further_promises(levels: Levels, F: UncertaintySet) -> list[str]:
    """What the other guarantees of a protocol promise, and against whom.

    Where ε over F holds for everyone it says as much, and no more is said.
    """
    further = levels.guarantees[1:]
    if levels.guarantees and _is_within(levels.everything, levels.over_f):
        least = levels.guarantees[0].levels.min()
        further = tuple(g for g in further if g.levels.min() < least)
    told: dict[str, list[Guarantee]] = {}
    for guarantee in sorted(further, key=_known_of):  # parts of U with one level go together
        told.setdefault(_changed(guarantee, F), []).append(guarantee)
    return [f"{changes}, for {_readers(of, F)}" for changes, of in told.items()]


def _known_of(guarantee: Guarantee) -> int:
    """Readers in the order of what they know: nothing or part of U, all of it, anything."""
    from rldp.uncertainty import AllDistributions, GivenU

    F = guarantee.uncertainty
    if guarantee.knows or not isinstance(F, GivenU | AllDistributions):
        return 0
    return 1 if isinstance(F, GivenU) else 2


def _changed(guarantee: Guarantee, F: UncertaintySet) -> str:
    """What a guarantee limits, and for which distributions."""
    from rldp.uncertainty import AllDistributions, GivenU

    changes = _changes(guarantee, guarantee.epsilon, sensitive_names(F.table.schema))
    if isinstance(guarantee.uncertainty, AllDistributions | GivenU) and not guarantee.knows:
        return f"{changes}, whatever distribution is true"
    known = set_in_words(guarantee.uncertainty).removeprefix("private for ").partition(";")[0]
    return f"{changes}, for {known}"


def _readers(guarantees: list[Guarantee], F: UncertaintySet) -> str:
    """Whom guarantees that say the same speak of."""
    from rldp.uncertainty import AllDistributions, GivenU

    U = useful_names(F.table.schema)
    parts = [" and ".join(g.knows) for g in guarantees if g.knows]
    kinds = [type(g.uncertainty) for g in guarantees if not g.knows]
    readers = []
    if any(kind not in (AllDistributions, GivenU) for kind in kinds):
        readers.append("someone who knows nothing else about the person")
    if parts:
        listed = ", or only ".join(parts)
        readers.append(f"someone who knows only {listed} of the person")
    if GivenU in kinds and AllDistributions not in kinds:
        readers.append(
            f"someone who knows the person's {U}" if U else "anyone who does not know it"
        )
    if AllDistributions in kinds:
        readers.append(f"anyone, whatever else they know of the person{_such_as(F)}")
    return "; and for ".join(readers)


def _changes(guarantee: Guarantee | None, epsilon: float, S: str) -> str:
    """By how much one report changes the odds, for all pairs of S values or pair by pair."""
    if guarantee is None or guarantee.is_uniform:
        return f"one report changes the odds on {S} by {_factor(epsilon)} at most"
    finite = guarantee.levels[guarantee.is_promised_pair]
    least, most = brief_up(float(finite.min())), _factor(epsilon)
    odds = f"one report changes the odds of one value of {S} against another"
    pairs = "every ordered pair" if guarantee.is_complete else f"{finite.size} ordered pairs"
    spread = f"{most} at most" if finite.min() == epsilon else f"at most e^{least} to {most}"
    return f"{odds} by {spread}, with a level for {pairs}"


def covered(levels: Levels, F: UncertaintySet) -> list[str]:
    """What the same ε covers beyond what is promised."""
    U, epsilon = useful_names(F.table.schema), levels.over_f
    sentences: list[str] = []
    if math.isinf(epsilon):
        return sentences
    if _is_within(levels.plain, epsilon):
        sentences.append(f"the whole record: it is plain LDP with ε = {brief_up(epsilon)}")
    if _is_within(levels.everything, epsilon):
        sentences += [
            "every distribution, in F or not, and whatever else someone knows about the person",
            "several fresh reports of one person: ε adds up, k of them have k·ε together at most",
        ]
    elif U and _is_within(levels.given_u, epsilon) and not levels.is_given_u_promised:
        sentences.append(f"someone who knows a person's {U}, whatever distribution is true")
    return sentences


def not_covered(levels: Levels, F: UncertaintySet) -> list[str]:
    """What is not promised, and what holds instead."""
    U, epsilon = useful_names(F.table.schema), levels.over_f
    sentences = [_unpromised_pairs(g, F) for g in levels.guarantees[:1] if not g.is_complete]
    if math.isinf(epsilon):
        sentences.append("someone who knows nothing else about a person: no limit is promised")
    if U and not _is_within(levels.plain, epsilon):
        sentences.append(f"{U}: for what a report reveals about it, {_instead(levels.plain)}")
    if U and not (_is_within(levels.given_u, epsilon) or levels.is_given_u_promised):
        sentences.append(f"someone who knows a person's {U}: {_instead(levels.given_u)}")
    parts = {part: e for part, e in levels.unpromised_parts.items() if not _is_within(e, epsilon)}
    if parts:
        worst = max(parts, key=lambda part: (parts[part], -len(part)))
        sentences.append(
            f"someone who knows only {' and '.join(worst)} of a person, and not all of {U}: "
            f"{_instead(parts[worst])}"
        )
    if not _is_within(levels.everything, epsilon):
        beyond = _instead(levels.everything)
        if not levels.is_everything_promised:
            sentences.append(
                f"a distribution outside F, or someone who knows anything else about a "
                f"person{_such_as(F)}: {beyond}"
            )
        sentences.append(f"k fresh reports of one person: {_together(levels, F)}")
    if not F.holds_records:
        of_reports = "they have the promise of the protocol of their own survey, and no other"
        return [*sentences, f"the people behind the earlier reports: {of_reports}"]
    return [*sentences, "the people in the table itself: it must be public or protected"]


def _such_as(F: UncertaintySet) -> str:
    """Knowledge that neither a part of U nor all of it is."""
    if F.table.n_u < 3:
        return ""
    return f", such as which values of {useful_names(F.table.schema)} are possible for them"


def _unpromised_pairs(guarantee: Guarantee, F: UncertaintySet) -> str:
    import numpy as np  # worth loading for pairs without a level only

    free = ~guarantee.is_promised_pair & ~np.eye(F.table.n_s, dtype=bool)
    s, other_s = (F.table.schema.s_labels[code] for code in np.argwhere(free)[0])
    return (
        f"{int(free.sum())} ordered pairs of values of {sensitive_names(F.table.schema)}, such as "
        f"{s} against {other_s}: a report may prove the first of the two"
    )


def _together(levels: Levels, F: UncertaintySet) -> str:
    """What several fresh reports have together at most, over F and for those who know U."""
    from rldp.auditing.repeated import log_range

    U, more = useful_names(F.table.schema), "no limit is promised"
    beside = log_range(F)
    if math.isfinite(beside) and levels.given_u < levels.everything:
        more = f"at most ε = k · {brief_up(levels.given_u)} + {brief_up(beside)} together"
    elif math.isfinite(levels.everything):
        each = brief_up(levels.everything)
        more = f"at most ε = {brief_up(levels.over_f)} + (k − 1) · {each} together"
    if U and levels.is_given_u_promised:
        more += f", and k · {brief_up(levels.given_u)} for someone who knows {U}"
    return f"{more}; draw once and keep the answer"


def _instead(level: float) -> str:
    return (
        "no limit is promised" if math.isinf(level) else f"ε = {brief_up(level)} is all that holds"
    )


def _is_within(level: float, epsilon: float) -> bool:
    return level <= epsilon + AUDIT_ATOL


def _factor(epsilon: float) -> str:
    power = f"a factor e^{brief_up(epsilon)}"
    return f"{power} ≤ {ratio_up(math.exp(epsilon))}" if epsilon < _LONG else power
