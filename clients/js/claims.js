/**
 * What a public file from version 2 on claims, and against whom: docs/format.md, Section 2.
 *
 * Nothing in a public file proves a claim. These are the words of whoever wrote it.
 */

import { canonical } from "./documents.js";
import { ProtocolError } from "./errors.js";

const MOST_LEVEL = 100;
const MOST_ORDER = 16n; // of a Rényi set, and the largest denominator of its order
const MOST_LISTED = 12; // pairs, or readers, that are listed one by one
const MOST_COLUMNS = 4; // of U, all of whose parts are readers; of more, single columns, all but one, and all
const MOST_CORNERS = 5000; // of a polytope
const FRACTION = /^(0|[1-9][0-9]{0,399})(?:\/([1-9][0-9]{0,399}))?$/;

/** For each kind of set, its parameters, and the distributions that it has. */
const SETS = new Map([
  ["all", [[], () => "any distribution"]],
  ["given-u", [[], () => "any distribution"]],
  ["known", [[], () => "the frequencies of the sample, taken for true"]],
  ["chi-square", [["alpha"], ({ alpha }) => `a distribution that a χ² test on the sample accepts (α = ${alpha})`]],
  [
    "renyi",
    [
      ["alpha", "order"],
      ({ alpha, order }) => `a distribution that a power-divergence test of order ${order} on the sample accepts (α = ${alpha})`,
    ],
  ],
  ["kl", [["alpha"], ({ alpha }) => `a distribution that a likelihood ratio test on the sample accepts (α = ${alpha})`]],
  [
    "kl-finite",
    [["alpha"], ({ alpha }) => `a distribution near the sample in Kullback-Leibler divergence (α = ${alpha}, for any number of records)`],
  ],
  [
    "polytope",
    [
      ["distributions"],
      ({ distributions: { length } }) =>
        `a mixture of the frequencies of the sample and of ${length} distribution${length > 1 ? "s" : ""} that the file lists`,
    ],
  ],
  [
    "total-variation",
    [["alpha"], ({ alpha }) => `a distribution near the sample in total variation (α = ${alpha}, for any number of records)`],
  ],
  ["evidence", [["evidence"], ({ evidence }) => `a distribution that ${evidence.map(pieceInWords).join(" and that ")}`]],
]);

/** Who is limited by a claim, and whatever else they may know. */
function attacker(claim) {
  if (claim.kind === "given-u") return "someone who knows U, whatever distribution is true";
  if (claim.kind === "all") {
    const known = claim.knows.length ? `someone who knows ${listed(claim.knows)} of the person` : "anyone";
    return `${known}, whatever${claim.knows.length ? " else" : ""} they know about the person except S, whatever distribution is true`;
  }
  const population = `from a population with ${SETS.get(claim.kind)[1](claim)}`;
  if (!claim.knows.length) return `someone who knows nothing about the person except that they come ${population}`;
  return `someone who knows ${listed(claim.knows)} of the person, and beside that only that they come ${population}`;
}

const listed = (names) => names.map((name) => JSON.stringify(name)).join(" and ");

const READ = { alpha: alphaOf, order: orderOf, distributions: distributionsOf, evidence: evidenceOf };

const PIECES = new Map([
  ["reports", ["test", "alpha", "n"]],
  ["known", ["n"]],
  ["features", ["alpha", "n"]],
]);
const TESTS = new Map([
  ["chi-square", "a χ² test"],
  ["kl-finite", "a Kullback-Leibler test that holds for any number of reports"],
  ["total-variation", "a total variation test that holds for any number of reports"],
]);

/** What a set stands on: reports of earlier people, features of a sample, and what is known for certain. */
function evidenceOf(value) {
  if (!Array.isArray(value) || !value.length) throw new ProtocolError("Expected a list of pieces of evidence.");
  const pieces = value.map((item) => {
    const kind = item instanceof Map ? item.get("kind") : undefined;
    if (!PIECES.has(kind)) throw new ProtocolError(`Expected pieces of evidence of the kinds ${[...PIECES.keys()].join(", ")}.`);
    const names = PIECES.get(kind);
    const [, ...values] = entriesOf(item, ["kind", ...names], "a piece of evidence");
    const piece = { kind, ...Object.fromEntries(names.map((name, i) => [name, values[i]])) };
    if (typeof piece.n !== "bigint" || piece.n < 1n || piece.n >= 1n << 53n) throw new ProtocolError("Expected n from 1 on in a piece of evidence.");
    if (kind !== "known") alphaOf(piece.alpha);
    if (kind === "reports" && !TESTS.has(piece.test)) throw new ProtocolError("Expected a test of reports.");
    return Object.freeze({ ...piece, n: Number(piece.n) });
  });
  return Object.freeze(pieces);
}

function pieceInWords({ kind, test, alpha, n }) {
  if (kind === "reports") return `${TESTS.get(test)} on ${n} earlier reports accepts (α = ${alpha})`;
  if (kind === "features") return `the intervals of some features of ${n} people allow (α = ${alpha})`;
  return `${n} known condition${n > 1 ? "s" : ""} allow${n > 1 ? "" : "s"}`;
}

