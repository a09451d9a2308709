"""Bounds on what a Bayesian network says of an event, given the state of one of its columns.

    P(x) = product over columns of table[x_column | its parents]

`tolerance` t: every entry of every table may be off by t (kept within [0, 1]; rows still sum to one). Bounds come from
eliminating the columns backwards, children before parents: with U the bound so far,

    U(others) = max over rows p with |p - table| <= t, sum p = 1, of  sum over x of p(x) U(x, others)

found exactly by filling the largest U first. The true network is among those over which the maximum runs, whatever row it
chooses for whatever history, so the bound is never too small; with t = 0 it is the exact probability.

Given a category c, a sensitive column without parents is simply fixed. Otherwise P(E | c) = A/(A + B) with A = P(E and c),
B = P(not E and c), and A at most, B at least bound it from above.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from attrpriv.errors import PolicyError
from attrpriv.numerics.networks.network import Network

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Tensor = NDArray[np.float64]

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
