"""Every number of the stored reference cases, computed by an independent slow implementation."""

from __future__ import annotations

import re

import numpy as np
import pytest

from rldp import ChiSquareSet, Table, compare
from rldp.uncertainty.geometry.paper_quantities import l1_distances
from tests.support import brute
from tests.support import strategies as some
from tests.support.files import REFERENCE

CLOSED_FORMS = ("grr", "srr", "ir", "grr-cr", "ue-cr")

CASES = {f"{case['id']} {case['tag']}": case for case in REFERENCE["cases"]}
SMALL = {name: case for name, case in CASES.items() if case["a1"] * case["a2"] <= 6}
ROWS = {f"draw {row['draw']} epsilon {row['eps']}": row for row in REFERENCE["curves"]["rows"]}

every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
small_case = pytest.mark.parametrize("case", SMALL.values(), ids=SMALL)


def close(values, reference):
    return np.array(values) == pytest.approx(
        np.array(reference, dtype=float), rel=1e-9, abs=1e-14
    )  # dtype: infinities are stored as text


def uncertainty(case) -> ChiSquareSet:
    return ChiSquareSet(Table(case["counts"]), case["alpha"])


@every_case
def test_numbers_of_the_set(case):
    F = uncertainty(case)
    assert F.table.n == case["n"]
    assert F.table.p_su.shape == (case["a1"], case["a2"])
    assert close(F.table.entropy, case["H"])
    assert close(F.radius, case["B"])
    assert close(F.conditional_radii, case["Bs"])
    assert close(F.l1_radii, case["ds"])
    assert close(F.exact_l1_radii, case["ds_exact"])
    assert close(F.l1_diameter, case["d"])
    assert close(F.conditional_bounds[0], case["pmin"])
    assert close(F.conditional_bounds[1], case["pmax"])
    assert close(l1_distances(F.table.p_u_given_s).max(), case["max_l1_condhat"])


def pinned(text: str, epsilon: float) -> tuple[str, dict[str, float]]:
    """The protocol and its parameters from a text such as "UECR eps2=0.5eps kappa=0.9 ..."."""
    protocol = {"IR": "ir", "GRRCR": "grr-cr", "UECR": "ue-cr"}[text.split()[0]]
    parameters = {"epsilon_2": float(re.search(r"eps2=([\d.]+)eps", text)[1]) * epsilon}
    if kappa := re.search(r"kappa=([\d.]+)", text):
        parameters["kappa"] = float(kappa[1])
    return protocol, parameters


@pytest.mark.slow
@every_case
def test_utility_at_given_parameters(case):
    F, epsilon = uncertainty(case), case["eps"]
    assert len(case["fixed_params"]) == 11
    for text, utility in case["fixed_params"].items():
        protocol, parameters = pinned(text, epsilon)
        p = some.ideal(F, epsilon, protocol, bounds="paper", parameters=parameters)
        assert close(p.utility, utility), text
        assert parameters.items() <= p.parameters.items()


@pytest.mark.slow
@every_case
def test_optimal_utility(case):
    F = uncertainty(case)
    for record in compare(F, case["eps"], protocols=CLOSED_FORMS, bounds="paper"):
        reference = case["protocols"][record["protocol"]]["util"]
        assert record["utility"] == pytest.approx(reference, rel=0, abs=1e-7), record["protocol"]


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_optimal_utility_along_the_curves(row):
    F = ChiSquareSet(Table(row["counts"]))
    for record in compare(F, row["eps"], protocols=CLOSED_FORMS, bounds="paper"):
        reference = row["utility"][record["protocol"]]
        assert record["utility"] == pytest.approx(reference, rel=0, abs=1e-7), record["protocol"]
        assert record["normalised"] == pytest.approx(reference / row["H"], rel=0, abs=1e-7)


def reference_matrix(F, case, name):
    """The stored matrix, or our own channel at the stored parameters."""
    reference = case["protocols"][name]
    if "Q" in reference:
        return np.array(reference["Q"]).T.reshape(case["a1"], case["a2"], -1)
    names = {"eps2": "epsilon_2", "kappa": "kappa"}
    parameters = {names[key]: reference[key] for key in names if key in reference}
    return some.ideal(F, case["eps"], name, bounds="paper", parameters=parameters).matrix


@pytest.mark.slow
@small_case
def test_audits(case):
    """All four audits: joint F, F', plain LDP, all distributions."""
    F = uncertainty(case)
    for name, reference in case["protocols"].items():
        if "Q" not in reference and name not in CLOSED_FORMS:
            continue
        Q = reference_matrix(F, case, name)
        A, p_u = brute.radii_of(F), F.table.p_u_given_s
        audits = {
            "audit_F": brute.audit_joint(Q, F.table, F.radius),
            "audit_Fprime": brute.audit_separate(Q, p_u, A),
            "audit_LDP": brute.audit_ldp(Q),
            "audit_maxF": brute.audit_all(Q),
        }
        for audit, epsilon in audits.items():
            if reference.get(audit) is not None:
                assert epsilon == pytest.approx(float(reference[audit]), rel=0, abs=1e-7), (
                    name,
                    audit,
                )


@pytest.mark.slow
@small_case
def test_our_own_optima_spend_no_more_than_epsilon(case):
    F = uncertainty(case)
    for name in CLOSED_FORMS:
        p = some.ideal(F, case["eps"], name, bounds="paper")
        assert brute.audit_of(p) <= case["eps"] + 1e-9, name


@pytest.mark.slow
def test_means_over_all_draws():
    """Thirty tables of a stated generator: the stored rows are among them, and the means agree."""
    stored = {row["draw"]: row["counts"] for row in ROWS.values()}
    means = REFERENCE["curves"]["mean_normalised_utility_30_draws"]
    epsilons = [float(epsilon) for epsilon in means["grr"]]
    kept = []
    for draw in range(30):
        rng = np.random.default_rng(20240 + draw)
        counts = rng.multinomial(1000, rng.dirichlet(np.full(9, 0.5))).reshape(3, 3)
        assert counts.tolist() == stored.get(draw, counts.tolist())
        F = ChiSquareSet(Table(counts))
        records = compare(F, epsilons, protocols=CLOSED_FORMS, bounds="paper")
        kept.append([record["normalised"] for record in records])
    ours = np.mean(kept, axis=0).reshape(len(CLOSED_FORMS), -1)
    reference = np.array([list(means[name].values()) for name in CLOSED_FORMS])
    assert ours == pytest.approx(reference, rel=0, abs=1e-7)


def test_the_stored_cases_are_all_there():
    assert (len(CASES), len(SMALL), len(ROWS)) == (43, 19, 90)
    assert any("inf" in case["Bs"] for case in CASES.values())
