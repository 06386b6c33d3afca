"""What the commands share: their options, and how data and a set F come from them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from rldp.errors import ParameterError

if TYPE_CHECKING:
    from rldp.counting import Levels
    from rldp.table import Table
    from rldp.uncertainty import UncertaintySet

_NUMBER = re.compile(r"-\.?\d")


class ManyValuesCommand(TyperCommand):
    """A command whose list options take several values at once: `--epsilon 0.5 1 2`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat the option's name before each further value."""
        lists = (option for option in self.params if getattr(option, "multiple", False))
        names = {name for option in lists for name in option.opts}
        repeated: list[str] = []
        current = None
        for i, word in enumerate(args):
            is_option = word.startswith("-") and len(word) > 1 and not _NUMBER.match(word)
            if is_option:
                current = word if word in names else None
            elif current is not None and i and args[i - 1] != current:
                repeated.append(current)
            repeated.append(word)
        return super().parse_args(ctx, repeated)


class BoundsChoice(StrEnum):
    """Which conditions the noise must meet."""

    SHARP = "sharp"
    EXACT = "exact"
    PAPER = "paper"


class MissingChoice(StrEnum):
    """What to do with missing values."""

    ERROR = "error"
    KEEP = "keep"
    DROP = "drop"


class SetChoice(StrEnum):
    """Which distributions may be true."""

    CHI_SQUARE = "chi-square"
    RENYI = "renyi"
    KL = "kl"
    TOTAL_VARIATION = "total-variation"
    ALL = "all"
    KNOWN = "known"


Data = Annotated[
    str,
    typer.Argument(metavar="DATA", help="CSV or Parquet file; or 'adult', the bundled table."),
]
Sensitive = Annotated[
    list[str], typer.Option("--sensitive", "-s", metavar="COL ...", help="Columns to protect.")
]
Useful = Annotated[
    list[str] | None,
    typer.Option(
        "--useful", "-u", metavar="COL ...", help="Columns to keep useful (default: all others)."
    ),
]
Alpha = Annotated[
    float, typer.Option(help="Level of the set: the smaller, the more distributions count.")
]
Order = Annotated[
    float | None, typer.Option(help="Order of a Rényi set, above 1 (default: 2, the χ² set).")
]
Uncertainty = Annotated[
    SetChoice,
    typer.Option("--set", help="Distributions that may be true, around the frequencies of DATA."),
]
Bounds = Annotated[
    BoundsChoice, typer.Option(help="Sharp conditions, exact ones (slower), or the paper's.")
]
Missing = Annotated[
    MissingChoice, typer.Option(help="Missing values: refuse, keep as a label, or drop.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Plot = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Draw a picture (.png, .svg, .pdf).")
]


def uncertainty_set(
    data: str,
    sensitive: list[str],
    useful: list[str] | None,
    missing: MissingChoice,
    kind: SetChoice,
    alpha: float,
    order: float | None = None,
    levels: Levels | None = None,
) -> UncertaintySet:
    """F around the frequencies of a file."""
    check_order(kind, order)
    return set_around(_table(data, sensitive, useful, missing, levels), kind, alpha, order)


def check_order(kind: SetChoice, order: float | None) -> None:
    """Refuse an order that no set would look at."""
    if order is not None and kind is not SetChoice.RENYI:
        raise ParameterError(f"--order is for --set renyi, and the set is {kind.value}.")


def set_around(
    table: Table, kind: SetChoice, alpha: float, order: float | None = None
) -> UncertaintySet:
    """F around the frequencies of a table."""
    from rldp import uncertainty as sets

    match kind:
        case SetChoice.CHI_SQUARE:
            return sets.ChiSquareSet(table, alpha)
        case SetChoice.RENYI:
            return sets.RenyiSet(table, alpha, order=2.0 if order is None else order)
        case SetChoice.KL:
            return sets.KLSet(table, alpha)
        case SetChoice.TOTAL_VARIATION:
            return sets.TotalVariationSet(table, alpha)
        case SetChoice.ALL:
            return sets.AllDistributions(table)
        case SetChoice.KNOWN:
            return sets.KnownDistribution(table)


def _table(
    data: str,
    sensitive: list[str],
    useful: list[str] | None,
    missing: MissingChoice,
    levels: Levels | None,
) -> Table:
    if data == "adult" and not Path(data).exists():
        from rldp.datasets import adult

        if len(sensitive) != 1 or useful is None or len(useful) != 1:
            raise ParameterError("Expected one --sensitive and one --useful column for 'adult'.")
        return adult(sensitive[0], useful[0])
    from rldp.reading import read_table

    with _progress(f"reading {Path(data).name}") as report:
        return read_table(
            data, sensitive, useful, missing=missing.value, levels=levels, progress=report
        )


@contextmanager
def _progress(title: str) -> Iterator[Callable[[int, int], Any] | None]:
    """A bar on the terminal, gone when done; nothing where nobody looks."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def search_progress(name: str, entropy: float) -> Iterator[Callable[[float, float], None] | None]:
    """A line on the terminal with what is kept so far and what cannot be exceeded."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{name} …") as status:

        def tell(utility: float, bound: float) -> None:
            most = f"{min(1.0, bound / entropy):.2%}" if entropy > 0 else "nothing"
            kept = f"{max(0.0, utility / entropy):.2%}" if entropy > 0 else "nothing"
            status.update(f"{name}: keeps {kept} of H(X), at most {most}; Ctrl-C to stop here")

        yield tell
