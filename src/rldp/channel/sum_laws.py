"""E[W log W] for a sum W of many independent variables, bracketed from both sides.

Unary encoding reports a subset, so its mutual information is a sum over 2^n outputs; but the
output enters only through one number W, a sum of independent variables. Its law is kept exactly
while it has few atoms. Beyond that two laws are carried on: one whose neighbouring atoms are
merged into their mean (smaller in convex order), one whose atoms are split between the nodes of
a grid with their mean kept (larger). w log w is convex, so the truth lies between the two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rldp._types import Array, Indices
from rldp.arithmetic import exp, matmul
from rldp.information import entropy_terms

_MOST_ATOMS = 2**15
_WORK = 2**21  # sums of atoms to form: with thousands of variables each law is kept smaller
_TIE = 1e-13
_TAIL = 1e-18  # mass on each side that may be kept coarsely


class Law(NamedTuple):
    """A discrete law: ascending atoms and their masses."""

    atoms: Array
    masses: Array


def coins(size: float, chance: float, n: int) -> Law:
    """The sum of n equal coins, each worth `size` with this chance and 0 otherwise."""
    from scipy.special import gammaln, xlog1py, xlogy  # not for clients, which only release

    heads = np.arange(n + 1)
    log_ways = gammaln(n + 1) - gammaln(heads + 1) - gammaln(n - heads + 1)
    log_masses = log_ways + xlogy(heads, chance) + xlog1py(n - heads, -chance)
    return Law(size * heads.astype(float), exp(log_masses))


def expected_w_log_w(
    laws: Sequence[Law], offset: float = 0.0, most_atoms: int = _MOST_ATOMS
) -> tuple[float, float]:
    """Lower and upper bound on E[W log W] for W = offset + Σ of independent variables ≥ 0.

    The bounds coincide, up to rounding, while the sum has at most `most_atoms` atoms, for example
    for up to 16 coins, or for any number of coins whose sizes are multiples of one unit.
    """
    if not laws:
        return (float(-entropy_terms(np.array(offset))),) * 2
    *others, longest = sorted(laws, key=_breadth)
    if math.prod(law.atoms.size for law in laws) <= 2 * most_atoms:
        low = high = _plain_sum(others, offset)
    else:
        low, high = bracketing_laws(others, offset, most_atoms)
    # the last sum is taken as it comes: neither sorted nor merged
    expected = _expected_sum(low, longest)
    return expected, expected if low is high else _expected_sum(high, longest)


def bracketing_laws(
    laws: Sequence[Law], offset: float = 0.0, most_atoms: int = _MOST_ATOMS
) -> tuple[Law, Law]:
    """Two laws with the mean of W = offset + Σ, the first below W in convex order, then above."""
    work = sum(law.atoms.size for law in laws)
    most = min(most_atoms, max(2**11, 2 * _WORK // max(work, 1)))
    low = high = Law(np.array([offset]), np.array([1.0]))
    # small variables first: the law stays short for as long as possible
    for law in sorted(laws, key=_breadth):
        is_exact = low is high
        low = _sum(low, law)
        high = low if is_exact else _sum(high, law)
        if high.atoms.size > most or low.atoms.size > most:
            low, high = _merged(low, most), _split(high, most)
    return low, high


def _breadth(law: Law) -> float:
    return float(np.ptp(law.atoms))


def _expected_sum(a: Law, b: Law) -> float:
    """E[W log W] for the sum of two independent variables."""
    atoms = b.atoms[:, None] + a.atoms
    return float(matmul(matmul(b.masses, -entropy_terms(atoms)), a.masses))


def _plain_sum(laws: Sequence[Law], offset: float) -> Law:
    """The law of offset + Σ with all its atoms, in no order."""
    atoms, masses = np.array([offset]), np.array([1.0])
    for law in laws:
        atoms = np.add.outer(law.atoms, atoms).ravel()
        masses = np.multiply.outer(law.masses, masses).ravel()
    return Law(atoms, masses)


def _sum(a: Law, b: Law) -> Law:
    """The law of the sum of two independent variables, equal atoms merged."""
    atoms = (b.atoms[:, None] + a.atoms).ravel()  # few sorted runs, which a stable sort merges
    masses = (b.masses[:, None] * a.masses).ravel()
    order = np.argsort(atoms, kind="stable")
    atoms, masses = atoms[order], masses[order]
    is_new = np.diff(atoms, prepend=-np.inf) > _TIE * atoms[-1]
    return _grouped(atoms, masses, np.cumsum(is_new) - 1)


def _grouped(atoms: Array, masses: Array, group: Indices) -> Law:
    """Each group of atoms merged into its mean."""
    mass = np.asarray(np.bincount(group, masses), dtype=float)
    moment = np.bincount(group, masses * atoms)
    kept = mass > 0
    return Law(moment[kept] / mass[kept], mass[kept])


def _nodes(law: Law, n: int) -> Array:
    # evenly spaced in √w, where the curvature 1/w of w log w is even, between the two far tails
    cumulative = np.cumsum(law.masses)
    first = int(np.searchsorted(cumulative, _TAIL))
    last = int(np.searchsorted(cumulative, cumulative[-1] - _TAIL))
    low, high = np.sqrt(law.atoms[first]), np.sqrt(law.atoms[last])
    core = np.linspace(low, high, n - 2) ** 2
    return np.unique(np.concatenate([law.atoms[[0, first, last, -1]], core]))


def _merged(law: Law, n: int) -> Law:
    nodes = _nodes(law, n)
    return _grouped(law.atoms, law.masses, np.searchsorted(nodes, law.atoms, side="right"))


def _split(law: Law, n: int) -> Law:
    nodes = _nodes(law, n)
    n = nodes.size
    right = np.clip(np.searchsorted(nodes, law.atoms), 1, n - 1)
    share = np.clip((law.atoms - nodes[right - 1]) / (nodes[right] - nodes[right - 1]), 0, 1)
    left = np.bincount(right - 1, law.masses * (1 - share), n)
    mass = np.asarray(left + np.bincount(right, law.masses * share, n), dtype=float)
    kept = mass > 0
    return Law(nodes[kept], mass[kept])
