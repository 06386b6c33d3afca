"""False claims about readers who know part of U, each shown to be false before it is handed in.

Every document comes with a distribution of its set under which someone who knows some value k
learns more from a report than the document says (`witnesses.exceeded`, in exact fractions). Ways to
lie: a level below the truth, a guarantee for other columns, columns of the schema exchanged or
merged, cells or counts exchanged between parts, a spoiled table, a set made too small; each with
the certificates that a forger may hand in: the best there are, those of the true claim, of another
k, of other columns, in another order, too many, too few, shifted, made up. Ways to be malformed
stand in front of claims that are false anyway.
"""

from __future__ import annotations

import copy
import itertools
import json
import math
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import rldp
from rldp.designing import certify
from rldp.errors import RldpError
from rldp.protocol import documents
from rldp.protocol.documents import WHOLE, file_text
from rldp.protocol.guarantees import levels_document
from rldp.tables.schema import Column, Schema
from rldp.uncertainty import Guarantee
from tests.support import forgeries, witnesses
from tests.support.files import JAVASCRIPT, TESTS
from tests.support.forgeries import BITS
from tests.support.mutants import mutant
from tests.support.parts import Parted, capped, random_parted

Document = dict[str, Any]
Rng = np.random.Generator
Axes = tuple[int, ...]
Checker = Callable[[Sequence[Document]], list[str | None]]  # what was wrong with each, or None

KINDS = (
    "dense",
    "independent",
    "choice",
    "unary",
    "sets",
    "dense",
    "choice",
    "independent",
    "unary",
)
_PER_BASE = 20
_TIGHT = 1e-9  # of a log-ratio: floats and the margin of a witness
_MALFORMED = 0.12  # of the claims

Lie = tuple[str, Document, Axes]  # how it was made, the document, and the columns that are known


class FalseClaim(NamedTuple):
    """A document that says what is not so, and how it was made."""

    way: str
    document: Document


def bases(rng: Rng) -> Iterator[Parted]:
    """All kinds of channels × all kinds of sets, again and again; blocks of cells are slow."""
    for turn in itertools.count():
        for kind, set_kind in itertools.product(KINDS, forgeries.SETS):
            yield random_parted(rng, kind, forgeries.SETS[set_kind])
        some = [*forgeries.SETS]
        yield random_parted(rng, "cells", forgeries.SETS[some[turn % len(some)]])


# --- documents -----------------------------------------------------------------------------------


def proof_of(some: Parted, levels: Any, known: Axes) -> Document:
    """The certificate that the library makes for a guarantee over these columns."""
    columns = [Column(c["name"], tuple(c["labels"])) for c in some.schema["useful"]]
    sensitive = [Column(c["name"], tuple(c["labels"])) for c in some.schema["sensitive"]]
    counts = some.F.table.counts
    table = rldp.Table.from_schema(counts, Schema(tuple(sensitive), tuple(columns)))
    F = type(some.F)(table, **some.F.arguments)
    g = Guarantee(F, levels, knows=["abcd"[axis] for axis in known])
    try:
        return certify.certificate(some.channel, some.integers, g, BITS)
    except (RldpError, ValueError):  # where a table leaks without limit there is none
        return some.constants()


def last(document: Document) -> Document:
    """The guarantee that the lie is in."""
    claim: Document = document["guarantees"][-1]
    return claim


def pairs_of(levels: np.ndarray) -> Any:
    """Levels as a document writes them."""
    return levels_document(levels)


# --- lies ----------------------------------------------------------------------------------------


def lowered(rng: Rng, some: Parted, good: Document) -> Iterator[Lie]:
    """A level a hair or far below what a witness shows, for one pair or for all."""
    found = list(witnesses.search(rng, good, last(good), some.known, 2))
    for witness, ratio in found:
        if not 1e-7 < ratio < math.inf:
            continue
        for _ in range(2):
            hair = 10.0 ** -rng.uniform(0.3, 8) if rng.random() < 0.7 else rng.uniform(0.1, 1)
            level = min(float(ratio * (1 - hair) - _TIGHT), 99.0)
            if level <= 0:
                continue
            way = rng.integers(4)
            truth = capped(some.truth)
            levels = np.full_like(truth, level)
            if way == 1:
                levels = truth.copy()
                levels[witness.s1, witness.s2] = level
            elif way == 2:  # nothing is promised of any other pair
                levels = np.full_like(truth, np.inf)
                levels[witness.s1, witness.s2] = level
            np.fill_diagonal(levels, np.inf)
            made = some.document(some.guarantee(levels, proof_of(some, levels, some.known)))
            yield "level too low", made, some.known


