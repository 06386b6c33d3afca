/**
 * Whether a whole protocol file proves what it promises: a checker in exact BigInt arithmetic, by docs/format.md.
 *
 *     import { prove } from "./proof/prove.js";
 *     const proof = await prove(await file.arrayBuffer());   // a ProtocolError if anything does not follow
 *     proof.fingerprint === p.fingerprint                    // then the claims of the public file p are proved
 *
 * Nothing is taken on the word of the writer: the size of each set, every level of every pair, and for someone who
 * knows part of U every value of the columns that they know, are proved over the integers of the table.
 */

import { claimsFrom, entriesOf, inWords, unpromised } from "../claims.js";
import { ProtocolError } from "../errors.js";
import { labelsOf, protocolFrom, setsOf } from "../rldp.js";
import { opened } from "../signatures.js";
import { ceil, exactly, expBelow, floor, largest, ONE, smallest, spend, withBudget } from "./numbers.js";
import { vectorOf } from "./evidence.js";
import { constantOf, setOf } from "./sets.js";

const ENTRIES = ["format", "version", "name", "epsilon", "schema", "channel", "options", "parameters", "optimality_gap", "rounding_loss"];
const MOST_LETTERS = 40; // of an option
const MOST_NUMBER = 1e300;
const MOST_RECORDS = 2n ** 53n;
const INTEGER = /^-?[0-9]{1,160}$/;
const FRACTION = /^(-?[0-9]{1,160})(?:\/([0-9]{1,160}))?$/;
const SETS_WITH_MULTIPLIERS = ["chi-square", "renyi", "kl", "kl-finite", "evidence"];

/**
 * What a whole file promises, once all of it is proved: `fingerprint` and `epsilon` of its public version, `guarantees`
 * as the claims of that, and `words`, a sentence for each and for those to whom nothing is promised.
 *
 * The file is text or bytes. With `signedBy` it must be signed too, as for `load`.
 */
export async function prove(source, options = {}) {
  const document = await opened(source, "rldp-protocol", options);
  const version = document.get("version");
  entriesOf(document, [...ENTRIES, ...(version === 1n ? ["uncertainty", "certificate"] : ["guarantees"])], "a whole protocol");
  checkUnused(document);
  const listed = version === 1n ? [plainPromise(document)] : listOf(document.get("guarantees"), "guarantees");
  const promises = listed.map((entry) => promiseOf(entry, version));
  const p = await protocolFrom(publicVersion(document, promises));
  const names = p.useful.map((column) => column.name);
  const claims = version === 1n ? claimsFrom([promises[0].claim], 1n, p.shape, p.epsilon, names) : p.claims;
  const channel = channelOf(document.get("channel"), p.shape);
  const sizes = new Map(p.useful.map(({ name, labels }) => [name, labels.length]));
  withBudget(source.length, () => {
    claims.forEach((claim, i) => {
      const where = (error) => new ProtocolError(version === 1n ? error.message : `Guarantee ${i + 1}: ${error.message}`);
      explained(where, () => checkPromise(claim, promises[i], channel, p.shape, sizes));
    });
  });
  const labels = labelsOf(p.sensitive);
  const words = Object.freeze([...claims.map((claim) => inWords(claim, labels)), ...unpromised(claims, names)]);
  return Object.freeze({ fingerprint: p.fingerprint, epsilon: p.epsilon, guarantees: claims, words });
}

function explained(where, work) {
  try {
    work();
  } catch (error) {
    throw error instanceof ProtocolError ? where(error) : error;
  }
}

// ---- reading

const listOf = (value, where) => {
  if (!Array.isArray(value) || !value.length) throw new ProtocolError(`Expected a list with entries as ${where}.`);
  return value;
};

const plainPromise = (document) =>
  new Map([["uncertainty", document.get("uncertainty")], ["levels", document.get("epsilon")], ["certificate", document.get("certificate")]]);

