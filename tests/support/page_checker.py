"""A checker written from docs/format.md, Section 4, and nothing else: decimals of 80 digits.

It rounds to nearest instead of to the safe side, with a margin far above its rounding errors, so it
is no proof. It shows that the page says all that a checker needs.
"""

from __future__ import annotations

import decimal
import math
from fractions import Fraction
from itertools import permutations, product
from typing import Any

D = decimal.Decimal
MARGIN = D(10) ** -50


class NotProvedError(Exception):
    pass


def number(text: str) -> D:
    value = Fraction(text)
    return D(value.numerator) / D(value.denominator)


def whole(rows: Any) -> Any:
    return [whole(row) for row in rows] if isinstance(rows, list) else int(rows)


def need(condition: bool, what: str) -> None:
    if not condition:
        raise NotProvedError(what)


def check(document: dict[str, Any]) -> None:
    with decimal.localcontext() as context:
        context.prec = 80
        for guarantee in guarantees(document):
            channel, n_u = document["channel"], len(guarantee["uncertainty"]["counts"][0])
            kind, bits = channel["kind"], channel["bits"]
            parts = {x: y for x, y in channel.items() if x not in ("kind", "bits")}
            if kind == "sets":
                parts = {"Q": written_out(bits, **parts)}
            else:
                parts = {name: whole(part) for name, part in parts.items()}
            if guarantee["uncertainty"]["kind"] == "given-u":
                for u in range(n_u):
                    Claim(given_u(guarantee, u), kind).check(slice_at(parts, [u], n_u))
                continue
            if "knows" not in guarantee:
                need(
                    kind != "sets" or guarantee["certificate"]["multipliers"] is None,
                    "multipliers",
                )
                Claim(guarantee, kind).check(parts)
                continue
            groups = known_groups(document["schema"]["useful"], guarantee["knows"], n_u)
            proofs = guarantee["certificate"]["parts"]
            need(len(proofs) == len(groups), "parts")
            for group, proof in zip(groups, proofs, strict=True):
                proof = guarantee["certificate"] | proof
                claim = Claim(guarantee | {"certificate": proof}, kind, group)
                claim.check(slice_at(parts, group, n_u))


def guarantees(document: dict[str, Any]) -> list[dict[str, Any]]:
    if document["version"] == 1:
        return [document | {"levels": document["epsilon"]}]
    listed: list[dict[str, Any]] = document["guarantees"]
    rows = listed[0]["levels"]
    numbers = [x for row in rows for x in row if x != "inf"] if isinstance(rows, list) else [rows]
    need(max(numbers) == document["epsilon"], "epsilon")
    return listed


def written_out(bits: int, s_partitions: Any, u_partitions: Any, outputs: Any) -> Any:
    """Q of a channel of sets, the remainder last."""
    of_s, of_u = (list(map(classes, texts)) for texts in (s_partitions, u_partitions))
    rows = [[[] for _ in of_u[0]] for _ in of_s[0]]
    for i, j, text in outputs:
        levels, k = list(map(int, text.split(" "))), max(of_u[j]) + 1
        for s, u in product(range(len(rows)), range(len(rows[0]))):
            rows[s][u].append(levels[of_s[i][s] * k + of_u[j][u]])
    for row in (row for of_u in rows for row in of_u):
        row.append(2**bits - sum(row))
        need(row[-1] >= 0, "sum")
    return rows


def classes(text: str) -> list[int]:
    n, k, digits = text.split(":")
    each = (int(k) - 1).bit_length()
    bits = "".join(f"{int(digit, 16):04b}" for digit in digits)
    bits = bits[len(bits) - each * int(n) :]
    return [int(bits[each * v : each * v + each] or "0", 2) for v in range(int(n))]


def given_u(guarantee: dict[str, Any], u: int) -> dict[str, Any]:
    """All distributions, for one u alone."""
    counts = [[row[u]] for row in guarantee["uncertainty"]["counts"]]
    return guarantee | {"uncertainty": {"kind": "all", "counts": counts}}


