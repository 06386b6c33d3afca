"""The server: on the loopback interface alone, without a log of requests."""

from __future__ import annotations

import secrets
import threading
import webbrowser
from pathlib import Path

import uvicorn

from rldp.errors import FileError
from rldp.studio.application import application
from rldp.studio.limits import Limits
from rldp.studio.session import Session
from rldp.studio.uploads import ADULT
from rldp.tables.record_files import file_size
from rldp.web import LOOPBACK, bound_socket


class Studio:
    """A server that is bound and ready to run.

    Args:
        data: a CSV or Parquet file to begin with, or "adult".
        port: where to listen; 0 takes any port that is free.
        limits: what the page may ask for.
    """

    def __init__(
        self, data: str | None = None, port: int = 0, limits: Limits | None = None
    ) -> None:
        """Load the data and bind the port, so that what is wrong is said before a page opens."""
        self.session = Session(limits)
        start = ADULT if data is None else self._loaded(data)
        self._socket = bound_socket(LOOPBACK, port)
        self.port: int = self._socket.getsockname()[1]
        self.token = secrets.token_urlsafe(32)
        app = application(self.session, self.port, self.token, start)
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            lifespan="off",
            ws="none",
        )
        self._server = uvicorn.Server(config)

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://{LOOPBACK}:{self.port}/"

    def run(self, *, opens_browser: bool = False) -> None:
        """Serve until interrupted."""
        if opens_browser:
            threading.Timer(0.5, webbrowser.open, (self.address,)).start()
        self.session.jobs.workers.warm()
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self.session.close()
            self._socket.close()

    def stop(self) -> None:
        """Ask a server in another thread to end."""
        self._server.should_exit = True

    def _loaded(self, data: str) -> str:
        if data == ADULT and not Path(data).exists():
            return ADULT
        path, limits = Path(data), self.session.limits
        if file_size(path) > limits.upload:
            raise FileError(
                f"{path}: expected at most {limits.upload >> 20} MB in the studio; "
                f"the other commands stream files of any size."
            )
        return self.session.add_file(path.name, path.read_bytes())