def other_columns(rng: Rng, some: Parted, good: Document) -> Iterator[Lie]:
    """What is true of some columns is said of others, with the certificate of these or of those."""
    n = len(some.sizes)
    every = [x for r in range(1, n + 1) for x in itertools.combinations(range(n), r)]
    for known in [every[i] for i in rng.permutation(len(every))][:3]:
        if known == some.known:
            continue
        made = copy.deepcopy(good)
        last(made)["knows"] = ["abcd"[axis] for axis in known]
        if rng.random() < 0.7:
            last(made)["certificate"] = proof_of(some, capped(some.truth), known)
        yield "other columns", made, known


def turned(rng: Rng, some: Parted, good: Document) -> Iterator[Lie]:
    """Columns of the schema in another order, or two of them merged into one."""
    if len(some.sizes) < 2:
        return
    made = copy.deepcopy(good)
    useful = made["schema"]["useful"]
    order = rng.permutation(len(useful)).tolist()
    made["schema"]["useful"] = [useful[i] for i in order]
    names = [useful[i]["name"] for i in order]
    axes = tuple(i for i, name in enumerate(names) if name in some.knows)
    last(made)["knows"] = [names[axis] for axis in axes]
    yield "columns in another order", made, axes
    made = copy.deepcopy(good)
    i = int(rng.integers(len(some.sizes) - 1))
    merged = [f"{a} {b}" for a in useful[i]["labels"] for b in useful[i + 1]["labels"]]
    columns = [*useful[:i], {"name": useful[i]["name"], "labels": merged}, *useful[i + 2 :]]
    made["schema"]["useful"] = columns
    axes = tuple(x for x, column in enumerate(columns) if column["name"] in some.knows)
    last(made)["knows"] = [columns[axis]["name"] for axis in axes]
    if axes:
        yield "columns merged", made, axes


