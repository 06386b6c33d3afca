"""From the text of a report to bytes, counts, estimates and files, and how forgeries show."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy.stats import binom

import rldp
from rldp.cli import main
from rldp.collect.counted import estimate
from rldp.collect.exporting import export
from rldp.collect.forgeries import suspected
from rldp.collect.opening import open_collection, start_collection
from rldp.collect.questions import read_texts
from rldp.collect.report_codes import ReportCodes
from rldp.collect.submissions import Submission
from rldp.estimation.moments import moments
from rldp.estimation.report_counts import counts_from

TABLE = rldp.Table(
    [[300, 250], [120, 140], [90, 100]],
    sensitive={"race": ["White", "Black", "Other"]},
    useful={"sex": ["Female", "Male"]},
)


@pytest.fixture(scope="module", params=["grr", "ir", "ue", "ue-cr", "srr", "polyopt"])
def p(request):
    return rldp.design(rldp.ChiSquareSet(TABLE), 1.0, request.param).public()


def records(n, seed=1):
    cells = np.random.default_rng(seed).choice(6, n, p=TABLE.p_su.ravel())
    return np.stack(np.divmod(cells, 2), axis=1)


def test_bytes_are_reports_and_counts_are_those_of_the_reports(p):
    codes = ReportCodes(p)
    reports = p.release(records(500), rng=rldp.Simulation(1))
    packed = [codes.packed(text) for text in p.report_labels.texts(reports).to_pylist()]
    assert None not in packed
    assert np.array_equal(codes.reports(packed), reports)
    groups = [(one, packed.count(one)) for one in set(packed)]
    ours, theirs = p.estimate(counts=codes.counts(groups)), p.estimate(reports)
    assert np.array_equal(ours.estimate, theirs.estimate, equal_nan=True)


def test_reports_that_never_occur_are_not_taken():
    N = np.array([[[3, 1, 0, 0]], [[1, 3, 0, 0]]])
    schema = rldp.Schema((rldp.Column("S", ("a", "b")),), (rldp.Column("U", ("x",)),))
    from rldp.channel import DenseChannel
    from rldp.protocol.public_protocol import PublicProtocol

    p = PublicProtocol("any", 1.2, schema, DenseChannel(N / 4), {"Q": N}, 2)
    found = [ReportCodes(p).packed(f"y{y}") is not None for y in range(5)]
    assert found == [True, True, False, False, False]


@pytest.fixture
def filled(p, tmp_path):
    """A collection with 400 reports, and the same reports as an array."""
    p.save(tmp_path / "p.json")
    where = str(tmp_path / "s.sqlite")
    collection = start_collection(tmp_path / "p.json", where)
    reports = p.release(records(400), rng=rldp.Simulation(2))
    codes = collection.codes
    texts = p.report_labels.texts(reports).to_pylist()
    collection.store.add(
        [Submission(n.to_bytes(16), codes.packed(text)) for n, text in enumerate(texts)]
    )
    collection.store.close()
    return where, reports


@pytest.mark.slow
def test_an_estimate_from_a_store_is_that_from_the_reports(p, filled):
    where, reports = filled
    collection = open_collection(where)
    for method in ("inversion", "likelihood"):
        e = estimate(collection, method=method)
        assert e.is_protocol_checked
        assert np.allclose(e.estimate, p.estimate(reports, method=method).estimate, equal_nan=True)
    collection.store.close()


@pytest.mark.slow
def test_an_export_has_all_reports_in_another_order(p, filled, tmp_path):
    where, reports = filled
    collection = open_collection(where)
    orders = []
    for name in ("a.parquet", "b.parquet"):
        assert export(collection, tmp_path / name) == 400
        orders.append(pq.read_table(tmp_path / name).column("y").to_pylist())
    collection.store.close()
    texts = p.report_labels.texts(reports).to_pylist()
    assert sorted(orders[0]) == sorted(texts)
    assert len({*map(tuple, orders), tuple(texts)}) == 3
    e = p.estimate(tmp_path / "a.parquet")
    assert e.is_protocol_checked
    assert np.array_equal(e.estimate, p.estimate(reports).estimate, equal_nan=True)


def test_the_truth_lies_in_the_intervals_as_often_as_it_should():
    """300 collections of 200 people; 95 % intervals of 6 cells, false alarm 1e-6."""
    p = rldp.design(rldp.ChiSquareSet(TABLE), 2.0, "grr-cr").public()
    codes, source = ReportCodes(p), rldp.Simulation(5)
    labels = [codes.packed(text) for text in p.report_labels.all]
    hits = {0.95: np.zeros(6), 0.5: np.zeros(6)}
    for seed in range(300):
        reports = p.release(records(200, seed), rng=source)
        found, times = np.unique(reports, return_counts=True)
        counts = codes.counts((labels[y], n) for y, n in zip(found, times, strict=True))
        for level, total in hits.items():
            e = p.estimate(counts=counts, level=level)
            total += ((e.low <= TABLE.p_su) & (TABLE.p_su <= e.high)).ravel()
    least = binom.ppf(1e-6 / 6, 300, 0.95)
    assert hits[0.95].min() >= least
    assert hits[0.5].max() < least  # the control: narrower intervals are found out


def test_forged_reports_are_suspected_and_honest_ones_are_not(p):
    features = moments(p.channel)

    def found(reports):
        return suspected(features, counts_from(features, tallied(features, reports)))

    honest = p.release(records(4000), rng=rldp.Simulation(3))
    assert found(honest) == 0
    forged = np.concatenate([honest, np.repeat(honest[:1], 4000, axis=0)])
    assert 0 < found(forged) <= 4000


def tallied(features, reports):
    counts = features.tally(reports, None)
    return counts.reshape(features.other.shape) if hasattr(features, "other") else counts


# --- commands ------------------------------------------------------------------------------------


@pytest.fixture
def survey(race, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "race.public.rldp.json").write_bytes(race.read_bytes())
    return tmp_path


def run(capsys, *words):
    code = main(list(words))
    told = capsys.readouterr()
    return code, told.out, told.err


def test_a_collection_from_the_command_line(survey, capsys):
    code, out, err = run(capsys, "collect", "race.public.rldp.json", "--prepare")
    assert (code, "race.sqlite" in out, "OPEN SURVEY" in err) == (0, True, True)
    assert rldp.load("race.public.rldp.json").fingerprint in out
    p, collection = rldp.load("race.public.rldp.json"), open_collection("race.sqlite")
    reports = p.report_labels.texts(p.release(np.array([[0, 1], [1, 0]] * 50))).to_pylist()
    codes = collection.codes
    collection.store.add(
        [Submission(bytes([n]) * 16, codes.packed(t)) for n, t in enumerate(reports)]
    )
    collection.store.close()
    code, out, _ = run(capsys, "estimate", "race.sqlite", "--json")
    assert (code, json.loads(out)["reports"]) == (0, 100)
    assert json.loads(out)["protocol_checked"]
    assert run(capsys, "estimate", "race.public.rldp.json", "race.sqlite")[0] == 0
    code, out, _ = run(capsys, "collect", "--status", "race.sqlite", "--json")
    told = json.loads(out)
    assert (code, told["reports"], told["open"]) == (0, 100, True)
    for words in (["race.public.rldp.json"], ["elsewhere.json", "--store", "race.sqlite"]):
        assert run(capsys, "collect", "--status", *words, "--json")[1] == out
    assert "suspected forgeries" in run(capsys, "collect", "--status", "race.sqlite")[1]
    assert run(capsys, "export", "race.sqlite", "-o", "reports.csv")[0] == 0
    assert run(capsys, "estimate", "race.public.rldp.json", "reports.csv")[0] == 0
    origin = ("--origin", "https://survey.example")
    code, out, _ = run(capsys, "invite", "race.sqlite", "-n", "5", "-o", "links.csv", *origin)
    assert (code, len((survey / "links.csv").read_text().splitlines())) == (0, 6)
    assert (survey / "links.csv").stat().st_mode & 0o077 == 0
    assert "0 of 5 invitations" in run(capsys, "collect", "--status", "race.sqlite")[1]


def test_the_start_shows_the_fingerprint_and_makes_a_token(survey, capsys, monkeypatch):
    pytest.importorskip("uvicorn", reason="the collect extra is not installed")
    from rldp.collect.serving import Collector

    monkeypatch.setattr(Collector, "run", Collector._close)
    words = ("collect", "race.public.rldp.json", "--port", "0", "--token-file", "token")
    code, out, _ = run(capsys, *words)
    assert code == 0
    assert f"protocol:  {rldp.load('race.public.rldp.json').fingerprint}" in out
    assert "token:     token   (made; only you can read it)" in out
    token = (survey / "token").read_text()
    assert (survey / "token").stat().st_mode & 0o777 == 0o600
    assert len(token.strip()) == 32
    assert f"/operator#{token.strip()} " in out
    code, out, _ = run(capsys, *words)  # it is there now, and stays
    assert (code, "token:" in out) == (0, False)
    assert f"/operator#{token.strip()} " in out
    assert (survey / "token").read_text() == token
    told = json.loads(run(capsys, *words, "--json")[1])
    assert told["fingerprint"] == rldp.load("race.public.rldp.json").fingerprint
    code, _, err = run(capsys, *words[:-1], "no/folder/token")
    assert (code, err.count("\n")) == (2, 1)
    assert "Cannot write no/folder/token" in err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["collect", "nothing.json"], "Cannot read nothing.json"),
        (["collect", "--status", "nothing.sqlite"], "does not exist"),
        (["collect", "race.public.rldp.json", "--margin", "2", "--prepare"], "--margin"),
        (["collect", "race.public.rldp.json", "--host", "0.0.0.0"], "--origin"),
        (["collect", "race.public.rldp.json", "--questions", "no.toml", "--port", "0"], "no.toml"),
        (["invite", "race.public.rldp.json", "-n", "5", "-o", "x.csv"], "not a store"),
        (["invite", "nothing", "-n", "0", "-o", "x.csv"], "-n of 1"),
        (["export", "race.public.rldp.json", "-o", "x.csv"], "not a store"),
        (["export", "nothing", "-o", "x.txt"], ".csv or"),
        (["estimate", "race.public.rldp.json"], "or a store alone"),
        (["collect", "race.public.rldp.json", "--store", "postgresql:///x?host=/none"], "database"),
    ],
)
@pytest.mark.usefixtures("survey")
def test_bad_input_is_one_line(capsys, words, told):
    code, _, err = run(capsys, *words)
    assert code == 2
    assert err.count("\n") == 1
    assert told in err


# --- questions -----------------------------------------------------------------------------------


def test_questions_from_toml_are_checked(tmp_path):
    path = tmp_path / "q.toml"
    path.write_text('[questions.sex]\ntext = "Sex?"\n[questions.sex.labels]\nMale = "a man"\n')
    (texts,) = read_texts([path], TABLE.schema)
    document = texts.document(TABLE.schema, {"en": {"send": "Send"}})
    assert [q["text"] for q in document["questions"]] == ["Sex?", "race"]
    assert document["questions"][0]["answers"][1] == {"label": "Male", "text": "a man"}
    assert document["page"] == {"send": "Send"}
    for wrong, told in {
        "[questions.age]": "no column 'age'",
        '[questions.sex.labels]\nX = "y"': "no label 'X'",
        'language = "english"': "a language such as",
        "titel = 1": "got 'titel'",
        "title = 1": "expected a text",
        "questions = 3": "a table",
        "[questions.sex]\norder = 1": "has 'order'",
        "x": "Cannot read",
    }.items():
        path.write_text(wrong)
        with pytest.raises(rldp.RldpError, match=told):
            read_texts([path], TABLE.schema)
    path.write_text("")
    with pytest.raises(rldp.FileError, match="there already"):
        read_texts([path, path], TABLE.schema)


def xlsform(path, sheets):
    """A workbook with inline texts, as spreadsheet programs accept it."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006/relationships"
    with zipfile.ZipFile(path, "w") as book:
        listed = "".join(
            f'<sheet name="{name}" sheetId="{i}" r:id="r{i}"/>' for i, name in enumerate(sheets, 1)
        )
        book.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>{listed}</sheets></workbook>',
        )
        relations = "".join(
            f'<Relationship Id="r{i}" Target="worksheets/s{i}.xml"/>'
            for i in range(1, len(sheets) + 1)
        )
        book.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{package}">{relations}</Relationships>',
        )
        for i, rows in enumerate(sheets.values(), 1):
            lines = "".join(
                "<row>"
                + "".join(
                    f'<c r="{chr(65 + k)}{n}" t="inlineStr"><is><t>{text}</t></is></c>'
                    for k, text in enumerate(row)
                )
                + "</row>"
                for n, row in enumerate(rows, 1)
            )
            book.writestr(
                f"xl/worksheets/s{i}.xml",
                f'<worksheet xmlns="{main}"><sheetData>{lines}</sheetData></worksheet>',
            )


