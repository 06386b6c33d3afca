"""Question files: TOML in one language, or an XLSForm in several, checked against the protocol."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
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


def read_texts(paths: Iterable[Path], schema: Schema) -> list[Texts]:
    """The texts of all files, each language once; plain ones if there is no file."""
    found: dict[str, Texts] = {}
    for path in paths:
        for texts in _read(path):
            if texts.language in found:
                raise FileError(f"{path}: the language {texts.language!r} is there already.")
            _check(texts, schema, path)
            found[texts.language] = texts
    return list(found.values()) or [Texts(DEFAULT)]


def _read(path: Path) -> list[Texts]:
    if path.suffix.lower() == ".xlsx":
        return read_xlsform(path)
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
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
    if not isinstance(value, str) or len(value) > _LONGEST:
        raise FileError(f"{path}: expected a text of up to {_LONGEST} characters as {name!r}.")
    return value.strip()


def _check(texts: Texts, schema: Schema, path: Path) -> None:
    """Refuse questions and answers that the protocol does not have."""
    columns = {column.name: column for column in (*schema.sensitive, *schema.useful)}
    for question in texts.questions:
        if question.column not in columns:
            raise DataError(
                f"{path}: the protocol has no column {question.column!r}; it has "
                f"{shown_list(list(columns))}.",
                column=question.column,
            )
        labels = columns[question.column].labels
        odd = [label for label in question.labels if label not in labels]
        if odd:
            raise DataError(
                f"{path}: column {question.column!r} has no label {odd[0]!r}; it has "
                f"{shown_list(labels)}.",
                column=question.column,
                label=odd[0],
            )
