// A line for work that goes on: a bar, a text, and a button to stop it.

import { h } from "./dom.js";

// The elements are made once and then kept. A press is lost on a button that is replaced between
// its two halves, and so is the focus.
export function workLine(place, label, stopText, onstop) {
  let told = null;
  const bar = h("progress", { max: 1, value: 0, "aria-label": label });
  const text = h("span");
  const button = h("button", { type: "button", class: "small", id: "stop", onclick: () => onstop(told) }, stopText);
  return (now, share, words) => {
    told = now;
    bar.value = Math.min(1, Math.max(0, share ?? 0));
    text.textContent = now.stopping ? " Stopping … " : ` ${words} `;
    button.disabled = now.stopping;
    if (button.parentElement !== place) place.replaceChildren(bar, text, button);
  };
}
