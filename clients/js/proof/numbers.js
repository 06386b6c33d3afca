/**
 * Roots, exponentials, logarithms and the χ² law in BigInt, each rounded to a known side, and a count of the work.
 *
 * Reals are integers in units of 1/ONE unless it says otherwise.
 */

import { ProtocolError } from "../errors.js";

const UNIT = 160n;
export const ONE = 1n << UNIT;

const FINE = 384n; // binary digits of exponentials and of the χ² law: enough for α > 1e-80
const LONG = 1n << (3n * FINE);
const PI_UNIT = 10n ** 99n;
const PI_ABOVE =
  3141592653589793238462643383279502884197169399375105820974944592307816406286208998628034825342117068n; // rounded up

// ---- work

const [LEAST_WORK, WORK_PER_CHARACTER, MOST_WORK] = [5e8, 1e4, 1e10]; // as in Python: an honest file does not come near
const STEP = 16;
const HIGH = 32; // a degree from which on roots take more work than logarithms
let left = Infinity;

/** What `work` gives, unless it takes more work than a document of so many characters may take. */
export function withBudget(characters, work) {
  left = Math.min(LEAST_WORK + WORK_PER_CHARACTER * characters, MOST_WORK);
  try {
    return work();
  } finally {
    left = Infinity;
  }
}

/** Counts n operations on numbers of so many bits before they are done. */
export function spend(n, bits = 0) {
  left -= n * (STEP + Math.floor((bits / 64) ** 1.5));
  if (left < 0) {
    throw new ProtocolError(
      "The proof takes more work than is allowed: it has too many inequalities, or numbers of too many digits.",
    );
  }
}

// ---- integers

export const largest = (values) => values.reduce((a, b) => (a > b ? a : b));
export const smallest = (values) => values.reduce((a, b) => (a < b ? a : b));
export const sum = (values) => values.reduce((a, b) => a + b, 0n);
export const bitsOf = (x) => (x === 0n ? 0 : 4 * x.toString(16).length - Math.clz32(parseInt(x.toString(16)[0], 16)) + 28);

/** a/b for b > 0, rounded down. */
export function floor(a, b) {
  const quotient = a / b;
  return a < 0n && quotient * b !== a ? quotient - 1n : quotient;
}

/** a/b for b > 0, rounded up. */
export const ceil = (a, b) => -floor(-a, b);

const quotient = (a, b, up) => (up ? ceil(a, b) : floor(a, b));

/** The integer part of the k-th root of n ≥ 0: Newton's steps from above fall, and not below it. */
export function root(n, k) {
  if (k === 1 || n < 2n) return n;
  const bits = bitsOf(n);
  spend(3 * Math.ceil(Math.log2(2 + bits / (30 * k))) + 6, bits);
  const cut = Math.max(0, bits - 60);
  const exponent = (Math.log2(Number(n >> BigInt(cut))) + cut) / k;
  const whole = Math.floor(exponent);
  const lead = BigInt(Math.ceil(2 ** (exponent - whole + 53) * (1 + 2 ** -30)));
  const powers = BigInt(k);
  let x = ((lead << BigInt(whole)) >> 53n) + 1n;
  for (;;) {
    const other = n / x ** (powers - 1n);
    if (other >= x) break;
    x = ((powers - 1n) * x + other) / powers;
  }
  return x;
}

/** x^(top/bottom) from below; for high degrees, whose roots are of very long numbers, by logarithms. */
export function powerBelow(x, top, bottom) {
  if (Math.max(top, bottom) > HIGH) return x > 0n ? powerOfEBelow(floor(logBelow(x) * BigInt(top), BigInt(bottom))) : 0n;
  spend(2, bitsOf(x) * Math.max(top, bottom));
  const more = BigInt(bottom - top);
  return root(more >= 0n ? x ** BigInt(top) * ONE ** more : x ** BigInt(top) / ONE ** -more, bottom);
}

// ---- exponentials and logarithms

/** e^(top/bottom) for top ≥ 0, in units of 2^-FINE: a series of positive terms, squared again and again. */
function exponential(top, bottom, up) {
  const halvings = bitsOf(top / bottom) + 8;
  spend(60 + halvings, 2 * Number(FINE));
  spend(4, 2 * Number(FINE) + 1.5 * Number(top / bottom)); // the last squares are long
  const x = quotient(top << FINE, bottom << BigInt(halvings), up); // below 2^-8
  const one = 1n << FINE;
  let [total, term] = [one, one];
  for (let j = 1n; term > (up ? 1n : 0n); j++) {
    term = quotient(term * x, j << FINE, up);
    total += term;
  }
  if (up) total += 1n; // what follows a term of one unit is less than that
  for (let i = 0; i < halvings; i++) total = quotient(total * total, one, up);
  return total;
}

/** e^x from below, for a fraction x = top/bottom ≥ 0. */
export const expBelow = (top, bottom) => exponential(top, bottom, false) >> (FINE - UNIT);

/** e^x from below, for any x in units of 1/ONE. */
export function powerOfEBelow(x) {
  if (x >= 0n) return expBelow(x, ONE);
  if (x < -(UNIT + 1n) * ONE) return 0n;
  return (1n << (FINE + UNIT)) / exponential(-x, ONE, true);
}

/** log x for x ≥ ONE · 2^-UNIT: m · 2^e with 1 ≤ m < 2, and log m = 2 (z + z³/3 + z⁵/5 + ...), z = (m-1)/(m+1). */
function logarithm(x, up) {
  spend(150, Number(FINE));
  const e = BigInt(bitsOf(x) - 1);
  const one = 1n << FINE;
  const m = quotient(x << FINE, 1n << e, up);
  const exponent = e - UNIT;
  const log_2 = LOG_2[up === exponent > 0n ? 1 : 0];
  return quotient(2n * series(m - one, m + one, up) + exponent * log_2, 1n << (FINE - UNIT), up);
}

