"""Where words come from: the secure source, a key, a simulation; and nothing else."""

from __future__ import annotations

import hashlib
import hmac
import os
import struct

import numpy as np
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.cmac import CMAC
from hypothesis import example, given
from hypothesis import strategies as st

import rldp
from rldp.errors import DataError, ParameterError
from rldp.release import randomness
from rldp.release.cmac import Cmac, IdTexts, record_ids
from rldp.release.randomness import Randomness, SecureWords, Simulation

KEY = bytes(range(32))


@pytest.fixture(scope="module")
def p() -> rldp.ReleaseProtocol:
    return rldp.design(rldp.ChiSquareSet(rldp.Table([[5, 3], [2, 6]])), 1.0, "srr")


@pytest.fixture(scope="module")
def sets() -> rldp.ReleaseProtocol:
    return rldp.design(rldp.ChiSquareSet(rldp.Table([[5, 3], [2, 6], [4, 4]])), 1.0, "ue-cr")


def test_a_simulation_is_aes_in_counter_mode_under_the_hash_of_its_seed() -> None:
    key = hashlib.sha256(b"rldp simulation 7").digest()
    stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update(bytes(8 * 12))
    expected = np.array(struct.unpack("<12Q", stream), dtype=np.uint64)
    simulation = Simulation(7)
    assert np.array_equal(simulation.words(0, 4, 2).ravel(), expected[:8])
    assert np.array_equal(simulation.words(0, 4, 1).ravel(), expected[8:])  # it goes on


def test_long_requests_are_one_stream() -> None:
    whole = Simulation(1).words(0, 100_000, 1).copy()
    simulation = Simulation(1)
    parts = [simulation.words(0, 40_000, 1).copy(), simulation.words(0, 60_000, 1).copy()]
    assert np.array_equal(whole, np.concatenate(parts))


