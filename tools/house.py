"""Measure the house: `python tools/house.py [SRC]`, where SRC is the folder `src` of any version.

Modules, lines, public names, contracts and the share of lines with a comment; and how many files a
record enters on its way from CSV to an estimate, and a design of a 3 × 3 table. No number is a
target: what counts is how long a reader takes, which no script measures.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tokenize
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_RECORD = """
text = "income,sex\\n" + "low,f\\nhigh,m\\nlow,m\\n" * 40
pathlib.Path("survey.csv").write_text(text)
table = rldp.read_table("survey.csv", sensitive="income", useful="sex")
p = rldp.design(rldp.ChiSquareSet(table), 1.0, "grr")
start()
rldp.read_table("survey.csv", sensitive="income", useful="sex")
rldp.release_file(p, "survey.csv", "reports.csv")
p.estimate("reports.csv").cells
"""
_DESIGN = """
table = rldp.Table([[50, 20, 10], [30, 60, 25], [5, 15, 70]])
start()
rldp.design(rldp.ChiSquareSet(table), 1.0, effort="quick")
"""
_ENTERED = """
import pathlib, sys, threading, rldp
home, entered = str(pathlib.Path(rldp.__file__).parent), set()
def seen(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_name != "<module>" and code.co_filename.startswith(home):
        entered.add(code.co_filename)
def start():
    threading.setprofile(seen)
    sys.setprofile(seen)
"""


def modules(source: Path) -> list[Path]:
    """All modules but the empty ones."""
    return [path for path in sorted(source.rglob("*.py")) if path.stat().st_size]


def comment_share(paths: list[Path]) -> float:
    """The share of lines with a comment that is neither for a checker nor a shebang."""
    lines = comments = 0
    for path in paths:
        text = path.read_text(encoding="utf-8")
        lines += text.count("\n")
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            is_for_checker = token.string.startswith(("# noqa", "# type:", "#!"))
            comments += token.type == tokenize.COMMENT and not is_for_checker
    return comments / lines


def entered(source: Path, code: str, folder: Path) -> int:
    """How many files of the package have a function that is called."""
    run = subprocess.run(
        [sys.executable, "-c", f"{_ENTERED}{code}\nsys.setprofile(None)\nprint(len(entered))"],
        cwd=folder,
        env={"PYTHONPATH": str(source), "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return int(run.stdout)


def main() -> None:
    """Print the figures."""
    from tempfile import TemporaryDirectory

    source = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "src"
    found = modules(source)
    lines = [path.read_text(encoding="utf-8").count("\n") for path in found]
    command = [sys.executable, "-c", "import rldp; print(len(rldp.__all__))"]
    names = subprocess.run(
        command, env={"PYTHONPATH": str(source)}, capture_output=True, text=True, check=True
    )
    settings = tomllib.loads((source.parent / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    print(f"modules                          {len(found):6}")
    print(f"lines                            {sum(lines):6}")
    print(f"median lines of a module         {sorted(lines)[len(lines) // 2]:6}")
    print(f"modules below 60 lines           {sum(n < 60 for n in lines):6}")
    print(f"public names                     {names.stdout.strip():>6}")
    print(f"contracts                        {len(contracts):6}")
    print(f"lines with a comment             {comment_share(found):6.1%}")
    with TemporaryDirectory() as folder:
        print(f"files that a record enters       {entered(source, _RECORD, Path(folder)):6}")
        print(f"files that a design enters       {entered(source, _DESIGN, Path(folder)):6}")


if __name__ == "__main__":
    main()
