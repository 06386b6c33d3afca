"""Questions from an XLSForm: the sheets `survey` and `choices` of an .xlsx file.

A row of `survey` whose type is `select_one LIST` and whose name is a column of the protocol asks
for that column; rows of `choices` with the same list name have the texts of its labels. Columns
`label::English (en)` are one language each, a plain `label` is the default language.

Nothing of the file is trusted: parts are unpacked up to a number of bytes that really come, parsed
without a tree, and refused if they declare a document type or an entity in any encoding.
"""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

from rldp.collect.form_texts import DEFAULT, Question, Texts
from rldp.errors import FileError

MOST_BYTES = 16 << 20  # of all parts that are read, unpacked
MOST_CELLS = 200_000  # with their rows, in all sheets that are read
LONGEST_CELL = 32_767  # characters, as spreadsheet programs have it
MOST_LANGUAGES = 50

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships id"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
_UNPACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # of these at most n bytes can be asked for
_ENCRYPTED = 1
_TEXT = re.compile(
    r"(label|hint)(?:::[^()]*\(([a-z]{2,3}(?:-[A-Za-z0-9]{2,8})*)\)|::([a-z]{2,3}))?"
)
_DEEPEST = 100  # elements in each other
_LONGEST_NAME = 200  # characters of the name of a column
Row = dict[str, str]


class _OddFormError(Exception):
    """Something that no form has."""


def read_xlsform(path: Path, columns: Collection[str]) -> list[Texts]:
    """The questions of a form for these columns of a protocol, once for each of its languages."""
    with _told(path), zipfile.ZipFile(path) as file:
        book = _Book(file)
        survey, choices, settings = (book.rows(name) for name in ("survey", "choices", "settings"))
    if not survey or not choices:
        raise FileError(f"{path}: expected the sheets survey and choices of an XLSForm.")
    asked = [row for row in survey if row.get("name") in columns and _list_of(row) is not None]
    if not asked:
        raise FileError(
            f"{path}: expected a row select_one in survey for a column of the protocol."
        )
    names = {name for row in (*asked, *choices) for name in row}
    languages = sorted({name.partition("::")[2] for name in names if "::" in name})
    if len(languages) > MOST_LANGUAGES:
        raise FileError(f"{path}: expected at most {MOST_LANGUAGES} languages.")
    title = next((row["form_title"] for row in settings if "form_title" in row), "")
    return [
        Texts(language, title, questions=tuple(_questions(asked, choices, language)))
        for language in languages or [DEFAULT]
    ]


def _list_of(row: Row) -> str | None:
    """The list of answers that a row of the survey offers, None if it is another kind of row."""
    kind = row.get("type", "").split()
    return kind[1] if len(kind) >= 2 and kind[0] in ("select_one", "select") else None


