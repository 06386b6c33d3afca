"""A temporary PostgreSQL cluster that listens on a socket in its own folder and nowhere else."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Self

import psycopg

OWNER = "postgres"
_NAMES = count()


def binaries() -> Path | None:
    """The folder with initdb and pg_ctl, None where there is none."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


def missing() -> str | None:
    """Why there can be no cluster here, None if there can."""
    if binaries() is None:
        return "no initdb: install postgresql"
    if os.geteuid() == 0 and shutil.which("runuser") is None:
        return "initdb refuses to run as root, and there is no runuser"
    return None


def quick_folder() -> Path | None:
    """A folder in memory, where a sync takes no time; None where there is none with room."""
    memory = Path("/dev/shm")
    return memory if memory.is_dir() and shutil.disk_usage(memory).free > 512 << 20 else None


class Cluster:
    """A cluster that is up; databases in it are made one by one."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="rldp-postgres-", dir=folder))
        self._bin = binaries()
        if os.geteuid() == 0:
            shutil.chown(self.folder, OWNER)
        data = str(self.folder / "data")
        self._run("initdb", "-D", data, "-U", OWNER, "--auth=trust", "--no-sync", "-E", "UTF8")
        self.start()

    def start(self) -> None:
        options = f"-c listen_addresses='' -k {self.folder} -c shared_buffers=32MB"
        log = str(self.folder / "log")
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-l", log, "-w", "-o", options, "start")

    def stop(self, mode: str = "fast") -> None:
        """End it in order, or `immediate`ly as a crash does."""
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-m", mode, "-w", "stop")

    def crash(self) -> None:
        """End it as a crash does, and start it again."""
        self.stop("immediate")
        self.start()

    def new_database(self) -> str:
        """The address of an empty database."""
        name = f"survey{next(_NAMES)}"
        with psycopg.connect(self._address("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        return self._address(name)

    def _address(self, name: str) -> str:
        return f"postgresql://{OWNER}@/{name}?host={self.folder}"

    def _run(self, name: str, *words: str) -> None:
        command = [str(self._bin / name), *words]
        if os.geteuid() == 0:
            command = ["runuser", "-u", OWNER, "--", *command]
        with (self.folder / "commands").open("ab") as log:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False, cwd="/"
            )
        if done.returncode:
            text = (self.folder / "commands").read_text()[-1000:]
            raise RuntimeError(f"{name} failed: {text}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(RuntimeError):
            self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)
