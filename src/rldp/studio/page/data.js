// Step 1: records, the columns that are S and U, and their joint table.

import { get, post, upload } from "./api.js";
import { clearErrors, codePanel, count, errorPlace, fact, h, next, showError, announce } from "./dom.js";
import { heatMap } from "./heat.js";
import { at, change, read } from "./state.js";

export const TITLE = "Data";
export const LEAD =
  "Start from a public or consented sample: which columns must stay secret (S), and which shall stay useful (U)?";

export async function show(section, state, page) {
  const chosen = h("div");
  const result = h("div", { "aria-live": "polite" });
  section.append(dropZone(section, page, (file) => described(file)), errorPlace("data"), chosen, result);

  async function described(file) {
    const { sensitive, useful } = read();
    const names = new Set(file.columns.map((column) => column.name));
    change({
      data: file.id,
      sensitive: sensitive.filter((name) => names.has(name)),
      useful: useful.filter((name) => names.has(name)),
    });
    page.moved();
    chosen.replaceChildren(columns(file, counted));
    result.replaceChildren();
    if (read().sensitive.length) await counted();
  }

  async function counted() {
    page.moved();
    clearErrors(section);
    const now = read();
    if (!now.sensitive.length) {
      result.replaceChildren();
      return;
    }
    try {
      const table = await post("table", now);
      if (JSON.stringify(read()) === JSON.stringify(now)) result.replaceChildren(...joint(table, now));
    } catch (error) {
      result.replaceChildren();
      showError(section, error);
    }
  }

  if (!state.data) chosen.append(invitation());
  if (state.data) {
    try {
      await described(await get(`files/${encodeURIComponent(state.data)}`));
    } catch (error) {
      showError(section, error);
    }
  }
}

const invitation = () =>
  h("ol", { class: "invitation" },
    [["Choose", "what must stay secret and what shall stay useful."],
      ["Compare", "what every protocol keeps of the information, at every ε."],
      ["Prove", "how far one report can move the odds on the secret, and see against whom that holds."],
      ["Hand over", "a protocol file, released records, estimates, and the code."]].map(([verb, rest]) =>
      h("li", {}, h("strong", {}, verb), " ", rest)));

function dropZone(section, page, onloaded) {
  const input = h("input", { type: "file", id: "file", accept: ".csv,.tsv,.gz,.parquet,.pq", class: "unseen" });
  const status = h("p", { class: "quiet", role: "status" });
  const zone = h(
    "div",
    { class: "drop" },
    h("p", {}, h("strong", {}, "Drop a CSV or Parquet file here")),
    h(
      "p",
      { class: "choices" },
      input,
      h("label", { for: "file", class: "button" }, "Choose a file"),
      h("button", { type: "button", id: "adult", class: "quiet-button", onclick: () => take(() => get("files/adult"), true) },
        "Try the bundled census table"),
    ),
    h("p", { class: "quiet" }, `Up to ${page.session.limits.upload >> 20} MB; it stays in this machine's memory.`),
    status,
  );

  async function take(load, isBundled = false) {
    clearErrors(section);
    try {
      const file = await load();
      if (isBundled && !read().sensitive.length) change({ sensitive: ["race"], useful: ["sex"] });
      status.textContent = "";
      announce(`${file.name} has ${count(file.records)} records and ${file.columns.length} columns.`);
      await onloaded(file);
    } catch (error) {
      status.textContent = "";
      showError(section, { field: "data", message: error.message });
    }
  }

  function send(file) {
    if (!file) return;
    if (file.size > page.session.limits.upload) {
      const most = page.session.limits.upload >> 20;
      showError(section, {
        field: "data",
        message: `${file.name} has ${Math.ceil(file.size / 2 ** 20)} MB, and the studio takes up to ${most}: use the command line, which streams files of any size.`,
      });
      return;
    }
    status.textContent = `Reading ${file.name} …`;
    change({ sensitive: [], useful: [] });
    take(() => upload(file, (share) => (status.textContent = `Reading ${file.name}: ${Math.round(100 * share)} % sent`)));
  }

  input.addEventListener("change", () => send(input.files[0]));
  zone.addEventListener("dragover", (event) => {
    event.preventDefault();
    zone.classList.add("over");
  });
  zone.addEventListener("dragleave", () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    zone.classList.remove("over");
    send(event.dataTransfer.files[0]);
  });
  return zone;
}

