"""A family of Markov chains: it may start anywhere, and each row of its matrix is any law within intervals.

    lower[s][t] <= P(X_{i+1} = t | X_i = s) <= upper[s][t]

Every step may follow another matrix of the family. `corners` are the laws of a row of which all others are mixtures, found in
fractions of the decimals that are written. What must never change: no law within the intervals is outside of its corners.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

from attrpriv.errors import UsageError
from attrpriv.numerics.laws.markov import LEAST, MOST_STATES, MarkovChain
from attrpriv.numerics.rounding import SUM_SLACK

Rows = tuple[tuple[float, ...], ...]
# A row of so many states has at most 30 corners.
MOST_STATES_OF_INTERVALS = 5


@dataclass(frozen=True)
class ChainFamily:
    """All chains with rows within these intervals, whatever their start.

    `lower` and `upper` have a row for each state: the least and the largest probability of each next state.

    >>> slow = ChainFamily(((0.8, 0.1), (0.1, 0.9)), ((0.9, 0.2), (0.1, 0.9)))
    >>> slow.corners(0)
    ((0.9, 0.1), (0.8, 0.2))
    """

    lower: Rows
    upper: Rows

    def __post_init__(self) -> None:
        if not 2 <= self.states <= MOST_STATES:
            raise UsageError(f"transition: must have from 2 to {MOST_STATES} rows, one a state. Got {self.states}.")
        if len(self.upper) != self.states:
            raise UsageError("transition: must have as many upper as lower rows.")
        for number, (low, high) in enumerate(zip(self.lower, self.upper, strict=True), start=1):
            _require_row(f"transition: row {number}", low, high, self.states)
        if self.intervals and self.states > MOST_STATES_OF_INTERVALS:
            raise UsageError(
                f"transition: intervals are for up to {MOST_STATES_OF_INTERVALS} states; a list of matrices covers only those. "
                f"Got {self.states}."
            )

    @property
    def states(self) -> int:
        return len(self.lower)

    @property
    def intervals(self) -> bool:
        """Whether a row is not a single law."""
        return self.lower != self.upper

    def corners(self, row: int) -> Rows:
        """The corners of the laws of a row: all entries but one are at an end of their interval."""
        low, high = self.lower[row], self.upper[row]
        if low == high:
            total = math.fsum(low)
            return (tuple(p / total for p in low),)
        ends = [(Fraction(repr(a)), Fraction(repr(b))) for a, b in zip(low, high, strict=True)]
        found = dict.fromkeys(corner for free in range(len(ends)) for corner in _corners(ends, free))
        return tuple(tuple(map(float, corner)) for corner in found)

    def members(self) -> tuple[MarkovChain, ...]:
        """Some of the chains, for comparison: the rows' corners, from a uniform start."""
        start = (1 / self.states,) * self.states
        rows = itertools.product(*(self.corners(row) for row in range(self.states)))
        return tuple(MarkovChain(start, tuple(matrix)) for matrix in rows)


def _corners(ends: list[tuple[Fraction, Fraction]], free: int) -> list[tuple[Fraction, ...]]:
    """Those with this entry between its ends, and all others at one of theirs."""
    others = [ends[k] for k in range(len(ends)) if k != free]
    found = []
    for chosen in itertools.product(*(dict.fromkeys(pair) for pair in others)):
        rest = 1 - sum(chosen, Fraction(0))
        if ends[free][0] <= rest <= ends[free][1]:
            found.append((*chosen[:free], rest, *chosen[free:]))
    return found


def _require_row(name: str, low: tuple[float, ...], high: tuple[float, ...], k: int) -> None:
    if len(low) != k or len(high) != k:
        raise UsageError(f"{name}: must have one probability or interval for each of {k} states. Got {len(low)}.")
    for a, b in zip(low, high, strict=True):
        if not (math.isfinite(a) and math.isfinite(b) and 0 <= a <= b <= 1):
            raise UsageError(f"{name}: must be probabilities or intervals [low, high] from 0 to 1. Got {a:g} to {b:g}.")
        if 0 < a < LEAST or 0 < b < LEAST:
            raise UsageError(f"{name}: a probability must be 0 or at least {LEAST:g}.")
    if low == high:
        if abs(math.fsum(low) - 1) > SUM_SLACK:
            raise UsageError(f"{name}: must sum to 1. Got a sum of {math.fsum(low):.10g}.")
        return
    least, most = (sum((Fraction(repr(p)) for p in law), Fraction(0)) for law in (low, high))
    if not least <= 1 <= most:
        raise UsageError(
            f"{name}: must hold a law that sums to 1. Got intervals that sum to {float(least):.10g} at least and "
            f"{float(most):.10g} at most."
        )
