"""The best products of choices where all of them can be tabulated: faster than any search."""

from __future__ import annotations

import numpy as np

from rldp._types import Array
from rldp.arithmetic import log
from rldp.designing.solvers.best_product import Branches, Found

_MOST_FOUND = 2000  # products above the target among which the best ones are chosen


class ProductTable:
    """All products of some branches, for gains that change and masses that stay."""

    def __init__(self, mass: Array, roots: Branches) -> None:
        """Take the mass of every choice, shape (lists, longest), and the branches."""
        lengths = roots.last - roots.first + 1
        counts = lengths.prod(axis=1)
        self._root = np.repeat(np.arange(len(counts)), counts)
        place = np.arange(self._root.size) - np.repeat(np.cumsum(counts) - counts, counts)
        self._choice = np.empty((lengths.shape[1], self._root.size), np.intp)
        for i, choice in enumerate(self._choice):
            place, rest = np.divmod(place, lengths[self._root, i])
            np.add(rest, roots.first[self._root, i], out=choice)
        self._entry = roots.lists.T[:, self._root] * mass.shape[1] + self._choice
        self._mass = mass.ravel()[self._entry].sum(axis=0)
        self._log_mass = log(self._mass)

    @staticmethod
    def size(roots: Branches) -> float:
        """How many products there are."""
        return float((roots.last - roots.first + 1.0).prod(axis=1).sum())

    def best(self, gain: Array, target: float) -> Found:
        """For every choice the best product with it, if its value is above the target."""
        value = gain.ravel()[self._entry].sum(axis=0) / self._mass - self._log_mass
        above = np.flatnonzero(value > target)
        if above.size > _MOST_FOUND:
            least = np.partition(value[above], -_MOST_FOUND)[-_MOST_FOUND]
            above = above[value[above] >= least]  # with all that are equal to it
        above = above[np.argsort(-value[above], kind="stable")]
        firsts = [np.unique(entry[above], return_index=True)[1] for entry in self._entry]
        chosen = above[np.unique(np.concatenate(firsts))]
        bound = max(target, float(value.max()))
        return Found(self._root[chosen], self._choice[:, chosen].T, value[chosen], bound)
