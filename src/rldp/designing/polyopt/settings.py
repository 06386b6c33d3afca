"""Every number that steers the search, in one place.

No setting can make a protocol less private or a bound wrong. They decide which method is used, how
long it goes on, and how close bounds get. Values were chosen by experiment. Shares and relative
quantities are between 0 and 1, information is in nats, work in nominal seconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Tolerances:
    """What counts as zero, as equal, or as infinite in doubles."""

    point: float = 1e-12  # a smaller simplex or narrower box is one point, closer m(H) are equal
    infinite: float = 1e100  # a ratio of gain to m(H) beyond this is infinite
    active: float = 1e-9  # slack of an inequality, relative to its terms, that counts as active
    zero: float = 1e-14  # what rounding leaves of 0, relative to the largest entry of a column
    rank: float = 1e-10  # singular value, relative to the largest, that counts as 0
    weight: float = 1e-12  # weight in the relaxed master that counts as 0
    digits: int = 12  # decimals by which vertices are told apart


@dataclass(frozen=True)
class Methods:
    """Which search is used for which size of table."""

    most_numbers: float = 5e7  # in the lists of all vertices; beyond, they are not listed
    most_listed_u: int = 12  # values of U; beyond, they are not listed either
    most_subset_u: int = 16  # values of U whose subsets are listed; beyond, a knapsack bounds them
    most_exact_cells: int = 49  # beyond, exact pricing closes the gap too slowly
    most_direct_cells: int = 30  # beyond, the search for large tables runs before exact pricing,
    head_start: float = 6.0  # for so much work at most
    work: float = 20.0  # of a search on a large table, where nobody says


@dataclass(frozen=True)
class ExactPricing:
    """Column generation where all vertices are listed."""

    closed: float = 1e-9  # gap that counts as closed,
    closed_relative: float = 1e-7  # the same relative to the gain of a column, if that is less,
    rounding: float = 1e-13  # but no less than rounding errors
    columns_per_round: int = 200
    patience: float = 10.0  # times the work of a search on a large table, after which it gives up
    most_branch_numbers: float = 1e9  # branches times blocks times vertices: bounds the memory
    most_tabulated: float = 5e4  # products of vertices that are tabulated rather than searched


@dataclass(frozen=True)
class Knapsack:
    """Branch and bound over the subsets of U, in leaves."""

    most_large_cells: int = 3  # whose choices are parts of their own from the beginning,
    large_cell: float = 0.1  # if they have at least this much of m
    first_steps: int = 4  # intervals of m(H) at the beginning
    beta_bisections: int = 2  # for the β that serves both ends of a leaf
    coarse_cell: float = 0.25  # of a leaf's range of m(H): a cell with more is branched on first
    most_leaves: int = 200
    leaves_per_split: int = 4
    closed: float = 3e-4  # excess of a leaf's bound over its best vertex that need not be smaller
    multipliers_per_leaf: int = 4  # next to the best one, at which a leaf is tightened


@dataclass(frozen=True)
class TauGrid:
    """The τ's at which columns are priced."""

    first: tuple[float, ...] = (0.0, 0.06, 0.13, 0.2, 0.4, 0.5, 0.6, 0.8, 1.0)  # log τ / ε
    breakpoints: tuple[float, ...] = (0.03, 0.1)  # more ends of intervals, where bounds are hard
    dominant_cell: float = 0.5  # of m: the τ at which such a cell changes its pattern is added


@dataclass(frozen=True)
class TauInterval:
    """Lagrangian bounds on the reduced cost of columns with one τ, or between two."""

    spread_multipliers: int = 5  # over the whole range of λ
    offsets: tuple[float, ...] = (-0.1, -0.02, 0.0, 0.02, 0.1)  # of λ around the best so far;
    near: float = 0.05  # distance within which bounds are tightened
    beyond: tuple[float, ...] = (0.5, 1.5, 3.0, 5.0, 8.0, 12.0)  # above the range: duals may be off
    first_multipliers: int = 4  # for a first bound of every s*
    focused_stars: int = 2  # s* whose best λ is refined
    stalled_rounds: int = 3  # after which tightening ends
    stalled: float = 0.8  # of the excess over the target: a round that leaves more has stalled
    vertices_of_star: int = 8  # that are kept beside its bound
    most_part_choices: int = 500  # combinations of one part from every block


@dataclass(frozen=True)
class ColumnSearch:
    """Branch and bound for whole columns."""

    most_branches: int = 3000  # and vertices of one block that are not excluded
    most_columns: int = 60  # taken from one search
    factor: float = 1.2  # from the target and the best column found to the next target


@dataclass(frozen=True)
class DualSmoothing:
    """The step from the duals of the best bound towards the duals of the master."""

    first_step: float = 0.3
    least_step: float = 0.1
    factor: float = 1.25  # by which it grows if the bound falls in this direction, else shrinks


@dataclass(frozen=True)
class RelaxedMaster:
    """The restricted master in which blocks choose their vertices independently."""

    tangents: int = 5  # to -p log(p/t) when a group begins
    most_group_rows: int = 700


@dataclass(frozen=True)
class RelaxedRounds:
    """Rounds of column generation on the relaxed master."""

    near: float = 0.01  # gap, relative to the value, that is small enough for this phase
    coupling_period: int = 5  # rounds between two couplings into whole columns
    unsmoothed_period: int = 3  # rounds of which one prices at the duals of the master itself
    coupling_loss: float = 3.0  # a gap below so many times the loss of coupling splits groups
    heavy_cell: float = 0.05  # of all records: cells whose level tells groups apart at first,
    least_heavy_cell: float = 0.01  # down to this
    least_level: float = math.exp(-1)  # of T: lower levels are not told apart


@dataclass(frozen=True)
class LargeTables:
    """The phases of the search on large tables."""

    start_share: float = 0.05  # of the work that is left, for the duals to start from
    relaxed_share: float = 0.7  # for rounds on the relaxed master,
    improve_share: float = 0.2  # for whole columns, and for the rounds if the last proof took long
    repeat_share: float = 0.85  # after which no phase is repeated
    proof_reserve: float = 1.5  # times the last proof's work is kept for the next one
    closed_gap: float = 5e-4  # relative gap that counts as closed
    slow: float = 0.01  # of the gap: a round that closes less is slow
    slowest: float = 2e-3  # of the gap: if all phases close less, the search ends
    slow_rounds: int = 6  # after which a phase ends
    least_reduced_cost: float = 1e-6  # nats: columns with less are not added
    gap_share: float = 0.35  # of the gap: what a column should close, or another τ may add
    least_interval: float = 1e-3  # of τ, relative: it is not bisected further
    taus: int = 3  # that give columns in one round, and that join the grid after one proof


@dataclass(frozen=True)
class Settings:
    """All groups of settings."""

    tolerances: Tolerances = Tolerances()
    methods: Methods = Methods()
    exact: ExactPricing = ExactPricing()
    knapsack: Knapsack = Knapsack()
    grid: TauGrid = TauGrid()
    interval: TauInterval = TauInterval()
    columns: ColumnSearch = ColumnSearch()
    smoothing: DualSmoothing = DualSmoothing()
    relaxed: RelaxedMaster = RelaxedMaster()
    rounds: RelaxedRounds = RelaxedRounds()
    large: LargeTables = LargeTables()


SETTINGS = Settings()
