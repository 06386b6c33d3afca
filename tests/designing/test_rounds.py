"""The loop of every search: whose turn it is, when it ends, and what exact pricing proves."""

from __future__ import annotations

import numpy as np
import pytest

from rldp.designing.masters import Master, simple_columns
from rldp.designing.oracles.prices import InformationPrices, Oracle
from rldp.designing.oracles.products import Listed, Priced
from rldp.designing.rounds import Turn, rounds
from rldp.designing.solvers.work import Clock, spend
from rldp.information import mutual_information

P = np.array([[0.3, 0.2], [0.1, 0.4]])


class Offers(Oracle):
    """Offers so many times, and tells when it was asked."""

    starts = 6

    def __init__(self, name: str, asked: list[str], rises: list[float]) -> None:
        self._name, self._asked, self._rises = name, asked, list(rises)

    def columns(self, near, prices):  # noqa: ARG002  # it offers what it was given
        self._asked.append(self._name)
        spend(1.0)
        return np.full((1, 1, 1), self._rises.pop(0) if self._rises else 0.0)


class Counting:
    """A master whose merit rises by what it takes."""

    is_near, is_closed, prices = True, False, None

    def __init__(self) -> None:
        self.merit, self.started, self.bound = 0.0, [], np.inf

    @property
    def told(self):
        return self.merit, self.bound

    def approach(self):
        pass

    def starts(self, used, new):
        self.started.append((used, new))
        return np.zeros((used + new, 1, 1))

    def take(self, columns):
        self.merit += columns.sum()
        return columns.sum()

    def lower(self, excess):
        self.bound = min(self.bound, self.merit + excess)


def test_the_next_oracle_has_its_turn_when_one_brings_little():
    asked, told, master = [], [], Counting()
    turns = [
        Turn(Offers("a", asked, [1.0, 1.0, 0.01, 1.0]), little=0.1),
        Turn(Offers("b", asked, [0.5, 0.0, 0.5]), little=0.1, patience=2, new=0),
        Turn(Offers("c", asked, [1.0] * 9), most=3),
    ]
    rounds(master, turns, Clock(1000.0), lambda value, bound: told.append((value, bound)))
    assert "".join(asked) == "aaa" + "bbbbb" + "ccc"
    assert told[-1] == (master.merit, np.inf)
    assert len(told) == len(asked)
    assert set(master.started) == {(4, 2), (6, 0)}  # a third is new, if nothing else is said


def test_windows_and_work_end_a_turn():
    asked, master = [], Counting()
    rounds(master, [Turn(Offers("a", asked, [1, 0, 1, 0]), little=0.1, window=2)], Clock(1000.0))
    assert len(asked) == 6  # two windows that rise, and one that does not
    asked.clear()
    rounds(master, [Turn(Offers("a", asked, [1.0] * 99))], Clock(5.0))
    assert len(asked) == 5


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_with_exact_pricing_the_bound_meets_the_value(epsilon):
    """All columns of plain LDP are listed; the optimum is that of all of them at once."""
    e = np.exp(epsilon)
    subsets = (np.arange(1, 15)[:, None] >> np.arange(4)) & 1
    columns = np.where(subsets > 0, e, 1.0).reshape(-1, 2, 2)
    columns = columns / (columns * P).sum(axis=(1, 2))[:, None, None]

    def priced(duals):
        gains = InformationPrices(P, duals).gains(columns)
        best = gains.argmax()
        return Priced(columns[[best]] if gains[best] > 1e-9 else columns[:0], gains[best])

    master, whole = (Master(P, np.ones((2, 2), bool)) for _ in range(2))
    master.add(simple_columns((2, 2), e, distinct=False)[:4])
    master.solved()
    first = master.incumbent.value
    rounds(master, [Turn(Listed(priced))], Clock(1000.0))
    whole.add(columns)
    assert master.incumbent.value == pytest.approx(whole.solved().value, abs=1e-8)
    assert first <= master.incumbent.value <= master.bound + 1e-12 <= master.incumbent.value + 1e-8
    assert epsilon > 1 or first < master.incumbent.value - 1e-4  # randomised response is not it
    Q = master.protocol(master.incumbent)
    assert mutual_information(P, Q) == pytest.approx(master.incumbent.value, abs=1e-8)
