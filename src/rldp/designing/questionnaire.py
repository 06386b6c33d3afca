"""Whole questionnaires: blocks of columns, a protocol for each, and the shares that draw them.

A person reports one block, S with its useful columns, so the promise of a block is that of the
whole report and blocks can be designed apart. What remains is how columns are grouped and how often
each block is drawn.

Shares. With the estimates of `rldp.estimation.questionnaire`, n reports and shares w, the sum of
the squared errors that the goal asks for is f(w)/n,

    f(w) = Σ_j r_j / w_j + tr D C(w),    C(w) = (Σ_k w_k I_k)⁺,

with r_j the part of block j that its margin of S does not tell, and D what the common margin adds.
Both terms are convex. Without the second the best shares are ∝ √r_j; with it the multiplicative
steps w_j ← w_j √(-∂f/∂w_j), scaled to sum 1, which are those of A-optimal designs, settle.

Groups. Columns are joined where the designs say that fewer people are needed: for each pair whose
joint table is small, a design of the joint block is compared with the designs of the two, and the
pair that lowers f the most is joined, until none does. Only what promises most is designed; the
promise is the change of f if the joint block told of its table as much as its parts do on average.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from rldp._types import Array
from rldp.checks import checked_mapping, checked_texts, checked_tuple, is_one_of, shown
from rldp.designing.problem import EFFORTS, checked_effort
from rldp.designing.processes import Job, designs, n_processes
from rldp.designing.stack import AUTO
from rldp.errors import DataError, ParameterError
from rldp.estimation.questionnaire import BlockLaw
from rldp.protocol.questionnaire import Questionnaire, exact_shares
from rldp.protocol.release_protocol import ReleaseProtocol
from rldp.tables.limits import MOST_CELLS_SEARCHED
from rldp.tables.parts import Part
from rldp.tables.read_tables import read_tables
from rldp.tables.schema import Column, Schema
from rldp.tables.table import Table
from rldp.uncertainty import ChiSquareSet, UncertaintySet
from rldp.utility.contrasts import each_cell, each_s, each_u
from rldp.utility.goal import Goal, S

TABLES, USEFUL, SENSITIVE = "tables", "useful", "sensitive"
GOALS = (TABLES, USEFUL, SENSITIVE)
SINGLE = "single"

_JOINT_CELLS = 120  # of a table of two columns that is tried as one block
_STEPS = 2_000  # multiplicative steps: shares are settled to 1e-6 after some hundred
_SETTLED = 1e-9  # against rounding: a change of shares that counts as none
_ROUNDS = 4  # joint blocks designed at most, as a multiple of the number of columns

Names = tuple[str, ...]
BlockProgress = Callable[[int, int, str], object]
SetMaker = Callable[..., UncertaintySet]


@dataclass(frozen=True)
class Workload:
    """What a questionnaire will take, known before its designs begin.

    Attributes:
        designs: number of blocks to design.
        processes: how many run at the same time; 0 for this process alone.
        seconds: nominal seconds of the searches at most, on processors of 2020.
        gigabytes: of memory at most, in all processes.
    """

    designs: int
    processes: int
    seconds: float
    gigabytes: float


def design_questionnaire(
    data: Any,
    sensitive: Any = None,
    useful: Any = None,
    epsilon: Any = 1.0,
    *,
    goal: Any = TABLES,
    blocks: Any = SINGLE,
    alpha: Any = 0.05,
    uncertainty: SetMaker = ChiSquareSet,
    missing: Any = "error",
    levels: Any = None,
    encoding: str | None = None,
    effort: str = "normal",
    workers: int | None = None,
    begun: Callable[[Workload], object] | None = None,
    progress: BlockProgress | None = None,
    **layers: Any,
) -> Questionnaire:
    """Design a questionnaire: one sensitive question or several, and any number of useful ones.

    Each person reports one block of columns, drawn with public shares, so that nothing composes:
    every promise of `rldp.design` holds for the report.

    Args:
        data: a frame, or the path of a CSV, Parquet or Arrow file of any size, read once; or
            {column: Table}, {(column, column): Table} for blocks of several.
        sensitive: name or names of the sensitive columns; of tables, theirs.
        useful: names of the useful columns; None means all others.
        epsilon: as in `rldp.design`. With several sensitive columns a mapping from each to its
            level, in which the key "all" may have that of all of them together; by default the sum.
        goal: "tables" (every P(S, U_j)), "useful" (every P(U_j)), "sensitive" (P(S)); a list of
            pairs of useful columns whose P(U_i, U_j) is wanted, which share a block then; or
            {name: weight} with names of useful columns for their tables, and "sensitive".
        blocks: "single" for one column each; "auto" joins columns where that needs fewer people;
            or a list of the columns of each block.
        alpha: the chance that the sample misleads the sets of any block, shared equally; or
            {column: α} for the block of that column.
        uncertainty: the kind of F, called with a table and, if it has one, alpha.
        missing: as in `rldp.read_table`; "drop" leaves a record out of tables whose values it
            misses.
        levels: column name → its labels in order.
        encoding: of a text file.
        effort: "quick", "normal" or "thorough", for every block.
        workers: processes at most; None for one on each processor where that is worth it.
        begun: called with the `Workload` once the tables are counted, before the first design.
        progress: called with the number of designs that are done, that of all so far planned, and
            the name of the last one.
        layers: `epsilon_given_u`, `epsilon_all`, `epsilon_given_part` and `protocol` as in
            `rldp.design`.

    >>> import rldp
    >>> tables = {"sex": rldp.datasets.adult(sensitive="race", useful="sex")}
    >>> q = design_questionnaire(tables, epsilon=1.0, effort="quick")
    >>> q.names, q.weights.tolist(), q.epsilon
    (('sex',), [1.0], 1.0)
    """
    checked_effort(effort)
    _check_layers(layers)
    if not callable(uncertainty):
        raise ParameterError(
            f"Expected a kind of set such as ChiSquareSet, got {shown(uncertainty)}.",
            argument="uncertainty",
        )
    wanted = _Wanted.of(goal)
    tables, pairs = _tables(data, sensitive, useful, blocks, wanted, missing, levels, encoding)
    chosen = list(tables)
    if not chosen:
        raise ParameterError("Expected a useful column or more, got none.", argument="useful")
    if begun is not None:
        begun(workload([tables[block] for block in chosen], effort, workers))
    budget = _Budget.of(alpha, chosen, uncertainty)
    columns = next(iter(tables.values())).schema.sensitive
    joint = _joint_levels(epsilon, columns)
    plan = _Plan(wanted, budget, joint, {**layers, "effort": effort}, workers, progress)
    found = plan.designed([tables[block] for block in chosen])
    laid = [_Laid(block, tables[block], p, wanted) for block, p in zip(chosen, found, strict=True)]
    if is_one_of(blocks, [AUTO]):
        laid = plan.joined(laid, pairs)
    weights = shares(laid, wanted)
    return Questionnaire(
        tuple(each.protocol for each in laid), exact_shares(weights.tolist()), alpha=budget.total
    )


def workload(
    tables: Sequence[Table], effort: str = "normal", workers: int | None = None
) -> Workload:
    """What designing these blocks will take at most."""
    jobs = [Job(ChiSquareSet(table), 1.0, {}) for table in tables]
    n = n_processes(jobs, workers)
    each = EFFORTS[effort].rounds_work
    return Workload(len(jobs), n, each * math.ceil(len(jobs) / max(1, n)), 1.0 * max(1, n))


@dataclass(frozen=True)
class _Wanted:
    """What estimates shall be close to: weights of tables, of margins of U, of P(S), and pairs."""

    kind: str
    weights: Mapping[str, float]
    pairs: tuple[Names, ...] = ()

    @classmethod
    def of(cls, goal: Any) -> _Wanted:
        if isinstance(goal, str):
            if goal not in GOALS:
                raise ParameterError(
                    f"Expected a goal among {', '.join(GOALS)}, pairs of useful columns, or "
                    f"weights, got {shown(goal)}.",
                    argument="goal",
                )
            return cls(goal, {})
        if isinstance(goal, Mapping):
            weights = {}
            for name, weight in goal.items():
                is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
                if not isinstance(name, str) or not is_number or not 0 < weight < 1e9:
                    raise ParameterError(
                        f"Expected weights above 0 by names of columns, got {shown(name)}: "
                        f"{shown(weight)}.",
                        argument="goal",
                    )
                weights[name] = float(weight)
            return cls("weights", weights)
        given = checked_tuple(
            goal, "a goal: a word, pairs of useful columns, or weights", argument="goal"
        )
        listed = [checked_texts(pair, "names of two columns", argument="goal") for pair in given]
        if not listed or any(len(set(pair)) != 2 for pair in listed):
            raise ParameterError(
                "Expected pairs of two different useful columns as a goal.", argument="goal"
            )
        return cls("pairs", {}, tuple(listed))

    @property
    def joined(self) -> list[Names]:
        """The blocks that the pairs ask for: columns that are linked by pairs."""
        groups: list[set[str]] = []
        for pair in self.pairs:
            apart = [group for group in groups if group.isdisjoint(pair)]
            linked = [group for group in groups if not group.isdisjoint(pair)]
            groups = [*apart, set(pair).union(*linked)]
        return [tuple(sorted(group)) for group in groups]

    def check(self, useful: Sequence[str]) -> None:
        """Refuse names that are no useful columns."""
        named = [*(name for pair in self.pairs for name in pair), *self.weights]
        for name in named:
            if name not in useful and name != SENSITIVE:
                raise ParameterError(
                    f"Expected useful columns in the goal, got {shown(name)}.", argument="goal"
                )

    @property
    def of_s(self) -> float:
        """How much the squared errors of P(S) count."""
        if self.kind == SENSITIVE:
            return 1.0
        return self.weights.get(SENSITIVE, 0.0)

    def functionals(self, schema: Schema) -> Goal:
        """What is asked of the table of one block, beside P(S)."""
        n_s, n_u = schema.n_s, schema.n_u
        names = [column.name for column in schema.useful]
        if self.kind == SENSITIVE or (self.weights and not set(names) & set(self.weights)):
            return Goal(each_s(n_s, n_u), name=S)
        if self.kind == "pairs":
            listed = [pair for pair in self.pairs if set(pair) <= set(names)]
            parts = [_sums(schema, pair) for pair in listed] or [each_u(n_s, n_u)]
            return Goal(np.concatenate([_distinct(part) for part in parts]), name="pairs")
        if self.kind == USEFUL:
            return Goal(np.concatenate([_sums(schema, (name,)) for name in names]), name="u")
        rows, weights = [], []
        for name in names:
            weight = self.weights.get(name, 0.0) if self.weights else 1.0
            if weight:
                of_u = _sums(schema, (name,))
                cells = np.concatenate([_within(of_u, s) for s in range(n_s)])
                rows.append(cells if len(names) > 1 else each_cell(n_s, n_u))
                weights += [weight] * len(rows[-1])
        name = "cells" if len(names) == 1 else "tables"
        return Goal(np.concatenate(rows), np.array(weights), name=name)


def _sums(schema: Schema, names: Names) -> Array:
    """Coefficients of P(U_i = u, ...) for these columns, shape (values, n_s, n_u)."""
    n_s, n_u = schema.n_s, schema.n_u
    if len(names) == len(schema.useful):
        return np.array(each_u(n_s, n_u))
    cells = Part.of(schema, names).cells
    found = np.zeros((len(cells), n_s, n_u))
    for k, codes in enumerate(cells):
        found[k][:, codes] = 1
    return found


def _within(functionals: Array, s: int) -> Array:
    """The same within one value of S."""
    found = np.zeros_like(functionals)
    found[:, s] = functionals[:, s]
    return found


def _distinct(functionals: Array) -> Array:
    return np.asarray(functionals, dtype=float)


@dataclass(frozen=True)
class _Budget:
    """The α of each block."""

    total: float | None
    by_name: Mapping[str, float]
    kind: SetMaker

    @classmethod
    def of(cls, alpha: Any, blocks: Sequence[Names], kind: SetMaker) -> _Budget:
        parameters = {p.name for p in getattr(getattr(kind, "func", kind), "parameters", ())}
        if "alpha" not in parameters:
            return cls(None, {}, kind)
        if isinstance(alpha, Mapping):
            given = {}
            for name, value in checked_mapping(alpha, "{column: α}", "alpha").items():
                if not any(name in block for block in blocks):
                    raise ParameterError(
                        f"Expected α for useful columns, got one for {shown(name)}.",
                        argument="alpha",
                    )
                given[name] = _share(value)
            lacking = [block for block in blocks if not set(block) & set(given)]
            if lacking:
                raise ParameterError(
                    f"Expected an α for the block of {lacking[0][0]!r} too.", argument="alpha"
                )
            total = float(sum(given.values()))
            return cls(_not_below(given.values(), total), given, kind)
        total = _share(alpha)
        each = _part(total, len(blocks))
        by_name = {name: _part(each, len(block)) for block in blocks for name in block}
        return cls(total, by_name, kind)

    def around(self, table: Table) -> UncertaintySet:
        """F of a block. A block of several columns has the α of all of them."""
        if self.total is None:
            return self.kind(table)
        alphas = [self.by_name[c.name] for c in table.schema.useful if c.name in self.by_name]
        exact = sum(map(Fraction, alphas), Fraction(0))
        alpha = float(exact)
        while Fraction(alpha) > exact:
            alpha = float(np.nextafter(alpha, 0))
        return self.kind(table, alpha=alpha)


def _part(total: float, n: int) -> float:
    """The largest float of which n do not sum to more than the total."""
    each = total / n
    while Fraction(each) * n > Fraction(total):
        each = float(np.nextafter(each, 0))
    return each


def _not_below(alphas: Any, total: float) -> float:
    """A float that is no less than the exact sum."""
    exact = sum(map(Fraction, alphas), Fraction(0))
    while Fraction(total) < exact:
        total = float(np.nextafter(total, 1))
    return total


def _share(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value < 1:
        raise ParameterError(
            f"Expected alpha between 0 and 1, such as 0.05, got {shown(value)}.", argument="alpha"
        )
    return float(value)


def _check_layers(layers: Mapping[str, Any]) -> None:
    known = ("epsilon_given_u", "epsilon_all", "epsilon_given_part", "protocol")
    for name in layers:
        if name not in known:
            raise ParameterError(
                f"Expected options of a questionnaire, such as {', '.join(known)}, got {name!r}.",
                argument=name,
            )


def _joint_levels(epsilon: Any, columns: tuple[Column, ...]) -> Any:
    """ε, or the levels of pairs of S values that keep the level of every sensitive column.

    A pair that differs in some columns has the least of their levels: then P(y|s_i), a mean over
    the values of the other columns, keeps that of column i, whatever these are.
    """
    names = [column.name for column in columns]
    if not isinstance(epsilon, Mapping) or not all(isinstance(key, str) for key in epsilon):
        return epsilon
    given = dict(epsilon)
    joint = given.pop("all", None)
    if set(given) != set(names):
        raise ParameterError(
            f"Expected a level for each sensitive column, {', '.join(names)}, and for nothing "
            f"else but 'all', got {', '.join(map(shown, epsilon)) or 'none'}.",
            argument="epsilon",
        )
    values = {name: _level(name, value) for name, value in given.items()}
    most = sum(values.values()) if joint is None else _level("all", joint)
    sizes = [len(column.labels) for column in columns]
    codes = np.array(np.unravel_index(np.arange(math.prod(sizes)), sizes))
    levels = np.full((codes.shape[1],) * 2, most)
    for name, code in zip(names, codes, strict=True):
        differs = code[:, None] != code[None, :]
        levels = np.where(differs, np.minimum(levels, values[name]), levels)
    if len(names) == 1:
        return float(min(most, values[names[0]]))
    return levels


def _level(name: str, value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value <= 100:
        raise ParameterError(
            f"Expected a level above 0 and up to 100 for {name!r}, got {shown(value)}.",
            argument="epsilon",
        )
    return float(value)


def _tables(
    data: Any,
    sensitive: Any,
    useful: Any,
    blocks: Any,
    wanted: _Wanted,
    missing: Any,
    levels: Any,
    encoding: str | None,
) -> tuple[dict[Names, Table], dict[Names, Table]]:
    """The table of each block, and those of pairs that may become one."""
    is_auto = is_one_of(blocks, [AUTO])
    if isinstance(data, Mapping) and data and all(isinstance(x, Table) for x in data.values()):
        found = _given_tables(data, sensitive, useful)
        return _grouped(found, blocks, wanted)
    if sensitive is None:
        raise ParameterError(
            "Expected the name or names of the sensitive columns.", argument="sensitive"
        )
    names = None if useful is None else checked_texts(useful, "names of columns", argument="useful")
    listed: list[Names] | None = None if names is None else [(name,) for name in names]
    if not is_one_of(blocks, [AUTO, SINGLE]):
        listed = _listed(blocks, names)
    elif wanted.joined:
        inside = {name for group in wanted.joined for name in group}
        if names is None:
            raise ParameterError(
                "Expected the names of the useful columns beside pairs as a goal.",
                argument="useful",
            )
        wanted.check(names)
        listed = [*wanted.joined, *((name,) for name in names if name not in inside)]
    counted = read_tables(
        data,
        sensitive,
        listed,
        pairs_within=_JOINT_CELLS if is_auto else 0,
        missing=missing,
        levels=levels,
        cells_limit=MOST_CELLS_SEARCHED,
        encoding=encoding,
    )
    columns = {name for block in counted for name in block}
    wanted.check(sorted(columns))
    if listed is None:
        listed = [block for block in counted if len(block) == 1]
    return {b: counted[b] for b in listed}, {b: t for b, t in counted.items() if b not in listed}


def _listed(blocks: Any, names: Sequence[str] | None) -> list[Names]:
    """Blocks as they are given; columns that none of them has stand alone."""
    if isinstance(blocks, str) or not isinstance(blocks, Sequence):
        raise ParameterError(
            f"Expected blocks as 'single', 'auto', or a list of the columns of each, got "
            f"{shown(blocks)}.",
            argument="blocks",
        )
    listed = [checked_texts(block, "names of columns", argument="blocks") for block in blocks]
    inside = [name for block in listed for name in block]
    twice = next((name for i, name in enumerate(inside) if name in inside[:i]), None)
    if twice is not None or not all(listed):
        raise ParameterError(
            f"Expected every column in one block, {twice!r} is in two."
            if twice is not None
            else "Expected a column in every block.",
            argument="blocks",
        )
    if names is not None:
        unknown = [name for name in inside if name not in names]
        if unknown:
            raise ParameterError(
                f"Expected useful columns in blocks, got {shown(unknown[0])}.", argument="blocks"
            )
        listed += [(name,) for name in names if name not in inside]
    return listed


def _given_tables(data: Mapping[Any, Table], sensitive: Any, useful: Any) -> dict[Names, Table]:
    found: dict[Names, Table] = {}
    for key, table in data.items():
        names = checked_texts(key, "names of columns", argument="data")
        columns = table.schema.useful
        if len(columns) != len(names):
            raise DataError(
                f"Expected a table with {len(names)} useful columns under {shown(key)}, got "
                f"{len(columns)}."
            )
        named = tuple(Column(n, c.labels) for n, c in zip(names, columns, strict=True))
        schema = Schema(table.schema.sensitive, named)
        found[names] = Table.from_schema(table.counts, schema, dropped=table.dropped)
    first = next(iter(found.values())).schema.sensitive
    for block, table in found.items():
        if table.schema.sensitive != first:
            raise DataError(
                f"Expected the same sensitive columns and labels in all tables, that of "
                f"{', '.join(block)} has others.",
                argument="data",
            )
    names = tuple(column.name for column in first)
    if sensitive is not None and checked_texts(sensitive, "names of columns") != names:
        raise DataError(f"Expected tables of the sensitive columns {shown(sensitive)}.")
    if useful is not None:
        chosen = checked_texts(useful, "names of columns", argument="useful")
        found = {block: table for block, table in found.items() if set(block) <= set(chosen)}
        missing = [name for name in chosen if not any(name in block for block in found)]
        if missing:
            raise DataError(f"Expected a table for column {missing[0]!r}, there is none.")
    return found


def _grouped(
    found: dict[Names, Table], blocks: Any, wanted: _Wanted
) -> tuple[dict[Names, Table], dict[Names, Table]]:
    """Given tables as blocks: those of single columns, or those that are asked for."""
    columns = sorted({name for block in found for name in block})
    wanted.check(columns)
    if not is_one_of(blocks, [AUTO, SINGLE]):
        listed = _listed(blocks, None)
    else:
        inside = {name for group in wanted.joined for name in group}
        singles = [block for block in found if len(block) == 1 and block[0] not in inside]
        covered = {name for block in singles for name in block}
        joint = [b for b in found if len(b) > 1 and not set(b) & covered]
        listed = [*singles, *joint]
    by_set = {frozenset(block): table for block, table in found.items()}
    chosen = {}
    for block in listed:
        if frozenset(block) not in by_set:
            raise DataError(f"Expected a table of {' and '.join(block)}, there is none.")
        chosen[block] = by_set[frozenset(block)]
    others = {block: table for block, table in found.items() if block not in chosen}
    return chosen, {block: table for block, table in others.items() if len(block) == 2}


class _Laid:
    """A block with its design, and what counts for the shares: r, D and the information on S."""

    def __init__(
        self, names: Names, table: Table, protocol: ReleaseProtocol, wanted: _Wanted
    ) -> None:
        """Take the design apart."""
        self.names, self.table, self.protocol = names, table, protocol
        self.law = law = BlockLaw(protocol)
        own = law.covariance - law.carry @ law.M @ law.covariance
        A = np.zeros((law.covariance.shape[0], 0))
        if wanted.kind != SENSITIVE:
            A = wanted.functionals(table.schema).matrix()
            if wanted.weights and not set(names) & set(wanted.weights):
                A = A[:, :0]
        self.rest = float(np.einsum("xi,xy,yi->", A, own, A))
        of_s = law.carry.T @ A
        self.on_margin = of_s @ of_s.T
        self.total = float(np.einsum("xi,xy,yi->", A, law.covariance, A))


def shares(laid: Sequence[_Laid], wanted: _Wanted) -> Array:
    """The best shares of blocks; their f is `error_of`."""
    w = np.full(len(laid), 1 / len(laid))
    for _ in range(_STEPS):
        slope = _slopes(laid, w, wanted)
        step = w * np.sqrt(np.maximum(slope, 0))
        step = np.maximum(step / step.sum(), 1e-6)
        step /= step.sum()
        is_settled = float(np.abs(step - w).max()) < _SETTLED
        w = step
        if is_settled:
            break
    return np.asarray(w)


def error_of(laid: Sequence[_Laid], w: Array, wanted: _Wanted) -> float:
    """f(w): the sum of the squared errors that count, times the number of reports."""
    C, D = _margin(laid, w, wanted)
    rest = sum(each.rest / share for each, share in zip(laid, w, strict=True))
    return float(rest + np.sum(D * C))


def _slopes(laid: Sequence[_Laid], w: Array, wanted: _Wanted) -> Array:
    """-∂f/∂w."""
    C, D = _margin(laid, w, wanted)
    CDC = C @ D @ C
    return np.array(
        [
            each.rest / share**2 + np.sum(CDC * each.law.information)
            for each, share in zip(laid, w, strict=True)
        ]
    )


def _margin(laid: Sequence[_Laid], w: Array, wanted: _Wanted) -> tuple[Array, Array]:
    """C(w) and D."""
    pairs = zip(laid, w, strict=True)
    information = np.sum([share * each.law.information for each, share in pairs], axis=0)
    D = np.sum([each.on_margin for each in laid], axis=0) + wanted.of_s * np.eye(len(information))
    return np.linalg.pinv(information, rcond=1e-9, hermitian=True), D


@dataclass
class _Plan:
    """Designs of blocks, and which of them become one."""

    wanted: _Wanted
    budget: _Budget
    epsilon: Any
    options: Mapping[str, Any]
    workers: int | None
    progress: BlockProgress | None
    done: int = 0
    planned: int = 0

    def designed(self, tables: Sequence[Table]) -> list[ReleaseProtocol]:
        """The protocol of each table."""
        jobs = [
            Job(
                self.budget.around(table),
                self.epsilon,
                {**self.options, "goal": self._goal(table.schema)},
            )
            for table in tables
        ]
        self.planned += len(jobs)
        names = [" + ".join(c.name for c in table.schema.useful) for table in tables]

        def tell(i: int) -> None:
            self.done += 1
            if self.progress is not None:
                self.progress(self.done, self.planned, names[i])

        return designs(jobs, self.workers, tell)

    def _goal(self, schema: Schema) -> Any:
        goal = self.wanted.functionals(schema)
        is_plain = len(schema.useful) == 1 and bool((goal.weights == goal.weights[0]).all())
        named = {"cells": "cells", "u": "u", S: "s"}
        return named[goal.name] if is_plain and goal.name in named else goal

    def joined(self, laid: list[_Laid], pairs: Mapping[Names, Table]) -> list[_Laid]:
        """Join pairs of single columns while the designs say that it needs fewer people."""
        tried: dict[Names, _Laid] = {}
        while True:
            now = error_of(laid, shares(laid, self.wanted), self.wanted)
            open_pairs = self._candidates(laid, pairs, now)
            fresh = [pair for pair in open_pairs if pair not in tried][: len(laid)]
            if len(tried) + len(fresh) > _ROUNDS * (len(laid) + len(tried)):
                fresh = []
            found = self.designed([pairs[pair] for pair in fresh])
            for pair, p in zip(fresh, found, strict=True):
                tried[pair] = _Laid(pair, pairs[pair], p, self.wanted)
            best, least = None, now * (1 - 1e-3)
            for pair in open_pairs:
                if pair in tried:
                    option = _with(laid, tried[pair])
                    error = error_of(option, shares(option, self.wanted), self.wanted)
                    if error < least:
                        best, least = option, error
            if best is None:
                return laid
            laid = best

    def _candidates(
        self, laid: Sequence[_Laid], pairs: Mapping[Names, Table], now: float
    ) -> list[Names]:
        """Pairs of single columns that could be joined, what promises most first."""
        alone = {each.names[0]: each for each in laid if len(each.names) == 1}
        promise = {}
        for pair in pairs:
            if all(name in alone for name in pair):
                a, b = (alone[name].total for name in pair)
                others = [math.sqrt(each.total) for each in laid if each.names[0] not in pair]
                cells = pairs[pair].counts.size
                # one block that told both tables as well as each block its own
                joint = (sum(others) + math.sqrt(a + b)) ** 2
                promise[pair] = (joint / max(now, 1e-300), cells)
        return sorted(promise, key=lambda pair: (promise[pair], pair))


def _with(laid: Sequence[_Laid], joint: _Laid) -> list[_Laid]:
    """The blocks with a joint one in the place of the first of its parts."""
    found = []
    for each in laid:
        if each.names[0] == joint.names[0] and len(each.names) == 1:
            found.append(joint)
        elif not (len(each.names) == 1 and each.names[0] in joint.names):
            found.append(each)
    return found
