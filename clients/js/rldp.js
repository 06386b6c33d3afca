/**
 * rldp in the browser and in Node: a public protocol file, a record, a report.
 *
 *     import { load } from "./rldp.js";
 *     const p = await load(await (await fetch("income.public.json")).arrayBuffer());
 *     const report = p.release({ income: "low", sex: "f" });      // "high | m"
 *
 * Words become reports bit by bit as docs/release.md says, the same as in Python. All integers of
 * the table are BigInt: nothing is rounded, rejected or reduced modulo the number of outputs.
 */

import { claimsFrom, entriesOf, inWords, unpromised, withFloats } from "./claims.js";
import { canonical, hashOf, pythonFloat } from "./documents.js";
import { ProtocolError, RecordError } from "./errors.js";
import { opened } from "./signatures.js";
import { keyedWords, secureWords } from "./words.js";

export { ProtocolError, RecordError };

const MISSING = "(missing)";
const LONGEST_NAME = 100;
const ODD = /(?! )[\p{C}\p{Z}]/u; // what no name has, as in Python: control and format characters, blanks but one
const MOST_BUCKETS = 2 ** 25; // of a whole table, as in Python
const LEAST_KEY_BYTES = 16;
const LEAST_DIFFERENT = 8; // bytes of a key, as in Python
const BLANKS = "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+"; // those of Python
const OUTER_BLANKS = new RegExp(`^${BLANKS}|${BLANKS}$`, "g");

// ---- the protocol file

/**
 * The public protocol in a file, given as text or bytes, every part of it checked.
 *
 * The file holds no proof of its ε. With `signedBy`, a public key, the file must be signed by that
 * key: inside, or by the detached `signature`, the text or bytes of a .sig file.
 */
export async function load(source, options = {}) {
  return protocolFrom(await opened(source, "rldp-client", options));
}

/** The protocol of a public document, whose hash has been checked. */
export async function protocolFrom(document) {
  // 1 and 1.0 are one ε, with one fingerprint
  document.set("epsilon", epsilonOf(document.get("epsilon")));
  if (Array.isArray(document.get("claims"))) document.set("claims", withFloats(document.get("claims")));
  return new Protocol(document, await hashOf(document));
}

/** ε as a float: a number, or an integer that is one exactly. */
function epsilonOf(value) {
  const x = typeof value === "bigint" ? Number(value) : value;
  const isExact = typeof value === "number" || (Number.isFinite(x) && BigInt(x) === value);
  if (!isExact || !(x > 0 && x < 1e300)) throw new ProtocolError("Expected an epsilon > 0.");
  return x;
}

function columnsOf(value, side) {
  if (!Array.isArray(value)) throw new ProtocolError(`Expected a list of ${side} columns.`);
  return value.map((entry) => {
    const [name, labels] = entriesOf(entry, ["name", "labels"], `a ${side} column`);
    const texts = Array.isArray(labels) ? labels.filter((label) => typeof label === "string") : [];
    if (typeof name !== "string" || !name || !texts.length || texts.length < labels.length) {
      throw new ProtocolError(`Expected every ${side} column with a name and labels that are texts.`);
    }
    if (new Set(texts).size < texts.length) {
      throw new ProtocolError(`Expected different labels in column ${JSON.stringify(name)}.`);
    }
    const codes = new Map(texts.map((label, code) => [trimmed(label), code]));
    if (codes.size < texts.length) {
      throw new ProtocolError(`Expected labels that differ by more than blanks in column ${JSON.stringify(name)}.`);
    }
    return { name, labels: texts, codes };
  });
}

/** Nested lists of decimal texts as nested lists of BigInts; `shape` gets their lengths. */
function integers(value, axes, name, shape = [], depth = 0) {
  if (depth === axes) {
    if (typeof value !== "string" || !/^(0|[1-9][0-9]{0,18})$/.test(value)) {
      throw new ProtocolError(`Expected non-negative integers as text in ${name}, got ${canonical(value)}.`);
    }
    return BigInt(value);
  }
  if (!Array.isArray(value) || !value.length || (shape[depth] ??= value.length) !== value.length) {
    throw new ProtocolError(`Expected ${name} as a rectangular table with ${axes} axes.`);
  }
  return value.map((part) => integers(part, axes, name, shape, depth + 1));
}

const total = (row) => row.reduce((sum, N) => sum + N, 0n);

function checkSums(sums, bits, name) {
  if (sums.some((sum) => sum !== 1n << BigInt(bits))) {
    throw new ProtocolError(`Expected every row of ${name} to sum to 2^${bits} exactly.`);
  }
}

