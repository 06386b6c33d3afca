"""A report that stands alone: one HTML file with the choice, the curves, the proof and the risk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from rldp import __version__
from rldp.protocol import verify
from rldp.protocols.catalogue import Record
from rldp.studio import code
from rldp.studio.answers import bits
from rldp.studio.choices import Choice
from rldp.studio.session import Session
from rldp.studio.steps import protocol, risk
from rldp.studio.steps.tradeoff import SEARCHED
from rldp.wording import TITLES, columns_title, set_in_words

_COLOURS = {
    "grr": "#767676",
    "ue": "#b06f00",
    "srr": "#c24d00",
    "ir": "#2b83ba",
    "grr-cr": "#0065a3",
    "ue-cr": "#007a59",
    "polyopt": "#a34f80",
    "best": "#000000",
    "ceiling": "#000000",
}
_STYLE = """
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; margin: 1rem 0 } th, td { padding: .2rem .7rem;
text-align: right; border-bottom: 1px solid #8886 }
th:first-child, td:first-child { text-align: left }
pre { overflow: auto; padding: 1rem; background: #8882; border-radius: 6px }
svg { max-width: 100%; background: #fff } .wide { overflow-x: auto }
"""


def report(session: Session, choice: Choice) -> str:
    """The whole report of a finished design."""
    p = session.design(choice)
    setting, file = session.setting(choice), session.file(choice.data).name
    proof = verify(p)
    found = risk.described(p)
    records = [*setting.curves, *list(setting.searched.values())]
    at = [*setting.at(choice.epsilon)]
    at += [r for (_, e), r in list(setting.searched.items()) if e == choice.epsilon]
    channel = protocol.channel(p)
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    parts = [
        f"<h1>{escape(columns_title(p.table))}: {escape(p.name)} at ε = {p.epsilon:g}</h1>",
        f"<p>Made by rldp {__version__} on {now} from {escape(file)}.</p>",
        "<h2>What is promised</h2>",
        f"<p>No answer changes anyone's odds on {escape(found['sensitive'])} by more than "
        f"e<sup>{p.epsilon:g}</sup>; {escape(set_in_words(p.uncertainty))}.</p>",
        f"<p>Proved: {proof.conditions:,} exact inequalities over {escape(proof.uncertainty)}, "
        f"least room {proof.slack:.2g}. Fingerprint <code>{p.fingerprint}</code>.</p>",
        f"<p>It keeps {bits(p.utility):.4f} bits, {100 * p.normalised_utility:.1f} % of "
        f"H(X) = {bits(p.table.entropy):.4f} bits.</p>",
        "<h2>Trade-off</h2>",
        _drawn(records, choice.epsilon),
        _rows(
            ["protocol", f"bits at ε = {choice.epsilon:g}", "% of H(X)", "what it is"],
            (
                (
                    r["protocol"],
                    f"{bits(r['utility']):.4f}",
                    f"{100 * r['normalised']:.1f} %",
                    TITLES.get(r["protocol"], ""),
                )
                for r in at
            ),
        ),
        "<h2>Risk</h2>",
        _rows(
            ["how far one report moves the odds", "ε"],
            ((level["over"], _epsilon(level["epsilon"])) for level in found["levels"]),
        ),
        f"<p>{escape(found['worst_case'])}</p>",
        _rows(
            [found["sensitive"], "share of people", "at most after any report"],
            (
                (v["label"], f"{100 * v['prior']:.1f} %", f"{100 * v['posterior']:.1f} %")
                for v in found["values"]
            ),
        ),
        "<h3>Not covered</h3><ul>",
        *(f"<li>{escape(sentence)}</li>" for sentence in found["not_covered"]),
        "</ul>",
        "<h2>Channel</h2>",
        "<p>Too large to print; the protocol file has it.</p>"
        if channel is None
        else _rows(
            ["record", *channel["columns"]],
            (
                (name, *(f"{value:.4f}" for value in row))
                for name, row in zip(channel["rows"], channel["values"], strict=True)
            ),
        ),
        "<h2>The same in Python and on the command line</h2>",
        f"<pre>{escape(code.script(choice, file))}</pre>",
        f"<pre>{escape(code.commands(choice, file))}</pre>",
    ]
    return _page(f"rldp: {p.name} at ε = {p.epsilon:g}", parts)


def _page(title: str, parts: Sequence[str]) -> str:
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><main>"
        + "\n".join(parts)
        + "</main></body></html>\n"
    )


def _rows(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="wide">{table}</div>'


def _drawn(records: Sequence[Record], mark: float) -> str:
    """The curves as SVG: ε to the right, the share of H(X) upwards."""
    most = max(record["epsilon"] for record in records)
    top = max(0.01, *(record["normalised"] for record in records))

    def at(epsilon: float, share: float) -> str:
        return f"{60 + 620 * epsilon / most:.1f},{320 - 290 * share / top:.1f}"

    lines = []
    names = list(dict.fromkeys(record["protocol"] for record in records))
    for place, name in enumerate(names):
        mine = [record for record in records if record["protocol"] == name]
        points = sorted((record["epsilon"], record["normalised"]) for record in mine)
        dash = ' stroke-dasharray="6 4"' if name in SEARCHED else ""
        lines.append(
            f'<polyline fill="none" stroke="{_COLOURS.get(name, "#000")}" stroke-width="2"{dash} '
            f'points="{" ".join(at(*point) for point in points)}"/>'
            f'<text x="700" y="{40 + 22 * place}" fill="{_COLOURS.get(name, "#000")}">{name}</text>'
        )
    x = at(mark, 0).split(",")[0] if mark <= most else "680"
    return (
        '<svg viewBox="0 0 800 370" role="img" aria-label="Information kept over ε" '
        'font-family="sans-serif" font-size="14">'
        '<path d="M60 30V320H680" fill="none" stroke="#555"/>'
        f'<path d="M{x} 30V320" stroke="#555" stroke-dasharray="2 3"/>'
        f'<text x="60" y="22">{100 * top:.0f} % of H(X)</text>'
        f'<text x="60" y="345">0</text><text x="600" y="345">ε = {most:g} nats</text>'
        + "".join(lines)
        + "</svg>"
    )


def _epsilon(value: float) -> str:
    return "∞" if value == float("inf") else f"{value:.4f}"