def other_cells(rng: Rng, some: Parted, good: Document) -> Iterator[Lie]:
    """U values of the table exchanged between parts, or of the counts alone; a spoiled table."""
    n_u = math.prod(some.sizes)
    order = rng.permutation(n_u)
    moved = {
        name: N[:, order] if name in ("Q", "own") else N[order] if name == "r_u" else N
        for name, N in some.integers.items()
    }
    for name, integers in (
        ("cells exchanged", moved),
        ("table spoiled", mutant(rng, some.integers)),
    ):
        made = copy.deepcopy(good)
        made["channel"] = documents.channel_document(some.channel, integers, BITS)
        yield name, made, some.known
    for name, counts in (
        ("counts exchanged", some.F.table.counts[:, order]),
        ("fewer records", -(-some.F.table.counts // int(rng.integers(2, 60)))),
        ("a value of a part never seen", _emptied(rng, some)),
    ):
        if counts.any():
            made = copy.deepcopy(good)
            last(made)["uncertainty"]["counts"] = counts.tolist()
            yield name, made, some.known


def _emptied(rng: Rng, some: Parted) -> np.ndarray:
    """No records of one s with one k."""
    counts = some.F.table.counts.copy()
    group = witnesses.groups(list(some.sizes), some.known)
    counts[rng.integers(len(counts)), group[rng.integers(len(group))]] = 0
    return counts


def smaller(rng: Rng, some: Parted, good: Document) -> Iterator[Lie]:
    """The level and the proof of a set that is too small: as if there were more records."""
    if not {"quantile", "radius"} & set(last(good)["certificate"]):
        return
    factor = int(rng.integers(2, 1000))
    counts = np.minimum(some.F.table.counts * factor, 2**47)
    F = type(some.F)(rldp.Table(counts), **some.F.arguments)
    small = Parted.of(some.channel, F, some.sizes, some.known)
    levels = capped(small.truth)
    if not np.isfinite(levels).any():
        return
    made = some.document(some.guarantee(levels, proof_of(small, levels, some.known)))
    yield "proof of more records", copy.deepcopy(made), some.known
    proof = last(made)["certificate"]
    for name, power in (("quantile", 1), ("radius", 2)):
        if name in proof:
            shrunk = witnesses.Fraction(proof[name]) / (
                factor if power == 1 else math.isqrt(factor)
            )
            proof[name] = str(shrunk.limit_denominator(10**40))
    yield "set too small", made, some.known


LIES = (lowered, lowered, other_columns, turned, other_cells, smaller)


# --- certificates, and what is malformed ---------------------------------------------------------


def certificates(rng: Rng, some: Parted, document: Document) -> Iterator[tuple[str, Document]]:
    """The same lie with what a forger may have instead of a proof."""
    yield "as it is", document
    proof = last(document)["certificate"]
    parts = proof["parts"]
    size = {name: proof[name] for name in proof if name != "parts"}
    honest = last(some_good(some))["certificate"]["parts"]
    order = rng.permutation(len(parts)).tolist()
    choices = {
        "parts of the true claim": honest,
        "parts in another order": [parts[i] for i in order],
        "one part for all": [parts[order[0]]] * len(parts),
        "multipliers shifted": [forgeries.forged(rng, part) for part in parts],
        "joint made up": [
            part | {"multipliers": None, "joint": _joint(rng, some)} for part in parts
        ],
        "no multipliers": [{"multipliers": None, "joint": []} for _ in parts],
        "a part less": parts[:-1],
        "a part more": [*parts, parts[0]],
        "no parts": [],
    }
    names = list(choices)
    for i in rng.permutation(len(names))[:3]:
        made = copy.deepcopy(document)
        last(made)["certificate"] = size | {"parts": copy.deepcopy(choices[names[i]])}
        yield names[i], made
    if rng.random() < 0.1:
        made = copy.deepcopy(document)
        last(made)["certificate"] = size | copy.deepcopy(parts[0])
        yield "the certificate of a stranger", made


def some_good(some: Parted) -> Document:
    """The true claim, with the certificate that the library makes."""
    levels = capped(some.truth)
    return some.document(some.guarantee(levels, proof_of(some, levels, some.known)))


def _joint(rng: Rng, some: Parted) -> list[Any]:
    """An entry for every pair of every output or symbol, with one triple for all."""
    sizes = (0, 1, 2.0**-20, 1, 2.0**60, 2.0**130)
    values = [str(int(x * rng.choice(sizes))) for x in 2.0**BITS * rng.random(3) * (1, -1, 1)]
    n_s = some.F.table.n_s
    is_unary = isinstance(some.channel, rldp.UnaryChannel)
    spans = [range(n_s), range(3)] * 2 if is_unary else [range(6), range(n_s), range(n_s)]
    return [[*indices, *values] for indices in itertools.product(*spans)]


def malformed(rng: Rng, document: Document) -> tuple[str, Document]:
    """A false claim that is malformed too."""
    made = copy.deepcopy(document)
    claim, names = last(made), [c["name"] for c in made["schema"]["useful"]]
    ways: dict[str, Callable[[], Any]] = {
        "an unknown name": lambda: claim.update(knows=["z"]),
        "an unknown name more": lambda: claim.update(knows=[*claim["knows"], "z"]),
        "a sensitive name": lambda: claim.update(knows=["s"]),
        "a name twice": lambda: claim.update(knows=claim["knows"] * 2),
        "no name": lambda: claim.update(knows=[]),
        "a text": lambda: claim.update(knows=claim["knows"][0]),
        "null": lambda: claim.update(knows=None),
        "an object": lambda: claim.update(knows={claim["knows"][0]: True}),
        "names in reverse": lambda: claim.update(knows=names[::-1] if len(names) > 1 else ["z"]),
        "two columns of one name": lambda: made["schema"]["useful"].append(
            {"name": names[0], "labels": ["0"]}
        ),
        "another label": lambda: made["schema"]["useful"][0]["labels"].append("more"),
        "version 2": lambda: made.update(version=2),
        "version 1": lambda: made.update(version=1),
        "for a stranger": lambda: made["guarantees"].pop(0) and made.update(epsilon=_top(claim)),
        "knows beside": lambda: made.update(knows=claim.pop("knows")),
        "knows in the set": lambda: claim["uncertainty"].update(knows=claim.pop("knows")),
        "who knows U": lambda: claim.update(
            uncertainty={"kind": "given-u", "counts": claim["uncertainty"]["counts"]}
        ),
    }
    name = list(ways)[rng.integers(len(ways))]
    ways[name]()
    return f"malformed: {name}", made


def _top(claim: Document) -> float:
    levels = claim["levels"]
    rows = levels if isinstance(levels, list) else [[levels]]
    return max(x for row in rows for x in row if x != "inf")


# --- the run -------------------------------------------------------------------------------------


def false_claims(rng: Rng, some: Parted) -> Iterator[FalseClaim]:
    """Documents about one table, none of which is true: a witness says so of each."""
    good = some_good(some)
    others = other_truths(rng, some, good)
    for lie in LIES:
        for way, document, axes in lie(rng, some, good):
            if not is_false(rng, document, axes):
                continue
            if rng.random() < 0.2:  # true guarantees may stand before the false one
                document["guarantees"][1:1] = copy.deepcopy(others)
            for with_what, made in certificates(rng, some, document):
                yield FalseClaim(f"{way}, {with_what}", made)
            if rng.random() < 3 * _MALFORMED:
                yield FalseClaim(*malformed(rng, document))


def other_truths(rng: Rng, some: Parted, good: Document) -> list[Document]:
    """True guarantees for the same columns and for others."""
    known = tuple(i for i in range(len(some.sizes)) if rng.random() < 0.5)
    found = [good["guarantees"][1]]
    if known and known != some.known:
        there = Parted.of(some.channel, some.F, some.sizes, known)
        if np.isfinite(capped(there.truth)).any():
            found.append(some_good(there)["guarantees"][1])
    return found


def is_false(rng: Rng, document: Document, axes: Axes) -> bool:
    """Whether some distribution of the set of the last guarantee exceeds a level of it, exactly."""
    claim = last(document)
    return any(
        witnesses.exceeded(document, claim, axes, witness)
        for witness, _ in witnesses.search(rng, document, claim, axes)
    )


def whole_file(document: Document) -> str:
    """A file with all entries that a reader asks for, and the hash that fits."""
    entries = {"format": WHOLE, "name": "forged", "options": {}, "parameters": {}}
    return file_text(entries | {"optimality_gap": None, "rounding_loss": 0.0} | document)


def one_by_one(check: Callable[[Document], object]) -> Checker:
    """A checker of one document as one of many."""

    def each(found: Sequence[Document]) -> list[str | None]:
        return [None if forgeries.is_accepted(x, check) else "refused" for x in found]

    return each


def by_the_client(folder: Path, client: Path = JAVASCRIPT) -> Checker:
    """The checker of the JavaScript client, asked about whole files; these go to a folder."""

    def each(found: Sequence[Document]) -> list[str | None]:
        path = folder / "forged.jsonl"
        path.write_text("".join(json.dumps(json.loads(whole_file(x))) + "\n" for x in found))
        script = TESTS / "clients" / "client.mjs"
        command = [str(shutil.which("node")), str(script), str(client), "proveLines", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        outcomes: list[str] = json.loads(done.stdout)
        assert all(len(x) == 64 or x.startswith("ProtocolError: ") for x in outcomes), outcomes
        return [None if len(x) == 64 else x for x in outcomes]

    return each


def run(rng: Rng, checkers: dict[str, Checker], n_claims: int, batch: int = 500) -> Counter[str]:
    """Try false claims until there were so many; stop at the first that a checker accepts.

    True claims go to the same checkers: `true` counts them, `<name> proved` those that each proved.
    """
    tally: Counter[str] = Counter()
    lies: list[FalseClaim] = []
    truths: list[Document] = []

    def hand_in() -> None:
        for name, check in checkers.items():
            for lie, wrong in zip(lies, check([x.document for x in lies]), strict=True):
                if wrong is None:
                    raise AssertionError(f"{name} accepted ({lie.way}): {lie.document}")
            tally[f"{name} proved"] += sum(wrong is None for wrong in check(truths))
        tally["false"] += len(lies)
        tally["true"] += len(truths)
        tally.update(lie.way for lie in lies)
        lies.clear()
        truths.clear()

    for some in bases(rng):
        found = list(false_claims(rng, some))
        lies += [found[i] for i in rng.permutation(len(found))[:_PER_BASE]]
        if (
            not isinstance(some.channel, rldp.UnaryChannel)
            or some.channel.n_blocks == some.F.table.n_s
        ):
            truths.append(some_good(some))  # of cells, conditions are more than is needed
        if len(lies) >= batch or tally["false"] + len(lies) >= n_claims:
            hand_in()
        if tally["false"] >= n_claims:
            return tally
    raise AssertionError("bases never end")
