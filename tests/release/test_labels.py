"""Labels of reports: readable, and every text has one reading."""

from __future__ import annotations

import base64

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rldp
from rldp.channel import ChoiceChannel, DenseChannel, IndependentChannel, UnaryChannel
from rldp.errors import DataError
from rldp.release.report_labels import ReportLabels
from rldp.tables.schema import Column, Schema

awkward = st.text(alphabet="ab |;\\{}-", max_size=5)


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    def columns(prefix: str, least: int) -> tuple[Column, ...]:
        n = draw(st.integers(least, 2))
        labels = st.lists(awkward, min_size=1, max_size=3, unique_by=str.strip)
        return tuple(Column(f"{prefix}{i}", tuple(draw(labels))) for i in range(n))

    return Schema(columns("s", 1), columns("u", 0))


def channels(schema: Schema) -> list[rldp.Channel]:
    n_s, n_u = schema.n_s, schema.n_u
    even = np.full((n_s, n_u, n_u), 1 / (n_s * n_u))
    return [
        DenseChannel(np.full((n_s, n_u, 4), 0.25)),
        ChoiceChannel(even, even[:, 0]),
        IndependentChannel(np.full((n_s, n_s), 1 / n_s), np.full((n_u, n_u), 1 / n_u)),
        IndependentChannel(np.full((n_s, n_s + 1), 1 / (n_s + 1)), np.full((n_u, 5), 0.2)),
        UnaryChannel(
            np.full((n_s, n_u, n_u + 1), 1 / (n_u + 1)), np.full((n_s, n_u + 1), 1 / (n_u + 1))
        ),
        UnaryChannel(np.full((n_s, n_u, 2), 0.5), np.full((n_s * n_u, 2), 0.5)),
    ]


@given(schemas(), st.integers(0, 2**32))
def test_labels_are_read_back_whatever_the_levels_contain(schema, seed) -> None:
    rng = np.random.default_rng(seed)
    for channel in channels(schema):
        labels = ReportLabels(schema, channel)
        assert len(set(labels.all)) == len(labels.all)
        if isinstance(channel, UnaryChannel):
            n_z = channel.other.shape[1]
            reports = rng.integers(-1, n_z - 1, (20, channel.n_blocks))
            reports[0] = -1
        else:
            reports = np.arange(channel.n_outputs)
        texts = labels.texts(reports)
        assert np.array_equal(labels.reports(texts), reports)
        assert np.array_equal(labels.reports(texts.to_pylist()), reports)
        in_bits = labels.texts(reports, labels=False)
        assert np.array_equal(labels.reports(in_bits), reports)
        distinct = {tuple(np.atleast_1d(report)) for report in reports.tolist()}
        assert len(set(texts.to_pylist())) == len(distinct)


