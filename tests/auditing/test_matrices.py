"""Matrices from elsewhere: every shape, every container, and errors that name the culprit."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rldp import (
    ChiSquareSet,
    DataError,
    FileError,
    IndependentChannel,
    ParameterError,
    Table,
    audit,
    read_matrix,
)
from tests.support import strategies as some

TABLE = Table(
    [[30, 10, 5], [4, 20, 31]],
    sensitive={"race": ["White", "Black"]},
    useful={"sex": ["f", "m", "x"]},
)
CELLS = ["White | f", "White | m", "White | x", "Black | f", "Black | m", "Black | x"]
RNG = np.random.default_rng(7)
Q = some.rows(RNG, 2, 3, 4, zeros=0.0)
FLAT = Q.reshape(6, 4)
PRAM = np.array([[0.9, 0.1], [0.25, 0.75]])


def written(path, text):
    path.write_text(text, encoding="utf-8", newline="")
    return path


def csv_text(rows, header=None, labels=None, delimiter=","):
    lines = [delimiter.join(header)] if header is not None else []
    for i, row in enumerate(rows):
        fields = [repr(float(x)) for x in row]
        lines.append(delimiter.join(([labels[i]] if labels is not None else []) + fields))
    return "\n".join(lines) + "\n"


# --- shapes --------------------------------------------------------------------------------------


def test_a_cube_is_the_channel_itself():
    np.testing.assert_allclose(read_matrix(Q, TABLE).matrix, Q, atol=1e-15)


def test_a_row_for_each_cell():
    np.testing.assert_allclose(read_matrix(FLAT, TABLE).matrix, Q, atol=1e-15)
    np.testing.assert_allclose(read_matrix(FLAT.tolist(), TABLE).matrix, Q, atol=1e-15)


@given(some.seeds, st.integers(2, 4), st.integers(1, 4), st.integers(1, 5))
def test_a_row_for_each_s_by_the_literal_loop(rng, n_s, n_u, n_y):
    """U dropped: only the noisy S. U released: the pair (noisy S, U), U fastest."""
    R, table = some.rows(rng, n_s, n_y), Table(np.ones((n_s, n_u), dtype=int))
    dropped = read_matrix(R, table).matrix
    released = read_matrix(R, table, useful="released").matrix
    assert dropped.shape == (n_s, n_u, n_y)
    assert released.shape == (n_s, n_u, n_y * n_u)
    for s, u, y, v in itertools.product(range(n_s), range(n_u), range(n_y), range(n_u)):
        assert dropped[s, u, y] == pytest.approx(R[s, y], abs=1e-15)
        expected = R[s, y] if u == v else 0.0
        assert released[s, u, y * n_u + v] == pytest.approx(expected, abs=1e-15)
    if n_u == 1:
        np.testing.assert_array_equal(dropped, released)


def test_releasing_u_beside_s_tells_more_of_s():
    F = ChiSquareSet(TABLE)
    alone = audit(read_matrix(PRAM, TABLE), F).epsilon
    beside = audit(read_matrix(PRAM, TABLE, useful="released"), F).epsilon
    assert alone == pytest.approx(np.log(0.75 / 0.1))
    assert beside > alone + 0.5
    assert isinstance(read_matrix(PRAM, TABLE), IndependentChannel)


def test_whole_numbers_and_booleans_are_chances_too():
    identity = np.eye(2, dtype=int)
    for R in (identity, identity.astype(bool), identity.astype(object)):
        np.testing.assert_array_equal(read_matrix(R, TABLE).matrix[:, 0], np.eye(2))


@given(some.seeds, st.floats(-9e-7, 9e-7))
def test_rows_that_nearly_sum_to_1_are_made_to(rng, off):
    R = some.rows(rng, 2, 3, zeros=0.0)
    matrix = read_matrix(R * (1 + off), TABLE).matrix
    np.testing.assert_allclose(matrix[:, 0], R, atol=1e-15)
    np.testing.assert_allclose(matrix.sum(axis=2), 1, atol=1e-15)


# --- containers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [Q, FLAT, FLAT.astype("float32"), np.asfortranarray(FLAT)])
def test_npy_files(values, tmp_path):
    np.save(tmp_path / "Q.npy", values)
    np.testing.assert_allclose(read_matrix(tmp_path / "Q.npy", TABLE).matrix, Q, atol=1e-6)
    np.testing.assert_allclose(read_matrix(str(tmp_path / "Q.npy"), TABLE).matrix, Q, atol=1e-6)


SHUFFLED = [4, 0, 5, 2, 1, 3]
LABELS = [CELLS[i] for i in SHUFFLED]
TEXTS = {
    "numbers only": csv_text(FLAT),
    "a header": csv_text(FLAT, ["y0", "y1", "y2", "y3"]),
    "a header of numbers": csv_text(FLAT, ["0", "1", "2", "3"]),
    "labels": csv_text(FLAT[SHUFFLED], None, LABELS),
    "labels without blanks": csv_text(FLAT[SHUFFLED], None, [x.replace(" ", "") for x in LABELS]),
    "both": csv_text(FLAT[SHUFFLED], ["cell", "y0", "y1", "y2", "y3"], LABELS),
    "as pandas numbers rows": csv_text(FLAT, ["", "0", "1", "2", "3"], list("012345")),
    "as R numbers rows": csv_text(FLAT, ['""', '"V1"', '"V2"', '"V3"', '"V4"'], list("123456")),
    "as R's write.table": csv_text(FLAT, ["V1", "V2", "V3", "V4"], list("123456"), " "),
    "labels with bars and R's header": csv_text(
        FLAT[SHUFFLED], ["V1", "V2", "V3", "V4"], [f'"{x}"' for x in LABELS], " "
    ),
    "semicolons": csv_text(FLAT, ["a", "b", "c", "d"], None, ";"),
    "decimal commas": csv_text(FLAT, None, None, ";").replace(".", ","),
    "tabs": csv_text(FLAT, None, None, "\t"),
    "blanks": csv_text(FLAT, None, None, "  "),
    "empty lines and a byte-order mark": "\ufeff\n" + csv_text(FLAT).replace("\n", "\n\n"),
    "two columns of labels": csv_text(
        FLAT[SHUFFLED], ["race", "sex", "a", "b", "c", "d"], [x.replace(" | ", ",") for x in LABELS]
    ),
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_csv_files(text, tmp_path):
    path = written(tmp_path / "Q.csv", text)
    np.testing.assert_allclose(read_matrix(path, TABLE).matrix, Q, atol=1e-15)


def test_labels_that_are_numbers(tmp_path):
    """The labels of a plain table are 0, 1, ...: told from chances by what the rows sum to."""
    table = Table([[5, 5], [5, 5]])
    for text in ("1,0.2,0.8\n0,0.7,0.3\n", "s,0,1\n1,0.2,0.8\n0,0.7,0.3\n"):
        channel = read_matrix(written(tmp_path / "R.csv", text), table)
        np.testing.assert_allclose(channel.matrix[:, 0], [[0.7, 0.3], [0.2, 0.8]])
    identity = written(tmp_path / "I.csv", "0,1\n1,0\n")  # chances, although they look like labels
    np.testing.assert_array_equal(read_matrix(identity, table).matrix[:, 0], [[0, 1], [1, 0]])


def test_pandas_frames():
    plain = pd.DataFrame(FLAT)
    labelled = pd.DataFrame(FLAT, index=CELLS).iloc[SHUFFLED]
    pairs = [tuple(cell.split(" | ")) for cell in CELLS]
    by_pairs = pd.DataFrame(FLAT, index=pd.MultiIndex.from_tuples(pairs)).iloc[SHUFFLED]
    in_column = labelled.reset_index()
    for frame in (plain, labelled, by_pairs, in_column):
        np.testing.assert_allclose(read_matrix(frame, TABLE).matrix, Q, atol=1e-15)


def test_polars_and_pyarrow_frames():
    columns = {f"y{j}": FLAT[SHUFFLED][:, j] for j in range(4)}
    for make in (pl.DataFrame, pl.LazyFrame, pa.table):
        channel = read_matrix(make({"cell": LABELS, **columns}), TABLE)
        np.testing.assert_allclose(channel.matrix, Q, atol=1e-15)
        unlabelled = make({f"y{j}": FLAT[:, j] for j in range(4)})
        np.testing.assert_allclose(read_matrix(unlabelled, TABLE).matrix, Q, atol=1e-15)


def test_a_pram_matrix_with_labels_in_another_order():
    frame = pd.DataFrame(PRAM[::-1], index=["Black", "White"], columns=["Black", "White"])
    np.testing.assert_allclose(read_matrix(frame, TABLE).matrix[:, 0], PRAM)


@given(st.permutations(range(6)))
def test_any_order_of_labelled_rows_is_the_same_channel(order):
    frame = pd.DataFrame(FLAT, index=CELLS).iloc[list(order)]
    np.testing.assert_allclose(read_matrix(frame, TABLE).matrix, Q, atol=1e-15)


# --- errors --------------------------------------------------------------------------------------


def changed(place, value, values=FLAT):
    values = np.array(values, dtype=float)
    values[place] = value
    return values


def frame_of(labels, values=PRAM):
    return pd.DataFrame(values, index=labels)


BAD = {
    "transposed": (FLAT.T, ["transpose", "rows must be inputs"]),
    "transposed square": (PRAM.T, ["transpose", "rows must be inputs"]),
    "transposed cube": (Q.transpose(2, 0, 1), ["transpose", "last axis"]),
    "a sum": (changed((4, 0), FLAT[4, 0] - 0.02), ["row 4 (Black | m)", "0.98", "-0.02"]),
    "a sum of S": ([[0.5, 0.5], [0.5, 0.6]], ["row 1 (Black)", "1.1", "off by 0.1"]),
    "a sum, labelled": (
        frame_of(["Black", "White"], [[0.5, 0.6], [0.5, 0.5]]),
        ["row 0 (Black)", "off by 0.1"],
    ),
    "a sum in a cube": (changed((1, 2, 0), 2.0, Q), ["row 5 (Black | x)"]),
    "negative": (changed((1, 2), -0.25), ["row 1 (White | m)", "column 2", "-0.25"]),
    "negative in a cube": (changed((1, 0, 3), -1.0, Q), ["row 3 (Black | f)", "column 3", "-1.0"]),
    "nan": (changed((0, 1), np.nan), ["row 0 (White | f)", "column 1", "nan"]),
    "inf": (changed((0, 1), np.inf), ["column 1", "inf"]),
    "shape": (FLAT[:5], ["(2, 3, n_y)", "(6, n_y)", "(2, n_y)", "(5, 4)"]),
    "cube": (np.full((3, 2, 2), 0.5), ["(2, 3, n_y)", "(3, 2, 2)"]),
    "one axis": ([0.5, 0.5], ["(6, n_y)", "(2,)"]),
    "no axis": (0.5, ["(6, n_y)", "()"]),
    "four axes": (np.full((2, 3, 2, 2), 0.25), ["(2, 3, 2, 2)"]),
    "empty": (np.zeros((6, 0)), ["(6, 0)"]),
    "ragged": ([[0.5, 0.5], [1.0]], ["ragged"]),
    "texts": (np.array([["a", "b"], ["c", "d"]]), ["numbers", "<U1"]),
    "complex": (PRAM.astype(complex), ["complex"]),
    "an object": (np.array([[0.5, None], [0.5, 0.5]]), ["row 0, column 1", "None"]),
    "an unknown label": (frame_of(["White", "Blak"]), ["unknown: 'Blak'", "missing: 'Black'"]),
    "a label twice": (frame_of(["White", "White"]), ["more than once: 'White'"]),
    "a missing row": (
        pd.DataFrame(FLAT, index=CELLS).iloc[1:],
        ["each cell", "missing: 'White | f'"],
    ),
    "labels of something else": (frame_of(["p", "q"]), ["value of S", "'p', 'q'", "'White'"]),
    "a gap in a frame": (
        pl.DataFrame({"race": ["White", "Black"], "a": [0.5, None], "b": [0.5, 0.5]}),
        ["row 1, column 0", "None"],
    ),
}


@pytest.mark.parametrize(("source", "culprits"), BAD.values(), ids=BAD)
def test_bad_matrices_are_refused_by_name(source, culprits):
    with pytest.raises(DataError) as error:
        read_matrix(source, TABLE)
    message = str(error.value)
    assert "\n" not in message
    for culprit in culprits:
        assert culprit in message


BAD_TEXTS = {
    "a word": ("0.5,0.5\n0.5,half\n", ["line 2, field 2", "'half'"]),
    "a word after labels": (
        "race,a,b\nWhite,0.5,0.5\nBlack,x,0.5\n",
        ["line 3, field 2", "'x'"],
    ),
    "a word in the first column": ("0.5,0.5\nx,0.5\n", ["line 2, field 1", "'x'"]),
    "R's missing value": ("0.5,0.5\n0.5,NA\n", ["line 2, field 2", "'NA'"]),
    "an underscore": ("0.5,0.5\n0.5,0_5\n", ["'0_5'"]),
    "a short row": ("0.5,0.5\n1.0\n", ["line 2 has 1", "line 1 has 2"]),
    "a header only": ("a,b\n", ["header only"]),
    "a sum": ("White,0.5,0.4\nBlack,0.5,0.5\n", ["row 0 (White)", "0.9", "-0.1"]),
    "an unknown label": ("Whyte,0.5,0.5\nBlack,0.5,0.5\n", ["'Whyte'", "'White'"]),
    "too many rows": ("1,0\n1,0\n1,0\n1,0\n", ["(6, n_y)", "(4, 2)"]),
}


@pytest.mark.parametrize(("text", "culprits"), BAD_TEXTS.values(), ids=BAD_TEXTS)
def test_bad_csv_files_are_refused_by_place(text, culprits, tmp_path):
    path = written(tmp_path / "bad.csv", text)
    with pytest.raises(DataError) as error:
        read_matrix(path, TABLE)
    for culprit in [*culprits, str(path)]:
        assert culprit in str(error.value)


def broken_files(folder):
    np.save(folder / "pickled.npy", np.array([{"a": 1}]), allow_pickle=True)
    np.save(folder / "whole.npy", FLAT)
    (folder / "cut.npy").write_bytes((folder / "whole.npy").read_bytes()[:-9])
    (folder / "cut-header.npy").write_bytes((folder / "whole.npy").read_bytes()[:20])
    (folder / "text.npy").write_text("0.5,0.5\n")
    (folder / "empty.npy").touch()
    (folder / "empty.csv").touch()
    (folder / "blank.csv").write_text("\n \n")
    (folder / "latin.csv").write_bytes("é,0.5\n".encode("latin-1"))
    (folder / "matrix.xlsx").write_bytes(b"PK")
    (folder / "folder.csv").mkdir()


@pytest.mark.parametrize(
    ("name", "culprit"),
    [
        ("pickled.npy", "allow_pickle"),
        ("cut.npy", "whole .npy"),
        ("cut-header.npy", "whole .npy"),
        ("text.npy", "whole .npy"),
        ("empty.npy", "empty"),
        ("empty.csv", "empty"),
        ("blank.csv", "empty"),
        ("latin.csv", "UTF-8"),
        ("matrix.xlsx", ".npy, .csv"),
        ("folder.csv", "expected a file"),
        ("nowhere.csv", "there is none"),
        ("nowhere.npy", "there is none"),
    ],
)
def test_broken_files_are_refused_by_name(name, culprit, tmp_path):
    broken_files(tmp_path)
    with pytest.raises(FileError) as error:
        read_matrix(tmp_path / name, TABLE)
    assert name in str(error.value)
    assert culprit in str(error.value)
    assert "\n" not in str(error.value)


def test_u_cannot_be_released_beside_a_matrix_that_acts_on_it():
    with pytest.raises(DataError, match="acts on U already"):
        read_matrix(FLAT, TABLE, useful="released")
    with pytest.raises(ParameterError, match="'kept'"):
        read_matrix(PRAM, TABLE, useful="kept")


@given(text=st.text(max_size=60) | st.text('01.5,;|\n "\tWhiteBlack', max_size=60))
def test_any_text_is_a_channel_or_an_error_of_ours(text, tmp_path_factory):
    path = written(tmp_path_factory.getbasetemp() / "any.csv", text)
    try:
        channel = read_matrix(path, TABLE)
    except (DataError, FileError):
        return
    np.testing.assert_allclose(channel.matrix.sum(axis=2), 1)
