"""Labels that people should look at before a table is used: doubles, and codes for no answer."""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Iterable, Sequence

from rldp.errors import LabelWarning
from rldp.tables.schema import Column

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
