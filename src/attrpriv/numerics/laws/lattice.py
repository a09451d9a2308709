"""The laws of counts and of integer noise, on whole numbers, with bounds on the error of every float.

    Bin(a, p1) + Bin(b, p0)          `binomial_sum`: a rows of one category, b of the other, each counts 1 or 0
    member^(*a) * rest^(*b)          `record_sum`: the same for any whole number that a row adds
    P(k) ~ e^(-|k|/scale)            `discrete_laplace`
    P(k) ~ e^(-k^2/(2 sigma^2))      `discrete_gaussian`

| symbol | here |
|---|---|
| tail | what the window may leave out. 0: the whole support, each mass accurate to a relative `error` unless one underflows |
| r_k | P(k+1)/P(k) of a binomial law: (n-k)/(k+1) p/(1-p), decreasing in k |

A binomial law is built outwards from its mode by r_k and divided by its sum: no special function and no logarithm is needed,
and the mass j steps from the mode is off by a share of at most 6.1 j 2^-53 before the division. As r_k decreases, what lies
beyond the window is less than a geometric series from its end. The window itself is that of Bernstein's inequality:
P(|X - np| >= t) <= 2 exp(-t^2/(2 (np(1-p) + t/3))). Powers of a general law are taken by squaring; the bounds of
`lattice_law` double with each square, as the number of rows does.

What must never change: the bounds (`LatticeLaw`). A law with tail > 0 is pointwise accurate in its window only where it is a
single binomial law or noise; a sum of two windows says `error` = inf.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.numerics.laws.lattice_law import SMALLEST, LatticeLaw, mixture, up
from attrpriv.numerics.laws.records import Number, exactly
from attrpriv.numerics.rounding import COMPUTED_UP, SOLVED_UP, UNIT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

__all__ = ["LatticeLaw", "binomial_sum", "discrete_gaussian", "discrete_laplace", "mixture", "record_sum"]

# What one step away from the mode adds to the relative error: two roundings of the odds, one of the quotient of whole numbers,
# two of products and one of the reciprocal.
_STEP = 6.1 * UNIT
# Probabilities below this are refused: their products leave the range of floats at once.
_LEAST_P = 1e-290
# The window of noise would need more values than this.
_WIDEST = 2**26


def binomial_sum(a: int, p1: Number, b: int, p0: Number, *, tail: float = 0.0, direct: int | None = None) -> LatticeLaw:
    """The law of Bin(a, p1) + Bin(b, p0), independent, of the decimal fractions that floats are written as.

    `a` rows count 1 with probability `p1`, `b` rows with `p0`. `tail` above 0 leaves out the ends, at most about this mass.

    With a tail, a sum of more than `direct` products is a transform: as good in total, but not at each value.

    >>> [round(float(mass), 4) for mass in binomial_sum(0, 0.4, 4, 0.6).masses]
    [0.0256, 0.1536, 0.3456, 0.3456, 0.1296]
    """
    _require_tail(tail)
    parts = [_binomial(n, p, tail / 2) for n, p in ((a, p1), (b, p0))]
    if a == 0 or b == 0 or p1 == p0:
        return parts[0] if b == 0 else parts[1] if a == 0 else _binomial(a + b, p1, tail)
    return parts[0].convolve(parts[1], exact=tail == 0, direct=direct)


def _binomial(n: int, p: Number, tail: float) -> LatticeLaw:
    import numpy as np

    if n < 0 or not (p == 0 or _LEAST_P <= p <= 1) or 0 < 1 - p < _LEAST_P:
        raise UsageError(f"binomial: needs n at least 0 and p zero or from {_LEAST_P} to 1. Got n = {n}, p = {p}.")
    if n == 0 or p in (0.0, 1.0):
        return LatticeLaw(n if p == 1.0 else 0, np.ones(1), 0.0, 0.0)
    low, high = _bernstein(n, p, tail) if tail > 0 else (0, n)
    mode = min(max(int((n + 1) * p), low), high)
    odds = float(exactly(p) / (1 - exactly(p)))  # rounded once
    above = _products(_ratios(n, odds, np.arange(mode, high, dtype=np.float64)))
    below = _products(1 / _ratios(n, odds, np.arange(mode - 1, low - 1, -1, dtype=np.float64)))
    weights = np.concatenate([below[::-1], [1.0], above])
    law = _normalised(n, odds, mode - len(below), len(below), weights)
    # The whole support was asked for: a law without all of it must not look like one that has it.
    return law if tail > 0 or law.pointwise else LatticeLaw(law.start, law.masses, math.inf, law.distance)


def _normalised(n: int, odds: float, start: int, mode: int, weights: Array) -> LatticeLaw:
    """Weights relative to the mode's, divided by their sum; `beyond` bounds what the window leaves out."""
    import numpy as np

    total = math.fsum(weights)
    steps = np.abs(np.arange(len(weights)) - mode)
    # The sum is off by the average error of its terms.
    error = (float(steps.max()) + float(np.dot(steps, weights)) / total * SOLVED_UP) * _STEP * SOLVED_UP + 8 * UNIT
    end, beyond = start + len(weights) - 1, 0.0
    if end < n:
        beyond += float(weights[-1]) / total * _geometric(_ratio(n, odds, end))
    if start > 0:
        beyond += float(weights[0]) / total * _geometric(1 / _ratio(n, odds, start - 1))
    if (start, end) != (0, n):
        beyond += SMALLEST  # the products above can underflow
    lost = min(1.0, up(beyond * (1 + 2 * error)))
    return LatticeLaw(start, weights / total, up(error + lost), lost)


