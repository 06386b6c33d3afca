"""A person who follows a sheet to the letter draws from the table, exactly."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import rldp
from rldp.channel import DenseChannel
from rldp.cli import app
from rldp.presentation.sheet import Sheet, sheet
from rldp.presentation.sheet_pages import write_sheet
from rldp.protocol.dice import CLASSIC, dice_table, with_remainder
from rldp.protocol.public_protocol import PublicProtocol

RANKS = ["2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K", "A"]


def throws(D: int) -> list[str]:
    """All outcomes as the sheet describes them, in their order."""
    for faces, k in itertools.product((6, 2), range(1, 9)):
        if faces**k == D:
            return ["".join(x) for x in itertools.product("123456"[:faces], repeat=k)]
    if D == 52:
        return [suit + rank for suit in "CDHS" for rank in RANKS]
    return [str(i) for i in range(1, D + 1)]


def read_cards(text: str) -> list[dict[str, list[tuple[str, str]]]]:
    """The cards of the text: for each line the (letter, stretch) pairs. Nothing but the text."""
    cards, rows, heads = [], {}, None
    for line in [*text.splitlines(), ""]:
        cells = [cell.strip() for cell in line.split(" | ")]
        if cells[0] in ("what is true for you", "was auf Sie zutrifft"):
            heads = [cell.split()[-1] for cell in cells[1:]]
            rows = {}
        elif heads is not None and not line.strip():
            cards.append(rows)
            heads = None
        elif heads is not None:
            k = len(cells) - len(heads)
            rows[" | ".join(cells[:k])] = list(zip(heads, cells[k:], strict=True))
    return cards


def answer(line: list[tuple[str, str]], throw: str, order: list[str]) -> str:
    for letter, stretch in line:
        ends = stretch.split(" – ")
        if stretch != "-" and order.index(ends[0]) <= order.index(throw) <= order.index(ends[-1]):
            return letter
    raise AssertionError(f"no answer for {throw}")


def dice_protocol(n: Any, D: int, name: str = "dice") -> PublicProtocol:
    n = np.asarray(n)
    N = with_remainder(n, D)
    schema = rldp.Schema(
        (rldp.Column("S", tuple(f"s{i}" for i in range(n.shape[0]))),),
        (rldp.Column("U", tuple(f"u{i}" for i in range(n.shape[1]))),) if n.shape[1] > 1 else (),
    )
    return PublicProtocol(name, 1.0, schema, DenseChannel.from_integers({"Q": N}, 62), {"Q": N}, 62)


@pytest.mark.parametrize("D", [6, 36, 216, 52, 100, 8, 90])
@pytest.mark.parametrize("language", ["en", "de"])
def test_a_literal_interviewer_gives_the_law_of_the_table(D, language):
    rng = np.random.default_rng(D)
    n = rng.multinomial(D, [0.4, 0.1, 0.3, 0.2], size=(3, 2))
    n[2] = n[2, 0]  # one line for all of U
    p = dice_protocol(n, D)
    text = sheet(p, language).text()
    (card,) = read_cards(text)
    letters = "ABCD"
    for s, u in itertools.product(range(3), range(2)):
        line = card.get(f"s{s} | u{u}") or card[f"s{s}"]
        told = Counter(answer(line, throw, throws(D)) for throw in throws(D))
        assert [told[letter] for letter in letters] == n[s, u].tolist()


def test_two_cards_are_one_protocol():
    rng = np.random.default_rng(1)
    n = np.concatenate([rng.multinomial(36, [1 / 3] * 3, size=(2, 3)) for _ in range(2)], axis=2)
    p = dice_protocol(n, 72)
    made = sheet(p)
    cards = read_cards(made.text())
    assert len(cards) == 2
    for (c, card), s, u in itertools.product(enumerate(cards), range(2), range(3)):
        told = Counter(answer(card[f"s{s} | u{u}"], throw, throws(36)) for throw in throws(36))
        assert [told[x] for x in "ABC"] == n[s, u, 3 * c : 3 * c + 3].tolist()
    assert [letter for letter, _ in made.tally] == ["A1", "B1", "C1", "A2", "B2", "C2"]
    assert "one of the 2 cards at random" in made.text()


def classic_answers(kind: str, text: str, *, is_yes: bool, throw: str, D: int) -> str:
    """What someone says who does what the script of a classical design says."""
    order = throws(D)

    def among(stretch: str) -> bool:
        ends = stretch.split(" – ")
        return order.index(ends[0]) <= order.index(throw) <= order.index(ends[-1])

    match kind:
        case "crosswise":
            (hit,) = re.findall("Second: your throw is (.*?)\\.", text)
            return "A" if is_yes == among(hit) else "B"
        case "forced-response":
            yes, no = re.findall("If your throw is (.*?), say B.*?If it is (.*?), say A", text)[0]
            return "B" if among(yes) else "A" if among(no) else "B" if is_yes else "A"
        case "unrelated-question":
            own, hit = re.findall("If your throw is (.*?), answer.*?your throw is (.*?)\\.", text)[
                0
            ]
            return "B" if (is_yes if among(own) else among(hit)) else "A"
    (hit,) = re.findall("your throw is not (.*?)\\.", text)
    return "A" if not is_yes and not among(hit) else "B"


@pytest.mark.parametrize("kind", CLASSIC)
@pytest.mark.parametrize(("D", "hit"), [(6, 1), (6, 2), (36, 5), (100, 17), (52, 13)])
def test_classical_designs_say_what_their_table_has(kind, D, hit):
    own = {"own": D // 2} if kind == "unrelated-question" else {}
    p = rldp.classic(kind, "drugs", ("never", "ever"), denominator=D, hit=hit, **own)
    rldp.verify(p)
    n, found = dice_table(p.integers["Q"], p.bits) or (None, 0)
    assert n is not None
    text = sheet(p).text()
    for s in range(2):
        told = Counter(
            classic_answers(kind, text, is_yes=bool(s), throw=throw, D=D) for throw in throws(D)
        )
        assert [Fraction(told[x], D) for x in "AB"] == [Fraction(int(x), found) for x in n[s, 0]]
    ratios = [
        Fraction(int(n[a, 0, y]), max(1, int(n[b, 0, y])))
        for a, b in ((0, 1), (1, 0))
        for y in (0, 1)
    ]
    audited = rldp.audit(p, p.uncertainty).epsilon_all
    if kind == "triangular":
        assert audited == math.inf
        assert p.guarantees[0].levels[0, 1] == math.inf  # an A proves no
        assert p.epsilon == pytest.approx(math.log(Fraction(D, hit)))
    else:
        assert p.epsilon == pytest.approx(math.log(max(ratios)), rel=1e-12)
        assert audited == pytest.approx(p.epsilon, rel=1e-12)


def test_classical_designs_that_tell_nothing_are_refused():
    with pytest.raises(rldp.ParameterError, match="tell no from yes, out of 6"):
        rldp.classic("crosswise", hit=3)
    with pytest.raises(rldp.ParameterError, match="Expected own"):
        rldp.classic("unrelated-question")
    with pytest.raises(rldp.ParameterError, match="Expected a design among crosswise"):
        rldp.classic("warner")


def test_a_table_that_no_dice_have_is_refused():
    p = rldp.design(rldp.AllDistributions(rldp.Table([[3, 4], [5, 6]])), 1.0, "grr")
    with pytest.raises(rldp.ParameterError, match="--outputs 6"):
        sheet(p)
    with pytest.raises(rldp.ParameterError, match="language among en, de"):
        sheet(rldp.classic("crosswise"), "fr")


def test_a_tally_sheet_comes_back_as_an_estimate(tmp_path):
    p = rldp.classic("forced-response", "drugs", ("never", "ever, at all"))
    p.save(tmp_path / "p.json")
    run = CliRunner().invoke
    made = run(
        app,
        [
            "sheet",
            str(tmp_path / "p.json"),
            "-o",
            str(tmp_path / "s.txt"),
            "--tally",
            str(tmp_path / "t.csv"),
        ],
    )
    assert made.exit_code == 0, made.output
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert lines == ["y,letter,count", "y0,A,", "y1,B,"]
    (tmp_path / "t.csv").write_text("\n".join([lines[0], lines[1] + "350", lines[2] + "250"]))
    counts = rldp.read_tally(p, tmp_path / "t.csv")
    e = p.estimate(counts=counts)
    assert e.s.estimate[1] == pytest.approx((250 / 600 - 1 / 6) / (4 / 6))
    told = run(
        app, ["estimate", str(tmp_path / "p.json"), str(tmp_path / "t.csv"), "--tally", "--json"]
    )
    assert told.exit_code == 0, told.output
    assert "0.375" in told.output
    (tmp_path / "t.csv").write_text("y;letter;count\ny0;A;350\ny1;B;\n")
    with pytest.raises(rldp.DataError, match="line 3: expected a count, 0 if 'y1' was never"):
        rldp.read_tally(p, tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("y;letter;count\nA;A;350\n")
    with pytest.raises(rldp.DataError, match="expected a report of forced-response, got 'A'"):
        rldp.read_tally(p, tmp_path / "t.csv")


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".pdf", ".svg", ".txt"])
def test_pages_are_the_same_every_time(suffix, tmp_path):
    made: Sheet = sheet(dice_protocol(np.tile([[[20, 10, 6]], [[6, 10, 20]]], (1, 3, 1)), 36), "de")
    files = [tmp_path / f"{i}{suffix}" for i in range(2)]
    for file in files:
        write_sheet(made, file)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[0].stat().st_size > 500
    with pytest.raises(rldp.FileError, match="expected a sheet as"):
        write_sheet(made, tmp_path / "sheet.doc")
    assert not (tmp_path / "sheet.doc").exists()


def test_the_remainder_is_recognised_and_nothing_else_is():
    n = np.array([[[1, 5]], [[5, 1]]])
    found = dice_table(with_remainder(n, 6), 62)
    assert found is not None
    assert (found[0] == n).all()
    off = with_remainder(n, 6)
    off[0, 0, 0] += 1
    off[0, 0, 1] -= 1
    assert dice_table(off, 62) is None
    assert dice_table(np.array([[[1, 3]], [[3, 1]]]), 2) is not None
