"""How an integer table is spoiled: the sums that it must have stay, what it leaks does not."""

from __future__ import annotations

import numpy as np

Rng = np.random.Generator
Integers = dict[str, np.ndarray]


def moved(rng: Rng, integers: Integers) -> None:
    """Mass moved between two entries of a row; its sum stays."""
    N = integers[str(rng.choice(list(integers)))]
    row = N.reshape(-1, N.shape[-1])[rng.integers(N.size // N.shape[-1])]
    one, two = rng.permutation(row.size)[:2]
    amount = int(row[one] * 2.0 ** -rng.uniform(0.5, 24))
    row[one] -= amount
    row[two] += amount


def swapped(rng: Rng, integers: Integers) -> None:
    """Two rows of one table exchanged, within one s where their sums ask for it."""
    name = "own" if "own" in integers else str(rng.choice(list(integers)))
    N = integers[name]
    if name == "own":
        N = N[rng.integers(N.shape[0])]
    rows = N.reshape(-1, N.shape[-1])
    one, two = rng.integers(len(rows), size=2)
    rows[[one, two]] = rows[[two, one]]


def scaled(rng: Rng, integers: Integers) -> None:
    """A column of one s scaled; the next column makes up for it."""
    N = integers[{"Q": "Q", "r_s": "r_u", "own": "own"}[next(iter(integers))]]
    block = N[rng.integers(N.shape[0])] if N.ndim == 3 else N
    one, two = rng.permutation(block.shape[-1])[:2]
    change = (block[:, one] * rng.uniform(0.01, 0.5)).astype(np.int64)
    change = np.minimum(change, block[:, two])
    block[:, one] += change
    block[:, two] -= change


def lowered(rng: Rng, levels: np.ndarray) -> None:
    """A level of a channel of sets lowered; the remainder gets what it loses."""
    i = rng.integers(levels.size)
    levels[i] -= int(levels[i] * 2.0 ** -rng.uniform(0.1, 24))


def mutant(rng: Rng, integers: Integers) -> Integers:
    """A spoiled copy."""
    spoiled = {name: N.copy() for name, N in integers.items()}
    if "levels" in spoiled:
        lowered(rng, spoiled["levels"])
        return spoiled
    for _ in range(rng.integers(1, 3)):
        (moved, moved, swapped, scaled)[rng.integers(4)](rng, spoiled)
    return spoiled
