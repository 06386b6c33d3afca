"""Keyed reports of a record that changes: per person, per record, and what two reports tell."""

from __future__ import annotations

import hmac
import itertools
import json
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from cryptography.hazmat.primitives.ciphers import algorithms
from cryptography.hazmat.primitives.cmac import CMAC

import rldp
from rldp.cli import main
from rldp.errors import DataError, ParameterError, TooLargeError
from rldp.protocol.public_protocol import PublicProtocol
from rldp.release.alias_table import Room
from rldp.release.randomness import Randomness, write_new_key
from rldp.sklearn import ReleaseTransformer
from tests.release.test_sampler import integer_channels
from tests.support.files import DATA

KEY = bytes(range(32))
SCHEMA = rldp.Schema((rldp.Column("S", ("a", "b")),), (rldp.Column("U", ("x", "y", "z")),))
VECTORS = json.loads((DATA / "keyed_reports.json").read_text())
DOCUMENTED_SAME = [
    [0.1749, 0.0, 0.0, 0.3005],
    [0.0, 0.1749, 0.0, 0.0],
    [0.0, 0.0, 0.1749, 0.0],
    [0.0, 0.0, 0.0, 0.1749],
]
DOCUMENTED_APART = [[0.0831, 0.0831, 0.0831, 0.226], *[[0.0306, 0.0306, 0.0306, 0.0831]] * 3]


def of_kind(kind: str, bits: int) -> PublicProtocol:
    channel, N = integer_channels(bits)[kind]
    return PublicProtocol("any", 1.0, SCHEMA, channel, N, bits)


def designed(name: str = "grr") -> rldp.ReleaseProtocol:
    table = rldp.Table([[30, 20], [10, 40]])
    return rldp.design(rldp.ChiSquareSet(table), 1.0, name)


# ---- the joint law of two reports


def all_reports(p: PublicProtocol, s: int, u: int) -> np.ndarray:
    """The number of the report that each combination of words gives."""
    one = np.arange(2**p.bits, dtype=np.uint64) << np.uint64(64 - p.bits)
    words = np.stack([a.ravel() for a in np.meshgrid(*[one] * p.sampler.words)], axis=1)
    reports = p.sampler.empty(len(words))
    cells = np.tile([[s], [u]], len(words))
    p.sampler.draw(cells[0], cells[1], words, reports, Room())
    if reports.ndim == 2:  # symbols of the blocks, the last varying fastest
        n_z = p.integers["own"].shape[2]
        reports = (reports.astype(int) + 1) @ n_z ** np.arange(reports.shape[1])[::-1]
    return reports


@pytest.mark.parametrize(
    ("kind", "bits"),
    [("dense", 3), ("dense", 7), ("choice", 5), ("choice", 8), ("independent", 5), ("unary", 4)],
)
def test_all_words_give_the_joint_law_of_both_modes(kind, bits) -> None:
    p = of_kind(kind, bits)
    cells = list(itertools.product(range(2), range(3)))
    for old, new in itertools.product(cells, cells):
        first, second = all_reports(p, *old), all_reports(p, *new)
        common = np.zeros((p.channel.n_outputs,) * 2)
        np.add.at(common, (first, second), 1)
        same = rldp.changed_record(p, old, new)
        assert np.array_equal(same.law, common / len(first))
        assert same.shows == pytest.approx(np.mean(first != second), abs=1e-15)

        apart = rldp.changed_record(p, old, new, per="record")
        one, two = (np.bincount(r, minlength=p.channel.n_outputs) for r in (first, second))
        assert np.array_equal(apart.law, np.outer(one, two) / len(first) ** 2)
        assert apart.shows == pytest.approx(np.mean(first[:, None] != second), abs=1e-12)
        for counts, n in ((same.words, 2**bits), (apart.words, 4**bits)):
            assert [int(word.sum()) for word in counts] == [n] * p.sampler.words


