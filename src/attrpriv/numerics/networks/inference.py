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

from attrpriv.errors import UsageError
from attrpriv.numerics.networks.network import Network
from attrpriv.numerics.networks.separation import ancestors
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
