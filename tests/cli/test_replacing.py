"""No command replaces a file that is there, unless it is told to."""

from __future__ import annotations

import pytest

import rldp
from rldp.cli import main
from rldp.errors import FileError

RECORDS = "s,u,age\n" + "a,x,1\nb,y,2\na,y,3\nb,x,4\n" * 40
OTHERS = "what was there"
COMMANDS = {
    "compare --plot": (["compare", "data.csv", "-s", "s", "-u", "u", "-p", "grr"], "--plot", "png"),
    "design": (["design", "data.csv", "-s", "s", "-u", "u", "-e", "1", "-p", "grr"], "-o", "json"),
    "release": (["release", "p.json", "data.csv"], "-o", "csv"),
    "release in Parquet": (["release", "p.json", "data.csv", "--shuffle"], "-o", "parquet"),
    "public": (["public", "p.json"], "-o", "json"),
    "sign": (["sign", "p.json", "--key", "team.key"], "-o", "sig"),
    "sign inside": (["sign", "p.json", "--key", "team.key", "--inside"], "-o", "json"),
    "estimate --csv": (["estimate", "p.json", "y.csv"], "--csv", "csv"),
    "estimate --plot": (["estimate", "p.json", "y.csv"], "--plot", "svg"),
    "plan --plot": (["plan", "p.json"], "--plot", "pdf"),
    "regress --csv": (["regress", "p.json", "y.csv", "-x", "age"], "--csv", "csv"),
}


@pytest.fixture
def folder(tmp_path, monkeypatch, capfd):
    """A folder with records, a protocol, its reports and a signing key."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text(RECORDS)
    columns = ["-s", "s", "-u", "u"]
    assert main(["design", "data.csv", *columns, "-e", "2", "-p", "grr", "-o", "p.json"]) == 0
    assert main(["release", "p.json", "data.csv", "--keep", "age", "-o", "y.csv"]) == 0
    assert main(["new-signing-key", "team.key"]) == 0
    capfd.readouterr()
    return tmp_path


@pytest.mark.parametrize("name", COMMANDS)
def test_a_file_that_is_there_is_replaced_only_by_force(name, folder, capfd):
    words, option, kind = COMMANDS[name]
    target = folder / f"target.{kind}"
    target.write_text(OTHERS)
    assert main([*words, option, target.name]) == 2
    told = capfd.readouterr()
    assert told.out == ""
    assert f"{target.name} already exists" in told.err
    assert "--force" in told.err
    assert target.read_text() == OTHERS
    assert main([*words, option, target.name, "--force"]) == 0
    assert target.read_bytes() != OTHERS.encode()


def test_a_second_draw_is_told_by_its_price(folder, capfd):
    before = (folder / "y.csv").read_bytes()
    assert main(["release", "p.json", "data.csv", "-o", "y.csv"]) == 2
    told = capfd.readouterr().err
    assert "draw once, and keep the reports" in told
    assert "up to twice the ε that holds whatever is true" in told
    assert "use --force if nobody has seen the first" in told
    assert (folder / "y.csv").read_bytes() == before


def test_a_second_draw_in_python_asks_for_replace(folder):
    p = rldp.load("p.json")
    before = (folder / "y.csv").read_bytes()
    with pytest.raises(FileError, match="use replace=True if nobody has seen the first"):
        rldp.release_file(p, "data.csv", "y.csv", shuffle=True)
    assert (folder / "y.csv").read_bytes() == before
    assert rldp.release_file(p, "data.csv", "y.csv", replace=True) == 160


def test_reports_that_appear_in_the_meantime_stay(folder):
    def progress(*_):
        (folder / "new.csv").write_text(OTHERS)

    with pytest.raises(FileError, match="already exists"):
        rldp.release_file(rldp.load("p.json"), "data.csv", "new.csv", progress=progress)
    assert (folder / "new.csv").read_text() == OTHERS


def test_a_folder_of_others_is_no_place_for_figures_or_the_demo(folder, capfd):
    for words, name in ((["demo"], "reports.csv"), (["reproduce", "opt", "--quick"], "any.txt")):
        place = folder / words[0]
        place.mkdir()
        (place / name).write_text(OTHERS)
        assert main([*words, "-o", str(place)]) == 2
        assert "--force" in capfd.readouterr().err
        assert [path.name for path in place.iterdir()] == [name]
        assert (place / name).read_text() == OTHERS


def test_exported_reports_and_links_stay(folder, capfd):
    pytest.importorskip("uvicorn", reason="the collect extra is not installed")
    from rldp.collect.opening import start_collection
    from rldp.collect.submissions import STORED, Submission

    p = rldp.load("p.json").public()
    p.save("p.public.json")
    collection = start_collection(folder / "p.public.json", "p.sqlite", {"origin": "https://x.y"})
    report = collection.codes.packed(p.report_labels.all[0])
    assert collection.store.add([Submission(bytes(16), report)]) == [STORED]
    collection.store.close()
    target = folder / "out.csv"
    for words, force in (
        (["export", "p.sqlite"], ["--force"]),
        (["invite", "p.sqlite", "-n", "2"], []),
    ):
        target.write_text(OTHERS)
        assert main([*words, "-o", "out.csv"]) == 2
        told = capfd.readouterr().err
        assert "out.csv already exists" in told
        assert ("--force" in told) == bool(force)
        assert target.read_text() == OTHERS
        if force:
            assert main([*words, "-o", "out.csv", *force]) == 0
            assert target.read_text() != OTHERS
