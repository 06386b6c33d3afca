"""Counts of what a collector did since it started, as Prometheus reads them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping

_HELP = {
    "rldp_reports_total": ("counter", "Reports by what became of them."),
    "rldp_requests_total": ("counter", "Requests with reports, by status."),
    "rldp_commits_total": ("counter", "Transactions."),
    "rldp_waiting_reports": ("gauge", "Reports that wait for the disk."),
    "rldp_store_failing": ("gauge", "1 if the last transaction failed."),
}
_SPAN = 60.0  # seconds over which the rate is taken


class Metrics:
    """Counters in memory; they know numbers, and no report."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.reports: Counter[str] = Counter()
        self.requests: Counter[int] = Counter()
        self._recent: deque[tuple[float, int]] = deque()

    @property
    def stored(self) -> int:
        """New reports since the start."""
        return self.reports["stored"]

    def rate(self, now: float) -> float:
        """New reports in a second, over the last minute; `now` is any clock that goes on."""
        self._recent.append((now, self.stored))
        while len(self._recent) > 2 and now - self._recent[1][0] > _SPAN:
            self._recent.popleft()
        then, before = self._recent[0]
        return (self.stored - before) / (now - then) if now > then else 0.0

    def text(self, gauges: Mapping[str, float]) -> str:
        """The exposition format of Prometheus."""
        values: dict[str, dict[str, float]] = {
            "rldp_reports_total": {f'{{state="{k}"}}': n for k, n in sorted(self.reports.items())},
            "rldp_requests_total": {
                f'{{status="{k}"}}': n for k, n in sorted(self.requests.items())
            },
            **{name: {"": value} for name, value in gauges.items()},
        }
        lines = []
        for name, samples in values.items():
            kind, about = _HELP[name]
            lines += [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
            lines += [f"{name}{label} {value:g}" for label, value in samples.items()]
        return "\n".join(lines) + "\n"
