"""The settings of PolyOpt's search: frozen, and none without use."""

from __future__ import annotations

import ast
import dataclasses
from pathlib import Path

import pytest

from rldp.designing import polyopt
from rldp.designing.polyopt.settings import SETTINGS

NAMES = [
    (group.name, setting.name)
    for group in dataclasses.fields(SETTINGS)
    for setting in dataclasses.fields(getattr(SETTINGS, group.name))
]


@pytest.mark.parametrize("group", sorted({group for group, _ in NAMES}))
def test_settings_are_frozen(group):
    settings = getattr(SETTINGS, group)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(settings, dataclasses.fields(settings)[0].name, 0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(SETTINGS, group, settings)


def test_every_setting_is_read_by_some_module():
    modules = [path for path in Path(polyopt.__path__[0]).glob("*.py") if path.stem != "settings"]
    read = {
        node.attr
        for path in modules
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
    }
    assert [name for _, name in NAMES if name not in read] == []
    assert "a_setting_that_nobody_reads" not in read
