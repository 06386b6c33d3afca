// Step 2: what every protocol keeps over ε; ε and α move and everything follows.

import { follow, post, stop } from "./api.js";
import { bits, clearErrors, codePanel, errorPlace, h, next, percent, seconds, short, showError, table } from "./dom.js";
import { bar, curves, swatch } from "./charts.js";
import { at, change, read } from "./state.js";

export const TITLE = "Trade-off";
export const LEAD = "How much of the information does each protocol keep, at which ε? Move ε and α, then choose a protocol.";

const ORDER = ["best", "polyopt", "ue-cr", "grr-cr", "ir", "srr", "ue", "grr", "ceiling"];
const SETTLED = 450; // milliseconds without a move before searches begin
const toSlider = (value, low, high) => (100 * Math.log(value / low)) / Math.log(high / low);
const fromSlider = (place, low, high) => Number((low * (high / low) ** (place / 100)).toPrecision(2));

export async function show(section, state, page) {
  const hidden = new Set();
  let answer = null, found = [], job = null, isHalted = false, timer = 0, asked = 0, sets = 0;
  const picture = h("div", { class: "picture" });
  const tip = h("div", { class: "tip", hidden: true });
  const legend = h("div", { class: "legend", role: "group", "aria-label": "Lines to show" });
  const search = h("div", { class: "search", role: "status" });
  const below = h("div");
  const about = h("p", { class: "quiet" });
  section.append(controls(state, moved), errorPlace("sensitive"), h("div", { class: "card" }, picture, legend, search, about), below);

  const points = () => [...answer.curves, ...(answer.searched ?? []), ...found];
  const current = () => {
    const { epsilon } = read();
    const searched = [...(answer.searched ?? []), ...found].filter((point) => point.epsilon === epsilon);
    const all = new Map([...answer.at, ...searched].map((point) => [point.protocol, point]));
    return [...all.values()].sort((a, b) => b.bits - a.bits);
  };

  function draw() {
    const all = points();
    const names = ORDER.filter((name) => all.some((point) => point.protocol === name));
    picture.replaceChildren(tip, curves({ points: all, entropy: answer.entropy_bits, epsilon: read().epsilon, hidden,
      width: Math.max(300, picture.clientWidth || 900), onpick: (epsilon) => pick(epsilon), onhover: hover }));
    const isSame = [...legend.children].map((child) => child.dataset.name).join() === names.join();
    if (!isSame)
      legend.replaceChildren(...names.map((name) =>
        h("button", { type: "button", "data-name": name, "aria-pressed": String(!hidden.has(name)), title: answer.titles[name],
          onclick: (event) => {
            if (!hidden.delete(name)) hidden.add(name);
            event.currentTarget.setAttribute("aria-pressed", String(!hidden.has(name)));
            draw();
          } }, swatch(name), name)));
    rows();
  }

  function rows() {
    const { epsilon, protocol } = read();
    const listed = current();
    const choice = (name) =>
      name === "ceiling" ? "" :
      h("input", { type: "radio", name: "protocol", value: name, checked: name === protocol, "aria-label": `Use ${name}`,
        onchange: () => (change({ protocol: name }), page.moved(), draw()) });
    const row = (point) => [
      h("span", { class: "name" }, swatch(point.protocol), point.protocol),
      choice(point.protocol), bits(point.bits), percent(point.share), seconds(point.seconds), h("span", {}, answer.titles[point.protocol] ?? ""),
    ];
    if (!listed.some((point) => point.protocol === protocol) && protocol !== "best")
      listed.push({ protocol, bits: NaN, share: NaN, seconds: 0 });
    const waiting = ["best"].filter((name) => !listed.some((point) => point.protocol === name));
    const open = below.querySelector("details.all")?.open ?? false;
    const openCode = below.querySelector("details.same")?.open ?? false;
    const focused = document.activeElement?.name === "protocol" ? document.activeElement.value : null;
    const epsilons = [...new Set(answer.curves.map((point) => point.epsilon))];
    const all = points();
    const names = ORDER.filter((name) => all.some((point) => point.protocol === name));
    const share = new Map(all.map((point) => [`${point.protocol} ${point.epsilon}`, point.share]));
    const code = codePanel(answer.code);
    code.open = openCode;
    below.replaceChildren(
      h("div", { class: "card" }, h("h2", {}, `At ε = ${short(epsilon)}`),
        table(`What each keeps of H(X) = ${answer.entropy_bits.toFixed(3)} bits at ε = ${short(epsilon)}`,
          ["Protocol", "Use", "Keeps", "of H(X)", "Time", "What it is"],
          [...waiting.map((name) => [h("span", { class: "name" }, swatch(name), name), choice(name), "searching", "", "", h("span", {}, answer.titles[name])]),
            ...listed.filter((point) => !Number.isNaN(point.bits)).map(row)], { class: "choose" })),
      h("details", { class: "all", open }, h("summary", {}, "All points as a table"),
        table("Share of H(X) kept, by ε in nats", ["ε", ...names],
          epsilons.map((e) => [short(e), ...names.map((name) => (share.has(`${name} ${e}`) ? percent(share.get(`${name} ${e}`)) : ""))]))),
      code,
      next(at("protocol"), `Design ${protocol} at ε = ${short(epsilon)}`),
    );
    if (focused) below.querySelector(`input[value="${focused}"]`)?.focus();
  }

  function hover(value, figures) {
    tip.hidden = value === null;
    if (value === null) return;
    tip.classList.toggle("left", value > 4.4); // where the fewest lines are
    tip.replaceChildren(h("strong", {}, `ε = ${short(value)}`),
      h("dl", {}, figures.map((figure) => [h("dt", {}, swatch(figure.protocol), figure.protocol), h("dd", {}, `${percent(figure.share)} · ${bits(figure.bits)}`)])));
  }

  function pick(epsilon) {
    change({ epsilon });
    section.querySelector("#epsilon").value = epsilon;
    section.querySelector("#epsilon-slider").value = toSlider(epsilon, 0.05, 8);
    moved();
  }

  async function moved(isOtherSet = false) {
    page.moved();
    const mine = ++asked;
    clearTimeout(timer);
    if (job?.state === "running") stop(job).catch(() => {}); // closed forms come first; searches begin again
    if (isOtherSet) {
      found = []; // of another set F
      isHalted = false;
      sets += 1;
    }
    try {
      const told = await post("curves", read());
      if (mine !== asked || !page.isAlive()) return;
      clearErrors(section);
      answer = told;
      about.textContent = `${told.title.replaceAll("   ", " · ")} · ${told.set}`;
      draw();
      if (!isHalted) timer = setTimeout(searches, SETTLED);
    } catch (error) {
      if (mine === asked && page.isAlive()) showError(section, error);
    }
  }

  async function searches() {
    if (!page.isAlive()) return;
    const mine = sets;
    try {
      job = await post("search", read());
    } catch (error) {
      if (error.status === 429) timer = setTimeout(searches, 1500);
      else if (page.isAlive()) showError(section, error);
      return;
    }
    const own = job;
    await follow(job, (told) => {
      if (own.id !== job.id) return;
      job = told;
      const isNew = mine === sets && (told.progress.searched?.length ?? 0) > found.length;
      if (isNew) found = told.progress.searched;
      if (isNew && answer && page.isAlive()) draw();
      status(told);
    }, () => page.isAlive() && own.id === job.id).catch((error) => page.isAlive() && showError(section, error));
    if (!page.isAlive() && job.state === "running") stop(job).catch(() => {});
  }

  function status(told) {
    if (told.state === "running")
      search.replaceChildren(bar(told.progress.share, "Searches"), h("span", {}, told.stopping ? "Stopping after this one …" : ` searching ${told.progress.note ?? ""} `),
        h("button", { type: "button", class: "small", id: "stop", disabled: told.stopping, onclick: () => halt(told) }, "Stop"));
    else if (told.state === "stopped" && !isHalted) search.replaceChildren(h("span", {}, "Searches begin when ε rests …"));
    else if (told.state === "stopped")
      search.replaceChildren(h("span", {}, "Searches stopped: what was found stays. "),
        h("button", { type: "button", class: "small", onclick: () => { isHalted = false; searches(); } }, "Go on"));
    else search.replaceChildren(h("span", {}, told.state === "failed" ? told.error : "All searches are done."));
  }

  function halt(told) {
    isHalted = true;
    stop(told).catch((error) => showError(section, error));
  }

  let width = section.clientWidth;
  new ResizeObserver(() => {
    if (section.clientWidth === width) return;
    width = section.clientWidth;
    if (answer && page.isAlive()) draw();
  }).observe(section);
  await moved();
}

