"""The public surface: its names, its cost, and the calls that users rely on."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from importlib.metadata import version

import numpy as np
import pytest

import rldp
from rldp import errors
from tests.support.records import ENTRIES
from tools import public_surface


def test_the_public_names_are_sorted_and_there():
    assert rldp.__all__ == sorted(rldp.__all__)
    assert dir(rldp) == rldp.__all__
    for name in rldp.__all__:
        assert getattr(rldp, name) is not None


def test_the_public_surface_is_the_one_that_was_reviewed():
    reviewed = public_surface.SURFACE.read_text(encoding="utf-8")
    assert public_surface.surface() == reviewed, "If it is meant: python tools/public_surface.py"
    assert "estimate(self, reports=None, *, counts=None" in reviewed


def test_names_that_are_not_listed_stay_importable():
    for name in ("FileError", "Audit", "DenseChannel", "promise_prices", "sklearn"):
        assert name not in rldp.__all__
        assert getattr(rldp, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="frobnicate"):
        _ = rldp.frobnicate


def test_the_version_is_the_installed_one():
    assert rldp.__version__ == version("rldp")


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, rldp; print({'numpy', 'scipy', 'pyarrow'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


def test_errors_are_also_what_python_calls_them():
    for kind, plain in [
        (errors.DataError, ValueError),
        (errors.ParameterError, ValueError),
        (errors.FileError, OSError),
        (errors.TooLargeError, MemoryError),
        (errors.MissingExtraError, ImportError),
    ]:
        assert issubclass(kind, errors.RldpError)
        assert issubclass(kind, plain)


@pytest.mark.slow
@pytest.mark.usefixtures("little_work")
def test_the_first_example():
    table = rldp.datasets.adult(sensitive="race", useful="sex")
    F = rldp.ChiSquareSet(table, alpha=0.05)
    p = rldp.design(F, epsilon=1, effort="quick")
    assert p.name == "best"
    assert p.epsilon == 1.0
    assert [g.epsilon for g in p.guarantees] == [1.0, 1.0, 6.0]
    assert p.options["goal"] == "cells"
    assert p.error.is_estimable
    assert p.utility <= rldp.ceiling(F, 1.0, epsilon_given_u=1.0, epsilon_all=6.0) + 1e-9
    assert p.matrix.shape[:2] == (5, 2)
    np.testing.assert_allclose(p.matrix.sum(axis=2), 1)
    assert p.utility == pytest.approx(p.mutual_information(table.p_su), abs=1e-15)
    *others, best, ceiling = rldp.compare(F, [1], time_limit=0.1)
    assert (best["protocol"], ceiling["protocol"]) == ("best", "ceiling")
    assert best["epsilon_given_u"] <= 1.0 + 1e-9
    assert best["epsilon_all"] <= 6.0 + 1e-9
    assert {record["protocol"] for record in others} >= {"grr", "srr", "ir", "polyopt"}
    assert p.utility <= ceiling["utility"] == rldp.ceiling(F, epsilon=1)
    assert tuple(best) == ENTRIES
    assert "bits" in repr(p)


def test_a_protocol_cannot_be_changed():
    p = rldp.design(rldp.ChiSquareSet(rldp.Table([[3, 1], [1, 3]])), 1.0, "ir")
    with pytest.raises(AttributeError):
        p.epsilon = 9.0
    with pytest.raises(TypeError):
        p.parameters["epsilon_2"] = 9.0
    with pytest.raises(ValueError, match="read-only"):
        p.matrix[0, 0, 0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        p.channel.r_s[0, 0] = 1.0


def test_a_protocol_travels_to_other_processes():
    p = rldp.design(rldp.ChiSquareSet(rldp.Table([[3, 1], [1, 3]])), 1.0, "ue-cr")
    for q in (copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        assert q.document() == p.document()
        assert q.utility == p.utility
        with pytest.raises(TypeError):
            q.parameters["epsilon_2"] = 9.0
