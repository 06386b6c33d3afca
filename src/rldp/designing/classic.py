"""The classical designs for one yes-no question, as protocols with an exact proof.

Warner (1965) and its relatives, by the number of throws out of D that mean something:

- crosswise (Yu, Tian, Tang 2008): "my answer is yes" and "my throw is among `hit`": both or neither
  (A), or only one (B);
- forced-response (Boruch 1971): `hit` throws force yes, `forced_no` throws force no;
- unrelated-question (Greenberg 1969): with `own` throws the question is answered, with the others
  whether the throw is among `hit`;
- triangular (Yu, Tian, Tang 2008): A only for no and not `hit`. A proves no: ε is infinite in
  that direction, and finite in the other.
"""

from __future__ import annotations

import math

import numpy as np

from rldp.channel import DenseChannel
from rldp.checks import checked_integer
from rldp.designing.certify import BITS, proved
from rldp.designing.problem import Found
from rldp.errors import ParameterError
from rldp.protocol.dice import CLASSIC, MOST_DENOMINATOR, with_remainder
from rldp.protocol.release_protocol import ReleaseProtocol
from rldp.tables.schema import Column, Schema
from rldp.tables.table import Table
from rldp.uncertainty import AllDistributions, Guarantee


def classic(
    kind: str,
    column: str = "S",
    labels: tuple[str, str] = ("no", "yes"),
    *,
    denominator: int = 6,
    hit: int = 1,
    forced_no: int | None = None,
    own: int | None = None,
) -> ReleaseProtocol:
    """A classical design, with the exact ε that its table has.

    Args:
        kind: "crosswise", "forced-response", "unrelated-question" or "triangular".
        column: the question, as a column is called.
        labels: of no and of yes.
        denominator: D, what is thrown.
        hit: throws of the second statement, throws that force yes, or of the unrelated question.
        forced_no: forced-response: throws that force no; as many as `hit` unless said otherwise.
        own: unrelated-question: throws with which the sensitive question is answered.

    >>> p = classic("forced-response")
    >>> round(p.epsilon, 4), p.parameters["denominator"]
    (1.6094, 6)
    """
    D = checked_integer(denominator, "denominator", 2, MOST_DENOMINATOR)
    h = checked_integer(hit, "hit", 1, D - 1)
    match kind:
        case "crosswise":
            answers = [[D - h, h], [h, D - h]]
        case "forced-response":
            no = h if forced_no is None else checked_integer(forced_no, "forced_no", 1, D - 1)
            answers = [[D - h, h], [no, D - no]]
        case "unrelated-question":
            if own is None:
                raise ParameterError(
                    "Expected own, the throws with which the sensitive question is answered.",
                    argument="own",
                )
            asked = checked_integer(own, "own", 1, D - 1)
            answers = [[D - h, h], [D - asked - h, asked + h]]
        case "triangular":
            answers = [[D - h, h], [0, D]]
        case _:
            raise ParameterError(
                f"Expected a design among {', '.join(CLASSIC)}, got {kind!r}.", argument="kind"
            )
    n = np.array(answers)[:, None]
    if n.min() < 0 or (n.min() == 0 and kind != "triangular") or (n[0] == n[1]).all():
        raise ParameterError(
            f"Expected throws that leave some for every answer and tell no from yes, out of {D}: "
            f"these give {answers[0]} for {labels[0]!r} and {answers[1]} for {labels[1]!r}.",
            argument="hit",
        )
    schema = Schema((Column(column, tuple(labels)),))
    table = Table.from_schema([[1], [1]], schema)
    levels = np.full((2, 2), np.inf)
    for s, other in ((0, 1), (1, 0)):
        if (n[other] > 0).all():
            ratio = max(a / b for a, b in zip(n[s, 0].tolist(), n[other, 0].tolist(), strict=True))
            levels[s, other] = math.log(ratio) * (1 + 2**-50)  # rounded up
    is_alike = levels[0, 1] == levels[1, 0]
    guarantee = Guarantee(AllDistributions(table), levels[0, 1] if is_alike else levels)
    integers = {"Q": with_remainder(n, D)}
    parameters = {"outputs": 2, "denominator": D}
    channel = DenseChannel.from_integers(integers, BITS)
    found = Found(channel, name=kind, parameters=parameters, integers=integers)
    return proved(found, [guarantee])
