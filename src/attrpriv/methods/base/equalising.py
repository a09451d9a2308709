"""Noise that makes the spread of all tables' answers equal: how much a table gets depends on its counts, which are secret.

What must never change: the grid that noise is drawn on and the factors it is multiplied with are public; only the variance of
whole numbers drawn on that grid is secret. A scale, a grid or a factor that depended on the counts would show in the digits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from attrpriv.methods.base.evidence import Told
from attrpriv.methods.base.gaussian_proof import Rows, shaped
from attrpriv.noise import correlated_noise, granularity
from attrpriv.numerics.calibration.groups import Equalised, Part, equalising_variance, part_weights
from attrpriv.numerics.laws.groups import GroupCase, VectorCase


def hidden_scale(case: GroupCase | VectorCase, scale: float, told: Told) -> tuple[float, float] | None:
    """The sd of the noise on one average for a table with these counts, which is secret, and the public grid of it."""
    if not isinstance(case, GroupCase):
        return None
    # A tolerance of sds is the certificate's concern; what is made up for is what is stated.
    counts = list(told.inside), list(told.outside)
    least = math.sqrt(equalising_variance(case.stated, *counts, scale**2))
    return max(scale, least), granularity(scale)


def table_noise(case: GroupCase | VectorCase, scale: float, told: Told) -> float | None:
    """The sd of the noise on one average for these counts; None where they are not known, or there are several averages."""
    sides = (len(told.inside), len(told.outside))
    if not isinstance(case, GroupCase) or sides != (len(case.members), len(case.rest)):
        return None
    found = hidden_scale(case, scale, told)
    return None if found is None else found[0]


def equalised(
    averages: Sequence[Fraction], case: GroupCase | VectorCase, parts: Sequence[Part], bits: int, told: Told
) -> list[Fraction]:
    """Several averages with a draw of the noise that brings them to their common covariance."""
    total = list(averages)
    if not isinstance(case, VectorCase):
        return total
    weights = part_weights(case, parts, list(told.inside), list(told.outside))
    for weight, part in zip(weights, parts, strict=True):
        total = [a + b for a, b in zip(total, correlated_noise(part.factor, bits, weight), strict=True)]
    return total


def common_bits(independent: Sequence[float], factor: Sequence[Sequence[float]], parts: Sequence[Part], n: int) -> int:
    """How fine the grid of noise common to several averages is, for these sds of each average's own noise."""
    rows = [[*(factor[k] if factor else ()), *(x for part in parts for x in part.factor[k])] for k in range(len(independent))]
    ratio = max(sum(map(abs, row)) / own for row, own in zip(rows, independent, strict=True))
    # A part's numbers have variance 0, or one row's share of n at least.
    return 34 + math.ceil(max(0.0, math.log2(max(ratio, 1e-9)), math.log2(n) / 2))


def belong_together(case: VectorCase, equalised: Equalised, independent: Sequence[float], factor: Rows) -> bool:
    """Whether all noise is on the averages of the case: matrices of other shapes would be stretched where they are added."""
    places = {"low": 1, "high": 1, "member": len(case.members), "rest": len(case.rest)}
    fits = [len(independent) == case.size, shaped(equalised.target, case.size, case.size)]
    fits += [shaped(rows, case.size) for rows in (*([factor] if factor else []), *(part.factor for part in equalised.parts))]
    return all(fits) and all(0 <= part.index < places[part.role] for part in equalised.parts)
