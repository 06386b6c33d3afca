"""What promises cost and what merging saves, in people, for the terminal and the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rldp.decimals import shortest
from rldp.presentation.risk_texts import odds, people
from rldp.presentation.texts import finite, sensitive_names

if TYPE_CHECKING:
    from rldp.designing.prices import MergingPrice, PromisePrice
    from rldp.tables.table import Table

_WHOM = {
    "epsilon_all": "someone who knows anything else, whatever is true",
    "epsilon_given_part": "someone who knows some of the columns of U, and not the rest",
}
MERGING_HEADS = ("as one value", "records", "people", "saved", "other values")
_LISTED, _TIMES = 3, 1.5  # values that are named; a factor that is told as one
_NO_GROUP = "All rare values of a column together cost the estimates of other values nothing."
_NONE = 5e-4  # share of people that is not told
HEADS = ("level", "odds at most", "guessed rightly", "± points", "people")


def price_rows(prices: Sequence[PromisePrice], promise: str, table: Table) -> list[tuple[str, ...]]:
    """For each level: odds, how many of 1,000 are guessed rightly at most, error and people."""
    from rldp.auditing.attackers import at_most

    views = [table.p_s[:, None]] if promise == "epsilon_all" else _known(table)
    rows: list[tuple[str, ...]] = []
    for price in prices:
        if price["promise"] != promise:
            continue
        level = math.inf if price["level"] is None else price["level"]
        right = people(max(at_most(p_su, level).right for p_su in views))
        rows.append(
            (
                "none" if math.isinf(level) else f"ε = {shortest(level)}",
                odds(level),
                "all" if math.isinf(level) else f"≤ {right}",
                f"{100 * price['error']:.2f}",
                f"{price['people']:,.0f}",
                "as asked" if price["is_asked"] else _more(price["people"] / table.n - 1),
            )
        )
    return rows


def price_head(promise: str, table: Table) -> str:
    """What the rows are about."""
    S = sensitive_names(table.schema)
    return (
        f"What a limit costs for {_WHOM[promise]}: how far one report moves the odds on {S}; of "
        f"1,000 people, how often that reader guesses {S} rightly; the error of estimates from "
        f"{table.n:,} reports; and how many people must answer for the error that the limits asked "
        f"for have with {table.n:,}."
    )


def offer_in_words(prices: Sequence[PromisePrice], promise: str, table: Table) -> str | None:
    """The strictest limit that costs less than a quarter more people, None where there is none."""
    from rldp.designing.prices import CHEAP, offered

    found = offered(prices, promise)
    if found is None or found["level"] is None:
        return None
    asked = next(p for p in prices if p["promise"] == promise and p["is_asked"])
    now = "none" if asked["level"] is None else shortest(asked["level"])
    level, option = shortest(found["level"]), f"--{promise.replace('_', '-')}"
    return (
        f"{level} instead of {now} costs {_percent(found['people'] / table.n - 1)} more people, "
        f"less than {100 * CHEAP:.0f} %: think of it ({option} {level})."
    )


def how_made(effort: str) -> str:
    """Where the figures come from."""
    return (
        f"Each line is a design of “best” that was made (effort {effort}), with everything else as "
        f"asked. A search may end before the best design, so a price is what was found; a design "
        f"with a stricter limit counts for the weaker ones too."
    )


def merging_rows(found: Sequence[MergingPrice]) -> list[tuple[str, ...]]:
    """For all values that were merged: their people, and how many are saved."""
    return [
        (
            f"{one['column']}: {one['labels'][0]} with {_others(one)}",
            f"{one['records']:,}",
            f"{one['people']:,.0f}",
            _fewer(one["saved"]),
            _fewer(one["saved_elsewhere"]),
        )
        for one in found
    ]


def merging_in_words(found: Sequence[MergingPrice], table: Table) -> str:
    """Which values cost most, and on what the figures are about."""
    pairs = [one for one in found if len(one["labels"]) == 2]
    groups = [one for one in found if len(one["labels"]) > 2]
    pair, group = (max(some, key=_worth, default=None) for some in (pairs, groups))
    same = (
        f"give the estimates that are left the root mean squared error that they have with "
        f"{table.n:,} now"
    )
    told = []
    is_told = pair is not None and pair["saved_elsewhere"] >= _NONE
    if pair is not None and is_told:
        told.append(
            f"Of single values, {pair['column']} = {pair['labels'][0]} ({pair['records']:,} of "
            f"{table.n:,} records) costs most: with {_others(pair)} as one value, {_times(pair)} "
            f"people {same}{_elsewhere(pair)}."
        )
    elif pair is not None:
        told.append("No single value that was tried costs the estimates of other values anything.")
    if group is not None and group["saved_elsewhere"] >= _NONE:
        told.append(
            f"With {group['column']} = {group['labels'][0]}, {_others(group)} as one value, "
            f"{_times(group)} people {'do' if is_told else same}{_elsewhere(group)}."
        )
    elif group is not None:
        told.append("Nor do all rare values of a column together." if told else _NO_GROUP)
    told.append("Estimates for the merged value are sums today, so that their errors fall anyway.")
    told.append("Each was designed anew, with the values as one. To merge them, do it in the data.")
    schema = table.schema
    names = {one["column"] for one in found}
    if any(column.name in names for column in schema.sensitive):
        told.append(
            f"What is promised about {sensitive_names(schema)} is then about the merged value: "
            f"which of its values a person has, a report tells as far as U does, and only a limit "
            f"whatever is true keeps that small."
        )
    if len(schema.useful) > 1 and any(column.name in names for column in schema.useful):
        told.append(
            "What is promised to those who know part of U is then about the merged value of U: "
            "someone who knows which of its values it is, and not all of U, has the limit "
            "whatever is true."
        )
    return " ".join(told)


def _worth(one: MergingPrice) -> tuple[float, float]:
    return one["saved_elsewhere"], one["saved"]


def _others(one: MergingPrice) -> str:
    """The values that the rarest one is merged with."""
    others = one["labels"][1:]
    if len(others) > _LISTED:
        return f"{others[0]} and {len(others) - 1} more"
    return " and ".join((*([", ".join(others[:-1])] if others[1:] else []), others[-1]))


def _times(one: MergingPrice) -> str:
    """How many times fewer people, where that is easier to say than a share."""
    times = 1 / (1 - one["saved"])
    return f"{times:.1f} times fewer" if times >= _TIMES else f"{_percent(one['saved'])} fewer"


def _elsewhere(one: MergingPrice) -> str:
    """What the estimates of other values have of it."""
    return f" (for the estimates of other values alone: {_fewer(one['saved_elsewhere'])})"


def _fewer(saved: float) -> str:
    return f"{_percent(saved)} fewer" if saved >= _NONE else "none"


def price_records(prices: Sequence[PromisePrice | MergingPrice]) -> list[dict[str, Any]]:
    """The same for machines."""
    return [finite(dict(price)) for price in prices]


def _known(table: Table) -> list[Any]:
    """The chances of S and each part of U that someone may know."""
    from rldp.tables.parts import Part, parts_of

    parts = [Part.of(table.schema, names) for names in parts_of(table.schema)]
    return [table.p_su[:, part.cells].sum(axis=2) for part in parts]


def _more(share: float) -> str:
    return f"{'−' if share < 0 else '+'}{_percent(abs(share))}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.01 or share == 0 else f"{100 * share:.1f} %"
