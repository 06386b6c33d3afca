"""Questions from an XLSForm: the sheets `survey` and `choices` of an .xlsx file.

A row of `survey` whose type is `select_one LIST` and whose name is a column of the protocol asks
for that column; rows of `choices` with the same list name have the texts of its labels. Columns
`label::English (en)` are one language each, a plain `label` is the default language.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from xml.etree import ElementTree

from rldp.collect.form_texts import DEFAULT, Question, Texts
from rldp.errors import FileError

_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_PACKAGE = "{http://schemas.openxmlformats.org/package/2006/relationships}"
_LABEL = re.compile(r"(label|hint)(?:::.*?\(([a-z]{2,3}(?:-[A-Za-z0-9]+)*)\)|::([a-z]{2,3}))?")
_MOST_BYTES = 16 << 20  # of a part of the file, unpacked
Row = dict[str, str]


def read_xlsform(path: Path) -> list[Texts]:
    """The questions of a form, once for each of its languages."""
    try:
        with zipfile.ZipFile(path) as book:
            sheets = _sheets(book)
            survey, choices, settings = (
                _rows(book, sheets[name]) if name in sheets else []
                for name in ("survey", "choices", "settings")
            )
    except (OSError, KeyError, ValueError, zipfile.BadZipFile, ElementTree.ParseError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"Cannot read the XLSForm {path}: {reason}.") from None
    if not survey or not choices:
        raise FileError(f"{path}: expected the sheets survey and choices of an XLSForm.")
    named = {name: _language(name) for row in (*survey, *choices) for name in row}
    languages = sorted({language for language in named.values() if language is not None})
    title = next((row["form_title"] for row in settings if row.get("form_title")), "")
    found = [
        Texts(language, title, questions=tuple(_questions(survey, choices, language)))
        for language in languages or [DEFAULT]
    ]
    return [texts for texts in found if texts.questions]


def _questions(survey: list[Row], choices: list[Row], language: str) -> list[Question]:
    found = []
    for row in survey:
        kind = row.get("type", "").split()
        if len(kind) < 2 or kind[0] not in ("select_one", "select"):
            continue
        name = row.get("name", "")
        labels = {
            choice["name"]: text
            for choice in choices
            if choice.get("list_name") == kind[1] and "name" in choice
            if (text := _told(choice, "label", language))
        }
        text = _told(row, "label", language) or name
        found.append(Question(name, text, _told(row, "hint", language), labels))
    return found


def _language(name: str) -> str | None:
    """The language of a column of texts, None for other columns."""
    match = _LABEL.fullmatch(name)
    return None if match is None else match[2] or match[3] or DEFAULT


def _told(row: Row, what: str, language: str) -> str:
    fits = (
        text for name, text in row.items() if name.startswith(what) and _language(name) == language
    )
    return next(fits, "")


def _sheets(book: zipfile.ZipFile) -> dict[str, str]:
    """The parts of the file that hold its sheets, by their names in lower case."""
    relations = {
        relation.get("Id"): relation.get("Target", "")
        for relation in _part(book, "xl/_rels/workbook.xml.rels").iter(f"{_PACKAGE}Relationship")
    }
    return {
        sheet.get("name", "").lower(): f"xl/{relations[sheet.get(_RELATION)].removeprefix('/xl/')}"
        for sheet in _part(book, "xl/workbook.xml").iter(f"{_MAIN}sheet")
    }


def _rows(book: zipfile.ZipFile, part: str) -> list[Row]:
    """The rows of a sheet below its first, by the names in the first."""
    shared: list[str] = []
    if "xl/sharedStrings.xml" in book.namelist():
        entries = _part(book, "xl/sharedStrings.xml").iter(f"{_MAIN}si")
        shared = ["".join(text.text or "" for text in e.iter(f"{_MAIN}t")) for e in entries]
    table = [
        {
            re.sub("[0-9]", "", cell.get("r", "")): text
            for cell in row.iter(f"{_MAIN}c")
            if (text := _cell(cell, shared).strip())
        }
        for row in _part(book, part).iter(f"{_MAIN}row")
    ]
    head = table[0] if table else {}
    rows = [
        {head[place]: text for place, text in row.items() if place in head} for row in table[1:]
    ]
    return [row for row in rows if row]


def _cell(cell: ElementTree.Element, shared: list[str]) -> str:
    if cell.get("t") == "inlineStr":
        return "".join(text.text or "" for text in cell.iter(f"{_MAIN}t"))
    value = cell.findtext(f"{_MAIN}v") or ""
    return shared[int(value)] if cell.get("t") == "s" else value


def _part(book: zipfile.ZipFile, name: str) -> ElementTree.Element:
    if book.getinfo(name).file_size > _MOST_BYTES:
        raise ValueError(f"{name} has more than {_MOST_BYTES >> 20} MB")
    content = book.read(name)
    if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
        raise ValueError(f"{name} declares entities, which no form needs")
    return ElementTree.fromstring(content)
