"""What the benchmarks share: the best of several runs, a time limit, and tables.

Nothing here imports NumPy: its number of threads is read from the environment on import.
"""

from __future__ import annotations

import os
import platform
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from types import FrameType

from rich import box
from rich.console import Console
from rich.table import Table

console = Console(width=140, highlight=False)

THREADS = (
    "OMP_NUM_THREADS",  # also the threads of Arrow
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "POLARS_MAX_THREADS",
)


@dataclass(frozen=True)
class Effort:
    """How much work a run may do.

    Args:
        rows: records of the files that are read.
        cap: seconds after which a peer is given up.
        is_quick: whether a selection is enough.
        jobs: processes at once, where seconds do not count.
    """

    rows: int = 2_000_000
    cap: float = 20.0
    is_quick: bool = False
    jobs: int = 1


def use_one_thread() -> None:
    """Ask every library for one thread, in this process and those it starts."""
    os.environ.update(dict.fromkeys(THREADS, "1"))


def best_of(
    works: Mapping[str, Callable[[], object]], times: int = 7, enough: float = 2.0
) -> dict[str, float]:
    """Seconds of the fastest of several runs of each, taken in turns.

    In turns, so that what else runs on the machine meets all of them. A work that has taken
    `enough` seconds is not run again.
    """
    seconds: dict[str, list[float]] = {label: [] for label in works}
    for _ in range(times):
        for label, work in works.items():
            if sum(seconds[label]) < enough:
                start = time.perf_counter()
                work()
                seconds[label].append(time.perf_counter() - start)
    return {label: min(values) for label, values in seconds.items()}


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeoutError inside the block after so many seconds."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def show(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *notes: str) -> None:
    """Print a table in Markdown, its first column to the left, with notes below."""
    table = Table(*columns, box=box.MARKDOWN, show_edge=True)
    table.columns[0].overflow = "fold"
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows:
        table.add_row(*row)
    console.print(f"\n## {title}\n")
    console.print(table)
    for note in notes:
        console.print(note)


def milliseconds(seconds: float) -> str:
    """Seconds as milliseconds with three figures."""
    return f"{seconds * 1e3:.3g}" if seconds < 1 else f"{seconds * 1e3:,.0f}"


def ratio(numerator: float, denominator: float) -> str:
    """Their quotient as a factor."""
    factor = numerator / denominator
    return f"{factor:,.0f}×" if factor >= 100 else f"{factor:.2g}×"


def machine() -> str:
    """Processor, cores and versions in one line."""
    model = platform.processor() or platform.machine()
    about = Path("/proc/cpuinfo")
    if about.exists():
        lines = [line for line in about.read_text().splitlines() if line.startswith("model name")]
        model = lines[0].partition(":")[2].strip() if lines else model
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy"))
    return f"{model}, {os.cpu_count()} cores; Python {platform.python_version()}, {libraries}"
