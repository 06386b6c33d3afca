// Step 5: files to keep, a release, estimates from reports, and how many are needed.

import { follow, post, stop, upload } from "./api.js";
import { announce, clearErrors, codePanel, count, decimal, decimalField, errorPlace, fact, h, next, percent, short, showError, table } from "./dom.js";
import { interval } from "./charts.js";
import { HOLDS_COUNTS, savers } from "./code.js";
import { designed } from "./protocol.js";
import { at, hasGoal, read } from "./state.js";
import { workLine } from "./working.js";

export const TITLE = "Use";
export const LEAD = "Keep the protocol, release records through it, and get the table back from the reports.";

export async function show(section, state, page) {
  const work = h("div", { class: "search", role: "status" });
  section.append(errorPlace("protocol"), errorPlace("sensitive"), work);
  if (!(await designed(section, page, work, h("div")))) return;
  const about = await post("use", read());
  if (!page.isAlive()) return;
  const estimates = estimateCard(section, page);
  section.append(filesCard(section, about), releaseCard(section, about, page, estimates.take), estimates.card, planCard(section, about), codePanel(about.code), next(at("code"), "Take the code"));
}

function filesCard(section, about) {
  const save = savers(section);
  return h("div", { class: "card" }, h("h2", {}, "The protocol"),
    h("p", {}, "The file ", h("code", {}, about.protocol_file), " has everything: the table of chances, the labels, the proof, and the sample that the proof speaks of. ",
      "Whoever has it can check the proof with ", h("code", {}, "rldp verify"), ". The public version has the table and the labels: enough to release and to estimate."),
    h("p", { class: "note" }, HOLDS_COUNTS),
    h("p", { class: "choices" }, save.protocol(), save.publicVersion()), save.told,
    h("p", { class: "quiet" }, "Fingerprint: ", h("code", { class: "long" }, about.fingerprint)));
}

const picker = (id, text, onfile) => {
  const input = h("input", { type: "file", id, class: "unseen", accept: ".csv,.tsv,.gz,.parquet,.pq", onchange: () => input.files[0] && onfile(input.files[0]) });
  return [input, h("label", { for: id, class: "button quiet-button" }, text)];
};

function releaseCard(section, about, page, onreports) {
  let records = null;
  const which = h("span", {}, about.is_bundled ? `the ${count(about.records)} people behind the counts` : about.file);
  const format = h("select", { id: "format", name: "format" }, h("option", { value: "csv" }, "CSV"), h("option", { value: "parquet" }, "Parquet"));
  const shuffle = h("input", { type: "checkbox", id: "shuffle", checked: true });
  const told = h("div", { class: "search", role: "status" });
  const start = h("button", { type: "button", id: "release", onclick: () => released() }, "Release");
  async function other(file) {
    try {
      const known = await upload(file, (share) => (told.textContent = `Reading ${file.name}: ${Math.round(100 * share)} % sent`));
      records = known.id;
      which.textContent = `${known.name} (${count(known.records)} records)`;
      told.textContent = "";
    } catch (error) {
      told.textContent = "";
      showError(section, { field: "records", message: error.message });
    }
  }
  async function released() {
    clearErrors(section);
    start.disabled = true;
    try {
      const job = await post("release", { ...read(), records, format: format.value, shuffle: shuffle.checked });
      const working = workLine(told, "Records released", "Stop", (now) => stop(now).catch(() => {}));
      const ended = await follow(job, (now) => {
        const { records: done = 0, of = 0, share } = now.progress;
        working(now, share, `${count(done)} of ${count(of)} records`);
      }, page.isAlive);
      if (!ended) return;
      if (ended.error) throw Object.assign(new Error(ended.error), { field: "records" });
      if (ended.state === "stopped") told.replaceChildren(h("span", {}, "Stopped: nothing was released."));
      else {
        told.replaceChildren(h("span", { class: "good" }, `✓ ${count(ended.progress.records)} reports, drawn with secure randomness. `),
          h("a", { class: "button", id: "save-reports", href: `/api/jobs/${ended.id}/file`, download: "" }, "Save the reports"));
        onreports({ id: ended.progress.reports, name: "the reports just released" });
      }
    } catch (error) {
      told.replaceChildren();
      showError(section, error);
    } finally {
      start.disabled = false;
    }
  }
  return h("div", { class: "card" }, h("h2", {}, "Release"),
    h("p", {}, "One random report for each record, exactly as the proved table says. Release each person once: a second report tells more."),
    h("p", {}, "Records: ", h("b", {}, which), " ", picker("records-file", "Take another file", other)), errorPlace("records"),
    h("p", { class: "choices" }, h("label", { for: "format" }, "Format"), format, h("label", { class: "check", for: "shuffle" }, shuffle, "in random order"), start),
    errorPlace("format"), told);
}

