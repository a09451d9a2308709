"""From privacy for one entry to privacy of an entry of a Markov chain: the ratio recursion (docs/theory/chain-ratio.md).

Everything released is b-differentially private for one entry of the column: L(c) = P(output in a set | column c) changes by a
factor of at most e^b when one entry does. Then no entry X_i tells more than

    epsilon(b) = max over i and x, x' that X_i can have of   b + log V_past(x, x') + log V_future(x, x')

    V = 1 where nothing follows;     V(x, x') = max of  K(x,.) f / K(x',.) f  over f > 0 with f(z) <= e^b V+(z, z') f(z')

| symbol | here |
|---|---|
| K | `Kernel`: the matrix for what follows, the reversed matrices (which depend on the start) for what was before |
| V+ | V one step further from X_i |
| C | `_closed`: e^b V+ with 1 on the diagonal, made smaller by C(z, y) C(y, z') where that is less |

`_step` is one step, from above: exact for up to three values of z, for more a bound that a plan of shipments proves. Steps keep
order (a larger V+ gives a larger V), so that a V with `_step`(V) <= V bounds all that come after a smaller one. What must never
change: every V is at least the truth, rounding included; a law that floats do not know counts as the worst.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.numerics.laws.markov import LEAST, Marginals, MarkovChain, marginals
from attrpriv.numerics.rounding import COMPUTED_UP, SOLVED_DOWN, SUMMED_UP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

# Products of two ratios must be floats; above this the bound for all entries as one group is used in their place.
_LARGEST = 1e120
# No promise needs a larger b, and e^b must be a float.
_LARGEST_B = 400.0
# The steps that are computed one by one cost so many numbers at most.
_MOST_WORK = 1 << 26
_MOST_STEPS = 1 << 12
# A bound for all later steps is taken once it is this near in logarithm, as a share of b: with exact steps, and with shipments.
_NEAR, _NEAR_SHIPPED = 1e-9, 1e-3
# How near the plan of shipments is made to the best of its kind.
_SHIPPED = 1e-4
_EXACT_VALUES = 3


def chain_epsilon(chains: Sequence[MarkovChain], length: int, b: float) -> float:
    """The epsilon of every entry under each of these chains, from above, if all releases together are b-private for one entry.

    >>> stays = MarkovChain((0.5, 0.5), ((0.9, 0.1), (0.1, 0.9)))
    >>> round(chain_epsilon([stays], 100, 1 / 8.65), 4)
    0.999
    """
    _require_b(b)
    return max(bound.epsilon(b) for bound in _bounds(chains, length))


def chain_budget(chains: Sequence[MarkovChain], length: int, epsilon: float) -> float:
    """The largest b, from below, with which every entry is epsilon-private: `chain_epsilon` confirms it.

    >>> stays = MarkovChain((0.5, 0.5), ((0.9, 0.1), (0.1, 0.9)))
    >>> round(1 / chain_budget([stays], 100, 1.0), 3)
    8.64
    """
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise UsageError(f"epsilon: must be positive and finite. Got {epsilon}.")
    bounds = _bounds(chains, length)
    found = [_budget(bound, epsilon) for bound in bounds if not bound.nothing]
    if not found:
        raise UsageError("chains: every entry has a single possible state; there is nothing to hide.")
    return min(found)


def _bounds(chains: Sequence[MarkovChain], length: int) -> list[ChainRatio]:
    if not chains:
        raise UsageError("chains: must be at least one.")
    return [ChainRatio(chain, length) for chain in dict.fromkeys(chains)]


def _budget(bound: ChainRatio, epsilon: float) -> float:
    """epsilon(b) is from b to length b and nearly a power of b between: a line through logarithms finds it in a few steps."""
    high = min(epsilon, _LARGEST_B)
    at_high = bound.epsilon(high)
    if at_high <= epsilon:
        return high
    low, at_low = high / bound.length * SOLVED_DOWN, math.nan
    last, guess, widths = (high, at_high), high * epsilon / at_high, [high / low]
    while not (at_low >= epsilon * (1 - bound.near) or high <= low * (1 + bound.near)):
        slow = len(widths) % 8 == 0 and high / low > widths[-6] ** 0.5
        guess = math.sqrt(low * high) if slow or not low < guess < high else guess
        found = bound.epsilon(guess)
        if found <= epsilon:
            low, at_low = guess, found
        else:
            high = guess
        widths.append(high / low)
        slope = math.log(guess / last[0]) / math.log(found / last[1]) if found != last[1] else 1.0
        last = (guess, found)
        # A little below the guess of the line, so that it is private if the line is right.
        guess *= (epsilon * (1 - bound.near / 4) / found) ** slope if 0.01 < slope < 100 else 1.0
    if not (at_low <= epsilon or bound.epsilon(low) <= epsilon):
        raise UsageError("calibration: no positive b is private; the promise is out of reach of floats.")
    return low


@dataclass(frozen=True, eq=False)
class Kernel:
    """One step away from X_i: a law of the next value for each value, and the logarithm by which ratios of two may be off.

    `rows` are the values on this side of the step, `columns` those on the other, as places among the states. `law` is None
    where floats do not know it.
    """

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    law: Array | None
    slack: float


class ChainRatio:
    """epsilon(b) of one chain: its kernels are made once."""

    def __init__(self, chain: MarkovChain, length: int) -> None:
        import numpy as np

        if length < 1:
            raise UsageError(f"length: must be at least 1. Got {length}.")
        self.chain, self.length = chain, length
        self._laws = marginals(chain, length)
        self._values = [np.flatnonzero(held) for held in self._laws.support]
        self._reached = reached = _reached(chain)
        later = chain.matrix()[np.ix_(reached, reached)]
        self._later = Kernel(reached, reached, later, 5 * chain.error(2) + 1e-13)
        self._most = max(2, min(_MOST_STEPS, _MOST_WORK // chain.states**3))
        self._earlier = [self._reversed(node) for node in range(2, min(length, self._laws.nodes, 8 * self._most) + 1)]
        self._settled = self._reversed(self._laws.nodes + 1) if self._laws.settled else None

    @property
    def near(self) -> float:
        """How far, as a share, bounds may be from the best of their kind."""
        return _NEAR if self.chain.states <= _EXACT_VALUES else _NEAR_SHIPPED / 10

    @property
    def nothing(self) -> bool:
        """Every entry has a single possible state."""
        return all(len(held) < 2 for held in self._values)

    def epsilon(self, b: float) -> float:
        """What no entry loses more than, from above."""
        group = self.length * b * SUMMED_UP
        if self.nothing:
            return 0.0
        try:
            worst = self._worst(b)
        except OverflowError:
            return group
        return min(group, b * COMPUTED_UP + math.log(worst) * COMPUTED_UP + 1e-14)

    def _worst(self, b: float) -> float:
        """The largest V_past V_future of any entry."""
        after, after_all = _followed(self._later, self.length - 1, b, [_ones(len(self._reached))], self._most)
        before, before_all = self._before(b)
        worst = 1.0
        for node, past in enumerate(before, start=1):
            worst = max(worst, self._together(node, past, _at(after, after_all, self.length - node, b)))
        if len(before) < self.length:
            # Every later entry has less after it, and what was before it is bounded for all of them.
            past = before_all if before_all is not None else before[-1]
            growth = 0 if before_all is not None else self.length - len(before)
            if before_all is None and not self._laws.settled:
                raise OverflowError  # the values that are possible may still change
            past = _grown(past, growth, b)
            worst = max(worst, self._together(len(before) + 1, past, _at(after, after_all, self.length - len(before) - 1, b)))
        return worst

    def _together(self, node: int, past: Array, future: Array) -> float:
        import numpy as np

        held = self._held(node)
        if len(held) < 2:
            return 1.0
        places = np.searchsorted(self._reached, held)
        return float((past * future[np.ix_(places, places)]).max())

    def _before(self, b: float) -> tuple[list[Array], Array | None]:
        """V_past of the entries one by one, then a bound for all others where there is one."""
        found = [_ones(len(self._values[0]))]
        for kernel in self._earlier:
            found.append(_step(kernel, found[-1], b))
        if self._settled is None or len(found) < self._laws.nodes:
            return found, None
        return _followed(self._settled, self.length - self._laws.nodes, b, found, self._most)

    def _held(self, node: int) -> NDArray[np.int64]:
        return self._values[min(node, len(self._values)) - 1]

    def _reversed(self, node: int) -> Kernel:
        """P(X_(node-1) = z | X_node = x), which is pi_(node-1)(z) P(z, x) up to a factor for each x."""
        laws: Marginals = self._laws
        before = min(node - 1, laws.nodes) - 1
        rows, columns = self._held(node), self._values[before]
        joint = laws.values[before][columns, None] * self.chain.matrix()[columns][:, rows]
        slack = 5 * self.chain.error(node + 3) + 1e-13 + (2.5 * laws.drift if node > laws.nodes else 0.0)
        known = bool((laws.values[before][columns] >= LEAST).all()) and bool((joint.sum(axis=0) >= LEAST).all())
        usable = known and bool(((joint >= LEAST) | (joint == 0)).all())
        law = (joint / joint.sum(axis=0)).T if usable else None
        return Kernel(rows, columns, law, slack)


def _reached(chain: MarkovChain) -> NDArray[np.int64]:
    """The states that an entry can ever have, however long the chain is: what follows one of them is one of them."""
    import numpy as np

    held, goes = chain.start() > 0, chain.matrix() > 0
    for _ in range(chain.states):
        held = held | goes[held].any(axis=0)
    return np.flatnonzero(held)


def _at(listed: list[Array], later: Array | None, steps: int, b: float) -> Array:
    """V after this many steps: the one listed, the bound for all later ones, or what a further entry can change each time."""
    if steps < len(listed):
        return listed[steps]
    return later if later is not None else _grown(listed[-1], steps - len(listed) + 1, b)


def _grown(ratio: Array, steps: int, b: float) -> Array:
    """One more entry makes no ratio larger than e^b times the largest of those before."""
    import numpy as np

    if not steps:
        return ratio
    most = math.log(float(ratio.max())) + steps * b
    if most > math.log(_LARGEST):
        raise OverflowError
    return np.full_like(ratio, math.exp(most) * COMPUTED_UP)


def _followed(kernel: Kernel, steps: int, b: float, found: list[Array], most: int) -> tuple[list[Array], Array | None]:
    """The same step again and again: V after each, until one bound holds for all later ones."""
    import numpy as np

    def step(ratio: Array) -> Array:
        return _step(kernel, ratio, b)

    look, near = 8, b * (_NEAR if len(kernel.columns) <= _EXACT_VALUES else _NEAR_SHIPPED)
    for count in range(1, min(steps, most) + 1):
        found.append(step(found[-1]))
        if count != look and count != most:
            continue
        look *= 2
        bound = _ceiling(step, found[-2], found[-1], near / 4)
        if bound is not None and (count == most or bool((np.log(bound / found[-1]) <= near).all())):
            return found, bound
    return found, None


def _ceiling(step: Callable[[Array], Array], older: Array, newer: Array, margin: float) -> Array | None:
    """A matrix that is at least `newer`, and that a step does not make larger: it bounds all steps after `newer`."""
    try:
        return _superior(step, older, newer, margin)
    except OverflowError:
        return None


def _superior(step: Callable[[Array], Array], older: Array, newer: Array, margin: float) -> Array | None:
    """Newton's guess of where the steps end, and a little more, until a step does not make it larger."""
    import numpy as np

    start = newer
    for _ in range(8):
        moved, after = np.log(newer / older), step(newer)
        further = np.log(after / newer)
        before, now = float(np.abs(moved).max()), float(np.abs(further).max())
        rate = min(now / before, 1 - 1e-7) if before > margin / 100 else 0.9
        rest = np.maximum(further, 0.0) * (rate / (1 - rate)) * 1.01 + margin
        guess = np.maximum(after * np.exp(np.minimum(rest, 100.0)), start)
        np.fill_diagonal(guess, 1.0)
        again = step(guess)
        if bool((again <= guess).all()):
            return guess
        older, newer = guess, again
    return None


