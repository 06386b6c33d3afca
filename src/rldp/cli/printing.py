"""The one way to the terminal: no text of others can move its cursor, hide, or turn its direction.

Labels and names come from files that others wrote. Every command prints through these functions,
which show what a terminal would obey or leave out as an escape such as `\\x1b` or `\\u202e`.
"""

from __future__ import annotations

import json
import sys
import textwrap
import unicodedata
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import RenderableType

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})  # controls, format, surrogates, line ends
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")  # letters without ink
_WIDEST = 100  # characters of a paragraph's line


def visible(text: str) -> str:
    r"""The text, with escapes for what a terminal would not show as it is.

    >>> print(visible("a\x1b[2J b\u202e\n"))
    a\x1b[2J b\u202e\n
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(c) if _is_unseen(c) else c for c in text)


def _is_unseen(character: str) -> bool:
    return unicodedata.category(character) in _UNSEEN or character in _BLANK or _selects(character)


def _selects(character: str) -> bool:
    """Whether it chooses between looks of the character before."""
    return "\ufe00" <= character <= "\ufe0f" or "\U000e0100" <= character <= "\U000e01ef"


def _escaped(character: str) -> str:
    known = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}.get(character)
    number = ord(character)
    width, mark = (2, "x") if number < 256 else (4, "u") if number < 1 << 16 else (8, "U")
    return known or f"\\{mark}{number:0{width}x}"


def note(text: str) -> None:
    """A line of plain text, after an empty line if it begins with a line break."""
    before, rest = ("\n", text[1:]) if text[:1] == "\n" else ("", text)
    _show(before + visible(rest))


def paragraph(text: str, *, after_space: bool = False) -> None:
    """Text wrapped to the width of the screen, after an empty line if asked for."""
    indent = "  " if text.startswith("- ") else ""
    width = min(Console().width, _WIDEST)
    wrapped = textwrap.fill(visible(text), width, subsequent_indent=indent, break_on_hyphens=False)
    _show("\n" * after_space + wrapped)


def heading(text: str) -> None:
    """A line in bold."""
    Console(highlight=False).print(Text(visible(text), style="bold"))


def _show(text: str) -> None:
    Console(highlight=False, emoji=False).print(text, markup=False, soft_wrap=True)


class Grid(Table):
    """A table of plain texts."""

    def add_column(self, header: RenderableType = "", *more: Any, **options: Any) -> None:
        """Add a column, its header a plain text."""
        super().add_column(_plain(header), *more, **options)

    def add_row(self, *cells: RenderableType | None, **options: Any) -> None:
        """Add a row of plain texts."""
        super().add_row(*map(_plain, cells), **options)


def show_grid(grid: Table, title: str | None = None) -> None:
    """A `Grid`, under a title."""
    grid.title = _plain(title)
    Console(highlight=False).print(grid)


def _plain(cell: Any) -> Any:
    return Text(visible(cell)) if isinstance(cell, str) else cell


def dim(text: str) -> Text:
    """A cell that matters less than the others."""
    return Text(visible(text), style="dim")


def as_json(value: Any) -> None:
    """A value as JSON that a terminal shows as it is."""
    text = json.dumps(value, indent=1, ensure_ascii=False)
    print("\n".join(map(_json_escaped, text.split("\n"))))


def _json_escaped(line: str) -> str:
    """A line of JSON, in which only texts can have characters that are unseen."""
    if line.isascii() and line.isprintable():
        return line
    return "".join(json.dumps(c)[1:-1] if _is_unseen(c) else c for c in line)


def print_line(text: str) -> None:
    """Lines on the standard error, if somebody is there to read them."""
    with suppress(OSError, ValueError):
        if sys.stderr is not None:
            print("\n".join(map(visible, text.split("\n"))), file=sys.stderr, flush=True)