def known_groups(useful: Any, knows: list[str], n_u: int) -> list[list[int]]:
    """The u of each k: digits of u to the bases of the columns, and k the digits of the known."""
    names, sizes = [c["name"] for c in useful], [len(c["labels"]) for c in useful]
    need(len(set(names)) == len(names), "names")
    need(knows == [name for name in names if name in knows], "knows")
    n_k = 1
    for name, size in zip(names, sizes, strict=True):
        n_k *= size if name in knows else 1
    groups: list[list[int]] = [[] for _ in range(n_k)]
    for u in range(n_u):
        k, place, rest = 0, 1, u
        for name, size in reversed(list(zip(names, sizes, strict=True))):
            rest, digit = divmod(rest, size)
            if name in knows:
                k, place = k + digit * place, place * size
        need(rest == 0, "cells")
        groups[k].append(u)
    return groups


def slice_at(parts: dict[str, Any], group: list[int], n_u: int) -> dict[str, Any]:
    n_s = len(parts.get("Q", parts.get("own", parts.get("r_s"))))
    made = {
        name: [[rows[u] for u in group] for rows in parts[name]]
        for name in parts
        if name in ("Q", "own")
    }
    if "r_u" in parts:
        made |= {"r_s": parts["r_s"], "r_u": [parts["r_u"][u] for u in group]}
    if "other" in parts:
        other, by_cell = parts["other"], len(parts["other"]) != n_s
        rows = [s * n_u + u for s in range(n_s) for u in group]
        made["other"] = [other[b] for b in rows] if by_cell else other
    return made


