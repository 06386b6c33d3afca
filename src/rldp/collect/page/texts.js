// The language of the page: that of the browser if the survey has it, or the one that was chosen.

/** The best of the languages that there are for those that someone reads. */
export function bestLanguage(offered, wanted) {
  const base = (tag) => tag.toLowerCase().split("-")[0];
  for (const tag of wanted) {
    const found = offered.find((one) => one.toLowerCase() === tag.toLowerCase()) ?? offered.find((one) => base(one) === base(tag));
    if (found) return found;
  }
  return offered[0];
}

/** A function from names of texts to texts; {name} stands for a value. */
export function textsOf(all) {
  return (name, values = {}) => (all[name] ?? name).replace(/\{(\w+)\}/g, (_, key) => values[key] ?? "");
}
