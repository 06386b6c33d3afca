"""Records → pictures. Nothing is computed here."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rldp.decimals import shortest
from rldp.errors import FileError, MissingExtraError, ParameterError
from rldp.io.atomic_files import write_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.ticker import NullLocator

    from rldp.utility.people import Curve, People

# Okabe and Ito's colours, told apart by all kinds of colour vision; lines differ by marker too
_STYLES = {
    "grr": ("#555555", "o"),
    "ue": ("#E69F00", "v"),
    "srr": ("#D55E00", "s"),
    "ir": ("#56B4E9", "^"),
    "grr-cr": ("#0072B2", "D"),
    "ue-cr": ("#009E73", "P"),
    "polyopt": ("#CC79A7", "X"),
    "ldp-optimal": ("#F0E442", "h"),
    "optimal": ("#D55E00", "p"),
    "best": ("#000000", "*"),
    "ceiling": ("#000000", ""),
}
_OTHERS = (("#999999", "o"), ("#56B4E9", "^"), ("#0072B2", "D"), ("#009E73", "P"))  # by their order
_BEST, _GREY, _GREY_TEXT = "#0B5A8F", "#C2C8CD", "#6B7681"
_LINE = 0.034  # of the height of the axes: a line of text
_FORMATS = (".png", ".svg", ".pdf")


def check_picture(path: Path) -> None:
    """Refuse a name that no picture can have, before long work is done for it."""
    if path.suffix.lower() not in _FORMATS:
        raise ParameterError(f"Expected a picture {', '.join(_FORMATS)}, got {path.name!r}.")
    if not path.absolute().parent.is_dir():
        raise FileError(f"Cannot write {path}: there is no folder {path.parent}.")
    try:
        import matplotlib.figure  # noqa: F401  # whether it is installed
    except ImportError:
        raise MissingExtraError("Pictures need matplotlib: pip install 'rldp[plot]'.") from None


def people_needed(
    people: People, path: Path, *, title: str = "", sensitive: str = "S", mark: float | None = None
) -> None:
    """Draw how many people must answer, over ε, both on logarithmic axes.

    Protocols that break a promise of "best" are grey and dashed; the band below "best" is what its
    further promises cost. Where there is one ε, a row for each protocol.

    Args:
        people: what is needed.
        path: .png, .svg or .pdf file to write.
        title: shown above the axes.
        sensitive: the name of what is protected.
        mark: an ε that was chosen, to be told in words.
    """
    epsilons = sorted({epsilon for curve in people.curves for epsilon in curve.epsilons})
    height = 4.8 if len(epsilons) > 1 else 1.8 + 0.32 * len(people.curves)
    with _picture(path, title, height) as axes:
        if len(epsilons) == 1:
            _needed_at(axes, people, epsilons[0])
        else:
            _needed_over(axes, people, epsilons, sensitive, mark)


def information(
    records: Sequence[Mapping[str, Any]], path: Path, *, title: str = "", mark: float | None = None
) -> None:
    """Draw what each protocol keeps over ε, or bars where ε is one: the paper's measure.

    Args:
        records: as `rldp.compare` gives them.
        path: .png, .svg or .pdf file to write.
        title: shown above the axes.
        mark: an ε to mark with a line.
    """
    with _picture(path, title) as axes:
        if len({record["epsilon"] for record in records}) == 1:
            _bars(axes, records)
            return
        _curves(axes, [(r, 100 * r["normalised"]) for r in records], mark)
        axes.set_ylabel("information kept, % of H(X)")
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False, fontsize=9)


def estimates(
    records: Sequence[Mapping[str, Any]],
    path: Path,
    *,
    sample: Sequence[float] | None = None,
    title: str = "",
) -> None:
    """Draw estimates with their intervals, beside the frequencies of the design sample.

    Args:
        records: with name, estimate_in_interval, low and high; bounds alone where there is no
            estimate.
        path: .png, .svg or .pdf file to write.
        sample: the frequencies of the design sample in the same order.
        title: shown above the axes.
    """
    with _picture(path, title, max(4.2, 1.0 + 0.2 * len(records))) as axes:
        for row, record in enumerate(records):
            ends = [100 * record["low"], 100 * record["high"]]
            estimate = record["estimate_in_interval"]
            is_known = estimate is not None
            axes.plot(ends, [row, row], "-" if is_known else ":", color="#0072B2", linewidth=1.6)
            if is_known:
                axes.plot([100 * estimate], [row], "o", color="#0072B2", markersize=3.5)
        if sample is not None:
            shares = [100 * share for share in sample]
            rows = [row + 0.3 for row in range(len(shares))]  # below, to keep both in sight
            axes.plot(shares, rows, "x", color="#D55E00", markersize=4, label="design sample")
            axes.legend(frameon=False, fontsize=9)
        axes.set_yticks(range(len(records)), [str(record["name"]) for record in records])
        axes.tick_params(axis="y", labelsize=8)
        axes.invert_yaxis()
        axes.set_xlabel("%; dotted: bounds of what is not identified")
        axes.grid(axis="x", alpha=0.25)


def power(
    n: Sequence[int],
    curves: Mapping[str, Sequence[float]],
    path: Path,
    *,
    needed: int,
    title: str = "",
) -> None:
    """Draw the chance to see a difference over the number of reports, one curve for each size."""
    with _picture(path, title) as axes:
        colours = ("#0072B2", "#009E73", "#E69F00")
        for (name, values), colour in zip(curves.items(), colours, strict=False):
            axes.plot(n, [100 * value for value in values], color=colour, label=name)
        axes.axvline(needed, color="black", linewidth=0.8, linestyle=":")
        axes.annotate(
            f"{needed:,}",
            (needed, 2),
            xytext=(4, 0),
            textcoords="offset points",
            fontsize=9,
        )
        axes.set_xscale("log")
        axes.set_ylim(0, 102)
        axes.set_xlabel("reports")
        axes.set_ylabel("power, %")
        axes.grid(alpha=0.25)
        axes.legend(frameon=False, fontsize=9)


@contextmanager
def _picture(path: Path, title: str, height: float = 4.2) -> Iterator[Axes]:
    """Axes that are written to a file at the end."""
    check_picture(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, height), layout="constrained", dpi=150)
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    yield axes
    axes.set_title(title, loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    picture = BytesIO()
    figure.savefig(picture, format=path.suffix[1:].lower())
    write_bytes(path, picture.getvalue())


def _needed_over(
    axes: Axes, people: People, epsilons: Sequence[float], sensitive: str, mark: float | None
) -> None:
    """A curve for each protocol, a band for what promises cost, a line for asking directly."""
    low = 0.7 * people.directly
    # what needs twice as many people as the best is off the picture, where it begins
    known = [n for curve in [people.best or people.curves[0]] for n in curve.people]
    high = 2.2 * max([n for n in known if math.isfinite(n)], default=1e3 * low)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    axes.set_xlim(epsilons[0], epsilons[-1] * (epsilons[-1] / epsilons[0]) ** 0.14)
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    axes.xaxis.set_minor_locator(_no_ticks())
    ticks = [d * 10**k for k in range(1, 13) for d in (1, 2, 5) if low <= d * 10**k <= high]
    axes.set_yticks(ticks, [_count(n) for n in ticks])
    axes.yaxis.set_minor_locator(_no_ticks())
    axes.grid(alpha=0.25)
    ends: list[_Label] = []
    for curve in people.curves:
        is_best = curve is people.best
        colour = _BEST if is_best else _STYLES.get(curve.protocol, _OTHERS[0])[0]
        if not curve.is_promised:
            colour = _GREY
        axes.plot(
            curve.epsilons,
            curve.people,
            color=colour,
            linewidth=3 if is_best else 1.6,
            linestyle="-" if curve.is_promised else (0, (4, 3)),
            marker="" if is_best or not curve.is_promised else _marker(curve.protocol),
            markersize=4,
            zorder=4 if is_best else 3 if curve.is_promised else 2,
        )
        if curve.people and math.isfinite(curve.people[-1]):
            ends.append(_Label(curve.people[-1], curve.protocol, colour, is_best))
    best = people.best
    if best is not None and people.unpromised is not None:
        axes.fill_between(
            best.epsilons, people.unpromised, best.people, color=_BEST, alpha=0.18, linewidth=0
        )
    axes.axhline(people.directly, color="black", linewidth=1, linestyle=":")
    _note(axes, f"asked directly, no protection: {people.directly:,.0f}", 0.012, people.directly)
    for label, y in _spread(ends, low, high):
        axes.annotate(
            label.text,
            (epsilons[-1], y),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            fontweight="bold" if label.is_bold else "normal",
            color=label.colour if label.colour != _GREY else _GREY_TEXT,
        )
    if not all(curve.is_promised for curve in people.curves):
        axes.text(
            0.012,
            0.2,
            "grey, dashed: protocols that break\na promise that best keeps",
            transform=axes.transAxes,
            fontsize=8.5,
            color=_GREY_TEXT,
        )
    if mark is not None and best is not None and mark in best.epsilons:
        _chosen(axes, people, best, mark)
    axes.set_ylabel("people who must answer")
    axes.set_xlabel(
        f"ε: one report changes the odds on {sensitive} by at most e^ε      "
        "more private ←   → less private"
    )


def _chosen(axes: Axes, people: People, best: Curve, mark: float) -> None:
    """The protocol that was chosen, in words."""
    i = best.epsilons.index(mark)
    needed = best.people[i]
    axes.axvline(mark, color=_GREY_TEXT, linewidth=1, zorder=1)
    axes.plot([mark], [needed], "o", color=_BEST, markersize=9, zorder=5)
    words = [
        f"best at ε = {mark:g}: {needed:,.0f} people",
        f"{needed / people.directly:.3g} × as many as asked directly",
    ]
    if people.unpromised is not None:
        share = 1 - people.unpromised[i] / needed
        words.append(f"(of these {100 * share:.0f} % for the further promises: the band)")
    axes.annotate(
        "\n".join(words),
        (mark, needed),
        xytext=(40, 62),
        textcoords="offset points",
        fontsize=9,
        arrowprops={"arrowstyle": "-", "color": _BEST},
        bbox={"boxstyle": "square,pad=0.2", "facecolor": "white", "edgecolor": "none"},
        zorder=6,
    )


def _needed_at(axes: Axes, people: People, epsilon: float) -> None:
    """A row for each protocol at one ε, those that need most people at the top."""
    curves = [curve for curve in people.curves if curve.people]
    curves.sort(key=lambda curve: -curve.people[0])
    axes.set_xscale("log")
    for row, curve in enumerate(curves):
        is_best = curve is people.best
        colour = _BEST if is_best else "black" if curve.is_promised else _GREY_TEXT
        needed = curve.people[0]
        if math.isinf(needed):
            axes.text(people.directly, row, "  cannot tell all of it", va="center", color=colour)
            continue
        axes.plot([people.directly, needed], [row, row], color=colour, linewidth=1, alpha=0.5)
        axes.plot([needed], [row], "o" if curve.is_promised else "x", color=colour, markersize=7)
        words = "" if curve.is_promised else "  breaks a promise that best keeps"
        axes.annotate(
            f"{needed:,.0f}{words}",
            (needed, row),
            xytext=(9, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            color=colour,
        )
    axes.set_yticks(range(len(curves)), [curve.protocol for curve in curves])
    axes.axvline(people.directly, color="black", linewidth=1, linestyle=":")
    axes.margins(x=0.35, y=0.12)
    axes.set_xlabel(
        f"people who must answer at ε = {shortest(epsilon)}; dotted: asked directly, "
        f"no protection: {people.directly:,.0f}"
    )


class _Label(NamedTuple):
    value: float
    text: str
    colour: str
    is_bold: bool


def _spread(labels: Sequence[_Label], low: float, high: float) -> Iterator[tuple[_Label, float]]:
    """Labels at the ends of curves, moved apart so that none covers another."""
    apart = (high / low) ** _LINE
    below = low
    for label in sorted(labels, key=lambda label: label.value):
        below = max(label.value, below * apart)
        yield label, below


def _note(axes: Axes, text: str, x: float, y: float) -> None:
    """Words just above a line that spans the axes."""
    axes.annotate(
        text,
        (x, y),
        xycoords=axes.get_yaxis_transform(),
        xytext=(0, 3),
        textcoords="offset points",
        fontsize=8.5,
    )


def _count(n: float) -> str:
    return f"{n / 1e6:g} million" if n >= 1e6 else f"{n:,.0f}"


def _marker(protocol: str) -> str:
    return _STYLES.get(protocol, _OTHERS[0])[1]


def _no_ticks() -> NullLocator:
    from matplotlib.ticker import NullLocator

    return NullLocator()


def _curves(
    axes: Axes, values: Sequence[tuple[Mapping[str, Any], float]], mark: float | None
) -> None:
    """A value of every record over its ε."""
    names = list(dict.fromkeys(record["protocol"] for record, _ in values))
    others = [name for name in names if name not in _STYLES]
    styles = _STYLES | dict(zip(others, cycle(_OTHERS), strict=False))
    for name in names:
        points = sorted((r["epsilon"], value) for r, value in values if r["protocol"] == name)
        colour, marker = styles[name]
        every = max(1, len(points) // 8)
        axes.plot(
            *zip(*points, strict=True),
            color=colour,
            marker=marker,
            markevery=every,
            markersize=4.5 if len(points) > 1 else 9,
            linewidth=1.6,
            linestyle="--" if name == "ceiling" else "-",
            label=name if name in ("optimal", "best", "ceiling", *others) else name.upper(),
        )
    if mark is not None:
        axes.axvline(mark, color="black", linewidth=0.8, linestyle=":")
    axes.set_xlabel("ε (nats): the smaller, the more private")
    axes.set_xlim(left=0)
    axes.grid(alpha=0.25)


def _bars(axes: Axes, records: Sequence[Mapping[str, Any]]) -> None:
    ordered = sorted(records, key=lambda r: float(r["utility"]))
    names = [str(r["protocol"]).upper() for r in ordered]
    kept = [100 * r["normalised"] for r in ordered]
    colours = [_STYLES.get(r["protocol"], ("black", "."))[0] for r in ordered]
    bars = axes.barh(names, kept, color=colours)
    labels = [f"{r['utility'] / math.log(2):.3f} bits" for r in ordered]
    axes.bar_label(bars, labels=labels, padding=3, fontsize=9)
    axes.margins(x=0.15)
    axes.set_xlabel(f"information kept at ε = {shortest(ordered[0]['epsilon'])}, % of H(X)")
