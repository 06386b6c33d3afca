// Step 6: the whole way as a script, as commands, and as a report.

import { download, post } from "./api.js";
import { copyable, errorPlace, h, showError } from "./dom.js";
import { designed } from "./protocol.js";
import { read } from "./state.js";

export const TITLE = "Code";
export const LEAD = "The whole way as a program: it does exactly what you did here, without the page.";

export async function show(section, state, page) {
  const work = h("div", { class: "search", role: "status" });
  const told = h("p", { class: "quiet", role: "status" });
  const code = await post("code", read());
  const save = (what, text, primary, isReady) =>
    h("button", { type: "button", id: `save-${what}`, class: primary ? null : "quiet-button", disabled: !isReady, onclick: async () => {
      try {
        told.textContent = `Saved ${await download(what, read())}.`;
      } catch (error) {
        showError(section, error);
      }
    } }, text);
  const report = save("report", "Save the report", true, code.is_designed);
  section.append(errorPlace("protocol"), errorPlace("sensitive"), work,
    h("div", { class: "card" }, h("h2", {}, "Take it with you"),
      h("p", {}, "The report is one HTML file that stands alone: the choice, the curves, the proof, the risk and the channel."),
      h("p", { class: "choices" }, report, save("script", "Save the script", false, true)), told),
    copyable("Python", code.python), copyable("Command line", code.command));
  if (!code.is_designed && (await designed(section, page, work, h("div")))) report.disabled = false;
}
