"""What the studio exports works as given, in a fresh folder, with the protocol of the page."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the studio extra is not installed")

import rldp
from rldp.cli import main
from rldp.studio import code
from rldp.studio.choices import Choice
from tests.support.studio_client import ADULT, RIGHT, asked, designed, uploaded

ODD = '-it\'s "my" $HOME Größe; `x`.csv'


def survey(columns):
    """200 people as CSV; a few have no U."""
    rng = np.random.default_rng(1)
    rows = [f"{'äb'[s]},{['x y', 'ß', 'z'][u]}" for s, u in rng.integers(0, (2, 3), (200, 2))]
    rows[:5] = ["ä,"] * 5
    return "\n".join([columns, *rows, ""]).encode()


def case(client, name):
    """A choice, and the file that the user has."""
    if name == "bundled":
        return ADULT | {"protocol": "polyopt"}, None, 32_561
    columns = {"dropped": "Größe (cm),Geschlecht", "kept": "größe,--useful"}[name]
    file = {"dropped": "Umfrage Köln.csv", "kept": ODD}[name]
    content = survey(columns)
    s, u = columns.split(",")
    choice = {
        "data": uploaded(client, file, content).json()["id"],
        "sensitive": [s],
        "useful": [u],
        "missing": {"dropped": "drop", "kept": "keep"}[name],
        "protocol": {"dropped": "polyopt", "kept": "grr-cr"}[name],
        "epsilon": 0.1234567,
        "alpha": 0.0123456,
    }
    return choice, (file, content), {"dropped": 195, "kept": 200}[name]


def saved(client, what, choice, folder):
    response = asked(client, f"download/{what}", **choice)
    assert response.status_code == 200
    name = response.headers["content-disposition"].split('filename="')[1].rstrip('"')
    (folder / name).write_bytes(response.content)
    return folder / name


def run(command, folder):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    found = subprocess.run(
        command, cwd=folder, env=os.environ | {"PATH": path}, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bundled", "dropped", "kept"])
def test_commands_and_script_run_as_given_with_the_protocol_of_the_page(name, client, tmp_path):
    choice, file, n = case(client, name)
    designed(client, **choice)
    told = asked(client, "code", **choice).json()
    p = rldp.load(saved(client, "protocol", choice, tmp_path))
    assert p.fingerprint == told["fingerprint"]
    assert asked(client, "protocol", **choice).json()["fingerprint"] == p.fingerprint
    if told["needs_records"]:
        assert saved(client, "records", choice, tmp_path).name == told["records_file"]
    else:
        (tmp_path / file[0]).write_bytes(file[1])
    script = saved(client, "script", choice, tmp_path)
    assert script.read_text() == told["python"]
    out = run(["bash", "-euo", "pipefail", "-c", told["command"]], tmp_path)
    assert "proved: ε = " in out
    assert p.estimate(tmp_path / "reports.csv").n == n
    (tmp_path / "reports.csv").unlink()
    assert "proved against" in run([sys.executable, script.name], tmp_path)
    assert p.estimate(tmp_path / "reports.csv").n == n


@pytest.mark.slow
def test_the_script_notices_another_protocol(client, tmp_path):
    choice = ADULT | {"protocol": "grr"}
    designed(client, **choice)
    script = saved(client, "script", choice, tmp_path)
    p = rldp.load(saved(client, "protocol", choice, tmp_path))
    other = rldp.design(rldp.AllDistributions(p.table), p.epsilon, "grr")
    other.save(tmp_path / "race.rldp.json")
    with pytest.raises(AssertionError, match="another protocol"):
        run([sys.executable, script.name], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bundled", "kept"])
def test_designing_again_as_the_page_shows_it_finds_the_same(
    name, client, tmp_path, monkeypatch, capsys
):
    choice, file, _ = case(client, name)
    choice |= {"protocol": "ir"}
    if file:
        (tmp_path / file[0]).write_bytes(file[1])
    designed(client, **choice)
    shown = asked(client, "protocol", **choice).json()
    monkeypatch.chdir(tmp_path)
    known = {}
    exec(compile(shown["code"]["python"], "snippet", "exec"), known)
    assert known["p"].fingerprint == shown["fingerprint"]
    assert main(shlex.split(shown["code"]["command"])[1:]) == 0
    written = rldp.load(asked(client, "code", **choice).json()["protocol_file"])
    assert written.fingerprint == shown["fingerprint"]
    for step in ("table", "curves"):
        words = shlex.split(asked(client, step, **choice).json()["code"]["command"])
        assert main([*words[1:], "--protocol", "ir"]) == 0  # not to search for long
    told = " ".join(capsys.readouterr().out.split())
    assert "the information that is kept of H(X) = " in told
    assert "of estimates of the cells from " in told


def test_a_search_says_that_it_may_find_another_protocol():
    again = "may find another protocol"
    for protocol, is_said in (("best", True), ("polyopt", True), ("ir", False)):
        choice = Choice("adult", ("race",), ("sex",), protocol=protocol)
        for text in code.snippets("protocol", choice, "UCI Adult").values():
            assert (again in text) == is_said
    for text in (code.script(choice, "", "f"), code.commands(choice, "")):
        assert "design" not in text


def test_without_u_the_commands_say_what_they_need():
    choice = Choice("0123", ("s",), (), protocol="ir")
    for step in ("data", "tradeoff", "protocol"):
        lines = code.snippets(step, choice, "a.csv")["command"].splitlines()
        assert lines[0].startswith("# ")
        assert "S columns alone" in lines[0]


@pytest.mark.parametrize(
    ("names", "stem"),
    [
        (("race",), "race"),
        (("Größe (cm)", "Straße"), "Grosse-cm-Strasse"),
        (("../../etc/passwd",), "etc-passwd"),
        (('a"b\r\nX: y',), "a-b-X-y"),
        (("年齢",), "protocol"),
        (("--",), "protocol"),
        (("x" * 99,), "x" * 60),
    ],
)
def test_files_have_names_that_every_system_takes(names, stem):
    assert Choice("adult", names, ()).stem == stem


def test_records_are_saved_only_where_the_user_has_no_such_file(client):
    choice, _, _ = case(client, "kept")
    response = asked(client, "download/records", **choice)
    assert (response.status_code, response.json()["field"]) == (404, "download")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("x-studio-token", "wrong", 403),
        ("origin", "https://evil.example", 403),
        ("sec-fetch-site", "cross-site", 403),
        ("host", "evil.example", 421),
        ("content-type", "text/plain", 415),
    ],
)
@pytest.mark.parametrize("what", ["records", "protocol", "script", "report"])
def test_a_stranger_saves_nothing(what, header, value, status, client):
    response = client.post(f"/api/download/{what}", content="{}", headers=RIGHT | {header: value})
    assert response.status_code == status
