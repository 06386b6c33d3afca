"""Random words of 64 bits: from a secure source, a secret key, or a simulation; and keys on disk.

The first byte of a word is its lowest. All three sources are AES-256:

- `SecureWords` is AES-256 in counter mode, counter block 2, 3, ... as 16 bytes with the highest
  first, under a key of 32 bytes that the operating system draws for this one call, and a new key
  after 2^32 words. This is how AES-GCM encrypts zeros under a nonce of zeros: processors have
  instructions for it that make it twice as fast as plain counter mode.
- `Simulation` is the stream from counter block 0 under the key SHA-256("rldp simulation " + seed
  in decimal).
- `KeyedWords` gives a record the words 2q and 2q + 1 from AES-256-CMAC(K, message), first half
  first, where the message is q as 4 bytes, highest first, and the record's id in UTF-8, and
  K = HMAC-SHA256(key, "rldp keyed release " + the protocol's fingerprint, 64 hexadecimal digits).
  An id that is an integer is its decimal text, so 7 and "7" are the same person. Words per record
  instead of per person have "rldp keyed release per record " in K, and in the message the codes s
  and u, 4 bytes each, highest first, between q and the id.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import struct
import threading
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from rldp._types import Words
from rldp.checks import is_one_of, shown
from rldp.errors import FileError, ParameterError, RldpError
from rldp.io.atomic_files import read_secret, write_secret
from rldp.release.cmac import Cmac, RecordIds, record_ids

Per = Literal["person", "record"]

_KEY_BYTES = 32
_LEAST_KEY_BYTES = 16
_LEAST_DIFFERENT = 8  # 16 random bytes have fewer only once in 10^12 keys
_PURPOSES = {"person": "rldp keyed release ", "record": "rldp keyed release per record "}
_ZEROS = bytes(1 << 18)
_AES_BLOCK = 16
_NONCE_BYTES = 12
WORDS_OF_KEY = 2**32  # half of what AES-GCM allows
_KEYED = 8192  # ids at a time, so that their blocks stay in the cache


class WordSource(Protocol):
    """Words for records in their order."""

    def words(self, first: int, n: int, each: int) -> Words:
        """Words of shape (n, each) for the records first, first + 1, ..."""


class _CounterStream:
    """AES-256 in counter mode as a stream of words, from block 0 or, where it is fast, block 2."""

    def __init__(self, key: bytes, *, is_fast: bool) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        mode = modes.GCM(bytes(_NONCE_BYTES)) if is_fast else modes.CTR(bytes(_AES_BLOCK))
        self._stream = Cipher(algorithms.AES(key), mode).encryptor()
        self._buffer = np.empty(0, dtype=np.uint8)

    def words(self, first: int, n: int, each: int) -> Words:  # noqa: ARG002  # fresh ones for any record
        """The next words; the array is overwritten by the next call."""
        size = 8 * n * each
        if self._buffer.size < size:
            self._buffer = np.empty(size, dtype=np.uint8)
        filled = self._buffer[:size]
        for start in range(0, size, len(_ZEROS)):
            part = filled.data[start : start + len(_ZEROS)]
            if self._stream.update_into(memoryview(_ZEROS)[: len(part)], part) != len(part):
                raise RldpError("The cipher gave fewer words than it should: nothing is released.")
        return filled.view("<u8").astype(np.uint64, copy=False).reshape(n, each)


class _SystemStream:
    """Words that the operating system draws itself, several times slower than AES in user space."""

    def words(self, first: int, n: int, each: int) -> Words:  # noqa: ARG002  # fresh ones for any record
        """The next words."""
        drawn = np.frombuffer(os.urandom(8 * n * each), dtype="<u8")
        return drawn.astype(np.uint64).reshape(n, each)


class SecureWords:
    """Words from a key that is drawn for one call and then forgotten.

    Where no AES is installed, on a client that has NumPy alone, the operating system draws each of
    them: the same law, and no key at all.

    A process that forks during the call could draw the same words twice. So a source refuses to
    work in another process.
    """

    def __init__(self) -> None:
        """Draw a key from the operating system."""
        self._process = os.getpid()
        self._renew()

    def _renew(self) -> None:
        try:
            self._stream: WordSource = _CounterStream(os.urandom(_KEY_BYTES), is_fast=True)
        except ImportError:
            self._stream = _SystemStream()
        self._left = WORDS_OF_KEY

    def words(self, first: int, n: int, each: int) -> Words:
        """The next words."""
        if os.getpid() != self._process:
            raise ParameterError("Expected one process per release; release again after a fork.")
        if n * each > self._left:
            self._renew()
        self._left -= n * each
        return self._stream.words(first, n, each)


class Simulation:
    """Words that anyone who knows the seed can repeat: for experiments, never for real data.

    A second release with the same object continues the stream. Threads may share it: no word is
    used twice, but which thread gets which words is not repeatable.

    >>> Simulation(7).words(0, 1, 1) == Simulation(7).words(0, 1, 1)
    array([[ True]])
    """

    def __init__(self, seed: Any) -> None:
        """Start the stream of a seed, any non-negative integer."""
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise ParameterError(
                f"Expected a non-negative integer as seed, got {seed!r}.", argument="rng"
            )
        self.seed = int(seed)
        self._lock = threading.Lock()
        self._stream = _CounterStream(
            hashlib.sha256(f"rldp simulation {seed}".encode()).digest(), is_fast=False
        )

    def words(self, first: int, n: int, each: int) -> Words:
        """The next words."""
        with self._lock:
            return self._stream.words(first, n, each).copy()  # another thread may draw meanwhile

    def __repr__(self) -> str:
        """The seed."""
        return f"Simulation({self.seed})"


class KeyedWords:
    """Words determined by a secret key, the protocol and a person's id: one draw per person.

    With `cells` they depend on the record too: one draw per person and record.
    """

    def __init__(
        self,
        key: bytes,
        fingerprint: str,
        ids: RecordIds,
        cells: NDArray[np.uint8] | None = None,
    ) -> None:
        """Take the ids, and the bytes of the cells."""
        purpose = _PURPOSES["person" if cells is None else "record"]
        derived = hmac.digest(checked_key(key), f"{purpose}{fingerprint}".encode(), "sha256")
        self._cmac = Cmac(derived)
        self._ids, self._cells = ids, cells

    def words(self, first: int, n: int, each: int) -> Words:
        """The words of the records first, first + 1, ..., first + n - 1."""
        words = np.empty((n, each + each % 2), dtype=np.uint64)
        for start in range(0, n, _KEYED):
            part = slice(start, min(start + _KEYED, n))
            texts = self._ids.texts(first + start, part.stop - start)
            cells = None
            if self._cells is not None:
                cells = self._cells[first + start : first + part.stop]
            for q in range(words.shape[1] // 2):
                tags = self._cmac.tags(texts, struct.pack(">I", q), cells)
                words[part, 2 * q : 2 * q + 2] = tags
        return words[:, :each]


def new_key() -> bytes:
    """A new secret key of 32 bytes for keyed releases; protect it as you protect the records."""
    return secrets.token_bytes(_KEY_BYTES)


def checked_key(key: object) -> bytes:
    """A key as bytes, long enough and not obviously guessable."""
    if not isinstance(key, bytes | bytearray):
        fault = f"key as bytes, got {type(key).__name__}"
    elif len(key) < _LEAST_KEY_BYTES:
        fault = f"a key of at least {_LEAST_KEY_BYTES} bytes, got {len(key)}"
    elif len(set(key)) < _LEAST_DIFFERENT:
        fault = (
            f"a random key, this one has only {len(set(key))} different bytes and can be guessed"
        )
    else:
        return bytes(key)
    raise ParameterError(f"Expected {fault}; make one with rldp.new_key().", argument="key")


def write_new_key(path: str | os.PathLike[str]) -> None:
    """Write a new key to a file that is not there yet, readable by its owner alone."""
    reason = "a key that is replaced would give everyone a second report"
    write_secret(path, new_key().hex(), reason)


def read_key(path: str | os.PathLike[str]) -> bytes:
    """The key in a file; refused if others than its owner may read or change it."""
    try:
        key = bytes.fromhex(read_secret(path))
    except ValueError:
        key = b""
    try:
        return checked_key(key)
    except ValueError:
        wanted = "of many different bytes" if len(key) >= 16 else "at least 32 hexadecimal digits"
        raise FileError(
            f"Expected a key in {path}, {wanted}; make one with rldp new-key."
        ) from None


def check_ids_with_key(record_id: object, key: object) -> None:
    """Refuse ids without a key, and a key without ids."""
    if (record_id is None) != (key is None):
        raise ParameterError(
            "Expected ids and a key together, got only one of them.",
            argument="record_id" if record_id is None else "key",
        )


@dataclass(frozen=True)
class Randomness:
    """Which source a release draws from: the secure one unless a key or a simulation is given."""

    rng: Simulation | None = None
    key: bytes | None = field(default=None, repr=False)  # so that no traceback shows it
    per: Per = "person"

    def __post_init__(self) -> None:
        """Refuse other generators, weak keys, and combinations that make no sense."""
        if self.rng is not None and not isinstance(self.rng, Simulation):
            raise ParameterError(
                f"Expected rng as rldp.Simulation(seed), or none for secure randomness, got "
                f"{type(self.rng).__name__}; no other generator is accepted.",
                argument="rng",
            )
        if not is_one_of(self.per, get_args(Per)):
            raise ParameterError(
                f"Expected per as 'person' or 'record', got {shown(self.per)}.", argument="per"
            )
        if self.per == "record" and self.key is None:
            raise ParameterError(
                "Expected ids and a key for new random bits per record, got no key.",
                argument="key",
            )
        if self.key is not None:
            checked_key(self.key)
            if self.rng is not None:
                raise ParameterError(
                    "Expected either a key or a simulation, got both.", argument="rng"
                )

    @property
    def kind(self) -> str:
        """Secure, keyed or simulation."""
        if self.key is not None:
            return "keyed"
        return "secure" if self.rng is None else "simulation"

    def source(self, fingerprint: str, ids: Any = None, s: Any = None, u: Any = None) -> WordSource:
        """Words for one release; a key needs the ids, Arrow text or integers, and the codes."""
        if self.key is not None:
            cells = _cell_bytes(s, u) if self.per == "record" else None
            return KeyedWords(self.key, fingerprint, record_ids(ids), cells)
        return SecureWords() if self.rng is None else self.rng

    def note(self, name: str, epsilon: float, fingerprint: str) -> dict[str, Any]:
        """The metadata of a release."""
        note = {"protocol": name, "epsilon": epsilon, "fingerprint": fingerprint}
        seed = {} if self.rng is None else {"seed": self.rng.seed}
        per = {} if self.key is None else {"per": self.per}
        return {**note, "randomness": self.kind, **per, **seed}


def _cell_bytes(s: Any, u: Any) -> NDArray[np.uint8]:
    """The codes of each record, 4 bytes each with the highest first."""
    codes = np.stack([s, u], axis=1).astype(">u4")
    return codes.view(np.uint8).reshape(len(codes), 8)
