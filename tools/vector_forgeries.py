"""Test vectors that are well formed and lie: forged signatures, claims and certificates."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from vector_parts import (
    CHANNELS,
    KEY,
    OTHER_KEY,
    SCHEMA,
    SETS,
    Document,
    Vector,
    changed,
    hundredths,
    proved,
    public,
    signed,
    text,
    true_epsilon,
    whole,
)

_ORDER = 2**252 + 27742317777372353535851937790883648493  # of Ed25519


def forged_signatures() -> Iterator[Vector]:
    """Signatures that are misspelled, and those that are not of this file or not by this key."""
    good, other = public(CHANNELS["choice"]), public(CHANNELS["dense"])
    made = signed(good)
    entry = made["signatures"][0]
    digits = bytes.fromhex(entry["signature"])
    S = int.from_bytes(digits[32:], "little") + _ORDER
    again = (digits[:32] + S.to_bytes(32, "little")).hex()
    spelled: dict[str, tuple[Any, str]] = {
        "null": (None, "signatures are null"),
        "none": ([], "an empty list of signatures"),
        "capitals": ([entry | {"signature": entry["signature"].upper()}], "digits in capitals"),
        "short": ([entry | {"signature": entry["signature"][:-2]}], "a signature cut short"),
        "long": ([entry | {"signature": entry["signature"] + "00"}], "a signature with more"),
        "extra": ([entry | {"extra": None}], "an unknown entry"),
        "twice": ([entry, entry], "two signatures by one key"),
    }
    for name, (value, shows) in spelled.items():
        content = _plain(changed(made, "signatures", to=value))
        yield f"signatures-{name}", "structure", content, shows
    forged: dict[str, tuple[Document, str]] = {
        "missing": (json.loads(text(good)), "no signature at all"),
        "other-key": (signed(good, OTHER_KEY), "a signature by another key"),
        "other-key-renamed": (
            made | {"signatures": [signed(good, OTHER_KEY)["signatures"][0] | _by(entry)]},
            "a signature by another key under the name of this one",
        ),
        "other-file": (signed(other) | _content(good), "the signature of another file"),
        "changed": (
            made | _content(changed(good, "epsilon", to=0.01)),
            "another ε, with a hash that fits and the old signature",
        ),
        "one-bit": (
            made | {"signatures": [entry | {"signature": _flipped(entry["signature"])}]},
            "a signature with one bit changed",
        ),
        "malleable": (
            made | {"signatures": [entry | {"signature": again}]},
            "the same signature with S + L for S",
        ),
        "bare-hash": (
            made | {"signatures": [{**_by(entry), "signature": _bare(made["hash"])}]},
            "a signature of the hash without the words before it",
        ),
    }
    for name, (document, shows) in forged.items():
        yield f"signed-{name}", "signature", _plain(document), shows


def _by(entry: Document) -> Document:
    return {"public_key": entry["public_key"]}


def _content(document: Document) -> Document:
    made: Document = json.loads(text(document))
    return made


def _flipped(digits: str) -> str:
    return f"{int(digits[0], 16) ^ 1:x}{digits[1:]}"


def _bare(digest: str) -> str:
    return KEY.sign(digest.encode()).hex()


def _plain(document: Document) -> str:
    return json.dumps(document, indent=0) + "\n"


def forged_claims() -> Iterator[Vector]:
    """An ε below the truth, for every set and channel."""
    for kind in SETS:
        for name, channel in CHANNELS.items():
            document = whole(kind, channel, 1.0)
            truth, provable = true_epsilon(document)
            document = proved(changed(document, "epsilon", to=hundredths(provable, up=True)))
            document["epsilon"] = hundredths(truth, up=False)
            shows = f"claims ε = {document['epsilon']}, the truth is {truth:.3f}"
            yield f"forged-{kind}-{name}", "proof", text(document), shows
    yield (
        "total-variation-by-cell",
        "proof",
        text(_by_cell()),
        "blocks are cells, of which the lemma of two S values does not speak: claims ε = 0.005, "
        "the truth is 6.21",
    )
    yield (
        "total-variation-two-unseen",
        "proof",
        text(_two_unseen()),
        "two S values without records, of which nothing is known: claims ε = 1, the truth is 2",
    )


def _by_cell() -> Document:
    half, low, high = str(2**19), "1049", str(2**20 - 1049)  # a half, and a half ± 0.499
    own = [[[high, low], [low, high]], [[half, half]] * 2]
    cells = {"kind": "unary", "bits": 20, "own": own, "other": [[half, half]] * 4}
    document = whole("total-variation", cells, 0.005, [[10**6] * 2] * 2)
    return changed(document, "certificate", "radius", to="17/10000")


def _two_unseen() -> Document:
    """Both within e of what is seen, and e² from each other."""
    rows = [["1024", "1024", "2048"], ["2783", "377", "936"], ["377", "2783", "936"]]
    dense = {"kind": "dense", "bits": 12, "Q": [[row] * 2 for row in rows]}
    schema = SCHEMA | {"sensitive": [{"name": "ill", "labels": ["no", "yes", "unknown"]}]}
    document = whole("total-variation", dense, 1.0, [[5000, 5000], [0, 0], [0, 0]], schema)
    return changed(document, "certificate", "radius", to="378/10000")


def forged_certificates(old: dict[str, Document]) -> Iterator[Vector]:
    """Numbers that prove less than they must; `old` has files with joint multipliers."""
    for kind in ("chi-square", "renyi", "kl"):
        good = proved(changed(whole(kind, CHANNELS["dense"], 1.0), "epsilon", to=0.49))
        small = changed(good, "certificate", "quantile", to="781/100")
        yield f"quantile-{kind}", "proof", text(small), "7.81 for the quantile 7.8147"
    small = changed(
        whole("kl-finite", CHANNELS["dense"], 1.0), "certificate", "quantile", to="943/50"
    )
    yield "quantile-kl-finite", "proof", text(small), "18.86 for 2nb = 18.8646"
    good = proved(whole("chi-square", CHANNELS["dense"], 0.49))
    for name, place, value in (("upper", (0, 0), "2599"), ("lower", (1, 1), "1897")):
        inside = changed(good, "certificate", "multipliers", name, *place, to=value)
        yield f"multiplier-{name}", "proof", text(inside), "a multiplier inside its column"
    nothing = changed(good, "certificate", "multipliers", to=None)
    yield "multipliers-none", "proof", text(nothing), "a claim that needs multipliers has none"
    small = changed(
        whole("total-variation", CHANNELS["dense"], 0.6), "certificate", "radius", to="75/1000"
    )
    yield "radius", "proof", text(small), "0.075 for the radius 0.07507"
    records = changed(good, "uncertainty", "counts", to=[[60, 40], [30, 70]])
    yield "fewer-records", "proof", text(records), "the proof of ten times as many records"
    yield (
        "epsilon-over-100",
        "proof",
        text(whole("all", CHANNELS["dense"], 101.0)),
        "an ε above 100",
    )
    zero = changed(
        whole("all", CHANNELS["unary"], 50.0), "channel", "other", 0, to=["0", "2000", "2096"]
    )
    yield "identifying-symbol", "proof", text(zero), "a symbol that one S value alone can show"
    for name, document in old.items():
        eta = changed(document, "certificate", "joint", 0, -1, to="-1")
        yield f"joint-eta-{name}", "proof", text(eta), "a negative η"
        free = changed(document, "certificate", "joint", 0, -1, to="0")
        yield f"joint-free-{name}", "proof", text(free), "budget at no price, which bounds nothing"
        none = changed(document, "certificate", "joint", to=[])
        yield f"joint-none-{name}", "proof", text(none), "pairs that need joint multipliers"
        low = changed(document, "epsilon", to=document["epsilon"] * 0.99)
        yield f"joint-lower-{name}", "proof", text(low), "one percent less than is proved"
