"""What to know about an estimate, in words."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rldp.estimation.result import Estimate

_ROUNDING = 1e-9  # of a limit, by which another machine may compute more


def compliance_in_words(e: Estimate) -> list[str]:
    """The share of people who do not follow the protocol, and of whom the figures speak."""
    found = e.compliance
    if found is None:
        return []
    if math.isnan(found.share):
        return [
            "The reports do not tell how many people do not follow the protocol: no figure above "
            "is identified. Estimates for several shares show what each of them would mean."
        ]
    share = (
        f"{100 * found.share:.1f} % of the people do not follow the protocol "
        f"({100 * found.low:.1f} to {100 * found.high:.1f} %)"
    )
    return [
        f"{share}. The figures are of those who follow it; of the others the reports tell nothing. "
        f"A good fit does not show that everybody follows."
    ]


def forgery_in_words(e: Estimate, forged: int = 0) -> str:
    """What so many forged reports could do; 1 in 100 if no number is given."""
    import numpy as np  # help does not need it

    k = forged or max(1, e.n // 100)
    shift, weight = e.influence(k), e.largest_weight
    if np.isnan(weight).all():
        return "No cell is identified, so forged reports change bounds only."
    place = int(np.nanargmax(np.where(np.isnan(weight), np.nan, shift)))
    s, u = divmod(place, e.schema.n_u)
    cell = e.schema.s_labels[s] + (f" | {e.schema.u_labels[u]}" if e.schema.useful else "")
    text = (
        f"Forged reports: one report counts up to {np.nanmax(weight):.3g} times as much as a "
        f"person without noise. {k:,} forged {'one' if k == 1 else 'ones'} added to the {e.n:,} "
        f"could move a cell by up to {100 * shift.ravel()[place]:.2g} percentage points ({cell})"
    )
    if e.schema.useful and e.s.identified.any():
        rows = np.repeat(np.eye(e.schema.n_s)[:, :, None], e.schema.n_u, axis=2)
        most = float(e.influence(k, rows)[e.s.identified].max())
        text += f", and a share of S by up to {100 * most:.2g}"
    return f"{text}; no test of fit need notice them.{_promise_in_words(e)}"


def _promise_in_words(e: Estimate) -> str:
    """The limit of the design, and what the weights of this estimate make of it."""
    promised = e.promised_influence
    if promised is None:
        return ""
    told = (
        f" The protocol says that one report adds at most {promised.limit:g} to the number of "
        f"reports times an estimate of its goal ({promised.goal})"
    )
    if promised.largest is None:
        return f"{told}; this could not be checked."
    if promised.largest > promised.limit * (1 + _ROUNDING):
        return f"{told}. This is wrong: it adds up to {promised.largest:.4g}."
    return f"{told}; with the weights used here it adds up to {promised.largest:.4g}."
