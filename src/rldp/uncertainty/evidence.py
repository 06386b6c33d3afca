"""Sets of all distributions that some evidence allows: reports, measured features, what is known.

F = {P : L_i P ∈ B_i for all i}. What is known of P need not be a table of S and U: reports of an
earlier survey, whose protocol is known, say something of P through their channel.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rldp._types import Array, Codes, Flags
from rldp.arithmetic import log, log1p
from rldp.checks import as_float, checked_mapping, shown
from rldp.decimals import shortest
from rldp.errors import DataError, ParameterError
from rldp.tables.parts import Part
from rldp.tables.schema import Schema
from rldp.tables.table import Table
from rldp.uncertainty.base import ALPHA, UncertaintySet, log_ratio
from rldp.uncertainty.exact_tables import exact_number, exact_tables
from rldp.uncertainty.geometry import multipliers as cones
from rldp.uncertainty.parameters import Parameter
from rldp.uncertainty.registry import register

CHI_SQUARE, FINITE_KL, TOTAL_VARIATION = TESTS = "chi-square", "kl-finite", "total-variation"
_WORDS = {
    CHI_SQUARE: "a χ² test",
    FINITE_KL: "a Kullback-Leibler test that holds for any number of reports",
    TOTAL_VARIATION: "a total variation test that holds for any number of reports",
}
_NEAR = 1e-9  # a distribution that is outside by so little counts as inside
_GRID = 1 << 40  # ends of intervals are multiples of its inverse
_ABOVE = 1 + Fraction(1, 10**12)  # what a checker can prove without doubt
_MOST_RECORDS = 2**52
_MOST_REACHED = 2**14  # means that are kept


# --- pieces of evidence --------------------------------------------------------------------------


@dataclass(frozen=True)
class Reports:
    """Counts of reports from a channel, and a test of level α for their law z = Mᵀ P.

    Args:
        test: "chi-square", "kl-finite" or "total-variation".
        alpha: its level.
        bits: the channel has integers in units of 2^-bits.
        channel: M as integers, shape (n_s, n_u, k), with rows that sum to 2^bits.
        counts: how often each output was reported.
    """

    test: str
    alpha: float
    bits: int
    channel: Any  # of Python integers: they may have more than 64 bits
    counts: tuple[int, ...]

    kind: ClassVar[str] = "reports"

    def __post_init__(self) -> None:
        """Check all of it."""
        channel = np.array(self.channel, dtype=object)
        rows = (tuple(map(tuple, table)) for table in channel.tolist())
        object.__setattr__(self, "channel", tuple(rows))
        if self.test not in TESTS:
            raise ParameterError(
                f"Expected a test among {', '.join(TESTS)}, got {shown(self.test)}.",
                argument="test",
            )
        ALPHA.checked(self.alpha)
        if channel.ndim != 3 or channel.shape[2] != len(self.counts) or channel.shape[2] < 2:
            raise DataError("Expected a channel with a count for each of two outputs or more.")
        if (channel < 0).any() or (channel.sum(axis=2) != 1 << self.bits).any():
            raise DataError(f"Expected rows of a channel that sum to 2^{self.bits} exactly.")
        if not (channel.sum(axis=(0, 1)) > 0).all():
            raise DataError("Expected outputs that can occur in the channel of reports.")
        if any(type(c) is not int or c < 0 for c in self.counts) or not 0 < self.n < 2**53:
            raise DataError("Expected counts of reports from 0 on, and some report.")

    @property
    def n(self) -> int:
        """How many reports there are."""
        return sum(self.counts)

    @cached_property
    def table(self) -> Any:
        """The integers as an array of shape (n_s, n_u, k)."""
        return np.array(self.channel, dtype=object)

    @cached_property
    def matrix(self) -> Array:
        """M over all cells, shape (cells, k)."""
        floats = (self.table / (1 << self.bits)).astype(float)
        return np.asarray(floats.reshape(-1, len(self.counts)))

    @property
    def p(self) -> Array:
        """The frequencies of the reports."""
        return np.array(self.counts, float) / self.n

    @cached_property
    def size(self) -> float:
        """What a certificate has: a quantile of χ², 2n times a radius of KL, or a radius."""
        from scipy.optimize import brentq
        from scipy.special import gammainccinv

        k, alpha = len(self.counts), self.alpha
        if self.test == CHI_SQUARE:
            return float(2 * gammainccinv((k - 1) / 2, alpha))
        if self.test == FINITE_KL:
            df, goal = k - 1, -float(log(alpha))

            def over(t: float) -> float:
                return t - df - df * math.log(t / df) - goal

            return 2 * float(brentq(over, df, df + 10 * (goal + df + 10), xtol=1e-12, rtol=1e-14))
        log_events = k * log(2) + log1p(-(2.0 ** (1 - k)))
        return float(np.sqrt(2 * (log_events - log(alpha)) / self.n))

    @property
    def sizes(self) -> list[str]:
        """The same as a certificate writes it."""
        return [str(Fraction(self.size) * _ABOVE)]

    @cached_property
    def piece(self) -> cones.Ball:
        """The ball, as cones see it."""
        size = float(Fraction(self.size) * _ABOVE)
        if self.test == CHI_SQUARE:
            return cones.ChiSquareBall(self.matrix, self.p, size / self.n)
        if self.test == FINITE_KL:
            return cones.DivergenceBall(self.matrix, self.p, size / (2 * self.n))
        return cones.VariationBall(self.matrix, self.p, size)

    def reshaped(self, part: Part) -> Reports:
        """For tables whose rows are (s, k)."""
        k = len(self.counts)
        whole = np.stack([part.rows(self.table[:, :, y]) for y in range(k)], axis=2)
        return replace(self, channel=whole)

    def document(self) -> dict[str, Any]:
        """As a whole file has it."""
        channel = [[[str(x) for x in row] for row in table] for table in self.channel]
        return {
            "kind": self.kind,
            "test": self.test,
            "alpha": self.alpha,
            "bits": self.bits,
            "channel": channel,
            "counts": list(self.counts),
        }

    def published(self) -> dict[str, Any]:
        """As a public file has it."""
        return {"kind": self.kind, "test": self.test, "alpha": self.alpha, "n": self.n}

    @property
    def words(self) -> str:
        """What it allows."""
        return f"{_WORDS[self.test]} on {self.n:,} reports accepts (α = {shortest(self.alpha)})"


@dataclass(frozen=True)
class Known:
    """Linear conditions that hold for certain: rows·P = limits, or rows·P ≤ limits."""

    rows: tuple[Any, ...]  # tables of fractions
    limits: tuple[Fraction, ...]
    is_equal: bool

    kind: ClassVar[str] = "known"
    alpha: ClassVar[float] = 0.0

    @property
    def sizes(self) -> list[str]:
        """None: nothing has to be proved of it."""
        return []

    @cached_property
    def piece(self) -> cones.Inequalities:
        """The conditions, as cones see them."""
        rows = np.array([[float(x) for row in table for x in row] for table in self.rows])
        return cones.Inequalities(rows, np.array(list(map(float, self.limits))), self.is_equal)

    def reshaped(self, part: Part) -> Known:
        """For tables whose rows are (s, k)."""
        rows = (part.rows(np.array(table, dtype=object)).tolist() for table in self.rows)
        return replace(self, rows=tuple(tuple(map(tuple, table)) for table in rows))

    def document(self) -> dict[str, Any]:
        """As a whole file has it."""
        rows = [[[str(x) for x in row] for row in table] for table in self.rows]
        limits = [str(x) for x in self.limits]
        return {"kind": self.kind, "equal": self.is_equal, "rows": rows, "limits": limits}

    def published(self) -> dict[str, Any]:
        """As a public file has it."""
        return {"kind": self.kind, "n": len(self.rows)}

    @property
    def words(self) -> str:
        """What it allows."""
        n = len(self.rows)
        return f"{n} known {'margins allow' if self.is_equal else 'inequalities allow'}"


@dataclass(frozen=True)
class Features:
    """How many of the people of each S value have a U value in H, for some sets H.

    P(H|s) lies in its Clopper-Pearson interval at level α/(n_s #H): at least one misses with
    probability α at most, for every number of records.

    Args:
        alpha: of all intervals together.
        sets: the codes of U in each H.
        hits: records of each H and s, shape (#H, n_s).
        totals: records of each s.
    """

    alpha: float
    sets: tuple[tuple[int, ...], ...]
    hits: tuple[tuple[int, ...], ...]
    totals: tuple[int, ...]
    n_u: int

    kind: ClassVar[str] = "features"

    def __post_init__(self) -> None:
        """Check all of it."""
        ALPHA.checked(self.alpha)
        is_set = all(
            H and sorted(set(H)) == list(H) and H[0] >= 0 and H[-1] < self.n_u for H in self.sets
        )
        if not self.sets or not is_set:
            raise DataError("Expected sets of codes of U in ascending order.")
        rows = [zip(row, self.totals, strict=True) for row in self.hits]
        if len(rows) != len(self.sets) or not all(0 <= k <= n for row in rows for k, n in row):
            raise DataError("Expected for each set how many records of each S value are in it.")

    @property
    def n(self) -> int:
        """How many records were measured."""
        return sum(self.totals)

    @cached_property
    def intervals(self) -> list[tuple[Fraction, Fraction]]:
        """By set and then by s."""
        from scipy.stats import beta

        tail = self.alpha / (2 * len(self.sets) * len(self.totals))
        found = []
        for row in self.hits:
            for k, n in zip(row, self.totals, strict=True):
                low = float(beta.ppf(tail, k, n - k + 1)) if k else 0.0
                high = float(beta.isf(tail, k + 1, n - k)) if k < n else 1.0
                low = math.floor(low * (1 - 1e-9) * _GRID)
                high = min(_GRID, math.ceil(high * (1 + 1e-9) * _GRID))
                found.append((Fraction(low, _GRID), Fraction(high, _GRID)))
        return found

    @property
    def sizes(self) -> list[str]:
        """The ends of all intervals."""
        return [str(end) for interval in self.intervals for end in interval]

    @cached_property
    def piece(self) -> cones.Inequalities:
        """Σ_u (1_H - high) P(s, u) ≤ 0 and Σ_u (low - 1_H) P(s, u) ≤ 0."""
        rows, n_s = [], len(self.totals)
        intervals = iter(self.intervals)
        for H in self.sets:
            inside = np.isin(np.arange(self.n_u), H).astype(float)
            for s in range(n_s):
                low, high = map(float, next(intervals))
                for row in (inside - high, low - inside):
                    whole = np.zeros((n_s, self.n_u))
                    whole[s] = row
                    rows.append(whole.ravel())
        return cones.Inequalities(np.array(rows), np.zeros(len(rows)), is_equal=False)

    def reshaped(self, part: Part) -> Known:
        """The same inequalities for tables whose rows are (s, k), where H is no set."""
        shape = len(self.totals), self.n_u
        rows = []
        intervals = iter(self.intervals)
        for H in self.sets:
            for s in range(shape[0]):
                low, high = next(intervals)
                for of_in, of_out in ((1 - high, -high), (low - 1, low)):
                    table = np.full(shape, Fraction(0), dtype=object)
                    for u in range(self.n_u):
                        table[s, u] = of_in if u in H else of_out
                    rows.append(tuple(map(tuple, part.rows(table).tolist())))
        return Known(tuple(rows), (Fraction(0),) * len(rows), is_equal=False)

    def document(self) -> dict[str, Any]:
        """As a whole file has it."""
        return {
            "kind": self.kind,
            "alpha": self.alpha,
            "sets": [list(H) for H in self.sets],
            "hits": [list(row) for row in self.hits],
            "totals": list(self.totals),
        }

    def published(self) -> dict[str, Any]:
        """As a public file has it."""
        return {"kind": self.kind, "alpha": self.alpha, "n": self.n}

    @property
    def words(self) -> str:
        """What it allows."""
        return (
            f"the intervals of {len(self.sets)} features among {self.n:,} records allow "
            f"(α = {shortest(self.alpha)})"
        )


Evidence = Reports | Known | Features


def _read(item: Any) -> Evidence:
    """A piece of evidence, from its form in a whole file."""
    entries = checked_mapping(item, "a piece of evidence", argument="evidence")
    kind = entries.get("kind")
    names = {
        "reports": {"kind", "test", "alpha", "bits", "channel", "counts"},
        "known": {"kind", "equal", "rows", "limits"},
        "features": {"kind", "alpha", "sets", "hits", "totals"},
    }
    if kind not in names or set(entries) != names[kind]:
        raise DataError(f"Expected a piece of evidence as files have it, got {shown(kind)}.")
    try:
        if kind == "reports":
            channel = [
                [[_natural(x) for x in row] for row in table] for table in entries["channel"]
            ]
            counts = tuple(entries["counts"])
            bits = entries["bits"]
            if type(bits) is not int or not 1 <= bits <= 256:
                raise DataError(f"Expected 1 to 256 bits, got {shown(bits)}.")
            return Reports(entries["test"], float(entries["alpha"]), bits, channel, counts)
        if kind == "known":
            shape = len(entries["rows"][0]), len(entries["rows"][0][0])
            rows = exact_tables(entries["rows"], shape, "rows")
            limits = tuple(exact_number(x, "limits") for x in entries["limits"])
            if len(rows) != len(limits) or type(entries["equal"]) is not bool:
                raise DataError("Expected a limit for each of the rows.")
            return Known(tuple(rows), limits, entries["equal"])
        sets = tuple(map(tuple, entries["sets"]))
        hits = tuple(map(tuple, entries["hits"]))
        numbers = [*(x for H in (*sets, *hits) for x in H), *entries["totals"]]
        if any(type(x) is not int for x in numbers):
            raise DataError("Expected integers in the sets and counts of features.")
        n_u = 1 + max(x for H in sets for x in H)  # at least: the table has them all
        return Features(float(entries["alpha"]), sets, hits, tuple(entries["totals"]), n_u)
    except (TypeError, ValueError, IndexError, AttributeError) as error:
        raise DataError(f"Expected a piece of evidence as files have it: {error}") from None


def _natural(text: Any) -> int:
    if not (isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= 80):
        raise DataError("Expected natural numbers in decimal digits in a channel of reports.")
    return int(text)


@dataclass(frozen=True)
class _Pieces(Parameter):
    """The evidence itself."""

    def reshaped(self, argument: Any, part: Part) -> Any:
        """Every piece in the same way."""
        return [item.reshaped(part) for item in argument]

    def written(self, argument: Any) -> Any:
        """A list of objects."""
        return [item.document() for item in argument]

    is_published_whole: ClassVar[bool] = False

    def published(self, argument: Any) -> Any:
        """Their kinds, levels and sizes: what was counted is nobody's business who only reports."""
        return [item.published() for item in argument]

    def text(self, argument: Any) -> str:
        """A literal, in which what is true is True."""
        return repr(self.written(argument))

    def check_published(self, value: Any) -> None:
        """Refuse what no public file has."""
        entries = {
            "reports": {"test", "alpha", "n"},
            "known": {"n"},
            "features": {"alpha", "n"},
        }
        if not isinstance(value, list) or not value:
            raise DataError("Expected a list of pieces of evidence.")
        for item in value:
            kind = item.get("kind") if isinstance(item, dict) else None
            if kind not in entries or set(item) != entries[kind] | {"kind"}:
                raise DataError("Expected pieces of evidence as public files have them.")
            if type(item["n"]) is not int or not 0 < item["n"] < 2**53:
                raise DataError("Expected the number of reports, records or conditions.")
            if "alpha" in item:
                ALPHA.checked(item["alpha"])
            if "test" in item and item["test"] not in TESTS:
                raise DataError(f"Expected a test among {', '.join(TESTS)}.")


_EVIDENCE = _Pieces(
    "evidence",
    title="what is known of the distribution",
    help="Pieces of evidence: reports, features, margins and inequalities",
)


class Fit(NamedTuple):
    """How well some distribution agrees with reports.

    Args:
        statistic: m Σ ŷ²/z - m of the best P, χ² with so many degrees of freedom at most.
        degrees: of freedom.
        p_value: the chance of a statistic that is no smaller, if everybody followed the protocol.
        forged: how many reports have to be changed for the test to accept some distribution.
    """

    statistic: float
    degrees: int
    p_value: float
    forged: int


# --- the set -------------------------------------------------------------------------------------


@register
class EvidenceSet(UncertaintySet):
    """All distributions that some evidence allows: {P : L_i P ∈ B_i for all i}.

    `rldp.ReportSet`, `rldp.MeasuredSet` and `given` of any confidence set make them.

    Formal guarantee: F holds the truth with probability 1 - Σ α_i at least over the draw of the
    reports and records behind the evidence, if what is known for certain holds: for finite samples,
    but for the χ² test in large ones.

    Privacy over F is proved with the means of different S values apart: all thresholds
    hi_s ≥ T_s·P_{U|s} ≥ lo_s over F, and hi_s ≤ e^ε lo_s'. Both means from one P are a little
    closer.

    Args:
        table: the schema, and integers in proportion to a distribution in F, at which usefulness
            is measured.
        evidence: the pieces.
    """

    kind = "evidence"
    title = "every distribution that the evidence allows"
    parameters = (_EVIDENCE,)
    is_offered = False  # it needs more than a table
    is_quick = False  # a mean over it is a conic programme
    pairs_at_once = 1  # whose worst P is a search of its own
    shares_are_exact = False
    assumption = (
        "the reports must come from people who followed the protocol and are a simple random "
        "sample of those who will report"
    )

    def __init__(self, table: Table, evidence: Sequence[Evidence]) -> None:
        """Take the table and the pieces of evidence."""
        super().__init__(table)
        self.evidence = tuple(
            replace(item, n_u=table.n_u) if isinstance(item, Features) else item
            for item in map(_as_piece, evidence)
        )
        if not self.evidence:
            raise ParameterError("Expected some evidence, got none.", argument="evidence")
        for item in self.evidence:
            shape = _shape(item)
            if shape != (table.n_s, table.n_u):
                raise DataError(
                    f"Expected evidence on {table.n_s} × {table.n_u} cells, got {shape}."
                )
        self._found: dict[tuple[int, bytes], tuple[float, Array | None]] = {}

    @classmethod
    def at_likeliest(cls, schema: Schema, evidence: Sequence[Evidence]) -> EvidenceSet:
        """The set around its P of largest likelihood, refused if no distribution is in it."""
        evidence = list(evidence)
        P = _likeliest(schema, evidence)
        for item in evidence:
            if item.piece.relaxed(P) > _NEAR:
                P = _inside(schema, evidence)
                break
        return cls(_table_near(schema, evidence, P), evidence)

    @cached_property
    def holds_records(self) -> bool:  # type: ignore[override]  # of other sets it is always so
        """Whether any evidence is a sample in the clear, or reports that show something of it."""
        return not all(isinstance(x, Known) or _is_protected(x) for x in self.evidence)

    @property
    def alpha(self) -> float:
        """The sum of the levels of all pieces: F misses the truth with this probability at most."""
        return math.fsum(item.alpha for item in self.evidence)

    @property
    def sizes(self) -> list[list[str]]:
        """What certificates have: how large every piece is."""
        return [item.sizes for item in self.evidence]

    constants: ClassVar[tuple[str, ...]] = ("sizes",)

    def certificate_constants(self, above: Fraction) -> dict[str, Any]:  # they are
        """The sizes of all pieces."""
        return {"sizes": self.sizes}

    def __repr__(self) -> str:
        """Say which set it is."""
        kinds = ", ".join(item.kind for item in self.evidence)
        n_s, n_u = self.table.n_s, self.table.n_u
        return f"EvidenceSet({n_s} × {n_u} cells, {kinds}, alpha={self.alpha:g})"

    def in_words(self, records: str) -> str:  # the table is no sample
        """Which evidence there is."""
        return "private for every distribution that " + " and that ".join(
            item.words for item in self.evidence
        )

    def fits(self) -> list[Fit]:
        """How well reports agree with the distributions that all evidence allows, by piece."""
        return [_fit(item) for item in self.evidence if isinstance(item, Reports)]

    # --- more evidence -----------------------------------------------------------------------

    def with_evidence(self, more: Sequence[Evidence]) -> EvidenceSet:
        """The distributions that other evidence allows too, around their likeliest."""
        return EvidenceSet.at_likeliest(self.table.schema, [*self.evidence, *more])

    def given(self, u: Any = None, **known: Any) -> EvidenceSet:
        """The distributions of F that also agree with what is known anyway."""
        return given(self, u, **known)

    # --- means -------------------------------------------------------------------------------

    @cached_property
    def multipliers(self) -> cones.Multipliers:
        """The cone behind all bounds."""
        return cones.Multipliers([item.piece for item in self.evidence], self.table.counts.size)

    @cached_property
    def _rows(self) -> list[cones.Rows]:
        of_cell = np.repeat(np.arange(self.table.n_s), self.table.n_u)
        return [cones.Rows(self.multipliers, of_cell == s) for s in range(self.table.n_s)]

    def bound(self, T: Array, s: int) -> tuple[float, Array | None]:
        """The largest T·P_{U|s} over F, and its multipliers; None where it is max T."""
        key = s, T.tobytes()
        if key not in self._found:
            if len(self._found) >= _MOST_REACHED:
                self._found.clear()
            value, core, _ = self._rows[s].most(T)
            self._found[key] = value, core
        return self._found[key]

    def mean_range(self, T: Array, s: Codes) -> tuple[Array, Array]:
        """Row by row, a conic programme each."""
        T = np.ascontiguousarray(T, dtype=float)
        low, high = T.min(axis=1), T.max(axis=1)
        for i in np.flatnonzero((low < high) & (np.asarray(s) >= 0)):
            high[i] = self.bound(T[i], int(s[i]))[0]
            low[i] = -self.bound(-T[i], int(s[i]))[0]
        return low, high

    @cached_property
    def conditional_bounds(self) -> tuple[Array, Array]:
        """Of single cells."""
        n_s, n_u = self.table.n_s, self.table.n_u
        cells, s = np.tile(np.eye(n_u), (n_s, 1)), np.repeat(np.arange(n_s), n_u)
        low, high = self.mean_range(cells, s)
        return np.maximum(low, 0.0).reshape(n_s, n_u), np.minimum(high, 1.0).reshape(n_s, n_u)

    @cached_property
    def l1_radii(self) -> Array:
        """By the bounds of single cells, of which both signs sum to the same."""
        low, high = self.conditional_bounds
        p = self.table.p_u_given_s
        up, down = (high - p).sum(axis=1), (p - low).sum(axis=1)
        return np.asarray(2 * np.clip(np.minimum(up, down), 0.0, 1.0))

    def worst_log_ratios(self, T_1: Array, s_1: Codes, T_2: Array, s_2: Codes) -> Array:
        """What a search of both means from one P reaches, never above what they reach apart."""
        found = np.empty(len(T_1))
        for i, (t_1, i_1, t_2, i_2) in enumerate(zip(T_1, s_1, T_2, s_2, strict=True)):
            found[i] = self._worst(t_1, int(i_1), t_2, int(i_2))[0]
        return found

    def _worst(self, T_1: Array, s_1: int, T_2: Array, s_2: int) -> tuple[float, Array]:
        """The largest ratio of both means from one P that a search finds, and that P."""
        if s_1 < 0 or s_2 < 0 or s_1 == s_2:
            low, high = self.mean_range(np.stack([T_1, T_2]), np.array([s_1, s_2]))
            return float(log_ratio(high[:1], low[1:])[0]), self.table.p_su
        low, high = self.mean_range(np.stack([T_1, T_2]), np.array([s_1, s_2]))
        if not (low[0] > 0 and low[1] > 0):
            return float(log_ratio(high[:1], low[1:])[0]), self.table.p_su
        one, two = self._rows[s_1].cells, self._rows[s_2].cells
        P_hat = self.table.p_su.ravel()
        value, P = cones.joint_ratio(
            self.multipliers, (T_1, one), (T_2, two), np.array([low[0], high[0]])
        )
        P = P / P.sum()
        for t in (0.0, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4):  # what the solver left outside
            inside = (1 - t) * P + t * P_hat
            if self.contains(inside.reshape(self.table.counts.shape)):
                P = inside
                break
        else:
            print("OUT", [i.piece.relaxed(P) for i in self.evidence])
            P = P_hat
        means = [
            T @ P[row] / P[row].sum() if P[row].sum() > 0 else 0.0
            for T, row in ((T_1, one), (T_2, two))
        ]
        if not min(means) > 0:
            return value, P
        return float(log(means[0] / means[1])), P

    def _together(self, T_1: Array, s_1: Codes, T_2: Array, s_2: Codes) -> Array:
        """No less than apart: that is what a certificate proves."""
        return np.full(len(T_1), np.inf)

    def worst_conditionals(
        self, T_1: Array, s_1: Codes, T_2: Array, s_2: Codes, ratio: Array | float
    ) -> tuple[Array, Array]:
        """Those with the largest mean of the first and the smallest of the second, apart."""
        one = [self._extreme(t, int(s)) for t, s in zip(T_1, s_1, strict=True)]
        two = [self._extreme(-t, int(s)) for t, s in zip(T_2, s_2, strict=True)]
        return np.array(one), np.array(two)

    def _extreme(self, T: Array, s: int) -> Array:
        row = self._rows[s]
        P = row.most(T)[2][row.cells]
        return np.asarray(P / P.sum()) if P.sum() > 0 else np.eye(T.size)[T.argmax()]

    def worst_distribution(self, T_1: Array, s_1: int, T_2: Array, s_2: int) -> Array:
        """What a search of one P for both means finds."""
        P = self._worst(T_1, s_1, T_2, s_2)[1]
        return np.asarray(P.reshape(self.table.counts.shape))

    def smallest_expectation(self, c: Array) -> tuple[Array, Array]:
        """One programme each: c - κ has multipliers."""
        flat = c.reshape(-1, c.shape[-2] * c.shape[-1])
        n = flat.shape[1]
        programme = cones.CellProgramme(
            self.multipliers, np.zeros((n, 0)), np.zeros(0), is_costly=True
        )
        values, worst = np.empty(len(flat)), np.empty_like(flat)
        for i, each in enumerate(flat):
            found = programme.solved(-each)
            core = self.multipliers.repaired(found.x[: self.multipliers.n_core])
            short = float((-each - self.multipliers.R @ core).max())
            core[-1] += short
            values[i] = -self.multipliers.cost(core) - 1e-12 * np.abs(core).max(initial=0.0)
            worst[i] = found.P / found.P.sum() if found.P.sum() > 0 else self.table.p_su.ravel()
        return values.reshape(c.shape[:-2]), worst.reshape(c.shape)

    def contains(self, p_su: ArrayLike) -> bool:
        """Whether every piece allows p_su, up to rounding."""
        P = self._distribution(p_su).ravel()
        return all(item.piece.relaxed(P) <= _NEAR for item in self.evidence)


def _is_protected(item: Evidence) -> bool:
    """Whether everything that is reported can be reported by everybody."""
    return isinstance(item, Reports) and bool((item.matrix > 0).all())


def _as_piece(item: Any) -> Evidence:
    return item if isinstance(item, Reports | Known | Features) else _read(item)


def _shape(item: Evidence) -> tuple[int, int]:
    if isinstance(item, Reports):
        return len(item.channel), len(item.channel[0])
    if isinstance(item, Known):
        return len(item.rows[0]), len(item.rows[0][0])
    return len(item.totals), item.n_u


# --- the table of a set --------------------------------------------------------------------------


def _likeliest(schema: Schema, evidence: Sequence[Evidence]) -> Array:
    reports = [item for item in evidence if isinstance(item, Reports)]
    linear = [item.piece for item in evidence if isinstance(item.piece, cones.Inequalities)]
    n = sum(item.n for item in reports) or 1
    n_cells = schema.n_s * schema.n_u
    balls = [item.piece for item in reports]
    if not balls:  # the most even one
        balls = [cones.VariationBall(np.eye(n_cells), np.full(n_cells, 1 / n_cells), 2.0)]
    weights = [item.n / n for item in reports] or [1.0]
    return cones.nearest(balls, weights, linear, n_cells)


def _inside(schema: Schema, evidence: Sequence[Evidence]) -> Array:
    """A P that all pieces allow, where that of largest likelihood is not; or an error."""
    pieces = [item.piece for item in evidence]
    P, excess = cones.centre(pieces, schema.n_s * schema.n_u)
    if excess <= 0:
        return P
    reasons = []
    for item in evidence:
        if isinstance(item, Reports):
            fit = _fit(item)
            if fit.forged:
                reasons.append(
                    f"{item.n:,} reports cannot have come from this protocol: the best "
                    f"distribution has χ² = {fit.statistic:.1f} with {fit.degrees} degrees of "
                    f"freedom (p = {fit.p_value:.2g}), and about {fit.forged:,} of the reports "
                    "would have to be others"
                )
    raise DataError(
        "No distribution agrees with the evidence. "
        + (
            "; ".join(reasons) + ". Check that the reports are those of this protocol."
            if reasons
            else "Each piece alone has distributions, but none has all: what is known "
            "contradicts the reports. Check the margins, or take a smaller alpha."
        ),
        argument="reports",
    )


def _fit(item: Reports) -> Fit:
    from scipy.special import gammaincc

    ball = cones.ChiSquareBall(item.matrix, item.p, 0.0)
    statistic = max(0.0, item.n * cones.centre([ball], len(item.matrix))[1])
    degrees = len(item.counts) - 1
    chance = float(gammaincc(degrees / 2, statistic / 2))
    is_inside = cones.centre([item.piece], len(item.matrix))[1] <= 0
    forged = 0 if is_inside else math.ceil(item.n * cones.changed(item.piece, len(item.matrix)))
    return Fit(statistic, degrees, chance, forged)


def _table_near(schema: Schema, evidence: Sequence[Evidence], P: Array) -> Table:
    """Integers in proportion to a P in F, as few as will do: checkers ask for a P in F."""
    n = max(sum(item.n for item in evidence if not isinstance(item, Known)), 1)
    unit, equalities = 1, [x for x in evidence if isinstance(x, Known) and x.is_equal]
    for item in equalities:
        for limit in item.limits:
            unit = math.lcm(unit, limit.denominator)
    total = unit * max(1, round(n / unit))
    while total <= _MOST_RECORDS:
        counts = _rounded(P, total, equalities)
        if counts is not None and _is_inside(counts, evidence):
            return Table.from_schema(counts.reshape(schema.n_s, schema.n_u), schema)
        total *= 8
    raise DataError(
        "No table of integers was found among the distributions that the evidence allows. Give one "
        "known margin of each useful column, or a larger sample."
    )


def _rounded(P: Array, total: int, equalities: Sequence[Known]) -> Any:
    """Integers near total·P that have the sums of all equalities; None if none are found."""
    counts = np.array([int(x) for x in np.floor(P * total)], dtype=object)
    rows = [np.ones(P.size, dtype=object)]
    goals = [Fraction(total)]
    for item in equalities:
        for table, limit in zip(item.rows, item.limits, strict=True):
            rows.append(np.array([x for row in table for x in row], dtype=object))
            goals.append(limit * total)
    order = np.argsort(-(P * total - np.floor(P * total)), kind="stable")
    if len(rows) == 1:
        short = total - int(counts.sum())
        counts[order[:short]] += 1
        return counts.astype(np.int64) if (counts >= 0).all() else None
    # Gaussian elimination in fractions over the cells with most mass: the rest stays as rounded
    by_mass = np.argsort(-P, kind="stable")
    matrix = [[Fraction(row[i]) for i in by_mass] for row in rows]
    rest = [
        goal - sum(map(lambda x, c: x * c, row, counts))
        for goal, row in zip(goals, rows, strict=True)
    ]
    used: list[int] = []
    for row in range(len(matrix)):
        column = next((j for j in range(P.size) if matrix[row][j] != 0 and j not in used), None)
        if column is None:
            if rest[row] != 0:
                return None
            used.append(-1)
            continue
        used.append(column)
        pivot = matrix[row][column]
        matrix[row] = [x / pivot for x in matrix[row]]
        rest[row] /= pivot
        for other in range(len(matrix)):
            if other != row and matrix[other][column] != 0:
                factor = matrix[other][column]
                matrix[other] = [
                    x - factor * y for x, y in zip(matrix[other], matrix[row], strict=True)
                ]
                rest[other] -= factor * rest[row]
    for row, column in enumerate(used):
        if column < 0:
            if rest[row] != 0:
                return None
            continue
        if rest[row].denominator != 1:
            return None
        counts[by_mass[column]] += int(rest[row])
    return counts.astype(np.int64) if all(c >= 0 for c in counts) else None


def _is_inside(counts: Any, evidence: Sequence[Evidence]) -> bool:
    """Whether the table satisfies every piece with room for the checkers' rounding."""
    P = counts / float(counts.sum())
    for item in evidence:
        if isinstance(item, Known) and item.is_equal:
            continue  # exactly, by construction
        excess = item.piece.relaxed(P)
        if isinstance(item, Known):
            exact = [
                sum(
                    (
                        x * int(c)
                        for x, c in zip((x for r in table for x in r), counts, strict=True)
                    ),
                    Fraction(0),
                )
                for table in item.rows
            ]
            total = int(counts.sum())
            if any(x > limit * total for x, limit in zip(exact, item.limits, strict=True)):
                return False
        elif not excess <= 0:
            return False
    return True


# --- evidence of other sets ----------------------------------------------------------------------


def sample(table: Table, test: str, alpha: float) -> Reports:
    """A sample in the clear: reports of the channel that shows the record."""
    channel = np.zeros((table.n_s, table.n_u, table.counts.size), dtype=object)
    for i in range(table.counts.size):
        channel[i // table.n_u, i % table.n_u, i] = 2
    return Reports(test, alpha, 1, channel, tuple(int(c) for c in table.counts.ravel()))


def evidence_of(F: UncertaintySet) -> list[Evidence]:
    """What stands behind a set, where it is evidence."""
    if isinstance(F, EvidenceSet):
        return list(F.evidence)
    if F.kind == "all":
        return []
    if F.kind in TESTS:
        return [sample(F.table, F.kind, F.arguments["alpha"])]
    raise ParameterError(
        f"Expected a set that stands on evidence, such as ChiSquareSet(table) or "
        f"ReportSet(first, reports), got {type(F).__name__}.",
        argument="uncertainty",
    )


def shared(pieces: Sequence[Evidence], alpha: float) -> list[Evidence]:
    """The same pieces with levels that sum to α, in the proportions that they have."""
    total = math.fsum(item.alpha for item in pieces)
    return [
        item if isinstance(item, Known) else replace(item, alpha=item.alpha * (alpha / total))
        for item in pieces
    ]


def intersection(F: UncertaintySet, G: UncertaintySet) -> EvidenceSet:
    """The distributions in both, with the larger of their levels shared among all pieces."""
    if F.table.schema != G.table.schema:
        raise DataError("Expected two sets over the same columns and labels.")
    pieces = [*evidence_of(F), *evidence_of(G)]
    alphas = [math.fsum(x.alpha for x in evidence_of(each)) for each in (F, G)]
    return EvidenceSet.at_likeliest(F.table.schema, shared(pieces, max(alphas)))


def given(
    F: UncertaintySet,
    u: Any = None,
    *,
    rows: Any = None,
    limits: Sequence[Any] = (),
    alpha: float | None = None,
    test: str = CHI_SQUARE,
) -> EvidenceSet:
    """F with margins of U and inequalities that are known; `UncertaintySet.given` says more."""
    schema, pieces = F.table.schema, evidence_of(F)
    level = math.fsum(item.alpha for item in pieces)
    if u is None and rows is None:
        raise ParameterError("Expected counts u of a margin, or rows of inequalities, got neither.")
    if u is not None:
        pieces.append(margins(schema, u, alpha, test))
    if rows is not None:
        pieces.append(inequalities(schema, rows, limits))
    return EvidenceSet.at_likeliest(schema, shared(pieces, level) if level else pieces)


def margins(schema: Schema, u: Any, alpha: float | None, test: str) -> Evidence:
    """What a margin of U says: the counts of all its values, or those of one column.

    Args:
        schema: the alphabets.
        u: counts of all U values, in order or by label; or a mapping from the name of a useful
            column to its counts.
        alpha: None if the counts are those of everybody; else they are a simple random sample.
        test: of the sample.
    """
    names = [column.name for column in schema.useful]
    groups, labels, given = [[i] for i in range(schema.n_u)], schema.u_labels, u
    if isinstance(u, Mapping) and len(u) == 1 and next(iter(u)) in names:
        name, given = next(iter(u.items()))
        part = Part.of(schema, [name])
        groups, labels = [list(map(int, row)) for row in part.cells], part.labels
    if isinstance(given, Mapping):
        unknown = [label for label in given if str(label) not in labels]
        if unknown or len(given) != len(labels):
            raise ParameterError(
                f"Expected a count for each of {', '.join(labels[:12])}, got "
                f"{shown(unknown[0]) if unknown else f'{len(given)} counts'}.",
                argument="u",
            )
        by_label = {str(label): count for label, count in given.items()}
        given = [by_label[label] for label in labels]
    counts = [exact_number(x, "u") for x in list(given)]
    total = sum(counts)
    if len(counts) != len(groups) or any(c < 0 for c in counts) or not total:
        raise ParameterError(
            f"Expected {len(groups)} counts from 0 on, one for each value, got {len(counts)}.",
            argument="u",
        )
    if alpha is not None:
        if any(c.denominator != 1 for c in counts):
            raise ParameterError("Expected whole counts of a sample.", argument="u")
        channel = np.zeros((schema.n_s, schema.n_u, len(groups)), dtype=object)
        for k, group in enumerate(groups):
            channel[:, group, k] = 2
        return Reports(test, as_float(alpha), 1, channel, tuple(map(int, counts)))
    rows = tuple(
        tuple(
            tuple(Fraction(int(i in group)) for i in range(schema.n_u)) for _ in range(schema.n_s)
        )
        for group in groups
    )
    return Known(rows, tuple(c / total for c in counts), is_equal=True)


def inequalities(schema: Schema, rows: Any, limits: Sequence[Any]) -> Known:
    """rows·P ≤ limits."""
    exact = exact_tables(rows, (schema.n_s, schema.n_u), "rows")
    bounds = tuple(exact_number(limit, "limits") for limit in limits)
    if len(exact) != len(bounds):
        raise ParameterError(
            f"Expected {len(exact)} limits, one for each of the rows, got {len(bounds)}.",
            argument="limits",
        )
    return Known(tuple(exact), bounds, is_equal=False)


def features(held_out: Table, sets: Sequence[Flags], alpha: float) -> Features:
    """Which share of each S value has a U value in each set."""
    codes = tuple(tuple(int(u) for u in np.flatnonzero(H)) for H in sets)
    hits = tuple(
        tuple(int(held_out.counts[s, list(H)].sum()) for s in range(held_out.n_s)) for H in codes
    )
    totals = tuple(int(x) for x in held_out.counts.sum(axis=1))
    return Features(alpha, codes, hits, totals, held_out.n_u)
