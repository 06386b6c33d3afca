"""One Hypothesis profile for all tests: the same examples on every run, and no clock."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "laws",
    deadline=None,
    derandomize=True,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],  # a slow machine is no failure
)
settings.load_profile("laws")
