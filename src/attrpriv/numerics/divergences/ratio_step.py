"""One step of the ratio recursion: how far two laws of the next entry can pull a function apart (docs/theory/chain-ratio.md).

    V(x, x') = max of  K(x,.) f / K(x',.) f      over f > 0 with f(z) <= e^r(z,z') V+(z, z') f(z')

| symbol | here |
|---|---|
| K | the `law` of a `Kernel`: of each value on this side, the law of the value on the other side |
| r | `cost`: what is lost where one entry changes from z to z' |
| V+ | V one step further from the entry that is hidden |
| C | `_closed`: e^r V+ with 1 on the diagonal, made smaller by C(z, y) C(y, z') where that is less and y a value of the entry |

A `Kernel` knows the laws; where they lie in intervals, all corners of each. `AnyStart` is one step towards the start of a chain
whose start may be anything. What must never change: every V is at least the truth, rounding included; a larger V+ gives a V
that is at least the truth for the larger one; a law that floats do not know counts as the worst.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from attrpriv.numerics.rounding import COMPUTED_UP, SUMMED_UP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Places = NDArray[np.int64]

# Products of two ratios must be floats; above this the bound for all entries as one group is used in their place. Pairs of
# values that no entry can have both have this ratio, so that no other rests on them.
LARGEST = 1e100
# How near the plan of shipments is made to the best of its kind.
_SHIPPED = 1e-4
# Up to so many values a step is exact.
EXACT_VALUES = 3


@dataclass(frozen=True, eq=False)
class Ratios:
    """V on the values that an entry can have, as places among the states."""

    states: Places
    values: Array


@dataclass(frozen=True, eq=False)
class Kernel:
    """One step away from X_i: a law of the next value for each value, and the logarithm by which ratios of two may be off.

    `rows` are the values on this side of the step, `columns` those on the other. `owner` says of each law which of the rows it
    is one of. `law` is None where floats do not know it. `apart` are the pairs of rows that no entry can have both; None: none.
    """

    rows: Places
    columns: Places
    owner: Places
    law: Array | None
    slack: float
    apart: NDArray[np.bool_] | None = None

    @cached_property
    def _pair(self) -> tuple[float, ...] | None:
        """The four probabilities of two values on either side, as Python's own floats: a step is then ten times faster."""
        plain = self.law is not None and self.law.shape == (2, 2) and self.apart is None
        return (*self.law[0].tolist(), *self.law[1].tolist()) if plain and self.law is not None else None

    def step(self, ratios: Ratios, cost: Array) -> Ratios:
        """V on the rows from V on the columns, from above."""
        import numpy as np

        if self._pair is not None:
            return self._of_two(ratios, cost, *self._pair)
        limits = _closed(ratios.values, cost[np.ix_(self.columns, self.columns)])
        most = _most(limits if self.apart is None else np.where(self.apart, 1.0, limits))
        size = len(self.rows)
        if self.law is None:
            found = np.full((size, size), most)
        elif len(self.columns) < 2:
            found = np.ones((size, size))
        else:
            each = largest(self.law, limits) if len(self.columns) <= EXACT_VALUES else shipped(self.law, limits)
            found = np.minimum(_worst_of(each, self.owner, size) * math.exp(self.slack), most)
        if self.apart is not None:
            found[self.apart] = LARGEST
        return _ratios(self.rows, found)

    def _of_two(self, ratios: Ratios, cost: Array, p0: float, p1: float, q0: float, q1: float) -> Ratios:
        """f = (up, 1) and f = (1, down) are the only ends there are."""
        import numpy as np

        first, second = self.columns.tolist()
        up = float(ratios.values[0, 1]) * math.exp(cost[first, second]) * SUMMED_UP
        down = float(ratios.values[1, 0]) * math.exp(cost[second, first]) * SUMMED_UP
        most = max(up, down)
        if not most <= LARGEST:
            raise OverflowError
        one = (p0 * up + p1) / (q0 * up + q1)
        other = (p0 + p1 * down) / (q0 + q1 * down)
        slack = math.exp(self.slack)
        there = min(max(1.0, max(one, other) * slack), most)
        back = min(max(1.0, slack / min(one, other)), most)
        return Ratios(self.rows, np.array([[1.0, there], [back, 1.0]]))


