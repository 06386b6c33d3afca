"""The size of the code, which a reader can keep in mind, and the reason of every exception."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

import rldp
from tests.support.files import ROOT

SOURCE = ROOT / "src" / "rldp"
LONGEST_FILE = 800  # lines
LONGEST_FUNCTION = 60  # lines, without its docstring
MOST_PARAMETERS = 7
EXCEPTION = re.compile(r"# *(noqa|type: *ignore|pragma)\b", re.IGNORECASE)
EXPLAINED = re.compile(r"# (noqa: [A-Z0-9, ]+|type: ignore\[[a-z, -]+\])  # \w.+")
OPEN = (Path("spark.py"), Path("sklearn.py"))  # modules that people import themselves

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
    assert not found, "\n".join(found)


def unnamed(package: Path) -> set[str]:
    """Modules and packages below one that its docstring does not name."""
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    modules = {path.stem for path in package.glob("*.py") if not path.stem.startswith("__")}
    packages = {path.parent.name for path in package.glob("*/__init__.py")}
    return {name for name in modules | packages if not re.search(rf"\b{name}\b", text)}


def test_a_package_says_what_its_modules_are_for():
    packages = [path.parent for path in SOURCE.rglob("__init__.py")]
    found = {str(package.relative_to(SOURCE)): unnamed(package) for package in packages}
    assert not {place: names for place, names in found.items() if names}


def test_a_module_that_its_package_does_not_name_is_found(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "__init__.py").write_text('"""One: `first`."""\n')
    for name in ("first.py", "fir.py", "inner/__init__.py"):
        (tmp_path / name).touch()
    assert unnamed(tmp_path) == {"fir", "inner"}


@pytest.mark.parametrize(
    "name", ["studio/page/*.js", "studio/page/*.css", "collect/page/*.js", "collect/page/*.css"]
)
def test_the_page_is_made_of_small_files(name):
    for path in SOURCE.glob(name):
        assert len(path.read_text().splitlines()) <= LONGEST_FILE, path.name


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("x = 1\n" * 801, "801 lines"),
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


def unexplained(code: str) -> list[str]:
    """Comments that silence a checker without a rule and a reason."""
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    comments = [token for token in tokens if token.type == tokenize.COMMENT]
    return [
        f"line {token.start[0]}: {token.string}"
        for token in comments
        if EXCEPTION.search(token.string) and not EXPLAINED.fullmatch(token.string)
    ]


def test_every_exception_from_a_check_says_why():
    found = [
        f"{path.relative_to(ROOT)}, {line}"
        for folder in ("src", "tests", "tools", "benchmarks")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line in unexplained(path.read_text())
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "comment",
    [
        "# noqa",
        "# noqa: F401",
        "# noqa: F401 because",
        "# noqa: F401  #",
        "# noqa  # because",
        "#noqa: F401  # because",
        "# type: ignore",
        "# type: ignore[misc]",
        "# type: ignore  # because",
        "# pragma: no cover",
    ],
)
def test_an_exception_without_a_reason_is_found(comment):
    assert len(unexplained(f"import os  {comment}\n")) == 1


def test_an_exception_with_a_reason_passes():
    assert unexplained("import os  # noqa: F401  # whether it is there\n") == []
    assert unexplained("x = f()  # type: ignore[misc, no-any-return]  # it has no types\n") == []
    assert unexplained('text = "# noqa"\n') == []
