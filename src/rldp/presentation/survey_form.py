"""XLSForms for ODK and KoboToolbox whose randomness never comes from the form.

A form could ask for S and randomise with its own random(). Then the record would stand on the
device, in drafts and logs, and the draw would come from a generator that nobody has examined. So
the form holds the card of the sheet: people throw dice, or use the number of their invitation, find
the letter by themselves, and enter the letter alone. What is submitted is the report.
"""

from __future__ import annotations

import io
import re
import secrets
import zipfile
from collections.abc import Iterable, Sequence
from typing import Any
from xml.sax.saxutils import escape

from rldp.errors import ParameterError
from rldp.presentation.sheet import LANGUAGES, Card, Sheet, outcome_names, sheet

NAMES = {"en": "English (en)", "de": "Deutsch (de)"}
_ASKED = {
    "en": "Which letter is above your throw?",
    "de": "Welcher Buchstabe steht über Ihrem Wurf?",
}
_ASKED_NUMBER = {
    "en": "Which letter is above your number?",
    "de": "Welcher Buchstabe steht über Ihrer Nummer?",
}
_WHICH_CARD = {
    "en": "Which card did you get by chance?",
    "de": "Welche Karte haben Sie zufällig bekommen?",
}
_CARD = {"en": "Card {n}", "de": "Karte {n}"}
_DICE = {
    "en": "This form must not learn your answer. {throw} Keep it to yourself. Find the line below "
    "that is true for you, and in it your throw. Enter only the letter above it.",
    "de": "Dieses Formular darf Ihre Antwort nicht erfahren. {throw} Behalten Sie es für sich. "
    "Suchen Sie unten die Zeile, die auf Sie zutrifft, und darin Ihren Wurf. Geben Sie nur den "
    "Buchstaben darüber ein.",
}
_NUMBER = {
    "en": "This form must not learn your answer. In your invitation there is a secret number. Keep "
    "it to yourself, and destroy the invitation afterwards. Find the line below that is true for "
    "you, and in it your number. Enter only the letter above it.",
    "de": "Dieses Formular darf Ihre Antwort nicht erfahren. In Ihrer Einladung steht eine geheime "
    "Nummer. Behalten Sie sie für sich, und vernichten Sie danach die Einladung. Suchen Sie unten "
    "die Zeile, die auf Sie zutrifft, und darin Ihre Nummer. Geben Sie nur den Buchstaben darüber "
    "ein.",
}
_ODD = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
Rows = list[list[str]]


def survey_form(p: Any, languages: Sequence[str] = LANGUAGES, *, is_secret: bool = False) -> bytes:
    """An .xlsx file for ODK or KoboToolbox, from a protocol for dice or cards.

    Args:
        p: a protocol of `design(..., outputs=)` or `classic`.
        languages: of the form, the first is the default.
        is_secret: people use the secret number of their invitation in the place of dice.

    The form asks for the letter and nothing else. The columns y and protocol of its submissions are
    what `rldp estimate` reads.
    """
    sheets = {language: sheet(p, language, with_cards=True) for language in languages}
    if not sheets:
        raise ParameterError("Expected at least one language.", argument="languages")
    names = [NAMES[language] for language in sheets]
    head = ["type", "name", *(f"label::{name}" for name in names)]
    head += ["required", "relevant", "calculation", "choice_filter"]
    first = next(iter(sheets.values()))
    several = len(first.cards) > 1
    intro = _NUMBER if is_secret else _DICE
    asked = _ASKED_NUMBER if is_secret else _ASKED

    def row(kind: str, name: str, texts: Iterable[str], **more: str) -> list[str]:
        last = [more.get(column, "") for column in head[2 + len(names) :]]
        return [kind, name, *map(_safe, texts), *last]

    def in_all(texts: dict[str, str], **values: str) -> list[str]:
        return [texts[language].format(**values) for language in sheets]

    starts = [intro[language].format(throw=made.throw) for language, made in sheets.items()]
    survey: Rows = [head, row("note", "how", starts)]
    if several:
        survey.append(row("select_one cards", "card", in_all(_WHICH_CARD), required="yes"))
    for n in range(len(first.cards)):
        texts = [_lines(made, made.cards[n]) for made in sheets.values()]
        relevant = f"${{card}} = '{n + 1}'" if several else ""
        survey.append(row("note", f"card_{n + 1}", texts, relevant=relevant))
    choice_filter = "of_card = ${card}" if several else ""
    question = row(
        "select_one answers", "y", in_all(asked), required="yes", choice_filter=choice_filter
    )
    mark = row("calculate", "protocol", [""] * len(names), calculation=f"'{p.fingerprint[:12]}'")
    survey += [question, mark]
    choices: Rows = [["list_name", "name", *(f"label::{name}" for name in names), "of_card"]]
    if several:
        for n in range(1, len(first.cards) + 1):
            choices.append(["cards", str(n), *in_all(_CARD, n=str(n)), ""])
    for n, card in enumerate(first.cards, 1):
        for letter, y in zip(card.answers, card.outputs, strict=True):
            choices.append(["answers", first.labels[y], *[letter] * len(names), str(n)])
    settings: Rows = [
        ["form_title", "form_id", "version", "default_language"],
        [_safe(first.title), f"rldp_{p.fingerprint[:12]}", p.fingerprint[:12], names[0]],
    ]
    return _xlsx({"survey": survey, "choices": choices, "settings": settings})


