"""Protocols from whose reports the whole table can be estimated.

The most informative protocols often give several cells the same law of reports, and then no number
of reports tells those cells apart. Mixing in a share of a protocol that tells all of them apart
keeps privacy, output by output, and costs utility in proportion to the share.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from rldp._types import Array
from rldp.arithmetic import log
from rldp.channel import Channel, DenseChannel
from rldp.checks import as_float
from rldp.errors import ParameterError
from rldp.estimation.identifiability import identifiability

_ROOM = 2.0  # times the best condition of a closed form, if none is asked for
_FINEST = 1e-4  # of a share
_ROUNDING = 1e-6  # of a step between shares, and of a condition


class Mixed(NamedTuple):
    """A channel that identifies every cell, and the share and name of what was mixed in."""

    channel: Channel
    share: float
    partner: str = ""


def identified(
    channel: Channel,
    partners: Mapping[str, Channel],
    p_su: Array,
    most: float | None,
) -> Mixed:
    """The most useful mixture of the channel with a partner whose condition is at most `most`.

    A channel with too many outputs to list is not mixed but replaced: the share is 1 then.
    """
    conditions = {name: identifiability(one).condition for name, one in partners.items()}
    best = min(conditions.values())
    most = _ROOM * best if most is None else as_float(most)
    enough = most * (1 + _ROUNDING)
    if identifiability(channel).condition <= enough:
        return Mixed(channel, 0.0)
    good = {name: one for name, one in partners.items() if conditions[name] <= enough}
    if not good:
        raise ParameterError(
            f"Expected condition ≥ {best:.4g}, the best of the closed forms here, got {most:g}.",
            argument="condition",
        )
    found = [Mixed(partner, 1.0, name) for name, partner in good.items()]
    if _is_listed(channel):
        blends = [_blend(channel, partner, most) for partner in good.values()]
        found += [mixed._replace(partner=name) for name, mixed in zip(good, blends, strict=True)]
    return max(found, key=lambda mixed: mixed.channel.mutual_information(p_su))


def _blend(channel: Channel, partner: Channel, most: float) -> Mixed:
    Q, R = channel.matrix, partner.matrix

    def mixture(share: float) -> Channel:
        return DenseChannel(np.concatenate([(1 - share) * Q, share * R], axis=2))

    def excess(share: float) -> float:
        condition = identifiability(mixture(share)).condition
        return float(log(min(condition, 1e12) / most))

    if excess(1 - _FINEST) > 0:
        return Mixed(partner, 1.0)
    low = _FINEST
    if excess(low) > 0:
        root = brentq(excess, low, 1 - _FINEST, xtol=_FINEST)
        # on a grid, so that the last bits of a condition do not matter
        low = math.ceil(root / _FINEST - _ROUNDING) * _FINEST
    while excess(low) > _ROUNDING:  # the root may lie slightly on the wrong side
        low = min(1 - _FINEST, low + _FINEST)
    return Mixed(mixture(low), low)


def _is_listed(channel: Channel) -> bool:
    return channel.n_outputs <= 2**12
