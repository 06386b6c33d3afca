"""The alphabets of the sensitive part S and the useful part U: labels to codes and back."""

from __future__ import annotations

import math
import numbers
import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import product

import numpy as np

from rldp.checks import checked_tuple, shown
from rldp.errors import DataError, LabelWarning

_SHOWN = 8  # labels that a message lists


def label_text(value: object) -> str:
    """Text of one value as a label: ``2.0`` is "2", ``True`` is "true", text has no outer blanks.

    Blanks around a value are ignored everywhere, because not all CSV writers keep them.

    >>> [label_text(value) for value in (" a ", 2, 2.0, 2.5, True)]
    ['a', '2', '2', '2.5', 'true']
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return str(value).strip()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace").strip()
    if isinstance(value, float | Decimal):
        if value.is_nan() if isinstance(value, Decimal) else math.isnan(value):
            raise DataError("Expected a label, got NaN; name the level or leave it out.")
        if math.isfinite(value) and value == int(value):
            return str(int(value))
    is_several = isinstance(value, list | tuple | dict | set | frozenset | np.ndarray)
    if value is None or is_several or hasattr(value, "columns"):
        raise _no_label(shown(value), value)
    try:
        return str(value)
    except Exception:  # of whatever type; the error may hold what it stands for
        raise _no_label("one that has no text", value) from None


def _no_label(got: str, value: object) -> DataError:
    return DataError(
        f"Expected a label that is one text, number or date, "
        f"got {got} of type {type(value).__name__}."
    )


def shown_list(texts: Sequence[str]) -> str:
    """First few of ``texts`` for a message, with the number of all if there are more."""
    listed = ", ".join(repr(text) for text in texts[:_SHOWN])
    return listed if len(texts) <= _SHOWN else f"{listed}, ... ({len(texts)} in all)"


def sorted_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Labels in order: as numbers if all are numbers, else as text."""
    texts = sorted(labels)
    try:
        numbers = [float(text) for text in texts]
    except ValueError:
        return tuple(texts)
    return tuple(sorted(texts, key=float)) if all(map(math.isfinite, numbers)) else tuple(texts)


@dataclass(frozen=True)
class Column:
    """One column and its levels.

    Args:
        name: the column's name.
        labels: its levels as text, in the order of their codes 0, 1, ...

    >>> Column("sex", ("Female", "Male")).code("Male")
    1
    """

    name: str
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        """Check that the labels are different texts, at least one."""
        if not isinstance(self.name, str):
            raise DataError(f"Expected a column name as text, got {shown(self.name)}.")
        if not self.name:
            raise DataError("Expected a column name, got an empty text; name the column first.")
        _check_unicode(self.name, "the name of a column")
        if isinstance(self.labels, str):
            raise DataError(
                f"Expected a sequence of labels for column {self.name!r}, "
                f"got the text {self.labels!r}.",
                column=self.name,
            )
        expected = f"labels of column {self.name!r} as a sequence of texts"
        object.__setattr__(self, "labels", checked_tuple(self.labels, expected))
        if not self.labels:
            raise DataError(
                f"Expected at least one label in column {self.name!r}, got none.", column=self.name
            )
        for label in self.labels:
            if not isinstance(label, str):
                raise DataError(
                    f"Expected labels as text in column {self.name!r}, "
                    f"got {shown(label)} of type {type(label).__name__}.",
                    column=self.name,
                )
            _check_unicode(label, f"column {self.name!r}")
        repeated = [label for label, times in Counter(self.labels).items() if times > 1]
        if repeated:
            raise DataError(
                f"Expected different labels in column {self.name!r}, "
                f"got more than once: {shown_list(repeated)}.",
                column=self.name,
                label=repeated[0],
            )
        if len(self._codes) < len(self.labels):
            texts = Counter(label.strip() for label in self.labels)
            alike = [label for label in self.labels if texts[label.strip()] > 1]
            raise DataError(
                f"Expected labels that differ by more than the blanks around them in column "
                f"{self.name!r}, got {shown_list(alike)}.",
                column=self.name,
                label=alike[0],
            )

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {label.strip(): code for code, label in enumerate(self.labels)}

    def code(self, label: str) -> int:
        """Code of ``label``, its position among the labels; blanks around it do not count."""
        try:
            return self._codes[label.strip()]
        except (AttributeError, KeyError, TypeError):  # no text, or none of these
            raise DataError(
                f"Unknown label {shown(label)} in column {self.name!r}; "
                f"known are {shown_list(self.labels)}.",
                column=self.name,
                label=str(label),
            ) from None


