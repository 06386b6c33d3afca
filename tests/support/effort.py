"""Which of many examples are run: by `make test-quick`, by `make test`, and all of them."""

from __future__ import annotations

import os

import pytest

IS_WHOLE = os.environ.get("RLDP_WHOLE_TESTS", "") not in ("", "0")


def many(examples, quick=3):
    """All these examples as parameters of a test, the first few of them for a quick run."""
    return [
        pytest.param(example, marks=[] if i < quick else pytest.mark.slow)
        for i, example in enumerate(examples)
    ]


def share(n, of=4):
    """How many of n examples that are drawn at random: a quarter, all by `make test-whole`."""
    return n if IS_WHOLE else n // of
