"""Designs, proofs and risks in words, the same on the terminal and in the browser.

Nothing heavy is imported before a sentence is asked for.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rldp.protocol.release_protocol import ReleaseProtocol
    from rldp.tables.schema import Schema
    from rldp.tables.table import Table
    from rldp.uncertainty import UncertaintySet
    from rldp.utility.goal import GoalError

_TINY_GAP = 1e-6  # bits

MEANINGS = {
    "epsilon_1": "budget spent on S",
    "epsilon_2": "budget spent on U",
    "delta_2": "log-odds of the truth in the report of U (inf: sent as it is)",
    "delta_s": "log-odds of the truth in the report of U, for each s (inf: sent as it is)",
    "kappa": "chance that the own value is reported",
    "lambda": "chance that another value is reported",
    "reduced_epsilon": "ε over F given to the formulas, so that an audit finds all levels kept",
    "reduced_epsilon_all": "level whatever is true given to the formulas likewise",
    "error_bound": "summed variance of one report that no protocol with these guarantees beats",
    "largest_error_bound": "largest variance of one report that no such protocol beats",
    "polyopt_error_bound": "summed variance of one report that no protocol with columns in "
    "PolyOpt's cone beats",
    "polyopt_largest_error_bound": "largest variance of one report, likewise",
    "outputs": "answers on a sheet, at most",
    "denominator": "equally likely things that are thrown",
    "sheets": "outputs up to the end of each sheet; everyone gets one sheet at random",
}
BOUNDS = {  # of errors, by the names in `designing.bounds`
    "given-u": "not even if U were sent in the clear",
    "known-p": "not even if the frequencies were known to be the truth",
    "known-p-alone": "not even if the frequencies were the truth and no more were promised",
    "pairs": "a bound from inequalities that outputs satisfy whose reader may know U",
    "regions": "a bound from inequalities that every private output satisfies",
    "inner": "not even if F were no larger than simplices inside of it",
    "halves": "not even if F were no larger than balls inside of it",
}
TITLES = {
    "grr": "randomised response on the whole record",
    "ue": "unary encoding of the whole record",
    "srr": "secret randomised response",
    "ir": "S and U reported independently",
    "grr-cr": "one noisy S, with a noisy U: the true one if S is right, a made-up one if not",
    "ue-cr": "a noisy set of S values, each with a noisy U, true or made-up",
    "polyopt": "the best mixture found of outputs private for a simplex around F",
    "optimal": "the best that a search finds among all that are private over F",
    "ldp-optimal": "the best that a search finds among all that protect the whole record",
    "best": "the best that is found: optimal, with the outputs of all others mixed in",
    "dice": "few outputs in units of what dice or cards can throw",
    "crosswise": "the crosswise model: are both statements alike?",
    "forced-response": "forced response: some throws force an answer",
    "unrelated-question": "the unrelated question: some throws ask something else",
    "triangular": "the triangular model: one answer for no, the other says nothing",
    "ceiling": "nothing can keep more, even if the frequencies were the truth",
}


def title(name: str) -> str:
    """What a protocol is, by its name."""
    return TITLES.get(name, "")


def meaning(parameter: str) -> str:
    """What a parameter is."""
    return MEANINGS.get(parameter, "")


def columns_title(table: Table) -> str:
    """Which columns are S and which are U."""
    return schema_title(table.schema)


def schema_title(schema: Schema) -> str:
    """The same of a schema alone."""
    s, u = ([column.name for column in side] for side in (schema.sensitive, schema.useful))
    return f"S = {', '.join(s)} ({schema.n_s})   U = {', '.join(u) or 'nothing'} ({schema.n_u})"


def people_title(schema: Schema, goal: str = "cells") -> str:
    """The question that a picture of the people needed answers."""
    s, u = (
        " × ".join(column.name for column in side) for side in (schema.sensitive, schema.useful)
    )
    what = {"s": f"shares of {s}", "u": f"shares of {u}", "u_given_s": f"shares of {u} within {s}"}
    table = f"every cell of {s} × {u}" if u else f"shares of {s}"
    return f"How many people must answer to know {what.get(goal, table)} to ± 1 point?"


def set_in_words(F: UncertaintySet) -> str:
    """For which distributions there is privacy; after a semicolon, under which conditions."""
    records = f"{F.table.n:,} records"
    if F.table.dropped:
        records += f" ({F.table.dropped:,} with missing values dropped)"
    words = F.in_words(records)
    return f"{words}; {F.assumption}" if F.assumption else words


def gap_in_words(p: ReleaseProtocol) -> str:
    """How much more any protocol could keep at most, among those that the bound is about.

    The bound is computed in double precision and not proved in exact arithmetic.
    """
    gap = (p.optimality_gap or 0.0) / math.log(2)
    size = f"{gap:.2g} bits" if gap >= _TINY_GAP else "a millionth of a bit"
    bits = p.utility / math.log(2)
    share = f", {_share(max(gap, _TINY_GAP) / bits)} what it keeps" if bits > 0 else ""
    return f"no {_bounded_kind(p)} keeps over {size} more{share}"


def error_gap_in_words(error: GoalError) -> str | None:
    """How many reports any protocol needs at least, among those that the bound is about.

    The number of reports for given errors is proportional to the variance. The bound is computed
    in double precision and not proved in exact arithmetic.
    """
    if error.largest_bound is not None:
        errors, bound, reached = "largest error", error.largest_bound, error.largest
    elif error.bound is not None:
        errors, bound, reached = "mean squared error", error.bound, error.total
    else:
        return None
    if not 0 < reached < math.inf:
        return None
    least = math.floor(100 * min(bound / reached, 1.0))
    if least == 0:
        return None  # it says nothing
    by = BOUNDS.get(error.bound_by or "", "")
    return (
        f"no protocol {error.among} has the same {errors} of its estimates from less than "
        f"{least} % of the reports{by and f' ({by})'}"
    )


def _bounded_kind(p: ReleaseProtocol) -> str:
    """What the bound behind the gap is about."""
    if p.name == "polyopt":
        return "protocol in polyopt's cone"
    if p.name == "ldp-optimal":
        return "protocol with plain LDP at this ε"
    hidden = " that does not read S" if p.options.get("hidden") == "yes" else ""
    return f"protocol{hidden} with this ε over F"


def _share(x: float) -> str:
    return f"{100 * x:.2g} % of" if x < 1 else f"{x:,.0f} times"


def sensitive_names(schema: Schema) -> str:
    """The names of the sensitive columns."""
    return ", ".join(column.name for column in schema.sensitive)


def useful_names(schema: Schema) -> str:
    """The names of the useful columns; empty where there are none."""
    return ", ".join(column.name for column in schema.useful)


def finite(value: Any) -> Any:
    """The same for JSON, infinite numbers as text."""
    if isinstance(value, dict):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite(entry) for entry in value]
    return "inf" if isinstance(value, float) and math.isinf(value) else value
