"""Which of many examples `make test-quick` runs."""

from __future__ import annotations

import pytest


def many(examples, quick=3):
    """All these examples as parameters of a test, the first few of them for a quick run."""
    return [
        pytest.param(example, marks=[] if i < quick else pytest.mark.slow)
        for i, example in enumerate(examples)
    ]
