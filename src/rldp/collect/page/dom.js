// Elements by name, attributes and children; nothing is ever parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const h = (tag, attributes, ...children) => filled(document.createElement(tag), attributes, children);
export const s = (tag, attributes, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);

/** Replace what the page shows, move the focus there, and say its heading to screen readers. */
export function show(...content) {
  const main = document.getElementById("main");
  main.replaceChildren(...content.flat(Infinity).filter(Boolean));
  window.scrollTo(0, 0);
  main.focus();
  say(main.querySelector("h1, h2")?.textContent ?? "");
}

export function say(text) {
  document.getElementById("announcer").textContent = text;
}