@dataclass(frozen=True)
class Schema:
    """Alphabets of S and U, each the full product of its columns' levels.

    Combinations that nobody has seen stay in the alphabet. The first column is the most
    significant: with columns of 2 and 3 levels, code ``3 * i + j`` means levels (i, j).

    Args:
        sensitive: columns whose combination is the sensitive value s, at least one.
        useful: columns whose combination is the useful value u; none means n_u = 1.

    >>> schema = Schema((Column("income", ("low", "high")),),
    ...                 (Column("sex", ("f", "m")), Column("age", ("0", "1", "2"))))
    >>> schema.n_s, schema.n_u, schema.u_code(("m", "0")), schema.u_labels[3]
    (2, 6, 3, 'm | 0')
    """

    sensitive: tuple[Column, ...]
    useful: tuple[Column, ...] = ()

    def __post_init__(self) -> None:
        """Check that there is a sensitive column and that no name occurs twice."""
        for part in ("sensitive", "useful"):
            columns = checked_tuple(getattr(self, part), f"{part} as columns", argument=part)
            for column in columns:
                if not isinstance(column, Column):
                    raise DataError(
                        f"Expected {part} as columns, got {shown(column)}.", argument=part
                    )
            object.__setattr__(self, part, columns)
        if not self.sensitive:
            raise DataError(
                "Expected at least one sensitive column, got none.", argument="sensitive"
            )
        names = Counter(column.name for column in self.sensitive + self.useful)
        repeated = [name for name, times in names.items() if times > 1]
        if repeated:
            raise DataError(
                f"Expected each column once over sensitive and useful, "
                f"got more than once: {shown_list(repeated)}.",
                column=repeated[0],
            )

    @property
    def n_s(self) -> int:
        """Size of the alphabet of S."""
        return _size(self.sensitive)

    @property
    def n_u(self) -> int:
        """Size of the alphabet of U."""
        return _size(self.useful)

    @cached_property
    def s_labels(self) -> tuple[str, ...]:
        """Readable text of each code of S; the levels of a product are joined by " | "."""
        return _texts(self.sensitive)

    @cached_property
    def u_labels(self) -> tuple[str, ...]:
        """Readable text of each code of U; "(all)" if there is no useful column."""
        return _texts(self.useful)

    def s_code(self, labels: Sequence[str]) -> int:
        """Code in S of one label per sensitive column."""
        return _code("sensitive", self.sensitive, labels)

    def u_code(self, labels: Sequence[str]) -> int:
        """Code in U of one label per useful column."""
        return _code("useful", self.useful, labels)

    def s_levels(self, code: int) -> tuple[str, ...]:
        """Label of each sensitive column for a code of S."""
        return _levels("sensitive", self.sensitive, code)

    def u_levels(self, code: int) -> tuple[str, ...]:
        """Label of each useful column for a code of U."""
        return _levels("useful", self.useful, code)


def _check_unicode(text: str, where: str) -> None:
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise DataError(
            f"Expected valid Unicode in {where}, got {shown(text)} with a lone surrogate, which "
            f"is half a character."
        )


def _size(columns: Sequence[Column]) -> int:
    return math.prod(len(column.labels) for column in columns)


def _texts(columns: Sequence[Column]) -> tuple[str, ...]:
    if not columns:
        return ("(all)",)
    return tuple(" | ".join(levels) for levels in product(*(column.labels for column in columns)))


def _code(part: str, columns: Sequence[Column], labels: Sequence[str]) -> int:
    expected = (
        f"one label for each {part} column "
        f"({shown_list([column.name for column in columns]) or 'there is none'})"
    )
    if isinstance(labels, str) or len(checked_tuple(labels, expected)) != len(columns):
        raise DataError(f"Expected {expected}, got {shown(labels)}.")
    code = 0
    for column, label in zip(columns, labels, strict=True):
        code = code * len(column.labels) + column.code(label)
    return code


def _levels(part: str, columns: Sequence[Column], code: int) -> tuple[str, ...]:
    is_integer = isinstance(code, numbers.Integral) and not isinstance(code, bool)
    if not is_integer or not 0 <= code < _size(columns):
        raise DataError(
            f"Expected a {part} code from 0 to {_size(columns) - 1}, got {shown(code)}."
        )
    levels = []
    for column in reversed(columns):
        code, level = divmod(code, len(column.labels))
        levels.append(column.labels[level])
    return tuple(reversed(levels))


