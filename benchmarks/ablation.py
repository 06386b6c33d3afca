"""What every oracle, bound, seed and constant of all searches for designs is worth.

`make ablation` (`python -m benchmarks ablation`) makes the same designs once as they are and once
with each part left out or each knob changed; `--quick` does so for a few small tables. Everything
is told as ratios within the run: people, in proportion to V, the summed variances of one report, or
to 1/I(X;Y); the points by which the gap to the best bound moves; and nominal work. No figure
depends on the clock.

Constants are found by reading all modules of `rldp.designing`: every number, or tuple of numbers,
with a name in capitals. What one is for is the comment beside it; a test refuses one without. Most
are knobs, which are halved and doubled or take the values of `VALUES`. No knobs are: tolerances of
arithmetic, rates of nominal work, limits of memory, and labels (see `Kind`). A changed constant is
put into the source of its module before the module is run, in a process of its own, so that
whatever is made from it on import changes too. It is tried on the designs in which a function of
its module runs.

A search that goes another way ends elsewhere, by a little, whatever the reason. How much that is
tell the lines "other random starts": what moves people by less than these has not been seen to
matter.
"""

from __future__ import annotations

import ast
import multiprocessing
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache, partial
from importlib import import_module
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from inspect import CO_OPTIMIZED
from pathlib import Path
from statistics import geometric_mean
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

import rldp
from benchmarks import prices
from benchmarks.timing import Effort, console, show

PACKAGE = "rldp.designing"
EPSILON = 1.0
SAME = 0.005  # of people: less is nothing
SAME_WORK = 0.05


# --- what is changed -----------------------------------------------------------------------------


class Kind(Enum):
    """What a constant is, by the comment beside it or its size."""

    KNOB = "knob"
    ARITHMETIC = "tolerance of arithmetic"  # "rounding", or below a millionth, or above 1e8
    RATE = "rate of nominal work"  # "nominal"
    MEMORY = "limit of memory"  # "memory"
    LABEL = "label"  # "stands for"
    OFFER = "what people are offered or told"  # in the modules of OFFERS


OFFERS = (
    "compare",
    "few_outputs",
    "people",
    "prices",
    "processes",
    "questionnaire",
    "stack",
)


class Constant(NamedTuple):
    """A number, or tuple of numbers, what it is for, and of which kind it is."""

    value: Any
    words: str
    module: str

    @property
    def kind(self) -> Kind:
        """By the words first."""
        for word, kind in (
            ("rounding", Kind.ARITHMETIC),
            ("nominal", Kind.RATE),
            ("memory", Kind.MEMORY),
            ("stands for", Kind.LABEL),
        ):
            if word in self.words:
                return kind
        if self.module in OFFERS:
            return Kind.OFFER
        size = max(map(abs, self.value)) if isinstance(self.value, tuple) else abs(self.value)
        is_plain = 1e-6 < size < 1e8
        return Kind.KNOB if is_plain else Kind.ARITHMETIC


VALUES: Mapping[str, tuple[Any, ...]] = {  # where half and double say little
    "masters._NEARER": (0.64, 0.9),
    "rounds._NEW": (2, 6),
    "masters._DIGITS": (5, 9),
    "oracles.flips._FACTORS": ((1.4, 1.06), (1.1, 1.015)),
    "oracles.flips._WHOLE": ((2.7, 1.3), (54.6, 7.4, 2.7, 1.6, 1.3, 1.08, 1.04, 1.02)),
    "oracles.flips._MOST_S": (8, 128),
    "coarser._LARGE": (40, 400),
    "coarser._CLASSES": (4, 8),
    "optimal.barrier_master._WHOLE": (0.5, 0.95),
    "optimal.barrier_master._TO_BOUNDARY": (0.8, 0.95),
    "optimal.barrier_master._FASTER": (0.25, 0.7),
    "optimal.barrier_master._NEAR": (1.2, 3.0),
    "optimal.private_columns._MOST_JOINT": (4, 1200),
    "polyopt.relaxed._STEP": (0.15, 0.6, 1.0),
    "polyopt.solve._STEP": (0.15, 0.6, 1.0),
    "polyopt.solve._RELAXED": (0.5, 0.8),
    "polyopt.solve._REPEAT": (0.6, 0.95),
    "polyopt.relaxed._LEAST_LEVEL": (0.1, 0.6),
    "polyopt.tau._TAUS": ((0.0, 0.2, 0.5, 1.0), tuple(i / 16 for i in range(17))),
    "polyopt.tau._STALLED": (0.6, 0.95),
    "polyopt.boxes._MOST_LISTED_U": (0, 15),
}


