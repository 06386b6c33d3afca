"""What every channel offers, and what every array of probabilities must satisfy."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from rldp._types import Array, Codes, Indices, Integers
from rldp.checks import as_array
from rldp.errors import DataError, ParameterError, TooLargeError
from rldp.information import entropy

Output = int | tuple[int, ...]
IntegerParts = dict[str, Integers]

_NATURAL = re.compile("[0-9]{1,18}|[1-4][0-9]{18}")  # up to 4,999,999,999,999,999,999 > 2^62
_MOST_ENTRIES = 2**27  # one gibibyte of matrix


class Comparisons(NamedTuple):
    """The comparisons that privacy requires, without the outputs themselves.

    Entry e says: P(y|s_e) = c · vectors[e]·P_{U|s_e}, with one c for all entries of its group. Any
    two entries of a group with different s are compared. An entry with s = ANYONE has a constant
    vector and stands for all S values that have no other entry in its group. With `factors`, the
    ratio for (s1, s2) is multiplied by factors[s1, s2]. `symbol` is what the entry's part of the
    output says: the output itself, or the symbol in a block.
    """

    vectors: Array
    s: Indices
    group: Indices
    symbol: Indices
    factors: Array | None = None


ANYONE = -1


class Sides(NamedTuple):
    """The vectors of two entries in integers: a_1 q_1·R_1 is compared with a_2 q_2·R_2."""

    place: list[int]  # where a certificate has it
    a_1: int
    q_1: Integers
    a_2: int
    q_2: Integers
    unit: float  # what stands for 1


class Channel(ABC):
    """A release channel from S × U to a finite set of outputs."""

    kind: ClassVar[str] = ""  # its name in files
    has_multipliers: ClassVar[bool] = True  # in the certificates of sets that know them
    reports_sets: ClassVar[bool] = False  # a symbol, or silence, for each of several blocks

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(n_s, n_u)."""

    @property
    @abstractmethod
    def n_outputs(self) -> int:
        """Number of outputs n_y."""

    @abstractmethod
    def _build(self) -> Array:
        """Q[s, u, y], built from the structure."""

    @property
    @abstractmethod
    def parts(self) -> dict[str, Array]:
        """The arrays that define the channel, under the names of the constructor's arguments."""

    @cached_property
    def matrix(self) -> Array:
        """Q[s, u, y], shape (n_s, n_u, n_y); the last axis sums to 1."""
        check_size(*self.shape, self.n_outputs)
        Q = self._build()
        Q.setflags(write=False)
        return Q

    @abstractmethod
    def mutual_information_bounds(self, p_su: ArrayLike) -> tuple[float, float]:
        """Two numbers that bracket I(X;Y) at p_su; equal wherever it is computed exactly."""

    @abstractmethod
    def divergences(self, p_su: ArrayLike) -> Array:
        """D(Q_x‖P_Y) of each record x = (s, u), from below; their mean under p_su is I(X;Y)."""

    def mutual_information(self, p_su: ArrayLike) -> float:
        """I(X;Y) in nats for X ~ p_su, shape (n_s, n_u)."""
        return sum(self.mutual_information_bounds(p_su)) / 2

    @staticmethod
    def _within_entropy(low: float, high: float, p_su: Array) -> tuple[float, float]:
        # 0 ≤ I(X;Y) ≤ H(X) also where rounding says otherwise
        most = entropy(p_su)
        return min(max(0.0, low), most), min(max(0.0, high), most)

    @abstractmethod
    def pulled_in(self, t: float) -> Self:
        """Mixed with a little of a channel that ignores the input: all ratios come closer to 1."""

    @abstractmethod
    def rounded(self, bits: int) -> IntegerParts:
        """The parts as integers in units of 2^-bits whose sums are exactly what they must be."""

    @abstractmethod
    def comparisons(self) -> Comparisons:
        """The comparisons that privacy requires."""

    def comparison_blocks(self) -> Iterator[Comparisons]:
        """The same, group by group in parts that fit into memory."""
        yield self.comparisons()

    def output(self, comparisons: Comparisons, first: int, second: int) -> Output:  # noqa: ARG002  # most need one entry only
        """An output in which two entries of a group meet, as a release writes it."""
        return int(comparisons.symbol[first])

    @abstractmethod
    def plain_ratio(self) -> float:
        """The largest Q(y|x)/Q(y|x'): e^ε of plain local differential privacy."""

    @abstractmethod
    def ratio_over_all(self) -> float:
        """The largest Q(y|s,u)/Q(y|s',u') with s ≠ s': e^ε over all distributions."""

    @abstractmethod
    def ratio_given_u(self) -> float:
        """The largest Q(y|s,u)/Q(y|s',u) with s ≠ s': e^ε against those who know U."""

    # --- as an integer table ---------------------------------------------------------------------

    @classmethod
    def from_integers(cls, integers: IntegerParts, bits: int) -> Self:
        """The channel of a table in units of 2^-bits."""
        return cls(**{name: N / 2.0**bits for name, N in integers.items()})

    @classmethod
    def written(cls, integers: IntegerParts) -> dict[str, Any]:
        """The parts as plain values for a file, integers as text so that no reader rounds them."""
        return {name: N.astype(str).tolist() for name, N in integers.items()}

    @classmethod
    def read(cls, parts: Mapping[str, Any]) -> IntegerParts:
        """The integers of a file again."""
        return {name: _integers(part, name) for name, part in parts.items()}

    @classmethod
    def row_sums(cls, integers: IntegerParts) -> IntegerParts:
        """What must be 2^bits, by the part it belongs to."""
        return {name: N.sum(axis=-1) for name, N in integers.items()}

    def listed(self, integers: IntegerParts) -> Integers:  # noqa: ARG002  # not all can
        """N[s, u, y] in the units of the integers, where a report is one draw from a row."""
        raise ParameterError(
            f"Expected a channel whose outputs can be listed, got {type(self).__name__}."
        )

    @property
    def naming(self) -> tuple[tuple[str, int], ...]:
        """What each part of a report names, "s", "u", "cell", "bit" or "output", and how many."""
        return (("output", self.n_outputs),)

    def reads_sensitive(self, integers: IntegerParts) -> bool:  # noqa: ARG002  # most do
        """Whether a report depends on s beyond u."""
        return True

    def bounded_vectors(self, integers: IntegerParts) -> tuple[Integers, Codes]:
        """The vectors that checkers bound, with two leading axes in their order, and their s."""
        q = self.listed(integers).transpose(2, 0, 1)
        return q, np.repeat(np.arange(self.shape[0])[None], q.shape[0], axis=0)

    def sides(
        self, integers: IntegerParts, comparisons: Comparisons, first: int, second: int
    ) -> Sides:
        """Two entries as the integers that checkers compare."""
        N, y = self.listed(integers), int(comparisons.symbol[first])
        s_1, s_2 = int(comparisons.s[first]), int(comparisons.s[second])
        return Sides([y, s_1, s_2], 1, N[s_1, :, y], 1, N[s_2, :, y], float(N[0, 0].sum()))


