"""Where the weights of estimates are best: fixed before any report is seen."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from rldp._types import Array
from rldp.channel import Channel
from rldp.tables.table import Table

INFLUENCE = "influence"  # option of a protocol: the limit, in digits that give the same number
_POSITIVE = 1e-9  # share that keeps every cell above 0


def design_point(channel: Channel, table: Table | None) -> Array:
    """The frequencies of the design sample plus one record per cell; without one, uniform ones."""
    n_s, n_u = channel.shape
    if table is None:
        return np.full(n_s * n_u, 1 / (n_s * n_u))
    counts = table.counts.ravel() + 1.0
    return np.asarray(counts / counts.sum())


def weights_point(p: Any) -> Array:
    """The same for a protocol, or for a channel with its table.

    If its design limits the influence of a report, the point is where that was checked: the
    frequencies of the sample.
    """
    table = getattr(p, "table", None)
    point = design_point(p.channel, table)
    if table is None or influence_limit(getattr(p, "options", {})) is None:
        return point
    return np.asarray((1 - _POSITIVE) * table.p_su.ravel() + _POSITIVE * point)


def influence_limit(options: Mapping[str, str]) -> float | None:
    """The limit that a protocol was designed with; None without one."""
    try:
        limit = float(options[INFLUENCE])
    except (KeyError, ValueError):
        return None
    return limit if 0 < limit < math.inf else None