/** A guarantee without its counts and certificate, which is its claim in a public file, and these. */
function promiseOf(entry, version) {
  const knows = version === 3n && entry instanceof Map && entry.has("knows") ? ["knows"] : [];
  const [uncertainty, , certificate] = entriesOf(entry, ["uncertainty", "levels", "certificate", ...knows], "a guarantee");
  if (!(uncertainty instanceof Map) || !uncertainty.has("counts")) throw new ProtocolError("Expected a set with counts in a guarantee.");
  const [claim, set] = [new Map(entry), new Map(uncertainty)];
  claim.delete("certificate");
  set.delete("counts");
  if (set.has("evidence")) set.set("evidence", published(set.get("evidence")));
  return { claim: claim.set("uncertainty", set), counts: uncertainty.get("counts"), evidence: uncertainty.get("evidence"), certificate };
}

/** Pieces of evidence as public files have them: what was counted is not there, but how much of it. */
function published(evidence) {
  return listOf(evidence, "evidence").map((item) => {
    const [kind, test, alpha] = item instanceof Map ? ["kind", "test", "alpha"].map((name) => item.get(name)) : [];
    const total = (value) => (Array.isArray(value) && value.every((x) => typeof x === "bigint") ? value.reduce((a, b) => a + b, 0n) : -1n);
    if (kind === "reports") return new Map([["kind", kind], ["test", test], ["alpha", alpha], ["n", total(item.get("counts"))]]);
    if (kind === "features") return new Map([["kind", kind], ["alpha", alpha], ["n", total(item.get("totals"))]]);
    if (kind === "known" && Array.isArray(item.get("rows"))) return new Map([["kind", kind], ["n", BigInt(item.get("rows").length)]]);
    throw new ProtocolError("Expected pieces of evidence as reports, features or known conditions.");
  });
}

function publicVersion(document, promises) {
  const same = ["version", "name", "epsilon", "schema", "channel"].map((name) => [name, document.get(name)]);
  const made = new Map([["format", "rldp-client"], ...same]);
  return document.get("version") === 1n ? made : made.set("claims", promises.map(({ claim }) => claim));
}

/** Entries that no proof uses have their form too. */
function checkUnused(document) {
  const isNumber = (x) => (typeof x === "number" || typeof x === "bigint") && Math.abs(Number(x)) < MOST_NUMBER;
  const isParameter = (x) => isNumber(x) || x === "inf";
  const isShort = (x) => typeof x === "string" && [...x].length <= MOST_LETTERS;
  const [options, parameters] = [document.get("options"), document.get("parameters")];
  if (!(options instanceof Map) || ![...options].flat().every(isShort)) throw new ProtocolError("Expected options as short texts by name.");
  const isEach = (x) => (Array.isArray(x) ? x.every(isParameter) : isParameter(x));
  if (!(parameters instanceof Map) || ![...parameters.values()].every(isEach)) {
    throw new ProtocolError("Expected parameters as numbers by name.");
  }
  const gap = document.get("optimality_gap");
  if (!isNumber(document.get("rounding_loss")) || (gap !== null && !isNumber(gap))) {
    throw new ProtocolError("Expected optimality_gap and rounding_loss as numbers.");
  }
}

function countsOf(value, [n_s, n_u]) {
  const isCount = (x) => typeof x === "bigint" && x >= 0n;
  const isTable = Array.isArray(value) && value.length === n_s && value.every((row) => Array.isArray(row) && row.length === n_u);
  if (!isTable || !value.flat().every(isCount)) throw new ProtocolError(`Expected counts as ${n_s} × ${n_u} integers from 0 on.`);
  const n = value.flat().reduce((a, b) => a + b);
  if (n < 1n || n > MOST_RECORDS) throw new ProtocolError("Expected counts of 1 to 2^53 records.");
  return value;
}

function fractionOf(text, where) {
  const found = typeof text === "string" ? FRACTION.exec(text) : null;
  const bottom = BigInt(found?.[2] ?? 1);
  if (!found || bottom === 0n) throw new ProtocolError(`Expected a fraction of at most 160 digits as ${where}.`);
  return [BigInt(found[1]), bottom];
}

/** The integers of a channel, whose form has been checked. */
const integers = (value) => (Array.isArray(value) ? value.map(integers) : BigInt(value));

// ---- guarantees

