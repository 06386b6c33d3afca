"""Every exception from a check has its reason, which a reviewer may not see."""

from __future__ import annotations

import io
import re
import tokenize

import pytest

from tests.support.files import ROOT

SOURCE = ROOT / "src" / "rldp"
EXCEPTION = re.compile(r"# *(noqa|type: *ignore|pragma)\b", re.IGNORECASE)
EXPLAINED = re.compile(r"# (noqa: [A-Z0-9, ]+|type: ignore\[[a-z, -]+\])  # \w.+")


def unexplained(code: str) -> list[str]:
    """Comments that silence a checker without a rule and a reason."""
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    comments = [token for token in tokens if token.type == tokenize.COMMENT]
    return [
        f"line {token.start[0]}: {token.string}"
        for token in comments
        if EXCEPTION.search(token.string) and not EXPLAINED.fullmatch(token.string)
    ]


def test_every_exception_from_a_check_says_why():
    found = [
        f"{path.relative_to(ROOT)}, {line}"
        for folder in ("src", "tests", "tools", "benchmarks")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line in unexplained(path.read_text())
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "comment",
    [
        "# noqa",
        "# noqa: F401",
        "# noqa: F401 because",
        "# noqa: F401  #",
        "# noqa  # because",
        "#noqa: F401  # because",
        "# type: ignore",
        "# type: ignore[misc]",
        "# type: ignore  # because",
        "# pragma: no cover",
    ],
)
def test_an_exception_without_a_reason_is_found(comment):
    assert len(unexplained(f"import os  {comment}\n")) == 1


def test_an_exception_with_a_reason_passes():
    assert unexplained("import os  # noqa: F401  # whether it is there\n") == []
    assert unexplained("x = f()  # type: ignore[misc, no-any-return]  # it has no types\n") == []
    assert unexplained('text = "# noqa"\n') == []