def secret_numbers(p: Any, n: int) -> list[str]:
    """The secret throws of n invitations, from the operating system."""
    outcomes = outcome_names(p)
    return [outcomes[secrets.randbelow(len(outcomes))] for _ in range(n)]


def _lines(made: Sheet, card: Card) -> str:
    """The lines of a card, one below the other."""
    rows = []
    for label, throws in card.lines:
        parts = [f"{x} → {letter}" for letter, x in zip(card.answers, throws, strict=True)]
        none = made.word("none")
        told = [part for part, x in zip(parts, throws, strict=True) if x != none]
        rows.append(f"{label}: {';  '.join(told)}")
    return "\n\n".join(rows)


def _safe(text: str) -> str:
    """A text without what a form takes for a reference to a question."""
    if _ODD.search(text):
        raise ParameterError("Expected labels without control characters for a form.")
    return text.replace("${", "$ {")


def _xlsx(sheets: dict[str, Rows]) -> bytes:
    """A workbook of texts: the least that spreadsheet programs take."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    types = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    listed = list(enumerate(sheets, 1))
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"><Default Extension="rels" '
        f'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{types}.sheet.main+xml"/>'
        + "".join(
            f'<Override PartName="/xl/worksheets/sheet{i}.xml" '
            f'ContentType="{types}.worksheet+xml"/>'
            for i, _ in listed
        )
        + "</Types>",
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="rId1" '
        f'Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>'
        + "".join(f'<sheet name="{name}" sheetId="{i}" r:id="rId{i}"/>' for i, name in listed)
        + "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships">'
        + "".join(
            f'<Relationship Id="rId{i}" Type="{office}/worksheet" '
            f'Target="worksheets/sheet{i}.xml"/>'
            for i, _ in listed
        )
        + "</Relationships>",
    }
    for i, name in listed:
        rows = "".join(
            f'<row r="{r}">'
            + "".join(
                f'<c r="{chr(64 + c)}{r}" t="inlineStr"><is><t xml:space="preserve">'
                f"{escape(text)}</t></is></c>"
                for c, text in enumerate(row, 1)
                if text
            )
            + "</row>"
            for r, row in enumerate(sheets[name], 1)
        )
        parts[f"xl/worksheets/sheet{i}.xml"] = (
            f'<worksheet xmlns="{main}"><sheetData>{rows}</sheetData></worksheet>'
        )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as book:
        for name, text in parts.items():
            info = zipfile.ZipInfo(name)  # with a fixed time: the same file every time
            info.compress_type = zipfile.ZIP_DEFLATED
            book.writestr(info, f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode())
    return out.getvalue()
