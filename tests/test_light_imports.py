"""What runs in the field starts quickly: heavy packages are imported only where they are needed."""

import os
import re
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import rldp

# none of them is loaded before something is designed, nor pyarrow and cryptography by an import
HEAVY = ("scipy", "highspy", "clarabel", "matplotlib", "pandas", "polars")
FOR_FILES = ("pyarrow", "narwhals", "cryptography", "typer", "rich")


def loaded(code: str, *arguments: str, among: tuple[str, ...] = HEAVY) -> set[str]:
    """Heavy packages that a new process has imported once it has run the code."""
    shown = f"{code}\nprint(*(name for name in {among} if name in sys.modules))"
    run = subprocess.run(
        [sys.executable, "-c", f"import sys\n{shown}", *arguments],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(rldp.__file__).parents[1])},
    )
    return set(run.stdout.split())


@pytest.mark.slow
@pytest.mark.parametrize(
    "module",
    [
        "rldp",
        "rldp.channel",
        "rldp.collect.opening",
        "rldp.proof",
        "rldp.protocol",
        "rldp.protocol.files",
        "rldp.release",
        "rldp.release.mixin",
        "rldp.release.release_file",
        "rldp.spark",
        "rldp.tables.read_table",
    ],
)
def test_the_field_imports_nothing_heavy(module):
    assert loaded(f"import {module}") == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    "module",
    ["rldp.channel", "rldp.protocol.files", "rldp.release.mixin", "rldp.release.several_reports"],
)
def test_a_client_loads_numpy_alone(module):
    assert loaded(f"import {module}", among=HEAVY + FOR_FILES) == set()
    assert loaded("import pyarrow", among=HEAVY + FOR_FILES) == {"pyarrow"}


@pytest.mark.slow
def test_a_public_file_releases_without_scipy(tmp_path):
    F = rldp.ChiSquareSet(rldp.Table([[30, 10], [10, 50]], ["a", "b"], ["x", "y"]))
    for name in ("grr", "ue-cr", "ir", "srr"):
        rldp.design(F, 1.0, name).public().save(tmp_path / f"{name}.json")
    (tmp_path / "records.csv").write_text("S,U\na,x\nb,y\n")
    code = (
        "import numpy, os, pickle, rldp\n"
        "os.chdir(sys.argv[1])\n"
        "for name in ('grr', 'ue-cr', 'ir', 'srr'):\n"
        "    p = pickle.loads(pickle.dumps(rldp.load(f'{name}.json')))\n"
        "    assert len(p.release([{'S': 'a', 'U': 'x'}])) == 1\n"
        "    p.release(numpy.array([[0, 1]]))\n"
        "    assert rldp.release_file(p, 'records.csv', f'{name}.csv') == 2\n"
    )
    assert loaded(code, str(tmp_path)) <= {"pandas"}  # Arrow imports it for texts of Python


ALONE = """
import importlib.abc

class NumPyAlone(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in DEPENDENCIES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NumPyAlone())
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["grr", "ir", "srr"])
def test_a_client_that_releases_codes_needs_numpy_alone(tmp_path, name):
    """Its reports have the law of the table, though no AES is installed."""
    F = rldp.ChiSquareSet(rldp.Table([[30, 10], [10, 50]], ["a", "b"], ["x", "y"]))
    p, n = rldp.design(F, 1.0, name), 20_000
    p.public().save(tmp_path / "p.json")
    plain = (line for line in requires("rldp") if "extra ==" not in line)
    others = {re.split(r"[<>=]", line)[0] for line in plain} - {"numpy"}
    assert {"scipy", "pyarrow", "cryptography", "typer"} <= others
    code = (
        f"DEPENDENCIES = {others}{ALONE}"
        "import numpy as np, rldp\n"
        f"print(*rldp.load(sys.argv[1]).release(np.array([[0, 1]] * {n})))"
    )
    run = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}", str(tmp_path / "p.json")],
        capture_output=True,
        text=True,
        check=True,
    )
    found = np.bincount(np.array(run.stdout.split(), dtype=int), minlength=p.channel.n_outputs)
    limit = stats.chi2.isf(1e-9, p.channel.n_outputs - 1)  # a false alarm in 10^9 runs

    def distance(row):
        return np.sum((found - n * row)[row > 0] ** 2 / (n * row[row > 0]))

    assert distance(p.matrix[0, 1]) < limit < distance(p.matrix[1, 0])


@pytest.mark.slow
def test_files_need_no_pandas(tmp_path):
    """Arrow imports it in many of its calls wherever it is installed."""
    F = rldp.ChiSquareSet(rldp.Table([[30, 10], [10, 50]], ["a", "b"], ["x", "y"]))
    rldp.design(F, 1.0, "srr").save(tmp_path / "p.json")
    (tmp_path / "records.csv").write_text("S,U,id\n" + "a,x,1\nb,y,2\n" * 20 + ",y,3\n")
    code = (
        "import os, rldp\n"
        "os.chdir(sys.argv[1])\n"
        "p, key, drop = rldp.load('p.json'), rldp.new_key(), {'missing': 'drop'}\n"
        "assert rldp.read_table('records.csv', 'S', 'U', missing='drop').n == 40\n"
        "rldp.release_file(p, 'records.csv', 'plain.csv', fingerprint=True, **drop)\n"
        "rldp.release_file(p, 'records.csv', 'shuffled.parquet', shuffle=True, **drop)\n"
        "rldp.release_file(p, 'records.csv', 'keyed.csv', record_id='id', key=key, **drop)\n"
        "for name in ('plain.csv', 'shuffled.parquet', 'keyed.csv'):\n"
        "    assert p.estimate(name).n == 40\n"
    )
    assert "pandas" not in loaded(code, str(tmp_path))


@pytest.mark.slow
def test_designing_does_import_it():
    code = "import rldp\nrldp.design(rldp.AllDistributions(rldp.Table([[1, 1], [1, 1]])), 1, 'grr')"
    assert "scipy" in loaded(code)  # so that the tests above can fail
