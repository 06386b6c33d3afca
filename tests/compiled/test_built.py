"""The loops are there wherever they can be built."""

from __future__ import annotations

import os
import shlex
import subprocess
import sysconfig

import pytest

from rldp.compiled import loops


def compiles(folder) -> bool:
    """Whether a compiler finds Python's headers."""
    source = folder / "empty.c"
    source.write_text("#include <Python.h>\n")
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC")
    if not compiler:
        pytest.skip("how to compile is known on Unix only")
    include = sysconfig.get_paths()["include"]
    command = [*shlex.split(compiler), "-I", include, "-c", str(source), "-o", f"{source}.o"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def test_where_there_is_a_compiler_the_loops_are_built(tmp_path):
    assert loops is not None or not compiles(tmp_path)
