"""The server: it binds its sockets, opens its stores, and runs until a signal ends it."""

from __future__ import annotations

import os
import secrets
import signal
import ssl
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import uvicorn

from rldp.collect.application import OpenCollection, application, code_hash, page_code
from rldp.collect.guard import log
from rldp.collect.http_protocol import bounded_protocol
from rldp.collect.limits import Limits
from rldp.collect.opening import Collection, open_collection, start_collection
from rldp.collect.questions import read_texts
from rldp.collect.writer import Writer
from rldp.errors import FileError, ParameterError
from rldp.io.atomic_files import PRIVATE, whole_file
from rldp.web import LOOPBACK, LOOPBACK_NAMES, bound_socket

_SWITCH = 0.0005  # seconds
_LEAST_TOKEN = 16  # characters
_TOKEN_BYTES = 24
_ON_LOOPBACK = (LOOPBACK, "localhost", "::1")


@dataclass(frozen=True)
class Options:
    """How a collector runs.

    Args:
        store: path or address of the store.
        host: address to listen on.
        port: 0 takes any port that is free.
        tls: files with the certificate and its key.
        origin: the address that people see, such as "https://survey.example".
        questions: files with the texts of the form.
        token_file: file with the secret of the operator, made if it is not there; if None, each
            start has a new secret.
        earlier: stores of earlier protocols whose kept reports are still taken.
        settings: of the collection: "margin", "invited".
        limits: how much is taken at once.
    """

    store: str
    host: str = LOOPBACK
    port: int = 0
    tls: tuple[Path, Path] | None = None
    origin: str | None = None
    questions: Sequence[Path] = ()
    token_file: Path | None = None
    earlier: Sequence[str] = ()
    settings: dict[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)


class Collector:
    """A server that is bound and ready to run.

    Args:
        protocol: a public protocol file.
        options: how it runs.
    """

    def __init__(self, protocol: Path, options: Options) -> None:
        """Open everything, so that what is wrong is said before the first report comes."""
        self._options = options
        origin = _checked_origin(options)
        path = options.token_file
        self.has_made_token = path is not None and _is_made(path)
        self.token = secrets.token_urlsafe(_TOKEN_BYTES) if path is None else _token(path)
        self._socket = bound_socket(options.host, options.port)
        self.port: int = self._socket.getsockname()[1]
        scheme = "http" if options.tls is None else "https"
        local = {f"{scheme}://{name}:{self.port}" for name in LOOPBACK_NAMES}
        self.origin = origin or f"{scheme}://{LOOPBACK}:{self.port}"
        self._open: dict[str, OpenCollection] = {}
        try:
            settings = options.settings | {"origin": self.origin}
            self.collection = start_collection(protocol, options.store, settings)
            self._add(self.collection)
            for where in options.earlier:
                self._add(open_collection(where))
            texts = read_texts(options.questions, self.collection.protocol.schema)
            origins = frozenset({self.origin, *local})
            app = application(self._open, texts, origins, self.token, options.limits)
            self._server = _Server(_config(app, options))
        except BaseException:
            self._close()
            raise

    def _add(self, collection: Collection) -> None:
        writer = Writer(collection.store, self._options.limits, log)
        self._open[collection.protocol.fingerprint] = OpenCollection(collection, writer)

    def _close(self) -> None:
        """Write what waits, and close stores and socket."""
        for opened in self._open.values():
            opened.writer.close()
        self._socket.close()

    @property
    def code(self) -> str:
        """SHA-256 of what the form runs, which is part of the address of its files."""
        return code_hash(page_code())

    @property
    def form(self) -> str:
        """The address of the form."""
        return f"{self.origin}/"

    @property
    def operator(self) -> str:
        """The address of the operator's page; what follows # is never sent."""
        return f"{self.origin}/operator#{self.token}"

    def run(self) -> None:
        """Serve until SIGTERM or Ctrl-C; what was taken is written first."""
        log("started", fingerprint=self.collection.protocol.fingerprint, origin=self.origin)
        sys.setswitchinterval(_SWITCH)  # a thread that has synced shall not wait for its turn
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._close()
            log("ended", "all that was taken is on disk")

    def stop(self) -> None:
        """Ask a server in another thread to end."""
        self._server.should_exit = True


class _Server(uvicorn.Server):
    """A server for which a signal is the normal way to end."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End in order, and do not pass the signal on."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self.handle_exit) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _config(app: object, options: Options) -> uvicorn.Config:
    certificate, key = options.tls or (None, None)
    try:
        config = uvicorn.Config(
            app,  # type: ignore[arg-type]  # it is an ASGI application
            http=bounded_protocol(options.limits),
            log_level="critical",  # its messages may hold addresses
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            lifespan="off",
            ws="none",
            timeout_keep_alive=30,
            ssl_certfile=certificate,
            ssl_keyfile=key,
        )
        config.load()
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"Cannot use the certificate {certificate}: {reason}.") from None
    return config


def _checked_origin(options: Options) -> str | None:
    """The origin, where people can use the form there: WebCrypto asks for https or loopback."""
    if options.origin is None:
        if options.host not in _ON_LOOPBACK:
            raise ParameterError(
                f"Expected the address that people see, such as https://survey.example, to listen "
                f"on {options.host}.",
                argument="origin",
            )
        return None
    parts = urlsplit(options.origin)
    is_plain = not (parts.path.strip("/") or parts.query or parts.fragment or parts.username)
    if parts.scheme not in ("http", "https") or not parts.hostname or not is_plain:
        raise ParameterError(
            f"Expected an origin such as https://survey.example, got {options.origin!r}.",
            argument="origin",
        )
    if parts.scheme == "http" and parts.hostname not in _ON_LOOPBACK:
        raise ParameterError(
            f"Expected an origin with https, got {options.origin!r}: browsers have secure "
            f"randomness on https pages and on this machine only.",
            argument="origin",
        )
    return f"{parts.scheme}://{parts.netloc.lower()}"


def _is_made(path: Path) -> bool:
    """Make a token that only its owner can read, unless there is a file."""
    if os.path.lexists(path):
        return False
    with whole_file(path, PRIVATE, is_new=True) as file:
        file.write(f"{secrets.token_urlsafe(_TOKEN_BYTES)}\n".encode())
    return True


def _token(path: Path) -> str:
    try:
        token = path.read_text("ascii").strip()
    except UnicodeDecodeError:
        raise FileError(f"Cannot read the token in {path}: expected letters of ASCII.") from None
    except OSError as error:
        raise FileError(f"Cannot read the token in {path}: {error.strerror}.") from None
    if len(token) < _LEAST_TOKEN or not token.isprintable() or " " in token:
        raise ParameterError(
            f"Expected a token of {_LEAST_TOKEN} or more characters in {path}.",
            argument="token_file",
        )
    return token
