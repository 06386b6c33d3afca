"""Designs over Rényi, Kullback-Leibler and total variation sets, and what proves them."""

from __future__ import annotations

import copy
import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import rldp
from rldp import FiniteKLSet, Guarantee, KLSet, RenyiSet, Table, TotalVariationSet
from rldp.cli import app
from rldp.designing import certify
from rldp.errors import ParameterError
from rldp.intervals import check_with_intervals
from rldp.proof import ProofError, check
from rldp.proof.numbers import ONE, log_above, log_below, power_below, power_of_e_below, root
from rldp.protocol import documents
from tests.support import strategies as some
from tests.support.promises import PAPER

flint = pytest.importorskip("flint")

TABLE = Table([[62, 14, 30], [276, 48, 90]])
SETS = {
    "renyi": lambda table: RenyiSet(table, order=Fraction(3, 2)),
    "renyi-3": lambda table: RenyiSet(table, order=3),
    "kl": KLSet,
    "kl-finite": FiniteKLSet,
    "total-variation": TotalVariationSet,
}
every_set = pytest.mark.parametrize("kind", SETS)


# --- numbers -------------------------------------------------------------------------------------


@given(st.integers(0, 2**600), st.integers(1, 40))
def test_roots_are_integer_parts(n, k):
    x = root(n, k)
    assert x**k <= n < (x + 1) ** k


@given(st.integers(1, 2**300))
def test_logarithms_and_powers_are_on_their_sides(x):
    with flint.ctx.workprec(600):
        exact = (flint.arb(x) / ONE).log() * ONE
        assert log_below(x) <= exact
        assert exact <= log_above(x)
        power = (flint.arb(x) / ONE).root(3) ** 2 * ONE
        assert power_below(x, 2, 3) <= power
        assert power <= power_below(x, 2, 3) + 1
        small = x % (50 * ONE) - 25 * ONE
        exponential = (flint.arb(small) / ONE).exp() * ONE
        assert power_of_e_below(small) <= exponential
        assert exponential <= power_of_e_below(small) * (1 + flint.arb(2) ** -120) + 2


# --- designs -------------------------------------------------------------------------------------


@pytest.mark.sampled(4)
@pytest.mark.slow
@every_set
@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        ("ir", "sharp"),
        ("ir", "exact"),
        ("ir", "paper"),
        ("grr-cr", "sharp"),
        ("grr-cr", "paper"),
        ("ue-cr", "exact"),
        ("ue-cr", "paper"),
        ("polyopt", "sharp"),
    ],
)
def test_designs_are_proved_twice_and_spend_no_more_than_their_epsilon(kind, name, bounds):
    rng = np.random.default_rng(7)
    for counts in ([[20, 5], [0, 0]], [[40, 0, 7], [9, 30, 4]], rng.integers(20, 200, (3, 2))):
        F = SETS[kind](Table(counts))
        p = rldp.design(F, 0.7, name, bounds=bounds)
        assert rldp.verify(p).conditions > 0
        check_with_intervals(p.document())
        assert rldp.audit(p).epsilon <= 0.7 + 1e-12
        assert p.rounding_loss < 1e-8


@pytest.mark.slow
@every_set
def test_exact_designs_spend_everything_by_the_shared_budget(kind):
    sharp, exact = (rldp.design(SETS[kind](TABLE), 0.7, "ir", bounds=b) for b in ("sharp", "exact"))
    assert exact.utility > sharp.utility * 1.01
    found = rldp.audit(exact)
    assert found.epsilon == pytest.approx(0.7, abs=1e-8)
    assert found.epsilon_apart > 0.71  # so that both lemmas on one S value are not enough


