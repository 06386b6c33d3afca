"""Guarantees for someone who knows part of U: checker, files and audits, all channels and sets."""

from __future__ import annotations

import copy
import itertools
import json

import numpy as np
import pytest

import rldp
from rldp.channel import ChoiceChannel, DenseChannel, IndependentChannel, UnaryChannel
from rldp.designing.certify import certificate, certified
from rldp.errors import FileError, ParameterError
from rldp.leakage.views import worst_levels
from rldp.proof import ProofError, check
from rldp.protocol import documents
from rldp.protocol.documents import file_text
from rldp.protocol.guarantees import CertifiedGuarantee, proof_document
from rldp.protocol.release_protocol import ReleaseProtocol
from rldp.tables.schema import Column, Schema
from tests.support.forgeries import random_sets

SCHEMA = Schema(
    (Column("S", ("no", "yes", "?")),),
    (Column("sex", ("f", "m")), Column("age", ("0", "1", "2"))),
)
COUNTS = np.array([[40, 7, 0, 31, 22, 9], [0, 18, 25, 0, 12, 30], [5, 60, 11, 8, 3, 21]])
TABLE = rldp.Table.from_schema(COUNTS, SCHEMA)
CELLS = {"sex": [[0, 1, 2], [3, 4, 5]], "age": [[0, 3], [1, 4], [2, 5]]}
PAIRS = list(itertools.permutations(range(3), 2))

SETS = {
    "chi-square": rldp.ChiSquareSet(TABLE),
    "renyi": rldp.RenyiSet(TABLE, order=1.5),
    "kl": rldp.KLSet(TABLE),
    "kl-finite": rldp.KLSet(TABLE, finite=True),
    "total-variation": rldp.TotalVariationSet(TABLE),
    "polytope": rldp.PolytopeSet(
        TABLE, [[[1, 0, 2, 0, 0, 3], [1, 1, 1, 0, 0, 0], [0, 0, 1, 4, 1, 1]], COUNTS[::-1].tolist()]
    ),
    "known": rldp.KnownDistribution(TABLE),
    "all": rldp.AllDistributions(TABLE),
}


def _rows(rng, *shape):
    rows = rng.random(shape) + 0.05
    return rows / rows.sum(axis=-1, keepdims=True)


def _channel(kind):
    rng = np.random.default_rng(3)
    if kind == "dense":
        return DenseChannel(_rows(rng, 3, 6, 4))
    if kind == "independent":
        return IndependentChannel(_rows(rng, 3, 4), _rows(rng, 6, 5))
    if kind == "choice":
        other = _rows(rng, 3, 4) / 4
        return ChoiceChannel(_rows(rng, 3, 6, 4) / 2, other)
    if kind == "sets":
        return random_sets(rng, 3, 6)
    return UnaryChannel(_rows(rng, 3, 6, 3), _rows(rng, 3 if kind == "unary" else 18, 3))


CHANNELS = {
    kind: _channel(kind)
    for kind in ("dense", "independent", "choice", "unary", "unary-cells", "sets")
}


def _proved(channel, F, knows):
    """A protocol with what an audit finds as its levels."""
    epsilon = float(worst_levels(channel.comparisons(), rldp.Guarantee(F, 1.0)).max())
    found = worst_levels(channel.comparisons(), rldp.Guarantee(F, 1.0, knows=knows))
    if isinstance(channel, UnaryChannel) and channel.n_blocks > 3:
        epsilon = float(np.log(channel.ratio_over_all()))  # all that is proved of them
        found = np.full((3, 3), epsilon)
    guarantees = [
        rldp.Guarantee(F, epsilon + 1e-6),
        rldp.Guarantee(F, found + 1e-9, knows=knows),
    ]
    table = certified(channel, guarantees)
    others = (CertifiedGuarantee(guarantees[1], table.certificates[1]),)
    return ReleaseProtocol(
        "made up",
        guarantees[0].epsilon,
        F,
        table.channel,
        table.integers,
        table.bits,
        table.certificate,
        others=others,
    )


