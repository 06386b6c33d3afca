"""The studio's server: who is let in, what it answers, and that it says what the package says."""

from __future__ import annotations

import gzip
import json
import math
import os
import re
import signal
import subprocess
import sys
import urllib.request
from io import BytesIO
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("starlette", reason="the studio extra is not installed")

from starlette.testclient import TestClient

import rldp
from rldp.studio import guard
from rldp.studio.application import application
from rldp.studio.choices import Choice
from rldp.studio.limits import Limits
from rldp.studio.session import GRID, Session
from rldp.studio.tasks import find_design
from rldp.studio.uploads import loaded, people
from tests.support.studio_client import (
    ADULT,
    HOME,
    PORT,
    RIGHT,
    TOKEN,
    asked,
    designed,
    ended,
    uploaded,
)
from tests.support.waiting import until

SURVEY = b"income,sex,age\nlow,f,old\nhigh, m,old\nlow,m,young\nhigh,f,young\nlow,,old\nNA,f,old\n"


# --- who is let in -------------------------------------------------------------------------------

HOSTS = {
    f"127.0.0.1:{PORT}": True,
    f"localhost:{PORT}": True,
    f"LOCALHOST:{PORT}": True,
    f"[::1]:{PORT}": True,
    "127.0.0.1": False,
    f"127.0.0.1:{PORT + 1}": False,
    f"evil.example:{PORT}": False,
    f"127.0.0.1.evil.example:{PORT}": False,
    f"localhost.:{PORT}": False,
    f"0.0.0.0:{PORT}": False,
    "": False,
}
ORIGINS = {
    "own": True,
    "null": False,
    "https://evil.example": False,
    "other port": False,
    None: False,
}
TOKENS = {TOKEN: True, "wrong": False, "": False, TOKEN.upper(): False, None: False}
TYPES = {
    "application/json": True,
    "application/json; charset=utf-8": True,
    "text/plain": False,
    "application/x-www-form-urlencoded": False,
    "multipart/form-data; boundary=x": False,
    "application/octet-stream": False,
    None: False,
}


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("path", ["/", "/api/session", "/api/files/adult", "/page/main.js"])
def test_pages_are_for_the_own_host_only(client, host, path):
    response = client.get(path, headers={"host": host})
    assert response.status_code == (200 if HOSTS[host] else 421)
    assert TOKEN not in response.text or HOSTS[host]


@pytest.mark.slow
def test_every_wrong_combination_of_a_write_is_denied(client):
    passed = denied = 0
    for host, is_host in HOSTS.items():
        own = f"http://{host}"
        for origin, is_origin in ORIGINS.items():
            sent = {"own": own, "other port": "http://127.0.0.1:1"}.get(origin or "", origin)
            for token, is_token in TOKENS.items():
                for kind, is_kind in TYPES.items():
                    headers = {
                        "host": host,
                        "origin": sent,
                        "x-studio-token": token,
                        "content-type": kind,
                    }
                    headers = {name: value for name, value in headers.items() if value is not None}
                    response = client.post("/api/table", content=json.dumps(ADULT), headers=headers)
                    is_right = is_host and is_origin and is_token and is_kind
                    assert (response.status_code == 200) == is_right, headers
                    assert is_right or response.status_code in (403, 415, 421)
                    passed, denied = passed + is_right, denied + (not is_right)
    assert (passed, denied) == (4 * 2, len(HOSTS) * len(ORIGINS) * len(TOKENS) * len(TYPES) - 8)


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("path", ["/", "/api/session", "/api/files/adult"])
def test_other_sites_read_nothing(client, site, path):
    assert client.get(path, headers={"sec-fetch-site": site}).status_code == 403


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_no_other_method_is_taken(client, method):
    assert client.request(method, "/api/table", headers=RIGHT).status_code == 405


def test_headers_that_come_twice_are_denied(client):
    twice = [*RIGHT.items(), ("origin", "https://evil.example")]
    assert client.post("/api/table", content="{}", headers=twice).status_code == 403
    twice = [*RIGHT.items(), ("x-studio-token", "wrong")]
    assert client.post("/api/table", content="{}", headers=twice).status_code == 403