def _ratios(n: int, odds: float, k: Array) -> Array:
    return (n - k) / (k + 1) * odds


def _ratio(n: int, odds: float, k: int) -> float:
    return (n - k) / (k + 1) * odds


def _geometric(ratio: float) -> float:
    """A bound on r + r^2 + ..., for r just computed and below 1."""
    ratio = ratio * (1 + 8 * UNIT)
    return ratio / (1 - ratio) * (1 + 8 * UNIT) if ratio < 1 else math.inf


def _products(ratios: Array) -> Array:
    """r_0, r_0 r_1, ... as far as none of them is too small to be accurate: the rest leaves the window."""
    import numpy as np

    weights = np.asarray(np.cumprod(ratios), dtype=np.float64)
    small = np.flatnonzero(weights < SMALLEST * 2.0**40)
    return weights[: int(small[0])] if small.size else weights


def _bernstein(n: int, p: Number, tail: float) -> tuple[int, int]:
    """Where all but `tail` of Bin(n, p) lies."""
    log = math.log(2 / tail) * COMPUTED_UP
    reach = log / 3 + math.sqrt(log * log / 9 + 2 * log * n * float(p) * float(1 - p))
    centre, reach = float(n * p), reach * COMPUTED_UP + 2
    return max(0, math.floor(centre - reach)), min(n, math.ceil(centre + reach))


def record_sum(
    values: Sequence[int], law1: Sequence[Number], a: int, law0: Sequence[Number], b: int, *, tail: float = 0.0
) -> LatticeLaw:
    """The law of the sum of `a` draws from law1 and `b` from law0, both on `values`.

    `law1` and `law0` are probabilities of the `values`. `tail` above 0 leaves out the ends, at most about this mass.

    >>> law = record_sum((0, 1, 3), (0.5, 0.25, 0.25), 2, (1.0, 0.0, 0.0), 1)
    >>> law.masses.tolist()
    [0.25, 0.25, 0.0625, 0.25, 0.125, 0.0, 0.0625]
    """
    _require_tail(tail)
    if a < 0 or b < 0:
        raise UsageError(f"record_sum: needs at least 0 rows of each kind. Got {a} and {b}.")
    parts = [_power(_record(values, law), n, tail / 4) for law, n in ((law1, a), (law0, b))]
    together = parts[0].convolve(parts[1], exact=tail == 0)
    return together.trimmed(tail / 4) if tail > 0 else together


def _record(values: Sequence[int], law: Sequence[Number]) -> LatticeLaw:
    if len(values) != len(law):
        raise UsageError(f"law: must have one probability for each of {len(values)} values. Got {len(law)}.")
    return LatticeLaw.of(dict(zip(values, law, strict=True)))


