"""The vertices of a polytope of distributions that is given by inequalities, in exact arithmetic.

The double description method: from the vertices of the simplex on, one inequality after the other.
Each keeps the vertices that satisfy it and adds a point on every edge that it cuts. Points are rays
of integers, and nothing is rounded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import islice
from typing import NamedTuple

from rldp.errors import ParameterError, TooLargeError

_MOST = 4000  # vertices, on the way too


class _Ray(NamedTuple):
    point: tuple[int, ...]
    zeros: int  # bit i: inequality i holds with equality; the first n_cells are P ≥ 0


def vertices(
    rows: Sequence[Sequence[Fraction]], limits: Sequence[Fraction], n_cells: int
) -> list[tuple[Fraction, ...]]:
    """All vertices of {P ≥ 0 : Σ P = 1, rows·P ≤ limits}.

    >>> half = Fraction(1, 2)
    >>> [tuple(map(str, P)) for P in vertices([[Fraction(1), Fraction(0)]], [half], 2)]
    [('0', '1'), ('1/2', '1/2')]
    """
    each, everything = range(n_cells), (1 << n_cells) - 1
    rays = [_Ray(tuple(int(x == i) for x in each), everything ^ 1 << i) for i in each]
    for number, (row, limit) in enumerate(zip(rows, limits, strict=True), start=n_cells):
        # on the cone of all multiples of P the inequality is (limit - row)·P ≥ 0
        gaps = [limit - x for x in row]
        unit = math.lcm(*(gap.denominator for gap in gaps))
        rays = _cut(rays, [int(gap * unit) for gap in gaps], number)
        if not rays:
            raise ParameterError("Expected inequalities that some distribution satisfies.")
        if len(rays) > _MOST:
            raise TooLargeError(
                f"These inequalities have more than {_MOST:,} vertices on the way; use fewer."
            )
    return sorted(tuple(Fraction(x, sum(ray.point)) for x in ray.point) for ray in rays)


def _cut(rays: list[_Ray], row: list[int], number: int) -> list[_Ray]:
    """The rays of a cone that satisfy row·P ≥ 0 too."""
    values = [sum(map(int.__mul__, row, ray.point)) for ray in rays]
    kept = [
        ray if value else _Ray(ray.point, ray.zeros | 1 << number)
        for ray, value in zip(rays, values, strict=True)
        if value >= 0
    ]
    above = [(ray, value) for ray, value in zip(rays, values, strict=True) if value > 0]
    below = [(ray, value) for ray, value in zip(rays, values, strict=True) if value < 0]
    for inside, high in above:
        for outside, low in below:
            shared = inside.zeros & outside.zeros
            if shared.bit_count() >= len(row) - 2 and _is_edge(shared, rays):
                point = [
                    high * y - low * x for x, y in zip(inside.point, outside.point, strict=True)
                ]
                divisor = math.gcd(*point)
                kept.append(_Ray(tuple(x // divisor for x in point), shared | 1 << number))
    return kept


def _is_edge(shared: int, rays: list[_Ray]) -> bool:
    """Whether no third ray holds all equalities that two rays share: they span an edge then."""
    holders = (ray for ray in rays if shared & ray.zeros == shared)
    return len(list(islice(holders, 3))) == 2