# ----------------------------------------------------------------------------------------------------------------------------
# One step. Let p and q be the laws of z given x and x'. For shipments y(z, z') >= 0
#
#     lambda = max over z of  (p(z) - sum y(z, .) + sum C(., z) y(., z)) / q(z)
#
# has p f - lambda q f <= sum over (z, z') of y(z, z') (f(z) - C(z, z') f(z')) <= 0, so that V(x, x') <= lambda. For lambda let
# w = (p - lambda q)+ be what is to be shipped and c = (lambda q - p)+ what can be taken. Each z' gives the same share s(z) of c
# to z, which takes it in as y(z, z') = s(z) c(z')/C(z, z'): it is enough if s(z) = w(z)/sum of c/C(z, .), which is possible if
# the shares sum to at most 1. Where all is shipped from one z or to one z' there is no better plan.
#
# With up to three values one of both has a single z, and the best f is C(., z') or 1/C(z, .): V is the largest of these ratios.


def _step(kernel: Kernel, ratio: Array, b: float) -> Array:
    """V on the rows of the kernel from V on its columns, from above."""
    import numpy as np

    limits = _closed(ratio, b)
    most = float(limits.max())
    if not most <= _LARGEST:
        raise OverflowError
    if kernel.law is None:
        found = np.full((len(kernel.rows),) * 2, most)
    elif len(kernel.columns) < 2:
        found = _ones(len(kernel.rows))
    else:
        found = _largest(kernel.law, limits) if len(kernel.columns) <= _EXACT_VALUES else _shipped(kernel.law, limits)
        found = np.minimum(found * math.exp(kernel.slack), most)
    np.fill_diagonal(found, 1.0)
    return np.asarray(np.maximum(found, 1.0))


