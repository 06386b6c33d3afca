"""How many people must answer: what `designing.people` computes and pictures show."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Curve:
    """People needed by one protocol, at every ε; ∞ where some of the goal cannot be estimated."""

    protocol: str
    epsilons: tuple[float, ...]
    people: tuple[float, ...]
    is_promised: bool  # whether it keeps, at every ε, all that "best" promises


@dataclass(frozen=True)
class People:
    """People needed for ± 1 percentage point, at 95 % confidence, on all of a goal.

    Attributes:
        curves: one for each protocol that was compared.
        unpromised: people that "best" needs where ε over F is all that it promises, at the ε of
            its curve; None where that is all it promises anyway.
        directly: people who answer without any protection.
    """

    curves: tuple[Curve, ...]
    unpromised: tuple[float, ...] | None
    directly: float

    @property
    def best(self) -> Curve | None:
        """The curve of "best"."""
        return next((curve for curve in self.curves if curve.protocol == "best"), None)