// ---- channels: the words of a record, the row that each word draws from, and the report

/** For each kind, the parts of the table with their axes, and what is made of them. */
const CHANNELS = new Map([
  ["dense", [{ Q: 3 }, dense]],
  ["choice", [{ own: 3, other: 2 }, choice]],
  ["independent", [{ r_s: 2, r_u: 2 }, independent]],
  ["unary", [{ own: 3, other: 2 }, unary]],
]);

function dense({ Q }, bits) {
  checkSums(Q.flat().map(total), bits, "Q");
  return {
    shape: [Q.length, Q[0].length],
    words: 1,
    rows: Q.length * Q[0].length,
    outputs: Q[0][0].length,
    row: (s, u) => Q[s][u],
    report: ([y]) => y,
    symbols: (y) => [y],
    parts: () => [numbered(Q[0][0].length)],
    readsSensitive: Q.some((rows) => rows.some((row, u) => row.some((x, y) => x !== Q[0][u][y]))),
  };
}

function choice({ own, other }, bits) {
  const [n_z, masses] = [own[0][0].length, other.map(total)];
  if (other.length !== own.length || other[0].length !== n_z) {
    throw new ProtocolError(`Expected other of shape (${own.length}, ${n_z}).`);
  }
  const elsewhere = masses.map((mass) => total(masses) - mass);
  checkSums(own.flatMap((rows, s) => rows.map((row) => total(row) + elsewhere[s])), bits, "own and other");
  const rows = own.map(() => []); // made when first drawn from
  return {
    shape: [own.length, own[0].length],
    words: 1,
    rows: own.length * own[0].length,
    outputs: other.length * n_z,
    row: (s, u) => (rows[s][u] ??= other.flatMap((row, b) => (b === s ? own[s][u] : row))),
    report: ([y]) => y,
    symbols: (y) => [y],
    parts: (s, u) => [s, fitting(u, n_z)],
  };
}

function independent({ r_s, r_u }, bits) {
  checkSums(r_s.map(total), bits, "r_s");
  checkSums(r_u.map(total), bits, "r_u");
  return {
    shape: [r_s.length, r_u.length],
    words: 2,
    rows: Math.max(r_s.length, r_u.length),
    outputs: Math.max(r_s[0].length, r_u[0].length),
    row: (s, u, word) => (word === 0 ? r_s[s] : r_u[u]),
    report: ([first, second]) => first * r_u[0].length + second,
    symbols: (y) => [Math.floor(y / r_u[0].length), y % r_u[0].length],
    parts: (s, u) => [fitting(s, r_s[0].length), fitting(u, r_u[0].length)],
  };
}

function unary({ own, other }, bits) {
  const [n_s, n_u, n_z] = [own.length, own[0].length, own[0][0].length];
  if ((other.length !== n_s && other.length !== n_s * n_u) || other[0].length !== n_z) {
    throw new ProtocolError(`Expected other of shape (blocks, ${n_z}) with ${n_s} or ${n_s * n_u} blocks.`);
  }
  checkSums(own.flat().map(total), bits, "own");
  checkSums(other.map(total), bits, "other");
  const block = other.length === n_s ? (s) => s : (s, u) => s * n_u + u;
  return {
    shape: [n_s, n_u],
    words: other.length,
    rows: n_s * n_u + other.length,
    outputs: n_z,
    row: (s, u, b) => (b === block(s, u) ? own[s][u] : other[b]),
    report: (symbols) => symbols.map((z) => z - 1),
    symbols: (report) => report.map((z) => z + 1),
    parts: (s, u) =>
      other.length === n_s
        ? [s, fitting(u, n_z - 1)]
        : [s.flatMap((first) => u.map((second) => cell([first, second]))), fitting(n_z === 2 ? [null] : [], n_z - 1)],
  };
}

const bucketsOf = (outputs, bits) => 2 ** Math.min(bits, Math.max(1, 32 - Math.clz32(outputs - 1)));

/** A row of integers as 2^j buckets with a threshold and an alias each. */
function buckets(N, bits) {
  const size = bucketsOf(N.length, bits);
  const j = Math.log2(size);
  const c = 1n << BigInt(bits - j);
  const outputs = [...N.keys()];
  const items = [...outputs.filter((y) => N[y] > 0n), ...outputs.filter((y) => N[y] === 0n)].slice(0, size);
  const R = items.map((y) => N[y]);
  while (items.length < size) R[items.push(0) - 1] = 0n;
  const thresholds = Array(size).fill(c);
  const aliases = [...items];
  const places = [...items.keys()];
  const [small, large] = [places.filter((i) => R[i] < c), places.filter((i) => R[i] >= c)];
  let [next, first, current] = [1, 0, small[0]];
  while (current !== undefined) {
    const other = large[first];
    [thresholds[current], aliases[current]] = [R[current], items[other]];
    R[other] -= c - R[current];
    current = R[other] < c ? large[first++] : small[next++];
  }
  return { unused: BigInt(64 - bits), shift: BigInt(bits - j), mask: c - 1n, thresholds, items, aliases };
}

