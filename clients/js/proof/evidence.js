/**
 * Sets that stand on evidence, F = {P : L_i P ∈ B_i for all i}: docs/format.md, Section 4.
 *
 * A vector of multipliers is read from a certificate and never trusted: its signs, what it costs and what it leaves on
 * other cells are checked, and the threshold that it proves is computed here.
 */

import { entriesOf } from "../claims.js";
import { ProtocolError } from "../errors.js";
import { Everything } from "./everything.js";
import {
  ceil,
  exactly,
  floor,
  isBinomialTail,
  isExponentEnough,
  isFiniteQuantile,
  isQuantile,
  largest,
  logBelow,
  ONE,
  root,
  smallest,
  spend,
  sum,
} from "./numbers.js";

const MOST_PIECES = 100;
const FINE = 64n; // binary digits that roots have beside those of the table
const FRACTION = /^(-?[0-9]{1,160})(?:\/([0-9]{1,160}))?$/;
const NATURAL = /^[0-9]{1,80}$/;
const VECTOR = /^-?[0-9]{1,160}(?: -?[0-9]{1,160})*$/;

const wrong = (what) => new ProtocolError(`Expected ${what} in a piece of evidence.`);

function fractionOf(text) {
  const found = typeof text === "string" ? FRACTION.exec(text) : null;
  const bottom = BigInt(found?.[2] ?? 1);
  if (!found || bottom === 0n) throw wrong("fractions of at most 160 digits");
  return [BigInt(found[1]), bottom];
}

function listOf(value, length, what) {
  if (!Array.isArray(value) || (length !== null && value.length !== length) || !value.length) throw wrong(what);
  return value;
}

function countsOf(value, length, what) {
  const isCount = (x) => typeof x === "bigint" && x >= 0n && x < 1n << 53n;
  if (!listOf(value, length, what).every(isCount)) throw wrong(what);
  return value;
}

function alphaOf(value) {
  if (typeof value !== "number" || !(value > 0 && value < 1)) throw wrong("alpha between 0 and 1");
  return exactly(value);
}

/** A lower bound of log(top/bottom) in units of 1/ONE. */
function logOf(top, bottom) {
  const x = (top * ONE) / bottom;
  return x > 0n ? logBelow(x) : -(10n ** 6n) * ONE;
}

/** Reports of a channel: their law z = Mᵀ P lies in a ball around their frequencies. */
class Reports {
  constructor(rows, one, counts, test, size) {
    [this.rows, this.one, this.counts, this.test, this.size] = [rows, one, counts, test, size];
    this.m = sum(counts);
    this.length = counts.length + (test === "total-variation" ? 0 : 2);
  }

  add(a, total) {
    spend(2 * this.rows.length * this.counts.length);
    this.rows.forEach((row, x) => (total[x] += floor(ONE * sum(row.map((p, y) => p * a[y])), this.one)));
  }

  /** What max a·z is at most, in units of 1/ONE. */
  cost(a) {
    spend(8 * a.length, 320);
    const { counts, m, size: [top, bottom] } = this;
    const k = counts.length;
    if (this.test === "total-variation") {
      const mean = ceil(ONE * sum(counts.map((c, y) => c * a[y])), m);
      return mean + ceil(ONE * top * (largest(a) - smallest(a)), 2n * bottom);
    }
    const [own, mu, nu] = [a.slice(0, k), a[k], a[k + 1]];
    if (nu < 0n || mu < largest(own)) throw new ProtocolError("A multiplier of reports is smaller than it may be.");
    if (this.test === "chi-square") {
      const roots = sum(counts.map((c, y) => (c ? c * root((nu * (mu - own[y])) << (2n * FINE), 2) : 0n)));
      return mu * ONE + nu * ONE + ceil(nu * ONE * top, bottom * m) - floor(2n * roots * (ONE >> FINE), m);
    }
    if (nu === 0n) return mu * ONE;
    if (counts.some((c, y) => c && mu === own[y])) throw new ProtocolError("A multiplier of reports has no logarithm.");
    const logs = sum(counts.map((c, y) => (c ? c * logOf(mu - own[y], nu) : 0n)));
    return mu * ONE - nu * ONE + ceil(nu * ONE * top, 2n * m * bottom) - floor(nu * logs, m);
  }

  /** Whether the distribution of these counts is proved to lie in the ball. */
  has(P) {
    spend(4 * this.rows.length * this.counts.length, 320);
    const { counts, m, rows, size: [top, bottom] } = this;
    const unit = sum(P) * this.one;
    const law = counts.map((_, y) => sum(P.map((c, x) => c * rows[x][y])));
    if (this.test === "total-variation") {
      const gap = sum(counts.map((c, y) => (c * unit > law[y] * m ? c * unit - law[y] * m : law[y] * m - c * unit)));
      return gap * bottom <= top * unit * m;
    }
    if (counts.some((c, y) => c && !law[y])) return false;
    if (this.test === "chi-square") {
      const total = sum(counts.map((c, y) => (c ? ceil(c * c * unit * ONE, m * law[y]) : 0n)));
      return total * bottom <= (m * bottom + top) * ONE;
    }
    const logs = sum(counts.map((c, y) => (c ? c * logOf(law[y] * m, unit * c) : 0n)));
    return -logs * 2n * bottom <= top * ONE;
  }
}

