"""Which counts of a category must look alike: the pairs of a count or share, in whole rows.

What must never change: ranges of shares become the whole counts inside them, with ends read outward by one float, and a
distance is rounded up to whole rows: hiding more is safe.
"""

from __future__ import annotations

import math
from fractions import Fraction

from attrpriv.errors import QueryError
from attrpriv.numerics.laws.intervals import IntervalUnion
from attrpriv.numerics.laws.records import CountPairs, first_whole, last_whole, whole_between
from attrpriv.problem.secret import Secret


def count_pairs(secret: Secret, n: int) -> CountPairs:
    """The counts of a table's secret that must look alike, pair by pair."""
    scale = _scale(secret, n)
    low, high = _range(secret, n, scale)
    apart = high - low
    if secret.within is not None:
        reach = Fraction(repr(secret.within)) * scale
        if scale != 1 and secret.within > 1:
            raise QueryError(f"within: shares are at most 1 apart, as in 5%. Got {secret.within:g}.")
        if reach < 1 <= Fraction(math.nextafter(secret.within, math.inf)) * scale:
            reach = Fraction(1)  # one row as a program computes it: 1 / 6
        if reach < 1:
            raise QueryError(
                f"within: {secret.text} is made of whole rows, and no two counts of {n} rows are that close. Got "
                f"{secret.within:g}; 1 row is {1 / scale:g}."
            )
        apart = min(apart, math.ceil(reach))
    if low > high:
        raise QueryError(f"{secret.text}: its range holds no whole count of {n} rows; widen it.")
    if scale != 1 and secret.ends is not None and not 0 <= secret.ends[0] <= secret.ends[1] <= 1:
        ends = " to ".join(f"{end:g}" for end in secret.ends)
        raise QueryError(f"{secret.text}: shares must be from 0 to 1, as in 25% or 0.25. Got {ends}.")
    if not 0 <= low <= high <= n:
        raise QueryError(f"{secret.text}: counts must be from 0 to the number of rows, {n}. Got {low} to {high}.")
    if low == high:
        raise QueryError(
            f"{secret.text}: its range holds a single count of {n} rows, {low}; there is nothing to hide. Widen it."
        )
    return CountPairs(n, low, high, apart)


def share_range(secret: Secret) -> tuple[float, float]:
    """The shares of a population that must look alike."""
    if secret.cases is not None:
        ends = [end for case in secret.case_sets for end in case.ends if math.isfinite(end)]
        bounded = all(case.bounded for case in secret.case_sets)
        low, high = (min(ends), max(ends)) if bounded else (0.0, 1.0)
    else:
        low, high = secret.ends or (0.0, 1.0)
    if not 0 <= low < high <= 1:
        raise QueryError(f"{secret.text}: must be a range of shares from 0 to 1. Got [{low:g}, {high:g}].")
    return low, high


def counts_in(case: IntervalUnion, n: int, scale: int) -> tuple[tuple[int, int], ...]:
    """The runs of whole counts, first and last of each, that one of several cases holds."""
    runs = []
    for part in case.parts:
        low = 0 if math.isinf(part.low) else _whole(part.low, scale, part.low_closed, upwards=True)
        high = n if math.isinf(part.high) else _whole(part.high, scale, part.high_closed, upwards=False)
        if max(0, low) <= min(n, high):
            runs.append((max(0, low), min(n, high)))
    return tuple(runs)


def _whole(end: float, scale: int, closed: bool, *, upwards: bool) -> int:
    """The first whole count at or beyond an end, beyond it where the end itself does not belong."""
    if closed:
        return first_whole(end, scale) if upwards else last_whole(end, scale)
    exact = Fraction(repr(end)) * scale
    count = math.ceil(exact) if upwards else math.floor(exact)
    return count if count != exact else count + (1 if upwards else -1)


def _scale(secret: Secret, n: int) -> int:
    composition = secret.composition
    return n if composition is not None and composition.kind == "share" else 1


def case_runs(secret: Secret, n: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """The counts that each of a table's cases holds."""
    held = tuple(counts_in(case, n, _scale(secret, n)) for case in secret.case_sets)
    if not all(held):
        raise QueryError(f"{secret.text}: each case must hold a possible count of {n} rows.")
    return held


def _range(secret: Secret, n: int, scale: int) -> tuple[int, int]:
    """The hull of all values that must look alike: sets are hidden point by point."""
    if secret.cases is not None:
        held = case_runs(secret, n)
        return min(runs[0][0] for runs in held), max(runs[-1][1] for runs in held)
    if secret.ends is None:
        return 0, n
    return whole_between(*secret.ends, scale)
