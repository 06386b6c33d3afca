"""The R client agrees with Python word for word, and refuses what Python refuses."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

import rldp
from rldp.channel import DenseChannel
from rldp.protocol.public_protocol import PublicProtocol
from tests.clients.test_javascript import PROTOCOLS, designed, of_kind, python_reports, vectors
from tests.support.files import DATA, ROOT, TESTS, VECTORS

R_CLIENT = ROOT / "clients" / "r"
RSCRIPT = shutil.which("Rscript")
INDEX: dict[str, Any] = json.loads((VECTORS / "index.json").read_text(encoding="utf-8"))


def has_packages(*names: str) -> bool:
    wanted = " && ".join(f"requireNamespace('{name}', quietly = TRUE)" for name in names)
    command = [str(RSCRIPT), "--vanilla", "-e", f"quit(status = !({wanted}))"]
    return RSCRIPT is not None and subprocess.run(command, check=False).returncode == 0


pytestmark = pytest.mark.skipif(
    not has_packages("jsonlite", "openssl"), reason="R with jsonlite and openssl is not installed"
)


def in_r(task: str, argument: Path, client: Path = R_CLIENT) -> Any:
    command = [str(RSCRIPT), "--vanilla", TESTS / "clients" / "client.R", client, task, argument]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def r_job(tmp_path: Path, task: str, **job: Any) -> Any:
    path = tmp_path / "job.json"
    path.write_text(json.dumps(job))
    return in_r(task, path)


def r_draws(
    p: PublicProtocol, cells: np.ndarray, words: np.ndarray, stem: Path, client: Path = R_CLIENT
) -> dict[str, Any]:
    p.save(f"{stem}.json")
    cells.astype("<u4").tofile(f"{stem}.cells")
    words.astype("<u8").tofile(f"{stem}.words")
    drawn: dict[str, Any] = in_r("draw", stem, client)
    return drawn


def text_of(p: PublicProtocol, tmp_path: Path) -> str:
    p.save(tmp_path / "p.json")
    return (tmp_path / "p.json").read_text()


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [name for name in PROTOCOLS if name not in ("grr large", "ir large") and " 17" not in name],
)
def test_words_give_the_reports_and_labels_of_python(name: str, tmp_path: Path) -> None:
    p = PROTOCOLS[name]()
    cells, words = vectors(p, np.random.default_rng(3), 1000)
    drawn = r_draws(p, cells, words, tmp_path / "vectors")
    reports = python_reports(p, cells, words)
    assert drawn["reports"] == reports.tolist()
    assert drawn["labels"] == p.report_labels.texts(reports).to_pylist()
    assert drawn["fingerprint"] == p.fingerprint


@pytest.mark.slow
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("a_low < b_low)", "a_low <= b_low)"),
        ("shifted(words, 64 - table$bits)", "shifted(words, 63 - table$bits)"),
        ("floor(new_low / HALF)", "0"),
        ("rest %/% HALF, low", "0, low"),
    ],
)
def test_a_client_that_is_slightly_wrong_is_caught(right: str, wrong: str, tmp_path: Path) -> None:
    client = tmp_path / "client"
    shutil.copytree(R_CLIENT, client)
    files = [path for path in (client / "R").iterdir() if right in path.read_text()]
    (file,) = files
    file.write_text(file.read_text().replace(right, wrong))
    is_caught = False
    for name in ("dense 17", "choice 62", "dense 62", "dense 5"):
        p = PROTOCOLS[name]()
        cells, words = vectors(p, np.random.default_rng(0), 0)
        try:
            drawn = r_draws(p, cells, words, tmp_path / "wrong", client)
        except AssertionError:  # it fell over
            is_caught = True
        else:
            is_caught |= drawn["reports"] != python_reports(p, cells, words).tolist()
    assert is_caught


@pytest.mark.slow
def test_the_shared_files_are_taken_or_refused_as_in_python(tmp_path: Path) -> None:
    public = [
        VECTORS / entry["file"]
        for entry in INDEX["accept"]
        if b'"rldp-client"' in (VECTORS / entry["file"]).read_bytes()
    ]
    bad = [VECTORS / entry["file"] for entry in INDEX["reject"] if entry["level"] == "structure"]
    found = r_job(tmp_path, "take", files=list(map(str, public + bad)))
    taken = dict(zip(public, found, strict=False))
    zero = VECTORS / "accept" / "public-odd-texts.json"
    assert "a zero byte, which R cannot hold" in taken.pop(zero)
    assert len(taken) > 30
    assert taken == {path: rldp.load(path).fingerprint for path in taken}
    refused = found[len(public) :]
    assert len(refused) > 200
    assert [text for text in refused if not text.startswith("ProtocolError: ")] == []


def test_signatures_are_checked(tmp_path: Path) -> None:
    entries = [
        (side, VECTORS / entry["file"])
        for side in ("accept", "reject")
        for entry in INDEX[side]
        if entry["level"] == "signature"
    ]
    public = [(side, path) for side, path in entries if b'"rldp-client"' in path.read_bytes()]
    files = [str(path) for _, path in public]
    found = r_job(tmp_path, "take", files=files, options={"signedBy": INDEX["signed_by"]})
    assert {side for side, _ in public} == {"accept", "reject"}
    for (side, path), outcome in zip(public, found, strict=True):
        expected = "[0-9a-f]{64}" if side == "accept" else "ProtocolError: The file is not signed.*"
        assert re.fullmatch(expected, outcome), path


@pytest.mark.slow
def test_the_shared_vectors_of_both_keyed_modes(tmp_path: Path) -> None:
    for case in json.loads((DATA / "keyed_reports.json").read_text()):
        job = {name: case[name] for name in ("file", "records", "ids", "key", "per")}
        assert r_job(tmp_path, "release", **job) == case["reports"], (case["kind"], case["per"])


@pytest.mark.slow
def test_a_million_secure_reports_follow_the_integers(tmp_path: Path) -> None:
    """Chi-square with a false alarm of 1e-9, and a table that is 1 % off as the control."""
    p = designed((3, 4), "srr")
    n = 1_000_000
    record = {"S": "1", "U": "2"}
    counts = r_job(tmp_path, "count", file=text_of(p, tmp_path), record=record, times=n)
    law = p.matrix[1, 2]
    limit = chi2.isf(1e-9, len(law) - 1)
    assert sum(counts) == n
    assert np.sum((counts - n * law) ** 2 / (n * law)) < limit
    off = law * (1 + 0.01 * (-1.0) ** np.arange(len(law)))
    off /= off.sum()
    assert np.sum((counts - n * off) ** 2 / (n * off)) > limit


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["srr", "ir", "grr-cr", "ue-cr", "ue", "sets", "not identified"])
@pytest.mark.parametrize("weighted", [False, True])
def test_estimates_are_those_of_python(name: str, weighted: bool, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    match name:
        case "sets":
            p: Any = of_kind("sets", 17, schema=_PLAIN)
        case "not identified":
            N = np.repeat(rng.multinomial(2**10, [0.25] * 4, size=(2, 1)), 3, axis=1)
            p = PublicProtocol("any", 9.0, _PLAIN, DenseChannel(N / 2**10), {"Q": N}, 10)
        case _:
            p = designed((3, 4), name)
    n_s, n_u = p.channel.shape
    codes = np.stack([rng.integers(0, n_s, 2000), rng.integers(0, n_u, 2000)], axis=1)
    texts = p.report_labels.texts(p.release(codes, rng=rldp.Simulation(1))).to_pylist()
    w = rng.uniform(0.5, 2.0, 2000).round(3).tolist()
    job: dict[str, Any] = {"file": text_of(p, tmp_path), "reports": texts, "level": 0.9}
    found = r_job(tmp_path, "estimate", **job, **({"weights": w} if weighted else {}))
    e = p.estimate(texts, level=0.9, weights=w if weighted else None)
    for part, of in (("cells", e), ("s", e.s), ("u", e.u)):
        for field in ("estimate", "std_error", "low", "high"):
            theirs = np.array([np.nan if x in (None, "NA") else x for x in found[part][field]])
            ours = np.ravel(getattr(of, field))
            if field in ("low", "high"):
                seen = ~np.isnan(np.ravel(of.estimate))
                theirs, ours = np.array(theirs)[seen], ours[seen]
            np.testing.assert_allclose(
                theirs, ours, rtol=1e-7, atol=1e-9, err_msg=f"{part} {field}"
            )


_PLAIN = rldp.Schema((rldp.Column("S", ("a", "b; c")),), (rldp.Column("U", ("x", "y", "z")),))


def test_records_that_cannot_be_released_are_refused(tmp_path: Path) -> None:
    schema = rldp.Schema(
        (rldp.Column("S", ("a", "(missing)")),), (rldp.Column("U", ("1", "2.5", "true")),)
    )
    p = of_kind("dense", 16, schema)
    good = [{"S": "a", "U": "1"}, {"S": None, "U": 1}, {"U": 2.5}, {"S": "a", "U": True}]
    bad = [{"S": "b", "U": "1"}, {"S": "a", "U": "3"}, {"S": "a"}]
    found = r_job(tmp_path, "release", file=text_of(p, tmp_path), records=good + bad)
    assert all(re.fullmatch("y[0-6]", report) for report in found[:4]), found
    assert found[4].startswith('RecordError: Unknown label "b" in column "S", row 1; known are "a"')
    assert found[5].startswith('RecordError: Unknown label "3" in column "U"')
    assert found[6].startswith('RecordError: Expected a value in column "U"')
    keyed = {"file": text_of(p, tmp_path), "records": [good[0]] * 2}
    refused = r_job(tmp_path, "release", **keyed, ids=["", 1.5], key=bytes(range(16)).hex())
    assert all(text.startswith("RecordError: Expected") for text in refused), refused
    for key, why in (("00" * 32, "random key"), ("00", "at least 16 bytes")):
        assert why in r_job(tmp_path, "release", **keyed, ids=[1, 2], key=key)[0]


@pytest.mark.slow
@pytest.mark.skipif(
    not has_packages("testthat", "knitr", "markdown"),
    reason="R's testthat, knitr and markdown are not installed",
)
def test_r_cmd_check_is_clean(tmp_path: Path) -> None:
    environment = {**os.environ, "_R_CHECK_FORCE_SUGGESTS_": "false", "LC_ALL": "C.UTF-8"}

    def r_cmd(*command: str | Path) -> subprocess.CompletedProcess[str]:
        options: dict[str, Any] = {"cwd": tmp_path, "env": environment, "check": False}
        return subprocess.run(["R", "CMD", *command], capture_output=True, text=True, **options)

    built = r_cmd("build", R_CLIENT)
    assert built.returncode == 0, built.stdout + built.stderr
    (package,) = tmp_path.glob("rldp_*.tar.gz")
    checked = r_cmd("check", "--no-manual", package)
    assert checked.returncode == 0, checked.stdout
    assert "\nStatus: OK\n" in checked.stdout, checked.stdout
