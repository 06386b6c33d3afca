"""The interface for apps: what it serves, what it tells of each report, and what it never tells."""

from __future__ import annotations

import datetime
import hashlib
import http.client
import json
import ssl
import threading
import time

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

import rldp
from rldp.collect.application import code_hash, page_code
from rldp.collect.limits import Limits
from rldp.collect.serving import Collector, Options
from rldp.collect.sqlite_store import SQLiteStore
from rldp.collect.store import StoreError
from tests.support.collecting import served
from tests.support.files import JAVASCRIPT


@pytest.fixture
def server(race, tmp_path):
    with served(race, tmp_path / "s.sqlite") as server:
        yield server


def asked(server, method, path, body=None, **headers):
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    client.request(method, path, body, headers)
    response = client.getresponse()
    response.content = response.read()
    client.close()
    return response


def posted(server, *reports):
    body = json.dumps({"version": 1, "reports": list(reports)})
    return asked(server, "POST", "/v1/reports", body, **{"content-type": "application/json"})


def report(server, number, text="White | Female", **more):
    fingerprint = server.collection.protocol.fingerprint
    return {"id": f"{number:032x}", "protocol": fingerprint, "report": text, **more}


def results(response):
    return [(r["status"], r["state"]) for r in json.loads(response.content)["results"]]


def test_the_protocol_is_served_by_its_fingerprint_for_ever(server, race):
    survey = json.loads(asked(server, "GET", "/v1/survey").content)
    assert survey["fingerprint"] == rldp.load(race).fingerprint
    answer = asked(server, "GET", f"/v1/protocols/{survey['fingerprint']}")
    assert answer.content == race.read_bytes()
    assert "immutable" in answer.headers["cache-control"]


def test_every_report_of_a_batch_is_told_its_own_fate(server):
    answer = posted(
        server,
        report(server, 1),
        report(server, 1),
        report(server, 1, "Black | Male"),
        report(server, 2, "none"),
        report(server, 3) | {"protocol": "0" * 64},
        report(server, 4),
    )
    assert answer.status == 207
    told = [(200, "stored"), (200, "repeated"), (409, "refused"), (422, "refused")]
    assert results(answer) == [*told, (404, "refused"), (200, "stored")]
    assert posted(server, report(server, 1), report(server, 4)).status == 200
    assert server.collection.store.status().reports == 2


def test_every_answer_has_a_strict_policy_and_no_cookie(server):
    paths = ["/", "/operator", "/v1/survey", "/nowhere", "/health", "/metrics"]
    answers = [asked(server, "GET", path) for path in paths]
    answers += [posted(server, report(server, 1)), posted(server, 5)]
    answers.append(asked(server, "GET", "/", host="evil.example"))
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self';")
        assert "unsafe" not in policy
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        assert "set-cookie" not in answer.headers
        assert "server" not in answer.headers


def test_the_form_may_be_visited_from_elsewhere_and_nothing_else_may(server):
    visit = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert asked(server, "GET", "/", **visit).status == 200
    for mode in ("cors", "no-cors"):
        other = {"sec-fetch-site": "cross-site", "sec-fetch-mode": mode}
        assert asked(server, "GET", "/v1/survey", **other).status == 403


def test_the_page_runs_the_client_and_its_code_has_one_hash(server):
    """The client in the package is that of clients/js, file by file, but for its checker."""
    code = page_code()
    listed = json.loads((JAVASCRIPT / "package.json").read_text())["files"]
    listed.remove("proof")
    for name in listed:
        assert code[f"client/{name}"] == (JAVASCRIPT / name).read_bytes()
    assert {name for name in code if name.startswith("client/")} == {f"client/{x}" for x in listed}
    lines = "".join(
        f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(code.items())
    )
    expected = hashlib.sha256(lines.encode()).hexdigest()
    assert code_hash(code) == expected
    index = asked(server, "GET", "/").content.decode()
    for name, content in code.items():
        answer = asked(server, "GET", f"/code/{expected}/{name}")
        assert answer.content == content
        assert "immutable" in answer.headers["cache-control"]
    assert index.count("<script") == index.count(f'<script type="module" src="/code/{expected}/')
    for word in ("<style", "style=", "onclick", "https://"):
        assert word not in index


class Stuck:
    """A store whose transactions wait until they are let go, or fail."""

    def __init__(self, monkeypatch):
        self.go, self.error = threading.Event(), None
        add = SQLiteStore.add

        def waiting(store, submissions):
            assert self.go.wait(60)
            if self.error is not None:
                raise self.error
            return add(store, submissions)

        monkeypatch.setattr(SQLiteStore, "add", waiting)


def test_what_cannot_be_written_now_is_sent_away_and_what_was_taken_is_kept(
    race, tmp_path, monkeypatch
):
    stuck = Stuck(monkeypatch)
    limits = Limits(waiting=20, batch=10, retry_after=7)
    answers = []
    with served(race, tmp_path / "s.sqlite", limits=limits) as server:

        def work(first):
            batch = [report(server, n) for n in range(first, first + 5)]
            answers.append(posted(server, *batch))

        threads = [threading.Thread(target=work, args=(5 * i,)) for i in range(12)]
        for thread in threads:
            thread.start()
        while len(answers) < 8:  # four requests fill the queue, all others are answered
            time.sleep(0.001)
        assert {answer.status for answer in answers} == {503}
        assert all(answer.headers["retry-after"] == "7" for answer in answers)
        stuck.go.set()
        for thread in threads:
            thread.join()
        assert sorted(answer.status for answer in answers) == [200] * 4 + [503] * 8
        assert server.collection.store.status().reports == 20


