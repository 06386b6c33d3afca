"""Functions and products that round alike on every processor, and that designs use no others."""

from __future__ import annotations

import ast
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rldp.arithmetic import (
    PositiveSystem,
    cube_root,
    exp,
    expm1,
    log,
    log1p,
    matmul,
    power,
)
from tests.test_standards import SOURCE

POSITIVE = st.floats(1e-300, 1e300)
SMALL = st.floats(-700, 700)


@given(POSITIVE, SMALL, st.floats(-5, 5))
def test_functions_are_those_of_the_c_library(x, y, exponent):
    assert log(x) == math.log(x)
    assert exp(y) == math.exp(y)
    assert log1p(x) == pytest.approx(math.log1p(x), rel=5e-16)
    assert expm1(y) == pytest.approx(math.expm1(y), rel=5e-16)
    assert cube_root(x) == pytest.approx(x ** (1 / 3), rel=1e-12)
    if abs(exponent * math.log(x)) < 700:
        assert power(x, exponent) == x**exponent


def test_functions_at_their_ends():
    assert log(0.0) == -np.inf
    assert exp(-np.inf) == 0.0
    assert exp(np.inf) == np.inf
    assert log(np.ones((2, 3))).shape == (2, 3)


SHAPES = [
    ((4,), (4,)),
    ((3, 4), (4,)),
    ((4,), (4, 5)),
    ((3, 4), (4, 5)),
    ((2, 3, 4), (2, 4, 5)),
    ((2, 3, 4), (4, 5)),
    ((7, 2, 3, 4), (4,)),
]


@pytest.mark.parametrize(("first", "second"), SHAPES)
def test_a_product_is_that_of_numpy(first, second):
    rng = np.random.default_rng(0)
    a, b = rng.random(first), rng.random(second)
    assert np.shape(matmul(a, b)) == np.shape(a @ b)
    assert matmul(a, b) == pytest.approx(a @ b, rel=1e-14)


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 31, 33, 64, 65, 150])
def test_a_system_is_solved(n):
    rng = np.random.default_rng(n)
    roots, b = rng.normal(size=(n, 2 * n)), rng.random((n, 4))
    size = 10.0 ** rng.integers(-6, 7, (n, 1))  # which must not matter
    x = np.linalg.solve(roots @ roots.T, b)
    system = PositiveSystem(roots @ roots.T * size * size.T)
    assert system.solved(b * size) * size == pytest.approx(x, rel=1e-9, abs=1e-9)
    assert system.solved((b * size)[:, 0]) * size[:, 0] == pytest.approx(x[:, 0], abs=1e-9)
    assert (system.whitened(b * size) ** 2).sum(axis=0) == pytest.approx((b * x).sum(axis=0))
    assert system.pivots.shape == (n,)
    assert (system.pivots > 0).all()


@pytest.mark.parametrize(("n", "rank"), [(5, 2), (12, 7), (70, 40)])
def test_rows_that_depend_on_others_are_left_out(n, rank):
    rng = np.random.default_rng(n)
    roots = np.concatenate([np.eye(rank), rng.integers(-2, 3, (n - rank, rank))])
    A = roots @ roots.T
    system = PositiveSystem(A)
    assert (system.pivots > 0).sum() == rank
    x = system.solved(A @ np.ones(n))
    assert (x[system.pivots == 0] == 0).all()
    assert A @ x == pytest.approx(A @ np.ones(n), abs=1e-9)


def test_a_row_of_zeros_is_left_out():
    system = PositiveSystem(np.diag([2.0, 0.0, 4.0]))
    assert system.solved(np.array([2.0, 0.0, 2.0])) == pytest.approx([1.0, 0.0, 0.5])


# What a protocol depends on; the checkers use integers, and estimates may differ in a last bit.
DESIGNED_WITH = (
    "channel",
    "designing",
    "information",
    "leakage",
    "levels",
    "uncertainty",
    "utility",
)
FUNCTIONS = {"cbrt", "cos", "exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "logaddexp2",
             "power", "sin", "sinh", "tan", "tanh"}  # fmt: skip
PRODUCTS = {"convolve", "correlate", "dot", "inner", "matmul", "tensordot", "vdot"}
SORTED = {"argsort", "argpartition"}  # which of equal entries comes first
BOUNDS = "designing/bounds/"  # they prove what no protocol exceeds, which no search depends on
SINGULAR = {  # what has no answer from `PositiveSystem`, and decides nothing by its last bits
    "designing/polyopt/cone.py",  # a rank
    "designing/polyopt/solve.py",  # whether a protocol is optimal
    "utility/goal.py",  # matrices that are nearly singular
}


def processor_dependent(tree: ast.Module, name: str) -> list[str]:
    """What NumPy and SciPy compute with the instructions of one kind of processor."""
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.BinOp(op=ast.MatMult()) | ast.AugAssign(op=ast.MatMult()):
                is_sparse = "of_v" in ast.unparse(node)
                found += [] if is_sparse or name in SINGULAR else [f"{name}:{node.lineno} @"]
            case ast.Attribute(value=ast.Name("np"), attr=a) if a in FUNCTIONS | PRODUCTS:
                found.append(f"{name}:{node.lineno} np.{a}")
            case ast.Call(func=ast.Attribute(attr=a), keywords=words) if a in SORTED:
                is_stable = any(ast.unparse(word) == "kind='stable'" for word in words)
                found += [] if is_stable else [f"{name}:{node.lineno} {a}"]
            case ast.Attribute(value=ast.Attribute(attr="linalg"), attr=a) if a != "norm":
                found += [] if name in SINGULAR else [f"{name}:{node.lineno} linalg.{a}"]
            case ast.ImportFrom(module="scipy.linalg" | "scipy.optimize", names=names):
                rest = {alias.name for alias in names} - {"brentq", "linprog"}
                found += [f"{name}:{node.lineno} {a}" for a in rest]
            case ast.keyword(arg="optimize"):
                found.append(f"{name}:{node.lineno} optimize")
    return found


def test_designs_use_nothing_else():
    found = []
    for part in DESIGNED_WITH:
        for path in sorted([*SOURCE.glob(f"{part}.py"), *(SOURCE / part).rglob("*.py")]):
            name = path.relative_to(SOURCE).as_posix()
            if not name.startswith(BOUNDS):
                found += processor_dependent(ast.parse(path.read_text()), name)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "code",
    ["a @ b", "np.log(x)", "x.argsort()", "np.linalg.inv(A)", "from scipy.linalg import lstsq",
     "np.einsum('i,i', a, b, optimize=True)", "np.argsort(x, axis=1)"],
)  # fmt: skip
def test_what_depends_on_the_processor_is_found(code):
    assert processor_dependent(ast.parse(code), "some.py")
