"""Files, links, names and options that the documentation mentions exist."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import typer

import rldp
from rldp.cli import app
from tests.support.snippets import PAGES, ROOT, prose

SOURCE = ROOT / "src" / "rldp"
READ = [
    *PAGES,
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "clients" / "js" / "README.md",
    ROOT / "clients" / "r" / "README.md",
    ROOT / "benchmarks" / "RESULTS.md",
]
FOLDERS = ("src", "tests", "docs", "tools", "benchmarks", "clients", "rldp")
CODE = re.compile(r"`([^`]+)`")
FILE = re.compile(r"(?<![\w./…-])((?:[\w-]+/)*(?:[a-z_]\w*|__init__)\.(?:py|mjs|js|toml))(?![\w(])")
FOLDER = re.compile(rf"(?<![\w./-])((?:{'|'.join(FOLDERS)})/[\w./*-]*\w)")
LINK = re.compile(r"\]\(([^)\s]+)\)")
NAME = re.compile(r"\brldp(?:\.[A-Za-z_]\w*)+")
PART = re.compile(r"(?<![\w./])([A-Za-z_]\w*)\.([A-Za-z_]\w*)(?![\w.])")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")

each_page = pytest.mark.parametrize("page", READ, ids=lambda page: str(page.relative_to(ROOT)))


def _code(page: Path) -> list[str]:
    return CODE.findall("\n".join(prose(page)))


def _exists(name: str, page: Path) -> bool:
    return any((folder / name).exists() for folder in (page.parent, ROOT, SOURCE))


@each_page
def test_every_file_that_is_named_exists(page):
    named = {name for code in _code(page) for form in (FILE, FOLDER) for name in form.findall(code)}
    assert not sorted(name for name in named if not _exists(name, page))


@each_page
def test_every_link_leads_somewhere(page):
    for target in LINK.findall("\n".join(prose(page))):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        path = page.parent / name if name else page
        assert path.exists(), target
        if anchor:
            assert anchor in _anchors(path), target


def _anchors(page: Path) -> set[str]:
    """The anchors of headings as GitHub makes them."""
    headings = [line.lstrip("#").strip() for line in prose(page) if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in headings}


@each_page
def test_every_name_of_the_package_exists(page):
    names = {name for code in _code(page) for name in NAME.findall(code)}
    names = {name for name in names if not name.startswith("rldp.json")}
    assert not sorted(name for name in names if not _is_name(name))


def _is_name(name: str) -> bool:
    """Whether a dotted name is a module, or leads from one to an attribute."""
    module, *rest = name.split(".")
    found = importlib.import_module(module)
    for part in rest:
        module = f"{module}.{part}"
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(module)
            except ImportError:
                return False
    return True


@each_page
def test_every_part_of_a_class_or_module_exists(page):
    """`Table.counts` and `robust.smallest_informations`, for all classes and modules there are."""
    pairs = {pair for code in _code(page) for pair in PART.findall(code)}
    homes = {x: [getattr(rldp, x)] for x, _ in pairs if x[0].isupper() and hasattr(rldp, x)}
    for path in SOURCE.rglob("*.py"):
        if "_" in path.stem.strip("_"):  # others are common words
            module = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)
            homes.setdefault(path.stem, []).append(importlib.import_module(module))
    named = {(home, part) for home, part in pairs if home in homes and part != "py"}
    assert not [f"{a}.{b}" for a, b in sorted(named) if not any(_has(h, b) for h in homes[a])]


def _has(home: Any, part: str) -> bool:
    fields = {
        name
        for kind in getattr(home, "__mro__", ())
        for name in vars(kind).get("__annotations__", {})
    }
    return hasattr(home, part) or part in fields


@pytest.mark.slow
@each_page
def test_every_option_that_is_named_exists(page):
    commands = typer.main.get_command(app).commands.values()
    options = [option for c in commands for option in c.get_params(typer.Context(c))]
    known = {word for option in options for word in (*option.opts, *option.secondary_opts)}
    named = {option for code in _code(page) for option in OPTION.findall(code)}
    assert not named - known


@each_page
def test_every_target_of_make_that_is_named_exists(page):
    named = {name for code in _code(page) for name in re.findall(r"^make ([a-z-]+)$", code)}
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert not named - targets


def test_the_walks_through_the_code_name_each_file_once():
    text = "\n".join(prose(ROOT / "docs" / "architecture.md"))
    times = Counter(name for code in CODE.findall(text) for name in FILE.findall(code))
    assert times["tables/record_files.py"] == 1
    assert not {name for name, n in times.items() if n > 1}


def test_every_page_is_listed_on_the_front_page():
    """A page that no list names cannot be found on the site."""
    index = ROOT / "docs" / "index.md"
    listed = set(re.findall(r"^(?:\.\./)?([\w/-]+)$", index.read_text(), re.MULTILINE))
    pages = {path.stem for path in (ROOT / "docs").glob("*.md") if path != index}
    assert not pages - listed
