"""What a quadratic form reaches at most over products of lists of vectors.

A column has one vector T_s from the list of every s. Messages m_st(i) move parts of the terms of
pairs to the terms of single lists:

    Σ_s max_i [T_iᵀ B_ss T_i + Σ_t m_st(i)] + Σ_{s<t} max_ij [2 T_iᵀ B_st T_j - m_st(i) - m_ts(j)]

is an upper bound on Σ_st T_sᵀ B_st T_t, whatever the messages are. An update of a pair makes its
maximum 0 and shares what is left between its two lists; this never raises the bound. A vector whose
own bound is not above 0 is left out. Products that some sweeps do not decide are divided by the
vectors of their shortest list. With two lists left the table of all pairs is looked through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from rldp._types import Array, Flags, Indices
from rldp.designing.solvers.quadratic_form import NEVER, Products, QuadraticForm
from rldp.designing.solvers.work import spend

_MOST_SWEEPS = 20  # of messages
_STILL = 0.9  # of the sum of bounds: a sweep that leaves more is the last one
_AT_ONCE = 2**19  # numbers in the tables of one batch
_SECONDS_OF_BATCH = 5e-4  # nominal, beside its numbers
_SECONDS = 1e-8  # nominal, for one number of a table in one sweep


class Largest(NamedTuple):
    """A bound on T·B·T/(p·T)², 0 if no column is above 0; and the columns found above 0."""

    bound: float
    columns: Array  # (columns, lists, n), the best one last
    is_decided: bool  # whether the bound is attained, or 0


class _Batch(NamedTuple):
    """Products of the lists that are left, shortest first; the other vectors are fixed."""

    T: Array  # (products, lists, places, n)
    s: Indices  # (products, lists): whose lists they are
    is_there: Flags  # (products, lists, places)
    own: Array  # (products, lists, places): the terms of one list, with those of fixed vectors
    messages: Array  # (products, lists, lists, places): to a list from another
    constant: Array  # (products,)
    fixed: Array  # (products, all lists, n): 0 for lists that are left

    def rows(self, kept: Indices | Flags | slice) -> _Batch:
        """Some of the products."""
        return _Batch(
            self.T[kept],
            self.s[kept],
            self.is_there[kept],
            self.own[kept],
            self.messages[kept],
            self.constant[kept],
            self.fixed[kept],
        )

    @property
    def n_left(self) -> int:
        """How many lists are left."""
        return int(self.s.shape[1])

    def levels(self) -> Array:
        """The terms of single lists with all messages."""
        return np.asarray(self.own + self.messages.sum(axis=2))


def largest_ratio(form: QuadraticForm, products: Products, is_over: Callable[[], bool]) -> Largest:
    """The largest T·B·T/(p·T)² over all products of at least two lists.

    Where the search is over before its end, the bound holds but need not be attained.
    """
    bound, is_decided, columns = 0.0, True, np.zeros((0, *products.T.shape[1::2]))
    todo = list(_begun(form, products))
    while todo:
        batch = todo.pop()
        spend(_SECONDS_OF_BATCH)
        if is_over():
            reached, found, is_decided = _given_up(form, batch), batch.fixed[:0], False
        elif batch.n_left == 2:
            reached, found = _looked_through(form, batch)
        else:
            todo += _divided(form, _swept(form, batch))
            continue
        columns = np.concatenate([columns, found] if reached > bound else [found, columns])
        bound = max(bound, reached)
    return Largest(bound, columns, is_decided)


def _begun(form: QuadraticForm, products: Products) -> Iterator[_Batch]:
    """All products, with messages that leave nothing to the pairs."""
    R, k, places, n = products.T.shape
    step = max(1, 2 * _AT_ONCE // (k * k * places * places))
    for first in range(0, R, step):
        part = slice(first, first + step)
        T, is_there = products.T[part], products.is_there[part]
        rows = len(T)
        s = np.broadcast_to(np.arange(k), (rows, k))
        own = np.stack([form.own(T[:, i], s[:, i]) for i in range(k)], axis=1)
        own = np.where(is_there, own, NEVER)
        messages = np.zeros((rows, k, k, places))
        batch = _Batch(T, s, is_there, own, messages, np.zeros(rows), np.zeros((rows, k, n)))
        for (i, j), table in _tables(form, batch):
            _, a, b = table.shape  # places without a vector can only raise the maxima
            messages[:, i, j, :a] = np.where(is_there[:, i, :a], table.max(axis=2) / 2, 0.0)
            messages[:, j, i, :b] = np.where(is_there[:, j, :b], table.max(axis=1) / 2, 0.0)
        yield from _batches(_pruned(batch)[0])


def _tables(form: QuadraticForm, batch: _Batch) -> Iterator[tuple[tuple[int, int], Array]]:
    """The terms of all pairs of lists."""
    longest = batch.is_there.sum(axis=2).max(axis=0)
    for i in range(batch.n_left):
        for j in range(i):
            T, other = batch.T[:, i, : longest[i]], batch.T[:, j, : longest[j]]
            yield (i, j), form.pairs(T, batch.s[:, i], other, batch.s[:, j])


def _pruned(batch: _Batch) -> tuple[_Batch, float]:
    """Only products and vectors whose bounds are above 0, and the sum of their bounds."""
    spend(_SECONDS * batch.messages.size)
    levels = batch.levels()
    top = levels.max(axis=2)
    bounds = batch.constant + top.sum(axis=1)
    is_there = batch.is_there & ((bounds[:, None] - top)[:, :, None] + levels > 0)
    open_ = np.flatnonzero(bounds > 0)
    if not open_.size:
        return batch.rows(open_), 0.0
    batch = batch._replace(is_there=is_there).rows(open_)
    counts = batch.is_there.sum(axis=2)
    lists = np.argsort(counts, axis=1, kind="stable")
    order = np.argsort(~batch.is_there, axis=2, kind="stable")[:, :, : counts.max()]
    order = np.take_along_axis(order, lists[:, :, None], 1)
    row, place = np.arange(open_.size)[:, None, None], lists[:, :, None]
    is_there = batch.is_there[row, place, order]
    messages = batch.messages[
        row[..., None], place[..., None], lists[:, None, :, None], order[:, :, None, :]
    ]
    batch = batch._replace(
        T=batch.T[row, place, order],
        s=np.take_along_axis(batch.s, lists, 1),
        is_there=is_there,
        own=np.where(is_there, batch.own[row, place, order], NEVER),
        messages=np.where(is_there[:, :, None], messages, 0.0),
    )
    return batch, float(bounds[open_].sum())


def _swept(form: QuadraticForm, batch: _Batch) -> _Batch:
    """Updates of all pairs, sweep by sweep, until they bring little."""
    if (batch.is_there[:, 0].sum(axis=1) == 1).all():
        return batch  # dividing costs nothing
    before = np.inf
    for _ in range(_MOST_SWEEPS):
        levels, messages = batch.levels(), batch.messages.copy()
        for (i, j), table in _tables(form, batch):
            _, a, b = table.shape
            at_i, at_j = batch.is_there[:, i, :a], batch.is_there[:, j, :b]
            level_i = levels[:, i, :a] - messages[:, i, j, :a]
            level_j = levels[:, j, :b] - messages[:, j, i, :b]
            table += level_i[:, :, None]
            table += level_j[:, None, :]
            best_i, best_j = table.max(axis=2) / 2, table.max(axis=1) / 2
            messages[:, i, j, :a] = np.where(at_i, best_i - level_i, 0.0)
            messages[:, j, i, :b] = np.where(at_j, best_j - level_j, 0.0)
            levels[:, i, :a] = np.where(at_i, best_i, NEVER)
            levels[:, j, :b] = np.where(at_j, best_j, NEVER)
            spend(_SECONDS * table.size)
        batch, total = _pruned(batch._replace(messages=messages))
        if total >= _STILL * before or not len(batch.T):
            break
        before = total
    return batch


def _divided(form: QuadraticForm, batch: _Batch) -> Iterator[_Batch]:
    """The same products, with every vector of the first list as a fixed one."""
    row, place = np.nonzero(batch.is_there[:, 0])
    if not row.size:
        return
    batch, n = batch.rows(row), np.arange(row.size)
    chosen, s = batch.T[n, 0, place], batch.s[:, 0]
    own = batch.own[:, 1:].copy()
    for j in range(1, batch.n_left):
        own[:, j - 1] += form.pairs(chosen[:, None], s, batch.T[:, j], batch.s[:, j])[:, 0]
    fixed = batch.fixed.copy()
    fixed[n, s] = chosen
    children = _Batch(
        batch.T[:, 1:],
        batch.s[:, 1:],
        batch.is_there[:, 1:],
        own,
        batch.messages[:, 1:, 1:],
        batch.constant + batch.own[n, 0, place],
        fixed,
    )
    spend(_SECONDS * own.size)
    yield from _batches(_pruned(children)[0])


def _batches(batch: _Batch) -> Iterator[_Batch]:
    """Batches of products of about one size, whose tables are not too large."""
    counts = batch.is_there.sum(axis=2).astype(float)
    size = (counts.sum(axis=1) ** 2 - (counts**2).sum(axis=1)) / 2
    order = np.argsort(size, kind="stable")
    number = (np.cumsum(size[order]) // _AT_ONCE).astype(np.intp)
    for rows in np.split(order, np.flatnonzero(np.diff(number)) + 1):
        part = batch.rows(rows)
        longest = int(part.is_there.sum(axis=2).max(initial=0))
        if longest:
            yield part._replace(
                T=part.T[:, :, :longest],
                is_there=part.is_there[:, :, :longest],
                own=part.own[:, :, :longest],
                messages=part.messages[..., :longest],
            )


def _looked_through(form: QuadraticForm, batch: _Batch) -> tuple[float, Array]:
    """The largest ratio of products of two lists, and the best column of each above 0."""
    _, table = next(_tables(form, batch))
    _, a, b = table.shape  # places of the second list, and of the first
    table += batch.constant[:, None, None] + batch.own[:, 1, :a, None] + batch.own[:, 0, None, :b]
    spend(_SECONDS * table.size)
    open_ = np.flatnonzero(table.max(axis=(1, 2)) > 0)
    if not open_.size:
        return 0.0, batch.fixed[:0]
    table, batch = table[open_], batch.rows(open_)
    mass = form.of_columns(batch.fixed)[:, None, None]
    mass = mass + form.mass(batch.T[:, 1, :a], batch.s[:, 1])[:, :, None]
    mass = mass + form.mass(batch.T[:, 0, :b], batch.s[:, 0])[:, None, :]
    ratio = np.divide(table, mass**2, out=np.zeros_like(table), where=table > 0)
    best = ratio.reshape(len(ratio), -1).argmax(axis=1)
    n, columns = np.arange(len(best)), batch.fixed.copy()
    for i, place in zip((1, 0), np.divmod(best, b), strict=True):
        columns[n, batch.s[:, i]] = batch.T[n, i, place]
    values = ratio.reshape(len(ratio), -1)[n, best]
    return float(values.max()), columns[np.argsort(values, kind="stable")]


def _given_up(form: QuadraticForm, batch: _Batch) -> float:
    """A bound on the ratio of products that are not decided."""
    bounds = batch.constant + batch.levels().max(axis=2).sum(axis=1)
    mass = form.of_columns(batch.fixed)
    for i in range(batch.n_left):
        of_list = form.mass(batch.T[:, i], batch.s[:, i])
        mass = mass + np.where(batch.is_there[:, i], of_list, np.inf).min(axis=1)
    return float((np.maximum(bounds, 0.0) / mass**2).max(initial=0.0))
