"""A small questionnaire about people whose answers are correlated, and their records."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa

import rldp
from rldp.protocol.questionnaire import exact_shares

INCOME, SEX, REGION, AGE = ("low", "high"), ("f", "m"), ("n", "s", "w"), ("18", "30", "50", "70")
COLUMNS = {"sex": SEX, "region": REGION, "age": AGE}
P_INCOME = np.array([0.7, 0.3])
P_GIVEN = {
    "sex": np.array([[0.55, 0.45], [0.3, 0.7]]),
    "region": np.array([[0.3, 0.3, 0.4], [0.5, 0.2, 0.3]]),
    "age": np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.3, 0.4, 0.2]]),
}


def people(n: int, seed: int = 1) -> pa.Table:
    """Records of n people: given income, their answers are independent."""
    rng = np.random.default_rng(seed)
    s = (rng.random(n) < P_INCOME[1]).astype(int)
    columns = {"id": [f"p{i}" for i in range(n)], "income": np.take(INCOME, s)}
    for name, labels in COLUMNS.items():
        ends = P_GIVEN[name].cumsum(axis=1)[s]
        columns[name] = np.take(labels, (rng.random(n)[:, None] > ends).sum(axis=1))
    return pa.table({name: pa.array(list(values)) for name, values in columns.items()})


def truth(name: str) -> np.ndarray:
    """P(income, column)."""
    return P_INCOME[:, None] * P_GIVEN[name]


@cache
def sample() -> pa.Table:
    """The design sample."""
    return people(4_000, seed=7)


@cache
def tables() -> dict[str, rldp.Table]:
    return {
        name: rldp.Table.from_frame(
            sample(), "income", name, levels={"income": INCOME, name: COLUMNS[name]}
        )
        for name in COLUMNS
    }


@cache
def small() -> rldp.Questionnaire:
    """Three blocks of closed forms, designed in milliseconds, with unequal shares."""
    layers = {"epsilon_given_u": 1.0, "epsilon_all": 3.0}
    blocks = tuple(
        rldp.design(rldp.ChiSquareSet(t, alpha=0.015), 1.0, "grr-cr", goal="cells", **layers)
        for t in tables().values()
    )
    return rldp.Questionnaire(blocks, exact_shares([1, 2, 3]), alpha=0.05)
