// Runs the JavaScript client for test_javascript.py: node client.mjs FOLDER-OF-CLIENT TASK ARGUMENT

import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [client, task, argument] = process.argv.slice(2);
const { load } = await import(pathToFileURL(`${client}/rldp.js`));

const tasks = {
  /** Reports and labels for cells and words in files next to the protocol. */
  async draw() {
    const p = await load(readFileSync(`${argument}.json`, "utf8"));
    const numbers = (kind, name) => new kind(new Uint8Array(readFileSync(`${argument}.${name}`)).buffer);
    const [cells, words] = [numbers(Uint32Array, "cells"), numbers(BigUint64Array, "words")];
    const reports = Array.from({ length: cells.length / 2 }, (_, i) =>
      p.draw(cells[2 * i], cells[2 * i + 1], words.subarray(p.words * i, p.words * (i + 1))),
    );
    const labels = reports.map((report) => p.label(report));
    const chances = reports.map((report, i) => p.chance(cells[2 * i], cells[2 * i + 1], report));
    writeFileSync(`${argument}.reports`, JSON.stringify({ reports, labels, chances, shape: p.shape, fingerprint: p.fingerprint }));
  },

  /** What each file of a list is to the client: its fingerprint, or the name of an error. */
  async take() {
    const { files, options } = JSON.parse(readFileSync(argument, "utf8"));
    const out = [];
    for (const file of files) {
      const bytes = readFileSync(file);
      const beside = options?.signature && { signature: readFileSync(options.signature) };
      out.push(await outcome(async () => (await load(bytes, { ...options, ...beside })).fingerprint));
    }
    process.stdout.write(JSON.stringify(out));
  },

  /** What each file of a list claims: levels with their attackers, and in words. */
  async claims() {
    const files = JSON.parse(readFileSync(argument, "utf8"));
    const out = [];
    for (const file of files) {
      const p = await load(readFileSync(file));
      const claims = p.claims.map(({ levels, ...rest }) => ({ ...rest, levels: levels.map((row) => row.map((x) => (x === Infinity ? "inf" : x))) }));
      out.push({ claims, words: p.claimsInWords() });
    }
    process.stdout.write(JSON.stringify(out));
  },

  /** What each whole file of a list proves: the fingerprint of its public version, or the name of an error. */
  async prove() {
    const { prove } = await import(pathToFileURL(`${client}/proof/prove.js`));
    const out = [];
    for (const file of JSON.parse(readFileSync(argument, "utf8"))) {
      out.push(await outcome(async () => (await prove(readFileSync(file))).fingerprint));
    }
    process.stdout.write(JSON.stringify(out));
  },

  /** The same for the documents of a file, one in each line. */
  async proveLines() {
    const { prove } = await import(pathToFileURL(`${client}/proof/prove.js`));
    const out = [];
    for (const line of readFileSync(argument, "utf8").split("\n").filter(Boolean)) out.push(await outcome(async () => (await prove(line)).fingerprint));
    process.stdout.write(JSON.stringify(out));
  },

  /** What each record of a list gives: a label, or the name and text of an error. */
  async release() {
    const { file, records, key, ids, times, per } = JSON.parse(readFileSync(argument, "utf8"));
    const out = [];
    for (const text of [file].flat()) {
      try {
        const p = await load(text);
        for (const [i, record] of records.entries()) {
          const again = times ?? 1;
          for (let t = 0; t < again; t++) {
            const secret = key && Uint8Array.from(Buffer.from(key, "hex"));
            out.push(await outcome(() => (key ? p.releaseKeyed(record, ids[i], secret, { per }) : p.release(record))));
          }
        }
      } catch (error) {
        out.push(`${error.name}: ${error.message}`);
      }
    }
    process.stdout.write(JSON.stringify(out));
  },
};

async function outcome(work) {
  try {
    return await work();
  } catch (error) {
    return `${error.name}: ${error.message}`;
  }
}

await tasks[task]();