@pytest.mark.sampled(4)
@pytest.mark.parametrize("set_kind", SETS)
@pytest.mark.parametrize("kind", CHANNELS)
@pytest.mark.parametrize("knows", [("sex",), ("age",), ("sex", "age")], ids="-".join)
def test_what_an_audit_finds_is_proved(kind, set_kind, knows, tmp_path):
    p = _proved(CHANNELS[kind], SETS[set_kind], knows)
    path, public = tmp_path / "p.json", tmp_path / "public.json"
    p.save(path)
    p.public().save(public)
    proof = rldp.verify(path, vouches=public)
    assert [g.knows for g in proof.guarantees] == [(), knows]
    assert rldp.load(path).guarantees[1].knows == knows
    assert rldp.load(public).claims[1].knows == knows
    assert json.loads(path.read_text())["version"] == json.loads(public.read_text())["version"] == 3
    claimed, audited = p.guarantees[1].levels, rldp.audit(p).guarantees[1].levels
    off = ~np.eye(3, dtype=bool)
    if kind != "unary-cells":
        assert claimed[off] == pytest.approx(audited[off], abs=1e-7)


@pytest.mark.parametrize("knows", ["sex", "age"])
def test_a_part_leaks_what_its_cells_leak(knows):
    """At known frequencies and over all distributions, cell by cell."""
    Q = CHANNELS["dense"].matrix
    for kind in ("known", "all"):
        g = rldp.Guarantee(SETS[kind], 1.0, knows=knows)
        found = worst_levels(CHANNELS["dense"].comparisons(), g)
        for s, t in PAIRS:
            worst = 0.0
            for cells in CELLS[knows]:
                tops, bottoms = [], []
                for x, extreme in ((s, np.max), (t, np.min)):
                    n, part = COUNTS[x, cells], Q[x, cells]
                    is_known = kind == "known" and n.sum() > 0
                    mean = n @ part / n.sum() if is_known else extreme(part, axis=0)
                    (tops if x == s else bottoms).append(mean)
                worst = max(worst, float(np.log(tops[0] / bottoms[0]).max()))
            assert found[s, t] == pytest.approx(worst, abs=1e-12)


def test_a_reader_in_between_can_learn_what_neither_other_does():
    """B = S xor A is reported: nothing and all of U tell nothing of S, A alone tells S."""
    schema = Schema((Column("S", ("0", "1")),), (Column("A", ("0", "1")), Column("B", ("0", "1"))))
    F = rldp.KnownDistribution(rldp.Table.from_schema([[1, 0, 0, 1], [0, 1, 1, 0]], schema))
    Q = np.tile(np.array([[0.9, 0.1], [0.1, 0.9]] * 2), (2, 1, 1))
    comparisons = DenseChannel(Q).comparisons()

    def worst(knows):
        return worst_levels(comparisons, rldp.Guarantee(F, 1.0, knows=knows)).max()

    assert worst(()) == worst(("A", "B")) == 0
    assert worst("A") == pytest.approx(np.log(9))


# --- refusals ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def document():
    return _proved(CHANNELS["dense"], SETS["chi-square"], ("sex",)).document()


def _other(document, **changes):
    changed = copy.deepcopy(document)
    changed["guarantees"][1].update(changes)
    return changed


@pytest.mark.parametrize(
    "knows",
    [
        [],
        ["S"],
        ["nobody"],
        ["sex", "sex"],
        ["age", "sex"],
        "sex",
        None,
        [0],
        [["sex"]],
        {"sex": 1},
    ],
)
def test_names_that_are_no_part_are_refused(document, knows):
    with pytest.raises(ProofError, match="knows"):
        check(_other(document, knows=knows))


def test_another_part_has_other_groups_and_another_certificate(document):
    for knows in (["age"], ["sex", "age"]):
        with pytest.raises(ProofError, match="parts"):
            check(_other(document, knows=knows))


def test_what_is_not_read_is_refused(document):
    """An entry in the wrong place might be meant: the claim would be another one."""
    misplaced = _other(
        document, uncertainty=document["guarantees"][1]["uncertainty"] | {"knows": 1}
    )
    del misplaced["guarantees"][1]["knows"]
    for wrong in (misplaced, _other(document, known=["sex"])):
        with pytest.raises(ProofError, match=r"Expected no '(knows|known)'"):
            check(wrong)


