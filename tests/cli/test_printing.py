"""Labels and names of others cannot move the cursor, hide, or repaint what a command says."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rldp
from rldp.cli import main
from rldp.cli.printing import visible

HOSTILE = {
    "escape": "\x1b[2J\x1b[H",
    "command": "\x1b]0;title\x07",
    "c1": "\x9b31m",
    "return": "\rproved: ε = 0.1",
    "line": "\nproved: ε = 0.1",
    "vertical": "\x0b\x0c\x85\u2028\u2029",
    "bidi": "\u202e\u2066\u200f\u061c",
    "zero": "\u200b\u200d\ufeff\u00ad\u180e",
    "tag": "\U000e0041",
    "blank": "\u3164\u034f\ufe0f",
    "delete": "\x7f\b\x00",
    "markup": "[bold]x[/bold] :warning: [/]",
}
NAMES = [f"{name} {text}." for name, text in HOSTILE.items()]
UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def raw(text: str) -> set[str]:
    blank = set("\u3164\u034f\ufe0f")
    return {c for c in text if (unicodedata.category(c) in UNSEEN and c != "\n") or c in blank}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A protocol whose columns and labels are hostile, its public version, records and reports."""
    folder = tmp_path_factory.mktemp("hostile")
    half = len(NAMES) // 2
    counts = np.arange(1, 2 * half + 1).reshape(2, half) * 10
    table = rldp.Table(
        counts,
        sensitive={f"S {HOSTILE['bidi']}{HOSTILE['escape']}": NAMES[:2]},
        useful={f"U {HOSTILE['line']}{HOSTILE['markup']}": NAMES[2 : 2 + half]},
    )
    p = rldp.design(rldp.ChiSquareSet(table, alpha=0.05), epsilon=1.0, protocol="grr")
    p.save(folder / "p.json")
    p.public().save(folder / "public.json")
    codes = np.argwhere(counts >= 0).repeat(300, axis=0)
    names = [column.name for column in (*p.schema.sensitive, *p.schema.useful)]
    rows = [(p.schema.s_labels[s], p.schema.u_labels[u]) for s, u in codes]
    records = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    pq.write_table(records, folder / "records.parquet")
    rldp.release_file(p, folder / "records.parquet", folder / "reports.parquet")
    reports = pq.read_table(folder / "reports.parquet")
    groups = pa.array(np.resize(NAMES[:2], reports.num_rows))
    pq.write_table(reports.append_column(names[1], groups), folder / "beside.parquet")
    return folder


COMMANDS = {
    "audit": "audit P",
    "audit json": "audit P --json",
    "audit reports": "audit P --reports 3",
    "verify": "verify P",
    "verify public": "verify PUBLIC",
    "verify json": "verify P --json",
    "public": "public P -o AGAIN --force",
    "plan": "plan P --margin 0.05",
    "plan json": "plan P --margin 0.05 --json",
    "plan unknown": "plan P --margin 0.05 --cell CELL",
    "estimate": "estimate P REPORTS",
    "estimate json": "estimate P REPORTS --json",
    "estimate records": "estimate P RECORDS",
    "release": "release P RECORDS -o OUT --force",
    "regress": "regress P BESIDE --outcome s -x U",
    "compare": "compare RECORDS -s S -u U --epsilon 1 --protocol grr",
    "compare unknown": "compare RECORDS -s ESCAPE",
    "design": "design RECORDS -s S -u U --epsilon 1 --protocol grr",
    "no file": "audit ESCAPE",
    "no command": "ESCAPE",
}


REFUSED = {"plan unknown", "estimate records", "compare unknown", "no file", "no command"}


@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_of_others_reaches_the_terminal_raw(name, hostile, capsys) -> None:
    schema = rldp.load(hostile / "p.json").schema
    words = {
        "P": f"{hostile}/p.json",
        "PUBLIC": f"{hostile}/public.json",
        "AGAIN": f"{hostile}/again.json",
        "RECORDS": f"{hostile}/records.parquet",
        "REPORTS": f"{hostile}/reports.parquet",
        "BESIDE": f"{hostile}/beside.parquet",
        "OUT": f"{hostile}/out.csv",
        "S": schema.sensitive[0].name,
        "U": schema.useful[0].name,
        "CELL": f"{schema.sensitive[0].name}={HOSTILE['escape']}",
        "ESCAPE": HOSTILE["escape"] + HOSTILE["bidi"],
    }
    code = main([words.get(word, word) for word in COMMANDS[name].split()])
    out, err = capsys.readouterr()
    assert out + err
    assert code == (2 if name in REFUSED else 1 if name == "verify public" else 0), err
    assert not raw(out + err)
    assert not any(line.startswith("proved: ε = 0.1") for line in (out + err).split("\n"))
    if "json" in name:
        json.loads(out)


def test_warnings_are_shown_as_escapes_too(tmp_path, capsys) -> None:
    path = tmp_path / "x\x1b[2J.csv"
    path.write_bytes("s,u\né,1\nb,2\n".encode("cp1252"))
    main(["compare", str(path), "-s", "s", "-u", "u", "--epsilon", "1", "--protocol", "grr"])
    out, err = capsys.readouterr()
    assert "cp1252" in err
    assert "\\x1b" in err
    assert not raw(out + err)


@pytest.mark.parametrize("character", ["é", "e\u0301", "ß", "中", "😀", "א", "\u00a0", " "])
def test_text_that_can_be_seen_stays(character) -> None:
    assert visible(f"a{character}b") == f"a{character}b"


def test_json_stays_what_it_says(capsys) -> None:
    from rldp.cli.printing import as_json

    value = {name: f"é 中 {text}" for name, text in HOSTILE.items()}
    as_json(value)
    out = capsys.readouterr().out
    assert json.loads(out) == value
    assert not raw(out)
    assert "é 中" in out
