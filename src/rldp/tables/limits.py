"""The largest tables that are accepted, and the errors for larger ones.

Counting needs memory for every cell, a closed form for pairs of cells. A search needs much more:
a minute and 1 GB for 1,000 cells; for 10,000 it would need 60 GB and not finish.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence

from rldp.errors import DataError, Remedy, TooLargeError

MOST_LABELS = 10_000  # in one column; with more it is an identifier
MOST_NUMBERS = 500  # in one column of numbers; with more it is a measurement
MOST_CELLS = 1_000_000  # of a table that is counted
MOST_CELLS_DESIGNED = 10_000  # of a table that a closed form is designed for
MOST_CELLS_SEARCHED = 1_000  # of a table that a protocol is searched for
CLOSED_FORMS = ("grr", "ue", "srr", "ir", "grr-cr", "ue-cr")  # all others are searched


def labels_fault(
    name: str, labels: Collection[str], limit: int | None = None, *, is_declared: bool = False
) -> DataError | None:
    """The error for a column that has more different values than a protocol could use.

    Args:
        name: of the column.
        labels: its different values so far.
        limit: the most that the caller allows; None for the limits above.
        is_declared: whether the caller listed the labels, so that numbers are meant as labels.
    """
    n, most = len(labels), MOST_LABELS if limit is None else limit
    is_free = limit is None and not is_declared
    if is_free and n > MOST_NUMBERS and all(map(_is_number, labels)):
        return DataError(
            f"Expected at most {MOST_NUMBERS} different numbers in a column, column {name!r} has "
            f"{n:,} or more; make bands of it first, or leave it out.",
            column=name,
            remedies=[Remedy("levels_limit", _rounded_up(n), "to take every number as a label")],
        )
    if n > most:
        return DataError(
            f"Expected at most {most:,} different labels in a column, column {name!r} has more; "
            f"it looks like an identifier or a measurement: leave it out, or make bands of it "
            f"first.",
            column=name,
        )
    return None


def check_identifiers(sizes: Mapping[str, int], records: int) -> None:
    """Refuse useful columns that nobody named and that have another value in most records.

    Args:
        sizes: column name → number of its different values.
        records: how many there are.
    """
    least = max(_FEWEST_IDS, records / 2)
    for name, n in sizes.items():
        if n > least:
            others = [each for each in sizes if sizes[each] <= least]
            raise DataError(
                f"Expected useful columns by name: column {name!r} has {n:,} different values in "
                f"{records:,} records, it looks like an identifier.",
                argument="useful",
                column=name,
                remedies=[Remedy("useful", others, "to leave it out")],
            )


_FEWEST_IDS = 20  # different values of a column that may be an identifier
_SHOWN = 8  # columns that a message names
_LONG = 10**12  # numbers up to here are written out


def check_cells(
    sizes: Mapping[str, int],
    sensitive: Sequence[str],
    limit: int = MOST_CELLS,
    unfit: Collection[str] = (),
) -> None:
    """Refuse a product of columns with too many cells, and name columns that would fit.

    Args:
        sizes: column name → number of its different values so far.
        sensitive: the sensitive ones among them.
        limit: the most cells.
        unfit: columns that have too many values by themselves.
    """
    cells = math.prod(sizes.values())
    if cells <= limit:
        return
    named = sorted(sizes, key=lambda name: -sizes[name])[:_SHOWN] if len(sizes) > _SHOWN else sizes
    counted = ", ".join(f"{name!r} has {sizes[name]:,}" for name in named)
    if len(sizes) > _SHOWN:
        counted += f", and {len(sizes) - _SHOWN:,} other columns"
    number = f"{cells:,}" if cells < _LONG else f"10^{int(math.log10(cells))}"
    fitting = fitting_columns({k: n for k, n in sizes.items() if k not in unfit}, sensitive, limit)
    fault = (
        f"Expected a table of at most {limit:,} cells, the different values make {number} or "
        f"more: {counted}"
    )
    if fitting is None:
        raise DataError(
            f"{fault}; the sensitive columns alone make too many: choose fewer, or fewer levels.",
            argument="sensitive",
        )
    if not fitting:
        raise DataError(
            f"{fault}; no other column fits beside the sensitive ones: make bands of one first.",
            argument="useful",
        )
    remedy = Remedy("useful", fitting, "to stay within it")
    raise DataError(f"{fault}.", argument="useful", remedies=[remedy])


def designable_cells(protocols: Iterable[str]) -> int:
    """The most cells of a table that all of these protocols can be designed for."""
    is_closed = set(protocols) <= set(CLOSED_FORMS)
    return MOST_CELLS_DESIGNED if is_closed else MOST_CELLS_SEARCHED


def check_designable(n_s: int, n_u: int, protocol: str) -> None:
    """Refuse a table that is too large to design this protocol for."""
    most = designable_cells([protocol])
    if n_s * n_u <= most:
        return
    ways = "choose fewer columns or fewer levels"
    if n_s * n_u <= MOST_CELLS_DESIGNED:
        ways += f", or a closed form: {', '.join(CLOSED_FORMS)}"
    raise TooLargeError(
        f"Expected a table of at most {most:,} cells for {protocol}, "
        f"got {n_s:,} × {n_u:,} = {n_s * n_u:,}; {ways}.",
        argument="protocol",
    )


def fitting_columns(
    sizes: Mapping[str, int], sensitive: Sequence[str], limit: int
) -> list[str] | None:
    """As many useful columns as fit, the smallest first; None if S alone does not fit."""
    cells = math.prod(sizes[name] for name in sensitive)
    if cells > limit:
        return None
    useful = [name for name in sizes if name not in sensitive]
    chosen = set()
    for name in sorted(useful, key=sizes.__getitem__):
        if cells * sizes[name] > limit:
            break
        cells *= sizes[name]
        chosen.add(name)
    return [name for name in useful if name in chosen]


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _rounded_up(count: int) -> int:
    """The next number with one leading digit and zeros, so that a limit leaves some room."""
    zeros = len(str(count)) - 1
    return int(f"{int(str(count)[0]) + 1}{'0' * zeros}")