def _questions(asked: list[Row], choices: list[Row], language: str) -> Iterator[Question]:
    label = f"label::{language}"
    lists: dict[str | None, dict[str, str]] = {}
    for choice in choices:
        if "name" in choice and label in choice:
            lists.setdefault(choice.get("list_name"), {})[choice["name"]] = choice[label]
    for row in asked:
        text, hint = row.get(label, row["name"]), row.get(f"hint::{language}", "")
        yield Question(row["name"], text, hint, lists.get(_list_of(row), {}))


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Say in one sentence why a form cannot be read."""
    try:
        yield
    except zipfile.BadZipFile:
        reason = "it is damaged, or no .xlsx file"
    except (zlib.error, struct.error, EOFError):
        reason = "it is damaged"
    except expat.ExpatError as error:
        reason = f"its XML is damaged: {error}"
    except _OddFormError as error:
        reason = str(error)
    except OSError as error:
        has_no_access = error.filename is not None  # otherwise a place that no file has
        reason = str(error.strerror) if has_no_access else "it is damaged"
    except (LookupError, NotImplementedError, OverflowError, RuntimeError, ValueError):
        reason = "it is no .xlsx file as spreadsheet programs write it"
    else:
        return
    raise FileError(f"Cannot read the XLSForm {path}: {reason}.") from None


class _Book:
    """The sheets of an .xlsx file, and how much of it may still be read."""

    def __init__(self, file: zipfile.ZipFile) -> None:
        """Find the sheets."""
        self._file, self._bytes, self._cells = file, MOST_BYTES, MOST_CELLS
        targets: dict[str | None, str] = {}
        self._parts: dict[str, str] = {}

        def relation(name: str, given: Row) -> None:
            if name == f"{_PACKAGE} Relationship":
                targets[given.get("Id")] = given.get("Target", "")

        def sheet(name: str, given: Row) -> None:
            if name == f"{_MAIN} sheet":
                target = targets.get(given.get(_RELATION), "").removeprefix("/xl/")
                self._parts[given.get("name", "").lower()] = f"xl/{target}"

        self._parse("xl/_rels/workbook.xml.rels", relation)
        self._parse("xl/workbook.xml", sheet)
        self._shared = self._shared_texts()

    def rows(self, sheet: str) -> list[Row]:
        """The rows of a sheet below its first, by the names in the first; none if it is missing."""
        if sheet not in self._parts:
            return []
        head, *rows = self._table(self._parts[sheet]) or [{}]
        names = {place: _name(text) for place, text in head.items()}
        found = []
        for row in rows:
            named: Row = {}
            for place, text in row.items():
                if place in names:
                    named.setdefault(names[place], text)
            if named:
                found.append(named)
        return found

    def _table(self, part: str) -> list[Row]:
        """The texts of all rows, by the letters of their columns."""
        rows: list[Row] = []
        place, kind, n_cells, pieces = "", "", 0, _Pieces()

        def start(name: str, given: Row) -> None:
            nonlocal place, kind, n_cells
            if name in (f"{_MAIN} row", f"{_MAIN} c"):
                self._count_cell()
            if name == f"{_MAIN} row":
                rows.append({})
                n_cells = 0
            elif name == f"{_MAIN} c":
                n_cells += 1
                place = given.get("r", "").rstrip("0123456789") or str(n_cells)
                kind = given.get("t", "")
            elif name in (f"{_MAIN} v", f"{_MAIN} t"):
                pieces.is_open = True

        def end(name: str) -> None:
            if name in (f"{_MAIN} v", f"{_MAIN} t"):
                pieces.is_open = False
            elif name == f"{_MAIN} c":
                text = pieces.taken()
                text = self._shared_text(text) if kind == "s" and text else text
                if text and rows:
                    rows[-1][place] = text
            elif name == f"{_MAIN} row" and rows and not rows[-1]:
                rows.pop()

        self._parse(part, start, end, pieces.add)
        return rows

    def _shared_texts(self) -> list[str]:
        """The texts that cells name by their numbers."""
        part, found, pieces = "xl/sharedStrings.xml", list[str](), _Pieces()
        if part not in self._file.namelist():
            return found

        def start(name: str, _: Row) -> None:
            pieces.is_open = name == f"{_MAIN} t"

        def end(name: str) -> None:
            pieces.is_open = False
            if name == f"{_MAIN} si":
                self._count_cell()
                found.append(pieces.taken())

        self._parse(part, start, end, pieces.add)
        return found

    def _shared_text(self, number: str) -> str:
        if not (number.isascii() and number.isdigit() and len(number) < len(str(MOST_CELLS)) + 1):
            raise _OddFormError("a cell names a shared text without a number")
        if int(number) >= len(self._shared):
            raise _OddFormError(f"a cell names the shared text {number}, which is missing")
        return self._shared[int(number)]

    def _count_cell(self) -> None:
        self._cells -= 1
        if self._cells < 0:
            raise _OddFormError(f"it has more than {MOST_CELLS:,} cells")

    def _parse(
        self,
        part: str,
        start: Callable[[str, Row], None],
        end: Callable[[str], None] | None = None,
        text: Callable[[str], None] | None = None,
    ) -> None:
        """Have handlers told what a part holds; names have their namespace before a blank."""
        depth = 0

        def started(name: str, given: Row) -> None:
            nonlocal depth
            depth += 1
            if depth > _DEEPEST:
                raise _OddFormError(f"its XML is nested more than {_DEEPEST} levels deep")
            start(name, given)

        def ended(name: str) -> None:
            nonlocal depth
            depth -= 1
            if end is not None:
                end(name)

        parser = expat.ParserCreate(namespace_separator=" ")
        parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = _refuse_declaration
        parser.StartElementHandler, parser.EndElementHandler = started, ended
        if text is not None:
            parser.CharacterDataHandler = text
        parser.Parse(self._content(part), True)

    def _content(self, part: str) -> bytes:
        """The bytes of a part, counted as they come: its own statement of its size may be false."""
        try:
            entry = self._file.getinfo(part)
        except KeyError:
            raise _OddFormError(f"its part {part[:80]!r} is missing") from None
        if entry.flag_bits & _ENCRYPTED:
            raise _OddFormError("it is encrypted; save it without a password")
        if entry.compress_type not in _UNPACKED:
            raise _OddFormError("it is compressed in an unusual way; save it again")
        with self._file.open(entry) as file:
            content = file.read(self._bytes + 1)
        self._bytes -= len(content)
        if self._bytes < 0:
            raise _OddFormError(f"it has more than {MOST_BYTES >> 20} MB of text")
        return content


class _Pieces:
    """The pieces of a text, which must not become too long."""

    def __init__(self) -> None:
        self.is_open = False
        self._pieces: list[str] = []
        self._length = 0

    def add(self, piece: str) -> None:
        """Take another piece of an element that holds text."""
        if not self.is_open:
            return
        self._length += len(piece)
        if self._length > LONGEST_CELL:
            raise _OddFormError(f"a cell has more than {LONGEST_CELL:,} characters")
        self._pieces.append(piece)

    def taken(self) -> str:
        """The text, without blanks around it; the next one begins."""
        text = "".join(self._pieces).strip()
        self._pieces, self._length = [], 0
        return text


def _name(text: str) -> str:
    """The name of a column; that of a column of texts ends with its language.

    >>> _name("label::English (en)"), _name("hint"), _name("list_name")
    ('label::en', 'hint::en', 'list_name')
    """
    match = _TEXT.fullmatch(text) if len(text) <= _LONGEST_NAME else None
    return text if match is None else f"{match[1]}::{match[2] or match[3] or DEFAULT}"


def _refuse_declaration(*_: object) -> NoReturn:
    raise _OddFormError("it declares a document type or an entity, which no form needs")
