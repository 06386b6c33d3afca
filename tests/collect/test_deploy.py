"""What deploys a collector speaks of options, metrics and files that exist, and backups hold."""

from __future__ import annotations

import re
import sqlite3
import stat
import subprocess

import pytest
import typer

from rldp.cli import app
from rldp.collect.metrics import Metrics
from tests.support.files import ROOT

DEPLOY = ROOT / "deploy"
COMMAND = typer.main.get_command(app).commands["collect"]
OPTIONS = {option for one in COMMAND.params for option in one.opts}


@pytest.mark.parametrize("name", ["Containerfile", "compose.yaml"])
def test_every_option_of_the_collector_exists(name):
    text = (DEPLOY / name).read_text()
    lines = [line for line in text.split("\n") if "pip" not in line and "RUN" not in line]
    code = "\n".join(line.partition("#")[0] for line in lines)
    named = set(re.findall(r"(?<![\w-])--(?!from)[a-z][a-z-]+", code))
    assert {"--origin", "--questions"} <= named <= OPTIONS


def test_every_alert_is_about_a_metric_that_is_served():
    metrics = Metrics()
    metrics.requests[400] += 1
    served = metrics.text({"rldp_waiting_reports": 0, "rldp_store_failing": 0})
    asked = set(re.findall(r"\brldp_\w+", (DEPLOY / "alerts.yaml").read_text()))
    assert len(asked) == 3
    for name in asked:
        assert re.search(rf"^{name}\b", served, re.MULTILINE), name


def test_the_container_is_made_of_files_that_exist():
    text = (DEPLOY / "Containerfile").read_text()
    for name in re.findall(r"/source/([\w./-]+)", text):
        assert (ROOT / name).exists()
    assert (DEPLOY / "Caddyfile").exists()
    assert "./Caddyfile:" in (DEPLOY / "compose.yaml").read_text()


def _store(path, rows):
    store = sqlite3.connect(path)
    store.execute("PRAGMA journal_mode = WAL")
    store.execute("CREATE TABLE reports (id BLOB PRIMARY KEY, report BLOB)")
    store.executemany("INSERT INTO reports VALUES (?, ?)", rows)
    store.commit()
    return store


def _backup(*paths):
    command = [DEPLOY / "backup.sh", *paths]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_backup_holds_what_was_committed_while_the_store_is_in_use(tmp_path):
    rows = [(bytes([i]) * 16, bytes([i]) * 4) for i in range(50)]
    store = _store(tmp_path / "a.sqlite", rows)
    store.execute("INSERT INTO reports VALUES (x'00', x'00')")  # not committed
    copy = tmp_path / "copy.sqlite"
    copy.write_text("an older copy")
    assert _backup(tmp_path / "a.sqlite", copy).returncode == 0
    store.close()
    assert [path.name for path in tmp_path.glob("copy*")] == ["copy.sqlite"]
    assert sorted(sqlite3.connect(copy).execute("SELECT * FROM reports")) == rows
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600


def test_a_backup_that_fails_leaves_the_older_copy(tmp_path):
    broken, copy = tmp_path / "broken.sqlite", tmp_path / "copy.sqlite"
    broken.write_text("no database")
    copy.write_text("an older copy")
    assert _backup(broken, copy).returncode != 0
    assert _backup(tmp_path / "none.sqlite", copy).returncode == 2
    assert copy.read_text() == "an older copy"
