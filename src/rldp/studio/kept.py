"""What is held in memory: the entries that were used last, up to a number and a total size."""

from __future__ import annotations

import threading
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class Kept(Generic[Key, Value]):
    """A mapping that forgets what was not used for the longest time.

    Args:
        most: entries to keep.
        most_bytes: the most that all of them may weigh together; the newest is always kept.

    >>> kept = Kept[str, int](2)
    >>> for name in "abc":
    ...     kept.put(name, ord(name))
    >>> kept.find("a"), kept.find("c"), len(kept)
    (None, 99, 2)
    """

    def __init__(self, most: int, most_bytes: int | None = None) -> None:
        """Start with nothing."""
        self.most, self.most_bytes = most, most_bytes
        self._entries: dict[Key, tuple[Value, int]] = {}
        self._lock = threading.Lock()

    def put(self, key: Key, value: Value, weight: int = 0) -> None:
        """Keep a value, and forget the oldest where that is too much."""
        with self._lock:
            self._entries.pop(key, None)
            self._entries[key] = (value, weight)
            while len(self._entries) > 1 and self._is_too_much():
                del self._entries[next(iter(self._entries))]

    def find(self, key: Key) -> Value | None:
        """The value of a key, which counts as used now; None if it is not held."""
        with self._lock:
            if key not in self._entries:
                return None
            self._entries[key] = self._entries.pop(key)
            return self._entries[key][0]

    def drop(self, key: Key) -> None:
        """Forget one entry."""
        with self._lock:
            self._entries.pop(key, None)

    def values(self) -> list[Value]:
        """All that is held, the latest in use last."""
        with self._lock:
            return [value for value, _ in self._entries.values()]

    @property
    def bytes(self) -> int:
        """What all entries weigh together."""
        with self._lock:
            return self._weight()

    def __len__(self) -> int:
        """How many entries are held."""
        return len(self._entries)

    def __contains__(self, key: Key) -> bool:
        """Whether a key is held; does not count as use."""
        return key in self._entries

    def _is_too_much(self) -> bool:
        is_heavy = self.most_bytes is not None and self._weight() > self.most_bytes
        return len(self._entries) > self.most or is_heavy

    def _weight(self) -> int:
        return sum(weight for _, weight in self._entries.values())
