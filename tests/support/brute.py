"""Reference answers in plain loops, slow on purpose: information, literal protocols, audits."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.optimize import minimize_scalar

# --- information -----------------------------------------------------------------------------


def entropy(p) -> float:
    return -sum(x * math.log(x) for x in np.ravel(p) if x > 0)


def mutual_information(p_su, Q) -> float:
    """I(X;Y) by a loop over s, u and y."""
    n_s, n_u, n_y = Q.shape
    total = 0.0
    for y in range(n_y):
        p_y = sum(p_su[s, u] * Q[s, u, y] for s in range(n_s) for u in range(n_u))
        for s in range(n_s):
            for u in range(n_u):
                if p_su[s, u] * Q[s, u, y] > 0:
                    total += p_su[s, u] * Q[s, u, y] * math.log(Q[s, u, y] / p_y)
    return total


def information(p, R) -> float:
    """I(R(X);X) for X ~ p on one alphabet and a matrix R[x, y]."""
    return mutual_information(np.asarray(p)[:, None], np.asarray(R)[:, None, :])


# --- the protocols, read off their listings ----------------------------------------------------


def grr(epsilon: float, n: int) -> np.ndarray:
    """GRR^ε on n values; ε = ∞ reports the truth."""
    Q = np.zeros((n, n))
    for x in range(n):
        for y in range(n):
            if math.isinf(epsilon):
                Q[x, y] = 1.0 if x == y else 0.0
            else:
                Q[x, y] = (math.exp(epsilon) if x == y else 1.0) / (math.exp(epsilon) + n - 1)
    return Q


def grr_matrix(n_s: int, n_u: int, epsilon: float) -> np.ndarray:
    return grr(epsilon, n_s * n_u).reshape(n_s, n_u, -1)


def srr_matrix(n_s: int, n_u: int, epsilon: float) -> np.ndarray:
    e, a = math.exp(epsilon), n_s * n_u
    Q = np.zeros((n_s, n_u, a))
    for s, u, s2, u2 in itertools.product(range(n_s), range(n_u), range(n_s), range(n_u)):
        weight = 1.0 if s2 != s else e if u2 == u else 1 / e
        Q[s, u, s2 * n_u + u2] = weight / (e + (n_u - 1) / e + a - n_u)
    return Q


def ue_matrix(n_s: int, n_u: int, kappa: float, lam: float) -> np.ndarray:
    """Unary encoding of the cell: one bit for each cell, all words."""
    words = list(itertools.product((0, 1), repeat=n_s * n_u))
    Q = np.ones((n_s, n_u, len(words)))
    for s, u in itertools.product(range(n_s), range(n_u)):
        for y, word in enumerate(words):
            for cell, bit in enumerate(word):
                one = kappa if cell == s * n_u + u else lam
                Q[s, u, y] *= one if bit else 1 - one
    return Q


def ir_matrix(n_s: int, n_u: int, epsilon_1: float, delta_2: float) -> np.ndarray:
    """Protocol alg:ir."""
    R1, R2 = grr(epsilon_1, n_s), grr(delta_2, n_u)
    Q = np.zeros((n_s, n_u, n_s * n_u))
    for s, u, y1, y2 in itertools.product(range(n_s), range(n_u), range(n_s), range(n_u)):
        Q[s, u, y1 * n_u + y2] = R1[s, y1] * R2[u, y2]
    return Q


def grr_cr_matrix(p_u_given_s, epsilon_1: float, delta_s) -> np.ndarray:
    """Protocol alg:grr-cr."""
    n_s, n_u = p_u_given_s.shape
    R1, R = grr(epsilon_1, n_s), [grr(delta, n_u) for delta in delta_s]
    Q = np.zeros((n_s, n_u, n_s * n_u))
    for s, u, s2, y in itertools.product(range(n_s), range(n_u), range(n_s), range(n_u)):
        if s2 == s:
            chance = R[s][u, y]
        else:
            chance = sum(p_u_given_s[s2, v] * R[s2][v, y] for v in range(n_u))
        Q[s, u, s2 * n_u + y] = R1[s, s2] * chance
    return Q


def ue_cr_matrix(p_u_given_s, kappa: float, lam: float, delta_s) -> np.ndarray:
    """Protocol alg:ue-cr, with Ũ ~ P̂_{U|s'} and R^{s'} for s' ≠ s; symbol 0 is silence."""
    n_s, n_u = p_u_given_s.shape
    R = [grr(delta, n_u) for delta in delta_s]
    words = list(itertools.product(range(n_u + 1), repeat=n_s))
    Q = np.ones((n_s, n_u, len(words)))
    for s, u in itertools.product(range(n_s), range(n_u)):
        for y, word in enumerate(words):
            for s2, symbol in enumerate(word):
                one = kappa if s2 == s else lam
                if symbol == 0:
                    Q[s, u, y] *= 1 - one
                elif s2 == s:
                    Q[s, u, y] *= one * R[s][u, symbol - 1]
                else:
                    made_up = (p_u_given_s[s2, v] * R[s2][v, symbol - 1] for v in range(n_u))
                    Q[s, u, y] *= one * sum(made_up)
    return Q


