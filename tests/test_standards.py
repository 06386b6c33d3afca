"""The size of the code: files, functions and signatures that a reader can keep in mind."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import rldp
from tests.support.files import ROOT

SOURCE = ROOT / "src" / "rldp"
LONGEST_FILE = 350  # lines
LONGEST_FUNCTION = 60  # lines, without its docstring
MOST_PARAMETERS = 7
OPEN = (Path("spark.py"), Path("sklearn.py"))  # modules that people import themselves

TO_BE_SPLIT = (
    "designing/solvers/grid_search.py, maximise",
    "protocol/release_protocol.py",
    "release/release_file.py, release_file",
    "reproduction/curves.py, lines",
    "reproduction/run.py, reproduce",
    "studio/report.py, report",
    "uncertainty/geometry/chi_square_ball.py, worst_split",
)

Function = ast.FunctionDef | ast.AsyncFunctionDef


def modules():
    return [(path, ast.parse(path.read_text())) for path in sorted(SOURCE.rglob("*.py"))]


def functions(tree: ast.Module):
    """Every function with the class around it, or None."""
    owners = {
        child: node
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for child in node.body
    }
    for node in ast.walk(tree):
        if isinstance(node, Function):
            yield node, owners.get(node)


def n_lines(function: Function) -> int:
    """From `def` to the end, less the docstring, which is for readers of the documentation."""
    lines = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function) is not None:
        lines -= function.body[0].end_lineno - function.body[0].lineno + 1
    return lines


def n_parameters(function: Function, owner: ast.ClassDef | None) -> int:
    arguments = function.args
    names = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    is_static = any(getattr(d, "id", None) == "staticmethod" for d in function.decorator_list)
    return len(names) - (owner is not None and not is_static)


def is_public(place: Path, function: Function, owner: ast.ClassDef | None) -> bool:
    """Whether people call it as `rldp.…`, as `rldp.spark.…`, or on an object of rldp."""
    if owner is None:
        return function.name in rldp.__all__ or (place in OPEN and function.name[0] != "_")
    is_known = owner.name in rldp.__all__ or owner.name in INHERITED
    return is_known and (function.name == "__init__" or not function.name.startswith("_"))


INHERITED = {
    base.__name__
    for name in rldp.__all__
    if isinstance(found := getattr(rldp, name), type)
    for base in found.__mro__
    if base.__module__.startswith("rldp.")
}


def too_large(path: Path, tree: ast.Module) -> list[str]:
    found = []
    place = path.relative_to(SOURCE)
    is_command = place.parts[0] == "cli"
    lines = len(path.read_text().splitlines())
    if lines > LONGEST_FILE:
        found.append(f"{place} has {lines} lines")
    for function, owner in functions(tree):
        name = f"{place}, {function.name} at line {function.lineno},"
        if n_lines(function) > LONGEST_FUNCTION and not is_command:
            found.append(f"{name} has {n_lines(function)} lines")
        count = n_parameters(function, owner)
        if count > MOST_PARAMETERS and not is_command and not is_public(place, function, owner):
            found.append(f"{name} has {count} parameters")
    return found


def test_files_functions_and_signatures_are_small():
    found = [line for path, tree in modules() for line in too_large(path, tree)]
    found = [line for line in found if not line.startswith(TO_BE_SPLIT)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "name", ["studio/page/*.js", "studio/page/*.css", "collect/page/*.js", "collect/page/*.css"]
)
def test_the_page_is_made_of_small_files(name):
    for path in SOURCE.glob(name):
        assert len(path.read_text().splitlines()) <= LONGEST_FILE, path.name


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("x = 1\n" * 351, "351 lines"),
        ("def f():\n" + "    x = 1\n" * 60, "61 lines"),
        ("class A:\n    def f(self):\n" + "        x = 1\n" * 60, "61 lines"),
        ("def f(a, b, c, d, /, e, f, *, g, h):\n    pass\n", "8 parameters"),
        ("class A:\n    async def f(self, a, b, c, d, e, f, g, h):\n        pass\n", "8 param"),
    ],
)
def test_what_is_too_large_is_found(code, word, tmp_path, monkeypatch):
    monkeypatch.setattr("tests.test_standards.SOURCE", tmp_path)
    path = tmp_path / "large.py"
    path.write_text(code)
    assert any(word in line for line in too_large(path, ast.parse(code)))


def test_what_is_large_enough_passes(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.test_standards.SOURCE", tmp_path)
    code = 'def f(a, b, c, d, e, f, g):\n    """Long.\n\n    Text.\n    """\n' + "    x = 1\n" * 59
    path = tmp_path / "small.py"
    path.write_text(code)
    assert too_large(path, ast.parse(code)) == []
