"""Whether the file of a questionnaire proves what it says as a whole.

A person makes one report (j, y): block j is drawn with probability w_j, independently of the
record, and y by the protocol of block j from S and the useful columns of the block. So

    P(j, y | s) = w_j P(y | s, block j)      for every distribution of all columns,

and where every block bounds P(y|s) by e^E[s,s'] P(y|s'), so does the report as a whole: nothing is
drawn twice, and nothing composes. The same holds for each reader that all blocks promise
something about. What is claimed is therefore, for every pair (s, s'), the largest level of any
block; a pair without a level in some block has none.

Readers. `levels` is for someone who knows nothing of the person but that the truth is in the sets
of all blocks; `given_u` for someone who knows the answers to all useful questions, given which a
report of block j depends on the block's own columns alone; `all` whatever is true. The last implies
the one before.

Several sensitive columns. P(y|s_i) is a mean of P(y|s) over the s with this value of column i. So a
column has level e wherever all pairs (s, s') that differ in it have at most e. The levels of pairs
speak of all columns together, the joint line; those of single columns follow from it.

Shares are integers in units of 2^-bits, listed in the file: numbers that no record can change.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from rldp.proof import Proof, check
from rldp.proof.levels import MOST, Levels, read_levels
from rldp.proof.parsing import NATURAL, ProofError, field, integers, only, positive

READERS = "given_u", "all"
PROMISE = "one report per person, of one block, drawn independently of the answers"
_ENTRIES = {
    *("format", "version", "name", "epsilon", "promise", "levels", "columns", "alpha"),
    *("shares", "blocks", *READERS),
}
_MOST_BLOCKS, _MOST_BITS = 1_000, 62
_KINDS = {"given_u": ("given-u", "all"), "all": ("all",)}


@dataclass(frozen=True)
class QuestionnaireProof:
    """What was established of a questionnaire: its largest level, and the proof of every block."""

    epsilon: Fraction
    blocks: tuple[Proof, ...]
    shares: tuple[Fraction, ...]
    readers: tuple[str, ...]  # those of `READERS` that all blocks promise something about

    @property
    def conditions(self) -> int:
        """Inequalities of all blocks."""
        return sum(block.conditions for block in self.blocks)

    @property
    def slack(self) -> float:
        """The least 1 - lhs/rhs of all."""
        return min(block.slack for block in self.blocks)


def check_questionnaire(document: dict[str, Any]) -> QuestionnaireProof:
    """Prove every claim of a questionnaire's document, or raise ProofError."""
    only(document, _ENTRIES, "the questionnaire")
    if field(document, "promise", str) != PROMISE:
        raise ProofError(f"Expected the promise {PROMISE!r}: no other is known.")
    listed = field(document, "blocks", list)
    if not 1 <= len(listed) <= _MOST_BLOCKS:
        raise ProofError(f"Expected 1 to {_MOST_BLOCKS:,} blocks, got {len(listed)}.")
    shares = _shares(document, len(listed))
    sensitive = _sensitive(listed)
    proofs = tuple(_proved(j, block) for j, block in enumerate(listed))
    n_s = 1
    for column in sensitive:
        n_s *= len(column["labels"])
    joint = _claimed(document, "levels", n_s)
    _keep(joint, [proof.guarantees[0].levels for proof in proofs], "levels")
    if joint.epsilon != positive(document.get("epsilon"), "epsilon", MOST):
        raise ProofError("Expected epsilon as the largest level.")
    readers = tuple(name for name in READERS if name in document)
    for name in readers:
        levels = [
            _of_reader(name, block, proof) for block, proof in zip(listed, proofs, strict=True)
        ]
        _keep(_claimed(document, name, n_s), levels, name)
    _check_columns(document, sensitive, joint)
    _check_alpha(document, listed)
    return QuestionnaireProof(joint.epsilon, proofs, shares, readers)


def _shares(document: dict[str, Any], n: int) -> tuple[Fraction, ...]:
    """Probabilities of the blocks: positive integers that sum to 2^bits exactly."""
    only(field(document, "shares", dict), ("bits", "of"), "shares")
    bits = field(document, "shares.bits", int)
    if not 1 <= bits <= _MOST_BITS:
        raise ProofError(f"Expected 1 to {_MOST_BITS} bits at shares.bits, got {bits}.")
    shares: list[int] = integers(document, "shares.of", [n], pattern=NATURAL)
    if min(shares) < 1 or sum(shares) != 2**bits:
        raise ProofError(f"Expected {n} shares above 0 that sum to 2^{bits} exactly.")
    return tuple(Fraction(share, 2**bits) for share in shares)


