"""Question files that somebody else made: nothing in them is trusted, and memory stays small."""

from __future__ import annotations

import random
import re
import tracemalloc
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

import rldp
from rldp.collect import questions, xlsform
from rldp.collect.questions import read_texts

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
SCHEMA = rldp.Schema((rldp.Column("sex", ("f", "m")),), (rldp.Column("race", ("x", "y")),))
SHEETS = ("survey", "choices")
SURVEY = (
    '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c><c r="C1" t="s"><v>2</v>'
    '</c></row><row r="2"><c r="A2" t="s"><v>3</v></c><c r="B2" t="s"><v>4</v></c>'
    '<c r="C2" t="s"><v>5</v></c></row>'
)
CHOICES = (
    '<row><c t="inlineStr"><is><t>list_name</t></is></c><c t="s"><v>1</v></c>'
    '<c t="s"><v>2</v></c></row><row><c t="str"><v>s</v></c><c t="str"><v>f</v></c>'
    '<c t="inlineStr"><is><r><t>a </t></r><r><t>woman &amp; so</t></r></is></c></row>'
)
SHARED = ("type", "name", "label::English (en)", "select_one s", "sex", "Sex?")
MEGABYTE = 1 << 20


def sheet(rows: str) -> str:
    return f'<worksheet xmlns="{MAIN}"><sheetData>{rows}</sheetData></worksheet>'


def shared(*texts: str) -> str:
    return f'<sst xmlns="{MAIN}">' + "".join(f"<si><t>{x}</t></si>" for x in texts) + "</sst>"


def parts(**changes: object) -> dict[str, object]:
    """The parts of a good form; names of changes are those of the files, without folders."""
    listed = "".join(f'<sheet name="{name}" r:id="r{i}"/>' for i, name in enumerate(SHEETS))
    relations = "".join(
        f'<Relationship Id="r{i}" Target="worksheets/{name}.xml"/>' for i, name in enumerate(SHEETS)
    )
    book = f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>{listed}</sheets></workbook>'
    given = {
        "xl/_rels/workbook.xml.rels": (
            f'<Relationships xmlns="{PACKAGE}">{relations}</Relationships>'
        ),
        "xl/workbook.xml": book,
        "xl/sharedStrings.xml": shared(*SHARED),
        "xl/worksheets/survey.xml": sheet(SURVEY),
        "xl/worksheets/choices.xml": sheet(CHOICES),
    }
    by_stem = {Path(name).name.split(".")[0]: name for name in given if "rels" not in name}
    return given | {by_stem[name]: content for name, content in changes.items()}


