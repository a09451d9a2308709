"""The joint law of a few columns of a network, by exact elimination of all others.

    P(x_T) = sum over the other columns of the product of all tables

Columns on which x_T does not depend are left out first (their tables sum to one); the others are summed out one by one, always
the one that leaves the smallest table. All terms are sums of products of numbers at least 0, so that every entry has a small
*relative* error, which is counted and returned. Works for networks of a thousand columns whose graph is not too dense.

What must never change: `error` bounds the relative error of every entry, and an entry is 0 only if it is impossible, unless
`tiny` says that a product was too small for a float.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from attrpriv.errors import PolicyError, UsageError
from attrpriv.numerics.networks.network import Network, ancestors
from attrpriv.numerics.rounding import UNIT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Tensor = NDArray[np.float64]

MOST_ENTRIES = 2**24
_LEAST = 1e-290


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint law: one axis for each column, in order."""

    columns: tuple[str, ...]
    values: Tensor
    error: float
    tiny: bool


@dataclass(frozen=True, eq=False)
class _Factor:
    columns: tuple[str, ...]
    values: Tensor


def joint_law(network: Network, columns: Sequence[str]) -> Joint:
    """P of every combination of states of these columns.

    >>> from attrpriv.numerics.networks.network import Node
    >>> coin = Node(states=("0", "1"), table=((0.5, 0.5),))
    >>> both = Node(states=("no", "yes"), parents=("a", "b"), table=((1, 0), (1, 0), (1, 0), (0, 1)))
    >>> joint_law(Network(nodes={"a": coin, "b": coin, "c": both}), ("c", "a")).values.tolist()
    [[0.5, 0.25], [0.0, 0.25]]
    """
    wanted = tuple(dict.fromkeys(columns))
    sizes, tables = _scaled(network)
    _require_size(math.prod(sizes[name] for name in wanted), wanted)
    kept = ancestors(network, wanted)
    factors = [_Factor((*network.nodes[name].parents, name), tables[name]) for name in network.nodes if name in kept]
    # Of each table: its division by the sum of the row.
    steps = sum(2 + sizes[name] for name in kept)
    tiny = False
    for name in _order(factors, sizes, wanted):
        inside = [factor for factor in factors if name in factor.columns]
        product, small = _product(inside, sizes, last=name)
        factors = [factor for factor in factors if name not in factor.columns]
        factors.append(_Factor(product.columns[:-1], product.values.sum(axis=-1)))
        steps += len(inside) + sizes[name]
        tiny = tiny or small
    whole, small = _product(factors, sizes, first=wanted)
    steps += len(factors)
    return Joint(wanted, whole.values, 1.01 * steps * UNIT, tiny or small)


@lru_cache(maxsize=8)
def _scaled(network: Network) -> tuple[dict[str, int], dict[str, Tensor]]:
    """How many states each column has, and its table, each row divided by its sum: decimal fractions need not add up to one."""
    sizes = {name: len(node.states) for name, node in network.nodes.items()}
    tables = {name: network.array(name) for name in network.nodes}
    return sizes, {name: table / table.sum(axis=-1, keepdims=True) for name, table in tables.items()}


def _require_size(entries: int, columns: Iterable[str]) -> None:
    if entries > MOST_ENTRIES:
        named = ", ".join(sorted(columns)[:6])
        raise UsageError(f"network: a table of {entries:.3g} entries over {named}, ... is too large. Ask for fewer columns.")


def _order(factors: Sequence[_Factor], sizes: dict[str, int], wanted: Sequence[str]) -> Iterator[str]:
    """The columns to sum out: next the one whose table with its neighbours is the smallest."""
    neighbours: dict[str, set[str]] = {}
    for factor in factors:
        for name in factor.columns:
            neighbours.setdefault(name, set()).update(factor.columns)
    left = {name for name in neighbours if name not in wanted}

    def entries(name: str) -> int:
        return math.prod(sizes[other] for other in neighbours[name])

    heap = [(entries(name), name) for name in sorted(left)]
    heapq.heapify(heap)
    while heap:
        size, name = heapq.heappop(heap)
        if name not in left or size != entries(name):
            continue  # an older entry
        _require_size(size, neighbours[name])
        left.remove(name)
        around = neighbours.pop(name) - {name}
        for other in around:
            neighbours[other] = (neighbours[other] | around) - {name}
            if other in left:
                heapq.heappush(heap, (entries(other), other))
        yield name


