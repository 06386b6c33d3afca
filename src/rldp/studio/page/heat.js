// A heat map that is a table: figures for the reader, shades for the eye.

import { h } from "./dom.js";

const SHADES = 8;

export function heatMap({ caption, rows, columns, values, text, scale = (value, most) => value / most }) {
  const most = Math.max(...values.flat(), Number.MIN_VALUE);
  const shade = (value) => (value > 0 ? 1 + Math.min(SHADES - 2, Math.floor(scale(value, most) * (SHADES - 1))) : 0);
  return h(
    "div",
    { class: "scroll", role: "region", tabindex: "0", "aria-label": caption },
    h(
      "table",
      { class: columns.some((label) => label.length > 40) ? "heat long" : "heat" },
      h("caption", {}, caption),
      h("thead", {}, h("tr", {}, h("td", {}), columns.map((label) => h("th", { scope: "col", title: label }, label)))),
      h(
        "tbody",
        {},
        values.map((row, i) =>
          h("tr", {}, h("th", { scope: "row", title: rows[i] }, rows[i]),
            row.map((value, j) => h("td", { class: `shade-${shade(value)}`, title: `${rows[i]} → ${columns[j]}: ${text(value)}` }, text(value))))),
      ),
    ),
  );
}
