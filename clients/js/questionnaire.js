/**
 * A public questionnaire in the field: a block is drawn first, then a report of that block alone.
 *
 *     import { loadQuestionnaire } from "./questionnaire.js";
 *     const q = await loadQuestionnaire(await (await fetch("survey.public.json")).arrayBuffer());
 *     const block = q.block(q.drawBlock());                        // keep the number: one block per person
 *     const report = block.release({ income: "low", sex: "f" });   // "0 high | m", the block and its report
 *
 * The block does not depend on the answers: it is drawn before the first question is asked, by one word.
 */

import { hashOf } from "./documents.js";
import { ProtocolError } from "./errors.js";
import { protocolFrom } from "./rldp.js";
import { opened } from "./signatures.js";
import { secureWords, subtle } from "./words.js";

const SHARE = /^[0-9]{1,19}$/;
const PROMISE = "one report per person, of one block, drawn independently of the answers";

/** The public questionnaire in a file, text or bytes, every part of it checked; options as of `load`. */
export async function loadQuestionnaire(source, options = {}) {
  const document = await opened(source, "rldp-questionnaire-client", options);
  const fingerprint = await hashOf(document);
  const [blocks, shares] = [document.get("blocks"), document.get("shares")];
  if (document.get("promise") !== PROMISE) throw new ProtocolError("Expected the promise of one report per person.");
  if (!Array.isArray(blocks) || !blocks.length) throw new ProtocolError("Expected a list of blocks.");
  const isShares = shares instanceof Map && shares.size === 2 && typeof shares.get("bits") === "bigint";
  const listed = isShares ? shares.get("of") : null;
  if (!Array.isArray(listed) || listed.length !== blocks.length || !listed.every((x) => typeof x === "string" && SHARE.test(x)))
    throw new ProtocolError("Expected a share for each block, integers as text.");
  const [bits, of] = [shares.get("bits"), listed.map(BigInt)];
  const total = of.reduce((sum, share) => sum + share, 0n);
  if (bits < 1n || bits > 62n || of.some((share) => share < 1n) || total !== 1n << bits)
    throw new ProtocolError("Expected shares above 0 that sum to 1 exactly.");
  const protocols = [];
  for (const block of blocks) {
    if (!(block instanceof Map)) throw new ProtocolError("Expected a protocol as every block.");
    protocols.push(await protocolFrom(block));
  }
  return new Questionnaire(fingerprint, protocols, of, bits);
}

const namesOf = (columns) => columns.map((column) => column.name);
const spelled = (columns) => JSON.stringify(columns.map(({ name, labels }) => [name, labels]));

/** A questionnaire in the field; made by `loadQuestionnaire`. */
export class Questionnaire {
  #ends;

  constructor(fingerprint, protocols, shares, bits) {
    const [first] = protocols;
    if (protocols.some((p) => spelled(p.sensitive) !== spelled(first.sensitive) || !p.useful.length))
      throw new ProtocolError("Expected the same sensitive columns in all blocks, and a useful one in each.");
    const all = [...namesOf(first.sensitive), ...protocols.flatMap((p) => namesOf(p.useful))];
    if (new Set(all).size < all.length) throw new ProtocolError("Expected every column in one block.");
    [this.fingerprint, this.bits] = [fingerprint, Number(bits)];
    this.blocks = protocols.map((p, number) => new Block(p, fingerprint, number));
    let end = 0n;
    this.#ends = shares.map((share) => (end += share));
    Object.freeze(this);
  }

  /** The number of a block by the highest bits of a word: a secure one unless it is given. Draw once, and keep it. */
  drawBlock(word = secureWords(1)[0]) {
    const place = word >> BigInt(64 - this.bits);
    return this.#ends.findIndex((end) => place < end);
  }

  /** The block of an invitation, a secret of 128 random bits: the same on every device. */
  async blockOf(invitation) {
    const text = new TextEncoder().encode(`rldp block ${this.fingerprint} ${invitation}`);
    const digest = new DataView(await subtle().digest("SHA-256", text));
    return this.drawBlock(digest.getBigUint64(0));
  }

  /** The block with a number. */
  block(number) {
    if (!Number.isInteger(number) || !(number in this.blocks)) throw new ProtocolError(`Expected the number of a block, got ${number}.`);
    return this.blocks[number];
  }
}

/** The protocol of a block, whose reports say which block they are of; the fingerprint is that of the questionnaire. */
class Block {
  #p;

  constructor(p, fingerprint, number) {
    this.#p = p;
    [this.fingerprint, this.number] = [fingerprint, number];
    for (const name of ["name", "epsilon", "sensitive", "useful", "words", "readsSensitive", "claims"]) this[name] = p[name];
    Object.freeze(this);
  }

  get shape() {
    return this.#p.shape;
  }

  claimsInWords() {
    return this.#p.claimsInWords();
  }

  codes(record) {
    return this.#p.codes(record);
  }

  draw(s, u, words) {
    return this.#p.draw(s, u, words);
  }

  chance(s, u, report) {
    return this.#p.chance(s, u, report);
  }

  /** The number of the block, a blank, and the label of the report: what a collector takes. */
  label(report, options) {
    return `${this.number} ${this.#p.label(report, options)}`;
  }

  release(record) {
    return this.label(this.draw(...this.codes(record), secureWords(this.words)));
  }
}
