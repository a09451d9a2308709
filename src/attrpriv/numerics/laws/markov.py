"""Markov chains: marginals, powers of the transition matrix, and where they settle. Never rounded to a zero that is none.

    P(X_1 = s) = initial[s],     P(X_{i+1} = t | X_i = s) = transition[s][t],     i = 1, ..., T

| symbol | here |
|---|---|
| k | `states`, the number of states |
| P^b | `Powers.values[b - 1]`, b = 1, 2, ... |
| pi_i | `Marginals.values[i - 1]`, the law of X_i |
| u | 2^-53; a sum of k products of floats that are at least 0 is off by at most a share k u of itself |

Every row is divided by its sum once, so decimal fractions that sum to one within `SUM_SLACK` are meant. Which entries are
positive is decided in whole numbers, apart from their size: `Powers.positive`, `Marginals.support`. What must never change: a
value whose entry is positive is right up to the relative error `error(steps)`, or it is below `LEAST` and nobody may use it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.numerics.rounding import SUM_SLACK, UNIT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Below this a float may have lost digits; such an entry is treated as if nothing were known of it.
LEAST = 1e-280
MOST_STATES = 64


@dataclass(frozen=True)
class MarkovChain:
    """An initial law and a transition matrix.

    `initial` has a probability for each state, `transition` a row for each: the probabilities of the next state.

    >>> MarkovChain((1.0, 0.0), ((0.9, 0.1), (0.4, 0.6))).states
    2
    """

    initial: tuple[float, ...]
    transition: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        k = len(self.initial)
        if not 2 <= k <= MOST_STATES:
            raise UsageError(f"initial: must have from 2 to {MOST_STATES} probabilities, one a state. Got {k}.")
        _require_law("initial", self.initial, k)
        if len(self.transition) != k:
            raise UsageError(f"transition: must have one row for each of {k} states. Got {len(self.transition)}.")
        for number, row in enumerate(self.transition, start=1):
            _require_law(f"transition: row {number}", row, k)

    @property
    def states(self) -> int:
        return len(self.initial)

    def start(self) -> NDArray[np.float64]:
        first: NDArray[np.float64] = _divided([self.initial])[0]
        return first

    def matrix(self) -> NDArray[np.float64]:
        return _divided(self.transition)

    def error(self, steps: float) -> float:
        """A bound on the relative error of an entry after this many factors: as written, divided by the sum, multiplied."""
        return math.expm1(min(1.0, (2 * self.states + 8) * (steps + 1) * UNIT))


def _require_law(name: str, law: Sequence[float], k: int) -> None:
    if len(law) != k:
        raise UsageError(f"{name}: must have one probability for each of {k} states. Got {len(law)}.")
    for p in law:
        if not (math.isfinite(p) and 0 <= p <= 1 + SUM_SLACK):
            raise UsageError(f"{name}: probabilities must be from 0 to 1. Got {p:g}.")
        if 0 < p < LEAST:
            raise UsageError(f"{name}: a probability must be 0 or at least {LEAST:g}. Got {p:g}.")
    off = math.fsum(law) - 1
    if abs(off) > SUM_SLACK:
        raise UsageError(f"{name}: must sum to 1. Got a sum of {1 + off:.10g}, off by {off:+.3g}.")


def _divided(rows: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    import numpy as np

    made = np.array(rows, dtype=np.float64)
    return np.asarray(made / made.sum(axis=1, keepdims=True))


class Powers:
    """P, P^2, ..., P^w of one chain, made longer as they are needed."""

    def __init__(self, chain: MarkovChain) -> None:
        self.chain = chain
        self.values = chain.matrix()[None]
        self.positive = self.values > 0

    def reach(self, w: int) -> None:
        """Have the powers up to P^w at least: each step doubles their number."""
        import numpy as np

        while len(self.values) < w:
            take = min(len(self.values), w - len(self.values))
            self.values = np.concatenate([self.values, self.values[:take] @ self.values[-1]])
            paths = self.positive[:take].astype(np.float64) @ self.positive[-1].astype(np.float64)  # whole numbers up to k
            self.positive = np.concatenate([self.positive, paths > 0])

    def unusable(self) -> NDArray[np.bool_]:
        """Entries that are positive and too small for a float to tell how much."""
        import numpy as np

        return np.asarray(self.positive & ~(self.values >= LEAST))


@dataclass(frozen=True, eq=False)
class Marginals:
    """The laws of X_1, ..., X_m. Past X_m (where `settled`) the supports stay, and log-ratios of two states move by `drift`.

    `settled`: there are later nodes, and all have the support of X_m. For each of them and all states s, t

        | log pi_i(s)/pi_i(t)  -  log pi_m(s)/pi_m(t) |  <=  drift

    because multiplying by P never increases the distance max_s log p(s)/q(s) - min_s log p(s)/q(s) of two laws of one support
    (alpha q <= p <= beta q stays true), so that T - m steps move at most T - m times as far as the first of them.
    """

    values: NDArray[np.float64]
    support: NDArray[np.bool_]
    settled: bool
    drift: float

    @property
    def nodes(self) -> int:
        return len(self.values)


def marginals(chain: MarkovChain, length: int, *, share: float = 1e-9) -> Marginals:
    """The laws of the nodes until they move by no more than `share` in all that is left, or of all of them."""
    import numpy as np

    step = chain.matrix()
    values, support = chain.start()[None], (chain.start() > 0)[None]
    power, paths = step, step > 0  # P^len(values)
    while True:
        known = settled_at(values, support, chain, length, share)
        if known is not None:
            drift = _drift(values[known - 1], step, chain, length, known)
            return Marginals(values[:known], support[:known], settled=True, drift=drift)
        if len(values) >= length:
            return Marginals(values[:length], support[:length], settled=False, drift=0.0)
        values = np.concatenate([values, values @ power])
        support = np.concatenate([support, (support.astype(np.float64) @ paths.astype(np.float64)) > 0])
        power, paths = power @ power, (paths.astype(np.float64) @ paths.astype(np.float64)) > 0


def settled_at(
    values: NDArray[np.float64], support: NDArray[np.bool_], chain: MarkovChain, length: int, share: float
) -> int | None:
    """The first node from which the laws are known well enough; None where none of these is."""
    import numpy as np

    if len(values) < 2:
        return None
    small = max(share / length, 8 * chain.error(0))
    same = (support[1:] == support[:-1]).all(axis=1)
    usable = (~support[:-1] | (values[:-1] >= LEAST)).all(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = np.where(support[:-1], np.log(values[1:] / values[:-1]), np.nan)
    still = np.zeros(len(same), dtype=bool)
    fit = same & usable
    still[fit] = np.nanmax(moved[fit], axis=1) - np.nanmin(moved[fit], axis=1) <= small
    found = np.flatnonzero(still)
    return int(found[0]) + 1 if len(found) and found[0] + 1 < length else None


def _drift(law: NDArray[np.float64], step: NDArray[np.float64], chain: MarkovChain, length: int, node: int) -> float:
    """From the float law of the node, taken as it is, and its one step; then its own distance from the true law."""
    import numpy as np

    held = law > 0
    ratios = np.log((law @ step)[held] / law[held])
    once = float(ratios.max() - ratios.min()) + 4 * chain.error(1) + 8 * UNIT
    return (length - node) * once + 2 * chain.error(node) + 8 * UNIT
