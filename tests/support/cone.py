"""The cone Γ by its inequalities, independent of the code that lists its vertices."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rldp._types import Array, Flags
from rldp.designing.polyopt.s_block import Block


def inequalities(blocks: Sequence[Block], factor: float, *, distinct: bool) -> Array:
    """Rows a of shape (n_s n_u,) with a·T ≥ 0 for T in Γ, each scaled to a largest entry of 1."""
    n_s, n_u = len(blocks), blocks[0].n_u
    corners = np.zeros((n_s, n_u, n_s * n_u))
    for s, block in enumerate(blocks):
        corners[s, :, s * n_u : (s + 1) * n_u] = block.m + block.c * np.eye(n_u)
    first, second = corners[:, :, None, None], corners[None, None]
    privacy = factor * second - first  # s1, u1, s2, u2
    differ = np.arange(n_s)[:, None, None, None] != np.arange(n_s)[None, None, :, None]
    differ = np.broadcast_to(differ if distinct else True, privacy.shape[:4])
    rows = np.concatenate([privacy[differ], np.eye(n_s * n_u)])
    return np.asarray(rows / np.abs(rows).max(axis=1, keepdims=True))


def is_extreme(columns: Array, blocks: Sequence[Block], factor: float, *, distinct: bool) -> Flags:
    """Which columns of Γ span extreme rays: the active inequalities leave one direction."""
    a = inequalities(blocks, factor, distinct=distinct)
    T = columns.reshape(len(columns), -1)
    T = T / T.max(axis=1, keepdims=True)
    rank = np.zeros(len(T), int)
    for i, column in enumerate(T):
        active = a[a @ column <= 1e-9 * (np.abs(a) @ column) + 1e-14]
        values = np.linalg.svd(active, compute_uv=False)
        rank[i] = int((values > 1e-10 * values[0]).sum()) if values.size else 0
    return np.asarray(rank >= T.shape[1] - 1)