/**
 * The claims of a document over cells of this shape [n_s, n_u]: frozen objects with kind, levels, epsilon, isUniform,
 * knows, and alpha, order or distributions where the kind has them. `useful` are names of columns of U.
 */
export function claimsFrom(value, version, shape, epsilon, useful) {
  if (!Array.isArray(value) || !value.length) throw new ProtocolError("Expected a list of claims.");
  const claims = value.map((entry) => claimOf(entry, version, shape, useful));
  if (version === 2n && claims.length === 1 && claims[0].isUniform) {
    throw new ProtocolError("Expected version 1 where one level is claimed over one set.");
  }
  if (version === 3n && !claims.some(({ knows }) => knows.length)) {
    throw new ProtocolError("Expected version 2 where nothing is claimed for someone who knows part of U.");
  }
  if (claims[0].knows.length) throw new ProtocolError("Expected no knows in the first claim: epsilon is for someone who knows nothing of U.");
  if (claims[0].epsilon !== epsilon) throw new ProtocolError("Expected epsilon as the largest level of the first claim.");
  return Object.freeze(claims);
}

function claimOf(entry, version, shape, useful) {
  const knowing = version === 3n && entry instanceof Map && entry.has("knows");
  const [uncertainty, , named] = entriesOf(entry, ["uncertainty", "levels", ...(knowing ? ["knows"] : [])], "a claim");
  const kind = uncertainty instanceof Map ? uncertainty.get("kind") : undefined;
  if (!SETS.has(kind)) throw new ProtocolError(`Expected the set of a claim to be ${[...SETS.keys()].join(", ")}.`);
  const names = SETS.get(kind)[0];
  const [, ...values] = entriesOf(uncertainty, ["kind", ...names], `a claim over ${kind}`);
  const parameters = Object.fromEntries(names.map((name, i) => [name, READ[name](values[i], shape)]));
  const knows = knowing ? knowsFrom(named, kind, useful) : Object.freeze([]);
  const levels = levelsOf(entry.get("levels"), shape[0]);
  const apart = levels.flatMap((row, s) => row.filter((_, other) => other !== s));
  const promised = apart.filter(Number.isFinite);
  if (!promised.length) throw new ProtocolError("Expected a level for some pair of S values, got none.");
  const isUniform = apart.every((level) => level === apart[0]);
  if (isUniform && Array.isArray(entry.get("levels"))) {
    throw new ProtocolError("Expected one number where all pairs have the same level.");
  }
  for (const row of levels) Object.freeze(row);
  const epsilon = Math.max(...promised);
  return Object.freeze({ kind, ...parameters, levels: Object.freeze(levels), epsilon, isUniform, knows });
}

/** Names of one or more columns of U, each once and in their order. */
function knowsFrom(value, kind, useful) {
  const isPart = Array.isArray(value) && value.length > 0 && value.every((name) => typeof name === "string");
  const inOrder = isPart ? useful.filter((name) => value.includes(name)) : [];
  if (!isPart || inOrder.length !== value.length || inOrder.some((name, i) => name !== value[i])) {
    throw new ProtocolError(`Expected knows as names of useful columns, each once and in their order, got ${canonical(value)}.`);
  }
  if (kind === "given-u") throw new ProtocolError("Expected no knows where all of U is known.");
  return Object.freeze(inOrder);
}

/** Levels as rows of numbers, Infinity where nothing is promised and on the diagonal. */
function levelsOf(value, n_s) {
  const indices = [...Array(n_s).keys()];
  if (!Array.isArray(value)) {
    const level = numberOf(value);
    return indices.map((s) => indices.map((other) => (s === other ? Infinity : level)));
  }
  const isTable = value.length === n_s && value.every((row) => Array.isArray(row) && row.length === n_s);
  if (!isTable || value.some((row, s) => row[s] !== "inf")) {
    throw new ProtocolError(`Expected levels as ${n_s} rows of ${n_s} with "inf" on the diagonal.`);
  }
  return value.map((row) => row.map((level) => (level === "inf" ? Infinity : numberOf(level))));
}

/** A level as a float: a number, or an integer. */
export function numberOf(value) {
  const x = typeof value === "bigint" ? Number(value) : value;
  if (typeof x !== "number" || !(x > 0 && x <= MOST_LEVEL)) {
    throw new ProtocolError(`Expected a level above 0 and up to ${MOST_LEVEL}.`);
  }
  return x;
}

function alphaOf(value) {
  if (typeof value !== "number" || !(value > 0 && value < 1)) throw new ProtocolError("Expected alpha between 0 and 1.");
  return value;
}

function orderOf(value) {
  const found = typeof value === "string" ? /^([1-9][0-9]{0,3})(?:\/([1-9][0-9]?))?$/.exec(value) : null;
  const [top, bottom] = found ? [BigInt(found[1]), BigInt(found[2] ?? 1)] : [0n, 1n];
  const isReduced = divisor(top, bottom) === 1n && found?.[2] !== "1";
  if (!isReduced || top <= bottom || top > MOST_ORDER * bottom || bottom > MOST_ORDER) {
    throw new ProtocolError("Expected order as a fraction in lowest terms, above 1 and up to 16.");
  }
  return value;
}

