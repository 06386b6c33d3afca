"""Where the files of the tests are, and the stored reference cases."""

from __future__ import annotations

import json
from pathlib import Path

TESTS = Path(__file__).parent.parent
ROOT = TESTS.parent
DATA = TESTS / "data"
VECTORS = TESTS / "vectors"
JAVASCRIPT = ROOT / "clients" / "js"

REFERENCE = json.loads((DATA / "reference_cases.json").read_text())
