"""Options for the guarantees of a design beyond ε over F."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rldp.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rldp.tables.schema import Schema

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
GivenPart = Annotated[
    str,
    typer.Option(
        "--epsilon-given-part",
        metavar="ε",
        help="Level over F against someone who knows some of the useful columns but not all: a "
        "number, none, or auto: 2ε for best, none for other protocols.",
    ),
]
Knows = Annotated[
    list[str] | None,
    typer.Option(
        "--knows",
        metavar="COL,COL=ε ...",
        help="The same for one part alone, such as sex,age=1.5; others as --epsilon-given-part.",
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


def given_part(text: str, knows: Sequence[str] | None, schema: Schema) -> Any:
    """What is asked for against those who know part of U: for all parts, and for single ones."""
    from rldp.tables.parts import Part, parts_of

    of_all = level(text, "--epsilon-given-part")
    if not knows:
        return of_all
    asked: dict[tuple[str, ...], float | str | None] = dict.fromkeys(parts_of(schema), of_all)
    for part in knows:
        names, equals, given = part.rpartition("=")
        if not equals:
            raise ParameterError(f"Expected --knows COL,COL=ε, such as sex,age=1.5, got {part!r}.")
        columns = [column.name for column in schema.useful]
        known = [names] if names in columns else [name.strip() for name in names.split(",")]
        asked[Part.of(schema, known).names] = level(given, f"--knows {names}")
    return asked
