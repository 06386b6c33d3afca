"""Both checkers have a budget of work, counted alike on every machine and far from honest files."""

from __future__ import annotations

import contextlib
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

import rldp
from rldp.intervals import check_with_intervals
from rldp.intervals import work as second
from rldp.proof import ProofError, check, work
from tests.support import forgeries
from tests.support.forgeries import Base

ROWS = [["0", "0"]]


def base(set_kind: str, n_u: int = 40, order=None) -> Base:
    """A table of 2 × n_u cells with twelve outputs."""
    rng = np.random.default_rng(1)
    table = rldp.Table(rng.integers(5, 500, (2, n_u)))
    rows = rng.random((2, n_u, 12)) + 0.5
    channel = rldp.DenseChannel(rows / rows.sum(axis=-1, keepdims=True))
    F = rldp.RenyiSet(table, order=order) if order else forgeries.SETS[set_kind](table, 0.05)
    return Base.of(channel, F)


def honest(some: Base) -> dict:
    epsilon = some.truth * (1 + 1e-6)
    return some.document(epsilon, some.honest(epsilon))


def spent(monkeypatch, module, checker, document) -> int:
    """How much work a document takes, accepted or refused."""
    found = []
    counted = module.spend

    def noted(n: int, *bits: int) -> None:
        before = module.left()
        counted(n, *bits)
        found.append(before - module.left())

    for place in ("numbers", "sets", "channels", "levels"):
        owner = getattr(__import__(f"rldp.proof.{place}", fromlist=["x"]), "spend", None)
        if module is work and owner is not None:
            monkeypatch.setattr(f"rldp.proof.{place}.spend", noted)
    for place in ("prices", "planes", "sets", "polytope", "total_variation", "channels"):
        if module is second:
            monkeypatch.setattr(f"rldp.intervals.{place}.spend", noted)
    with contextlib.suppress(ProofError):
        checker(document)
    return sum(found)


@pytest.mark.parametrize("set_kind", forgeries.SETS)
def test_honest_files_stay_far_below_the_budget(set_kind, monkeypatch):
    document = honest(base(set_kind))
    used = spent(monkeypatch, work, check, document)
    assert 0 < used < work.MOST_WORK / 200


@pytest.mark.parametrize("set_kind", forgeries.SETS)
def test_honest_files_stay_far_below_the_second_budget(set_kind, monkeypatch):
    pytest.importorskip("flint", reason="python-flint comes with rldp[intervals]")
    document = honest(base(set_kind))
    used = spent(monkeypatch, second, check_with_intervals, document)
    assert 0 < used < second.MOST_OPERATIONS / 200


