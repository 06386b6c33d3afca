// What a protocol is designed for, and what it promises beside ε over F: the goal and three layers.

import { decimal, decimalField, errorPlace, h } from "./dom.js";
import { allGoals, change, hasGoal, hasParts } from "./state.js";

const SENTENCES = {
  epsilon_given_part: {
    label: "ε for someone who knows some columns of U",
    recommended: (state) => 2 * state.epsilon,
    promised: (factor) => `Against someone who knows some of the U columns of the person but not all: one report changes their odds on S by at most a factor ${factor}, for every distribution in F. Neither of the other limits says this.`,
    none: "Not promised: someone who knows some of the U columns but not all may learn more than a stranger, and more than someone who knows all of them.",
    isHidden: (state) => !hasParts(state),
  },
  epsilon_given_u: {
    label: "ε for someone who knows U",
    recommended: (state) => state.epsilon,
    promised: (factor) => `Against someone who knows the person's U: one report changes their odds on S by at most a factor ${factor}, whatever distribution is true.`,
    none: "Not promised: to someone who knows the person's U, a report may show S.",
  },
  epsilon_all: {
    label: "ε whatever is true",
    recommended: (state) => Math.max(6, 2 * state.epsilon),
    promised: (factor) => `Against anyone, whatever distribution is true and whatever else they know of the person: one report changes the odds on S by at most a factor ${factor}. A last resort.`,
    none: "Not promised: where the truth is outside F, or someone knows more, a report may show S.",
  },
};

function layerControl(name, state, onchange) {
  const { label, recommended: usual, promised, none, isHidden } = SENTENCES[name];
  const kind = (value) => (value === "auto" || value === "none" ? value : "own");
  const own = decimalField(name, kind(state[name]) === "own" ? state[name] : "", { "aria-label": `${label}, a level of your own`, "aria-describedby": `${name}-hint` },
    (value) => (change({ [name]: value }), onchange()));
  const recommended = h("option", { value: "auto" });
  const select = h("select", { id: `${name}-kind`, "aria-describedby": `${name}-hint`, onchange: () => {
    draw(change({ [name]: select.value === "own" ? decimal(own.input.value) : select.value }));
    if (select.value === "own") own.input.focus();
    onchange();
  } }, recommended, h("option", { value: "none" }, "none"), h("option", { value: "own" }, "a level of my own"));
  const hint = h("small", { id: `${name}-hint` });
  const field = h("div", { class: "both" }, own.input);
  function draw(now) {
    const level = now[name] === "auto" ? (now.epsilon > 0 ? usual(now) : null) : now[name];
    recommended.textContent = now.epsilon > 0 ? `recommended: ε = ${usual(now)}` : "recommended";
    field.hidden = select.value !== "own";
    if (!hasGoal(now)) hint.textContent = `Asked of “best” alone. ${now.protocol} does not promise it; what it keeps is in the table and in the next steps.`;
    else hint.textContent = level === "none" ? none : promised(level > 0 ? `e^${level}` : "e^ε");
  }
  select.value = kind(state[name]);
  draw(state);
  return { draw, isHidden, element: h("div", { class: "control layer" }, h("label", { for: `${name}-kind` }, label), select, field, own.understood, hint, errorPlace(name)) };
}

// Controls for the goal and the layers, and a function that follows ε and the protocol.
export function wishes(state, onchange, { areHidden = () => false } = {}) {
  const goal = h("select", { id: "goal", name: "goal", "aria-describedby": "goal-hint", onchange: () => (change({ goal: goal.value }), onchange()) },
    allGoals().map(({ name, title }) => h("option", { value: name, selected: name === state.goal, disabled: name.startsWith("u") && !state.useful.length }, title)));
  const layers = Object.keys(SENTENCES).map((name) => layerControl(name, state, onchange));
  const about = h("small", { id: "goal-hint" });
  function follow(now) {
    for (const layer of layers) layer.draw(now);
    for (const control of element.flat()) control.hidden = areHidden(now);
    for (const layer of layers) layer.element.hidden ||= layer.isHidden?.(now) ?? false;
    about.textContent = hasGoal(now)
      ? "what “best” is designed for, and what all protocols are ranked by"
      : `what all protocols are ranked by; ${now.protocol} is made for information, and promises ε over F alone`;
  }
  const element = [h("div", { class: "control" }, h("label", { for: "goal" }, "Goal"), goal, about, errorPlace("goal")), layers.map((layer) => layer.element)];
  follow(state);
  return { element, follow };
}
