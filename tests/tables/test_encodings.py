"""Files as Excel saves them: cp1252, UTF-16, decimal commas; the same labels from all of them."""

from __future__ import annotations

import gzip
import io
import warnings
from pathlib import Path

import numpy as np
import pytest

import rldp
from rldp import Table
from rldp.cli import main
from rldp.errors import DataError, FileError, ParameterError, ReadingWarning
from rldp.tables import csv as csv_files
from rldp.tables.encodings import Utf8Stream

TEXT = "city,sex\r\n" + "München,f\r\nParis,m\r\nOrléans,f\r\nParis,m\r\n" * 25
SAVED = {  # what Excel calls it → bytes, and what is said of it
    "CSV UTF-8": (TEXT.encode("utf-8-sig"), None),
    "plain UTF-8": (TEXT.encode(), None),
    "CSV": (TEXT.encode("cp1252"), "line 2 has the byte 0xFC and is not UTF-8; cp1252"),
    "Unicode text": (TEXT.replace(",", "\t").encode("utf-16"), "was read as UTF-16"),
    "UTF-16, highest byte first": (b"\xfe\xff" + TEXT.encode("utf-16-be"), "was read as UTF-16"),
    "UTF-32": (TEXT.encode("utf-32"), "was read as UTF-32"),
    "CSV with semicolons": (TEXT.replace(",", ";").encode("cp1252"), "cp1252"),
}
EXPECTED = Table(
    [[25, 0], [25, 0], [0, 50]],
    sensitive={"city": ["München", "Orléans", "Paris"]},
    useful={"sex": ["f", "m"]},
)


@pytest.fixture
def protocol():
    return rldp.design(rldp.ChiSquareSet(EXPECTED), 1.0, "grr")