def test_every_answer_has_a_strict_policy(client):
    for response in (
        client.get("/"),
        client.get("/page/main.js"),
        client.get("/nowhere"),
        client.get("/", headers={"host": "evil.example"}),
        asked(client, "table", **ADULT),
        asked(client, "table"),
    ):
        policy = response.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self';")
        assert "unsafe" not in policy
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["cross-origin-resource-policy"] == "same-origin"


def test_the_page_has_no_inline_script_or_style_and_names_no_other_host(client):
    index = client.get("/").text
    assert TOKEN in index
    for word in ("<style", "style=", "onclick", "javascript:", "https://"):
        assert word not in index
    assert index.count("<script") == index.count('<script type="module" src="/page/')


@pytest.mark.parametrize("announced", [True, False])
def test_bodies_beyond_the_limit_are_refused_with_a_reason(client, announced):
    content = b"x" * ((1 << 20) + 1)
    body = content if announced else (content[i : i + 4096] for i in range(0, len(content), 4096))
    response = uploaded(client, "large.csv", body)
    assert response.status_code == 413
    assert "1 MB" in response.json()["error"]
    large = client.post("/api/table", content=b" " * 70_000, headers=RIGHT)
    assert large.status_code == 413
    assert "64 kB" in large.json()["error"]


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"nul", b"[" * 30_000, b"\xff"])
def test_what_is_no_json_object_is_refused(client, body):
    response = client.post("/api/table", content=body, headers=RIGHT)
    assert response.status_code == 400
    assert response.json()["field"] == "request"


def test_an_internal_error_tells_nothing_of_the_data(session, capfd, monkeypatch):
    def broken(*_):
        raise RuntimeError("secret-value-of-a-person")

    monkeypatch.setattr(Session, "table", broken)
    with TestClient(application(session, PORT, TOKEN), base_url=HOME) as client:
        response = asked(client, "table", **ADULT)
    assert response.status_code == 500
    assert "RuntimeError" in response.json()["error"]
    told = response.text + "".join(capfd.readouterr())
    assert "secret-value-of-a-person" not in told
    assert "internal error: RuntimeError" in told


# --- data ----------------------------------------------------------------------------------------


def test_an_upload_counts_as_the_same_file_on_disk(client, tmp_path):
    path = tmp_path / "survey.csv"
    path.write_bytes(SURVEY)
    known = uploaded(client, "survey.csv", SURVEY).json()
    assert known["records"] == 6
    assert [c["missing"] for c in known["columns"]] == [1, 1, 0]
    assert [c["n_levels"] for c in known["columns"]] == [2, 2, 2]
    for missing in ("keep", "drop"):
        choice = {"data": known["id"], "sensitive": ["income"], "useful": ["sex", "age"]}
        shown = asked(client, "table", **choice, missing=missing).json()
        table = rldp.read_table(path, "income", ["sex", "age"], missing=missing)
        assert shown["counts"] == table.counts.tolist()
        assert shown["s_labels"] == list(table.schema.s_labels)
        assert shown["dropped"] == table.dropped
        assert shown["entropy_bits"] == pytest.approx(table.entropy / math.log(2))
    refused = asked(client, "table", **choice, missing="error")
    assert (refused.status_code, refused.json()["field"]) == (422, "missing")


def test_labels_that_look_alike_or_mean_that_there_is_no_answer_are_told(client):
    rows = "".join(
        f"{city},{age}\n" for city in ("José", "Jose\u0301", "Ann") for age in (1, 2, 99)
    )
    known = uploaded(client, "survey.csv", f"city,age\n{rows}".encode()).json()
    choice = {"data": known["id"], "sensitive": ["city"], "useful": ["age"]}
    with pytest.warns(rldp.LabelWarning):
        told = asked(client, "table", **choice).json()["remarks"]
    assert len(told) == 2
    assert "column 'city' look alike" in told[0]
    assert "U+0065 U+0301" in told[0]
    assert "Column 'age' has a label that surveys use for missing values: '99'" in told[1]
    assert asked(client, "table", **ADULT).json()["remarks"] == []


