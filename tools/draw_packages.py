"""Draw which package imports which, from the imports in the code: `python tools/draw_packages.py`.

An arrow A → B says that A imports B. Arrows that follow from others are left out, so the drawing is
the transitive reduction of the imports, in layers: everything is above what it imports.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from itertools import accumulate, pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
DRAWINGS = {"rldp": ROOT / "docs" / "packages.svg"}
Graph = Mapping[str, frozenset[str]]

_WIDTH, _GAP, _LINE, _BETWEEN = 178, 16, 14, 46  # of a box, between boxes, of text, between layers
_LETTERS = 29  # in a line of a box
_SWEEPS = 24  # of the search for an order with few crossings


@dataclass(frozen=True)
class Part:
    """A package or module directly below the one that is drawn, and what it says of itself."""

    name: str
    caption: str


def parts(package: str) -> list[Part]:
    """What stands directly below `package`, but for dunder modules."""
    folder = SOURCE.joinpath(*package.split("."))
    return [
        Part(path.stem, _caption(path / "__init__.py" if path.is_dir() else path))
        for path in sorted(folder.iterdir())
        if (path / "__init__.py").exists() or (path.suffix == ".py" and path.stem[:2] != "__")
    ]


def _caption(path: Path) -> str:
    first = (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n")[0]
    return first.removesuffix(".").replace("`", "")


def imports(package: str) -> dict[str, frozenset[str]]:
    """For each part of `package` the other parts that its files import."""
    names = {part.name for part in parts(package)}
    folder, prefix = SOURCE.joinpath(*package.split(".")), package + "."
    found: dict[str, set[str]] = {name: set() for name in sorted(names)}
    for path in folder.rglob("*.py"):
        part = path.relative_to(folder).with_suffix("").parts[0]
        if part in names:
            inside = {n.removeprefix(prefix) for n in _imported(path) if n.startswith(prefix)}
            found[part] |= {name.partition(".")[0] for name in inside} & names - {part}
    return {name: frozenset(others) for name, others in found.items()}


@cache
def _imported(path: Path) -> frozenset[str]:
    """All names that a file imports, in any form and at any place."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += (f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(names)


def reduced(graph: Graph) -> dict[str, frozenset[str]]:
    """The edges that do not follow from others."""
    below = {name: _reached(graph, name) for name in graph}
    return {
        name: frozenset(b for b in others if not any(b in below[c] for c in others))
        for name, others in graph.items()
    }


def _reached(graph: Graph, start: str) -> frozenset[str]:
    seen: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += graph[name]
    return frozenset(seen)


def heights(graph: Graph) -> dict[str, int]:
    """The layer of each part: one above the highest that it imports."""
    found: dict[str, int] = {}

    def height(name: str, above: frozenset[str] = frozenset()) -> int:
        if name in above:
            raise ValueError(f"Expected imports without a cycle, got one through {name}.")
        if name not in found:
            found[name] = 1 + max((height(b, above | {name}) for b in graph[name]), default=-1)
        return found[name]

    for name in graph:
        height(name)
    return found


@dataclass(frozen=True)
class Layout:
    """Layers from top to bottom, and each arrow as the points (layer, place) that it runs through.

    A point between two parts that lie more than a layer apart is a place of its own.
    """

    layers: list[list[str]]
    arrows: list[list[str]]


def layout(graph: Graph) -> Layout:
    """Layers with few crossings, by medians of neighbours, up and down in turn."""
    height = heights(graph)
    top = max(height.values(), default=0)
    layers: list[list[str]] = [[] for _ in range(top + 1)]
    for name in sorted(graph):
        layers[top - height[name]].append(name)
    arrows = []
    for a in sorted(graph):
        for b in sorted(graph[a]):
            between = [f"{a}>{b}>{h}" for h in range(height[a] - 1, height[b], -1)]
            for point in between:
                layers[top - int(point.rpartition(">")[2])].append(point)
            arrows.append([a, *between, b])
    edges = [edge for arrow in arrows for edge in pairwise(arrow)]
    best = layers
    for sweep in range(_SWEEPS):
        layers = _swept(layers, edges, is_down=sweep % 2 == 0)
        if _crossings(layers, edges) < _crossings(best, edges):
            best = layers
    return Layout(best, arrows)


def _swept(
    layers: list[list[str]], edges: Sequence[tuple[str, str]], *, is_down: bool
) -> list[list[str]]:
    neighbours: dict[str, list[str]] = {}
    for a, b in edges:
        neighbours.setdefault(b if is_down else a, []).append(a if is_down else b)
    done: list[list[str]] = []
    for layer in layers if is_down else layers[::-1]:
        place = {name: (i + 0.5) / len(done[-1]) for i, name in enumerate(done[-1])} if done else {}
        key = {
            name: sum(near) / len(near) if (near := _places(place, neighbours.get(name, []))) else i
            for i, name in enumerate(layer)
        }
        done.append(sorted(layer, key=lambda name: key[name]) if done else layer)
    return done if is_down else done[::-1]


def _places(place: Mapping[str, float], names: Iterable[str]) -> list[float]:
    return [place[name] for name in names if name in place]


def _crossings(layers: list[list[str]], edges: Sequence[tuple[str, str]]) -> int:
    place = {name: i for layer in layers for i, name in enumerate(layer)}
    row = {name: i for i, layer in enumerate(layers) for name in layer}
    return sum(
        row[a] == row[c] and (place[a] - place[c]) * (place[b] - place[d]) < 0
        for i, (a, b) in enumerate(edges)
        for c, d in edges[:i]
    )


