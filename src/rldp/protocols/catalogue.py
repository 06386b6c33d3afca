"""All protocols, and the two things to do with them: design one, compare all."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict, cast

import numpy as np
from numpy.typing import NDArray

from rldp.certificate import certified
from rldp.channel import Channel
from rldp.errors import ParameterError
from rldp.polyopt.columns import Progress
from rldp.protocol import Parameter, ReleaseProtocol
from rldp.protocols import exact, grr, grr_cr, ir, programmes, srr, ue, ue_cr
from rldp.protocols.budget import Bounds
from rldp.protocols.family import Family, Parameters, Pinned
from rldp.protocols.identifiable import identified
from rldp.uncertainty import UncertaintySet

Array = NDArray[np.float64]

FAMILIES: dict[str, Family] = {family.NAME: family for family in (grr, ue, srr, ir, grr_cr, ue_cr)}
PROGRAMMES = {
    "polyopt": programmes.polyopt,
    "optimal": programmes.optimal,
    "ldp-optimal": programmes.ldp_optimal,
}
BEST, CEILING = "best", "ceiling"
NAMES = (*FAMILIES, *PROGRAMMES, BEST)
COMPARED = (*FAMILIES, "polyopt", BEST, CEILING)
BOUNDS = ("sharp", "exact", "paper")
LARGEST_EPSILON = 100.0

_TIME_LIMIT = 30.0  # seconds for one design,
_SHORT_LIMIT = 8.0  # or for one where the optimum over F is searched on
_MOST_SHORT = 49  # cells,
_TIME_TO_COMPARE = 4.0  # and for one line of a comparison
_MIXED = ("ir", "grr-cr", "ue-cr")  # families with outputs outside the cone of PolyOpt
_MOST_OUTPUTS = 2**15  # of a protocol whose outputs are mixed with others
_MOST_CELLS = 300  # where exact bounds are tried for "best"
_CELLS_AT_ONCE = 2**14  # cells times ε values searched together: bounds the memory


class Record(TypedDict):
    """One line of a comparison."""

    protocol: str
    epsilon: float
    utility: float
    normalised: float
    seconds: float


@dataclass(frozen=True)
class _Draft:
    """A protocol before it is rounded and proved."""

    name: str
    channel: Channel
    parameters: Mapping[str, Parameter]
    options: Mapping[str, str]
    bound: float = np.inf  # nats that no protocol of this kind exceeds


def design(
    uncertainty: UncertaintySet,
    epsilon: float,
    protocol: str = BEST,
    *,
    bounds: str = "sharp",
    pairs: str = "distinct",
    objective: str = "empirical",
    parameters: Mapping[str, float | str] | None = None,
    hidden: bool = False,
    identifiable: bool = False,
    condition: float | None = None,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> ReleaseProtocol:
    """The most useful protocol of a kind, or the best mixture of all kinds, that is (ε, F)-RLDP.

    It maximises I(X;Y) at the frequencies of the table.

    Args:
        uncertainty: the set F of distributions that may be true.
        epsilon: privacy level in nats, above 0.
        protocol: "grr", "ue", "srr", "ir", "grr-cr", "ue-cr", "polyopt", "optimal" (the best that
            a search finds among all that are private over F), "ldp-optimal" (the best that
            protects the whole record), or "best": "optimal" with the outputs of all others mixed
            in, with sharp and with exact bounds, so that it is never less useful than any.
        bounds: "sharp"; "exact", which spends all of ε over F and takes longer; or "paper", the
            conditions as the paper prints them. With "best", "paper" chooses among those.
        pairs: for polyopt, "distinct" (s1 ≠ s2) or "all" (Γ as the paper prints it).
        objective: for polyopt, "empirical", or "robust": the most that is kept for all of F.
        parameters: parameters to pin, under the names that the result reports.
        hidden: for optimal and best, ask that the randomiser does not read S: Q(y|s,u) = Q(y|u).
        identifiable: ask that every cell of the table can be estimated from reports, by mixing in
            as little as possible of a closed form that allows it.
        condition: how ill-conditioned the estimate may be then; by default twice the best of the
            closed forms.
        time_limit: seconds after which a search ends with the best protocol so far, as it does at
            Ctrl-C; 30 if not given, and 8 for optimal and best on tables of up to 49 cells.
        progress: called during a search with the nats kept so far and a bound on them.

    >>> from rldp import ChiSquareSet, Table
    >>> p = design(ChiSquareSet(Table([[30, 10], [10, 50]])), epsilon=1.0, protocol="srr")
    >>> p.matrix.shape
    (2, 2, 4)
    """
    _check_set(uncertainty)
    epsilon = float(_checked([epsilon])[0])
    options = programmes.Options(
        pairs,
        objective,
        hidden,
        _time_limit(protocol, uncertainty) if time_limit is None else time_limit,
        progress,
    )
    if hidden and (protocol not in ("optimal", BEST) or bounds == "paper" or identifiable):
        raise ParameterError(
            "hidden=True goes with protocol 'optimal' or 'best', and neither with bounds='paper' "
            "nor with identifiable=True: what S is cannot be estimated from reports without it."
        )
    if parameters and protocol in (*PROGRAMMES, BEST):
        raise ParameterError(f"{protocol} has no parameters to pin.")
    if protocol in PROGRAMMES:
        draft = _programme(protocol, uncertainty, epsilon, options)
    elif protocol == BEST:
        draft = _best(uncertainty, epsilon, bounds, options)
    else:
        draft = _closed_form(protocol, uncertainty, epsilon, bounds, parameters or {})
    if identifiable:
        draft = _identified(draft, uncertainty, epsilon, condition)
    return _proved(draft, uncertainty, epsilon)


def _time_limit(protocol: str, F: UncertaintySet) -> float:
    is_short = protocol in ("optimal", BEST) and F.table.counts.size <= _MOST_SHORT
    return _SHORT_LIMIT if is_short else _TIME_LIMIT


def _identified(
    draft: _Draft, F: UncertaintySet, epsilon: float, condition: float | None
) -> _Draft:
    partners = [
        _closed_form(name, F, epsilon, "sharp", {}).channel for name in ("grr", "srr", "grr-cr")
    ]
    found = identified(draft.channel, partners, F.table.p_su, condition)
    if not found.share:
        return draft
    before, after = (x.mutual_information(F.table.p_su) for x in (draft.channel, found.channel))
    costs = {"mixed_share": found.share, "identifiability_cost": before - after}
    return _Draft(
        draft.name,
        found.channel,
        dict(draft.parameters) | costs,
        dict(draft.options) | {"identifiable": "yes"},
    )


def _proved(draft: _Draft, F: UncertaintySet, epsilon: float) -> ReleaseProtocol:
    table = certified(draft.channel, F, epsilon)
    kept = table.channel.mutual_information(F.table.p_su)
    lost = draft.channel.mutual_information(F.table.p_su) - kept
    reached = draft.parameters.get("guaranteed_utility", kept)
    gap = None if np.isinf(draft.bound) else max(0.0, draft.bound - cast(float, reached))
    return ReleaseProtocol(
        name=draft.name,
        epsilon=epsilon,
        uncertainty=F,
        channel=table.channel,
        integers=table.integers,
        bits=table.bits,
        certificate=table.certificate,
        parameters=draft.parameters,
        options=draft.options,
        optimality_gap=gap,
        rounding_loss=max(0.0, lost),
    )


def _closed_form(
    name: str, F: UncertaintySet, epsilon: float, bounds: str, pinned: Pinned
) -> _Draft:
    solution = _optimum(name, F, np.array([epsilon]), bounds, pinned)
    chosen = {key: _plain(values[0]) for key, values in solution.items()}
    channel = FAMILIES[name].channel(F, epsilon, chosen)
    return _Draft(name, channel, chosen, {"bounds": bounds})


def _programme(name: str, F: UncertaintySet, epsilon: float, options: programmes.Options) -> _Draft:
    found = PROGRAMMES[name](F, epsilon, options)
    chosen = {"pairs": options.pairs, "objective": options.objective} if name == "polyopt" else {}
    chosen |= {"hidden": "yes"} if options.hidden else {}
    return _Draft(name, found.channel, found.parameters, chosen, found.bound)


def _best(F: UncertaintySet, epsilon: float, bounds: str, options: programmes.Options) -> _Draft:
    """The mixture of all outputs, or the best closed form where those are too many to mix."""

    def drafts(names: Iterable[str], bounds: str) -> list[_Draft]:
        return [_closed_form(name, F, epsilon, bounds, {}) for name in names]

    def utility(draft: _Draft) -> float:
        return draft.channel.mutual_information(F.table.p_su)

    if bounds == "paper":
        return max(drafts(FAMILIES, bounds), key=utility)
    if options.hidden:
        return replace(_programme("optimal", F, epsilon, options), name=BEST)
    known = drafts(FAMILIES, "sharp")
    if F.table.counts.size <= _MOST_CELLS:
        known += drafts(("ir", "ue-cr"), "exact")  # the others keep no slack
    mixed = [
        draft.channel
        for draft in known
        if draft.name in _MIXED and draft.channel.n_outputs <= _MOST_OUTPUTS
    ]
    found = programmes.optimal(F, epsilon, options, mixed)
    best = max(_Draft(BEST, found.channel, {}, {}), *known, key=utility)
    return replace(best, bound=found.bound)


def compare(
    uncertainty: UncertaintySet,
    epsilons: float | Iterable[float],
    *,
    protocols: Sequence[str] | None = None,
    bounds: str = "sharp",
    time_limit: float = _TIME_TO_COMPARE,
) -> list[Record]:
    """What every protocol keeps at every ε, one record each (see `Record`).

    Utilities are in nats; `normalised` is the share of H(X). All ε of a family are searched
    together; `seconds` is that time divided by their number. With bounds="paper", PolyOpt takes
    the paper's Γ. "ceiling" is what no protocol can exceed.

    Args:
        uncertainty: the set F of distributions that may be true.
        epsilons: one privacy level or several.
        protocols: those to compare; all of the closed forms, "polyopt", "best" and "ceiling" if
            not given.
        bounds: as for `design`.
        time_limit: seconds for each search of a programme.
    """
    _check_set(uncertainty)
    if isinstance(epsilons, np.ndarray):
        epsilons = epsilons.tolist()  # of shape () too
    values = _checked(epsilons if isinstance(epsilons, Iterable) else [epsilons])
    entropy = uncertainty.table.entropy
    records: list[Record] = []
    for name in COMPARED if protocols is None else protocols:
        start = time.perf_counter()
        utility = _utilities(name, uncertainty, values, bounds, time_limit).clip(0.0, entropy)
        seconds = (time.perf_counter() - start) / values.size
        records += [
            {
                "protocol": name,
                "epsilon": float(epsilon),
                "utility": float(kept),
                "normalised": float(kept / entropy) if entropy > 0 else 0.0,
                "seconds": seconds,
            }
            for epsilon, kept in zip(values, utility, strict=True)
        ]
    return records


def _utilities(
    name: str, F: UncertaintySet, epsilons: Array, bounds: str, time_limit: float
) -> Array:
    """What a protocol keeps at every ε, in nats."""
    options = programmes.Options("all" if bounds == "paper" else "distinct", time_limit=time_limit)
    if name == CEILING:
        return np.array([programmes.ceiling(F, float(e), time_limit) for e in epsilons])
    if name in PROGRAMMES:
        drafts = [_programme(name, F, float(e), options) for e in epsilons]
    elif name == BEST:
        drafts = [_best(F, float(e), bounds, options) for e in epsilons]
    else:
        parameters = _optimum(name, F, epsilons, bounds, {})
        return FAMILIES[name].utility(F, epsilons, parameters)
    return np.array([draft.channel.mutual_information(F.table.p_su) for draft in drafts])


def _optimum(
    name: str, F: UncertaintySet, epsilons: Array, bounds: str, pinned: Pinned
) -> Parameters:
    """The best parameters of one family at all ε, a bounded number of cells at a time."""
    if name not in FAMILIES:
        raise ParameterError(f"Expected a protocol among {', '.join(NAMES)}, got {name!r}.")
    if bounds not in BOUNDS:
        raise ParameterError(f"Expected bounds among {', '.join(BOUNDS)}, got {bounds!r}.")
    family = FAMILIES[name]
    for parameter in pinned:
        if parameter not in family.PARAMETERS:
            known = ", ".join(family.PARAMETERS) or "none"
            raise ParameterError(f"{name} has no parameter {parameter!r} to pin; it has: {known}.")
    if bounds == "exact":
        parts = [exact.calibrated(family, F, float(epsilon), pinned) for epsilon in epsilons]
        return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    step = max(1, _CELLS_AT_ONCE // (F.table.n_s * F.table.n_u))
    parts = [
        family.optimum(F, epsilons[i : i + step], cast(Bounds, bounds), pinned)
        for i in range(0, epsilons.size, step)
    ]
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def _check_set(uncertainty: UncertaintySet) -> None:
    if not isinstance(uncertainty, UncertaintySet):
        raise ParameterError(
            f"Expected an uncertainty set such as ChiSquareSet(table), "
            f"got {type(uncertainty).__name__}."
        )


def _checked(epsilons: Iterable[float]) -> Array:
    epsilons = list(epsilons)
    if not epsilons:
        raise ParameterError("Expected at least one epsilon, got none.")
    for epsilon in epsilons:
        if isinstance(epsilon, bool) or not isinstance(
            epsilon, int | float | np.integer | np.floating
        ):
            raise ParameterError(f"Expected epsilon as a number, got {epsilon!r}.")
        if not 0 < epsilon <= LARGEST_EPSILON:
            raise ParameterError(f"Expected 0 < epsilon ≤ {LARGEST_EPSILON:g}, got {epsilon}.")
    return np.array([float(epsilon) for epsilon in epsilons])


def _plain(value: Array) -> Parameter:
    return float(value) if np.ndim(value) == 0 else tuple(float(x) for x in value)
