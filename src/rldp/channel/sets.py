"""Columns that are constant on sets: few integers for each output, whatever the size of the table.

Output y has a class of every s and a class of every u, and a level for each pair of classes:

    Q(y|s, u) = levels_y[class of s, class of u].

Often there are two classes, a set and its complement. One more output, the last, is the remainder:
what all others leave of 1. It is not stored, and may depend on all of (s, u), but is constant up to
rounding where a design asks for no more. Equal partitions are stored once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rldp._types import Array, Indices, Integers
from rldp.arithmetic import log
from rldp.channel.base import (
    Channel,
    Comparisons,
    IntegerParts,
    Sides,
    check_size,
    largest_ratio,
    largest_ratio_between,
    naturals,
    register,
)
from rldp.errors import DataError
from rldp.information import distribution, relative_entropy_terms

AT_ONCE = 2**20  # entries of columns that are written out together
_LEAST_REMAINDER = 1e-9  # of the mass: what designed columns leave, so that rounding is no matter
_CALM = 100.0  # times the spread of their sums: then the remainder is constant up to a percent
_UNEVEN = 1e-5  # spread of the sums of columns that are said to sum to 1
_MOST_CLASSES = 2**16

Partitions = NDArray[Any]  # (partitions, values): the class of each value, small integers


class _Remainder(NamedTuple):
    """What the outputs leave, in units of 2^-bits."""

    N: Integers
    bits: int


@register
class SetChannel(Channel):
    """Outputs with a level for each pair of a class of S values and a class of U values.

    >>> halves = SetChannel.from_columns([[0, 1]], [[0, 1]], [[[0.2, 0.6], [0.6, 0.2]]], [1.0])
    Traceback (most recent call last):
    rldp.errors.DataError: Expected columns that sum to 1 in all cells, their sums are 0.2 to 0.6.
    >>> two = [[0, 1]] * 2
    >>> levels = [[[0.2, 0.6], [0.6, 0.2]], [[0.8, 0.4], [0.4, 0.8]]]
    >>> SetChannel.from_columns(two, two, levels, [1.0, 1.0]).matrix.round(3)[0].tolist()
    [[0.2, 0.8, 0.0], [0.6, 0.4, 0.0]]
    """

    kind = "sets"
    has_multipliers = False  # checkers look for those of columns with few values by themselves

    def __init__(
        self,
        s_partitions: ArrayLike,
        u_partitions: ArrayLike,
        outputs: ArrayLike,
        levels: ArrayLike,
    ) -> None:
        """Take partitions, and for each output the numbers of two of them and all its levels.

        Args:
            s_partitions: the class of each s, shape (partitions, n_s); classes are numbered from 0
                on, and each has a value.
            u_partitions: the same for u, shape (partitions, n_u).
            outputs: the numbers of an s- and a u-partition, shape (outputs, 2).
            levels: of all outputs one after the other, those of the first class of s first.
        """
        self.s_partitions = _checked_partitions(s_partitions, "s_partitions")
        self.u_partitions = _checked_partitions(u_partitions, "u_partitions")
        self._outputs = _checked_outputs(outputs, len(self.s_partitions), len(self.u_partitions))
        self.levels = np.array(levels, dtype=float)
        if self.levels.shape != (self._starts[-1],):
            raise DataError(
                f"Expected {self._starts[-1]} levels, one for each pair of classes of each "
                f"output, got shape {self.levels.shape}."
            )
        if not ((self.levels >= 0) & (self.levels <= 1 + 1e-9)).all():
            raise DataError("Expected probabilities as levels, got numbers outside of 0 and 1.")
        self.levels.setflags(write=False)
        self._exact: _Remainder | None = None
        left = 1 - self._summed(self.levels)
        if left.min() < -1e-9:
            raise DataError(
                f"Expected outputs that leave something of 1 in every cell, they sum to "
                f"{1 - left.min():.12g}."
            )
        self.remainder = np.maximum(left, 0.0)

    @classmethod
    def from_columns(
        cls,
        s_classes: ArrayLike,
        u_classes: ArrayLike,
        levels: Any,
        masses: ArrayLike,
    ) -> SetChannel:
        """The channel of columns T_y with masses θ_y, Σ θ_y T_y = 1, and a small remainder.

        The sums may be off by rounding. The remainder gets 1e-9 of the mass, and a hundred times
        the spread of the sums: it is then constant up to a percent, and private at any level that
        people use.

        Args:
            s_classes: the class of each s in each column, shape (columns, n_s).
            u_classes: the class of each u, shape (columns, n_u).
            levels: T_y[s, u] = levels[y][s_classes[y, s], u_classes[y, u]]; shape (columns, k_s,
                k_u), or a list of arrays of any shapes. Levels of classes without a value do not
                count.
            masses: θ, shape (columns,). Columns without mass are left out.
        """
        theta = np.asarray(masses, dtype=float)
        of_s, of_u = np.asarray(s_classes), np.asarray(u_classes)
        if theta.ndim != 1 or of_s.ndim != 2 or of_u.ndim != 2 or not len(theta) == len(of_s):
            raise DataError("Expected classes of shape (columns, values), and a mass per column.")
        if len(levels) != len(theta) or len(of_u) != len(theta):
            raise DataError(f"Expected classes and levels of {len(theta)} columns.")
        columns = [_Column.of(of_s[y], of_u[y], levels[y], theta[y]) for y in np.flatnonzero(theta)]
        if not columns:
            raise DataError("Expected a column with a mass above 0.")
        s_partitions, i = np.unique([c.of_s for c in columns], axis=0, return_inverse=True)
        u_partitions, j = np.unique([c.of_u for c in columns], axis=0, return_inverse=True)
        outputs = np.stack([i.ravel(), j.ravel()], axis=1)
        flat = np.concatenate([c.levels.ravel() for c in columns])
        sums = _Shapes(s_partitions, u_partitions, outputs).summed(flat)
        if np.ptp(sums) > _UNEVEN:
            raise DataError(
                f"Expected columns that sum to 1 in all cells, their sums are {sums.min():.6g} to "
                f"{sums.max():.6g}."
            )
        left = _LEAST_REMAINDER + _CALM * np.ptp(sums)
        return cls(s_partitions, u_partitions, outputs, flat * min(1.0, (1 - left) / sums.max()))

    # --- columns, some at a time -----------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int]:
        """(n_s, n_u)."""
        return self.s_partitions.shape[1], self.u_partitions.shape[1]

    @property
    def n_outputs(self) -> int:
        """All outputs, the remainder being the last."""
        return len(self._outputs) + 1

    @property
    def parts(self) -> dict[str, Any]:
        """What the constructor takes."""
        return {
            "s_partitions": self.s_partitions,
            "u_partitions": self.u_partitions,
            "outputs": self._outputs,
            "levels": self.levels,
        }

    @cached_property
    def _shapes(self) -> _Shapes:
        return _Shapes(self.s_partitions, self.u_partitions, self._outputs)

    @property
    def _starts(self) -> Indices:
        return self._shapes.starts

    def _summed(self, values: NDArray[Any]) -> NDArray[Any]:
        return self._shapes.summed(values)

    def columns(self, at_once: int = AT_ONCE) -> Iterator[tuple[slice, Array]]:
        """Q[y, s, u] of outputs in their order, so many at a time that memory is bounded."""
        for part, codes in self._shapes.codes(at_once):
            yield part, self.levels[codes]
        last = self.n_outputs - 1
        yield slice(last, last + 1), self.remainder[None]

    def _build(self) -> Array:
        Q = np.empty((*self.shape, self.n_outputs))
        for part, columns in self.columns():
            Q[:, :, part] = columns.transpose(1, 2, 0)
        return Q

    def law(self, p_su: Array) -> Array:
        """P_Y for records with these probabilities, which need not sum to 1; shape (n_y,)."""
        shares = self._shapes.masses(p_su) * self.levels
        return np.append(np.add.reduceat(shares, self._starts[:-1]), (p_su * self.remainder).sum())

    def expectations(self, values: Array) -> Array:
        """Σ_y Q(y|s, u) values[y], shape (n_s, n_u)."""
        each = np.repeat(values[:-1], np.diff(self._starts)) * self.levels
        return np.asarray(self._summed(each) + self.remainder * values[-1])

    # --- information -----------------------------------------------------------------------------

    def mutual_information_bounds(self, p_su: ArrayLike) -> tuple[float, float]:
        """I(X;Y), exact, from the masses of pairs of classes."""
        p_su = distribution(p_su, self.shape)
        p_y = self.law(p_su)
        each = relative_entropy_terms(self.levels, np.repeat(p_y[:-1], np.diff(self._starts)))
        masses = self._shapes.masses(p_su)
        value = float(np.multiply(masses, each, out=np.zeros_like(each), where=masses > 0).sum())
        rest = relative_entropy_terms(self.remainder, p_y[-1])
        value += float(np.multiply(p_su, rest, out=np.zeros_like(rest), where=p_su > 0).sum())
        return self._within_entropy(value, value, p_su)

    def divergences(self, p_su: ArrayLike) -> Array:
        """Exact wherever P_Y is positive."""
        p_y = np.maximum(self.law(distribution(p_su, self.shape)), 1e-300)
        each = np.repeat(log(p_y[:-1]), np.diff(self._starts))
        terms = self.levels * (log(np.maximum(self.levels, 1e-300)) - each)
        rest = self.remainder * (log(np.maximum(self.remainder, 1e-300)) - log(p_y[-1]))
        return np.asarray(self._summed(terms) + rest)

    # --- privacy ---------------------------------------------------------------------------------

    def comparisons(self) -> Comparisons:
        """One group for each output, one entry for each s, all written out."""
        check_size(*self.shape, self.n_outputs)
        return self._compared(np.concatenate([columns for _, columns in self.columns()]), 0)

    def comparison_blocks(self) -> Iterator[Comparisons]:
        """The same for some outputs after the others."""
        n_s, n_u = self.shape
        for part, columns in self.columns(AT_ONCE * n_u // max(n_s, n_u)):  # pairs count too
            yield self._compared(columns, part.start)

    def _compared(self, columns: Array, first: int) -> Comparisons:
        n, n_s, n_u = columns.shape
        s, group = np.tile(np.arange(n_s), n), np.repeat(np.arange(n), n_s)
        return Comparisons(columns.reshape(n * n_s, n_u), s, group, symbol=first + group)

    def plain_ratio(self) -> float:
        """The largest ratio within a column."""
        top = np.maximum.reduceat(self.levels, self._starts[:-1])
        bottom = np.minimum.reduceat(self.levels, self._starts[:-1])
        last = largest_ratio(self.remainder.max(), self.remainder.min())
        return max(last, largest_ratio(top, bottom))

    def ratio_over_all(self) -> float:
        """The largest level of one s over the smallest of another."""
        found = largest_ratio_between(self.remainder.max(axis=1), self.remainder.min(axis=1))
        for rows, L in self._shapes.tables(self.levels):
            for some, classes in self._shapes.s_classes(rows, AT_ONCE):
                high, low = L[some].max(axis=2), L[some].min(axis=2)
                of_s = (np.take_along_axis(x, classes, axis=1).T for x in (high, low))
                found = max(found, largest_ratio_between(*of_s))
        return found

    def ratio_given_u(self) -> float:
        """The largest ratio of levels of one class of u."""
        found = largest_ratio(self.remainder.max(axis=0), self.remainder.min(axis=0))
        for _, L in self._shapes.tables(self.levels):
            found = max(found, largest_ratio(L.max(axis=1), L.min(axis=1)))
        return found

    def pulled_in(self, t: float) -> SetChannel:
        """Each output mixed with its mean over all cells."""
        n_s, n_u = self.shape
        mean = self.law(np.full((n_s, n_u), 1 / (n_s * n_u)))[:-1]
        levels = (1 - t) * self.levels + t * np.repeat(mean, np.diff(self._starts))
        return SetChannel(self.s_partitions, self.u_partitions, self._outputs, levels)

    # --- as an integer table ---------------------------------------------------------------------

    def rounded(self, bits: int) -> IntegerParts:
        """Levels rounded down, so that the remainder gets what they lose."""
        N = np.maximum(np.floor(self.levels * 2.0**bits), self.levels > 0).astype(np.int64)
        return {**self.parts, "levels": N}

    @classmethod
    def from_integers(cls, integers: IntegerParts, bits: int) -> SetChannel:
        """The channel of a table in units of 2^-bits, with its remainder to the last unit."""
        channel = cls(**{**integers, "levels": integers["levels"] / 2.0**bits})
        N = 2**bits - channel._summed(integers["levels"])
        if N.min() < 0:
            raise DataError(f"Expected outputs that sum to 2^{bits} at most in every cell.")
        channel._exact = _Remainder(N, bits)
        channel.remainder = N / 2.0**bits
        return channel

    @classmethod
    def row_sums(cls, integers: IntegerParts) -> IntegerParts:  # noqa: ARG003  # of every kind
        """Nothing to check: the remainder makes up every sum, and is not negative."""
        return {}

    @classmethod
    def written(cls, integers: IntegerParts) -> dict[str, Any]:
        """Partitions as hexadecimal texts, and the levels of an output as one text."""
        shapes = _Shapes(*(integers[x] for x in ("s_partitions", "u_partitions", "outputs")))
        levels, ends = integers["levels"].tolist(), shapes.starts.tolist()
        return {
            "s_partitions": [partition_text(row) for row in integers["s_partitions"]],
            "u_partitions": [partition_text(row) for row in integers["u_partitions"]],
            "outputs": [
                [i, j, " ".join(map(str, levels[ends[y] : ends[y + 1]]))]
                for y, (i, j) in enumerate(integers["outputs"].tolist())
            ],
        }

    @classmethod
    def read(cls, parts: Mapping[str, Any]) -> IntegerParts:
        """The same again; each part is checked by the constructor."""
        if set(parts) != {"s_partitions", "u_partitions", "outputs"}:
            raise DataError("Expected s_partitions, u_partitions and outputs of a sets channel.")
        outputs = parts["outputs"]
        is_list = isinstance(outputs, list) and all(
            isinstance(x, list)
            and list(map(type, x)) == [int, int, str]
            and 0 <= min(x[:2]) <= max(x[:2]) < 2**31
            for x in outputs
        )
        if not is_list or not outputs:
            raise DataError(
                "Expected outputs as a list of two numbers of partitions and a text of levels each."
            )
        texts = [x[2].split(" ") for x in outputs]
        levels = naturals([text for row in texts for text in row], "outputs")
        found = {
            "s_partitions": _partitions_from(parts["s_partitions"], "s_partitions"),
            "u_partitions": _partitions_from(parts["u_partitions"], "u_partitions"),
            "outputs": np.array([x[:2] for x in outputs], dtype=np.int64),
            "levels": levels,
        }
        of_s, of_u = (_checked_partitions(found[x], x) for x in ("s_partitions", "u_partitions"))
        sizes = _Shapes(
            of_s,
            of_u,
            _checked_outputs(
                found["outputs"], len(found["s_partitions"]), len(found["u_partitions"])
            ),
        ).sizes
        if sizes.tolist() != [len(row) for row in texts]:
            raise DataError("Expected a level for each pair of classes of every output.")
        return found

    def listed(self, integers: IntegerParts) -> Integers:
        """The whole table, the remainder last, where it is small enough to be listed."""
        check_size(*self.shape, self.n_outputs)
        N = np.empty((*self.shape, self.n_outputs), dtype=np.int64)
        for part, codes in self._shapes.codes(AT_ONCE):
            N[:, :, part] = integers["levels"][codes].transpose(1, 2, 0)
        N[:, :, -1] = self._rest.N
        return N

    @property
    def is_exact(self) -> bool:
        """Whether it is the channel of a table of integers."""
        return self._exact is not None

    @property
    def _rest(self) -> _Remainder:
        assert self._exact is not None, "only a channel of integers has an exact remainder"
        return self._exact

    def integer_row(self, integers: IntegerParts, s: int, u: int) -> Integers:
        """N[s, u, :], the remainder last."""
        i, j, k_u, starts, of_s, of_u = self._by_cell
        row = integers["levels"][starts + of_s[s][i] * k_u + of_u[u][j]]
        return np.append(row, self._rest.N[s, u])

    @cached_property
    def _by_cell(self) -> tuple[Indices, Indices, Indices, Indices, Partitions, Partitions]:
        """What a row is made of, with the classes of one value beside each other."""
        x = self._shapes
        of_s, of_u = (np.ascontiguousarray(part.T) for part in (x.of_s, x.of_u))
        return x.i, x.j, x.k_u, x.starts[:-1], of_s, of_u

    def reads_sensitive(self, integers: IntegerParts) -> bool:
        """Whether a level depends on the class of s; if none does, nor does the remainder."""
        return any(np.ptp(L, axis=1).any() for _, L in self._shapes.tables(integers["levels"]))

    def sides(
        self, integers: IntegerParts, comparisons: Comparisons, first: int, second: int
    ) -> Sides:
        """Two entries as the integers that checkers compare."""
        y = int(comparisons.symbol[first])
        s_1, s_2 = int(comparisons.s[first]), int(comparisons.s[second])
        q = [self._integer_column(integers, y, s) for s in (s_1, s_2)]
        return Sides([y, s_1, s_2], 1, q[0], 1, q[1], 2.0**self._rest.bits)

    def _integer_column(self, integers: IntegerParts, y: int, s: int) -> Integers:
        if y == self.n_outputs - 1:
            return np.asarray(self._rest.N[s])
        return np.asarray(integers["levels"][self._shapes.column(y, s)])


class _Shapes:
    """Where the level of (y, s, u) stands among all levels."""

    def __init__(self, of_s: Partitions, of_u: Partitions, outputs: Indices) -> None:
        """Take the partitions, and the two numbers of each output."""
        self.of_s, self.of_u = of_s, of_u
        self.i, self.j = outputs[:, 0], outputs[:, 1]
        self.k_s = of_s.max(axis=1).astype(np.intp)[self.i] + 1
        self.k_u = of_u.max(axis=1).astype(np.intp)[self.j] + 1
        self.sizes: Indices = self.k_s * self.k_u
        self.starts: Indices = np.append(0, np.cumsum(self.sizes)).astype(np.intp)

    def codes(self, at_once: int) -> Iterator[tuple[slice, Indices]]:
        """Places of the levels of some outputs after the others, shape (outputs, n_s, n_u)."""
        step = max(1, at_once // (self.of_s.shape[1] * self.of_u.shape[1]))
        for first in range(0, len(self.i), step):
            part = slice(first, min(first + step, len(self.i)))
            rows = self.of_s[self.i[part]] * self.k_u[part, None] + self.starts[part, None]
            yield part, rows[:, :, None] + self.of_u[self.j[part]][:, None, :]

    def column(self, y: int, s: int) -> Indices:
        """Places of the levels of one output and one s."""
        row = int(self.of_s[self.i[y], s]) * self.k_u[y] + self.starts[y]
        return np.asarray(row + self.of_u[self.j[y]])

    def summed(self, values: NDArray[Any]) -> NDArray[Any]:
        """Σ_y values[place of (y, s, u)], shape (n_s, n_u)."""
        total = np.zeros((self.of_s.shape[1], self.of_u.shape[1]), dtype=values.dtype)
        for _, places in self.codes(AT_ONCE):
            total += values[places].sum(axis=0)
        return total

    def masses(self, p_su: Array) -> Array:
        """The mass of the cells that have each level."""
        total = np.zeros(self.starts[-1])
        for part, places in self.codes(AT_ONCE):
            low, high = self.starts[part.start], self.starts[part.stop]
            weights = np.broadcast_to(p_su, places.shape).ravel()
            total[low:high] = np.bincount((places - low).ravel(), weights, high - low)
        return total

    def tables(self, values: NDArray[Any]) -> Iterator[tuple[Indices, NDArray[Any]]]:
        """Levels by output and classes, (outputs, k_s, k_u), of all outputs of one shape."""
        shapes = self.k_s * (self.k_u.max() + 1) + self.k_u
        for shape in np.unique(shapes):
            rows = np.flatnonzero(shapes == shape)
            k_s, k_u = int(self.k_s[rows[0]]), int(self.k_u[rows[0]])
            places = self.starts[rows][:, None] + np.arange(k_s * k_u)
            yield rows, values[places].reshape(len(rows), k_s, k_u)

    def s_classes(self, rows: Indices, at_once: int) -> Iterator[tuple[slice, Indices]]:
        """The classes of each s in some of these outputs after the others."""
        step = max(1, at_once // self.of_s.shape[1])
        for first in range(0, len(rows), step):
            some = slice(first, first + step)
            yield some, self.of_s[self.i[rows[some]]].astype(np.intp)


class _Column(NamedTuple):
    """A column with classes numbered in the order in which values first have them."""

    of_s: Partitions
    of_u: Partitions
    levels: Array

    @classmethod
    def of(cls, of_s: Any, of_u: Any, levels: Any, mass: float) -> _Column:
        L = np.asarray(levels, dtype=float)
        if L.ndim != 2:
            raise DataError(f"Expected levels of a column by two classes, got shape {L.shape}.")
        (s_first, s_class), (u_first, u_class) = _renumbered(of_s), _renumbered(of_u)
        if s_first.min() < 0 or u_first.min() < 0:
            raise DataError("Expected classes from 0 on, got a negative one.")
        if s_first.max() >= L.shape[0] or u_first.max() >= L.shape[1]:
            raise DataError(f"Expected classes within levels of shape {L.shape}.")
        return cls(s_class, u_class, mass * L[np.ix_(s_first, u_first)])


def _renumbered(classes: Any) -> tuple[Indices, Partitions]:
    """The classes that occur, in order of appearance, and the number of each value's class."""
    found, first, inverse = np.unique(classes, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    small = np.uint8 if len(found) <= 2**8 else np.uint16
    return found[order], number[inverse].astype(small)


def _checked_partitions(values: ArrayLike, name: str) -> Partitions:
    a = np.asarray(values)
    if a.ndim != 2 or 0 in a.shape or a.dtype.kind not in "iu":
        raise DataError(f"Expected {name} as integers of shape (partitions, values).")
    if a.min() < 0 or a.max() >= min(_MOST_CLASSES, a.shape[1]):
        raise DataError(f"Expected classes in {name} from 0 on, no more than values.")
    ordered = np.sort(a, axis=1)
    if ordered[:, 0].any() or (np.diff(ordered.astype(np.int64), axis=1) > 1).any():
        raise DataError(f"Expected every class of a partition in {name} with a value in it.")
    a = a.astype(np.uint8 if a.max() < 2**8 else np.uint16)
    a.setflags(write=False)
    return a


def _checked_outputs(values: ArrayLike, n_s_partitions: int, n_u_partitions: int) -> Indices:
    a = np.asarray(values)
    if a.ndim != 2 or a.shape[1] != 2 or not a.size or a.dtype.kind not in "iu":
        raise DataError(f"Expected outputs as two numbers of partitions each, got {a.shape}.")
    if a.min() < 0 or (a.max(axis=0) >= [n_s_partitions, n_u_partitions]).any():
        raise DataError("Expected outputs with numbers of partitions that there are.")
    return a.astype(np.intp)


def partition_text(classes: Partitions) -> str:
    """The number of values, and their classes in hexadecimal; see docs/format.md."""
    k = int(classes.max()) + 1
    each = (k - 1).bit_length()
    number = 0
    if each == 1:
        number = int.from_bytes(np.packbits(classes).tobytes()) >> (-len(classes) % 8)
    elif each:
        for x in classes.tolist():
            number = number << each | x
    digits = -(-each * len(classes) // 4)
    return f"{len(classes)}:{k}:" + (f"{number:0{digits}x}" if digits else "")


def _partitions_from(texts: Any, name: str) -> Partitions:
    if not isinstance(texts, list) or not texts:
        raise DataError(f"Expected {name} as a list of texts.")
    rows = [classes_from(text, name) for text in texts]
    if len({len(row) for row in rows}) > 1:
        raise DataError(f"Expected partitions of the same values in {name}.")
    return np.array(rows)


def classes_from(text: Any, name: str) -> list[int]:
    """The classes again; `name` is that of the partition in a message."""
    parts = text.split(":") if isinstance(text, str) and text.isascii() else []
    if len(parts) != 3 or not all(x.isdigit() and len(x) <= 5 for x in parts[:2]):
        raise DataError(f"Expected a partition in {name} as values:classes:digits.")
    n, k = int(parts[0]), int(parts[1])
    each = (k - 1).bit_length() if k else 0
    digits = parts[2]
    if not 0 < k <= n or len(digits) != -(-each * n // 4):
        raise DataError(f"Expected as many digits of a partition in {name} as its values need.")
    if not set(digits) <= set("0123456789abcdef"):
        raise DataError(f"Expected lower-case hexadecimal digits in {name}.")
    if not each:
        return [0] * n
    bits = f"{int(digits, 16):0{each * n}b}"
    if len(bits) > each * n:
        raise DataError(f"Expected zeros before the first class of a partition in {name}.")
    found = [int(bits[i : i + each], 2) for i in range(0, len(bits), each)]
    if set(found) != set(range(k)):
        raise DataError(f"Expected all {k} classes of a partition in {name}, and no others.")
    return found
