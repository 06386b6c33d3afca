// What a report tells about a person, and to whom: natural frequencies from the protocol's table.

const PEOPLE = 1000;

/** Of 1,000 people with each S value and this u, how many send this report: the most and the least. */
export function extremes(p, report, u) {
  const [n_s] = p.shape;
  const shares = Array.from({ length: n_s }, (_, s) => ({ s, share: p.chance(s, u, report) }));
  const most = shares.reduce((a, b) => (b.share > a.share ? b : a));
  const least = shares.reduce((a, b) => (b.share < a.share ? b : a));
  return { most, least };
}

/** The least Q(y|s,u)/Q(y|s',u') over s ≠ s' and all u, u': what holds whatever someone knows. */
export function leastRatio(p, report) {
  const [n_s, n_u] = p.shape;
  const range = Array.from({ length: n_s }, (_, s) => {
    const shares = Array.from({ length: n_u }, (_, u) => p.chance(s, u, report));
    return [Math.min(...shares), Math.max(...shares)];
  });
  let least = 1;
  for (let s = 0; s < n_s; s++)
    for (let other = 0; other < n_s; other++)
      if (s !== other && range[other][1] > 0) least = Math.min(least, range[s][0] / range[other][1]);
  return least;
}

/** A count that is not larger than it is, for "at least"; digits where it would be 0. */
export function atLeast(share, of = 100) {
  const count = of * share;
  return count >= 1 || count === 0 ? String(Math.floor(count + 1e-9)) : count.toPrecision(1);
}

const rounded = (share) => {
  const count = PEOPLE * share;
  return count >= 10 || count === 0 ? String(Math.round(count)) : count.toPrecision(2);
};

/** The S label of a code, its columns joined as in reports. */
export function labelOf(columns, code) {
  const parts = [];
  for (const { labels } of [...columns].reverse()) {
    parts.unshift(labels[code % labels.length]);
    code = Math.floor(code / labels.length);
  }
  return parts.join(", ");
}

/** Whether the first claim has a level for every pair of S values; a file that names none has one. */
const isForAllPairs = (p) => p.claims.slice(0, 1).every(({ levels }) => levels.every((row, s) => row.every((x, other) => s === other || Number.isFinite(x))));

/** Sentences, each with whom it speaks of; those about the person's own u only if it is known. */
export function conclusions(p, report, u, told) {
  const names = (columns) => columns.map(({ name }) => name).join(", ");
  const S = names(p.sensitive);
  const name = isForAllPairs(p) ? "stranger_text" : "stranger_partly";
  const found = [{ whom: told("stranger"), text: told(name, { S, count: atLeast(Math.exp(-p.epsilon)) }) }];
  if (p.useful.length && u !== null) {
    const { most, least } = extremes(p, report, u);
    const values = { S, people: PEOPLE, most: labelOf(p.sensitive, most.s), least: labelOf(p.sensitive, least.s),
      n_most: rounded(most.share), n_least: rounded(least.share) };
    const text = least.share === 0 ? "knows_u_certain" : most.share === least.share ? "knows_u_nothing" : "knows_u_text";
    found.push({ whom: told("knows_u", { U: names(p.useful) }), text: told(text, values) });
  }
  const ratio = leastRatio(p, report);
  found.push({ whom: told("knows_more"), text: told(ratio > 0 ? "knows_more_text" : "knows_more_nothing", { S, count: atLeast(ratio, 1000) }) });
  return found;
}
