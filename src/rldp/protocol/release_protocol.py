"""A release protocol: the integer table that runs, what it was designed from, and its proof."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from rldp._types import Array
from rldp.channel import Channel, IntegerParts
from rldp.checks import shown
from rldp.decimals import shortest
from rldp.display import Displayed, Grid, nats
from rldp.errors import ParameterError
from rldp.estimation.mixin import Estimating
from rldp.io.atomic_files import PRIVATE, write_text
from rldp.proof import ProofError, check
from rldp.protocol import documents
from rldp.protocol.documents import WHOLE, file_text
from rldp.protocol.guarantees import (
    CertifiedGuarantee,
    Claim,
    file_version,
    plain_proof_document,
    promises_from,
    proof_document,
)
from rldp.protocol.public_protocol import FilePath, PublicProtocol, table_entries, table_from
from rldp.release.mixin import Releasing
from rldp.tables.schema import Schema
from rldp.tables.table import Table
from rldp.uncertainty import AllDistributions, GivenU, Guarantee, UncertaintySet
from rldp.utility.goal import CELLS, GOALS, IN_POLYOPT, WITH_GUARANTEES, Goal, GoalError

if TYPE_CHECKING:
    from rldp.utility.robust import RobustUtility

Parameter = float | tuple[float, ...]
CLOSED, WORK, TIME, INTERRUPTED = "closed", "work", "time", "interrupted"  # how a search ended
_ERROR_BOUNDS = "error_bound", "largest_error_bound"


@dataclass(frozen=True, eq=False)
class ReleaseProtocol(Displayed, Releasing, Estimating):
    """A channel Q(y|s,u) that is provably (ε, F)-RLDP, with what it was designed from.

    Formal guarantee: for every (F, E) in `guarantees`, every P in F, every output y and all s ≠ s'
    that have positive probability, P(Y=y|S=s) ≤ e^E[s,s'] P(Y=y|S=s'); with `knows` the same holds
    for the conditionals given each value of these columns of U. The first has the set
    `uncertainty` and the largest level `epsilon`; most protocols have no other. All speak of the
    integer table, `integers` in units of 2^-bits, of which `channel` and `matrix` are the view in
    floats. `certificate` proves the first, those in `others` prove the others, and `rldp.verify`
    checks all of them again.
    """

    name: str
    epsilon: float
    uncertainty: UncertaintySet
    channel: Channel
    integers: IntegerParts
    bits: int
    certificate: Mapping[str, Any]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)  # how it was asked for
    optimality_gap: float | None = None
    rounding_loss: float = 0.0  # nats that the designed channel had more than its integer table
    ended: str = CLOSED  # how its search ended: closed, work, time, interrupted; no file tells
    goal: Goal | None = None  # what it was designed for, where a file cannot tell by name
    levels: Array | None = None  # of the first guarantee, where pairs of S values differ
    others: tuple[CertifiedGuarantee, ...] = ()  # what it promises beside

    def __post_init__(self) -> None:
        """Make everything read-only, and give ε and the levels one spelling."""
        object.__setattr__(self, "epsilon", float(self.epsilon))
        if self.levels is not None:
            first = Guarantee(self.uncertainty, self.levels)
            object.__setattr__(self, "epsilon", first.epsilon)
            object.__setattr__(self, "levels", None if first.is_uniform else first.levels)
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))
        object.__setattr__(self, "options", MappingProxyType(dict(self.options)))
        object.__setattr__(self, "certificate", MappingProxyType(dict(self.certificate)))
        for N in self.integers.values():
            N.setflags(write=False)

    @cached_property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """All that is promised; the set of the first is `uncertainty`."""
        return tuple(guarantee for guarantee, _ in self._proved)

    @property
    def _is_plain(self) -> bool:
        """Whether it promises one level over one set, which files of version 1 can say."""
        return self.levels is None and not self.others

    @cached_property
    def _proved(self) -> tuple[CertifiedGuarantee, ...]:
        levels = self.epsilon if self.levels is None else self.levels
        first = CertifiedGuarantee(Guarantee(self.uncertainty, levels), self.certificate)
        return (first, *self.others)

    @cached_property
    def is_proved(self) -> bool:
        """Whether the certificates prove all guarantees; it is checked when first asked for."""
        try:
            check(self.document())
        except (ParameterError, ProofError):  # an ε that is none is not proved either
            return False
        return True

    @property
    def table(self) -> Table:
        """The public sample that the protocol was designed from."""
        return self.uncertainty.table

    @property
    def schema(self) -> Schema:
        """The alphabets of S and U."""
        return self.table.schema

    @property
    def frequencies(self) -> Array:
        """P̂ of the sample, shape (n_s, n_u)."""
        return self.table.p_su

    @property
    def matrix(self) -> Array:
        """Q[s, u, y], shape (n_s, n_u, n_y); the last axis sums to 1."""
        return self.channel.matrix

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the public version: the hash that stands in a public protocol file."""
        return self.public().fingerprint

    @cached_property
    def _utility_bounds(self) -> tuple[float, float]:
        return self.channel.mutual_information_bounds(self.table.p_su)

    @property
    def utility(self) -> float:
        """I(X;Y) in nats at the design distribution P̂."""
        return sum(self._utility_bounds) / 2

    @property
    def utility_error(self) -> float:
        """How far `utility` can be from the exact value, rounding apart; 0 where it is exact."""
        low, high = self._utility_bounds
        return (high - low) / 2

    @property
    def normalised_utility(self) -> float:
        """I(X;Y)/H(X): the share of the information on X that is kept."""
        return self.utility / self.table.entropy if self.table.entropy > 0 else 0.0

    @property
    def relative_gap(self) -> float | None:
        """The optimality gap as a share of the utility; ∞ where there is none of that."""
        if self.optimality_gap is None or self.optimality_gap == 0:
            return self.optimality_gap
        return self.optimality_gap / self.utility if self.utility > 0 else math.inf

    @property
    def is_interrupted(self) -> bool:
        """Whether Ctrl-C ended its search."""
        return self.ended == INTERRUPTED

    @cached_property
    def error(self) -> GoalError:
        """The errors of estimates of its goal, of the cells of the table where it has no other.

        They are those of the best unbiased estimates at the frequencies of the design sample; where
        a unary channel has too many outputs for these, those of `estimate`.
        """
        from rldp.estimation.goal_errors import channel_error  # for planning, not for releases

        name = self.options.get("goal", CELLS)
        if self.goal is None and name not in GOALS:
            raise ParameterError(
                f"Expected the functionals of the goal {shown(name)}, which a file does not hold. "
                f"Make it again and take dataclasses.replace(p, goal=rldp.Goal(...)).error.",
                argument="goal",
            )
        goal = self.goal or Goal.named(name, self.table)
        given = self.parameters
        is_of_polyopt = any(f"polyopt_{key}" in given for key in _ERROR_BOUNDS)
        prefix = "polyopt_" if is_of_polyopt else ""
        bound, largest = (given.get(prefix + key) for key in _ERROR_BOUNDS)
        found = channel_error(self.channel, goal, self.table, bound, largest)
        among = IN_POLYOPT if is_of_polyopt else WITH_GUARANTEES
        return replace(found, among=among, bound_by=self.options.get("error_bound_by"))

    def mutual_information(self, p_su: ArrayLike) -> float:
        """I(X;Y) in nats at any distribution of (S, U), shape (n_s, n_u)."""
        return self.channel.mutual_information(p_su)

    def robust_utility(self, F: UncertaintySet | None = None) -> RobustUtility:
        """min I(X;Y) in nats over F, the protocol's own set unless another is given."""
        from rldp.utility.robust import robust_utility  # only designers need scipy

        return robust_utility(self.channel, self.uncertainty if F is None else F)

    def public(self) -> PublicProtocol:
        """The version for clients: table and schema, without the design sample."""
        claims = () if self._is_plain else tuple(map(Claim.of, self.guarantees))
        return PublicProtocol(
            self.name, self.epsilon, self.schema, self.channel, self.integers, self.bits, claims
        )

    def document(self) -> documents.Document:
        """The protocol as plain JSON values: what `save` writes and `rldp.verify` checks."""
        if self._is_plain:
            proof = plain_proof_document(self.uncertainty, self.certificate)
        else:
            proof = proof_document(self._proved)
        version = 1 if self._is_plain else file_version(self.guarantees)
        return table_entries(self.public(), WHOLE, version) | {
            "options": dict(self.options),
            "parameters": documents.parameters_document(self.parameters),
            **proof,
            "optimality_gap": self.optimality_gap,
            "rounding_loss": self.rounding_loss,
        }

    def save(self, path: FilePath) -> None:
        """Write the protocol as JSON, all or nothing.

        The file holds the counts of the table: a new one can be read by its owner alone.
        """
        write_text(path, file_text(self.document()), PRIVATE)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles go through the document, so that they are read-only too."""
        return release_protocol_from, (self.document(),)

    def _grid(self) -> Grid:
        sides = self.schema.sensitive, self.schema.useful
        s, u = (" × ".join(column.name for column in side) for side in sides)
        heads = ("proved against", "ε", "odds change by at most")
        rows = tuple(
            (_reader(g), nats(g.epsilon), f"{np.exp(g.epsilon):.4g}") for g in self.guarantees
        )
        notes = ["Any other reader: nothing is promised."]
        if any(type(g.uncertainty) is AllDistributions for g in self.guarantees):
            notes = []
        if self.goal is not None and self.error.is_estimable:
            needed = self.error.reports(0.01)
            what = "every cell" if self.goal.name == CELLS else "all that the goal asks"
            notes.append(f"{needed:,.0f} people give ± 1 percentage point on {what}.")
        return Grid(
            f"Protocol {self.name}: S = {s}, U = {u or 'nothing'}", heads, rows, tuple(notes)
        )

    def __repr__(self) -> str:
        """Name, ε and what is kept."""
        return (
            f"<ReleaseProtocol {self.name}: epsilon {shortest(self.epsilon)}, "
            f"{self.utility / np.log(2):.4f} bits, {self.normalised_utility:.1%} of H(X)>"
        )


def _reader(guarantee: Guarantee) -> str:
    """Whom a guarantee is about."""
    kind = type(guarantee.uncertainty)
    if guarantee.knows:
        return f"someone who knows only {' and '.join(guarantee.knows)}, for the truth in F"
    if kind is GivenU:
        return "someone who knows U, whatever is true"
    if kind is AllDistributions:
        return "anyone, whatever is true"
    return "someone who knows nothing else, for the truth in F"


def release_protocol_from(document: documents.Document) -> ReleaseProtocol:
    """The protocol of a whole document, each entry of which is checked by itself."""
    p = table_from(document)
    gap = documents.typed(document, "optimality_gap", object)
    first, *others = promises_from(document, p.schema)
    return ReleaseProtocol(
        name=p.name,
        epsilon=p.epsilon,
        uncertainty=first.uncertainty,
        channel=p.channel,
        integers=p.integers,
        bits=p.bits,
        certificate=first.certificate,
        parameters=documents.parameters_from(documents.typed(document, "parameters", dict)),
        options=documents.options_from(documents.typed(document, "options", dict)),
        optimality_gap=None if gap is None else documents.number(gap, "optimality_gap"),
        rounding_loss=documents.number(
            documents.typed(document, "rounding_loss", object), "rounding_loss"
        ),
        levels=first.levels,
        others=tuple(other.certified() for other in others),
    )