def matrix_of(protocol) -> np.ndarray:
    """The literal matrix of a designed protocol, from its parameters alone."""
    n_s, n_u = protocol.table.n_s, protocol.table.n_u
    p, epsilon, conditionals = protocol.parameters, protocol.epsilon, protocol.table.p_u_given_s
    match protocol.name:
        case "grr":
            return grr_matrix(n_s, n_u, epsilon)
        case "srr":
            return srr_matrix(n_s, n_u, epsilon)
        case "ue":
            return ue_matrix(n_s, n_u, p["kappa"], p["lambda"])
        case "ir":
            return ir_matrix(n_s, n_u, p["epsilon_1"], p["delta_2"])
        case "grr-cr":
            return grr_cr_matrix(conditionals, p["epsilon_1"], p["delta_s"])
        case "ue-cr":
            return ue_cr_matrix(conditionals, p["kappa"], p["lambda"], p["delta_s"])
    raise AssertionError(protocol.name)


# --- audits: the largest log P(Y=y|s)/P(Y=y|s') over s ≠ s', y and P ---------------------------


def log_ratio(high: float, low: float) -> float:
    if high <= 0:
        return -math.inf  # y never happens under s, so it accuses nobody
    return math.inf if low <= 0 else math.log(high / low)


def audit_ldp(Q) -> float:
    """Plain LDP: all pairs of records."""
    n_s, n_u, n_y = Q.shape
    x = list(itertools.product(range(n_s), range(n_u)))
    return max(log_ratio(Q[a][y], Q[b][y]) for y in range(n_y) for a in x for b in x)


def audit_all(Q) -> float:
    """All distributions: pairs of records with different s (the proposition of sec:maxf)."""
    n_s, n_u, n_y = Q.shape
    x = list(itertools.product(range(n_s), range(n_u)))
    pairs = [(a, b) for a in x for b in x if a[0] != b[0]]
    return max(log_ratio(Q[a][y], Q[b][y]) for y in range(n_y) for a, b in pairs)


def largest_mean(p, T, A: float) -> float:
    """max R·T over {R : Σ p²/R ≤ A}, as min over η ≥ max T of η - (Σ p √(η - T))²/A."""
    p, T = np.asarray(p), np.asarray(T)
    top, gap = float(T.max()), float(T.max() - T.min())
    if gap == 0 or math.isinf(A):
        return top
    if A <= 1:
        return float(p @ T)
    D = (top - T) / gap

    def bound(log_t: float) -> float:
        t = math.exp(log_t)  # η = max T + gap·t
        return t - float(p @ np.sqrt(t + D)) ** 2 / A

    inside = minimize_scalar(bound, bounds=(-40, 30), method="bounded", options={"xatol": 1e-9})
    end = -(float(p @ np.sqrt(D)) ** 2) / A
    return top + gap * min(inside.fun, end)


def smallest_mean(p, T, A: float) -> float:
    """min R·T over the same set."""
    return -largest_mean(p, -np.asarray(T), A)


def radii_of(F) -> list[float]:
    """A_s = 1 + B_s for each s: ∞ where nothing is known of P_{U|s}, 1 where all is."""
    known = {"KnownDistribution": 1.0, "AllDistributions": math.inf}.get(type(F).__name__)
    if known is None:
        sigma = math.sqrt(1 + F.radius)
        return [((sigma + p - 1) / p) ** 2 if p > 0 else math.inf for p in F.table.p_s]
    return [known if p > 0 else math.inf for p in F.table.p_s]


def audit_separate(Q, p_u_given_s, A) -> float:
    """Over F': each P_{U|s} anywhere in its own χ² ball."""
    worst = -math.inf
    for y in range(Q.shape[2]):
        high = [largest_mean(*row) for row in zip(p_u_given_s, Q[:, :, y], A, strict=True)]
        low = [smallest_mean(*row) for row in zip(p_u_given_s, Q[:, :, y], A, strict=True)]
        for s, s2 in itertools.permutations(range(len(A)), 2):
            worst = max(worst, log_ratio(high[s], low[s2]))
    return worst


def audit_of(protocol) -> float:
    """A designed protocol over F' of its own set."""
    F = protocol.uncertainty
    return audit_separate(protocol.matrix, F.table.p_u_given_s, radii_of(F))