def test_parquet_and_gzip_are_read_too(client):
    frame = pa.table({"s": [1, 2, 2], "u": ["a", None, "b"], "x": [0.5, math.nan, 1.0]})
    sink = BytesIO()
    pq.write_table(frame, sink)
    known = uploaded(client, "t.parquet", sink.getvalue()).json()
    assert [c["n_levels"] for c in known["columns"]][:2] == [2, 2]
    assert [c["missing"] for c in known["columns"]] == [0, 1, 1]
    assert uploaded(client, "t.csv.gz", gzip.compress(SURVEY)).json()["records"] == 6


@pytest.mark.parametrize(
    ("name", "content", "culprit"),
    [
        ("a.csv", b"", "empty"),
        ("a.csv", b"s,u\n", "header only"),
        ("a.csv", b"s,u\n1,2\n3\n", "record 2"),
        ("a.csv", b"s,u\n1,\xff\n", "UTF-8"),
        ("a.csv", b"s,s\n1,2\n", "'s' more than once"),
        ("a.csv", b"s,\n1,2\n", "without a name"),
        ("a.xlsx", b"PK", "xlsx"),
        ("a.parquet", b"PAR1 and nothing", "damaged"),
        ("a.csv.gz", b"\x1f\x8b but no gzip", "damaged"),
        ("a.csv.gz", gzip.compress(b"s,u\n" + b"1,2\n" * 300_000), "1 MB"),
        ("", b"s,u\n1,2\n", "extension"),
    ],
)
def test_a_bad_file_is_refused_with_what_is_wrong(client, name, content, culprit):
    response = uploaded(client, name, content)
    assert response.status_code == 422
    assert culprit in response.json()["error"]
    assert response.json()["field"] == "data"


def test_the_oldest_file_gives_way_and_the_one_in_use_stays():
    session = Session(Limits(files=2))
    first, second = (session.add_file("a.csv", b"s,u\n1,2\n") for _ in range(2))
    session.file(first)
    session.add_file("b.csv", b"s,u\n1,2\n")
    assert session.file(first).records == 1
    with pytest.raises(rldp.RldpError, match="drop it again"):
        session.file(second)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"data": ""}, "data"),
        ({"data": "nothing"}, "data"),
        ({"sensitive": []}, "sensitive"),
        ({"sensitive": ["rice"]}, "sensitive"),
        ({"useful": ["race"]}, "useful"),
        ({"sensitive": "race"}, "sensitive"),
        ({"useful": ["sex", "income"]}, "useful"),
        ({"useful": ["sox"]}, "useful"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": "1"}, "epsilon"),
        ({"epsilon": True}, "epsilon"),
        ({"epsilon": 101}, "epsilon"),
        ({"alpha": 1}, "alpha"),
        ({"alpha": None}, "alpha"),
        ({"kind": "some"}, "kind"),
        ({"missing": "hide"}, "missing"),
        ({"protocol": "magic"}, "protocol"),
    ],
    ids=str,
)
def test_an_error_names_the_field_that_caused_it(client, change, field):
    response = asked(client, "curves", **(ADULT | change))
    assert response.status_code in (404, 422)
    assert response.json()["field"] == field
    assert response.json()["error"].endswith(".")


# --- the steps -----------------------------------------------------------------------------------


