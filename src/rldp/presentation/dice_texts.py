"""What dice and few outputs cost, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rldp.designing.few_outputs import DicePrice

_ALIKE = 0.005  # share of people that is not told


def dice_price_in_words(price: DicePrice, goal: str) -> str:
    """People against the best protocol without limits, and against simple randomised response."""
    told = (
        f"price: for the same margins of the goal {goal} it takes {price.people:.2f} times as many "
        f"people as the best protocol found without limits on outputs and dice"
    )
    share = price.people_against_simple
    if share is None:
        return f"{told}; simple randomised response with the same dice does not tell this goal"
    if abs(share - 1) < _ALIKE:
        return f"{told}, and as many as simple randomised response with the same dice"
    if share > 1:
        return (
            f"{told}, and {share:.2f} times as many as simple randomised response with the same "
            f"dice, which is better here"
        )
    return (
        f"{told}; simple randomised response with the same dice takes {1 / share:.2f} times as many"
    )
