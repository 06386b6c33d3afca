// Curves and intervals as SVG, drawn to the width there is; colours come from the style sheet.

import { percent, s, short } from "./dom.js";

const MARKS = { grr: "circle", ue: "down", srr: "square", ir: "up", "grr-cr": "diamond", "ue-cr": "cross", polyopt: "pentagon", best: "star", ceiling: "" };

// hollow where a search ended early
function mark(name, x, y, isEarly = false) {
  const shapes = {
    circle: "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0",
    square: "M-3.5 -3.5h7v7h-7z",
    diamond: "M0 -5L5 0L0 5L-5 0z",
    up: "M0 -5L5 4H-5z",
    down: "M0 5L5 -4H-5z",
    cross: "M-5 -1.5h3.5v-3.5h3v3.5h3.5v3h-3.5v3.5h-3v-3.5h-3.5z",
    pentagon: "M0 -5.5L5.2 -1.7L3.2 4.5H-3.2L-5.2 -1.7z",
    star: "M0 -6L1.8 -1.9L6 -1.9L2.6 .9L3.9 5L0 2.5L-3.9 5L-2.6 .9L-6 -1.9L-1.8 -1.9z",
  };
  const shape = shapes[MARKS[name]];
  return shape ? s("path", { d: shape, transform: `translate(${x} ${y})`, class: `mark of-${name}${isEarly ? " hollow" : ""}` }) : null;
}

export const swatch = (name) =>
  s("svg", { class: "swatch", viewBox: "0 0 34 14", "aria-hidden": "true" },
    s("path", { d: "M1 7H33", class: `line of-${name}` }), mark(name, 17, 7));

function ticks(most, wanted) {
  const rough = most / wanted;
  const unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].find((factor) => factor * unit >= rough) * unit;
  return Array.from({ length: Math.floor(most / step + 1e-9) + 1 }, (_, i) => i * step);
}

// The two worlds of a chart: how a point becomes a height between 0 and 1, and what stands beside the axis.
const MEASURES = {
  information: {
    label: "Information kept",
    axis: "",
    has: () => true,
    value: (point) => point.share,
    scale: (values) => {
      const most = Math.min(1, 1.06 * Math.max(...values, 0.02));
      return { height: (share) => share / most, ticks: ticks(most, 6).map((share) => [share, `${short(100 * share)} %`]), most };
    },
  },
  error: { // a logarithmic scale: errors fall over orders of magnitude
    label: "Error of estimates",
    axis: "± percentage points: the smaller, the better",
    has: (point) => typeof point.error === "number" && point.error > 0,
    value: (point) => 100 * point.error,
    scale: (values) => {
      const [low, high] = values.length ? [Math.min(...values) / 1.1, Math.min(100, Math.max(...values)) * 1.1] : [0.1, 10];
      const steps = [0.001, 0.01, 0.1, 1, 10, 100].flatMap((unit) => [1, 2, 5].map((factor) => factor * unit));
      return { height: (value) => Math.min(1, Math.log(value / low) / Math.log(high / low)), ticks: steps.filter((step) => step >= low && step <= high).map((step) => [step, short(step)]) };
    },
  },
};
export const isDrawn = (measure, point) => MEASURES[measure].has(point);

