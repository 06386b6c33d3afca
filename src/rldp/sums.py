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
from numpy.typing import NDArray
from scipy.interpolate import BSpline, RectBivariateSpline
from scipy.special import gammaln, xlog1py, xlogy

from rldp.information import entropy_terms

Array = NDArray[np.float64]

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
    heads = np.arange(n + 1)
    log_ways = gammaln(n + 1) - gammaln(heads + 1) - gammaln(n - heads + 1)
    log_masses = log_ways + xlogy(heads, chance) + xlog1py(n - heads, -chance)
    return Law(size * heads.astype(float), np.exp(log_masses))


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
    return float(b.masses @ -entropy_terms(atoms) @ a.masses)


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


def _grouped(atoms: Array, masses: Array, group: NDArray[np.intp]) -> Law:
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


class SubsetLaw:
    """The law of P(e) = Σ_{s∈e} P̂_s for random subsets e, ready for any inclusion probability.

    Kept by the size of e, so that a whole grid of (κ, λ) costs one matrix product. It is exact for
    up to 12 values or 1,000 records, which live on few nodes; otherwise it lives on an even grid
    and serves for searching only, while `expected_w_log_w` measures what was found.
    """

    _MOST_EXACT = 12
    _MOST_RECORDS = 1000
    _NODES = 512
    _MOST_VALUES = 128

    def __init__(self, counts: NDArray[np.int64]) -> None:
        """Tabulate the subsets of the values with these counts."""
        ordered = np.sort(counts[counts > 0])[::-1]
        n = int(ordered.sum())
        p = ordered[: self._MOST_VALUES] / n
        self._rest = 1 - float(p.sum())  # many rare values together hardly vary
        is_short, is_lattice = p.size <= self._MOST_EXACT, n <= self._MOST_RECORDS
        self.is_exact = (is_short or is_lattice) and ordered.size <= self._MOST_VALUES
        if is_short:
            self._enumerate(p)
        else:
            self._tabulate(p, 1 / n if is_lattice else p.sum() / (self._NODES - 1))

    def _enumerate(self, p: Array) -> None:
        self._nodes, sizes = np.zeros(1), np.zeros(1, dtype=int)
        for mass in p:
            self._nodes = np.concatenate([self._nodes, self._nodes + mass])
            sizes = np.concatenate([sizes, sizes + 1])
        self._law = np.equal.outer(np.arange(p.size + 1), sizes).astype(float)
        self._law /= self._law.sum(axis=1, keepdims=True)

    def _tabulate(self, p: Array, step: float) -> None:
        n = round(p.sum() / step) + 1 + p.size  # every split may end one node higher
        self._nodes = np.arange(n) * step
        law = np.zeros((p.size + 1, n))
        law[0, 0] = 1.0
        for i, mass in enumerate(p, start=1):
            whole = int(mass / step + 1e-9)
            part = max(0.0, mass / step - whole)
            moved = np.zeros((i, n))
            moved[:, whole:] += (1 - part) * law[:i, : n - whole]
            moved[:, whole + 1 :] += part * law[:i, : n - whole - 1]
            size = np.arange(1, i + 1)[:, None]
            # uniform subsets of size j of i values: the new value belongs to it with chance j/i
            law[1 : i + 1] = (size / i) * moved + (1 - size / i) * law[1 : i + 1]
        self._law = law

    def information(self, logit_kappa: Array, logit_lambda: Array) -> Array:
        """I(UE(S);S) at every pair of logits of κ and λ (shapes broadcast)."""
        v, w = np.broadcast_arrays(logit_kappa, logit_lambda)
        v_flat, w_flat, flat = v.ravel(), w.ravel(), np.empty(v.size)
        chunk = max(1, 2**16 // self._nodes.size)  # what stays in the cache
        for i in range(0, v.size, chunk):
            part = slice(i, i + chunk)
            flat[part] = self._information(v_flat[part], w_flat[part])
        return flat.reshape(v.shape)

    def _information(self, v: Array, w: Array) -> Array:
        kappa = _sigmoid(v)
        log_rho_1 = _log_sigmoid(v) - _log_sigmoid(w)
        log_rho_0 = _log_sigmoid(-v) - _log_sigmoid(-w)
        rho_1, rho_0 = np.exp(log_rho_1), np.exp(log_rho_0)
        n = self._law.shape[0] - 1
        j = np.arange(n + 1)
        log_binomial = gammaln(n + 1) - gammaln(j + 1) - gammaln(n - j + 1)
        sizes = np.exp(
            log_binomial + j * _log_sigmoid(w)[:, None] + (n - j) * _log_sigmoid(-w)[:, None]
        )
        slope = rho_1 - rho_0
        W = np.multiply.outer(slope, self._nodes)
        W += (rho_0 + slope * self._rest * _sigmoid(w))[:, None]
        terms = np.log(W)
        terms *= W
        expected = np.einsum("gj,gj->g", sizes, terms @ self._law.T)
        return np.asarray(kappa * log_rho_1 + (1 - kappa) * log_rho_0 - expected)


class InformationSpline:
    """I(UE(S);S) of a law by interpolation, for searching over many ε at once.

    It errs by less than 1e-7 nats.
    """

    _DEGREE = 5
    _STEP, _LOGIT_STEP = 0.125, 0.25  # of ε_1 and of the logit of κ

    def __init__(self, law: SubsetLaw, lowest: float, highest: float, largest: float) -> None:
        """Tabulate the law for logits from lowest to highest and ε_1 up to largest."""
        v = np.linspace(lowest, highest, 1 + round((highest - lowest) / self._LOGIT_STEP))
        w = np.linspace(0.0, largest, max(6, 2 + round(largest / self._STEP)))
        table = law.information(v[:, None], v[:, None] - w)
        self._spline = RectBivariateSpline(v, w, table, kx=self._DEGREE, ky=self._DEGREE)
        of_v, of_w, coefficients = self._spline.tck
        self._knots = of_v, of_w
        self._coefficients = np.reshape(coefficients, (v.size, w.size))

    def information(self, logits: Array, epsilon_1: Array) -> Array:
        """I(UE(S);S) at every pair of a logit of κ and an ε_1, shapes (..., 1, m) and (..., n, 1).

        Each axis has its own B-splines, which is much less than those of every pair.
        """
        of_v, of_w = (
            BSpline.design_matrix(x.ravel(), knots, self._DEGREE)
            for x, knots in zip((logits, epsilon_1), self._knots, strict=True)
        )
        along_w = of_v @ self._coefficients
        row = np.arange(logits.size).reshape(logits.shape) * along_w.shape[1]
        some = of_w.indices.reshape(*epsilon_1.shape, -1)
        values = along_w.ravel()[row[..., None] + some]
        return np.asarray(np.einsum("...w,...w->...", values, of_w.data.reshape(some.shape)))

    def on_grid(self, logits: Array, epsilon_1: Array) -> Array:
        """The same at all logits for every ε_1: they become the last axis."""
        distinct, place = np.unique(epsilon_1, return_inverse=True)
        return np.asarray(self._spline(logits, distinct).T[place.reshape(epsilon_1.shape)])


def _log_sigmoid(x: Array) -> Array:
    return -np.logaddexp(0.0, -x)


def _sigmoid(x: Array) -> Array:
    return np.exp(_log_sigmoid(x))
