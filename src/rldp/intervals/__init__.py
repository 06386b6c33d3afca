"""A second opinion on a protocol file: the claim of `rldp.proof`, proved in another way.

The two checkers read the same document and share nothing else but their exception. The multipliers
of the file are not used here, only their form is checked: every bound is searched for anew, and
then proved by a lemma that holds for whatever the search has found (docs/guarantee.md, Section 10).
Numbers are balls of python-flint's `arb` that enclose the true value; e^ε, the χ² tail and all
powers and logarithms come from that library. An inequality counts only if all points of the two
balls satisfy it.

reading          values of a document, checked
uncertainty      F, with a proof of its size
channels         the claim as inequalities between means
sets             what a set says of means
planes           sets with one budget
prices           the search for the multipliers of these
total_variation  balls of total variation
polytope         mixtures of distributions
balls            real numbers enclosed by balls
work             how much of it there may be
"""

from __future__ import annotations

from typing import Any

from rldp.errors import MissingExtraError
from rldp.intervals import balls, work
from rldp.intervals.channels import Channel, Claim, read_channel
from rldp.intervals.reading import entries, exact, need, read_levels, read_parts
from rldp.intervals.sets import GivenU
from rldp.intervals.uncertainty import read_set
from rldp.proof import ProofError

__all__ = ["check_with_intervals"]

_ENTRIES = {"uncertainty", "levels", "knows", "certificate"}  # of a guarantee


def check_with_intervals(document: dict[str, Any]) -> None:
    """Prove every claim of a protocol document, or raise ProofError.

    >>> Q = [[["3", "1"]], [["1", "3"]]]  # randomised response on one bit, in quarters: e^ε = 3
    >>> channel = {"kind": "dense", "bits": 2, "Q": Q}
    >>> document = {"uncertainty": {"kind": "all", "counts": [[1], [1]]}, "channel": channel}
    >>> check_with_intervals({"epsilon": 1.0986123, **document})
    """
    if balls.flint is None:
        message = "Interval arithmetic needs python-flint: pip install 'rldp[intervals]'."
        raise MissingExtraError(message)
    with balls.flint.ctx.workprec(balls.PRECISION), work.budget(document):
        try:
            _check(document)
        except (AttributeError, IndexError, KeyError, TypeError) as error:
            raise ProofError(
                "The document is malformed: a part is missing or misplaced."
            ) from error


def _check(document: dict[str, Any]) -> None:
    channels: dict[tuple[int, int], Channel] = {}
    for place, claim in enumerate(listed_claims(document)):
        F = read_set(claim)
        shape = len(F.counts), len(F.counts[0])
        work.spend(20 * shape[0] ** 2)
        levels = read_levels(claim["levels"], shape[0])
        if place == 0:
            largest = max(levels.values())
            need(largest == exact(document["epsilon"]), "epsilon is not the first's largest level")
            need("knows" not in claim, "the first guarantee is of someone who knows a part of U")
        of_level = {level: balls.ball(level).exp() for level in set(levels.values())}
        factors = {pair: of_level[level] for pair, level in levels.items()}
        if shape not in channels:
            channels[shape] = read_channel(document["channel"], *shape)
        channel = channels[shape]
        proof: Any = claim.get("certificate")
        if "knows" not in claim:
            Claim(F, factors, channel, proof).prove()
            continue
        need(not isinstance(F, GivenU), "someone who knows U knows its parts")
        parts = read_parts(document["schema"], claim["knows"], shape[1])
        proofs = entries(proof["parts"], len(parts))
        for columns, part_proof in zip(parts, proofs, strict=True):
            Claim(F.within(columns), factors, channel.within(columns), part_proof).prove()


def listed_claims(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Each with its set, levels and certificate; a document without a list has one."""
    if "guarantees" not in document:
        return [{**document, "levels": document["epsilon"]}]
    beside = {"uncertainty", "certificate", "knows"} & set(document)
    need(not beside, "a part of a guarantee stands beside the guarantees")
    claims = document["guarantees"]
    need(isinstance(claims, list) and len(claims) > 0, "there is no guarantee")
    odd = {key for claim in claims for key in claim} - _ENTRIES
    need(not odd, "a guarantee has an entry that is not read")
    return list(claims)
