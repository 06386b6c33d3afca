"""Figures made of panels of curves: what must be computed for them, and their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from rldp._types import Array
from rldp.designing.catalogue import CEILING, NAMES
from rldp.reproduction.tables import Adult, Jeffreys, Source, seeds
from rldp.reproduction.task import EXACT, PAPER, SHARP, Outcome, Task, versions

Row = dict[str, Any]
Finished = Callable[[Task], Outcome]

AS_PRINTED, BEYOND = "paper", "beyond"
VERSIONS = (AS_PRINTED, BEYOND)

CLOSED_FORMS = ("grr", "srr", "ir", "grr-cr", "ue-cr")
ROBUST_FORMS = ("ir", "grr-cr", "ue-cr")  # those that depend on F
BEST_CLOSED, OPTIMAL = "best closed form", "optimal"

# what goes beyond the paper: (protocol, bounds); the best closed form is the best of CLOSED_FORMS
OURS = tuple(
    (protocol, bounds)
    for protocol, bounds in (
        (BEST_CLOSED, SHARP),
        (BEST_CLOSED, EXACT),
        ("polyopt", SHARP),
        (OPTIMAL, SHARP),
        (CEILING, SHARP),
    )
    if protocol in (BEST_CLOSED, CEILING, *NAMES)
)

EPSILONS = tuple(round(0.2 * i, 1) for i in range(1, 41))
COARSE = (0.2, 0.4, 0.6, 1.0, 1.4, 2.0, 3.0, 4.0, 6.0, 8.0)
FEW = (0.2, 0.6, 1.0, 2.0, 4.0)
FEWER = (0.4, 1.0, 2.0)


@dataclass(frozen=True)
class Scale:
    """How much is computed.

    Args:
        draws: tables of each mean.
        scatter: tables of the scatter plot.
        share: of the tables on which slow protocols are tried.
        epsilons: privacy levels of the closed forms.
        most_cells: of tables on which slow protocols are tried at all.
        most_optimal: cells of tables on which the optimum over F is.
    """

    draws: int = 200
    scatter: int = 2000
    share: float = 1.0
    epsilons: tuple[float, ...] = EPSILONS
    most_cells: float = np.inf
    most_optimal: float = np.inf

    def few(self, draws: int) -> tuple[int, ...]:
        """Seeds of so many draws at full scale."""
        return seeds(max(1, min(self.draws, round(self.share * draws))))

    def nearest(self, epsilons: Sequence[float]) -> tuple[float, ...]:
        """The levels that are nearest to these."""
        return tuple(sorted({min(self.epsilons, key=lambda x: abs(x - e)) for e in epsilons}))

    def at(self, epsilons: Sequence[float]) -> Scale:
        """The same at these levels."""
        return replace(self, epsilons=tuple(epsilons))


FULL = Scale()
QUICK = Scale(
    draws=5,
    scatter=120,
    share=0.06,
    epsilons=EPSILONS[1::4],
    most_cells=15,
    most_optimal=10,
)


class Budget(NamedTuple):
    """What slow protocols are tried on, on tables up to some size, at full scale."""

    most_cells: float
    draws: int
    epsilons: tuple[float, ...]
    for_optimal: tuple[float, ...] = ()  # ε


_BUDGETS = (
    Budget(9, 10, COARSE, FEW),
    Budget(10, 6, COARSE, FEW),
    Budget(15, 3, COARSE, FEWER),
    Budget(25, 2, FEW, FEWER),
    Budget(100, 2, FEWER),
    Budget(np.inf, 1, FEWER),
)
_MOST_EXACT = {Jeffreys: 9, Adult: 10}  # cells where exact bounds are shown
_ALPHA = 0.05
_MOST_SYNTHETIC = 100  # cells of random tables where PolyOpt is tried


@dataclass(frozen=True)
class Line:
    """A curve: the mean over tables of a quantity, of the best of some tasks on each table.

    Args:
        protocol: its name in rows and legends.
        bounds: "paper", "sharp" or "exact".
        tasks: on the same tables at the same ε; the most useful counts.
        quantity: "normalised", "utility", "split" (ε_2/ε), "kappa", "lambda", "difference" (what
            is lost, or gained if negative, from P̂ to P*, as a share of H(X)), "seconds", or
            "loss" (of mean utility, from the second of two tasks to the first).
        curve: what the legend calls it, if not by its protocol.
    """

    protocol: str
    bounds: str
    tasks: tuple[Task, ...]
    quantity: str = "normalised"
    curve: str = ""

    def values(self, finished: Finished) -> Array:
        """The quantity on each table at each ε."""
        outcomes = [finished(task) for task in self.tasks]
        if self.quantity == "loss":
            return _loss(*(x.normalised for x in outcomes))
        if len(outcomes) > 1:
            return np.asarray(np.max([x.normalised for x in outcomes], axis=0))
        return _QUANTITIES[self.quantity](self.tasks[0], outcomes[0])


_QUANTITIES: dict[str, Callable[[Task, Outcome], Array]] = {
    "normalised": lambda _, x: x.normalised,
    "utility": lambda _, x: x.utility,
    "split": lambda task, x: x.epsilon_2 / np.array(task.epsilons),
    "kappa": lambda _, x: x.kappa,
    "lambda": lambda _, x: x.lam,
    "difference": lambda _, x: (x.utility - x.at_truth) / x.entropy[:, None],
    "seconds": lambda _, x: x.seconds,
}


def _loss(low: Array, high: Array) -> Array:
    """1 - Σ low / Σ high as a mean over tables, with the spread that belongs to this ratio."""
    mean = high.mean(axis=0)
    ratio = low.mean(axis=0) / mean
    return np.asarray(1 - (low - ratio * (high - mean)) / mean)


@dataclass(frozen=True)
class Panel:
    """A pair of axes."""

    title: str
    lines: tuple[Line, ...]

    @property
    def tasks(self) -> list[Task]:
        """All that must be computed for it."""
        return [task for line in self.lines for task in line.tasks]

    def rows(self, finished: Finished) -> list[Row]:
        """One row for each curve and ε."""
        return [row for line in self.lines for row in self._line_rows(line, finished)]

    def _line_rows(self, line: Line, finished: Finished) -> Iterable[Row]:
        task, values = line.tasks[0], line.values(finished)
        seconds = sum(finished(each).seconds.mean() for each in line.tasks)
        n = values.shape[0]
        errors = values.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.full(values.shape[1], 0.0)
        ends = _ends(line, values)
        for i, epsilon in enumerate(task.epsilons):
            yield {
                "panel": self.title,
                "curve": line.curve or line.protocol,
                "protocol": line.protocol,
                "bounds": line.bounds,
                "quantity": line.quantity,
                "n_s": task.source.n_s,
                "n_u": task.source.n_u,
                "n": task.source.n,
                "alpha": task.alpha,
                "epsilon": epsilon,
                "mean": _digits(values[:, i].mean()),
                "std_error": _digits(errors[i], 4),
                **{name: _digits(share[i]) for name, share in ends.items()},
                "draws": n,
                "first_seed": task.seeds[0],
                "seconds": _digits(seconds, 3),
                "versions": " ".join(versions().split()[:3]),
            }


def _ends(line: Line, values: Array) -> dict[str, Array]:
    """For parameters: the share of tables that have them at 0 and at 1."""
    if line.quantity not in ("split", "kappa", "lambda"):
        return {}
    return {
        "share_at_0": (values < 1e-6).mean(axis=0),
        "share_at_1": (values > 1 - 1e-6).mean(axis=0),
    }


def _digits(value: float, digits: int = 7) -> float:
    return float(f"{value:.{digits}g}")


def lines(
    source: Source,
    protocols: Sequence[str],
    scale: Scale,
    *,
    bounds: str = PAPER,
    draws: tuple[int, ...] | None = None,
    alpha: float = _ALPHA,
    quantity: str = "normalised",
) -> list[Line]:
    """A curve for each protocol."""
    made = []
    for protocol in protocols:
        task = Task(
            source,
            protocol,
            bounds,
            draws or seeds(scale.draws),
            scale.epsilons,
            alpha,
            at_truth=_is_measured_at_truth(source, alpha),
            at_once=_at_once(protocol, bounds, source),
        )
        made.append(Line(protocol, bounds, (task,), quantity))
    return made


def _is_measured_at_truth(source: Source, alpha: float) -> bool:
    """Whether P* counts too: on 5×5 tables at one α, which several figures share."""
    is_shared = isinstance(source, Jeffreys) and (source.n_s, source.n_u) == (5, 5)
    return is_shared and alpha == _ALPHA


def best_closed(
    source: Source,
    scale: Scale,
    bounds: str,
    draws: tuple[int, ...],
) -> Line:
    """The best of the closed forms on each table."""
    forms: list[Task] = []
    for protocol in CLOSED_FORMS:
        # only IR and UE-CR leave room that exact bounds could use
        kind = bounds if bounds != EXACT or protocol in ("ir", "ue-cr") else SHARP
        (line,) = lines(source, [protocol], scale, bounds=kind, draws=draws)
        forms += line.tasks
    return Line(BEST_CLOSED, bounds, tuple(forms))


def ours(source: Source, scale: Scale) -> list[Line]:
    """What goes beyond the paper beside its best, every curve over the same tables."""
    cells = source.n_s * source.n_u
    budget = next(budget for budget in _BUDGETS if cells <= budget.most_cells)
    draws = seeds(1) if isinstance(source, Adult) else scale.few(budget.draws)
    is_small = cells <= _MOST_EXACT[type(source)]
    grid, few = (scale.nearest(epsilons) for epsilons in (budget.epsilons, FEWER))

    def slow(protocol: str, bounds: str, epsilons: tuple[float, ...]) -> list[Line]:
        return lines(source, [protocol], scale.at(epsilons), bounds=bounds, draws=draws)

    made = [best_closed(source, scale, PAPER, draws)]
    if cells > scale.most_cells:
        return [*made, best_closed(source, scale, SHARP, draws)]
    if isinstance(source, Adult) or cells <= _MOST_SYNTHETIC:
        made += slow("polyopt", PAPER, grid)
    for protocol, bounds in OURS:
        if protocol == BEST_CLOSED and bounds == SHARP:
            made.append(best_closed(source, scale, SHARP, draws))
        elif protocol == BEST_CLOSED and is_small:
            made.append(best_closed(source, scale.at(few), EXACT, draws))
        elif protocol == OPTIMAL and budget.for_optimal and cells <= scale.most_optimal:
            made += slow(protocol, bounds, scale.nearest(budget.for_optimal))
        elif protocol == "polyopt" and (isinstance(source, Adult) or cells <= _MOST_SYNTHETIC):
            # Γ as printed is part of Γ for distinct pairs, so the better of both counts
            (printed, distinct) = (slow(protocol, kind, grid)[0] for kind in (PAPER, bounds))
            made.append(replace(distinct, tasks=distinct.tasks + printed.tasks))
        elif protocol == CEILING:
            made += slow(protocol, bounds, grid)
    return made


def _at_once(protocol: str, bounds: str, source: Source) -> tuple[int, int]:
    """Tables and ε that make a piece of some seconds."""
    cells = source.n_s * source.n_u
    if protocol in ("polyopt", CEILING, OPTIMAL) or bounds == EXACT:
        return (2, 64) if cells <= 10 else (1, 3) if cells <= 25 else (1, 1)
    return (25, 64) if cells <= 100 else (5, 64)
