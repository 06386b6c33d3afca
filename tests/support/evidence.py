"""Sets that stand on evidence, and forged claims about them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import rldp
from rldp.channel import DenseChannel
from rldp.designing.certify import certified
from rldp.proof import ProofError, check
from rldp.protocol import documents
from rldp.protocol.guarantees import CertifiedGuarantee, proof_document
from rldp.uncertainty import EvidenceSet, Guarantee
from tests.support.files import DATA

CASES: list[dict[str, Any]] = json.loads((Path(DATA) / "reports_cases.json").read_text())


def set_of(case: dict[str, Any]) -> EvidenceSet:
    return rldp.ReportSet(np.array(case["M"]), counts=case["counts"], alpha=case["alpha"])


def claim(F: EvidenceSet, Q: np.ndarray, epsilon: float) -> dict[str, Any]:
    """A proved document of a channel over F."""
    table = certified(DenseChannel(Q), [Guarantee(F, epsilon)])
    return document(F, table.channel, table.integers, table.bits, table.certificate, epsilon)


def document(F, channel, integers, bits, certificate, epsilon) -> dict[str, Any]:
    guarantee = CertifiedGuarantee(Guarantee(F, epsilon), certificate)
    return {
        "format": "rldp-protocol",
        "version": 1,
        "name": "test",
        "epsilon": float(epsilon),
        "schema": documents.schema_document(F.table.schema),
        "channel": documents.channel_document(channel, integers, bits),
        **proof_document([guarantee]),
        "options": {},
        "parameters": {},
        "optimality_gap": None,
        "rounding_loss": 0.0,
    }


def is_accepted(made: dict[str, Any]) -> bool:
    try:
        check(made)
    except ProofError:
        return False
    return True


def forgeries(
    honest: dict[str, Any], joint: float, random: np.random.Generator
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Claims that are false, whatever F is meant: with levels below what one P in F reaches.

    The counts of reports, the first protocol, the outputs of the second, sizes, multipliers and the
    distribution that shows that F is not empty are changed in turn.
    """
    item_at = ("uncertainty", "evidence", 0)
    while True:
        made = copy.deepcopy(honest)
        kind = str(
            random.choice(["level", "size", "multipliers", "empty", "signs", "short", "row"])
        )
        if kind == "level":  # below what is true
            made["epsilon"] = float(joint * random.uniform(0.2, 0.999))
        elif kind == "size":  # a ball that is too small for its level
            made["certificate"]["sizes"][0] = [str(random.integers(1, 10**6)) + "/1000000"]
            made["epsilon"] = float(joint * random.uniform(0.2, 0.999))
        elif kind == "multipliers":
            made["epsilon"] = float(joint * random.uniform(0.5, 0.999))
            for name in ("upper", "lower"):
                rows = made["certificate"]["multipliers"][name]
                for row in rows:
                    for i, text in enumerate(row):
                        numbers = [int(x) for x in text.split()]
                        scale = [int(x) for x in random.integers(-(2**40), 2**40, len(numbers))]
                        factor = int(random.choice([0, 1, 2, -1]))
                        mixed = (
                            factor * x + (abs(x) >> 41) * y
                            for x, y in zip(numbers, scale, strict=True)
                        )
                        row[i] = " ".join(map(str, mixed))
        elif kind == "empty":  # reports that no distribution explains prove everything
            counts = made[item_at[0]][item_at[1]][0]["counts"]
            worst = int(random.integers(len(counts)))
            made["uncertainty"]["evidence"][0]["counts"] = [
                sum(counts) if y == worst else 0 for y in range(len(counts))
            ]
            for name in ("upper", "lower"):  # Farkas: 0 ≤ M a, and a·z < 0 all over the ball
                made["certificate"]["multipliers"][name] = [
                    [_farkas(made, worst, row) for row in rows]
                    for rows in made["certificate"]["multipliers"][name]
                ]
            made["epsilon"] = float(joint * random.uniform(0.01, 0.5))
        elif kind == "signs":
            made["epsilon"] = float(joint * random.uniform(0.2, 0.999))
            for rows in made["certificate"]["multipliers"].values():
                for row in rows:
                    for i, text in enumerate(row):
                        *a, mu, nu, kappa = (int(x) for x in text.split()) if text else (0,) * 4
                        row[i] = " ".join(map(str, [*a, mu, -abs(nu) * 10, kappa])) if text else ""
        elif kind == "short":
            for rows in made["certificate"]["multipliers"].values():
                rows[0][0] = rows[0][0] + " 1"
            made["epsilon"] = float(joint * 0.999)
        else:  # one S value always has one output: another protocol with the old proof
            Q = made["channel"]["Q"]
            s, y = int(random.integers(len(Q))), int(random.integers(len(Q[0][0])))
            one = str(2 ** made["channel"]["bits"])
            Q[s] = [[one if i == y else "0" for i in range(len(row))] for row in Q[s]]
        yield kind, made


def _farkas(made: dict[str, Any], worst: int, _: str) -> str:
    k = len(made["uncertainty"]["evidence"][0]["counts"])
    size = 2**70
    a = [0 if y == worst else size for y in range(k)]
    return " ".join(map(str, [*a, size, size, 0]))
