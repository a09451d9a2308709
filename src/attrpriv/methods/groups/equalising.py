"""Noise that makes the spread of all tables' answers equal: how much a table gets depends on its counts, which are secret.

What must never change: the grid that noise is drawn on and the factors it is multiplied with are public; only the variance of
whole numbers drawn on that grid is secret. A scale, a grid or a factor that depended on the counts would show in the digits.
"""

from __future__ import annotations

import math
from fractions import Fraction

from attrpriv.methods.group_transport.proof import GroupTransportEvidence, GroupVectorTransportEvidence
from attrpriv.methods.groups.proof import GroupEvidence, GroupVectorEvidence
from attrpriv.noise import correlated_noise, granularity
from attrpriv.numerics.calibration.groups import equalising_variance
from attrpriv.numerics.calibration.groups_vector import part_weights
from attrpriv.numerics.laws.groups import GroupCase
from attrpriv.numerics.laws.groups_vector import VectorCase

Sides = tuple[list[int], list[int]]


def grid_of(evidence: object) -> float | None:
    """The public grid of noise whose scale is secret: that of the least scale it can have."""
    one = GroupEvidence | GroupTransportEvidence
    return granularity(evidence.scale) if isinstance(evidence, one) and evidence.form == "equalised" else None


def secret_scale(evidence: object, counts: Sides) -> float | None:
    """The sd of the noise on one average for a table with these counts; None where it is the same for all. Secret."""
    if not isinstance(evidence, GroupEvidence | GroupTransportEvidence) or evidence.form != "equalised":
        return None
    case = (evidence.check if isinstance(evidence, GroupTransportEvidence) else evidence.checks[0]).case
    if not isinstance(case, GroupCase):
        return None
    # A tolerance of sds is the certificate's concern; what is made up for is what is stated.
    return max(evidence.scale, math.sqrt(equalising_variance(case.stated, *counts, evidence.scale**2)))


def equalising_noise(evidence: object, counts: Sides) -> list[Fraction]:
    """A draw of the noise that brings several averages to their common covariance; empty where there is none."""
    several = GroupVectorEvidence | GroupVectorTransportEvidence
    if not isinstance(evidence, several) or not isinstance(evidence.check.case, VectorCase):
        return []
    weights = part_weights(evidence.check.case, evidence.equalised.parts, *counts)
    total = [Fraction(0)] * len(evidence.columns)
    for weight, part in zip(weights, evidence.equalised.parts, strict=True):
        drawn = correlated_noise(part.factor, evidence.bits(), weight)
        total = [a + b for a, b in zip(total, drawn, strict=True)]
    return total