def _product(
    factors: Sequence[_Factor], sizes: dict[str, int], *, first: Sequence[str] = (), last: str | None = None
) -> tuple[_Factor, bool]:
    """The product of some tables, with the axes in a given order; and whether an entry may have become too small."""
    import numpy as np

    names = dict.fromkeys((*first, *(name for factor in factors for name in factor.columns)))
    columns = (*(name for name in names if name != last), *(() if last is None else (last,)))
    least, values = 0.0, np.ones([1] * len(columns))
    for factor in sorted(factors, key=lambda one: one.values.size):
        positive = factor.values[factor.values > 0]
        least += math.log(float(positive.min())) if positive.size else 0.0
        values = values * _aligned(factor, columns)
    shape = [sizes[name] for name in columns]
    return _Factor(columns, np.broadcast_to(values, shape)), least < math.log(_LEAST)


def _aligned(factor: _Factor, columns: Sequence[str]) -> Tensor:
    """The table with its axes in this order, of length 1 for columns that it lacks."""
    import numpy as np

    places = [factor.columns.index(name) for name in columns if name in factor.columns]
    shape = [factor.values.shape[factor.columns.index(name)] if name in factor.columns else 1 for name in columns]
    return np.transpose(factor.values, places).reshape(shape)


# ----------------------------------------------------------------------------------------------------------------------------
# Bounds on what a Bayesian network says of an event, given the state of one of its columns.
#
#     P(x) = product over columns of table[x_column | its parents]
#
# `tolerance` t: every entry of every table may be off by t (kept within [0, 1]; rows still sum to one). Bounds come from
# eliminating the columns backwards, children before parents: with U the bound so far,
#
#     U(others) = max over rows p with |p - table| <= t, sum p = 1, of  sum over x of p(x) U(x, others)
#
# found exactly by filling the largest U first. The true network is among those over which the maximum runs, whatever row it
# chooses for whatever history, so the bound is never too small; with t = 0 it is the exact probability.
#
# Given a category c, a sensitive column without parents is simply fixed. Otherwise P(E | c) = A/(A + B) with A = P(E and c),
# B = P(not E and c), and A at most, B at least bound it from above.


_MOST_ENTRIES = 5_000_000
# Covers the rounding of sums and products of a few hundred numbers in [0, 1].
_ROUNDING = 1e-13


class BoundsError(PolicyError, ValueError):
    """What cannot be bounded: an error of the policy, and like any other of a value inside a check of it."""


def bounds(network: Network, columns: Sequence[str], event: Tensor, t: float) -> tuple[float, float]:
    """The least and the largest P(event) over all networks within the tolerance."""
    inside = Bound(tuple(columns), event)
    low, high = (_extreme(network, inside, t, None, largest=largest) for largest in (False, True))
    return _outward(low, high, t)


def bounds_given(
    network: Network, sensitive: str, category: int, columns: Sequence[str], event: Tensor, t: float
) -> tuple[float, float]:
    """The least and the largest P(event | sensitive = category) over all networks within the tolerance.

    `event` is 1 for the combinations of states of `columns` that belong to the event, and 0 for the others.
    """
    import numpy as np

    flat = np.asarray(event, dtype=np.float64).tobytes()
    return _bounds_given(network, sensitive, category, tuple(columns), event.shape, flat, t)


@lru_cache(maxsize=256)  # every mechanism asks the same again, and a network may have thousands of columns to eliminate
def _bounds_given(
    network: Network, sensitive: str, category: int, columns: tuple[str, ...], shape: tuple[int, ...], flat: bytes, t: float
) -> tuple[float, float]:
    import numpy as np

    event = np.frombuffer(flat, dtype=np.float64).reshape(shape)
    inside, outside = Bound(columns, event), Bound(columns, 1 - event)
    if not network.nodes[sensitive].parents:
        known = (sensitive, category)
        low, high = (_extreme(network, inside.at(*known), t, known, largest=largest) for largest in (False, True))
    else:
        given = [bound.only(sensitive, category, len(network.nodes[sensitive].states)) for bound in (inside, outside)]
        most = [_extreme(network, bound, t, None, largest=True) for bound in given]
        least = [_extreme(network, bound, t, None, largest=False) for bound in given]
        if not min(most[0] + least[1], least[0] + most[1]) > 0:
            raise BoundsError(f"network: {network.nodes[sensitive].states[category]} of {sensitive} must be possible.")
        low, high = least[0] / (least[0] + most[1]), most[0] / (most[0] + least[1])
    return _outward(low, high, t)


