/**
 * The sets F: what the means of a column are over each of them, by docs/format.md, Section 4.
 *
 * q is a column of integers over u, R_s = P_{U|s}. Bounds are in units of 1/ONE, each rounded to its safe side. The
 * multipliers of a file are never trusted: each becomes a bound by a lemma that holds for every multiplier.
 */

import { ProtocolError } from "../errors.js";
import { evidenceOf } from "./evidence.js";
import { added, Everything, within } from "./everything.js";
import {
  bitsOf,
  ceil,
  exactly,
  floor,
  isExponentEnough,
  isFiniteQuantile,
  isQuantile,
  largest,
  logAbove,
  logBelow,
  ONE,
  powerBelow,
  powerOfEBelow,
  root,
  smallest,
  spend,
  sum,
} from "./numbers.js";

/** The vectors c_1 = a1 q1 and c_2 = -E a2 q2, in units of 1/ONE. */
const vectors = (E, first, second) => [first.q.map((x) => first.a * x * ONE), second.q.map((x) => -E * second.a * x)];

class Known extends Everything {
  bounds(s, q) {
    if (!this.isSeen(s)) return super.bounds(s, q);
    spend(2 * q.length);
    const weighted = sum(q.map((x, u) => x * this.counts[s][u])) * ONE;
    return [ceil(weighted, this.totals[s]), floor(weighted, this.totals[s])];
  }
}

/** All mixtures of the frequencies and of further corners, each up to a factor. */
class Polytope extends Everything {
  constructor(counts, corners) {
    super(counts);
    this.corners = [counts, ...corners];
  }

  given(group) {
    const made = super.given(group);
    made.corners = this.corners.map((table) => within(table, group));
    return made;
  }

  merged(groups) {
    const made = super.merged(groups);
    made.corners = this.corners.map((table) => added(table, groups));
    return made;
  }

  isSeen(s) {
    return this.corners.some((table) => table[s].some((x) => x > 0n));
  }

  bounds(s, q) {
    if (!this.isSeen(s)) return super.bounds(s, q);
    const means = this.means({ s, a: ONE, q }).filter(([, mass]) => mass > 0n);
    return [largest(means.map(([top, mass]) => ceil(top, mass))), smallest(means.map(([top, mass]) => floor(top, mass)))];
  }

  isShown(E, first, second) {
    if (!this.isSeen(first.s) || !this.isSeen(second.s)) return false;
    const [ones, twos] = [this.means(first), this.means(second)];
    spend(10 * ones.length ** 2, 4 * Math.max(...[...ones, ...twos].flat().map(bitsOf)));
    const g = (i, j) => E * ones[i][1] * twos[j][0] - ONE * ones[i][0] * twos[j][1];
    const own = ones.map((_, i) => g(i, i));
    if (own.some((x) => x < 0n)) return false;
    return ones.every((_, i) =>
      ones.slice(0, i).every((_, j) => {
        const mixed = g(i, j) + g(j, i);
        return mixed >= 0n || mixed * mixed <= 4n * own[i] * own[j];
      }),
    );
  }

  /** a q·P_s and P(s) in each corner. */
  means({ s, a, q }) {
    spend(4 * this.corners.length * q.length);
    return this.corners.map((table) => [a * sum(q.map((x, u) => x * table[s][u])), sum(table[s])]);
  }
}

const HALVINGS = 34; // of the logarithm of a multiplier
const floats = (values) => values.reduce((a, b) => a + b, 0);

/** Sets with one budget for all s: V, h and η b of one kind of ball, and in floats whether d - V falls in d. */
class Budget extends Everything {
  hasMultipliers = true;

