"""Forms that ODK and Kobo take, from which nothing but the report comes, and the way back."""

from __future__ import annotations

import io
import itertools
import zipfile
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from typer.testing import CliRunner

import rldp
from rldp.channel import DenseChannel
from rldp.cli import app
from rldp.collect.xlsform import read_xlsform
from rldp.presentation.sheet import outcome_names
from rldp.presentation.survey_form import secret_numbers, survey_form
from rldp.protocol.dice import with_remainder
from rldp.protocol.public_protocol import PublicProtocol

NAMES = ["drugs", "Einkommen & Co", 'how "much" <b>?', "${income}", "名前", "a_b*c"]
LABELS = ["never", "ever | often", "<5", "1,5 & more", "${y}", "ü;é", "=1+1", "x" * 60]


def dice_protocol(seed):
    """Some protocol for dice, with awkward names and labels."""
    rng = np.random.default_rng(seed)
    n_s, n_u, k = rng.integers(2, 4), rng.integers(1, 4), rng.integers(2, 7)
    D = int(rng.choice([6, 36, 52, 100, 216, 8]))
    sheets = int(rng.choice([1, 1, 2]))
    n = np.concatenate(
        [
            1 + rng.multinomial(D - k, rng.dirichlet(np.ones(k)), size=(n_s, n_u))
            for _ in range(sheets)
        ],
        axis=2,
    )
    if k + 1 > D:
        return dice_protocol(seed + 1000)
    name, other = rng.choice(NAMES, 2, replace=False)
    labels = rng.permutation(LABELS)
    useful = (rldp.Column(str(other), tuple(map(str, labels[4 : 4 + n_u]))),) if n_u > 1 else ()
    schema = rldp.Schema((rldp.Column(str(name), tuple(map(str, labels[:n_s]))),), useful)
    N = {"Q": with_remainder(n, D * sheets)}
    return PublicProtocol("dice", 1.0, schema, DenseChannel.from_integers(N, 62), N, 62)


def texts_of(file):
    """All texts of a workbook, by sheet."""
    main = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    found = {}
    with zipfile.ZipFile(io.BytesIO(file)) as book:
        for i, name in enumerate(("survey", "choices", "settings"), 1):
            tree = ET.fromstring(book.read(f"xl/worksheets/sheet{i}.xml"))
            found[name] = [
                {cell.get("r")[0]: cell.findtext(f".//{main}t") for cell in row}
                for row in tree.iter(f"{main}row")
            ]
    return found


def answered(file, rng, truths, D):
    """What people enter who read the form, and nothing but the form: columns card and y."""
    sheets = texts_of(file)
    head = {text: column for column, text in sheets["survey"][0].items()}
    rows = {row[head["name"]]: row for row in sheets["survey"][1:]}
    label = head["label::English (en)"]
    cards = [rows[name][label] for name in rows if name.startswith("card_")]
    choice_head = {text: column for column, text in sheets["choices"][0].items()}
    choices = [row for row in sheets["choices"][1:] if row[choice_head["list_name"]] == "answers"]
    out = []
    for truth in truths:
        c = int(rng.integers(len(cards)))
        throw = D[int(rng.integers(len(D)))]
        line = next(
            text
            for text in cards[c].split("\n\n")
            if any(text.startswith(f"{t.replace('${', '$ {')}: ") for t in truth)
        )
        for part in line.rsplit(": ", 1)[1].split(";  "):
            stretch, letter = part.split(" → ")
            ends = [D.index(x) for x in stretch.split(" – ")]
            if ends[0] <= D.index(throw) <= ends[-1]:
                break
        (y,) = (
            row[choice_head["name"]]
            for row in choices
            if row[choice_head["label::English (en)"]] == letter
            and row[choice_head["of_card"]] == str(c + 1)
        )
        out.append(y)
    return out


