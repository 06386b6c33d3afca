"""Tables for examples: pairs of columns of the Adult data, and random tables."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from rldp._types import Array
from rldp.errors import ParameterError
from rldp.tables.schema import Column, Schema
from rldp.tables.table import Table

ADULT_COLUMNS = (
    "workclass",
    "education",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "native-country",
    "income",
)


def adult(sensitive: str = "race", useful: str = "sex") -> Table:
    """Counts of two categorical columns of the Adult data, 32,561 records.

    The data are "Adult", Barry Becker and Ronny Kohavi, UCI Machine Learning Repository, 1996,
    doi 10.24432/C5XW20, CC BY 4.0. Changed: only the counts of pairs were kept. Unknown values
    are a label of their own, "?".

    Args:
        sensitive: one of workclass, education, marital-status, occupation, relationship, race,
            sex, native-country and income.
        useful: another one of them.

    >>> adult("sex", "income").counts
    array([[ 9592,  1179],
           [15128,  6662]])
    """
    for argument, name in (("sensitive", sensitive), ("useful", useful)):
        if name not in ADULT_COLUMNS:
            raise ParameterError(
                f"Expected a column of Adult ({', '.join(ADULT_COLUMNS)}), got {name!r}.",
                argument=argument,
                column=name,
            )
    if sensitive == useful:
        raise ParameterError(
            f"Expected two different columns of Adult, got {useful!r} twice.",
            argument="useful",
            column=useful,
        )
    first, second = sorted((sensitive, useful), key=ADULT_COLUMNS.index)
    cells = _adult_pairs()[first, second]
    schema = Schema(
        (Column(first, tuple(sorted({label for label, _ in cells}))),),
        (Column(second, tuple(sorted({label for _, label in cells}))),),
    )
    counts = np.zeros((schema.n_s, schema.n_u), dtype=np.int64)
    for (first_label, second_label), count in cells.items():
        counts[schema.s_code((first_label,)), schema.u_code((second_label,))] = count
    table = Table.from_schema(counts, schema)
    return table if sensitive == first else table.transposed()


@dataclass(frozen=True, eq=False)
class JeffreysDraw:
    """A distribution and a sample of it.

    Args:
        distribution: P* of shape (n_s, n_u).
        table: counts of records drawn from P*.
    """

    distribution: Array
    table: Table


def jeffreys(n_s: int, n_u: int, n: int, seed: int) -> JeffreysDraw:
    """Draw P* from Jeffreys' prior, Dirichlet(1/2, ..., 1/2), and n records from P*.

    Args:
        n_s: number of values of S.
        n_u: number of values of U.
        n: number of records.
        seed: of ``numpy.random.default_rng``; the same seed gives the same draw.

    >>> jeffreys(2, 2, 100, seed=1).table.n
    100
    """
    arguments: dict[str, object] = {"n_s": n_s, "n_u": n_u, "n": n, "seed": seed}
    for name, value in arguments.items():
        least = 0 if name == "seed" else 1
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise ParameterError(f"Expected {name} as an integer ≥ {least}, got {value!r}.")
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(n_s * n_u, 0.5))
    counts = rng.multinomial(n, p).reshape(n_s, n_u)
    distribution = p.reshape(n_s, n_u)
    distribution.setflags(write=False)
    return JeffreysDraw(distribution, Table(counts))


@cache
def _adult_pairs() -> dict[tuple[str, str], Counter[tuple[str, str]]]:
    pairs: dict[tuple[str, str], Counter[tuple[str, str]]] = {}
    bundled = files("rldp").joinpath("data", "adult_pairs.csv")
    with bundled.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            cells = pairs.setdefault((row["first"], row["second"]), Counter())
            cells[row["first_label"], row["second_label"]] = int(row["count"])
    return pairs
