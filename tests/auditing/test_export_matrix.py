"""Matrices for other tools: exact rows, levels kept as written, and read back."""

from __future__ import annotations

import csv
import io
from fractions import Fraction

import numpy as np
import pytest

import rldp
from rldp.auditing.export_matrix import export_matrix
from rldp.channel import DenseChannel

TABLE = rldp.Table([[40, 10, 20], [15, 60, 55]])
F = rldp.ChiSquareSet(TABLE)


def fractions(text):
    rows = list(csv.reader(io.StringIO(text)))
    values = [[Fraction(x) for x in row[1:]] for row in rows[1:]]
    return rows[0][1:], [row[0] for row in rows[1:]], values


@pytest.mark.parametrize("name", ["grr", "srr", "grr-cr", "ir"])
@pytest.mark.parametrize("digits", [3, 9, 15])
def test_rows_sum_to_one_and_levels_are_kept_as_written(name, digits):
    p = rldp.design(F, 0.7, name, epsilon_given_u=1.0, epsilon_all=4.0)
    found = export_matrix(p, "csv", digits)
    columns, rows, values = fractions(found.text)
    assert all(sum(row) == 1 for row in values)
    assert columns == list(p.report_labels.all)
    np.testing.assert_allclose(np.array(values, float), found.matrix, atol=1e-16)
    assert all(a <= b for a, b in zip(found.audited, found.promised, strict=True))
    np.testing.assert_allclose(found.matrix, p.matrix.reshape(6, -1), atol=30 * 10.0**-digits)
    a = rldp.audit(DenseChannel(found.matrix.reshape(2, 3, -1)), F)
    assert a.epsilon == pytest.approx(found.audited[0], rel=1e-9)
    assert rows == [f"{s} | {u}" for s in p.schema.s_labels for u in p.schema.u_labels]


def test_rounding_alone_would_break_a_level():
    """The negative control: at few digits the nearest table is not private."""
    p = rldp.design(rldp.AllDistributions(TABLE), 1.0, "grr")
    Q = np.round(p.matrix, 1)
    Q[..., 0] += 1 - Q.sum(axis=2)
    assert rldp.audit(DenseChannel(Q), F).epsilon_all > 1.0
    assert export_matrix(p, "csv", 2).audited[0] <= 1.0


def test_pram_and_rrreg_are_square_and_read_back(tmp_path):
    p = rldp.design(F, 1.0, "srr")
    pram, rrreg = (export_matrix(p, name) for name in ("pram", "rrreg"))
    columns, rows, values = fractions(pram.text)
    assert columns == rows == [f"{s} | {u}" for s in p.schema.s_labels for u in p.schema.u_labels]
    turned = fractions(rrreg.text)[2]
    assert [list(column) for column in zip(*turned, strict=True)] == values
    assert all(sum(column) == 1 for column in zip(*turned, strict=True))
    for found, transposed in ((pram, False), (rrreg, True)):
        path = tmp_path / "m.csv"
        path.write_text(found.text)
        channel = rldp.read_matrix(path, TABLE, transposed=transposed)
        np.testing.assert_allclose(channel.matrix, p.matrix, atol=1e-8)
        assert rldp.audit(channel, F).epsilon == pytest.approx(pram.audited[0])
    assert any("own generator" in remark for remark in pram.remarks)


def test_matrices_of_s_alone_and_of_dice():
    p = rldp.classic("forced-response", "drugs")
    found = export_matrix(p, "pram", 6)
    assert (found.rows, found.columns) == (("no", "yes"), ("no", "yes"))
    np.testing.assert_allclose(found.matrix, [[5 / 6, 1 / 6], [1 / 6, 5 / 6]], atol=1e-5)
    assert found.audited[0] <= found.promised[0]
    assert any("practically never occur" in remark for remark in found.remarks)
    assert any("the report y0" in remark for remark in found.remarks)
    public = export_matrix(p.public(), "csv")
    assert public.audited == ()
    assert any("not audited" in remark for remark in public.remarks)


def test_what_other_tools_cannot_take_is_refused():
    p = rldp.design(F, 1.0, goal="cells", effort="quick")
    assert p.channel.n_outputs > 6
    with pytest.raises(rldp.ParameterError, match="takes square matrices: "):
        export_matrix(p, "pram")
    with pytest.raises(rldp.ParameterError, match="format among csv, pram, rrreg"):
        export_matrix(rldp.design(F, 1.0, "grr"), "spss")
