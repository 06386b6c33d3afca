"""What promises cost, in people who must answer, from designs that are made for the purpose.

Variances of estimates fall with the number of reports, so the number of people that given errors
need is in proportion to V, the summed variances of one report. A design that promises more also
keeps what promises less, so its V counts there too: a price never falls where a promise is lowered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypedDict

import numpy as np

from rldp._types import Array
from rldp.checks import checked_epsilon, shown
from rldp.designing.design import design
from rldp.designing.stack import AUTO, LEAST_FALLBACK, PART_FACTOR
from rldp.errors import ParameterError
from rldp.estimation.goal_errors import channel_error
from rldp.protocol.release_protocol import INTERRUPTED, ReleaseProtocol
from rldp.tables.parts import merged
from rldp.tables.schema import Column
from rldp.tables.table import Table
from rldp.uncertainty import AllDistributions, ConfidenceSet, KnownDistribution, UncertaintySet
from rldp.utility.goal import CELLS, INFORMATION, Goal

CHEAP = 0.25  # more people at most, for a stricter promise to be offered
EVERYTHING, PART = "epsilon_all", "epsilon_given_part"
_FALLBACKS = (6.0, 4.0, 3.0, 2.0)  # nats whatever is true: odds by 403, 55, 20 and 7.4
_MULTIPLES = (2.0, 1.5, 1.0)  # of ε for someone who knows part of U
_TRIED, _WIDE = 3, 100  # values of each column that are merged with another one; beyond cells, one
_RARE = (0.02, 0.05)  # of all people: values that fewer have are merged together too

Progress = Callable[[int, int, str], None]  # designs that are done, all of them, and the next one


class PromisePrice(TypedDict):
    """What one level of one promise costs, everything else as asked.

    `promise` is "epsilon_all" or "epsilon_given_part", `level` None where nothing is promised.
    `error` is the root mean squared error of the goal from as many reports as the table has
    records, and `people` how many must answer for the error that the promises asked for
    (`is_asked`) have with as many people as the table has records.
    """

    promise: str
    level: float | None
    is_asked: bool
    error: float
    people: float


class MergingPrice(TypedDict):
    """What it saves to make one of several values of a column of U or S, the rarest of them first.

    `records` is how many have that rarest one. `people` is how many must answer once they are
    merged, for the root mean squared error of the estimates that are left which the table as it is
    has with as many people as it has records; `saved` is the share of people that are then not
    needed. Some of that is saved because nothing need be added up any more for the merged value:
    `saved_elsewhere` is the same for those estimates alone that there were before, such as the
    cells of the other values.
    """

    column: str
    is_sensitive: bool
    labels: tuple[str, ...]
    records: int
    people: float
    saved: float
    saved_elsewhere: float


class _Levels(NamedTuple):
    """Levels of both promises, ∞ for none."""

    everything: float
    part: float

    @property
    def said(self) -> _Levels:
        """Without what the limit whatever is true implies: designs leave that out."""
        return self._replace(part=np.inf) if self.part >= self.everything else self


def promise_prices(
    uncertainty: UncertaintySet,
    epsilon: float,
    *,
    goal: str | Goal = CELLS,
    epsilon_given_u: Any = AUTO,
    epsilon_all: Any = AUTO,
    epsilon_given_part: Any = AUTO,
    effort: str = "quick",
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> list[PromisePrice]:
    """What stricter and weaker promises cost in people, each from a design that is made for it.

    All are designs of "best". The level whatever is true is tried at none, 6, 4, 3 and 2, that for
    those who know part of U at none, 2ε, 1.5ε and ε. Ctrl-C gives the prices known by then.

    Args:
        uncertainty: the set F of distributions that may be true.
        epsilon: privacy level in nats.
        goal: what estimates shall be close to, as for `design`.
        epsilon_given_u: as for `design`.
        epsilon_all: the level that is asked for; its price is the measure of all others.
        epsilon_given_part: likewise.
        effort: work of each search.
        time_limit: seconds for each search.
        progress: called before each design.

    >>> from rldp import ChiSquareSet, Table
    >>> F = ChiSquareSet(Table([[300, 100], [100, 500]]))
    >>> prices = promise_prices(F, 1.0, goal="s")
    >>> [price["level"] for price in prices]
    [None, 6.0, 4.0, 3.0, 2.0]
    >>> [price["people"] for price in prices if price["is_asked"]]
    [1000.0]
    """
    epsilon = checked_epsilon(epsilon)
    _check_goal(goal)
    has_parts = len(uncertainty.table.schema.useful) > 1
    asked = _Levels(
        _level(epsilon_all, EVERYTHING, max(LEAST_FALLBACK, 2 * epsilon)),
        _level(epsilon_given_part, PART, PART_FACTOR * epsilon if has_parts else np.inf),
    )
    ladders = {EVERYTHING: _ladder(asked.everything, [x for x in _FALLBACKS if x >= epsilon])}
    if has_parts:
        ladders[PART] = _ladder(asked.part, [x * epsilon for x in _MULTIPLES])
    options = {"goal": goal, "epsilon_given_u": epsilon_given_u}
    options |= {"effort": effort, "time_limit": time_limit}
    wanted = [asked.said]
    wanted += [_with(asked, name, level).said for name in ladders for level in ladders[name]]
    total, per_weight = _variances(
        uncertainty, epsilon, list(dict.fromkeys(wanted)), options, progress
    )
    if asked.said not in total:
        return []
    n, records = uncertainty.table.n, []
    for name, ladder in ladders.items():
        for level in ladder:
            levels = _with(asked, name, level)
            if levels.said not in total:
                continue
            price: PromisePrice = {
                "promise": name,
                "level": None if np.isinf(level) else level,
                "is_asked": levels == asked,
                "error": float(np.sqrt(total[levels.said] / per_weight / n)),
                "people": n * total[levels.said] / total[asked.said],
            }
            records.append(price)
    return records


def offered(prices: Sequence[PromisePrice], promise: str) -> PromisePrice | None:
    """The strictest level below the one asked for that costs less than a quarter more people."""
    mine = [price for price in prices if price["promise"] == promise]
    asked = next((price for price in mine if price["is_asked"]), None)
    if asked is None:
        return None
    most, level = (1 + CHEAP) * asked["people"], asked["level"] or np.inf
    stricter = [p for p in mine if p["level"] is not None and p["level"] < level]
    cheap = [p for p in stricter if p["people"] < most]
    return min(cheap, key=lambda price: price["level"] or 0.0, default=None)


def merging_prices(
    uncertainty: UncertaintySet,
    epsilon: float,
    *,
    columns: Sequence[str] | None = None,
    values: int | None = None,
    goal: str = CELLS,
    effort: str = "quick",
    progress: Progress | None = None,
    **options: Any,
) -> list[MergingPrice]:
    """Which values of S and U cost most, and what it saves to merge them.

    F says little about people with a rare value: for a rare value of U, about their S; for a rare
    value of S, about their U, of which little more can be told than by a plainly private report. In
    each column with three values or more the rarest are tried, each with the value whose people are
    most alike in the other part of the record; and all that fewer than 2 or 5 % of the people have,
    as one. The smaller table has a design of its own, with the same promises over the same kind of
    set. The most that is saved comes first.

    To merge values of S changes what is promised: ε over F is then about the merged value. Which of
    its values a person has, a report tells as far as U does, within the limit whatever is true. To
    merge values of U leaves the limits to strangers as they are.

    Args:
        uncertainty: the set F, of a kind that a table and numbers determine.
        epsilon: privacy level in nats.
        columns: columns of S and U with three values or more; all of them if None.
        values: how many values of each column are tried; 3 if None, and 1 above 100 cells, where
            groups of rare values save more.
        goal: "cells", "s", "u" or "u_given_s".
        effort: work of each search.
        progress: called before each design.
        **options: further arguments of `design`, such as epsilon_all. With columns of S, levels by
            pair of S values are refused: merged values have other pairs.

    >>> from rldp import ChiSquareSet, Table
    >>> table = Table([[300, 90, 2], [90, 500, 1]], useful=["a", "b", "c"])
    >>> found = merging_prices(ChiSquareSet(table), 1.0, values=1)
    >>> found[0]["labels"], found[0]["records"], found[0]["saved"] > 0
    (('c', 'a'), 3, True)
    """
    _check_goal(goal)
    if not isinstance(goal, str):
        raise ParameterError(
            f"Expected a goal by name, which the merged table has too, got {shown(goal)}.",
            argument="goal",
        )
    if not isinstance(uncertainty, ConfidenceSet | AllDistributions | KnownDistribution):
        raise ParameterError(
            f"Expected a set that a table and numbers determine, such as ChiSquareSet(table), got "
            f"{type(uncertainty).__name__}: what it is for merged values is not known.",
            argument="uncertainty",
        )
    table = uncertainty.table
    chosen = _columns(table, columns)
    if any(_is_sensitive(table, column) for column in chosen):
        _check_levels({"epsilon": epsilon, **options})
    if values is None:
        values = _TRIED if table.counts.size <= _WIDE else 1
    tried = [(c, codes) for c in chosen for codes in _groups(table, c, values)]
    found: list[MergingPrice] = []
    if not tried:
        return found
    _tell(progress, 0, len(tried) + 1, "as it is")
    whole = design(uncertainty, epsilon, goal=goal, effort=effort, **options)
    before = _rows(Goal.named(goal, table).functionals)
    for done, (column, codes) in enumerate(tried, start=1):
        if whole.ended == INTERRUPTED:
            break
        labels = tuple(column.labels[code] for code in codes)
        _tell(progress, done, len(tried) + 1, f"{column.name}: {' with '.join(labels[:2])}")
        smaller, of_s, of_u = merged(table, column.name, labels[::-1])
        F = type(uncertainty)(smaller, **uncertainty.arguments)
        p = design(F, epsilon, goal=goal, effort=effort, **options)
        if p.ended == INTERRUPTED:
            break
        left = Goal.named(goal, smaller)
        same = replace(left, functionals=left.functionals[:, of_s][:, :, of_u])
        was = channel_error(whole.channel, same, table).variances
        is_old = np.array([row in before for row in _rows(same.functionals)])
        saved = _saved(p.error.variances, was)
        price: MergingPrice = {
            "column": column.name,
            "is_sensitive": _is_sensitive(table, column),
            "labels": labels,
            "records": int(_by_value(table, column)[:, codes[0]].sum()),
            "people": table.n * (1 - saved),
            "saved": saved,
            "saved_elsewhere": _saved(p.error.variances[is_old], was[is_old]),
        }
        found.append(price)
    return sorted(found, key=lambda price: -price["saved"])


def _saved(variances: Array, was: Array) -> float:
    """The share of people that smaller variances save; nobody has to merge."""
    return max(0.0, 1 - float(variances.sum()) / float(was.sum())) if was.size else 0.0


def _rows(functionals: Array) -> list[bytes]:
    """Functionals as something that is equal for equal ones."""
    return [(a + 0.0).tobytes() for a in functionals.round(9)]  # + 0.0: there is a -0 too


def _check_goal(goal: object) -> None:
    if isinstance(goal, str) and goal == INFORMATION:
        raise ParameterError(
            "Expected a goal that is estimated, such as 'cells': information has no price in "
            "people.",
            argument="goal",
        )


def _level(level: Any, argument: str, recommended: float) -> float:
    if isinstance(level, str) and level == AUTO:
        return recommended
    if level is None:
        return np.inf
    if np.ndim(level) or isinstance(level, dict):
        raise ParameterError(
            "Expected one level for all pairs of S values: prices are those of one number.",
            argument=argument,
        )
    return checked_epsilon(level)


def _ladder(asked: float, others: Sequence[float]) -> list[float]:
    """Levels to try, from no promise to the strictest."""
    return sorted({np.inf, asked, *others}, reverse=True)


def _with(asked: _Levels, promise: str, level: float) -> _Levels:
    return asked._replace(**{"everything" if promise == EVERYTHING else "part": level})


def _variances(
    F: UncertaintySet,
    epsilon: float,
    wanted: Sequence[_Levels],
    options: dict[str, Any],
    progress: Progress | None,
) -> tuple[dict[_Levels, float], float]:
    """V of every wish, as small as any design that was made and keeps it has it; the weights."""
    found: dict[_Levels, ReleaseProtocol] = {}
    for done, levels in enumerate(wanted):
        _tell(progress, done, len(wanted), _in_words(levels))
        everything, part = (None if np.isinf(level) else level for level in levels)
        p = design(F, epsilon, epsilon_all=everything, epsilon_given_part=part, **options)
        if p.ended == INTERRUPTED:
            break
        found[levels] = p
    V = {levels: p.error.total for levels, p in found.items()}
    least = {
        levels: min(V[made] for made in found if _promises_as_much(made, levels))
        for levels in found
    }
    weights = (float(p.error.goal.weights.sum()) for p in found.values())
    return least, next(weights, 1.0)


def _promises_as_much(made: _Levels, levels: _Levels) -> bool:
    return made.everything <= levels.everything and made.part <= levels.part


def _in_words(levels: _Levels) -> str:
    everything, part = ("none" if np.isinf(level) else f"{level:g}" for level in levels)
    return f"whatever is true {everything}, part of U known {part}"


def _tell(progress: Progress | None, done: int, total: int, what: str) -> None:
    if progress is not None:
        progress(done, total, what)


def _check_levels(levels: dict[str, Any]) -> None:
    """Refuse levels by pair of S values."""
    by_part = levels.get(PART)
    each: list[tuple[Any, Any]] = [(PART, by_part)]
    each = list(by_part.items()) if isinstance(by_part, dict) else each
    each += [(name, levels.get(name)) for name in ("epsilon", "epsilon_given_u", EVERYTHING)]
    for name, level in each:
        if isinstance(level, dict) or np.ndim(level):
            raise ParameterError(
                f"Expected one level of {name} for all pairs of S values, as merged values of S "
                "have other pairs. Where values of U alone shall be merged, give columns=[...].",
                argument=name if isinstance(name, str) else PART,
            )


def _columns(table: Table, names: Sequence[str] | None) -> list[Column]:
    schema = table.schema
    known = {column.name: column for column in (*schema.sensitive, *schema.useful)}
    if names is None:
        return [column for column in known.values() if len(column.labels) > 2]
    wrong = [name for name in names if name not in known or len(known[name].labels) < 3]
    if wrong:
        raise ParameterError(
            f"Expected columns with three values or more, got {shown(wrong[0])}.",
            argument="columns",
        )
    return [known[name] for name in names]


def _is_sensitive(table: Table, column: Column) -> bool:
    return column in table.schema.sensitive


def _by_value(table: Table, column: Column) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The counts of the other part of the record by the values of a column, one column for each."""
    schema = table.schema
    mine = schema.sensitive if _is_sensitive(table, column) else schema.useful
    counts = table.counts.T if _is_sensitive(table, column) else table.counts
    counts = counts.reshape(len(counts), *(len(c.labels) for c in mine))
    others = tuple(axis for axis, c in enumerate(mine, start=1) if c.name != column.name)
    return np.asarray(counts.sum(axis=others))


def _groups(table: Table, column: Column, values: int) -> list[tuple[int, ...]]:
    """Values to merge: the rarest, each with the one whose people are most alike; all rare ones."""
    counts = _by_value(table, column)
    shares = (counts + 0.5) / (counts + 0.5).sum(axis=0)  # a value that nobody has tells nothing
    found: dict[frozenset[int], tuple[int, ...]] = {}
    people = counts.sum(axis=0)
    # F is about people of one s, so a value of U counts as rare that is rare in some group of S
    first = people if _is_sensitive(table, column) else counts.min(axis=0)
    for rare in np.lexsort((people, first))[:values].tolist():
        apart = np.abs(shares - shares[:, [rare]]).sum(axis=0)
        apart[rare] = np.inf
        pair = rare, int(apart.argmin())
        found.setdefault(frozenset(pair), pair)
    order = np.argsort(people, kind="stable")
    for share in _RARE:
        group = order[people[order] < share * table.n].tolist()
        if 2 <= len(group) < len(column.labels):
            found.setdefault(frozenset(group), tuple(group))
    return list(found.values())
