"""Files that are no protocol at all: torn, nested, doubled, in the wrong code, pipes and loops."""

from __future__ import annotations

import json
import os
import random
import tracemalloc
from pathlib import Path

import pytest

import rldp
from rldp.protocol.documents import document_hash
from tests.protocol.test_hostile_files import GOOD, refusal

DOCUMENT = GOOD["choice"]
WHOLE = DOCUMENT | {"hash": document_hash(DOCUMENT)}
TEXT = json.dumps(WHOLE)


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "odd.json"


def both_refuse(path: Path) -> str:
    refusal(path, rldp.verify)
    return refusal(path)


# --- the hash ------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, "", 0, "0" * 64, WHOLE["hash"].upper(), [WHOLE["hash"]]])
def test_a_wrong_hash_is_refused(value, path):
    path.write_text(json.dumps(DOCUMENT | {"hash": value}))
    assert "hash" in both_refuse(path)


def test_a_missing_hash_is_refused(path):
    path.write_text(json.dumps(DOCUMENT))
    assert "hash" in both_refuse(path)


def test_a_change_anywhere_breaks_thedocument_hash(path):
    """One digit of each number or one letter of each word, wherever it stands."""
    for i in range(0, len(TEXT), 7):
        if TEXT[i].isalnum():
            path.write_text(TEXT[:i] + ("7" if TEXT[i] != "7" else "8") + TEXT[i + 1 :])
            both_refuse(path)


# --- texts ---------------------------------------------------------------------------------------


def test_a_torn_file_is_refused_wherever_it_was_torn(path):
    for length in [*range(0, len(TEXT), 61), len(TEXT) - 1]:
        path.write_text(TEXT[:length])
        assert "not valid JSON" in both_refuse(path)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b" \n",
        b"{",
        b"null",
        b"3",
        b'"rldp-protocol"',
        b"[]",
        b"{}",
        TEXT.encode() * 2,
        TEXT.encode() + b"x",
        b"// a comment\n" + TEXT.encode(),
        b"\xef\xbb\xbf" + TEXT.encode(),
        TEXT.encode("utf-16"),
        TEXT.encode("utf-32"),
        TEXT.replace("low", "lów").encode("latin-1"),
        TEXT.replace("low", "lo\0w").encode(),
        TEXT.replace('"', "'").encode(),
        b"\0" * 1000,
        b"\x80\x04\x95K\x00.",
        b"\x1f\x8b\x08\x00",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"a": 1, "a": 2}',
        TEXT.replace('"version": 1', '"version": 1, "version": 1').encode(),
        TEXT.replace('"kind": "choice"', '"kind": "choice", "kind": "choice"').encode(),
        TEXT.replace('"low"', '"\\ud800"').encode(),
    ],
    ids=lambda content: repr(content[:16]),
)
def test_what_is_no_protocol_is_refused(content, path):
    path.write_bytes(content)
    both_refuse(path)


@pytest.mark.parametrize("depth", [50, 300, *range(600, 1001, 20), 5000])
def test_nesting_that_only_the_hash_would_see_is_refused(depth, path):
    """At every depth, also where JSON can just be read but no longer be written."""
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        nested = opening * depth + ("1" if closing == "}" else "") + closing * depth
        path.write_text(TEXT[:-1] + f', "extra": {nested}}}')
        refusal(path)


def test_deep_entries_with_the_right_hash_are_refused(path):
    for key in ("extra", "schema", "parameters", "channel", "uncertainty", "certificate"):
        nested: object = []
        for _ in range(400):
            nested = [nested]
        document = DOCUMENT | {key: nested}
        path.write_text(json.dumps(document | {"hash": document_hash(document)}))
        refusal(path)


def test_a_key_that_stands_twice_among_many_is_found(path):
    """One pass: comparing each of 200,000 keys with all others would take hours."""
    keys = ", ".join(f'"k{i}": 0' for i in range(200_000))
    path.write_text(f'{{{keys}, "{"x" * 10_000}": 1, "{"x" * 10_000}": 2}}')
    assert "occurs twice" in refusal(path)


@pytest.mark.slow
def test_random_damage_is_refused_or_harmless(path):
    """A thousand files with a valid hash but for a change: what loads is proved again."""
    chance, loaded = random.Random(3), 0
    for i in range(1000):
        text = json.dumps(GOOD[chance.choice(list(GOOD))])
        at, length = chance.randrange(len(text)), chance.choice([0, 1, 1, 3, 40])
        new = chance.choice(["", "0", "9", "-", '"', "[]", "{}", "null", "true", "1e9", ", ", "x"])
        try:
            document = json.loads(text[:at] + new + text[at + length :])
        except ValueError:
            continue
        path.write_text(json.dumps(document | {"hash": document_hash(document)}))
        try:
            p = rldp.load(path)
        except (rldp.FileError, rldp.CertificateError) as error:
            assert "\n" not in str(error), i  # noqa: PT017  # some load
        else:
            loaded += 1
            if isinstance(p, rldp.ReleaseProtocol):
                rldp.verify(p)
    assert 0 < loaded < 200


# --- what is no file -----------------------------------------------------------------------------


def test_a_directory_is_refused(tmp_path):
    assert "not a regular file" in both_refuse(tmp_path)


def test_a_pipe_or_a_device_is_refused_before_anyone_waits_for_it(path):
    if hasattr(os, "mkfifo"):
        os.mkfifo(path)
        assert "not a regular file" in both_refuse(path)
    for device in filter(Path.exists, map(Path, ("/dev/zero", "/dev/null", "/dev/full"))):
        assert "not a regular file" in both_refuse(device)


def test_a_loop_of_links_is_refused(path):
    path.symlink_to(path)
    both_refuse(path)


def test_a_file_that_is_not_there_is_named(path):
    assert "No such file" in both_refuse(path)
    path.write_text(TEXT)
    both_refuse(path / "below.json")


def test_a_name_that_no_system_could_have_is_refused():
    for name, shown in (("nul\0.json", r"'nul\x00.json'"), ("long" * 100, "'longlong")):
        with pytest.raises(rldp.FileError) as caught:
            rldp.load(name)
        assert str(caught.value).startswith(shown)
        assert str(caught.value).isprintable()


def test_a_file_that_may_not_be_read_is_refused(path, monkeypatch):
    """As the system says so to anyone but its administrator."""
    path.write_text(TEXT)

    def denied(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    assert "Permission denied" in both_refuse(path)


@pytest.mark.parametrize("size", [300 * 10**6, 2**40])
def test_a_file_too_large_is_not_read(size, path):
    with path.open("wb") as file:
        file.truncate(size)  # sparse: no disk is used
    tracemalloc.start()
    message = both_refuse(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "more than a protocol can have" in message
    assert peak < 2**20


def test_links_to_good_files_are_followed(path, tmp_path):
    path.write_text(TEXT)
    (tmp_path / "link.json").symlink_to(path)
    assert rldp.load(tmp_path / "link.json").name == "grr-cr"
    assert rldp.verify(tmp_path / "link.json").epsilon == 1
