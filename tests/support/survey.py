"""A survey with incomes that are strongly correlated with sex and age: 6 × 10 cells."""

from __future__ import annotations

import numpy as np

from rldp import Column, Schema, Table

INCOMES = ("< 10", "10-20", "20-30", "30-45", "45-70", "> 70")
AGES = ("18-24", "25-34", "35-49", "50-64", "65+")
SCHEMA = Schema(
    (Column("income", INCOMES),), (Column("sex", ("female", "male")), Column("age", AGES))
)
PEOPLE = 50_000


def survey(seed: int = 20) -> Table:
    """Income rises with age until 64 and is higher for men, with a spread of more than a band."""
    rng = np.random.default_rng(seed)
    centre = np.array([[0.4, 1.6, 2.4, 2.9, 1.2], [0.6, 2.3, 3.5, 4.1, 2.0]]).ravel()
    band = np.arange(len(INCOMES))[:, None]
    p = np.exp(-0.5 * ((band - centre) / 1.5) ** 2)
    p *= np.tile([0.12, 0.18, 0.28, 0.26, 0.16], 2) / p.sum(axis=0)
    counts = rng.multinomial(PEOPLE, (p / p.sum()).ravel()).reshape(p.shape)
    return Table.from_schema(counts, SCHEMA)


def small_survey() -> Table:
    """The same people in three income bands, by sex alone: small enough to search at once."""
    return Table(survey().counts.reshape(3, 2, 2, 5).sum(axis=(1, 3)))
