"""What promises cost in people: an option of `design` and `compare`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rldp.cli.layers import AUTO
from rldp.cli.printing import Grid, note, paragraph, show_grid
from rldp.cli.progress import step_bars
from rldp.errors import ParameterError
from rldp.presentation import price_texts

if TYPE_CHECKING:
    from rldp.designing.prices import MergingPrice, PromisePrice
    from rldp.uncertainty import UncertaintySet

Prices = Annotated[
    bool,
    typer.Option(
        "--prices",
        help="Also what stricter and weaker promises cost in people, each from a design of its "
        "own.",
    ),
]
Mergings = Annotated[
    bool,
    typer.Option(
        "--mergings",
        help="Also which rare values of S and U cost most, and how many people it saves to merge "
        "them.",
    ),
]
EFFORT = "quick"  # of designs that are made for their price


_WISHES = ("goal", "epsilon_given_u", "epsilon_all", "epsilon_given_part", "time_limit")


def check(protocol: str, goal: str, *, is_asked: bool) -> None:
    """Refuse prices of what has none, before the work begins."""
    if not is_asked:
        return
    if protocol != "best":
        raise ParameterError(f"--prices and --mergings are about best, got {protocol!r}.")
    if goal == "information":
        raise ParameterError("Prices are told in people: expected a --goal that is estimated.")


class Priced:
    """What was asked for of the prices at one ε."""

    def __init__(
        self, F: UncertaintySet, epsilon: float, wanted: dict[str, Any], *asked: bool
    ) -> None:
        """Make the designs.

        Args:
            F: the set of distributions.
            epsilon: privacy level.
            wanted: arguments of `design`; those that prices know are taken.
            asked: whether promises shall be priced, and mergings.
        """
        from rldp.designing.prices import merging_prices, promise_prices

        self.table, self.epsilon = F.table, epsilon
        self.prices: list[PromisePrice] = []
        self.mergings: list[MergingPrice] = []
        wishes = {name: wanted[name] for name in _WISHES}
        wishes["goal"] = "cells" if wishes["goal"] == AUTO else wishes["goal"]
        with_prices, with_mergings = asked
        if with_prices:
            with _progress("prices") as known:
                self.prices = promise_prices(F, epsilon, effort=EFFORT, **wishes, **known)
        if with_mergings:
            with _progress("mergings") as known:
                self.mergings = merging_prices(F, epsilon, effort=EFFORT, **wishes, **known)

    def show(self) -> None:
        """Print them."""
        for promise in dict.fromkeys(price["promise"] for price in self.prices):
            paragraph(price_texts.price_head(promise, self.table), after_space=True)
            rows = price_texts.price_rows(self.prices, promise, self.table)
            _grid((*price_texts.HEADS, ""), rows)
            offer = price_texts.offer_in_words(self.prices, promise, self.table)
            if offer is not None:
                paragraph(offer)
        if self.prices:
            paragraph(price_texts.how_made(EFFORT))
        if self.mergings:
            note("\nWhat it saves to merge rare values")
            _grid(
                price_texts.MERGING_HEADS,
                price_texts.merging_rows(self.mergings),
            )
            paragraph(price_texts.merging_in_words(self.mergings, self.table))

    @property
    def summary(self) -> dict[str, Any]:
        """The same for machines."""
        return {
            "epsilon": self.epsilon,
            "prices": price_texts.price_records(self.prices),
            "mergings": price_texts.price_records(self.mergings),
        }


@contextmanager
def _progress(title: str) -> Iterator[dict[str, Any]]:
    """A bar for designs, as an argument of what makes them."""
    with step_bars() as bars:
        if bars is None:
            yield {}
            return
        tell = bars(title)
        yield {"progress": lambda done, most, _: tell(done, most)}


def _grid(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    from rich import box

    grid = Grid(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    grid.add_column(heads[0])
    for head in heads[1:]:
        grid.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        grid.add_row(*row)
    show_grid(grid)
