"""One entry makes a set F known to files, checkers, command line and page."""

from __future__ import annotations

import json
import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import rldp
from rldp.cli import app, main
from rldp.errors import CertificateError, ParameterError
from rldp.intervals import check_with_intervals
from rldp.intervals import uncertainty as interval_sets
from rldp.proof import check
from rldp.proof import uncertainty as proof_sets
from rldp.protocol import documents
from rldp.studio.choices import Choice
from rldp.uncertainty import SETS, kind_of, register, set_around
from rldp.uncertainty.evidence import sample
from rldp.uncertainty.registry import offered
from tests.support.listed_set import ListedDistributions

ROOT = Path(__file__).parents[2]
TABLE = rldp.Table([[30, 10], [10, 50]])
LISTED = [[[0.3, 0.1], [0.1, 0.5]], [[0.25, 0.15], [0.2, 0.4]], [[0.35, 0.15], [0.05, 0.45]]]
OFFERED = list(offered())
OWN = [kind for kind, cls in SETS.items() if cls.__module__.startswith("rldp.")]
EPSILON = 0.8


def listed() -> ListedDistributions:
    return ListedDistributions(TABLE, LISTED)


# --- every kind that is registered ---------------------------------------------------------------


def test_every_kind_is_known_to_both_checkers():
    assert SETS.keys() <= proof_sets.SETS.keys()
    assert SETS.keys() <= interval_sets.SETS.keys()


def some_set(kind: str) -> rldp.UncertaintySet:
    given = {"distributions": LISTED} if kind in ("listed", "polytope") else {}
    if kind == "evidence":
        given = {"evidence": [sample(TABLE, "chi-square", 0.05)]}
    return set_around(TABLE, kind, given)


@pytest.mark.parametrize("kind", OFFERED)
def test_both_checkers_prove_a_design_over_it(kind, tmp_path):
    pytest.importorskip("flint")
    rldp.design(some_set(kind), EPSILON, "ir").save(tmp_path / "p.json")
    document = json.loads((tmp_path / "p.json").read_text())
    assert check(document).epsilon == Fraction(EPSILON)
    check_with_intervals(document)


@pytest.mark.parametrize("kind", SETS)
def test_its_document_gives_it_back(kind):
    F = some_set(kind)
    document = json.loads(json.dumps(documents.uncertainty_document(F)))
    again = documents.uncertainty_from(document, TABLE.schema)
    assert type(again) is type(F) is SETS[kind]
    assert again.arguments == F.arguments
    assert documents.uncertainty_document(again) == document


@pytest.mark.slow
@pytest.mark.parametrize("kind", OFFERED)
def test_the_command_line_offers_it_with_its_parameters(kind):
    shown = CliRunner().invoke(app, ["design", "--help"], terminal_width=200).output
    assert kind in shown
    for parameter in SETS[kind].parameters:
        assert f"--{parameter.name}" in shown


@pytest.mark.parametrize("kind", SETS)
def test_the_code_for_it_makes_the_same_set(kind):
    F = some_set(kind)
    names = {"rldp": rldp, "table": TABLE, type(F).__name__: type(F)}
    again = eval(type(F).code(F.arguments), names)  # our own text
    assert kind_of(again) == kind
    assert again.arguments == F.arguments


def test_parameters_have_names_of_their_own_on_the_page():
    names = {parameter.name for cls in SETS.values() for parameter in cls.parameters}
    assert not names & {*Choice.__dataclass_fields__, "again"}


@pytest.mark.parametrize("kind", OWN)
def test_people_are_told_what_it_is(kind):
    words = some_set(kind).in_words("100 records")
    assert words.startswith("private for ")
    assert ("100 reports" if kind == "evidence" else "100 records") in words
    assert SETS[kind].title


# --- a set of one's own --------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["grr", "ir", "ue-cr", "polyopt", "optimal", "best"])
def test_designs_over_it_keep_their_level(protocol):
    p = rldp.design(listed(), EPSILON, protocol)
    assert rldp.audit(p).epsilon <= EPSILON + 1e-9
    by_hand = 0.0
    for P in np.array(LISTED):
        p_sy = np.einsum("su,suy->sy", P / P.sum(axis=1, keepdims=True), p.matrix)
        seen = p_sy[:, p_sy.max(axis=0) > 0]
        by_hand = max(by_hand, float(np.log(seen.max(axis=0) / seen.min(axis=0)).max()))
    assert rldp.audit(p).epsilon == pytest.approx(by_hand, abs=1e-9)


def test_the_optimum_is_found_by_cutting_planes():
    p = rldp.design(listed(), EPSILON, "optimal")
    polyopt = rldp.design(listed(), EPSILON, "polyopt")
    assert p.utility > polyopt.utility + 0.01  # F is far from a simplex
    assert p.optimality_gap < 1e-3


def test_its_file_is_proved_again_when_it_is_read(tmp_path):
    p = rldp.design(listed(), EPSILON, "ue-cr")
    p.save(tmp_path / "p.json")
    again = rldp.load(tmp_path / "p.json")
    assert again.uncertainty.arguments == {"distributions": LISTED}
    assert again.fingerprint == p.fingerprint
    assert rldp.verify(again).uncertainty == "listed distributions"