/** rows·P ≤ limits, or = limits, in fractions. */
class Linear {
  constructor(rows, limits, isEqual) {
    [this.rows, this.limits, this.isEqual] = [rows, limits, isEqual];
    this.length = rows.length;
  }

  add(a, total) {
    this.rows.forEach((row, i) => {
      if (!a[i]) return;
      spend(4 * row.length);
      row.forEach(([top, bottom], x) => (total[x] += top ? floor(ONE * a[i] * top, bottom) : 0n));
    });
  }

  cost(a) {
    spend(4 * a.length);
    if (!this.isEqual && a.some((w) => w < 0n)) throw new ProtocolError("A multiplier of an inequality is negative.");
    return sum(this.limits.map(([top, bottom], i) => ceil(ONE * a[i] * top, bottom)));
  }

  has(P) {
    const n = sum(P);
    return this.rows.every((row, i) => {
      spend(4 * row.length);
      let [top, bottom] = [0n, 1n];
      row.forEach(([a, b], x) => {
        if (!a || !P[x]) return;
        [top, bottom] = b === bottom ? [top + a * P[x], bottom] : [top * b + a * P[x] * bottom, bottom * b];
      });
      const [a, b] = this.limits[i];
      const gap = top * b - a * n * bottom;
      return gap === 0n || (gap < 0n && !this.isEqual);
    });
  }
}

/** The distributions that all pieces allow. */
export class Evidence extends Everything {
  hasVectors = true;

  constructor(counts, pieces) {
    super(counts);
    this.pieces = pieces;
    const P = counts.flat();
    pieces.forEach((piece, i) => {
      if (!piece.has(P)) throw new ProtocolError(`The counts are no distribution that evidence ${i} allows: F may be empty.`);
    });
    this.n_cells = P.length;
    this.cells = counts.map((row, s) => row.map((_, u) => s * row.length + u));
  }

  given(group) {
    const made = super.given(group);
    made.cells = this.cells.map((row) => group.map((u) => row[u]));
    return made;
  }

  merged(groups) {
    return new Everything(this.counts).merged(groups);
  }

  isSeen() {
    return false; // no lemma on two columns speaks of F
  }

  /** hi = max (q - v) and lo = min (q + w) for multipliers v and w, and the extremes of q. */
  bounds(s, q, vectors) {
    let [high, low] = super.bounds(s, q);
    const [up, down] = vectors ?? [[], []];
    if (up.length) {
      const covered = this.#covered(s, up);
      const found = largest(q.map((x, u) => x * ONE - covered[u]));
      if (found < high) high = found;
    }
    if (down.length) {
      const covered = this.#covered(s, down);
      const found = smallest(q.map((x, u) => x * ONE + covered[u]));
      if (found > low) low = found;
    }
    return [high, low];
  }

  #covered(s, vector) {
    const needed = this.pieces.reduce((n, piece) => n + piece.length, 1);
    if (vector.length !== needed) throw new ProtocolError(`Expected ${needed} multipliers, got ${vector.length}.`);
    const kappa = vector[needed - 1] * ONE;
    const total = Array(this.n_cells).fill(kappa);
    let [cost, start] = [kappa, 0];
    for (const piece of this.pieces) {
      const a = vector.slice(start, start + piece.length);
      start += piece.length;
      piece.add(a, total);
      cost += piece.cost(a);
    }
    if (cost > 0n) throw new ProtocolError(`The multipliers of s = ${s} cost more than nothing.`);
    const mine = new Set(this.cells[s]);
    if (total.some((x, cell) => x < 0n && !mine.has(cell))) {
      throw new ProtocolError(`The multipliers of s = ${s} are negative on other cells.`);
    }
    return this.cells[s].map((cell) => total[cell]);
  }
}

/** A text of integers with spaces between, or nothing. */
export function vectorOf(text) {
  if (text !== "" && !(typeof text === "string" && VECTOR.test(text))) {
    throw new ProtocolError("Expected multipliers as texts of integers with spaces between.");
  }
  const found = text === "" ? [] : text.split(" ");
  spend(4 * found.length);
  return found.map(BigInt);
}

// ---- reading

const READERS = { reports, known, features };

/** The set of counts and pieces of evidence, each with a proof that it is as large as its level asks for. */
export function evidenceOf(counts, sizes, evidence) {
  if (!Array.isArray(sizes) || sizes.length !== evidence.length || evidence.length > MOST_PIECES) {
    throw new ProtocolError("Expected sizes for each piece of evidence.");
  }
  const shape = [counts.length, counts[0].length];
  const pieces = evidence.map((item, i) => {
    const kind = item instanceof Map ? item.get("kind") : undefined;
    if (typeof kind !== "string" || !Object.hasOwn(READERS, kind) || !Array.isArray(sizes[i])) throw wrong("a known kind, and sizes,");
    return READERS[kind](item, sizes[i], shape);
  });
  return new Evidence(counts, pieces);
}