/** Proves one guarantee: for each value of U, or of the columns that someone knows, or of S alone. */
function checkPromise(claim, { counts, evidence, certificate }, channel, shape, sizes) {
  const constant = constantOf(claim.kind);
  const own = claim.knows.length ? ["parts"] : ["multipliers", "joint"];
  const [first, second, third] = entriesOf(certificate, [...own, ...(constant ? [constant] : [])], "a certificate");
  const given = claim.knows.length ? second : third;
  const size = constant === "sizes" ? given : constant && fractionOf(given, constant);
  const F = setOf(evidence ? { ...claim, evidence } : claim, countsOf(counts, shape), size);
  const levels = levelsOf(claim.levels);
  const readTable = F.hasVectors ? vectorTable : multiplierTable;
  const readProof = (multipliers, joint) => proofOf(multipliers, joint, SETS_WITH_MULTIPLIERS.includes(claim.kind), readTable);
  if (claim.kind === "given-u") {
    const nothing = readProof(first, second);
    if (channel instanceof Sets) channel.proveGivenU(levels);
    else for (let u = 0; u < shape[1]; u++) channel.given([u]).prove(F.given([u]), levels, nothing);
  } else if (!claim.knows.length) {
    channel.prove(F, levels, readProof(first, second));
  } else {
    const groups = groupsOf(claim.knows, sizes);
    if (!Array.isArray(first) || first.length !== groups.length) {
      throw new ProtocolError(`Expected ${groups.length} parts in the certificate, one for each value that is known.`);
    }
    const proofs = first.map((part) => readProof(...entriesOf(part, ["multipliers", "joint"], "a part of a certificate")));
    groups.forEach((group, k) => {
      const where = (error) => new ProtocolError(`Part ${k}: ${error.message}`);
      explained(where, () => channel.given(group).prove(F.given(group), levels, proofs[k]));
    });
  }
}

/** For each value of the known columns, the U values that have it; the first column is the most significant. */
function groupsOf(knows, sizes) {
  const groups = new Map();
  const step = (u, k, columns) => {
    if (!columns.length) {
      groups.set(k, [...(groups.get(k) ?? []), u]);
      return;
    }
    const [[name, size], ...rest] = columns;
    for (let i = 0; i < size; i++) step(u * size + i, knows.includes(name) ? k * size + i : k, rest);
  };
  step(0, 0, [...sizes]);
  return [...groups.keys()].sort((a, b) => a - b).map((k) => groups.get(k));
}

/** The pairs that have a level, with E ≤ e^level, and the least E of a value against another and against it. */
function levelsOf(levels) {
  spend(25 * levels.length ** 2);
  const known = new Map();
  const E = (level) => {
    if (!known.has(level)) known.set(level, expBelow(...exactly(level)));
    return known.get(level);
  };
  const pairs = levels.flatMap((row, s1) => row.map((level, s2) => [s1, s2, level]).filter(([, s2, level]) => s2 !== s1 && Number.isFinite(level)));
  const least = (found) => (found.length ? smallest(found.map(([, , level]) => E(level))) : null);
  return {
    promised: pairs.map(([s1, s2, level]) => [s1, s2, E(level)]),
    least: least(pairs),
    leastOf: (s) => least(pairs.filter(([s1]) => s1 === s)),
    leastAgainst: (s) => least(pairs.filter(([, s2]) => s2 === s)),
  };
}

/** Multipliers as tables of integers or null, and the joint ones by their indices. */
function proofOf(multipliers, joint, hasMultipliers, readTable) {
  if (!Array.isArray(joint)) throw new ProtocolError("Expected joint as a list.");
  if (!hasMultipliers && (multipliers !== null || joint.length)) {
    throw new ProtocolError("The certificate has multipliers, and this set needs none.");
  }
  const tables = multipliers && entriesOf(multipliers, ["upper", "lower"], "multipliers").map(readTable);
  const entries = joint.map((entry) => {
    if (!Array.isArray(entry) || entry.length < 3) throw new ProtocolError("Expected lists as entries of joint.");
    const indices = entry.slice(0, -3);
    const values = entry.slice(-3).map((text) => fractionOf(text, "an entry of joint"));
    if (!indices.every((index) => typeof index === "bigint") || values[2][0] < 0n) {
      throw new ProtocolError("Expected integers as indices of joint, and eta from 0 on.");
    }
    return [indices, values];
  });
  return { tables, entries };
}

