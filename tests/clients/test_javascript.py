"""The JavaScript client agrees with Python word for word, and refuses what Python refuses."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

import rldp
from rldp.channel import ChoiceChannel, DenseChannel, IndependentChannel, SetChannel
from rldp.protocol.public_protocol import PublicProtocol
from rldp.release.alias_table import Room
from rldp.uncertainty import SETS
from tests.release.test_sampler import exact_row, integer_channels, reference_buckets, set_row
from tests.support.files import DATA, JAVASCRIPT, TESTS, VECTORS

NODE = shutil.which("node")

pytestmark = pytest.mark.skipif(NODE is None, reason="Node is not installed")

AWKWARD = rldp.Schema(
    (rldp.Column("S | 1", ("a", "b|;\\")),),
    (rldp.Column("ü", ("", "\U0001f600 😀", 'quote" \x7f')),),
)


def node(client: Path, task: str, argument: Path) -> str:
    command = [str(NODE), str(TESTS / "clients" / "client.mjs"), str(client), task, str(argument)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


def python_reports(p: PublicProtocol, cells: np.ndarray, words: np.ndarray) -> np.ndarray:
    reports = p.sampler.empty(len(cells))
    p.sampler.draw(cells[:, 0], cells[:, 1], words, reports, Room())
    return reports


def client_draws(
    p: PublicProtocol, cells: np.ndarray, words: np.ndarray, stem: Path, client: Path = JAVASCRIPT
) -> dict[str, Any]:
    p.save(f"{stem}.json")
    cells.astype("<u4").tofile(f"{stem}.cells")
    words.astype("<u8").tofile(f"{stem}.words")
    node(client, "draw", stem)
    drawn: dict[str, Any] = json.loads(Path(f"{stem}.reports").read_text())
    return drawn


def rows(p: PublicProtocol, s: int, u: int) -> list[list[int]]:
    """The row that each word of a record draws from."""
    N, channel = p.integers, p.channel
    match channel:
        case DenseChannel():
            return [N["Q"][s, u].tolist()]
        case ChoiceChannel():
            row = N["other"].copy()
            row[s] = N["own"][s, u]
            return [row.ravel().tolist()]
        case SetChannel():
            return [set_row(N, s, u, p.bits)]
        case IndependentChannel():
            return [N["r_s"][s].tolist(), N["r_u"][u].tolist()]
    laws = enumerate(N["other"])
    return [(N["own"][s, u] if b == channel.block[s, u] else law).tolist() for b, law in laws]


def chance_of(p: PublicProtocol, s: int, u: int, report: Any) -> float:
    """The chance of a report, symbol by symbol."""
    if isinstance(p.channel, IndependentChannel):
        symbols = divmod(int(report), p.channel.r_u.shape[1])
    else:
        symbols = np.atleast_1d(report) + (np.ndim(report) > 0)  # of a set, silence is 0
    law = zip(rows(p, s, u), symbols, strict=True)
    return math.prod(row[y] / 2**p.bits for row, y in law)


def threshold_words(row: list[int], bits: int) -> Iterable[int]:
    """Words at both ends of every bucket and on both sides of its threshold."""
    j, buckets = reference_buckets(row, bits)
    c = 2 ** (bits - j)
    for b, (_, threshold, _) in enumerate(buckets):
        for place in sorted({0, threshold - 1, threshold, c - 1}):
            if 0 <= place < c:
                x = (b * c + place) << (64 - bits)
                yield from (x, x | (2 ** (64 - bits) - 1))


def sum_words(row: list[int], bits: int) -> Iterable[int]:
    """Words on both sides of every sum of a row."""
    for end in itertools.accumulate(row):
        yield from (x << (64 - bits) for x in (end - 1, end) if 0 <= x < 2**bits)


def vectors(
    p: PublicProtocol, rng: np.random.Generator, n_random: int
) -> tuple[np.ndarray, np.ndarray]:
    """Cells and words: thresholds of every row of every cell, and random words."""
    cells, words = [], []
    for s, u in itertools.product(range(p.schema.n_s), range(p.schema.n_u)):
        for place, row in enumerate(rows(p, s, u)):
            ends = sum_words(row, p.bits) if isinstance(p.channel, SetChannel) else ()
            for word in (*threshold_words(row, p.bits), *ends):
                record = rng.integers(0, 2**64, p.sampler.words, dtype=np.uint64)
                record[place] = word
                cells.append((s, u))
                words.append(record)
    for _ in range(n_random):
        cells.append((rng.integers(p.schema.n_s), rng.integers(p.schema.n_u)))
        words.append(rng.integers(0, 2**64, p.sampler.words, dtype=np.uint64))
    return np.array(cells, dtype=np.int64), np.array(words, dtype=np.uint64)


def designed(shape: tuple[int, int], name: str) -> PublicProtocol:
    counts = np.random.default_rng(8).integers(1, 60, shape)
    return rldp.design(rldp.AllDistributions(rldp.Table(counts)), 1.5, name).public()


def of_kind(kind: str, bits: int, schema: rldp.Schema = AWKWARD) -> PublicProtocol:
    channel, N = integer_channels(bits)[kind]
    return PublicProtocol("any", 1 / 3, schema, channel, N, bits)


PROTOCOLS: dict[str, Callable[[], PublicProtocol]] = {
    **{
        name: lambda name=name: designed((3, 4), name)
        for name in ("grr", "srr", "grr-cr", "ir", "ue-cr", "ue")
    },
    "grr large": lambda: designed((6, 8), "grr"),
    "ue large": lambda: designed((5, 7), "ue"),
    "ue-cr large": lambda: designed((33, 2), "ue-cr"),
    "ir large": lambda: designed((16, 15), "ir"),
    "no useful column": lambda: rldp.design(
        rldp.AllDistributions(
            rldp.Table.from_schema([[3], [4]], rldp.Schema((rldp.Column("S", ("0", "1")),)))
        ),
        1.0,
        "grr",
    ).public(),
    **{
        f"{kind} {bits}": lambda kind=kind, bits=bits: of_kind(kind, bits)
        for kind in ("dense", "choice", "independent", "unary", "cells", "sets")
        for bits in (62, 17, 5)
    },
}


@pytest.mark.slow
def test_a_hundred_thousand_words_give_the_reports_and_labels_of_python(tmp_path) -> None:
    n = 0
    for i, (name, made) in enumerate(PROTOCOLS.items()):
        p = made()
        cells, words = vectors(p, np.random.default_rng(i), 3000)
        drawn = client_draws(p, cells, words, tmp_path / "vectors")
        reports = python_reports(p, cells, words)
        assert drawn["reports"] == reports.tolist(), name
        assert drawn["labels"] == p.report_labels.texts(reports).to_pylist(), name
        assert drawn["fingerprint"] == p.fingerprint
        assert drawn["shape"] == list(p.channel.shape)
        for (s, u), report, chance in list(zip(cells, reports, drawn["chances"], strict=True))[:50]:
            assert chance == pytest.approx(chance_of(p, s, u, report), rel=1e-12), name
        n += len(cells)
    assert n >= 100_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "bits"),
    [
        ("dense", 16),
        ("choice", 16),
        ("choice", 5),
        ("independent", 8),
        ("unary", 8),
        ("cells", 2),
        ("sets", 16),
    ],
)
def test_all_words_give_every_output_as_often_as_the_table_says(kind, bits, tmp_path) -> None:
    p = of_kind(kind, bits)
    one = np.arange(2**bits, dtype=np.uint64) << np.uint64(64 - bits)
    words = np.stack([axis.ravel() for axis in np.meshgrid(*[one] * p.sampler.words)], axis=1)
    pairs = list(itertools.product(range(2), range(3)))
    cells = np.repeat(pairs, len(words), axis=0)
    drawn = client_draws(p, cells, np.tile(words, (len(pairs), 1)), tmp_path / "all")
    reports = np.array(drawn["reports"])
    if reports.ndim == 2:  # symbols of the blocks, the last varying fastest
        n_z = p.integers["own"].shape[2]
        reports = (reports + 1) @ n_z ** np.arange(reports.shape[1])[::-1]
    for (s, u), of_cell in zip(pairs, reports.reshape(len(pairs), -1), strict=True):
        counts = np.bincount(of_cell, minlength=p.channel.n_outputs)
        assert counts.tolist() == exact_row(p.channel, p.integers, s, u, bits)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("(x & mask) < thresholds[b]", "(x & mask) <= thresholds[b]"),
        ("word >> unused", "(word << 1n & 0xffffffffffffffffn) >> unused"),
        ("R[other] < c ?", "R[other] <= c ?"),
    ],
)
def test_a_client_that_is_slightly_wrong_is_caught(right, wrong, tmp_path) -> None:
    client = tmp_path / "client"
    shutil.copytree(JAVASCRIPT, client)
    source = (client / "rldp.js").read_text()
    assert source.count(right) == 1
    (client / "rldp.js").write_text(source.replace(right, wrong))
    is_caught = False
    for made in (PROTOCOLS["dense 17"], PROTOCOLS["choice 62"], PROTOCOLS["dense 5"]):
        p = made()
        cells, words = vectors(p, np.random.default_rng(0), 0)
        try:
            drawn = client_draws(p, cells, words, tmp_path / "wrong", client)
        except AssertionError:  # it fell over
            is_caught = True
        else:
            is_caught |= drawn["reports"] != python_reports(p, cells, words).tolist()
    assert is_caught


def released(tmp_path: Path, **job: Any) -> list[str]:
    path = tmp_path / "job.json"
    path.write_text(json.dumps(job))
    outcomes: list[str] = json.loads(node(JAVASCRIPT, "release", path))
    return outcomes


def text_of(p: PublicProtocol, tmp_path: Path) -> str:
    p.save(tmp_path / "p.json")
    return (tmp_path / "p.json").read_text()


@pytest.mark.parametrize("name", ["srr", "ir", "ue-cr", "ue"])
def test_a_key_gives_the_same_report_as_in_python(name, tmp_path) -> None:
    p = designed((3, 4), name)
    ids = [7, "7", "ä" * 6, "sixteen bytes...", "twelve bytes", "-", 10**15, "x" * 100]
    records = [{"S": "2", "U": str(i % 4)} for i in range(len(ids))]
    key = bytes(range(40))
    found = released(tmp_path, file=text_of(p, tmp_path), records=records, ids=ids, key=key.hex())
    rows = [{**record, "id": person} for record, person in zip(records, ids, strict=True)]
    assert found == [row["y"] for row in p.release(rows, record_id="id", key=key)]


@pytest.mark.slow
def test_the_shared_vectors_of_both_keyed_modes(tmp_path) -> None:
    for case in json.loads((DATA / "keyed_reports.json").read_text()):
        job = {name: case[name] for name in ("file", "records", "ids", "key", "per")}
        assert released(tmp_path, **job) == case["reports"], (case["kind"], case["per"])


def test_a_guessable_key_and_an_unknown_mode_are_refused(tmp_path) -> None:
    p = designed((2, 2), "grr")
    job = {"file": text_of(p, tmp_path), "records": [{"S": "0", "U": "1"}], "ids": [1]}
    assert "random key" in released(tmp_path, **job, key="00" * 32)[0]
    assert "random key" in released(tmp_path, **job, key=b"password".hex() * 2)[0]
    secret = bytes(range(16)).hex()
    assert 'per as "person" or "record"' in released(tmp_path, **job, key=secret, per="x")[0]


def test_blanks_around_labels_do_not_count_as_in_python(tmp_path) -> None:
    schema = rldp.Schema((rldp.Column("S", (" a", "b\u3000")),), (rldp.Column("U", ("x",)),))
    N = np.array([[[4, 0]], [[0, 4]]])
    p = PublicProtocol("any", 1.0, schema, DenseChannel(N / 4), {"Q": N}, 2)
    blanks = "".join(map(chr, filter(lambda i: chr(i).isspace(), range(0x3001))))
    texts = ["a", f"{blanks}a{blanks}", " b", "b\t", "\ufeffa", "a b"]
    records = [{"S": text, "U": " x"} for text in texts]
    found = released(tmp_path, file=text_of(p, tmp_path), records=records)
    assert found[:4] == ["y0", "y0", "y1", "y1"]
    for text, answer in zip(texts[4:], found[4:], strict=True):
        assert answer.startswith("RecordError: Unknown label")
        with pytest.raises(rldp.DataError, match="Unknown label"):
            p.release({"S": text, "U": "x"})
    alike = changed(p.document(), "schema", "sensitive", 0, "labels", to=["a", " a"])
    assert "by more than blanks" in released(tmp_path, file=alike, records=[])[0]
    assert not is_public_for_python(alike, tmp_path)


@pytest.mark.slow
def test_secure_reports_follow_the_table(tmp_path) -> None:
    """Chi-square with a false alarm of 1e-9, and a table that is 2 % off as the control."""
    p = designed((2, 2), "grr")
    record, n = {"S": "1", "U": "0"}, 200_000
    found = Counter(released(tmp_path, file=text_of(p, tmp_path), records=[record], times=n))
    counts = np.array([found[label] for label in p.report_labels.all])
    law = p.matrix[1, 0]
    limit = chi2.isf(1e-9, len(law) - 1)
    assert counts.sum() == n
    assert np.sum((counts - n * law) ** 2 / (n * law)) < limit
    off = law + np.array([0.02, 0, -0.02, 0])
    assert np.sum((counts - n * off) ** 2 / (n * off)) > limit


def test_records_that_cannot_be_released_are_refused(tmp_path) -> None:
    schema = rldp.Schema(
        (rldp.Column("S", ("a", "(missing)")),), (rldp.Column("U", ("1", "2.5", "true")),)
    )
    p = of_kind("dense", 16, schema)
    good = [{"S": "a", "U": "1"}, {"S": None, "U": 1}, {"U": 2.5}, {"S": "a", "U": True}]
    bad = [{"S": "b", "U": "1"}, {"S": "a", "U": "3"}, {"S": "a"}, {"S": ["a"], "U": "1"}]
    found = released(tmp_path, file=text_of(p, tmp_path), records=good + bad)
    assert all(re.fullmatch("y[0-6]", report) for report in found[:4])
    assert found[4] == 'RecordError: Unknown label "b" in column "S"; known are "a", "(missing)".'
    assert found[5].startswith('RecordError: Unknown label "3" in column "U"')
    assert found[6].startswith('RecordError: Expected a value in column "U"')
    assert found[7].startswith("RecordError: Expected a text, number or boolean")
    keyed = {"file": text_of(p, tmp_path), "records": [good[0]] * 3, "ids": ["", 1.5, None]}
    refused = released(tmp_path, **keyed, key=bytes(range(16)).hex())
    assert all(text.startswith("RecordError: Expected an id") for text in refused)
    assert "at least 16 bytes" in released(tmp_path, **keyed | {"ids": [1, 2, 3]}, key="00")[0]


def test_a_protocol_that_does_not_read_s_needs_no_s(tmp_path) -> None:
    table = rldp.Table([[30, 10], [8, 41]])
    p = rldp.design(rldp.ChiSquareSet(table), 1.0, "optimal", hidden=True, time_limit=1).public()
    key, ids = bytes(range(16)), [1, 2, 3]
    records = [{"U": "0"}, {"U": "1", "S": "anything"}, {"S": "0"}]
    found = released(tmp_path, file=text_of(p, tmp_path), records=records, ids=ids, key=key.hex())
    rows = [{"U": "0", "id": 1}, {"U": "1", "id": 2}]
    assert found[:2] == [row["y"] for row in p.release(rows, record_id="id", key=key)]
    assert found[2].startswith('RecordError: Expected a value in column "U"')


@pytest.mark.slow
def test_a_table_too_large_to_draw_from_is_loaded_and_not_drawn_from(tmp_path) -> None:
    n_s, n_u = 4000, 3
    N = {"own": np.full((n_s, n_u, 1), 2**12 - n_s + 1), "other": np.ones((n_s, 1), dtype=int)}
    channel = ChoiceChannel(*(part / 2**12 for part in N.values()))
    columns = [rldp.Column(name, tuple(map(str, range(n)))) for name, n in (("S", n_s), ("U", n_u))]
    schema = rldp.Schema(columns[:1], columns[1:])
    p = PublicProtocol("large", 1.0, schema, channel, N, 12)
    record = {"S": "0", "U": "0"}
    (found,) = released(tmp_path, file=text_of(p, tmp_path), records=[record])
    assert found.startswith("ProtocolError: Expected a table of at most 33554432 buckets")
    assert is_public_for_python(text_of(p, tmp_path), tmp_path)


def hashed(document: dict[str, Any]) -> str:
    """A file with the hash that fits, whatever it says."""
    document = {key: value for key, value in document.items() if key != "hash"}
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return json.dumps(document | {"hash": hashlib.sha256(text.encode()).hexdigest()})


def changed(document: dict[str, Any], *path: Any, to: Any) -> str:
    copy = json.loads(json.dumps(document))
    place = copy
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    return hashed(copy)


def test_hostile_files_are_refused_with_the_reason(tmp_path) -> None:
    text = text_of(of_kind("choice", 16), tmp_path)
    document = json.loads(text)
    own = document["channel"]["own"]
    whole = rldp.design(rldp.AllDistributions(rldp.Table([[1, 2], [3, 4]])), 1.0, "grr")
    whole.save(tmp_path / "whole.json")
    deep = "[" * 100_000
    cases = {
        text.replace("a", "b", 1): "Expected a public protocol file|valid JSON|hash",
        text.replace(own[0][0][0], str(int(own[0][0][0]) + 1), 1): "hash does not fit",
        re.sub('"hash": "[0-9a-f]+"', '"hash": 1', text): "hash does not fit",
        text + "x": "not valid JSON",
        text[:-5]: "not valid JSON",
        text.replace('"version": 1', '"version": 1, "version": 1'): "stands twice",
        text.replace('"version": 1', '"version": 01'): "not valid JSON",
        text.replace('"version": 1', '"version": 1.0'): "of version 1",
        text.replace('"version": 1', '"version": NaN'): "not valid JSON",
        text.replace("]]", "],]", 1): "not valid JSON",
        text.replace("{", "{,", 1): "not valid JSON",
        deep: "nested too deeply",
        "": "not valid JSON",
        "[]": "of version 1",
        (tmp_path / "whole.json").read_text(): "the design sample",
        changed(document, "version", to=2): "entries format, .*, channel, claims in a public",
        changed(document, "version", to=3): "entries format, .*, channel, claims in a public",
        changed(document, "version", to=4): "of version 4; this client reads 1, 2 or 3",
        changed(document, "name", to="a\u202eb"): "at most 100 printable characters",
        changed(document, "name", to="a" * 101): "at most 100 printable characters",
        changed(document, "format", to="other"): "of version 1",
        changed(document, "epsilon", to=-1.0): "epsilon > 0",
        changed(document, "epsilon", to="inf"): "epsilon > 0",
        changed(document, "more", to=1): "Expected the entries",
        changed(document, "__proto__", to={}): "Expected the entries",
        changed(document, "channel", "kind", to="magic"): "Expected the channel to be dense",
        changed(document, "channel", "kind", to="constructor"): "Expected the channel to be dense",
        changed(document, "channel", "kind", to="unary"): "sum to 2\\^16",
        changed(document, "channel", "kind", to="dense"): "Expected the entries kind, bits, Q",
        changed(document, "channel", "bits", to=15): "sum to 2\\^15",
        changed(document, "channel", "bits", to=63): "1 to 62 bits",
        changed(document, "channel", "bits", to="16"): "1 to 62 bits",
        changed(document, "channel", "own", 0, 0, 0, to="5"): "own and other to sum",
        changed(document, "channel", "own", 0, 0, 0, to=5): "integers as text",
        changed(document, "channel", "own", 0, 0, 0, to="-5"): "integers as text",
        changed(document, "channel", "own", 0, 0, 0, to="0x5"): "integers as text",
        changed(document, "channel", "own", 0, 0, 0, to="9" * 30): "integers as text",
        changed(document, "channel", "own", 0, to=own[0][:2]): "rectangular",
        changed(document, "channel", "own", to=[]): "rectangular",
        changed(document, "channel", "other", to=[["1"]]): "other of shape \\(2, 3\\)",
        changed(document, "schema", "useful", 0, "labels", to=["a", "b"]): "other cells",
        changed(document, "schema", "useful", 0, "labels", to=["a", "a", "b"]): "different labels",
        changed(document, "schema", "useful", 0, "labels", to=["a", 1, "b"]): "that are texts",
        changed(document, "schema", "useful", 0, "name", to="S | 1"): "every column once",
        changed(document, "schema", "sensitive", to=[]): "at least one sensitive",
    }
    found = released(tmp_path, file=list(cases), records=[])
    assert len(found) == len(cases)
    for (case, reason), error in zip(cases.items(), found, strict=True):
        assert re.search(f"^ProtocolError: .*{reason}|^ProtocolError: .*({reason})", error), (
            case[:200],
            error,
        )
        assert not is_public_for_python(case, tmp_path), case[:200]


def is_public_for_python(text: str, tmp_path: Path) -> bool:
    path = tmp_path / "case.json"
    path.write_text(text)
    try:
        return isinstance(rldp.load(path), PublicProtocol)
    except rldp.RldpError:
        return False


floats = st.floats(1e-299, 1e299) | st.integers(-320, 299).map(lambda p: 10.0**p) | st.just(1e16)
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)


@pytest.mark.slow
@settings(max_examples=4)
@given(st.lists(st.tuples(floats.filter(lambda x: x > 0), texts, texts), min_size=60, max_size=60))
def test_the_hash_of_any_numbers_and_texts_is_the_one_of_python(tmp_path_factory, cases) -> None:
    folder = tmp_path_factory.mktemp("hashes")
    files = []
    for epsilon, name, label in cases:
        columns = (rldp.Column(name, (label, label + "'")),), (rldp.Column(name + "'", ("0",)),)
        N = np.array([[[1, 1]], [[2, 0]]])
        p = PublicProtocol("any", epsilon, rldp.Schema(*columns), DenseChannel(N / 2), {"Q": N}, 1)
        files.append(text_of(p, folder))
    assert released(folder, file=files, records=[]) == []


def test_it_tells_what_is_claimed_and_against_whom(tmp_path):
    names = ("layers-public-*.json", "knows-public-*.json", "evidence-*-public.json")
    files = [file for name in names for file in sorted((VECTORS / "accept").glob(name))]
    told = claims_of(tmp_path, *files)
    kinds = Counter()
    for file, answer in zip(files, told, strict=True):
        p = rldp.load(file)
        assert len(p.claims) <= len(answer["words"]) <= len(p.claims) + 1
        for ours, theirs, words in zip(p.claims, answer["claims"], answer["words"], strict=False):
            levels = [[float(level) for level in row] for row in theirs.pop("levels")]
            assert np.array_equal(levels, ours.levels)
            assert theirs.pop("epsilon") == ours.epsilon
            assert theirs.pop("isUniform") == ours.is_uniform
            assert theirs == {"kind": ours.kind, "knows": list(ours.knows), **ours.parameters}
            assert " against " in words
            assert ("knows U" in words) == (ours.kind == "given-u")
            assert [name for name in ("area", "age") if f'"{name}"' in words] == list(ours.knows)
            kinds[ours.kind] += 1
    own = {kind for kind, F in SETS.items() if F.__module__.startswith("rldp.")}
    assert {*kinds} == own


def claims_of(tmp_path: Path, *files: Path) -> list[dict[str, Any]]:
    job = tmp_path / "files.json"
    job.write_text(json.dumps(list(map(str, files))))
    told: list[dict[str, Any]] = json.loads(node(JAVASCRIPT, "claims", job))
    return told


def test_files_say_to_whom_nothing_is_promised(tmp_path):
    """Whoever knows columns of U, unless a guarantee covers them: of older files, none does."""
    useful = [rldp.Column(name, ("0", "1")) for name in ("a", "b")]
    table = rldp.Table.from_schema(
        [[50, 40, 30, 60], [40, 45, 35, 50]],
        rldp.Schema((rldp.Column("S", ("0", "1")),), tuple(useful)),
    )
    F = rldp.ChiSquareSet(table)
    over = {"uncertainty": {"kind": "chi-square", "alpha": 0.05}, "levels": 1.0}
    given_u = {"uncertainty": {"kind": "given-u"}, "levels": 2.0}
    everyone = {"uncertainty": {"kind": "all"}, "levels": 3.0}
    knows_a, knows_b, knows_both = (over | {"knows": list(x)} for x in ("a", "b", "ab"))
    nothing = "Nothing is promised against someone who knows of the person "
    not_said = "The file does not say what is promised against someone who knows of the person "
    cases = [
        ([over, given_u], [nothing + '"a"; or "b"']),
        ([over, over], [nothing + '"a"; or "b"; or "a" and "b"']),
        ([over, given_u, knows_a], [nothing + '"b"']),
        ([over, knows_a, knows_b], [nothing + '"a" and "b"']),
        ([over, knows_a, knows_b, knows_both], []),
        ([over, knows_a, knows_b, given_u], []),
        ([over, everyone], []),
        ([over, everyone | {"knows": ["a"]}], [nothing + '"b"']),
        (None, [not_said + '"a"; or "b"; or "a" and "b"']),
    ]
    made = rldp.design(F, 1.0, "grr").public().document()
    files = []
    for claims, _ in cases:
        document = {name: entry for name, entry in made.items() if name != "claims"}
        document["version"] = 1
        if claims is not None:
            document["claims"] = claims
            document["version"] = 3 if any("knows" in claim for claim in claims) else 2
        files.append(tmp_path / f"{len(files)}.json")
        files[-1].write_text(hashed(document))
        rldp.load(files[-1])
    for (claims, expected), answer in zip(cases, claims_of(tmp_path, *files), strict=True):
        assert answer["words"][len(claims or [None]) :] == expected
    assert claims_of(tmp_path, files[2])[0]["words"][2].startswith(
        'ε = 1 against someone who knows "a" of the person, and beside that only that they come '
    )


def proofs(tmp_path: Path, *files: Path, client: Path = JAVASCRIPT) -> list[str]:
    job = tmp_path / "files.json"
    job.write_text(json.dumps(list(map(str, files))))
    outcomes: list[str] = json.loads(node(client, "prove", job))
    return outcomes


def test_a_proof_ties_a_public_file_to_a_whole_one(tmp_path):
    for name in ("knows-every-part", "layers-dense"):
        whole = VECTORS / "accept" / f"{name}.json"
        rldp.load(whole).public().save(tmp_path / "public.json")
        assert proofs(tmp_path, whole) == [rldp.load(tmp_path / "public.json").fingerprint]


def test_the_client_has_a_budget_of_work(tmp_path):
    client = tmp_path / "client"
    shutil.copytree(JAVASCRIPT, client)
    numbers = client / "proof" / "numbers.js"
    source = numbers.read_text()
    assert source.count("[5e8, 1e4, 1e10]") == 1
    numbers.write_text(source.replace("[5e8, 1e4, 1e10]", "[1e4, 0, 1e10]"))
    file = VECTORS / "accept" / "knows-renyi-dense.json"
    assert len(proofs(tmp_path, file)[0]) == 64
    assert "more work than is allowed" in proofs(tmp_path, file, client=client)[0]


def test_levels_by_pair_are_told_with_their_labels(tmp_path):
    files = [VECTORS / "accept" / f"layers-public-{name}.json" for name in ("one-sided", "exempt")]
    job = tmp_path / "files.json"
    job.write_text(json.dumps(list(map(str, files))))
    one_sided, exempt = (answer["words"] for answer in json.loads(node(JAVASCRIPT, "claims", job)))
    assert one_sided == [
        "ε by pair of S values, against anyone, whatever they know about the person except S, "
        'whatever distribution is true: "no" against "yes" no promise; "yes" against "no" 1.39'
    ]
    assert '"unknown" against "no" no promise' in exempt[1]
    assert '"no" against "unknown" 0.7' in exempt[1]