class Claim:
    def __init__(
        self, document: dict[str, Any], channel_kind: str, group: list[int] | None = None
    ) -> None:
        F, self.certificate = document["uncertainty"], document["certificate"]
        self.channel_kind = channel_kind
        self.kind, self.counts = F["kind"], F["counts"]
        self.n_s, self.n_u = len(self.counts), len(self.counts[0])
        self.N = [sum(row) for row in self.counts]
        self.n = sum(self.N)
        self.p = [D(N) / (self.n or 1) for N in self.N]
        levels = document["levels"]
        self.E: dict[tuple[int, int], D] = {}
        for s1, s2 in permutations(range(self.n_s), 2):
            level = levels[s1][s2] if isinstance(levels, list) else levels
            if level != "inf":
                need(0 < level <= 100, "level")
                self.E[s1, s2] = D(level).exp()
        self.joint = {tuple(entry[:-3]): entry[-3:] for entry in self.certificate["joint"]}
        if self.kind == "kl-finite":
            self.kind, x, df = "kl", number(self.certificate["quantile"]), self.n_s * self.n_u - 1
            need(x >= 2 * df, "quantile")
            need((df - x / 2).exp() * (x / (2 * df)) ** df <= D(F["alpha"]), "quantile")
            self.b = x / (2 * self.n)
        elif self.kind in ("chi-square", "renyi", "kl"):
            x = number(self.certificate["quantile"])
            need(tail(x, self.n_s * self.n_u - 1) <= D(F["alpha"]), "quantile")
            self.q = number(F["order"]) if self.kind == "renyi" else D(2)
            power = 1 + self.q * (self.q - 1) * x / (2 * self.n)
            self.b = x / (2 * self.n) if self.kind == "kl" else power ** (1 / self.q) - 1
        if self.kind == "polytope":
            given = [[[number(x) for x in row] for row in P] for P in F["distributions"]]
            frequencies = [[D(c) / self.n for c in row] for row in self.counts]
            self.corners = [frequencies, *given]
        if self.kind == "total-variation":
            radius, cells = number(self.certificate["radius"]), self.n_s * self.n_u
            need((self.n * radius**2 / 2).exp() * D(F["alpha"]) >= 2**cells - 2, "radius")
            self.delta = radius / 2
        self.cells = [[s * self.n_u + u for u in range(self.n_u)] for s in range(self.n_s)]
        if self.kind == "evidence":
            sizes = self.certificate["sizes"]
            need(len(sizes) == len(F["evidence"]), "sizes")
            pairs = zip(F["evidence"], sizes, strict=True)
            self.pieces = [Piece(item, size, self.n_s, self.n_u) for item, size in pairs]
            P = [D(c) / self.n for row in self.counts for c in row]
            need(all(piece.has(P) for piece in self.pieces), "empty")
        if group is not None:
            self.cut(group)

    def cut(self, group: list[int]) -> None:
        """Counts and corners within a part of U; n, b and δ stay."""
        self.counts = [[row[u] for u in group] for row in self.counts]
        self.n_u = len(group)
        self.cells = [[row[u] for u in group] for row in self.cells]
        self.N = [sum(row) for row in self.counts]
        self.p = [D(N) / self.n for N in self.N]
        if self.kind == "polytope":
            self.corners = [[[row[u] for u in group] for row in P] for P in self.corners]

    # --- one column, two columns ---

    def bounds(self, s: int, q: list[int], place: tuple[int, int]) -> tuple[D, D]:
        M, m = D(max(q)), D(min(q))
        if self.kind == "polytope":
            means = [a / mass for a, mass in self.weighted(s, [D(x) for x in q]) if mass]
            return (max(means), min(means)) if means else (M, m)
        if self.kind == "evidence":
            tables = self.certificate["multipliers"]
            if tables is None:
                return M, m
            up, down = (tables[name][place[0]][place[1]] for name in ("upper", "lower"))
            if up:
                v = self.covered(s, up)
                M = min(M, max(x - y for x, y in zip(q, v, strict=True)))
            if down:
                v = self.covered(s, down)
                m = max(m, min(x + y for x, y in zip(q, v, strict=True)))
            return M, m
        if not self.N[s] or self.kind == "all":
            return M, m
        if self.kind == "known":
            mean = D(sum(c * x for c, x in zip(self.counts[s], q, strict=True))) / self.N[s]
            return mean, mean
        if self.kind == "total-variation":
            y = max(D(0), self.p[s] - self.delta)
            up, down = [D(max(q) - x) for x in q], [D(x - min(q)) for x in q]
            return M - self.L(s, up, y) / self.p[s], m + self.L(s, down, y) / self.p[s]
        tables = self.certificate["multipliers"]
        if self.channel_kind == "sets" and m < M:
            up, down = [D(max(q) - x) for x in q], [D(x - min(q)) for x in q]
            return min(M, M + self.least(s, up)), max(m, m - self.least(s, down))
        if tables is None:
            return M, m
        mu, nu = (int(tables[name][place[0]][place[1]]) for name in ("upper", "lower"))
        need(nu <= min(q) and max(q) <= mu, "multiplier")
        kappa = self.b / self.p[s]
        up, down = [D(mu - x) for x in q], [D(x - nu) for x in q]
        return min(M, mu - self.V(s, up, kappa)), max(m, nu + self.V(s, down, kappa))

    def covered(self, s: int, text: str) -> list[D]:
        """v on the cells of s."""
        *numbers, kappa = map(D, text.split(" "))
        need(len(numbers) == sum(piece.length for piece in self.pieces), "length")
        v, cost, start = [kappa] * self.pieces[0].n_cells, kappa, 0
        for piece in self.pieces:
            a = numbers[start : start + piece.length]
            start += piece.length
            cost += piece.cost(a)
            v = [x + y for x, y in zip(v, piece.lifted(a), strict=True)]
        need(cost <= MARGIN, "cost")
        need(all(x >= -MARGIN for i, x in enumerate(v) if i not in self.cells[s]), "cells")
        return [v[i] for i in self.cells[s]]

    def least(self, s: int, gaps: list[D]) -> D:
        """The least d - V(gaps + d) over d ≥ 0, a convex function, by thirds of a range."""
        kappa, low, high = self.b / self.p[s], D(0), 2**40 * max(gaps)

        def f(d: D) -> D:
            return d - self.V(s, [gap + d for gap in gaps], kappa)

        for _ in range(150):
            one, two = low + (high - low) / 3, high - (high - low) / 3
            low, high = (low, two) if f(one) <= f(two) else (one, high)
        return f(low)

    def mean(self, s: int, gaps: list[D]) -> D:
        """A, or G."""
        pairs = [(D(c) / self.N[s], g) for c, g in zip(self.counts[s], gaps, strict=True) if c]
        if self.kind == "kl":
            if any(g == 0 for _, g in pairs):
                return D(0)
            return sum((r * g.ln() for r, g in pairs), D(0)).exp()
        return sum((r * g ** (1 - 1 / self.q) for r, g in pairs if g), D(0))

    def V(self, s: int, gaps: list[D], kappa: D) -> D:  # noqa: N802  # as on the page
        mean = self.mean(s, gaps)
        if self.kind == "kl":
            return mean * (-kappa).exp()
        return (mean / (1 + kappa)) ** (self.q / (self.q - 1)) if mean else D(0)

    def h(self, s: int, gaps: list[D], t: D) -> D:
        mean, top, q = self.mean(s, gaps), self.V(s, gaps, D(0)), getattr(self, "q", D(2))
        if self.kind == "kl":
            return top if top <= t else t + t * (mean / t).ln() if t else D(0)
        if q * top <= (q - 1) * t:
            return top
        inside = (q / (q - 1)) ** (q - 1) * (mean * t) ** q if t else D(0)
        return (2 * q - 1) / q * inside ** (1 / (2 * q - 1)) - t if inside else -t

    def L(self, s: int, gaps: list[D], y: D) -> D:  # noqa: N802  # as on the page
        total = D(0)
        for gap, c in sorted(zip(gaps, self.counts[s], strict=True)):
            b = min(y, D(c) / self.n)
            total, y = total + gap * b, y - b
        return total

    def weighted(self, s: int, c: list[D]) -> list[tuple[D, D]]:
        """c·P_s and P(s) in each corner."""
        rows = [P[s] for P in self.corners]
        return [(sum(p * x for p, x in zip(row, c, strict=True)), sum(row)) for row in rows]

    def by_corners(self, s1: int, c1: list[D], s2: int, c2: list[D]) -> bool:
        one, two = self.weighted(s1, c1), self.weighted(s2, [-c for c in c2])
        if not any(mass for _, mass in one) or not any(mass for _, mass in two):
            return False
        g = [[alpha * b - a * beta for b, beta in two] for a, alpha in one]
        each = range(len(g))
        return all(g[i][i] >= 0 for i in each) and all(
            g[i][j] + g[j][i] >= -2 * (g[i][i] * g[j][j]).sqrt() for i in each for j in each
        )

    def by_two(self, s1: int, c1: list[D], s2: int, c2: list[D], place: tuple[int, ...]) -> bool:
        if self.kind == "polytope":
            return self.by_corners(s1, c1, s2, c2)
        if self.kind == "total-variation":
            return bool(self.N[s1] and self.N[s2]) and self.moved(s1, c1, s2, c2)
        if self.kind in ("all", "known", "evidence") or not (self.N[s1] and self.N[s2]):
            return False
        if place not in self.joint:
            return False
        mu1, mu2, eta = map(number, self.joint[place])
        if eta < 0 or mu1 < max(c1) or mu2 < max(c2):
            return False
        left = mu1 + mu2 + eta * self.b
        left -= self.h(s1, [mu1 - c for c in c1], eta * self.p[s1])
        left -= self.h(s2, [mu2 - c for c in c2], eta * self.p[s2])
        return left <= MARGIN

    def moved(self, s1: int, c1: list[D], s2: int, c2: list[D]) -> bool:
        C, w = max(c1) + max(c2), self.p[s1] + self.p[s2]
        K = max(D(0), w - self.delta)
        g1, g2 = [max(c1) - c for c in c1], [max(c2) - c for c in c2]
        low, high = max(D(0), K - self.p[s2]), min(self.p[s1], K)
        places = [low, high, *self.corners(s1, g1), *(K - y for y in self.corners(s2, g2))]
        for y in places:
            if not low <= y <= high:
                continue
            L1, L2 = self.L(s1, g1, y), self.L(s2, g2, K - y)
            ends, b = (y, y + w - K), L1 - L2 + C * w
            values = [C * m * m - b * m + L1 * w for m in ends]
            if C > 0 and 2 * C * ends[0] < b < 2 * C * ends[1]:
                values.append(4 * C * L1 * w - b * b)
            if min(values) < -MARGIN:
                return False
        return True

    def corners(self, s: int, gaps: list[D]) -> list[D]:
        sums = [D(0)]
        for _, c in sorted(zip(gaps, self.counts[s], strict=True)):
            sums.append(sums[-1] + D(c) / self.n)
        return sums

    # --- the channels ---

    def check(self, parts: dict[str, Any]) -> None:
        getattr(self, self.channel_kind)(**parts)

    def shown(
        self, s1: int, a1: int, q1: list[int], s2: int, a2: int, q2: list[int], places: Any
    ) -> None:
        (one, two, both), E = places, self.E[s1, s2]
        M, m = self.bounds(s1, q1, one)[0], self.bounds(s2, q2, two)[1]
        if a1 * M <= E * a2 * m:
            return
        c1, c2 = [D(a1 * x) for x in q1], [-E * a2 * x for x in q2]
        need(self.by_two(s1, c1, s2, c2, both), f"{both}")

    def dense(self, Q: Any) -> None:
        for y, (s1, s2) in product(range(len(Q[0][0])), self.E):
            q1, q2 = [row[y] for row in Q[s1]], [row[y] for row in Q[s2]]
            self.shown(s1, 1, q1, s2, 1, q2, ((y, s1), (y, s2), (y, s1, s2)))

    sets = dense

    def independent(self, r_s: Any, r_u: Any) -> None:
        for s1, s2 in self.E:
            pairs = [pair for pair in zip(r_s[s1], r_s[s2], strict=True) if any(pair)]
            need(all(bottom for _, bottom in pairs), "zero in r_s")
            ratio = max(Fraction(*pair) for pair in pairs)
            for y in range(len(r_u[0])):
                q, places = [row[y] for row in r_u], ((y, s1), (y, s2), (y, s1, s2))
                self.shown(s1, ratio.numerator, q, s2, ratio.denominator, q, places)

    def choice(self, own: Any, other: Any) -> None:
        for b, z in product(range(self.n_s), range(len(other[0]))):
            M, m = self.bounds(b, [row[z] for row in own[b]], (b, z))
            against = [E for (s1, _), E in self.E.items() if s1 == b]
            of_others = [E for (_, s2), E in self.E.items() if s2 == b]
            need(not against or min(against) * other[b][z] >= M, f"{b}, {z}")
            need(not of_others or other[b][z] <= min(of_others) * m, f"{b}, {z}")

    def unary(self, own: Any, other: Any) -> None:
        by_cell, symbols = len(other) != self.n_s, range(len(other[0]))
        for s, u, z in product(range(self.n_s), range(self.n_u), symbols):
            is_exempt = all(s1 != s for s1, _ in self.E)
            is_shared = other[s * self.n_u + u if by_cell else s][z] > 0
            need(is_shared or not own[s][u][z] or is_exempt, "zero")
        for ((s1, s2), E), z1, z2 in product(self.E.items(), symbols, symbols):
            if by_cell:
                for u1, u2 in product(range(self.n_u), repeat=2):
                    o1, o2 = other[s1 * self.n_u + u1][z1], other[s2 * self.n_u + u2][z2]
                    left, right = own[s1][u1][z1] * o2, own[s2][u2][z2] * o1
                    need(not (o1 and o2) or left <= E * right, "cells")
            elif other[s1][z1] and other[s2][z2]:
                q1, q2 = [row[z1] for row in own[s1]], [row[z2] for row in own[s2]]
                places = ((z1, s1), (z2, s2), (s1, z1, s2, z2))
                self.shown(s1, other[s2][z2], q1, s2, other[s1][z1], q2, places)


