/**
 * JSON as Python reads and writes it, of which a protocol's hash is made.
 *
 * Objects are Maps, integers BigInts and floats Numbers, so that nothing gets lost and `1` and
 * `1.0` stay apart.
 */

import { ProtocolError } from "./errors.js";
import { subtle } from "./words.js";

const DEEPEST = 32; // levels of a document; a protocol has six

const TOKEN = new RegExp(
  "[ \\t\\n\\r]*(?:" +
    "([{}[\\],:]|true|false|null)|" +
    '("(?:[^"\\\\\\u0000-\\u001f]|\\\\(?:["\\\\/bfnrt]|u[0-9a-fA-F]{4}))*")|' +
    "(-?(?:0|[1-9][0-9]*)(\\.[0-9]+)?([eE][-+]?[0-9]+)?))",
  "y",
);
const CONSTANTS = new Map([["true", true], ["false", false], ["null", null]]);

/**
 * The value of a JSON text, or of its bytes; what JSON proper does not have is refused, and keys
 * that come twice, and half characters.
 */
export function parsed(source) {
  const text = typeof source === "string" ? source : decoded(source);
  let place = 0;
  const refused = () => new ProtocolError(`The file is not valid JSON, at character ${place}.`);
  const token = (...wanted) => {
    TOKEN.lastIndex = place;
    const found = TOKEN.exec(text);
    if (found === null || (wanted.length && !wanted.includes(found[1]))) throw refused();
    place = TOKEN.lastIndex;
    return found;
  };
  const value = (depth, [, mark, string, number, fraction, exponent] = token()) => {
    if (depth > DEEPEST) throw new ProtocolError("The file is damaged: it is nested too deeply.");
    if (string !== undefined) return characters(string);
    if (number !== undefined) return fraction ?? exponent ? Number(number) : BigInt(number);
    if (CONSTANTS.has(mark)) return CONSTANTS.get(mark);
    if (mark === "[") return list(depth + 1);
    if (mark === "{") return object(depth + 1);
    throw refused();
  };
  const list = (depth) => {
    const values = [];
    for (let next = token(); next[1] !== "]" || values.length; next = token()) {
      values.push(value(depth, next));
      if (token(",", "]")[1] === "]") break;
    }
    return values;
  };
  const object = (depth) => {
    const entries = new Map();
    for (let next = token(); next[1] !== "}" || entries.size; next = token()) {
      if (next[2] === undefined) throw refused();
      const key = characters(next[2]);
      if (entries.has(key)) throw new ProtocolError(`The file is not valid JSON: the key ${next[2]} stands twice.`);
      token(":");
      entries.set(key, value(depth));
      if (token(",", "}")[1] === "}") break;
    }
    return entries;
  };
  const document = value(0);
  if (/[^ \t\n\r]/.test(text.slice(place))) throw refused();
  return document;
}

/** UTF-8 proper, in which a byte order mark is a character that JSON does not have. */
function decoded(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new ProtocolError("The file is not UTF-8 text, so it is not a protocol.");
  }
}

function characters(string) {
  const text = JSON.parse(string);
  if (/\p{Surrogate}/u.test(text)) {
    throw new ProtocolError("The file is not valid JSON: half a surrogate pair is no character.");
  }
  return text;
}

/** The one spelling that is hashed: Python's json.dumps with sorted keys, no blanks, ASCII only. */
export function canonical(value) {
  if (value instanceof Map) {
    const keys = [...value.keys()].sort(byCodePoint);
    return `{${keys.map((key) => `${canonical(key)}:${canonical(value.get(key))}`).join(",")}}`;
  }
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value === "string") {
    return JSON.stringify(value).replace(/[^ -~]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
  }
  return typeof value === "number" ? pythonFloat(value) : String(value);
}

/** SHA-256 of that spelling, in hexadecimal digits. */
export async function hashOf(document) {
  const digest = await subtle().digest("SHA-256", new TextEncoder().encode(canonical(document)));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function byCodePoint(a, b) {
  const [first, second] = [Array.from(a), Array.from(b)];
  const at = first.findIndex((c, i) => c !== second[i]);
  if (at < 0) return first.length - second.length;
  return at >= second.length ? 1 : first[at].codePointAt(0) - second[at].codePointAt(0);
}

/** A float as Python writes it: both take the fewest digits that read back as the same number. */
export function pythonFloat(x) {
  if (!Number.isFinite(x)) return x > 0 ? "inf" : x < 0 ? "-inf" : "nan";
  const [digits, power] = x.toExponential().split("e");
  if (x !== 0 && (power < -4 || power >= 16)) {
    return `${digits}e${power[0]}${power.slice(1).padStart(2, "0")}`;
  }
  const plain = Object.is(x, -0) ? "-0" : String(x);
  return plain.includes(".") ? plain : `${plain}.0`;
}