@pytest.mark.slow
def test_a_hundred_forms_are_accepted_and_their_submissions_come_back(tmp_path):
    xls2xform = pytest.importorskip("pyxform.xls2xform")
    for seed in range(100):
        p = dice_protocol(seed)
        file = survey_form(p, is_secret=bool(seed % 2))
        path = tmp_path / f"form{seed}.xlsx"
        path.write_bytes(file)
        result = xls2xform.convert(xlsform=path, validate=False)
        assert f"rldp_{p.fingerprint[:12]}" in result.xform
        told = "".join(map(str, texts_of(file).values()))
        assert "random" not in result.xform
        assert "random(" not in told
        asked = [row for row in texts_of(file)["survey"][1:] if row["A"].startswith("select_one")]
        assert {row["B"] for row in asked} <= {"y", "card"}  # never the record
        rng = np.random.default_rng(seed)
        s = rng.integers(p.schema.n_s, size=60)
        u = rng.integers(p.schema.n_u, size=60)
        truths = [
            (f"{p.schema.s_labels[a]} | {p.schema.u_labels[b]}", p.schema.s_labels[a])
            if p.schema.useful
            else (p.schema.s_labels[a],)
            for a, b in zip(s, u, strict=True)
        ]
        y = answered(file, rng, truths, outcome_names(p))
        rows = [f"uuid:{i},{text},{p.fingerprint[:12]}" for i, text in enumerate(y)]
        (tmp_path / "back.csv").write_text("\n".join(["KEY,y,protocol", *rows]) + "\n")
        e = p.estimate(tmp_path / "back.csv")
        assert e.is_protocol_checked
        same = p.estimate(y)
        np.testing.assert_array_equal(e.s.estimate, same.s.estimate)


def test_following_the_form_gives_the_law_of_the_table():
    """Every throw for every record, counted."""

    class Each:
        """Gives every number once."""

        def __init__(self):
            self.next = itertools.count()

        def integers(self, n):
            return 0 if n == 1 else next(self.next) % n

    n = np.array([[[20, 10, 6], [6, 10, 20]], [[18, 18, 0], [2, 4, 30]]])
    N = {"Q": with_remainder(n, 36)}
    schema = rldp.Schema((rldp.Column("S", ("a", "b")),), (rldp.Column("U", ("x", "y")),))
    p = PublicProtocol("dice", 1.0, schema, DenseChannel.from_integers(N, 62), N, 62)
    file = survey_form(p)
    for s, u in itertools.product(range(2), range(2)):
        truth = (f"{'ab'[s]} | {'xy'[u]}", "ab"[s])
        told = answered(file, Each(), [truth] * 36, outcome_names(p))
        assert [told.count(f"y{y}") for y in range(3)] == n[s, u].tolist()


def test_the_same_form_every_time_and_our_own_reader_takes_it(tmp_path):
    p = rldp.classic("crosswise", "drugs")
    assert survey_form(p) == survey_form(p)
    (tmp_path / "form.xlsx").write_bytes(survey_form(p, ["de"]))
    assert "Welcher Buchstabe" in str(read_xlsform(tmp_path / "form.xlsx", ["y"])[0])


def test_secrets_come_from_the_operating_system_and_are_not_replaced(tmp_path):
    p = rldp.classic("forced-response", "drugs")
    p.save(tmp_path / "p.json")
    numbers = secret_numbers(p, 6000)
    counts = [numbers.count(str(i)) for i in range(1, 7)]
    assert sum(counts) == 6000
    assert max(abs(x - 1000) for x in counts) < 6.5 * 1000**0.5
    out = [str(tmp_path / name) for name in ("p.json", "form.xlsx", "secrets.csv")]
    command = ["form", out[0], "-o", out[1], "--secrets", "20", "--secrets-to", out[2]]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, (done.output, done.exception)
    assert len((tmp_path / "secrets.csv").read_text().split()) == 21
    assert (tmp_path / "secrets.csv").stat().st_mode & 0o077 == 0
    again = CliRunner().invoke(app, [*command, "--force"])
    assert isinstance(again.exception, rldp.ParameterError)


def test_a_protocol_that_no_person_can_carry_out_is_refused():
    with pytest.raises(rldp.ParameterError, match="--outputs 6"):
        survey_form(rldp.design(rldp.AllDistributions(rldp.Table([[3, 4], [5, 6]])), 1.0, "grr"))