function controls(state, onmove) {
  const pair = (name, label, hint, low, high, value) => {
    const number = h("input", { type: "number", id: name, name, value, min: low / 10, max: high === 8 ? 100 : 1, step: "any", inputmode: "decimal",
      "aria-describedby": `${name}-hint` });
    const slider = h("input", { type: "range", id: `${name}-slider`, min: 0, max: 100, step: 1, value: toSlider(value, low, high), "aria-label": `${label}, slider` });
    let timer = 0;
    const moved = (chosen) => {
      change({ [name]: chosen });
      clearTimeout(timer);
      timer = setTimeout(() => onmove(name !== "epsilon"), 40);
    };
    slider.addEventListener("input", () => moved((number.value = fromSlider(slider.value, low, high))));
    number.addEventListener("input", () => {
      const chosen = number.value === "" ? 0 : Number(number.value);
      if (chosen > 0) slider.value = toSlider(chosen, low, high);
      moved(chosen);
    });
    return h("div", { class: "control" }, h("label", { for: name }, label), h("div", { class: "both" }, slider, number),
      h("small", { id: `${name}-hint` }, hint), errorPlace(name));
  };
  const kind = h("select", { id: "kind", name: "kind", onchange: () => { change({ kind: kind.value }); alpha.hidden = kind.value !== "chi-square"; onmove(true); } },
    [["chi-square", "every distribution that a χ² test accepts"], ["all", "every distribution at all"], ["known", "the sample's frequencies only"]].map(([value, text]) =>
      h("option", { value, selected: value === state.kind }, text)));
  const alpha = pair("alpha", "α, level of the test", "the smaller, the more distributions count", 1e-6, 0.5, state.alpha);
  alpha.hidden = state.kind !== "chi-square";
  return h("form", { class: "card controls", onsubmit: (event) => event.preventDefault() },
    pair("epsilon", "ε in nats", "one report changes the odds on S by at most e^ε", 0.05, 8, state.epsilon),
    h("div", { class: "control" }, h("label", { for: "kind" }, "Private for"), kind, h("small", {}, "the set F of distributions that may be true"), errorPlace("kind")),
    alpha);
}
