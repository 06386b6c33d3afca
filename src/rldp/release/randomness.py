"""Where the words come from: the secure source, a secret key, or a simulation.

Every source gives words of 64 bits, the first byte being the lowest. All three are AES-256:

- `SecureWords` is AES-256 in counter mode, counter block 0, 1, ... as 16 bytes with the highest
  first, under a key of 32 bytes that the operating system draws for this one call.
- `Simulation` is the same stream under the key SHA-256("rldp simulation " + seed in decimal).
- `KeyedWords` gives a record the words 2q and 2q + 1 from AES-256-CMAC(K, message), first half
  first, where the message is q as 4 bytes, highest first, and the record's id in UTF-8, and
  K = HMAC-SHA256(key, "rldp keyed release " + the protocol's fingerprint, 64 hexadecimal digits).
  An id that is an integer is its decimal text, so 7 and "7" are the same person.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import struct
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rldp.errors import ParameterError
from rldp.release.alias import Words

_KEY_BYTES = 32
_LEAST_KEY_BYTES = 16
_ZEROS = bytes(1 << 18)
_AES_BLOCK = 16


class WordSource(Protocol):
    """Words for records in their order."""

    def words(self, first: int, n: int, each: int) -> Words:
        """Words of shape (n, each) for the records first, first + 1, ..."""


class _CounterStream:
    """AES-256 in counter mode as a stream of words."""

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        self._stream = Cipher(algorithms.AES(key), modes.CTR(bytes(_AES_BLOCK))).encryptor()
        self._buffer = np.empty(0, dtype=np.uint8)

    def words(self, first: int, n: int, each: int) -> Words:  # noqa: ARG002
        """The next words; the array is overwritten by the next call."""
        size = 8 * n * each
        if self._buffer.size < size:
            self._buffer = np.empty(size, dtype=np.uint8)
        filled = self._buffer[:size]
        for start in range(0, size, len(_ZEROS)):
            part = filled.data[start : start + len(_ZEROS)]
            self._stream.update_into(memoryview(_ZEROS)[: len(part)], part)
        return filled.view("<u8").astype(np.uint64, copy=False).reshape(n, each)


class SecureWords:
    """Words from a key that is drawn for one call and gone with it.

    A process that forks during the call could draw the same words twice, so a source refuses to
    work in another process than its own.
    """

    def __init__(self) -> None:
        """Draw a key from the operating system."""
        self._process = os.getpid()
        self._stream = _CounterStream(os.urandom(_KEY_BYTES))

    def words(self, first: int, n: int, each: int) -> Words:
        """The next words."""
        if os.getpid() != self._process:
            raise ParameterError("Expected one process per release; release again after a fork.")
        return self._stream.words(first, n, each)


class Simulation:
    """Words that anyone who knows the seed can repeat: for experiments, never for people's data.

    A release with the same object goes on where the last one stopped.

    >>> Simulation(7).words(0, 1, 1) == Simulation(7).words(0, 1, 1)
    array([[ True]])
    """

    def __init__(self, seed: Any) -> None:
        """Start the stream of a seed, any non-negative integer."""
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise ParameterError(f"Expected a non-negative integer as seed, got {seed!r}.")
        self.seed = int(seed)
        self._stream = _CounterStream(hashlib.sha256(f"rldp simulation {seed}".encode()).digest())

    def words(self, first: int, n: int, each: int) -> Words:
        """The next words."""
        return self._stream.words(first, n, each)

    def __repr__(self) -> str:
        """The seed."""
        return f"Simulation({self.seed})"


class KeyedWords:
    """Words that a secret key, the protocol and a record's id determine: one draw per person."""

    def __init__(self, key: bytes, fingerprint: str, ids: NDArray[np.uint8], ends: Any) -> None:
        """Take the ids as bytes one after the other, and where each of them ends."""
        self._key = hmac.digest(
            checked_key(key), f"rldp keyed release {fingerprint}".encode(), "sha256"
        )
        self._bytes = ids
        self._ends = np.asarray(ends, dtype=np.int64)

    def words(self, first: int, n: int, each: int) -> Words:
        """The words of the records first, first + 1, ..., first + n - 1."""
        ends = self._ends[first : first + n]
        starts = np.concatenate([self._ends[first - 1 : first] if first else [0], ends[:-1]])
        sizes = ends - starts
        words = np.empty((n, each + each % 2), dtype=np.uint64)
        for size in np.unique(sizes):
            places = np.flatnonzero(sizes == size)
            ids = self._bytes[starts[places][:, None] + np.arange(size)]
            for q in range(words.shape[1] // 2):
                number = np.frombuffer(struct.pack(">I", q), dtype=np.uint8)
                message = np.concatenate([np.tile(number, (len(ids), 1)), ids], axis=1)
                tags = cmac(self._key, message).view("<u8")
                words[places, 2 * q : 2 * q + 2] = tags
        return words[:, :each]


def cmac(key: bytes, messages: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """AES-256-CMAC (NIST SP 800-38B) of messages of one length, shape (n, bytes) → (n, 16)."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    encrypt = Cipher(algorithms.AES(key), modes.ECB()).encryptor().update
    n, size = messages.shape
    n_blocks = max(1, -(-size // _AES_BLOCK))
    is_whole = size == n_blocks * _AES_BLOCK
    padded = np.zeros((n, n_blocks * _AES_BLOCK), dtype=np.uint8)
    padded[:, :size] = messages
    if not is_whole:
        padded[:, size] = 0x80
    subkey = _doubled(encrypt(bytes(_AES_BLOCK)))
    padded[:, -_AES_BLOCK:] ^= np.frombuffer(
        subkey if is_whole else _doubled(subkey), dtype=np.uint8
    )
    state = np.zeros((n, _AES_BLOCK), dtype=np.uint8)
    for i in range(n_blocks):
        state ^= padded[:, i * _AES_BLOCK : (i + 1) * _AES_BLOCK]
        state = np.frombuffer(bytearray(encrypt(state.data)), dtype=np.uint8).reshape(n, -1)
    return state


def _doubled(block: bytes) -> bytes:
    """Twice a block in the field of 2^128 elements, as CMAC's subkeys are made."""
    number = int.from_bytes(block, "big") << 1
    if number >> 128:
        number ^= (1 << 128) | 0x87
    return number.to_bytes(_AES_BLOCK, "big")


def new_key() -> bytes:
    """A new secret key of 32 bytes for keyed releases; keep it as you keep the records."""
    return secrets.token_bytes(_KEY_BYTES)


def checked_key(key: object) -> bytes:
    """A key as bytes, long enough to be a secret."""
    if not isinstance(key, bytes | bytearray):
        raise ParameterError(
            f"Expected key as bytes, got {type(key).__name__}; make one with rldp.new_key()."
        )
    if len(key) < _LEAST_KEY_BYTES:
        raise ParameterError(
            f"Expected a key of at least {_LEAST_KEY_BYTES} bytes, got {len(key)}; "
            f"make one with rldp.new_key()."
        )
    return bytes(key)


@dataclass(frozen=True)
class Randomness:
    """Which source a release draws from: the secure one unless a key or a simulation is given."""

    rng: Simulation | None = None
    key: bytes | None = None

    def __post_init__(self) -> None:
        """Refuse what is no secure source, no key and no simulation."""
        if self.rng is not None and not isinstance(self.rng, Simulation):
            raise ParameterError(
                f"Expected rng=rldp.Simulation(seed), or no rng for secure randomness, got "
                f"{type(self.rng).__name__}; other generators are not fit to protect anyone."
            )
        if self.key is not None:
            checked_key(self.key)
            if self.rng is not None:
                raise ParameterError("Expected either a key or a simulation, got both.")

    @property
    def kind(self) -> str:
        """Secure, keyed or simulation."""
        if self.key is not None:
            return "keyed"
        return "secure" if self.rng is None else "simulation"

    def source(self, fingerprint: str, ids: Any = None) -> WordSource:
        """Words for one release; `ids` is Arrow text, a key needs them."""
        if self.key is not None:
            return KeyedWords(self.key, fingerprint, *_id_bytes(ids))
        return SecureWords() if self.rng is None else self.rng

    def note(self, name: str, epsilon: float, fingerprint: str) -> dict[str, Any]:
        """What the metadata of a release say of it."""
        note = {"protocol": name, "epsilon": epsilon, "fingerprint": fingerprint}
        seed = {} if self.rng is None else {"seed": self.rng.seed}
        return {**note, "randomness": self.kind, **seed}


def _id_bytes(texts: Any) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The bytes of all ids one after the other, and where each ends."""
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    if data is None or not len(texts):
        return np.zeros(0, dtype=np.uint8), np.zeros(len(texts), dtype=np.int64)
    return np.frombuffer(data, dtype=np.uint8)[bounds[0] : bounds[-1]], bounds[1:] - bounds[0]
