"""Files that every reader must take or refuse: both checkers, `load`, and the JavaScript client."""

from __future__ import annotations

import copy
import itertools
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rldp
from rldp.intervals import check_with_intervals
from rldp.proof import ProofError, check
from rldp.protocol.documents import PUBLIC, document_hash, read_content
from rldp.protocol.files import checked_protocol
from tests.support import page_checker
from tests.support.files import JAVASCRIPT, ROOT, TESTS, VECTORS

INDEX: dict[str, Any] = json.loads((VECTORS / "index.json").read_text(encoding="utf-8"))
KEY = INDEX["signed_by"]
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="Node is not installed")


def listed(side: str, *levels: str) -> list[Any]:
    chosen = [entry for entry in INDEX[side] if not levels or entry["level"] in levels]
    return [pytest.param(VECTORS / e["file"], id=Path(e["file"]).stem) for e in chosen]


def is_public(path: Path) -> bool:
    return f'"{PUBLIC}"'.encode() in path.read_bytes()


def client(tmp_path: Path, files: list[Path], **options: str) -> list[str]:
    """What the JavaScript client makes of each file."""
    return run_client(tmp_path, "take", {"files": list(map(str, files)), "options": options})


def run_client(tmp_path: Path, task: str, argument: Any) -> list[str]:
    job = tmp_path / "job.json"
    job.write_text(json.dumps(argument))
    command = [str(NODE), TESTS / "clients" / "client.mjs", JAVASCRIPT, task, job]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    outcomes: list[str] = json.loads(run.stdout)
    return outcomes


def test_the_index_lists_every_file_once():
    listed_files = sorted(entry["file"] for side in ("accept", "reject") for entry in INDEX[side])
    found = [path.relative_to(VECTORS).as_posix() for path in VECTORS.glob("*/*")]
    assert listed_files == sorted(found)
    sets = (
        "all",
        "known",
        "given-u",
        "chi-square",
        "renyi",
        "kl",
        "total-variation",
        "kl-finite",
        "polytope",
    )
    channels = ("dense", "independent", "choice", "unary", "cells", "sets")
    for F in sets:
        for channel in channels:
            assert f"accept/whole-{F}-{channel}.json" in listed_files
            assert f"reject/forged-{F}-{channel}.json" in listed_files
    for channel, F in itertools.product(channels, [F for F in sets if F != "given-u"]):
        assert f"accept/knows-{F}-{channel}.json" in listed_files
        assert f"reject/knows-forged-{F}-{channel}.json" in listed_files
    for channel, layer in itertools.product(channels, ("chi-square", "given-u", "all")):
        assert f"accept/layers-{channel}.json" in listed_files
        assert f"reject/layers-forged-{channel}-{layer}.json" in listed_files


@pytest.mark.slow
def test_the_script_makes_the_same_files_again(tmp_path):
    (tmp_path / "reject").mkdir()
    for kept in (VECTORS / "reject").glob("evidence-*.json"):
        shutil.copy(kept, tmp_path / "reject")
    shutil.copytree(VECTORS / "accept", tmp_path / "accept")
    script = ROOT / "tools" / "make_vectors.py"
    subprocess.run([sys.executable, script, tmp_path], check=True)
    for path in [VECTORS / "index.json", *VECTORS.glob("*/*")]:
        assert (tmp_path / path.relative_to(VECTORS)).read_bytes() == path.read_bytes(), path.name
    assert len(list(tmp_path.glob("*/*"))) == len(list(VECTORS.glob("*/*")))


@pytest.mark.sampled(4)
@pytest.mark.slow
@pytest.mark.parametrize("path", listed("accept"))
def test_a_good_file_is_taken(path):
    p = rldp.load(path)
    assert p.is_proved is not is_public(path)
    if p.is_proved:
        document = read_content(path).document
        assert float(check(document).epsilon) == p.epsilon
        check_with_intervals(document)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("path", listed("reject", "structure"))
def test_a_malformed_file_is_refused(path):
    with pytest.raises((rldp.FileError, rldp.CertificateError)) as caught:
        rldp.load(path)
    assert path.name in str(caught.value)
    assert "\n" not in str(caught.value)


POOR_MULTIPLIERS = ("multiplier", "joint-free", "joint-none")


@pytest.mark.sampled(4)
@pytest.mark.slow
@pytest.mark.parametrize("path", listed("reject", "proof"))
def test_a_claim_that_is_false_or_not_proved_is_refused(path):
    """The second checker looks for multipliers of its own, so it may prove a claim that is true."""
    document = read_content(path).document
    p = checked_protocol(document, path.name)
    with pytest.raises(ProofError):
        check(document)
    if path.name.startswith(POOR_MULTIPLIERS):
        assert rldp.audit(p).epsilon <= p.epsilon
        check_with_intervals(document)
    else:
        with pytest.raises(ProofError):
            check_with_intervals(document)
    with pytest.raises(rldp.CertificateError):
        rldp.load(path)


