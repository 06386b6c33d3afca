"""What a person and an interviewer do with dice or cards: the words and the tables of a sheet.

A protocol can be put on paper if its probabilities are multiples of 1/D for a small D
(`design(..., outputs=, denominators=)`, `classic`). Each record has a line of the person's card.
The D things that may be thrown are numbered in the order of the card, and each answer has those of
one stretch: so many as the integer of the table says. Following the sheet to the letter is drawing
from the table, exactly.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from rldp._types import Integers
from rldp.channel import DenseChannel
from rldp.decimals import brief_up
from rldp.errors import ParameterError
from rldp.protocol.dice import CLASSIC, dice_table
from rldp.tables.schema import Schema

LANGUAGES = ("en", "de")
LETTERS = string.ascii_uppercase
_USUAL = (6, 36, 52, 100, 216)  # one or two dice, playing cards, percent cards, three dice
MOST_LINES = 200  # of a card
_SUITS = "CDHS"
_RANKS = ("2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K", "A")

_WORDS: dict[str, dict[str, str]] = {
    "en": {
        "title": "Randomised answers: {columns}",
        "about": "Protocol {name}, ε = {epsilon}, fingerprint {fingerprint}.",
        "interviewer": "For the interviewer",
        "card": "Card for the person",
        "card_of": "Card {n} of {all} for the person",
        "tally": "Tally sheet",
        "read": "Read aloud:",
        "script": "I want to ask you about {columns}. I must not learn your answer, and I do not "
        "want to know it. {throw} Do it so that I cannot see it, and keep it to yourself. Find the "
        "line of your card that is true for you. In this line, find where your throw is, and tell "
        "me only the letter above it. The letter does not tell me what is true for you: everyone "
        "can have every letter that stands in more than one line.",
        "rules": "Rules",
        "rule_1": "Never look at the throw, and never ask which line it was.",
        "rule_2": "Each person throws once. A second answer would reveal more.",
        "rule_3": "Tick the letter on the tally sheet at once, with nothing about the person.",
        "rule_4": "If someone refuses, tick nothing and count the refusal below.",
        "rule_sheet": "Give everyone one of the {all} cards at random, whoever it is (shuffle "
        "them; as many of each).",
        "promise": "Whom it protects, and how far, is in the protocol file: rldp audit tells it.",
        "line": "what is true for you",
        "answer": "say",
        "ticks": "ticks",
        "count": "count",
        "refused": "refused",
        "fill": "Then write the counts into the file of the tally sheet, or into the columns "
        "y, count of a CSV file; rldp estimate PROTOCOL TALLY --tally reads it.",
        "none": "-",
        "dice_1": "Throw the die.",
        "dice_2": "Throw two dice, a red one and a white one. Read them as one number, the red die "
        "first: red 3 and white 5 are 35.",
        "dice_3": "Throw three dice, red, white and blue. Read them as one number, in this order: "
        "red 3, white 5 and blue 1 are 351.",
        "dice": "Throw a die {k} times. Write the throws down one after the other, as one number.",
        "coin": "Toss a coin {k} times. Write 1 for heads and 2 for tails, one after the other, as "
        "one number.",
        "playing": "Draw a card from a full pack of 52 without jokers, look at it and put it back. "
        "C, D, H, S are clubs, diamonds, hearts, spades, in this order; within them the order is "
        "2 to 10, J, Q, K, A.",
        "cards": "Draw one of the cards numbered 1 to {D}, look at it and put it back.",
        "crosswise": "There are two statements. First: my answer on {column} is "
        "“{yes}”. Second: your throw is {hit}. Do not answer them one by one. If both are "
        "true or both are false, say A. If only one is true, say B.",
        "forced-response": "If your throw is {forced_yes}, say B, whatever is true. If it is "
        "{forced_no}, say A, whatever is true. Otherwise say B if “{yes}” is true for you "
        "and A if not.",
        "unrelated-question": "If your throw is {own}, answer whether “{yes}” is true for "
        "you. Otherwise answer whether your throw is {hit}. Say B for yes and A for no; do not say "
        "which of the two you answered.",
        "triangular": "Say A if “{yes}” is not true for you and your throw is not {hit}. "
        "Otherwise say B.",
    },
    "de": {
        "title": "Verschlüsselte Antworten: {columns}",
        "about": "Protokoll {name}, ε = {epsilon}, Fingerabdruck {fingerprint}.",
        "interviewer": "Für die Interviewerin, den Interviewer",
        "card": "Karte für die befragte Person",
        "card_of": "Karte {n} von {all} für die befragte Person",
        "tally": "Strichliste",
        "read": "Vorlesen:",
        "script": "Ich möchte Sie nach {columns} fragen. Ich darf Ihre Antwort nicht erfahren und "
        "will sie nicht wissen. {throw} Tun Sie es so, dass ich es nicht sehe, und behalten Sie "
        "es für sich. Suchen Sie auf Ihrer Karte die Zeile, die auf Sie zutrifft. Suchen Sie in "
        "dieser Zeile Ihren Wurf, und nennen Sie mir nur den Buchstaben darüber. Der Buchstabe "
        "sagt mir nicht, was auf Sie zutrifft: Jede Person kann jeden Buchstaben haben, der in "
        "mehr als einer Zeile vorkommt.",
        "rules": "Regeln",
        "rule_1": "Nie auf den Wurf sehen, nie nach der Zeile fragen.",
        "rule_2": "Jede Person würfelt einmal. Eine zweite Antwort würde mehr verraten.",
        "rule_3": "Den Buchstaben sofort auf der Strichliste ankreuzen, ohne Angaben zur Person.",
        "rule_4": "Wenn jemand ablehnt, nichts ankreuzen und die Ablehnung unten zählen.",
        "rule_sheet": "Jede Person bekommt eine der {all} Karten, zufällig und ohne Ansehen der "
        "Person (mischen, von jeder gleich viele).",
        "promise": "Wen das Protokoll wie weit schützt, steht in seiner Datei: rldp audit sagt es.",
        "line": "was auf Sie zutrifft",
        "answer": "sagen Sie",
        "ticks": "Striche",
        "count": "Anzahl",
        "refused": "abgelehnt",
        "fill": "Danach die Anzahlen in die Datei der Strichliste eintragen, oder in die Spalten "
        "y, count einer CSV-Datei; rldp estimate PROTOCOL TALLY --tally liest sie.",
        "none": "-",
        "dice_1": "Werfen Sie den Würfel.",
        "dice_2": "Werfen Sie zwei Würfel, einen roten und einen weißen. Lesen Sie sie als eine "
        "Zahl, den roten zuerst: rot 3 und weiß 5 sind 35.",
        "dice_3": "Werfen Sie drei Würfel, rot, weiß und blau. Lesen Sie sie in dieser Reihenfolge "
        "als eine Zahl: rot 3, weiß 5 und blau 1 sind 351.",
        "dice": "Werfen Sie einen Würfel {k} Mal. Schreiben Sie die Würfe hintereinander, als eine "
        "Zahl.",
        "coin": "Werfen Sie eine Münze {k} Mal. Schreiben Sie 1 für Kopf und 2 für Zahl, "
        "hintereinander, als eine Zahl.",
        "playing": "Ziehen Sie eine Karte aus einem vollen Spiel von 52 ohne Joker, sehen Sie sie "
        "an und stecken Sie sie zurück. C, D, H, S sind Kreuz, Karo, Herz, Pik, in dieser "
        "Reihenfolge; darin ist die Reihenfolge 2 bis 10, J (Bube), Q (Dame), K, A.",
        "cards": "Ziehen Sie eine der Karten mit den Nummern 1 bis {D}, sehen Sie sie an und "
        "stecken Sie sie zurück.",
        "crosswise": "Es gibt zwei Aussagen. Erstens: Meine Antwort zu {column} ist "
        "„{yes}“. Zweitens: Ihr Wurf ist {hit}. Beantworten Sie sie nicht einzeln. Sind "
        "beide wahr oder beide falsch, sagen Sie A. Ist nur eine wahr, sagen Sie B.",
        "forced-response": "Ist Ihr Wurf {forced_yes}, sagen Sie B, was immer zutrifft. Ist er "
        "{forced_no}, sagen Sie A, was immer zutrifft. Sonst sagen Sie B, wenn auf Sie "
        "„{yes}“ zutrifft, und A, wenn nicht.",
        "unrelated-question": "Ist Ihr Wurf {own}, antworten Sie, ob auf Sie „{yes}“ "
        "zutrifft. Sonst antworten Sie, ob Ihr Wurf {hit} ist. Sagen Sie B für ja und A für nein; "
        "sagen Sie nicht, welche der Fragen Sie beantwortet haben.",
        "triangular": "Sagen Sie A, wenn auf Sie „{yes}“ nicht zutrifft und Ihr Wurf nicht "
        "{hit} ist. Sonst sagen Sie B.",
    },
}


@dataclass(frozen=True)
class Card:
    """The answers of one card, and for each line what must be thrown for each of them."""

    answers: tuple[str, ...]  # letters
    outputs: tuple[int, ...]  # of the protocol
    lines: tuple[tuple[str, tuple[str, ...]], ...]  # (what is true, the throws of each answer)


@dataclass(frozen=True)
class Sheet:
    """All that is on paper: texts, cards, and the labels of reports for the tally sheet."""

    language: str
    title: str
    about: str
    throw: str
    script: str
    rules: tuple[str, ...]
    cards: tuple[Card, ...]
    labels: tuple[str, ...]  # of reports, by output

    def word(self, name: str, **values: Any) -> str:
        """A text of the sheet in its language."""
        return _WORDS[self.language][name].format(**values)

    @property
    def tally(self) -> list[tuple[str, str]]:
        """The letter of every answer, with its card if there are several, and its report."""
        several = len(self.cards) > 1
        return [
            (f"{letter}{n}" if several else letter, self.labels[y])
            for n, card in enumerate(self.cards, 1)
            for letter, y in zip(card.answers, card.outputs, strict=True)
        ]

    def text(self) -> str:
        """The sheet as plain text."""
        lines = [self.title, self.about, "", self.word("interviewer").upper(), ""]
        lines += [self.word("read"), f"  {self.script}", "", f"{self.word('rules')}:"]
        lines += [f"  {i}. {rule}" for i, rule in enumerate(self.rules, 1)]
        for n, card in enumerate(self.cards, 1):
            if not card.lines:
                continue
            head = "card_of" if len(self.cards) > 1 else "card"
            lines += ["", self.word(head, n=n, all=len(self.cards)).upper(), "", self.throw, ""]
            rows = [(self.word("line"), *(f"{self.word('answer')} {x}" for x in card.answers))]
            rows += [(label, *throws) for label, throws in card.lines]
            widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
            lines += [
                " | ".join(x.ljust(w) for x, w in zip(row, widths, strict=True)).rstrip()
                for row in rows
            ]
        lines += ["", self.word("tally").upper(), ""]
        lines += [f"{letter}: ____" for letter, _ in self.tally]
        lines += [f"{self.word('refused')}: ____", "", self.word("fill")]
        return "\n".join(lines) + "\n"

    def tally_csv(self) -> str:
        """A CSV file in which counts are filled in, for `rldp estimate --tally`."""
        rows = [f"{_csv(label)},{letter}," for letter, label in self.tally]
        return "\n".join(["y,letter,count", *rows]) + "\n"


def sheet(p: Any, language: str = "en", *, with_cards: bool = False) -> Sheet:
    """The sheet of a protocol, whole or public, that can be carried out with dice or cards.

    Args:
        p: a protocol whose probabilities are multiples of 1/D for a small D.
        language: "en" or "de".
        with_cards: whether classical designs get a card as well, instead of their own words.
    """
    if language not in LANGUAGES:
        raise ParameterError(
            f"Expected language among {', '.join(LANGUAGES)}, got {language!r}.",
            argument="language",
        )
    n, D, sheets = _table(p)
    words, schema = _WORDS[language], p.schema
    columns = ", ".join(column.name for column in (*schema.sensitive, *schema.useful))
    throw, name = _device(D, words)
    bounds = [0, *sheets]
    outputs = [tuple(range(a, b)) for a, b in pairwise(bounds)]
    cards = tuple(_card(n, of, schema, name, words["none"]) for of in outputs)
    classic = None if with_cards else _classic(p, n, D, name, words)
    if classic is not None:  # the words are enough, and a card would be another way to say it
        cards = tuple(replace(card, lines=()) for card in cards)
    script = words["script"].format(columns=columns, throw=throw)
    if classic is not None:
        script = f"{script.split(throw)[0]}{throw} {classic}"
    rules = [words[f"rule_{i}"] for i in range(1, 5)] + [words["promise"]]
    if len(cards) > 1:
        rules.insert(0, words["rule_sheet"].format(all=len(cards)))
    about = words["about"].format(
        name=p.name, epsilon=brief_up(p.epsilon), fingerprint=p.fingerprint[:12]
    )
    labels = tuple(p.report_labels.all)
    title = words["title"].format(columns=columns)
    return Sheet(language, title, about, throw, script, tuple(rules), cards, labels)


def outcome_names(p: Any) -> list[str]:
    """All that may be thrown, equally likely, in the order of the card."""
    return _device(_table(p)[1], _WORDS["en"])[1]


def _table(p: Any) -> tuple[Integers, int, Sequence[int]]:
    """n[s, u, y], what is thrown, and where the outputs of each card end."""
    found = dice_table(p.integers["Q"], p.bits) if isinstance(p.channel, DenseChannel) else None
    if found is None or found[0].shape[2] > 16 * len(LETTERS):
        raise ParameterError(
            f"{p.name} has {p.channel.n_outputs} outputs with probabilities that no dice have. "
            "Design a protocol for paper: rldp design ... --outputs 6 --denominators 36.",
            argument="protocol",
        )
    n, D = found
    sheets = _blocks(n)
    if D % len(sheets) or any(n[..., a:b].sum(axis=2).min() < 1 for a, b in sheets):
        raise ParameterError(f"Expected cards that are equally likely, {p.name} has others.")
    D = D // len(sheets)
    asked = getattr(p, "parameters", {}).get("denominator")
    whole = int(asked) if isinstance(asked, int | float) else 0
    is_coins = D > 2 and D & (D - 1) == 0
    for thrown in (whole, D if is_coins else 0, *_USUAL):  # thirds are thrown with a die
        if thrown and thrown % D == 0:
            return n * (thrown // D), thrown, [b for _, b in sheets]
    return n, D, [b for _, b in sheets]


def _blocks(n: Integers) -> list[tuple[int, int]]:
    """Stretches of outputs that have one sum for all records: as many equal ones as there are."""
    n_y, total = n.shape[2], int(n[0, 0].sum())
    sums = np.cumsum(n, axis=2)
    ends = [y + 1 for y in range(n_y) if (sums[..., y] == sums[0, 0, y]).all()]
    for k in range(min(16, n_y), 1, -1):
        if total % k == 0:
            wanted = [total // k * i for i in range(1, k + 1)]
            found = [y for y in ends if int(sums[0, 0, y - 1]) in wanted]
            stretches = list(pairwise([0, *found]))
            if len(found) == k and all(b - a > 1 for a, b in stretches):
                return stretches
    return [(0, n_y)]


def _device(D: int, words: dict[str, str]) -> tuple[str, list[str]]:
    """What is thrown, in words, and the names of all D outcomes in their order."""
    for faces, kind in ((6, "dice"), (2, "coin")):
        k = round(np.log(D) / np.log(faces))
        if faces**k == D and k <= 8:
            one = [str(i) for i in range(1, faces + 1)]
            names = [""]
            for _ in range(k):
                names = [a + b for a in names for b in one]
            key = f"{kind}_{k}" if f"{kind}_{k}" in words else kind
            return words[key].format(k=k), names
    if len(_SUITS) * len(_RANKS) == D:
        return words["playing"], [suit + rank for suit in _SUITS for rank in _RANKS]
    return words["cards"].format(D=D), [str(i) for i in range(1, D + 1)]


def _card(n: Integers, outputs: Sequence[int], schema: Schema, names: list[str], none: str) -> Card:
    """Lines of records with equal rows are one line where they differ in U only."""
    lines: list[tuple[str, tuple[str, ...]]] = []
    for s, label in enumerate(schema.s_labels):
        rows = n[s][:, list(outputs)]
        if (rows == rows[0]).all():
            lines.append((label, _throws(rows[0], names, none)))
            continue
        lines += [
            (f"{label} | {u_label}", _throws(row, names, none))
            for u_label, row in zip(schema.u_labels, rows, strict=True)
        ]
    if len(lines) > MOST_LINES:
        raise ParameterError(
            f"Expected a card of at most {MOST_LINES} lines, got {len(lines)}; merge levels."
        )
    letters = _letters(len(outputs))
    return Card(letters, tuple(outputs), tuple(lines))


def _letters(k: int) -> tuple[str, ...]:
    some = list(LETTERS) + [a + b for a in LETTERS for b in LETTERS]
    return tuple(some[:k])


def _throws(row: Integers, names: list[str], none: str) -> tuple[str, ...]:
    ends = np.cumsum(row)
    return tuple(
        none if a == b else names[a] if b == a + 1 else f"{names[a]} – {names[b - 1]}"
        for a, b in zip((ends - row).tolist(), ends.tolist(), strict=True)
    )


def _classic(p: Any, n: Integers, D: int, names: list[str], words: dict[str, str]) -> str | None:
    """The words of a classical design, which say the same as its card."""
    if p.name not in CLASSIC or n.shape != (2, 1, 2):
        return None
    no_a, yes_a = int(n[0, 0, 0]), int(n[1, 0, 0])

    def stretch(a: int, b: int) -> str:
        return names[a] if b == a + 1 else f"{names[a]} – {names[b - 1]}"

    texts = {"yes": p.schema.s_labels[1], "column": p.schema.sensitive[0].name}
    match p.name:
        case "crosswise":  # A where both are true (yes, hit) or both false
            texts["hit"] = stretch(0, yes_a)
        case "forced-response":  # the first throws force A, the last B
            texts |= {"forced_no": stretch(0, yes_a), "forced_yes": stretch(no_a, D)}
        case "unrelated-question":  # A: own question no, or not hit
            texts |= {"own": stretch(yes_a, no_a), "hit": stretch(no_a, D)}
        case "triangular":
            texts["hit"] = stretch(no_a, D)
    return words[p.name].format(**texts)


def _csv(text: str) -> str:
    return f'"{text.replace(chr(34), chr(34) * 2)}"' if any(c in text for c in ',"\n') else text