def test_every_secure_source_has_its_own_key(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    true_urandom = os.urandom
    monkeypatch.setattr(randomness.os, "urandom", lambda n: (sizes.append(n), true_urandom(n))[1])
    first, second = SecureWords().words(0, 1000, 1).copy(), SecureWords().words(0, 1000, 1).copy()
    assert sizes == [32, 32]
    assert not np.any(first == second)


@pytest.fixture
def drawn_keys(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    keys = []
    true_urandom = os.urandom
    monkeypatch.setattr(
        randomness.os, "urandom", lambda n: (keys.append(true_urandom(n)), keys[-1])[1]
    )
    return keys


def counter_words(key: bytes, block: int, n: int) -> np.ndarray:
    """Block by block, as the definition says, with no mode of a cipher but the plain one."""
    one_block = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    blocks = [one_block.update((block + i).to_bytes(16, "big")) for i in range(n // 2)]
    return np.frombuffer(b"".join(blocks), dtype="<u8")


def test_secure_words_are_aes_in_counter_mode_from_block_2(drawn_keys) -> None:
    source = SecureWords()
    words = np.concatenate([source.words(0, n, 2).copy() for n in (3, 40_000, 5)]).ravel()
    assert np.array_equal(words, counter_words(drawn_keys[0], 2, words.size))
    assert not np.array_equal(words, counter_words(drawn_keys[0], 1, words.size))


def test_secure_words_have_a_new_key_before_the_counter_ends(drawn_keys, monkeypatch) -> None:
    monkeypatch.setattr(randomness, "WORDS_OF_KEY", 10)
    source = SecureWords()
    parts = [source.words(0, n, 1).copy().ravel() for n in (4, 6, 2, 8, 10)]
    assert len(drawn_keys) == len(set(drawn_keys)) == 3
    for key, found in zip(drawn_keys, (parts[:2], parts[2:4], parts[4:]), strict=True):
        assert np.array_equal(np.concatenate(found), counter_words(key, 2, 10))


def test_a_release_fails_where_the_system_has_no_randomness(p, monkeypatch) -> None:
    def broken(n: int) -> bytes:
        raise OSError(f"no {n} bytes")

    monkeypatch.setattr(randomness.os, "urandom", broken)
    with pytest.raises(OSError, match="no 32 bytes"):
        p.release(np.zeros((3, 2), dtype=int))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # the child only draws
def test_forked_processes_draw_different_reports(p) -> None:
    codes = np.zeros((2000, 2), dtype=int)
    p.release(codes)  # whatever could be inherited is there
    drawn = [_in_child(lambda: p.release(codes).astype(np.uint8).tobytes()) for _ in range(2)]
    drawn.append(p.release(codes).astype(np.uint8).tobytes())
    assert len(set(drawn)) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # the child only draws
def test_a_source_refuses_to_work_in_a_forked_process() -> None:
    source = SecureWords()

    def child() -> bytes:
        try:
            source.words(0, 1, 1)
        except ParameterError:
            return b"refused"
        return b"drawn"

    assert _in_child(child) == b"refused"


def _in_child(work) -> bytes:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, work())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        content = file.read()
    os.waitpid(child, 0)
    return content


@pytest.mark.parametrize(
    "rng", [7, np.random.default_rng(0), np.random.RandomState(0), "secure", True]
)
def test_other_generators_are_refused_with_what_to_use(p, rng) -> None:
    with pytest.raises(ParameterError, match=r"rldp\.Simulation\(seed\)"):
        p.release(np.zeros((3, 2), dtype=int), rng=rng)


@pytest.mark.parametrize("seed", [-1, 1.5, True, "7", None])
def test_seeds_are_non_negative_integers(seed) -> None:
    with pytest.raises(ParameterError, match="non-negative integer"):
        Simulation(seed)


@given(
    st.lists(st.binary(max_size=70), min_size=1, max_size=8)
    | st.lists(st.binary(min_size=36, max_size=36), min_size=1, max_size=4),
    st.binary(min_size=1, max_size=7),
    st.integers(0, 9),
    st.binary(min_size=32, max_size=32),
)
def test_many_macs_at_once_are_the_macs_one_by_one(ends, head, middle, key) -> None:
    middles = [bytes([number] * middle) for number in range(len(ends))]
    bounds = np.cumsum([0, *map(len, ends)])
    texts = IdTexts(np.frombuffer(b"".join(ends), np.uint8), bounds[:-1], np.diff(bounds))
    between = np.frombuffer(b"".join(middles), np.uint8).reshape(len(ends), middle)
    tags = Cmac(key).tags(texts, head, between if middle else None)
    if len(set(map(len, ends))) == 1 and ends[0]:
        regular = texts._replace(step=len(ends[0]))
        assert np.array_equal(tags, Cmac(key).tags(regular, head, between if middle else None))
    for middle_, end, tag in zip(middles, ends, tags, strict=True):
        expected = CMAC(algorithms.AES(key))
        expected.update(head + middle_ + end)
        assert tag.astype("<u8").tobytes() == expected.finalize()


@given(st.lists(st.integers(0, 2**63 - 1) | st.integers(0, 2000), min_size=1, max_size=9))
@example([10**k for k in range(19)])
@example([10**k - 1 for k in range(1, 19)])
@example([99_999_999, 0])
def test_integers_are_their_decimal_texts(values) -> None:
    for kind in (pa.int64(), pa.uint64()):
        data, starts, sizes, _ = record_ids(pa.array(values, kind)).texts(0, len(values))
        found = [data[a : a + n].tobytes() for a, n in zip(starts, sizes, strict=True)]
        assert found == [str(value).encode() for value in values]


def test_eight_digits_at_once_are_right_for_every_number_of_four_digits() -> None:
    values = np.arange(10_000, dtype=np.int64)
    for numbers in (values, values * 10_000 + values[::-1]):
        data, starts, sizes, _ = record_ids(pa.array(numbers)).texts(0, len(numbers))
        found = [data[a : a + n].tobytes() for a, n in zip(starts, sizes, strict=True)]
        assert found == [str(value).encode() for value in numbers.tolist()]


def test_negative_and_large_integers_are_ids_too() -> None:
    for values, kind in (([-5, 7], pa.int64()), ([2**64 - 1, 10**19], pa.uint64())):
        numbers = Randomness(key=KEY).source("x", pa.array(values, kind)).words(0, 2, 1)
        texts = pa.array(map(str, values), pa.large_string())
        assert np.array_equal(numbers, Randomness(key=KEY).source("x", texts).words(0, 2, 1))


def keyed_word(key: bytes, fingerprint: str, name: str, number: int) -> int:
    """One word, straight from the definition."""
    inner = hmac.digest(key, b"rldp keyed release " + fingerprint.encode(), "sha256")
    mac = CMAC(algorithms.AES(inner))
    mac.update(struct.pack(">I", number // 2) + name.encode())
    return struct.unpack("<2Q", mac.finalize())[number % 2]


ids = st.lists(st.text(min_size=1, max_size=40), min_size=1, max_size=8)


@given(ids, st.binary(min_size=16, max_size=80).map(lambda end: KEY + end), st.integers(1, 5))
def test_keyed_words_are_what_the_definition_says(names, key, each) -> None:
    source = Randomness(key=key).source("ab" * 32, pa.array(names, pa.large_string()))
    words = source.words(0, len(names), each)
    expected = [[keyed_word(key, "ab" * 32, name, b) for b in range(each)] for name in names]
    assert words.tolist() == expected
    if len(names) > 1:  # the words of a record do not depend on where its batch begins
        assert source.words(1, len(names) - 1, each).tolist() == expected[1:]


def test_ids_of_a_sliced_array_are_read_from_the_right_place() -> None:
    whole = pa.array(["a", "bb", "ccc", "d" * 40], pa.large_string())
    words = Randomness(key=KEY).source("x", whole).words(0, 4, 3)
    assert np.array_equal(Randomness(key=KEY).source("x", whole[2:]).words(0, 2, 3), words[2:])


@pytest.mark.parametrize("protocol", ["p", "sets"])
def test_a_keyed_release_gives_everyone_the_same_report_again(protocol, request) -> None:
    p = request.getfixturevalue(protocol)
    rng = np.random.default_rng(0)
    names = rng.permutation(5000)
    codes = np.stack([names % p.schema.n_s, names % 2], axis=1)
    reports = p.release(codes, record_id=names, key=KEY)
    again = p.public().release(codes, record_id=names, key=KEY)
    assert np.array_equal(reports, again)
    order = rng.permutation(5000)
    assert np.array_equal(p.release(codes[order], record_id=names[order], key=KEY), reports[order])
    texts = [str(name) for name in names]
    assert np.array_equal(p.release(codes, record_id=texts, key=KEY), reports)
    assert not np.array_equal(p.release(codes, record_id=names, key=KEY[::-1]), reports)
    assert not np.array_equal(p.release(codes, record_id=names + 1, key=KEY), reports)


def test_another_protocol_draws_other_words(p) -> None:
    q = rldp.design(p.uncertainty, 1.0, "grr")
    names = pa.array([str(i) for i in range(100)], pa.large_string())
    first = Randomness(key=KEY).source(p.fingerprint, names).words(0, 100, 1)
    second = Randomness(key=KEY).source(q.fingerprint, names).words(0, 100, 1)
    assert not np.any(first == second)


def test_the_fingerprint_is_the_hash_of_the_public_file(p, tmp_path) -> None:
    p.public().save(tmp_path / "public.rldp.json")
    assert f'"hash": "{p.fingerprint}"' in (tmp_path / "public.rldp.json").read_text()
    assert rldp.load(tmp_path / "public.rldp.json").fingerprint == p.fingerprint


@pytest.mark.parametrize(
    ("key", "message"),
    [("secret" * 10, "as bytes"), (b"short", "at least 16 bytes"), (7, "as bytes")],
)
def test_keys_are_long_and_bytes(p, key, message) -> None:
    with pytest.raises(ParameterError, match=message):
        p.release(np.zeros((1, 2), dtype=int), record_id=[1], key=key)


def test_a_key_and_ids_come_together_and_without_a_simulation(p) -> None:
    codes = np.zeros((2, 2), dtype=int)
    with pytest.raises(ParameterError, match="ids and a key together"):
        p.release(codes, record_id=[1, 2])
    with pytest.raises(ParameterError, match="ids and a key together"):
        p.release(codes, key=KEY)
    with pytest.raises(ParameterError, match="either a key or a simulation"):
        p.release(codes, record_id=[1, 2], key=KEY, rng=Simulation(1))


@pytest.mark.parametrize(
    "names", [[1], [1, 2, 3], [1, None], [1, ""], [1, 2.5], [1, True], "ab", [b"a", b"b"]]
)
def test_bad_ids_are_refused(p, names) -> None:
    with pytest.raises(DataError, match="ids"):
        p.release(np.zeros((2, 2), dtype=int), record_id=names, key=KEY)


def test_new_keys_are_secret_and_new() -> None:
    keys = {rldp.new_key() for _ in range(100)}
    assert len(keys) == 100
    assert {len(key) for key in keys} == {32}
