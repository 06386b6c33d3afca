// What is chosen lives in the address: a reload or a link brings it back.

export const STEPS = ["data", "tradeoff", "protocol", "risk", "use", "code"];

const DEFAULTS = { missing: "error", kind: "chi-square", alpha: 0.05, epsilon: 1, protocol: "best", identifiable: false };

export function read() {
  const words = new URLSearchParams(location.hash.slice(1));
  const number = (name) => {
    const value = Number(words.get(name));
    return words.has(name) && Number.isFinite(value) ? value : DEFAULTS[name];
  };
  return {
    step: STEPS.includes(words.get("step")) ? words.get("step") : "data",
    data: words.get("data") ?? "",
    sensitive: words.getAll("s"),
    useful: words.getAll("u"),
    missing: words.get("missing") ?? DEFAULTS.missing,
    kind: words.get("set") ?? DEFAULTS.kind,
    alpha: number("alpha"),
    epsilon: number("epsilon"),
    protocol: words.get("protocol") ?? DEFAULTS.protocol,
    identifiable: words.get("identifiable") === "yes",
  };
}

export function address(state) {
  const words = new URLSearchParams({ step: state.step });
  if (state.data) words.set("data", state.data);
  for (const name of state.sensitive) words.append("s", name);
  for (const name of state.useful) words.append("u", name);
  if (state.missing !== DEFAULTS.missing) words.set("missing", state.missing);
  if (state.kind !== DEFAULTS.kind) words.set("set", state.kind);
  words.set("alpha", state.alpha);
  words.set("epsilon", state.epsilon);
  words.set("protocol", state.protocol);
  if (state.identifiable) words.set("identifiable", "yes");
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
