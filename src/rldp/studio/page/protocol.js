// Step 3: the chosen protocol, designed with progress, and what it does.

import { follow, post, stop } from "./api.js";
import { announce, bits, clearErrors, codePanel, count, errorPlace, fact, h, next, percent, points, seconds, showError, table } from "./dom.js";
import { heatMap } from "./heat.js";
import { at, change, hasGoal, isChosen, read } from "./state.js";
import { wishes } from "./wishes.js";
import { workLine } from "./working.js";

export const TITLE = "Protocol";
export const LEAD = "What a person sends instead of the record: how likely is each report, for each record?";

const NAMES = ["best", "optimal", "polyopt", "ue-cr", "grr-cr", "ir", "srr", "ue", "grr", "ldp-optimal"];

export async function show(section, state, page) {
  const work = h("div", { class: "search", role: "status" });
  const result = h("div");
  const redesign = () => {
    page.moved();
    clearErrors(section);
    if (!isChosen(read())) return showError(section, { field: "step", message: "Enter the levels that shall be promised, above 0." });
    return designed(section, page, work, result).catch((error) => page.isAlive() && showError(section, error));
  };
  section.append(choices(state, redesign), errorPlace("sensitive"), work, result);
  await designed(section, page, work, result);
}

// The design of what is chosen now, started if need be and watched to its end.
export async function designed(section, page, work, result, isAgain = false) {
  const choice = read();
  const mine = JSON.stringify(choice);
  const isWanted = () => page.isAlive() && JSON.stringify(read()) === mine;
  result.replaceChildren();
  const job = await post("design", { ...choice, again: isAgain });
  const working = workLine(work, "Information kept so far", "Stop with the best so far", (told) => stop(told).catch(() => {}));
  const ended = await follow(job, (told) => status(work, working, told), isWanted);
  if (!ended) {
    if (page.isAlive()) stop(job).catch(() => {}); // something else is chosen now
    return null;
  }
  if (ended.error) throw Object.assign(new Error(ended.error), { field: "step" });
  const shown = await post("protocol", choice).catch((error) => {
    if (ended.state !== "stopped") throw error;
    return null; // stopped before anything was found
  });
  if (!isWanted()) return null;
  const again = () => designed(section, page, work, result, true).catch((error) => showError(section, error));
  if (ended.state === "stopped")
    work.replaceChildren(h("span", {}, stopped(shown)),
      h("button", { type: "button", class: "small", onclick: again }, "Search again"));
  else work.replaceChildren();
  if (shown) {
    result.replaceChildren(...described(shown));
    announce(`${shown.name} keeps ${percent(shown.share)} of the information.`);
  }
  return shown;
}

function stopped(shown) {
  if (!shown) return "Stopped before anything was found. ";
  if (!shown.is_draft) return "Stopped: this is the best so far, proved like any other. ";
  return `Stopped before the search handed anything over: this is the draft it began with (${shown.name}), proved like any other. `;
}

function status(work, working, told) {
  if (told.state !== "running") return work.replaceChildren();
  const { share, bound_share: bound } = told.progress;
  const text = share === undefined ? `Designing … ${seconds(told.seconds)}` : `Keeps ${percent(share, 2)} of H(X), at most ${percent(bound, 2)} is possible`;
  return working(told, share, text);
}

function choices(state, onchange) {
  const select = h("select", { id: "protocol", name: "protocol", onchange: () => (offer(change({ protocol: select.value })), onchange()) },
    NAMES.map((name) => h("option", { value: name, selected: name === state.protocol }, name)));
  const asks = wishes(state, onchange, { areHidden: (now) => !hasGoal(now) }); // only these are designed for a goal, with layers
  const wish = h("small", { id: "for-information" }, "This protocol is made for information and may merge cells: “best” and “optimal” estimate every cell.");
  const offer = (now) => {
    asks.follow(now);
    wish.hidden = hasGoal(now);
  };
  offer(state);
  return h("form", { class: "card controls", onsubmit: (event) => event.preventDefault() },
    h("div", { class: "control" }, h("label", { for: "protocol" }, "Protocol"), select, errorPlace("protocol")),
    h("div", { class: "control" }, h("span", { class: "label" }, "ε in nats"), h("b", {}, String(state.epsilon)), h("small", {}, h("a", { href: at("tradeoff") }, "change it in the trade-off"))),
    asks.element, wish);
}

