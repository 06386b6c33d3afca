"""The drawing of the packages is that of the code, and shows every import and no other."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tools import draw_packages


@pytest.mark.slow
@pytest.mark.parametrize("package", draw_packages.DRAWINGS)
def test_the_drawing_is_up_to_date(package):
    committed = draw_packages.DRAWINGS[package].read_text()
    assert committed == draw_packages.svg(package), "Run: python tools/draw_packages.py"


def _reaches(graph, a, b):
    return b in graph[a] or any(_reaches(graph, c, b) for c in graph[a])


@pytest.mark.parametrize("package", [*draw_packages.DRAWINGS, "rldp.designing"])
def test_an_arrow_is_left_out_where_others_lead_there_and_nowhere_else(package):
    graph = draw_packages.imports(package)
    drawn = draw_packages.reduced(graph)
    for a in graph:
        for b in graph:
            assert _reaches(drawn, a, b) == _reaches(graph, a, b)
        for b in drawn[a]:
            without = drawn | {a: drawn[a] - {b}}
            assert not _reaches(without, a, b)


@pytest.mark.parametrize("package", draw_packages.DRAWINGS)
def test_arrows_point_down_and_keep_to_the_layers(package):
    plan = draw_packages.layout(draw_packages.reduced(draw_packages.imports(package)))
    row = {point: i for i, layer in enumerate(plan.layers) for point in layer}
    for arrow in plan.arrows:
        assert all(row[b] == row[a] + 1 for a, b in pairwise(arrow))


def test_imports_are_found_in_every_form(tmp_path, monkeypatch):
    files = {
        "__init__.py": "",
        "a/__init__.py": "'''Above.'''",
        "a/inner.py": "import rldp.b.deep\ndef f():\n    from rldp import c\n",
        "b/__init__.py": "",
        "b/deep.py": "from rldp.c import x\nimport json",
        "c.py": "'''Below.\n\nMore.'''\nx = 1",
    }
    for name, text in files.items():
        path = tmp_path / "rldp" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(draw_packages, "SOURCE", tmp_path)
    graph = draw_packages.imports("rldp")
    assert graph == {"a": {"b", "c"}, "b": {"c"}, "c": set()}
    assert draw_packages.reduced(graph) == {"a": {"b"}, "b": {"c"}, "c": set()}
    assert draw_packages.heights(graph) == {"a": 2, "b": 1, "c": 0}
    assert [part.caption for part in draw_packages.parts("rldp")] == ["Above", "", "Below"]


def test_a_cycle_is_refused():
    with pytest.raises(ValueError, match="without a cycle"):
        draw_packages.heights({"a": frozenset("b"), "b": frozenset("a")})


def test_boxes_keep_their_distance_and_move_no_further_than_needed():
    spaced = draw_packages._spaced([5.0, 0.0, 100.0], [10.0, 10.0], [1.0, 1.0, 1.0])
    assert spaced == [-2.5, 7.5, 100.0]
