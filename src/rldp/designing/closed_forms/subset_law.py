"""The law of P(e) for random subsets e, tabulated for searches over (κ, λ)."""

from __future__ import annotations

import numpy as np
from scipy.interpolate import BSpline, RectBivariateSpline
from scipy.special import gammaln

from rldp._types import Array, Integers
from rldp.arithmetic import exp, log, matmul


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

    def __init__(self, counts: Integers) -> None:
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
        j = np.arange(p.size + 1)
        self._log_binomial = gammaln(p.size + 1) - gammaln(j + 1) - gammaln(p.size - j + 1)

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
        kappa, log_lambda, log_silent = _sigmoid(v), _log_sigmoid(w), _log_sigmoid(-w)
        log_rho_1, log_rho_0 = _log_sigmoid(v) - log_lambda, _log_sigmoid(-v) - log_silent
        rho_1, rho_0 = exp(log_rho_1), exp(log_rho_0)
        n = self._law.shape[0] - 1
        j = np.arange(n + 1)
        sizes = exp(self._log_binomial + j * log_lambda[:, None] + (n - j) * log_silent[:, None])
        slope = rho_1 - rho_0
        W = np.multiply.outer(slope, self._nodes)
        W += (rho_0 + slope * self._rest * _sigmoid(w))[:, None]
        terms = log(W)
        terms *= W
        expected = np.einsum("gj,gj->g", sizes, matmul(terms, self._law.T))
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
        along_w = of_v @ self._coefficients  # sparse: added entry by entry
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
    return np.asarray(exp(_log_sigmoid(x)))
