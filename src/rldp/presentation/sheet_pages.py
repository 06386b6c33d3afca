"""A sheet as pages of paper: PDF with one page after the other, or one SVG picture of all.

Drawn by Matplotlib, which is there for all other pictures, embeds its fonts and so prints any
script that they have.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rldp.errors import FileError
from rldp.io.atomic_files import whole_file
from rldp.presentation.sheet import Sheet

FORMATS = (".pdf", ".svg", ".txt")
_WIDTH, _HEIGHT, _EDGE = 595.0, 842.0, 50.0  # A4 in points
_LINE = 1.35  # of the size of a letter
_CHARACTER = 0.6  # width of a letter by its size, on the safe side
_TICKS = 40  # boxes in a row of the tally sheet
_CELL = 22.0


class _Page:
    """Texts and lines from the top of a page downwards."""

    def __init__(self) -> None:
        self.y = _HEIGHT - _EDGE
        self.texts: list[tuple[float, float, float, bool, str]] = []
        self.lines: list[tuple[float, float, float, float]] = []

    def text(self, words: str, size: float = 11, *, bold: bool = False, indent: float = 0) -> None:
        room = int((_WIDTH - 2 * _EDGE - indent) / (_CHARACTER * size))
        for line in textwrap.wrap(words, room) or [""]:
            self.y -= size * _LINE
            self.texts.append((_EDGE + indent, self.y, size, bold, line))

    def space(self, points: float = 10) -> None:
        self.y -= points

    def row(
        self, cells: list[str], widths: list[float], size: float, *, bold: bool = False
    ) -> None:
        """A row of a table, with a line below."""
        wrapped = [
            textwrap.wrap(cell, max(1, int((width - 6) / (_CHARACTER * size)))) or [""]
            for cell, width in zip(cells, widths, strict=True)
        ]
        top, x = self.y, _EDGE
        height = max(map(len, wrapped)) * size * _LINE + 6
        for lines, width in zip(wrapped, widths, strict=True):
            for i, line in enumerate(lines, 1):
                self.texts.append((x + 3, top - i * size * _LINE, size, bold, line))
            x += width
        self.y = top - height
        for at in (top, self.y):
            self.lines.append((_EDGE, at, x, at))
        x = _EDGE
        for width in [0.0, *widths]:
            x += width
            self.lines.append((x, top, x, self.y))

    @property
    def is_full(self) -> bool:
        return self.y < 2 * _EDGE


def write_sheet(sheet: Sheet, path: Path) -> None:
    """Write a sheet as .pdf, .svg or .txt; the file appears whole or not at all."""
    if path.suffix.lower() not in FORMATS:
        raise FileError(f"{path}: expected a sheet as {', '.join(FORMATS)}, got {path.suffix!r}.")
    with whole_file(path) as file:
        if path.suffix.lower() == ".txt":
            file.write(sheet.text().encode())
        else:
            _draw(list(_pages(sheet)), path.suffix.lower(), file)


def _pages(sheet: Sheet) -> Iterator[_Page]:
    page = _Page()
    page.text(sheet.title, 16, bold=True)
    page.text(sheet.about, 9)
    page.space()
    page.text(sheet.word("interviewer"), 13, bold=True)
    page.space(4)
    page.text(sheet.word("read"), bold=True)
    page.text(sheet.script, indent=12)
    page.space()
    page.text(sheet.word("rules"), bold=True)
    for i, rule in enumerate(sheet.rules, 1):
        page.text(f"{i}.  {rule}", indent=12)
    yield page
    yield from _cards(sheet)
    yield from _tally(sheet)


def _cards(sheet: Sheet) -> Iterator[_Page]:
    for n, card in enumerate(sheet.cards, 1):
        if not card.lines:
            continue
        head = sheet.word("card_of" if len(sheet.cards) > 1 else "card", n=n, all=len(sheet.cards))
        width = _WIDTH - 2 * _EDGE
        first = min(0.3 * width, 150)
        longest = max(len(text) for _, throws in card.lines for text in throws)
        each = (width - first) / len(card.answers)
        size = max(6.0, min(11.0, (each - 8) / (_CHARACTER * longest)))
        widths = [first, *[each] * len(card.answers)]
        names = [f"{sheet.word('answer')} {letter}" for letter in card.answers]
        page: _Page | None = None
        for label, throws in card.lines:
            if page is None or page.is_full:
                if page is not None:
                    yield page
                page = _Page()
                page.text(head, 13, bold=True)
                page.space(4)
                page.text(sheet.throw)
                page.space()
                page.row([sheet.word("line"), *names], widths, size, bold=True)
            page.row([label, *throws], widths, size)
        assert page is not None
        yield page


def _tally(sheet: Sheet) -> Iterator[_Page]:
    page = _Page()
    page.text(sheet.word("tally"), 13, bold=True)
    page.text(sheet.about, 9)
    page.space()
    width = _WIDTH - 2 * _EDGE
    widths = [60.0, width - 60 - 70, 70.0]
    heads = ["", sheet.word("ticks"), sheet.word("count")]
    page.row(heads, widths, 10, bold=True)
    for letter in [letter for letter, _ in sheet.tally] + [sheet.word("refused")]:
        top = page.y
        page.row([letter, "", ""], widths, 9)
        page.y = top  # a taller row than its text: room for ticks
        page.lines = page.lines[:-6]
        bottom = top - 2 * _CELL
        for x in (_EDGE, _EDGE + 60, _EDGE + widths[0] + widths[1], _WIDTH - _EDGE):
            page.lines.append((x, top, x, bottom))
        page.lines.append((_EDGE, bottom, _WIDTH - _EDGE, bottom))
        page.y = bottom
        if page.is_full:
            yield page
            page = _Page()
            page.row(heads, widths, 10, bold=True)
    page.space()
    page.text(sheet.word("fill"), 9)
    yield page


def _draw(pages: list[_Page], suffix: str, file: Any) -> None:
    import matplotlib as mpl
    from matplotlib.backends.backend_pdf import PdfPages
    from matplotlib.figure import Figure

    def figure(some: list[_Page]) -> Any:
        height = _HEIGHT * len(some)
        made = Figure(figsize=(_WIDTH / 72, height / 72))
        axes = made.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set(xlim=(0, _WIDTH), ylim=(0, height))
        axes.axis("off")
        for i, page in enumerate(some, 1):
            foot = height - _HEIGHT * i
            for x, y, size, bold, words in page.texts:
                weight = "bold" if bold else "normal"
                axes.text(x, y + foot, words, fontsize=size, weight=weight, parse_math=False)
            for x_1, y_1, x_2, y_2 in page.lines:
                axes.plot([x_1, x_2], [y_1 + foot, y_2 + foot], color="black", linewidth=0.6)
        return made

    with mpl.rc_context({"pdf.fonttype": 42, "svg.fonttype": "path", "svg.hashsalt": "rldp"}):
        if suffix == ".svg":
            figure(pages).savefig(file, format="svg", metadata={"Date": None})
            return
        with PdfPages(file, metadata={"CreationDate": None}) as book:
            for page in pages:
                book.savefig(figure([page]))