def told(action):
    """What an action gives, and what it says."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = action()
    assert all(entry.category is ReadingWarning for entry in caught)
    return result, [str(entry.message) for entry in caught]


def is_said(notes, expected, path):
    assert len(notes) == (expected is not None)
    if notes:
        assert str(path) in notes[0]
        assert expected in notes[0]


@pytest.mark.parametrize("kind", SAVED)
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
@pytest.mark.parametrize("block", [64, 67, 1 << 22])
def test_the_same_labels_come_from_every_encoding(kind, name, block, tmp_path, monkeypatch):
    content, expected = SAVED[kind]
    monkeypatch.setattr(csv_files, "BLOCK", block)
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    table, notes = told(lambda: rldp.read_table(path, "city", "sex"))
    assert table.schema.s_labels == ("München", "Orléans", "Paris")
    assert table == Table.from_schema(EXPECTED.counts, EXPECTED.schema)
    is_said(notes, expected, path)


@pytest.mark.parametrize("kind", SAVED)
def test_release_and_estimate_read_every_encoding(kind, protocol, tmp_path):
    content, expected = SAVED[kind]
    path, plain, reports = tmp_path / "in.csv", tmp_path / "plain.csv", tmp_path / "y.csv"
    path.write_bytes(content)
    plain.write_text(TEXT, encoding="utf-8")
    p = protocol
    n, notes = told(lambda: rldp.release_file(p, path, reports, rng=rldp.Simulation(1)))
    assert n == 100
    is_said(notes, expected, path)
    again = tmp_path / "again.csv"
    rldp.release_file(p, plain, again, rng=rldp.Simulation(1))
    assert reports.read_bytes() == again.read_bytes()

    truth = p.estimate(reports)
    saved = reports.read_text("utf-8")
    encoding = {"CSV": "cp1252", "Unicode text": "utf-16"}.get(kind)
    if encoding is not None:
        reports.write_bytes(saved.encode(encoding))
        found, notes = told(lambda: p.estimate(reports))
        np.testing.assert_array_equal(found.cells.estimate, truth.cells.estimate)
        assert len(notes) == 1


def test_cp1252_begins_where_the_first_such_byte_is(tmp_path, monkeypatch):
    """All before was ASCII, the same in both; blocks end anywhere."""
    monkeypatch.setattr(csv_files, "BLOCK", 64)
    path = tmp_path / "a.csv"
    path.write_bytes(b"s,u\n" + b"a,x\n" * 1000 + "é,x\n".encode("cp1252") * 1000)
    with pytest.warns(ReadingWarning, match="line 1002 has the byte 0xE9"):
        table = rldp.read_table(path, "s")
    assert table.schema.s_labels == ("a", "é")
    assert table.counts.tolist() == [[1000], [1000]]


@pytest.mark.filterwarnings("ignore::rldp.ReadingWarning")
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("é,x\n".encode() + b"\xe9,x\n", r"UTF-8 or cp1252, line 3 has the byte 0xE9"),
        (b"\xe9,x\n" + "é,x\n".encode(), r"UTF-8 or cp1252, line 3 has the byte 0xC3"),
        (b"\xe9,x\n\x81,x\n", r"line 3 has the byte 0x81"),
        (b"a,x\n\x9d,x\n", r"line 3 has the byte 0x9D"),
        (b"\xe9,x\n" * 40 + "é".encode(), r"line 42 has the byte 0xC3"),
        (b"\xe9,x\n" * 40 + "\u20ac".encode(), r"line 42 has the byte 0xE2"),
    ],
)
@pytest.mark.parametrize("block", [64, 65, 66, 67, 1 << 22])
def test_a_file_that_is_neither_is_refused_with_the_line(
    content, message, block, tmp_path, monkeypatch
):
    monkeypatch.setattr(csv_files, "BLOCK", block)
    path = tmp_path / "a.csv"
    path.write_bytes(b"s,u\n" + content)
    with pytest.raises(FileError, match=message) as caught:
        rldp.read_table(path, "s")
    assert "encoding='cp1252'" in str(caught.value)


def test_an_encoding_can_be_named(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("s,u\nŁódź,x\n".encode("cp1250"))
    assert rldp.read_table(path, "s", encoding="cp1250").schema.s_labels == ("Łódź",)
    path.write_bytes("s,u\nÉ»,x\n".encode("cp1252"))  # could be UTF-8 as well
    assert rldp.read_table(path, "s", encoding="cp1252").schema.s_labels == ("É»",)
    path.write_bytes("s,u\né,x\n".encode("utf-16-le"))  # without a mark
    with pytest.raises(FileError, match=r"zero bytes.*encoding='utf-16-le'"):
        rldp.read_table(path, "s")
    assert rldp.read_table(path, "s", encoding="utf-16-le").schema.s_labels == ("é",)
    path.write_bytes(b"s,u\n\xe9,x\n")
    with pytest.raises(FileError, match="expected utf-8, line 2 has the byte 0xE9"):
        rldp.read_table(path, "s", encoding="utf8")
    for wrong in ("latin-0", "rot13", 3, b"utf-8", "\0"):
        with pytest.raises(ParameterError, match="Expected an encoding of text"):
            rldp.read_table(path, "s", encoding=wrong)


@pytest.mark.filterwarnings("ignore::rldp.ReadingWarning")
def test_half_a_character_of_utf16_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("s,u\na,x\n".encode("utf-16") + b"a")
    with pytest.raises(FileError, match="utf-16-le, as its first bytes"):
        rldp.read_table(path, "s")


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-32"])
def test_bytes_and_lines_do_not_depend_on_how_they_are_asked_for(size, encoding):
    text = "aé\n" + "x" * 10 + "\nß\n\nend ü"
    stream = Utf8Stream(io.BytesIO(text.encode(encoding)), "a", None)
    first = stream.readline(100)
    rest = b"".join(iter(lambda: stream.read(size), b""))
    assert first == "aé\n".encode()
    assert (first + rest).decode() == text


def test_memory_does_not_grow_with_the_file():
    """A stream holds one block, whatever the encoding."""

    class Endless(io.RawIOBase):
        def read(self, size=-1):
            assert 0 <= size <= 1 << 16
            return b"\xe9\n" * (size // 2)

        readline = read

    stream = Utf8Stream(Endless(), "a")
    for _ in range(200):
        assert len(stream.read(1 << 14)) == 1 << 14
        assert len(stream.ready) < 1 << 16


def test_decimal_commas_are_points(tmp_path):
    german, english = tmp_path / "de.csv", tmp_path / "en.csv"
    german.write_text("hours;x\n1,5;a,b\n2;c\n0,25;a,b\n1,5;c\n")
    english.write_text('hours,x\n1.5,"a,b"\n2,c\n0.25,"a,b"\n1.5,c\n')
    table, notes = told(lambda: rldp.read_table(german, "hours", "x"))
    assert table == rldp.read_table(english, "hours", "x")
    assert notes == [f"{german}: decimal commas of column 'hours' were read as points."]

    p = rldp.design(rldp.ChiSquareSet(table), 1.0, "grr")
    reports = [tmp_path / "y1.csv", tmp_path / "y2.csv"]
    _, notes = told(lambda: rldp.release_file(p, german, reports[0], rng=rldp.Simulation(3)))
    assert notes == [f"{german}: decimal commas of column 'hours' were read as points."]
    rldp.release_file(p, english, reports[1], rng=rldp.Simulation(3))
    assert reports[0].read_bytes() == reports[1].read_bytes()


def test_commas_in_what_are_not_decimals_stay(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("s;u\n1,5;x\nnone;x\n")
    assert rldp.read_table(path, "s").schema.s_labels == ("1,5", "none")
    path.write_text("s;u\n1,5;x\n1.5;x\n")
    assert set(rldp.read_table(path, "s").schema.s_labels) == {"1,5", "1.5"}
    path.write_text('s,u\n"1,5",x\n')  # commas separate values here
    assert rldp.read_table(path, "s").schema.s_labels == ("1,5",)
    path.write_text("s;u\n1,5;x\n")
    assert rldp.read_table(path, "s", levels={"s": ["1,5"]}).schema.s_labels == ("1,5",)


def test_weights_with_decimal_commas(protocol, tmp_path):
    path = tmp_path / "y.csv"
    rows = ["Paris | f", "Paris | m"] * 20
    path.write_text("y,w\n" + "".join(f"{y},{0.5 + i / 4}\n" for i, y in enumerate(rows)))
    expected = protocol.estimate(path, weights="w")
    path.write_text(path.read_text().replace(",", ";").replace(".", ","))
    with pytest.warns(ReadingWarning, match="decimal commas of the weights"):
        found = protocol.estimate(path, weights="w")
    np.testing.assert_array_equal(found.cells.estimate, expected.cells.estimate)


def test_the_command_line_says_it_in_one_line(tmp_path, capfd):
    path, protocol = tmp_path / "in.csv", tmp_path / "p.json"
    path.write_bytes(SAVED["CSV"][0])
    words = ["design", str(path), "-s", "city", "-u", "sex", "-e", "1", "-p", "grr"]
    assert main([*words, "-o", str(protocol)]) == 0
    captured = capfd.readouterr()
    assert captured.err == (
        f"warning: {path}: line 2 has the byte 0xFC and is not UTF-8; cp1252 (Windows) was "
        f"assumed.\n"
    )
    assert main(["release", str(protocol), str(path), "-o", str(tmp_path / "y.csv")]) == 0
    assert capfd.readouterr().err.startswith("warning: ")
    assert main(["release", str(protocol), str(path), "--encoding", "cp1252"]) == 0
    assert not capfd.readouterr().err
    path.write_bytes("s,u\né,x\n".encode() + b"\xe9,x\n")
    assert main(["compare", str(path), "-s", "s"]) == 2
    error = capfd.readouterr().err
    assert error.count("\n") == 1
    assert "line 3 has the byte 0xE9" in error
    assert "use --encoding cp1252 if that is" in error


def test_a_wrong_guess_is_said_before_the_label_is_refused(protocol, tmp_path):
    path = tmp_path / "in.csv"
    path.write_bytes("city,sex\nŁódź,f\n".encode("cp1250"))
    with (
        pytest.warns(ReadingWarning, match="cp1252"),
        pytest.raises(DataError, match="Unknown label"),
    ):
        rldp.release_file(protocol, path, tmp_path / "y.csv")
    assert not Path(tmp_path / "y.csv").exists()
