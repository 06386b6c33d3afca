/** What stands in a protocol file, and Ed25519 signatures: that it is the same file, and who stands behind it. */

import { hashOf, parsed } from "./documents.js";
import { ProtocolError } from "./errors.js";
import { subtle } from "./words.js";

const PROTOCOL_VERSIONS = [1n, 2n, 3n];
const WHAT = new Map([
  ["rldp-client", "a public protocol"],
  ["rldp-protocol", "a whole protocol"],
  ["rldp-questionnaire-client", "a public questionnaire"],
]);
const INSTEAD = new Map([
  ["rldp-client", "Expected a whole protocol; a public one holds no proof."],
  ["rldp-protocol", "Expected a public protocol, this file holds the design sample too; give clients what rldp public writes."],
]);
const FORMAT = "rldp-signature";
const VERSION = 1n;
const PURPOSE = "rldp-signature-1:"; // the hash of the file follows
const KEY = /^[0-9a-f]{64}$/;
const SIGNATURE = /^[0-9a-f]{128}$/;
const ORDER = 2n ** 252n + 27742317777372353535851937790883648493n; // of the base point, in RFC 8032

/**
 * The entries of a protocol file but hash and signatures, once its format, version, hash and signatures are checked.
 * With `signedBy`, a public key, it must be signed by that key: inside, or by the detached `signature`, as text or bytes.
 */
export async function opened(source, format, { signedBy, signature } = {}) {
  const document = parsed(source);
  checkKind(document, format);
  const signatures = document.has("signatures") ? signaturesFrom(document.get("signatures")) : [];
  const claimed = document.get("hash");
  for (const name of ["hash", "signatures"]) document.delete(name);
  const actual = await hashOf(document);
  if (claimed !== actual) throw new ProtocolError("The file is damaged: its hash does not fit its content.");
  if (signedBy !== undefined) {
    const beside = signature === undefined ? [] : detached(signature);
    await checkSigned(actual, [...signatures, ...beside], signedBy);
  }
  return document;
}

function checkKind(document, wanted) {
  const [format, version] = document instanceof Map ? [document.get("format"), document.get("version")] : [];
  if (format === wanted && PROTOCOL_VERSIONS.includes(version)) return;
  if (format !== wanted && INSTEAD.has(format)) throw new ProtocolError(INSTEAD.get(format));
  throw new ProtocolError(
    format === wanted && typeof version === "bigint"
      ? `This is ${WHAT.get(wanted)} file of version ${version}; this client reads 1, 2 or 3.`
      : `Expected ${WHAT.get(wanted)} file of version 1, 2 or 3.`,
  );
}

/** The signatures of a list as it stands in a file, each in its one spelling. */
function signaturesFrom(value) {
  const isEntry = (entry) =>
    entry instanceof Map && entry.size === 2 && isText(entry.get("public_key"), KEY) && isText(entry.get("signature"), SIGNATURE);
  if (!Array.isArray(value) || !value.length || !value.every(isEntry)) {
    throw new ProtocolError("The file is damaged: its signatures are not spelled as they must be.");
  }
  const entries = value.map((entry) => ({ key: entry.get("public_key"), signature: entry.get("signature") }));
  if (new Set(entries.map(({ key }) => key)).size < entries.length) {
    throw new ProtocolError("The file is damaged: a key stands twice among its signatures.");
  }
  return entries;
}

const isText = (value, pattern) => typeof value === "string" && pattern.test(value);

/** The signatures in a file of its own. */
function detached(source) {
  const document = parsed(source);
  const isKnown = document instanceof Map && document.get("format") === FORMAT && document.get("version") === VERSION;
  if (!isKnown || document.size !== 3) throw new ProtocolError(`Expected a signature file of version ${VERSION}.`);
  return signaturesFrom(document.get("signatures"));
}

/** Refuses a file with this hash unless one of these signatures is by this public key. */
async function checkSigned(hash, entries, key) {
  if (!isText(key, KEY)) throw new ProtocolError("Expected signedBy as a public key of 64 hexadecimal digits in lower case.");
  const own = entries.filter((entry) => entry.key === key);
  if (!own.length) throw new ProtocolError(`The file has no signature by the key ${key}.`);
  for (const { signature } of own) if (await isValid(hash, bytes(signature), bytes(key))) return;
  throw new ProtocolError(`The file is not what the key ${key} signed.`);
}

async function isValid(hash, signature, key) {
  const S = Array.from(signature.slice(32)).reduceRight((sum, byte) => sum * 256n + BigInt(byte), 0n);
  if (S >= ORDER) return false; // a second spelling of the same signature
  try {
    const imported = await subtle().importKey("raw", key, "Ed25519", false, ["verify"]);
    return await subtle().verify("Ed25519", imported, signature, new TextEncoder().encode(PURPOSE + hash));
  } catch (error) {
    if (error.name !== "NotSupportedError") return false; // no point of the curve
    throw new ProtocolError("Expected WebCrypto with Ed25519, this browser has none; signatures cannot be checked.");
  }
}

const bytes = (hex) => Uint8Array.from(hex.match(/../g), (pair) => parseInt(pair, 16));