function vectorTable(rows) {
  if (!Array.isArray(rows) || !rows.every((row) => Array.isArray(row))) throw new ProtocolError("Expected multipliers as rows.");
  return rows.map((row) => row.map(vectorOf));
}

function multiplierTable(rows) {
  const isInteger = (text) => typeof text === "string" && INTEGER.test(text);
  if (!Array.isArray(rows) || !rows.every((row) => Array.isArray(row) && row.every(isInteger))) {
    throw new ProtocolError("Expected multipliers as rows of integers in text.");
  }
  return integers(rows);
}

/** A function from a place [row, column] to its multipliers μ and ν; undefined where there are none. */
function multipliersOf({ tables }, n_rows, n_columns) {
  if (!tables) return () => undefined;
  if (tables.some((rows) => rows.length !== n_rows || rows.some((row) => row.length !== n_columns))) {
    throw new ProtocolError(`Expected multipliers of shape ${n_rows} × ${n_columns}.`);
  }
  return (row, column) => tables.map((table) => table[row][column]);
}

function jointOf({ entries }, n_indices) {
  if (entries.some(([indices]) => indices.length !== n_indices)) {
    throw new ProtocolError(`Expected entries of joint with ${n_indices} indices.`);
  }
  const byPlace = new Map(entries.map(([indices, values]) => [indices.join(), values]));
  return (...indices) => byPlace.get(indices.join());
}

// ---- channels: what must be shown of each

function holds(E, high, low) {
  spend(4);
  return high * ONE <= E * low;
}

/** a1 q1·R_1 ≤ E a2 q2·R_2, by bounds of each side or by a lemma on both. */
function show(F, E, [high, low], [first, second], joint, what) {
  if (!holds(E, high, low) && !F.isShown(E, first, second, joint)) throw new ProtocolError(`Not proved: ${what}.`);
}

const cut = (part, group) => part.map((rows) => group.map((u) => rows[u]));
const columnsOf = (rows) => rows[0].map((_, y) => rows.map((row) => row[y]));

class Dense {
  constructor({ Q }) {
    this.Q = Q;
  }

  given(group) {
    return new Dense({ Q: cut(this.Q, group) });
  }

  prove(F, levels, proof) {
    eachOutput(F, levels, proof, this.Q.map(columnsOf), () => [1n, 1n]);
  }
}

class Independent {
  constructor({ r_s, r_u }) {
    [this.r_s, this.r_u] = [r_s, r_u];
  }

  given(group) {
    return new Independent({ r_s: this.r_s, r_u: group.map((u) => this.r_u[u]) });
  }

  prove(F, levels, proof) {
    const columns = columnsOf(this.r_u);
    eachOutput(F, levels, proof, this.r_s.map(() => columns), (s1, s2) => this.#worst(s1, s2));
  }

  #worst(s1, s2) {
    spend(2 * this.r_s[s1].length);
    let [a1, a2] = [0n, 1n];
    this.r_s[s1].forEach((top, y) => {
      const bottom = this.r_s[s2][y];
      if (top && !bottom) throw new ProtocolError(`Not private: r_s[${s2}] has a zero where r_s[${s1}] has none.`);
      if (top * a2 > a1 * bottom) [a1, a2] = [top, bottom];
    });
    let [a, b] = [a1, a2];
    while (b !== 0n) [a, b] = [b, a % b];
    return [a1 / a, a2 / a]; // multipliers are those of lowest terms
  }
}

/** For each y and pair: a1 q1·R_1 ≤ E a2 q2·R_2 with q = columns[s][y]. */
function eachOutput(F, levels, proof, columns, ratio) {
  const [joint, multipliers] = [jointOf(proof, 3), multipliersOf(proof, columns[0].length, columns.length)];
  const bounds = columns.map((own, s) => own.map((q, y) => F.bounds(s, q, multipliers(y, s))));
  for (const [s1, s2, E] of levels.promised) {
    const [a1, a2] = ratio(s1, s2);
    columns[s1].forEach((q1, y) => {
      const sides = [{ s: s1, a: a1, q: q1 }, { s: s2, a: a2, q: columns[s2][y] }];
      const extremes = [a1 * bounds[s1][y][0], a2 * bounds[s2][y][1]];
      show(F, E, extremes, sides, joint(y, s1, s2), `output ${y} at s = ${s1} against s = ${s2}`);
    });
  }
}