/** Tables of probabilities as texts such as 1/3, in lowest terms, each of which sums to 1 exactly. */
function distributionsOf(value, [n_s, n_u]) {
  const isTable = (table) =>
    Array.isArray(table) && table.length === n_s && table.every((row) => Array.isArray(row) && row.length === n_u);
  if (!Array.isArray(value) || !value.length || value.length > MOST_CORNERS || !value.every(isTable)) {
    throw new ProtocolError(`Expected distributions as 1 to ${MOST_CORNERS} tables of ${n_s} × ${n_u} fractions.`);
  }
  for (const table of value) {
    let [top, bottom] = [0n, 1n];
    for (const [a, b] of table.flat().map(fractionOf)) {
      const common = divisor(bottom, b);
      [top, bottom] = [top * (b / common) + a * (bottom / common), (bottom / common) * b];
    }
    if (top !== bottom) throw new ProtocolError("Expected distributions that sum to 1.");
    for (const row of table) Object.freeze(row);
    Object.freeze(table);
  }
  return Object.freeze(value);
}

function fractionOf(value) {
  const found = typeof value === "string" ? FRACTION.exec(value) : null;
  const [a, b] = found ? [BigInt(found[1]), BigInt(found[2] ?? 1)] : [0n, 0n];
  if (!found || divisor(a, b) !== 1n || found[2] === "1") {
    throw new ProtocolError("Expected probabilities as fractions in lowest terms, such as 0 or 1/3.");
  }
  return [a, b];
}

function divisor(a, b) {
  while (b !== 0n) [a, b] = [b, a % b];
  return a;
}

/** The values under these names of an object that has no others. */
export function entriesOf(value, names, where) {
  if (!(value instanceof Map)) throw new ProtocolError(`Expected an object as ${where}.`);
  const found = [...value.keys()];
  if (found.length !== names.length || !names.every((name) => value.has(name))) {
    throw new ProtocolError(`Expected the entries ${names.join(", ")} in ${where}, got ${found.join(", ")}.`);
  }
  return names.map((name) => value.get(name));
}

/** The same document with all levels of its claims as floats, of which fingerprints are made. */
export function withFloats(claims) {
  const floats = (value) => (Array.isArray(value) ? value.map(floats) : typeof value === "bigint" ? Number(value) : value);
  return claims.map((entry) => (entry instanceof Map ? new Map(entry).set("levels", floats(entry.get("levels"))) : entry));
}

/** What a claim says and against whom, in one sentence; `labels` are those of S. */
export function inWords(claim, labels) {
  if (claim.isUniform) return `ε = ${claim.epsilon} against ${attacker(claim)}`;
  return `ε by pair of S values, against ${attacker(claim)}: ${pairsInWords(claim.levels, labels)}`;
}

/** Who knows columns of U and is given no promise by these claims, in one sentence; nothing if there is nobody. */
export function unpromised(claims, useful) {
  const readers = readersOf(useful).filter((known) => !claims.some((claim) => covers(claim, known, useful)));
  if (!readers.length) return [];
  const shown = readers.slice(0, MOST_LISTED).map(listed);
  if (readers.length > MOST_LISTED) shown.push(`${readers.length - MOST_LISTED} other parts of U`);
  const what = claims.length ? "Nothing is promised against" : "The file does not say what is promised against";
  return [`${what} someone who knows of the person ${shown.join("; or ")}`];
}

function readersOf(useful) {
  const n = useful.length;
  const few = Array.from({ length: n <= MOST_COLUMNS ? 2 ** n - 1 : 0 }, (_, i) => useful.filter((_, place) => ((i + 1) >> place) & 1));
  const many = [...useful.map((name) => [name]), ...useful.map((name) => useful.filter((other) => other !== name)), [...useful]];
  return (few.length ? few : n ? many : []).sort((a, b) => a.length - b.length);
}

/** Whether a claim limits a reader who knows these columns and no more of U. */
function covers({ kind, knows }, known, useful) {
  if (kind === "all") return knows.every((name) => known.includes(name));
  if (kind === "given-u") return known.length === useful.length;
  return knows.length === known.length && knows.every((name) => known.includes(name));
}

function pairsInWords(levels, labels) {
  const pairs = levels.flatMap((row, s) => row.map((level, other) => [s, other, level]).filter(([, other]) => other !== s));
  if (pairs.length <= MOST_LISTED) {
    const shown = pairs.map(([s, other, level]) => {
      const promise = Number.isFinite(level) ? level : "no promise";
      return `${JSON.stringify(labels[s])} against ${JSON.stringify(labels[other])} ${promise}`;
    });
    return shown.join("; ");
  }
  const finite = pairs.map(([, , level]) => level).filter(Number.isFinite);
  const none = pairs.length - finite.length;
  const range = `from ${Math.min(...finite)} to ${Math.max(...finite)}`;
  return none ? `${range}; no promise for ${none} of ${pairs.length} pairs` : range;
}
