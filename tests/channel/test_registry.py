"""One entry makes a kind of channel known to files, releases, labels, estimates and proofs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import rldp
from rldp.channel import CHANNELS, Channel, DenseChannel, kind_of, register
from rldp.channel.base import check_sums, checked, integer_rows
from rldp.designing.certify import certified
from rldp.errors import DataError, ParameterError
from rldp.intervals import channels as interval_channels
from rldp.intervals import check_with_intervals
from rldp.proof import channels as proof_channels
from rldp.protocol import documents

VECTORS = Path(__file__).parents[1] / "vectors"
TABLE = rldp.Table([[30, 10, 20], [10, 50, 15]])


@register
class ShiftChannel(Channel):
    """The record moved by a random step, round and round: Q(y|x) = step[y - x]."""

    kind = "shift"

    def __init__(self, step) -> None:
        self.step = checked(step, "step", 2)
        check_sums(self.step.sum(keepdims=True), "step")
        self._dense = DenseChannel(shifted(self.step))

    shape = property(lambda self: self.step.shape)
    n_outputs = property(lambda self: self.step.size)
    parts = property(lambda self: {"step": self.step})

    def _build(self):
        return shifted(self.step)

    def mutual_information_bounds(self, p_su):
        return self._dense.mutual_information_bounds(p_su)

    def divergences(self, p_su):
        return self._dense.divergences(p_su)

    def comparisons(self):
        return self._dense.comparisons()

    def plain_ratio(self) -> float:
        return self._dense.plain_ratio()

    def ratio_over_all(self) -> float:
        return self._dense.ratio_over_all()

    def ratio_given_u(self) -> float:
        return self._dense.ratio_given_u()

    def pulled_in(self, t: float):
        return ShiftChannel((1 - t) * self.step + t / self.step.size)

    def rounded(self, bits: int):
        return {"step": integer_rows(self.step.ravel(), bits).reshape(self.step.shape)}

    @classmethod
    def row_sums(cls, integers):
        return {"step": integers["step"].sum()}

    def listed(self, integers):
        return shifted(integers["step"])


def shifted(step):
    """Q[s, u, y] by a loop over records."""
    n_s, n_u = step.shape
    Q = np.empty((n_s, n_u, n_s * n_u), step.dtype)
    for s, u in np.ndindex(n_s, n_u):
        Q[s, u] = np.roll(step, (s, u), axis=(0, 1)).ravel()
    return Q


def matrix_of(channel: dict, n_u: int) -> dict:
    """The same channel as a matrix, for checkers that know matrices."""
    step = np.array([[int(x) for x in row] for row in channel["step"]], dtype=object)
    rows = shifted(step).tolist()
    assert len(rows[0]) == n_u
    return {**channel, "kind": "dense", "Q": [[[str(x) for x in y] for y in u] for u in rows]}


def _in_proof(document, shape, one):
    channel = matrix_of(document["channel"], shape[1])
    return proof_channels.CHANNELS["dense"]({"channel": channel}, shape, one)


def _in_intervals(document, n_s, n_u, one):
    return interval_channels.READERS["dense"](matrix_of(document, n_u), n_s, n_u, one)


proof_channels.CHANNELS["shift"] = _in_proof
interval_channels.READERS["shift"] = _in_intervals


@pytest.fixture(scope="module", params=[rldp.ChiSquareSet, rldp.KnownDistribution])
def protocol(request):
    """A shift that spends all of its ε over a set with multipliers, or over one without."""
    step = np.array([[0.4, 0.12, 0.12], [0.12, 0.12, 0.12]])
    F, channel = request.param(TABLE), ShiftChannel(step)
    epsilon = rldp.audit(channel, F).epsilon
    proved = certified(channel, [rldp.Guarantee(F, epsilon)])
    return rldp.ReleaseProtocol("shift", epsilon, F, *proved[:3], proved.certificate)


# --- every kind that is registered ---------------------------------------------------------------


def test_every_kind_is_known_to_both_checkers_and_has_test_vectors():
    assert CHANNELS.keys() <= proof_channels.CHANNELS.keys()
    assert CHANNELS.keys() <= interval_channels.READERS.keys()
    texts = (path.read_text() for path in (VECTORS / "accept").glob("*.json"))
    kinds = {json.loads(text)["channel"]["kind"] for text in texts}
    assert kinds == CHANNELS.keys() - {"shift"}  # every reader is tested with all of them


# --- a channel of one's own ----------------------------------------------------------------------


def test_its_file_is_proved_again_when_it_is_read(protocol, tmp_path):
    protocol.save(tmp_path / "p.json")
    again = rldp.load(tmp_path / "p.json")
    assert type(again.channel) is ShiftChannel
    assert again.fingerprint == protocol.fingerprint
    assert rldp.verify(again).conditions == 2 * 6
    pytest.importorskip("flint")
    check_with_intervals(json.loads((tmp_path / "p.json").read_text()))


def test_a_step_that_does_not_sum_to_one_is_refused(protocol):
    document = documents.channel_document(protocol.channel, protocol.integers, protocol.bits)
    document["step"][0][0] = str(int(document["step"][0][0]) - 1)
    with pytest.raises(DataError, match=r"every row of 'step' to sum to 2\^62"):
        documents.channel_from(document)


def test_it_releases_what_its_table_says(protocol):
    codes = np.repeat([[1, 2]], 40_000, axis=0)
    reports = protocol.release(codes, rng=rldp.Simulation(1))
    expected = 40_000 * protocol.matrix[1, 2]
    found = np.bincount(reports, minlength=6)
    # a χ² test with 5 degrees of freedom that fails once in 10^6 times
    assert ((found - expected) ** 2 / expected).sum() < 35.9
    assert protocol.report_labels.all == tuple(f"y{y}" for y in range(6))
    assert protocol.reads_sensitive


def test_estimates_come_from_its_reports(protocol):
    rng = np.random.default_rng(2)
    cells = rng.choice(6, 200_000, p=TABLE.p_su.ravel())
    codes = np.stack(np.divmod(cells, 3), axis=1)
    e = protocol.estimate(protocol.release(codes, rng=rldp.Simulation(3)))
    assert np.abs(e.estimate - TABLE.p_su).max() < 6 * e.std_error.max()


def test_its_risk_is_that_of_its_matrix(protocol):
    own = rldp.risk(protocol.channel, protocol.uncertainty)
    dense = rldp.risk(DenseChannel(protocol.matrix), protocol.uncertainty)
    assert own.repeated == dense.repeated
    assert own.attackers == dense.attackers
    assert own.audit.epsilon == dense.audit.epsilon


# --- entries -------------------------------------------------------------------------------------


def test_a_channel_without_an_entry_is_refused_by_name():
    class Unknown(DenseChannel):
        """Inherits a kind that is not its own."""

    channel = Unknown([[[0.5, 0.5]], [[0.5, 0.5]]])
    with pytest.raises(ParameterError, match=r"Unknown: put @rldp\.channel\.register"):
        kind_of(channel)
    with pytest.raises(ParameterError, match="a kind of its own"):
        register(Unknown)


def test_a_kind_cannot_be_taken_twice():
    class Second(DenseChannel):
        kind = "dense"

    with pytest.raises(ParameterError, match="'dense', which DenseChannel has"):
        register(Second)


@pytest.mark.parametrize("channel", [rldp.IndependentChannel, rldp.UnaryChannel])
def test_channels_that_cannot_be_listed_say_so(channel):
    half = np.full((2, 2), 0.5)
    made = (
        channel(half, half)
        if channel is rldp.IndependentChannel
        else channel(np.full((2, 2, 2), 0.5), half)
    )
    with pytest.raises(ParameterError, match="outputs can be listed"):
        made.listed(made.rounded(8))