function reports(item, size, [n_s, n_u]) {
  const [, test, alpha, bits, channel, given] = entriesOf(item, ["kind", "test", "alpha", "bits", "channel", "counts"], "reports");
  const counts = countsOf(given, null, "counts of reports");
  const k = counts.length;
  if (typeof bits !== "bigint" || bits < 1n || bits > 256n || k < 2 || !sum(counts)) throw wrong("1 to 256 bits, and reports,");
  spend(8 * n_s * n_u * k);
  const isRow = (row) => Array.isArray(row) && row.length === k && row.every((x) => typeof x === "string" && NATURAL.test(x));
  const rows = listOf(channel, n_s, "a channel").flatMap((table) => listOf(table, n_u, "a channel"));
  if (!rows.every(isRow)) throw wrong("rows of natural numbers");
  const M = rows.map((row) => row.map(BigInt));
  if (M.some((row) => sum(row) !== 1n << bits)) throw wrong("rows that sum to 1");
  if (counts.some((_, y) => M.every((row) => !row[y]))) throw wrong("outputs that occur");
  if (size.length !== 1) throw wrong("one size");
  const [top, bottom] = fractionOf(size[0]);
  if (top <= 0n) throw wrong("a size above 0");
  const level = alphaOf(alpha);
  const tests = {
    "chi-square": () => isQuantile([top, bottom], k - 1, level),
    "kl-finite": () => isFiniteQuantile([top, bottom], k - 1, level),
    "total-variation": () => isExponentEnough([sum(counts) * top * top, 2n * bottom * bottom], 2n ** BigInt(k) - 2n, level),
  };
  if (typeof test !== "string" || !Object.hasOwn(tests, test)) throw wrong("a test of reports");
  if (!tests[test]()) throw new ProtocolError("The size of a piece of evidence is not proved to be large enough.");
  return new Reports(M, 1n << bits, counts, test, [top, bottom]);
}

function known(item, size, [n_s, n_u]) {
  const [, equal, tables, limits] = entriesOf(item, ["kind", "equal", "rows", "limits"], "known conditions");
  if (typeof equal !== "boolean" || size.length) throw wrong("known conditions without sizes");
  listOf(limits, null, "limits");
  spend(20 * limits.length * n_s * n_u);
  const rows = listOf(tables, limits.length, "a limit for each row").map((table) =>
    listOf(table, n_s, "tables").flatMap((row) => listOf(row, n_u, "tables").map(fractionOf)),
  );
  return new Linear(rows, limits.map(fractionOf), equal);
}

function features(item, size, [n_s, n_u]) {
  const [, alpha, sets, hits, given] = entriesOf(item, ["kind", "alpha", "sets", "hits", "totals"], "features");
  const totals = countsOf(given, n_s, "totals of features");
  listOf(sets, null, "sets");
  listOf(hits, sets.length, "hits of each set");
  listOf(size, 2 * sets.length * n_s, "two ends for each interval");
  const [a, b] = alphaOf(alpha);
  const level = [a, b * BigInt(2 * sets.length * n_s)];
  const zero = [0n, 1n];
  const rows = [];
  spend(8 * sets.length * n_s * n_s * n_u);
  sets.forEach((H, j) => {
    const members = countsOf(H, null, "a set of codes").map(Number);
    if (members.some((u, i) => u >= n_u || (i && u <= members[i - 1]))) throw wrong("codes of U in ascending order");
    countsOf(hits[j], n_s, "hits of a set").forEach((k, s) => {
      const [low, high] = [0, 1].map((i) => fractionOf(size[2 * (j * n_s + s) + i]));
      const n = totals[s];
      const isOrdered = low[0] >= 0n && low[0] * high[1] <= high[0] * low[1] && high[0] <= high[1];
      if (!isOrdered || k > n) throw wrong("0 ≤ low ≤ high ≤ 1");
      const isHigh = high[0] === high[1] || isBinomialTail(k, n, high, level);
      const isLow = low[0] === 0n || isBinomialTail(n - k, n, [low[1] - low[0], low[1]], level);
      if (!isHigh || !isLow) throw new ProtocolError("An interval of features is not proved to be wide enough.");
      for (const [inside, outside] of [
        [[high[1] - high[0], high[1]], [-high[0], high[1]]],
        [[low[0] - low[1], low[1]], low],
      ]) {
        const row = Array(n_s * n_u).fill(zero);
        for (let u = 0; u < n_u; u++) row[s * n_u + u] = members.includes(u) ? inside : outside;
        rows.push(row);
      }
    });
  });
  return new Linear(rows, rows.map(() => zero), false);
}
