"""A second opinion on the file of a questionnaire: each block in intervals, and the whole anew.

The report (j, y) has the law w_j P(y|s, block j). A claim of a ratio holds for it iff it holds in
every block, so what is claimed of a pair must be at least what each block claims of it and proves.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import accumulate
from typing import Any

from rldp.intervals import check_with_intervals, listed_claims
from rldp.intervals.reading import entries, exact, integer, need, read_levels
from rldp.proof import ProofError

_KNOWN = {
    *("alpha", "all", "blocks", "columns", "epsilon", "format", "given_u", "levels", "name"),
    *("promise", "shares", "version"),
}
_WORDS = "one report per person, of one block, drawn independently of the answers"
_MOST_DIGITS = 20
_RESTS_ON = {"given_u": {"given-u", "all"}, "all": {"all"}}

Pairs = dict[tuple[int, int], Fraction]


def check_questionnaire_with_intervals(document: dict[str, Any]) -> None:
    """Prove every claim of a questionnaire's document, or raise ProofError."""
    try:
        _check(document)
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise ProofError(
            "The questionnaire is malformed: a part is missing or misplaced."
        ) from error


def _check(document: dict[str, Any]) -> None:
    need(set(document) <= _KNOWN, "the questionnaire has an entry that is not read")
    need(document["promise"] == _WORDS, "the promise is another one")
    blocks = document["blocks"]
    need(isinstance(blocks, list) and 0 < len(blocks) <= 1000, "there are no blocks, or too many")
    _check_shares(document["shares"], len(blocks))
    columns = blocks[0]["schema"]["sensitive"]
    seen: set[str] = set()
    for block in blocks:
        schema = block["schema"]
        need(schema["sensitive"] == columns, "two blocks have different sensitive columns")
        names = [column["name"] for column in schema["useful"]]
        need(len(names) > 0, "a block has no useful column")
        need(all(column["labels"] for column in schema["useful"]), "a column has no labels")
        need(seen.isdisjoint(names) and len(set(names)) == len(names), "a column is in two blocks")
        seen.update(names)
        check_with_intervals(block)
    sensitive = [column["name"] for column in columns]
    need(seen.isdisjoint(sensitive), "a column is sensitive and useful")
    sizes = [len(entries(column["labels"], len(column["labels"]))) for column in columns]
    n_s = math.prod(sizes)
    joint = read_levels(document["levels"], n_s)
    need(max(joint.values()) == exact(document["epsilon"]), "epsilon is not the largest level")
    for block in blocks:
        first = listed_claims(block)[0]
        need(len(first["uncertainty"]["counts"]) == n_s, "a block has another number of S values")
        _covered(joint, [read_levels(first["levels"], n_s)])
        for reader, kinds in _RESTS_ON.items():
            if reader in document:
                proved = [
                    read_levels(claim["levels"], n_s)
                    for claim in listed_claims(block)
                    if claim["uncertainty"]["kind"] in kinds and "knows" not in claim
                ]
                _covered(read_levels(document[reader], n_s), proved)
    _check_columns(document, sensitive, sizes, joint)
    _check_alpha(document, blocks)


def _check_shares(shares: Any, n: int) -> None:
    need(set(shares) == {"bits", "of"}, "the shares have an entry that is not read")
    bits = shares["bits"]
    need(type(bits) is int and 0 < bits < 63, "the unit of the shares is out of range")
    numbers = [integer(text, _MOST_DIGITS) for text in entries(shares["of"], n)]
    need(min(numbers) > 0, "a block is never drawn")
    need(list(accumulate(numbers))[-1] == 2**bits, "the shares do not sum to 1")


def _covered(claimed: Pairs, proved: list[Pairs]) -> None:
    """Whether one of the promises of a block is at most the claimed level, for every pair."""
    for pair, level in claimed.items():
        need(
            any(pair in levels and levels[pair] <= level for levels in proved),
            f"a block does not keep the level of s = {pair[0]} against {pair[1]}",
        )


def _check_columns(
    document: dict[str, Any], names: list[str], sizes: list[int], joint: Pairs
) -> None:
    need(len(set(names)) == len(names), "two sensitive columns have one name")
    if len(names) == 1:
        need("columns" not in document, "levels of columns stand beside one column")
        return
    claimed = document["columns"]
    need(set(claimed) == set(names), "the sensitive columns do not have a level each")
    digits = [_digits(code, sizes) for code in range(math.prod(sizes))]
    for place, name in enumerate(names):
        if claimed[name] == "inf":
            continue
        most = exact(claimed[name])
        for s1, of_1 in enumerate(digits):
            for s2, of_2 in enumerate(digits):
                if of_1[place] != of_2[place]:
                    kept = joint.get((s1, s2))
                    need(kept is not None and kept <= most, "a column has a lower level than pairs")


def _digits(code: int, sizes: list[int]) -> list[int]:
    """The labels of a code, the first column the most significant."""
    found = []
    for size in reversed(sizes):
        code, digit = divmod(code, size)
        found.append(digit)
    return found[::-1]


def _check_alpha(document: dict[str, Any], blocks: list[Any]) -> None:
    if "alpha" not in document:
        return
    first = [listed_claims(block)[0]["uncertainty"] for block in blocks]
    alphas = [exact(F["alpha"]) for F in first if F["kind"] != "all"]
    need(sum(alphas, Fraction(0)) <= exact(document["alpha"]) <= 1, "alpha is too small")
