"""How far a statistic can go when its columns stay in their bounds: exact interval arithmetic.

| statistic of u and v in [low, high], of width R | lies in |
|---|---|
| a quantile of u | [low, high] |
| var_pop(u) | [0, R^2 / 4]: the mean square distance from the middle is at most (R/2)^2, and from the mean it is least |
| covar_pop(u, v) | +- R_u R_v / 4, by Cauchy and Schwarz |
| regr_slope, regr_intercept | no interval: u may be nearly constant |

What must never change: an interval is never too small. Columns count as free of each other, and of a product of a column with
itself only its sign is used, so an interval may be too large.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction

from attrpriv.queries.arithmetic import Arithmetic
from attrpriv.queries.query import Query

Interval = tuple[Fraction, Fraction]
Box = Mapping[str, tuple[float, float]]

# Statistics that are no averages, sums or counts.
NON_LINEAR = frozenset({"var_pop", "covar_pop", "regr_slope", "regr_intercept", "quantile"})
# Those that no bounds of columns bound.
UNBOUNDED = frozenset({"regr_slope", "regr_intercept"})
# Products of five numbers of this size are still floats, and squares of the largest are.
TINY = 1e-60
_SMALLEST, _NARROWEST, _LARGEST = 1e-40, 1e-120, 1e140


def interval(of: Arithmetic, box: Box) -> Interval:
    """Where an expression lies while each column stays in its bounds.

    >>> from attrpriv.queries.arithmetic import parse_arithmetic
    >>> [float(end) for end in interval(parse_arithmetic("2 * x - x * x * y"), {"x": (-1.0, 2.0), "y": (0.0, 3.0)})]
    [-14.0, 4.0]
    """
    low = high = Fraction(0)
    for monomial, weight in of.terms:
        ends = (weight, weight)
        for column, power in Counter(monomial).items():
            ends = _times(ends, _power(box[column], power))
        low, high = low + ends[0], high + ends[1]
    return low, high


def answer_interval(query: Query, box: Box) -> tuple[float, float] | None:
    """Where the statistic lies, rounded outwards; None where nothing bounds it.

    >>> from attrpriv.queries.sql import parse_queries
    >>> [answer_interval(q, {"x": (0.0, 4.0), "y": (1.0, 2.0)}) for q in parse_queries("var_pop(x), covar_pop(x, 3*y)")]
    [(0.0, 4.0), (-3.0, 3.0)]
    """
    parts = [interval(argument, box) for argument in query.arguments]
    widths = [high - low for low, high in parts]
    if query.kind == "quantile":
        return _outwards(parts[0])
    if query.kind == "var_pop":
        return _outwards((Fraction(0), widths[0] ** 2 / 4))
    if query.kind == "covar_pop":
        reach = widths[0] * widths[1] / 4
        return _outwards((-reach, reach))
    return None


def fits_floats(query: Query, box: Box) -> bool:
    """Whether floats hold every step of the arithmetic on rows in the box whose entries are 0 or at least `TINY`.

    >>> from attrpriv.queries.sql import parse_queries
    >>> (query,) = parse_queries("var_pop(x * y)")
    >>> fits_floats(query, {"x": (0.0, 1e9), "y": (0.0, 1.0)}), fits_floats(query, {"x": (0.0, 1e200), "y": (0.0, 1.0)})
    (True, False)
    """
    largest = {column: max(abs(Fraction(end)) for end in box[column]) for column in query.columns}
    return min(largest.values()) > _SMALLEST and all(_fits(argument, box, largest) for argument in query.arguments)


def _fits(of: Arithmetic, box: Box, largest: Mapping[str, Fraction]) -> bool:
    low, high = interval(of, box)
    reach = Fraction(0)
    for monomial, weight in of.terms:
        part = max(Fraction(1), abs(weight))
        for column in monomial:
            part *= max(Fraction(1), largest[column])
        reach += part
    return high - low > _NARROWEST and reach < _LARGEST and all(abs(weight) >= TINY for _, weight in of.terms)


def _power(ends: tuple[float, float], power: int) -> Interval:
    low, high = (Fraction(end) for end in ends)
    found = sorted((low**power, high**power))
    return (Fraction(0) if power % 2 == 0 and low < 0 < high else found[0]), found[1]


def _times(first: Interval, second: Interval) -> Interval:
    products = [a * b for a in first for b in second]
    return min(products), max(products)


def _outwards(ends: Interval) -> tuple[float, float] | None:
    """Floats around the interval; None where these are not finite, or hold a single number."""
    try:
        low, high = float(ends[0]), float(ends[1])
    except OverflowError:
        return None
    low = low if Fraction(low) <= ends[0] else math.nextafter(low, -math.inf)
    high = high if Fraction(high) >= ends[1] else math.nextafter(high, math.inf)
    return (low, high) if low < high and math.isfinite(high - low) else None