function columns(file, onchange) {
  const { sensitive, useful, missing } = read();
  const row = (column) => {
    const role = sensitive.includes(column.name) ? "s" : useful.includes(column.name) ? "u" : "";
    const choice = (value, text) =>
      h(
        "label",
        { class: "role" },
        h("input", {
          type: "radio",
          name: `role-${column.name}`,
          value,
          checked: role === value,
          disabled: column.n_levels === null && value !== "",
          onchange: () => move(column.name, value),
        }),
        text,
      );
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, column.name),
      h("td", {}, h("fieldset", { class: "roles" }, h("legend", { class: "unseen" }, `Role of ${column.name}`), choice("s", "S"), choice("u", "U"), choice("", "–"))),
      h("td", { class: "figure" }, column.n_levels === null ? "–" : count(column.n_levels)),
      h("td", { class: "figure" }, column.missing ? count(column.missing) : "0"),
      h("td", { class: "levels" }, levels(column), column.advice ? h("small", { class: "warn" }, ` ${column.advice}`) : null),
    );
  };

  function move(name, role) {
    const now = read();
    const without = (names) => names.filter((other) => other !== name);
    change({
      sensitive: role === "s" ? [...without(now.sensitive), name] : without(now.sensitive),
      useful: role === "u" ? [...without(now.useful), name] : without(now.useful),
    });
    onchange();
  }

  const policy = h(
    "select",
    { id: "missing", name: "missing", onchange: () => (change({ missing: policy.value }), onchange()) },
    [["error", "refuse them"], ["keep", "keep them as a label of their own"], ["drop", "drop these records"]].map(([value, text]) =>
      h("option", { value, selected: value === missing }, text)),
  );
  return h(
    "div",
    { class: "card" },
    h("h2", {}, file.name, h("small", {}, ` ${count(file.records)} records`)),
    h("p", {}, "Mark each column: ", h("b", {}, "S"), " is protected, ", h("b", {}, "U"), " is kept useful, the rest is left out.",
      file.is_bundled ? " The bundled data are counts of pairs: one S and one U." : " Several columns make a product."),
    errorPlace("sensitive"),
    errorPlace("useful"),
    h("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Columns" },
      h("table", { class: "columns" },
        h("caption", { class: "unseen" }, `Columns of ${file.name}`),
        h("thead", {}, h("tr", {}, ["Column", "Role", "Levels", "Missing", "Most frequent"].map((head) => h("th", { scope: "col" }, head)))),
        h("tbody", {}, file.columns.map(row)))),
    h("p", { class: "field" }, h("label", { for: "missing" }, "Missing values: "), policy),
    errorPlace("missing"),
  );
}

function levels(column) {
  const shown = column.levels.slice(0, 5).map((level) => `${level.label} (${count(level.count)})`);
  return shown.join(", ") + (column.n_levels > 5 ? ", …" : "");
}

function joint(table, state) {
  const notes = [];
  const lost = Object.entries(table.missing).map(([name, n]) => `${count(n)} in ${name}`).join(", ");
  if (table.dropped) notes.push(`${count(table.dropped)} records with missing values are dropped (${lost}).`);
  else if (lost) notes.push(`Missing values (${lost}) are kept as the label ${table.missing_label}.`);
  if (table.empty_cells) notes.push(`${table.empty_cells} cells are empty: nobody with these values was seen, and nothing is assumed about them.`);
  if (table.empty_rows.length) notes.push(`Never seen: ${table.empty_rows.join(", ")}.`);
  notes.push(...table.remarks);
  return [
    h(
      "div",
      { class: "card" },
      h("h2", {}, "The joint table"),
      h("div", { class: "facts" },
        fact(count(table.n), "records"),
        fact(`${table.n_s} × ${table.n_u}`, "values of S × U"),
        fact(String(table.empty_cells), "empty cells"),
        fact(table.entropy_bits.toFixed(3), "bits of information, H(X)")),
      notes.map((note) => h("p", { class: "note" }, note)),
      table.counts
        ? heatMap({
            caption: `Records by ${state.sensitive.join(" | ")} (rows) and ${state.useful.join(" | ") || "nothing else"} (columns)`,
            rows: table.s_labels,
            columns: table.u_labels,
            values: table.counts,
            text: count,
            scale: (value, most) => Math.sqrt(value / most),
          })
        : h("p", { class: "note" }, "The table is too large to draw; everything else works."),
    ),
    codePanel(table.code),
    next(at("tradeoff"), "See the trade-off"),
  ];
}
