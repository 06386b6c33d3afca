"""Columns to begin with on large tables, from a search over columns that are constant on classes.

Values of U are put into a few classes of about the same mass, a frequent value into one of its own.
A column that is constant on classes is private over F if it is so with the masses of the classes in
place of those of all values. So this search is one for a small table, with the F of the large one.
What a column does with its classes it can do with any others of the same masses: values are dealt
to them many times at random. Together such columns tell all values apart. Rounds from there reach
in a minute on 6 × 42 cells what they do not reach in five from random subsets.

Classes from the goal, as the values of each margin where the goal has two, were tried and are
worse: mixtures of designs for single margins are where rounds do not find out of (14.2 on
2 × 29 cells, and 9.8 from random subsets).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rldp._types import Array, Indices
from rldp.arithmetic import exp
from rldp.designing.masters import Estimated, Quadratic, last_turn
from rldp.designing.optimal.private_columns import PrivateColumns
from rldp.designing.oracles.cones import Cones
from rldp.designing.problem import Problem
from rldp.designing.rounds import rounds
from rldp.uncertainty import Guarantee

_LARGE = 100  # cells, beyond which they are of use
_CLASSES = 6  # of U, in the search for columns to begin with
_DEALT = 3.0  # columns with values dealt at random, times the number of cells
_SHARE = 0.03  # of the work of a search, times the values of U in a class


def is_large(guarantees: Sequence[Guarantee]) -> bool:
    """Whether rounds would take long to find these columns by themselves.

    With two values of S flips of single entries soon find better ones: 5.7 instead of 28 on 2 × 42
    cells in a nominal second, but 57 instead of 45 on 3 × 42 in four.
    """
    table = guarantees[0].table
    is_wide = table.counts.size > _LARGE and table.n_u > 2 * _CLASSES
    return is_wide and table.n_s > 2 and all(g.uncertainty.is_quick for g in guarantees)


def coarser_columns(problem: Problem, goal: Estimated) -> Array:
    """Columns (columns, rows, n_u), nearly all of them private."""
    p_u, effort, cells = problem.p_su.sum(axis=0), problem.effort, len(goal.A)
    classes = _of_equal_mass(p_u)
    private = PrivateColumns(problem.guarantees, hidden=problem.hidden, apart=True, classes=classes)
    small = Estimated(_of_classes(goal.A, classes))
    factor = float(exp(problem.least_level))
    search = Quadratic(private.weights, small, factor, private.pulled_in)
    work = _SHARE * effort.rounds_work * p_u.size / private.weights.shape[1]
    turn = last_turn(Cones(private, problem.deadline), 1)
    rounds(search, [turn], search.clock(work, problem.deadline))
    search.finish()
    T, theta = search.master.columns.reshape(-1, *private.weights.shape), search.master.theta
    random = np.random.default_rng(0)  # the same search every time
    n = int(_DEALT * cells)
    chosen = random.choice(len(T), n, p=theta / theta.sum())
    dealt = _dealt(p_u, private.weights.sum(axis=0), n, random)
    return np.asarray(np.take_along_axis(T[chosen], dealt[:, None, :], axis=2))


def _of_classes(A: Array, classes: Indices) -> Array:
    """Functionals of classes: the largest entry of each class, which is any where all are equal."""
    A, found = A.reshape(-1, classes.size, A.shape[1]), []
    for c in range(int(classes.max()) + 1):
        part = A[:, classes == c]
        which = np.abs(part).argmax(axis=1)[:, None]
        found.append(np.take_along_axis(part, which, 1)[:, 0])
    return np.stack(found, axis=1).reshape(-1, A.shape[2])


def _of_equal_mass(p_u: Array) -> Indices:
    """Each value in the class that has least so far, the frequent ones first."""
    classes, mass = np.zeros(p_u.size, np.intp), np.zeros(_CLASSES)
    for u in np.argsort(-p_u, kind="stable"):
        classes[u] = mass.argmin()
        mass[classes[u]] += p_u[u]
    return classes


def _dealt(p_u: Array, masses: Array, n: int, random: np.random.Generator) -> Indices:
    """Values of U dealt n times to classes of about these masses, the frequent ones first."""
    left = np.tile(masses, (n, 1))
    dealt = np.zeros((n, p_u.size), np.intp)
    for u in np.argsort(-p_u, kind="stable"):
        # as likely as there is room, among classes that have room for all of it; else the roomiest
        room = np.where(left >= (1 - 1e-9) * p_u[u], np.maximum(left, 0.0), 0.0)
        roomiest = (left == left.max(axis=1, keepdims=True)).astype(float)
        room = np.where(room.max(axis=1, keepdims=True) > 0, room, roomiest)
        ends = np.cumsum(room, axis=1)
        drawn = random.random((n, 1)) * ends[:, -1:]
        dealt[:, u] = (drawn >= ends).sum(axis=1).clip(max=masses.size - 1)
        left[np.arange(n), dealt[:, u]] -= p_u[u]
    return dealt
