"""Rows → pictures. Nothing is computed here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rldp.errors import MissingExtraError
from rldp.io.atomic_files import write_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
Mark = tuple[float, float, str, str]  # ε, value, protocol and words


class Style(NamedTuple):
    """How a curve looks: told apart by dashes and markers too, not by its colour alone."""

    label: str
    colour: str
    dashes: str = "-"
    marker: str = ""
    width: float = 1.5


# Okabe and Ito's colours
_GREY, _ORANGE, _SKY, _GREEN = "#8C8C8C", "#E69F00", "#56B4E9", "#009E73"
_BLUE, _VERMILION, _PURPLE, _BLACK = "#0072B2", "#D55E00", "#CC79A7", "#000000"

_PROTOCOLS = {
    "polyopt": Style("PolyOpt", _PURPLE, "-", "X"),
    "ue-cr": Style("UE-CR", _GREEN, "-", "P"),
    "grr-cr": Style("GRR-CR", _BLUE, "--", "D"),
    "ir": Style("IR", _SKY, "-.", "^"),
    "srr": Style("SRR", _VERMILION, "-", "s"),
    "grr": Style("GRR", _GREY, ":", "o"),
}
_BEYOND = {
    ("ceiling", "sharp"): Style("ceiling: nothing keeps more", _BLACK, ":", "", 1.3),
    ("optimal", "sharp"): Style("optimal over F", _VERMILION, "-", "o", 2.0),
    ("polyopt", "sharp"): Style("PolyOpt, distinct pairs", _GREEN, "-", "P", 1.9),
    ("polyopt", "paper"): Style("PolyOpt, as printed", _PURPLE, "--", "X"),
    ("best closed form", "exact"): Style("closed forms, exact", _ORANGE, "-", "D", 1.9),
    ("best closed form", "sharp"): Style("closed forms, sharp", _BLUE, "-", "^", 1.9),
    ("best closed form", "paper"): Style("closed forms, as printed", _GREY, "-.", "o"),
}
_OTHERS = {
    "α = 0.1": Style("α = 0.1", _VERMILION, "-", "s"),
    "α = 0.01": Style("α = 0.01", _GREEN, "--", "P"),
    "α = 0.001": Style("α = 0.001", _BLUE, "-.", "D"),
    "α = 0.0001": Style("α = 0.0001", _BLACK, ":", "o"),
    "ε₂/ε of IR": Style("ε₂/ε of IR", _SKY, "-.", "^"),
    "ε₂/ε of GRR-CR": Style("ε₂/ε of GRR-CR", _BLUE, "--", "D"),
    "κ of UE-CR": Style("κ of UE-CR", _GREEN, "-", "P"),
    "λ of UE-CR": Style("λ of UE-CR", _VERMILION, ":", "s"),
    "PolyOpt 3×3": Style("PolyOpt 3×3", _PURPLE, "-", "X"),
    "PolyOpt 3×4": Style("PolyOpt 3×4", _ORANGE, "--", "v"),
    "PolyOpt 4×4": Style("PolyOpt 4×4", _BLACK, "-.", "h"),
}
_PATH, _LONG_NUMBER, _INDENT = map(re.compile, (r' d="[^"]*"', r"\d+\.\d{2,}", r"\s*\n\s*"))
_SPARSE = 12  # points up to which every one of them is marked
_POINTS = 5  # and up to which they are not joined
_PANEL = (2.55, 2.0)  # inches
_TEXT: dict[Any, Any] = {
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "legend.fontsize": 8.5,
    "axes.linewidth": 0.7,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "rldp",  # and the same rows give the same file
}


def panels(
    rows: Sequence[Row],
    paths: Sequence[Path],
    *,
    title: str,
    y_label: str | Mapping[str, str],
    columns: int,
    logarithmic: Sequence[str] = (),
    marks: Mapping[str, Sequence[Mark]] | None = None,
) -> None:
    """Draw one pair of axes for each panel, means with a band of two standard errors.

    Args:
        rows: with panel, curve, protocol, bounds, quantity, epsilon, mean and std_error.
        paths: pictures to write, .png or .svg.
        title: of the whole.
        y_label: of all panels, or of each by its title.
        columns: panels in a row.
        logarithmic: titles of panels with a logarithmic axis.
        marks: points to name, by titles of panels.
    """
    titles = list(dict.fromkeys(row["panel"] for row in rows))
    columns = min(columns, len(titles))
    lines = -(-len(titles) // columns)
    scale = 2.1 if len(titles) == 1 else 1.3 if columns <= 2 else 1.15 if columns == 3 else 1.0
    width, height = columns * _PANEL[0] * scale, lines * _PANEL[1] * scale
    with _picture(paths, width, height + 0.9, title) as figure:
        axes = figure.subplots(lines, columns, squeeze=False).ravel()
        shown: dict[str, Any] = {}
        for i, (name, ax) in enumerate(zip(titles, axes, strict=False)):
            mine = [row for row in rows if row["panel"] == name]
            for style, points in _curves(mine):
                handle = _curve(ax, style, points)
                if len(points) > _POINTS or style.label not in shown:
                    shown[style.label] = handle  # the legend shows a line where there is one
            for mark in (marks or {}).get(name, ()):
                _marked(ax, mark)
            _dressed(ax, mine, is_logarithmic=name in logarithmic)
            ax.set_title(name, loc="left")
            if i >= len(titles) - columns:
                ax.set_xlabel("ε (nats)")
            if isinstance(y_label, Mapping):
                ax.set_ylabel(y_label[name])
            elif i % columns == 0:
                ax.set_ylabel(y_label)
        for ax in axes[len(titles) :]:
            ax.set_visible(False)
        ordered = {label: shown[label] for label in _order() if label in shown}
        figure.legend(
            list(ordered.values()),
            list(ordered),
            loc="outside lower center",
            ncols=max(1, min(len(ordered), int(width / (0.6 + 0.062 * max(map(len, ordered)))))),
            frameon=False,
            handlelength=2.8,
        )


def scatter(rows: Sequence[Row], paths: Sequence[Path], *, title: str) -> None:
    """Draw one point for each table, those where both protocols are the same apart."""
    with _picture(paths, 5.6, 4.0, title) as figure:
        ax = figure.subplots()
        kinds = (
            ("all of ε on S: the same protocol", _GREY, "x", True),
            ("otherwise", _BLUE, "o", False),
        )
        for label, colour, marker, is_same in kinds:
            mine = [row for row in rows if _is_same(row) == is_same]
            ax.plot(
                [row["entropy"] for row in mine],
                [row["difference"] for row in mine],
                marker,
                color=colour,
                markersize=3,
                markeredgewidth=0.6,
                alpha=0.55,
                fillstyle="none" if marker == "o" else None,
                label=f"{label} ({len(mine)})",
                rasterized=True,  # thousands of marks would make a large SVG
            )
        ax.axhline(0, color="black", linewidth=0.7)
        ax.set_xlabel("H(X), nats")
        ax.set_ylabel("[I(X;Y) of IR − of GRR-CR] / H(X)")
        ax.annotate("IR keeps more", (0.01, 0.98), xycoords="axes fraction", va="top", color="0.35")
        ax.annotate("GRR-CR keeps more", (0.01, 0.02), xycoords="axes fraction", color="0.35")
        ax.grid(alpha=0.25, linewidth=0.6)
        ax.spines[["top", "right"]].set_visible(False)
        figure.legend(loc="outside lower center", ncols=2, frameon=False, markerscale=1.8)


def _is_same(row: Row) -> bool:
    return bool(row["ir_split"] < 1e-6 and row["grr_cr_split"] < 1e-6)


def _curves(rows: Sequence[Row]) -> Iterator[tuple[Style, list[Row]]]:
    names = dict.fromkeys((row["curve"], row["protocol"], row["bounds"]) for row in rows)
    is_beyond = any(protocol not in _PROTOCOLS for _, protocol, _ in names)
    for curve, protocol, bounds in names:
        if is_beyond:
            style = _BEYOND[protocol, bounds]
        else:
            style = _OTHERS.get(curve) or _PROTOCOLS[protocol]
        key = curve, protocol, bounds
        points = [row for row in rows if (row["curve"], row["protocol"], row["bounds"]) == key]
        yield style, sorted(points, key=lambda row: float(row["epsilon"]))


def _curve(ax: Axes, style: Style, points: Sequence[Row]) -> Any:
    x, y = [p["epsilon"] for p in points], [p["mean"] for p in points]
    errors = [2 * p["std_error"] for p in points]
    low = [a - b for a, b in zip(y, errors, strict=True)]
    high = [a + b for a, b in zip(y, errors, strict=True)]
    if points[0]["quantity"] == "seconds":
        pass  # a band of times says nothing of time
    elif any(errors) and len(x) > _POINTS:
        ax.fill_between(x, low, high, color=style.colour, alpha=0.13, linewidth=0)
    elif any(errors):
        ax.vlines(x, low, high, color=style.colour, linewidth=1.0, alpha=0.6)
    every = 1 if len(x) <= _SPARSE else max(1, len(x) // 6)
    is_dotted = len(x) <= _POINTS  # a line between points far apart would mislead
    (line,) = ax.plot(
        x,
        y,
        color=style.colour,
        linestyle="" if is_dotted else style.dashes,
        linewidth=style.width,
        marker=(style.marker or "_") if is_dotted else style.marker,
        markersize=(6 if style.marker else 9) if is_dotted else 4,
        markeredgecolor="white" if style.marker else style.colour,
        markeredgewidth=0.4 if style.marker else 1.4,
        markevery=every,
    )
    return line


def _tenths(number: re.Match[str]) -> str:
    return f"{float(number[0]):.1f}"


def _marked(ax: Axes, mark: Mark) -> None:
    epsilon, value, protocol, words = mark
    colour = _PROTOCOLS[protocol].colour
    ax.plot([epsilon], [value], "*", color=colour, markersize=9, markeredgecolor="black")
    ax.annotate(words, (epsilon, value), xytext=(7, 2), textcoords="offset points", color=colour)


def _dressed(ax: Axes, rows: Sequence[Row], *, is_logarithmic: bool) -> None:
    quantity = rows[0]["quantity"]
    ax.set_xlim(0, 1.01 * max(row["epsilon"] for row in rows))
    if is_logarithmic:
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter(lambda x, _: f"{x:g}" if f"{x:e}"[0] in "25" else "")
    elif quantity in ("normalised", "split"):
        highest = max(row["mean"] for row in rows)
        ax.set_ylim(0, 1.02 if highest > 0.5 else None)
    elif quantity in ("utility", "loss"):
        ax.set_ylim(bottom=-0.02 if quantity == "loss" else 0)
    elif quantity == "difference":
        ax.axhline(0, color="black", linewidth=0.7)
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)


def _order() -> list[str]:
    tables = (_BEYOND.values(), _PROTOCOLS.values(), _OTHERS.values())
    return [style.label for table in tables for style in table]


@contextmanager
def _picture(paths: Sequence[Path], width: float, height: float, title: str) -> Iterator[Figure]:
    """A figure that is written to all paths at the end."""
    try:
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError:
        raise MissingExtraError("Pictures need matplotlib: pip install 'rldp[figures]'.") from None
    with mpl.rc_context(_TEXT):
        layout = ConstrainedLayoutEngine()
        figure = Figure(figsize=(width, height), layout=layout, dpi=150)
        FigureCanvasAgg(figure)
        yield figure
        figure.suptitle(title, x=0.01, ha="left", fontsize=10.5, fontweight="bold")
        layout.execute(figure)
        figure.set_layout_engine(None)  # what was laid out once fits every format
        for path in paths:
            write_bytes(path, _small(figure, path.suffix))


def _small(figure: Figure, suffix: str) -> bytes:
    """The picture as a file: few colours in a PNG, tenths of a point in an SVG."""
    from PIL import Image

    whole = BytesIO()
    metadata = {"Date": None} if suffix == ".svg" else {"Software": None}
    figure.savefig(whole, format=suffix[1:], metadata=metadata)
    if suffix == ".svg":
        text = whole.getvalue().decode()
        text = _PATH.sub(lambda path: _LONG_NUMBER.sub(_tenths, path[0]), text)
        return _INDENT.sub("\n", text).encode()
    small = BytesIO()
    picture = Image.open(whole).convert("RGB").quantize(128, dither=Image.Dither.NONE)
    picture.save(small, "PNG", optimize=True)
    return small.getvalue()
