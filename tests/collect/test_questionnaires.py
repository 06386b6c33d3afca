"""A questionnaire collected over HTTP: each device reports one block; nothing is lost or twice."""

from __future__ import annotations

import http.client
import json
import secrets
import signal
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.csv
import pytest

import rldp
from rldp.cli import main
from rldp.collect.counted import estimate
from rldp.collect.exporting import export
from rldp.collect.figures import Figures
from rldp.collect.opening import open_collection
from rldp.collect.report_codes import BlockCodes
from rldp.errors import ParameterError
from tests.support.collecting import Collectors, free_port, served
from tests.support.questionnaires import COLUMNS, people, small

N = 2_000


@pytest.fixture
def public(tmp_path: Path) -> Path:
    path = tmp_path / "survey.public.json"
    small().public().save(path)
    return path


def drawn(n: int) -> list[tuple[str, str]]:
    """What n devices draw: the block, and the text that they send."""
    q = small().public()
    numbers = {name: j for j, name in enumerate(q.names)}
    out = q.release(people(n)).to_pylist()
    return [(row["block"], f"{numbers[row['block']]} {row['y']}") for row in out]


def body(report: str, id_: str) -> bytes:
    entry = {"id": id_, "protocol": small().fingerprint, "report": report}
    return json.dumps({"version": 1, "reports": [entry]}).encode()


def post(port: int, content: bytes) -> tuple[int, dict[str, object]]:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        client.request("POST", "/v1/reports", content, {"content-type": "application/json"})
        answer = client.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        client.close()


def delivered(port: int, report: str) -> None:
    """Send with one id until it is acknowledged, whatever happens to the server."""
    content, pause = body(report, secrets.token_hex(16)), threading.Event()
    while True:
        try:
            if post(port, content)[0] == 200:
                return
        except (OSError, http.client.HTTPException):
            pass
        pause.wait(0.01)


@pytest.mark.slow
def test_two_thousand_devices_and_kills_on_the_way_lose_nothing(public, where):
    port, reports = free_port(), drawn(N)
    collectors = Collectors(public, where, port)
    collectors.start()
    left = threading.Semaphore(0)

    def device(report: str) -> None:
        delivered(port, report)
        left.release()

    with ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(device, text) for _, text in reports]
        for _ in range(3):
            for _ in range(300):
                left.acquire()
            collectors.end(signal.SIGKILL)
            collectors.start()
        for job in jobs:
            job.result()
    assert collectors.end(signal.SIGTERM) == 0
    collectors.close()
    collection = open_collection(where)
    try:
        codes = collection.codes
        assert isinstance(codes, BlockCodes)
        found = Counter(dict(collection.store.groups()))
        assert found == Counter(codes.packed(text) for _, text in reports)
        e = estimate(collection)
        assert (e.n, e.is_protocol_checked) == (N, True)
        assert e.reports == Counter(block for block, _ in reports)
        told = Figures(collection).now()
        assert (told["reports"], told["fit"] > 1e-6) == (N, True)
        assert len(told["estimates"]["cells"]) == 2
    finally:
        collection.store.close()


def test_reports_of_no_block_are_refused_and_repeats_count_once(public, tmp_path):
    store = tmp_path / "survey.sqlite"
    with served(public, store) as server:
        id_ = secrets.token_hex(16)
        text = drawn(1)[0][1]
        assert post(server.port, body(text, id_))[0] == 200
        assert post(server.port, body(text, id_))[0] == 200  # the same again
        for bad in ("7 y0", text.partition(" ")[2], "x y0", "0", "", "00 " + text[2:], "-1 y0"):
            status, answer = post(server.port, body(bad, secrets.token_hex(16)))
            assert status == 422, (bad, answer)
        client = http.client.HTTPConnection("127.0.0.1", server.port)
        client.request("GET", "/v1/survey")
        asked = json.loads(client.getresponse().read())["languages"]["en"]["questions"]
        assert [question["column"] for question in asked] == ["income", *COLUMNS]
        client.close()
    collection = open_collection(str(store))
    assert collection.store.status().reports == 1
    collection.store.close()


def test_a_store_is_exported_and_estimated_as_a_file_is(public, tmp_path, capsys):
    store, target = tmp_path / "survey.sqlite", tmp_path / "reports.csv"
    reports = drawn(300)
    with served(public, store) as server:
        for _, text in reports:
            assert post(server.port, body(text, secrets.token_hex(16)))[0] == 200
    collection = open_collection(str(store))
    assert export(collection, target) == 300
    first = estimate(collection)
    collection.store.close()
    assert pyarrow.csv.read_csv(target).column_names == ["block", "y", "protocol"]
    second = small().public().estimate(target)  # the store holds no design sample either
    for name in COLUMNS:
        assert second.table(name).estimate == pytest.approx(first.table(name).estimate, abs=1e-12)
    assert main(["estimate", str(store), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["reports"] == 300
    assert main(["collect", str(store), "--status"]) == 0
    assert "300 reports" in capsys.readouterr().out


def test_a_whole_questionnaire_is_not_served(tmp_path):
    path = tmp_path / "survey.rldp.json"
    small().save(path)
    with (
        pytest.raises(ParameterError, match="make the public version first"),
        served(path, tmp_path / "s"),
    ):
        pass
    assert rldp.load(path).names == small().names