def test_curves_are_those_of_compare(client):
    told = asked(client, "curves", **(ADULT | {"epsilon": 0.7})).json()
    F = rldp.ChiSquareSet(rldp.datasets.adult("race", "sex"), 0.05)
    names = ["grr", "ue", "srr", "ir", "grr-cr", "ue-cr"]
    for points, epsilons in ((told["curves"], GRID), (told["at"], [0.7])):
        records = rldp.compare(F, epsilons, protocols=names)
        expected = {(record["protocol"], record["epsilon"]): record for record in records}
        assert len(points) == len(expected)
        for point in points:
            record = expected[point["protocol"], point["epsilon"]]
            assert point["bits"] == record["utility"] / math.log(2)
            assert point["share"] == record["normalised"]
            if math.isfinite(record["error"]) and point["protocol"] != "ue":  # it has more outputs
                assert point["error"] == pytest.approx(record["error"], rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("goal", ["cells", "s", "u", "u_given_s", "information"])
def test_protocols_are_ranked_by_the_goal(goal, client):
    told = asked(client, "curves", **ADULT, goal=goal).json()
    errors = [math.inf if point["error"] == "inf" else point["error"] for point in told["at"]]
    bits = [point["bits"] for point in told["at"]]
    assert len(set(errors)) > 3
    for point in told["at"]:  # levels are never shown smaller than they are
        for name, text in (("epsilon_given_u", "known_u"), ("epsilon_all", "always")):
            exact = math.inf if point[name] == "inf" else point[name]
            shown = math.inf if point[text] == "none" else float(point[text])
            assert exact - 1e-9 <= shown
            assert shown < exact + 1e-3 or exact > 13
    assert (errors == sorted(errors)) == (goal != "information")
    assert (bits == sorted(bits, reverse=True)) == (goal == "information")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"goal": "everything"}, "goal"),
        ({"goal": "u", "useful": []}, "goal"),
        ({"epsilon_given_u": -1}, "epsilon_given_u"),
        ({"epsilon_all": "much"}, "epsilon_all"),
        ({"epsilon_all": None}, "epsilon_all"),
        ({"epsilon_all": 101}, "epsilon_all"),
        ({"epsilon_given_part": "some"}, "epsilon_given_part"),
    ],
)
def test_a_wish_that_makes_no_sense_names_its_field(change, field, client):
    response = asked(client, "curves", **(ADULT | change))
    assert (response.status_code, response.json()["field"]) == (422, field)


@pytest.mark.slow
def test_layers_and_goal_are_those_of_the_design(client, session):
    """A level of one's own, and no fallback at all; both are what the proof and the code say."""
    table = {"sensitive": ["sex"], "useful": ["income"]}
    wish = {"goal": "s", "epsilon_given_u": 0.8, "epsilon_all": "none"}
    choice = ADULT | table | wish
    designed(client, **choice)
    p = session.design(Choice.from_request(choice))
    assert [round(g.epsilon, 12) for g in p.guarantees] == [1.0, 0.8]
    assert p.options["goal"] == "s"
    told = asked(client, "protocol", **choice).json()
    whole, nobody, knows_u, anyone = told["promises"]
    assert rldp.audit(p).epsilon_plain <= 1 + 1e-9  # S alone is read: said first
    assert "k fresh reports by e^(k · 1)" in whole["text"]
    assert "This is proved" in nobody["text"]
    assert "a factor e^0.8 ≤ 2.226. This is proved, whatever" in knows_u["text"]
    assert "proved" not in anyone["text"]
    proved = asked(client, "proof", **choice).json()["proved"]
    assert [text.partition(" over ")[0] for text in proved] == ["ε = 1", "ε = 0.8"]
    assert told["outlook"]["error"] == pytest.approx(p.error.rmse(p.table.n), rel=1e-3)
    assert told["outlook"]["epsilon_given_u"] <= 0.8 + 1e-9
    again = "goal='s', epsilon_given_u=0.8, epsilon_all=None"
    assert again in told["code"]["python"]
    assert "--goal s --epsilon-given-u 0.8 --epsilon-all none" in told["code"]["command"]
    compared = asked(client, "curves", **choice).json()["code"]
    assert again in compared["python"]
    assert "--epsilon-given-u 0.8" in compared["command"]
    plain = asked(client, "curves", **(ADULT | table)).json()["code"]
    assert "goal" not in plain["python"] + plain["command"]  # what is done anyway is not said


PEOPLE = "income,sex,age\n" + "".join(
    f"{income},{sex},{age}\n" * (7 + 5 * ((i * 5) % 7))
    for i, (income, sex, age) in enumerate(product(("low", "high"), "fm", ("young", "old")))
)