  /** By bisection in floats: any μ and ν give bounds, good ones tight bounds. They lie beyond the ends of the column. */
  multipliers(s, q) {
    spend(60 * (q.length + 4));
    const [high, low] = [largest(q), smallest(q)];
    if (high === low || !this.isSeen(s)) return undefined;
    const range = Number(high - low);
    const distance = (gaps) => {
      const points = gaps.map((gap, u) => [Number(this.counts[s][u]) / Number(this.totals[s]), Number(gap) / range]).filter(([r]) => r);
      let [least, most] = [-60, 60]; // of its logarithm, in units of the range
      for (let i = 0; i < HALVINGS; i++) {
        const middle = (least + most) / 2;
        if (this.isFalling(s, points.map(([r, gap]) => [r, gap + 2 ** middle]))) least = middle;
        else most = middle;
      }
      return BigInt(Math.round(range * 2 ** most));
    };
    return [high + distance(q.map((x) => high - x)), low - distance(q.map((x) => x - low))];
  }

  bounds(s, q, multipliers) {
    const [high, low] = super.bounds(s, q);
    if (!multipliers || !this.isSeen(s)) return [high, low];
    const [mu, nu] = multipliers;
    if (mu < largest(q) || nu > smallest(q)) {
      throw new ProtocolError(`A multiplier of s = ${s} lies inside the range of its column.`);
    }
    const above = mu * ONE - this.V(s, q.map((x) => (mu - x) * ONE));
    const below = nu * ONE + this.V(s, q.map((x) => (x - nu) * ONE));
    return [above < high ? above : high, below > low ? below : low];
  }

  isShown(E, first, second, joint) {
    if (!joint || !this.isSeen(first.s) || !this.isSeen(second.s)) return false;
    const mu = joint.slice(0, 2).map(([top, bottom]) => ceil(top * ONE, bottom));
    const eta = ceil(joint[2][0] * ONE, joint[2][1]);
    const c = vectors(E, first, second);
    if (eta < 0n || mu.some((x, i) => x < largest(c[i]))) return false;
    const h = [first, second].map(({ s }, i) => this.h(s, c[i].map((x) => mu[i] - x), (eta * this.totals[s]) / this.n));
    return mu[0] + mu[1] + this.price(eta) <= h[0] + h[1];
  }
}

/** χ² and Rényi sets of order q = m/d. */
class Power extends Budget {
  constructor(counts, [top, bottom], m, d) {
    super(counts);
    [this.m, this.d] = [m, d];
    const [M, D] = [BigInt(m), BigInt(d)];
    const raised = ONE + ceil(M * (M - D) * top * ONE, D * D * 2n * this.n * bottom);
    this.sigma = root(raised ** D * ONE ** (M - D), m) + 1n; // 1 + b
    while (this.sigma ** M < raised ** D * ONE ** (M - D)) this.sigma += 1n;
  }

  isFalling(s, points) {
    const k = 1 + ((Number(this.sigma) / Number(ONE) - 1) * Number(this.n)) / Number(this.totals[s]);
    const q = this.m / this.d;
    const A = floats(points.map(([r, g]) => r * g ** (1 - 1 / q)));
    const slope = floats(points.map(([r, g]) => r * g ** (-1 / q)));
    return A ** (1 / (q - 1)) * slope > k ** (q / (q - 1));
  }

  V(s, gaps) {
    const k = this.totals[s] * ONE + (this.sigma - ONE) * this.n; // 1 + κ, times N_s
    return this.risen((this.weighted(s, gaps) * ONE) / k);
  }

  h(s, gaps, t) {
    const [m, d] = [BigInt(this.m), BigInt(this.d)];
    const A = this.weighted(s, gaps) / this.totals[s];
    const whole = this.risen(A);
    if (m * (whole + 1n) <= (m - d) * t) return whole;
    const inside = (m ** (m - d) * ((A * t) / ONE) ** m * ONE ** (m - d)) / (m - d) ** (m - d);
    const found = ((2n * m - d) * root(inside, 2 * this.m - this.d)) / m - t;
    return found > 0n ? found : 0n;
  }

  price(eta) {
    return ceil(eta * (this.sigma - ONE), ONE);
  }

