"""From the weights of every block to whole columns: a coupling with nearly equal masses.

In a group of the relaxed master every block has weights on its vertices, with one total. Any
coupling of these marginals is a set of weighted products, that is of whole columns. The relaxation
counts their masses as equal, so a coupling loses little if the masses are nearly equal.
"""

from __future__ import annotations

import numpy as np

from rldp._types import Array
from rldp.arithmetic import matmul
from rldp.designing.polyopt.settings import SETTINGS

Marginals = list[tuple[Array, Array]]  # of every block: weights and vertices


def coupled(marginals: Marginals, p_su: Array) -> Array:
    """Products of the blocks' vertices with these marginals and nearly equal masses.

    Blocks are coupled one after the other, the heaviest product so far with the lightest vertex.
    """
    masses = [matmul(T, p) for (_, T), p in zip(marginals, p_su, strict=True)]
    spread = [
        float(matmul(w, (mass - matmul(w, mass) / w.sum()) ** 2))
        for (w, _), mass in zip(marginals, masses, strict=True)
    ]
    order = np.argsort(spread, kind="stable")[::-1]
    weight, mass = np.ones(1), np.zeros(1)
    choice = np.zeros((1, len(marginals)), np.intp)
    for s in order:
        w, own = marginals[s][0], masses[s]
        heavy, light = np.argsort(-mass, kind="stable"), np.argsort(own, kind="stable")
        ends = [np.cumsum(x) / x.sum() for x in (weight[heavy], w[light])]
        breaks = np.unique(np.concatenate([[0.0], *ends]))
        length = np.diff(breaks)
        is_kept = length > SETTINGS.tolerances.weight
        middle, length = ((breaks[1:] + breaks[:-1]) / 2)[is_kept], length[is_kept]
        i, k = (
            side[np.minimum(np.searchsorted(end, middle), side.size - 1)]
            for side, end in ((heavy, ends[0]), (light, ends[1]))
        )
        weight, mass, choice = length, mass[i] + own[k], choice[i]
        choice[:, s] = k
    return np.stack([T[choice[:, s]] for s, (_, T) in enumerate(marginals)], axis=1)