def audit_joint(Q, table, B: float) -> float:
    """Over F itself: s and s' share one budget β + β' = √(1+B) - 1, with A_s = (1 + β/P̂_s)²."""
    worst, budget = -math.inf, math.sqrt(1 + B) - 1
    p_s, p_u = table.p_s, table.p_u_given_s
    for s, s2, y in itertools.product(range(table.n_s), range(table.n_s), range(Q.shape[2])):

        def leak(beta: float, beta2: float, s: int = s, s2: int = s2, y: int = y) -> float:
            high = largest_mean(p_u[s], Q[s, :, y], _radius(beta, p_s[s]))
            return log_ratio(high, smallest_mean(p_u[s2], Q[s2, :, y], _radius(beta2, p_s[s2])))

        if s == s2 or leak(budget, budget) <= worst:
            continue  # not even with the whole budget each
        shares = np.linspace(0.0, budget, 6)  # quasi-concave in the split: scan, then refine
        values = [leak(beta, budget - beta) for beta in shares]
        best = int(np.argmax(values))
        around = shares[max(best - 1, 0)], shares[min(best + 1, 5)]
        refined = minimize_scalar(
            lambda beta, leak=leak: -leak(beta, budget - beta),
            bounds=around,
            method="bounded",
            options={"xatol": 1e-6 * budget},
        )
        worst = max(worst, values[best], -refined.fun)
    return worst


def _radius(beta: float, p_s: float) -> float:
    return (1 + beta / p_s) ** 2 if p_s > 0 else math.inf


# --- points of F -------------------------------------------------------------------------------


def chi_square(p_hat, P) -> float:
    """Σ P̂²/P - 1, the statistic of eq:chi22; cells with P̂ = 0 count nothing."""
    total = -1.0
    for a, b in zip(np.ravel(p_hat), np.ravel(P), strict=True):
        if a > 0:
            total += math.inf if b <= 0 else a * a / b
    return total


def boundary_point(p_hat, towards, B: float) -> np.ndarray:
    """The last point of the ball of radius B on the way from P̂ towards another distribution."""
    low, high = 0.0, 1.0
    if chi_square(p_hat, towards) <= B:
        return np.array(towards)
    for _ in range(60):
        middle = (low + high) / 2
        if chi_square(p_hat, (1 - middle) * p_hat + middle * towards) <= B:
            low = middle
        else:
            high = middle
    return (1 - low) * p_hat + low * towards


def random_points(rng, p_hat, B: float, n: int) -> list[np.ndarray]:
    """Points of the ball around P̂, most of them on its boundary."""
    points = []
    for _ in range(n):
        towards = rng.dirichlet(np.full(p_hat.size, rng.choice([0.1, 1.0]))).reshape(p_hat.shape)
        points.append(boundary_point(p_hat, towards, B * rng.choice([0.3, 1.0, 1.0])))
    return points


# --- robust utility ------------------------------------------------------------------------------


def information_of_column(v, P) -> float:
    """Σ v P log(v/p), p = Σ v P: what one output adds to I_P(X;Y)."""
    v, P = np.ravel(v), np.ravel(P)
    p = sum(a * b for a, b in zip(v, P, strict=True))
    return sum(a * b * math.log(a / p) for a, b in zip(v, P, strict=True) if a * b > 0)


def columns_of_gamma(F, epsilon: float) -> np.ndarray:
    """All vertices of Γ (s1 ≠ s2) on Σ T = 1, shape (n, n_s, n_u), by solving every square system.

    Its faces are T ≥ 0 and z_{s1,u1} ≤ e^ε z_{s2,u2}, where z_{s,u} = m_s·T_s + c_s T_{s,u} is the
    mean of T_s at a corner of the simplex P_{U|s} ≥ m_s.
    """
    m = F.conditional_bounds[0]
    n_s, n_u = m.shape
    n = n_s * n_u
    z = np.zeros((n_s, n_u, n_s, n_u))
    for s, u in itertools.product(range(n_s), range(n_u)):
        z[s, u, s] = m[s]
        z[s, u, s, u] += 1 - m[s].sum()
    z = z.reshape(n_s, n_u, n)
    faces = list(np.eye(n))
    for s, s2 in itertools.permutations(range(n_s), 2):
        faces += [math.exp(epsilon) * z[s2, b] - z[s, a] for a in range(n_u) for b in range(n_u)]
    faces = np.array([face / np.linalg.norm(face) for face in faces])
    found = []
    choices = np.array(list(itertools.combinations(range(len(faces)), n - 1)))
    for part in np.array_split(choices, max(1, len(choices) // 20000)):
        systems = np.concatenate([faces[part], np.ones((len(part), 1, n))], axis=1)
        systems = systems[abs(np.linalg.det(systems)) > 1e-13]
        T = np.linalg.solve(systems, np.broadcast_to(np.eye(n)[-1][:, None], (len(systems), n, 1)))
        T = T[:, :, 0]
        found.append(T[(T @ faces.T >= -1e-11).all(axis=1)])
    T = np.maximum(np.concatenate(found), 0.0)
    _, first = np.unique(np.round(T, 9), axis=0, return_index=True)
    return T[first].reshape(-1, n_s, n_u)
