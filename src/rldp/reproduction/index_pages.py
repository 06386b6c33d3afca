"""The index of figures, in Markdown and HTML: pictures, claims, verdicts and times."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path

from rldp.io.atomic_files import write_text
from rldp.reproduction.claims import FAILS, HOLDS, OPEN, Verdict
from rldp.reproduction.curves import AS_PRINTED, BEYOND, Row
from rldp.reproduction.figure import Figure
from rldp.reproduction.tables import FIRST_SEED

_MARKS = {HOLDS: "✔ holds", FAILS: "✘ does not hold", OPEN: "… not judged"}
_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#222}
img{max-width:100%;height:auto;border:1px solid #ddd;border-radius:4px}
table{border-collapse:collapse;width:100%;font-size:.92em}
td,th{border-top:1px solid #ddd;padding:.45em .6em;text-align:left;vertical-align:top}
.holds{color:#00664d;white-space:nowrap}.fails{color:#a63c00;font-weight:600;white-space:nowrap}
.open{color:#777;white-space:nowrap}figcaption{color:#444;font-size:.92em}figure{margin:1.2em 0}
"""


def write(
    folder: Path,
    figures: Mapping[str, Figure],
    tables: Mapping[str, Sequence[Row]],
    verdicts: Sequence[Verdict],
    *,
    quick: bool,
) -> list[Path]:
    """Write index.md and index.html for the figures whose tables are there."""
    shown = {
        figure.name: [
            version for version in (AS_PRINTED, BEYOND) if _file(figure, version) in tables
        ]
        for figure in figures.values()
    }
    listed = [figure for figure in figures.values() if shown[figure.name]]
    parts = [_Part(figure, shown[figure.name], tables, verdicts) for figure in listed]
    intro = _intro(tables, verdicts, quick=quick)
    paths = [folder / "index.md", folder / "index.html"]
    write_text(paths[0], _markdown(intro, parts))
    write_text(paths[1], _html(intro, parts))
    return paths


class _Part:
    """What the index says of one figure."""

    def __init__(
        self,
        figure: Figure,
        versions: Sequence[str],
        tables: Mapping[str, Sequence[Row]],
        verdicts: Sequence[Verdict],
    ) -> None:
        self.figure = figure
        self.heading = f"fig:{figure.name} – {figure.title}"
        self.pictures = [
            (
                _file(figure, version),
                figure.captions[version],
                _time(tables[_file(figure, version)]),
            )
            for version in versions
        ]
        self.verdicts = [v for v in verdicts if v.claim.figure == figure.name]


def _file(figure: Figure, version: str) -> str:
    return figure.name.lower() + ("" if version == AS_PRINTED else f"-{version}")


def _time(rows: Sequence[Row]) -> str:
    """The time of all designs behind some rows, each counted once, on one core."""
    told = (
        "n_s",
        "n_u",
        "n",
        "alpha",
        "protocol",
        "bounds",
        "epsilon",
        "draws",
        "first_seed",
        "seed",
    )
    distinct = {tuple(row.get(name) for name in told): row for row in rows}
    seconds = sum(float(row["seconds"]) * int(row["draws"]) for row in distinct.values())
    return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"


def _intro(
    tables: Mapping[str, Sequence[Row]], verdicts: Sequence[Verdict], *, quick: bool
) -> list[str]:
    count = {
        outcome: sum(v.outcome == outcome for v in verdicts) for outcome in (HOLDS, FAILS, OPEN)
    }
    versions = dict.fromkeys(str(row["versions"]) for rows in tables.values() for row in rows)
    judged = (
        f"Of {len(verdicts)} claims that the paper makes of these figures, {count[HOLDS]} hold and "
        f"{count[FAILS]} do not"
    )
    judged += f"; {count[OPEN]} need figures that are not here." if count[OPEN] else "."
    said = [
        "Section 8 of Lopuhaä-Zwakenberg and Goseling, “The Privacy-Utility Tradeoff of Robust "
        "Local Differential Privacy”, computed anew. Every figure comes as the paper defines it, "
        "and in a second version that shows what is gained beyond it.",
        f"Draw i has the seed {FIRST_SEED} + i of numpy's default generator: P* from Jeffreys' "
        "prior, Dirichlet(1/2, …, 1/2), then n records from P*. Bands are two standard errors. "
        "Each picture has its rows in a CSV file of the same name, with draws, seed, seconds for "
        "each design, and versions. Times are those of all designs behind a picture, summed, by "
        "the clock of a shared machine.",
        judged,
        f"Computed by {'; '.join(versions)}.",
    ]
    if quick:
        said.append("A quick run: means over few tables at few ε; captions speak of the full one.")
    return said


def _markdown(intro: Sequence[str], parts: Sequence[_Part]) -> str:
    text = [
        "# Figures",
        *intro,
        "`rldp reproduce opt` makes one figure again, and `make figures` all of them.",
    ]
    for part in parts:
        text.append(f"## {part.heading}")
        for name, caption, seconds in part.pictures:
            text.append(f"![{part.figure.title}]({name}.png)")
            text.append(f"{caption} Time: {seconds}. [CSV]({name}.csv), [SVG]({name}.svg)")
        if part.verdicts:
            lines = ["| the paper says | here | verdict |", "|---|---|---|"]
            for verdict in part.verdicts:
                cells = (verdict.claim.words, verdict.ours, _verdict_in_words(verdict))
                lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
            text.append("\n".join(lines))
    return "\n\n".join(text) + "\n"


def _html(intro: Sequence[str], parts: Sequence[_Part]) -> str:
    text = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>rldp: figures</title><style>{_STYLE}</style></head><body><h1>Figures</h1>",
        *(f"<p>{html.escape(words)}</p>" for words in intro),
    ]
    for part in parts:
        text.append(f'<h2 id="{part.figure.name}">{html.escape(part.heading)}</h2>')
        for name, caption, seconds in part.pictures:
            text.append(
                f'<figure><img src="{name}.png" alt="{html.escape(part.figure.title)}">'
                f"<figcaption>{html.escape(caption)} Time: {seconds}. "
                f'<a href="{name}.csv">CSV</a>, <a href="{name}.svg">SVG</a></figcaption></figure>'
            )
        if part.verdicts:
            text.append("<table><tr><th>the paper says</th><th>here</th><th>verdict</th></tr>")
            for verdict in part.verdicts:
                kind = {HOLDS: "holds", FAILS: "fails", OPEN: "open"}[verdict.outcome]
                why = html.escape(_why(verdict))
                text.append(
                    f"<tr><td>{html.escape(verdict.claim.words)}</td><td>{html.escape(verdict.ours)}</td>"
                    f'<td><span class="{kind}">{_MARKS[verdict.outcome]}</span> {why}</td></tr>'
                )
            text.append("</table>")
    return "\n".join([*text, "</body></html>"]) + "\n"


def _verdict_in_words(verdict: Verdict) -> str:
    mark = _MARKS[verdict.outcome]
    mark = f"**{mark}**" if verdict.outcome == FAILS else mark
    return f"{mark}. {_why(verdict)}" if _why(verdict) else mark


def _why(verdict: Verdict) -> str:
    return verdict.claim.why if verdict.outcome == FAILS else ""
