"""Claims over polytopes: both checkers prove the true ones and refuse the false ones."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import rldp
from rldp import PolytopeSet, Table
from rldp.intervals import check_with_intervals
from rldp.proof import ProofError, check

pytest.importorskip("flint")

TABLE = Table([[30, 10, 5], [10, 50, 20]])
CORNERS = [[[5, 5, 5], [1, 1, 1]], [[1, 2, 0], [8, 0, 3]]]
UNSEEN = Table([[30, 10], [10, 50], [0, 0]])


@pytest.mark.parametrize("name", ["ir", "grr-cr", "ue-cr", "srr", "polyopt"])
def test_designs_are_proved_twice(name):
    F = PolytopeSet(TABLE, CORNERS)
    p = rldp.design(F, 0.9, name, **({"bounds": "exact"} if name in ("ir", "ue-cr") else {}))
    assert rldp.audit(p).epsilon <= 0.9 + 1e-12
    document = p.document()
    check(document)
    check_with_intervals(document)
    for corner in document["uncertainty"]["distributions"]:
        assert all(isinstance(x, str) for row in corner for x in row)


def test_a_claim_over_a_larger_polytope_is_refused():
    """A corner that comes in later breaks what was tight between two others."""
    document = rldp.design(PolytopeSet(TABLE, CORNERS), 0.9, "ir", bounds="exact").document()
    check(document)
    worse = copy.deepcopy(document)
    worse["uncertainty"]["distributions"].append([["1", "0", "0"], ["0", "0", "0"]])
    for checker in (check, check_with_intervals):
        with pytest.raises(ProofError, match="proved"):
            checker(worse)


@pytest.mark.parametrize(
    "distributions",
    [
        [],
        "all",
        [[["1", "0", "0"]]],
        [[["1", "0", "0"], ["0", "0"]]],
        [[["1", "0", "1"], ["0", "0", "0"]]],
        [[["2", "-1", "0"], ["0", "0", "0"]]],
        [[[1, 0, 0], [0, 0, 0]]],
        [[["1/0", "0", "0"], ["0", "0", "0"]]],
        [[["nan", "0", "0"], ["0", "0", "0"]]],
        [[["0.5", "0.5", "0"], ["0", "0", "0"]]],
    ],
)
def test_malformed_corners_are_refused_by_both_checkers(distributions):
    document = rldp.design(PolytopeSet(TABLE, CORNERS), 0.9, "srr").document()
    document["uncertainty"]["distributions"] = distributions
    for checker in (check, check_with_intervals):
        with pytest.raises(ProofError):
            checker(document)


@pytest.mark.parametrize("checker", [check, check_with_intervals])
@pytest.mark.parametrize("last", [[0, 0], [1, 1]], ids=["no corner has it", "a corner has it"])
def test_an_s_value_without_records_is_proved_at_what_the_audit_finds(last, checker):
    F = PolytopeSet(UNSEEN, [[[1, 1], [1, 1], last]])
    for name in ("ir", "grr"):
        p = rldp.design(F, 0.8, name)
        assert rldp.audit(p).epsilon <= 0.8 + 1e-12
        checker(p.document())
        claim = p.document()
        claim["epsilon"] = 0.5
        with pytest.raises(ProofError):
            checker(claim)


def test_a_corner_that_loses_an_s_value_takes_its_proof_along():
    """What is proved with the help of a corner is not proved once nothing is known of R_s."""
    F = PolytopeSet(UNSEEN, [[[1, 1], [1, 1], [1, 1]]])
    document = rldp.design(F, 0.8, "ir", bounds="exact").document()
    document["uncertainty"]["distributions"] = [[["1/4", "1/4"], ["1/4", "1/4"], ["0", "0"]]]
    Q = rldp.design(F, 0.8, "ir", bounds="exact").matrix
    assert rldp.audit(Q, PolytopeSet(UNSEEN, [np.eye(3, 2)[::-1].tolist()])).epsilon > 0.8
    for checker in (check, check_with_intervals):
        with pytest.raises(ProofError):
            checker(document)
