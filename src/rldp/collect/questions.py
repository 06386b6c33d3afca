"""Question files: TOML in one language, or an XLSForm in several, checked against the protocol."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rldp.collect.form_texts import DEFAULT, TEXTS, Question, Texts
from rldp.collect.xlsform import read_xlsform
from rldp.errors import DataError, FileError
from rldp.tables.schema import Schema, shown_list

_LANGUAGE = re.compile("[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_KNOWN = {"language", "questions", "page", *TEXTS}
_OF_QUESTION = {"text", "hint", "labels"}
_LONGEST = 4_000  # characters of a text
_MOST = 4_000_000  # characters of all texts in all languages
_MOST_BYTES = 4 << 20  # of a file


def read_texts(paths: Iterable[Path], schema: Schema) -> list[Texts]:
    """The texts of all files, each language once; plain ones if there is no file."""
    found: dict[str, Texts] = {}
    total = 0
    for path in paths:
        for texts in _read(path, schema):
            if texts.language in found:
                raise FileError(f"{path}: the language {texts.language!r} is there already.")
            total += _check(texts, schema, path)
            if total > _MOST:
                raise FileError(f"{path}: expected at most {_MOST:,} characters in all texts.")
            found[texts.language] = texts
    return list(found.values()) or [Texts(DEFAULT)]


def _read(path: Path, schema: Schema) -> list[Texts]:
    if path.exists() and not path.is_file():
        raise FileError(f"Cannot read the questions in {path}: it is no regular file.")
    if path.exists() and path.stat().st_size > _MOST_BYTES:
        raise FileError(f"{path}: expected a file of up to {_MOST_BYTES >> 20} MB.")
    if path.suffix.lower() == ".xlsx":
        return read_xlsform(path, [c.name for c in (*schema.sensitive, *schema.useful)])
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except RecursionError:
        raise FileError(f"Cannot read the questions in {path}: it is nested too deep.") from None
    except (OSError, ValueError) as error:  # a UnicodeDecodeError is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"Cannot read the questions in {path}: {reason}.") from None
    return [_texts(document, path)]


def _texts(document: dict[str, Any], path: Path) -> Texts:
    odd = sorted(set(document) - _KNOWN)
    if odd:
        raise FileError(f"{path}: expected {shown_list(sorted(_KNOWN))}, got {odd[0]!r}.")
    language = document.get("language", DEFAULT)
    if not isinstance(language, str) or _LANGUAGE.fullmatch(language) is None:
        raise FileError(f'{path}: expected a language such as "en", got {language!r}.')
    questions = _table(document.get("questions", {}), "questions", path)
    return Texts(
        language=language,
        **{name: _text(document.get(name, ""), name, path) for name in TEXTS},
        questions=tuple(_question(name, entry, path) for name, entry in questions.items()),
        page=_strings(document.get("page", {}), "page", path),
    )


def _question(name: str, entry: Any, path: Path) -> Question:
    parts = {"text": entry} if isinstance(entry, str) else _table(entry, f"questions.{name}", path)
    odd = sorted(set(parts) - _OF_QUESTION)
    if odd:
        raise FileError(f"{path}: a question has text, hint and labels, {name!r} has {odd[0]!r}.")
    return Question(
        name,
        _text(parts.get("text", name), name, path),
        _text(parts.get("hint", ""), name, path),
        _strings(parts.get("labels", {}), f"questions.{name}.labels", path),
    )


def _table(value: Any, name: str, path: Path) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise FileError(f"{path}: expected a table [{name}], got {type(value).__name__}.")
    return value


def _strings(value: Any, name: str, path: Path) -> dict[str, str]:
    return {key: _text(text, key, path) for key, text in _table(value, name, path).items()}


def _text(value: Any, name: str, path: Path) -> str:
    if not isinstance(value, str):
        raise FileError(f"{path}: expected a text as {name!r}.")
    return value.strip()


def _check(texts: Texts, schema: Schema, path: Path) -> int:
    """Refuse questions and answers that the protocol does not have; how long all texts are."""
    total = 0
    for name, text in _named(texts):
        if len(text) > _LONGEST:
            raise FileError(f"{path}: expected a text of up to {_LONGEST} characters as {name!r}.")
        total += len(text)
    columns = {column.name: column for column in (*schema.sensitive, *schema.useful)}
    asked = [question.column for question in texts.questions]
    for question in texts.questions:
        if asked.count(question.column) > 1:
            raise DataError(
                f"{path}: column {question.column!r} is asked for more than once.",
                column=question.column,
            )
        if question.column not in columns:
            raise DataError(
                f"{path}: the protocol has no column {question.column!r}; it has "
                f"{shown_list(list(columns))}.",
                column=question.column,
            )
        labels = columns[question.column].labels
        odd = sorted(question.labels.keys() - set(labels))
        if odd:
            raise DataError(
                f"{path}: column {question.column!r} has no label {odd[0]!r}; it has "
                f"{shown_list(labels)}.",
                column=question.column,
                label=odd[0],
            )
    return total


def _named(texts: Texts) -> Iterator[tuple[str, str]]:
    """All texts of a form, each with the name of its place."""
    yield from ((name, getattr(texts, name)) for name in TEXTS)
    yield from texts.page.items()
    for question in texts.questions:
        yield question.column, question.text
        yield question.column, question.hint
        yield from question.labels.items()