class Line(NamedTuple):
    """What a limit of an effort does, and the values to try."""

    words: str
    values: tuple[Any, ...]


LIMITS = {  # of an effort
    "patience": Line("windows that may bring nothing before a search ends", (2, 3)),
    "rounds_work": Line("nominal seconds of a search, times the usual ones", (0.5, 2.0)),
    "divisions": Line("how often bounds divide the columns into regions", (1,)),
}
OF_INFORMATION = ("boxes", "products")  # oracles
OF_OTHER_SEARCHES = ("rounds", "boxes", "protocols", "work", "is_bounded")


class Switch(NamedTuple):
    """A part that is left out or changed: a function in a module, and what takes its place.

    What bounds do does not change designs: the gaps of the same designs are compared.
    """

    words: str
    place: str  # the module, and the name in it
    instead: Callable[[Any], Any]  # of the function as it is
    is_bound: bool = False


def _always(value: object) -> Callable[[Any], Any]:
    return lambda _: lambda *_args: value


def random_starts(seed: int) -> Callable[[Any], Any]:
    def instead(init: Any) -> Any:
        def changed(self: Any, *args: Any, **options: Any) -> None:
            init(self, *args, **options)
            self._random = np.random.default_rng(seed)

        return changed

    return instead


def _without_oracle(is_left_out: Callable[[str, bool], bool]) -> Callable[[Any], Any]:
    """Leave out those of which a function of the name, and of being the last, says so."""

    def instead(rounds: Any) -> Any:
        def changed(master: Any, turns: Sequence[Any], *others: Any) -> None:
            left = [
                turn
                for turn in turns
                if not is_left_out(type(turn.oracle).__name__, turn is turns[-1])
            ]
            rounds(master, left, *others)

        return changed

    return instead


def _without_bound(name: str) -> Callable[[Any], Any]:
    return lambda bounds: {key: bound for key, bound in bounds.items() if key != name}


SWITCHES = (
    *(
        Switch(f"other random starts, {n}", "masters.Quadratic.__init__", random_starts(n))
        for n in (1, 2, 3)
    ),
    Switch("outputs of closed forms to begin with", "programmes._columns", _always(None)),
    Switch("columns of S to begin with", "least_error._is_about_s", _always(value=False)),
    Switch(
        "columns of SRR to begin with",
        "masters.simple_columns",
        lambda begin: lambda shape, factor, **_: begin(shape, factor, distinct=False),
    ),
    Switch(
        "random subsets, to begin with and among the starts of a round",
        "masters.Quadratic._subsets",
        lambda subsets: lambda self, _, share: subsets(self, 0, share[:0] if share.ndim else share),
    ),
    Switch("columns from classes of U to begin with", "least_error.is_large", _always(value=False)),
    Switch(
        "oracle: Cones, conditionals of a pair of S values apart",
        "least_error.rounds",
        _without_oracle(lambda name, is_last: name == "Cones" and not is_last),
    ),
    Switch(
        "oracle: Cones, what a pair shares",
        "least_error.rounds",
        _without_oracle(lambda name, is_last: name == "Cones" and is_last),
    ),
)
# Left out of every design, which they would replace where a search loses much
RIVALS = (
    Switch("closed forms", "design.best_of", lambda _: lambda found, _: found[0]),
    Switch("closed forms", "design.best_of_rivals", lambda _: lambda _, mixture: mixture),
)


