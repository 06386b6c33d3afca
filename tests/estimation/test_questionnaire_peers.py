"""A questionnaire beside multi-freq-ldpy, with the calls that docs/questionnaire.md compares."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pytest

from tests.support.questionnaires import COLUMNS, INCOME, P_INCOME, people, small, truth

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of its own imports
    smp = pytest.importorskip("multi_freq_ldpy.mdim_freq_est.SMP_solution")

N = 6_000


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    state = np.random.get_state()  # noqa: NPY002  # the generator that it uses
    np.random.seed(3)  # noqa: NPY002  # the same
    yield
    np.random.set_state(state)  # noqa: NPY002  # the same


@pytest.mark.slow
def test_both_estimate_the_same_margins():
    frame = people(N)
    labels = {"income": INCOME, **COLUMNS}
    sizes = [len(values) for values in labels.values()]
    codes = [[labels[name].index(x) for x in frame[name].to_pylist()] for name in labels]
    rows = list(zip(*codes, strict=True))
    reports = [smp.SMP_ADP_Client(row, sizes, len(sizes), 1.0) for row in rows]
    theirs = smp.SMP_ADP_Aggregator_MI(reports, sizes, len(sizes), 1.0)
    ours = small().estimate(small().release(frame))
    margins = [ours.s, *(ours.useful(name) for name in COLUMNS)]
    exact = [P_INCOME, *(truth(name).sum(axis=0) for name in COLUMNS)]
    off = {
        kind: np.sqrt(np.mean([np.mean((x - p) ** 2) for x, p in zip(found, exact, strict=True)]))
        for kind, found in (("theirs", theirs), ("ours", [f.estimate for f in margins]))
    }
    assert max(off.values()) < 0.05  # about 0.03 each: closed forms are no better on so few columns
