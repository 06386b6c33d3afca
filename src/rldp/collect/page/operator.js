// What the operator sees; figures are asked for with the token that follows # in the address.

import { h, s } from "./dom.js";

const PAUSE = 3_000; // milliseconds between two looks
const token = location.hash.slice(1);
const percent = (value, digits = 1) => (value === null ? "–" : `${(100 * value).toFixed(digits)} %`);
const count = (value) => value.toLocaleString("en");

async function look() {
  const main = document.getElementById("main");
  try {
    const response = await fetch("/v1/figures", { headers: { authorization: `Bearer ${token}` }, cache: "no-store" });
    if (response.status === 401) return main.replaceChildren(h("h1", {}, "Collection"), h("p", { class: "note", role: "alert" },
      "Open the address that rldp collect printed: the operator's token is missing or wrong."));
    main.replaceChildren(...page(await response.json()).flat(Infinity).filter(Boolean));
  } catch {
    main.replaceChildren(h("h1", {}, "Collection"), h("p", { class: "note", role: "alert" }, "The collector does not answer."));
  }
  setTimeout(look, PAUSE);
}

const fact = (value, about, kind = "") => h("div", { class: "fact" }, h("strong", { class: kind }, value), h("span", {}, about));

function page(told) {
  const missing = told.needed === null ? null : Math.max(0, told.needed - told.reports);
  const left = missing && told.rate > 0 ? `, ${duration(missing / told.rate)} at this rate` : "";
  return [
    h("h1", {}, `${count(told.reports)} reports`),
    h("p", { class: "quiet" }, `${told.protocol}, ε = ${told.epsilon}; ${told.store}`),
    told.open && h("p", { class: "note" }, "Open survey: anyone can answer, and as often as they like. rldp invite makes single-use links."),
    told.full && h("p", { class: "error", role: "alert" }, "The disk is full: reports are refused."),
    told.failing && !told.full && h("p", { class: "error", role: "alert" }, "The store fails: reports are refused."),
    h("div", { class: "facts" },
      fact(`${told.rate.toFixed(1)}/s`, "reports in the last minute"),
      told.open ? null : fact(`${count(told.spent)} of ${count(told.invitations)}`, "invitations used"),
      fact(missing === null ? "–" : missing ? count(missing) : "reached", missing === null ? "not every cell is identified"
        : `reports to go for ± ${100 * told.margin} percentage points in every cell${left}`, missing === 0 ? "good" : ""),
      told.estimates && fact(`p = ${told.fit.toPrecision(2)}`, told.fit < 0.01 ? "poor fit: these reports can hardly come from this protocol" : "the reports fit the protocol", told.fit < 0.01 ? "bad" : "good"),
      told.estimates && fact(told.suspected ? `at least ${count(told.suspected)}` : "none", "suspected forgeries (99.9 % sure)", told.suspected ? "bad" : "good")),
    told.estimates ? [table("Cells", told.estimates.cells, told.level), told.estimates.u.length ? [table("S", told.estimates.s, told.level), table("U", told.estimates.u, told.level)] : null, growth(told)]
      : h("p", {}, told.note),
    (told.remarks ?? []).map((text) => h("p", { class: "note" }, text)),
    h("p", { class: "quiet" }, "Estimates change with every report; looking often and stopping when one pleases makes intervals too narrow."),
    h("p", { class: "quiet" }, "Protocol ", h("code", {}, told.fingerprint)),
  ];
}

const duration = (seconds) => (seconds < 5400 ? `${Math.ceil(seconds / 60)} minutes` : seconds < 172800 ? `${Math.ceil(seconds / 3600)} hours` : `${Math.ceil(seconds / 86400)} days`);

function table(title, records, level) {
  const most = Math.max(0.02, ...records.map((record) => record.high ?? 0));
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": title }, h("table", {}, h("caption", {}, `${title}, ${100 * level} % intervals`),
    h("thead", {}, h("tr", {}, ["", "estimate", "low", "high", "interval"].map((text) => h("th", { scope: "col" }, text || "what")))),
    h("tbody", {}, records.map((record) => h("tr", {}, h("th", { scope: "row" }, record.name),
      [record.estimate_in_interval, record.low, record.high].map((value) => h("td", { class: "figure" }, percent(value))), h("td", {}, interval(record, most)))))));
}

function interval(record, most) {
  const at = (share) => 4 + (192 * Math.min(most, Math.max(0, share ?? 0))) / most;
  return s("svg", { class: "interval", viewBox: "0 0 200 18", "aria-hidden": "true" }, s("path", { class: "grid", d: "M4 9H196" }),
    s("path", { class: record.estimate_in_interval === null ? "range open" : "range", d: `M${at(record.low)} 9H${at(record.high)}` }),
    record.estimate_in_interval === null ? null : s("circle", { class: "estimate", cx: at(record.estimate_in_interval), cy: 9, r: 4 }));
}

/** The widest interval over the number of reports, and the goal. */
function growth({ growth: points, margin }) {
  if (!points || points.length < 2) return null;
  const [width, height, left] = [600, 160, 48];
  const n = Math.max(...points.map((point) => point.reports));
  const most = 1.1 * Math.max(margin, ...points.map((point) => point.margin));
  const x = (value) => left + ((width - left - 8) * value) / n;
  const y = (value) => height - 24 - ((height - 34) * value) / most;
  const line = points.map((point, i) => `${i ? "L" : "M"}${x(point.reports).toFixed(1)} ${y(point.margin).toFixed(1)}`).join("");
  return h("figure", {}, s("svg", { class: "growth", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Half the widest interval over the number of reports, now ${percent(points.at(-1).margin)}` },
    s("path", { class: "goal", d: `M${left} ${y(margin)}H${width - 8}` }), s("path", { class: "line", d: line }),
    s("text", { x: 2, y: y(margin) + 4 }, percent(margin)), s("text", { x: 2, y: 14 }, percent(most)), s("text", { x: width - 8, y: height - 6, "text-anchor": "end" }, `${count(n)} reports`)),
    h("figcaption", { class: "quiet" }, "Half the widest interval; dashed the goal."));
}

look();
