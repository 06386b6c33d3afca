"""Columns with one τ, or any τ between two, and every s*: what they are worth at given prices.

Every column is divided by its τ here: the others have [1, e^ε/τ] and s* has [1/τ, e^ε]. Between two
τ's the others lie below a chord (`changes`). For s* there are three bounds: its box is contained in
[1/high, e^ε], where each of its vertices has a multiplier of its own, or those of the widest block
have, or s* lies below a chord too, with one multiplier for each of its parts. Where masses differ
so much that multipliers are loose, vertices that no multiplier rules out are few, and branch and
bound finds the best of their products.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from rldp.optimise.products import Branches, Lists, best_products
from rldp.polyopt.box import Guest, Survivors, Tops, least_worth
from rldp.polyopt.changes import Span
from rldp.polyopt.stock import Stock

Array = NDArray[np.float64]

_FAR = 5  # multipliers all over their range
_AROUND = np.array([-0.1, -0.02, 0.0, 0.02, 0.1])  # and around the best so far
_NEAR = 0.05  # from the best: where bounds shall be close
_FEW = 4  # multipliers for a first bound
_AIMS = 2  # s* of which the best multipliers are looked at closely
_LOOKS, _VAIN = 25, 3  # at a range that is looked at once, each closer, and those that say no more
_BEYOND = np.array([0.5, 1.5, 3.0, 5.0, 8.0, 12.0])  # far beyond: prices may still be far off
_GAINED = 0.8  # of what is left to win: if more is left after a look, it said nothing
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

    def __init__(self, stock: Stock, low: float, high: float) -> None:
        """Take the boxes and changes of all blocks, and the two τ's."""
        self._stock, self.low, self.high = stock, low, high
        blocks = stock.blocks
        every = range(len(blocks))
        self._ends = [
            [stock.box(s, tau, is_star=False) for s in every] for tau in sorted({low, high})
        ]
        self._stars = [stock.box(s, high, is_star=True) for s in every] if high > 1 else []
        self._p_su = np.array([block.p for block in blocks])
        largest = float(self._p_su.sum(axis=1).max()) if self._stars else 0.0
        self._widest = int(np.argmax(self._p_su.sum(axis=1)))
        self._least = 1 + np.log(1 - largest * (1 - 1 / high) + 1e-3)
        self._most = 1 + np.log(stock.factor)
        self.aims = np.zeros(0)
        self._aims = np.full(len(self._stars) or 1, self._most)  # of every s*
        self.worth = np.full(len(blocks) if self._stars else 1, np.inf)  # at the last look
        # of the last look: multipliers, what the others offer at the lower τ, and at both
        self._at, self._tops, self._shares = np.zeros(0), np.zeros((0, 0)), [np.zeros((0, 0, 0))]
        self._is_near, self._seen = np.zeros(0, bool), np.zeros((0, 0))

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
        near = np.add.outer(self.aims, _AROUND).ravel()
        far = np.linspace(self._least, self._most, _FAR)
        is_within = self.aims.size and self.aims.max() < self._most
        beyond = self._most + (_BEYOND[:1] if is_within else _BEYOND)
        return np.unique(np.concatenate([near, far, beyond]).round(6))

    def _guests(self, prices: Array, met: list[Tops] | None = None) -> list[Guest]:
        """One vertex exactly, that of s* if there is any, and the others through multipliers."""
        self._offered(prices, met)
        at = self._at
        most = 0 if met is None else _GUESTS
        # a few multipliers will do for those that are worth less than others
        guests = [
            self._guest(prices, i, most, np.sort(abs(at - aim).argsort()[:_FEW]))
            for i, aim in enumerate(self._aims)
        ]
        is_full = np.zeros(len(guests), bool)
        while not is_full[i := int(np.argmax([one.worth for one in guests]))]:
            one, other = self._guest(prices, i, most), self._other_guest(prices, i)
            if other is not None and other.worth < one.worth:
                one = Guest(other.worth, other.multiplier, one.T)
            guests[i], is_full[i] = one, True
        self._aims = np.array([one.multiplier for one in guests])
        worst = sorted(guests, key=lambda one: -one.worth)[:_AIMS]
        self.aims = np.array([one.multiplier for one in worst])
        return guests

    def _guest(
        self, prices: Array, star: int, most: int, which: NDArray[np.intp] | None = None
    ) -> Guest:
        """The vertices of s*, at some multipliers or all."""
        s = star if self._stars else self._widest
        one = self._stars[star] if self._stars else self._ends[0][s]
        which = np.arange(self._at.size) if which is None else which
        beside = self._beside(s).max(axis=0)[:, which]
        return one.guest(prices[s], self._at[which], beside, most)

    def _offered(self, prices: Array, met: list[Tops] | None = None) -> None:
        """What every block offers to others."""
        self._seen = prices
        self._at = at = self._grid()
        apart = abs(at[:, None] - self.aims).min(axis=1, initial=np.inf)
        self._is_near = apart <= (_NEAR if self.aims.size else np.inf)
        offers = [
            [one.offers(row, at, self._is_near) for one, row in zip(end, prices, strict=True)]
            for end in (self._ends if met is None else self._ends[1:])
        ]
        if met is not None:
            met += [one.tops(row, at) for one, row in zip(self._ends[0], prices, strict=True)]
            offers = [[top.bound for top in met], *offers]
        self._tops = np.array([own.max(axis=0) for own in offers[0]])
        self._shares = [
            self._line(s, row, own, is_star=False)
            for s, (row, *own) in enumerate(zip(prices, *offers, strict=True))
        ]

    def _other_guest(self, prices: Array, star: int) -> Guest | None:
        """The vertices of the widest block in place of those of s*: better near τ = 1.

        A single τ is looked at too often for that.
        """
        widest, at = self._widest, self._at
        if self.low == self.high or star == widest:
            return None
        rest = self._beside(star, widest).max(axis=0)
        own = self._stars[star].offers(prices[star], at, self._is_near)
        beside = (rest[:, None] + own[np.isfinite(own[:, 0])]).reshape(-1, at.size)
        return self._ends[0][widest].guest(prices[widest], at, beside, 0)

    def variants(self, prices: Array) -> list[Array]:
        """Further vertices of the others at the multiplier that was best in the last look."""
        multiplier = float(self.aims[0])
        return [
            one.variants(row, multiplier) for one, row in zip(self._ends[0], prices, strict=True)
        ]

    def _line(self, s: int, prices: Array, offers: Sequence[Array], *, is_star: bool) -> Array:
        """What the parts of a block offer at both τ's, above all that they offer in between."""
        if self.low == self.high:
            return offers[0][None, np.isfinite(offers[0][:, 0])]
        span = Span(self.low, self.high, np.stack(np.broadcast_arrays(*offers)))
        lines = self._stock.changes(s, is_star).lines(prices, self._at, self._is_near, span)
        return lines[:, np.isfinite(lines[0, :, 0])]

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

    def bounds(self, prices: Array, known: Array, target: float, deadline: float = np.inf) -> Array:
        """These bounds of every s*, lowered by looks, each closer, until they meet the target."""
        found, vain = np.full_like(known, np.inf), 0
        for _ in range(_LOOKS):
            some = np.flatnonzero(np.minimum(found, known) > target)
            if not some.size or vain == _VAIN or time.monotonic() > deadline:
                break
            before = found[some].max()
            found[some] = np.minimum(found[some], self._closer(prices, some))
            is_slow = found[some].max() - target > _GAINED * (before - target)
            vain = vain + 1 if is_slow else 0
        return np.minimum(found, known)

    def _closer(self, prices: Array, stars: NDArray[np.intp]) -> Array:
        """The bounds of some s*, the best of all three."""
        self._offered(prices)
        found = []
        for s in stars.tolist():
            three = [
                self._guest(prices, s, 0),
                self._other_guest(prices, s),
                self._chord(prices, s),
            ]
            found.append(min((one for one in three if one), key=lambda one: one.worth))
        worst = sorted(found, key=lambda one: -one.worth)[:_AIMS]
        self.aims = np.array([one.multiplier for one in worst])
        return np.array([one.worth for one in found])

    def _chord(self, prices: Array, star: int) -> Guest | None:
        """All of s* with one multiplier for each of its parts."""
        if self.low == self.high:
            return None
        ends = [self._stock.box(star, tau, is_star=True) for tau in (self.low, self.high)]
        offers = [one.offers(prices[star], self._at, self._is_near) for one in ends]
        own = self._line(star, prices[star], offers, is_star=True)
        sums = (self._beside(star)[:, :, None] + own[:, None]).max(axis=0)
        worth, at = (x.ravel() for x in least_worth(self._at, sums))
        worst = int(worth.argmax())
        return Guest(float(worth[worst]), float(at[worst]), np.zeros((0, prices.shape[1])))

    def settled(self, prices: Array, star: int, target: float) -> Settled | None:
        """Search the products of what the last look at these prices left over, or give up.

        The others have the widest of their boxes, that of the lower τ.
        """
        if not np.array_equal(prices, self._seen):
            self._offered(prices)
        at, boxes, tops = self._at, list(self._ends[0]), self._tops.copy()
        if self._stars:
            boxes[star] = self._stars[star]
            tops[star] = boxes[star].offers(prices[star], at, self._is_near).max(axis=0)
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
