/** Where words of 64 bits come from: the secure source of the browser, or a key and an id. */

import { ProtocolError } from "./errors.js";

const QUOTA = 8192; // words that getRandomValues gives at a time
const BLOCK = 16; // bytes of AES

/** Fresh random words. */
export function secureWords(n) {
  const words = new BigUint64Array(n);
  for (let start = 0; start < n; start += QUOTA) {
    globalThis.crypto.getRandomValues(words.subarray(start, start + QUOTA));
  }
  return words;
}

/**
 * The words of the person with this id under a secret key, for one protocol.
 * With the codes [s, u] of a record they are other words for every record of the person.
 */
export async function keyedWords(n, key, fingerprint, id, cell = []) {
  const text = new TextEncoder().encode(String(id));
  const bytes = new Uint8Array(4 * (1 + cell.length) + text.length);
  const numbers = new DataView(bytes.buffer); // the number of the pair of words, then the codes
  cell.forEach((code, i) => numbers.setUint32(4 * (i + 1), code));
  bytes.set(text, bytes.length - text.length);
  const purpose = new TextEncoder().encode(`rldp keyed release ${cell.length ? "per record " : ""}${fingerprint}`);
  const secret = await subtle().importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const derived = await subtle().sign("HMAC", secret, purpose);
  const aes = await subtle().importKey("raw", derived, "AES-CBC", false, ["encrypt"]);
  const words = [];
  for (let q = 0; words.length < n; q++) {
    numbers.setUint32(0, q);
    const halves = new DataView((await cmac(aes, bytes)).buffer);
    words.push(halves.getBigUint64(0, true), halves.getBigUint64(8, true));
  }
  return words.slice(0, n);
}

/** AES-256-CMAC of one message: the last block of CBC from zero, with a subkey added to the end. */
async function cmac(key, message) {
  const encrypted = async (blocks) => {
    const options = { name: "AES-CBC", iv: new Uint8Array(BLOCK) };
    const out = new Uint8Array(await subtle().encrypt(options, key, blocks)); // WebCrypto pads by a block more
    return out.slice(blocks.length - BLOCK, blocks.length);
  };
  const size = Math.max(1, Math.ceil(message.length / BLOCK)) * BLOCK;
  const padded = new Uint8Array(size);
  padded.set(message);
  if (message.length < size) padded[message.length] = 0x80;
  let subkey = doubled(await encrypted(new Uint8Array(BLOCK)));
  if (message.length < size) subkey = doubled(subkey);
  for (let i = 0; i < BLOCK; i++) padded[size - BLOCK + i] ^= subkey[i];
  return encrypted(padded);
}

function doubled(block) {
  const twice = block.map((byte, i) => (byte << 1) | (i + 1 < BLOCK ? block[i + 1] >> 7 : 0));
  if (block[0] & 0x80) twice[BLOCK - 1] ^= 0x87;
  return twice;
}

/** WebCrypto. */
export function subtle() {
  if (!globalThis.crypto?.subtle) {
    throw new ProtocolError("Expected WebCrypto, there is none; open the page by https or on localhost.");
  }
  return globalThis.crypto.subtle;
}
