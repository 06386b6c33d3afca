"""Step 3, protocol: design the chosen one, with progress, and show what it does."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from rldp._types import Indices
from rldp.auditing.audit import audit
from rldp.estimation.identifiability import identifiability
from rldp.presentation.texts import (
    columns_title,
    error_gap_in_words,
    gap_in_words,
    meaning,
    set_in_words,
    title,
)
from rldp.protocol.documents import parameters_document
from rldp.protocol.release_protocol import ReleaseProtocol
from rldp.studio import code
from rldp.studio.answers import bits
from rldp.studio.choices import Choice
from rldp.studio.jobs import Job
from rldp.studio.outlook import GOAL_TITLES, outlook
from rldp.studio.promise import promises
from rldp.studio.session import Session
from rldp.studio.tasks import Design, find_design
from rldp.utility.goal import INFORMATION

_MOST_ENTRIES = 2**20  # of a matrix that is built to be drawn
_MOST_COLUMNS = 40  # reports that are drawn


def start(session: Session, body: dict[str, Any]) -> dict[str, Any]:
    """Design the chosen protocol, or find the design that is there."""
    choice = Choice.from_request(body)
    known = session.design_jobs.find(choice.id)
    is_useful = known is not None and (known.state == "running" or choice.id in session.designs)
    if known is not None and is_useful and body.get("again") is not True:
        return known.summary()
    setting = session.setting(choice)
    entropy = setting.F.table.entropy
    session.designs.drop(choice.id)

    def work(job: Job) -> None:
        def hear(kind: str, content: Any) -> None:
            if kind == "draft":
                session.designs.put(choice.id, content)
                job.progress = job.progress | {"is_draft": True}
            else:
                job.progress = job.progress | _so_far(content, entropy)

        arguments = (setting.F, choice.epsilon, choice.protocol, choice.wishes)
        found: Design | None = job.search(session.jobs.workers, hear, find_design, *arguments)
        if found is not None:
            session.designs.put(choice.id, found)
            job.progress = job.progress | {"is_draft": False}

    job = session.jobs.start("design", work)
    session.design_jobs.put(choice.id, job)
    return job.summary()


def _so_far(told: tuple[float, float], entropy: float) -> dict[str, float]:
    utility, bound = told
    return {
        "bits": bits(max(0.0, utility)),
        "share": max(0.0, utility / entropy) if entropy > 0 else 0.0,
        "bound_bits": bits(min(bound, entropy)),
        "bound_share": min(1.0, bound / entropy) if entropy > 0 else 0.0,
    }


def shown(session: Session, body: dict[str, Any]) -> dict[str, Any]:
    """What was designed: its channel, its parameters in words, what it keeps."""
    choice = Choice.from_request(body)
    found = session.found(choice)
    p, above = found.protocol, found.ceiling
    job = session.design_jobs.find(choice.id)
    names = ", ".join(column.name for column in p.schema.sensitive)
    parameters = parameters_document(p.parameters)
    return {
        "name": p.name,
        "what": title(p.name),
        "columns": columns_title(p.table),
        "epsilon": p.epsilon,
        "promises": promises(p, audit(p)),
        "sensitive": names,
        "parameters": [
            {"name": name, "value": _readable(value), "meaning": meaning(name)}
            for name, value in parameters.items()
        ],
        "bits": bits(p.utility),
        "share": p.normalised_utility,
        "entropy_bits": bits(p.table.entropy),
        "goal": choice.goal if choice.has_goal else None,
        "goal_title": GOAL_TITLES[choice.goal] if choice.has_goal else None,
        "records": p.table.n,
        "outlook": _outlook(p, choice.goal),
        "error_gap": p.error.gap if _has_error(p) else None,
        "error_gap_text": error_gap_in_words(p.error) if _has_error(p) else None,
        "gap": None if p.optimality_gap is None else gap_in_words(p),
        "gap_bits": None if p.optimality_gap is None else bits(p.optimality_gap),
        "ceiling_gap_bits": None if above is None else bits(max(0.0, above - p.utility)),
        "rounding_bits": bits(p.rounding_loss),
        "seconds": 0.0 if job is None else job.seconds,
        "is_stopped": job is not None and job.state == "stopped",
        "is_draft": job is not None and job.progress.get("is_draft", False),
        "set": set_in_words(p.uncertainty),
        "outputs": _count(p.channel.n_outputs),
        "identified": int(identifiability(p.channel).cells.sum()),
        "cells": p.table.counts.size,
        "channel": channel(p),
        "fingerprint": p.fingerprint,
        "code": code.snippets("protocol", choice, session.file(choice.data).name),
    }


def _outlook(p: ReleaseProtocol, goal: str) -> dict[str, Any] | None:
    found = outlook(p.channel, p.uncertainty, goal)
    return None if found is None else asdict(found)


def _has_error(p: ReleaseProtocol) -> bool:
    """Whether it was designed for estimates, so that it knows what no protocol beats."""
    return p.options.get("goal", INFORMATION) != INFORMATION


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


def _reports(p: ReleaseProtocol, outputs: Indices) -> Indices:
    """Indices of the matrix as a release writes them: for sets a symbol in each block."""
    if not p.channel.reports_sets:
        return outputs
    (_, blocks), (_, symbols) = p.channel.naming
    words = (symbols + 1,) * blocks
    return np.stack(np.unravel_index(outputs, words), axis=1) - 1


def _readable(value: Any) -> str:
    if isinstance(value, list | tuple):
        shown = ", ".join(_readable(entry) for entry in value[:6])
        return shown + (f", … ({len(value)} values)" if len(value) > 6 else "")
    return "∞" if value == "inf" else f"{value:.6g}" if isinstance(value, float) else str(value)


def _count(n: int) -> str:
    return f"{n:,}" if n < 10**9 else f"about 10^{len(str(n)) - 1}"
