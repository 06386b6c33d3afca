"""How long `rldp --help` takes, as a ratio to starting Python at all."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.timing import Effort, console, milliseconds, ratio, show

RUNS = 10


def run(_: Effort) -> None:
    script = Path(sys.executable).with_name("rldp")
    python = sys.executable
    commands = {
        "python -c pass": [python, "-c", "pass"],
        'python -c "import rldp"': [python, "-c", "import rldp"],
        'python -c "import numpy"': [python, "-c", "import numpy"],
        "rldp --help": [str(script), "--help"]
        if script.exists()
        else [python, "-m", "rldp.cli", "--help"],
    }
    seconds = {label: _median(command) for label, command in commands.items()}
    bare = seconds["python -c pass"]
    show(
        f"Starting up, median of {RUNS} processes",
        ["command", "ms", "ratio"],
        [
            [label, milliseconds(value), ratio(value, bare)]
            for label, value in seconds.items()
            if value > 0
        ],
    )
    if not seconds["rldp --help"]:
        console.print("rldp --help was skipped: the command line is not there or fails.")


def _median(command: Sequence[str]) -> float:
    """Median wall time of the command, 0 where it fails."""
    seconds = []
    for _ in range(RUNS):
        start = time.perf_counter()
        result = subprocess.run(command, capture_output=True, check=False)
        seconds.append(time.perf_counter() - start)
        if result.returncode != 0:
            return 0.0
    return statistics.median(seconds)