@dataclass(frozen=True, eq=False)
class AnyStart:
    """One step back in a chain of which nothing is known but how it moves on.

    `gain[z, x, x']` is the largest P(z, x)/P(z, x'); 0 where x is impossible after z. Whatever the law of X_(i-1), the ratio is

        E[g f] / (E g E f),     g(z) = P(z, x)/P(z, x')      under some law of z

    which is largest at a law on two values: moving mass so that E g stays changes both sides linearly. There it is at most
    ((1 + sqrt(theta u))/(sqrt theta + sqrt u))^2 with theta = g(z)/g(z') and u = f(z)/f(z') <= C(z, z').
    """

    rows: Places
    gain: Array
    slack: float

    def step(self, ratios: Ratios, cost: Array) -> Ratios:
        """V on the rows from V on the values that the entry before can have, from above."""
        import numpy as np

        if len(self.rows) == len(ratios.states) == 2:
            return self._of_two(ratios, cost)
        # Not closed: a value that nothing leads to has ratio 1 to all others, and no pair may be bounded by way of it.
        limits = _open(ratios.values, cost[np.ix_(ratios.states, ratios.states)])
        _most(limits)
        gain = self.gain[np.searchsorted(self.rows, ratios.states)]  # of the values that the entry before can have
        found = np.ones((len(self.rows),) * 2)
        for z in range(len(gain)):
            with np.errstate(invalid="ignore"):
                apart = np.nan_to_num(gain[z][None] * gain.swapaxes(1, 2), nan=0.0, posinf=math.inf)
            found = np.maximum(found, _two_valued(apart, np.maximum(limits[z], 1.0)[:, None, None]).max(axis=0))
        return _ratios(self.rows, np.minimum(found * math.exp(self.slack), _most(limits)))

    @cached_property
    def _pair(self) -> tuple[float, float]:
        """The square roots of theta, or 1 where it is less, for (0, 1) and for (1, 0), one over each."""
        gain = self.gain.tolist()
        there = _product(gain[0][0][1], gain[1][1][0]), _product(gain[1][0][1], gain[0][1][0])
        return 1 / math.sqrt(max(1.0, there[0])), 1 / math.sqrt(max(1.0, there[1]))

    def _of_two(self, ratios: Ratios, cost: Array) -> Ratios:
        """Given x = 0 in place of 1, z = 0 has theta and z = 1 its inverse where rows are known; else each its own."""
        import numpy as np

        first, second = self.rows.tolist()
        up = math.sqrt(max(1.0, float(ratios.values[0, 1]) * math.exp(cost[first, second]) * SUMMED_UP))
        down = math.sqrt(max(1.0, float(ratios.values[1, 0]) * math.exp(cost[second, first]) * SUMMED_UP))
        most = max(up, down)
        if not most <= math.sqrt(LARGEST):
            raise OverflowError
        one, other = self._pair
        slack = math.exp(self.slack)
        there = max((one + up) / (1 + one * up), (other + down) / (1 + other * down)) ** 2 * slack
        back = max((one + down) / (1 + one * down), (other + up) / (1 + other * up)) ** 2 * slack
        most *= most * SUMMED_UP
        return Ratios(self.rows, np.array([[1.0, min(there, most)], [min(back, most), 1.0]]))


def _product(a: float, b: float) -> float:
    """0 where one of them is: a value that is impossible after both tells nothing."""
    return 0.0 if not a or not b else a * b


Stage = Kernel | AnyStart


def _two_valued(theta: Array, u: Array) -> Array:
    """((1 + sqrt(theta u))/(sqrt theta + sqrt u))^2, which is u where theta is infinite and 1 where it is below 1."""
    import numpy as np

    with np.errstate(invalid="ignore", divide="ignore"):
        back = np.where(theta > 1, 1 / np.sqrt(theta), 1.0)
    return np.asarray(((back + np.sqrt(u)) / (1 + back * np.sqrt(u))) ** 2)


def _ratios(rows: Places, found: Array) -> Ratios:
    import numpy as np

    np.fill_diagonal(found, 1.0)
    return Ratios(rows, np.asarray(np.maximum(found, 1.0)))


