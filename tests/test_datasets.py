"""The bundled Adult pairs and random tables."""

from __future__ import annotations

import runpy
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from rldp.datasets import ADULT_COLUMNS, adult, jeffreys
from rldp.errors import ParameterError
from tests.support.files import ROOT


def marginal(column: str) -> dict[str, int]:
    table = adult(column, "sex" if column != "sex" else "race")
    return dict(zip(table.schema.s_labels, table.counts.sum(axis=1).tolist(), strict=True))


def test_known_marginals_of_adult() -> None:
    assert marginal("race") == {
        "Amer-Indian-Eskimo": 311,
        "Asian-Pac-Islander": 1039,
        "Black": 3124,
        "Other": 271,
        "White": 27816,
    }
    assert marginal("sex") == {"Female": 10771, "Male": 21790}
    assert marginal("occupation")["?"] == 1843
    assert marginal("native-country")["?"] == 583
    sizes = {name: len(marginal(name)) for name in ADULT_COLUMNS}
    assert sizes["native-country"] == 42
    assert sizes["education"] == 16
    assert sizes["occupation"] == 15
    assert sizes["relationship"] == 6


@pytest.mark.parametrize(("sensitive", "useful"), [*permutations(ADULT_COLUMNS, 2)])
def test_every_pair_has_all_records_and_the_same_marginals(sensitive: str, useful: str) -> None:
    table = adult(sensitive, useful)
    assert table.n == 32561
    assert dict(zip(table.schema.s_labels, table.counts.sum(axis=1), strict=True)) == marginal(
        sensitive
    )
    assert list(table.schema.u_labels) == sorted(table.schema.u_labels)
    assert table.transposed() == adult(useful, sensitive)
    assert [column.name for column in table.schema.sensitive] == [sensitive]


def test_adult_refuses() -> None:
    with pytest.raises(ParameterError, match=r"workclass, .*income\), got 'age'"):
        adult("age", "sex")
    with pytest.raises(ParameterError, match="got 'sex' twice"):
        adult("sex", "sex")


def test_pairs_are_derived_record_by_record(tmp_path: Path) -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "derive_adult.py"))
    assert tuple(tool["PLACES"]) == ADULT_COLUMNS
    record = "39, {}, 7, BA, 13, Single, ?, Own, White, {}, 0, 0, 40, Peru, <=50K\n"
    source = tmp_path / "adult.data"
    source.write_text(record.format("State", "Male") * 2 + record.format("?", "Female") + "\n")
    rows = tool["pair_counts"](source)
    assert len({row[:2] for row in rows}) == 36
    assert [row[2:] for row in rows if row[:2] == ("workclass", "sex")] == [
        ("?", "Female", 1),
        ("State", "Male", 2),
    ]
    assert ("occupation", "income", "?", "<=50K", 3) in rows


def test_jeffreys_draw_is_reproducible() -> None:
    draw = jeffreys(3, 3, 1000, 20240)
    assert draw.table.counts.tolist() == [[17, 52, 26], [39, 156, 314], [229, 15, 152]]
    assert draw.distribution.shape == (3, 3)
    assert draw.distribution.sum() == pytest.approx(1)
    assert not draw.distribution.flags.writeable
    assert jeffreys(3, 3, 1000, 20240).table == draw.table
    assert jeffreys(3, 3, 1000, 20241).table != draw.table


def test_jeffreys_prior_pushes_to_the_corners() -> None:
    """Under Dirichlet(1/2, 1/2) a share is below 1/4 with probability 1/3 (arcsine law)."""
    shares = np.array([jeffreys(2, 1, 1, seed).distribution[0, 0] for seed in range(900)])
    below = int((shares < 0.25).sum())
    assert abs(below - 300) < 5 * np.sqrt(900 * (1 / 3) * (2 / 3))


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((0, 3, 10, 1), "n_s"),
        ((3, 2.0, 10, 1), "n_u"),
        ((3, 3, 0, 1), "n "),
        ((3, 3, True, 1), "n "),
        ((3, 3, 10, -1), "seed"),
    ],
)
def test_jeffreys_refuses(arguments: tuple[int, int, int, int], name: str) -> None:
    with pytest.raises(ParameterError, match=f"Expected {name}"):
        jeffreys(*arguments)