@pytest.mark.parametrize("set_kind", ["chi-square", "kl", "total-variation", "polytope"])
def test_a_proof_that_takes_more_than_the_budget_is_refused(set_kind, monkeypatch):
    document = honest(base(set_kind))
    used = spent(monkeypatch, work, check, document)
    monkeypatch.undo()
    monkeypatch.setattr(work, "MOST_WORK", used // 2)
    with pytest.raises(ProofError, match="more work than is allowed"):
        check(document)
    monkeypatch.setattr(work, "MOST_WORK", 2 * used)
    check(document)


@pytest.mark.parametrize("set_kind", ["chi-square", "kl", "total-variation", "polytope"])
def test_a_second_proof_that_takes_more_than_its_budget_is_refused(set_kind, monkeypatch):
    pytest.importorskip("flint", reason="python-flint comes with rldp[intervals]")
    document = honest(base(set_kind))
    monkeypatch.setattr(second, "MOST_OPERATIONS", 1000)
    with pytest.raises(ProofError, match="more work than is allowed"):
        check_with_intervals(document)


@pytest.mark.parametrize(
    ("module", "least", "each", "most"),
    [
        (work, "LEAST_WORK", "WORK_PER_CHARACTER", "MOST_WORK"),
        (second, "LEAST_OPERATIONS", "PER_CHARACTER", "MOST_OPERATIONS"),
    ],
)
def test_the_budget_grows_with_the_file_up_to_a_limit(module, least, each, most):
    least, each, most = (getattr(module, name) for name in (least, each, most))
    for text, allowed in (("", least + 8 * each), ("x" * 1000, least + 1008 * each)):
        with module.budget({"a": text}):
            assert module.left() == allowed
    with module.budget({"a": "x" * (most // each)}):
        assert module.left() == most
    with module.budget({"a": {1, 2}}):  # no JSON: the checker says what is wrong with it
        assert module.left() == least


def test_high_orders_take_no_more_work_than_low_ones_many_times(monkeypatch):
    """Powers of degree 255 go by logarithms: as roots they take a hundred times as much."""
    used = []
    for order in (Fraction(3, 2), Fraction(255, 16)):
        document = honest(base("renyi", n_u=4, order=order))
        used.append(spent(monkeypatch, work, check, document))
        monkeypatch.undo()
    assert used[1] < 40 * used[0]


def test_a_pair_over_total_variation_takes_work_in_proportion_to_its_cells(monkeypatch):
    used = []
    for n_u in (20, 160):
        document = honest(base("total-variation", n_u=n_u))
        used.append(spent(monkeypatch, work, check, document))
        monkeypatch.undo()
    assert used[1] < 12 * used[0]


def test_long_numbers_of_high_orders_count_for_what_they_cost(monkeypatch):
    """Roots of degree 31 of numbers with 160 digits."""
    some = base("renyi", n_u=4, order=Fraction(31, 15))
    document = honest(some)
    used = spent(monkeypatch, work, check, document)
    table = document["certificate"]["multipliers"]
    for name, sign in (("upper", ""), ("lower", "-")):
        table[name] = [[sign + "9" * 160 for _ in row] for row in table[name]]
    monkeypatch.undo()
    assert spent(monkeypatch, work, check, document) > 3 * used
    monkeypatch.undo()
    monkeypatch.setattr(work, "MOST_WORK", 3 * used)
    with pytest.raises(ProofError, match="more work than is allowed"):
        check(document)


def test_a_number_of_a_certificate_has_160_digits_at_most():
    document = honest(base("chi-square", n_u=2))
    upper = document["certificate"]["multipliers"]["upper"]
    upper[0][0] = "9" * 160
    check(document)
    upper[0][0] = "9" * 161
    with pytest.raises(ProofError, match=r"decimal digits at certificate\.multipliers"):
        check(document)


@pytest.mark.parametrize("name", ["quantile", "radius"])
def test_constants_have_160_digits_at_most(name):
    kind = "chi-square" if name == "quantile" else "total-variation"
    document = honest(base(kind, n_u=2))
    document["certificate"][name] = "9" * 161
    with pytest.raises(ProofError, match="160 decimal digits"):
        check(document)
    with pytest.raises(ProofError, match="decimal digits"):
        check_with_intervals(document)


def peak_of(checker, document) -> int:
    tracemalloc.start()
    try:
        with pytest.raises(ProofError):
            checker(document)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("checker", [check, check_with_intervals])
def test_levels_of_too_many_pairs_are_not_made(checker):
    """One number stands for all pairs: 100 kB would become 3 GB."""
    n_s = 20_000
    channel = {"kind": "dense", "bits": 1, "Q": [[["1", "1"]]] * n_s}
    uncertainty = {"kind": "all", "counts": [[1]] * n_s}
    document = {"epsilon": 1.0, "uncertainty": uncertainty, "channel": channel}
    assert peak_of(checker, document) < 2**25


@pytest.mark.parametrize("checker", [check, check_with_intervals])
def test_corners_without_a_common_denominator_are_refused(checker):
    """Each cell with a prime of its own: as integers they would fill the memory."""
    n_u = 600
    primes = [10**390 + 2 * i + 1 for i in range(2 * n_u)]
    corner = [[f"1/{p}" for p in primes[:n_u]], [f"1/{p}" for p in primes[n_u:]]]
    uncertainty = {"kind": "polytope", "counts": [[1] * n_u] * 2, "distributions": [corner]}
    channel = {"kind": "dense", "bits": 1, "Q": [[["1", "1"]] * n_u] * 2}
    document = {"epsilon": 1.0, "uncertainty": uncertainty, "channel": channel}
    assert peak_of(checker, document | {"certificate": {}}) < 2**23


@pytest.mark.parametrize(("checker", "module"), [(check, work), (check_with_intervals, second)])
def test_what_others_do_with_the_lemmas_is_not_counted(checker, module):
    assert module.left() is None
    module.spend(10**30)
    checker(honest(base("all", n_u=2)))
    assert module.left() is None