_SPELLED = 16  # characters of a label that are spelt by code points
_NAMED = 3  # pairs or codes that one warning names
_NO_ANSWER = frozenset(
    {
        *("na", "n/a", "n.a.", "#n/a", "nan", "null", "missing", "unknown", "?"),
        *("refused", "refusal", "dk", "don't know", "dont know", "do not know", "no answer"),
        *("not applicable", "not stated", "prefer not to say", "no response", "no reply"),
    }
)
_CODE = re.compile(r"(-[789]|-?(77|88|9[789])|-?(777|888|99[789])|-?(7777|8888|999[789])|-?99999)")
_INVISIBLE = frozenset({"Cc", "Cf"})  # controls and marks of format, such as of direction


def hint(columns: Iterable[Column]) -> None:
    """Warn of labels that look alike, and of labels that surveys use for missing values."""
    for column in columns:
        for text in (*doubles_in_words(column), *no_answers_in_words(column)):
            warnings.warn(text, LabelWarning, stacklevel=3)


def hint_of_doubles(columns: Iterable[Column]) -> None:
    """Warn of labels that look alike only: what else they say was decided before."""
    for column in columns:
        for text in doubles_in_words(column):
            warnings.warn(text, LabelWarning, stacklevel=3)


def looks(label: str) -> str:
    """What is seen of a label: without invisible marks, accents composed, blanks alike.

    >>> looks("Jose\\u0301\\u200b") == looks("José"), looks("a\\u00a0b") == looks("a b")
    (True, True)
    """
    seen = "".join(c for c in label if not _is_invisible(c))
    return " ".join(unicodedata.normalize("NFC", seen).split())


def _is_invisible(character: str) -> bool:
    is_selector = "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"
    if character.isspace():
        return False
    return is_selector or character == "\u034f" or unicodedata.category(character) in _INVISIBLE


def doubles_in_words(column: Column) -> list[str]:
    """What to say of labels of a column that look alike, nothing if there are none."""
    if all(
        label.isascii() and label.isprintable() and "  " not in label for label in column.labels
    ):
        return []
    groups: dict[str, list[str]] = {}
    for label in column.labels:
        groups.setdefault(looks(label), []).append(label)
    pairs = [(group[0], other) for group in groups.values() for other in group[1:]]
    if not pairs:
        return []
    told = "; ".join(f"{a!r} ({spelt(a, b)}) and {b!r} ({spelt(b, a)})" for a, b in pairs[:_NAMED])
    more = f"; and {len(pairs) - _NAMED} more pairs" if len(pairs) > _NAMED else ""
    return [
        f"Labels of column {column.name!r} look alike and are counted apart: {told}{more}. If they "
        f"are one value, write them alike before anything is designed or released."
    ]


def spelt(label: str, other: str) -> str:
    """The code points of a label; of a long one those from where it differs from the other.

    >>> spelt("é", "e\\u0301")
    'U+00E9'
    """
    start = 0
    if len(label) > _SPELLED:
        pairs = zip(label, other, strict=False)
        start = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(label), len(other)))
        start = max(0, min(start - 1, len(label) - 1))
    points = " ".join(f"U+{ord(c):04X}" for c in label[start : start + _SPELLED])
    return "… " * (start > 0) + points + " …" * (len(label) > start + _SPELLED)


def no_answers_in_words(column: Column) -> list[str]:
    """What to say of labels that may stand for missing values, nothing if there are none."""
    found = [label for label in column.labels if _is_no_answer(label)]
    found += _codes_apart(column.labels)
    if not found or len(found) == len(column.labels):
        return []
    listed = ", ".join(map(repr, found[:_NAMED])) + ", ..." * (len(found) > _NAMED)
    values, it = "labels" if len(found) > 1 else "a label", "them" if len(found) > 1 else "it"
    return [
        f"Column {column.name!r} has {values} that surveys use for missing values: {listed}; a "
        f"protocol takes {it} for {values} like the others. If nobody answered so, recode {it}, "
        f"or leave these records out."
    ]


def _is_no_answer(label: str) -> bool:
    return looks(label).replace("\u2019", "'").casefold() in _NO_ANSWER


def _codes_apart(labels: Sequence[str]) -> list[str]:
    """Numbers such as 99 and -9 that lie far from all other numbers of the column.

    99 among ages is an age: it is no further from the others than these are from each other.
    """
    numbers = {label: number for label in labels if (number := _number(label)) is not None}
    codes = [label for label in numbers if _CODE.fullmatch(label.removesuffix(".0"))]
    others = [number for label, number in numbers.items() if label not in codes]
    if not others:
        return codes if len(codes) < len(labels) else []
    low, high = min(others), max(others)
    reach = max(high - low, 1.0)
    return [
        label
        for label in codes
        if numbers[label] > high + reach
        or (numbers[label] < 0 <= low)
        or numbers[label] < low - reach
    ]


def _number(label: str) -> float | None:
    try:
        return float(label)
    except ValueError:
        return None