class Choice {
  constructor({ own, other }) {
    [this.own, this.other] = [own, other];
  }

  given(group) {
    return new Choice({ own: cut(this.own, group), other: this.other });
  }

  prove(F, levels, proof) {
    const multipliers = multipliersOf(proof, this.other.length, this.other[0].length);
    this.own.forEach((rows, b) => {
      const [up, down] = [levels.leastOf(b), levels.leastAgainst(b)]; // all others have one probability
      columnsOf(rows).forEach((q, z) => {
        const [high, low] = F.bounds(b, q, multipliers(b, z));
        const made_up = this.other[b][z] * ONE;
        if ((up !== null && !holds(up, high, made_up)) || (down !== null && !holds(down, made_up, low))) {
          throw new ProtocolError(`Not proved: symbol ${z} of block ${b}.`);
        }
      });
    });
  }
}

const never = (s, z) => new ProtocolError(`Not private: own[${s}] has symbol ${z}, which other never draws.`);

/** Unary with a block for each s: Λ_s(z) = own[s][·][z]·R_s / other[s][z], every z1 of s1 against every z2 of s2. */
class UnaryByValue {
  constructor({ own, other }) {
    [this.own, this.other] = [own, other];
  }

  given(group) {
    return new UnaryByValue({ own: cut(this.own, group), other: this.other });
  }

  prove(F, levels, proof) {
    const { own, other } = this;
    const [joint, multipliers] = [jointOf(proof, 4), multipliersOf(proof, other[0].length, other.length)];
    const columns = own.map(columnsOf);
    const symbols = columns.map((of_s, s) => {
      const seen = [];
      of_s.forEach((q, z) => {
        if (other[s][z]) seen.push({ z, q, o: other[s][z], bounds: F.bounds(s, q, multipliers(z, s)) });
        else if (q.some((x) => x > 0n) && levels.leastOf(s) !== null) throw never(s, z);
      });
      return seen;
    });
    for (const [s1, s2, E] of levels.promised) {
      for (const one of symbols[s1]) {
        for (const two of symbols[s2]) {
          const sides = [{ s: s1, a: two.o, q: one.q }, { s: s2, a: one.o, q: two.q }];
          const what = `symbol ${one.z} of ${s1} against ${two.z} of ${s2}`;
          show(F, E, [two.o * one.bounds[0], one.o * two.bounds[1]], sides, joint(s1, one.z, s2, two.z), what);
        }
      }
    }
  }
}

/** Unary with a block for each cell: all symbols of all cells of s1 against all of s2, whatever F is. */
class UnaryByCell {
  constructor({ own, other }) {
    [this.own, this.other] = [own, other]; // both by s and u
  }

  given(group) {
    return new UnaryByCell({ own: cut(this.own, group), other: cut(this.other, group) });
  }

  prove(_, levels) {
    const ranges = this.own.map((rows, s) => {
      spend(8 * rows.length * rows[0].length);
      const ratios = rows.flatMap((row, u) => row.map((x, z) => [x, this.other[s][u][z], z]));
      const told = ratios.find(([x, o]) => x && !o);
      if (told && levels.leastOf(s) !== null) throw never(s, told[2]);
      const seen = ratios.filter(([, o]) => o);
      return [largest(seen.map(([x, o]) => ceil(x * ONE * ONE, o))), smallest(seen.map(([x, o]) => floor(x * ONE * ONE, o)))];
    });
    for (const [s1, s2, E] of levels.promised) {
      if (!holds(E, ranges[s1][0], ranges[s2][1])) throw new ProtocolError(`Not proved: cells of s = ${s1} against cells of s = ${s2}.`);
    }
  }
}

/** Levels for classes of s and u, and a remainder; U values of a class are one, as a mean over them is that of the class. */
class Sets {
  constructor({ columns, rest }) {
    [this.columns, this.rest] = [columns, rest];
  }

