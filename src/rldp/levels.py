"""Levels for ordered pairs of S values: who is protected against being told apart from whom.

Each function gives an array E of shape (n_s, n_s) for `rldp.design(F, epsilon=E)` and
`rldp.Guarantee(F, E)`: no output is more than e^E[s, s'] times as likely under s as under s'. A
level of ∞ promises nothing about its pair: an output may prove s against s'.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from rldp._types import Array
from rldp.checks import checked_epsilon, checked_tuple, shown
from rldp.errors import ParameterError
from rldp.tables.schema import Schema, label_text


def exempt(schema: Schema, values: Iterable[object], epsilon: float) -> Array:
    """Some S values need no protection: an output may prove them (utility-optimised LDP).

    Every other value keeps level ε against all values, the exempt ones included.

    Args:
        schema: the alphabets.
        values: the S values that may become known, such as ["none"].
        epsilon: level of the other values, in nats.

    >>> from rldp import Table
    >>> schema = Table([[1], [1], [1]], sensitive=["flu", "hiv", "none"]).schema
    >>> exempt(schema, ["none"], 1.0)
    array([[inf,  1.,  1.],
           [ 1., inf,  1.],
           [inf, inf, inf]])
    """
    E = _uniform(schema, epsilon)
    E[_codes(schema, values)] = np.inf
    return _checked(E)


def one_sided(schema: Schema, values: Iterable[object], epsilon: float) -> Array:
    """Only some S values are protected: no output proves them, an output may prove the others.

    With S in ("yes", "no") and "yes" protected, a person with "yes" always reports "yes", a person
    with "no" does so with chance e^-ε, and a report "no" is always true.

    Args:
        schema: the alphabets.
        values: the S values that must not become known, such as ["yes"].
        epsilon: their level, in nats.
    """
    _check_schema(schema)
    codes = _codes(schema, values)
    return exempt(schema, [x for i, x in enumerate(schema.s_labels) if i not in codes], epsilon)


def blocks(schema: Schema, groups: Iterable[Iterable[object]], epsilon: float) -> Array:
    """S values of one group are protected against each other; the group itself may become known.

    Args:
        schema: the alphabets.
        groups: lists of S values; values that stand in no list make a group of their own each.
        epsilon: level within a group, in nats.
    """
    E = _uniform(schema, epsilon)
    group = np.arange(schema.n_s) + schema.n_s
    for g, values in enumerate(checked_tuple(groups, "groups as lists of S values")):
        for code in _codes(schema, values):
            if group[code] < schema.n_s:
                raise ParameterError(
                    f"Expected every S value in one group, got {schema.s_labels[code]!r} in two."
                )
            group[code] = g
    return _checked(np.where(group[:, None] == group, E, np.inf))


def metric(
    schema: Schema, epsilon: float, distance: Callable[[str, str], float] | None = None
) -> Array:
    """The level grows with the distance of the two S values: ε · d(s, s').

    Args:
        schema: the alphabets.
        epsilon: level at distance 1, in nats.
        distance: d of two labels; by default how many places they stand apart in the schema, for
            ordered bands such as incomes.

    >>> from rldp import Table
    >>> schema = Table([[1], [1], [1]], sensitive=["low", "middle", "high"]).schema
    >>> metric(schema, 0.5)[0]
    array([inf, 0.5, 1. ])
    """
    _check_schema(schema)
    epsilon, labels = checked_epsilon(epsilon), schema.s_labels
    if distance is None:
        places = np.arange(len(labels))
        d = np.abs(places[:, None] - places).astype(float)
    else:
        d = np.array([[0.0 if a == b else float(distance(a, b)) for b in labels] for a in labels])
    np.fill_diagonal(d, np.inf)
    if not (d > 0).all():
        i, j = np.argwhere(~(d > 0))[0].tolist()
        raise ParameterError(
            f"Expected a distance above 0 between different S values, got {d[i, j]} for "
            f"{labels[i]!r} and {labels[j]!r}."
        )
    return np.asarray(epsilon * d)


def _uniform(schema: Schema, epsilon: float) -> Array:
    _check_schema(schema)
    E = np.full((schema.n_s, schema.n_s), checked_epsilon(epsilon))
    np.fill_diagonal(E, np.inf)
    return E


def _check_schema(schema: object) -> None:
    if not isinstance(schema, Schema):
        raise ParameterError(f"Expected a schema, such as table.schema, got {shown(schema)}.")


def _checked(E: Array) -> Array:
    if not np.isfinite(E).any():
        raise ParameterError(
            "Expected a pair of S values that is protected; these levels are ∞ for all pairs."
        )
    return E


def _codes(schema: Schema, values: Iterable[object]) -> list[int]:
    if isinstance(values, str):
        raise ParameterError(f"Expected a list of S values such as [{shown(values)}], got a text.")
    texts = [label_text(value) for value in checked_tuple(values, "a list of S values")]
    for text in texts:
        if text not in schema.s_labels:
            raise ParameterError(
                f"Expected S values among {', '.join(map(repr, schema.s_labels[:20]))}, "
                f"got {shown(text)}."
            )
    return [schema.s_labels.index(text) for text in texts]
