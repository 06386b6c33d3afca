"""One protocol on some tables at some ε: what a process, or a machine of a cluster, computes."""

from __future__ import annotations

import hashlib
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from rldp._types import Array
from rldp.designing import programmes
from rldp.designing.closed_forms import FAMILIES, calibrate
from rldp.designing.closed_forms.base import ParameterProblem
from rldp.designing.closed_forms.noise_odds import Bounds
from rldp.designing.compare import compare
from rldp.designing.problem import Problem, checked_effort
from rldp.designing.solvers.interrupts import go_on_unless
from rldp.protocol.release_protocol import INTERRUPTED
from rldp.reproduction.tables import Draw, Source
from rldp.uncertainty import ChiSquareSet, Guarantee

PAPER, SHARP, EXACT = "paper", "sharp", "exact"
_PARAMETERS = ("epsilon_2", "kappa", "lambda")  # that figures show
_SURELY_SOLVED = 25  # cells
_NOT_COMPUTING = ("cli", "reproduction")  # folders whose code changes no number


@dataclass(frozen=True)
class Task:
    """A protocol of the catalogue, with its bounds, on the tables of some seeds.

    Args:
        source: where the tables come from.
        protocol: a name that `rldp.compare` knows.
        bounds: as for `rldp.compare`; PolyOpt takes the paper's Γ with "paper".
        seeds: of the tables.
        epsilons: privacy levels.
        alpha: level of the χ² test.
        at_truth: whether to measure at P* too.
        effort: how much work each search of a programme may do.
        at_once: tables, and ε of a programme, that are computed together.
    """

    source: Source
    protocol: str
    bounds: str
    seeds: tuple[int, ...]
    epsilons: tuple[float, ...]
    alpha: float = 0.05
    at_truth: bool = False
    effort: str = "quick"
    at_once: tuple[int, int] = (25, 64)

    @property
    def parts(self) -> list[Task]:
        """The task in pieces that are worth a process each."""
        n, m = self.at_once
        return [
            replace(self, seeds=self.seeds[i : i + n], epsilons=self.epsilons[j : j + m])
            for i in range(0, len(self.seeds), n)
            for j in range(0, len(self.epsilons), m)
        ]

    @property
    def key(self) -> str:
        """A name for everything that determines the outcome: the task, the code, the versions."""
        told = "|".join([repr(self), code_digest(), versions()])
        return f"{self.protocol}-{hashlib.sha256(told.encode()).hexdigest()[:24]}"


@dataclass(frozen=True)
class Outcome:
    """What a task found; arrays have shape (tables, ε).

    Args:
        entropy: H(X) of each table, shape (tables,).
        utility: I(X;Y) at P̂ in nats.
        at_truth: the same at P*; NaN where nobody asked.
        epsilon_2: what is spent on U; NaN for protocols without it, as the next two.
        kappa: of UE-CR.
        lam: λ of UE-CR.
        seconds: for each design.
        cpu: seconds of processor time for the whole task.
    """

    entropy: Array
    utility: Array
    at_truth: Array
    epsilon_2: Array
    kappa: Array
    lam: Array
    seconds: Array
    cpu: float

    @property
    def normalised(self) -> Array:
        """Utility as a share of H(X)."""
        return self.utility / self.entropy[:, None]

    def document(self) -> dict[str, Any]:
        """JSON, without the arrays that say nothing."""
        arrays = {field.name: getattr(self, field.name) for field in fields(self)}
        cpu = arrays.pop("cpu")
        kept = {name: x.tolist() for name, x in arrays.items() if not np.isnan(x).all()}
        return {**kept, "cpu": cpu}

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Outcome:
        """The outcome that was written."""
        empty = np.full(np.shape(document["utility"]), np.nan)
        arrays = {
            field.name: np.array(document[field.name]) if field.name in document else empty
            for field in fields(cls)
            if field.name != "cpu"
        }
        return cls(**arrays, cpu=float(document["cpu"]))


def outcome(task: Task) -> Outcome:
    """Do the task, table by table, all ε of a closed form at once."""
    started = time.process_time()
    draws = [task.source.draw(seed) for seed in task.seeds]
    measured = [_measured(task, draw) for draw in draws]
    columns = {name: np.array([row[name] for row in measured]) for name in measured[0]}
    entropy = np.array([draw.table.entropy for draw in draws])
    return Outcome(entropy=entropy, **columns, cpu=time.process_time() - started)


