"""Step 3, protocol: design the chosen one, with progress, and show what it does."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rldp.channel import UnaryChannel
from rldp.documents import parameters_document
from rldp.estimation.identifiability import identifiability
from rldp.protocol import ReleaseProtocol
from rldp.protocols.catalogue import CEILING, design
from rldp.studio import code
from rldp.studio.answers import bits
from rldp.studio.choices import Choice
from rldp.studio.jobs import Job
from rldp.studio.session import Session
from rldp.wording import MEANINGS, TITLES, columns_title, gap_in_words, set_in_words

_MOST_ENTRIES = 2**20  # of a matrix that is built to be drawn
_MOST_COLUMNS = 40  # reports that are drawn


def start(session: Session, body: dict[str, Any]) -> dict[str, Any]:
    """Design the chosen protocol, or find the design that is there."""
    choice = Choice.from_request(body)
    known = session.design_job(choice)
    is_useful = known is not None and (known.state == "running" or known.result is not None)
    if known is not None and is_useful and body.get("again") is not True:
        return known.summary()
    setting = session.setting(choice)
    entropy = setting.F.table.entropy

    def work(job: Job) -> ReleaseProtocol:
        def tell(utility: float, bound: float) -> None:
            job.tell(
                bits=bits(max(0.0, utility)),
                share=max(0.0, utility / entropy) if entropy > 0 else 0.0,
                bound_bits=bits(min(bound, entropy)),
                bound_share=min(1.0, bound / entropy) if entropy > 0 else 0.0,
            )

        return design(
            setting.F,
            choice.epsilon,
            choice.protocol,
            identifiable=choice.identifiable,
            progress=tell,
        )

    job = session.jobs.start("design", work)
    session.remember_design(choice, job)
    return job.summary()


def shown(session: Session, body: dict[str, Any]) -> dict[str, Any]:
    """What was designed: its channel, its parameters in words, what it keeps."""
    choice = Choice.from_request(body)
    p = session.design(choice)
    job = session.design_job(choice)
    ceiling = session.setting(choice).search(CEILING, p.epsilon)
    names = ", ".join(column.name for column in p.schema.sensitive)
    parameters = parameters_document(p.parameters)
    return {
        "name": p.name,
        "what": TITLES.get(p.name, ""),
        "columns": columns_title(p.table),
        "epsilon": p.epsilon,
        "odds": math.exp(p.epsilon),
        "sensitive": names,
        "parameters": [
            {"name": name, "value": _readable(value), "meaning": MEANINGS.get(name, "")}
            for name, value in parameters.items()
        ],
        "bits": bits(p.utility),
        "share": p.normalised_utility,
        "entropy_bits": bits(p.table.entropy),
        "gap": None if p.optimality_gap is None else gap_in_words(p),
        "gap_bits": None if p.optimality_gap is None else bits(p.optimality_gap),
        "ceiling_gap_bits": bits(max(0.0, ceiling["utility"] - p.utility)),
        "rounding_bits": bits(p.rounding_loss),
        "seconds": 0.0 if job is None else job.seconds,
        "is_stopped": job is not None and job.state == "stopped",
        "set": set_in_words(p.uncertainty),
        "outputs": _count(p.channel.n_outputs),
        "identified": int(identifiability(p.channel).cells.sum()),
        "cells": p.table.counts.size,
        "channel": channel(p),
        "fingerprint": p.fingerprint,
        "code": code.snippets("protocol", choice, session.file(choice.data).name),
    }


def channel(p: ReleaseProtocol) -> dict[str, Any] | None:
    """Q with labels, rows the records and columns the likeliest reports; None where it is huge."""
    n_s, n_u = p.channel.shape
    n_y = p.channel.n_outputs
    if n_s * n_u * n_y > _MOST_ENTRIES:
        return None
    Q = p.matrix.reshape(n_s * n_u, n_y)
    chance = p.table.p_su.ravel() @ Q
    occurring = np.flatnonzero(Q.max(axis=0) > 0)
    shown = occurring[np.argsort(-chance[occurring], kind="stable")][:_MOST_COLUMNS]
    shown.sort()
    schema = p.schema
    rows = [f"{s} | {u}" if schema.useful else s for s in schema.s_labels for u in schema.u_labels]
    return {
        "rows": rows,
        "columns": p.report_labels.texts(_reports(p, shown)).to_pylist(),
        "values": Q[:, shown].tolist(),
        "reports": shown.tolist(),
        "occurring": int(occurring.size),
        "chance": float(chance[shown].sum()),
    }


def _reports(p: ReleaseProtocol, outputs: NDArray[np.intp]) -> NDArray[np.intp]:
    """Indices of the matrix as a release writes them: for sets a symbol in each block."""
    if not isinstance(p.channel, UnaryChannel):
        return outputs
    symbols = (p.channel.other.shape[1],) * p.channel.n_blocks
    return np.stack(np.unravel_index(outputs, symbols), axis=1) - 1


def _readable(value: Any) -> str:
    if isinstance(value, list | tuple):
        shown = ", ".join(_readable(entry) for entry in value[:6])
        return shown + (f", … ({len(value)} values)" if len(value) > 6 else "")
    return "∞" if value == "inf" else f"{value:.6g}" if isinstance(value, float) else str(value)


def _count(n: int) -> str:
    return f"{n:,}" if n < 10**9 else f"about 10^{len(str(n)) - 1}"
