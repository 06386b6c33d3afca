"""A store in PostgreSQL, to which several collectors may write.

A group of reports is copied into a temporary table and inserted from there in the order of ids, so
that two collectors with the same reports do not wait for each other in a circle.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg
from psycopg import errors

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
from rldp.collect.submissions import Outcome, Submission
from rldp.errors import FileError

Connection = psycopg.Connection[Any]
_Answer = TypeVar("_Answer")
_ATTEMPTS = 4
_PATIENCE = 10  # seconds to connect
_TABLES = """
CREATE TABLE IF NOT EXISTS rldp_collection (name text PRIMARY KEY, value text NOT NULL);
CREATE TABLE IF NOT EXISTS rldp_reports (id bytea PRIMARY KEY, report bytea NOT NULL);
CREATE TABLE IF NOT EXISTS rldp_invitations (hash bytea PRIMARY KEY, spent boolean NOT NULL);
"""
_INCOMING = "CREATE TEMPORARY TABLE incoming (id bytea, report bytea) ON COMMIT DELETE ROWS"
_INSERT = (
    "INSERT INTO rldp_reports SELECT id, report FROM incoming ORDER BY id "
    "ON CONFLICT DO NOTHING RETURNING id"
)
_SET = (
    "INSERT INTO rldp_collection VALUES (%s, %s) "
    "ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value"
)
_KEY = 0x726C6470  # of the lock that those who write share, and who tidies has alone
_ASKED = (
    f"SELECT name, value, pg_advisory_xact_lock_shared({_KEY}) FROM rldp_collection "
    "WHERE name IN ('invited', 'tidy')"
)
_SORTED = (("rldp_reports", "id"), ("rldp_invitations", "hash"))


class _RacedError(Exception):
    """Another collector wrote the same id in the meantime: decide again."""


# a lost connection leaves open whether a commit was made; ids make it safe to try again
_RETRIED = (_RacedError, psycopg.OperationalError, psycopg.InterfaceError)


class PostgresStore(Store):
    """Reports in three tables of a database.

    Args:
        address: of the database, "postgresql://...".
        creates: whether to make the tables if they are not there.
    """

    def __init__(self, address: str, *, creates: bool = False) -> None:
        """Connect, and look for the tables."""
        self._address, self._lock = address, threading.RLock()
        self._connection: Connection | None = None
        try:
            if creates:
                _create(self._open())
            self._check()
        except (psycopg.Error, StoreError) as error:
            self.close()
            raise FileError(f"Cannot open the database: {_line(error)}.") from None
        except FileError:
            self.close()
            raise

    def _check(self) -> None:
        found = self._open().execute("SELECT to_regclass('rldp_collection')").fetchone()
        if found is None or found[0] is None:
            raise FileError(
                "This database has no store of reports; rldp collect PUBLIC --store ADDRESS "
                "makes one."
            )
        version = self.settings().get("format")
        if version != FORMAT:
            raise FileError(f"The store is of version {version}; this package reads {FORMAT}.")

    def add(self, submissions: Sequence[Submission]) -> list[Outcome]:
        """Keep reports in one transaction, which the database syncs."""
        return self._attempted(lambda connection: _added(connection, submissions))

    def settings(self) -> dict[str, str]:
        """What the collection is."""
        return self._attempted(
            lambda c: dict(c.execute("SELECT name, value FROM rldp_collection").fetchall())
        )

    def set_settings(self, settings: Mapping[str, str]) -> None:
        """Keep settings."""

        def work(connection: Connection) -> None:
            with connection.transaction(), connection.cursor() as cursor:
                cursor.executemany(_SET, list(settings.items()))

        self._attempted(work)

    def add_invitations(self, hashes: Iterable[bytes]) -> None:
        """Add invitations in one transaction."""
        rows = sorted(hashes)

        def work(connection: Connection) -> None:
            with connection.transaction(), connection.cursor() as cursor:
                with cursor.copy("COPY rldp_invitations FROM STDIN (FORMAT BINARY)") as copy:
                    copy.set_types(["bytea", "bool"])
                    for hash_ in rows:
                        copy.write_row((hash_, False))
                cursor.execute(_SET, ("invited", "yes"))

        self._attempted(work)

    def status(self) -> Status:
        """How much there is."""
        query = (
            "SELECT (SELECT count(*) FROM rldp_reports), count(*), count(*) FILTER (WHERE spent) "
            "FROM rldp_invitations"
        )
        return self._attempted(lambda c: Status(*(c.execute(query).fetchone() or (0, 0, 0))))

    def groups(self) -> Iterator[tuple[bytes, int]]:
        """Every different report, and how often it is there."""
        with self._reading("SELECT report, count(*) FROM rldp_reports GROUP BY report") as rows:
            yield from rows

    def batches(self, size: int) -> Iterator[list[bytes]]:
        """All reports by their random ids, as they were when this began."""
        with self._reading("SELECT report FROM rldp_reports ORDER BY id") as rows:
            while part := rows.fetchmany(size):
                yield [report for (report,) in part]

    def free_bytes(self) -> None:
        """Not known: the disk is that of the database."""

    def tidy(self) -> None:
        """Write both tables anew in one transaction, in the order of their random keys.

        A row has the number of the transaction that wrote it, which would join a report with its
        invitation; now all rows have the same. While another collector writes, nothing is done.
        """

        def work(connection: Connection) -> None:
            with connection.transaction():
                connection.execute("SET LOCAL lock_timeout = '2s'")  # of those who read
                free = connection.execute(f"SELECT pg_try_advisory_xact_lock({_KEY})").fetchone()
                found = connection.execute(
                    "SELECT value FROM rldp_collection WHERE name = %s", (TIDY,)
                ).fetchone()
                if free != (True,) or found == ("yes",):
                    return
                for table, key in _SORTED:
                    connection.execute(
                        f"CREATE TEMPORARY TABLE sorted ON COMMIT DROP AS SELECT * FROM {table}"
                    )
                    connection.execute(f"TRUNCATE {table}")
                    connection.execute(f"INSERT INTO {table} SELECT * FROM sorted ORDER BY {key}")
                    connection.execute("DROP TABLE sorted")
                connection.execute(_SET, (TIDY, "yes"))

        with suppress(errors.LockNotAvailable):
            self._attempted(work)

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()

    def _attempted(self, work: Callable[[Connection], _Answer]) -> _Answer:
        """Do work, again after a deadlock or with a new connection; errors as those of stores."""
        with self._lock:
            for attempt in range(_ATTEMPTS):
                try:
                    return work(self._open())
                except errors.LockNotAvailable:
                    raise
                except errors.DiskFull as error:
                    raise StoreFullError(_line(error)) from None
                except _RETRIED as error:
                    if attempt + 1 == _ATTEMPTS:
                        raise StoreError(_line(error)) from None
                except psycopg.Error as error:
                    raise StoreError(_line(error)) from None
        raise StoreError("The database was tried in vain.")

    def _open(self) -> Connection:
        """The connection, made anew if it was lost."""
        if self._connection is None or self._connection.broken or self._connection.closed:
            connection = psycopg.connect(
                self._address, autocommit=True, connect_timeout=_PATIENCE, prepare_threshold=1
            )
            connection.execute("SET synchronous_commit = on")
            synced = connection.execute("SHOW fsync").fetchone()
            if synced != ("on",):
                connection.close()
                raise FileError(
                    "The database runs with fsync off, so that nothing it acknowledges is sure to "
                    "be on disk. Turn it on."
                )
            connection.execute(_INCOMING)
            self._connection = connection
        return self._connection

    @contextmanager
    def _reading(self, query: str) -> Iterator[Any]:
        """Rows of a query, some at a time, on a connection of its own."""
        try:
            with (
                psycopg.connect(self._address, connect_timeout=_PATIENCE) as connection,
                connection.cursor("reports") as cursor,
            ):
                cursor.itersize = 10_000
                cursor.execute(query)
                yield cursor
        except psycopg.Error as error:
            raise StoreError(_line(error)) from None


def _added(connection: Connection, submissions: Sequence[Submission]) -> list[Outcome]:
    """Write a group with few waits for the database: statements travel together where they can."""
    try:
        with connection.pipeline():
            connection.execute("BEGIN")
            asked = connection.execute(_ASKED)
        settings = {name: value for name, value, _ in asked.fetchall()}
        with connection.cursor() as cursor:
            if settings.get(TIDY) == "yes":
                cursor.execute(_SET, (TIDY, "no"))
            if settings.get("invited") == "yes":
                outcomes = _added_by_invitation(cursor, submissions)
                cursor.execute("COMMIT")
                return outcomes
            _copy(cursor, {s.id: s.report for s in reversed(submissions)})
        with connection.pipeline():
            inserted = connection.execute(_INSERT)
            connection.execute("COMMIT")
    except BaseException:
        with suppress(psycopg.Error):  # the connection may be lost
            connection.execute("ROLLBACK")
        raise
    new = {id_ for (id_,) in inserted.fetchall()}
    others = [s.id for s in submissions if s.id not in new]
    known = _reports(connection, others) if others else {}  # which never change
    return decided(submissions, Known(known, set(), set(), is_invited=False)).outcomes


def _added_by_invitation(
    cursor: psycopg.Cursor[Any], submissions: Sequence[Submission]
) -> list[Outcome]:
    hashes = [s.invitation for s in submissions if s.invitation is not None]
    cursor.execute(
        "SELECT hash, spent FROM rldp_invitations WHERE hash = ANY(%s) ORDER BY hash FOR UPDATE",
        (hashes,),
    )
    invitations = dict(cursor.fetchall())
    unspent = {hash_ for hash_, spent in invitations.items() if not spent}
    reports = _reports(cursor, [s.id for s in submissions])
    known = Known(reports, unspent, invitations.keys() - unspent, is_invited=True)
    decision = decided(submissions, known)
    if decision.reports:
        _copy(cursor, decision.reports)
        if cursor.execute(_INSERT).rowcount < len(decision.reports):
            raise _RacedError
        cursor.execute(
            "UPDATE rldp_invitations SET spent = true WHERE hash = ANY(%s)",
            (decision.invitations,),
        )
    return decision.outcomes


def _copy(cursor: psycopg.Cursor[Any], reports: Mapping[bytes, bytes]) -> None:
    with cursor.copy("COPY incoming FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types(["bytea", "bytea"])
        for row in reports.items():
            copy.write_row(row)


def _reports(source: Connection | psycopg.Cursor[Any], ids: Sequence[bytes]) -> dict[bytes, bytes]:
    query = "SELECT id, report FROM rldp_reports WHERE id = ANY(%s)"
    return dict(source.execute(query, (list(ids),)).fetchall())


def _create(connection: Connection) -> None:
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('rldp'))")  # one at a time
        connection.execute(_TABLES)
        for row in (("format", FORMAT), (TIDY, "no")):
            connection.execute(
                "INSERT INTO rldp_collection VALUES (%s, %s) ON CONFLICT DO NOTHING", row
            )


def _line(error: BaseException) -> str:
    """The first line of an error, without its address and password."""
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
