"""The loop of every search: oracles offer columns, a master weighs them, until little is gained.

One output y of a protocol is a *column* T[s, u] = Q(y|s,u), and its probability at P̂ is its *mass*.
Whether a column is private depends neither on the others nor on its scale, so the best protocol is
the best way to share the mass among all private columns, found with a few of them at a time:

        ┌───────────────────────────────────────────────────────────────────────┐
        ▼                                                                       │
     master (`masters`): masses ──► prices (`oracles.prices`) ──► oracle (`oracles`): columns
        │                                                           │
        ▼                                                           ▼
     protocol (`problem.Found`)                    a bound, if the oracle has found the best column

The prices α[s, u] are the multipliers of Σ θ_y T_y = 1, one for each cell. At these prices a column
brings its gain less α·T for every unit of its mass: its *reduced cost*. What brings something
enters the master; if no column brings more than δ, no protocol is better by more than δ.

Oracles are asked one after another, the cheap ones first; the next one has its turn when the rounds
of the one before gain little. All of this is counted in work, and nothing looks at the time unless
there is a limit of time.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import NamedTuple, Protocol

import numpy as np

from rldp._types import Array, SearchProgress
from rldp.designing.oracles.prices import Oracle, Prices
from rldp.designing.problem import untold
from rldp.designing.solvers.work import Clock

_NEW = 3  # one of so many columns to begin with is new, and not in use


class Master(Protocol):
    """The columns so far, and the masses with which they are the best protocol, or nearly."""

    @property
    def told(self) -> tuple[float, float]:
        """The value of the protocol so far, and a bound on it."""

    @property
    def merit(self) -> float:
        """What rises from round to round: by 0.01 where the protocol is better by 1 %."""

    @property
    def prices(self) -> Prices:
        """What further columns would bring."""

    @property
    def is_near(self) -> bool:
        """Whether the masses are so near to the best ones that a small rise means something."""

    @property
    def is_closed(self) -> bool:
        """Whether nothing better is left."""

    def approach(self) -> None:
        """Bring the masses nearer to the best ones."""

    def starts(self, used: int, new: int) -> Array:
        """Columns near which an oracle may begin: some in use, and some new ones."""

    def take(self, columns: Array) -> float:
        """Add those that bring something; the most that any of them brings, as a merit."""

    def lower(self, excess: float) -> None:
        """Take note that no column brings more than this at the present prices."""


class Turn(NamedTuple):
    """An oracle, and when the next one has its turn.

    Attributes:
        oracle: who offers columns.
        little: a rise of the merit within a window that counts as none.
        patience: how many windows may rise as little.
        window: rounds.
        closed: what columns may bring, as a merit, so that it counts as nothing.
        most: rounds, at most.
        new: of the columns to begin with; a third if not given.
    """

    oracle: Oracle
    little: float = -np.inf
    patience: int = 1
    window: int = 1
    closed: float = 0.0
    most: float = np.inf
    new: int | None = None


def rounds(
    master: Master, turns: Sequence[Turn], clock: Clock, told: SearchProgress = untold
) -> None:
    """Rounds with each oracle in turn, until the last one gains little or the work is done."""
    for turn in turns:
        oracle, is_last = turn.oracle, turn is turns[-1]
        new = -(-oracle.starts // _NEW) if turn.new is None else turn.new
        reached, idle, offered = -np.inf, 0, 0.0
        for n in count(1):
            if clock.now() >= 1 or master.is_closed or n > turn.most:
                break
            master.approach()
            columns = oracle.columns(master.starts(oracle.starts - new, new), master.prices)
            master.lower(oracle.excess)
            offered = max(offered, master.take(columns))
            told(*master.told)
            if n % turn.window or (is_last and not master.is_near):
                continue
            is_little = master.merit < reached + turn.little or offered <= turn.closed
            idle = idle + 1 if is_little else 0
            reached, offered = master.merit, 0.0
            if idle >= turn.patience:
                break
