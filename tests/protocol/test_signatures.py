"""Signatures of protocol files, from the key to the check; and what a public file may say."""

from __future__ import annotations

import json
import math
import shutil
import stat
from pathlib import Path

import pytest

import rldp
from rldp.cli import main
from rldp.protocol.signatures import write_new_signing_key
from tests.protocol.test_vectors import client, needs_node
from tests.support.files import VECTORS

F = rldp.ChiSquareSet(rldp.Table([[30, 10], [10, 50]]))


P = rldp.design(F, 1, "grr-cr")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder to work in: a whole protocol, its public version, two keys."""
    P.save(tmp_path / "whole.json")
    P.public().save(tmp_path / "public.json")
    for name in ("team.key", "other.key"):
        write_new_signing_key(tmp_path / name)
    monkeypatch.chdir(tmp_path)


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main([*words])
    out, err = capsys.readouterr()
    return code, out, err


def test_a_new_key_is_for_its_owner_alone_and_never_replaced(capsys):
    code, out, _ = shown(capsys, "new-signing-key", "new.key", "--json")
    made = json.loads(out)
    assert code == 0
    assert Path(made["public"]).read_text() == made["public_key"] + "\n"
    assert stat.S_IMODE(Path("new.key").stat().st_mode) == 0o600
    before = Path("new.key").read_bytes()
    assert shown(capsys, "new-signing-key", "new.key")[0] == 2
    Path("new.key.pub").unlink()
    assert shown(capsys, "new-signing-key", "new.key")[0] == 2
    assert Path("new.key").read_bytes() == before
    assert not Path("new.key.pub").exists()


def test_a_key_that_others_may_read_signs_nothing(capsys):
    Path("team.key").chmod(0o644)
    code, _, err = shown(capsys, "sign", "public.json", "--key", "team.key")
    assert (code, "chmod 600" in err) == (2, True)
    assert not Path("public.json.sig").exists()


@pytest.mark.slow
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("file", ["whole.json", "public.json"])
def test_a_signed_file_is_checked_by_everyone(file, inside, capsys):
    words = ["sign", file, "--key", "team.key", "--json", *["--inside"] * inside]
    code, out, _ = shown(capsys, *words)
    key = json.loads(out)["public_key"]
    assert (code, key) == (0, Path("team.key.pub").read_text().strip())
    assert rldp.load(file, signed_by="team.key.pub").fingerprint == rldp.load(file).fingerprint
    code, out, _ = shown(capsys, "verify", file, "--signed-by", key, "--json")
    assert (code, json.loads(out)["signed_by"]) == (0, key)
    assert json.loads(out)["proved"] is (file == "whole.json")
    code, _, err = shown(capsys, "verify", file, "--signed-by", "other.key.pub")
    assert (code, "no signature by the key" in err) == (1, True)
    if not inside:
        shutil.move(f"{file}.sig", "elsewhere.sig")
        assert shown(capsys, "verify", file, "--signed-by", key)[0] == 1
        beside = ["--signature", "elsewhere.sig"]
        assert shown(capsys, "verify", file, "--signed-by", key, *beside)[0] == 0


def test_two_keys_sign_inside_one_file_and_the_fingerprint_stays():
    before = rldp.load("public.json").fingerprint
    for key in ("team.key", "other.key", "team.key"):
        rldp.sign("public.json", key, inside=True)
    assert len(json.loads(Path("public.json").read_text())["signatures"]) == 2
    for key in ("team.key.pub", "other.key.pub"):
        assert rldp.load("public.json", signed_by=key).fingerprint == before
    assert rldp.verify("whole.json", vouches="public.json").epsilon == 1


def test_a_signature_of_another_file_is_refused(capsys):
    rldp.design(F, 2.0, "grr-cr").public().save("second.json")
    rldp.sign("second.json", "team.key")
    shutil.move("second.json.sig", "public.json.sig")
    code, _, err = shown(capsys, "verify", "public.json", "--signed-by", "team.key.pub")
    assert (code, "is not what the key" in err) == (1, True)


@pytest.mark.parametrize("cut", [0, 1, 100, -2])
def test_a_truncated_signature_file_is_refused(cut, capsys):
    rldp.sign("public.json", "team.key")
    path = Path("public.json.sig")
    path.write_bytes(path.read_bytes()[:cut])
    code, _, err = shown(capsys, "verify", "public.json", "--signed-by", "team.key.pub")
    assert (code, "public.json.sig" in err) == (2, True)


def test_nothing_is_signed_that_does_not_load_and_nothing_is_replaced_unasked(capsys):
    text = Path("public.json").read_text()
    Path("bad.json").write_text(text.replace("grr-cr", "GRR"))
    assert shown(capsys, "sign", "bad.json", "--key", "team.key")[0] == 2
    assert not Path("bad.json.sig").exists()
    assert shown(capsys, "sign", "public.json", "--key", "team.key")[0] == 0
    first = Path("public.json.sig").read_bytes()
    assert shown(capsys, "sign", "public.json", "--key", "other.key")[0] == 2
    assert Path("public.json.sig").read_bytes() == first
    assert shown(capsys, "sign", "public.json", "--key", "other.key", "--force")[0] == 0
    words = ["sign", "public.json", "--key", "other.key", "--force", "-o", "public.json"]
    assert shown(capsys, *words)[0] == 2
    assert Path("public.json").read_text() == text


@pytest.mark.parametrize("key", ["nobody.pub", "team.key", "AB" * 32, "ab" * 31])
def test_what_is_no_public_key_is_an_error_of_the_caller(key, capsys):
    code, _, err = shown(capsys, "verify", "public.json", "--signed-by", key)
    assert (code, "public key" in err) == (2, True)


@needs_node
def test_the_client_checks_a_detached_signature(tmp_path):
    key = Path("team.key.pub").read_text().strip()
    files = [tmp_path / "public.json"]
    rldp.sign("public.json", "team.key")
    options = {"signedBy": key, "signature": str(tmp_path / "public.json.sig")}
    assert client(tmp_path, files, **options) == [rldp.load("public.json").fingerprint]
    assert "no signature" in client(tmp_path, files, signedBy=key)[0]
    other = Path("other.key.pub").read_text().strip()
    assert "no signature" in client(tmp_path, files, **options | {"signedBy": other})[0]
    assert "64 hexadecimal" in client(tmp_path, files, **options | {"signedBy": key.upper()})[0]


# --- public files do not pretend -----------------------------------------------------------------


def test_a_public_protocol_says_that_it_proves_nothing():
    whole, public = rldp.load("whole.json"), rldp.load("public.json")
    assert (whole.is_proved, public.is_proved) == (True, False)
    assert "without a proof" in repr(public)
    with pytest.raises(rldp.CertificateError, match="public file"):
        rldp.verify("public.json")


def test_a_protocol_that_claims_too_much_is_not_proved():
    made = {name: getattr(P, name) for name in P.__dataclass_fields__}
    assert not rldp.ReleaseProtocol(**made | {"epsilon": 0.5}).is_proved


def test_verifying_a_public_file_proves_nothing_and_says_what_its_table_promises(capsys):
    code, out, err = shown(capsys, "verify", "public.json")
    assert code == 1
    assert "Nothing was proved" in err
    assert "rldp verify WHOLE --vouches public.json" in err
    assert "proved:" not in out
    audit = rldp.audit(rldp.load("whole.json"))
    code, out, _ = shown(capsys, "verify", "public.json", "--json")
    summary = json.loads(out)
    assert (code, summary["proved"], summary["claimed"]) == (1, False, 1.0)
    for name in ("epsilon_all", "epsilon_given_u", "epsilon_plain"):
        assert float(summary[name]) == getattr(audit, name)


def test_a_report_of_s_itself_is_called_what_it_is(capsys):
    vector = VECTORS / "accept" / "public-identity.json"
    code, out, err = shown(capsys, "verify", str(vector))
    assert (code, out.count("∞")) == (1, 3)
    Path("data.csv").write_text("ill,area\nno,north\nyes,south\n")
    code, out, err = shown(capsys, "release", str(vector), "data.csv", "-o", "out.csv")
    assert code == 0
    assert err.count("∞") == 3
    assert "a claim that this file does not prove" in " ".join(err.split())
    assert "claims ε = 0.01" in out


def test_promises_are_rounded_up(capsys, tmp_path):
    p = rldp.design(rldp.AllDistributions(F.table), 1 / 3, "srr")
    p.public().save(tmp_path / "p.json")
    _, out, _ = shown(capsys, "verify", str(tmp_path / "p.json"))
    level = float(out.split("over all distributions")[1].split("ε = ")[1].split()[0])
    assert level == pytest.approx(1 / 3, abs=1e-4)
    assert level >= rldp.audit(p).epsilon_all


# --- one vouches for the other -------------------------------------------------------------------


def test_a_whole_file_vouches_for_its_public_version_alone(capsys):
    words = ["verify", "whole.json", "--vouches", "public.json"]
    code, out, _ = shown(capsys, *words)
    assert (code, "exactly its public version" in out) == (0, True)
    assert json.loads(shown(capsys, *words, "--json")[1])["vouches"] == "public.json"
    rldp.design(F, 1.0, "srr").public().save("other.json")
    code, _, err = shown(capsys, "verify", "whole.json", "--vouches", "other.json")
    assert (code, "differ in name, channel" in err) == (1, True)
    code, _, err = shown(capsys, "verify", "whole.json", "--vouches", "whole.json")
    assert (code, "not a public one" in err) == (1, True)
    assert shown(capsys, "verify", "public.json", "--vouches", "public.json")[0] == 2


def test_a_public_file_with_another_claim_is_not_vouched_for():
    p = rldp.load("public.json")
    made = {name: getattr(p, name) for name in p.__dataclass_fields__}
    rldp.PublicProtocol(**made | {"epsilon": 0.5}).save("less.json")
    with pytest.raises(rldp.CertificateError, match="differ in epsilon"):
        rldp.verify("whole.json", vouches="less.json")


def test_a_whole_file_that_does_not_prove_its_claim_vouches_for_nothing():
    p = rldp.load("whole.json")
    made = {name: getattr(p, name) for name in p.__dataclass_fields__}
    forged = rldp.ReleaseProtocol(**made | {"epsilon": 0.5})
    forged.save("forged.json")
    forged.public().save("public-forged.json")
    with pytest.raises(rldp.CertificateError, match="does not prove"):
        rldp.verify("forged.json", vouches="public-forged.json")


def test_integers_and_floats_are_one_epsilon():
    p = rldp.load("public.json")
    made = {name: getattr(p, name) for name in p.__dataclass_fields__}
    again = rldp.PublicProtocol(**made | {"epsilon": 1})
    assert again.fingerprint == p.fingerprint
    assert again.document() == p.document()
    assert math.isclose(again.epsilon, 1.0)
    vectors = VECTORS / "accept"
    one, float_one = (
        rldp.load(vectors / f"public-{name}.json") for name in ("integer-epsilon", "choice")
    )
    assert one.fingerprint == float_one.fingerprint


# --- the public version --------------------------------------------------------------------------


def test_the_public_version_is_written_without_the_sample(capsys):
    code, out, _ = shown(capsys, "public", "whole.json", "-o", "new.json", "--json")
    assert (code, json.loads(out)["output"]) == (0, "new.json")
    assert Path("new.json").read_bytes() == Path("public.json").read_bytes()
    assert "counts" not in Path("new.json").read_text()
    before = Path("new.json").read_bytes()
    Path("new.json").write_bytes(b"mine")
    code, _, err = shown(capsys, "public", "whole.json", "-o", "new.json")
    assert (code, "--force" in err) == (2, True)
    assert Path("new.json").read_bytes() == b"mine"
    assert shown(capsys, "public", "whole.json", "-o", "new.json", "--force")[0] == 0
    assert Path("new.json").read_bytes() == before


def test_the_whole_file_is_never_replaced_by_its_public_version(capsys):
    before = Path("whole.json").read_bytes()
    assert shown(capsys, "public", "whole.json", "-o", "whole.json", "--force")[0] == 2
    assert Path("whole.json").read_bytes() == before
    assert shown(capsys, "public", "public.json", "-o", "new.json")[0] == 2
