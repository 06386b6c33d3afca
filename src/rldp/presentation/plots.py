"""Records → pictures. Nothing is computed here."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rldp.decimals import shortest
from rldp.errors import FileError, MissingExtraError, ParameterError
from rldp.io.atomic_files import write_bytes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, told apart by all kinds of colour vision; lines differ by marker too
_STYLES = {
    "grr": ("#999999", "o"),
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


def tradeoff(
    records: Sequence[Mapping[str, Any]], path: Path, *, title: str = "", mark: float | None = None
) -> None:
    """Draw what each protocol keeps over ε, and its error if known, or bars where ε is one.

    Args:
        records: as `rldp.compare` gives them.
        path: .png, .svg or .pdf file to write.
        title: shown above the axes.
        mark: an ε to mark with a line.
    """
    if len({record["epsilon"] for record in records}) == 1:
        with _picture(path, title) as axes:
            _bars(axes, records)
        return
    known = [record for record in records if math.isfinite(record.get("error", math.nan))]
    with _pictures(path, title, 2 if known else 1) as (information, *others):
        _curves(information, [(r, 100 * r["normalised"]) for r in records], mark)
        information.set_ylabel("information kept, % of H(X)")
        information.set_ylim(bottom=0)
        information.legend(frameon=False, fontsize=9)
        for errors in others:
            _curves(errors, [(r, 100 * r["error"]) for r in known], mark)
            errors.set_yscale("log")
            errors.yaxis.set_major_formatter("{x:g}")
            errors.set_ylabel("error of estimates, ± percentage points")


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
    with _picture(path, title, rows=len(records)) as axes:
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
def _picture(path: Path, title: str, rows: int = 0) -> Iterator[Axes]:
    """Axes that are written to a file at the end."""
    with _pictures(path, title, 1, max(4.2, 1.0 + 0.2 * rows)) as (axes,):
        yield axes


@contextmanager
def _pictures(path: Path, title: str, n: int, height: float = 4.2) -> Iterator[Sequence[Axes]]:
    """Axes side by side."""
    check_picture(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7 + 4 * (n - 1), height), layout="constrained", dpi=150)
    FigureCanvasAgg(figure)
    each = figure.subplots(1, n, squeeze=False)[0]
    yield list(each)
    each[0].set_title(title, loc="left", fontsize=11)
    for axes in each:
        axes.spines[["top", "right"]].set_visible(False)
    picture = BytesIO()
    figure.savefig(picture, format=path.suffix[1:].lower())
    write_bytes(path, picture.getvalue())


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