def _outward(low: float, high: float, t: float) -> tuple[float, float]:
    """What rounding can have moved: relative where all terms are positive, absolute where differences were taken."""
    if t:
        return max(0.0, low - _ROUNDING), min(1.0, high + _ROUNDING)
    return low * (1 - _ROUNDING), min(1.0, high * (1 + _ROUNDING))


@dataclass(frozen=True)
class Bound:
    """A function of the states of some columns."""

    columns: tuple[str, ...]
    values: Tensor

    def at(self, column: str, state: int) -> Bound:
        """The same with one column's state known."""
        import numpy as np

        if column not in self.columns:
            return self
        k = self.columns.index(column)
        return Bound(self.columns[:k] + self.columns[k + 1 :], np.asarray(self.values.take(state, axis=k)))

    def only(self, column: str, state: int, states: int) -> Bound:
        """The same where the column has this state, and 0 elsewhere."""
        import numpy as np

        whole = self if column in self.columns else Bound((*self.columns, column), np.stack([self.values] * states, axis=-1))
        k = whole.columns.index(column)
        shape = [1] * len(whole.columns)
        shape[k] = states
        return Bound(whole.columns, whole.values * (np.arange(states) == state).reshape(shape))


def _extreme(network: Network, bound: Bound, t: float, known: tuple[str, int] | None, *, largest: bool) -> float:
    """The largest (or least) expectation of the bound, one column eliminated after the other; a root's state may be known."""
    for name in reversed(list(network.nodes)):
        if known is not None and name == known[0]:
            bound = bound.at(*known)
        elif name in bound.columns:
            bound = _eliminated(network, bound, name, t, largest=largest)
    if bound.columns:
        raise BoundsError(f"network: {bound.columns[0]} is not one of its columns.")
    return float(bound.values)


def _eliminated(network: Network, bound: Bound, name: str, t: float, *, largest: bool) -> Bound:
    import numpy as np

    parents = network.nodes[name].parents
    others = tuple(dict.fromkeys((*(c for c in bound.columns if c != name), *parents)))
    sizes = [len(network.nodes[column].states) for column in (*others, name)]
    if math.prod(sizes) > _MOST_ENTRIES:
        named = ", ".join((*others, name)[-6:])
        raise BoundsError(f"network: a table over ..., {named} is too large. Ask for fewer columns at once.")
    values = np.broadcast_to(_spread(bound.values, bound.columns, (*others, name)), sizes)
    table = np.broadcast_to(_spread(network.array(name), (*parents, name), (*others, name)), sizes)
    scaled = table / table.sum(axis=-1, keepdims=True)
    if t == 0:
        return Bound(others, np.asarray((values * scaled).sum(axis=-1)))
    low, high = np.maximum(0.0, np.minimum(table, scaled) - t), np.minimum(1.0, np.maximum(table, scaled) + t)
    return Bound(others, _best_rows(values, low, high, largest=largest))


def _spread(values: Tensor, columns: Sequence[str], target: Sequence[str]) -> Tensor:
    """The values with their axes in the target's order, and an axis of length 1 for each column they lack."""
    import numpy as np

    order = [columns.index(column) for column in target if column in columns]
    shape = [values.shape[columns.index(column)] if column in columns else 1 for column in target]
    return np.transpose(values, order).reshape(shape)


def _best_rows(values: Tensor, low: Tensor, high: Tensor, *, largest: bool) -> Tensor:
    """max (or min) of sum p u over low <= p <= high, sum p = 1: fill the largest (or least) u first."""
    import numpy as np

    order = np.argsort(-values if largest else values, axis=-1, kind="stable")
    u, floor, room = (np.take_along_axis(part, order, axis=-1) for part in (values, low, high - low))
    left = 1 - floor.sum(axis=-1, keepdims=True)
    before = np.cumsum(room, axis=-1) - room
    return np.asarray((u * (floor + np.clip(left - before, 0.0, room))).sum(axis=-1))