@pytest.mark.sampled(4)
@pytest.mark.slow
@pytest.mark.parametrize("path", [*listed("accept", "proof"), *listed("reject", "proof")])
def test_a_checker_written_from_the_page_says_the_same(path):
    document = read_content(path).document
    if path.parent.name == "accept":
        page_checker.check(document)
    else:
        with pytest.raises(page_checker.NotProvedError):
            page_checker.check(document)


@pytest.mark.parametrize("path", listed("reject", "signature"))
def test_a_forged_signature_is_refused_where_it_is_asked_for(path):
    rldp.load(path)
    with pytest.raises(rldp.CertificateError, match=KEY):
        rldp.load(path, signed_by=KEY)


@pytest.mark.parametrize("path", listed("accept", "signature"))
def test_a_good_signature_is_taken(path):
    assert rldp.load(path, signed_by=KEY).epsilon == rldp.load(path).epsilon


@needs_node
def test_the_client_takes_and_refuses_the_same_public_files(tmp_path):
    taken = [VECTORS / e["file"] for e in INDEX["accept"]]
    for path, outcome in zip(taken, client(tmp_path, taken), strict=True):
        if is_public(path):
            assert outcome == rldp.load(path).fingerprint, path.name
        else:
            assert outcome.startswith("ProtocolError: Expected a public protocol"), path.name
    refused = [VECTORS / e["file"] for e in INDEX["reject"] if e["level"] != "signature"]
    for path, outcome in zip(refused, client(tmp_path, refused), strict=True):
        assert outcome.startswith("ProtocolError: "), path.name


@needs_node
def test_the_client_proves_and_refuses_the_same_whole_files(tmp_path):
    """Bound for bound it uses the multipliers of a file, so it agrees with the exact checker."""
    taken = [VECTORS / e["file"] for e in INDEX["accept"]]
    for path, outcome in zip(taken, run_client(tmp_path, "prove", [*map(str, taken)]), strict=True):
        if is_public(path):
            assert (
                outcome == "ProtocolError: Expected a whole protocol; a public one holds no proof."
            )
        else:
            assert outcome == rldp.load(path).fingerprint, path.name
    refused = [VECTORS / e["file"] for e in INDEX["reject"] if e["level"] != "signature"]
    outcomes = run_client(tmp_path, "prove", [*map(str, refused)])
    for path, outcome in zip(refused, outcomes, strict=True):
        assert outcome.startswith("ProtocolError: "), (path.name, outcome)


@needs_node
def test_the_client_takes_and_refuses_the_same_signatures(tmp_path):
    good = [VECTORS / e["file"] for e in INDEX["accept"] if e["level"] == "signature"]
    good = [path for path in good if is_public(path)]
    assert client(tmp_path, good, signedBy=KEY) == [rldp.load(path).fingerprint for path in good]
    forged = [VECTORS / e["file"] for e in INDEX["reject"] if e["level"] == "signature"]
    assert client(tmp_path, forged) == [rldp.load(path).fingerprint for path in forged]
    for path, outcome in zip(forged, client(tmp_path, forged, signedBy=KEY), strict=True):
        assert outcome.startswith("ProtocolError: "), path.name
        assert KEY in outcome, path.name


# --- both readers on files that nobody thought of ------------------------------------------------

