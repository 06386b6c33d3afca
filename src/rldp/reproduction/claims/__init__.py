"""What the paper says of its figures, each with a verdict from our rows; none is left out.

judging     how a claim is judged
synthetic   claims about PolyOpt and random tables
parameters  claims about the best parameters
real        claims about samples and real data
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rldp.reproduction.claims import parameters, real, synthetic
from rldp.reproduction.claims.judging import (
    CLAIMS,
    FAILS,
    HOLDS,
    OPEN,
    Claim,
    Data,
    Row,
    Verdict,
    judged,
)

__all__ = [
    "CLAIMS",
    "FAILS",
    "HOLDS",
    "OPEN",
    "Claim",
    "Verdict",
    "verdicts",
]

_SOURCES = (synthetic, parameters, real)  # claims register when their module is imported


def verdicts(tables: Mapping[str, Sequence[Row]]) -> list[Verdict]:
    """A verdict on every claim, from the rows of figures by the names of their files."""
    data = Data(tables)
    return [judged(one, data) for one in CLAIMS]
