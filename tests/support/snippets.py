"""Pages, their code blocks, and a reader who follows a page from top to bottom in a folder.

```python   a session with `>>>`; output as doctest compares it, `...` for what is left out
```console  commands after `$ `, each with what it prints; exit code 0, or the next is `$ echo $?`;
            a block that shows no output at all is run for its exit codes
```text, ```json, ```js   shown, not run; ```{toctree} lists pages of the site

A block whose first line is `# not run: REASON` is shown only; REASONS are all that there are.
"""

from __future__ import annotations

import doctest
import io
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from rldp.cli import main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLE = ROOT / "docs" / "example"

LANGUAGES = {"python", "console", "text", "json", "js", "r", "{toctree}"}
REASONS = {"takes minutes", "needs Spark", "needs a cluster", "opens a page", "installs packages"}
_NOT_RUN = "# not run: "
_SHELL = set("|<>;&$*")


class SnippetError(AssertionError):
    """A page shows something else than its code gives."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; `line` is that of its first line of code."""

    page: Path
    line: int
    language: str
    text: str

    @property
    def reason(self) -> str | None:
        """Why it is not run, or None."""
        first = self.text.partition("\n")[0]
        return first.removeprefix(_NOT_RUN).strip() if first.startswith(_NOT_RUN) else None

    def error(self, message: str) -> SnippetError:
        return SnippetError(f"{self.page.name}, line {self.line}: {message}")


@dataclass(frozen=True)
class Step:
    """A command or statement of a block, what is shown below it, and in which lines."""

    words: str
    shown: str
    lines: range  # of the block that show it


def blocks(page: Path, text: str | None = None) -> Iterator[Block]:
    """Every fenced block of a page, in order."""
    lines = (page.read_text() if text is None else text).split("\n")
    start, language = 0, None
    for number, line in enumerate(lines, 1):
        if not line.startswith("```"):
            continue
        if language is None:
            start, language = number, line.removeprefix("```").strip()
        else:
            yield Block(page, start + 1, language, "\n".join(lines[start : number - 1]))
            language = None
    if language is not None:
        raise SnippetError(f"{page.name}, line {start}: the block has no end.")


def prose(page: Path) -> list[str]:
    """The lines of a page outside its fenced blocks."""
    is_code, lines = False, []
    for line in page.read_text().split("\n"):
        if line.startswith("```"):
            is_code = not is_code
        elif not is_code:
            lines.append(line)
    return lines


def commands(text: str) -> list[Step]:
    """The commands of a console block; a backslash at the end of a line goes on to the next."""
    lines = text.split("\n")
    starts = [i for i, line in enumerate(lines) if line.startswith("$ ")]
    if not starts or any(line.strip() for line in lines[: starts[0]]):
        raise SnippetError(f"Expected `$ ` and a command, got {lines[0]!r}.")
    steps = []
    for start, end in pairwise([*starts, len(lines)]):
        first = start + 1
        while lines[first - 1].endswith("\\"):
            first += 1
        while end > first and not lines[end - 1].strip():
            end -= 1
        words = "\n".join(lines[start:first])[2:]
        steps.append(Step(words, "\n".join(lines[first:end]), range(first, end)))
    return steps


class _Sessions(doctest.DocTestRunner):
    """Keeps what differs, and raises what a session did not expect to be raised."""

    def __init__(self) -> None:
        super().__init__(verbose=False, optionflags=doctest.ELLIPSIS)
        self.differences: list[tuple[Step, str]] = []

    def report_failure(self, _out: Any, _test: Any, example: doctest.Example, got: str) -> None:
        first = example.lineno + example.source.count("\n")
        lines = range(first, first + example.want.count("\n"))
        self.differences.append((Step(example.source, example.want, lines), got))

    def report_unexpected_exception(
        self, _out: Any, _test: Any, example: doctest.Example, exc_info: Any
    ) -> None:
        raise SnippetError(f"{example.source}raised {exc_info[0].__name__}: {exc_info[1]}")


@dataclass
class Reader:
    """Follows blocks one after the other in a folder; names and files stay from block to block."""

    folder: Path
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    code: int = 0  # of the last command

    def follow(self, block: Block) -> None:
        """Run a block, or raise a `SnippetError` that shows the differences."""
        differences = self.differences(block)
        if differences:
            texts = (
                f"{step.words.rstrip()}\n--- shown:\n{step.shown.rstrip()}\n--- printed:\n{printed}"
                for step, printed in differences
            )
            raise block.error("\n".join(texts))

    def differences(self, block: Block) -> list[tuple[Step, str]]:
        """Run a block: the steps that print something else than is shown, and what they print."""
        if block.language not in LANGUAGES:
            raise block.error(f"expected one of {sorted(LANGUAGES)}, got {block.language!r}.")
        if block.reason is not None and block.reason not in REASONS:
            raise block.error(f"expected one of {sorted(REASONS)}, got {block.reason!r}.")
        if block.reason is not None or block.language not in ("python", "console"):
            return []
        try:
            return (self._sessions if block.language == "python" else self._commands)(block)
        except SnippetError as error:
            raise block.error(str(error)) from None

    def _sessions(self, block: Block) -> list[tuple[Step, str]]:
        test = doctest.DocTestParser().get_doctest(
            block.text + "\n", self.names, block.page.name, str(block.page), 0
        )
        if not test.examples:
            raise SnippetError("Expected a session with >>>.")
        runner = _Sessions()
        runner.run(test, clear_globs=False)
        self.names = test.globs
        return runner.differences

    def _commands(self, block: Block) -> list[tuple[Step, str]]:
        different, printed = [], ""
        steps = commands(block.text)
        is_shown = any(step.shown for step in steps)
        for step in steps:
            if self.code and step.words != "echo $?":
                raise SnippetError(f"Exit code {self.code} before `$ {step.words}`: {printed}")
            self.code, printed = self._run(step.words)
            if is_shown and not agrees(step.shown, printed):
                different.append((step, printed))
        if self.code:
            raise SnippetError(f"Exit code {self.code} of the last command, which said: {printed}")
        return different

    def _run(self, words: str) -> tuple[int, str]:
        """Exit code and output; `rldp` alone runs in this process, which saves its imports."""
        if words.startswith("rldp ") and not _SHELL & set(words.partition("#")[0]):
            output = io.StringIO()
            with redirect_stdout(output), redirect_stderr(output):
                code = main(shlex.split(words.replace("\\\n", " "), comments=True)[1:])
            return code, output.getvalue()
        done = subprocess.run(
            ["bash", "-c", f"(exit {self.code}); {words}"],
            cwd=self.folder,
            env=os.environ | {"PATH": f"{self._with_rldp()}{os.pathsep}{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    def _with_rldp(self) -> Path:
        """A folder with the command `rldp` of this very Python."""
        folder = self.folder / ".bin"
        folder.mkdir(exist_ok=True)
        command = folder / "rldp"
        command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m rldp.cli "$@"\n')
        command.chmod(0o755)
        return folder


def agrees(shown: str, printed: str) -> bool:
    """Whether the output is as shown, but for blanks at line ends and what `...` leaves out."""
    want, got = (
        "\n".join(line.rstrip() for line in text.rstrip().split("\n")) + "\n"
        for text in (shown, printed)
    )
    return doctest.OutputChecker().check_output(want, got, doctest.ELLIPSIS)
