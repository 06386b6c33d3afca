"""Acknowledged means on disk: kill −9 under load, and the order of sync and answer from outside."""

from __future__ import annotations

import http.client
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import rldp
from rldp.collect.opening import open_collection
from tests.support.collecting import body_of, free_port, killed
from tests.support.waiting import until

STRACE = shutil.which("strace")


def check(verdict):
    assert (verdict.lost, verdict.twice, verdict.foreign) == (0, 0, 0)
    assert verdict.exit_code == 0  # SIGTERM ends it in order
    assert verdict.acknowledged > verdict.kills
    assert verdict.retries > 0
    assert verdict.cuts > 0


@pytest.mark.slow
def test_thirty_kills_of_a_collector_on_sqlite_lose_nothing_and_count_nothing_twice(
    unique, tmp_path
):
    check(killed(unique, str(tmp_path / "s.sqlite"), 30))


@pytest.mark.slow
def test_ten_kills_of_a_collector_or_its_database_lose_nothing_and_count_nothing_twice(
    unique, cluster
):
    check(killed(unique, cluster.new_database(), 10, crash=cluster.crash))


@pytest.mark.slow
def test_a_collector_that_acknowledges_too_early_is_caught(unique, tmp_path):
    assert killed(unique, str(tmp_path / "s.sqlite"), 4, fault="early").lost > 0


@pytest.mark.slow
def test_a_collector_that_forgets_ids_is_caught(unique, tmp_path):
    assert killed(unique, str(tmp_path / "s.sqlite"), 6, fault="forgetful").twice > 0


# --- seen from outside ---------------------------------------------------------------------------


@pytest.mark.slow
def test_what_was_taken_is_written_after_sigterm(unique, tmp_path):
    """A report whose answer nobody waits for is on disk when the process has ended."""
    store, port = tmp_path / "s.sqlite", free_port()
    with started(unique, store, port) as process:
        body = body_of(rldp.load(unique), "ab" * 16, 5)
        client = http.client.HTTPConnection("127.0.0.1", port)
        client.request("POST", "/v1/reports", body, {"content-type": "application/json"})
        process.send_signal(signal.SIGTERM)
        answer = client.getresponse()
        assert answer.status == 200
        answer.read()
        client.close()
        assert process.wait(60) == 0
    collection = open_collection(str(store))
    assert collection.store.status().reports == 1
    collection.store.close()


@pytest.mark.slow
@pytest.mark.skipif(STRACE is None, reason="strace is not installed")
def test_the_answer_is_sent_after_the_sync(unique, tmp_path):
    p, port, trace = rldp.load(unique), free_port(), tmp_path / "trace"
    calls = "read,recvfrom,recvmsg,fsync,fdatasync,write,writev,sendto,sendmsg"
    prefix = [STRACE, "-f", "-y", "-s", "2000", "-o", str(trace), "-e", f"trace={calls}"]
    ids = [secrets.token_hex(16) for _ in range(3)]
    with started(unique, tmp_path / "s.sqlite", port, prefix) as process:
        for number, id_ in enumerate(ids):
            client, body = http.client.HTTPConnection("127.0.0.1", port), body_of(p, id_, number)
            client.putrequest("POST", "/v1/reports")
            client.putheader("content-type", "application/json")
            client.putheader("content-length", str(len(body)))
            client.putheader("x-part", f"{number}")
            client.endheaders()
            if number:  # the body on its own, after the headers were read
                until(lambda n=number: f"x-part: {n}" in trace.read_text(), "the headers")
            client.send(body)
            assert json.loads(client.getresponse().read())["results"][0]["state"] == "stored"
            client.close()
        os.kill(int(re.match(r"\d+", trace.read_text())[0]), signal.SIGTERM)
        process.wait(60)
    lines = trace.read_text().splitlines()
    for id_ in ids:
        assert is_synced_before_answer(lines, id_)
        unsynced = [line for line in lines if "sync" not in line]
        assert not is_synced_before_answer(unsynced, id_)
        assert not is_synced_before_answer(lines[::-1], id_)


def is_synced_before_answer(lines, id_):
    """Whether the log was synced between the arrival of a report and the answer to it."""
    has = [i for i, line in enumerate(lines) if id_ in line]
    came = next((i for i in has if re.search(r"(read|recv\w+)(\(| resumed)", lines[i])), None)
    told = next((i for i in has if r"\"state\":\"stored\"" in lines[i]), None)
    if came is None or told is None:
        return False
    open_calls = set()
    for line in lines[came:told]:
        thread = line.split()[0]
        if re.search(r"f(data)?sync\(.*-wal>.*= 0", line):
            return True
        if re.search(r"f(data)?sync\(.*-wal>.*unfinished", line):
            open_calls.add(thread)
        if re.search(r"f(data)?sync resumed.*= 0", line) and thread in open_calls:
            return True
    return False


class started:  # noqa: N801  # reads as a verb
    """`rldp collect` in a process of its own, which listens."""

    def __init__(self, protocol: Path, store: Path, port: int, prefix=()):
        words = ["collect", str(protocol), "--store", str(store), "--port", str(port)]
        command = [*prefix, sys.executable, "-m", "rldp.cli", *words]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.port = port

    def __enter__(self):
        def answers():
            assert self.process.poll() is None, self.process.stderr.read()
            client = http.client.HTTPConnection("127.0.0.1", self.port)
            try:
                client.request("GET", "/health")
                return client.getresponse().status == 200
            except ConnectionError:
                return False
            finally:
                client.close()

        until(answers, "the collector")
        return self.process

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(60)
        self.process.stderr.close()