def _sensitive(blocks: list[Any]) -> list[Any]:
    """The sensitive columns: the same with the same labels in all blocks; and no column twice."""
    first: list[Any] = field(blocks[0], "schema.sensitive", list)
    names = [_column_name(column) for column in first]
    for j, block in enumerate(blocks):
        if field(block, "schema.sensitive", list) != first:
            raise ProofError(f"Block {j} has other sensitive columns or labels than block 0.")
        useful = [_column_name(column) for column in field(block, "schema.useful", list)]
        if not useful:
            raise ProofError(f"Expected a useful column in block {j}, there is none.")
        names += useful
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise ProofError(f"Expected every column in one block, {twice!r:.80} is in two.")
    return first


def _column_name(column: Any) -> str:
    labels = field(column, "labels", list)
    if not labels or not all(isinstance(label, str) for label in labels):
        raise ProofError("Expected labels of every column as texts.")
    name: str = field(column, "name", str)
    return name


def _proved(j: int, block: Any) -> Proof:
    try:
        return check(block)
    except ProofError as error:
        raise ProofError(f"Block {j}: {error}") from None


def _claimed(document: dict[str, Any], name: str, n_s: int) -> Levels:
    if name not in document:
        raise ProofError(f"Expected the line {name!r} of all sensitive columns together.")
    return read_levels(document[name], n_s, name)


def _keep(claimed: Levels, proved: list[Levels], name: str) -> None:
    """Refuse a level that some block does not keep."""
    for j, levels in enumerate(proved):
        if len(levels.exact) != len(claimed.exact):
            raise ProofError(f"Block {j} has another number of S values than {name}.")
        for s1, row in enumerate(claimed.exact):
            for s2, level in enumerate(row):
                kept = levels.exact[s1][s2]
                if level is not None and (kept is None or kept > level):
                    raise ProofError(f"Block {j} does not keep {name} for s = {s1} against {s2}.")


def _of_reader(name: str, block: dict[str, Any], proof: Proof) -> Levels:
    """The levels that a block promises about a reader: the smallest of all that speak of it."""
    if "guarantees" in block:
        kinds = [claim["uncertainty"]["kind"] for claim in block["guarantees"]]
    else:
        kinds = [block["uncertainty"]["kind"]]
    found = [
        each.levels.exact
        for kind, each in zip(kinds, proof.guarantees, strict=True)
        if kind in _KINDS[name] and not each.knows
    ]
    if not found:
        raise ProofError(f"A block promises nothing that the line {name!r} could rest on.")
    n_s = len(found[0])
    return Levels(
        tuple(
            tuple(_least(levels[s1][s2] for levels in found) for s2 in range(n_s))
            for s1 in range(n_s)
        )
    )


def _least(levels: Any) -> Fraction | None:
    promised = [level for level in levels if level is not None]
    return min(promised) if promised else None


def _check_columns(document: dict[str, Any], sensitive: list[Any], joint: Levels) -> None:
    """The levels of single sensitive columns, where there are several."""
    names = [column["name"] for column in sensitive]
    if len(names) < 2:
        if "columns" in document:
            raise ProofError("Expected no levels of columns: there is one sensitive column.")
        return
    claimed = field(document, "columns", dict)
    if sorted(claimed) != sorted(names):
        raise ProofError("Expected a level for each sensitive column at columns.")
    sizes = [len(column["labels"]) for column in sensitive]
    for i, name in enumerate(names):
        most = None if claimed[name] == "inf" else positive(claimed[name], f"columns.{name}", MOST)
        after = 1
        for size in sizes[i + 1 :]:
            after *= size
        for s1, row in enumerate(joint.exact):
            for s2, level in enumerate(row):
                differs = s1 // after % sizes[i] != s2 // after % sizes[i]
                if differs and most is not None and (level is None or level > most):
                    raise ProofError(f"The joint levels do not imply that of {name!r:.80}.")


def _check_alpha(document: dict[str, Any], blocks: list[Any]) -> None:
    """The chance that any first set misses the truth is at most the sum of their α."""
    if "alpha" not in document:
        return
    claimed, total = positive(document["alpha"], "alpha", 1), Fraction(0)
    for block in blocks:
        first = block["guarantees"][0] if "guarantees" in block else block
        F = first["uncertainty"]
        if F["kind"] == "all":
            continue
        total += positive(F.get("alpha"), "alpha of a block", 1)
    if total > claimed:
        raise ProofError("The sets of the blocks miss the truth more often than alpha says.")
