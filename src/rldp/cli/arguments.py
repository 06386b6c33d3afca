"""What the commands share: their options, and how data and a set F come from them."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from rldp.cli.printing import print_line
from rldp.cli.progress import byte_bar
from rldp.errors import ParameterError, Remedy

if TYPE_CHECKING:
    from rldp.cli.set_options import ChosenSet
    from rldp.tables.table import Table
    from rldp.tables.tally import Levels
    from rldp.uncertainty import UncertaintySet

_NUMBER = re.compile(r"-\.?\d")
_SHOWN = 30  # columns that a message lists
_SUGGESTED = 100  # cells of a table that it proposes


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


class ReleaseMissingChoice(StrEnum):
    """What to do with missing values that are no label of a protocol."""

    ERROR = "error"
    DROP = "drop"


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
        "--useful",
        "-u",
        metavar="COL ...",
        help="Columns to keep useful (default: the other one, if there is just one).",
    ),
]
Bounds = Annotated[
    BoundsChoice, typer.Option(help="Sharp conditions, exact ones (slower), or the paper's.")
]
Missing = Annotated[
    MissingChoice, typer.Option(help="Missing values: refuse, keep as a label, or drop.")
]
LevelsLimit = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="Most different values in a column (default: 500 numbers, 10000 texts)."
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Of a text file, such as cp1252 (default: recognised)."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Plot = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Draw a picture (.png, .svg, .pdf).")
]


def uncertainty_set(
    data: str,
    sensitive: list[str],
    useful: list[str] | None,
    missing: MissingChoice,
    chosen: ChosenSet,
    levels: Levels | None = None,
    **options: Any,
) -> UncertaintySet:
    """F around the frequencies of a file; options are those of `rldp.read_table`."""
    chosen.check()
    table = _table(data, sensitive, useful, missing=missing.value, levels=levels, **options)
    return chosen.around(table)


def _table(data: str, sensitive: list[str], useful: list[str] | None, **options: Any) -> Table:
    if data == "adult" and not Path(data).exists():
        from rldp.datasets import adult

        if len(sensitive) != 1 or useful is None or len(useful) != 1:
            raise ParameterError("Expected one --sensitive and one --useful column for 'adult'.")
        return adult(sensitive[0], useful[0])
    from rldp.tables.read_table import read_table

    if useful is None:
        useful = _only_other(data, sensitive, options.get("encoding"))
    with byte_bar(f"reading {Path(data).name}") as report:
        return read_table(data, sensitive, useful, **options, progress=report)


def _only_other(data: str, sensitive: list[str], encoding: str | None) -> list[str]:
    """The one column beside the sensitive ones; an error that lists them if there are several.

    Nobody shall have an id in a table, or one of a million cells, for want of an option.
    """
    from rldp.tables.frame_columns import chosen_columns
    from rldp.tables.limits import MOST_LABELS, fitting_columns
    from rldp.tables.read_table import column_sizes

    sizes = column_sizes(data, encoding=encoding)
    _, others = chosen_columns(list(sizes), sensitive, None)
    if len(others) < 2:
        if others:
            print_line(f"--useful {others[0]}: the only other column of {data}")
        return list(others)
    listed = ", ".join(
        f"{name!r} ({f'more than {MOST_LABELS:,}' if (n := sizes[name]) is None else f'{n:,}'})"
        for name in others[:_SHOWN]
    )
    more = f" and {len(others) - _SHOWN:,} more" if len(others) > _SHOWN else ""
    counted = {
        name: n for name, n in sizes.items() if n is not None and (n > 1 or name in sensitive)
    }
    few = None
    if counted.keys() >= set(sensitive):
        few = fitting_columns(counted, sensitive, _SUGGESTED)
    raise ParameterError(
        f"Expected the names of the columns to keep useful. Beside the sensitive ones {data} has, "
        f"with their numbers of different values: {listed}{more}. The fewer columns and values, "
        f"the smaller the errors.",
        argument="useful",
        remedies=[Remedy("useful", few, "for those with the fewest values")] if few else (),
    )