def _closed(ratio: Array, b: float) -> Array:
    import numpy as np

    found = ratio * (math.exp(b) * SUMMED_UP)
    np.fill_diagonal(found, 1.0)
    if len(found) > 2:
        for k in range(len(found)):
            found = np.minimum(found, found[:, k : k + 1] * found[k : k + 1] * SUMMED_UP)
        np.fill_diagonal(found, 1.0)
    return found


def _largest(law: Array, limits: Array) -> Array:
    """The largest ratio over f = C(., z') and f = 1/C(z, .)."""
    import numpy as np

    means = law @ np.concatenate([limits, 1 / limits.T], axis=1)
    return np.asarray((means[:, None] / means).max(axis=-1))


def _shipped(law: Array, limits: Array) -> Array:
    """The least lambda, nearly, for which there is a plan.

    If h(z) = sum c / sum of c/C(z, .) did not depend on lambda, the least one would be the ratio of the means of f = h where
    there is something to ship and 1 elsewhere. This is the next guess; only a lambda whose plan was made is returned.
    """
    import numpy as np

    p, q = law[:, None], law[None]
    with np.errstate(divide="ignore", invalid="ignore"):
        high = np.minimum(np.where(p > 0, p / q, 1.0).max(axis=-1) * SUMMED_UP, float(limits.max()))
    low = np.ones_like(high)
    guess = np.minimum(_largest(law, limits), high)
    for _ in range(40):
        gap = p - guess[..., None] * q
        taken = np.maximum(-gap, 0.0)
        each = taken @ (1 / limits.T)
        with np.errstate(divide="ignore", invalid="ignore"):
            f = np.where(gap > 0, 1 / each, 0.0)
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


def _ones(size: int) -> Array:
    import numpy as np

    return np.ones((size, size))


def _require_b(b: float) -> None:
    if not (math.isfinite(b) and 0 < b <= _LARGEST_B):
        raise UsageError(f"b: must be above 0 and at most {_LARGEST_B:g}. Got {b}.")
