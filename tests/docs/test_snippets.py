"""Every snippet of the documentation is run, and gives what its page shows."""

from __future__ import annotations

import re
import shutil

import pytest

from tests.support.snippets import (
    EXAMPLE,
    PAGES,
    ROOT,
    Block,
    Reader,
    SnippetError,
    blocks,
    commands,
    prose,
)

PAGE = ROOT / "README.md"
MOST_NOT_RUN = 10


@pytest.fixture
def reader(tmp_path, monkeypatch):
    """Someone in a copy of docs/example, at a terminal of 100 columns."""
    shutil.copytree(EXAMPLE, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return Reader(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_snippet_gives_what_its_page_shows(page, reader):
    for block in blocks(page):
        reader.follow(block)


def test_few_snippets_are_not_run():
    left = [block for page in PAGES for block in blocks(page) if block.reason is not None]
    assert len(left) <= MOST_NOT_RUN, [(block.page.name, block.line) for block in left]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_stands_in_fenced_blocks(page):
    """Lines that begin with four blanks are formulas: no code hides from the test there."""
    code = re.compile(r" {4}(\$ |>>> |rldp[ .]|make |pip |import |from \w+ import|\w+ = rldp\.)")
    assert not [line for line in prose(page) if code.match(line)]


# the runner itself: each of these must fail


def _follow(reader, language, text):
    reader.follow(Block(PAGE, 1, language, text))


@pytest.mark.parametrize(
    ("language", "text", "said"),
    [
        ("python", ">>> 1 + 1\n3", "printed:\n2"),
        ("python", ">>> 1 / 0\n0", "ZeroDivisionError"),
        ("python", "1 + 1", "Expected a session"),
        ("python", "# not run: too lazy\n>>> 1", "expected one of"),
        ("console", "$ rldp --version\nrldp 99", "printed:"),
        ("console", "$ rldp --version\n$ echo a\na", "shown:"),
        ("console", "$ echo a\nb", "shown:"),
        ("console", "$ rldp verify nothing.json\nerror: ...", "Exit code 2"),
        ("console", "$ false\n$ echo b\nb", "Exit code 1 before"),
        ("console", "rldp --version", "Expected `"),
        ("console", "", "Expected `"),
        ("py", ">>> 1\n1", "expected one of"),
    ],
)
def test_a_wrong_snippet_fails(language, text, said, reader):
    with pytest.raises(SnippetError, match=re.escape(said)):
        _follow(reader, language, text)


def test_a_block_without_end_fails():
    with pytest.raises(SnippetError, match="no end"):
        list(blocks(PAGE, "```python\n>>> 1\n"))


def test_names_files_and_exit_codes_stay_from_block_to_block(reader):
    _follow(
        reader,
        "python",
        '>>> n = 2\n>>> import pathlib; _ = pathlib.Path("n.txt").write_text("two")',
    )
    _follow(reader, "console", "$ cat n.txt\ntwo\n$ rldp verify n.txt\nerror: ...\n$ echo $?\n2")
    _follow(
        reader,
        "console",
        "$ rldp --version | sed s/rldp/it\\ is/\nit is 0...\n$ cat \\\n  n.txt\ntwo",
    )
    _follow(reader, "python", ">>> n + 1\n3")


def test_output_runs_to_the_next_command():
    first, second = commands("$ a \\\n  b\n1\n\n2\n$ c")
    assert (first.words, first.shown) == ("a \\\n  b", "1\n\n2")
    assert (second.words, second.shown) == ("c", "")
