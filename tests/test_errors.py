"""Errors carry what they speak of, and every interface says it in its own words."""

import ast
import copy
import pickle
import re
from pathlib import Path

import pytest
import typer.main

import rldp
from rldp.cli import app, main, messages
from rldp.errors import (
    CertificateError,
    DataError,
    FileError,
    MissingExtraError,
    ParameterError,
    Remedy,
    TooLargeError,
)
from rldp.studio import answers
from rldp.uncertainty.registry import SETS

SOURCE = Path(rldp.__file__).parent
KINDS = [
    DataError,
    ParameterError,
    CertificateError,
    FileError,
    TooLargeError,
    MissingExtraError,
]
# of functions that no command calls, or not with a value that a user typed
PYTHON_ONLY = {
    "also",
    "cells_limit",
    "columns",
    "condition",
    "counts",
    "dropped",
    "effect",
    "forged",
    "goal",
    "kind",
    "levels",
    "limits",
    "n",
    "p",
    "path",
    "prior_records",
    "rows",
    "shares",
    "simulations",
    "table",
    "total",
    "waves",
    "distribution_su",
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_carries_what_it_speaks_of(kind):
    remedies = (Remedy("missing", "drop", "to leave them out"), Remedy("allow_few", True))
    error = kind("Bad {x}.", argument="missing", column="a", label="b", remedies=remedies)
    text = "Bad {x}; use missing='drop' to leave them out or allow_few=True."
    for again in (error, copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(again) is kind
        assert str(again) == text
        assert (again.argument, again.column, again.label) == ("missing", "a", "b")
        assert again.remedies == remedies
    inner = error.within("In row 3")
    assert str(inner) == f"In row 3: {text}"
    assert (type(inner), inner.column, inner.remedies) == (kind, "a", remedies)
    assert str(error) == text
    assert kind("Plain.").argument is None


def test_the_command_line_spells_remedies_as_options():
    error = DataError(
        "Too many.",
        argument="levels_limit",
        remedies=[Remedy("useful", ["a", "b c"]), Remedy("allow_few", True, "to go on")],
    )
    expected = "--levels-limit: Too many; use --useful a 'b c' or --allow-few to go on."
    assert messages.in_options(error) == expected


@pytest.mark.slow
def test_every_argument_that_an_error_names_is_an_option():
    commands = typer.main.get_command(app).commands.values()
    known = {name for command in commands for option in command.params for name in option.opts}
    known |= {option.metavar for command in commands for option in command.params}
    known |= {f"--{each.name}" for kind in SETS.values() for each in kind.parameters}
    named = _named_arguments() - PYTHON_ONLY
    assert len(named) > 20
    assert {name for name in named if messages.option(name) not in known} == set()


def _named_arguments() -> set[str]:
    """Literals that are passed as `argument=`, or as the argument of a Remedy."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "id", "")
            values = [word.value for word in node.keywords if word.arg == "argument"]
            values += node.args[:1] if name == "Remedy" else []
            values += node.args[1:2] if name in ("checked_integer", "checked_share") else []
            for value in values:
                parts = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
                found |= {part.value for part in parts if isinstance(part, ast.Constant)}
    return {name for name in found if isinstance(name, str)}


def test_the_page_says_what_its_fields_say():
    page = "".join(path.read_text() for path in (SOURCE / "studio" / "page").glob("*.js"))
    for words in answers._VALUES.values():
        assert words.strip("“”") in page
    for field in answers._FIELDS:
        assert re.search(rf"[\"'`]{field}[\"'`]", page)


def test_the_page_leaves_out_what_it_has_no_field_for():
    error = FileError("No.", argument="encoding", remedies=[Remedy("encoding", "cp1252")])
    told = answers.FieldError.beside("data", error)
    assert (told.field, str(told), told.status) == ("data", "No.", 422)
    error = DataError("Gaps.", argument="missing", remedies=[Remedy("missing", "drop", "now")])
    told = answers.FieldError.beside("sensitive", error)
    assert (told.field, str(told)) == ("missing", "Gaps; use “drop these records” now.")
    assert answers.FieldError.beside("data", told) is told


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ["compare", "{data}", "-s", "nothing"],
        ["compare", "{data}", "-s", "s", "-e", "-1"],
        ["compare", "{data}", "-s", "s", "--alpha", "2"],
        ["compare", "{data}", "-s", "s", "--set", "renyi", "--order", "0.5"],
        ["compare", "{data}", "-s", "s", "-p", "magic"],
        ["compare", "{data}", "-s", "s", "--levels-limit", "0"],
        ["compare", "{data}", "-s", "s", "--time-limit", "0"],
        ["compare", "{gaps}", "-s", "s"],
        ["compare", "{data}", "-s", "s", "--encoding", "klingon"],
        ["design", "{data}", "-s", "s", "-e", "1", "-p", "ir", "--pin", "epsilon_2=9"],
        ["design", "{data}", "-s", "s", "-e", "1", "-p", "polyopt", "--pairs", "some"],
        ["design", "{data}", "-s", "s", "-e", "1", "-p", "grr", "--hidden"],
        ["design", "{data}", "-s", "s", "-e", "1", "--hidden", "--goal", "s"],
        ["release", "{protocol}", "{data}", "--keep", "s"],
        ["release", "{protocol}", "{data}", "--column", "s"],
        ["release", "{protocol}", "{data}", "--record-id", "s"],
        ["release", "{protocol}", "{data}", "--per", "record"],
        ["release", "{protocol}", "{gaps}"],
        ["release", "{protocol}", "{data}", "--simulate", "-1"],
        ["release", "{protocol}", "{data}", "--keep-file-names"],
        ["estimate", "{protocol}", "{reports}"],
        ["estimate", "{protocol}", "{reports}", "--level", "2"],
        ["estimate", "{protocol}", "{reports}", "--strata", "y"],
        ["estimate", "{protocol}", "{reports}", "--population", "9", "--method", "likelihood"],
        ["plan", "{protocol}", "--margin", "3"],
        ["plan", "{protocol}", "--cell", "s=z"],
        ["verify", "{protocol}", "--signed-by", "me"],
    ],
)
def test_the_command_line_never_quotes_python(words, files, capfd):
    assert main([word.format(**files) for word in words]) == 2
    error = re.sub(r"\A--useful u: the only other column of .*\n", "", capfd.readouterr().err)
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    for path in files.values():
        error = error.replace(path, "FILE")
    error = error.replace("epsilon_2", "")  # the name of a parameter, which --pin takes
    assert not re.search(r"\w=|\b[a-z]+_[a-z]+|\bTrue\b|\bNone\b|\w\(", error), error


@pytest.fixture
def files(tmp_path):
    data, gaps, reports = (tmp_path / f"{name}.csv" for name in ("data", "gaps", "reports"))
    data.write_text("s,u\n" + "a,x\na,y\nb,x\nb,y\n" * 5)
    gaps.write_text("s,u\na,x\n,y\nb,x\n")
    reports.write_text("y\n")
    protocol = tmp_path / "p.rldp.json"
    p = rldp.design(rldp.ChiSquareSet(rldp.read_table(data, "s")), 1.0, "grr")
    p.save(protocol)
    labels = p.report_labels.all
    reports.write_text("y\n" + "".join(f"{label}\n" for label in labels * 2))
    paths = {"data": data, "gaps": gaps, "reports": reports, "protocol": protocol}
    return {name: str(path) for name, path in paths.items()}
