"""Every address of the studio, with requests that no page would send.

Whatever comes, the answer is one line that says what is wrong, in JSON, and never an internal
error; what is not refused is real work, which is started but not waited for here.
"""

from __future__ import annotations

import asyncio
import json
import tracemalloc

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the studio extra is not installed")

import rldp
from rldp.studio.choices import Choice
from rldp.studio.guard import Guard
from rldp.studio.jobs import Job
from rldp.studio.limits import Limits
from rldp.studio.tasks import Design
from rldp.studio.uploads import profiled
from rldp.uncertainty.registry import offered, set_class
from tests.support.studio_client import ADULT, PORT, RIGHT, TOKEN, asked, uploaded
from tests.support.waiting import until

SURVEY = b"income,sex,age\n" + b"".join(
    f"{income},{sex},{age}\n".encode() * (3 + (7 * i) % 5)
    for i, (income, sex, age) in enumerate(
        (income, sex, age)
        for income in ("low", "mid", "high")
        for sex in "fm"
        for age in ("old", "young")
    )
)
CORNERS = [[[1, 2, 1, 1], [1, 1, 3, 1], [2, 1, 1, 1]]]
STEPS = (
    *("table", "curves", "search", "prices", "design", "protocol", "risk", "proof", "use"),
    *("release", "estimate", "plan", "code", "jobs/nothing/stop"),
    *(f"download/{what}" for what in ("protocol", "public", "records", "script", "report", "no")),
)
# fields that a step reads beside those of the choice
FIELDS = {
    "prices": ("what",),
    "design": ("again",),
    "release": ("format", "records", "shuffle"),
    "estimate": ("method", "level", "reports"),
    "plan": ("margin", "level", "cell"),
}
DEEP = "[" * 900 + "]" * 900
VALUES = tuple(
    json.loads(text)
    for text in (
        "null true false 0 1 -1 2 3 0.5 1e-300 5e-324 1e300 1e999 -1e999 NaN 100 101 "
        f"{'9' * 400} -{'9' * 400} "
        f'"" "a" "adult" "none" "auto" "inf" "nan" "1e999" "1/0" "0.05" "{"9" * 5000}" '
        r'"\ud800" "\udfff\ud800" "\u0000" "\u202e\u001b[2J" "sex" "income" "s" "u" "cells" '
        r'"polytope" "kl" "optimal" "likelihood" "parquet" "mergings" "drop" '
        "[] [1] [[]] [[[]]] [null] [[[1,2,1,1],[1,1,3,1],[2,1,1,1]]] [[[null]]] [[1,2],[3]] "
        r'["sex"] ["sex","sex"] ["income"] ["sex","age"] ["\ud800"] [["sex"]] [{}] '
        r'{} {"sex":"f"} {"sex":1} {"sex":["f"]} {"\ud800":"f"} {"sex":"\ud800"} {"a":{"b":[]}} '
        f'"{DEEP}" {DEEP}'
    ).split()
)


@pytest.fixture
def held(client, session, monkeypatch):
    """Three choices, whose designs are there; searches are not made."""
    known = uploaded(client, "survey.csv", SURVEY).json()
    wide = {"data": known["id"], "sensitive": ["income"], "useful": ["sex", "age"]}
    choices = [ADULT, wide, wide | {"kind": "polytope", "distributions": CORNERS}]
    for choice in choices:
        checked = Choice.from_request(choice)
        p = rldp.design(session.setting(checked).F, 1.0, "grr")
        session.designs.put(checked.id, Design(p))
    reports = session.add(profiled("reports.csv", p.release(session.file(known["id"]).frame)))
    monkeypatch.setattr(Job, "search", lambda *_: None)
    return choices, reports


def fields(step: str) -> list[str]:
    """What a request may hold: the choice, the parameters of all sets, and what the step reads."""
    of_sets = {p.name for kind in offered() for p in set_class(kind).parameters}
    return sorted({*Choice.__dataclass_fields__, *of_sets, *FIELDS.get(step, ())} - {"parameters"})


def requests(seed: int, count: int, choices: list[dict[str, object]], reports: str):
    """Step and body of one request after the other: one to three fields have a value of ours."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        step = str(rng.choice(STEPS))
        body = dict(choices[rng.integers(len(choices))])
        body |= {"reports": reports} if step == "estimate" else {}
        own = FIELDS.get(step, ())
        for _ in range(rng.integers(1, 4)):
            is_own = own and rng.random() < 0.5
            name = str(rng.choice(own if is_own else [*fields(step), "no such field"]))
            value = VALUES[rng.integers(len(VALUES))]
            if rng.random() < 0.15:
                body.pop(name, None)
            elif rng.random() < 0.1:
                body[name] = [value] * int(rng.integers(1, 300))
            else:
                body[name] = value
        yield step, damaged(json.dumps(body).encode(), rng)


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Most bodies as they are; some with a field twice, or cut, or with another byte in them."""
    chance = rng.random()
    if chance < 0.9:
        return content
    if chance < 0.94:
        return content[:-1] + b',"epsilon":2,"epsilon":["1"]}'
    place = int(rng.integers(len(content)))
    if chance < 0.97:
        return content[:place]
    return content[:place] + bytes([int(rng.integers(256))]) + content[place + 1 :]


