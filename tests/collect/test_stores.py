"""Stores: what is counted, what is refused, and that neither order nor pairing is kept."""

from __future__ import annotations

import random
import sqlite3
import stat
import threading
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

import rldp
from rldp.collect.opening import open_collection, open_store, start_collection
from rldp.collect.store import StoreFullError
from rldp.collect.submissions import (
    CLASH,
    NOT_INVITED,
    REPEATED,
    SPENT,
    STORED,
    UNKNOWN_INVITATION,
    Submission,
    hashed,
)


def id_of(number):
    return number.to_bytes(16)


def report_of(number):
    return number.to_bytes(4)


def submissions(*numbers):
    return [Submission(id_of(n), report_of(n % 3)) for n in numbers]


@pytest.fixture
def store(race, where):
    collection = start_collection(race, where)
    yield collection.store
    collection.store.close()


def contents(store):
    return Counter(dict(store.groups()))


class Model:
    """The same by a loop over dicts."""

    def __init__(self, invitations=()):
        self.reports, self.invitations = {}, dict.fromkeys(invitations, False)

    def add(self, group):
        return [self._add(*submission) for submission in group]

    def _add(self, id_, report, invitation):
        if id_ in self.reports:
            return REPEATED if self.reports[id_] == report else CLASH
        if self.invitations:
            if invitation is None:
                return NOT_INVITED
            if invitation not in self.invitations:
                return UNKNOWN_INVITATION
            if self.invitations[invitation]:
                return SPENT
            self.invitations[invitation] = True
        self.reports[id_] = report
        return STORED


@pytest.mark.parametrize("is_invited", [False, True])
def test_random_groups_are_decided_as_by_a_loop(store, is_invited):
    rng = random.Random(7)
    invitations = [hashed(str(i)) for i in range(40)] if is_invited else []
    if is_invited:
        store.add_invitations(invitations)
    model = Model(invitations)
    choices = [*invitations, hashed("forged"), None]
    seen = Counter()
    for _ in range(40):
        group = [
            Submission(
                id_of(rng.randrange(60)), report_of(rng.choice([1, 1, 1, 2])), rng.choice(choices)
            )
            for _ in range(rng.randint(1, 6))
        ]
        found = store.add(group)
        assert found == model.add(group)
        seen.update(found)
    assert contents(store) == Counter(model.reports.values())
    assert store.status() == (len(model.reports), len(invitations), sum(model.invitations.values()))
    expected = {STORED, REPEATED, CLASH} | (
        {NOT_INVITED, UNKNOWN_INVITATION, SPENT} if is_invited else set()
    )
    assert {*seen} == expected  # every case was met


def test_a_lost_answer_does_not_spend_a_second_invitation(store):
    store.add_invitations([hashed("a"), hashed("b")])
    first = Submission(id_of(1), report_of(1), hashed("a"))
    assert store.add([first]) == [STORED]
    assert store.add([first]) == [REPEATED]
    assert store.add([first._replace(id=id_of(2))]) == [SPENT]
    assert store.add([first._replace(id=id_of(2), invitation=hashed("b"))]) == [STORED]
    assert store.status() == (2, 2, 2)


def test_a_group_that_fails_leaves_nothing(store, monkeypatch):
    import rldp.collect.postgres_store as postgres
    import rldp.collect.sqlite_store as sqlite

    def broken(*_):
        raise RuntimeError("in the middle")

    store.add(submissions(1))
    store.add_invitations([hashed("a")])
    for module in (sqlite, postgres):
        monkeypatch.setattr(module, "decided", broken)
    with pytest.raises(RuntimeError):
        store.add([Submission(id_of(2), report_of(2), hashed("a"))])
    monkeypatch.undo()
    assert store.status() == (1, 1, 0)
    assert store.add([Submission(id_of(2), report_of(2), hashed("a"))]) == [STORED]


