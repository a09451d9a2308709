"""The quantile clip in use: one answer, decided in whole numbers, and how far it will be from the table's own.

    1. F~ = F + N(0, mask^2), on a grid whose steps are filled with random bits
    2. z = (F~ - m)/sqrt(V), m = mu_q + slopes (G - mu_G) in exact fractions
    3. the answer's cell: the least k with clip(x, C-(z), C+(z)) <= (k + 1/2) step, x = F~ - m0

Step 3 needs no inverse of Phi. With P = Phi(z) and Q = Phi(y) at the cell's upper edge y,

    C+(z) <= y    iff    e^below P <= Q   or   1 - P >= e^above (1 - Q)
    C-(z) <= y    iff    e^below (1 - P) >= 1 - Q   and   P <= e^above Q
    clip(x, C-(z), C+(z)) <= y    iff    C-(z) <= y   and   (C+(z) <= y or x <= y)

What must never change: the mask comes first. Digits of F that are clipped before they are masked are stretched where the clip
stretches, and no mask of one spacing covers them any more. Nothing that is read is kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from attrpriv.methods.base.clamp import MovedSpread, statistic
from attrpriv.methods.quantile_clip.grid import QuantileGrid
from attrpriv.noise import add_filled_gaussian
from attrpriv.numerics.calibration.quantile_clip import QuantileClip, clip_residuals
from attrpriv.numerics.laws.normal_digits import fixed_exp, fixed_normal_cdf, fixed_root

if TYPE_CHECKING:
    from attrpriv.methods.quantile_clip.proof import QuantileClipEvidence


def quantile_clipped(evidence: QuantileClipEvidence, average: Fraction, read: Mapping[str, Fraction]) -> Fraction:
    """The answer for one average, from it and the averages of the columns that are read."""
    moments, grid = evidence.moments, evidence.grid
    masked = add_filled_gaussian(average, evidence.mask, grid.digits)
    centre = Fraction(moments.mean[0])
    told = [statistic(one, read) - moments.mean_of(dict(one.coefficients)) for one in evidence.reads]
    mean = centre + sum((slope * x for slope, x in zip(evidence.slopes, told, strict=True)), Fraction(0))
    cell = clip_cell(evidence.clip, grid, evidence.variance, masked - centre, masked - mean)
    return centre + cell * Fraction(grid.step)


def clip_cell(clip: QuantileClip, grid: QuantileGrid, variance: Fraction, x: Fraction, rest: Fraction) -> int:
    """The public cell of clip(x, C-, C+), for x = F~ - m0 and rest = F~ - m."""
    if rest * rest >= Fraction(grid.depth) ** 2 * variance:
        return grid.last if rest > 0 else -grid.last
    p = fixed_normal_cdf(_in_sds(rest, variance, grid.bits), grid.bits)
    high = _guess(clip, grid, variance, x, rest)
    low, width = high - 1, 1
    while high < grid.last and not _at_most(clip, grid, variance, x, p, high):
        low, high, width = high, min(high + width, grid.last), 2 * width
    while low >= -grid.last and _at_most(clip, grid, variance, x, p, low):
        low, high, width = max(low - width, -grid.last - 1), low, 2 * width
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _at_most(clip, grid, variance, x, p, middle) else (middle, high)
    return high


def _guess(clip: QuantileClip, grid: QuantileGrid, variance: Fraction, x: Fraction, rest: Fraction) -> int:
    """Where floats put it: where the search begins, nothing else."""
    import numpy as np

    root = math.sqrt(variance)
    moved = float(clip.moved(np.array(float(x) / root), np.array(float(rest) / root)))
    return min(max(round(moved * root / grid.step), -grid.last), grid.last)


def _at_most(clip: QuantileClip, grid: QuantileGrid, variance: Fraction, x: Fraction, p: int, cell: int) -> bool:
    """Whether the clipped value lies in this cell or below it."""
    bits, one = grid.bits, 1 << grid.bits
    edge = Fraction(2 * cell + 1, 2) * Fraction(grid.step)
    q = fixed_normal_cdf(_in_sds(edge, variance, bits), bits)
    below, above = _factor(clip.below, bits), _factor(clip.above, bits)
    if not (below * (one - p) >= (one - q) << bits and p << bits <= above * q):
        return False
    return x <= edge or below * p <= q << bits or (one - p) << bits >= above * (one - q)


def _in_sds(value: Fraction, variance: Fraction, bits: int) -> int:
    size = fixed_root(value * value / variance, bits)
    return size if value >= 0 else -size


@lru_cache(maxsize=16)
def _factor(exponent: float, bits: int) -> int:
    return fixed_exp(Fraction(exponent), bits)


def wander_of(evidence: QuantileClipEvidence) -> float:
    """The standard deviation of what the statistics tell, over the tables of the assumption, in units of sqrt(V)."""
    return math.sqrt(max(0.0, float(evidence.explained)) / evidence.n / float(evidence.variance))


def clip_spread(evidence: QuantileClipEvidence) -> MovedSpread:
    """The law of the answer around the table's own value: what the clip takes away, and the mask."""
    points, weights = clip_residuals(evidence.clip, wander_of(evidence))
    return MovedSpread(points * math.sqrt(evidence.variance), weights, evidence.mask)
