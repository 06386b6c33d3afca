"""Limits of files, which honest ones never meet: measured in memory and in work, not in time."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from pathlib import Path

import pytest

import rldp
from rldp.cli import app
from rldp.io import json_files
from rldp.io.json_files import DEEPEST, MOST_VALUES, read_document
from rldp.protocol.documents import document_hash, file_text
from rldp.protocol.signatures import write_new_signing_key
from tests.protocol.test_hostile_files import GOOD, changed, refusal, saved


@pytest.fixture
def path(tmp_path):
    return tmp_path / "some.rldp.json"


def peak_of(do) -> int:
    tracemalloc.start()
    try:
        do()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("cell", ["0,", "[],", '"",', '{"":0},'])
def test_too_many_values_are_counted_before_they_are_made(path, cell):
    """Four bytes become a hundred, so that a file within its limit would fill the memory."""
    path.write_text('{"format": [' + cell * MOST_VALUES + "0]}")
    size = path.stat().st_size
    assert size < json_files.MOST_BYTES
    message: list[str] = []
    assert peak_of(lambda: message.append(refusal(path))) < 4 * size + 2**26
    assert "values, more than a protocol can have" in message[0]


def test_punctuation_in_texts_does_not_count(path):
    text = r"\"[{,\\" * 2000
    path.write_text('{"labels": ["' + text + '", "' + "[" * 100 + '"]}')
    assert read_document(path)["labels"] == [json.loads(f'"{text}"'), "[" * 100]


@pytest.mark.parametrize("ends", ['"', '\\"' * 10_000, '"\\', "\\", '{"a": "\\'])
def test_texts_that_do_not_end_are_no_json(path, ends):
    path.write_text('{"a": [1, "' + ends)
    assert "not valid JSON" in refusal(path)


@pytest.mark.parametrize(("left", "right"), [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")])
def test_depth_is_counted_before_anything_is_made(path, left, right):
    each = len(left.replace('"a":', ""))
    for n, is_read in ((DEEPEST // each - 1, True), (DEEPEST // each, False), (10**6, False)):
        path.write_text('{"x": ' + left * n + "0" + right * n + "}")
        if is_read:
            assert read_document(path)
        else:
            assert "nested too deeply" in refusal(path)


def test_the_hash_is_taken_entry_by_entry():
    document = GOOD["choice"]
    once = json.dumps(document, sort_keys=True, separators=(",", ":"))
    assert document_hash(document) == hashlib.sha256(once.encode()).hexdigest()
    assert document_hash({}) == hashlib.sha256(b"{}").hexdigest()
    rows = {f"entry {i}": ["4611686018427387904"] * 50_000 for i in range(20)}
    text = sum(len(json.dumps(row)) for row in rows.values())
    assert peak_of(lambda: document_hash(rows)) < text / 4


def test_a_hash_that_does_not_fit_is_found_before_anything_is_made_of_the_content(path):
    rows = [["1"] * 1000] * 200
    text = file_text(changed("public", "channel.other", rows)).replace('"1"', '"2"')
    path.write_text(text)
    message: list[str] = []
    assert peak_of(lambda: message.append(refusal(path))) < 60 * len(text)
    assert "its hash does not fit" in message[0]


@pytest.mark.parametrize("command", ["verify", "verify --intervals", "sign --key team.key"])
def test_a_file_is_read_once(tmp_path, monkeypatch, command):
    """What was checked is what is told and signed, whoever changes the file meanwhile."""
    from typer.testing import CliRunner

    monkeypatch.chdir(tmp_path)
    path = saved(tmp_path, GOOD["choice"])
    write_new_signing_key("team.key")
    opened: list[Path] = []
    read = json_files.content_of
    monkeypatch.setattr(json_files, "content_of", lambda p: opened.append(p) or read(p))
    name, *options = command.split()
    if "--intervals" in options:
        pytest.importorskip("flint", reason="python-flint comes with rldp[intervals]")
    result = CliRunner().invoke(app, [name, str(path), *options])
    assert result.exit_code == 0, result.output
    assert opened == [Path(path)]


# --- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "best", "grün 3.14 (a, b)", "é" * 100, "\U0001f600"])
def test_names_of_printable_characters_are_read(tmp_path, name):
    assert rldp.load(saved(tmp_path, changed("public", "name", name))).name == name


@pytest.mark.parametrize(
    "name",
    [
        "x" * 101,
        "\x1b[2J",
        "a\nb",
        "a\rb",
        "tab\t",
        "\x7f",
        "\x9b",
        "\u202eevil",
        "\u2066",
        "\u200f",
        "zero\u200bwidth",
        "\ufeff",
        "\u2028",
        "\xa0",
        "\ue000",
    ],
)
@pytest.mark.parametrize("kind", ["public", "choice"])
def test_names_that_a_terminal_would_obey_are_refused(tmp_path, kind, name):
    message = refusal(saved(tmp_path, changed(kind, "name", name)))
    assert "printable characters" in message
    assert message.isprintable()
