"""From privacy for one entry to privacy of an entry of a Markov chain: the ratio recursion (docs/theory/chain-ratio.md).

What is released tells two tables apart that differ in one entry, x in place of x', by a factor of at most e^r(x, x'). Then no
entry X_i tells more than

    epsilon(r) = max over i and x, x' that X_i can have of   r(x, x') + log V_past(x, x') + log V_future(x, x')

V is 1 where nothing follows, and is taken one entry further by `ratio_step`: by the matrix for what follows, by the reversed
matrices (which depend on the start) for what was before. Both grow with the number of steps.

| entries | their past is bounded by |
|---|---|
| up to the node where the laws have settled | steps of their own |
| behind it | steps that repeat, one or, where the laws go round, several; then one bound for all |
| behind the last node that is looked at, where nothing has settled | steps that hold for any law of the entry before |

A bound for all later steps is a V that a step does not make larger. What must never change: every node is looked at with all
values that it can have, or is covered by such a bound; where there is none, all entries count as one group.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences.ratio_step import EXACT_VALUES, AnyStart, Kernel, Ratios, Stage
from attrpriv.numerics.laws.chain_family import ChainFamily
from attrpriv.numerics.laws.markov import LEAST, MarkovChain
from attrpriv.numerics.rounding import COMPUTED_UP, SUMMED_UP, UNIT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from attrpriv.numerics.divergences.ratio_step import Array, Places

# No promise needs a larger loss by one entry, and its power of e must be a float.
LARGEST_COST = 400.0
# The steps that are computed one by one cost so many numbers at most.
_MOST_WORK = 1 << 23
_MOST_STEPS = 1 << 12
# A bound for all later steps is taken once it is this near in logarithm, as a share of the cost: exact steps, and shipments.
_NEAR, _NEAR_SHIPPED = 1e-9, 1e-3
_MOST_LAG = 64


class ChainRatio:
    """epsilon(r) of one `chain`, or of a family of them, of `length` entries: its steps are made once.

    >>> stays = MarkovChain((0.5, 0.5), ((0.9, 0.1), (0.1, 0.9)))
    >>> round(ChainRatio(stays, 100).epsilon(1 / 8.65), 4)
    0.999

    With `change` above 0, ratios of two probabilities may be off by the factor e^change, and the start is any.
    """

    def __init__(self, chain: MarkovChain | ChainFamily, length: int, *, change: float = 0.0) -> None:
        import numpy as np

        if length < 1:
            raise UsageError(f"length: must be at least 1. Got {length}.")
        self.chain, self.length, self.states = chain, length, chain.states
        self._most = max(2, min(_MOST_STEPS, _MOST_WORK // chain.states**3))
        exact = isinstance(chain, MarkovChain) and not change
        laws = _Laws(chain, length, min(length, self._most)) if exact and isinstance(chain, MarkovChain) else None
        self._reached = np.arange(chain.states) if laws is None else laws.reached
        self._later = _forward(chain, self._reached, None if laws is None else laws.apart(), change)
        self._first = self._reached if laws is None else laws.held(1)
        self._earlier: list[Kernel] = [] if laws is None else [laws.reversed(node) for node in range(2, laws.own + 1)]
        self._repeated: list[Stage] = [] if laws is None else list(laws.cycle())
        self.nothing = laws is not None and laws.nothing
        self._change = change

    def _any_start(self) -> list[Stage]:
        return [_backward(self.chain, self._reached, self._change)]

    @property
    def near(self) -> float:
        """How far, as a share, bounds may be from the best of their kind."""
        return _NEAR if self.states <= EXACT_VALUES else _NEAR_SHIPPED / 2

    def epsilon(self, cost: float | Array) -> float:
        """What no entry loses more than, from above. `cost`: r(x, x'), or one number for all pairs."""
        table = cost_table(cost, self.states)
        if self.nothing:
            return 0.0
        group = self.length * float(table.max()) * SUMMED_UP
        if not group > 0:
            return 0.0
        try:
            return min(group, self._worst(table) * COMPUTED_UP + 1e-14)
        except OverflowError:
            return group

    def _worst(self, cost: Array) -> float:
        """The largest r + log V_past + log V_future of any entry; OverflowError where no bound is found."""
        after, after_all = self._after(cost)
        if after_all is None:
            if len(after) < self.length:
                raise OverflowError
            after_all = after[-1:]
        before, before_all = self._before(cost)

        def future(node: int) -> Ratios:
            return after[self.length - node] if self.length - node < len(after) else after_all[0]

        worst = _together([(past, future(node)) for node, past in enumerate(before, start=1)], cost)
        if len(before) < self.length:
            if before_all is None:
                raise OverflowError
            # Every later entry has less after it, and what was before it is bounded for all of them.
            last = future(len(before) + 1)
            worst = max(worst, _together([(past, last) for past in before_all], cost))
        return worst

    def _after(self, cost: Array) -> tuple[list[Ratios], list[Ratios] | None]:
        return _followed([self._later], self.length - 1, cost, [_ones(self._reached)], self._most)

    def _before(self, cost: Array) -> tuple[list[Ratios], list[Ratios] | None]:
        """V_past of the entries one by one, then bounds for all others where there are some."""
        found = [_ones(self._first)]
        for kernel in self._earlier:
            found.append(kernel.step(found[-1], cost))
        if len(found) >= self.length:
            return found, None
        return _followed(self._repeated or self._any_start(), self.length - len(found), cost, found, self._most)


def cost_table(cost: float | Array, states: int) -> Array:
    """r(x, x') for all pairs, 0 on the diagonal."""
    import numpy as np

    table = np.array(np.broadcast_to(np.asarray(cost, dtype=np.float64), (states, states)))
    np.fill_diagonal(table, 0.0)
    if not (np.isfinite(table).all() and (table >= 0).all() and table.max() <= LARGEST_COST):
        raise UsageError(f"b: must be from 0 to {LARGEST_COST:g}. Got {cost}.")
    return table


def _together(sides: Sequence[tuple[Ratios, Ratios]], cost: Array) -> float:
    """The largest r + log V_past + log V_future over these entries and the values that each can have."""
    import numpy as np

    alike: dict[bytes, list[tuple[Ratios, Ratios]]] = {}
    for past, future in sides:
        alike.setdefault(past.states.tobytes(), []).append((past, future))
    worst = 0.0
    for group in alike.values():
        held = group[0][0].states
        if len(held) < 2:
            continue
        places = np.ix_(*(np.searchsorted(group[0][1].states, held),) * 2)
        both = reduce(np.maximum, (past.values * future.values[places] for past, future in group))
        worst = max(worst, float((cost[np.ix_(held, held)] + np.log(both)).max()))
    return worst


def _ones(states: Places) -> Ratios:
    import numpy as np

    return Ratios(states, np.ones((len(states),) * 2))


# ----------------------------------------------------------------------------------------------------------------------------
# The steps of a chain: what follows, and what was before.


def _forward(chain: MarkovChain | ChainFamily, reached: Places, apart: NDArray[np.bool_] | None, change: float) -> Kernel:
    import numpy as np

    if isinstance(chain, MarkovChain):
        law, owner = chain.matrix()[np.ix_(reached, reached)], np.arange(len(reached))
    else:
        corners = [np.array(chain.corners(int(row))) for row in reached]
        law = np.concatenate(corners)[:, reached]
        owner = np.repeat(np.arange(len(reached)), [len(part) for part in corners])
    return Kernel(reached, reached, owner, law, _slack(chain.states, 2) + change, apart)


def _backward(chain: MarkovChain | ChainFamily, reached: Places, change: float) -> AnyStart:
    """The largest P(z, x)/P(z, x') over the corners of row z; the mixtures of these are between them."""
    import numpy as np

    rows = [chain.matrix()[z : z + 1] for z in reached] if isinstance(chain, MarkovChain) else []
    if isinstance(chain, ChainFamily):
        rows = [np.array(chain.corners(int(z))) for z in reached]
    with np.errstate(divide="ignore", invalid="ignore"):
        each = [np.nan_to_num(law[:, reached, None] / law[:, None, reached], nan=0.0, posinf=math.inf) for law in rows]
    gain = np.array([one.max(axis=0) for one in each]) * math.exp(change)
    return AnyStart(reached, gain, _slack(chain.states, 2))


def _slack(states: int, steps: float) -> float:
    """How far, in logarithm, ratios of means may be off after this many factors."""
    return 5 * math.expm1(min(1.0, (2 * states + 8) * (steps + 1) * UNIT)) + 1e-13


class _Laws:
    """The laws of the first nodes of a chain, and where they settle or begin to go round.

    `own` nodes have steps of their own. Where the laws settle, node `own` + j + lag has that of node `own` + j up to a drift,
    because a step never increases the distance max_s log p(s)/q(s) - min_s log p(s)/q(s) of two laws of one support.
    """

    def __init__(self, chain: MarkovChain, length: int, most: int) -> None:
        import numpy as np

        self.chain, self.length = chain, length
        step, goes = chain.matrix(), chain.matrix() > 0
        values, support = [chain.start()], [chain.start() > 0]
        while len(values) < min(length, most):
            values.append(values[-1] @ step)
            support.append(np.asarray(goes[support[-1]].any(axis=0)))
        self._values, self._support = np.array(values), np.array(support)
        self.reached = _reached(support[0], goes)
        self.own, self.lag, self.drift = len(values), 0, 0.0
        if length > 2:
            self._settle(step)

    @property
    def nothing(self) -> bool:
        """Every node has a single possible state; behind those that are listed, because each state goes on to one alone."""
        single = bool((self._support.sum(axis=1) < 2).all())
        goes_on = self.length <= len(self._support) or ((self.chain.matrix()[self.reached] > 0).sum(axis=1) == 1).all()
        return single and bool(goes_on)

    def apart(self) -> NDArray[np.bool_] | None:
        """The pairs of reached states that no node has both; None where there are none, or not all nodes are known."""
        import numpy as np

        if not self.lag and self.length > len(self._support):
            return None
        held = self._support[:, self.reached].astype(np.float64)
        found = (held.T @ held) == 0
        return found if found.any() else None

    def held(self, node: int) -> Places:
        """The values that the node can have."""
        import numpy as np

        return np.flatnonzero(self._support[node - 1])

    def _settle(self, step: Array) -> None:
        """The first node whose law comes back, at the least lag at which one does."""
        import numpy as np

        small = max(1e-9 / self.length, 8 * self.chain.error(0))
        usable = np.asarray((~self._support | (self._values >= LEAST)).all(axis=1))
        logs = np.log(np.where(self._values >= LEAST, self._values, 1.0))
        for lag in range(1, min(_MOST_LAG, len(self._values) - 1) + 1):
            same = np.asarray((self._support[lag:] == self._support[:-lag]).all(axis=1)) & usable[lag:] & usable[:-lag]
            still = same & (_spread(logs[lag:] - logs[:-lag], self._support[:-lag]) <= small)
            found = np.flatnonzero(still)
            if len(found) and found[0] + 1 < self.length:
                self.own, self.lag = int(found[0]) + 1, lag
                self.drift = self._drift(step)
                return

    def _drift(self, step: Array) -> float:
        """From the float law of the node, taken as it is, and its round; then its own distance from the true law."""
        import numpy as np

        law = self._values[self.own - 1]
        after = reduce(lambda found, _: found @ step, range(self.lag), law)
        held = law > 0
        ratios = np.log(after[held] / law[held])
        once = float(ratios.max() - ratios.min()) + 4 * self.chain.error(self.lag) + 8 * UNIT
        return (self.length - self.own) / self.lag * once + 2 * self.chain.error(self.own) + 8 * UNIT

    def cycle(self) -> list[Kernel]:
        """The steps that repeat behind the own nodes; none where nothing has settled."""
        return [self.reversed(self.own + 1 + k, drift=self.drift) for k in range(self.lag)]

    def reversed(self, node: int, drift: float = 0.0) -> Kernel:
        """P(X_(node-1) = z | X_node = x), which is pi_(node-1)(z) P(z, x) up to a factor for each x."""
        import numpy as np

        before = self._values[node - 2]
        rows, columns = self.held(node), self.held(node - 1)
        joint = before[columns, None] * self.chain.matrix()[columns][:, rows]
        known = bool((before[columns] >= LEAST).all()) and bool((joint.sum(axis=0) >= LEAST).all())
        usable = known and bool(((joint >= LEAST) | (joint == 0)).all())
        law = (joint / joint.sum(axis=0)).T if usable else None
        return Kernel(rows, columns, np.arange(len(rows)), law, _slack(self.chain.states, node + 3) + 2.5 * drift)


def _spread(moved: Array, held: NDArray[np.bool_]) -> Array:
    """max - min over the values that are held, for each node."""
    import numpy as np

    return np.asarray(np.where(held, moved, -math.inf).max(axis=1) - np.where(held, moved, math.inf).min(axis=1))


def _reached(held: NDArray[np.bool_], goes: NDArray[np.bool_]) -> Places:
    """The states that an entry can ever have, however long the chain is: what follows one of them is one of them."""
    import numpy as np

    for _ in range(len(held)):
        held = held | goes[held].any(axis=0)
    return np.flatnonzero(held)


# ----------------------------------------------------------------------------------------------------------------------------
# The same steps again and again, until one bound holds for all that follow.


def _followed(
    stages: Sequence[Stage], steps: int, cost: Array, found: list[Ratios], most: int
) -> tuple[list[Ratios], list[Ratios] | None]:
    """V after each step of the round, then bounds for all later ones, one a stage; None where there are none, or none later."""
    import numpy as np

    exact = all(len(stage.rows) <= EXACT_VALUES for stage in stages)
    near = float(cost.max()) * (_NEAR if exact else _NEAR_SHIPPED)
    last = min(steps, max(most, 2 * len(stages)))
    last -= last % len(stages) if last < steps else 0

    def around(ratios: Ratios) -> Ratios:
        return reduce(lambda at, stage: stage.step(at, cost), stages, ratios)

    look = 4
    for count in range(1, last + 1):
        found.append(stages[(count - 1) % len(stages)].step(found[-1], cost))
        if count % len(stages) or count < min(look, last) or count == steps:
            continue
        look = 2 * count
        bound = _ceiling(around, found[-1 - len(stages)], found[-1], near / 4)
        if bound is not None and (count == last or bool((np.log(bound.values / found[-1].values) <= near).all())):
            ends = [bound]
            for stage in stages:
                ends.append(stage.step(ends[-1], cost))
            return found, ends[1:]
    return found, None


def _ceiling(around: Callable[[Ratios], Ratios], older: Ratios, newer: Ratios, margin: float) -> Ratios | None:
    """A V that is at least `newer`, and that a round does not make larger: it bounds all rounds after `newer`."""
    if len(older.states) != len(newer.states):
        return None
    try:
        return _superior(around, older.values, newer, margin)
    except OverflowError:
        return None


def _superior(around: Callable[[Ratios], Ratios], older: Array, newer: Ratios, margin: float) -> Ratios | None:
    """Newton's guess of where the rounds end, and a little more, until a round does not make it larger."""
    import numpy as np

    start, at = newer.values, newer.values
    for _ in range(8):
        moved, after = np.log(at / older), around(Ratios(newer.states, at)).values
        further = np.log(after / at)
        before, now = float(np.abs(moved).max()), float(np.abs(further).max())
        rate = min(now / before, 1 - 1e-7) if before > margin / 100 else 0.9
        rest = np.maximum(further, 0.0) * (rate / (1 - rate)) * 1.01 + margin
        guess = np.maximum(after * np.exp(np.minimum(rest, 100.0)), start)
        np.fill_diagonal(guess, 1.0)
        again = around(Ratios(newer.states, guess)).values
        if bool((again <= guess).all()):
            return Ratios(newer.states, guess)
        older, at = guess, again
    return None