@pytest.mark.slow
def test_someone_who_knows_some_columns_of_u_is_named_with_the_chosen_level(client, session):
    choice = ADULT | {
        "data": uploaded(client, "people.csv", PEOPLE.encode()).json()["id"],
        "sensitive": ["income"],
        "useful": ["sex", "age"],
        "epsilon_given_part": 1.5,
    }
    designed(client, **choice)
    p = session.design(Choice.from_request(choice))
    assert {g.knows: g.epsilon for g in p.guarantees if g.knows} == {("sex",): 1.5, ("age",): 1.5}
    told = asked(client, "protocol", **choice).json()
    against = {promise["against"]: promise["text"] for promise in told["promises"]}
    text = against["Someone who knows only sex, or only age of the person"]
    assert "a factor e^1.5 ≤ 4.482. This is proved for every distribution" in text
    assert "epsilon_given_part=1.5" in told["code"]["python"]
    assert "--epsilon-given-part 1.5" in told["code"]["command"]
    risk = asked(client, "risk", **choice).json()
    levels = {level["over"]: level["epsilon"] for level in risk["levels"]}
    for part, epsilon in rldp.audit(p).epsilon_given_part.items():
        assert levels[f"over F, for someone who knows only {part[0]}"] == epsilon <= 1.5 + 1e-9
    assert any("to someone who knows that sex, age is" in text for text in risk["sentences"])
    points = asked(client, "curves", **choice).json()["at"]
    for point in points:  # never shown smaller than it is
        assert point["epsilon_given_part"] - 1e-9 <= float(point["known_part"])

    grr_cr = choice | {"protocol": "grr-cr", "epsilon_given_part": "auto"}
    designed(client, **grr_cr)
    by_name = session.design(Choice.from_request(grr_cr))
    worst, epsilon = max(rldp.audit(by_name).epsilon_given_part.items(), key=lambda item: item[1])
    if epsilon > 1 + 1e-9:
        told = asked(client, "protocol", **grr_cr).json()["promises"]
        texts = {promise["against"]: promise["text"] for promise in told}
        assert "did not promise" in texts[f"Someone who knows only {worst[0]} of the person"]


@pytest.mark.slow
def test_prices_are_those_of_the_package(client):
    table = {"sensitive": ["sex"], "useful": ["race"], "goal": "s"}
    told = {}
    for what in ("promises", "mergings"):
        job = asked(client, "prices", **(ADULT | table), what=what).json()
        assert ended(client, job)["state"] == "done"
        told[what] = progress(client, job)
    F = rldp.ChiSquareSet(rldp.datasets.adult("sex", "race"))
    (one,) = told["promises"]["tables"]
    expected = [f"{price['people']:,.0f}" for price in rldp.promise_prices(F, 1.0, goal="s")]
    assert [row[4] for row in one["rows"]] == expected
    assert "rldp.promise_prices(F, 1, goal='s')" in told["promises"]["code"]["python"]
    assert "--protocol best --goal s --prices" in told["promises"]["code"]["command"]
    (one,) = told["mergings"]["tables"]
    found = rldp.merging_prices(F, 1.0, goal="s")
    assert [row[2] for row in one["rows"]] == [f"{merging['people']:,.0f}" for merging in found]

    refused = asked(client, "prices", **(ADULT | table | {"goal": "information"}))
    assert (refused.status_code, refused.json()["field"]) == (422, "goal")
    refused = asked(client, "prices", **(ADULT | table), what="everything")
    assert (refused.status_code, refused.json()["field"]) == (422, "what")


def progress(client, job):
    return client.get(f"/api/jobs/{job['id']}").json()["progress"]


@pytest.mark.slow
def test_searches_report_as_they_go_and_stop_when_asked(client, session):
    choice = ADULT | {"sensitive": ["sex"], "useful": ["income"]}
    job = asked(client, "search", **choice).json()
    until(lambda: progress(client, job).get("searched"), "a first point")
    client.post(f"/api/jobs/{job['id']}/stop", content="{}", headers=RIGHT)
    job = ended(client, client.get(f"/api/jobs/{job['id']}").json())
    assert job["state"] == "stopped"
    setting = session.setting(Choice.from_request(choice))
    assert 0 < len(setting.searched) < 3 * 9
    F = rldp.ChiSquareSet(rldp.datasets.adult("sex", "income"))
    known = {(p["protocol"], p["epsilon"]): p for p in job["progress"]["searched"]}
    assert known["ceiling", 1]["bits"] == pytest.approx(rldp.ceiling(F, 1.0) / math.log(2))
    again = asked(client, "curves", **choice).json()
    assert {(p["protocol"], p["epsilon"]) for p in again["searched"]} >= set(known)


