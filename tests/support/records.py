"""What a record of `rldp.compare` holds, in order."""

from __future__ import annotations

ENTRIES = (
    "protocol",
    "epsilon",
    "utility",
    "normalised",
    "error",
    "reports",
    "estimable",
    "epsilon_given_u",
    "epsilon_all",
    "epsilon_given_part",
    "seconds",
)