@dataclass(frozen=True)
class _Box:
    x: float
    y: float
    width: float
    height: float


def svg(package: str) -> str:
    """The drawing as text."""
    captions = {part.name: textwrap.wrap(part.caption, _LETTERS) for part in parts(package)}
    plan = layout(reduced(imports(package)))
    boxes, width, height = _boxes(plan, captions)
    lines = [_curve([boxes[point] for point in arrow]) for arrow in plan.arrows]
    shapes = [_shape(name, captions[name], box) for name, box in boxes.items() if name in captions]
    return "\n".join([_head(package, width, height), *lines, *shapes, "</svg>", ""])


def _boxes(plan: Layout, captions: Mapping[str, list[str]]) -> tuple[dict[str, _Box], float, float]:
    width = {point: _WIDTH if point in captions else 0.0 for row in plan.layers for point in row}
    middle = _middles(plan, width)
    left = min(middle[point] - width[point] / 2 for point in middle) - _GAP
    right = max(middle[point] + width[point] / 2 for point in middle) + _GAP
    y, boxes = float(_GAP), {}
    for layer in plan.layers:
        tall = 2 * _LINE + _LINE * max(len(captions.get(point, ())) for point in layer)
        for point in layer:
            x = middle[point] - width[point] / 2 - left
            boxes[point] = _Box(x, y, width[point], tall)
        y += tall + _BETWEEN
    return boxes, right - left, y - _BETWEEN + _GAP


def _middles(plan: Layout, width: Mapping[str, float]) -> dict[str, float]:
    """Where each point stands in its layer: near its neighbours, in the order of the layout.

    Points on a long arrow count more than boxes, so that long arrows run straight.
    """
    near: dict[str, list[str]] = {}
    for a, b in (edge for arrow in plan.arrows for edge in pairwise(arrow)):
        near.setdefault(a, []).append(b)
        near.setdefault(b, []).append(a)
    x: dict[str, float] = {
        point: i * _WIDTH for layer in plan.layers for i, point in enumerate(layer)
    }
    for sweep in range(_SWEEPS):
        for layer in plan.layers if sweep % 2 else plan.layers[::-1]:
            wanted = [
                sum(x[b] for b in near[a]) / len(near[a]) if near.get(a) else x[a] for a in layer
            ]
            apart = [(width[a] + width[b]) / 2 + _GAP for a, b in pairwise(layer)]
            weights = [1.0 if width[a] else 6.0 for a in layer]
            x.update(zip(layer, _spaced(wanted, apart, weights), strict=True))
    return x


def _spaced(
    wanted: Sequence[float], apart: Sequence[float], weights: Sequence[float]
) -> list[float]:
    """The nearest places to those wanted that keep their distances: isotonic regression."""
    offsets = [0.0, *accumulate(apart)]
    groups: list[tuple[float, float, int]] = []  # mean, weight, size
    for place, offset, weight in zip(wanted, offsets, weights, strict=True):
        group = (place - offset, weight, 1)
        while groups and groups[-1][0] > group[0]:
            mean, heavy, size = groups.pop()
            total = heavy + group[1]
            group = ((mean * heavy + group[0] * group[1]) / total, total, size + group[2])
        groups.append(group)
    means = [mean for mean, _, size in groups for _ in range(size)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


def _curve(boxes: list[_Box]) -> str:
    """From the lower edge of the first box, through the middle ones, to the top of the last."""
    first, *middle, last = boxes
    x, y = first.x + first.width / 2, first.y + first.height
    path = [f"M{x:.0f} {y:.0f}"]
    for box in [*middle, last]:
        nx, bend = box.x + box.width / 2, (box.y - y) / 2
        path.append(f"C{x:.0f} {y + bend:.0f} {nx:.0f} {box.y - bend:.0f} {nx:.0f} {box.y:.0f}")
        x, y = nx, box.y
        if box is not last:
            y += box.height
            path.append(f"V{y:.0f}")
    return f'<path class="arrow" d="{" ".join(path)}"/>'


def _shape(name: str, caption: Sequence[str], box: _Box) -> str:
    middle = box.x + box.width / 2
    rows = [
        f'<tspan x="{middle:.0f}" dy="{_LINE}">{escape(line, quote=False)}</tspan>'
        for line in caption
    ]
    return (
        f'<rect x="{box.x:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" height="{box.height:.0f}"/>'
        f'<text x="{middle:.0f}" y="{box.y + 18:.0f}"><tspan class="name">{name}</tspan>'
        f"{''.join(rows)}</text>"
    )


def _head(package: str, width: float, height: float) -> str:
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" \
viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="Packages of {package}">
<style>
  rect {{ fill: #eef5fb; stroke: #0b5a8f; rx: 6px; }}
  text {{ font: 11px sans-serif; fill: #222; text-anchor: middle; }}
  .name {{ font: bold 13px monospace; fill: #0b5a8f; }}
  .arrow {{ fill: none; stroke: #8a9aa8; stroke-width: 1.3; marker-end: url(#tip); }}
</style>
<defs>
<marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<path d="M0 0 L8 4 L0 8 z" fill="#8a9aa8"/></marker></defs>
<rect width="100%" height="100%" style="fill: white; stroke: none"/>"""


def main() -> None:
    """Write every drawing."""
    for package, path in DRAWINGS.items():
        path.write_text(svg(package))


if __name__ == "__main__":
    main()