def test_the_command_line_takes_it(tmp_path, capsys):
    counts = rldp.datasets.adult("race", "sex")
    tables = [((counts.counts + k) / (counts.counts + k).sum()).tolist() for k in (0, 500)]
    file = tmp_path / "tables.json"
    file.write_text(json.dumps(tables))
    words = ["adult", "-s", "race", "-u", "sex", "-e", "1", "-p", "ir", "--set", "listed"]
    target = str(tmp_path / "p.json")
    assert main(["design", *words, "--distributions", str(file), "-o", target]) == 0
    assert rldp.load(target).uncertainty.arguments == {"distributions": tables}
    assert main(["audit", target, "--json"]) == 0
    assert main(["design", *words]) == 2
    assert "distributions" in capsys.readouterr().err
    assert main(["design", *words, "--distributions", "[", "--json"]) == 2
    assert "Expected distributions as JSON" in capsys.readouterr().err


@pytest.mark.slow
def test_the_studio_takes_it(monkeypatch):
    testclient = pytest.importorskip("starlette.testclient")
    from rldp.studio.application import application
    from rldp.studio.session import Session
    from tests.support import studio_client as studio

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    session = Session()
    with testclient.TestClient(
        application(session, studio.PORT, studio.TOKEN), base_url=studio.HOME
    ) as client:
        told = {entry["kind"]: entry for entry in client.get("/api/session").json()["sets"]}
        assert list(told) == OFFERED
        (parameter,) = told["listed"]["parameters"]
        assert (parameter["name"], parameter["is_number"]) == ("distributions", False)
        counts = session.table(Choice.from_request(studio.ADULT)).counts
        tables = [(counts / counts.sum()).tolist()]
        choice = studio.ADULT | {"kind": "listed", "distributions": json.dumps(tables)}
        curves = studio.asked(client, "curves", **choice).json()
        assert "private for some listed distributions" in curves["set"]
        python = curves["code"]["python"]
        assert "from tests.support.listed_set import ListedDistributions\n" in python
        assert "F = ListedDistributions(table, distributions=[[[" in python
        assert "--set listed --distributions '[[[" in curves["code"]["command"]
        studio.designed(client, **choice, protocol="ir")
        assert session.design(Choice.from_request(choice | {"protocol": "ir"})).epsilon == 1
        wrong = studio.asked(client, "curves", **choice | {"distributions": "[["})
        assert (wrong.status_code, wrong.json()["field"]) == (422, "distributions")
        wrong = studio.asked(client, "curves", **choice | {"distributions": [[[1.0]]]})
        assert (wrong.status_code, wrong.json()["field"]) == (422, "kind")
    session.close()


def test_a_kind_that_the_checker_does_not_know_gets_no_certificate(monkeypatch):
    monkeypatch.delitem(proof_sets.SETS, "listed")
    with pytest.raises(CertificateError, match=r"uncertainty\.kind among .*, got 'listed'"):
        rldp.design(listed(), EPSILON, "srr")


def test_a_set_without_the_frequencies_cannot_be_designed_for():
    for F in (ListedDistributions(TABLE, LISTED[1:]), rldp.GivenU(TABLE)):
        with pytest.raises(ParameterError, match="holds the frequencies of its table"):
            rldp.design(F, EPSILON, "grr")
    assert rldp.design(rldp.GivenU(rldp.Table([[3], [5]])), EPSILON, "grr").epsilon == EPSILON


@pytest.mark.parametrize("kind", OFFERED)
def test_what_is_offered_holds_the_frequencies_of_sparse_tables_too(kind):
    table = rldp.Table([[5, 0], [0, 0], [1, 2]])
    if kind != "listed":
        given = {"distributions": [[[1, 2], [3, 4], [0, 0]]]} if kind == "polytope" else {}
        set_around(table, kind, given).check_frequencies()


# --- entries -------------------------------------------------------------------------------------


def test_a_set_without_an_entry_is_refused_by_name():
    class Unknown(rldp.ChiSquareSet):
        """Inherits a kind that is not its own."""

    with pytest.raises(ParameterError, match=r"Unknown: put @rldp\.uncertainty\.register"):
        documents.uncertainty_document(Unknown(TABLE))
    with pytest.raises(ParameterError, match="kind and a title of its own"):
        register(Unknown)


def test_a_kind_cannot_be_taken_twice():
    class Second(rldp.AllDistributions):
        kind, title = "all", "all once more"

    with pytest.raises(ParameterError, match="'all', which AllDistributions has"):
        register(Second)


@pytest.mark.parametrize("text", ["1", "17", "x", "1.01", "nan", "1e400"])
def test_an_order_outside_its_range_is_refused(text, capsys):
    words = ["compare", "adult", "-s", "race", "-u", "sex", "-p", "srr", "--set", "renyi"]
    assert main([*words, "--order", text]) == 2
    assert "Expected order" in capsys.readouterr().err


def test_orders_may_be_written_as_fractions():
    order = SETS["renyi"].parameters[1]
    assert order.given("3/2") == order.given("1.5") == order.given(1.5)
    assert order.read(order.written(order.given("4/3"))) == order.given(4 / 3)


def test_a_parameter_that_the_set_does_not_have_is_refused(capsys):
    words = ["compare", "adult", "-s", "race", "-u", "sex", "-p", "srr", "--set", "all"]
    assert main([*words, "--alpha", "0.1"]) == 2
    assert "--alpha is for --set chi-square, renyi, kl" in capsys.readouterr().err