function drawn({ unused, shift, mask, thresholds, items, aliases }, word) {
  const x = word >> unused;
  const b = Number(x >> shift);
  return (x & mask) < thresholds[b] ? items[b] : aliases[b];
}

// ---- labels

const joined = (labels) => labels.map((label) => label.replace(/[\\|;]/g, "\\$&") || "\\-").join(" | ") || null;
const cell = (parts) => parts.filter((part) => part !== null).join(" | ");
const numbered = (size) => Array.from({ length: size }, (_, y) => `y${y}`);
const fitting = (texts, size) => (texts.length === size ? texts : numbered(size));
/** The labels of an alphabet that is the product of columns. */
export const labelsOf = (columns) =>
  columns.reduce((rows, { labels }) => rows.flatMap((row) => labels.map((label) => [...row, label])), [[]]).map(joined);

/** A text without the blanks around it, which count nowhere. */
const trimmed = (text) => text.replace(OUTER_BLANKS, "");

/** The text of one value as a label, the missing label where there is none. */
function labelOf(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return MISSING;
  if (Number.isInteger(value)) return BigInt(value).toString();
  if (typeof value === "number") return pythonFloat(value);
  if (["string", "boolean", "bigint"].includes(typeof value)) return trimmed(String(value));
  throw new RecordError(`Expected a text, number or boolean as label, got ${Object.prototype.toString.call(value)}.`);
}

// ---- what a page uses

/** A protocol in the field; made by `load`. */
export class Protocol {
  #channel;
  #labels;
  #tables = new Map(); // row of integers → its buckets, made when first drawn from

  constructor(document, fingerprint) {
    const names = ["format", "version", "name", "epsilon", "schema", "channel"];
    const version = document.get("version");
    const claims = version === 1n ? [] : ["claims"];
    const [, , name, epsilon, schema, channel] = entriesOf(document, [...names, ...claims], "a public protocol");
    if (typeof name !== "string" || [...name].length > LONGEST_NAME || ODD.test(name)) {
      throw new ProtocolError(`Expected a name of at most ${LONGEST_NAME} printable characters.`);
    }
    [this.name, this.epsilon, this.fingerprint] = [name, epsilon, fingerprint];
    const [sensitive, useful] = entriesOf(schema, ["sensitive", "useful"], "the schema");
    [this.sensitive, this.useful] = [columnsOf(sensitive, "sensitive"), columnsOf(useful, "useful")];
    const all = [...this.sensitive, ...this.useful].map((column) => column.name);
    if (!this.sensitive.length || new Set(all).size < all.length) {
      throw new ProtocolError("Expected at least one sensitive column and every column once.");
    }
    this.#channel = this.#read(channel);
    const size = (columns) => columns.reduce((n, column) => n * column.labels.length, 1);
    const [n_s, n_u] = this.#channel.shape;
    if (n_s < 2) throw new ProtocolError("Expected two values of S or more; there is nothing to protect.");
    if (size(this.sensitive) !== n_s || size(this.useful) !== n_u) {
      throw new ProtocolError(`The schema has other cells than the channel, which has ${n_s} × ${n_u}.`);
    }
    const useful_names = this.useful.map((column) => column.name);
    // none of them proved
    this.claims = claims.length ? claimsFrom(document.get("claims"), version, [n_s, n_u], epsilon, useful_names) : [];
    this.words = this.#channel.words; // that one record takes
    // where nothing depends on s, whoever releases need not know it
    this.readsSensitive = !this.useful.length || (this.#channel.readsSensitive ?? true);
    this.#labels = this.#channel.parts(labelsOf(this.sensitive), labelsOf(this.useful));
    Object.freeze(this);
  }

  #read(channel) {
    const kind = channel instanceof Map ? channel.get("kind") : undefined;
    if (!CHANNELS.has(kind)) {
      throw new ProtocolError(`Expected the channel to be ${[...CHANNELS.keys()].join(", ")}, got ${kind}.`);
    }
    const [axes, made] = CHANNELS.get(kind);
    const names = Object.keys(axes);
    const [, bits, ...parts] = entriesOf(channel, ["kind", "bits", ...names], `a ${kind} channel`);
    if (typeof bits !== "bigint" || bits < 1n || bits > 62n) throw new ProtocolError(`Expected 1 to 62 bits, got ${bits}.`);
    this.bits = Number(bits);
    const tables = names.map((name, i) => [name, integers(parts[i], axes[name], name)]);
    return made(Object.fromEntries(tables), this.bits);
  }

