"""Columns with one τ, or any τ between two, and every s*: what they are worth at given prices.

Every column is divided by its τ here: the others have [1, e^ε/τ] and s* has [1/τ, e^ε]. Between two
τ's the others lie below a chord (`changes`). For s* there are three bounds: its box is contained in
[1/high, e^ε], where each of its vertices has a multiplier of its own, or those of the widest block
have, or s* lies below a chord too, with one multiplier for all. Where masses differ so much that
multipliers are loose, vertices that no multiplier rules out are few, and branch and bound finds the
best of their products.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from rldp.optimise.products import Branches, Lists, best_products
from rldp.polyopt.blocks import Block
from rldp.polyopt.box import Guest, Survivors, Tops, least_worth
from rldp.polyopt.boxes import box
from rldp.polyopt.changes import Span, changes

Array = NDArray[np.float64]

_FAR, _NEAR = 5, 3  # multipliers: all over their range, and where the best ones were
_FEW = 4  # multipliers for a first bound
_AIMS = 2  # s* of which the best multipliers are looked at closely
_LOOKS, _VAIN = 25, 3  # at a range that is looked at once, each closer, and those that say no more
_BEYOND = np.array([0.5, 1.5, 3.0, 5.0, 8.0, 12.0])  # far beyond: prices may still be far off
_SLIGHT = 1e-4  # nats
_WIDE, _NARROW = 0.4, 0.02
_MOST_SURVIVORS = 3000  # vertices of one block among which products are searched
_MOST_TOGETHER = 500  # choices of one part from every block
_GUESTS = 8  # vertices of s* that come near its bound
_PATIENCE = 3000  # branches of such a search
_MOST_WHOLE = 60  # columns taken from one search


class Look(NamedTuple):
    """A bound on what columns are worth, for every s*, and the vertices met if it is positive."""

    worth: Array
    others: list[Array]
    stars: list[Array]
    variants: list[Array]  # further vertices of the others


class Settled(NamedTuple):
    """Whole columns that are worth more than the target, best first, and a bound on all."""

    columns: Array
    best: float
    bound: float


class Range:
    """Columns with low ≤ τ ≤ high; where both are 1 there is no s*."""

    def __init__(self, blocks: Sequence[Block], factor: float, low: float, high: float) -> None:
        """Take the blocks, e^ε, and the two τ's."""
        self._blocks, self._factor, self.low, self.high = blocks, factor, low, high
        self._ends = [
            [box(block, 1.0, factor / tau) for block in blocks] for tau in sorted({low, high})
        ]
        self._stars = [box(block, 1 / high, factor) for block in blocks] if high > 1 else []
        self._changes = {
            is_star: [changes(block, factor, is_star=is_star) for block in blocks]
            for is_star in ((False, True) if low < high else ())
        }
        self._p_su = np.array([block.p for block in blocks])
        largest = float(self._p_su.sum(axis=1).max()) if self._stars else 0.0
        self._widest = int(np.argmax(self._p_su.sum(axis=1)))
        self._least = 1 + np.log(1 - largest * (1 - 1 / high) + 1e-3)
        self._most = 1 + np.log(factor)
        self.aims, self._width = np.zeros(0), _WIDE
        self._aims = np.full(len(self._stars) or 1, self._most)  # of every s*
        self.worth = np.full(len(blocks) if self._stars else 1, np.inf)  # at the last look
        # of the last look: multipliers, what the others offer at the lower τ, and at both
        self._at, self._tops, self._shares = np.zeros(0), np.zeros((0, 0)), [np.zeros((0, 0, 0))]

    def look(self, prices: Array, *, is_brief: bool = False) -> Look:
        """Bound what columns are worth, and meet the vertices that come near the bounds.

        A brief look meets none.
        """
        guests = self._guests(prices)
        self.worth = np.array([guest.worth for guest in guests])
        if is_brief or (self._stars and self.worth.max() <= 0):
            return Look(self.worth, [], [], [])
        met: list[Tops] = []
        guests = self._guests(prices, met)
        others = [np.unique(top.T.round(12), axis=0) for top in met]
        if not self._stars:
            s = self._widest
            others[s] = np.unique(np.concatenate([others[s], guests[0].T]).round(12), axis=0)
        stars = [
            np.concatenate([guest.T, star.variants(row, guest.multiplier)])
            if guest.worth > 0
            else guest.T
            for guest, star, row in zip(guests, self._stars, prices, strict=False)
        ]
        self.worth = np.minimum(self.worth, [guest.worth for guest in guests])
        stars = [np.unique(T.round(12), axis=0) for T in stars]
        return Look(self.worth, others, stars, self.variants(prices))

    def _grid(self) -> Array:
        near = np.add.outer(self.aims, self._width * np.linspace(-0.5, 0.5, _NEAR)).ravel()
        far = np.linspace(self._least, self._most, _FAR)
        is_within = self.aims.size and self.aims.max() < self._most
        beyond = self._most + (_BEYOND[:1] if is_within else _BEYOND)
        return np.unique(np.concatenate([near, far, beyond]).round(6))

    def _guests(self, prices: Array, met: list[Tops] | None = None) -> list[Guest]:
        """One vertex exactly, that of s* if there is any, and the others through multipliers."""
        at = self._grid()
        offers = [
            [one.offers(row, at) for one, row in zip(end, prices, strict=True)]
            for end in (self._ends if met is None else self._ends[1:])
        ]
        if met is not None:
            met += [one.tops(row, at) for one, row in zip(self._ends[0], prices, strict=True)]
            offers = [[top.bound for top in met], *offers]
        self._at, self._tops = at, np.array([own.max(axis=0) for own in offers[0]])
        self._shares = self._chords(prices, at, offers, is_star=False)
        boxes = self._stars or [self._ends[0][self._widest]]
        rows = list(range(len(prices))) if self._stars else [self._widest]
        most = 0 if met is None else _GUESTS

        def guest(i: int, which: NDArray[np.intp]) -> Guest:
            s = rows[i]
            beside = self._beside(s).max(axis=0)[:, which]
            return boxes[i].guest(prices[s], at[which], beside, most)

        # a few multipliers will do for those that are worth less than others
        guests = [
            guest(i, np.sort(abs(at - aim).argsort()[:_FEW])) for i, aim in enumerate(self._aims)
        ]
        is_full = np.zeros(len(guests), bool)
        while not is_full[i := int(np.argmax([one.worth for one in guests]))]:
            one, other = guest(i, np.arange(at.size)), self._other_guest(prices, i)
            if other is not None and other.worth < one.worth:
                one = Guest(other.worth, other.multiplier, one.T)
            guests[i], is_full[i] = one, True
        self._aims = np.array([one.multiplier for one in guests])
        worst = sorted(guests, key=lambda one: -one.worth)[:_AIMS]
        self._aim(np.array([one.multiplier for one in worst]))
        return guests

    def _other_guest(self, prices: Array, star: int) -> Guest | None:
        """The vertices of the widest block in place of those of s*: better near τ = 1.

        A single τ is looked at too often for that.
        """
        widest, at = self._widest, self._at
        if self.low == self.high or star == widest:
            return None
        rest = self._beside(star, widest).max(axis=0)
        own = self._stars[star].offers(prices[star], at)
        beside = (rest[:, None] + own[np.isfinite(own[:, 0])]).reshape(-1, at.size)
        return self._ends[0][widest].guest(prices[widest], at, beside, 0)

    def variants(self, prices: Array) -> list[Array]:
        """Further vertices of the others at the multiplier that was best in the last look."""
        multiplier = float(self.aims[0])
        return [
            one.variants(row, multiplier) for one, row in zip(self._ends[0], prices, strict=True)
        ]

    def _chords(
        self, prices: Array, at: Array, offers: Sequence[Sequence[Array]], *, is_star: bool
    ) -> list[Array]:
        """What the parts of every block offer at both τ's, raised by the excess in between."""
        if self.low == self.high:
            return [own[None, np.isfinite(own[:, 0])] for own in offers[0]]
        chords = []
        for change, row, *own in zip(self._changes[is_star], prices, *offers, strict=True):
            ends = np.stack(np.broadcast_arrays(*own))
            is_empty = np.isneginf(ends)
            # a part that is empty at one τ has no vertex there which could lie above the chord
            low, high = np.where(is_empty, ends.max(axis=1, keepdims=True), ends)
            span = Span(self.low, self.high, low, high)
            excess = change.excess(row, at, span)
            some = ~(is_empty.all(axis=0) & np.isneginf(excess))[:, 0]
            chords.append((np.stack([low, high]) + np.maximum(excess, 0.0))[:, some])
        return chords

    def _beside(self, *left_out: int) -> Array:
        """What all but some offer at both τ's, for every choice of one part from each."""
        sums = np.zeros((len(self._shares[0]), 1, self._at.size))
        for s in np.argsort(-self._p_su.sum(axis=1)):
            if s not in left_out:
                own = self._shares[s]
                if sums.shape[1] * own.shape[1] > _MOST_TOGETHER:
                    own = own.max(axis=1, keepdims=True)
                sums = (sums[:, :, None] + own[:, None]).reshape(len(sums), -1, self._at.size)
        return sums

    def _aim(self, best: Array) -> None:
        """Look more closely, the next time, where the best multipliers were."""
        is_near = self.aims.size and abs(best[0] - self.aims).min() < self._width / 2
        self._width = max(self._width / 3, _NARROW) if is_near else _WIDE
        self.aims = best

    def bounds(self, prices: Array, target: float) -> Array:
        """Bounds for every s*, from several looks, each closer, until they are below the target."""
        worth, vain = np.full(len(self._stars) or 1, np.inf), 0
        for _ in range(_LOOKS):
            before = worth.max()
            guests = self._guests(prices)
            worth = np.minimum(worth, [guest.worth for guest in guests])
            if worth.max() <= target:
                return np.asarray(worth)
            vain = vain + 1 if worth.max() > before - _SLIGHT else 0
            if vain == _VAIN:
                break
        return np.minimum(worth, self._chord(prices)) if self.low < self.high else worth

    def _chord(self, prices: Array) -> Array:
        """The bound of every s* with one multiplier for all, at those of the last look."""
        at = self._at
        offers = [
            [
                box(block, 1 / tau, self._factor).offers(row, at)
                for block, row in zip(self._blocks, prices, strict=True)
            ]
            for tau in (self.low, self.high)
        ]
        worth = []
        for s, own in enumerate(self._chords(prices, at, offers, is_star=True)):
            sums = (self._beside(s)[:, :, None] + own[:, None]).max(axis=0)
            worth.append(least_worth(at, sums)[0].max())
        return np.array(worth)

    def settled(self, prices: Array, star: int, target: float) -> Settled | None:
        """Search the products of what the last look at these prices left over, or give up.

        The others have the widest of their boxes, that of the lower τ.
        """
        at, boxes, tops = self._at, list(self._ends[0]), self._tops.copy()
        if self._stars:
            boxes[star] = self._stars[star]
            tops[star] = boxes[star].offers(prices[star], at).max(axis=0)
        rest = tops.sum(axis=0) - tops
        left: list[Survivors] = []
        for one, row, beside in zip(boxes, prices, rest, strict=True):
            some = one.survivors(row, at, beside, target)
            if some is None or some.mass.size > _MOST_SURVIVORS:
                return None
            left.append(some)
        if not all(some.mass.size for some in left):
            return Settled(np.zeros((0, *prices.shape)), target, target)
        return _searched(left, target)

    def proven(self, prices: Array, worth: Array, target: float) -> Array:
        """These bounds on what columns are worth, each lowered by searches, down to the target."""
        worth = worth.copy()
        for star in np.argsort(-worth):
            goal = target
            while worth[star] > goal:
                settled = self.settled(prices, int(star), goal)
                if settled is None:
                    return worth
                worth[star] = min(worth[star], settled.bound)
                if not len(settled.columns):
                    break
                goal = max(1.5 * goal, 1.1 * settled.best)
        return worth