def test_the_worst_pair_of_reports_is_the_one_that_all_pairs_give() -> None:
    p = of_kind("choice", 7)
    cells = list(itertools.product(range(2), range(3)))
    for per in ("person", "record"):
        laws = [
            rldp.changed_record(p, old, new, per=per).law
            for old, new in itertools.permutations(cells, 2)
        ]
        with np.errstate(divide="ignore", invalid="ignore"):
            worst = max(np.nanmax(np.log(a / b)) for a, b in itertools.permutations(laws, 2))
        assert rldp.change_epsilon(p, per=per) == pytest.approx(worst)


@pytest.mark.parametrize("name", ["grr", "srr", "ir"])
def test_new_words_bound_what_both_reports_tell_and_the_same_words_do_not(name) -> None:
    p = designed(name)
    assert rldp.change_epsilon(p, per="person") == np.inf
    plain = rldp.audit(p).epsilon_plain
    assert rldp.change_epsilon(p, per="record") <= 2 * plain + 1e-9


def test_the_figures_of_the_documentation() -> None:
    p = designed()
    same, apart = (rldp.changed_record(p, (0, 0), (1, 1), per=per) for per in ("person", "record"))
    assert (round(same.shows, 4), round(apart.shows, 4)) == (0.3005, 0.7726)
    assert same.law.round(4).tolist() == DOCUMENTED_SAME
    assert apart.law.round(4).tolist() == DOCUMENTED_APART
    assert rldp.change_epsilon(p, per="record") == pytest.approx(2.0)


def test_codes_modes_and_sizes_are_checked() -> None:
    p = designed()
    with pytest.raises(DataError, match=r"2 × 2 cells, got \(2, 0\)"):
        rldp.changed_record(p, (0, 0), (2, 0))
    with pytest.raises(ParameterError, match="per as 'person' or 'record'"):
        rldp.changed_record(p, (0, 0), (1, 0), per="people")
    wide = rldp.design(rldp.AllDistributions(rldp.Table(np.ones((8, 8), int))), 1.0, "grr")
    with pytest.raises(TooLargeError, match="comparisons"):
        rldp.change_epsilon(wide)
    assert rldp.changed_record(wide, (0, 0), (7, 7)).law.shape == (64, 64)


# ---- words


