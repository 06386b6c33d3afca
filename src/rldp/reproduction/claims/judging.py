"""How a claim of the paper is judged: by a small predicate on the rows of its figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rldp._types import Array
from rldp.reproduction.curves import ROBUST_FORMS

Row = Mapping[str, Any]

HOLDS, FAILS, OPEN = "holds", "does not hold", "not judged"


class MissingRowsError(LookupError):
    """A claim needs rows that were not computed."""


class Finding(NamedTuple):
    """Whether a claim holds, and our figure for it."""

    holds: bool
    ours: str


class Data:
    """The rows of all figures."""

    def __init__(self, tables: Mapping[str, Sequence[Row]]) -> None:
        """Take rows by the names of their files."""
        self._tables = tables

    def rows(self, table: str, **wanted: object) -> list[Row]:
        """The rows of a table in which all of these columns have these values."""
        if table not in self._tables:
            raise MissingRowsError(table)
        found = [
            row
            for row in self._tables[table]
            if all(row.get(name) == value for name, value in wanted.items())
        ]
        if not found:
            raise MissingRowsError(f"{table}: {wanted}")
        return found

    def panels(self, *tables: str) -> list[tuple[str, str]]:
        """(table, panel) for every panel of some tables."""
        return list(
            dict.fromkeys((table, row["panel"]) for table in tables for row in self.rows(table))
        )

    def epsilons(self, table: str, **wanted: object) -> Array:
        """The ε of a curve."""
        return np.array([row["epsilon"] for row in self.rows(table, **wanted)])

    def curve(self, table: str, column: str = "mean", **wanted: object) -> Array:
        """A column of a curve, by ascending ε."""
        found = sorted(self.rows(table, **wanted), key=lambda row: float(row["epsilon"]))
        epsilons = [row["epsilon"] for row in found]
        if len(set(epsilons)) < len(epsilons):
            raise MissingRowsError(f"{table}: {wanted} is more than one curve")
        return np.array([row[column] for row in found], dtype=float)

    def at(self, table: str, epsilon: float, column: str = "mean", **wanted: object) -> float:
        """A column of a curve at the ε nearest to this one."""
        found = self.rows(table, **wanted)
        return float(min(found, key=lambda row: abs(row["epsilon"] - epsilon))[column])


@dataclass(frozen=True)
class Claim:
    """What the paper says.

    Args:
        figure: the label of the figure that it is about.
        words: the claim.
        judge: finds out, from the rows.
        why: why it does not hold, where that is known.
    """

    figure: str
    words: str
    judge: Callable[[Data], Finding]
    why: str = ""


@dataclass(frozen=True)
class Verdict:
    """A claim, judged.

    Args:
        claim: what was judged.
        outcome: "holds", "does not hold", or "not judged" for want of rows.
        ours: our figure.
    """

    claim: Claim
    outcome: str
    ours: str


CLAIMS: list[Claim] = []


def claim(
    figure: str, words: str, why: str = ""
) -> Callable[[Callable[[Data], Finding]], Callable[[Data], Finding]]:
    """Register a predicate as the judge of a claim."""

    def registered(judge: Callable[[Data], Finding]) -> Callable[[Data], Finding]:
        CLAIMS.append(Claim(figure, words, judge, why))
        return judge

    return registered


def judged(one: Claim, data: Data) -> Verdict:
    """The verdict on one claim."""
    try:
        found = one.judge(data)
    except MissingRowsError as error:
        return Verdict(one, OPEN, f"needs rows of {error}")
    return Verdict(one, HOLDS if found.holds else FAILS, found.ours)


def forms(data: Data, table: str, panel: str, names: Sequence[str]) -> dict[str, Array]:
    """The mean curves of some protocols in a panel, at the ε that all of them have."""
    points = {
        name: {row["epsilon"]: row["mean"] for row in data.rows(table, panel=panel, protocol=name)}
        for name in names
    }
    shared = sorted(set.intersection(*(set(curve) for curve in points.values())))
    if not shared:
        raise MissingRowsError(f"{table}: no ε at which all of {', '.join(names)} are known")
    return {name: np.array([curve[e] for e in shared]) for name, curve in points.items()}


def crossing(data: Data, table: str, panel: str) -> float:
    """The ε from which on SRR is the best closed form, ∞ if it never is."""
    kept = forms(data, table, panel, ("srr", *ROBUST_FORMS))
    epsilons = np.sort(data.epsilons(table, panel=panel, protocol="srr"))
    is_best = kept["srr"] >= np.max([kept[name] for name in ROBUST_FORMS], axis=0) - 1e-9
    behind = np.flatnonzero(~is_best)
    after = 0 if not behind.size else int(behind[-1]) + 1
    return float(epsilons[after]) if after < epsilons.size else float("inf")


def listed(named: Mapping[str, float], form: str = ".2g") -> str:
    """Names with their numbers."""
    return ", ".join(f"{name} {value:{form}}" for name, value in named.items())


def percent(x: float) -> str:
    """A share in words."""
    return f"{100 * x:.1f} %"