function estimateCard(section, page) {
  let reports = null;
  const which = h("b", {}, "none yet");
  const method = h("select", { id: "method", name: "method" }, [["inversion", "unbiased"], ["likelihood", "most likely"], ["bayes", "leaning on the design sample"]].map(([value, text]) => h("option", { value }, text)));
  const button = h("button", { type: "button", id: "estimate", disabled: true, onclick: () => estimated() }, "Estimate");
  const result = h("div", { "aria-live": "polite", id: "estimates" });
  function take(file) {
    reports = file.id;
    which.textContent = file.name;
    button.disabled = false;
  }
  async function load(file) {
    clearErrors(section);
    try {
      take(await upload(file));
    } catch (error) {
      showError(section, { field: "reports", message: error.message });
    }
  }
  async function estimated() {
    clearErrors(section);
    button.disabled = true;
    result.replaceChildren(h("p", { class: "quiet" }, "Estimating …"));
    try {
      const told = await post("estimate", { ...read(), reports, method: method.value });
      if (page.isAlive()) result.replaceChildren(...figures(told));
      announce("Estimates are shown.");
    } catch (error) {
      result.replaceChildren();
      showError(section, error);
    }
    button.disabled = false;
  }
  const card = h("div", { class: "card" }, h("h2", {}, "Estimates"),
    h("p", {}, "Reports: ", which, " ", picker("reports-file", "Load reports", load)), errorPlace("reports"),
    h("p", { class: "choices" }, h("label", { for: "method" }, "Method"), method, button), errorPlace("method"), result);
  return { card, take };
}

// The most informative design is seldom the easiest to estimate from.
const narrower = () =>
  hasGoal(read()) && read().goal !== "information" ? "" : h("p", { class: "quiet" }, "Too wide? “best” with the goal “estimates of every cell” in the ", h("a", { href: at("protocol") }, "protocol step"), " is designed for narrow intervals.");

function figures(told) {
  const part = (caption, records) => {
    const most = Math.max(...records.flatMap((record) => [record.high, record.sample]), 0.01);
    return table(caption, ["", "estimate", "", `${short(100 * told.level)} % interval`, "design sample"],
      records.map((record) => [record.name, percent(record.estimate_in_interval), interval(record, Math.min(1, most)), `${percent(record.low)} to ${percent(record.high)}`, percent(record.sample)]), { class: "figures" });
  };
  return [
    h("p", {}, `${count(told.reports)} reports. `, told.fit < 0.01 ? h("b", { class: "error" }, `Poor fit (p = ${told.fit.toPrecision(2)}): these reports can hardly come from this protocol.`) : `They fit the protocol (p = ${told.fit.toPrecision(2)}).`),
    told.hidden ? h("p", { class: "note" }, `${told.hidden} of ${told.cells.length} cells are not identified: their intervals are bounds that more reports will not close. Design “best” for “estimates of every cell” in the protocol step to tell them apart.`) : null,
    ...told.remarks.map((text) => h("p", { class: "note" }, text)),
    narrower(),
    h("p", { class: "quiet" }, "● estimate with its interval   × design sample"),
    part("Cells", told.cells), part("S", told.s), told.u.length ? part("U", told.u) : null,
    told.forgery ? h("p", { class: "quiet" }, told.forgery) : null,
  ].filter(Boolean);
}

function planCard(section, about) {
  const margin = decimalField("margin", 1, {});
  const level = h("select", { id: "level", name: "level" }, [0.9, 0.95, 0.99].map((value) => h("option", { value, selected: value === 0.95 }, percent(value, 0))));
  const what = h("select", { id: "cell", name: "cell" }, h("option", { value: "" }, "every cell that reports can tell"),
    about.marginals.map((part) => h("optgroup", { label: part.column }, part.labels.map((label) => h("option", { value: JSON.stringify({ [part.column]: label }) }, `${part.column} = ${label}`)))));
  const result = h("div", { role: "status", id: "plan" });
  async function planned() {
    clearErrors(section);
    result.replaceChildren();
    const points = decimal(margin.input.value);
    if (points === null) return showError(section, { field: "margin", message: `Expected a number such as 1 or 0.5, got “${margin.input.value}”.` });
    try {
      const told = await post("plan", { ...read(), margin: points / 100, level: Number(level.value), cell: what.value ? JSON.parse(what.value) : null });
      result.replaceChildren(h("div", { class: "facts" }, fact(count(told.needed), "reports", `for ± ${short(100 * told.margin)} percentage points at ${percent(told.level, 0)}`)),
        narrower(),
        table("Reports that each needs, if the design sample is right", ["What", "expected", "reports"], told.quantities.slice(0, 60).map((row) => [row.name, percent(row.expected), count(row.reports)])));
    } catch (error) {
      result.replaceChildren();
      showError(section, error);
    }
  }
  return h("div", { class: "card" }, h("h2", {}, "How many reports do I need?"),
    h("form", { class: "controls", onsubmit: (event) => (event.preventDefault(), planned()) },
      h("div", { class: "control" }, h("label", { for: "cell" }, "To know"), what, errorPlace("cell")),
      h("div", { class: "control" }, h("label", { for: "margin" }, "to ± percentage points"), margin.input, margin.understood, errorPlace("margin")),
      h("div", { class: "control" }, h("label", { for: "level" }, "with confidence"), level, errorPlace("level")),
      h("div", { class: "control" }, h("button", { id: "plan-button" }, "Plan"))), result);
}
