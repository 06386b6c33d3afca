import { decimal } from "./dom.js";

// What is chosen lives in the address: a reload or a link brings it back.

export const STEPS = ["data", "tradeoff", "protocol", "risk", "use", "code"];

const DEFAULTS = { missing: "error", kind: "chi-square", epsilon: 1, protocol: "best", goal: "cells" };

// The sets F that the server knows, with their parameters.
let sets = [];
let goals = [];
export const learn = (told) => ([sets, goals] = [told.sets, told.goals]);
export const allGoals = () => goals;
export const allSets = () => sets;
export const setOf = (state) => sets.find((set) => set.kind === state.kind) ?? { kind: state.kind, parameters: [] };
export const allParameters = () => [...new Map(sets.flatMap((set) => set.parameters).map((parameter) => [parameter.name, parameter])).values()];

export function read() {
  const words = new URLSearchParams(location.hash.slice(1));
  const number = (name, absent = DEFAULTS[name]) => (words.has(name) ? decimal(words.get(name)) : absent); // null: not a number
  const value = ({ name, is_number: isNumber, default: absent }) => (isNumber ? number(name, absent) : (words.get(name) || absent));
  return {
    step: STEPS.includes(words.get("step")) ? words.get("step") : "data",
    data: words.get("data") ?? "",
    sensitive: words.getAll("s"),
    useful: words.getAll("u"),
    missing: words.get("missing") ?? DEFAULTS.missing,
    kind: words.get("set") ?? DEFAULTS.kind,
    ...Object.fromEntries(allParameters().map((parameter) => [parameter.name, value(parameter)])),
    epsilon: number("epsilon"),
    protocol: words.get("protocol") ?? DEFAULTS.protocol,
    goal: words.get("goal") ?? DEFAULTS.goal,
    ...Object.fromEntries(LAYERS.map((name) => [name, layer(words.get(name))])),
  };
}

// The guarantees beside ε over F: recommended ("auto"), not asked for ("none"), or a level; null: not a number.
export const LAYERS = ["epsilon_given_part", "epsilon_given_u", "epsilon_all"];
export const hasParts = (state) => state.useful.length > 1;
const layer = (word) => (word === null || word === "auto" ? "auto" : word === "none" ? "none" : decimal(word));
// protocols that are designed for the goal, with the layers
export const hasGoal = (state) => ["best", "optimal"].includes(state.protocol);

export function address(state) {
  const words = new URLSearchParams({ step: state.step });
  if (state.data) words.set("data", state.data);
  for (const name of state.sensitive) words.append("s", name);
  for (const name of state.useful) words.append("u", name);
  if (state.missing !== DEFAULTS.missing) words.set("missing", state.missing);
  if (state.kind !== DEFAULTS.kind) words.set("set", state.kind);
  const own = new Set(setOf(state).parameters.map(({ name }) => name));
  for (const { name, default: absent } of allParameters())
    if (own.has(name) || state[name] !== absent) words.set(name, state[name] ?? "");
  words.set("epsilon", state.epsilon ?? "");
  words.set("protocol", state.protocol);
  if (state.goal !== DEFAULTS.goal) words.set("goal", state.goal);
  for (const name of LAYERS) if (state[name] !== "auto") words.set(name, state[name] ?? "");
  return `#${words}`;
}

// A new choice without a new entry in the history: sliders move often.
export function change(changes) {
  const state = { ...read(), ...changes };
  history.replaceState(null, "", address(state));
  return state;
}

export const at = (step, state = read()) => address({ ...state, step });
export const isReady = (state) => Boolean(state.data && state.sensitive.length);
export const MOST_EPSILON = 100;
const isBetween = (value, low, high) => value !== null && value > low && value <= high;
function isGiven(parameter, value) {
  if (!parameter.is_number) return Boolean(value);
  return isBetween(value, parameter.low, parameter.high) && (parameter.includes_high || value < parameter.high);
}
// whether a protocol can be designed; the trade-off asks for what is wrong or missing
export const isChosen = (state) =>
  isReady(state) && isBetween(state.epsilon, 0, MOST_EPSILON) && LAYERS.every((name) => typeof state[name] === "string" || isBetween(state[name], 0, MOST_EPSILON)) && setOf(state).parameters.every((parameter) => isGiven(parameter, state[parameter.name]));
export const isOpen = (step, state) => step === "data" || (step === "tradeoff" ? isReady(state) : isChosen(state));
