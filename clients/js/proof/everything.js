/** The set of all distributions, around the counts that other sets use. */

import { largest, ONE, smallest, spend, sum } from "./numbers.js";

/** All distributions; around counts, which other sets use. */
export class Everything {
  constructor(counts) {
    this.n = sum(counts.flat());
    this.records(counts);
  }

  records(counts) {
    this.counts = counts;
    this.totals = counts.map(sum);
  }

  /** What F says of the conditionals within these U values: n and all constants stay what they were. */
  given(group) {
    const made = Object.assign(Object.create(Object.getPrototypeOf(this)), this);
    made.records(within(this.counts, group));
    return made;
  }

  /** F with the U values of each class made one, for vectors that are constant on classes: they have the same means. */
  merged(groups) {
    const made = Object.assign(Object.create(Object.getPrototypeOf(this)), this);
    made.records(added(this.counts, groups));
    return made;
  }

  /** Good multipliers of a column for `bounds`, where a certificate has none; most sets need none. */
  multipliers() {
    return undefined;
  }

  /** Whether anything is known of R_s. */
  isSeen(s) {
    return this.totals[s] > 0n;
  }

  /** An upper and a lower bound of q·R_s. */
  bounds(s, q) {
    spend(2 * q.length);
    return [largest(q) * ONE, smallest(q) * ONE];
  }

  /** Whether a1 q1·R_1 ≤ E a2 q2·R_2 is proved by a lemma on two columns, for sides { s, a, q }. */
  isShown() {
    return false;
  }
}

export const within = (rows, group) => rows.map((row) => group.map((u) => row[u]));
export const added = (rows, groups) => rows.map((row) => groups.map((group) => sum(group.map((u) => row[u]))));
