"""What a questionnaire leaks to whom: each block, readers who know other answers, several waves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rldp.auditing.audit import Audit, audit
from rldp.auditing.guarantees import AuditedGuarantee
from rldp.channel import DenseChannel
from rldp.checks import checked_integer
from rldp.errors import DataError, ParameterError
from rldp.protocol.questionnaire import Questionnaire
from rldp.protocol.release_protocol import ReleaseProtocol
from rldp.tables.parts import Part
from rldp.tables.read_tables import read_tables
from rldp.tables.table import Table
from rldp.uncertainty import Guarantee, UncertaintySet

MOST_CELLS = 1_000  # of a joint table of two columns that is audited

Names = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class QuestionnaireAudit:
    """What ε the report of a questionnaire really has, in nats.

    Attributes:
        questionnaire: what was audited.
        blocks: the audit of each block by its name.
        epsilon_knows: for each other column that someone may know of the person, the largest ε of a
            report of each block, over F around the joint table; empty where no data were given. A
            report of a block whose columns are all known has the block's `epsilon_given_u`.
        skipped: pairs (block, column) whose joint table is too large to audit.
    """

    questionnaire: Questionnaire
    blocks: Mapping[str, Audit]
    epsilon_knows: Mapping[str, Mapping[str, float]]
    skipped: tuple[tuple[str, str], ...] = ()

    @property
    def epsilon(self) -> float:
        """Against someone who knows nothing: the largest of any block."""
        return max(one.epsilon for one in self.blocks.values())

    @property
    def epsilon_given_u(self) -> float:
        """Against someone who knows all answers to useful questions, whatever is true."""
        return max(one.epsilon_given_u for one in self.blocks.values())

    @property
    def epsilon_all(self) -> float:
        """Whatever distribution is true, and whatever else is known."""
        return max(one.epsilon_all for one in self.blocks.values())

    @cached_property
    def worst_known(self) -> tuple[str, str, float] | None:
        """The column, the block and ε of the reader of one other answer who learns the most."""
        found = [
            (column, block, level)
            for column, levels in self.epsilon_knows.items()
            for block, level in levels.items()
        ]
        return max(found, key=lambda row: row[2], default=None)

    def waves(self, k: int) -> dict[str, float]:
        """Bounds for k fresh reports of one person, each of a block of its own draw.

        Given the record the reports are independent, and what two records with different S make
        likely differs by `epsilon_all` at most. So all but one of k reports cost that much over F;
        someone who knows all answers, and whatever is true, k times the level of one.
        """
        checked_integer(k, "waves", 1)
        return {
            "epsilon": self.epsilon + (k - 1) * self.epsilon_all,
            "epsilon_given_u": k * self.epsilon_given_u,
            "epsilon_all": k * self.epsilon_all,
        }


def audit_questionnaire(q: Questionnaire, data: Any = None, **reading: Any) -> QuestionnaireAudit:
    """Audit every block, and with data what readers learn who know other answers.

    Someone who knows the answer k to question U_k faces P(y|s,k) = Σ_u P(u|s,k) Q(y|s,u) in block
    U_j: the worst case over the set of the block's kind around the joint table of (S, U_j, U_k) is
    that of a reader of a part of U (`Audit.epsilon_given_part`) for the same channel.

    Args:
        q: a whole questionnaire.
        data: a frame or a file with all columns, or {(column, column): Table}.
        reading: options of `rldp.read_table`, such as missing.
    """
    if not isinstance(q, Questionnaire):
        raise ParameterError(
            f"Expected a whole questionnaire, which names its sets, got {type(q).__name__}."
        )
    blocks = {name: audit(p) for name, p in zip(q.names, q.blocks, strict=True)}
    if data is None:
        return QuestionnaireAudit(q, blocks, {})
    tables, skipped = _joint_tables(q, data, reading)
    knows: dict[str, dict[str, float]] = {}
    for name, p in zip(q.names, q.blocks, strict=True):
        own = tuple(column.name for column in p.schema.useful)
        for column in q.useful:
            table = None if column in own else tables.get((*own, column))
            if table is not None:
                knows.setdefault(column, {})[name] = _level(p, table, column)
    return QuestionnaireAudit(q, blocks, knows, tuple(skipped))


def _level(p: ReleaseProtocol, table: Table, column: str) -> float:
    """ε of a block's report over F around a joint table, for someone who knows the other column."""
    n_own = p.schema.n_u
    Q = np.repeat(p.matrix, table.n_u // n_own, axis=1)  # the other column is the least significant
    guarantee = Guarantee(_around(p.uncertainty, table), 1.0, knows=(column,))  # of any level
    return AuditedGuarantee(guarantee, DenseChannel(Q)).epsilon


def _around(F: UncertaintySet, table: Table) -> UncertaintySet:
    """A set of the same kind around another table."""
    kind: Any = type(F)
    found: UncertaintySet = kind(table, **F.arguments)
    return found


def _joint_tables(
    q: Questionnaire, data: Any, reading: Mapping[str, Any]
) -> tuple[dict[Names, Table], list[tuple[str, str]]]:
    """The table of S with each block and one other column, whose labels are those of the blocks."""
    labels = {column.name: column.labels for column in q.schema.sensitive + q.schema.useful}
    wanted: list[Names] = []
    skipped = []
    for name, p in zip(q.names, q.blocks, strict=True):
        own = tuple(column.name for column in p.schema.useful)
        for column in q.useful:
            if column in own:
                continue
            if p.schema.n_s * p.schema.n_u * len(labels[column]) > MOST_CELLS:
                skipped.append((name, column))
            else:
                wanted.append((*own, column))
    if isinstance(data, Mapping) and all(isinstance(table, Table) for table in data.values()):
        return _reordered(data, wanted, labels), skipped
    unordered = {frozenset(names): names for names in wanted}  # each set of columns is counted once
    counted = read_tables(
        data,
        [column.name for column in q.sensitive],
        list(unordered.values()),
        levels=labels,
        **reading,
    )
    return _reordered(counted, wanted, labels), skipped


def _reordered(
    tables: Mapping[Any, Table], wanted: list[Names], labels: Mapping[str, tuple[str, ...]]
) -> dict[Names, Table]:
    """Tables with their useful columns in the order of each block, the other column last."""
    by_set = {frozenset(column.name for column in t.schema.useful): t for t in tables.values()}
    found = {}
    for names in wanted:
        table = by_set.get(frozenset(names))
        if table is None:
            continue
        for column in table.schema.sensitive + table.schema.useful:
            if labels[column.name] != column.labels:
                raise DataError(
                    f"Expected the labels of the questionnaire in column {column.name!r} of the "
                    f"joint tables, got others.",
                    column=column.name,
                )
        part = Part.of(table.schema, names[:-1])  # rows (s, own), the other column as the rest
        rows = part.table(table)
        own = tuple(c for name in names[:-1] for c in part.columns if c.name == name)
        if own != part.columns:  # a block of several columns in another order
            sizes = [len(c.labels) for c in part.columns]
            order = [part.columns.index(c) for c in own]
            counts = rows.counts.reshape(table.n_s, *sizes, -1)
            counts = counts.transpose(0, *(1 + i for i in order), 1 + len(sizes))
        else:
            counts = rows.counts
        schema = type(table.schema)(table.schema.sensitive, (*own, *rows.schema.useful))
        found[names] = Table.from_schema(counts.reshape(table.n_s, -1), schema)
    return found
