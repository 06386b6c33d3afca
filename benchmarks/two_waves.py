"""Simulated surveys in two waves: ``python -m benchmarks.two_waves 500``.

Each survey draws a first wave, designs a second one (IR) over its reports, draws that, and
estimates from both. Told are the share of intervals that hold the truth, and the share of surveys
whose second wave tells more at the truth than it promises over F.
"""

from __future__ import annotations

import sys

import numpy as np

import rldp
from tests.waves.test_waves import TABLES, first_over, survey, table_of

_N = 3000  # people in each wave


def main() -> None:
    runs = -(-(int(sys.argv[1]) if len(sys.argv) > 1 else 500) // len(TABLES))
    total, held, broken = 0, 0, 0
    for name, rows in TABLES.items():
        P, hits, more = np.array(rows), 0, 0
        first = first_over(P)
        for i in range(runs):
            y = survey(first, P, _N, 10_000 + i)
            F = rldp.ReportSet(first, y)
            second = rldp.design(F, 1.0, "ir", goal="cells", epsilon_given_u=None, epsilon_all=None)
            truth = rldp.audit(second.matrix, rldp.KnownDistribution(table_of(P)))
            more += truth.epsilon > 1 + 1e-9
            e = rldp.pooled([(first, y), (second, survey(second, P, _N, 50_000 + i))])
            hits += int(((e.low <= P) & (e.high >= P)).sum())
        print(
            f"{name}: {hits / P.size / runs:.4f} of the intervals hold, {more} of {runs} exceed ε"
        )
        total, held, broken = total + runs * P.size, held + hits, broken + more
    print(f"all: {held / total:.4f} of the intervals, {broken} of {3 * runs} surveys exceed ε")


if __name__ == "__main__":
    main()