def check_size(n_s: int, n_u: int, n_outputs: int) -> None:
    """Refuse to write out a matrix that would be huge."""
    if n_s * n_u * n_outputs > _MOST_ENTRIES:
        raise TooLargeError(
            f"The matrix would have {n_s} × {n_u} × {_readable(n_outputs)} entries; "
            "use the channel itself, which never builds them."
        )


def naturals(texts: list[Any], name: str) -> Integers:
    """Non-negative integers in decimal text, as an array of one axis."""
    if not all(isinstance(text, str) and _NATURAL.fullmatch(text) for text in texts):
        raise DataError(
            f"Expected a rectangular table of non-negative integers as text under {name!r}."
        )
    return np.array([int(text) for text in texts], dtype=np.int64)


def _integers(part: Any, name: str) -> Integers:
    """Nested lists of decimal text as an array."""
    try:
        array = np.array(part, dtype=object)
    except ValueError:
        raise DataError(f"Expected a rectangular table under {name!r}.") from None
    return naturals(array.ravel().tolist() if isinstance(part, list) else [part], name).reshape(
        array.shape
    )


def in_units(values: Array, bits: int) -> Integers:
    """Probabilities as integers in units of 2^-bits; what can happen keeps at least one unit."""
    return np.maximum(np.rint(values * 2.0**bits), values > 0).astype(np.int64)


