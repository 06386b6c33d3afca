"""Run all benchmarks, or those named: ``python -m benchmarks [NAME ...] [--rows N]``."""

from __future__ import annotations

import argparse
import time
from importlib import import_module

from benchmarks.timing import Effort, console, machine, use_one_thread

NAMES = (
    "forgeries",
    "design",
    "polyopt",
    "optimal",
    "large",
    "layers",
    "people",
    "prices",
    "goals",
    "questionnaire",
    "load",
    "compare",
    "audit",
    "startup",
    "reading",
    "release",
    "faults",
    "spark",
    "estimate",
    "coverage",
    "studio",
    "collect",
    "ablation",
)
LONG = ("ablation",)  # only where they are named


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"among {', '.join(NAMES)}")
    parser.add_argument("--rows", type=int, default=Effort.rows, help="records of the files read")
    parser.add_argument(
        "--cap", type=float, default=Effort.cap, help="seconds after which a peer is given up"
    )
    parser.add_argument(
        "--quick", action="store_true", help="ablation: a selection; prices: quick designs"
    )
    parser.add_argument("--jobs", type=int, default=Effort.jobs, help="ablation: processes at once")
    chosen = parser.parse_args()
    for name in chosen.names:
        if name not in NAMES:
            parser.error(f"expected a name among {', '.join(NAMES)}, got {name!r}")
    use_one_thread()  # before anything imports NumPy
    start = time.perf_counter()
    console.print(machine())
    effort = Effort(chosen.rows, chosen.cap, is_quick=chosen.quick, jobs=chosen.jobs)
    for name in chosen.names or [name for name in NAMES if name not in LONG]:
        import_module(f"benchmarks.{name}").run(effort)
    console.print(f"\n{time.perf_counter() - start:.0f} s in all")


if __name__ == "__main__":
    main()