  given(group) {
    const within = new Map();
    for (const { j } of this.columns) {
      if (!within.has(j)) within.set(j, { ...j, classes: group.map((u) => j.classes[u]) });
    }
    spend(2 * within.size * group.length);
    return new Sets({ columns: this.columns.map((column) => ({ ...column, j: within.get(column.j) })), rest: cut(this.rest, group) });
  }

  prove(F, levels, proof) {
    const joint = jointOf(proof, 3);
    if (proof.tables) throw new ProtocolError("Expected no multipliers for a channel of sets: whoever checks it looks for them.");
    const seen = new Map();
    const merged = (j) => {
      if (!seen.has(j)) seen.set(j, byClass(F, j.classes));
      return seen.get(j);
    };
    this.columns.forEach(({ i, j, levels: rows }, y) => {
      const [of_classes, present] = merged(j);
      spend(rows.length * present.length + 2 * i.classes.length);
      const each = rows.map((row) => present.map((B) => row[B]));
      this.#output(of_classes, levels, y, i.classes.map((A) => each[A]), joint);
    });
    spend(2 * this.rest.length * this.rest[0].length);
    this.#output(F, levels, this.columns.length, this.rest, joint);
  }

  /** Someone who knows U: each class of each output, and each column of the remainder, with one entry for each s. */
  proveGivenU(levels) {
    const compare = (q, what) => {
      if (isEasy(levels, q, q)) return;
      for (const [s1, s2, E] of levels.promised) {
        if (!holds(E, q[s1] * ONE, q[s2] * ONE)) throw new ProtocolError(`Not proved: ${what} at s = ${s1} against s = ${s2}, given U.`);
      }
    };
    this.columns.forEach(({ i, levels: rows }, y) => {
      spend(rows.length * rows[0].length + 2 * i.classes.length * rows[0].length);
      rows[0].forEach((_, B) => compare(i.classes.map((A) => rows[A][B]), `output ${y}`));
    });
    spend(2 * this.rest.length * this.rest[0].length);
    columnsOf(this.rest).forEach((q) => compare(q, "the remainder"));
  }

  /** One output, whose columns by s are q: by its extremes, by bounds of each side, or by a lemma on both. */
  #output(F, levels, y, q, joint) {
    spend(4 * q.length);
    if (isEasy(levels, q.map(largest), q.map(smallest))) return;
    const bounds = q.map((x, s) => F.bounds(s, x, F.multipliers(s, x)));
    for (const [s1, s2, E] of levels.promised) {
      const sides = [{ s: s1, a: 1n, q: q[s1] }, { s: s2, a: 1n, q: q[s2] }];
      show(F, E, [bounds[s1][0], bounds[s2][1]], sides, joint(y, s1, s2), `output ${y} at s = ${s1} against s = ${s2}`);
    }
  }
}

/** Whether the largest entry of all meets the smallest of all at the least level of any pair. */
const isEasy = (levels, highs, lows) => levels.least === null || holds(levels.least, largest(highs) * ONE, smallest(lows) * ONE);

/** F with the U values of each class made one, and the classes that have values. */
function byClass(F, classes) {
  spend(3 * F.counts.length * classes.length);
  const groups = new Map();
  classes.forEach((B, u) => (groups.has(B) ? groups.get(B).push(u) : groups.set(B, [u])));
  return [F.merged([...groups.values()]), [...groups.keys()]];
}

const CHANNELS = new Map([
  ["dense", Dense],
  ["independent", Independent],
  ["choice", Choice],
  ["unary", UnaryByValue],
]);

/** The channel of a document whose form and sums have been checked. */
function channelOf(document, [n_s, n_u]) {
  if (document.get("kind") === "sets") {
    const parts = ["s_partitions", "u_partitions", "outputs"].map((name) => document.get(name));
    return new Sets(setsOf(parts, Number(document.get("bits"))));
  }
  const parts = Object.fromEntries([...document].filter(([name]) => name !== "kind" && name !== "bits").map(([name, part]) => [name, integers(part)]));
  const isByCell = document.get("kind") === "unary" && parts.other.length !== n_s;
  if (!isByCell) return new (CHANNELS.get(document.get("kind")))(parts);
  const other = Array.from({ length: n_s }, (_, s) => parts.other.slice(s * n_u, (s + 1) * n_u));
  return new UnaryByCell({ own: parts.own, other });
}
