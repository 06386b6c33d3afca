"""Parts of U: whose values someone knows, and which U values each of them leaves possible."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

from rldp.proof.parsing import ProofError, field


def groups_of(document: dict[str, Any], names: Any, n_u: int) -> list[list[int]]:
    """For each value of the known columns, in the order of its code, the U values that have it.

    U is the product of the useful columns of the schema, the first most significant.

    >>> columns = [{"name": "sex", "labels": ["f", "m"]}, {"name": "age", "labels": ["0", "1"]}]
    >>> groups_of({"schema": {"useful": columns}}, ["age"], 4)
    [[0, 2], [1, 3]]
    """
    sizes = _sizes(document, n_u)
    if not isinstance(names, list) or not names:
        raise ProofError("Expected knows as a list of one name or more of useful columns.")
    if not all(isinstance(name, str) and name in sizes for name in names):
        raise ProofError(f"Expected knows as names of useful columns, got {names!r:.80}.")
    if names != [name for name in sizes if name in names]:
        raise ProofError("Expected the names under knows once each, in the order of the schema.")
    groups: dict[tuple[int, ...], list[int]] = {}
    for u, codes in enumerate(product(*map(range, sizes.values()))):
        known = tuple(x for name, x in zip(sizes, codes, strict=True) if name in names)
        groups.setdefault(known, []).append(u)
    return [groups[known] for known in sorted(groups)]


def _sizes(document: dict[str, Any], n_u: int) -> dict[str, int]:
    """How many labels each useful column has."""
    columns = field(document, "schema.useful", list)
    sizes = {}
    for column in columns:
        sizes[field(column, "name", str)] = len(field(column, "labels", list))
    if len(sizes) < len(columns) or math.prod(sizes.values()) != n_u:
        raise ProofError(f"Expected useful columns of different names for {n_u} values of U.")
    return sizes
