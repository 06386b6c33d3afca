"""Two hundred hostile requests: each gets its status, nothing is stored, and the server lives."""

from __future__ import annotations

import json
import select
import socket
import sys
import tracemalloc
from collections import Counter
from contextlib import ExitStack

import pytest

import rldp
from rldp.collect.invitations import invite
from rldp.collect.limits import Limits
from rldp.collect.opening import open_collection
from rldp.collect.report_codes import ReportCodes
from rldp.collect.submissions import RequestError, entries
from tests.support.collecting import served

LIMITS = Limits(body=64 << 10, head=8 << 10, batch=50, patience=1.0)
JSON = {"content-type": "application/json"}
CLOSED = None  # the connection is closed without an answer


@pytest.fixture(scope="module")
def server(race, tmp_path_factory):
    yield from running(race, tmp_path_factory.mktemp("hostile") / "s.sqlite")


@pytest.fixture(scope="module")
def invited(race, tmp_path_factory):
    yield from running(race, tmp_path_factory.mktemp("invited") / "s.sqlite", {"invited": "yes"})


def running(race, store, settings=None):
    with served(race, store, settings=settings or {}, limits=LIMITS) as server:
        server.fingerprint = rldp.load(race).fingerprint
        yield server


def raw(server, content, *, then=b""):
    """The status of the answer to some bytes, None if the connection is closed instead."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client:
        try:
            client.sendall(content)
            if then:
                client.sendall(then)
            answer = b""
            while b"\r\n" not in answer:
                part = client.recv(65536)
                if not part:
                    break
                answer += part
        except ConnectionError:
            return CLOSED
    return int(answer.split()[1]) if answer else CLOSED


def request(server, body=b"", *, method="POST", path="/v1/reports", headers=None, host=None):
    lines = [f"{method} {path} HTTP/1.1"]
    hosts = [f"127.0.0.1:{server.port}"] if host is None else host
    lines += [f"host: {name}" for name in hosts]
    given = (JSON | {"content-length": str(len(body))}) if headers is None else headers
    lines += [f"{name}: {value}" for name, value in given.items()]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def document(*reports):
    return json.dumps({"version": 1, "reports": list(reports)}).encode()


def good(server, **changes):
    entry = {"id": "ab" * 16, "protocol": server.fingerprint, "report": "White | Female"} | changes
    return {key: value for key, value in entry.items() if value is not ...}


def bodies(server):
    """Bodies of requests, and the status of each."""
    entry = json.dumps(good(server))
    text = document(good(server)).decode()
    wrong_json = [
        *(
            b"",
            b"{",
            b"[]",
            b"null",
            b"1",
            b'"x"',
            b"{}",
            b"nul",
            b"\x00",
            b"\xff\xfe",
            b"{'a': 1}",
        ),
        *(b"[" * 20_000, b'{"a":' * 5_000, b'{"version": 1, "reports": []}'),
        text.encode("utf-16"),
        text.encode("utf-32"),
        b"\xef\xbb\xbf" + text.encode(),
        text.replace("White", "Wh\xefte").encode("latin-1"),
        *(f'{{"version": {v}, "reports": [{entry}]}}'.encode() for v in VERSIONS),
        f'{{"version": 1, "version": 1, "reports": [{entry}]}}'.encode(),
        f'{{"version": 1, "reports": [], "reports": [{entry}]}}'.encode(),
        text.replace('"id"', '"id": "cd", "id"').encode(),
        text.replace('"report"', '"report": "x", "report"').encode(),
        f'{{"version": 1, "reports": [{entry}], "more": 1}}'.encode(),
        f'{{"version": 1, "reports": {{"0": {entry}}}}}'.encode(),
        f'{{"version": 1, "reports": [{entry}]}} x'.encode(),
        f'{{"version": 1, "reports": [{entry},]}}'.encode(),
        f'{{"reports": [{entry}]}}'.encode(),
        f'{{"version": 1, "reports": "{"x" * 1000}"}}'.encode(),
    ]
    yield from ((body, 400) for body in wrong_json)
    yield document(*[good(server)] * 51), 413
    for entry in (None, 1, "x", [], {}, [1], True, {"id": "ab" * 16}, {"x": 1}):
        yield document(entry), 400
    for key in ("id", "protocol", "report"):
        yield document(good(server, **{key: ...})), 400
    for key in ("time", "address", "answers", "S", "__proto__"):
        yield document(good(server, **{key: "x"})), 400
    for value in IDS:
        yield document(good(server, id=value)), 400
    for value in ("", "x", None, 1, [], server.fingerprint.upper(), server.fingerprint[:12]):
        yield document(good(server, protocol=value)), 404
    for value in REPORTS:
        yield document(good(server, report=value)), 422
    yield text.replace("White", "\\ud800").encode(), 422
    for value in ("", "x", None, 1, "é" * 22, "a" * 21, "a" * 23, ["a" * 22], "a" * 21 + "="):
        yield document(good(server, invitation=value)), 400
    mixed = document(good(server, report="x"), good(server, protocol="x"), 5)
    yield mixed, 207


VERSIONS = ("0", "2", "1.0", "1e0", "true", "null", '"1"', "-1", "1e400", "NaN", "9" * 5000, "01")
IDS = (
    *("", "ab", "AB" * 16, "ab" * 15, "ab" * 17, "zz" * 16, "0x" + "ab" * 15, " " + "ab" * 16),
    *("ab" * 16 + "\n", "é" * 32, None, 5, 10**30, [], {}, True, "\u0000" * 32, "٠" * 32),
)
REPORTS = (
    *(
        "",
        "White",
        "Female",
        "White|Female",
        "white | female",
        "White | Female ",
        " White | Female",
    ),
    *(
        "'White | Female",
        "White | Female; Black | Male",
        "{White | Female}",
        "y0",
        "0",
        "White | X",
    ),
    *(None, 0, 6, -1, 2**64, [], {}, True, "x" * 10_000, "\u0000", "=1+1", "<script>"),
)


def connections(server):
    """Whole requests, and the status of each."""
    body = document(good(server))
    own = f"127.0.0.1:{server.port}"
    length = str(len(body))
    for n in (LIMITS.body + 1, 10**9, 10**12, 10**18, 10**40):
        yield request(server, headers=JSON | {"content-length": str(n)}), (413, 400)
    chunked = JSON | {"transfer-encoding": "chunked"}
    big = b"8000\r\n" + b" " * 0x8000 + b"\r\n"
    yield request(server, headers=chunked) + big * 3 + b"0\r\n\r\n", (413, 400)
    for kind in (
        *("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"),
        *("application/octet-stream", "text/json", "json", "", "application/jsonx", "*/*"),
    ):
        headers = {"content-type": kind, "content-length": length}
        yield request(server, body, headers=headers), (415,)
    yield request(server, body, headers={"content-length": length}), (415,)
    for kind in ("gzip", "br", "identity", "deflate, gzip"):
        headers = JSON | {"content-length": length, "content-encoding": kind}
        yield request(server, body, headers=headers), (415,)
    for name in (
        *("evil.example", "localhost", "127.0.0.1", f"127.0.0.1:{server.port + 1}", "0.0.0.0"),
        *(f"{own}.evil.example", f"evil.example:{server.port}", f"{own}@evil.example", "[::1]"),
        *(f"localhost.:{server.port}", "", f"{own}, evil.example"),
    ):
        yield request(server, body, host=[name]), (421,)
    yield request(server, body, host=[own, "evil.example"]), (421, 400)
    yield request(server, body, host=[]), (421, 400)
    for origin in (
        *("null", "https://evil.example", f"https://{own}", "http://127.0.0.1", "http://localhost"),
        *(f"http://{own}.evil.example", f"http://{own}/", "file://", "chrome-extension://x", ""),
    ):
        headers = JSON | {"content-length": length, "origin": origin}
        yield request(server, body, headers=headers), (403,)
    for site in ("cross-site", "same-site", "x"):
        headers = JSON | {"content-length": length, "sec-fetch-site": site}
        yield request(server, body, headers=headers), (403,)
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"):
        yield request(server, body, method=method), (405, 400)
    for path in ("/", "/v1/survey", "/health", "/v1/reports/", "/v1//reports", "/V1/REPORTS"):
        yield request(server, body, path=path), (405,)
    for path in (
        *(
            "/nowhere",
            "/code/../../../etc/passwd",
            "/code/%2e%2e/%2e%2e/etc/passwd",
            "/page/form.js",
        ),
        *("/v1/protocols/", "/v1/protocols/x", "/.env", "/race.sqlite", "/client/package.json"),
    ):
        yield request(server, method="GET", path=path, headers={}), (404,)
    for path in ("/metrics", "/v1/figures"):
        for value in ("", "Bearer", "Bearer x", server.token, f"Basic {server.token}", "Bearer é"):
            headers = {"authorization": value}
            yield request(server, method="GET", path=path, headers=headers), (401,)
        yield request(server, method="GET", path=path, headers={}), (401,)
    both = JSON | {"content-length": "4", "transfer-encoding": "chunked"}
    yield request(server, headers=both) + b"0\r\n\r\n" + request(server, body), (400,)
    for wrong in ("-1", "+5", "5 5", "0x5", "5,5", "abc"):
        yield request(server, body, headers=JSON | {"content-length": wrong}), (400, 413)
    for junk in (
        b"\x16\x03\x01\x02\x00",
        b"GET\r\n\r\n",
        b"\x00" * 64,
        b"HELO x\r\n\r\n",
        b"{}\r\n\r\n",
    ):
        yield junk + b"\r\n\r\n", (400, CLOSED)
    yield b"GET / HTTP/9.9\r\n\r\n", (400, 421, CLOSED)
    many = {f"x-{i}": "y" * 500 for i in range(200)}
    yield request(server, body, headers=JSON | many | {"content-length": length}), (431, CLOSED)
    yield b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n", (431, 421, CLOSED)


def slow(server):
    """Beginnings of requests after which nothing comes."""
    yield b"", (CLOSED,)
    yield b"POST /v1/repo", (CLOSED,)
    yield request(server)[:-4], (CLOSED,)
    yield request(server, headers=JSON | {"content-length": "100"}) + b'{"version"', (408,)
    yield request(server, headers=JSON | {"transfer-encoding": "chunked"}) + b"5\r\nab", (408,)


@pytest.mark.slow
def test_every_request_gets_its_status_and_stores_nothing(server):
    seen = Counter()
    for body, status in bodies(server):
        assert raw(server, request(server, body)) == status, body[:200]
        seen[status] += 1
    for content, statuses in connections(server):
        found = raw(server, content)
        assert found in statuses, content[:300]
        seen[found] += 1
    for content, statuses in slow(server):
        found = raw(server, content)
        assert found in statuses, content[:100]
        seen[found] += 1
    assert sum(seen.values()) >= 200
    assert {400, 401, 403, 404, 405, 408, 413, 415, 421, 422, 431} <= {*seen}
    assert server.collection.store.status().reports == 0
    assert raw(server, request(server, document(good(server)))) == 200  # it lives
    assert server.collection.store.status().reports == 1


def test_forged_and_replayed_invitations_store_nothing(invited, tmp_path):
    collection = open_collection(invited.collection.where)
    invite(collection, 3, tmp_path / "links.csv")
    collection.store.close()
    lines = (tmp_path / "links.csv").read_text().splitlines()[1:]
    tokens = [line.partition("#i=")[2].partition("&")[0] for line in lines]

    def sent(id_, **more):
        return raw(invited, request(invited, document(good(invited, id=id_, **more))))

    assert sent("01" * 16) == 403
    for forged in ("a" * 22, "-" * 22, tokens[0][::-1], tokens[0].swapcase(), tokens[0][:-1] + "~"):
        assert sent("02" * 16, invitation=forged) in (400, 403)
    assert invited.collection.store.status() == (0, 3, 0)
    assert sent("03" * 16, invitation=tokens[0]) == 200
    assert sent("03" * 16, invitation=tokens[0]) == 200  # the answer was lost
    assert sent("03" * 16, invitation=tokens[1]) == 200  # a repetition spends nothing
    assert sent("04" * 16, invitation=tokens[0]) == 410
    twice = [good(invited, id=f"{n:032x}", invitation=tokens[2]) for n in (5, 6, 7)]
    assert raw(invited, request(invited, document(*twice))) == 207
    assert invited.collection.store.status() == (2, 3, 2)


def test_requests_that_do_not_end_have_a_limit_together(race, tmp_path):
    limits = Limits(body=64 << 10, arriving=100 << 10, patience=60.0)
    with served(race, tmp_path / "s.sqlite", limits=limits) as server, ExitStack() as stack:
        server.fingerprint = rldp.load(race).fingerprint
        body = document(good(server))
        body += b" " * ((60 << 10) - len(body))
        head = request(server, headers=JSON | {"content-length": str(len(body))})
        clients = []
        for _ in range(2):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            client.settimeout(60)
            client.sendall(head + body[:-1])
            clients.append(client)
        statuses = []
        while 503 not in statuses:  # one of the two, as soon as both are there
            for client in select.select(clients, [], [], 60)[0]:
                clients.remove(client)
                statuses.append(int(client.recv(65536).split()[1]))
        (left,) = clients
        left.sendall(body[-1:])
        assert int(left.recv(65536).split()[1]) == 200
        assert raw(server, request(server, document(good(server)))) == 200
        assert server.collection.store.status().reports == 1


def test_a_set_of_any_length_is_read_once(unique):
    """One long text once took hours: every place of it was a beginning to be tried to the end."""
    codes = ReportCodes(rldp.load(unique))
    whole = codes.packed("{0 | 0; 4 | 4}")
    assert codes.packed("{4 | 4; 0 | 0}") == whole is not None
    for text in ("a" * 500_000 + ";b", "a;" * 500_000, "\\" * 999_999, "0 | 0; " * 140_000):
        assert codes.packed(f"{{{text}}}") is None
    for text in ("0 | 0; ", "; 0 | 0", "0 | 0;0 | 1", "0 | 0;", "0 | 0; 0 | 0", "\\", "0 | 0\\"):
        assert codes.packed(f"{{{text}}}") is None


def test_the_work_of_a_body_is_that_of_its_bytes():
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)  # as some programs do
    tracemalloc.start()
    try:
        for content in (
            b"9" * 1_000_000,
            b'{"version": ' + b"1" * 50 + b', "reports": [{}]}',
            b"[" * 1_000_000,
            b'{"a":' * 200_000,
            b"[" + b"[]," * 340_000 + b"[]]",
            b"{" + b'"":0,' * 200_000 + b'"":0}',
        ):
            with pytest.raises(RequestError) as caught:
                entries(content, 1000)
            assert caught.value.status == 400
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
        sys.set_int_max_str_digits(before)


def test_a_client_that_leaves_early_does_no_harm(server):
    before = server.collection.store.status().reports
    content = request(server, document(good(server, id="cd" * 16)))
    for cut in range(1, len(content), 37):
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(content[:cut])
    assert raw(server, request(server, method="GET", path="/health", headers={})) == 200
    assert server.collection.store.status().reports == before
