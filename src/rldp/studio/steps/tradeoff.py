"""Step 2, trade-off: what every protocol keeps over ε; searches report as they go."""

from __future__ import annotations

from typing import Any

from rldp.protocols.catalogue import BEST, CEILING, Record
from rldp.studio import code
from rldp.studio.answers import bits
from rldp.studio.choices import Choice
from rldp.studio.jobs import Job
from rldp.studio.session import Session, Setting
from rldp.wording import TITLES, columns_title, set_in_words

SEARCHED = (CEILING, "polyopt", BEST)
SEARCHED_AT = (1.0, 0.5, 2.0, 4.0, 0.25, 3.0, 1.5, 6.0, 8.0)


def curves(session: Session, body: dict[str, Any]) -> dict[str, Any]:
    """The closed forms over the grid and at ε, and what is known of the others."""
    choice = Choice.from_request(body)
    setting = session.setting(choice)
    table = setting.F.table
    return {
        "title": columns_title(table),
        "set": set_in_words(setting.F),
        "entropy_bits": bits(table.entropy),
        "titles": TITLES,
        "curves": [_point(record) for record in setting.curves],
        "at": [_point(record) for record in setting.at(choice.epsilon)],
        "searched": _searched(setting),
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
        for done, (name, epsilon) in enumerate(wanted):
            job.tell(
                share=done / len(wanted),
                note=f"{name} at ε = {epsilon:g}",
                searched=_searched(setting),
            )
            setting.search(name, epsilon)
        job.tell(share=1.0, note="", searched=_searched(setting))

    return session.jobs.start("curves", work).summary()


def _searched(setting: Setting) -> list[dict[str, Any]]:
    return [_point(record) for record in list(setting.searched.values())]


def _point(record: Record) -> dict[str, Any]:
    return {
        "protocol": record["protocol"],
        "epsilon": record["epsilon"],
        "bits": bits(record["utility"]),
        "share": record["normalised"],
        "seconds": record["seconds"],
    }
