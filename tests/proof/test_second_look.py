"""Loading and verifying audit in floats what the exact checker accepted, and refuse on dispute."""

from __future__ import annotations

import json

import numpy as np
import pytest

import rldp
from rldp.auditing.audit import worst_log_ratio
from rldp.leakage import worst_pairs
from rldp.proof import Proof
from rldp.protocol import files
from rldp.protocol.documents import document_hash
from tests.support import forgeries


@pytest.fixture
def credulous(monkeypatch):
    """A checker that accepts everything."""
    monkeypatch.setattr(files, "check", lambda d: Proof(d["epsilon"], "anything", 1, 0.0))


def lowered(p: rldp.ReleaseProtocol, epsilon: float, path) -> None:
    """The same protocol file with a smaller ε and a hash that fits."""
    document = p.document() | {"epsilon": epsilon}
    path.write_text(json.dumps(document | {"hash": document_hash(document)}))


@pytest.mark.usefixtures("credulous")
@pytest.mark.parametrize("name", ["ir", "grr-cr", "ue-cr", "polyopt", "ue"])
@pytest.mark.parametrize("kind", ["chi-square", "kl", "total-variation"])
def test_a_false_claim_that_the_checker_accepts_is_refused_as_a_bug(name, kind, tmp_path):
    F = forgeries.SETS[kind](rldp.Table([[60, 30], [25, 75]]), 0.05)
    p, path = rldp.design(F, 1.0, name), tmp_path / "p.rldp.json"
    lowered(p, 0.5, path)
    for read in (rldp.load, rldp.verify):
        with pytest.raises(rldp.CertificateError, match="report it as a bug"):
            read(path)
    lowered(p, p.epsilon, path)
    assert rldp.load(path).epsilon == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("kind", forgeries.SETS)
def test_suspect_pairs_tell_what_the_whole_audit_tells(kind):
    rng = np.random.default_rng(8)
    for channel_kind in forgeries.CHANNELS:
        for n_unseen in range(3):
            base = forgeries.random_base(rng, channel_kind, kind, n_unseen)
            comparisons, shape = base.channel.comparisons(), (base.F.table.n_s,) * 2
            truth = worst_log_ratio(base.channel, base.F)
            for epsilon in (0.3 * truth, truth * (1 - 1e-6)):
                if epsilon < truth:
                    excess = worst_pairs.level_above(comparisons, base.F, np.full(shape, epsilon))
                    assert excess == pytest.approx((epsilon, truth), rel=1e-9)
            enough = np.full(shape, truth * (1 + 1e-9) + 1e-12)
            assert worst_pairs.level_above(comparisons, base.F, enough) is None
