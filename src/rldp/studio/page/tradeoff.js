// Step 2: errors of estimates and information over ε; ε, the goal and the promises move and everything follows.

import { follow, post, stop } from "./api.js";
import { bits, clearErrors, codePanel, count, decimalField, errorPlace, h, next, notYet, percent, points as inPoints, short, showError, table } from "./dom.js";
import { curves, isDrawn, swatch } from "./charts.js";
import { LAYERS, MOST_EPSILON, allParameters, allSets, at, change, hasParts, isChosen, read, setOf } from "./state.js";
import { prices } from "./prices.js";
import { wishes } from "./wishes.js";
import { workLine } from "./working.js";

export const TITLE = "Trade-off";
export const LEAD = "What will estimates look like, and how much information is kept, at which ε? Say what the reports are for and what shall be promised to whom, then choose a protocol.";

const ORDER = ["best", "polyopt", "ue-cr", "grr-cr", "ir", "srr", "ue", "grr", "ceiling"];
const SETTLED = 450; // milliseconds without a move before searches begin
const toSlider = (value, low, high) => (100 * Math.log(value / low)) / Math.log(high / low);
const fromSlider = (place, low, high) => Number((low * (high / low) ** (place / 100)).toPrecision(2));

export async function show(section, state, page) {
  const hidden = new Set();
  let measure = state.goal === "information" ? "information" : "error";
  let answer = null, job = null, isHalted = false, isMoving = false, timer = 0, asked = 0, sets = 0;
  const picture = h("div", { class: "picture" });
  const tip = h("div", { class: "tip", hidden: true });
  const legend = h("div", { class: "legend", role: "group", "aria-label": "Lines to show" });
  const early = h("p", { class: "quiet early" });
  const search = h("div", { class: "search", role: "status" });
  const working = workLine(search, "Searches", "Stop", halt);
  const below = h("div");
  const about = h("p", { class: "quiet" });
  const asks = wishes(state, () => {
    measure = read().goal === "information" ? "information" : "error";
    moved(true);
  });
  const worlds = h("div", { class: "choices worlds", role: "group", "aria-label": "What the chart shows" });
  const priced = prices(section, page);
  section.append(controls(state, asks, moved), errorPlace("sensitive"), h("div", { class: "card" }, worlds, search, picture, legend, early, about), below, priced.element); // nothing above the stop button changes

  const points = () => [...answer.curves, ...answer.searched].filter((point) => point.epsilon <= answer.most);
  const current = () => {
    const searched = answer.searched.filter((point) => point.epsilon === answer.epsilon);
    const all = new Map([...answer.at, ...searched].map((point) => [point.protocol, point]));
    return [...all.values()].sort(isBefore);
  };
  // the best for the goal first; the ceiling is no protocol, and a protocol without estimates is last
  const order = (point) => (point.protocol === "ceiling" ? -1 : answer.goal === "information" ? 0 : typeof point.error === "number" ? point.error : Infinity);
  const isBefore = (a, b) => (order(a) === order(b) ? b.bits - a.bits : order(a) - order(b));
  const least = (point, text) => (point.is_early ? `≥ ${text}` : text);
  const most = (point, text) => (point.is_early && typeof point.error === "number" ? `≤ ${text}` : text);

  function draw() {
    const all = points();
    const names = ORDER.filter((name) => all.some((point) => point.protocol === name && isDrawn(measure, point)));
    worlds.replaceChildren(...[["error", "Errors of estimates"], ["information", "Information kept"]].map(([name, text]) =>
      h("button", { type: "button", class: "small", "aria-pressed": String(name === measure), id: `world-${name}`, onclick: () => {
        measure = name;
        draw();
        section.querySelector(`#world-${name}`).focus();
      } }, text)));
    picture.replaceChildren(tip, curves({ points: all, measure, most: answer.most, entropy: answer.entropy_bits, epsilon: answer.epsilon, hidden,
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
    early.textContent = all.some((point) => point.is_early && !hidden.has(point.protocol))
      ? "Hollow marks, “≥” and “≤”: the search ended early, so the protocol keeps at least this much, or errs by at most this. What is found at a smaller ε counts at a larger one too, as it is private there as well." : "";
    rows();
  }

  // The way on, only where the figures are those of what is chosen now.
  function way() {
    const { epsilon, protocol } = read();
    if (!isChosen(read())) return notYet("Design", `Enter an ε above 0 and up to ${MOST_EPSILON}, and all that the set asks for, to go on.`);
    if (below.getAttribute("aria-busy") === "true" || answer?.epsilon !== epsilon) return notYet(`Design ${protocol} at ε = ${epsilon}`, `The figures at ε = ${epsilon} are not there yet.`);
    return next(at("protocol"), `Design ${protocol} at ε = ${epsilon}`);
  }

  // Nothing is shown under a choice that it does not belong to.
  function empty() {
    answer = null;
    for (const place of [picture, legend, search, worlds]) place.replaceChildren();
    early.textContent = about.textContent = "";
    below.replaceChildren(way());
  }

  function busy(is) {
    for (const place of [below, picture]) place.setAttribute("aria-busy", is);
    if (is && answer) below.querySelector(".next")?.replaceWith(way());
  }

  function rows() {
    const { protocol } = read();
    const { epsilon } = answer;
    const listed = current();
    const choice = (name) =>
      name === "ceiling" ? "" :
      h("input", { type: "radio", name: "protocol", value: name, checked: name === protocol, "aria-label": `Use ${name}`,
        onchange: () => (asks.follow(change({ protocol: name })), page.moved(), draw()) });
    const isProtocol = (point, text) => (point.protocol === "ceiling" ? "" : text);
    const row = (point) => [
      h("span", { class: "name" }, swatch(point.protocol), point.protocol),
      choice(point.protocol), isProtocol(point, most(point, inPoints(point.error))), isProtocol(point, inPoints(point.margin_s)),
      isProtocol(point, point.needed ? count(point.needed) : point.error === "inf" ? "never" : "–"),
      least(point, bits(point.bits)), least(point, percent(point.share)), ...(hasParts(read()) ? [point.known_part ?? ""] : []), point.known_u ?? "", point.always ?? "",
      h("span", {}, answer.titles[point.protocol] ?? "", point.is_early ? h("small", { class: "warn" }, point.from_epsilon === null ? " (search ended early)" : ` (search ended early; found at ε = ${point.from_epsilon})`) : null),
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
    const share = new Map(all.map((point) => [`${point.protocol} ${point.epsilon}`, least(point, percent(point.share))]));
    const code = codePanel(answer.code);
    code.open = openCode;
    below.replaceChildren(
      h("div", { class: "card" }, h("h2", {}, `At ε = ${epsilon}`),
        h("p", { class: "quiet" }, `The best for the goal first: ${answer.goal_title}. Errors are in percentage points, from ${count(answer.records)} reports, if the table is the truth: the mean error of ${answer.goal === "information" ? "the cells" : "the goal"}, and half the widest 95 % interval of a share of S. `,
          `Then how many reports make all 95 % intervals of ${answer.goal === "information" ? "the cells" : "the goal"} ± 1 point wide. ${hasParts(read()) ? "“ε, part known” holds over F against someone who knows some of the U columns but not all, " : ""}“ε, U known” against someone who knows the person's U, “ε, always” whatever is true.`),
        table(`Estimates from ${count(answer.records)} reports, what each keeps of H(X) = ${answer.entropy_bits.toFixed(3)} bits, and what else it promises, at ε = ${epsilon}`,
          ["Protocol", "Use", "error", "P(s)", "reports for ±\u00a01", "Keeps", "of H(X)", ...(hasParts(read()) ? ["ε, part known"] : []), "ε, U known", "ε, always", "What it is"],
          [...waiting.map((name) => [h("span", { class: "name" }, swatch(name), name), choice(name), "searching", "", "", "", "", "", "", ...(hasParts(read()) ? [""] : []), h("span", {}, answer.titles[name])]),
            ...listed.filter((point) => !Number.isNaN(point.bits)).map(row)], { class: "choose" })),
      h("details", { class: "all", open }, h("summary", {}, "All points as a table"),
        table("Share of H(X) kept, by ε in nats", ["ε", ...names],
          epsilons.map((e) => [short(e), ...names.map((name) => share.get(`${name} ${e}`) ?? "")]))),
      code,
      way(),
    );
    if (focused) below.querySelector(`input[value="${focused}"]`)?.focus();
  }

  function hover(value, figures) {
    tip.hidden = value === null;
    if (value === null) return;
    tip.classList.toggle("left", value > 0.55 * answer.most); // where the fewest lines are
    tip.replaceChildren(h("strong", {}, `ε = ${short(value)}`),
      h("dl", {}, figures.map((figure) => [h("dt", {}, swatch(figure.protocol), figure.protocol), h("dd", {}, measure === "error" ? most(figure, inPoints(figure.error)) : least(figure, `${percent(figure.share)} · ${bits(figure.bits)}`))])),
      figures.some((figure) => figure.is_early) ? h("small", {}, measure === "error" ? "≤ the search ended early: at most this error" : "≥ the search ended early: at least this much") : "");
  }

  function pick(epsilon) {
    change({ epsilon });
    section.querySelector("#epsilon").value = epsilon;
    section.querySelector("#epsilon-understood").textContent = "";
    section.querySelector("#epsilon-slider").value = toSlider(epsilon, 0.05, 8);
    moved();
  }

  async function moved(isOtherSet = false) {
    page.moved();
    const mine = ++asked;
    clearTimeout(timer);
    if (job?.state === "running") stop(job).catch(() => {}); // closed forms come first; searches begin again
    isMoving = true;
    if (isOtherSet) {
      isHalted = false;
      sets += 1;
    }
    clearErrors(section);
    priced.forget();
    asks.follow(read());
    const wrong = unreadable();
    if (wrong) {
      empty();
      showError(section, wrong);
      return;
    }
    busy(true);
    try {
      const told = await post("curves", read());
      if (mine !== asked || !page.isAlive()) return;
      answer = told;
      busy(false);
      about.textContent = `${told.title.replaceAll("   ", " · ")} · ${told.set}`;
      draw();
      if (!isHalted) timer = setTimeout(searches, SETTLED);
    } catch (error) {
      if (mine !== asked || !page.isAlive()) return;
      busy(false);
      empty();
      showError(section, error);
    }
  }

  function unreadable() {
    const now = read();
    const isMissing = ({ name }) => now[name] === null;
    const { name, is_number: isNumber, title } = [{ name: "epsilon", is_number: true }, ...LAYERS.map((name) => ({ name, is_number: true })), ...setOf(now).parameters].find(isMissing) ?? {};
    if (!name) return null;
    if (!isNumber) return { field: name, message: `Enter ${title}.` };
    const text = section.querySelector(`#${name}`).value.trim();
    return { field: name, message: text ? `Expected a number such as 0.5, got “${text}”.` : "Enter a number such as 0.5." };
  }

  async function searches() {
    if (!page.isAlive()) return;
    isMoving = false;
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
      const { searched } = told.progress;
      if (searched && answer && mine === sets && JSON.stringify(searched) !== JSON.stringify(answer.searched)) {
        answer.searched = searched;
        if (page.isAlive()) draw();
      }
      if (answer) status(told);
    }, () => page.isAlive() && own.id === job.id).catch((error) => page.isAlive() && showError(section, error));
    if (!page.isAlive() && job.state === "running") stop(job).catch(() => {});
  }

  function status(told) {
    if (told.state === "running") working(told, told.progress.share, `searching ${told.progress.note ?? ""}`);
    else if (told.state === "stopped" && isMoving) search.replaceChildren(h("span", {}, "Searches begin when ε rests …"));
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

function controls(state, asks, onmove) {
  const pair = (name, label, hint, low, high, value) => {
    let timer = 0;
    const moved = (chosen) => {
      change({ [name]: chosen });
      clearTimeout(timer);
      timer = setTimeout(() => onmove(name !== "epsilon"), 40);
    };
    const { input, understood } = decimalField(name, value, { "aria-describedby": `${name}-hint ${name}-understood` }, (chosen) => {
      if (chosen > 0) slider.value = toSlider(chosen, low, high);
      moved(chosen);
    });
    const slider = h("input", { type: "range", id: `${name}-slider`, min: 0, max: 100, step: 1, value: value > 0 ? toSlider(value, low, high) : 0, "aria-label": `${label}, slider` });
    slider.addEventListener("input", () => {
      input.value = fromSlider(slider.value, low, high);
      understood.textContent = "";
      moved(Number(input.value));
    });
    return h("div", { class: "control" }, h("label", { for: name }, label), h("div", { class: "both" }, slider, input), understood,
      h("small", { id: `${name}-hint` }, hint), errorPlace(name));
  };
  const written = ({ name, title, hint }, value) => {
    const input = h("textarea", { id: name, name, rows: 3, "aria-describedby": `${name}-hint`, onchange: () => { change({ [name]: input.value.trim() || null }); onmove(true); } }, value ?? "");
    return h("div", { class: "control" }, h("label", { for: name }, title), input, h("small", { id: `${name}-hint` }, `${hint}, as JSON`), errorPlace(name));
  };
  const fields = allParameters().map((parameter) => {
    const { name, title, hint, slider } = parameter;
    return [parameter, parameter.is_number ? pair(name, title, hint, ...slider, state[name]) : written(parameter, state[name])];
  });
  const offer = (chosen) => {
    const own = new Set(setOf(chosen).parameters.map(({ name }) => name));
    for (const [{ name }, field] of fields) field.hidden = !own.has(name);
  };
  const kind = h("select", { id: "kind", name: "kind", onchange: () => { offer(change({ kind: kind.value })); onmove(true); } },
    allSets().map((set) => h("option", { value: set.kind, selected: set.kind === state.kind }, set.title)));
  offer(state);
  return h("form", { class: "card controls", onsubmit: (event) => event.preventDefault() },
    pair("epsilon", "ε in nats", "Against someone who knows nothing else about the person: one report changes their odds on S by at most a factor e^ε, for every distribution in F.", 0.05, 8, state.epsilon),
    h("div", { class: "control" }, h("label", { for: "kind" }, "Private for"), kind, h("small", {}, "the set F of distributions that may be true"), errorPlace("kind")),
    fields.map(([, field]) => field), asks.element);
}
