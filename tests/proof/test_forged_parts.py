"""False claims about readers who know part of U: neither checker accepts one, nor the client.

That each is false is told by a distribution in exact fractions, by code that uses nothing of the
package. Negative controls: a checker that is wrong about parts in one place accepts some of them.
"""

from __future__ import annotations

import copy
import shutil
from fractions import Fraction

import numpy as np
import pytest

from rldp import proof
from rldp.intervals import check_with_intervals
from rldp.proof import channels, check, sets
from rldp.proof.parts import groups_of
from tests.support import forgeries, part_forgeries, parts, witnesses
from tests.support.files import JAVASCRIPT
from tests.support.part_forgeries import one_by_one

N_CLAIMS = 400  # `python -m benchmarks forgeries` tries 20,000
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")


def checkers(tmp_path):
    pytest.importorskip("flint", reason="python-flint comes with rldp[intervals]")
    made = {"exact": one_by_one(check), "intervals": one_by_one(check_with_intervals)}
    if shutil.which("node"):
        made["client"] = part_forgeries.by_the_client(tmp_path)
    return made


@pytest.mark.slow
def test_no_false_claim_about_a_part_is_accepted(tmp_path):
    asked = checkers(tmp_path)
    tally = part_forgeries.run(np.random.default_rng(28), asked, N_CLAIMS)
    assert tally["false"] >= N_CLAIMS
    assert tally["true"] > 15
    for name in asked:  # they do not refuse everything
        assert tally[f"{name} proved"] == tally["true"]
    ways = {way.partition(",")[0].partition(":")[0] for way in tally}
    assert {"level too low", "other columns", "cells exchanged", "set too small"} <= ways
    assert {"malformed", "table spoiled", "counts exchanged", "columns in another order"} <= ways


# --- what shows that a claim is false ------------------------------------------------------------


@pytest.mark.parametrize("set_kind", forgeries.SETS)
def test_a_witness_reaches_what_the_audit_finds_and_never_more(set_kind):
    rng = np.random.default_rng(3)
    reached = []
    for kind in ("dense", "independent", "choice", "unary", "sets"):
        some = parts.random_parted(rng, kind, forgeries.SETS[set_kind])
        document = some.document(some.guarantee(parts.capped(some.truth), some.constants()))
        claim = part_forgeries.last(document)
        best = 0.0
        for found, ratio in witnesses.search(rng, document, claim, some.known, 3):
            truth = float(some.truth[found.s1, found.s2])
            if np.isfinite(ratio) and witnesses.is_member(claim["uncertainty"], found.P):
                assert ratio <= truth * (1 + 1e-7) + 1e-9
                if truth:  # a channel of sets may tell nothing of a pair
                    best = max(best, ratio / truth)
        reached.append(best)
    assert sum(best > 0.99 for best in reached) >= 2


def test_a_distribution_outside_the_set_shows_nothing():
    counts = [[30, 20, 10, 40], [25, 25, 20, 30]]
    n = 200
    p = [[Fraction(c, n) for c in row] for row in counts]
    moved = copy.deepcopy(p)
    moved[0][0], moved[0][1] = moved[0][0] + Fraction(9, 100), moved[0][1] - Fraction(9, 100)
    near = [[x + (moved[s][u] - x) / 100 for u, x in enumerate(row)] for s, row in enumerate(p)]
    for kind, more in {
        "chi-square": {"alpha": 0.05},
        "kl": {"alpha": 0.05},
        "renyi": {"alpha": 0.05, "order": "3/2"},
        "known": {},
    }.items():
        F = {"kind": kind, "counts": counts, **more}
        assert witnesses.is_member(F, p)
        assert witnesses.is_member(F, near) is (kind != "known")
        assert not witnesses.is_member(F, moved)
    F = {"kind": "total-variation", "counts": counts, "alpha": 0.999}
    assert witnesses.is_member(F, near)
    twice = [[2 * x for x in row] for row in p]
    assert not witnesses.is_member({"kind": "all", "counts": counts}, twice)


# --- negative controls ---------------------------------------------------------------------------


def last_column_first(document, names, n_u):
    """Parts of U as if the last column were the most significant."""
    groups_of(document, names, n_u)
    useful = document["schema"]["useful"]
    sizes = [len(column["labels"]) for column in useful][::-1]
    axes = [len(sizes) - 1 - i for i, c in enumerate(useful) if c["name"] in names]
    return witnesses.groups(sizes, tuple(axes))


def as_a_stranger(document, claim, F, levels, channel):
    """All parts taken for one: someone who knows nothing."""
    groups_of(document, claim["knows"], F.shape[1])
    nothing = {"certificate": {"multipliers": None, "joint": []}}
    claims = channels.Claims(nothing, F, levels)
    channel.prove(claims)
    return proof.ProvedGuarantee(F.words, levels, claims.conditions, claims.slack)


def by_its_own_records(self, group):
    """As if the records of a part were all there are."""
    counts = [[row[u] for u in group] for row in self.counts]
    totals = list(map(sum, counts))
    return sets.replace(self, counts=counts, totals=totals, n=max(1, sum(totals)))


def only_seen_values(self, s, q, *_):
    """As if nobody had a value of S that was never seen with one of the part."""
    total = self.totals[s]
    mean = sum(c * x for c, x in zip(self.counts[s], q, strict=True)) * sets.ONE
    return (-(-mean // total), mean // total) if total else (0, 0)


BREAKS = {
    "the last column first": (proof, "groups_of", last_column_first),
    "a stranger instead": (proof, "_proved_for_part", as_a_stranger),
    "parts with their own records": (sets.Set, "given", by_its_own_records),
    "frequencies for every set": (sets.BudgetSet, "bounds", only_seen_values),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BREAKS)
def test_a_checker_that_is_wrong_about_parts_accepts_a_false_claim(name, monkeypatch):
    owner, attribute, replacement = BREAKS[name]
    monkeypatch.setattr(owner, attribute, replacement)
    with pytest.raises(AssertionError, match="broken accepted"):
        part_forgeries.run(np.random.default_rng(5), {"broken": one_by_one(check)}, 1_500, 200)


@pytest.mark.slow
@needs_node
@pytest.mark.parametrize(
    ("file", "right", "wrong"),
    [
        (
            "prove.js",
            "knows.includes(name) ? k * size + i : k",
            "knows.includes(name) ? k : k * size + i",
        ),
        ("prove.js", "channel.given(group).prove(F.given(group),", "channel.prove(F,"),
        (
            "everything.js",
            "made.records(within(this.counts, group));",
            "made.records(within(this.counts, group)); made.n = 1n;",
        ),
        ("prove.js", "[...groups.values()]", "[...groups.values()].reverse()"),
        ("prove.js", "return high * ONE <= E * low;", "return high * ONE <= E * low * 2n;"),
    ],
)
def test_a_client_that_is_wrong_about_parts_accepts_a_false_claim(file, right, wrong, tmp_path):
    client = tmp_path / "client"
    shutil.copytree(JAVASCRIPT, client)
    source = (client / "proof" / file).read_text()
    assert source.count(right) == 1
    (client / "proof" / file).write_text(source.replace(right, wrong))
    asked = {"broken": part_forgeries.by_the_client(tmp_path, client)}
    with pytest.raises(AssertionError, match="broken accepted"):
        part_forgeries.run(np.random.default_rng(6), asked, 1_500, 200)