def oracles() -> list[str]:
    """The classes in `oracles` that offer columns for the least error."""
    found = []
    for path in sorted((_folder() / "oracles").glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.ClassDef) or path.stem in OF_INFORMATION:
                continue
            if any(isinstance(base, ast.Name) and base.id == "Oracle" for base in node.bases):
                found.append(node.name)
    return found


def modules() -> list[str]:
    """All of the package, by their names in it."""
    names = []
    for path in sorted(_folder().rglob("*.py")):
        parts = path.relative_to(_folder()).with_suffix("").parts
        names.append(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return [name for name in names if name]


def constants() -> dict[str, Constant]:
    """Every number, or tuple of numbers, to which a module gives a name in capitals."""
    found = {}
    for name in modules():
        module = import_module(f"{PACKAGE}.{name}")
        source = path_of(name).read_text(encoding="utf-8")
        lines = source.splitlines()
        for node in ast.parse(source).body:
            for constant in sorted(_assigned(node)):
                value = getattr(module, constant)
                if constant.isupper() and _is_number(value):
                    found[f"{name}.{constant}"] = Constant(value, _words(lines, node), name)
    return found


def knobs() -> dict[str, Constant]:
    """Those that steer a search."""
    return {name: one for name, one in constants().items() if one.kind is Kind.KNOB}


def _words(lines: Sequence[str], node: ast.stmt) -> str:
    """The comment beside an assignment, or above it."""
    last = node.lineno if node.end_lineno is None else node.end_lineno
    beside = [line.partition("#")[2].strip() for line in lines[node.lineno - 1 : last]]
    first = node.lineno - 1
    while first and lines[first - 1].startswith("#"):
        first -= 1
    above = [line.strip("# ") for line in lines[first : node.lineno - 1]]
    return " ".join(filter(None, beside)) or " ".join(above)


def _is_number(value: object) -> bool:
    if isinstance(value, tuple):
        return bool(value) and all(map(_is_number, value))
    return isinstance(value, int | float) and not isinstance(value, bool)


def _folder() -> Path:
    return Path(rldp.__file__).parent / "designing"


def path_of(module: str) -> Path:
    place = _folder().joinpath(*module.split("."))
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


@dataclass(frozen=True)
class Change:
    """One thing that is otherwise: a line, in words, and how."""

    line: str
    how: str
    words: str
    constant: tuple[str, Any] | None = None
    effort: tuple[str, Any] | None = None
    switch: Switch | None = None

    @property
    def is_of_bounds(self) -> bool:
        """Whether the bounds are compared, and not the designs."""
        is_bound = self.switch is not None and self.switch.is_bound
        return is_bound or self.line.startswith("bounds.") or self.line == "effort.divisions"

    @property
    def module(self) -> str:
        """Where the constant is; "" for other changes."""
        return self.constant[0].rpartition(".")[0] if self.constant else ""


def _is_called(name: str, found: str, _: bool) -> bool:
    return name == found


def changes() -> list[Change]:
    """All of them: parts first, then limits of efforts, then constants."""
    found = [Change(one.words, "changed", one.words, switch=one) for one in SWITCHES[:3]]
    found += [Change(one.words, "left out", one.words, switch=one) for one in SWITCHES[3:]]
    for name in oracles():
        title = f"oracle: {name}"
        switch = Switch(title, "least_error.rounds", _without_oracle(partial(_is_called, name)))
        found.append(Change(title, "left out", title, switch=switch))
    for name in import_module(f"{PACKAGE}.bounds.registry").BOUNDS:
        title = f"bound: {name}"
        switch = Switch(title, "bounds.registry.BOUNDS", _without_bound(name), is_bound=True)
        found.append(Change(title, "left out", title, switch=switch))
    for name, line in LIMITS.items():
        for value in line.values:
            found.append(Change(f"effort.{name}", f"{value:g}", line.words, effort=(name, value)))
    for name, one in knobs().items():
        for value in VALUES.get(name) or halved_and_doubled(one.value):
            how = f"{_shown(one.value)} → {_shown(value)}"
            found.append(Change(name, how, one.words, constant=(name, value)))
    return found


def halved_and_doubled(value: Any) -> tuple[Any, ...]:
    """Integers stay integers of at least 1; a share of more than a half goes half the way to 1."""
    if isinstance(value, tuple):
        return tuple(
            tuple(halved_and_doubled(one)[i] if one else one for one in value) for i in (0, -1)
        )
    if isinstance(value, int):
        return (*([max(1, value // 2)] if value > 1 else []), 2 * value)
    return value / 2, (1 + value) / 2 if 0.5 < value < 1 else 2 * value


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return "(" + ", ".join(map(_shown, value)) + ")"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


# --- what is designed ----------------------------------------------------------------------------


class Case(NamedTuple):
    """A table, what is estimated, and whether the default layers are promised beside ε over F."""

    table: str
    goal: str
    has_layers: bool = True
    protocol: str = "best"

    @property
    def title(self) -> str:
        layers = "layers" if self.has_layers else "F alone"
        return f"{self.table}, {self.goal}, {layers if self.protocol == 'best' else self.protocol}"


CASES = (
    Case("2×2", "cells"),
    Case("3×3", "cells"),
    Case("3×3", "s", has_layers=False),
    Case("5×2", "cells"),
    Case("5×2", "s"),
    Case("2×7", "cells"),
    Case("2×7", "s", has_layers=False),
    Case("2×9", "cells"),
    Case("2×9", "cells", has_layers=False),
    Case("2×16", "cells"),
    Case("2×16", "s"),
    Case("5×5", "cells"),
    Case("5×5", "cells", has_layers=False),
    Case("5×5", "cells", has_layers=False, protocol="ldp-optimal"),
    Case("2×29", "cells"),
    Case("2×42", "cells"),
    Case("5×15", "cells"),
    Case("6×42", "cells"),
    Case("16×15", "cells"),
    Case("3×3", "information", has_layers=False, protocol="optimal"),
    Case("2×9", "information"),
    Case("5×5", "information"),
    Case("5×5", "information", has_layers=False, protocol="ue-cr"),
    Case("4×4", "information", has_layers=False, protocol="polyopt"),
    Case("6×10", "information", has_layers=False, protocol="polyopt"),
    Case("16×15", "information", has_layers=False, protocol="polyopt"),
    Case("6×42", "information", has_layers=False, protocol="polyopt"),
)
QUICK = (
    Case("3×3", "cells"),
    Case("5×2", "s"),
    Case("2×7", "cells", has_layers=False),
    Case("2×16", "cells"),
    Case("2×7", "cells", has_layers=False, protocol="ldp-optimal"),
    Case("3×3", "information", has_layers=False, protocol="optimal"),
    Case("4×4", "information", has_layers=False, protocol="polyopt"),
    Case("6×10", "information", has_layers=False, protocol="polyopt"),
    Case("3×20", "information", has_layers=False, protocol="polyopt"),
)
SECONDS, QUICK_SECONDS = 4.0, 0.4  # nominal, of a search


@cache
def table(title: str) -> rldp.Table:
    """A table by its size."""
    adult = rldp.datasets.adult
    known = {
        "5×2": ("race", "sex"),
        "2×7": ("income", "marital-status"),
        "2×9": ("income", "workclass"),
        "2×16": ("income", "education"),
        "2×42": ("income", "native-country"),
        "6×42": ("relationship", "native-country"),
        "16×15": ("education", "occupation"),
    }
    if title in known:
        return adult(*known[title])
    if title == "5×15":
        return _in_five_levels(adult("education", "occupation"))
    if title == "2×29":
        both = prices.adult("income", ("marital-status", "relationship"))
        counts = both.counts[:, both.counts.any(axis=0)]
        return rldp.Table(counts)
    n_s, n_u = map(int, title.split("×"))
    return rldp.Table(rldp.datasets.jeffreys(n_s, n_u, 1000, seed=0).table.counts + 1)


LEVELS = (  # of education, each of several values
    ("Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th"),
    ("HS-grad",),
    ("Some-college", "Assoc-voc", "Assoc-acdm"),
    ("Bachelors",),
    ("Masters", "Prof-school", "Doctorate"),
)


def _in_five_levels(fine: rldp.Table) -> rldp.Table:
    labels = fine.schema.s_labels
    rows = [fine.counts[[labels.index(label) for label in level]].sum(axis=0) for level in LEVELS]
    return rldp.Table(rows)


# --- running it ----------------------------------------------------------------------------------


class Found(NamedTuple):
    """V of a design, a bound below it (0 where there is none), and nominal work; or what failed.

    Where information counts, V stands for 1/I(X;Y), to which the people that are needed are about
    proportional.
    """

    V: float
    bound: float
    work: float
    failure: str = ""


class _Changed(SourceFileLoader):
    """Runs a module with another number behind one of its names."""

    def __init__(self, fullname: str, path: str, name: str, value: Any) -> None:
        super().__init__(fullname, path)
        self._name, self._value = name, value

    def get_code(self, fullname: str) -> Any:
        """Compile the source anew, with a further assignment after that of the name."""
        path = self.get_filename(fullname)
        tree = ast.parse(self.get_data(path), path)
        places = [i for i, node in enumerate(tree.body) if self._name in _assigned(node)]
        (place,) = places
        tree.body[place + 1 : place + 1] = ast.parse(f"{self._name} = {self._value!r}").body
        return compile(tree, path, "exec")


def _assigned(node: ast.stmt) -> set[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", node)]
    names = {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}
    return names if isinstance(node, ast.Assign | ast.AnnAssign) else set()


class _Finder:
    """Finds one module, to be run otherwise."""

    def __init__(self, constant: str, value: Any) -> None:
        module, _, self._name = constant.rpartition(".")
        self._fullname, self._path, self._value = f"{PACKAGE}.{module}", path_of(module), value

    def find_spec(self, fullname: str, *_: Any) -> ModuleSpec | None:
        """Only that module."""
        if fullname != self._fullname:
            return None
        loader = _Changed(fullname, str(self._path), self._name, self._value)
        return spec_from_file_location(fullname, self._path, loader=loader)


def replaced(switch: Switch) -> None:
    """Put what a switch says in the place of what is there."""
    holder, name = place(switch)
    setattr(holder, name, switch.instead(getattr(holder, name)))


def place(switch: Switch) -> tuple[Any, str]:
    """The module or class, and the name in it."""
    *parts, name = switch.place.split(".")
    holder: Any = import_module(PACKAGE)
    for i, part in enumerate(parts):
        is_module = not part[:1].isupper()
        path = ".".join((PACKAGE, *parts[: i + 1]))
        holder = import_module(path) if is_module else getattr(holder, part)
    return holder, name


def measured(
    change: Change | None, cases: Sequence[Case], *, is_bounded: bool, seconds: float
) -> list[Found]:
    """The designs with a change, in this process, which has it from then on."""
    for name in [x for x in sys.modules if x == PACKAGE or x.startswith(f"{PACKAGE}.")]:
        del sys.modules[name]
    if change is not None and change.constant is not None:
        sys.meta_path.insert(0, _Finder(*change.constant))
    design = import_module(f"{PACKAGE}.design").design
    efforts = import_module(f"{PACKAGE}.problem").EFFORTS
    spent = import_module(f"{PACKAGE}.solvers.work").spent
    effort = replace(efforts["quick"], rounds_work=seconds, work=seconds, is_bounded=is_bounded)
    if change is not None and change.effort is not None:
        name, value = change.effort
        effort = replace(effort, **{name: value * seconds if name == "rounds_work" else value})
    efforts["quick"] = effort
    for switch in (*RIVALS, *([change.switch] if change and change.switch else [])):
        replaced(switch)
    return [_designed(design, case, spent) for case in cases]


def _designed(design: Any, case: Case, spent: Callable[[], float]) -> Found:
    F, before = rldp.ChiSquareSet(table(case.table)), spent()
    promises = {} if case.has_layers else {"epsilon_given_u": None, "epsilon_all": None}
    try:
        p = design(F, EPSILON, case.protocol, goal=case.goal, effort="quick", **promises)
    except (ArithmeticError, ValueError, IndexError, AssertionError, rldp.RldpError) as error:
        return Found(np.inf, 0.0, spent() - before, type(error).__name__)
    if case.goal == "information":
        most = p.utility + (np.inf if p.optimality_gap is None else p.optimality_gap)
        return Found(1 / p.utility, 1 / most, spent() - before)
    return Found(p.error.total, p.error.bound or 0.0, spent() - before)


def reached(cases: Sequence[Case], seconds: float) -> list[set[str]]:
    """For every case the modules of which a function runs in its design."""
    found = list[set[str]]()
    paths = {str(path_of(name)): name for name in modules()}

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        is_function = code.co_flags & CO_OPTIMIZED  # and not a module or class that is imported
        if event == "call" and is_function and code.co_filename in paths:
            found[-1].add(paths[code.co_filename])

    for case in cases:
        found.append(set())
        sys.setprofile(note)
        try:
            measured(None, [case], is_bounded=True, seconds=seconds)
        finally:
            sys.setprofile(None)
    return found


class Job(NamedTuple):
    """What a process is asked for; the change by its number, None for no change."""

    number: int | None
    cases: tuple[Case, ...]
    is_bounded: bool
    seconds: float


def done(job: Job) -> list[Found]:
    change = None if job.number is None else changes()[job.number]
    return measured(change, job.cases, is_bounded=job.is_bounded, seconds=job.seconds)


class Worth(NamedTuple):
    """What a change does in each case, as it is being 1, 0 and 1."""

    people: list[float]
    points: list[float]  # by which the gap rises
    work: float  # of all cases together
    failures: list[str]

    @classmethod
    def of(
        cls, found: Sequence[Found], as_it_is: Sequence[Found], bounds: Sequence[Found] | None
    ) -> Worth:
        """Compare with designs as they are, and with bounds that were found for those, if any."""
        with_bounds = as_it_is if bounds is None else bounds
        known = [one.bound for one in (found if bounds is None else bounds)]
        gaps = [_gap(one.V, bound) for one, bound in zip(found, known, strict=True)]
        return cls(
            [one.V / now.V for one, now in zip(found, as_it_is, strict=True)],
            [100 * (x - _gap(b.V, b.bound)) for x, b in zip(gaps, with_bounds, strict=True)],
            sum(one.work for one in found) / sum(now.work for now in as_it_is),
            [one.failure for one in found if one.failure],
        )

    @property
    def is_nothing(self) -> bool:
        """Whether neither people nor gaps change anywhere."""
        moved = max(abs(x - 1) for x in self.people)
        return moved <= SAME and max(map(abs, self.points)) <= 100 * SAME

    @property
    def is_cheap(self) -> bool:
        """Whether the work stays about the same."""
        return abs(self.work - 1) <= SAME_WORK


def _gap(V: float, bound: float) -> float:
    return max(0.0, 1 - bound / V)


def _in_percent(found: Found) -> str:
    return f"{100 * _gap(found.V, found.bound):.1f} %" if found.bound else "no bound"


def run(effort: Effort) -> None:
    """All changes, each in a process of its own, and a table of what each is worth."""
    cases, seconds = (QUICK, QUICK_SECONDS) if effort.is_quick else (CASES, SECONDS)
    for library in ("scipy.optimize", "scipy.linalg", "clarabel"):
        import_module(library)  # before processes are made of this one
    tried = list(enumerate(changes()))
    jobs = [Job(None, cases, is_bounded, seconds) for is_bounded in (False, True)]
    ran = reached(cases, seconds)
    each = [  # the cases of every change
        [i for i, own in enumerate(ran) if not change.constant or change.module in own]
        for _, change in tried
    ]
    jobs += [
        Job(number, tuple(cases[i] for i in which), change.is_of_bounds, seconds)
        for (number, change), which in zip(tried, each, strict=True)
        if which
    ]
    found = _all(jobs, effort.jobs)
    searched, bounded, *others = found
    show(
        "The search as it is",
        ("table, goal, promises", "V", "gap", "nominal seconds"),
        [
            (case.title, f"{one.V:.4g}", _in_percent(one), f"{now.work:.2f}")
            for case, one, now in zip(cases, bounded, searched, strict=True)
        ],
    )
    worth: dict[str, list[Worth]] = {}
    rows, answers = [], iter(others)
    for (_, change), which in zip(tried, each, strict=True):
        if not which:
            continue
        as_it_is = [(bounded if change.is_of_bounds else searched)[i] for i in which]
        with_bounds = None if change.is_of_bounds else [bounded[i] for i in which]
        mine = Worth.of(next(answers), as_it_is, with_bounds)
        worth.setdefault(change.line, []).append(mine)
        is_first = len(worth[change.line]) == 1
        rows.append(_row(change, mine, [cases[i] for i in which], is_first=is_first))
    show(
        "What each part and constant is worth: people, gap and work, of the search as it is",
        ("line", "change", "people", "least", "most", "where", "gap, points", "work"),
        rows,
    )
    idle = {line: own for line, own in worth.items() if all(one.is_nothing for one in own)}
    free = [line for line, own in idle.items() if all(one.is_cheap for one in own)]
    console.print(
        f"\nNothing within {100 * SAME:g} % of people or points of gap anywhere, nor in work:"
    )
    console.print(", ".join(free) or "none")
    console.print("\nThe same, but for work:")
    console.print(", ".join(line for line in idle if line not in free) or "none")
    unseen = {change.line for _, change in tried} - set(worth)
    console.print("\nIn modules that no design here reaches:")
    console.print(", ".join(sorted(unseen)) or "none")
    kinds = Counter(one.kind.value for one in constants().values())
    console.print("\n" + ", ".join(f"{kind}: {n}" for kind, n in sorted(kinds.items())))


def _all(jobs: Sequence[Job], processes: int) -> list[list[Found]]:
    found = []
    with multiprocessing.get_context("fork").Pool(processes, maxtasksperchild=1) as pool:
        for one in pool.imap(done, jobs):
            found.append(one)
            if len(found) % 10 == 0:
                console.print(f"{len(found)} of {len(jobs)}", style="dim")
    return found


def _row(change: Change, worth: Worth, cases: Sequence[Case], *, is_first: bool) -> list[str]:
    has_words = is_first and change.words != change.line
    finite = [x for x in worth.people if np.isfinite(x)]
    where = cases[int(np.argmax(np.abs(np.log(worth.people))))].title
    return [
        f"{change.line}: {change.words}" if has_words else change.line,
        change.how,
        f"{geometric_mean(finite):.3f}" if finite else "none",
        f"{min(worth.people):.3f}",
        " ".join([f"{max(finite, default=np.inf):.3f}", *worth.failures]),
        "" if worth.is_nothing else where,
        f"{np.mean([x for x in worth.points if np.isfinite(x)]):+.1f}",
        f"{worth.work:.2f}",
    ]
