// Elements, numbers and errors: what every step uses to show itself.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && ["value", "checked", "disabled", "selected"].includes(name)) element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const h = (tag, attributes, ...children) => filled(document.createElement(tag), attributes, children);
export const s = (tag, attributes, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);

export const bits = (value) => `${value.toFixed(4)} bits`;
export const percent = (value, digits = 1) =>
  value === null || value === undefined ? "–" : `${(100 * value).toFixed(digits)} %`;
// an error as percentage points; "inf" where there is no estimate, null where it is not known
export const points = (value) => (value === null || value === undefined ? "–" : value === "inf" ? "no estimate" : `± ${Number(100 * value).toFixed(value < 0.001 ? 3 : 2)}`);
export const count = (value) => value.toLocaleString("en");
export const seconds = (value) => (value < 0.95 ? `${Math.max(1, Math.round(1000 * value))} ms` : `${value.toFixed(1)} s`);
// three significant digits, without a long tail of zeros
export const short = (value) => String(Number(Number(value).toPrecision(3)));

// A number as people write it, with a decimal point or a decimal comma; null if it is none.
export function decimal(text) {
  const plain = String(text).trim();
  return /^[+-]?(\d+([.,]\d*)?|[.,]\d+)(e[+-]?\d+)?$/i.test(plain) ? Number(plain.replace(",", ".")) : null;
}

// A field for such a number, which says how a comma was understood.
export function decimalField(name, value, attributes, onvalue = () => {}) {
  const understood = h("output", { class: "understood", for: name, id: `${name}-understood` });
  const input = h("input", { type: "text", inputmode: "decimal", autocomplete: "off", id: name, name, value: String(value ?? ""), ...attributes,
    oninput: () => {
      const number = decimal(input.value);
      understood.textContent = number !== null && input.value.includes(",") ? `read as ${number}` : "";
      onvalue(number, input.value.trim());
    } });
  return { input, understood };
}

export function announce(text) {
  document.getElementById("announcer").textContent = text;
}

// A place for the error of one field; errors without a place go to the step's own.
export const errorPlace = (field) => h("p", { class: "error", "data-error": field, role: "alert", hidden: true });

export function clearErrors(scope) {
  for (const place of scope.querySelectorAll("[data-error]")) place.hidden = true;
  for (const field of scope.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
}

export function showError(scope, error) {
  const message = error.message || String(error);
  const place =
    scope.querySelector(`[data-error="${CSS.escape(error.field ?? "")}"]`) ?? scope.querySelector('[data-error="step"]');
  if (!place) return;
  place.textContent = message;
  place.hidden = false;
  scope.querySelector(`[name="${CSS.escape(error.field ?? "")}"]`)?.setAttribute("aria-invalid", "true");
}

export function table(caption, heads, rows, attributes = {}) {
  const cell = (value, place) =>
    place === 0 ? h("th", { scope: "row" }, value) : h("td", { class: value instanceof Node ? null : "figure" }, value);
  return h(
    "div",
    { class: "scroll", role: "region", tabindex: "0", "aria-label": caption },
    h(
      "table",
      attributes,
      h("caption", {}, caption),
      h("thead", {}, h("tr", {}, heads.map((head, place) => h("th", { scope: "col", class: place && rows.length && !(rows[0][place] instanceof Node) ? "figure" : null }, head)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map(cell)))),
    ),
  );
}

export function copyable(title, text) {
  const button = h("button", {
    type: "button",
    class: "small",
    onclick: async () => {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 1500);
    },
  }, "Copy");
  return h("figure", { class: "code" }, h("figcaption", {}, title, button), h("pre", { tabindex: "0" }, h("code", {}, text)));
}

export const codePanel = (code) =>
  h(
    "details",
    { class: "same" },
    h("summary", {}, "The same in Python and on the command line"),
    h("div", { class: "pair" }, copyable("Python", code.python), copyable("Command line", code.command)),
  );

export const next = (href, text) => h("p", { class: "next" }, h("a", { class: "button", href }, text, " →"));
// the same where it cannot be pressed yet, with the reason
export const notYet = (text, reason) =>
  h("p", { class: "next" }, h("span", { class: "reason", id: "reason" }, reason), " ", h("button", { type: "button", disabled: true, "aria-describedby": "reason" }, text));
export const fact = (value, label, note) =>
  h("div", { class: "fact" }, h("strong", {}, value), h("span", {}, label), note ? h("small", {}, note) : null);
