"""Write the test vectors of protocol files: ``python tools/make_vectors.py tests/vectors``.

Files whose names start with `first-` were written by version 0.1.0 and stay as they are, and so do
those with `evidence-`, whose multipliers a solver found. All others are made here, the same every
time, with an index that says what each of them shows.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from vector_layer_rejects import refused_layers
from vector_layers import accepted_layers
from vector_parts import (
    CHANNELS,
    KEY,
    SCHEMA,
    SETS,
    Document,
    Vector,
    changed,
    from_text,
    hundredths,
    proved,
    public,
    signed,
    text,
    true_epsilon,
    whole,
)
from vector_readers import accepted_readers, refused_readers
from vector_rejects import rejects

from rldp.io.json_files import document_text

_ODD = {
    "sensitive": [{"name": "__proto__", "labels": ["", 'b|;\\ "\x7f\u0000']}],
    "useful": [
        {"name": "ü | 1", "labels": ["\U0001f600", "\uffff"]},
        {"name": "constructor", "labels": ["e\u0301"]},
    ],
}
_FORGED = ("dense-chi-square", "independent-renyi", "unary-kl")  # have joint multipliers


def accepts() -> Iterator[Vector]:
    """Files that every reader must take."""
    for kind in SETS:
        for name, channel in CHANNELS.items():
            document = whole(kind, channel, 1.0)
            document["epsilon"] = hundredths(true_epsilon(document)[1], up=True)
            yield f"whole-{kind}-{name}", "proof", text(proved(document)), f"{name} over {kind}"
        yield f"unseen-{kind}", "proof", text(_unseen(kind)), "an S value without records"
    shared = whole("total-variation", CHANNELS["dense"], 0.49)
    yield (
        "whole-total-variation-shared",
        "proof",
        text(shared),
        "two S values share one budget: each by itself would need ε = 0.51",
    )
    for name, channel in CHANNELS.items():
        yield f"public-{name}", "structure", text(public(channel)), f"a public {name} channel"
    good = public(CHANNELS["choice"])
    integer = changed(good, "epsilon", to=1)
    yield (
        "public-integer-epsilon",
        "structure",
        text(integer),
        "ε is the integer 1: the hash is that of 1, the fingerprint that of 1.0",
    )
    escaped = json.dumps(json.loads(text(good)), indent=3, sort_keys=True)
    escaped = escaped.replace('"epsilon": 1.0', '"epsilon" :\t10.0E-1').replace("no", "n\\u006f")
    yield "public-spelling", "structure", escaped, "other blanks, order, escapes; the same hash"
    odd = public(CHANNELS["choice"], schema=_ODD)
    yield "public-odd-texts", "structure", text(odd), "texts that need escapes or look like code"
    bit = {"kind": "dense", "bits": 1, "Q": [[["1", "1"], ["2", "0"]], [["0", "2"], ["1", "1"]]]}
    yield "public-one-bit", "structure", text(public(bit)), "the shortest table"
    top = str(2**62)
    sure = {"kind": "dense", "bits": 62, "Q": [[[top, "0"]] * 2, [["0", top]] * 2]}
    yield (
        "public-identity",
        "structure",
        text(public(sure, 0.01)),
        "reports S itself and claims ε = 0.01: well formed, and nothing of it is proved",
    )
    alone = public(
        {"kind": "dense", "bits": 2, "Q": [[["3", "1"]], [["1", "3"]]]},
        schema=SCHEMA | {"useful": []},
    )
    yield "public-no-useful", "structure", text(alone), "no useful column: U has one value"
    yield "public-signed", "signature", document_text(signed(good)), "a signature inside"
    both = signed(whole("all", CHANNELS["choice"], 1.5))
    yield "whole-signed", "signature", document_text(both), "a whole file with a signature inside"


def _unseen(kind: str) -> Document:
    """Randomised response on three S values, one of them without records."""
    counts = [[600, 400], [300, 700], [0, 0]]
    schema = SCHEMA | {"sensitive": [{"name": "ill", "labels": ["no", "yes", "unknown"]}]}
    rows = [[["2048" if y == s else "1024" for y in range(3)]] * 2 for s in range(3)]
    channel = {"kind": "dense", "bits": 12, "Q": rows}
    return proved(whole(kind, channel, 0.7, counts, schema))


def main() -> None:
    """Write the vectors and their index."""
    if len(sys.argv) != 2:
        sys.exit("Usage: python tools/make_vectors.py FOLDER")
    folder = Path(sys.argv[1])
    shown = json.loads((Path(__file__).parent / "evidence_vectors.json").read_text("utf-8"))
    index: dict[str, list[dict[str, str]]] = {"accept": [], "reject": []}
    old = sorted((folder / "accept").glob("first-*.json"))
    documents = {path.stem: from_text(path.read_text(encoding="utf-8")) for path in old}
    for name, document in documents.items():
        level = "structure" if document["format"] == "rldp-client" else "proof"
        entry = {"file": f"accept/{name}.json", "level": level, "shows": "written by 0.1.0"}
        index["accept"].append(entry)
    forged = {name: documents[f"first-{name}"] for name in _FORGED}
    taken = chain(accepts(), accepted_layers(forged), accepted_readers())
    refused = chain(rejects(forged), refused_layers(), refused_readers())
    for side, vectors in (("accept", taken), ("reject", refused)):
        for path in (folder / side).glob("*.json"):
            if not path.name.startswith(("first-", "evidence-")):
                path.unlink()
        for name, level, content, shows in vectors:
            path = folder / side / f"{name}.json"
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
            index[side].append({"file": f"{side}/{name}.json", "level": level, "shows": shows})
        index[side] += shown[side]
    lines = {
        side: "[\n" + ",\n".join(json.dumps(e, ensure_ascii=False) for e in entries) + "\n]"
        for side, entries in index.items()
    }
    key = KEY.public_key().public_bytes_raw().hex()
    body = ",\n".join(f'"{side}": {entries}' for side, entries in lines.items())
    (folder / "index.json").write_text(f'{{\n"signed_by": "{key}",\n{body}\n}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
