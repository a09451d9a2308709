"""Set-valued secrets whose law is known up to a cell: no member shows more, by integration at members of the cell."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences.moving_sets import _by_ratio, covered_upper, moving_upper
from attrpriv.numerics.laws import parse_cases
from attrpriv.numerics.laws.intervals import EndRange
from attrpriv.numerics.laws.law_box import Cell

Union = list[tuple[float, float]]


def density(sets: Union, lam: float, xs: np.ndarray) -> np.ndarray:
    """Of lam g + N(0, 1), where a standard normal g is known to lie in a union of intervals."""
    total = sum(norm.cdf(high) - norm.cdf(low) for low, high in sets)
    width, scale = math.sqrt(1 + lam**2), lam / (1 + lam**2)
    inside = sum(norm.cdf((high - scale * xs) * width) - norm.cdf((low - scale * xs) * width) for low, high in sets)
    return np.asarray(norm.pdf(xs / width) / width * inside / total)


def divergence(a: Union, b: Union, lam: float, epsilon: float) -> float:
    xs = np.linspace(-12 * (1 + lam), 12 * (1 + lam), 10_001)
    return float(np.maximum(density(a, lam, xs) - math.exp(epsilon) * density(b, lam, xs), 0).sum() * (xs[1] - xs[0]))


INF = math.inf
SETS: dict[str, tuple[list[str], list[Union]]] = {
    "half-lines": (["< 50", ">= 50"], [[(-INF, 50.0)], [(50.0, INF)]]),
    "inside and outside": (["[49, 51)", "< 49 or >= 51"], [[(49.0, 51.0)], [(-INF, 49.0), (51.0, INF)]]),
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


Ranges = list[EndRange]
# Two intervals each, between one another; how far the ends move decides which bound is the smaller one.
INNER, OUTER = [(-1.0, -0.2), (0.5, 1.5)], [(-2.5, -1.2), (1.8, 3.0)]
PART, REST = [(-0.4, 0.6)], [(-INF, -0.8), (1.0, INF)]


def moved(sets: Union, far: tuple[float, float, float, float]) -> Ranges:
    """Low ends move down and up by the first two of these, high ends by the others."""
    down, up, less, more = far
    return [EndRange((low - down, low + up), (high - less, high + more)) for low, high in sets]


def by_ratio(a: Ranges, b: Ranges, lam: float, epsilon: float) -> float:
    """r_a H(a+ || b-) at epsilon - log r_a - log r_b, by integration."""

    def ends(parts: Ranges, low: int, high: int) -> Union:
        return [(part.low[low], part.high[high]) for part in parts]

    def gains(parts: Ranges) -> float:
        wide, narrow = (sum(norm.cdf(h) - norm.cdf(g) for g, h in ends(parts, *which)) for which in ((0, 1), (1, 0)))
        return float(wide / narrow)

    inner = epsilon - math.log(gains(a)) - math.log(gains(b))
    return 1.0 if inner < 0 else min(1.0, gains(a) * divergence(ends(a, 0, 1), ends(b, 1, 0), lam, inner))


def by_intervals(a: Ranges, b: Ranges, lam: float, epsilon: float) -> float:
    """The worst of two intervals, the lower one with both ends lowest, the upper one with both highest."""
    worst = 0.0
    for part, other in itertools.product(a, b):
        places = (0, 1) if part.low[0] < other.low[0] else (1, 0)
        one, two = ([(moving.low[k], moving.high[k])] for moving, k in zip((part, other), places, strict=True))
        worst = max(worst, divergence(one, two, lam, epsilon))
    return worst


@pytest.mark.parametrize(
    ("far", "lam", "epsilon"),
    [((0.0, 0.0, 0.0, 0.0), 0.3, 0.6), ((0.01, 0.02, 0.015, 0.005), 0.9, 1.5), ((0.08, 0.05, 0.1, 0.06), 0.3, 0.6)],
)
@pytest.mark.parametrize(("a", "b"), [(INNER, OUTER), (OUTER, INNER), (PART, REST), (REST, PART), (PART, OUTER), (INNER, REST)])
def test_the_smaller_of_both_bounds_counts(
    a: Union, b: Union, lam: float, epsilon: float, far: tuple[float, float, float, float]
) -> None:
    """Each by integration; the two sets move by different lengths."""
    one, other = moved(a, far), moved(b, (far[2], far[0], far[1], far[3]))
    ratio, intervals = by_ratio(one, other, lam, epsilon), by_intervals(one, other, lam, epsilon)
    assert _by_ratio(one, other, lam, epsilon) == pytest.approx(ratio, rel=2e-3, abs=1e-7)
    found = covered_upper(one, other, lam, epsilon)
    assert found == pytest.approx(min(ratio, intervals), rel=2e-3, abs=1e-7)
    members = [[(part.low[0], part.high[1]) for part in one], [(part.low[1], part.high[0]) for part in other]]
    assert divergence(members[0], members[1], lam, epsilon) <= found * (1 + 1e-3) + 1e-9
    # With a target no more is computed than shows the side.
    assert covered_upper(one, other, lam, epsilon, 1.0) == pytest.approx(ratio, rel=2e-3, abs=1e-7)
    assert covered_upper(one, other, lam, epsilon, 0.0) == pytest.approx(found, rel=1e-9)


@pytest.mark.parametrize("which", [0, 1])
def test_no_ratio_without_a_set_that_all_share(which: int) -> None:
    """Either of the sets may be anywhere, or nowhere for certain: then only the other bound holds."""
    still = [EndRange((0.0, 0.0), (1.0, 1.0)), EndRange((2.0, 2.0), (3.0, 3.0))]
    anywhere = [EndRange((-INF, -INF), (1.5, 3.5)), EndRange((3.2, 3.8), (INF, INF))]
    nowhere = [EndRange((-2.0, -1.0), (-1.5, -0.5)), EndRange((-5.0, -4.0), (-4.5, -3.5))]
    for loose in (anywhere, nowhere):
        pair = [loose, still] if which == 0 else [still, loose]
        assert _by_ratio(pair[0], pair[1], 0.5, 3.0) == 1.0
        if loose is nowhere:
            wanted = by_intervals(pair[0], pair[1], 0.5, 3.0)
            assert covered_upper(pair[0], pair[1], 0.5, 3.0) == pytest.approx(wanted, rel=2e-3)
    # Ratios that use up all of epsilon leave nothing to be shown.
    wide = moved(INNER, (0.3, 0.1, 0.2, 0.3))
    assert _by_ratio(wide, still, 0.1, 0.5) == _by_ratio(still, wide, 0.1, 0.5) == 1.0


@pytest.mark.parametrize("name", SETS)
def test_epsilon_may_be_nothing_and_the_pair_is_the_worst(name: str) -> None:
    """At a point: the largest divergence of two cases, and the order in which it is reached."""
    texts, unions = SETS[name]
    for epsilon in (0.0, 0.7):
        upper, (i, j) = moving_upper(parse_cases(texts), Cell((50.3, 50.3), (1.1, 1.1)), 0.6, epsilon)
        sets = [standard(union, 50.3, 1.1) for union in unions]
        told = {(k, 1 - k): divergence(sets[k], sets[1 - k], 0.6, epsilon) for k in (0, 1)}
        assert upper >= max(told.values()) * (1 - 1e-6)
        if epsilon or name == "half-lines":  # ratios of probabilities, 1 but for rounding, leave nothing of an epsilon of 0
            assert upper == pytest.approx(max(told.values()), rel=1e-3)
            assert told[i, j] == pytest.approx(upper, rel=1e-3)
