"""Options for the guarantees of a design beyond ε over F."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from rldp.errors import ParameterError

AUTO, NONE = "auto", "none"

GivenU = Annotated[
    str,
    typer.Option(
        "--epsilon-given-u",
        metavar="ε",
        help="Level against someone who knows the person's U: a number, none, or auto: ε for best, "
        "none for other protocols.",
    ),
]
All = Annotated[
    str,
    typer.Option(
        "--epsilon-all",
        metavar="ε",
        help="Level that holds whatever distribution is true: a number, none, or auto: max(6, 2ε) "
        "for best, none for other protocols.",
    ),
]


Goal = Annotated[
    str,
    typer.Option(
        metavar="GOAL",
        help="What estimates shall be close to: cells, s, u or u_given_s; or information, the "
        "paper's measure. auto: cells for best, information for other protocols.",
    ),
]


class EffortChoice(StrEnum):
    """How much work a search may do."""

    QUICK = "quick"
    NORMAL = "normal"
    THOROUGH = "thorough"


Effort = Annotated[
    EffortChoice,
    typer.Option(help="Work of a search, counted in steps: the same input gives the same result."),
]


def level(text: str, option: str) -> float | str | None:
    """The level that an option asks for; None for no promise, "auto" for the recommended one."""
    word = text.strip().lower()
    if word == AUTO:
        return AUTO
    if word == NONE:
        return None
    try:
        return float(word)
    except ValueError:
        expected = f"Expected {option} as a number, auto or none, got {text!r}."
        raise ParameterError(expected) from None
