"""What every set F of distributions that may be true answers.

A set answers what designs and proofs ask of it: how small and how large P_{u|s}, or a mean under
P_{U|s}, can be, how far P_{U|s} can lie from its estimate, how far two means can lie apart, and
whether a distribution belongs to it. An S value without records is never dropped: nothing is known
of its conditional, which may then be anything. The code -1 stands for any S value: its vector has
equal entries, so that its mean does not depend on s.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from rldp._types import Array, Codes
from rldp.arithmetic import log
from rldp.errors import DataError, ParameterError
from rldp.information import distribution
from rldp.tables.parts import Part
from rldp.tables.table import Table
from rldp.uncertainty.geometry import paper_quantities
from rldp.uncertainty.parameters import Number, Parameter

ALPHA = Number(
    "alpha",
    title="α, level of the test",
    help="Level of the set: the smaller, the more distributions count",
    default=0.05,
    low=0.0,
    high=1.0,
    slider=(1e-6, 0.5),
)


class UncertaintySet(ABC):
    """A set F of distributions on S × U around the empirical distribution of a table.

    The attributes say what `rldp.uncertainty.registry` asks of a kind of set.
    """

    kind: ClassVar[str] = ""
    title: ClassVar[str] = ""  # goes on after "private for"
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    constants: ClassVar[tuple[str, ...]] = ()  # attributes that certificates carry
    condition: ClassVar[str] = "for every distribution in F"
    assumption: ClassVar[str] = ""  # about the records, without which F may miss the truth
    is_offered: ClassVar[bool] = True  # as the F of a design, which holds P̂
    is_simplex: ClassVar[bool] = False  # F is all P with P_{u|s} ≥ P^min_{u|s}
    holds_records: bool = True  # counts in the clear, of which those in the sample must know
    is_quick: ClassVar[bool] = True  # ranges of many means cost next to nothing
    pairs_at_once: ClassVar[int] = 2**10  # whose worst P is searched together

    def __init__(self, table: Table) -> None:
        """Take the table whose schema F speaks of and whose frequencies are P̂."""
        if not isinstance(table, Table):
            raise DataError(
                f"Expected a Table, got {type(table).__name__}; use rldp.Table(counts)."
            )
        if table.n_s == 1:
            raise DataError(
                "S has one value only: there is nothing to protect.", argument="sensitive"
            )
        self.table = table

    @property
    def arguments(self) -> dict[str, Any]:
        """What the constructor took beside the table."""
        return {parameter.name: getattr(self, parameter.name) for parameter in self.parameters}

    def for_part(self, part: Part) -> UncertaintySet:
        """The same distributions as tables whose rows are (s, k), for someone who knows k.

        They have the same cells, so that the set has the same size.
        """
        given = self.arguments
        arguments = {p.name: p.reshaped(given[p.name], part) for p in self.parameters}
        return type(self)(part.table(self.table), **arguments)

    def check_frequencies(self) -> None:
        """Refuse a set without P̂ as the F of a design.

        Someone who knows the frequencies and nothing else about a person would not be covered, and
        the optimum at P̂ would be no bound.
        """
        if not self.contains(self.table.p_su):
            raise ParameterError(
                f"Expected a set that holds the frequencies of its table, got {self!r:.200}; "
                "privacy over it can be a further guarantee beside that over another set.",
                argument="uncertainty",
            )

    def given(self, u: Any = None, **known: Any) -> UncertaintySet:
        """The distributions of F that also agree with what is known anyway.

        Args:
            u: counts of all values of U, in order or by label, or {column: counts} of one useful
                column: of everybody, as in a register; with `alpha`, of a sample.
            known: `rows` and `limits` of inequalities Σ rows[i][s][u] P(s, u) ≤ limits[i]; `alpha`
                and `test` of a margin that was counted in a sample. α of F is then shared.
        """
        from rldp.uncertainty import evidence  # which imports this module

        return evidence.given(self, u, **known)

    def __and__(self, other: UncertaintySet) -> UncertaintySet:
        """The distributions in both; the larger α of the two is shared among all evidence."""
        from rldp.uncertainty import evidence  # which imports this module

        return evidence.intersection(self, other)

    def certificate_constants(self, above: Fraction) -> dict[str, Any]:
        """What certificates carry of the size of F, a little above what floats have."""
        return {name: str(Fraction(getattr(self, name)) * above) for name in self.constants}

    @classmethod
    def code(cls, arguments: Mapping[str, Any]) -> str:
        """The call of the constructor as Python, with a variable `table`."""
        given = (f"{p.name}={p.text(arguments[p.name])}" for p in cls.parameters)
        prefix = "rldp." if cls.__module__.startswith("rldp.") else ""
        return f"{prefix}{cls.__name__}({', '.join(['table', *given])})"

    def in_words(self, records: str) -> str:
        """For which distributions there is privacy; `records` says how many the table has."""
        return f"private for {self.title}, around the frequencies of {records}"

    # curved unless said otherwise
    def vertices(self, s: int) -> Array | None:
        """Points whose mixtures are the conditionals of s that occur in F, shape (points, n_u).

        For sets in which the conditionals of different S values vary independently; None for
        others, and where the conditionals are no polytope.
        """
        return None

    @property
    @abstractmethod
    def conditional_bounds(self) -> tuple[Array, Array]:
        """P^min and P^max: the range of P_{u|s} over F, each of shape (n_s, n_u)."""

    @property
    @abstractmethod
    def l1_radii(self) -> Array:
        """d_s: a bound on ‖P_{U|s} - P̂_{U|s}‖₁ over F, shape (n_s,)."""

    @abstractmethod
    def contains(self, p_su: ArrayLike) -> bool:
        """Whether the distribution p_su, shape (n_s, n_u), belongs to F."""

    @cached_property
    def l1_diameter(self) -> float:
        """d of thm:irpriv: a bound on ‖P_{U|s} - P_{U|s'}‖₁ over F and all pairs."""
        return paper_quantities.l1_diameter(self.l1_radii, self.table.p_u_given_s)

    @abstractmethod
    def mean_range(self, T: Array, s: Codes) -> tuple[Array, Array]:
        """Smallest and largest T[i]·P_{U|s[i]} over F, each row i by itself; T is (rows, n_u)."""

    shares_are_exact = True  # conditionals that have shares of sum 1 occur together in F

    # most sets have no budget to share
    def mean_range_at(self, T: Array, s: Codes, share: float) -> tuple[Array, Array]:
        """The same where s has only this share of what F allows all S values together."""
        return self.mean_range(T, s)

    def worst_log_ratios(self, T_1: Array, s_1: Codes, T_2: Array, s_2: Codes) -> Array:
        """The largest log(T_1·P_{U|s_1} / T_2·P_{U|s_2}) over F, row by row, with s_1 ≠ s_2."""
        return log_ratio(self.mean_range(T_1, s_1)[1], self.mean_range(T_2, s_2)[0])

    @abstractmethod
    def worst_conditionals(
        self, T_1: Array, s_1: Codes, T_2: Array, s_2: Codes, ratio: Array | float
    ) -> tuple[Array, Array]:
        """The conditionals of s_1 ≠ s_2 in F with the largest R_1·T_1 - ratio · R_2·T_2, by row."""

    def largest_differences(self, T: Array, ratio: Array | float) -> Array:
        """The largest T[i, s]·P_{U|s} - ratio[s, s'] · T[i, s']·P_{U|s'} over F, at [i, s, s'].

        T has shape (columns, n_s, n_u), and ratio is one number or has shape (n_s, n_s). The answer
        is -∞ where s = s' or the ratio is ∞; where conditionals do not come above 0 even if all
        vary apart, it is what they reach apart.
        """
        ratio = np.array(np.broadcast_to(ratio, (self.table.n_s, self.table.n_s)))
        is_free = np.isinf(ratio) | np.eye(self.table.n_s, dtype=bool)
        ratio[is_free] = 0.0
        s = np.tile(np.arange(self.table.n_s), len(T))
        low, high = self.mean_range(T.reshape(s.size, -1), s)
        low, high = low.reshape(T.shape[:2]), high.reshape(T.shape[:2])
        difference = np.asarray(high[:, :, None] - ratio * low[:, None, :])
        difference[:, is_free] = -np.inf
        i, s_1, s_2 = np.nonzero(difference > 0)
        if i.size:
            together = self._together(T[i, s_1], s_1, ratio[s_1, s_2, None] * T[i, s_2], s_2)
            difference[i, s_1, s_2] = np.minimum(difference[i, s_1, s_2], together)
        return difference

    def _together(self, T_1: Array, s_1: Codes, T_2: Array, s_2: Codes) -> Array:
        """The largest T_1·P_{U|s_1} - T_2·P_{U|s_2} over F, row by row."""
        R_1, R_2 = self.worst_conditionals(T_1, s_1, T_2, s_2, 1.0)
        return np.asarray((R_1 * T_1).sum(axis=1) - (R_2 * T_2).sum(axis=1))

    @abstractmethod
    def worst_distribution(self, T_1: Array, s_1: int, T_2: Array, s_2: int) -> Array:
        """A P in F, shape (n_s, n_u), that attains, at least almost, the largest log-ratio."""

    @abstractmethod
    def smallest_expectation(self, c: Array) -> tuple[Array, Array]:
        """min Σ c P over F, from below, and a P in F that attains it; c and P (..., n_s, n_u)."""

    def divergence_ball(self) -> tuple[Array, float]:
        """A P* with positive cells and a bound on KL(P‖P*) over F; infinite where none is known."""
        shape = (self.table.n_s, self.table.n_u)
        return np.full(shape, 1 / (shape[0] * shape[1])), np.inf

    def _with_conditionals(self, p_s: Array, conditionals: dict[int, Array], least: float) -> Array:
        """P with marginal p_s and P̂_{U|s} but for these s, which get at least this little mass."""
        R = self.table.p_u_given_s.copy()
        p_s = p_s.copy()
        for s, conditional in conditionals.items():
            R[s] = conditional
            p_s[s] = max(p_s[s], least)
        return np.asarray((p_s / p_s.sum())[:, None] * R)

    def _distribution(self, p_su: ArrayLike) -> Array:
        return distribution(p_su, (self.table.n_s, self.table.n_u))

    def _free_where_unseen(self, low: Array, high: Array) -> tuple[Array, Array]:
        is_unseen = (self.table.p_s == 0)[:, None]
        return fixed_if_single(np.where(is_unseen, 0.0, low), np.where(is_unseen, 1.0, high))


class ConfidenceSet(UncertaintySet):
    """A set that holds the truth with probability 1-α over the draw of the table.

    The draw is a simple random sample: the records are independent draws from the truth. Weights,
    strata and clusters of a survey make frequencies vary more or less than those of such a sample,
    in a way that the counts do not show, so no set here takes them into account.
    """

    assumption = (
        "the records must be a simple random sample of the people who will report: survey weights, "
        "strata and clusters are not taken into account"
    )
    parameters: ClassVar[tuple[Parameter, ...]] = (ALPHA,)

    def __init__(self, table: Table, alpha: float = 0.05) -> None:
        """Take the public sample and the significance level: a smaller α gives a larger set."""
        super().__init__(table)
        self.alpha = ALPHA.checked(alpha)

    def __repr__(self) -> str:
        """Say which set it is."""
        return f"{type(self).__name__}({self.table!r}, alpha={self.alpha:g})"

    @property
    @abstractmethod
    def radius(self) -> float:
        """How large the set is, in the unit of its own distance."""

    @abstractmethod
    def distances(self, sample: Array, truth: Array) -> Array:
        """How far each truth lies from its sample of frequencies, both of shape (..., cells)."""

    def contains(self, p_su: ArrayLike) -> bool:
        """Whether p_su lies within the radius of P̂, up to rounding."""
        p = self._distribution(p_su)
        distance = float(self.distances(self.table.p_su.ravel(), p.ravel()))
        return distance <= self.radius + 1e-12 * (1 + self.radius)


def log_ratio(numerator: Array, denominator: Array) -> Array:
    """The logarithm of their quotient, where 0/0 counts as 1 and x/0 as ∞."""
    ratio = np.where(numerator > 0, np.inf, 0.0)
    positive = (numerator > 0) & (denominator > 0)
    return np.where(
        positive,
        log(np.where(positive, numerator / np.where(positive, denominator, 1.0), 1.0)),
        ratio,
    )


def fixed_if_single(low: Array, high: Array) -> tuple[Array, Array]:
    """Bounds on probabilities: a single U value has 1, which no bound for several values says."""
    return (np.ones_like(low), np.ones_like(high)) if low.shape[1] == 1 else (low, high)
