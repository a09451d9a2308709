"""How far mass must move to turn one law on the line into another, never underestimated.

    W_inf(P, Q) = max over u of |quantile_P(u) - quantile_Q(u)|
                = least w with F_P(x) <= F_Q(x + w) and F_Q(x) <= F_P(x + w) for all x
    P, Q are (W, delta)-close  <=>  some coupling moves all but delta of the mass by at most W       (key `chen2023protecting`)

| symbol | here |
|---|---|
| P, Q | mappings {value: probability}, taken as their decimal texts; or laws on whole numbers with their error bounds |
| F | distribution functions, compared as logarithms of whichever tail decides: P(X <= x) or P(X > x) |

Laplace noise of scale W_inf/eps makes the two outputs eps-close (key `song2017pufferfish`), and of scale W/eps makes
(W, delta)-close laws (eps, delta)-close. `family_wasserstein` has the W of a whole family.

What must never change: a distance is never below the truth. F_P(x) <= F_Q(y) is believed only if one of the two tails shows it
beyond the error bounds of both, so a tie within rounding counts as the longer move. Mappings are compared exactly: there a tie
is a tie.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences.transport import (
    Finite,
    Measure,
    Number,
    exact_measure,
    largest_matching,
    monotone_coupling,
    unmatched,
)
from attrpriv.numerics.laws.binomial import LogTails
from attrpriv.numerics.laws.lattice_law import LatticeLaw
from attrpriv.numerics.rounding import SOLVED_UP, UNIT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

Law = LatticeLaw | Finite
Rows = tuple[tuple[float, float, float], ...]
# Weights of a lattice law become whole multiples of 2^-_DIGITS.
_DIGITS = 120


@dataclass(frozen=True)
class Wasserstein:
    """W_inf, the longest move of the monotone coupling (from, to), and that coupling on request.

    `distance` is W_inf, `longest` that move. Made by `wasserstein_inf`.
    """

    distance: float
    longest: tuple[float, float]
    _laws: tuple[Law | LogTails, Law | LogTails] = field(repr=False, compare=False)

    def coupling(self) -> Rows:
        """Rows (x, y, mass), in increasing order."""
        p, q = self._laws
        if isinstance(p, LogTails) or isinstance(q, LogTails):
            raise UsageError("coupling: tails have none to show. Use laws on whole numbers.")
        return _rows(monotone_coupling(*_measures(p, q)), _unit(p, q))


@dataclass(frozen=True)
class Closeness:
    """All but `ignored` (an upper bound, at most delta) of the mass can be moved by at most `distance`.

    `distance` and `delta` are the W and the mass that was allowed. Made by `close_distance`.
    """

    distance: float
    delta: float
    ignored: float
    _laws: tuple[Law, Law] = field(repr=False, compare=False)

    def matching(self) -> Rows:
        """Rows (x, y, mass) of moves within the distance; what they leave out is ignored."""
        p, q = self._laws
        return _rows(largest_matching(*_measures(p, q), Fraction(self.distance)), _unit(p, q))


def wasserstein_inf(p: Law | LogTails, q: Law | LogTails) -> Wasserstein:
    """W_inf of two laws. Laws on whole numbers must be known pointwise over their whole support.

    `p` and `q` map values to masses, or are laws on whole numbers, or their tails.

    >>> wasserstein_inf({0: 0.2, 1: 0.225, 2: 0.5, 3: 0.075}, {1: 0.075, 2: 0.5, 3: 0.225, 4: 0.2}).distance
    2.0
    >>> wasserstein_inf({1: 0.6, 2: 0.2, 100: 0.2}, {1: 0.4, 2: 0.3, 3: 0.2, 100: 0.1}).distance
    97.0
    """
    if isinstance(p, Mapping) and isinstance(q, Mapping):
        return _exact(p, q)
    tails = _tails(p), _tails(q)
    if p is q:
        return Wasserstein(0.0, (float(tails[0].start), float(tails[0].start)), (p, q))
    forward, back = longest_move(*tails), longest_move(*reversed(tails))
    # Moves are measured from P to Q, whichever way they go.
    distance, longest = (forward[0], forward[1:]) if forward[0] >= back[0] else (back[0], (back[2], back[1]))
    return Wasserstein(float(max(0, distance)), (float(longest[0]), float(longest[1])), (p, q))


def close_distance(p: Law, q: Law, delta: float) -> Closeness:
    """The least W for which P and Q are (W, delta)-close.

    `p` and `q` are laws; of the mass of both at most `delta` may be ignored.

    >>> p, q = {1: 0.6, 2: 0.2, 100: 0.2}, {1: 0.4, 2: 0.3, 3: 0.2, 100: 0.1}
    >>> close = close_distance(p, q, 0.1)
    >>> close.distance, close.ignored
    (1.0, 0.1)
    """
    if not 0 <= delta < 1:
        raise UsageError(f"delta: must be at least 0 and below 1. Got {delta}.")
    measures, unit = _measures(p, q), _unit(p, q)
    allowed = Fraction(repr(float(delta))) if unit == 1 else Fraction(delta)
    slack = Fraction(0) if unit == 1 else _slack(p, q)
    within = _least_within(measures, (allowed - slack) * unit)
    if within is None:
        raise UsageError(f"delta: must be above what the laws leave out, {float(slack):.3g}. Got {delta}.")
    ignored = Fraction(unmatched(*measures, within)) / unit + slack
    return Closeness(_above(within), delta, min(delta, _above(ignored)), (p, q))


def _least_within(measures: tuple[Measure, Measure], allowed: Fraction) -> Number | None:
    """The least distance, among those of two points, at which what stays unmatched is allowed."""
    p, q = measures
    moves: list[Number]
    if all(isinstance(x, int) for x in (*p.positions, *q.positions)):
        moves = list(range(int(max(p.positions[-1] - q.positions[0], q.positions[-1] - p.positions[0], 0)) + 1))
    else:
        moves = sorted({_move(x, y) for x in p.positions for y in q.positions})
    low, high = 0, len(moves) - 1
    if unmatched(p, q, moves[high]) > allowed:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if unmatched(p, q, moves[middle]) <= allowed else (middle + 1, high)
    return moves[low]


def _exact(p: Finite, q: Finite) -> Wasserstein:
    x, y, _ = max(monotone_coupling(*_measures(p, q)), key=lambda row: _move(row[0], row[1]))
    return Wasserstein(_above(_move(x, y)), (float(x), float(y)), (p, q))


def _move(x: Number, y: Number) -> Number:
    return x - y if x >= y else y - x


def _unit(p: Law, q: Law) -> int:
    """Two mappings are exact; weights of laws with error bounds are whole multiples of one over this."""
    return 1 if isinstance(p, Mapping) and isinstance(q, Mapping) else 2**_DIGITS


def _measures(p: Law, q: Law) -> tuple[Measure, Measure]:
    if isinstance(p, Mapping) and isinstance(q, Mapping):
        return exact_measure(p), exact_measure(q)
    return _lattice_measure(_as_lattice(p)), _lattice_measure(_as_lattice(q))


def _lattice_measure(law: LatticeLaw) -> Measure:
    # Rounded down: what that takes away is in `_slack`.
    weights = [(law.start + k, int(math.ldexp(mass, _DIGITS))) for k, mass in enumerate(law.masses.tolist())]
    kept = [(value, weight) for value, weight in weights if weight > 0]
    return Measure([value for value, _ in kept], [weight for _, weight in kept])


def _slack(p: Law, q: Law) -> Fraction:
    """By how much sup P(A) - Q(A^w) can exceed its value for the weights used."""
    lattices = [_as_lattice(law) for law in (p, q)]
    return sum((Fraction(law.distance) + Fraction(len(law.masses), 2**_DIGITS) for law in lattices), Fraction(0))


def _as_lattice(law: Law) -> LatticeLaw:
    if isinstance(law, LatticeLaw):
        return law
    if any(value != int(value) for value in law):
        raise UsageError("law: only whole numbers can be compared with a law on whole numbers.")
    return LatticeLaw.of({int(value): float(probability) for value, probability in law.items()})


@dataclass(frozen=True, eq=False)
class Tails:
    """Logarithms of P(X <= start + k) and of P(X > start + k), both monotone, and a bound on their error."""

    start: int
    log_below: Array
    log_above: Array
    error: float


def _tails(law: Law | LogTails) -> Tails:
    import numpy as np

    if isinstance(law, Mapping):
        law = _as_lattice(law)
    if isinstance(law, LatticeLaw):
        if not law.pointwise:
            raise UsageError("law: W_inf needs every mass of the whole support. Use close_distance with a positive delta.")
        with np.errstate(divide="ignore"):
            below = np.log(np.cumsum(law.masses))
            above = np.log(np.append(np.cumsum(law.masses[:0:-1])[::-1], 0.0))
        # The sums' own rounding, and that of logarithms no larger than 750.
        return Tails(law.start, below, above, 2 * law.error + (2 * len(law.masses) + 2000) * UNIT)
    if not isinstance(law, LogTails):
        raise UsageError(
            f"law: must map values to masses, such as {{0: 0.4, 1: 0.6}}, or be a law. Got a {type(law).__name__}."
        )
    below, above = np.maximum.accumulate(law.log_below), np.minimum.accumulate(law.log_above)
    return Tails(law.start, below, above, law.error)


def longest_move(p: Tails, q: Tails) -> tuple[int, int, int]:
    """The largest y - x, with its x and y: y is the first point of Q at which F_Q(y) >= F_P(x) is certain."""
    import numpy as np

    slack = (p.error + q.error) * SOLVED_UP
    by_lower = np.searchsorted(q.log_below, p.log_below + slack)
    by_upper = np.searchsorted(-q.log_above, slack - p.log_above)
    moves = np.minimum(by_lower, by_upper) - np.arange(len(p.log_below))
    # Below its first mass P asks for nothing.
    moves[p.log_below == -math.inf] = -len(p.log_below)
    worst = int(np.argmax(moves))
    x = p.start + worst
    return int(moves[worst]) + q.start - p.start, x, x + int(moves[worst]) + q.start - p.start


def _above(x: Number) -> float:
    """The least float that is not below x."""
    value = float(x)
    return value if Fraction(value) >= x else math.nextafter(value, math.inf)


def _rows(rows: list[tuple[Number, Number, Number]], unit: int) -> Rows:
    return tuple((float(x), float(y), float(Fraction(mass) / unit)) for x, y, mass in rows)
