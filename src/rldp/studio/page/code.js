// Step 6: from the saved protocol on, as a script, as commands, and as a report.

import { download, post } from "./api.js";
import { copyable, errorPlace, h, showError } from "./dom.js";
import { designed } from "./protocol.js";
import { read } from "./state.js";

export const TITLE = "Code";
export const LEAD = "Go on without the page: script and commands begin from the protocol file, so they use exactly this protocol.";

export const HOLDS_COUNTS = "The protocol file holds the counts of the sample: share it only where the sample may be known. The public version holds no counts; give that one to clients. Its table of chances was made for this sample and may still tell something of its frequencies.";

// Buttons that save, with a line that says what was saved.
export function savers(section) {
  const told = h("p", { class: "quiet", role: "status", id: "saved" });
  const button = (what, text, { primary = false, note = "" } = {}) =>
    h("button", { type: "button", id: `save-${what}`, class: primary ? null : "quiet-button", onclick: async () => {
      try {
        told.textContent = `Saved ${await download(what, read())}. ${note}`;
      } catch (error) {
        showError(section, error);
      }
    } }, text);
  const protocol = () => button("protocol", "Save the protocol", { primary: true, note: "It holds the counts of the sample." });
  const publicVersion = () => button("public", "Save the public version", { note: "It holds no counts of the sample." });
  return { told, button, protocol, publicVersion };
}

export async function show(section, state, page) {
  const work = h("div", { class: "search", role: "status" });
  section.append(errorPlace("protocol"), errorPlace("sensitive"), errorPlace("download"), work);
  if (!(await designed(section, page, work, h("div")))) return;
  const code = await post("code", read());
  if (!page.isAlive()) return;
  const save = savers(section);
  const records = code.needs_records
    ? [h("code", {}, code.records_file), ": the records that were counted, one row for each person. ",
        h("span", { class: "choices" }, save.button("records", "Save the records", { note: "It holds a row for each person: keep it as safe as the data." }))]
    : [h("code", {}, code.records_file), ": the file that you loaded, or another with the same columns."];
  section.append(
    h("div", { class: "card" }, h("h2", {}, "Put these into one folder"),
      h("ol", { class: "files" },
        h("li", {}, h("code", {}, code.protocol_file), ": this protocol. ", h("span", { class: "choices" }, save.protocol(), save.publicVersion())),
        h("li", {}, records)),
      h("p", { class: "note" }, HOLDS_COUNTS),
      h("p", { class: "quiet" }, "Fingerprint of this protocol: ", h("code", { class: "long" }, code.fingerprint)),
      save.told),
    h("div", { class: "card" }, h("h2", {}, "Then run one of these there"),
      h("p", {}, "Both check the proof, release the records, estimate the table back from the reports, and say how many reports a margin of 1 percentage point needs."),
      h("p", {}, save.button("script", "Save the script")),
      copyable("Python", code.python), copyable("Command line", code.command)),
    h("div", { class: "card" }, h("h2", {}, "A report for others"),
      h("p", {}, "One HTML file that stands alone: the choice, the curves, the proof, the risk and the channel. It shows frequencies of the sample."),
      h("p", {}, save.button("report", "Save the report", { note: "It shows frequencies of the sample." }))));
}