def _searched(left: Sequence[Survivors], target: float, each: Sequence[int] = ()) -> Settled:
    """Products of one vertex from every list: the best, and those of each vertex of some lists."""
    n_s, shape = len(left), (len(left), max(some.mass.size for some in left))
    T, gain, mass = np.zeros((*shape, left[0].T.shape[1])), np.zeros(shape), np.ones(shape)
    for s, some in enumerate(left):
        n = some.mass.size
        T[s, :n], gain[s, :n], mass[s, :n] = some.T, some.gain, some.mass
    own = np.arange(n_s)
    last = np.array([[some.mass.size - 1 for some in left]])
    first = np.zeros_like(last)
    for s in each:
        n = left[s].mass.size
        more_first, more_last = (np.repeat(side[:1], n, axis=0) for side in (first, last))
        more_first[:, s] = more_last[:, s] = np.arange(n)
        first, last = np.vstack([first, more_first]), np.vstack([last, more_last])
    roots = Branches(np.repeat(own[None], len(first), axis=0), first, last)
    found = best_products(Lists(gain, mass), roots, target, patience=_PATIENCE)
    _, which = np.unique(found.choice, axis=0, return_index=True)
    choice = found.choice[np.sort(which)[:_MOST_WHOLE]]
    return Settled(T[own, choice], float(found.worth.max(initial=target)), found.bound)


def products(seen: Look, prices: Array, p_su: Array, target: float, *, many: bool = False) -> Array:
    """Whole columns from vertices that were met, each with one s*, worth more than the target."""
    found = by_star(seen, prices, p_su, target, many=many).values()
    return np.concatenate([np.zeros((0, *p_su.shape)), *found])


def by_star(
    seen: Look, prices: Array, p_su: Array, target: float, *, many: bool = False
) -> dict[int, Array]:
    """These columns for every s* that has any, best first."""
    found: dict[int, Array] = {}
    if not seen.others:
        return found
    for star in np.flatnonzero(seen.worth > target).tolist() if seen.stars else (-1,):
        lists = [seen.stars[s] if s == star else T for s, T in enumerate(seen.others)]
        left = [_priced(*one) for one in zip(lists, prices, p_su, strict=True)]
        each = list(range(len(lists))) if many else [star] if seen.stars else []
        columns = _searched(left, target, each).columns
        if len(columns):
            found[star] = columns
    return found


def _priced(T: Array, prices: Array, p: Array) -> Survivors:
    T = T[np.argsort(T @ p)]
    return Survivors(-entr(T) @ p - T @ prices, T @ p, T)
