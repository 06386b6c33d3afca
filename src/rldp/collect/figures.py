"""What the operator sees: how far the collection is, and what it says so far."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from rldp.collect.counted import estimate
from rldp.collect.opening import Collection
from rldp.errors import RldpError
from rldp.estimation.result import Estimate
from rldp.protocol.questionnaire import PublicQuestionnaire

if TYPE_CHECKING:
    from rldp.estimation.questionnaire import QuestionnaireEstimate

_REST = 10.0  # times as long as figures took to compute, they are not computed again
_MOST_GROWTH = 200  # points of the curve
_DOUBTFUL = 0.01  # p-value below which the fit of a block is called poor
_MOST_CELLS = 400  # that are shown


class Figures:
    """The figures of a collection, computed again when there are more reports.

    Args:
        collection: with its store.
    """

    def __init__(self, collection: Collection) -> None:
        """Compute nothing yet."""
        self._collection = collection
        self._lock = threading.Lock()
        self._told: dict[str, Any] = {}
        self._until = 0.0
        self._growth: list[dict[str, Any]] = []

    def now(self) -> dict[str, Any]:
        """Figures as JSON has them; those of a moment ago if they take long."""
        with self._lock:
            status = self._collection.store.status()
            is_old = self._told.get("reports") != status.reports
            if not self._told or (is_old and time.monotonic() >= self._until):
                start = time.monotonic()
                self._told = self._computed()
                end = time.monotonic()
                self._until = end + _REST * (end - start)
            return self._told | {"invitations": status.invitations, "spent": status.spent}

    def _computed(self) -> dict[str, Any]:
        collection = self._collection
        told: dict[str, Any] = {
            "protocol": collection.protocol.name,
            "epsilon": collection.protocol.epsilon,
            "fingerprint": collection.protocol.fingerprint,
            "store": collection.where,
            "open": not collection.is_invited,
            "margin": collection.margin,
            "reports": collection.store.status().reports,
            "estimates": None,
        }
        try:
            e = estimate(collection)
        except RldpError as error:
            note = error.worded(lambda _: None) if told["reports"] else "There is no report yet."
            return told | {"note": note, "needed": _needed(collection, None)}
        if not isinstance(e, Estimate):
            return told | _of_questionnaire(e) | {"needed": _needed_by_all(collection)}
        told |= summary(e) | {"reports": e.n, "needed": _needed(collection, e)}
        widest = float((e.high - e.low).max()) / 2
        self._growth = [*self._growth, {"reports": e.n, "margin": widest}][-_MOST_GROWTH:]
        return told | {"widest": widest, "growth": self._growth}


def summary(e: Estimate) -> dict[str, Any]:
    """An estimate as JSON has it: cells and marginals, fit, and suspected forgeries."""
    from rldp.collect.forgeries import suspected
    from rldp.estimation.export import figure_records

    schema = e.schema
    cells = [f"{s} | {u}" if schema.useful else s for s in schema.s_labels for u in schema.u_labels]
    estimates = {
        "cells": figure_records(cells, e.cells)[:_MOST_CELLS],
        "s": figure_records(list(schema.s_labels), e.s)[:_MOST_CELLS],
        "u": figure_records(list(schema.u_labels), e.u)[:_MOST_CELLS] if schema.useful else [],
    }
    features = e.inverted.inverse.features
    return {
        "level": e.level,
        "fit": e.goodness_of_fit.p_value,
        "hidden": int((~e.identified).sum()),
        "remarks": list(e.remarks),
        "suspected": suspected(features, e.counts),
        "estimates": _plain(estimates),
    }


def _of_questionnaire(e: QuestionnaireEstimate) -> dict[str, Any]:
    """P(S) from all blocks, and whether the reports of each fit."""
    from rldp.estimation.export import figure_records

    s = figure_records(list(e.schemas[0].s_labels), e.s)[:_MOST_CELLS]
    fits = e.goodness_of_fit
    poor = [f"Poor fit of block {name}" for name, fit in fits.items() if fit.p_value < _DOUBTFUL]
    return {
        "reports": e.n,
        "reports_by_block": e.reports,
        "level": e.level,
        "fit": min(1.0, len(fits) * min(fit.p_value for fit in fits.values())),
        "hidden": 0,
        "remarks": poor,
        "suspected": 0,
        "estimates": _plain({"cells": s, "s": [], "u": []}),
        "widest": float((e.s.high - e.s.low).max()) / 2,
        "growth": [],
    }


def _needed_by_all(collection: Collection) -> int | None:
    """Reports for the margin in every table, if all values are equally likely."""
    from rldp.estimation.questionnaire import planned

    rows = planned(collection.protocol, collection.margin)
    return max((row.tables or row.useful for row in rows), default=None)


def _needed(collection: Collection, e: Estimate | None) -> int | None:
    """Reports for the margin in every cell, if the truth is as estimated; None if none suffice."""
    import numpy as np

    from rldp.estimation.export import nearest_distribution
    from rldp.estimation.sample_size import plan

    if isinstance(collection.protocol, PublicQuestionnaire):
        return _needed_by_all(collection)
    shape = collection.protocol.channel.shape
    p = np.full(shape, 1 / np.prod(shape))
    if e is not None:
        p = nearest_distribution(e.inverted.p).reshape(shape)
    try:
        return plan(collection.protocol, collection.margin, distribution_su=p / p.sum()).needed
    except RldpError:
        return None


def _plain(value: Any) -> Any:
    """Numbers that JSON has, None for others."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return None
    return value