/** z + z³/3 + z⁵/5 + ... for z = top/bottom ≤ 1/2, in units of 2^-FINE. */
function series(top, bottom, up) {
  let z = quotient(top << FINE, bottom, up);
  const square = quotient(z * z, 1n << FINE, up);
  let total = 0n;
  for (let j = 1n; z > (up ? 1n : 0n); j += 2n) {
    total += quotient(z, j, up);
    z = quotient(z * square, 1n << FINE, up);
  }
  return up ? total + 2n : total; // what follows a z of one unit is less than that
}

const LOG_2 = [false, true].map((up) => 2n * series(1n, 3n, up));

export const logBelow = (x) => logarithm(x, false);
export const logAbove = (x) => logarithm(x, true);

// ---- quantiles

/**
 * Whether it is proved that χ² with df degrees of freedom exceeds x = top/bottom with chance α = a/b at most.
 *
 * The chance to stay below x = 2t is e^-t Σ t^(j/2)/Γ(j/2 + 1) over j = df, df + 2, ...; all terms are positive, so
 * some of them are a lower bound. Γ(j/2 + 1) is j/2 · (j-2)/2 ... down to 2/2, or to 1/2 times √π. It grows with x, so
 * a smaller x proves no less.
 */
export function isQuantile([top, bottom], df, [a, b]) {
  if (top <= 0n) return false;
  const most = BigInt(2 * df + 1000);
  spend(4 * (df + 1000), 4 * Number(FINE));
  const t = top > most * bottom ? most << (FINE - 1n) : (top << FINE) / (2n * bottom);
  let [total, term, cut] = [0n, 1n << FINE, 0n]; // both in units of 2^(cut - FINE)
  for (let j = BigInt(2 - (df % 2)); term > 0n; j += 2n) {
    term = (2n * term * t) / (j << FINE);
    if (j >= BigInt(df)) total += term;
    if (term >= LONG) [total, term, cut] = [total >> FINE, term >> FINE, cut + FINE];
  }
  total <<= cut;
  const least = (b - a) * exponential(t, 1n << FINE, true); // total/e^t ≥ 1 - α, with √(πt) beside e^t for odd df
  if (df % 2 === 0) return total * b >= least;
  return ((total * b) ** 2n << FINE) * PI_UNIT >= least ** 2n * PI_ABOVE * t;
}

/**
 * Whether it is proved that 2n KL(P̂‖P) of df + 1 cells exceeds x = top/bottom with chance α = a/b at most, for every n.
 *
 * For t = x/2 ≥ df the chance is at most e^(df-t) (t/df)^df, which falls as t grows: t may be rounded down.
 */
export function isFiniteQuantile([top, bottom], df, [a, b]) {
  const n = BigInt(df);
  const t = floor(top * ONE, 2n * bottom);
  if (t < n * ONE) return false;
  const log_alpha = logBelow(a * ONE) - logAbove(b * ONE);
  return t - n * ONE - n * logAbove(ceil(t, n)) + log_alpha >= 0n;
}

/**
 * Whether it is proved that Bin(n, p) is k or less with chance α = a/b at most, for p = top/bottom.
 *
 * The chance is (1-p)^n Σ_{j≤k} r_j, r_0 = 1, r_j = r_(j-1) (n-j+1) p/(j (1-p)); everything is rounded up.
 */
export function isBinomialTail(k, n, [top, bottom], [a, b]) {
  if (k >= n || top <= 0n) return a >= b;
  if (top >= bottom) return true;
  const rest = bottom - top;
  spend(4 * (Number(k) + 64), Number(FINE) + 2 * bitsOf(bottom));
  let [mantissa, exponent] = [1n, 0n]; // (1-p)^n ≤ mantissa 2^exponent
  let [square, own] = [ceil(rest << FINE, bottom), -FINE];
  const cut = (x, e) => {
    const more = bitsOf(x) - Number(FINE);
    return more > 0 ? [ceil(x, 1n << BigInt(more)), e + BigInt(more)] : [x, e];
  };
  for (let left = n; left > 0n; left >>= 1n) {
    if (left & 1n) [mantissa, exponent] = cut(mantissa * square, exponent + own);
    [square, own] = cut(square * square, 2n * own);
  }
  let [term, total] = [1n << FINE, 1n << FINE];
  exponent -= FINE;
  for (let j = 1n; j <= k; j++) {
    term = ceil(term * (n - j + 1n) * top, j * rest);
    total += term;
    if (total >= LONG) [term, total, exponent] = [(term >> FINE) + 1n, (total >> FINE) + 1n, exponent + FINE];
  }
  const chance = mantissa * total * b;
  return exponent >= 0n ? chance << exponent <= a : chance <= a << -exponent;
}

/** Whether e^(top/bottom) ≥ number/α is proved, for α = a/b. */
export function isExponentEnough([top, bottom], number, [a, b]) {
  const needed = logAbove(number * b * ONE) - logBelow(a * ONE);
  return floor(top * ONE, bottom) >= needed;
}

/** The exact value of a float as a fraction. */
export function exactly(x) {
  const bits = new DataView(new ArrayBuffer(8));
  bits.setFloat64(0, x);
  const word = bits.getBigUint64(0);
  const power = Number((word >> 52n) & 0x7ffn);
  const mantissa = (word & ((1n << 52n) - 1n)) | (power ? 1n << 52n : 0n);
  const exponent = Math.max(power, 1) - 1075;
  return exponent >= 0 ? [mantissa << BigInt(exponent), 1n] : [mantissa, 1n << BigInt(-exponent)];
}
