"""Certificates: all that is designed is proved, by integers alone, with next to nothing lost."""

from __future__ import annotations

import copy
import json
import math
import subprocess
import sys

import numpy as np
import pytest

import rldp
from rldp import AllDistributions, ChiSquareSet, Guarantee, KnownDistribution, Table
from rldp.designing.certify import BITS, certified
from rldp.designing.closed_forms import FAMILIES
from rldp.proof import ProofError, check

NAMES = ("grr", "ue", "srr", "ir", "grr-cr", "ue-cr")
TABLE = Table([[30, 10, 2], [10, 50, 0], [5, 5, 5]])


# --- all that is designed is proved --------------------------------------------------------------


def random_case(rng):
    """A set over a small table (empty cells, S values never seen, one record, one U), ε, bounds."""
    n_s, n_u = rng.integers(2, 4), rng.integers(1, 4)
    counts = rng.integers(0, 10 ** rng.integers(0, 4) + 1, (n_s, n_u))
    counts[rng.random((n_s, n_u)) < 0.2] = 0
    if rng.random() < 0.2:
        counts[rng.integers(n_s)] = 0
    if rng.random() < 0.1:
        counts[:] = 0  # a single record
    counts[0, -1] += counts.sum() == 0
    table = Table(counts)
    alpha = float(rng.choice([0.5, 0.05, 1e-6]))
    sets = [ChiSquareSet(table, alpha), AllDistributions(table), KnownDistribution(table)]
    F = sets[rng.choice(3, p=[0.6, 0.2, 0.2])]
    epsilon = math.exp(rng.uniform(math.log(1e-3), math.log(20)))
    return F, epsilon, str(rng.choice(["sharp", "paper"]))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_every_design_is_proved(seed):
    """Six times thirty tables, half of the protocols each; each protocol 90 times."""
    rng = np.random.default_rng(seed)
    for i in range(30):
        F, epsilon, bounds = random_case(rng)
        for name in NAMES[i % 2 :: 2]:
            p = rldp.design(F, epsilon, name, bounds=bounds)
            assert rldp.verify(p).epsilon == epsilon
            assert p.rounding_loss < 1e-9
            assert rldp.audit(p).epsilon <= epsilon + 1e-9
            check_sums(p)
        assert rldp.audit(p.matrix, F).epsilon <= epsilon + 1e-9


def check_sums(p) -> None:
    """Every row is a distribution in units of 2^-62, exactly, in Python's integers."""
    parts = {name: N.astype(object) for name, N in p.integers.items()}
    assert all(N.min() >= 0 for N in parts.values())
    if isinstance(p.channel, rldp.ChoiceChannel):
        own, other = parts["own"].sum(axis=2), parts["other"].sum(axis=1)
        totals = [own + (other.sum() - other)[:, None]]
    else:
        totals = [N.sum(axis=-1) for N in parts.values()]
    assert all(np.all(total == 2**62) for total in totals)
    assert p.bits == BITS == 62


@pytest.mark.parametrize("name", NAMES)
def test_what_a_proof_says(name):
    proof = rldp.verify(rldp.design(ChiSquareSet(TABLE, 0.01), 1.5, name))
    assert proof.epsilon == 1.5
    assert "117 records" in proof.uncertainty
    assert "0.01" in proof.uncertainty
    assert proof.conditions > 0
    assert 0 <= proof.slack < 0.5


def test_the_table_is_what_the_matrix_shows():
    p = rldp.design(ChiSquareSet(TABLE), 1.0, "ir")
    r_s, r_u = (p.integers[name] / 2.0**p.bits for name in ("r_s", "r_u"))
    np.testing.assert_array_equal(p.matrix, np.einsum("sa,ub->suab", r_s, r_u).reshape(3, 3, 9))
    with pytest.raises(ValueError, match="read-only"):
        p.integers["r_s"][0, 0] = 1
    with pytest.raises(TypeError):
        p.certificate["joint"] = []


# --- joint certificates --------------------------------------------------------------------------


def apart(p, entry) -> float:
    """The log-ratio of an entry's pair where each of the two conditionals has the whole budget."""
    F, parts = p.uncertainty, p.channel.parts
    if p.name == "ir":
        y, s_1, s_2 = entry[:3]
        T_1 = T_2 = parts["r_u"][:, y]
        factor = (parts["r_s"][s_1] / parts["r_s"][s_2]).max()
    else:
        s_1, z_1, s_2, z_2 = entry[:4]
        T_1, T_2 = parts["own"][s_1, :, z_1], parts["own"][s_2, :, z_2]
        factor = parts["other"][s_2, z_2] / parts["other"][s_1, z_1]
    high = F.mean_range(T_1[None], np.array([s_1]))[1][0]
    return math.log(factor * high / F.mean_range(T_2[None], np.array([s_2]))[0][0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "counts", "epsilon"),
    [
        ("ir", [[30, 10, 2], [10, 50, 7], [5, 5, 5]], 0.5),
        ("ir", [[300, 100], [250, 350]], 0.2),
        ("ue-cr", [[30, 10, 2], [10, 50, 7], [5, 5, 5]], 0.5),
        ("ue-cr", [[263, 0], [677, 282]], 0.1),  # all of the budget goes to one side
        ("ue-cr", [[45, 79, 8], [47, 0, 0], [0, 439, 63]], 1.0),
    ],
)
def test_what_only_the_shared_budget_proves_needs_its_entries(name, counts, epsilon):
    """Tables tight over F break ε over F': without the entry of such a pair there is no proof."""
    F = ChiSquareSet(Table(counts))
    p = rldp.design(F, epsilon, name, bounds="exact")
    audit, document = rldp.audit(p), p.document()
    assert audit.epsilon == pytest.approx(epsilon, abs=1e-6)
    assert audit.epsilon_apart > epsilon + 1e-4
    assert rldp.verify(p).epsilon == epsilon
    joint = document["certificate"]["joint"]
    needed = [entry for entry in joint if apart(p, entry) > epsilon + 1e-9]
    assert needed
    for entry in needed:
        less = copy.deepcopy(document)
        less["certificate"]["joint"].remove(entry)
        with pytest.raises(ProofError, match="Not proved"):
            check(less)