def keyed_word(fingerprint: str, name: str, cell: tuple[int, int] | None, number: int) -> int:
    """One word, straight from the definition."""
    purpose = "rldp keyed release " if cell is None else "rldp keyed release per record "
    inner = hmac.digest(KEY, f"{purpose}{fingerprint}".encode(), "sha256")
    mac = CMAC(algorithms.AES(inner))
    codes = b"" if cell is None else struct.pack(">II", *cell)
    mac.update(struct.pack(">I", number // 2) + codes + name.encode())
    return struct.unpack("<2Q", mac.finalize())[number % 2]


def test_words_per_record_are_what_the_definition_says() -> None:
    names = ["a", "bb", "sixteen bytes...", "ä" * 20, "a"]
    s, u = np.array([0, 1, 2, 70_000, 1]), np.array([5, 4, 3, 2, 1])
    ids = pa.array(names, pa.large_string())
    words = Randomness(key=KEY, per="record").source("ab" * 32, ids, s, u).words(0, 5, 3)
    rows = zip(names, zip(s.tolist(), u.tolist(), strict=True), strict=True)
    expected = [[keyed_word("ab" * 32, name, cell, b) for b in range(3)] for name, cell in rows]
    assert words.tolist() == expected
    later = Randomness(key=KEY, per="record").source("ab" * 32, ids, s, u).words(2, 3, 3)
    assert later.tolist() == expected[2:]


@pytest.mark.parametrize("per", ["person", "record"])
def test_an_unchanged_record_gives_the_same_report_and_a_changed_one_the_words_of_its_mode(
    per,
) -> None:
    p, n = designed(), 4000
    codes = np.tile([[0, 0]], (n, 1))
    names = np.arange(n)
    first = p.release(codes, record_id=names, key=KEY, per=per)
    assert np.array_equal(first, p.release(codes, record_id=names, key=KEY, per=per))
    second = p.release(np.tile([[1, 1]], (n, 1)), record_id=names, key=KEY, per=per)
    pairs = np.zeros((4, 4))
    np.add.at(pairs, (first, second), 1)
    law = rldp.changed_record(p, (0, 0), (1, 1), per=per).law
    assert not pairs[law == 0].any()
    expected = n * law[law > 0]
    statistic = ((pairs[law > 0] - expected) ** 2 / expected).sum()
    assert statistic < 60  # of at most 15 degrees of freedom: a false alarm of 1e-6
    other = rldp.changed_record(p, (0, 0), (1, 1), per="record" if per == "person" else "person")
    off = n * other.law[other.law > 0]
    assert ((pairs[other.law > 0] - off) ** 2 / off).sum() > 60  # the wrong law is noticed


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: f"{case['kind']} {case['per']}")
def test_the_shared_vectors(case, tmp_path) -> None:
    path = tmp_path / "p.json"
    path.write_text(case["file"])
    p: Any = rldp.load(path)
    pairs = zip(case["records"], case["ids"], strict=True)
    rows = [{**record, "id": name} for record, name in pairs]
    key = bytes.fromhex(case["key"])
    out = p.release(rows, record_id="id", key=key, per=case["per"])
    assert [row["y"] for row in out] == case["reports"]
    frame = pa.table({name: [str(row[name]) for row in rows] for name in rows[0]})
    out = p.release(frame, record_id="id", key=key, per=case["per"])
    assert out["y"].to_pylist() == case["reports"]


def test_the_vectors_tell_the_modes_apart() -> None:
    by_mode = {(case["kind"], case["per"]): case["reports"] for case in VECTORS}
    for kind in {case["kind"] for case in VECTORS}:
        assert by_mode[kind, "person"] != by_mode[kind, "record"]


def test_modes_need_a_key_and_a_name_that_is_known(tmp_path, capsys) -> None:
    p = designed()
    codes = np.zeros((2, 2), dtype=int)
    with pytest.raises(ParameterError, match="new random bits per record, got no key"):
        p.release(codes, per="record")
    with pytest.raises(ParameterError, match="got 'people'"):
        p.release(codes, record_id=[1, 2], key=KEY, per="people")
    (tmp_path / "in.csv").write_text("S,U\n0,0\n")
    p.save(tmp_path / "p.json")
    words = ["release", str(tmp_path / "p.json"), str(tmp_path / "in.csv"), "--per", "record"]
    assert main(words) == 2
    assert "--key-file: Expected ids and a key" in capsys.readouterr().err


def test_the_command_line_says_what_each_mode_promises(tmp_path, capsys) -> None:
    p = designed()
    p.save(tmp_path / "p.json")
    frame = pa.table({"S": ["0", "1"] * 50, "U": ["0", "0", "1", "1"] * 25, "id": range(100)})
    pa.csv.write_csv(frame, tmp_path / "in.csv")
    write_new_key(tmp_path / "key")
    words = ["release", str(tmp_path / "p.json"), str(tmp_path / "in.csv")]
    words += ["-o", str(tmp_path / "out.csv"), "--force"]
    words += ["--record-id", "id", "--key-file", str(tmp_path / "key")]
    told = {"person": "with the same words", "record": "with new words:"}
    found = {}
    for per, sentence in told.items():
        assert main([*words, "--per", per]) == 0
        out = capsys.readouterr().out
        assert "unchanged gets the same report again" in out
        assert sentence in out
        transformer = ReleaseTransformer(p, record_id="id", key_file=tmp_path / "key", per=per)
        found[per] = transformer.fit_transform(frame)[:, 0].tolist()
        assert pa.csv.read_csv(tmp_path / "out.csv")["y"].to_pylist() == found[per]
    assert found["person"] != found["record"]
    assert main([*words, "--per", "record", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["per"] == "record"
