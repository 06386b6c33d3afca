"""Messages about files name rows and columns, and quote no record."""

from __future__ import annotations

import gzip

import pytest

import rldp
from rldp import FileError
from rldp.cli import main

SECRETS = ("Alice", "diabetes", "555-1234")
HEAD = b"name,s,u\n"
ROW = b"Bob,no,a\n"
RAGGED = {
    "plain": HEAD + ROW * 20 + b"Alice,diabetes,555-1234,x\n",
    "short": HEAD + ROW * 20 + b"Alice,diabetes 555-1234\n",
    "quoted": HEAD + b'"Bo""b",no,a\n' * 20 + b'"Alice",diabetes,"555-1234",x\n',
    "first": HEAD + b"Alice,diabetes,555-1234,x\n" + ROW,
    "lines": HEAD + b'"B\nob",no,a\n' * 20 + b"Alice,diabetes,555-1234,x\n",
    "cp1252": HEAD + b"Ren\xe9,no,a\n" * 20 + b"Alice,diabetes,555-1234,x\n",
}
NO_UTF8 = {
    "both": HEAD + "Ré,no,a\n".encode() + b"Alice,diabetes,555-1234\xe9\n",
    "neither": HEAD + b"\xe9,no,a\nAlice,diabetes,555-1234\x81\n",
}
TABLE = rldp.Table([[1, 1], [1, 1]], {"s": ["no", "yes"]}, {"u": ["a", "b"]})
P = rldp.design(rldp.AllDistributions(TABLE), 1.0, "srr")


def told(work) -> str:
    with pytest.raises(FileError) as caught:
        work()
    return str(caught.value)


@pytest.mark.filterwarnings("ignore::rldp.errors.ReadingWarning")
@pytest.mark.parametrize("zipped", [False, True], ids=["", "gzip"])
@pytest.mark.parametrize("content", RAGGED.values(), ids=RAGGED.keys())
def test_ragged_records_are_named_by_number(content, zipped, tmp_path, capfd):
    path = tmp_path / f"in.csv{'.gz' * zipped}"
    path.write_bytes(gzip.compress(content) if zipped else content)
    for work in (
        lambda: rldp.read_table(path, "s", "u"),
        lambda: rldp.release_file(P, path, tmp_path / "out.csv"),
    ):
        text = told(work)
        assert "expected 3 fields as in the header, record" in text
        assert text.endswith(("after the header has 4.", "after the header has 2."))
        assert not any(secret in text for secret in SECRETS)
    assert main(["design", str(path), "-s", "s", "-u", "u", "-e", "1", "-p", "grr"]) == 2
    shown = capfd.readouterr()
    assert not any(secret in shown.err + shown.out for secret in SECRETS)


@pytest.mark.parametrize("content", NO_UTF8.values(), ids=NO_UTF8.keys())
def test_bytes_of_another_encoding_are_named_by_line(content, tmp_path):
    path = tmp_path / "in.csv"
    path.write_bytes(content)
    for encoding in (None, "utf-8", "ascii"):
        text = told(lambda encoding=encoding: rldp.read_table(path, "s", "u", encoding=encoding))
        assert "has the byte 0x" in text
        assert not any(secret in text for secret in SECRETS)
