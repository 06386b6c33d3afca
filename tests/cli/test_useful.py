"""Which columns are kept useful is asked where there are several, and what was found is listed."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rldp
from rldp.cli import main
from rldp.errors import DataError

GRR = ["-p", "grr", "-e", "1"]


@pytest.fixture
def survey(tmp_path):
    path = tmp_path / "survey.csv"
    rows = [f"{i},{'hl'[i % 2]},{'fm'[i % 3 % 2]},{'nesw'[i % 4]},x" for i in range(400)]
    path.write_text("id,income,sex,region,wave\n" + "\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize("command", ["compare", "design"])
def test_several_other_columns_are_asked_about(command, survey, tmp_path, capfd):
    target = tmp_path / "p.json"
    output = ["-o", str(target)] if command == "design" else []
    assert main([command, str(survey), "-s", "income", *GRR, *output]) == 2
    out, error = capfd.readouterr()
    assert not out
    assert error.startswith("error: --useful: ")
    assert error.count("\n") == 1
    assert "'id' (400), 'sex' (2), 'region' (4), 'wave' (1)" in error
    assert "use --useful sex region for those with the fewest values" in error
    assert not target.exists()
    given = error.partition("use ")[2].partition(" for")[0].split()
    assert main([command, str(survey), "-s", "income", *GRR, *given]) == 0


def test_columns_of_a_parquet_file_and_of_many_values(tmp_path, capfd):
    path = tmp_path / "in.parquet"
    columns = {"s": ["a", "b"] * 6000, "id": range(12_000), "u": pa.array(["x", None] * 6000)}
    columns["list"] = [[1]] * 12_000
    pq.write_table(pa.table(columns), path)
    assert main(["compare", str(path), "-s", "s", *GRR]) == 2
    assert "'id' (more than 10,000), 'u' (1), 'list' (more than 10,000)" in capfd.readouterr().err


@pytest.mark.parametrize("command", ["compare", "design"])
def test_the_only_other_column_is_taken_and_said(command, tmp_path, capfd):
    path = tmp_path / "in.csv"
    path.write_text("income,sex\n" + "h,f\nl,m\nh,m\n" * 20)
    assert main([command, str(path), "-s", "income", *GRR]) == 0
    out, error = capfd.readouterr()
    assert error == f"--useful sex: the only other column of {path}\n"
    assert "S  income: 'h', 'l'\nU  sex: 'f', 'm'\n" in out
    assert main([command, str(path), "-s", "income", *GRR, "--json"]) == 0
    json.loads(capfd.readouterr().out)


def test_ten_labels_are_listed_and_the_number_of_all(tmp_path, capfd):
    path = tmp_path / "in.csv"
    path.write_text("s,u\n" + "".join(f"{'ab'[i % 2]},u{i % 12:02}\n" for i in range(240)))
    assert main(["design", str(path), "-s", "s", "-u", "u", *GRR]) == 0
    out = capfd.readouterr().out
    assert (
        "U  u: 'u00', 'u01', 'u02', 'u03', 'u04', 'u05', 'u06', 'u07', 'u08', 'u09', ... (12" in out
    )


def test_no_identifier_is_taken_in_python_unless_it_is_named(survey):
    message = (
        "column 'id' has 400 different values in 400 records.*useful=\\['sex', 'region', 'wave'\\]"
    )
    with pytest.raises(DataError, match=message):
        rldp.read_table(survey, "income")
    with pytest.raises(DataError, match="looks like an identifier"):
        rldp.Table.from_frame(pa.table({"s": ["a", "b"] * 20, "id": range(40)}), "s")
    assert rldp.read_table(survey, "income", "id").n_u == 400
    assert rldp.read_table(survey, "income", ["sex", "region"]).n_u == 8
