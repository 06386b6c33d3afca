"""A set whose conditionals are polytopes: cones by their vertices, against cutting planes."""

from __future__ import annotations

import numpy as np
import pytest

from rldp import Guarantee, Table
from rldp.designing.most_information import most_information
from rldp.designing.optimal.privacy_cones import is_conic
from rldp.designing.problem import Problem
from rldp.uncertainty import UncertaintySet

TABLE = Table([[30, 10, 20], [10, 50, 15]])


class Polytopes(UncertaintySet):
    """Each P_{U|s} is any mixture of some points, independently of the others."""

    def __init__(self, table: Table, points, *, tells: bool) -> None:
        super().__init__(table)
        self.points, self.tells = np.asarray(points, float), tells  # shape (n_s, points, n_u)

    def vertices(self, s):
        return self.points[s] if self.tells else None

    @property
    def conditional_bounds(self):
        return self.points.min(axis=1), self.points.max(axis=1)

    @property
    def l1_radii(self):
        return np.abs(self.points - self.table.p_u_given_s[:, None]).sum(axis=2).max(axis=1)

    def contains(self, p_su) -> bool:
        raise NotImplementedError

    def mean_range(self, T, s):
        means = np.einsum("iku,iu->ik", self.points[s], T)
        return means.min(axis=1), means.max(axis=1)

    def worst_conditionals(self, T_1, s_1, T_2, s_2, ratio):  # noqa: ARG002  # a vertex for any ratio
        i = np.arange(len(T_1))
        first = np.einsum("iku,iu->ik", self.points[s_1], T_1).argmax(axis=1)
        second = np.einsum("iku,iu->ik", self.points[s_2], T_2).argmin(axis=1)
        return self.points[s_1][i, first], self.points[s_2][i, second]

    def worst_distribution(self, T_1, s_1, T_2, s_2):
        raise NotImplementedError

    def smallest_expectation(self, c):
        raise NotImplementedError


def around(table: Table, size: float):
    """P̂_{U|s} moved by a little towards each corner, and by as much away from it."""
    p = table.p_u_given_s
    corners = np.eye(table.n_u) - p[:, None, :]
    return np.concatenate([p[:, None] + size * corners, p[:, None] - size * corners / 4], axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("size", [0.05, 0.3])
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_vertices_and_cutting_planes_find_the_same_optimum(size, epsilon):
    cones, cuts = (Polytopes(TABLE, around(TABLE, size), tells=tells) for tells in (True, False))
    assert is_conic(cones)
    assert not is_conic(cuts)
    by_cones = most_information(Problem((Guarantee(cones, epsilon),)))
    by_cuts = most_information(Problem((Guarantee(cuts, epsilon),)))
    for found in (by_cones, by_cuts):
        _check_private(found.Q, cones.points, epsilon)
        assert found.value <= min(by_cones.bound, by_cuts.bound) + 1e-9
    assert by_cones.value == pytest.approx(by_cuts.value, abs=2e-3)


def _check_private(Q, points, epsilon):
    means = np.einsum("sku,suy->sky", points, Q)
    high, low = means.max(axis=1), means.min(axis=1)
    for s, t in ((0, 1), (1, 0)):
        assert (high[s] <= np.exp(epsilon) * low[t] + 1e-9).all()