def test_questions_from_an_xlsform_in_two_languages(tmp_path):
    path = tmp_path / "form.xlsx"
    sheets = {
        "survey": [
            ["type", "name", "label::English (en)", "label::Deutsch (de)"],
            ["select_one s", "sex", "Sex?", "Geschlecht?"],
            ["select_one r", "race", "Race?", "Herkunft?"],
            ["text", "remarks", "Remarks", "Bemerkungen"],
        ],
        "choices": [
            ["list_name", "name", "label::English (en)", "label::Deutsch (de)"],
            ["s", "Male", "a man", "ein Mann"],
            ["r", "Other", "another one", "eine andere"],
        ],
        "settings": [["form_title"], ["People"]],
    }
    xlsform(path, sheets)
    german, english = read_texts([path], TABLE.schema)
    assert (german.language, english.language, english.title) == ("de", "en", "People")
    assert [q.text for q in german.questions] == ["Geschlecht?", "Herkunft?"]
    assert english.questions[0].labels == {"Male": "a man"}
    xlsform(path, {"survey": sheets["survey"]})
    with pytest.raises(rldp.FileError, match="survey and choices"):
        read_texts([path], TABLE.schema)
    path.write_bytes(b"PK not a workbook")
    with pytest.raises(rldp.FileError, match="Cannot read the XLSForm"):
        read_texts([path], TABLE.schema)
