"""A report that stands alone: one HTML file with the choice, the curves, the proof and the risk."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from rldp import __version__
from rldp.decimals import rounded_up, shortest
from rldp.designing.catalogue import CEILING
from rldp.presentation.texts import TITLES, columns_title
from rldp.protocol.files import verify
from rldp.protocol.release_protocol import ReleaseProtocol
from rldp.studio import code
from rldp.studio.answers import bits
from rldp.studio.choices import Choice
from rldp.studio.outlook import GOAL_TITLES, outlook
from rldp.studio.session import Session, Setting
from rldp.studio.steps import protocol, risk
from rldp.studio.steps.tradeoff import SEARCHED, figures, figures_at

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
    p, file = session.design(choice), session.file(choice.data).name
    found = risk.described(p)
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    parts = [
        f"<h1>{escape(columns_title(p.table))}: {escape(p.name)} at ε = {shortest(p.epsilon)}</h1>",
        f"<p>Made by rldp {__version__} on {now} from {escape(file)}. "
        "It shows frequencies of that sample: share it only where the sample may be known.</p>",
        *_promises(p, found),
        *_estimates(p, choice),
        *_tradeoff(session.setting(choice), choice.epsilon),
        *_risk(found),
        *_channel(protocol.channel(p)),
        "<h2>Go on in Python and on the command line</h2>",
        f"<p>Both begin from {escape(code.protocol_name(choice))}, the protocol that the studio "
        f"saves, and {escape(code.records_name(choice, file))}, in the same folder.</p>",
        f"<pre>{escape(code.script(choice, file, p.fingerprint))}</pre>",
        f"<pre>{escape(code.commands(choice, file))}</pre>",
    ]
    return _page(f"rldp: {p.name} at ε = {shortest(p.epsilon)}", parts)


def _promises(p: ReleaseProtocol, found: dict[str, Any]) -> Iterable[str]:
    proof = verify(p)
    yield "<h2>What is promised</h2>"
    promises = ((promise["against"], promise["text"]) for promise in found["promises"])
    yield _rows(["against whom", "what holds"], promises)
    yield from _list(found["also_covered"], "The same ε also covers")
    yield from _list(found["not_covered"], "Not promised")
    yield (
        f"<p>Proved: {proof.conditions:,} exact inequalities over {escape(proof.uncertainty)}, "
        f"least room {proof.slack:.2g}. Fingerprint <code>{p.fingerprint}</code>.</p>"
    )
    yield (
        f"<p>It keeps {bits(p.utility):.4f} bits, {100 * p.normalised_utility:.1f} % of "
        f"H(X) = {bits(p.table.entropy):.4f} bits.</p>"
    )


def _estimates(p: ReleaseProtocol, choice: Choice) -> Iterable[str]:
    """What the protocol is for, and what estimates will look like."""
    found = outlook(p.channel, p.uncertainty, choice.goal)
    yield "<h2>Estimates</h2>"
    if choice.has_goal:
        yield f"<p>Designed for {escape(GOAL_TITLES[choice.goal])}.</p>"
    if found is None:
        return
    cells = f"{found.identified} of {p.table.counts.size} cells can be estimated"
    needed = "" if found.needed is None else f"; {found.needed:,} reports make them ± 1 point wide"
    yield (
        f"<p>{cells}. From {p.table.n:,} reports, if the table is the truth: a mean error of "
        f"{_points(found.error)}, and 95 % intervals of {_points(found.margin_s)} or less for the "
        f"shares of S{needed}.</p>"
    )


def _points(error: float | str | None) -> str:
    """An error in percentage points."""
    if error is None or error != error:
        return "–"
    return "no estimate" if error in (math.inf, "inf") else f"± {100 * float(error):.2f} points"


def _tradeoff(setting: Setting, epsilon: float) -> Iterable[str]:
    points = figures(setting, epsilon)
    yield "<h2>Trade-off</h2>"
    yield _drawn(points, epsilon)
    if any(point["is_early"] for point in points):
        yield "<p>○ The search ended early: at least this much is kept.</p>"
    rows = (
        (
            r["protocol"],
            "" if r["protocol"] == CEILING else _points(r["error"]),
            "" if r["protocol"] == CEILING else _points(r["margin_s"]),
            f"{'≥ ' * r['is_early']}{r['bits']:.4f}",
            f"{'≥ ' * r['is_early']}{100 * r['share']:.1f} %",
            TITLES.get(r["protocol"], ""),
        )
        for r in figures_at(setting, epsilon)
    )
    yield (
        f"<p>At ε = {shortest(epsilon)}, the best for {escape(GOAL_TITLES[setting.goal])} first; "
        f"errors from {setting.F.table.n:,} reports.</p>"
    )
    yield _rows(["protocol", "mean error", "P(s), 95 %", "bits", "% of H(X)", "what it is"], rows)


def _risk(found: dict[str, Any]) -> Iterable[str]:
    yield "<h2>Risk</h2>"
    levels = ((level["over"], rounded_up(level["epsilon"])) for level in found["levels"])
    yield _rows(["how far one report moves the odds", "ε"], levels)
    yield f"<p>{escape(found['worst_case'])}</p>"
    yield "<p>Of 1,000 people, before → after a report, at the frequencies of the table:</p>"
    heads = ["who guesses", f"{found['sensitive']} guessed rightly", "> 95 %", "> 99 %", "odds"]
    yield _rows(heads, found["attackers"])
    yield from _list(found["sentences"], "The same in words")
    yield "<p>After any report, over F, for someone who knows nothing else about the person:</p>"
    values = (
        (v["label"], f"{100 * v['prior']:.1f} %", f"{100 * v['posterior']:.1f} %")
        for v in found["values"]
    )
    yield _rows([found["sensitive"], "share in the table", "at most after any report"], values)


def _channel(shown: dict[str, Any] | None) -> Iterable[str]:
    yield "<h2>Channel</h2>"
    if shown is None:
        yield "<p>Too large to print; the protocol file has it.</p>"
        return
    rows = zip(shown["rows"], shown["values"], strict=True)
    texts = ((name, *(f"{value:.4f}" for value in row)) for name, row in rows)
    yield _rows(["record", *shown["columns"]], texts)


def _list(sentences: Sequence[str], head: str) -> Iterable[str]:
    if sentences:
        yield f"<h3>{head}</h3><ul>"
        yield from (f"<li>{escape(sentence)}</li>" for sentence in sentences)
        yield "</ul>"


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


def _drawn(found: Sequence[dict[str, Any]], mark: float) -> str:
    """The curves as SVG: ε to the right, the share of H(X) upwards."""
    most = max(point["epsilon"] for point in found)
    top = max(0.01, *(point["share"] for point in found))

    def at(epsilon: float, share: float) -> str:
        return f"{60 + 620 * epsilon / most:.1f},{320 - 290 * share / top:.1f}"

    lines = []
    names = list(dict.fromkeys(point["protocol"] for point in found))
    for place, name in enumerate(names):
        mine = [point for point in found if point["protocol"] == name]
        points = sorted((point["epsilon"], point["share"]) for point in mine)
        early = [at(point["epsilon"], point["share"]) for point in mine if point["is_early"]]
        dash = ' stroke-dasharray="6 4"' if name in SEARCHED else ""
        lines.append(
            f'<polyline fill="none" stroke="{_COLOURS.get(name, "#000")}" stroke-width="2"{dash} '
            f'points="{" ".join(at(*point) for point in points)}"/>'
            f'<text x="700" y="{40 + 22 * place}" fill="{_COLOURS.get(name, "#000")}">{name}</text>'
            + "".join(_hollow(point, _COLOURS.get(name, "#000")) for point in early)
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


def _hollow(point: str, colour: str) -> str:
    x, y = point.split(",")
    return f'<circle cx="{x}" cy="{y}" r="4" fill="#fff" stroke="{colour}" stroke-width="2"/>'
