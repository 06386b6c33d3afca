"""Write what the snippets of a page print into the page: `python -m tools.fill_snippets PAGE ...`.

Output that agrees stays, and so does a line with `...` in it that fits a line that is printed.
Read the difference before you commit it.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from tests.support.snippets import EXAMPLE, Reader, Step, agrees, blocks


def filled(page: Path, folder: Path) -> str:
    """The text of a page in which every snippet shows what it prints, run in a folder."""
    lines = page.read_text().split("\n")
    reader = Reader(folder)
    changes = [
        (block.line - 1 + step.lines.start, block.line - 1 + step.lines.stop, _new(step, printed))
        for block in blocks(page)
        for step, printed in reader.differences(block)
    ]
    for start, end, printed in reversed(changes):
        lines[start:end] = printed
    return "\n".join(lines)


def _new(step: Step, printed: str) -> list[str]:
    """The lines that are printed, or lines with `...` that are shown now and stand for them."""
    short = [line for line in step.shown.split("\n") if "..." in line and line.strip() != "..."]
    return [
        next((line for line in short if agrees(line, new)), new.rstrip())
        for new in printed.rstrip().split("\n")
    ]


def main(pages: list[str]) -> None:
    """Fill every page that is named."""
    os.environ["COLUMNS"] = "100"
    for page in map(Path, pages):
        path = page.resolve()
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True)
            home = Path.cwd()
            os.chdir(folder)
            try:
                text = filled(path, folder)
            finally:
                os.chdir(home)
        path.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
