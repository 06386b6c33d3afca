"""A store in one SQLite file: write-ahead log, synced at every commit, rows by random id."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from rldp.collect.store import (
    FORMAT,
    TIDY,
    Known,
    Status,
    Store,
    StoreError,
    StoreFullError,
    decided,
)
from rldp.collect.submissions import STORED, Outcome, Submission
from rldp.errors import FileError
from rldp.io.atomic_files import PRIVATE, sync_folder

APPLICATION = 0x524C4450  # "RLDP" in the header of the file
_PATIENCE = 30.0  # seconds to wait for another process that writes
_MOST_NAMED = 500  # parameters of a query
_TABLES = """
CREATE TABLE collection (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE reports (id BLOB PRIMARY KEY, report BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE invitations (hash BLOB PRIMARY KEY, spent INTEGER NOT NULL) WITHOUT ROWID;
"""


_ASKED = "SELECT name, value FROM collection WHERE name IN ('invited', ?)"


def is_sqlite_store(path: Path) -> bool:
    """Whether a file is a store of this kind, by its header."""
    with suppress(OSError, ValueError), path.open("rb") as file:  # ValueError: a name of no file
        head = file.read(100)
        return head[:16] == b"SQLite format 3\0" and head[68:72] == APPLICATION.to_bytes(4)
    return False


class SQLiteStore(Store):
    """Reports in a file that only its owner can read.

    Args:
        path: of the file.
        creates: whether to make the file if it is not there.
    """

    def __init__(self, path: Path, *, creates: bool = False) -> None:
        """Open the file."""
        self._path, self._lock = path, threading.RLock()
        if creates and not path.exists():
            _create(path)
        if not is_sqlite_store(path):
            what = "is not a store of reports" if path.exists() else "does not exist"
            raise FileError(f"{path} {what}; rldp collect PUBLIC --store {path} makes one.")
        try:
            self._connection = _connected(path)
            found = self.settings().get("format")
        except sqlite3.Error as error:
            raise FileError(f"Cannot open {path}: {error}.") from None
        if found != FORMAT:
            raise FileError(f"{path} is a store of version {found}; this package reads {FORMAT}.")

    def add(self, submissions: Sequence[Submission]) -> list[Outcome]:
        """Keep reports in one transaction: one sync of the write-ahead log for all of them."""
        with self._writing() as run:
            settings = dict(run(_ASKED, (TIDY,)))
            if settings.get(TIDY) == "yes":
                run("UPDATE collection SET value = 'no' WHERE name = ?", (TIDY,))
            is_invited = settings.get("invited") == "yes"
            if not is_invited and self._are_added(submissions):
                return [STORED] * len(submissions)
            ids = {s.id for s in submissions}
            hashes = {s.invitation for s in submissions if s.invitation} if is_invited else set()
            reports = dict(self._named("SELECT id, report FROM reports WHERE id IN", ids))
            invitations = dict(
                self._named("SELECT hash, spent FROM invitations WHERE hash IN", hashes)
            )
            unspent = {hash_ for hash_, spent in invitations.items() if not spent}
            known = Known(reports, unspent, invitations.keys() - unspent, is_invited)
            decision = decided(submissions, known)
            self._insert(decision.reports)
            self._connection.executemany(
                "UPDATE invitations SET spent = 1 WHERE hash = ?",
                [(hash_,) for hash_ in decision.invitations],
            )
            return decision.outcomes

    def _are_added(self, submissions: Sequence[Submission]) -> bool:
        """Insert reports if all ids are new, which is the rule; nothing is changed otherwise."""
        rows = {s.id: s.report for s in submissions}
        if len(rows) < len(submissions):
            return False
        self._connection.execute("SAVEPOINT new")
        before = self._connection.total_changes
        self._insert(rows)
        is_new = self._connection.total_changes - before == len(rows)
        if not is_new:
            self._connection.execute("ROLLBACK TO new")
        self._connection.execute("RELEASE new")
        return is_new

    def _insert(self, reports: Mapping[bytes, bytes]) -> None:
        self._connection.executemany(
            "INSERT OR IGNORE INTO reports VALUES (?, ?)", sorted(reports.items())
        )

    def _named(self, query: str, keys: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
        listed = list(keys)
        for start in range(0, len(listed), _MOST_NAMED):
            part = listed[start : start + _MOST_NAMED]
            yield from self._connection.execute(f"{query} ({','.join('?' * len(part))})", part)

    def settings(self) -> dict[str, str]:
        """What the collection is."""
        with self._lock:
            return dict(self._connection.execute("SELECT name, value FROM collection"))

    def set_settings(self, settings: Mapping[str, str]) -> None:
        """Keep settings."""
        with self._writing():
            self._connection.executemany(
                "INSERT OR REPLACE INTO collection VALUES (?, ?)", list(settings.items())
            )

    def add_invitations(self, hashes: Iterable[bytes]) -> None:
        """Add invitations in one transaction."""
        with self._writing() as run:
            self._connection.executemany(
                "INSERT INTO invitations VALUES (?, 0)", [(hash_,) for hash_ in sorted(hashes)]
            )
            run("INSERT OR REPLACE INTO collection VALUES ('invited', 'yes')", ())

    def status(self) -> Status:
        """How much there is."""
        with self._lock:
            query = "SELECT (SELECT count(*) FROM reports), count(*), total(spent) FROM invitations"
            reports, invitations, spent = self._connection.execute(query).fetchone()
        return Status(reports, invitations, int(spent))

    def groups(self) -> Iterator[tuple[bytes, int]]:
        """Every different report, and how often it is there."""
        with _reading(self._path) as connection:
            yield from connection.execute("SELECT report, count(*) FROM reports GROUP BY report")

    def batches(self, size: int) -> Iterator[list[bytes]]:
        """All reports by their random ids, as they were when this began."""
        with _reading(self._path) as connection:
            rows = connection.execute("SELECT report FROM reports ORDER BY id")
            while part := rows.fetchmany(size):
                yield [report for (report,) in part]

    def free_bytes(self) -> int:
        """Room that is left on the disk of the file."""
        return shutil.disk_usage(self._path.parent).free

    def tidy(self) -> None:
        """Write the file anew, in the order of ids, and empty the write-ahead log.

        A page of the file has rows in the order in which they came, until it is written anew.
        """
        with self._lock, _told(self._path):
            if self.settings().get(TIDY) == "yes":
                return
            with self._writing() as run:
                run("UPDATE collection SET value = 'yes' WHERE name = ?", (TIDY,))
            self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close it; the write-ahead log vanishes if nobody else has it open."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def _writing(self) -> Iterator[Callable[..., sqlite3.Cursor]]:
        """A transaction, on disk at its end; nothing of it after an error."""
        with self._lock, _told(self._path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection.execute
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # a full disk has rolled back already
                    self._connection.execute("ROLLBACK")
                raise


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Errors of SQLite as those of stores."""
    try:
        yield
    except sqlite3.Error as error:
        is_full = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL
        kind = StoreFullError if is_full else StoreError
        raise kind(f"{path}: {error}.") from None


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection of its own, which sees the store as it is now and does not stop writers."""
    connection = _connected(path)
    try:
        connection.execute("PRAGMA query_only = ON")
        connection.execute("BEGIN")
        yield connection
    finally:
        connection.close()


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
    )
    for pragma in ("synchronous = FULL", "secure_delete = ON"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def _create(path: Path) -> None:
    """Make an empty store under its name, whole or not at all."""
    part = path.with_name(f".{path.name}.new")
    try:
        part.unlink(missing_ok=True)
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE))
        connection = sqlite3.connect(part, isolation_level=None)
        try:
            for pragma in (f"application_id = {APPLICATION}", "secure_delete = ON"):
                connection.execute(f"PRAGMA {pragma}")
            connection.executescript(_TABLES)
            rows = [("format", FORMAT), (TIDY, "no")]
            connection.executemany("INSERT INTO collection VALUES (?, ?)", rows)
            connection.execute("PRAGMA journal_mode = WAL")
        finally:
            connection.close()
        mode = stat.S_IMODE(part.stat().st_mode)
        assert mode & 0o077 == 0, "only its owner may read a store"
        os.link(part, path)  # never over another file
        part.unlink()
        sync_folder(path.parent)  # a synced report in a file without a name would be lost
    except (OSError, sqlite3.Error) as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"Cannot make the store {path}: {reason}.") from None
