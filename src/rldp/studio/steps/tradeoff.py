"""Step 2, trade-off: errors and information of every protocol over ε; searches as they go."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

from rldp.decimals import brief_up, shortest
from rldp.designing.catalogue import BEST, CEILING
from rldp.designing.compare import Record
from rldp.presentation.texts import TITLES, columns_title, set_in_words
from rldp.studio import code
from rldp.studio.answers import bits
from rldp.studio.choices import Choice
from rldp.studio.jobs import Job
from rldp.studio.outlook import GOAL_TITLES, Outlook
from rldp.studio.promise import MOST
from rldp.studio.session import GRID, Session, Setting
from rldp.studio.tasks import Point, find_points
from rldp.utility.goal import INFORMATION

SEARCHED = (CEILING, "polyopt", BEST)
SEARCHED_AT = (1.0, 0.5, 2.0, 4.0, 0.25, 3.0, 1.5, 6.0, 8.0)
_FORESEEN = tuple(field.name for field in fields(Outlook))


def curves(session: Session, body: dict[str, Any]) -> dict[str, Any]:
    """The closed forms over the grid and at ε, and what is known of the others."""
    choice = Choice.from_request(body)
    setting = session.setting(choice)
    table = setting.F.table
    return {
        "title": columns_title(table),
        "set": set_in_words(setting.F),
        "entropy_bits": bits(table.entropy),
        "epsilon": choice.epsilon,
        "most": max(GRID[-1], choice.epsilon),
        "titles": TITLES,
        "goal": choice.goal,
        "goal_title": GOAL_TITLES[choice.goal],
        "records": table.n,
        "layers": choice.levels,
        "curves": [_closed_form(record) for record in setting.curves(choice.epsilon)],
        "at": figures_at(setting, choice.epsilon),
        "searched": searched(setting),
        "code": code.snippets("tradeoff", choice, session.file(choice.data).name),
    }


def search(session: Session, body: dict[str, Any]) -> dict[str, Any]:
    """Start the search for what is not known yet, at the chosen ε first."""
    choice = Choice.from_request(body)
    setting = session.setting(choice)
    points = dict.fromkeys((choice.epsilon, *SEARCHED_AT))
    wanted = [(name, e) for name in SEARCHED for e in points if (name, e) not in setting.searched]
    wanted.sort(key=lambda pair: pair[1] != choice.epsilon)  # this one is looked at

    def work(job: Job) -> None:
        done = 0

        def hear(kind: str, content: Any) -> None:
            nonlocal done
            if kind == "at":
                name, epsilon = content
                job.progress = job.progress | {"note": f"{name} at ε = {shortest(epsilon)}"}
                return
            done += 1
            setting.searched.put((content.protocol, content.epsilon), content)
            job.progress = job.progress | _progress(done / len(wanted), setting)

        if wanted:
            arguments = (setting.F, wanted, choice.goal, choice.layers)
            job.search(session.jobs.workers, hear, find_points, *arguments)
        job.progress = _progress(done / max(1, len(wanted)), setting)

    return session.jobs.start("curves", work).summary()


def _progress(share: float, setting: Setting) -> dict[str, Any]:
    return {"share": share, "searched": searched(setting)}


def searched(setting: Setting) -> list[dict[str, Any]]:
    """What searches found, as curves that never get worse.

    What is private at ε is private at every larger ε. So what is kept at a smaller ε can be kept
    here too, and what nothing exceeds at a larger ε nothing exceeds here. For a goal other than
    information the protocol with the smallest error is the better one.
    """
    points = sorted(setting.searched.values(), key=lambda point: point.epsilon)
    entropy = setting.F.table.entropy
    found = []
    for name in SEARCHED:
        mine = [point for point in points if point.protocol == name]
        for point in mine:
            if name == CEILING:
                source = min((p for p in mine if p.epsilon >= point.epsilon), key=_utility)
            else:
                is_better = _utility if setting.goal == INFORMATION else _accuracy
                source = max((p for p in mine if p.epsilon <= point.epsilon), key=is_better)
            found.append(_carried(point, source, entropy))
    return found


def _utility(point: Point) -> float:
    return point.utility


def _accuracy(point: Point) -> tuple[float, float]:
    error = math.inf if point.outlook is None else point.outlook.error
    return -error, point.utility


def _carried(point: Point, source: Point, entropy: float) -> dict[str, Any]:
    """One point with the value of another that holds for it as well."""
    is_from_another = point.is_early and source.epsilon != point.epsilon
    return {
        "protocol": point.protocol,
        "epsilon": point.epsilon,
        "bits": bits(source.utility),
        "share": source.utility / entropy if entropy > 0 else 0.0,
        "seconds": point.seconds,
        "is_early": point.is_early,
        "from_epsilon": source.epsilon if is_from_another else None,
        **_foreseen(source.outlook),
    }


def _foreseen(outlook: Outlook | None) -> dict[str, Any]:
    """What estimates will look like, and the further levels; null where it is not known."""
    if outlook is None:
        return dict.fromkeys(_FORESEEN)
    told = {name: getattr(outlook, name) for name in _FORESEEN}
    levels = {
        "known_part": outlook.epsilon_given_part,
        "known_u": outlook.epsilon_given_u,
        "always": outlook.epsilon_all,
    }
    return told | {name: _level(epsilon) for name, epsilon in levels.items()}


def _level(epsilon: float) -> str:
    """A level for a table, never smaller than it is; nothing where there is no such reader."""
    if math.isnan(epsilon):
        return ""
    return "none" if epsilon > MOST else brief_up(epsilon)


def _closed_form(record: Record, outlook: Outlook | None = None) -> dict[str, Any]:
    told = _foreseen(outlook)
    if outlook is None:
        told["error"] = record["error"]
    return {
        "protocol": record["protocol"],
        "epsilon": record["epsilon"],
        "bits": bits(record["utility"]),
        "share": record["normalised"],
        "seconds": record["seconds"],
        "is_early": False,
        "from_epsilon": None,
        **told,
    }


def figures(setting: Setting, epsilon: float) -> list[dict[str, Any]]:
    """Every point that a picture up to an ε shows."""
    most = max(GRID[-1], epsilon)
    closed = [_closed_form(record) for record in setting.curves(epsilon)]
    return [*closed, *(point for point in searched(setting) if point["epsilon"] <= most)]


def figures_at(setting: Setting, epsilon: float) -> list[dict[str, Any]]:
    """What is known at one ε, the best for the goal first."""
    outlooks = setting.outlooks(epsilon)
    closed = [_closed_form(record, outlooks[record["protocol"]]) for record in setting.at(epsilon)]
    found = [point for point in searched(setting) if point["epsilon"] == epsilon]
    return sorted([*closed, *found], key=lambda point: rank(point, setting.goal))


def rank(point: dict[str, Any], goal: str) -> tuple[float, float]:
    """What comes first: the smallest error of the goal, or the most information."""
    error = point["error"]
    if goal == INFORMATION or point["protocol"] == CEILING:
        error = -1.0 if point["protocol"] == CEILING else 0.0
    return math.inf if error is None or error != error else error, -point["bits"]