def test_a_failing_store_acknowledges_nothing_and_recovers(race, tmp_path, monkeypatch, capfd):
    stuck = Stuck(monkeypatch)
    stuck.go.set()
    with served(race, tmp_path / "s.sqlite") as server:
        stuck.error = StoreError("secret-of-the-database")
        answer = posted(server, report(server, 1))
        assert (answer.status, answer.headers["retry-after"]) == (503, "2")
        assert asked(server, "GET", "/health").status == 503
        stuck.error = None
        assert posted(server, report(server, 1)).status == 200
        assert asked(server, "GET", "/health").status == 200
    assert "secret-of-the-database" not in "".join(capfd.readouterr())


def test_a_nearly_full_disk_is_told_before_it_is_full(race, tmp_path):
    limits = Limits(reserve=1 << 60)
    with served(race, tmp_path / "s.sqlite", limits=limits) as server:
        answer = posted(server, report(server, 1))
        assert (answer.status, answer.headers["retry-after"]) == (507, "2")
        assert asked(server, "GET", "/health").status == 507
        assert server.collection.store.status().reports == 0


def test_the_operator_is_told_figures_and_metrics(server):
    posted(server, *(report(server, n, "Black | Male") for n in range(400)))
    posted(server, report(server, 1, "Black | Male"), report(server, 99, "x"))
    token = {"authorization": f"Bearer {server.token}"}
    told = json.loads(asked(server, "GET", "/v1/figures", **token).content)
    assert told["reports"] == 400
    assert told["needed"] > 400
    assert len(told["estimates"]["cells"]) == 6
    assert told["fit"] < 0.01  # nobody's reports are all the same
    assert told["suspected"] > 0
    text = asked(server, "GET", "/metrics", **token).content.decode()
    assert 'rldp_reports_total{state="stored"} 400\n' in text
    assert 'rldp_reports_total{state="repeated"} 1\n' in text
    assert 'rldp_reports_total{state="refused"} 1\n' in text
    assert 'rldp_requests_total{status="207"} 1\n' in text


def test_logs_hold_no_report_no_address_and_no_time(race, tmp_path, capfd):
    with served(race, tmp_path / "s.sqlite") as server:
        posted(server, report(server, 0xABCDEF, "Other | Male"))
        posted(server, 7)
        asked(server, "GET", "/nowhere")
    lines = capfd.readouterr().err.splitlines()
    events = [json.loads(line) for line in lines]
    assert [event["event"] for event in events] == ["started", "ended"]
    for word in ("abcdef", "Other", "nowhere", "20:", "202"):
        assert not any(word in line for line in lines if "started" not in line)
    assert set(events[0]) == {"event", "what", "fingerprint", "origin"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"host": "0.0.0.0"}, "the address that people see"),
        ({"origin": "http://survey.example"}, "with https"),
        ({"origin": "survey.example"}, "such as https"),
        ({"origin": "https://survey.example/path"}, "such as https"),
        ({"port": 70_000}, "port from 0"),
        ({"tls": ("nothing.pem", "nothing.pem")}, "certificate"),
        ({"earlier": ["nothing.sqlite"]}, "does not exist"),
    ],
)
def test_wrong_options_are_told_before_anything_is_served(race, tmp_path, options, words):
    with pytest.raises(rldp.RldpError, match=words):
        Collector(race, Options(str(tmp_path / "s.sqlite"), **options))


def test_the_token_of_the_operator_may_stay_the_same(race, tmp_path):
    file = tmp_path / "token"
    file.write_text("a-secret-of-the-operator\n")
    with served(race, tmp_path / "s.sqlite", token_file=file) as server:
        assert server.operator.endswith("/operator#a-secret-of-the-operator")
        token = {"authorization": "Bearer a-secret-of-the-operator"}
        assert asked(server, "GET", "/metrics", **token).status == 200
    for content, words in ((b"short", "16 or more"), (b"\xff" * 20, "Cannot read")):
        file.write_bytes(content)
        with pytest.raises(rldp.RldpError, match=words):
            Collector(race, Options(str(tmp_path / "s.sqlite"), token_file=file))


def test_a_certificate_of_its_own(race, tmp_path):
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    start = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC).replace(tzinfo=None)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, start)
        .not_valid_after(start.replace(year=2120))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem, secret = tmp_path / "cert.pem", tmp_path / "key.pem"
    pem.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8)
    secret.write_bytes(key.private_bytes(*form, serialization.NoEncryption()))
    with served(race, tmp_path / "s.sqlite", tls=(pem, secret)) as server:
        assert server.form.startswith("https://")
        context = ssl.create_default_context(cafile=str(pem))
        client = http.client.HTTPSConnection("localhost", server.port, context=context, timeout=60)
        client.request("GET", "/v1/survey")
        assert client.getresponse().status == 200
        client.close()


def test_a_form_behind_a_proxy_has_its_public_name(race, tmp_path):
    with served(race, tmp_path / "s.sqlite", origin="https://Survey.example/") as server:
        assert server.form == "https://survey.example/"
        assert asked(server, "GET", "/", host="survey.example").status == 200
        own = {"content-type": "application/json", "host": "survey.example"}
        body = json.dumps({"version": 1, "reports": [report(server, 1)]})
        for origin, status in (("https://survey.example", 200), ("https://evil.example", 403)):
            answer = asked(server, "POST", "/v1/reports", body, origin=origin, **own)
            assert answer.status == status