def joined(task: Task, outcomes: Sequence[Outcome]) -> Outcome:
    """The outcome of a task from those of its parts."""
    width = -(-len(task.epsilons) // task.at_once[1])
    rows = [outcomes[i : i + width] for i in range(0, len(outcomes), width)]

    def put_together(name: str) -> Array:
        return np.concatenate([np.concatenate([getattr(x, name) for x in row], 1) for row in rows])

    return Outcome(
        entropy=np.concatenate([row[0].entropy for row in rows]),
        **{
            f.name: put_together(f.name)
            for f in fields(Outcome)
            if f.name not in ("entropy", "cpu")
        },
        cpu=sum(x.cpu for x in outcomes),
    )


def _measured(task: Task, draw: Draw) -> dict[str, Array]:
    """What one table gives, each of shape (ε,)."""
    F = ChiSquareSet(draw.table, task.alpha)
    nothing = np.full(len(task.epsilons), np.nan)
    found = dict.fromkeys(("at_truth", "epsilon_2", "kappa", "lambda"), nothing)
    if task.protocol in FAMILIES:
        found |= _closed_form(task, F, draw)
    elif task.protocol == "polyopt":
        found |= _polyopt(task, F, draw)
    else:
        records = [
            compare(F, epsilon, protocols=[task.protocol], effort=task.effort)[0]
            for epsilon in task.epsilons
        ]
        found["utility"] = np.array([record["utility"] for record in records])
        found["seconds"] = np.array([record["seconds"] for record in records])
    return {("lam" if name == "lambda" else name): x for name, x in found.items()}


def _closed_form(task: Task, F: ChiSquareSet, draw: Draw) -> dict[str, Array]:
    family, epsilons = FAMILIES[task.protocol], np.array(task.epsilons)
    started = time.perf_counter()
    if task.bounds == EXACT:
        each = [calibrate.calibrated(family, F, epsilon, {}) for epsilon in task.epsilons]
        parameters = {name: np.concatenate([one[name] for one in each]) for name in each[0]}
    else:
        bounds: Bounds = "paper" if task.bounds == PAPER else "sharp"
        parameters = family.optimum(ParameterProblem(F, epsilons, bounds))
    found = {name: parameters[name] for name in _PARAMETERS if name in parameters}
    found["utility"] = family.utility(F, epsilons, parameters)
    found["seconds"] = np.full(epsilons.shape, (time.perf_counter() - started) / epsilons.size)
    if task.at_truth:
        each = [{name: x[i] for name, x in parameters.items()} for i in range(epsilons.size)]
        channels = map(family.channel, [F] * epsilons.size, task.epsilons, each)
        found["at_truth"] = np.array([Q.mutual_information(draw.truth) for Q in channels])
    return found


def _polyopt(task: Task, F: ChiSquareSet, draw: Draw) -> dict[str, Array]:
    """PolyOpt; for distinct pairs on large tables the paper's Γ, which is smaller, comes first."""
    kept, at_truth, seconds = [], [], []
    for epsilon in task.epsilons:
        started = time.perf_counter()
        effort = checked_effort(task.effort)
        as_printed = Problem((Guarantee(F, epsilon),), effort=effort, pairs="all")
        is_small = draw.table.counts.size <= _SURELY_SOLVED
        if task.bounds == PAPER:
            found = programmes.polyopt(as_printed)
        elif is_small:
            found = programmes.polyopt(replace(as_printed, pairs="distinct"))
        else:
            known = programmes.polyopt(as_printed)
            go_on_unless(known.ended == INTERRUPTED)
            distinct = replace(as_printed, pairs="distinct")
            found = programmes.polyopt(distinct, [known.channel])
        go_on_unless(found.ended == INTERRUPTED)
        Q = found.channel
        seconds.append(time.perf_counter() - started)
        kept.append(Q.mutual_information(draw.table.p_su))
        at_truth.append(Q.mutual_information(draw.truth) if task.at_truth else np.nan)
    names = ("utility", "at_truth", "seconds")
    return {name: np.array(x) for name, x in zip(names, (kept, at_truth, seconds), strict=True)}


@cache
def versions() -> str:
    """What computed, for the record.

    >>> versions().split()[0]
    'rldp-0.1.0'
    """
    names = ("rldp", "numpy", "scipy", "highspy")
    told = [f"{name}-{version(name)}" for name in names]
    return " ".join([*told, f"python-{platform.python_version()}"])


@cache
def code_digest() -> str:
    """A hash of the code that numbers depend on."""
    package = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        place = path.relative_to(package)
        if place.parts[0] not in _NOT_COMPUTING or place.name in ("tables.py", "task.py"):
            digest.update(str(place).encode() + path.read_bytes())
    return digest.hexdigest()