class Piece:
    """A piece of evidence, with a proof of its size."""

    def __init__(self, item: dict[str, Any], size: list[str], n_s: int, n_u: int) -> None:
        self.kind, self.test, self.n_cells = item["kind"], item.get("test"), n_s * n_u
        if self.kind == "reports":
            unit = D(2) ** item["bits"]
            rows = [row for table in item["channel"] for row in table]
            need(all(sum(map(int, row)) == 2 ** item["bits"] for row in rows), "channel")
            self.M = [[D(x) / unit for x in row] for row in rows]
            self.m = sum(item["counts"])
            self.y = [D(c) / self.m for c in item["counts"]]
            (x,), k, alpha = map(number, size), len(self.y), D(item["alpha"])
            if self.test == "chi-square":
                need(tail(x, k - 1) <= alpha, "size")
            elif self.test == "kl-finite":
                need(x >= 2 * (k - 1), "size")
                need((k - 1 - x / 2).exp() * (x / (2 * (k - 1))) ** (k - 1) <= alpha, "size")
            else:
                need((self.m * x**2 / 2).exp() * alpha >= 2**k - 2, "size")
            self.x, self.length = x, k + 2 * (self.test != "total-variation")
            return
        self.is_equal = item.get("equal", False)
        if self.kind == "known":
            need(not size, "size")
            self.rows = [[number(x) for row in table for x in row] for table in item["rows"]]
            self.limits = list(map(number, item["limits"]))
        else:
            self.rows, ends, one = [], list(map(number, size)), D(1)
            each = D(item["alpha"]) / (2 * n_s * len(item["sets"]))
            for j, s in product(range(len(item["sets"])), range(n_s)):
                low, high = ends[2 * (j * n_s + s) : 2 * (j * n_s + s) + 2]
                k, N = item["hits"][j][s], item["totals"][s]
                need(high == 1 or binomial(k, N, high) <= each, "interval")
                need(low == 0 or binomial(N - k, N, 1 - low) <= each, "interval")
                H = [one if u in item["sets"][j] else D(0) for u in range(n_u)]
                for row in ([x - high for x in H], [low - x for x in H]):
                    before, after = s * n_u, (n_s - 1 - s) * n_u
                    self.rows.append([D(0)] * before + row + [D(0)] * after)
            self.limits = [D(0)] * len(self.rows)
        self.length = len(self.rows)

    def lifted(self, a: list[D]) -> list[D]:
        if self.kind == "reports":
            own = a[: len(self.y)]
            return [sum(x * y for x, y in zip(row, own, strict=True)) for row in self.M]
        columns = zip(*self.rows, strict=True)
        return [sum(w * x for w, x in zip(a, column, strict=True)) for column in columns]

    def cost(self, a: list[D]) -> D:
        if self.kind != "reports":
            need(self.is_equal or min(a) >= 0, "sign")
            return sum((w * x for w, x in zip(a, self.limits, strict=True)), D(0))
        if self.test == "total-variation":
            mean = sum(x * y for x, y in zip(a, self.y, strict=True))
            return mean + self.x / 2 * (max(a) - min(a))
        *own, mu, nu = a
        need(nu >= 0 and mu >= max(own), "sign")
        seen = [(y, mu - x) for x, y in zip(own, self.y, strict=True) if y]
        if self.test == "chi-square":
            roots = sum(y * (nu * gap).sqrt() for y, gap in seen)
            return mu + nu * (1 + self.x / self.m) - 2 * roots
        if not nu:
            return mu
        return mu + nu * (self.x / (2 * self.m) - 1 - sum(y * (gap / nu).ln() for y, gap in seen))

    def has(self, P: list[D]) -> bool:
        if self.kind != "reports":
            pairs = zip(self.rows, self.limits, strict=True)
            gaps = [sum(x * p for x, p in zip(row, P, strict=True)) - limit for row, limit in pairs]
            return all(abs(g) <= MARGIN if self.is_equal else g <= MARGIN for g in gaps)
        columns = zip(*self.M, strict=True)
        z = [sum(x * p for x, p in zip(column, P, strict=True)) for column in columns]
        pairs = [(y, x) for y, x in zip(self.y, z, strict=True) if y]
        if self.test == "total-variation":
            return sum(abs(y - x) for y, x in zip(self.y, z, strict=True)) <= self.x
        if not all(x for _, x in pairs):
            return False
        if self.test == "chi-square":
            return sum(y * y / x for y, x in pairs) <= 1 + self.x / self.m
        return sum(y * (y / x).ln() for y, x in pairs) <= self.x / (2 * self.m)


def binomial(k: int, n: int, p: D) -> D:
    """Pr(Bin(n, p) ≤ k)."""
    return sum((math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in range(k + 1)), D(0))


def tail(x: D, df: int) -> D:
    """Pr(χ² > x) by the series of the lower incomplete gamma function."""
    t, half = x / 2, D(df) / 2
    gamma = D(1) if df % 2 == 0 else pi().sqrt()
    j = D(1) if df % 2 == 0 else D("0.5")
    while j < half:
        gamma, j = gamma * j, j + 1
    term, total, k = 1 / half, D(0), half
    while term > D(10) ** -75:
        total, k = total + term, k + 1
        term *= t / k
    return 1 - total * t**half * (-t).exp() / gamma


def pi() -> D:
    """By Machin's formula."""

    def arctan(x: int) -> D:
        total, power, k = D(0), D(1) / x, 0
        while abs(power) > D(10) ** -78:
            total, power, k = total + power / (2 * k + 1), -power / (x * x), k + 1
        return total

    return 4 * (4 * arctan(5) - arctan(239))
