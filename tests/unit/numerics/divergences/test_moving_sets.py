"""Set-valued secrets whose law is known up to a cell: no member shows more, by integration at members of the cell."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences.moving_sets import covered_upper, moving_upper
from attrpriv.numerics.laws import parse_cases
from attrpriv.numerics.laws.law_box import Cell

Union = list[tuple[float, float]]


def density(sets: Union, lam: float, xs: np.ndarray) -> np.ndarray:
    """Of lam g + N(0, 1), where a standard normal g is known to lie in a union of intervals."""
    total = sum(norm.cdf(high) - norm.cdf(low) for low, high in sets)
    width, scale = math.sqrt(1 + lam**2), lam / (1 + lam**2)
    inside = sum(norm.cdf((high - scale * xs) * width) - norm.cdf((low - scale * xs) * width) for low, high in sets)
    return np.asarray(norm.pdf(xs / width) / width * inside / total)


def divergence(a: Union, b: Union, lam: float, epsilon: float) -> float:
    xs = np.linspace(-12 * (1 + lam), 12 * (1 + lam), 40_001)
    return float(np.maximum(density(a, lam, xs) - math.exp(epsilon) * density(b, lam, xs), 0).sum() * (xs[1] - xs[0]))


INF = math.inf
SETS: dict[str, tuple[list[str], list[Union]]] = {
    "half-lines": (["< 50", ">= 50"], [[(-INF, 50.0)], [(50.0, INF)]]),
    "inside and outside": (["[49, 51)", "outside [49, 51)"], [[(49.0, 51.0)], [(-INF, 49.0), (51.0, INF)]]),
}


def standard(sets: Union, mean: float, sd: float) -> Union:
    return [((low - mean) / sd, (high - mean) / sd) for low, high in sets]


@pytest.mark.parametrize("lam", [0.3, 1.5])
@pytest.mark.parametrize("epsilon", [0.1, 0.8])
def test_half_lines_are_bounded_over_a_cell(lam: float, epsilon: float) -> None:
    texts, unions = SETS["half-lines"]
    cell = Cell((49.6, 50.3), (1.0, 1.2))
    upper, pair = moving_upper(parse_cases(texts), cell, lam, epsilon)
    worst = 0.0
    for mean, sd, share in itertools.product((49.6, 50.0, 50.3), (1.0, 1.2), (0.5, 1.0)):
        one, other = (standard(union, mean, sd) for union in unions)
        worst = max(worst, divergence(one, other, share * lam, epsilon), divergence(other, one, share * lam, epsilon))
    assert upper >= worst * (1 - 1e-6)
    # By the half-lines that are furthest apart: each at its own end of the thresholds' range.
    low, high = (50.0 - 50.3) / 1.0, (50.0 - 49.6) / 1.0
    ends: list[Union] = [[(-INF, low)], [(high, INF)]]
    bound = max(divergence(ends[0], ends[1], lam, epsilon), divergence(ends[1], ends[0], lam, epsilon))
    assert upper == pytest.approx(bound, rel=1e-4)
    assert pair in ((0, 1), (1, 0))


def test_at_a_point_nothing_is_lost() -> None:
    texts, unions = SETS["half-lines"]
    for mean, lam, epsilon in ((50.2, 0.5, 0.2), (49.0, 1.0, 0.5)):
        one, other = (standard(union, mean, 1.1) for union in unions)
        exact = max(divergence(one, other, lam, epsilon), divergence(other, one, lam, epsilon))
        assert moving_upper(parse_cases(texts), Cell((mean, mean), (1.1, 1.1)), lam, epsilon)[0] == pytest.approx(
            exact, rel=1e-4
        )


def test_a_target_stops_early_and_says_on_which_side() -> None:
    cases = parse_cases(SETS["half-lines"][0])
    cell = Cell((49.6, 50.3), (1.0, 1.2))
    whole = moving_upper(cases, cell, 0.8, 0.3)[0]
    assert moving_upper(cases, cell, 0.8, 0.3, target=whole * 1.01)[0] <= whole * 1.01
    assert moving_upper(cases, cell, 0.8, 0.3, target=whole * 0.99)[0] > whole * 0.99


def test_what_is_not_hidden_at_all() -> None:
    cases = parse_cases(SETS["half-lines"][0])
    cell = Cell((50.0, 50.0), (1.0, 1.0))
    ranges = [case.end_ranges(cell.means, cell.sds) for case in cases]
    assert covered_upper(ranges[0], ranges[1], math.inf, 1.0) == 1.0
    for wrong in (-0.1, math.nan):
        with pytest.raises(UsageError):
            moving_upper(cases, cell, 0.5, wrong)
