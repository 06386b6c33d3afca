"""Forged claims about sets that stand on evidence: ``python -m benchmarks.forged_evidence 10000``.

Both Python checkers see every claim. Exit code 1 if one of them accepts any.
"""

from __future__ import annotations

import sys
from collections import Counter
from itertools import islice

import numpy as np

from rldp.intervals import check_with_intervals
from rldp.proof import ProofError, check
from tests.support.evidence import CASES, claim, forgeries, set_of


def main() -> int:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    random, tried, accepted = np.random.default_rng(1), Counter[str](), Counter[str]()
    for case in CASES:
        honest = claim(set_of(case), np.array(case["Q"]), case["apart"] * (1 + 1e-5))
        check(honest)
        check_with_intervals(honest)
        for kind, made in islice(forgeries(honest, case["joint"], random), -(-n // len(CASES))):
            tried[kind] += 1
            for checker in (check, check_with_intervals):
                try:
                    checker(made)
                except ProofError:
                    continue
                accepted[kind] += 1
    print(f"{tried.total():,} forged claims: {dict(tried)}; accepted: {accepted.total()}")
    return 1 if accepted else 0


if __name__ == "__main__":
    sys.exit(main())