// points: [{protocol, epsilon, bits, share, error, is_early}] up to the ε called most; onpick is told the ε that was clicked
export function curves({ points, measure, most: mostX, entropy, epsilon, hidden, width, onpick, onhover }) {
  const height = Math.round(Math.min(420, Math.max(260, 0.5 * width)));
  const left = 48, right = width > 560 ? 52 : 14, top = 14, bottom = 44;
  const { label, axis, has, value: valueOf, scale } = MEASURES[measure];
  const shown = points.filter((point) => !hidden.has(point.protocol) && has(point));
  const vertical = scale(shown.map(valueOf));
  const x = (value) => left + ((width - left - right) * value) / mostX;
  const y = (value) => height - bottom - (height - top - bottom) * vertical.height(value);
  const picture = s("svg", { class: "chart", width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `${label} over ε, a line for each protocol; the table below has the figures` });
  for (const [value, text] of vertical.ticks)
    picture.append(s("path", { class: "grid", d: `M${left} ${y(value)}H${width - right}` }),
      s("text", { x: left - 8, y: y(value) + 4, class: "tick end" }, text));
  for (const value of ticks(mostX, width > 560 ? 9 : 5))
    picture.append(s("path", { class: "grid", d: `M${x(value)} ${top}V${height - bottom}` }),
      s("text", { x: x(value), y: height - bottom + 18, class: "tick middle" }, short(value)));
  if (width > 560 && vertical.most)
    for (const value of ticks(vertical.most * entropy, 6).slice(1))
      picture.append(s("text", { x: width - right + 6, y: y(value / entropy) + 4, class: "tick" }, short(value)));
  picture.append(s("text", { x: (left + width - right) / 2, y: height - 6, class: "axis middle" }, "ε in nats: the smaller, the more private"));
  if (width > 560 || axis)
    picture.append(s("text", { class: "axis middle", transform: `translate(${axis ? 11 : width - 10} ${(top + height - bottom) / 2}) rotate(${axis ? -90 : 90})` }, axis ? (width > 560 ? axis : "± percentage points") : "bits"));
  const lines = s("g");
  for (const name of new Set(shown.map((point) => point.protocol))) {
    const mine = shown.filter((point) => point.protocol === name).sort((a, b) => a.epsilon - b.epsilon);
    const d = mine.map((point, i) => `${i ? "L" : "M"}${x(point.epsilon).toFixed(1)} ${y(valueOf(point)).toFixed(1)}`).join("");
    lines.append(s("path", { d, class: `line of-${name}` }));
    const every = Math.max(1, Math.round(mine.length / 9));
    mine.forEach((point, i) => (i % every && !point.is_early ? null : lines.append(mark(name, x(point.epsilon), y(valueOf(point)), point.is_early) ?? "")));
  }
  picture.append(lines);
  if (epsilon !== null)
    picture.append(s("path", { class: "chosen", d: `M${x(epsilon)} ${top}V${height - bottom}` }),
      s("text", { x: x(epsilon) + (epsilon > 0.85 * mostX ? -6 : 6), y: top + 10, class: `tick strong ${epsilon > 0.85 * mostX ? "end" : ""}` }, `ε = ${epsilon}`));
  const guide = s("path", { class: "guide", d: "" });
  picture.append(guide);
  const under = (event) => {
    const box = picture.getBoundingClientRect();
    const value = ((((event.clientX - box.left) * width) / box.width - left) / (width - left - right)) * mostX;
    return Math.min(mostX, Math.max(0.05, value));
  };
  picture.addEventListener("pointermove", (event) => {
    const value = under(event);
    guide.setAttribute("d", `M${x(value)} ${top}V${height - bottom}`);
    onhover(value, figuresAt(shown, value, measure), event);
  });
  picture.addEventListener("pointerleave", () => {
    guide.setAttribute("d", "");
    onhover(null, []);
  });
  picture.addEventListener("click", (event) => onpick(Number(under(event).toPrecision(2))));
  return picture;
}

// what each line shows at an ε, between its points, the best first; next to a search that ended
// early only what is known at the smaller ε is sure
function figuresAt(points, value, measure) {
  const figures = [];
  for (const name of new Set(points.map((point) => point.protocol))) {
    const mine = points.filter((point) => point.protocol === name).sort((a, b) => a.epsilon - b.epsilon);
    const after = mine.findIndex((point) => point.epsilon >= value);
    if (after === -1 || (after === 0 && mine[0].epsilon > value + 0.051)) continue;
    const [a, b] = [mine[Math.max(0, after - 1)], mine[after]];
    const isEarly = a.is_early || b.is_early;
    const t = isEarly ? Number(b.epsilon === value) : b.epsilon > a.epsilon ? (value - a.epsilon) / (b.epsilon - a.epsilon) : 1;
    const between = (key) => a[key] + t * (b[key] - a[key]);
    figures.push({ protocol: name, is_early: isEarly, bits: between("bits"), share: between("share"), error: measure === "error" ? between("error") : null });
  }
  return figures.sort((a, b) => (measure === "error" ? a.error - b.error : b.share - a.share));
}

// records with low, high, estimate and sample: a row each, on one scale
export function interval(record, most) {
  const at = (share) => 4 + (192 * Math.min(1, Math.max(0, share))) / most;
  return s("svg", { class: "interval", viewBox: "0 0 200 18", role: "img",
    "aria-label": `${percent(record.low)} to ${percent(record.high)}, design sample ${percent(record.sample)}` },
    s("path", { class: "grid", d: "M4 9H196" }),
    s("path", { class: record.estimate_in_interval === null ? "range open" : "range", d: `M${at(Math.max(0, record.low))} 9H${at(Math.max(0, record.high))}` }),
    record.estimate_in_interval === null ? null : s("circle", { class: "estimate", cx: at(record.estimate_in_interval), cy: 9, r: 4 }),
    s("path", { class: "sample", d: `M${at(record.sample) - 4} 5l8 8m0 -8l-8 8` }));
}

// from a prior share to the highest posterior
export function rise(prior, posterior) {
  const at = (share) => 5 + 190 * share;
  return s("svg", { class: "interval", viewBox: "0 0 200 18", "aria-hidden": "true" },
    s("path", { class: "grid", d: "M5 9H195" }),
    s("path", { class: "range risk", d: `M${at(prior)} 9H${at(posterior)}` }),
    s("circle", { class: "prior", cx: at(prior), cy: 9, r: 4 }),
    s("path", { class: "posterior", d: `M${at(posterior)} 3l6 6l-6 6l-6 -6z` }));
}