@pytest.mark.slow
@pytest.mark.usefixtures("little_work")
@every_set
def test_best_and_the_ceiling_and_comparisons(kind):
    F = SETS[kind](TABLE)
    best = rldp.design(F, 0.7, "best", effort="quick", **PAPER)
    records = rldp.compare(F, [0.7], protocols=["ir", "grr-cr", "ue-cr", "polyopt", "ceiling"])
    kept = {record["protocol"]: record["utility"] for record in records}
    assert best.utility >= max(kept[name] for name in kept if name != "ceiling") - 1e-6
    assert best.utility <= rldp.ceiling(F, 0.7) + 1e-9


@every_set
def test_robust_utility_is_below_what_members_have(kind):
    rng, F = np.random.default_rng(1), SETS[kind](TABLE)
    p = rldp.design(F, 1.0, "ir")
    found = p.robust_utility()
    assert F.contains(found.distribution)
    assert p.mutual_information(found.distribution) == pytest.approx(found.upper, abs=1e-9)
    assert 0 < found.lower <= found.upper < p.utility
    assert found.upper - found.lower < 1e-3
    for c in rng.normal(size=(50, *TABLE.p_su.shape)):
        assert p.mutual_information(F.smallest_expectation(c)[1]) >= found.lower - 1e-12


@every_set
def test_a_risk_report_simulates_the_coverage(kind):
    found = rldp.risk(rldp.design(SETS[kind](TABLE), 1.0, "ir"))
    assert found.coverage.nominal == 0.95
    assert found.coverage.simulated > 0.9


@pytest.mark.slow
@every_set
def test_files_bring_the_set_back(kind, tmp_path):
    p = rldp.design(SETS[kind](TABLE), 0.7, "ir", bounds="exact")
    p.save(tmp_path / "p.json")
    q = rldp.load(tmp_path / "p.json")
    assert repr(q.uncertainty) == repr(p.uncertainty)
    assert type(q.uncertainty) is type(p.uncertainty)
    assert q.document() == p.document()


@every_set
def test_single_u_and_a_single_record(kind):
    for counts in ([[3], [4]], [[1, 0], [0, 0]]):
        F = SETS[kind](Table(counts))
        for name in ("ir", "grr-cr", "ue-cr", "polyopt"):
            assert rldp.audit(rldp.design(F, 1.0, name)).epsilon <= 1 + 1e-12


# --- forgeries -----------------------------------------------------------------------------------


@pytest.mark.sampled(4)
@pytest.mark.slow
@every_set
@pytest.mark.parametrize("kind_of_channel", ["dense", "independent", "unary", "choice"])
def test_leaky_channels_are_refused_with_the_best_certificate_too(kind, kind_of_channel):
    """The certificate is made for the leaky table itself, and all its multipliers varied."""
    rng, F, refused = np.random.default_rng(3), SETS[kind](TABLE), 0
    for _ in range(4):
        pull = rng.uniform(0.2, 0.8)

        def rows(*shape, pull=pull):
            return (1 - pull) * some.rows(rng, *shape, zeros=0) + pull / shape[-1]

        channel = {
            "dense": lambda: rldp.DenseChannel(rows(2, 3, 3)),
            "independent": lambda: rldp.IndependentChannel(rows(2, 2), rows(3, 3)),
            "unary": lambda: rldp.UnaryChannel(rows(2, 3, 3), rows(2, 3)),
            "choice": lambda: rldp.ChoiceChannel(rows(2, 3, 2) / 2, rows(2, 2) / 2),
        }[kind_of_channel]()
        true = rldp.audit(channel, F).epsilon
        integers = channel.rounded(62)
        for slip, holds in ((-1e-9, False), (-0.3, False), (1e-7, True)):
            epsilon = true + slip * true
            proof = certify.certificate(channel, integers, Guarantee(F, epsilon), 62)
            document = {
                "epsilon": epsilon,
                "uncertainty": documents.uncertainty_document(F),
                "channel": documents.channel_document(channel, integers, 62),
                "certificate": proof,
            }
            if holds:
                check(document)
                check_with_intervals(document)
                continue
            for forged in [document, *forgeries(rng, document)]:
                for checker in (check, check_with_intervals):
                    with pytest.raises(ProofError):
                        checker(forged)
                    refused += 1
    assert refused >= 16


