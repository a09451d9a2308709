"""Moving one law on the line into another: the monotone coupling, and the largest matching with no long move. Exact.

    W_inf(P, Q)    = least w such that some coupling has |x - y| <= w everywhere
    unmatched(w)   = min over couplings of P(|x - y| > w)  =  sup over sets A of P(A) - Q(A^w),    A^w = points within w of A

| symbol | here |
|---|---|
| P, Q | `Measure`: increasing positions and positive weights, in whole numbers or Fractions, so that nothing is rounded |
| coupling | rows (x, y, mass) |

*The monotone coupling* pairs equal quantiles: both laws are used up from the left. It attains W_inf on the line.

*The greedy matching* goes through the points x of P from the left and gives each the leftmost mass of Q within w that is still
free. It is the largest matching. Let A be the points that keep unmatched mass, together with every point that used mass of Q
within w of A (repeated until nothing is added). When x keeps something, all of Q within w of x is used, by points up to x. If
x' was added because it used y', it had found everything of Q between x' - w and y' used, and what lies between y' and x' + w is
within w of the point for which x' was added. So all of Q in A^w is used, by points of A alone, and the mass left unmatched is
exactly P(A) - Q(A^w). No coupling leaves less than that. (The two sides are equal for all laws: key
`strassen1965existence`.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational
from typing import Any

from attrpriv.errors import UsageError

Number = int | Fraction
Row = tuple[Number, Number, Number]
# {value: probability}; a mapping is invariant in its keys, which may be ints, floats or Fractions.
Finite = Mapping[Any, float | Fraction]


@dataclass(frozen=True)
class Measure:
    """Weights at increasing positions."""

    positions: Sequence[Number]
    weights: Sequence[Number]


def exact_measure(law: Finite) -> Measure:
    """A law as its decimal texts say, divided by its sum: 0.1 is one tenth."""
    entries = sorted((_decimal(value), _decimal(probability)) for value, probability in law.items())
    total = sum((probability for _, probability in entries), Fraction(0))
    if not entries or any(probability < 0 for _, probability in entries) or abs(total - 1) > Fraction(1, 10**9):
        raise UsageError(f"law: probabilities must be at least 0 and sum to 1. Got a sum of {float(total):.12g}.")
    kept = [(value, probability / total) for value, probability in entries if probability > 0]
    return Measure([value for value, _ in kept], [probability for _, probability in kept])


def _decimal(x: float | Fraction) -> Fraction:
    """Whole numbers and fractions as they are, floats as they are written."""
    try:
        return Fraction(x) if isinstance(x, Rational) else Fraction(repr(float(x)))
    except ValueError:
        raise UsageError(f"law: values and probabilities must be finite numbers. Got {x}.") from None


def monotone_coupling(p: Measure, q: Measure) -> list[Row]:
    """Equal quantiles together."""
    rows: list[Row] = []
    i = j = 0
    left, right = p.weights[0], q.weights[0]
    while True:
        mass = min(left, right)
        rows.append((p.positions[i], q.positions[j], mass))
        left, right = left - mass, right - mass
        if left == 0:
            i += 1
            if i == len(p.positions):
                return rows
            left = p.weights[i]
        if right == 0:
            j += 1
            if j == len(q.positions):
                return rows
            right = q.weights[j]


def largest_matching(p: Measure, q: Measure, within: Number) -> list[Row]:
    """As much mass as can be moved with no move longer than `within`, greedily from the left."""
    rows: list[Row] = []
    j, right = 0, q.weights[0]
    for x, weight in zip(p.positions, p.weights, strict=True):
        left = weight
        while left > 0 and j < len(q.positions) and q.positions[j] <= x + within:
            mass = min(left, right) if q.positions[j] >= x - within else 0
            if mass > 0:
                rows.append((x, q.positions[j], mass))
                left, right = left - mass, right - mass
            if left > 0 or right == 0:
                j += 1
                right = q.weights[j] if j < len(q.positions) else 0
    return rows


def unmatched(p: Measure, q: Measure, within: Number) -> Number:
    """The mass of P that no coupling can keep from moving further than `within`, when Q is at least as heavy as a law."""
    return sum(p.weights) - sum(mass for _, _, mass in largest_matching(p, q, within))
