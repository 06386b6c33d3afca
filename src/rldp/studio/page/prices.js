// What promises cost in people, and what merging saves: designs that are made when asked for.

import { follow, post, stop } from "./api.js";
import { clearErrors, codePanel, h, showError, table } from "./dom.js";
import { hasParts, read } from "./state.js";
import { workLine } from "./working.js";

export function prices(section, page) {
  const work = h("div", { class: "search", role: "status", id: "prices-work" });
  const result = h("div", { id: "prices" });
  const button = (what, text) => h("button", { type: "button", class: "small", id: `price-${what}`, onclick: () => ask(what) }, text);
  const promises = button("promises", "What do these promises cost?");
  const mergings = button("mergings", "Which values cost most?");
  const element = h("div", { class: "card" }, h("h2", {}, "Prices in people"),
    h("p", { class: "quiet" }, "How many people must answer for the same errors, if more or less is promised or if rare values are merged. Every figure is that of a design of “best” that is made for it, so this takes a while."),
    h("div", { class: "choices" }, promises, mergings), work, result);
  const working = workLine(work, "Designs", "Stop", (told) => stop(told).catch((error) => showError(section, error)));
  let job = null;

  async function ask(what) {
    clearErrors(section);
    forget();
    const mine = JSON.stringify(read());
    const isWanted = () => page.isAlive() && JSON.stringify(read()) === mine && job === own;
    let own = null;
    try {
      own = job = await post("prices", { ...read(), what });
      const ended = await follow(own, (told) => told.state === "running" && working(told, told.progress.share, told.progress.note ?? "designing"), isWanted);
      if (!ended) return;
      work.replaceChildren();
      if (ended.error) throw Object.assign(new Error(ended.error), { field: "step" });
      show(ended.progress);
    } catch (error) {
      work.replaceChildren();
      if (page.isAlive()) showError(section, error);
    }
  }

  function show({ tables = [], code }) {
    if (!tables.length) return result.replaceChildren(h("p", {}, "Nothing was found before it was stopped, or there is nothing to try: a column needs three values or more."));
    const notes = [...new Set(tables.map((one) => one.note))].filter(Boolean);
    result.replaceChildren(
      ...tables.map((one) => h("div", {}, table(one.about, one.heads, one.rows), one.sentence ? h("p", {}, one.sentence) : null)),
      ...notes.map((note) => h("p", { class: "quiet" }, note)), codePanel(code));
  }

  // Prices belong to one choice: what is chosen now has others.
  function forget() {
    if (job?.state === "running") stop(job).catch(() => {});
    job = null;
    work.replaceChildren();
    result.replaceChildren();
    element.hidden = read().goal === "information";
    promises.textContent = hasParts(read()) ? "What do these promises cost?" : "What does the limit whatever is true cost?";
  }
  forget();
  return { element, forget };
}