def check(response) -> None:
    """An answer that was meant: one line in JSON and no internal error."""
    assert response.status_code < 500, response.text
    if response.status_code >= 400:
        told = response.json()
        assert set(told) == {"error", "field"}
        assert told["error"].endswith((".", "…")), told
        assert "\n" not in told["error"]
        assert len(told["error"]) < 1500
        assert "Traceback" not in response.text
        assert "internal error" not in response.text


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_no_request_ends_in_an_internal_error(seed, client, session, held, capfd):
    refused = 0
    for step, body in requests(seed, 150, *held):
        if len(body) > session.limits.request:
            continue
        response = client.post(f"/api/{step}", content=body, headers=RIGHT)
        try:
            check(response)
        except AssertionError as error:
            raise AssertionError(f"{step} {body[:2000]!r}: {error}") from None
        refused += response.status_code >= 400
    assert 50 < refused < 145
    until(lambda: not session.jobs.running(), "the end of all releases")
    assert not [job.error for job in session.jobs if "internal" in (job.error or "")]
    assert "".join(capfd.readouterr()) == ""


NAMES = [
    "",
    ".csv",
    "../a.csv",
    "a\0.csv",
    "a\n.csv",
    "\u202e.csv",
    "\x1b[2J.csv",
    "é" * 5000 + ".csv",
]


@pytest.mark.parametrize("name", [*NAMES, b"\xff.csv", b"%ff%00.csv"])
def test_a_file_has_a_name_that_can_be_shown_or_is_refused(name, client):
    for content in (b"s,u\n1,2\n2,1\n", b"s\0,u\n1"):
        response = uploaded(client, name, content)
        check(response)
        if response.status_code == 200:
            told = response.json()
            assert told["name"].isprintable()
            choice = {"data": told["id"], "sensitive": ["s"], "useful": ["u"]}
            for step in ("table", "curves", "prices"):
                check(asked(client, step, **choice))


@pytest.mark.parametrize("path", ["files/%ff", "files/..%2f..", "jobs/%00", "jobs/a/file", "no"])
def test_an_address_that_there_is_not_is_told_in_one_line(path, client):
    response = client.get(f"/api/{path}")
    assert response.status_code == 404
    assert len(response.text) < 200


@pytest.mark.parametrize(
    ("length", "status"),
    [("-1", 400), ("1e3", 400), ("\xb2", 400), ("9" * 5000, 413), ("0x10", 400), (" ", 400)],
)
def test_a_length_that_is_no_number_is_refused(length, status):
    sent = RIGHT | {"host": f"127.0.0.1:{PORT}", "content-length": length}
    headers = [(name.encode(), value.encode("latin-1")) for name, value in sent.items()]
    scope = {"type": "http", "method": "POST", "path": "/api/table", "headers": headers}
    told = []

    async def send(message):
        told.append(message)

    asyncio.run(Guard(None, PORT, TOKEN, Limits())(scope, None, send))
    assert told[0]["status"] == status


LARGEST = {
    "nested": b'{"distributions":' + b"[" * 30_000 + b"]" * 30_000 + b"}",
    "nested text": b'{"distributions":"' + b"[" * 60_000 + b'"}',
    "digits": b'{"epsilon":' + b"9" * 60_000 + b"}",
    "exponent": b'{"epsilon":1' + b"0" * 60_000 + b"e999999999}",
    "keys": b"{" + b",".join(b'"%x":0' % i for i in range(7_000)) + b"}",
    "one key": b"{" + b",".join([b'"epsilon":1'] * 5_000) + b"}",
    "names": json.dumps({"sensitive": ["s"] * 12_000}).encode(),
    "one name": json.dumps({"sensitive": ["s" * 60_000]}).encode(),
    "numbers": json.dumps({"distributions": [0] * 20_000}).encode(),
    "corners": json.dumps({"distributions": [[[1, 2], [2, 1]]] * 1_000}).encode(),
    "long numbers": json.dumps({"distributions": [[["9" * 399] * 2] * 2] * 40}).encode(),
    "long exponent": json.dumps({"distributions": [[["1e99999999"] * 2] * 2] * 40}).encode(),
}


@pytest.mark.parametrize("name", LARGEST)
@pytest.mark.parametrize("step", ["curves", "prices"])
def test_the_largest_request_takes_little_memory(step, name, client, monkeypatch):
    """A choice of polytopes over 2 × 2 cells, where a thousand corners are read."""
    choice = {"data": "adult", "sensitive": ["sex"], "useful": ["income"], "kind": "polytope"}
    content = json.dumps(choice).encode()[:-1] + b"," + LARGEST[name][1:]
    assert len(content) < 1 << 16
    monkeypatch.setattr(Job, "search", lambda *_: None)
    assert asked(client, "table", **ADULT).status_code == 200  # what every session holds
    tracemalloc.start()
    try:
        check(client.post(f"/api/{step}", content=content, headers=RIGHT))
        assert tracemalloc.get_traced_memory()[1] < 1 << 25
    finally:
        tracemalloc.stop()
