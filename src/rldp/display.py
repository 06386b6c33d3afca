"""How objects show themselves: a small table as text for `print`, as HTML for notebooks.

Labels may come from files of others. What is not printable is spelt out in text, and everything is
escaped in HTML.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

_MOST_ROWS = 30  # that are shown; a table of a thousand cells is for an export


@dataclass(frozen=True)
class Grid:
    """A title, columns, and sentences below: all that is shown of an object."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    @property
    def _shown(self) -> list[tuple[str, ...]]:
        return [*map(_clean, self.rows[:_MOST_ROWS])]

    @property
    def _sentences(self) -> list[str]:
        left = len(self.rows) - _MOST_ROWS
        more = [f"... and {left:,} more rows"] if left > 0 else []
        return [*more, *_clean(self.notes)]

    def text(self) -> str:
        """Columns that stand below each other; the first one to the left.

        >>> print(Grid("Two", ("who", "n"), (("a", "10"), ("bc", "9"))).text())
        Two
        who   n
        a    10
        bc    9
        """
        rows = [_clean(self.heads), *self._shown]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(
                cell.rjust(width) if i else cell.ljust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        return "\n".join([*_clean((self.title,)), *lines, *self._sentences])

    def html(self) -> str:
        """A table that a notebook shows in its own style.

        >>> "<td>&lt;b&gt;</td>" in Grid("", ("x",), (("<b>",),)).html()
        True
        """
        heads = "".join(f"<th>{escape(cell)}</th>" for cell in _clean(self.heads))
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self._shown
        )
        (title,) = _clean((self.title,))
        notes = "".join(f"<p>{escape(sentence)}</p>" for sentence in self._sentences)
        return (
            f"<table><caption>{escape(title)}</caption><thead><tr>{heads}</tr></thead>"
            f"<tbody>{rows}</tbody></table>{notes}"
        )


def _clean(cells: tuple[str, ...]) -> tuple[str, ...]:
    """Without what could move a cursor or turn the direction of a line."""
    return tuple("".join(c if c.isprintable() else ascii(c)[1:-1] for c in cell) for cell in cells)


class Displayed:
    """An object with a grid."""

    def _grid(self) -> Grid:
        raise NotImplementedError

    def __str__(self) -> str:
        """The grid as text."""
        return self._grid().text()

    def _repr_html_(self) -> str:
        return self._grid().html()


def percent(share: float) -> str:
    """A share as people read it; nothing where it is unknown.

    >>> percent(0.12345), percent(float("nan"))
    ('12.3 %', '')
    """
    return "" if share != share else f"{100 * share:.1f} %"


def nats(epsilon: float) -> str:
    """An ε as people read it.

    >>> nats(1.0), nats(float("inf"))
    ('1', 'none')
    """
    return "none" if epsilon == float("inf") else f"{epsilon:.4g}"