ODD = [
    *(None, True, False, 0, 1, -1, 1.0, 0.5, -0.0, 1e16, 1e22, 5e-324, 1e299, 2**53, 2**53 + 1),
    *(10**30, "", "0", "1", "00", "-0", "1.0", "4096", "x", "inf", "\ud800", "\udc00", "\uffff"),
    *("\U0001f600", [], [[]], [None], {}, {"": None}, ["a"], ["a", "a"], [["1"]], {"name": "a"}),
]
SPELLINGS = [
    (b"1.0", b"1.0e0"),
    (b"1.0", b"1"),
    (b"1.0", b"-1.0"),
    (b"1.0", b"1.00"),
    (b"1.0", b"1."),
    (b"1.0", b"+1.0"),
    (b"1.0", b"1E+0"),
    (b" ", b"\xc2\xa0"),
    (b" ", b"\n\t\r "),
    (b"\n", b"\x0c"),
    (b"a", b"\\u0061"),
    (b"a", b"\\u00e4"),
    (b"a", b"\\x61"),
    (b"a", b"\xc3\xa4"),
    (b"a", b"\xe4"),
    (b"a", b"\xed\xa0\x80"),
    (b"a", b"\x00"),
    (b"{", b"{,"),
    (b"}", b",}"),
    (b"[", b"[["),
    (b'"', b"'"),
    (b"}\n", b"}\n\n"),
    (b"}\n", b"}\x00"),
]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to all values of a document."""
    steps = value.items() if isinstance(value, dict) else enumerate(value)
    found = []
    for step, entry in steps:
        found.append((*path, step))
        if isinstance(entry, dict | list):
            found += places(entry, (*path, step))
    return found


def mutated(document: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """A copy with an entry replaced, removed, doubled or added, or two entries swapped."""
    made = copy.deepcopy(document)
    *path, last = places(made)[rng.integers(len(places(made)))]
    parent: Any = made
    for step in path:
        parent = parent[step]
    odd = ODD[rng.integers(len(ODD))]
    match rng.integers(4):
        case 0:
            del parent[last]
        case 1 if isinstance(parent, list):
            parent.insert(last, copy.deepcopy(parent[last]))
        case 1:
            parent[["extra", "hash", "signatures", "name", ""][rng.integers(5)]] = odd
        case 2 if isinstance(parent, list):
            parent.reverse()
        case _:
            parent[last] = odd
    return made


def spelled(document: dict[str, Any], rng: np.random.Generator) -> bytes:
    """A file with the hash that fits its escaped spelling, and perhaps one odd spelling."""
    rest = {key: value for key, value in document.items() if key not in ("hash", "signatures")}
    digest = document.get("hash", document_hash(rest))
    content = json.dumps(document | {"hash": digest}, indent=1).encode() + b"\n"
    if rng.random() < 0.5:
        return content
    old, new = SPELLINGS[rng.integers(len(SPELLINGS))]
    parts = content.split(old)
    place = int(rng.integers(len(parts)))
    return old.join(parts[:place]) + (new if place else b"") + old.join(parts[place:])


def is_taken(path: Path) -> str | None:
    try:
        p = rldp.load(path)
    except rldp.RldpError:
        return None
    return p.fingerprint if isinstance(p, rldp.PublicProtocol) else None


def mutated_files(folder: Path, rng: np.random.Generator, names: list[str], n: int) -> list[Path]:
    """Accepted files with up to two changes each."""
    paths = []
    for i in range(n):
        content = VECTORS / "accept" / f"{names[i % len(names)]}.json"
        document = json.loads(content.read_text(encoding="utf-8"))
        document.pop("hash")
        for _ in range(rng.integers(3)):
            document = mutated(document, rng)
        paths.append(folder / f"{i}.json")
        paths[-1].write_bytes(spelled(document, rng))
    return paths


@pytest.mark.slow
@needs_node
def test_the_client_proves_what_python_proves_of_mutated_whole_files(tmp_path):
    rng = np.random.default_rng(21)
    sets = ("all", "known", "chi-square", "renyi", "kl", "total-variation", "polytope")
    channels = ("dense", "independent", "choice", "unary", "cells")
    names = [f"knows-{F}-{channel}" for F, channel in itertools.product(sets, channels)]
    names += ["knows-every-part", "knows-one-sided", "knows-unseen", "knows-beside-given-u"]
    names += [f"layers-{channel}" for channel in channels] + ["whole-kl-finite-dense"]
    paths = mutated_files(tmp_path, rng, names, 900)
    theirs = run_client(tmp_path, "prove", [*map(str, paths)])
    ours = [is_proved(path) for path in paths]
    assert 150 < sum(proved is not None for proved in ours) < 750
    for path, proved, outcome in zip(paths, ours, theirs, strict=True):
        if proved is None:
            assert outcome.startswith("ProtocolError: "), path.read_bytes()
        else:
            assert outcome == proved, path.read_bytes()


def is_proved(path: Path) -> str | None:
    try:
        p = rldp.load(path)
    except rldp.RldpError:
        return None
    return p.fingerprint if p.is_proved else None


@pytest.mark.slow
@needs_node
def test_both_readers_agree_on_two_thousand_mutated_files(tmp_path):
    rng = np.random.default_rng(20)
    names = ["dense", "independent", "choice", "unary", "cells", "sets", "signed", "odd-texts"]
    names = [f"public-{name}" for name in names]
    layers = ("dense", "every-set", "exempt", "integers", "one-sided", "nested")
    names += [f"layers-public-{name}" for name in layers]
    names += [f"knows-public-{name}" for name in ("every-part", "one-sided", "beside-given-u")]
    paths = mutated_files(tmp_path, rng, names, 2000)
    ours, theirs = [is_taken(path) for path in paths], client(tmp_path, paths)
    assert 400 < sum(taken is not None for taken in ours) < 1600
    for path, taken, outcome in zip(paths, ours, theirs, strict=True):
        if taken is None:
            assert outcome.startswith("ProtocolError: "), path.read_bytes()
        else:
            assert outcome == taken, path.read_bytes()
