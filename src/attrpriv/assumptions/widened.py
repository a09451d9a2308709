"""What heavy tails cost an interval: exact for normal rows, wider for all others.

| of | for normal rows | here |
|---|---|---|
| sd | chi-square with n - 1 degrees of freedom | with `freedom(...)`, never more than that |
| mean, slope | t quantile | t + abs(skewness) (2 t^2 + 1)/(6 sqrt n): Hall's expansion of Student's statistic |

The estimate of a variance is worth 2n/(kurtosis - 1) degrees of freedom, where the kurtosis E z^4 is 3 for normal rows. That
kurtosis is itself an estimate, and too small where the largest rows were not met. So it is bounded from above:

    seen     what is above 3 is doubled
    k        n/kurtosis, the number of rows that *carry* the variance: n equal rows out of n, or k equal spikes among zeros
    bounded  n/L, where L is the lower limit of a Poisson mean of which k was counted

For k spikes among zeros this is the exact reason why a variance is uncertain. Below `least_carrying(...)` rows nothing is known
and nothing is stated.

What must never change: an interval is at least as wide as the one for normal rows. What no row shows is in no interval: rows so
rare that none of them may have been drawn (a share below log(1/tail)/n) must not matter; `docs/guide/fit.md` says so.
"""

from __future__ import annotations

import math

from attrpriv.errors import DataError
from attrpriv.problem.row_shape import RowShape

# With fewer rows that carry it, a variance may rest on rows of which none was drawn, at any confidence.
LEAST_CARRYING = 25.0
_WIDEST = 1.99**2


def carrying(rows: int, excess: float) -> float:
    """How many rows carry the variance, where the excess kurtosis was seen to be this."""
    return rows / (3 + excess + max(0.0, excess))


def freedom(rows: int, excess: float, tail: float, normal: float) -> float:
    """The degrees of freedom that the estimate of a variance is worth; at most those of normal rows.

    >>> freedom(1000, 0.0, 1e-3, 999) < 999
    True
    >>> round(freedom(1000, 150.0, 1e-3, 999), 1)
    0.5
    """
    from scipy.special import gammaincinv

    sure = float(gammaincinv(carrying(rows, excess), tail))
    return min(normal, 2 * rows * sure / (rows - sure)) if sure < rows else normal


def least_carrying(tail: float) -> float:
    """So many rows must carry a variance for its root to be known to within a factor below 2."""
    from scipy.special import gammaincinv

    low, high = LEAST_CARRYING, LEAST_CARRYING
    while not _known(float(gammaincinv(high, tail)), tail):
        low, high = high, 2 * high
    while high - low > 0.01:
        middle = (low + high) / 2
        low, high = (low, middle) if _known(float(gammaincinv(middle, tail)), tail) else (middle, high)
    return high


def _known(half: float, tail: float) -> bool:
    """Whether a variance worth 2 * half degrees of freedom is known to within a factor of 4."""
    from scipy.special import gammaincinv

    return half > 1 and half / float(gammaincinv(half, tail)) < _WIDEST


def skewed(quantile: float, skewness: float, rows: int) -> float:
    """Student's quantile, where the rows that are averaged are skewed.

    >>> skewed(5.0, 0.0, 1000), round(skewed(5.0, 2.0, 1000), 3)
    (5.0, 5.538)
    """
    return quantile + abs(skewness) * (2 * quantile**2 + 1) / (6 * math.sqrt(rows))


def require_known(shape: RowShape, rows: int, tail: float) -> None:
    """Raise DataError where the rows do not settle the sd of a column, or of what another column leaves open of it."""
    found = {column: one.kurtosis for column, one in shape.columns.items()}
    found |= {f"{of} given {on}": one.residual_kurtosis for (of, on), one in shape.pairs.items()}
    for name, kurtosis in found.items():
        require_carried(name, rows, kurtosis, tail)


def require_carried(name: str, rows: int, kurtosis: float, tail: float) -> None:
    """Raise DataError where too few rows carry a variance for its kurtosis, and so for the variance itself, to be known."""
    carried, needed = carrying(rows, kurtosis), least_carrying(tail)
    if not carried >= needed:
        raise DataError(
            f"public: {needed:.0f} or more rows must carry the variance of a column for it to be known at this confidence. Got "
            f"about {carried:.3g} of {rows} for {name} (excess kurtosis {kurtosis:.3g}). Find about {needed / carried:.1f} "
            "times as many public records, transform the column, or state the assumption yourself."
        )
