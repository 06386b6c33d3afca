"""What the page says about a report is what an audit of the table finds."""

from __future__ import annotations

import json
import shutil
import subprocess

import numpy as np
import pytest

import rldp
from rldp.auditing.audit import promise
from tests.support.files import JAVASCRIPT, ROOT

NODE = shutil.which("node")
PAGE = ROOT / "src" / "rldp" / "collect" / "page"
SCRIPT = """
import { readFileSync } from "node:fs";
const { load } = await import("CLIENT/rldp.js");
const { conclusions, extremes, leastRatio } = await import("PAGE/conclusions.js");
const [file, texts, n] = process.argv.slice(2);
const p = await load(readFileSync(file));
const told = JSON.parse(readFileSync(texts));
const words = (name, values = {}) => told[name].replace(/\\{(\\w+)\\}/g, (_, key) => values[key]);
const given = [], all = [];
for (let y = 0; y < Number(n); y++) {
  all.push(leastRatio(p, y));
  for (let u = 0; u < p.shape[1]; u++) {
    const { most, least } = extremes(p, y, u);
    if (most.share) given.push(least.share / most.share);
  }
}
console.log(JSON.stringify({ given, all, sentences: conclusions(p, 0, 0, words) }));
"""

pytestmark = pytest.mark.skipif(NODE is None, reason="Node is not installed")


def concluded(p, tmp_path, n, language="en"):
    p.save(tmp_path / "p.json")
    script = tmp_path / "script.mjs"
    page = tmp_path / "page"
    page.mkdir(exist_ok=True)
    (page / "package.json").write_text('{"type": "module"}')
    shutil.copy(PAGE / "conclusions.js", page)
    script.write_text(SCRIPT.replace("CLIENT", JAVASCRIPT.as_uri()).replace("PAGE", page.as_uri()))
    words = [NODE, script, tmp_path / "p.json", PAGE / f"{language}.json", str(n)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", ["grr", "grr-cr", "ir", "srr", "polyopt"])
def test_the_figures_are_those_of_the_audit(name, tmp_path):
    table = rldp.Table([[30, 25], [12, 14], [9, 10]])
    p = rldp.design(rldp.ChiSquareSet(table), 1.0, name).public()
    found = concluded(p, tmp_path, p.channel.n_outputs)
    alone = promise(p.channel)
    assert min(found["given"]) == pytest.approx(np.exp(-alone.epsilon_given_u), abs=1e-9)
    assert min(found["all"]) == pytest.approx(np.exp(-alone.epsilon_all), abs=1e-9)
    stranger = found["sentences"][0]["text"]
    assert "at least 36 of as many" in stranger  # 100/e = 36.8, rounded to the safe side
    assert "claims this" in stranger


def test_pairs_without_a_promise_are_said(tmp_path):
    table = rldp.Table([[30, 25], [12, 14]])
    levels = np.array([[np.inf, 1.0], [np.inf, np.inf]])
    p = rldp.design(rldp.AllDistributions(table), levels, "optimal", time_limit=1).public()
    assert not np.isfinite(p.claims[0].levels[1, 0])
    found = concluded(p, tmp_path, 1)
    assert "nothing is promised" in found["sentences"][0]["text"]


def test_all_languages_have_the_same_texts():
    texts = {path.stem: json.loads(path.read_text()) for path in PAGE.glob("*.json")}
    assert {"en", "de"} <= texts.keys()
    for language, all_texts in texts.items():
        assert all_texts.keys() == texts["en"].keys(), language
        for name, text in all_texts.items():
            holes = {part.partition("}")[0] for part in text.split("{")[1:]}
            assert holes == {part.partition("}")[0] for part in texts["en"][name].split("{")[1:]}