def test_each_part_needs_its_certificate(document):
    parts = document["guarantees"][1]["certificate"]["parts"]
    quantile = document["guarantees"][1]["certificate"]["quantile"]
    assert check(document).guarantees[1].knows == ("sex",)
    for wrong in ([], parts[:1], [*parts, parts[0]], parts[::-1], [None, parts[1]], None):
        with pytest.raises(ProofError):
            check(_other(document, certificate={"quantile": quantile, "parts": wrong}))
    with pytest.raises(ProofError, match="parts"):
        check(_other(document, certificate=document["guarantees"][0]["certificate"]))


@pytest.mark.parametrize(
    "useful",
    [
        [("sex", 3), ("age", 2)],
        [("age", 3), ("sex", 2)],
        [("sex", 6)],
        [("sex", 2), ("sex", 3)],
        [("sex", 2), ("age", 4)],
        [("age", 3)],
        [],
    ],
)
def test_the_columns_of_the_schema_decide_who_is_compared(document, useful):
    changed = copy.deepcopy(document)
    changed["schema"]["useful"] = [
        {"name": name, "labels": [str(i) for i in range(n)]} for name, n in useful
    ]
    with pytest.raises(ProofError):
        check(changed)
    del changed["schema"]
    with pytest.raises(ProofError, match="schema"):
        check(changed)


def test_the_first_guarantee_and_someone_who_knows_all_of_u_have_no_part(document):
    swapped = copy.deepcopy(document)
    swapped["guarantees"].reverse()
    swapped["epsilon"] = max(
        x for row in swapped["guarantees"][0]["levels"] for x in row if x != "inf"
    )
    with pytest.raises(ProofError, match="knows nothing"):
        check(swapped)
    counts = TABLE.counts.tolist()
    given_u = {"uncertainty": {"kind": "given-u", "counts": counts}}
    with pytest.raises(ProofError, match="all of U"):
        check(_other(document, **given_u, levels=50.0))
    with pytest.raises(ProofError, match="none beside"):
        check({**document, "knows": ["sex"]})


@pytest.mark.sampled(4)
@pytest.mark.parametrize("set_kind", SETS)
@pytest.mark.parametrize("kind", CHANNELS)
def test_a_level_that_a_reader_of_one_value_breaks_is_never_proved(kind, set_kind):
    """Every level, pair by pair, a little below what is true, with the certificate made for it."""
    F, integers = SETS[set_kind], CHANNELS[kind].rounded(62)
    exact = CHANNELS[kind].from_integers(integers, 62)
    for knows in (("sex",), ("age",)):
        found = worst_levels(exact.comparisons(), rldp.Guarantee(F, 1.0, knows=knows))
        first = rldp.Guarantee(F, 20.0)
        for s, t in PAIRS:
            levels = found + 0.1
            levels[s, t] = found[s, t] * (1 - 1e-6)
            guarantees = [first, rldp.Guarantee(F, levels, knows=knows)]
            proofs = [certificate(exact, integers, g, 62) for g in guarantees]
            with pytest.raises(ProofError, match="Guarantee 2: Part"):
                check(
                    {
                        "epsilon": 20.0,
                        "schema": documents.schema_document(SCHEMA),
                        "channel": documents.channel_document(exact, integers, 62),
                        **proof_document(list(map(CertifiedGuarantee, guarantees, proofs))),
                    }
                )


@pytest.mark.parametrize("version", [1, 2])
def test_older_versions_do_not_know_parts(document, version, tmp_path):
    path = tmp_path / "p.json"
    path.write_text(file_text({**document, "version": version}))
    with pytest.raises(FileError):
        rldp.load(path)


def test_version_3_is_for_parts(document, tmp_path):
    path = tmp_path / "p.json"
    changed = copy.deepcopy(document)
    del changed["guarantees"][1]
    path.write_text(file_text(changed))
    with pytest.raises(FileError):
        rldp.load(path)


def test_guarantees_name_their_columns_once_and_in_order():
    F = SETS["chi-square"]
    assert rldp.Guarantee(F, 1.0, knows=["age", "sex"]).knows == ("sex", "age")
    assert "someone who knows sex" in repr(rldp.Guarantee(F, 1.0, knows="sex"))
    for wrong in (["S"], ["sex", "sex"], ["x"]):
        with pytest.raises(ParameterError, match="useful columns"):
            rldp.Guarantee(F, 1.0, knows=wrong)
    with pytest.raises(ParameterError, match="GivenU"):
        rldp.Guarantee(rldp.GivenU(TABLE), 1.0, knows="sex")
