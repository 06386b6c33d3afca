"""Documents of questionnaires that claim what they do not prove, or are not what they say."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rldp.intervals.questionnaire import check_questionnaire_with_intervals
from rldp.proof import ProofError
from rldp.proof.questionnaire import check_questionnaire

Document = dict[str, Any]
Forge = Callable[[Document, np.random.Generator], Document]


def accepted(document: Document) -> bool:
    """Whether one of the checkers takes it."""
    for check in (check_questionnaire, check_questionnaire_with_intervals):
        try:
            check(copy.deepcopy(document))
        except ProofError:
            continue
        return True
    return False


def forged(document: Document, n: int, seed: int) -> Iterator[tuple[str, Document]]:
    """n forgeries of all kinds in turn, with their names."""
    rng, names = np.random.default_rng(seed), sorted(FORGERIES)
    for i in range(n):
        name = names[i % len(names)]
        yield name, FORGERIES[name](copy.deepcopy(document), rng)


def _two(document: Document, rng: np.random.Generator) -> tuple[Document, Document]:
    i, j = rng.permutation(len(document["blocks"]))[:2]
    return document["blocks"][i], document["blocks"][j]


def another_blocks_proof(document: Document, rng: np.random.Generator) -> Document:
    """The guarantees of one block, with their certificates, over the table of another."""
    a, b = _two(document, rng)
    a["guarantees"] = copy.deepcopy(b["guarantees"])
    return document


def another_blocks_table(document: Document, rng: np.random.Generator) -> Document:
    a, b = _two(document, rng)
    a["channel"] = copy.deepcopy(b["channel"])
    return document


def a_block_twice(document: Document, rng: np.random.Generator) -> Document:
    a, b = _two(document, rng)
    b.clear()
    b.update(copy.deepcopy(a))
    return document


def a_column_in_two_blocks(document: Document, rng: np.random.Generator) -> Document:
    a, b = _two(document, rng)
    b["schema"]["useful"][0]["name"] = a["schema"]["useful"][0]["name"]
    return document


def a_sensitive_column_as_useful(document: Document, rng: np.random.Generator) -> Document:
    a, _ = _two(document, rng)
    a["schema"]["useful"][0]["name"] = a["schema"]["sensitive"][0]["name"]
    return document


def shares_by_record(document: Document, rng: np.random.Generator) -> Document:
    """A share for each value of S."""
    of = document["shares"]["of"]
    n_s = len(document["blocks"][0]["schema"]["sensitive"][0]["labels"])
    document["shares"]["of"] = [list(of) for _ in range(n_s)]
    if rng.random() < 0.5:
        document["shares"]["of"] = {"low": of, "high": of[::-1]}
    return document


def shares_beside(document: Document, rng: np.random.Generator) -> Document:
    """Other shares in an entry that nobody reads."""
    place = [document["shares"], document][int(rng.integers(2))]
    place["given"] = {"income": list(document["shares"]["of"][::-1])}
    return document


def shares_that_do_not_sum(document: Document, rng: np.random.Generator) -> Document:
    of = document["shares"]["of"]
    i = int(rng.integers(len(of)))
    of[i] = str(int(of[i]) + int(rng.choice([-1, 1]) * rng.integers(1, 2**20)))
    return document


def a_share_of_nothing(document: Document, rng: np.random.Generator) -> Document:
    of = document["shares"]["of"]
    i, j = rng.permutation(len(of))[:2]
    of[i], of[j] = "0", str(int(of[i]) + int(of[j]))
    if rng.random() < 0.5:
        of[i], of[j] = "-5", str(int(of[j]) + 5)
    return document


def a_share_too_few(document: Document, rng: np.random.Generator) -> Document:
    of = document["shares"]["of"]
    i = int(rng.integers(len(of)))
    last = of.pop(i)
    of[0] = str(int(of[0]) + int(last))
    return document


def a_lower_level(document: Document, rng: np.random.Generator) -> Document:
    line = str(rng.choice(["levels", "given_u", "all"]))
    document[line] = document[line] * float(rng.uniform(0.5, 1 - 1e-9))
    if line == "levels":
        document["epsilon"] = document["levels"]
    return document


def another_epsilon(document: Document, rng: np.random.Generator) -> Document:
    document["epsilon"] *= float(rng.choice([0.5, 0.999999, 1.000001, 2]))
    return document


def no_joint_line(document: Document, rng: np.random.Generator) -> Document:  # noqa: ARG001  # every forgery takes both
    del document["levels"]
    return document


def columns_of_one(document: Document, rng: np.random.Generator) -> Document:
    """A level of the one sensitive column that is not that of the report."""
    name = document["blocks"][0]["schema"]["sensitive"][0]["name"]
    document["columns"] = {name: float(rng.uniform(0.1, 1))}
    return document


def other_labels_of_s(document: Document, rng: np.random.Generator) -> Document:
    a, _ = _two(document, rng)
    labels = a["schema"]["sensitive"][0]["labels"]
    labels[0], labels[1] = labels[1], labels[0]
    return document


def another_sensitive_column(document: Document, rng: np.random.Generator) -> Document:
    a, _ = _two(document, rng)
    a["schema"]["sensitive"][0]["name"] = "wealth"
    return document


def a_smaller_alpha(document: Document, rng: np.random.Generator) -> Document:
    document["alpha"] *= float(rng.uniform(0.1, 0.89))
    return document


def a_layer_left_out_of_a_block(document: Document, rng: np.random.Generator) -> Document:
    """A reader is promised something that one block does not promise."""
    a, _ = _two(document, rng)
    a["guarantees"] = a["guarantees"][:1]
    return document


def another_promise(document: Document, rng: np.random.Generator) -> Document:
    other = ["two reports per person", "one report per person, of one block", "", 1]
    document["promise"] = other[int(rng.integers(len(other)))]
    return document


def a_steeper_table(document: Document, rng: np.random.Generator) -> Document:
    """Units moved between two outputs of one row, so that they tell more than is claimed."""
    a, _ = _two(document, rng)
    channel = a["channel"]
    for rows in channel.values():
        if isinstance(rows, list):
            row = rows
            while isinstance(row[0], list):
                row = row[int(rng.integers(len(row)))]
            order = sorted(range(len(row)), key=lambda i: int(row[i]))
            low, high = order[0], order[-1]
            row[high] = str(int(row[high]) + int(row[low]))
            row[low] = "0"
    return document


def no_blocks(document: Document, rng: np.random.Generator) -> Document:
    document["blocks"] = [[], {}, None, [None]][int(rng.integers(4))]
    return document


FORGERIES: dict[str, Forge] = {
    forge.__name__: forge
    for forge in (
        another_blocks_proof,
        another_blocks_table,
        a_block_twice,
        a_column_in_two_blocks,
        a_sensitive_column_as_useful,
        shares_by_record,
        shares_beside,
        shares_that_do_not_sum,
        a_share_of_nothing,
        a_share_too_few,
        a_lower_level,
        another_epsilon,
        no_joint_line,
        columns_of_one,
        other_labels_of_s,
        another_sensitive_column,
        a_smaller_alpha,
        a_layer_left_out_of_a_block,
        another_promise,
        a_steeper_table,
        no_blocks,
    )
}
