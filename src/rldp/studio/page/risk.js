// Step 4: what someone may learn, and the proof while one looks.

import { post } from "./api.js";
import { clearErrors, codePanel, count, errorPlace, fact, h, next, percent, seconds, short, showError, table } from "./dom.js";
import { rise } from "./charts.js";
import { designed, promises } from "./protocol.js";
import { at, read } from "./state.js";

export const TITLE = "Risk";
export const LEAD = "What can someone who sees a report learn of S, at worst? It depends on what they know already.";

export async function show(section, state, page) {
  const work = h("div", { class: "search", role: "status" });
  section.append(errorPlace("protocol"), errorPlace("sensitive"), work);
  if (!(await designed(section, page, work, h("div")))) return;
  const [risk, proof] = [await post("risk", read()), proofCard(section)];
  if (!page.isAlive()) return;
  section.append(levels(risk), proof, values(risk), limits(risk), codePanel(risk.code), next(at("use"), "Use it"));
}

function levels(risk) {
  return h("div", { class: "card" },
    h("h2", {}, `How far one report can move the odds on ${risk.sensitive}`),
    promises(risk.promises),
    h("p", {}, "F is ", risk.set, "."),
    table("Worst cases, each exact", ["Over what", "ε in nats", "odds"], risk.levels.map((level) => [level.over, level.text, level.odds])),
    h("p", { class: risk.holds ? "good" : "error" }, risk.holds ? `✓ The claim ε = ${short(risk.claimed)} over F holds.` : `✗ The claim ε = ${short(risk.claimed)} is broken.`),
    h("p", {}, risk.worst_case));
}

function proofCard(section) {
  const told = h("div", { role: "status", id: "proof" });
  const button = h("button", { type: "button", id: "prove", onclick: () => check() }, "Check the proof again");
  async function check() {
    button.disabled = true;
    clearErrors(section);
    told.replaceChildren(h("p", { class: "quiet" }, "Checking every inequality with integers and fractions only …"));
    try {
      const proof = await post("proof", read());
      told.replaceChildren(
        ...proof.proved.map((claim) => h("p", { class: "good" }, `✓ Proved: ${claim}.`)),
        h("div", { class: "facts" }, fact(count(proof.conditions), "exact inequalities"), fact(proof.slack.toPrecision(2), "least room", "1 − left/right side"), fact(seconds(proof.seconds), "to check")),
        h("p", { class: "quiet" }, "Fingerprint of the protocol: ", h("code", { class: "long" }, proof.fingerprint)));
    } catch (error) {
      told.replaceChildren(h("p", { class: "error" }, `✗ ${error.message}`));
    }
    button.disabled = false;
  }
  check();
  return h("div", { class: "card" }, h("h2", {}, "The certificate"), told, button);
}

function values(risk) {
  return h("div", { class: "card wide" },
    h("h2", {}, `${risk.sensitive}: before and after a report, by who guesses`),
    table("Of 1,000 people, before → after a report, at the frequencies of the table", ["Who guesses", `${risk.sensitive} guessed rightly`, "more than 95 % certain", "more than 99 % certain", "odds"], risk.attackers),
    table("Share of people, and the highest chance after any report, for someone who knows nothing else, over F", [risk.sensitive, "share", "", "at most after"],
      risk.values.map((value) => [value.label, percent(value.prior), rise(value.prior, value.posterior), value.prior ? percent(value.posterior) : "never seen"])),
    h("ul", {}, risk.sentences.map((sentence) => h("li", {}, sentence))));
}

const limits = (risk) =>
  h("div", { class: "card caution wide" }, h("h2", {}, "What is not promised"), h("ul", {}, risk.not_covered.map((sentence) => h("li", {}, sentence))));