def test_a_store_keeps_its_protocol_and_takes_no_other(race, unique, where):
    start_collection(race, where, {"margin": "0.05"}).store.close()
    again = open_collection(where)
    with closing(again.store):
        assert again.protocol.fingerprint == rldp.load(race).fingerprint
        assert again.margin == 0.05
        assert again.text == race.read_text()
    with pytest.raises(rldp.DataError, match="A new protocol is a new collection"):
        start_collection(unique, where)


def test_a_whole_protocol_is_not_collected_for(tmp_path):
    p = rldp.design(rldp.AllDistributions(rldp.Table([[1, 2], [3, 4]])), 1.0, "grr")
    p.save(tmp_path / "whole.json")
    with pytest.raises(rldp.ParameterError, match="rldp public"):
        start_collection(tmp_path / "whole.json", str(tmp_path / "s.sqlite"))
    assert not (tmp_path / "s.sqlite").exists()


@pytest.mark.parametrize("content", [None, b"", b"SQLite format 3\0", b"not a store" * 100])
def test_what_is_no_store_is_refused_and_left_alone(content, tmp_path):
    path = tmp_path / "other.sqlite"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(rldp.FileError, match=r"not a store|does not exist"):
        open_store(str(path))
    assert not path.exists() if content is None else path.read_bytes() == content


def test_a_foreign_database_is_no_store(tmp_path, cluster):
    with closing(sqlite3.connect(tmp_path / "own.sqlite")) as own:
        own.execute("CREATE TABLE t (x)")
        own.commit()
    with pytest.raises(rldp.FileError, match="not a store"):
        open_store(str(tmp_path / "own.sqlite"))
    with pytest.raises(rldp.FileError, match="no store of reports"):
        open_store(cluster.new_database())


# --- knowing nothing -----------------------------------------------------------------------------


def kept_file(race, path, order, pairing, groups):
    """The bytes of a store that got the same reports and invitations in some order and pairing."""
    collection = start_collection(race, str(path))
    store = collection.store
    store.add_invitations([hashed(str(i)) for i in range(60)])
    sent = [Submission(id_of(n * 2**90), report_of(n % 3), hashed(str(pairing[n]))) for n in order]
    step = len(sent) // groups
    for start in range(0, len(sent), step):
        assert set(store.add(sent[start : start + step])) == {STORED}
    if groups < 60:  # as many transactions in all
        for _ in range(60 - groups):
            store.add(sent[:1])
    store.tidy()
    store.close()
    assert {p.name for p in path.parent.iterdir() if p.name.startswith(path.name)} == {path.name}
    return path.read_bytes()


def test_a_file_tells_neither_the_order_of_arrival_nor_who_was_invited_to_which(race, tmp_path):
    """Byte for byte the same, whatever came first and whichever invitation came with it."""
    rng = random.Random(3)
    files = set()
    for i, groups in enumerate((60, 60, 60, 12)):
        order, pairing = list(range(60)), list(range(60))
        rng.shuffle(order)
        rng.shuffle(pairing)
        files.add(kept_file(race, tmp_path / f"{i}.sqlite", order, pairing, groups))
    assert len(files) == 1


def test_an_untidy_file_would_tell_it(race, tmp_path):
    """The control: pages keep rows in the order in which they came until they are written anew."""
    places = []
    for order in (range(20), reversed(range(20))):
        path = tmp_path / f"{len(places)}.sqlite"
        store = start_collection(race, str(path)).store
        for n in order:
            store.add([Submission(bytes([n + 65]) * 16, report_of(n % 3))])
        store.close()
        content = path.read_bytes()
        places.append([content.find(bytes([n + 65]) * 16) for n in range(20)])
    assert places[0] != places[1]
    assert sorted(places[0], reverse=True) == places[0]


def test_nothing_of_a_deleted_report_stays_in_the_file(race, tmp_path):
    path = tmp_path / "s.sqlite"
    store = start_collection(race, str(path)).store
    secret = b"\xabsixteen bytes!\xcd"
    store.add([Submission(secret, report_of(1)), *submissions(1, 2, 3)])
    store.tidy()
    assert secret in path.read_bytes()
    with store._writing() as run:
        run("DELETE FROM reports WHERE id = ?", (secret,))
    store.close()
    assert secret not in path.read_bytes()


