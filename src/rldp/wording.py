"""Words for what is designed, proved and risked: one voice for the terminal and the browser.

Nothing heavy is imported before a sentence is asked for.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rldp.auditing import Witness
    from rldp.channel import Channel
    from rldp.disclosure import Risk
    from rldp.protocol import ReleaseProtocol
    from rldp.schema import Schema
    from rldp.table import Table
    from rldp.uncertainty import UncertaintySet

CLAIM_ATOL = 1e-9  # by which an audited ε may exceed a claimed one, for rounding
_MOST_SAID = 4  # parts of a report that are named

MEANINGS = {
    "epsilon_1": "budget spent on S",
    "epsilon_2": "budget spent on U",
    "delta_2": "log-odds of the truth in the report of U (inf: sent as it is)",
    "delta_s": "log-odds of the truth in the report of U, for each s (inf: sent as it is)",
    "kappa": "chance that the own value is reported",
    "lambda": "chance that another value is reported",
    "mixed_share": "share of a closed form mixed in, so that every cell can be estimated",
    "identifiability_cost": "nats that this costs",
    "guaranteed_utility": "nats kept whatever distribution of the set is true",
}
TITLES = {
    "grr": "randomised response on the whole record",
    "ue": "unary encoding of the whole record",
    "srr": "secret randomised response",
    "ir": "S and U reported independently",
    "grr-cr": "one noisy S, with U if it is right and a made-up U if not",
    "ue-cr": "a noisy set of S values, each with a true or made-up U",
    "polyopt": "the best outputs for a simplex around F, by linear programming",
    "optimal": "the best that a search finds among all that are private over F",
    "ldp-optimal": "the best that protects the whole record",
    "best": "the best that is known: optimal, with the outputs of all others mixed in",
    "ceiling": "nothing can keep more, even if the frequencies were the truth",
}


def columns_title(table: Table) -> str:
    """Which columns are S and which are U."""
    return schema_title(table.schema)


def schema_title(schema: Schema) -> str:
    """The same of a schema alone."""
    s, u = ([column.name for column in side] for side in (schema.sensitive, schema.useful))
    return f"S = {', '.join(s)} ({schema.n_s})   U = {', '.join(u) or 'nothing'} ({schema.n_u})"


def set_in_words(F: UncertaintySet) -> str:
    """For which distributions there is privacy."""
    from rldp.uncertainty import (
        AllDistributions,
        ConfidenceSet,
        KLSet,
        RenyiSet,
        TotalVariationSet,
    )

    people = f"{F.table.n:,} records"
    if F.table.dropped:
        people += f" ({F.table.dropped:,} with missing values dropped)"
    if isinstance(F, AllDistributions):
        return f"private for every distribution; usefulness measured on {people}"
    if not isinstance(F, ConfidenceSet):
        return f"private for the frequencies of {people} only"
    if isinstance(F, TotalVariationSet):
        return (
            f"private for every distribution within total variation {F.budget:.3g} of the "
            f"frequencies of {people} (α = {F.alpha:g}, for any number of records)"
        )
    test = "a χ² test"
    if isinstance(F, KLSet):
        test = "a likelihood ratio test"
    elif isinstance(F, RenyiSet):
        test = f"a power-divergence test of order {F.order:g}"
    return f"private for every distribution that {test} on {people} accepts at α = {F.alpha:g}"


def gap_in_words(p: ReleaseProtocol) -> str:
    """How much more a protocol could keep at most, of its kind or of any."""
    gap = (p.optimality_gap or 0.0) / math.log(2)
    size = f"{gap:.2g} bits" if gap >= 1e-6 else "a millionth of a bit"
    which = "private protocol" if p.name in ("optimal", "best") else "protocol of its kind"
    return f"no {which} keeps over {size} more"


def holds(found: Risk, claim: float) -> bool:
    """Whether the audited ε is within a claimed one."""
    return found.audit.epsilon <= claim + CLAIM_ATOL


def worst_case(
    found: Risk, F: UncertaintySet, channel: Channel, S: str, *, is_protocol: bool
) -> str:
    """Which report tells the most, of whom, in a sentence."""
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


def not_covered(F: UncertaintySet) -> list[str]:
    """What the guarantee does not speak of."""
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


def finite(value: Any) -> Any:
    """The same for JSON, infinite numbers as text."""
    if isinstance(value, dict):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    return "inf" if isinstance(value, float) and math.isinf(value) else value