def test_tables_tight_over_the_larger_set_need_no_entries():
    for name in NAMES:
        p = rldp.design(ChiSquareSet(TABLE), 0.5, name)
        assert p.certificate["joint"] == []


@pytest.mark.parametrize("kind", [AllDistributions, KnownDistribution])
def test_sets_without_a_ball_need_no_multipliers(kind):
    for name in NAMES:
        p = rldp.design(kind(TABLE), 0.5, name)
        assert dict(p.certificate) == {"multipliers": None, "joint": []}
        assert rldp.verify(p).conditions > 0


# --- fewer bits ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_fewer_bits_are_proved_and_lose_more(name):
    """The loss may also be a gain, as rounding is not one-sided: its size is what grows."""
    F = ChiSquareSet(TABLE)
    channel = FAMILIES[name].channel(F, 5.0, rldp.design(F, 5.0, name).parameters)
    sizes = []
    for bits in (62, 30, 20):
        table = certified(channel, [Guarantee(F, 5.0)], bits)
        assert (table.bits, table.proof.epsilon) == (bits, 5)
        assert rldp.audit(table.channel, F).epsilon <= 5 + 1e-12
        kept = table.channel.mutual_information(F.table.p_su)
        sizes.append(abs(channel.mutual_information(F.table.p_su) - kept))
    assert sizes[0] < sizes[1] < sizes[2] < 1e-4
    assert sizes[0] < 1e-11


@pytest.mark.parametrize("bits", [1, 2, 12])
@pytest.mark.parametrize("name", ["grr", "srr", "grr-cr"])
def test_too_few_bits_are_refused(name, bits):
    """Units of 2^-12 are too coarse for ε = 0.001, and four of them for nine outputs."""
    F, epsilon = ChiSquareSet(TABLE), 1e-3
    channel = FAMILIES[name].channel(F, epsilon, rldp.design(F, epsilon, name).parameters)
    with pytest.raises(rldp.CertificateError, match=f"No table of {bits} bits proves ε = 0.001."):
        certified(channel, [Guarantee(F, epsilon)], bits)


def test_a_coarse_table_may_tell_nothing():
    """Randomised response on S and U each rounds to a constant, which is as private as can be."""
    F = ChiSquareSet(TABLE)
    channel = FAMILIES["ir"].channel(F, 1e-3, rldp.design(F, 1e-3, "ir").parameters)
    table = certified(channel, [Guarantee(F, 1e-3)], 4)
    assert table.channel.mutual_information(F.table.p_su) < 1e-15


# --- a certificate that does not fit -------------------------------------------------------------


def test_a_channel_that_leaks_has_no_certificate():
    Q = np.array([[[0.9, 0.1]] * 3, [[0.1, 0.9]] * 3, [[0.5, 0.5]] * 3])
    with pytest.raises(rldp.CertificateError, match="Not proved: output"):
        certified(rldp.DenseChannel(Q), [Guarantee(ChiSquareSet(TABLE), 1.0)])


def test_a_larger_claim_is_proved_and_a_smaller_one_is_not():
    document = rldp.design(ChiSquareSet(TABLE), 1.0, "grr-cr").document()
    assert check(document | {"epsilon": 1.1}).slack > 0.05
    with pytest.raises(ProofError, match="Not proved"):
        check(document | {"epsilon": 0.999999})


# --- the checker alone ---------------------------------------------------------------------------

ALONE = """
import json, sys
import rldp.proof
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        print(rldp.proof.check(json.load(file)).conditions)
loaded = {name.split(".")[0] for name in sys.modules}
assert not loaded & {"numpy", "scipy", "pyarrow", "narwhals"}, loaded
ours = [name for name in sys.modules if name.startswith("rldp.")]
assert all(name == "rldp.proof" or name.startswith("rldp.proof.") for name in ours), ours
"""


def test_the_checker_needs_no_numpy_and_nothing_else_of_the_package(tmp_path):
    paths, conditions = [], []
    for name in NAMES:
        p = rldp.design(ChiSquareSet(TABLE), 1.0, name)
        paths.append(str(tmp_path / f"{name}.json"))
        p.save(paths[-1])
        conditions.append(rldp.verify(p).conditions)
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", ALONE, *paths], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    assert json.loads(f"[{','.join(run.stdout.split())}]") == conditions