def integer_rows(rows: Array, bits: int, total: Integers | None = None) -> Integers:
    """Rows of probabilities as integers that sum to 2^bits, or to `total` where it is given."""
    N = in_units(rows, bits)
    missing = (np.int64(2**bits) if total is None else total) - N.sum(axis=-1)
    largest = N.argmax(axis=-1)[..., None]
    np.put_along_axis(N, largest, np.take_along_axis(N, largest, -1) + missing[..., None], -1)
    return N


def checked(values: ArrayLike, name: str, n_axes: int) -> Array:
    """A private float copy with probabilities only."""
    a = np.array(as_array(values, f"{name} as numbers with {n_axes} axes"))
    if a.ndim != n_axes or 0 in a.shape:
        raise DataError(f"Expected {name} with {n_axes} non-empty axes, got shape {a.shape}.")
    bad = np.argwhere(~((a >= 0) & (a <= 1 + 1e-9)))
    if bad.size:
        place = tuple(int(i) for i in bad[0])
        raise DataError(f"Expected probabilities in {name}, got {a[place]} at {place}.")
    a.setflags(write=False)
    return a


def check_sums(sums: Array, name: str) -> None:
    """Refuse sums that are not 1, naming the input that is furthest off."""
    worst = np.unravel_index(int(np.abs(sums - 1).argmax()), sums.shape)
    if abs(sums[worst] - 1) > 1e-9:
        place = tuple(int(i) for i in worst)
        raise DataError(f"Expected {name} to sum to 1 at input {place}, got {sums[worst]:.12g}.")


def _readable(count: int) -> str:
    return str(count) if count < 10**12 else f"about 10^{len(str(count)) - 1}"


def largest_ratio(numerator: ArrayLike, denominator: ArrayLike) -> float:
    """The largest quotient, where 0/0 counts as 1 and x/0 as ∞."""
    a, b = np.broadcast_arrays(np.asarray(numerator, float), np.asarray(denominator, float))
    ratio = np.where(a > 0, np.inf, 1.0)
    np.divide(a, b, out=ratio, where=b > 0)
    return float(ratio.max())


def largest_ratio_between(top: Array, bottom: Array) -> float:
    """The largest top[s]/bottom[s'] with s ≠ s' along the first axis; 1 where there is one s."""
    if len(top) == 1:
        return 1.0
    s = np.arange(len(top)).reshape(-1, *(1 for _ in top.shape[1:]))
    best, least = top.argmax(axis=0), bottom.argmin(axis=0)
    # where one s has both, it meets the next on either side
    next_top = np.where((s == best) & (best == least), -np.inf, top).max(axis=0)
    next_bottom = np.where((s == least) & (best == least), np.inf, bottom).min(axis=0)
    return max(
        largest_ratio(next_top, bottom.min(axis=0)), largest_ratio(top.max(axis=0), next_bottom)
    )


# Every kind of channel that files know, by its name. A new kind is a subclass of `Channel` with a
# `kind`, under `@register`. It answers the abstract methods, and `listed` if a report is one draw
# from a row of a table: then it can be released, labelled, estimated from and proved as a matrix
# is. A kind with more structure says so itself, in the methods that `Channel` derives from
# `listed`, and to `rldp.release.sampler.sampler_of` and `rldp.estimation.moments.moments`, which
# take functions for classes. The two checkers, and clients in other languages, share nothing with
# this package and need an entry of their own.

_Class = TypeVar("_Class", bound=type[Channel])

_CHANNELS: dict[str, type[Channel]] = {}
CHANNELS: Mapping[str, type[Channel]] = MappingProxyType(_CHANNELS)


def register(cls: _Class) -> _Class:
    """Make a channel known under its kind."""
    known = _CHANNELS.get(cls.kind)
    if not cls.__dict__.get("kind"):
        raise ParameterError(f"Expected {cls.__name__} with a kind of its own.")
    if known is not None:
        raise ParameterError(f"Expected a new kind, got {cls.kind!r}, which {known.__name__} has.")
    _CHANNELS[cls.kind] = cls
    return cls


def kind_of(channel: Channel) -> str:
    """The kind of a channel."""
    kind = type(channel).kind
    if _CHANNELS.get(kind) is not type(channel):
        raise ParameterError(
            f"Expected a kind of channel that is registered, got {type(channel).__name__}: "
            "put @rldp.channel.register before its class."
        )
    return kind