def _most(limits: Array) -> float:
    most = float(limits.max())
    if not most <= LARGEST:
        raise OverflowError
    return most


def _open(ratio: Array, cost: Array) -> Array:
    """e^r V, with 1 on the diagonal."""
    import numpy as np

    with np.errstate(over="ignore"):
        found = ratio * (np.exp(cost) * SUMMED_UP)
    np.fill_diagonal(found, 1.0)
    return np.asarray(found)


def _closed(ratio: Array, cost: Array) -> Array:
    import numpy as np

    found = _open(ratio, cost)
    if len(found) > 2:
        for k in range(len(found)):
            with np.errstate(over="ignore"):
                found = np.minimum(found, found[:, k : k + 1] * found[k : k + 1] * SUMMED_UP)
        np.fill_diagonal(found, 1.0)
    return found


def _worst_of(each: Array, owner: Places, size: int) -> Array:
    """Of the ratios of single laws, the largest for each pair of rows."""
    import numpy as np

    if len(owner) == size:
        return each
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    return np.asarray(np.maximum.reduceat(np.maximum.reduceat(each, starts, axis=0), starts, axis=1))


# ----------------------------------------------------------------------------------------------------------------------------
# Two laws p and q. For shipments y(z, z') >= 0
#
#     lambda = max over z of  (p(z) - sum y(z, .) + sum C(., z) y(., z)) / q(z)
#
# has p f - lambda q f <= sum over (z, z') of y(z, z') (f(z) - C(z, z') f(z')) <= 0, so that V(x, x') <= lambda. For lambda let
# w = (p - lambda q)+ be what is to be shipped and c = (lambda q - p)+ what can be taken. Each z' gives the same share s(z) of c
# to z, which takes it in as y(z, z') = s(z) c(z')/C(z, z'): it is enough if s(z) = w(z)/sum of c/C(z, .), which is possible if
# the shares sum to at most 1. Where all is shipped from one z or to one z' there is no better plan.
#
# With up to three values one of both has a single z, and the best f is C(., z') or 1/C(z, .): V is the largest of these ratios.


def largest(law: Array, limits: Array) -> Array:
    """The largest ratio over f = C(., z') and f = 1/C(z, .)."""
    import numpy as np

    means = law @ np.concatenate([limits, 1 / limits.T], axis=1)
    return np.asarray((means[:, None] / means).max(axis=-1))


def shipped(law: Array, limits: Array) -> Array:
    """The least lambda, nearly, for which there is a plan.

    If h(z) = sum c / sum of c/C(z, .) did not depend on lambda, the least one would be the ratio of the means of f = h where
    there is something to ship and 1 elsewhere. This is the next guess; only a lambda whose plan was made is returned.
    """
    import numpy as np

    p, q = law[:, None], law[None]
    with np.errstate(divide="ignore", invalid="ignore"):
        high = np.minimum(np.where(p > 0, p / q, 1.0).max(axis=-1) * SUMMED_UP, float(limits.max()))
    low = np.ones_like(high)
    guess = np.minimum(largest(law, limits), high)
    inverse = 1 / limits.T
    for _ in range(40):
        gap = p - guess[..., None] * q
        taken = np.maximum(-gap, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            f = np.where(gap > 0, 1 / (taken @ inverse), 0.0)
            total = np.where(gap > 0, gap * f, 0.0).sum(axis=-1) * COMPUTED_UP + 1e-13
            f = np.where(gap > 0, f * taken.sum(axis=-1)[..., None], 1.0)
            root = (f * p).sum(axis=-1) / (f * q).sum(axis=-1)
        enough = total <= 1
        high, low = np.where(enough, guess, high), np.where(enough, low, guess)
        if bool((high - np.maximum(low, np.where(enough, root, 1.0)) <= _SHIPPED * (float(high.max()) - 1)).all()):
            break
        root = np.where(np.isfinite(root), root, (low + high) / 2)
        guess = np.clip(root + 0.4 * _SHIPPED * (root - 1), low + 0.01 * (high - low), high)
    return np.asarray(high)
