"""Step 2, prices: what the promises cost in people, and what merging values saves."""

from __future__ import annotations

from typing import Any

from rldp.presentation import price_texts
from rldp.studio import code
from rldp.studio.answers import FieldError
from rldp.studio.choices import Choice
from rldp.studio.jobs import Job
from rldp.studio.session import Session
from rldp.studio.tasks import MERGINGS, PROMISES, find_prices
from rldp.tables.table import Table
from rldp.utility.goal import INFORMATION


def start(session: Session, body: dict[str, Any]) -> dict[str, Any]:
    """Design the alternatives, with progress; what they cost is in the progress at the end."""
    choice, what = Choice.from_request(body), body.get("what", PROMISES)
    if what not in (PROMISES, MERGINGS):
        raise FieldError("what", f"Expected {PROMISES} or {MERGINGS}.")
    if choice.goal == INFORMATION:
        raise FieldError("goal", "Prices are told in people: choose a goal that is estimated.")
    F = session.setting(choice).F
    snippets = code.snippets(what, choice, session.file(choice.data).name)

    def work(job: Job) -> None:
        def hear(_: str, content: Any) -> None:
            done, most, note = content
            job.progress = job.progress | {"share": done / most, "note": note}

        arguments = (F, what, choice.epsilon, choice.goal, choice.layers)
        found = job.search(session.jobs.workers, hear, find_prices, *arguments)
        told = _promises(found or [], F.table) if what == PROMISES else _mergings(found, F.table)
        job.progress = job.progress | {"tables": told, "code": snippets}

    return session.jobs.start("prices", work).summary()


def _promises(prices: list[Any], table: Table) -> list[dict[str, Any]]:
    return [
        {
            "about": price_texts.price_head(promise, table),
            "heads": [*price_texts.HEADS, ""],
            "rows": price_texts.price_rows(prices, promise, table),
            "sentence": price_texts.offer_in_words(prices, promise, table),
            "note": price_texts.how_made("quick"),
        }
        for promise in dict.fromkeys(price["promise"] for price in prices)
    ]


def _mergings(found: list[Any] | None, table: Table) -> list[dict[str, Any]]:
    if not found:
        return []
    return [
        {
            "about": "What it saves to merge rare values",
            "heads": price_texts.MERGING_HEADS,
            "rows": price_texts.merging_rows(found),
            "sentence": price_texts.merging_in_words(found, table),
            "note": "",
        }
    ]