  /** A, times N_s. */
  weighted(s, gaps) {
    return sum(gaps.map((gap, u) => (this.counts[s][u] ? this.counts[s][u] * powerBelow(gap, this.m - this.d, this.m) : 0n)));
  }

  risen(A) {
    return powerBelow(A, this.m, this.m - this.d);
  }
}

/** Balls of Kullback-Leibler divergence. */
class KullbackLeibler extends Budget {
  constructor(counts, quantile) {
    super(counts);
    this.x = quantile;
  }

  isFalling(s, points) {
    const kappa = Number(this.x[0]) / Number(this.x[1]) / 2 / Number(this.totals[s]);
    const log_G = floats(points.map(([r, g]) => r * Math.log(g)));
    return log_G - kappa + Math.log(floats(points.map(([r, g]) => r / g))) > 0;
  }

  V(s, gaps) {
    const log_G = this.logG(s, gaps);
    const [top, bottom] = this.x;
    return log_G === null ? 0n : powerOfEBelow(log_G - ceil(top * ONE, 2n * bottom * this.totals[s]));
  }

  h(s, gaps, t) {
    const log_G = this.logG(s, gaps);
    if (log_G === null || t === 0n) return 0n;
    if (log_G <= logBelow(t)) return powerOfEBelow(log_G);
    const found = t + floor(t * (log_G - logAbove(t)), ONE);
    return found > 0n ? found : 0n;
  }

  price(eta) {
    const [top, bottom] = this.x;
    return ceil(eta * top, 2n * bottom * this.n);
  }

  /** log G; null for -∞. */
  logG(s, gaps) {
    const seen = gaps.map((gap, u) => [this.counts[s][u], gap]).filter(([count]) => count > 0n);
    if (seen.some(([, gap]) => gap === 0n)) return null;
    return floor(sum(seen.map(([count, gap]) => count * logBelow(gap))), this.totals[s]);
  }
}

/** Balls of total variation; masses are in units of 1/ONE records. */
class TotalVariation extends Everything {
  constructor(counts, [top, bottom]) {
    super(counts);
    this.delta = ceil(top * this.n * ONE, 2n * bottom);
  }

  bounds(s, q) {
    if (!this.isSeen(s)) return super.bounds(s, q);
    const [most, least, total] = [largest(q), smallest(q), this.totals[s]];
    const y = positive(total * ONE - this.delta);
    const high = most * ONE - new Fall(this.counts[s], q.map((x) => most - x)).at(y) / total;
    return [high, least * ONE + new Fall(this.counts[s], q.map((x) => x - least)).at(y) / total];
  }

  isShown(E, first, second) {
    if (!this.isSeen(first.s) || !this.isSeen(second.s)) return false;
    const c = vectors(E, first, second);
    const most = c.map(largest);
    const gaps = c.map((vector, i) => vector.map((x) => most[i] - x));
    const counts = [first, second].map(({ s }) => this.counts[s]);
    const [n1, n2] = [first, second].map(({ s }) => this.totals[s] * ONE);
    const [C, w] = [most[0] + most[1], n1 + n2];
    const K = positive(w - this.delta);
    const [low, high] = [positive(K - n2), n1 < K ? n1 : K];
    const falls = gaps.map((some, i) => new Fall(counts[i], some));
    const places = [low, high, ...falls[0].corners, ...falls[1].corners.map((y) => K - y)];
    return places.every((y) => {
      if (y < low || y > high) return true;
      const [L1, L2] = [falls[0].at(y), falls[1].at(K - y)];
      const b = L1 - L2 + C * w; // C m² - b m + L1 w ≥ 0 for y ≤ m ≤ y + w - K
      const ends = [y, y + w - K];
      if (C > 0n && 2n * C * ends[0] < b && b < 2n * C * ends[1]) return b * b <= 4n * C * L1 * w;
      return ends.every((m) => C * m * m - b * m + L1 * w >= 0n);
    });
  }
}

const positive = (x) => (x > 0n ? x : 0n);
const byGap = (gaps) => [...gaps.keys()].sort((i, j) => (gaps[i] < gaps[j] ? -1 : gaps[i] > gaps[j] ? 1 : i - j));