def test_sets_of_many_blocks_are_written_in_bits():
    """Six bits to a character of base64url, written here digit by digit."""
    rng = np.random.default_rng(1)
    for n_z, n_s in ((2, 40), (4, 37)):
        n_u = n_z - 1
        schema = rldp.Table(np.ones((n_s, n_u), dtype=int)).schema
        rows = np.full((n_s, n_u, n_z), 1 / n_z)
        labels = ReportLabels(schema, UnaryChannel(rows, rows[:, 0]))
        reports = rng.integers(-1, n_z - 1, (7, n_s))
        for text, report in zip(labels.texts(reports).to_pylist(), reports, strict=True):
            bits = "".join(f"{z + 1:0{(n_z - 1).bit_length()}b}" for z in report)
            bits += "0" * (-len(bits) % 6)
            packed = int(bits + "0" * (-len(bits) % 8), 2).to_bytes(-(-len(bits) // 8))
            expected = base64.urlsafe_b64encode(packed).decode()[: len(bits) // 6]
            assert text == f"bits:{expected}"
            assert labels.report(text) == report.tolist()
        named = labels.texts(reports, labels=True)
        assert named.to_pylist()[0].startswith("{")
        mixed = named.to_pylist()[:3] + labels.texts(reports).to_pylist()[3:]
        assert np.array_equal(labels.reports(mixed), reports)


@pytest.mark.parametrize(
    "text", ["bits:", "bits:A", "bits:AAAAAAAA", "bits:AAAAAA=", "bits:AAAAAAB", "BITS:AAAAAAA"]
)
def test_bits_that_are_no_report_are_refused(text):
    """40 bits are 7 characters, the last of which has 2 bits that must be 0."""
    rows = np.full((40, 1, 2), 0.5)
    schema = rldp.Table(np.ones((40, 1), dtype=int)).schema
    labels = ReportLabels(schema, UnaryChannel(rows, rows[:, 0]))
    assert labels.report("bits:AAAAAAA") == [-1] * 40
    assert labels.report(text) is None
    with pytest.raises(DataError, match="Expected a report of this protocol"):
        labels.reports([text])


@pytest.mark.parametrize(
    ("protocol", "text"),
    [
        ("srr", "high | m | 1"),
        ("ir", "high | m | 1"),
        ("ue-cr", "{high | m | 1}"),
        ("ue", "{high | m | 1}"),
    ],
)
def test_labels_of_the_families(protocol: str, text: str) -> None:
    table = rldp.Table(
        np.ones((2, 4), dtype=int),
        sensitive={"income": ["low", "high"]},
        useful={"sex": ["f", "m"], "age": ["0", "1"]},
    )
    p = rldp.design(rldp.ChiSquareSet(table), 1.0, protocol)
    report = p.report_labels.reports([text])
    if report.ndim == 1:
        assert report.tolist() == [7]  # s = 1, u = 3: the last of all
    elif protocol == "ue-cr":
        assert report.tolist() == [[-1, 3]]
    else:
        assert report.tolist() == [[-1] * 7 + [0]]
    assert p.report_labels.texts(report).to_pylist() == [text]


def test_many_outputs_are_text_without_a_list_of_all() -> None:
    schema = Schema(
        (Column("s", tuple(map(str, range(300)))),), (Column("u", tuple(map(str, range(300)))),)
    )
    even = np.full((300, 300), 1 / 300)
    labels = ReportLabels(schema, IndependentChannel(even, even))
    texts = labels.texts(np.array([0, 89_999, 301, 0]))
    assert texts.type == pa.string()
    assert texts.to_pylist() == ["0 | 0", "299 | 299", "1 | 1", "0 | 0"]
    assert "all" not in vars(labels)


@pytest.mark.parametrize(
    ("protocol", "text"),
    [
        ("srr", "0 | 2"),
        ("srr", "0"),
        ("srr", "{0 | 0}"),
        ("ue-cr", "0 | 0"),
        ("ue-cr", "{0 | 0"),
        ("ue-cr", "{0 | 2}"),
        ("ue-cr", "{0 | 0; 0 | 1}"),
        ("ue-cr", "{0 | 0;1 | 0}"),
        ("ue-cr", "{0 | 0; }"),
        ("ue-cr", "{"),
        ("ue-cr", ""),
    ],
)
def test_what_is_no_report_is_refused_with_its_row(protocol: str, text: str) -> None:
    p = rldp.design(rldp.ChiSquareSet(rldp.Table([[5, 3], [2, 6]])), 1.0, protocol)
    good = p.report_labels.texts(p.release(np.zeros((3, 2), dtype=int))).to_pylist()
    with pytest.raises(DataError, match="in row 3"):
        p.report_labels.reports([*good, text])
    with pytest.raises(DataError, match="row 1 has none"):
        p.report_labels.reports([good[0], None])


def test_labels_that_are_declared_and_never_used_do_no_harm() -> None:
    p = rldp.design(rldp.ChiSquareSet(rldp.Table([[5, 3], [2, 6]])), 1.0, "srr")
    texts = pa.DictionaryArray.from_arrays(pa.array([0, 0]), pa.array(["1 | 1", "nonsense"]))
    assert p.report_labels.reports(texts).tolist() == [3, 3]
    chunks = pa.chunked_array([texts, pa.DictionaryArray.from_arrays([0], ["0 | 0"])])
    assert p.report_labels.reports(chunks).tolist() == [3, 3, 0]


@pytest.mark.parametrize("index", [-1, 2, 100])
def test_indices_without_a_label_are_refused(index: int) -> None:
    """Damaged files have such; -1 would be the last label."""
    p = rldp.design(rldp.ChiSquareSet(rldp.Table([[5, 3], [2, 6]])), 1.0, "srr")
    entries = pa.array(["0 | 0", "1 | 1"])
    damaged = pa.DictionaryArray.from_arrays(pa.array([0, index]), entries, safe=False)
    with pytest.raises(DataError, match="2 dictionary entries in the reports"):
        p.report_labels.reports(damaged)