// Against whom which factor holds, in the words of the server.
export const promises = (list) =>
  h("dl", { class: "promises" }, list.map((promise) => [h("dt", {}, promise.against), h("dd", {}, promise.text)]));

function gapFact(p) {
  if (p.error_gap !== null) return fact(percent(p.error_gap), "of the variance, at most, is avoidable", p.error_gap_text);
  if (p.goal && p.goal !== "information") return fact("unknown", "gap to the optimum", "no bound on the error is known for this table");
  const size = p.gap === null ? p.ceiling_gap_bits : p.gap_bits;
  if (size === null) return fact("unknown", "gap to the optimum", "the search was ended before it had a bound");
  const note = p.gap === null ? "to the ceiling, which no protocol of any kind exceeds" : p.gap;
  return fact(`${size < 1e-6 ? "< 1e-6" : size.toPrecision(2)} bits`, "gap to the optimum, at most", note);
}

// What estimates will look like, in the words of the trade-off.
function outlookFacts(p) {
  if (!p.outlook) return [];
  const { error, margin_s: share, needed } = p.outlook;
  const from = `from ${count(p.records)} reports, if the table is the truth`;
  return [
    fact(points(error), "points, mean error", `${p.goal && p.goal !== "information" ? p.goal_title : "estimates of the goal"}, ${from}`),
    fact(points(share), "points for a share of S", `half the widest 95 % interval, ${from}`),
    fact(needed ? count(needed) : error === "inf" ? "never" : "–", "reports for ± 1 point", needed ? "in all estimates of the goal, 95 % intervals" : "some of the goal cannot be estimated from these reports"),
  ];
}

// What cannot be estimated is said before anything is collected.
function warnings(p) {
  const { error, margin_s: share } = p.outlook ?? {};
  const texts = [];
  if (error === "inf") texts.push("Some of the goal cannot be estimated from these reports, however many there are: “best” is designed so that it can.");
  if (share === "inf") texts.push(`The shares of ${p.sensitive} cannot all be estimated from these reports: what is spent of ε tells too little of it.`);
  return texts.map((text) => h("p", { class: "note" }, text));
}

function described(p) {
  return [
    h("div", { class: "card" },
      h("h2", {}, `${p.name}: ${p.what}`),
      promises(p.promises),
      h("div", { class: "facts" },
        ...outlookFacts(p),
        fact(bits(p.bits), "kept", `of ${p.entropy_bits.toFixed(3)} bits`),
        fact(percent(p.share), "of H(X)"),
        gapFact(p),
        fact(p.outputs, "different reports"),
        fact(`${p.identified} of ${p.cells}`, "cells can be estimated"),
        fact(seconds(p.seconds), "to design and prove")),
      warnings(p),
      p.parameters.length ? table("Parameters", ["Name", "Value", "Meaning"], p.parameters.map((entry) => [entry.name, entry.value, h("span", {}, entry.meaning)])) : null),
    h("div", { class: "card" },
      h("h2", {}, "The channel"),
      p.channel && p.channel.occurring > p.channel.columns.length
        ? h("p", { class: "note" }, `The ${p.channel.columns.length} likeliest of ${p.channel.occurring} reports; together they are ${percent(p.channel.chance)} of all.`)
        : null,
      p.channel
        ? heatMap({ caption: "Chance of each report (columns) for each record (rows), in %", rows: p.channel.rows, columns: p.channel.columns, values: p.channel.values,
            text: (value) => (value === 0 ? "0" : value < 0.0005 ? "<0.1" : (100 * value).toFixed(1)) })
        : h("p", { class: "note" }, `With ${p.outputs} different reports it is too large to draw; the protocol file has it in a compact form.`)),
    codePanel(p.code),
    next(at("risk"), "What can someone learn?"),
  ];
}