@pytest.mark.slow
def test_a_stopped_design_is_the_best_so_far_and_proved(client):
    choice = ADULT | {"sensitive": ["relationship"], "useful": ["education"], "protocol": "polyopt"}
    job = asked(client, "design", **choice).json()
    until(lambda: "share" in progress(client, job), "a first share")
    client.post(f"/api/jobs/{job['id']}/stop", content="{}", headers=RIGHT)
    assert ended(client, job)["state"] == "stopped"
    shown = asked(client, "protocol", **choice).json()
    assert shown["is_stopped"]
    assert shown["bits"] > 0
    assert shown["gap_bits"] is None or shown["gap_bits"] > 0  # stopped before there was a bound
    assert asked(client, "proof", **choice).json()["epsilon"] == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ir", "ue-cr", "polyopt"])
def test_a_design_is_shown_audited_proved_and_saved(name, client, session, tmp_path):
    choice = ADULT | {"protocol": name}
    early = asked(client, "protocol", **choice)
    assert (early.status_code, early.json()["field"]) == (409, "protocol")
    first = designed(client, **choice)
    assert asked(client, "design", **choice).json()["id"] == first["id"]
    p = session.design(Choice.from_request(choice))
    shown = asked(client, "protocol", **choice).json()
    assert shown["bits"] == p.utility / math.log(2)
    if name == "polyopt":  # knows the gap to the best of its kind
        assert shown["gap_bits"] == pytest.approx(p.optimality_gap / math.log(2), abs=1e-9)
    else:
        above = rldp.ceiling(p.uncertainty, 1.0) - p.utility
        assert shown["ceiling_gap_bits"] == pytest.approx(above / math.log(2), abs=1e-9)
    drawn, Q = shown["channel"], p.matrix.reshape(10, -1)
    np.testing.assert_array_equal(drawn["values"], Q[:, drawn["reports"]])
    assert drawn["occurring"] == (Q.max(axis=0) > 0).sum()
    assert drawn["chance"] == pytest.approx((p.table.p_su.ravel() @ Q)[drawn["reports"]].sum())
    codes = p.report_labels.reports(drawn["columns"])
    if name == "ue-cr":  # a symbol less 1 in each of 5 blocks
        codes = np.ravel_multi_index(tuple(codes.T + 1), (3,) * 5)
    assert codes.tolist() == drawn["reports"]
    found, risk = rldp.risk(p), asked(client, "risk", **choice).json()
    assert risk["holds"] is True
    assert [v["posterior"] for v in risk["values"]] == [v.posterior for v in found.values]
    assert risk["levels"][0]["epsilon"] == found.audit.epsilon
    assert asked(client, "proof", **choice).json()["conditions"] == rldp.verify(p).conditions
    for what, kind in (("protocol", rldp.ReleaseProtocol), ("public", rldp.PublicProtocol)):
        response = asked(client, f"download/{what}", **choice)
        assert 'filename="race.' in response.headers["content-disposition"]
        path, same = tmp_path / f"{what}.json", tmp_path / "same.json"
        path.write_bytes(response.content)
        assert isinstance(rldp.load(path), kind)
        (p if what == "protocol" else p.public()).save(same)
        assert path.read_bytes() == same.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_release_can_be_downloaded_and_estimated(kind, client, tmp_path):
    choice = ADULT | {"protocol": "ir"}
    designed(client, **choice)
    job = ended(client, asked(client, "release", **choice, format=kind).json())
    assert job["progress"]["records"] == 32_561
    path = tmp_path / f"reports.{kind}"
    path.write_bytes(client.get(f"/api/jobs/{job['id']}/file").content)
    p = tmp_path / "p.json"
    p.write_bytes(asked(client, "download/protocol", **choice).content)
    expected = rldp.load(p).estimate(path)
    told = asked(client, "estimate", **choice, reports=job["progress"]["reports"]).json()
    assert told["reports"] == expected.n == 32_561
    assert "325 forged ones added to the 32,561 could move a cell" in told["forgery"]
    shown = [record["estimate"] for record in told["cells"]]
    np.testing.assert_allclose(shown, expected.estimate.ravel(), rtol=0, atol=1e-12)
    table = rldp.datasets.adult("race", "sex")
    assert [record["sample"] for record in told["cells"]] == table.p_su.ravel().tolist()


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["keep", "drop"])
def test_records_with_missing_values_are_released_as_they_were_counted(missing, client, tmp_path):
    frame = pa.table({"s": [1, 2, None, 2] * 20, "u": ["a", None, "b", "b"] * 20, "x": range(80)})
    sink = BytesIO()
    pq.write_table(frame, sink)
    known = uploaded(client, "t.parquet", sink.getvalue()).json()["id"]
    choice = {"data": known, "sensitive": ["s"], "useful": ["u"], "missing": missing}
    choice["protocol"] = "grr"
    designed(client, **choice)
    job = ended(client, asked(client, "release", **choice, format="parquet").json())
    assert job["error"] is None
    path = tmp_path / "reports.parquet"
    path.write_bytes(client.get(f"/api/jobs/{job['id']}/file").content)
    reports = pq.read_table(path)
    assert reports.column_names == ["y"]
    assert reports.num_rows == (80 if missing == "keep" else 40)