/** L(y): the least Σ gap_u b_u over 0 ≤ b ≤ counts of sum y. It is linear between its corners. */
class Fall {
  constructor(counts, gaps) {
    spend(8 * gaps.length);
    const order = byGap(gaps);
    this.slopes = order.map((u) => gaps[u]);
    [this.corners, this.values] = [[0n], [0n]];
    order.forEach((u, i) => {
      const full = counts[u] * ONE;
      this.corners.push(this.corners[i] + full);
      this.values.push(this.values[i] + gaps[u] * full);
    });
  }

  at(y) {
    spend(8);
    let [low, high] = [0, this.slopes.length - 1]; // the last corner below y, or the first of all
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.corners[middle] < y) low = middle;
      else high = middle - 1;
    }
    return this.values[low] + this.slopes[low] * (y - this.corners[low]);
  }
}

// ---- with a proof that the set is as large as its level asks for

const quantiles = (isEnough) => (counts, constant, alpha) => {
  if (!isEnough(constant, counts.flat().length - 1, alpha)) {
    throw new ProtocolError("The quantile is not proved to be as large as the set needs.");
  }
};
const [checkQuantile, checkFiniteQuantile] = [quantiles(isQuantile), quantiles(isFiniteQuantile)];

function checkRadius(counts, [top, bottom], alpha) {
  if (top <= 0n) throw new ProtocolError("Expected a radius above 0.");
  const cells = BigInt(counts.flat().length);
  const n = sum(counts.flat());
  if (!isExponentEnough([n * top * top, 2n * bottom * bottom], 2n ** cells - 2n, alpha)) {
    throw new ProtocolError("The radius is not proved to be large enough.");
  }
}

/** For each kind of set, the constant that its certificate has, how large it must be, and what is made of it. */
const SETS = new Map([
  ["all", [null, null, (counts) => new Everything(counts)]],
  ["given-u", [null, null, (counts) => new Everything(counts)]],
  ["known", [null, null, (counts) => new Known(counts)]],
  ["polytope", [null, null, (counts, _, { distributions }) => new Polytope(counts, distributions.map(integers))]],
  ["chi-square", ["quantile", checkQuantile, (counts, x) => new Power(counts, x, 2, 1)]],
  ["renyi", ["quantile", checkQuantile, (counts, x, { order }) => new Power(counts, x, ...orderOf(order))]],
  ["kl", ["quantile", checkQuantile, (counts, x) => new KullbackLeibler(counts, x)]],
  ["kl-finite", ["quantile", checkFiniteQuantile, (counts, x) => new KullbackLeibler(counts, x)]],
  ["total-variation", ["radius", checkRadius, (counts, x) => new TotalVariation(counts, x)]],
  ["evidence", ["sizes", null, (counts, sizes, { evidence }) => evidenceOf(counts, sizes, evidence)]],
]);

/** What the certificate of such a set has beside multipliers; null for nothing. */
export const constantOf = (kind) => SETS.get(kind)[0];

/** The set of a claim around counts, once its constant, a fraction, is proved to be large enough. */
export function setOf(claim, counts, constant) {
  const [, checkConstant, made] = SETS.get(claim.kind);
  checkConstant?.(counts, constant, exactly(claim.alpha));
  return made(counts, constant, claim);
}

function orderOf(text) {
  const [m, d = 1] = text.split("/").map(Number);
  return [m, d];
}

/** A table of fractions over their common denominator, which is left out. */
function integers(table) {
  const exact = table.map((row) => row.map((text) => text.split("/").map(BigInt)));
  const unit = exact.flat().reduce((common, [, b = 1n]) => (common / divisor(common, b)) * b, 1n);
  return exact.map((row) => row.map(([a, b = 1n]) => a * (unit / b)));
}

function divisor(a, b) {
  while (b !== 0n) [a, b] = [b, a % b];
  return a;
}