  /** What is claimed, and against whom, a sentence each, and who is left out. The file proves none of it. */
  claimsInWords() {
    const labels = labelsOf(this.sensitive);
    const claimed = this.claims.length
      ? this.claims.map((claim) => inWords(claim, labels))
      : [`ε = ${this.epsilon} over a set of distributions that the file does not name`];
    return [...claimed, ...unpromised(this.claims, this.useful.map((column) => column.name))];
  }

  /** The codes [s, u] of a record given by column names; what is wrong with it is an error. */
  codes(record) {
    const code = (columns) =>
      columns.reduce((sum, { name, labels, codes }) => {
        const value = Object.hasOwn(record, name) ? record[name] : undefined;
        const label = labelOf(value);
        if (!codes.has(label)) {
          const what = label === MISSING ? "Expected a value" : `Unknown label ${JSON.stringify(label)}`;
          const known = labels.slice(0, 8).map((text) => JSON.stringify(text)).join(", ");
          throw new RecordError(`${what} in column ${JSON.stringify(name)}; known are ${known}${labels.length > 8 ? ", ..." : ""}.`);
        }
        return sum * labels.length + codes.get(label);
      }, 0);
    return [this.readsSensitive ? code(this.sensitive) : 0, code(this.useful)];
  }

  /** The report of a cell by `words` words, BigInts of 64 bits: a number, or for sets a list. */
  draw(s, u, words) {
    const { rows, outputs } = this.#channel;
    const size = rows * bucketsOf(outputs, this.bits);
    if (size > MOST_BUCKETS) throw new ProtocolError(`Expected a table of at most ${MOST_BUCKETS} buckets, this one has ${size}.`);
    const symbols = Array.from(words, (word, place) => drawn(this.#table(s, u, place), word));
    return this.#channel.report(symbols);
  }

  #table(s, u, place) {
    const row = this.#channel.row(s, u, place);
    if (!this.#tables.has(row)) this.#tables.set(row, buckets(row, this.bits));
    return this.#tables.get(row);
  }

  /** The chance that the cell (s, u) gives a report: a number, or for sets a list. */
  chance(s, u, report) {
    const shares = this.#channel.symbols(report).map((y, place) => Number(this.#channel.row(s, u, place)[y]) / 2 ** this.bits);
    return shares.reduce((product, share) => product * share, 1);
  }

  /** How many values S and U have. */
  get shape() {
    return [...this.#channel.shape];
  }

  /** The label of a report, the same as in Python. */
  label(report) {
    const [first, second] = this.#labels;
    if (Array.isArray(report)) {
      const cells = report.flatMap((z, b) => (z < 0 ? [] : [cell([first[b], second[z]])]));
      return `{${cells.join("; ")}}`;
    }
    return second ? cell([first[Math.floor(report / second.length)], second[report % second.length]]) : first[report];
  }

  /** One report of a record, by secure random words. A person's record is to be released once. */
  release(record) {
    return this.label(this.draw(...this.codes(record), secureWords(this.words)));
  }

  /**
   * The report that the secret key (Uint8Array) gives the person with this id: the same every time.
   * A changed record is drawn with the same words, or with new ones if `per` is "record".
   */
  async releaseKeyed(record, id, key, { per = "person" } = {}) {
    const [s, u] = this.codes(record);
    const isInteger = Number.isSafeInteger(id) || typeof id === "bigint";
    if (!isInteger && (typeof id !== "string" || !id || /\p{Surrogate}/u.test(id))) {
      throw new RecordError("Expected an id that is a text or an integer.");
    }
    if (!(key instanceof Uint8Array) || key.length < LEAST_KEY_BYTES) {
      throw new RecordError(`Expected a key of at least ${LEAST_KEY_BYTES} bytes as Uint8Array.`);
    }
    if (new Set(key).size < LEAST_DIFFERENT) {
      throw new RecordError(`Expected a random key, this one has only ${new Set(key).size} different bytes.`);
    }
    if (per !== "person" && per !== "record") throw new RecordError('Expected per as "person" or "record".');
    const words = await keyedWords(this.words, key, this.fingerprint, id, per === "record" ? [s, u] : []);
    return this.label(this.draw(s, u, words));
  }
}