@pytest.mark.slow
def test_a_release_of_other_records_names_what_is_wrong_with_them(client):
    choice = ADULT | {"protocol": "grr"}
    designed(client, **choice)
    other = uploaded(client, "t.csv", b"race,sex\nWhite,Male\nGreen,Male\n").json()["id"]
    job = ended(client, asked(client, "release", **choice, records=other).json())
    assert job["state"] == "failed"
    assert "Green" in job["error"]


def test_the_people_behind_counts_are_the_counts():
    table = rldp.datasets.adult("income", "race")
    assert rldp.Table.from_frame(people(table), "income", "race") == table


@pytest.mark.slow
def test_reports_of_another_kind_are_refused_beside_their_field(client):
    choice = ADULT | {"protocol": "ir"}
    designed(client, **choice)
    wrong = uploaded(client, "wrong.csv", b"y\nnonsense\n" + b"more nonsense\n" * 40).json()["id"]
    for reports in (wrong, "adult"):
        response = asked(client, "estimate", **choice, reports=reports)
        assert (response.status_code, response.json()["field"]) == (422, "reports")


@pytest.mark.slow
def test_plans_are_those_of_plan(client, session):
    choice = ADULT | {"protocol": "ir"}
    designed(client, **choice)
    p = session.design(Choice.from_request(choice))
    told = asked(client, "plan", **choice, margin=0.02, cell={"race": "Black"}).json()
    assert told["needed"] == rldp.plan(p, 0.02, cell={"race": "Black"}).needed
    assert asked(client, "plan", **choice).json()["needed"] == rldp.plan(p, 0.01).needed
    for change, field in (({"margin": 0}, "margin"), ({"cell": {"race": "Blue"}}, "cell")):
        response = asked(client, "plan", **choice, **change)
        assert (response.status_code, response.json()["field"]) == (422, field)


# --- report -----------------------------------------------------------------------------


@pytest.mark.slow
def test_the_report_stands_alone_and_escapes_what_is_in_the_data(client):
    content = b"<b>s</b>,u\n" + b"<i>a</i>,x\nb,y\nb,x\n" * 20
    known = uploaded(client, "t.csv", content).json()
    choice = {"data": known["id"], "sensitive": ["<b>s</b>"], "useful": ["u"], "protocol": "ir"}
    designed(client, **choice)
    response = asked(client, "download/report", **choice)
    text = response.text
    assert response.headers["content-type"].startswith("text/html")
    assert "<b>s" not in text
    assert "<i>a" not in text
    assert "&lt;i&gt;a&lt;/i&gt;" in text
    assert "src=" not in text
    assert "href=" not in text
    assert "default-src 'none'" in text
    assert "Proved" in text