def _power(law: LatticeLaw, n: int, tail: float) -> LatticeLaw:
    """The n-th convolution power, from the highest binary digit of n down; every step may lose its share of `tail`."""
    import numpy as np

    if n == 0:
        return LatticeLaw(0, np.ones(1), 0.0, 0.0)
    result, rows = law, 1
    for digit in bin(n)[3:]:
        result, rows = result.convolve(result, exact=tail == 0), 2 * rows
        if digit == "1":
            result, rows = result.convolve(law, exact=tail == 0), rows + 1
        if tail > 0:
            # What is lost now is doubled with the rows: n/rows times, and there are fewer than bit_length steps.
            result = result.trimmed(tail * rows / (2 * n * n.bit_length()))
    return result


def discrete_laplace(scale: float, *, tail: float) -> LatticeLaw:
    """P(k) = (1 - t)/(1 + t) t^|k|, t = e^(-1/scale); what lies outside the window is 2 t^(K+1)/(1 + t) <= `tail`.

    `scale` is that of the noise: P(k) falls by e^(-1/scale) with each step.

    >>> law = discrete_laplace(1.0, tail=1e-12)
    >>> law.start, round(float(law.masses[-law.start]), 6)
    (-29, 0.462117)
    """
    import numpy as np

    _require_noise("scale", scale, tail)
    last = math.ceil(scale * math.log(2 / tail) * COMPUTED_UP)
    _require_width(last)
    steps = np.arange(last + 1) / scale
    masses = _kept(math.tanh(0.5 / scale) * np.exp(-steps))
    last = len(masses) - 1
    lost = 2 * math.exp(-(last + 1) / scale) / (1 + math.exp(-1 / scale)) * (1 + 64 * UNIT * (2 + last / scale))
    return _symmetric(masses, (16 + 4 * last / scale) * UNIT, lost)


def discrete_gaussian(sigma: float, *, tail: float) -> LatticeLaw:
    """P(k) ~ e^(-k^2/(2 sigma^2)), divided by the sum over the window; the rest is below a geometric series.

    `sigma` is the scale of the noise, `tail` the mass that its ends may leave out.

    >>> law = discrete_gaussian(1.0, tail=1e-12)
    >>> law.start, round(float(law.masses[-law.start]), 6)
    (-9, 0.398942)
    """
    import numpy as np

    _require_noise("sigma", sigma, tail)
    last = math.ceil(sigma * math.sqrt(2 * math.log(4 / tail))) + 1
    _require_width(last)
    steps = np.arange(last + 1) / sigma
    weights = _kept(np.exp(-steps * steps / 2))
    last = len(weights) - 1
    total = math.fsum(weights) + math.fsum(weights[1:])
    # Each exponent is off by 4 units of itself, the largest by the most; the same holds for their average in the sum.
    error = (8 * (last / sigma) ** 2 / 2 + 16) * UNIT
    lost = 2 * float(weights[-1]) / total * _geometric(math.exp(-(2 * last + 1) / (2 * sigma) / sigma)) * (1 + 4 * error)
    return _symmetric(weights / total, error + lost, lost)


def _kept(masses: Array) -> Array:
    """As far as none is too small; at least the first."""
    return masses[: max(1, int((masses >= SMALLEST * 2.0**40).sum()))]


def _symmetric(masses: Array, error: float, lost: float) -> LatticeLaw:
    """A law from the masses of 0, 1, 2, ...; what is lost is never 0, even where it underflows."""
    import numpy as np

    return LatticeLaw(1 - len(masses), np.concatenate([masses[:0:-1], masses]), up(error), up(lost + SMALLEST))


def _require_tail(tail: float) -> None:
    if not (tail == 0 or 1e-280 <= tail < 1):
        raise UsageError(f"tail: must be 0, or at least 1e-280 and below 1. Got {tail}.")


def _require_noise(name: str, spread: float, tail: float) -> None:
    if not (math.isfinite(spread) and spread > 0):
        raise UsageError(f"{name}: must be finite and positive. Got {spread}.")
    if not 1e-280 <= tail < 1:
        raise UsageError(f"tail: must be at least 1e-280 and below 1. Got {tail}.")


def _require_width(last: int) -> None:
    if last > _WIDEST:
        raise UsageError(f"noise: its window would have {2 * last + 1:,} values. Use a smaller scale or a larger tail.")
