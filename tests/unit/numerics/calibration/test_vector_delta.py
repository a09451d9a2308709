"""What several averages lose to a wrong covariance: every extreme table and every shift, compared with plain linear algebra."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.linalg import sqrtm

from attrpriv.numerics.calibration.groups import Equalised, equalise, equalising_covariance, vector_delta_upper
from attrpriv.numerics.divergences.gaussian import gaussian_delta
from attrpriv.numerics.laws.groups import VectorCase

EYE = ((1.0, 0.0), (0.0, 1.0))
# Two categories each; of the four shifts one is clearly the longest, and neither the first nor the last.
CASE = VectorCase(
    60,
    20,
    35,
    9,
    (((0.2, 0.1), EYE), ((1.5, -0.4), ((2.0, 0.5), (0.5, 1.0)))),
    (((0.0, 0.3), ((1.0, 0.2), (0.2, 3.0))), ((0.4, 0.2), EYE)),
    0.0,
)
INDEPENDENT = (0.11, 0.07)
FACTOR = ((0.05, 0.02), (-0.03, 0.09))


def twin(equalised: Equalised, epsilon: float) -> float:
    """The delta of the longest shift, and half of what the worst extreme table is off, on both sides."""
    total = np.array(equalised.target) + np.diag(INDEPENDENT) ** 2 + np.array(FACTOR) @ np.array(FACTOR).T
    whiten = np.linalg.inv(sqrtm(total))
    off = 0.0
    for a, i, j in itertools.product((20, 35), range(2), range(2)):
        members, rest = [a * (k == i) for k in range(2)], [(60 - a) * (k == j) for k in range(2)]
        own = CASE.own(members, rest) + equalising_covariance(CASE, equalised, members, rest)
        off = max(off, float(np.linalg.norm(whiten @ (own - np.array(equalised.target)) @ whiten)))
    shifts = [
        9 / 60 * (np.array(inside[0]) - np.array(outside[0])) for inside, outside in itertools.product(CASE.members, CASE.rest)
    ]
    apart = max(float(np.linalg.norm(whiten @ shift)) for shift in shifts)
    return gaussian_delta(epsilon, apart) + (1 + math.exp(epsilon)) * off / 2


@pytest.mark.parametrize("wrong", [0.0, 0.01, 0.1, -0.1])
@pytest.mark.parametrize("epsilon", [0.0, 0.7, 1.5])
def test_a_wrong_covariance_is_paid_for_on_both_sides(wrong: float, epsilon: float) -> None:
    right = equalise(CASE)
    equalised = Equalised(tuple(tuple(x * (1 + wrong) for x in row) for row in right.target), right.parts)
    found, truth = vector_delta_upper(CASE, equalised, INDEPENDENT, FACTOR, epsilon), twin(equalised, epsilon)
    assert truth * (1 - 1e-9) <= found <= truth * (1 + 1e-6) + 1e-12
    assert 0.01 < found < 1


@pytest.mark.parametrize("lacking", range(6))
def test_a_part_that_is_left_out_is_paid_for(lacking: int) -> None:
    """Each part is needed by some extreme table: the counts at either end, each category by itself."""
    right = equalise(CASE)
    fewer = Equalised(right.target, tuple(part for k, part in enumerate(right.parts) if k != lacking % len(right.parts)))
    found, truth = vector_delta_upper(CASE, fewer, INDEPENDENT, FACTOR, 0.2), twin(fewer, 0.2)
    assert found > vector_delta_upper(CASE, right, INDEPENDENT, FACTOR, 0.2) + 1e-3
    assert found == 1.0 or truth * (1 - 1e-9) <= found <= truth * (1 + 1e-6)


def test_more_than_half_is_off_or_nothing_is_left() -> None:
    right = equalise(CASE)
    wrong = Equalised(tuple(tuple(x * 1.9 for x in row) for row in right.target), right.parts)
    assert twin(wrong, 0.0) < 0.95
    assert vector_delta_upper(CASE, wrong, INDEPENDENT, FACTOR, 0.0) == 1.0
    far = Equalised(tuple(tuple(x * 3 for x in row) for row in right.target), right.parts)
    assert vector_delta_upper(CASE, far, (0.0, 0.0), (), 0.0) == 1.0
    near = Equalised(tuple(tuple(x * 1.2 for x in row) for row in right.target), right.parts)
    assert vector_delta_upper(CASE, near, (0.0, 0.0), (), 3.0) == 1.0
