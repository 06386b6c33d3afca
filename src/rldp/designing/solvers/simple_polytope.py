"""The vertices of a polytope {x ≥ 0 : r·x ≤ high} that half-spaces cut smaller and smaller.

Every limit is moved outwards by a little, by another amount each time, so that no more than d
facets meet in one point: each vertex has exactly d, and two vertices have an edge between them if
and only if they share d - 1. A half-space removes the vertices outside and adds one on every edge
that it crosses. The polytope is never smaller than what it is asked to be.
"""

from __future__ import annotations

import numpy as np

from rldp._types import Array, Flags
from rldp.arithmetic import matmul
from rldp.designing.solvers.work import spend

_OUTWARDS = 1e-8  # of a limit: by so much it is moved, or up to twice as much
_GOLDEN = (5**0.5 - 1) / 2  # its multiples modulo 1 are well apart
_INSIDE = 1e-9  # of a limit, that a point may lie beyond it by rounding
_WORK_OF_CUT, _WORK_OF_PAIR = 1.5e-4, 1e-9  # nominal seconds; a pair of vertices and a facet


class SimplePolytope:
    """A polytope by its vertices and its facets."""

    def __init__(self, r: Array, high: float) -> None:
        """Take positive r, shape (d,), and the limit of r·x."""
        d = r.size
        self.vertices = np.concatenate([np.zeros((1, d)), np.diag(high / r)])
        self._normals, self._limits = np.vstack([-np.eye(d), r]), np.append(np.zeros(d), high)
        self._on = np.ones((d + 1, d + 1), bool)  # whether a vertex is on a facet
        self._on[np.arange(d + 1), np.roll(np.arange(d + 1), 1)] = False

    def cut(self, normal: Array, limit: float) -> bool:
        """Keep normal·x ≤ limit, for a limit that is not 0; whether anything was cut off."""
        limit += abs(limit) * _OUTWARDS * (1 + self._limits.size * _GOLDEN % 1)
        beyond = matmul(self.vertices, normal) - limit
        inside, outside = np.flatnonzero(beyond <= 0), np.flatnonzero(beyond > 0)
        if not outside.size:
            return False
        spend(_WORK_OF_CUT + inside.size * outside.size * self._limits.size * _WORK_OF_PAIR)
        on = self._on.astype(np.float32)
        a, b = np.nonzero(matmul(on[inside], on[outside].T) > normal.size - 1.5)
        a, b = inside[a], outside[b]
        # sums of what is not negative: small entries stay as exact as large ones
        far, near = beyond[b, None], -beyond[a, None]
        new = (self.vertices[a] * far + self.vertices[b] * near) / (far + near)
        is_new = np.repeat([False, True], [inside.size, a.size])
        self.vertices = np.concatenate([self.vertices[inside], new])
        self._on = np.concatenate([self._on[inside], self._on[a] & self._on[b]])
        self._on = np.column_stack([self._on, is_new])
        self._normals = np.vstack([self._normals, normal])
        self._limits = np.append(self._limits, limit)
        return True

    def holds(self, points: Array) -> Flags:
        """Whether points of shape (n, d) lie in the polytope, up to rounding."""
        limits = self._limits + _INSIDE * np.abs(self._limits)
        return np.asarray((matmul(points, self._normals.T) <= limits).all(axis=1))
