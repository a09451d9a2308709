"""What it costs that real numbers are recorded and drawn on grids.

Two grids, one treatment: the law of what is released is compared with the ideal continuous law, and the difference is charged
as (lambda, eta): if both laws of a pair are within a factor e^lambda of their ideals, up to mass eta, and the ideals are
(eps', delta')-close, the real ones are (eps' + 2 lambda, e^lambda delta' + eta (1 + e^(eps' + lambda)))-close.

1. *The grid of the noise*, r = granularity / scale <= 2^-32. An output cell holds, for each table, the noise's mass at a point
   that lies within one step of every point of the cell, so its ratio to the ideal mass is at most exp(T r + r^2) while the
   noise stays within T scales: lambda = T r + r^2, eta = 2 exp(-T^2/2) with T = 37. Noise common to several averages is drawn
   on a grid of 2^-34 standard deviations or finer, so fine that it moves no average by more than a quarter of a step: that
   makes 1.25 steps of the one, and the same charge once for each of its coordinates.
2. *The grid of the data*: with spacing h, an average lies on h Z / n. By Poisson summation the masked law has its ideal
   density times 1 +- x, x = (1 + 2q/(1-q))^k - 1, q = exp(-2 pi^2 e), for k averages, where e is the effective variance
   v s^2/(v + s^2) in units of (h/n)^2: lambda = -log(1 - x).
"""

from __future__ import annotations

import math

from attrpriv.errors import UsageError
from attrpriv.numerics.rounding import COMPUTED_UP

_TAIL = 37.0
_GRID_RATIO = 2.0**-32
_COMMON_RATIO = 2.0**-34


def grid_charge(columns: int, common_draws: int | None = None) -> tuple[float, float]:
    """(lambda, eta) for drawing the noise of this many columns on its grid; of several, with noise common to them.

    `common_draws` says how many numbers that noise is made of; as many as columns where it does not.
    """
    shared = (0 if columns == 1 else columns) if common_draws is None else common_draws
    steps = 1.25 if shared else 1.0
    reach = steps * _GRID_RATIO
    own = columns * (_TAIL * reach + reach**2)
    common = shared * (_TAIL * _COMMON_RATIO + _COMMON_RATIO**2)
    return (own + common) * COMPUTED_UP, (columns + shared) * 2.2 * math.exp(-(_TAIL**2) / 2)


def lattice_lambda(effective_variance: float, columns: int) -> float:
    """lambda for averages recorded on a lattice; infinite where the mask does not cover it.

    >>> f"{lattice_lambda(1.0, 1):.0e}"
    '5e-09'
    """
    if not effective_variance >= 0:
        raise UsageError(f"effective variance: must be at least 0. Got {effective_variance}.")
    q = math.exp(-2 * math.pi**2 * effective_variance)
    if q >= 0.2:
        return math.inf
    x = math.expm1(columns * math.log1p(2 * q / (1 - q)))
    return -math.log1p(-x) * COMPUTED_UP if x < 1 else math.inf


def mask_scale(spacing: float | None, declared: bool, n: int, sd: float) -> float:
    """The least noise on an average, whatever privacy asks: h/n for a declared spacing, else from the schema and the sd."""
    if declared and spacing is not None:
        return spacing / n
    return max(1.5 * (spacing or 0.0) / n, sd / math.sqrt(n) / 50)
