"""Where a collection is: a SQLite file or a PostgreSQL database, with its protocol inside."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rldp.collect.report_codes import BlockCodes, ReportCodes
from rldp.collect.sqlite_store import SQLiteStore, is_sqlite_store
from rldp.collect.store import Store
from rldp.errors import DataError, FileError, MissingExtraError, ParameterError
from rldp.protocol.files import checked_protocol, load
from rldp.protocol.public_protocol import PublicProtocol
from rldp.protocol.questionnaire import PublicQuestionnaire

POSTGRES = ("postgresql://", "postgres://")
MARGIN = 0.01  # of the intervals that a collection is to reach, unless it says otherwise
_ENDINGS = (".json", ".rldp", ".public", ".client")


@dataclass(frozen=True)
class Collection:
    """A store with the protocol whose reports it takes.

    Attributes:
        store: where the reports are.
        where: how to open it again: a path or an address, without a password.
        protocol: the public protocol, or the public questionnaire.
        text: its file, as clients get it.
        settings: how the collection is run.
    """

    store: Store
    where: str
    protocol: PublicProtocol | PublicQuestionnaire
    text: str
    settings: Mapping[str, str]

    @property
    def codes(self) -> ReportCodes | BlockCodes:
        """The reports of the protocol as bytes."""
        p = self.protocol
        return BlockCodes(p) if isinstance(p, PublicQuestionnaire) else ReportCodes(p)

    @property
    def is_invited(self) -> bool:
        """Whether a report needs an invitation."""
        return self.store.settings().get("invited") == "yes"

    @property
    def margin(self) -> float:
        """Half the width of the intervals that the collection is to reach."""
        return float(self.settings.get("margin", MARGIN))


def is_store(where: str) -> bool:
    """Whether this names a store: an address of PostgreSQL, or a file that is one."""
    return where.startswith(POSTGRES) or is_sqlite_store(Path(where))


def default_store(protocol: Path) -> str:
    """The file beside a protocol that its reports go to.

    >>> default_store(Path("surveys/race.public.rldp.json"))
    'surveys/race.sqlite'
    """
    stem = protocol
    while stem.suffix in _ENDINGS:
        stem = stem.with_suffix("")
    return str(stem.with_name(f"{stem.name}.sqlite"))


def open_store(where: str, *, creates: bool = False) -> Store:
    """The store at a path or an address."""
    if not where.startswith(POSTGRES):
        return SQLiteStore(Path(where), creates=creates)
    try:
        from rldp.collect.postgres_store import PostgresStore
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("psycopg", "psycopg_binary"):
            raise
        raise MissingExtraError(
            "A store in PostgreSQL needs its extra: pip install 'rldp[postgres]'."
        ) from None
    return PostgresStore(where, creates=creates)


def open_collection(where: str) -> Collection:
    """A collection that is there."""
    store = open_store(where)
    try:
        return _collection(store, where)
    except BaseException:
        store.close()
        raise


def start_collection(
    protocol: Path, where: str, settings: Mapping[str, str] | None = None
) -> Collection:
    """The collection of a public protocol file, made if it is not there.

    Args:
        protocol: the file that `rldp public` writes.
        where: path or address of the store.
        settings: to keep: "origin", "margin", "invited".
    """
    p = load(protocol)
    if not isinstance(p, PublicProtocol | PublicQuestionnaire):
        raise ParameterError(
            f"Expected a public protocol, {protocol} holds the design sample too; make the public "
            f"version first: rldp public {protocol} -o OUT."
        )
    store = open_store(where, creates=True)
    try:
        known = store.settings()
        if "fingerprint" not in known:
            first = {"fingerprint": p.fingerprint, "protocol": protocol.read_text("utf-8")}
            store.set_settings(first)
        else:
            _check_same(known["fingerprint"], p.fingerprint, where)
        if settings:
            store.set_settings(settings)
        return _collection(store, where)
    except BaseException:
        store.close()
        raise


def _check_same(known: str, fingerprint: str, where: str) -> None:
    if known != fingerprint:
        raise DataError(
            f"{shown(where)} holds reports of the protocol {known[:12]}…, this is "
            f"{fingerprint[:12]}…. A new protocol is a new collection: choose another store.",
            argument="store",
        )


def shown(where: str) -> str:
    """A path or an address without its password."""
    if not where.startswith(POSTGRES):
        return where
    scheme, _, rest = where.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"


def _collection(store: Store, where: str) -> Collection:
    settings = store.settings()
    if "protocol" not in settings:
        raise FileError(
            f"{shown(where)} has no protocol yet; start it with rldp collect PUBLIC --store."
        )
    text = settings["protocol"]
    document = json.loads(text)
    for name in ("hash", "signatures"):
        document.pop(name, None)
    p = checked_protocol(document, shown(where))
    if (
        not isinstance(p, PublicProtocol | PublicQuestionnaire)
        or p.fingerprint != settings["fingerprint"]
    ):
        raise FileError(f"{shown(where)} is damaged: its protocol has another fingerprint.")
    return Collection(store, shown(where), p, text, settings)
