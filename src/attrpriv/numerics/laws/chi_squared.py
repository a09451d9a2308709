"""Tails of chi-square laws, from above: what a certificate may rely on.

    P(chi2_v < x) = e^-y y^a / Gamma(a+1) * (1 + y/(a+1) + y^2/((a+1)(a+2)) + ...)          a = v/2, y = x/2
    P(chi2_d > w) = e^-y (1 + y + ... + y^(d/2-1)/(d/2-1)!)                                   d even, y = w/2
                  = erfc(sqrt y) + e^-y (y^(1/2)/Gamma(3/2) + ... + y^(d/2-1)/Gamma(d/2))     d odd

All terms are positive, so that nothing cancels. The factor before the series is written with Stirling's series, whose partial
sums enclose the truth:  log Gamma(a+1) >= a log a - a + log(2 pi a)/2 + 1/(12 a) - 1/(360 a^3).  So its logarithm is at most

    -a (u - log(1 + u)) - log(2 pi a)/2 - 1/(12 a) + 1/(360 a^3),         u = y/a - 1,

without the difference of large numbers that log-gamma would need. What the series leaves out is less than a geometric one.

What must never change: both functions are at least the truth; every rounding is covered by a stated margin.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.numerics.rounding import ULP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

# Beyond this many degrees of freedom the series has millions of terms.
_MOST_FREEDOM = 10**11
# Up to this many, y^(d/2-1) e^-y is below e^-600 from y = 700 on.
_FEW = 40


def lower_tail_upper(freedom: int, x: float) -> float:
    """At least P(chi2_freedom < x); 1 from the law's mean on, where no use is made of it.

    >>> lower_tail_upper(2, 1.0) >= 1 - math.exp(-0.5)
    True
    """
    return float(lower_tails_upper(freedom, [x])[0])


def lower_tails_upper(freedom: int, xs: list[float] | Array) -> Array:
    """The same for several x."""
    import numpy as np

    _require_freedom(freedom)
    x = np.asarray(xs, dtype=np.float64)
    if not (x >= 0).all():  # NaN too
        raise UsageError("x: must be at least 0.")
    a = freedom / 2
    found = np.where(x > 0, 1.0, 0.0)
    inside = (x > 0) & (x < freedom)
    y = x[inside] / 2
    with np.errstate(under="ignore"):
        found[inside] = np.minimum(1.0, np.exp(_log_factor(a, y)) * _series(a, y) + 1e-300)
    return found


def _log_factor(a: float, y: Array) -> Array:
    """The logarithm of e^-y y^a / Gamma(a+1), from above."""
    import numpy as np

    u = (y - a) / a
    logarithm = np.where(u > -0.5, np.log1p(np.maximum(u, -0.5)), np.log(y / a))
    stirling = 0.5 * math.log(2 * math.pi * a) + 1 / (12 * a) - 1 / (360 * a**3)
    # (y - a)/a is good to two roundings, its logarithm's argument too; each of the three terms to four of its own size.
    slack = 8 * ULP * (a * (np.abs(u) + np.abs(logarithm)) + abs(stirling) + 1)
    return np.asarray(-a * (u - logarithm) - stirling + slack, dtype=np.float64)


def _series(a: float, y: Array) -> Array:
    """The series, from above, for y < a: as many terms as it takes to fall by e^-40, and a geometric rest."""
    import numpy as np

    terms = math.ceil(9 * math.sqrt(a)) + 60
    total, term = np.ones_like(y), np.ones_like(y)
    for start in range(1, terms + 1, 4096):
        steps = np.arange(start, min(start + 4096, terms + 1), dtype=np.float64)
        products = term[:, None] * np.cumprod(y[:, None] / (a + steps), axis=1)
        total, term = total + products.sum(axis=1), products[:, -1]
    ratio = y / (a + terms + 1)
    return np.asarray((total + term * ratio / (1 - ratio)) * (1 + 4 * ULP * (terms + 16)), dtype=np.float64)


def upper_tail_upper(freedom: int, w: float) -> float:
    """At least P(chi2_freedom > w), for few degrees of freedom; of none at all, the law of 0.

    >>> upper_tail_upper(2, 1.0) >= math.exp(-0.5)
    True
    """
    if not w >= 0:
        raise UsageError(f"w: must be at least 0. Got {w}.")
    if freedom == 0:
        return 0.0
    if not 1 <= freedom <= _FEW:
        raise UsageError(f"freedom: must be from 0 to {_FEW}. Got {freedom}.")
    y = w / 2
    if y > 700:
        return math.exp(-600.0)
    odd = freedom % 2
    total = math.erfc(math.sqrt(y)) if odd else 0.0
    term = math.exp(-y) * (2 * math.sqrt(y / math.pi) if odd else 1.0)
    power = 1.5 if odd else 1.0
    for _ in range((freedom - odd) // 2):
        total += term
        term *= y / power
        power += 1
    # exp(-y) is off by up to y roundings, erfc by up to y + 4 (its argument is rounded), and each term by a few more.
    return min(1.0, total * (1 + ULP * (4 * y + 8 * freedom + 64)) + 1e-300)


def _require_freedom(freedom: int) -> None:
    if not 1 <= freedom <= _MOST_FREEDOM:
        raise UsageError(f"freedom: must be from 1 to {_MOST_FREEDOM}. Got {freedom}.")
