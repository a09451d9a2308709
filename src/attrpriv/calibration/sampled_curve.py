"""What holds at every count of a group, from draws at some of them and the curves that moments follow to first order.

Let m_a and v_a be mean and variance of F given a, and mu_a and nu_a their values to first order (`laws.moment_curve`), known at
every count. Draws at some counts bound, with confidence, what is left: the largest |(m_a - m_b) - (mu_a - mu_b)|, the same for
variances, and the least v_a/nu_a. What is left is taken to be no larger at other counts, of which it is a share of about 1/n:

    |m_a - m_b| <= sup |mu_a - mu_b| + left,     v_a >= inf nu_a * least ratio,     |v_a - v_b| <= sup |nu_a - nu_b| + left

with sup over all counts that must look alike. What must never change: the sup is over the whole range, not over what was drawn.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

from attrpriv.calibration.sampled import Drawn, Estimate, Extent, sure, variance_interval
from attrpriv.errors import UsageError
from attrpriv.laws.moment_curve import Curve, moments_at
from attrpriv.laws.simulated import GroupRows


def curved_extent(drawn: Sequence[Drawn], curves: Sequence[Curve], alpha: float, *, corners: bool = False) -> Extent:
    """What holds for all of these laws at all counts of their curves, where each interval may fail with probability `alpha`.

    `corners`: variances, but not their differences, are extreme at these laws.
    """
    if not 0 < alpha < 1:
        raise UsageError(f"alpha: must be above 0 and below 1. Got {alpha}.")
    parts = [_part(one, line, alpha) for one, line in zip(drawn, curves, strict=True)]
    least, most = min(low for low, _, _, _ in parts), max(high for _, high, _, _ in parts)
    spread = most - least if corners else max(spread for _, _, _, spread in parts)
    return sure(Extent(max(gap for _, _, gap, _ in parts), least, spread))


def _part(drawn: Drawn, line: Curve, alpha: float) -> tuple[float, float, float, float]:
    """Least and largest variance, and how far means and variances are apart, of one law."""
    from scipy.special import ndtri

    if not isinstance(drawn.law, GroupRows):
        raise UsageError("curves are those of groups")
    z = -float(ndtri(alpha / 2))
    means, variances = moments_at(drawn.law, drawn.values)
    pairs = zip(drawn.variances, drawn.kurtoses, strict=True)
    ends = [variance_interval(variance, kurtosis, drawn.runs, alpha) for variance, kurtosis in pairs]
    ratios = [(low / first, high / first) for (low, high), first in zip(ends, variances, strict=True)]
    return (
        line.variance.least * min(low for low, _ in ratios),
        line.variance.most * max(high for _, high in ratios),
        line.mean.apart + _left(drawn.gaps, drawn.means, means, z),
        line.variance.apart + _left(drawn.spreads, drawn.variances, variances, z),
    )


def _left(found: Sequence[Estimate], moments: Sequence[float], first_order: Sequence[float], z: float) -> float:
    """How far differences of moments are from those to first order, at most, over all pairs that were drawn."""
    left = [a - b for a, b in zip(moments, first_order, strict=True)]
    differences = [abs(a - b) for a, b in itertools.combinations(left, 2)]
    return max((replace(one, size=size).upper(z) for one, size in zip(found, differences, strict=True)), default=0.0)


__all__ = ["curved_extent"]
