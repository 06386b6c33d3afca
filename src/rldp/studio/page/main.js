// From the address to the step that it names.

import { get } from "./api.js";
import { announce, h, showError } from "./dom.js";
import { STEPS, at, change, isOpen, isReady, learn, read } from "./state.js";
import * as data from "./data.js";
import * as tradeoff from "./tradeoff.js";
import * as protocol from "./protocol.js";
import * as risk from "./risk.js";
import * as use from "./use.js";
import * as code from "./code.js";

const modules = { data, tradeoff, protocol, risk, use, code };
const main = document.getElementById("main");
let leave = () => {};
let shown = null;
let session = null;

function navigation(state) {
  for (const link of document.querySelectorAll("#steps a")) {
    const step = link.dataset.step;
    const isLinked = isOpen(step, state);
    if (isLinked) link.setAttribute("href", at(step, state));
    else link.removeAttribute("href");
    link.toggleAttribute("aria-disabled", !isLinked);
    if (step === state.step) link.setAttribute("aria-current", "step");
    else link.removeAttribute("aria-current");
    link.parentElement.classList.toggle("passed", STEPS.indexOf(step) < STEPS.indexOf(state.step));
  }
}

async function show() {
  let state = read();
  if (!isOpen(state.step, state)) state = change({ step: isReady(state) ? "tradeoff" : "data" });
  navigation(state);
  if (location.hash === shown) return;
  shown = location.hash;
  leave();
  const section = h("section", { class: `step ${state.step}`, "aria-labelledby": "title" });
  const alive = { is: true };
  leave = () => (alive.is = false);
  main.replaceChildren(section);
  document.title = `${modules[state.step].TITLE} · rldp studio`;
  section.append(
    h("h1", { id: "title" }, modules[state.step].TITLE),
    h("p", { class: "lead" }, modules[state.step].LEAD),
    h("p", { class: "error", "data-error": "step", role: "alert", hidden: true }),
  );
  try {
    await modules[state.step].show(section, state, {
      session,
      isAlive: () => alive.is,
      moved: () => {
        shown = location.hash;
        navigation(read());
      },
    });
    announce(`${modules[state.step].TITLE} is shown.`);
  } catch (error) {
    if (alive.is) showError(section, error.field === "step" ? error : Object.assign(error, { field: error.field }));
  }
}

addEventListener("hashchange", () => {
  if (location.hash === "#main") {
    history.replaceState(null, "", shown); // the skip link keeps the state
    main.focus();
  } else show();
});

session = await get("session");
learn(session);
if (!location.hash && session.start !== "adult") change({ data: session.start });
await show();