def forgeries(rng, document: dict) -> list[dict]:
    """The same with multipliers moved at random, each still a multiplier."""
    found = []
    if document["certificate"]["multipliers"] is not None:
        forged = copy.deepcopy(document)
        for name, sign in (("upper", 1), ("lower", -1)):
            table = forged["certificate"]["multipliers"][name]
            for row in table:
                row[:] = [str(int(x) + sign * int(rng.integers(0, 2**58))) for x in row]
        for entry in forged["certificate"]["joint"]:
            entry[-1] = str(int(int(entry[-1]) * rng.uniform(0.5, 2)))
        found.append(forged)
    return found


@pytest.mark.slow
@every_set
def test_a_smaller_set_than_its_level_asks_for_is_refused(kind):
    document = rldp.design(SETS[kind](TABLE), 0.7, "ir", bounds="exact").document()
    name = "radius" if kind == "total-variation" else "quantile"
    value = Fraction(document["certificate"][name])
    for factor in (1 - Fraction(1, 10**9), Fraction(1, 2), 0, -1):
        document["certificate"][name] = str(value * factor)
        for checker in (check, check_with_intervals):
            with pytest.raises(ProofError):
                checker(document)


@pytest.mark.parametrize("order", ["1", "1/2", "17", "33/32", "3.5", "-2", "2/0", 1.5, None])
def test_odd_orders_are_refused(order):
    document = rldp.design(SETS["renyi"](TABLE), 0.7, "ir").document()
    document["uncertainty"]["order"] = order
    for checker in (check, check_with_intervals):
        with pytest.raises((ProofError, ValueError)):
            checker(document)


def test_a_certificate_for_one_order_does_not_prove_a_larger_set():
    """The same multipliers over total variation, or all distributions, prove nothing."""
    document = rldp.design(KLSet(TABLE), 0.7, "ir", bounds="exact").document()
    check(document)
    document["uncertainty"] = {"kind": "all", "counts": TABLE.counts.tolist()}
    with pytest.raises(ProofError):
        check(document)


# --- commands ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--set", "renyi", "--order", "1.5"], "a power-divergence test of order 1.5"),
        (["--set", "kl"], "a likelihood ratio test"),
        (["--set", "kl-finite"], "for any number of records"),
        (["--set", "total-variation"], "within total variation"),
    ],
)
def test_commands_take_the_sets(tmp_path, options, words):
    data, file = ["adult", "-s", "race", "-u", "sex"], str(tmp_path / "p.json")
    ran = CliRunner().invoke(app, ["design", *data, "-e", "1", "-p", "ir", *options, "-o", file])
    assert ran.exit_code == 0, ran.output
    assert words in " ".join(ran.output.split())
    ran = CliRunner().invoke(app, ["verify", file, "--intervals"])
    assert ran.exit_code == 0, ran.output
    ran = CliRunner().invoke(app, ["audit", file, "--json"])
    assert json.loads(ran.output)["epsilon"] <= 1
    own = rldp.load(file)
    ran = CliRunner().invoke(app, ["audit", file, "--alpha", "1e-9", "--json"])
    wider = json.loads(ran.output)["epsilon"]
    F = type(own.uncertainty)(own.table, 1e-9, *([1.5] if "renyi" in options else []))
    assert wider == pytest.approx(rldp.audit(own, F).epsilon, rel=1e-9)


def test_an_order_for_another_set_is_refused():
    command = ["compare", "adult", "-s", "race", "-u", "sex", "--set", "kl", "--order", "3"]
    ran = CliRunner().invoke(app, command)
    assert isinstance(ran.exception, ParameterError)
    assert "--order is for --set renyi" in str(ran.exception)
