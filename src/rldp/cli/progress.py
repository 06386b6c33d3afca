"""Progress on the terminal: bars and lines that are gone when the work is done.

Where the standard error is no terminal, nothing is shown, and the work gets no callback.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rldp.cli.printing import visible

if TYPE_CHECKING:
    from rich.progress import Progress

    from rldp._types import RecordProgress, SearchProgress, StepProgress


@contextmanager
def byte_bar(title: str) -> Iterator[StepProgress | None]:
    """A bar for the bytes of a file."""
    with _bars(lambda kinds: kinds.DownloadColumn()) as bars:
        yield None if bars is None else _steps(bars, title)


@contextmanager
def step_bars() -> Iterator[Callable[[str], StepProgress] | None]:
    """A bar for the steps of each of several jobs, made by calling it with a title."""
    with _bars(lambda kinds: kinds.MofNCompleteColumn()) as bars:
        yield None if bars is None else lambda title: _steps(bars, title)


@contextmanager
def record_bar(title: str) -> Iterator[RecordProgress | None]:
    """A bar for records, with their rate."""
    counted = "{task.fields[records]:,} records, {task.fields[rate]:,.0f}/s"
    with _bars(lambda kinds: kinds.TextColumn(counted)) as bars:
        if bars is None:
            yield None
            return
        task = bars.add_task(visible(title), total=None, records=0, rate=0.0)
        start = time.perf_counter()

        def tell(records: int, share: float | None) -> None:
            bars.update(
                task,
                completed=share or 0,
                total=None if share is None else 1.0,
                records=records,
                rate=records / max(1e-9, time.perf_counter() - start),
            )

        yield tell


@contextmanager
def search_line(
    name: str, entropy: float, *, is_information: bool
) -> Iterator[SearchProgress | None]:
    """A line with the utility found so far and its upper bound, as shares of H(X) = `entropy`.

    A search for the smallest error tells the summed squares of one report's estimates instead.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.markup import escape

    name = escape(visible(name))
    with Console(stderr=True).status(f"{name} …") as status:

        def tell(utility: float, bound: float) -> None:
            if not is_information:
                status.update(f"{name}: summed squares {utility:.4g} so far; Ctrl-C to stop here")
                return
            most = f"{min(1.0, bound / entropy):.2%}" if entropy > 0 else "nothing"
            kept = f"{max(0.0, utility / entropy):.2%}" if entropy > 0 else "nothing"
            status.update(f"{name}: keeps {kept} of H(X), at most {most}; Ctrl-C to stop here")

        yield tell


@contextmanager
def ready_lines(names: Sequence[str]) -> Iterator[Callable[[list[Any]], None]]:
    """A line for each protocol of a comparison once it is ready, and one for the next."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.markup import escape

    console, left = Console(stderr=True), list(names)
    with console.status(f"{escape(left[0])} …; Ctrl-C keeps what is done") as status:

        def tell(records: list[Any]) -> None:
            for record in records:
                line = f"{record['protocol']}, ε = {record['epsilon']:g}"
                if not math.isnan(record["error"]):
                    line += f": ± {100 * record['error']:.3g} points"
                line += f", {100 * record['normalised']:.1f} % of H(X), {record['seconds']:.1f} s"
                console.print(escape(line))
            left.pop(0)
            status.update(f"{escape(left[0])} …; Ctrl-C keeps what is done" if left else "")

        yield tell


@contextmanager
def _bars(column: Callable[[Any], Any]) -> Iterator[Progress | None]:
    """A display of bars, None without a terminal; `column` makes one of the kinds rich has."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress as kinds
    from rich.console import Console

    columns = (
        kinds.TextColumn("{task.description}", markup=False),
        kinds.BarColumn(),
        column(kinds),
        kinds.TimeRemainingColumn(),
    )
    with kinds.Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        yield bars


def _steps(bars: Progress, title: str) -> StepProgress:
    task = bars.add_task(visible(title), total=None)
    return lambda done, total: bars.update(task, completed=done, total=total)
