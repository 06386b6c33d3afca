// Runs the JavaScript client for test_questionnaires.py: node questionnaire.mjs FOLDER-OF-CLIENT FILE WORDS

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [client, file, words] = process.argv.slice(2);
const { loadQuestionnaire } = await import(pathToFileURL(`${client}/questionnaire.js`));
try {
  const q = await loadQuestionnaire(readFileSync(file));
  const drawn = words.split(",").map((word) => q.drawBlock(BigInt(word)));
  const columns = q.blocks.map((block) => block.useful.map((column) => column.name));
  const records = q.blocks.map((block) => Object.fromEntries([...block.sensitive, ...block.useful].map(({ name, labels }) => [name, labels[0]])));
  const reports = q.blocks.map((block, j) => block.release(records[j]));
  const invited = [await q.blockOf("a"), await q.blockOf("a"), await q.blockOf("b")];
  console.log(JSON.stringify({ fingerprint: q.fingerprint, drawn, columns, reports, invited }));
} catch (error) {
  console.log(JSON.stringify({ error: error.message }));
}