def write(path: Path, given: dict[str, object], kind: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", kind) as book:
        for name, content in given.items():
            if content is not None:
                book.writestr(name, content)
    return path


def refusal(path: Path) -> str:
    """Why a file is refused, in one sentence."""
    with pytest.raises(rldp.RldpError) as caught:
        read_texts([path], SCHEMA)
    told = str(caught.value)
    assert "\n" not in told
    assert len(told) < 500
    return told


def peak(path: Path) -> tuple[str, float]:
    """Why a file is refused, and the most memory that it took, in megabytes."""
    tracemalloc.start()
    try:
        told = refusal(path)
        return told, tracemalloc.get_traced_memory()[1] / MEGABYTE
    finally:
        tracemalloc.stop()


def test_texts_of_every_kind_of_cell_are_read(tmp_path):
    (texts,) = read_texts([write(tmp_path / "form.xlsx", parts())], SCHEMA)
    (question,) = texts.questions
    assert (texts.language, question.column, question.text) == ("en", "sex", "Sex?")
    assert question.labels == {"f": "a woman & so"}


def test_questions_for_other_columns_are_left_out(tmp_path):
    more = SURVEY + SURVEY.replace("<v>4</v>", "<v>6</v>").partition("</row>")[2]
    given = parts(survey=sheet(more), sharedStrings=shared(*SHARED, "age"))
    (texts,) = read_texts([write(tmp_path / "form.xlsx", given)], SCHEMA)
    assert [question.column for question in texts.questions] == ["sex"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-be", "utf-16-le", "iso-8859-1"])
@pytest.mark.parametrize("name", ["workbook", "sharedStrings", "survey", "choices"])
def test_no_part_declares_a_type_or_an_entity(tmp_path, encoding, name):
    entities = '<!ENTITY a "ha">' + "".join(
        f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 100}">' for i in range(6)
    )
    for inside in ("", f"[{entities}]", '[<!ENTITY x SYSTEM "file:///etc/passwd">]'):
        said = encoding.removesuffix("-be").removesuffix("-le")
        text = f'<?xml version="1.0" encoding="{said}"?><!DOCTYPE x {inside}>'
        text += str(next(x for key, x in parts().items() if key.endswith(f"{name}.xml")))
        text = text.replace("Sex?", "&g;" if "ENTITY a" in inside else "Sex?")
        mark = {"utf-16-be": b"\xfe\xff", "utf-16-le": b"\xff\xfe"}.get(encoding, b"")
        given = parts(**{name: mark + text.encode(encoding)})
        told, most = peak(write(tmp_path / "form.xlsx", given))
        assert "declares a document type or an entity" in told
        assert most < 4


BOMBS = {
    "a part that unpacks to 200 MB": (
        {"survey": sheet(SURVEY + " " * (200 * MEGABYTE))},
        "more than 16 MB",
    ),
    "parts that unpack to 20 MB together": (
        {name: sheet(SURVEY + " " * (10 * MEGABYTE)) for name in SHEETS},
        "more than 16 MB",
    ),
    "a long text that many cells name": (
        {
            "sharedStrings": shared(*SHARED[:5], "x" * 30_000 + " y"),
            "choices": sheet(CHOICES + '<row><c r="A1" t="s"><v>5</v></c></row>' * 50_000),
        },
        "up to 4000 characters",
    ),
    "a text as long as the part": (
        {"sharedStrings": shared(*SHARED[:5], "x" * (10 * MEGABYTE))},
        "more than 32,767 characters",
    ),
    "a million rows": ({"survey": sheet("<row/>" * 1_000_000)}, "more than 200,000 cells"),
    "a million shared texts": (
        {"sharedStrings": f'<sst xmlns="{MAIN}">{"<si/>" * 1_000_000}</sst>'},
        "more than 200,000 cells",
    ),
    "a million levels": ({"survey": sheet("<a>" * 1_000_000)}, "100 levels deep"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_no_form_takes_much_memory(tmp_path, name):
    changes, message = BOMBS[name]
    path = write(tmp_path / "form.xlsx", parts(**changes))
    del changes
    told, most = peak(path)
    assert message in told
    assert most < 100


def test_a_text_is_not_copied_for_every_cell(tmp_path):
    """15 kB that were a text of 665 MB: a text with blanks around it, named again and again."""
    text = " " + "x" * 30_000 + " "
    rows = CHOICES + '<row><c r="D1" t="s"><v>6</v></c></row>' * 20_000
    given = parts(sharedStrings=shared(*SHARED, text), choices=sheet(rows))
    path = write(tmp_path / "form.xlsx", given)
    assert path.stat().st_size < 15_000
    tracemalloc.start()
    assert len(read_texts([path], SCHEMA)) == 1
    most = tracemalloc.get_traced_memory()[1] / MEGABYTE
    tracemalloc.stop()
    assert most < 30


def test_a_file_that_says_too_little_about_its_size_is_read_by_what_comes(tmp_path, monkeypatch):
    taken = []
    read = zipfile.ZipExtFile.read

    def counted(self, n=-1):
        found = read(self, n)
        taken.append(len(found))
        return found

    monkeypatch.setattr(zipfile.ZipExtFile, "read", counted)
    path = write(tmp_path / "form.xlsx", parts(survey=sheet(SURVEY + " " * (40 * MEGABYTE))))
    packed = path.read_bytes()
    real = len(sheet(SURVEY)) + 40 * MEGABYTE
    assert packed.count(real.to_bytes(4, "little")) == 2
    path.write_bytes(packed.replace(real.to_bytes(4, "little"), (2000).to_bytes(4, "little")))
    assert "damaged" in refusal(path)
    assert sum(taken) <= xlsform.MOST_BYTES + 1
    path.write_bytes(packed)
    taken.clear()
    assert "more than 16 MB" in refusal(path)
    assert sum(taken) <= xlsform.MOST_BYTES + 1


ODD = {
    "no workbook": ({"workbook": None}, "'xl/workbook.xml' is missing"),
    "no sheet": ({"survey": None}, "'xl/worksheets/survey.xml' is missing"),
    "no shared texts": ({"sharedStrings": None}, "shared text 0, which is missing"),
    "a shared text that is not there": (
        {"survey": sheet(SURVEY.replace("<v>5</v>", "<v>99</v>"))},
        "shared text 99, which is missing",
    ),
    "the last shared text": (
        {"survey": sheet(SURVEY.replace("<v>5</v>", "<v>-1</v>"))},
        "shared text without a number",
    ),
    "a number with many digits": (
        {"survey": sheet(SURVEY.replace("<v>5</v>", f"<v>{'9' * 9000}</v>"))},
        "shared text without a number",
    ),
    "another number": (
        {"survey": sheet(SURVEY.replace("<v>5</v>", "<v>٥</v>"))},
        "shared text without a number",
    ),
    "no XML": ({"survey": "type,name\n"}, "XML is damaged"),
    "an encoding that nobody has": (
        {"survey": '<?xml version="1.0" encoding="klingon"?><a/>'},
        "as spreadsheet programs write it",
    ),
    "bad characters": ({"survey": sheet("\x00\x1b")}, "XML is damaged"),
    "other sheets": ({"workbook": f'<workbook xmlns="{MAIN}"/>'}, "survey and choices"),
    "no question of ours": (
        {"sharedStrings": shared(*SHARED[:4], "age", "Age?")},
        "row select_one in survey for a column",
    ),
    "a question that is asked twice": (
        {"survey": sheet(SURVEY + SURVEY.partition("</row>")[2])},
        "asked for more than once",
    ),
    "a long question": (
        {"sharedStrings": shared(*SHARED[:5], "x" * 5000)},
        "up to 4000 characters as 'sex'",
    ),
    "sixty languages": (
        {
            "survey": sheet(
                "<row>"
                + "".join(
                    f'<c t="str"><v>{name}</v></c>'
                    for name in (
                        "type",
                        "name",
                        *(f"label::a{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(60)),
                    )
                )
                + "</row><row>"
                + "".join(
                    f'<c t="str"><v>{x}</v></c>' for x in ("select_one s", "sex", *["?"] * 60)
                )
                + "</row>"
            )
        },
        "at most 50 languages",
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_forms_are_refused_in_one_sentence(tmp_path, name):
    changes, message = ODD[name]
    assert message in refusal(write(tmp_path / "form.xlsx", parts(**changes)))


def test_forms_that_are_packed_in_other_ways(tmp_path):
    path = tmp_path / "form.xlsx"
    for kind in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        assert "unusual way" in refusal(write(path, parts(), kind))
    whole = write(path, parts()).read_bytes()
    locked = bytearray(whole)
    for found in re.finditer(b"PK\x01\x02", whole):
        locked[found.start() + 8] |= 1
    path.write_bytes(locked)
    assert "without a password" in refusal(path)
    ole = bytes.fromhex("d0cf11e0a1b11ae1")  # what Excel makes of a workbook with a password
    for content in (b"", b"PK", ole + bytes(5000), whole[: len(whole) // 2], whole[200:]):
        path.write_bytes(content)
        assert "damaged" in refusal(path)
    path.unlink()
    assert "No such file" in refusal(path)
    path.mkdir()
    assert "no regular file" in refusal(path)


def test_damaged_forms_are_refused_or_read(tmp_path):
    path = tmp_path / "form.xlsx"
    rng = random.Random(5)
    for kind in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        whole = write(path, parts(), kind).read_bytes()
        for _ in range(400):
            damaged = bytearray(whole)
            for _ in range(rng.randint(1, 4)):
                damaged[rng.randrange(len(damaged))] = rng.choice((0, 1, 255, rng.randrange(256)))
            path.write_bytes(damaged)
            with suppress(rldp.RldpError):
                read_texts([path], SCHEMA)


def test_questions_in_toml_have_the_same_limits(tmp_path, monkeypatch):
    path = tmp_path / "form.toml"
    for content, message in {
        f"a = {'[' * 100_000}": "nested too deep",
        f"a = {'9' * 5_000}": "Cannot read the questions",
        f"[questions]\nsex = '{'x' * 4_001}'": "up to 4000 characters",
        "#" * (5 * MEGABYTE): "up to 4 MB",
        'title = "\\uD800"': "Cannot read the questions",
    }.items():
        path.write_text(content)
        assert message in refusal(path)
    path.write_bytes(b"title = '\xff'")
    assert "Cannot read the questions" in refusal(path)
    assert "no regular file" in refusal(Path("/dev/zero"))
    monkeypatch.setattr(questions, "_MOST", 5_000)
    path.write_text(f"title = '{'x' * 3000}'\nintroduction = '{'x' * 3000}'")
    assert "at most 5,000 characters in all texts" in refusal(path)
