"""The site: every Markdown page of the project, and references made from the code.

`make docs` builds it into build/site; nothing is fetched then, nor when someone reads it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import rldp
from rldp import errors
from rldp.cli import app as commands

if TYPE_CHECKING:
    import click
    from sphinx.application import Sphinx

project, author, copyright = "rldp", "The rldp developers", "The rldp developers"  # noqa: A001  # Sphinx asks for this name
release = rldp.__version__
html_title = f"rldp {release}"

# Pages link to each other, to README and to files beside docs/, as on a code host
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "docs/index"
include_patterns = [
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"),
    *("docs/**", "clients/*/README.md", "benchmarks/RESULTS.md"),
]
exclude_patterns = ["docs/figures/work"]
myst_heading_anchors = 4

html_theme = "furo"
html_extra_path = ["site"]  # an index.html that leads to the front page
html_static_path: list[str] = []
html_show_sphinx = False
html_copy_source = False
default_role = "literal"  # docstrings write `code` as Markdown does
napoleon_numpy_docstring = False
napoleon_use_ivar = True  # attributes of dataclasses are members too, and would stand twice
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_default_options = {"members": True, "undoc-members": False}

_RESULTS = (  # what functions return, which people read and do not make
    *("Audit", "ChangedRecord", "Estimate", "GoalError", "Identifiability", "MergingPrice", "Plan"),
    *("PromisePrice", "Regression", "Repeated", "Risk", "RobustUtility", "Stratum"),
    *("Channel", "ChoiceChannel", "DenseChannel", "IndependentChannel", "SetChannel"),
    "UnaryChannel",
)
_PYTHON, _COMMANDS = "docs/reference-python", "docs/reference-commands"


def python_reference() -> Iterator[str]:
    """Every public name, by what it is."""
    names = {*rldp.__all__, *_RESULTS, *(name for name in vars(errors) if _is_public(name))}
    named = {name: getattr(rldp, name) for name in sorted(names, key=str.lower)}
    groups = {
        "Functions": [n for n, x in named.items() if inspect.isroutine(x)],
        "Classes": [n for n, x in named.items() if inspect.isclass(x) and not _is_error(x)],
        "Errors and warnings": [n for n, x in named.items() if inspect.isclass(x) and _is_error(x)],
        "Modules": [n for n, x in named.items() if inspect.ismodule(x)],
    }
    directive = {"Functions": "autofunction", "Modules": "automodule"}
    for title, names in groups.items():
        yield f"\n## {title}\n"
        for name in names:
            if title == "Modules":
                yield f"\n### `rldp.{name}`\n"
            kind = directive.get(title, "autoclass")
            yield f"```{{eval-rst}}\n.. {kind}:: rldp.{name}\n```\n"


def _is_public(name: str) -> bool:
    """Whether a name of the module of errors is an error or warning of rldp."""
    return name.endswith(("Error", "Warning")) and hasattr(rldp, name)


def _is_error(x: type) -> bool:
    return issubclass(x, BaseException)


def command_reference() -> Iterator[str]:
    """Every command with its options, from its own help."""
    group: Any = typer.main.get_command(commands)
    for name, command in sorted(group.commands.items()):
        if command.hidden:
            continue
        yield f"\n## rldp {name}\n\n{_plain(command.help or '')}\n"
        rows = list(_options(command))
        if rows:
            yield "| option | meaning |\n|---|---|"
            yield from rows


def _options(command: click.Command) -> Iterator[str]:
    for one in command.params:
        words = _plain(getattr(one, "help", "") or "").replace("|", "\\|").replace("\n", " ")
        flags = ", ".join(f"`{flag}`" for flag in (*one.opts, *one.secondary_opts))
        if one.param_type_name == "argument":
            flags = f"`{(one.metavar or one.name or '').upper()}`"
        yield f"| {flags} | {words} |"


def _plain(text: str) -> str:
    """Help without marks for a terminal; examples as code."""
    text = inspect.cleandoc(text)
    example = re.compile(r"\[dim\]Example:\s+(.*?)\[/dim\]", flags=re.DOTALL)
    text = example.sub(r"```console\n$ \1\n```", text)
    return re.sub(r"\[/?(dim|bold|italic)\]", "", text)


def _complete(_: Sphinx, page: str, text: list[str]) -> None:
    made = {_PYTHON: python_reference, _COMMANDS: command_reference}.get(page)
    if made is not None:
        text[0] += "\n".join(made())


def _without_substitutions(*event: Any) -> None:
    """|x| is an absolute value in docstrings, and no name of a text to put in."""
    lines: list[str] = event[-1]
    lines[:] = [line.replace("|", "\\|") for line in lines]


def _for_everyone(app: Sphinx, failed: Exception | None) -> None:
    """What screen readers and keyboards need and the theme leaves out."""
    if failed is not None or app.builder.format != "html":
        return
    for path in Path(app.outdir).rglob("*.html"):
        page = path.read_text()
        page = page.replace(' role="heading">', ' role="heading" aria-level="2">')
        page = page.replace('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper')
        path.write_text(page.replace("<pre>", '<pre tabindex="0">'))  # long lines are scrolled


def setup(app: Sphinx) -> None:
    """Reference pages are completed while they are read."""
    app.connect("build-finished", _for_everyone)
    app.connect("source-read", _complete)
    app.connect("autodoc-process-docstring", _without_substitutions)