@pytest.mark.slow
def test_nothing_is_written_to_disk(client, session, tmp_path):
    written, is_watching = [], True

    def watch(event, arguments):
        flags = arguments[2] if event == "open" else None
        is_pipe = event == "open" and isinstance(arguments[0], int)
        if (
            is_watching
            and not is_pipe
            and isinstance(flags, int)
            and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        ):
            written.append(str(arguments[0]))

    sys.addaudithook(watch)  # for good: there is no way to take it off
    known = uploaded(client, "survey.csv", SURVEY).json()
    choice = {"data": known["id"], "sensitive": ["income"], "useful": ["age"], "missing": "drop"}
    choice["protocol"] = "ir"
    asked(client, "table", **choice)
    designed(client, **choice)
    F = session.setting(Choice.from_request(choice)).F
    find_design(lambda *_: None, F, 1.0, "polyopt", {})  # what its process does, watched
    assert ended(client, asked(client, "release", **choice).json())["state"] == "done"
    assert asked(client, "download/report", **choice).status_code == 200
    assert asked(client, "download/protocol", **choice).status_code == 200
    found = [name for name in written if "/dev/" not in name and "__pycache__" not in name]
    assert found == []
    (tmp_path / "seen").write_text("a control: this one must be noticed")
    assert written[-1] == str(tmp_path / "seen")
    is_watching = False


# --- the command ---------------------------------------------------------------------------------


def test_the_command_loads_a_file_and_says_what_is_wrong_with_another(
    tmp_path, capsys, monkeypatch
):
    from rldp.cli import main
    from rldp.studio import serving

    opened = []
    monkeypatch.setattr(serving.Studio, "run", lambda self, **how: opened.append((self, how)))
    path = tmp_path / "survey.csv"
    path.write_bytes(SURVEY)
    assert main(["studio", str(path), "--no-browser"]) == 0
    server, how = opened[0]
    assert how == {"opens_browser": False}
    assert server.address in capsys.readouterr().out
    assert main(["studio", "--port", str(server.port)]) == 2
    assert f"port {server.port}" in capsys.readouterr().err
    server._socket.close()
    assert main(["studio", str(tmp_path / "nowhere.csv")]) == 2
    assert "nowhere.csv" in capsys.readouterr().err
    assert main(["studio", "--port", "70000"]) == 2
    assert "70000" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_serves_until_it_is_interrupted(tmp_path):
    path = tmp_path / "survey.csv"
    path.write_bytes(SURVEY)
    command = [sys.executable, "-m", "rldp.cli", "studio", str(path), "--no-browser"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as server:
        address = re.search(r"http://127\.0\.0\.1:\d+/", server.stdout.readline())[0]
        with urllib.request.urlopen(f"{address}api/session", timeout=60) as answer:
            start = json.load(answer)["start"]
        with urllib.request.urlopen(f"{address}api/files/{start}", timeout=60) as answer:
            assert json.load(answer)["name"] == "survey.csv"
        server.send_signal(signal.SIGINT)
        out, err = server.communicate(timeout=60)
    assert (server.returncode, err) == (0, "")
    assert "has ended" in out


def test_without_the_extra_it_says_how_to_install_it(capsys, monkeypatch):
    from rldp.cli import main

    monkeypatch.setattr(rldp, "studio", sys.modules["rldp.studio"])  # to be there again afterwards
    for name in [name for name in sys.modules if name.startswith("rldp.studio")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "starlette", None)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["studio"]) == 2
    assert "rldp[studio]" in capsys.readouterr().err


@pytest.mark.slow
def test_limits_are_what_the_guard_uses():
    limits = Limits()
    assert guard.UPLOADS == ("/api/files",)
    assert limits.request < limits.upload < limits.unpacked
    with pytest.raises(rldp.RldpError, match="at most 1 columns"):
        loaded("a.csv", b"s,u\n1,2\n", Limits(columns=1))
