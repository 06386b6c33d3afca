"""What promises cost in people: an option of `design` and `compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

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
        help="Also which rare values of U cost most, and how many people it saves to merge each "
        "with another one.",
    ),
]
EFFORT = "quick"  # of designs that are made for their price


class Priced:
    """The prices that were asked for at one ε."""

    def __init__(
        self,
        F: UncertaintySet,
        epsilon: Any,
        wishes: dict[str, Any],
        *,
        prices: bool,
        mergings: bool,
    ) -> None:
        """Make the designs; `wishes` are those of `design` beyond ε."""
        from rldp.designing.prices import merging_prices, promise_prices

        self.table, self.epsilon = F.table, epsilon
        self.prices: list[PromisePrice] = []
        self.mergings: list[MergingPrice] = []
        if not (prices or mergings):
            return
        if wishes["goal"] == "information":
            raise ParameterError("Prices are told in people: expected a --goal that is estimated.")
        with step_bars() as bars:
            tell = None if bars is None else bars("prices")
            known = {} if tell is None else {"progress": lambda done, most, _: tell(done, most)}
            if prices:
                self.prices = promise_prices(F, epsilon, effort=EFFORT, **wishes, **known)
            if mergings:
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
            note("\nWhat it saves to merge rare values of U")
            _grid(
                ("as one value", "records", "people", "saved"),
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


def _grid(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    from rich import box

    grid = Grid(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    grid.add_column(heads[0], no_wrap=True)
    for head in heads[1:]:
        grid.add_column(head, justify="right")
    for row in rows:
        grid.add_row(*row)
    show_grid(grid)