def test_rows_of_postgres_have_one_transaction_after_tidying(race, cluster):
    import psycopg

    where = cluster.new_database()
    store = start_collection(race, where).store
    store.add_invitations([hashed(str(i)) for i in range(8)])
    for n in (5, 3, 7, 1):
        store.add([Submission(id_of(n), report_of(n % 3), hashed(str(n)))])
    query = (
        "SELECT r.id FROM rldp_reports r JOIN rldp_invitations i ON r.xmin = i.xmin "
        "GROUP BY r.id HAVING count(*) = 1"
    )
    with psycopg.connect(where) as connection:
        assert len(connection.execute(query).fetchall()) == 4  # each is joined with one invitation
        connection.commit()
        store.tidy()
        assert connection.execute(query).fetchall() == []
        for table in ("rldp_reports", "rldp_invitations"):
            (n,) = connection.execute(f"SELECT count(DISTINCT xmin::text) FROM {table}").fetchone()
            assert n == 1
        ids = [row[0] for row in connection.execute("SELECT id FROM rldp_reports ORDER BY ctid")]
        assert ids == sorted(ids)
    assert store.status() == (4, 8, 4)
    store.close()


def test_a_store_is_for_its_owner_only(race, tmp_path):
    path = tmp_path / "s.sqlite"
    store = start_collection(race, str(path)).store
    store.add(submissions(1))
    for name in path.parent.glob("s.sqlite*"):
        assert stat.S_IMODE(name.stat().st_mode) == 0o600
    store.close()


# --- several at once -----------------------------------------------------------------------------


def test_several_collectors_on_one_store_count_once(race, where):
    """The same reports and invitations from all sides at once, in different orders."""
    first = start_collection(race, where).store
    first.add_invitations([hashed(str(i)) for i in range(60)])
    stores = [first, *(open_store(where) for _ in range(3))]
    outcomes = []

    def work(store, seed):
        rng = random.Random(seed)
        numbers = list(range(60))
        rng.shuffle(numbers)
        for start in range(0, 60, 5):
            part = numbers[start : start + 5]
            sent = [Submission(id_of(n), report_of(n % 3), hashed(str(n))) for n in part]
            outcomes.extend(store.add(sent))
            if start % 20 == 0:
                store.tidy()

    threads = [threading.Thread(target=work, args=(s, i)) for i, s in enumerate(stores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(outcomes) == {STORED: 60, REPEATED: 180}
    assert first.status() == (60, 60, 60)
    for store in stores:
        store.close()


def test_a_full_disk_is_told_and_nothing_is_half_written(race, tmp_path):
    store = start_collection(race, str(tmp_path / "s.sqlite")).store
    store.add(submissions(1))
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreFullError):
        store.add(submissions(*range(2, 2000)))
    store._connection.execute("PRAGMA max_page_count = 1000000")
    assert store.status().reports == 1
    assert store.add(submissions(2)) == [STORED]
    store.close()


def test_a_database_without_sync_is_refused(race, cluster, monkeypatch):
    import psycopg

    where = cluster.new_database()
    real = psycopg.Connection.execute

    def unsynced(self, query, *rest, **more):
        return real(self, "SELECT 'off'" if query == "SHOW fsync" else query, *rest, **more)

    monkeypatch.setattr(psycopg.Connection, "execute", unsynced)
    with pytest.raises(rldp.FileError, match="fsync off"):
        start_collection(race, where)


def test_a_restarted_database_is_found_again(race, cluster):
    where = cluster.new_database()
    store = start_collection(race, where).store
    assert store.add(submissions(1)) == [STORED]
    cluster.crash()
    assert store.add(submissions(1, 2)) == [REPEATED, STORED]
    store.close()


def test_passwords_are_not_told():
    from rldp.collect.opening import shown

    assert shown("postgresql://me:secret@db/x") == "postgresql://db/x"
    assert Path(shown("a/b.sqlite")) == Path("a/b.sqlite")
