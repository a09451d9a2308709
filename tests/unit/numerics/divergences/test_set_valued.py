"""Set-valued secrets: the exact mixture law, in both directions, at the mean and far out."""

from __future__ import annotations

import math

import numpy as np
import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences.gaussian import gaussian_delta_upper
from attrpriv.numerics.divergences.mixture import anchor_of, log_probability_ratio, log_tilted, set_law
from attrpriv.numerics.divergences.moving_sets import covered_upper, moving_upper
from attrpriv.numerics.divergences.set_valued import (
    _highest,
    _largest_density,
    _Pair,
    _Panels,
    lam_of,
    mixture_hockey_stick,
    pointwise_hockey_stick,
    set_valued_hockey_stick,
)
from attrpriv.numerics.laws.intervals import EndRange, IntervalUnion, parse_case, parse_cases
from attrpriv.numerics.laws.law_box import Cell
from tests.property.set_twin import Parts, brute, densities, exact

BAD = [math.nan, math.inf, -math.inf]


def parts(union: IntervalUnion) -> Parts:
    return [(part.low, part.high) for part in union.parts]


@pytest.mark.parametrize(
    ("a", "b", "lam", "epsilon"),
    [
        ("< 0", ">= 0", 0.166158, 1.0),
        (">= 1", "< 1", 0.2, 1.0),
        ("< -3", ">= -3", 0.1, 0.5),
        (">= 25", "< 25", 0.0107, 1.0),
        ("< 25", ">= 25", 0.0107, 1.0),
        ("< -40", ">= -40", 0.01, 2.0),
        ("[-1, 0)", "[0, 1]", 0.4, 1.0),
        ("abs >= 1", "abs < 1", 0.5, 1.0),
        ("abs < 1", "abs >= 1", 3.0, 1.0),
        ("[3, 4) or [-4, -3)", "abs < 3", 0.3, 0.2),
        ("[0, 1) or [2, 3)", "[1, 2) or [3, 4)", 2.0, 0.1),
        ("[1, 2) or [3, 4)", "[0, 1) or [2, 3)", 5.0, 0.0),
        ("[30, 30.001)", "[30.001, 31)", 0.5, 0.0),
        ("[20, 21) or < -20.5", "abs < 20", 0.02, 1.0),
    ],
)
def test_agrees_with_many_digits(a: str, b: str, lam: float, epsilon: float) -> None:
    first, second = parse_case(a), parse_case(b)
    found = mixture_hockey_stick(first, second, lam, epsilon)
    truth = exact(parts(first), parts(second), lam, epsilon)
    assert found.value == pytest.approx(float(truth), rel=1e-9)
    assert truth <= found.upper <= float(truth) * (1 + 1e-8) + 1e-28


@pytest.mark.parametrize(("a", "b"), [("< 0", ">= 0"), ("abs >= 1", "abs < 1"), ("[0, 1) or >= 2", "< 0 or [1, 2)")])
@pytest.mark.parametrize("lam", [0.3, 1.0, 4.0])
def test_agrees_with_brute_force(a: str, b: str, lam: float) -> None:
    """The brute-force twin integrates over g, where the fast code has a closed form."""
    for first, second in ((parse_case(a), parse_case(b)), (parse_case(b), parse_case(a))):
        found = mixture_hockey_stick(first, second, lam, 0.4)
        assert found.value == pytest.approx(brute(parts(first), parts(second), lam, 0.4), rel=1e-4, abs=1e-12)


def test_equal_means_are_not_equal_laws() -> None:
    """|g| < 1 against |g| >= 1 at rho = .9 without noise. The mutant that compares means finds nothing to hide."""
    inside, outside = parse_cases(["abs < 1", "abs >= 1"])
    assert set_valued_hockey_stick(outside, inside, 0.9, 0.0, 1.0).upper == pytest.approx(0.428261, abs=1e-6)
    lam = lam_of(0.9, 0.0)
    w = np.linspace(-30, 30, 20_001)
    means = [float((w * densities(parts(case), lam, w)).sum() * (w[1] - w[0])) for case in (inside, outside)]
    assert gaussian_delta_upper(1.0, abs(means[0] - means[1])) < 1e-12


def test_the_two_directions_differ() -> None:
    low, high = parse_cases(["< 1", ">= 1"])
    there, back = (mixture_hockey_stick(x, y, 0.14, 1.0).upper for x, y in ((low, high), (high, low)))
    assert there > 2 * back > 0


@pytest.mark.parametrize("c", [25.0, 250.0, 1e4, 1e6])
def test_far_thresholds_in_log_space(c: float) -> None:
    """P(g >= 25) is 3e-138, P(g >= 1e6) below every float. There g >= c sits within 1/c of c, so H is known another way."""
    below, above = parse_cases([f"< {c}", f">= {c}"])
    lam = 0.268 / c
    for first, second in ((below, above), (above, below)):
        found = mixture_hockey_stick(first, second, lam, 1.0)
        # N(0, 1 + lam^2) against N(lam (c + 1/c), 1 + O(lam^2/c^2)).
        assert found.upper == pytest.approx(gaussian_delta_upper(1.0, lam * (c + 1 / c)), rel=0.2 / (c / 25))
        assert found.value <= found.upper <= found.value * (1 + 1e-6)


def test_beyond_the_resolution_of_floats_everything_is_told_apart() -> None:
    """A warning is an error here: no overflow on the way to the answer 1."""
    below, above = parse_cases(["< 1e15", ">= 1e15"])
    assert mixture_hockey_stick(below, above, 1.0, 1.0).upper == 1.0
    assert mixture_hockey_stick(above, below, 0.268e-15, 1.0).upper == pytest.approx(1e-5, rel=0.01)


def test_sets_of_tiny_width_do_not_cancel() -> None:
    """[0, 1e-9) against [1e-9, 2e-9): nearly point masses, nearly the same."""
    a, b = parse_cases(["[1, 1.000000001)", "[1.000000001, 1.000000002)"])
    found = mixture_hockey_stick(a, b, 1.0, 0.0)
    assert found.value == pytest.approx(1e-9 / math.sqrt(2 * math.pi), rel=1e-4)
    assert found.upper < 1.05 * found.value


def test_mirror_image() -> None:
    a, b = parse_case("[-2, 1) or >= 3"), parse_case("[1, 2)")
    c, d = (IntervalUnion(tuple(type(p)(-p.high, -p.low) for p in union.parts)) for union in (a, b))
    assert mixture_hockey_stick(c, d, 0.7, 0.5).value == pytest.approx(mixture_hockey_stick(a, b, 0.7, 0.5).value, rel=1e-10)


def test_the_sign_of_rho_does_not_matter_and_a_threshold_s_does() -> None:
    a, b = parse_cases(["< 1", ">= 1"])
    assert set_valued_hockey_stick(a, b, -0.5, 3.0, 1.0) == set_valued_hockey_stick(a, b, 0.5, 3.0, 1.0)
    c, d = parse_cases(["< -1", ">= -1"])
    assert mixture_hockey_stick(c, d, 0.14, 1.0).upper != pytest.approx(mixture_hockey_stick(a, b, 0.14, 1.0).upper, rel=0.5)


@pytest.mark.parametrize(("a", "b"), [("[-1, 0)", "[0, 1]"), ("[0, 1) or [2, 3)", "[1, 2)"), ("abs < 2", "[2, 5)")])
@pytest.mark.parametrize("lam", [0.05, 0.5, 2.0])
def test_the_mixture_is_never_worse_than_its_points(a: str, b: str, lam: float) -> None:
    first, second = parse_case(a), parse_case(b)
    assert mixture_hockey_stick(first, second, lam, 0.5).value <= pointwise_hockey_stick(first.gap(second), lam, 0.5)


def test_pointwise_rule() -> None:
    assert pointwise_hockey_stick(2.0, 0.5, 1.0) == pytest.approx(gaussian_delta_upper(1.0, 1.0))
    assert pointwise_hockey_stick(math.inf, 0.5, 1.0) == 1.0
    assert pointwise_hockey_stick(math.inf, 0.0, 1.0) == 0.0


def test_nothing_is_shown_at_lam_zero_and_everything_at_infinity() -> None:
    a, b = parse_cases(["abs < 1", "abs >= 1"])
    assert mixture_hockey_stick(a, b, 0.0, 0.0).upper < 1e-11
    assert set_valued_hockey_stick(a, b, 1.0, 0.0, 1.0).upper == 1.0
    assert set_valued_hockey_stick(a, b, 0.0, 0.0, 1.0).upper < 1e-11


def test_above_the_largest_lam_the_bound_still_holds() -> None:
    a, b = parse_cases(["[0, 0.0001)", "[0.0001, 0.0002)"])
    below, above = (mixture_hockey_stick(a, b, lam, 0.5).upper for lam in (999.0, 1001.0))
    assert below < above < 0.01
    assert mixture_hockey_stick(parse_case("< 0"), parse_case("> 0"), 1001.0, 0.5).upper == 1.0


@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.5])
def test_overlapping_sets_and_equal_sets(epsilon: float) -> None:
    """Outside the policy's syntax, but the bound must not depend on the sets being disjoint."""
    a, b = parse_case("[0, 2)"), parse_case("[1, 3)")
    found = mixture_hockey_stick(a, b, 0.8, epsilon)
    assert found.value == pytest.approx(brute(parts(a), parts(b), 0.8, epsilon), rel=1e-5)
    assert 0 <= mixture_hockey_stick(a, a, 0.8, epsilon).upper < 1e-5


def test_negative_epsilon_is_the_integral_of_the_positive_part() -> None:
    a, b = parse_cases(["[0, 1)", "[1, 2)"])
    assert mixture_hockey_stick(a, b, 0.7, -0.3).value == pytest.approx(brute(parts(a), parts(b), 0.7, -0.3), rel=1e-6)


def test_crossings_are_counted() -> None:
    found = mixture_hockey_stick(parse_case("[0, 1) or [2, 3)"), parse_case("[1, 2) or [3, 4)"), 12.0, 0.0)
    assert found.counted
    assert len(found.crossings) == 3
    assert found.crossings == pytest.approx([12.0, 24.0, 36.0], abs=1.0)


def test_an_unseen_pair_of_crossings_is_bounded_or_found() -> None:
    """A sliver of the first set inside the second: crossings closer than a first grid would show, or none at all."""
    a, b = parse_case("< -6 or [0, 0.2) or >= 6"), parse_case("[-6, 0) or [0.2, 6)")
    for lam in (0.5, 1.0, 2.0, 4.0):
        for epsilon in (0.05, 0.6, 1.2, 1.4):
            found = mixture_hockey_stick(a, b, lam, epsilon)
            truth = brute(parts(a), parts(b), lam, epsilon)
            assert found.value == pytest.approx(truth, rel=1e-3, abs=1e-12)
            assert found.upper >= truth * (1 - 1e-4)
            assert found.upper <= found.value * (1 + 1e-6) + 1e-15


def test_the_integral_and_its_error() -> None:
    """log of the integral of exp(beta x - x^2/2): mode inside, below, above; narrow and infinite."""
    import mpmath

    for beta, low, high in [
        (0.3, -1, 2),
        (-5, 0, 1e-8),
        (40, 0, 3),
        (-40, -1, 50),
        (1e5, -2, 0),
        (-3, 0, math.inf),
        (7, -math.inf, 0),
    ]:
        value, error = log_tilted(np.array([float(beta)]), low, high)
        with mpmath.workdps(40):
            mode, root = mpmath.mpf(beta), mpmath.sqrt(2)
            ends = (mpmath.mpf(low) - mode) / root, (mpmath.mpf(high) - mode) / root
            if low <= beta <= high:
                mass = mpmath.erf(ends[1]) - mpmath.erf(ends[0])
            else:
                near, far = sorted(map(abs, ends))
                mass = mpmath.erfc(near) - mpmath.erfc(far)
            truth = mode**2 / 2 + mpmath.log(mass * mpmath.sqrt(mpmath.pi / 2))
        assert abs(float(value[0] - truth)) <= 8 * float(error[0])


def test_probability_ratio_is_rounded_up() -> None:
    wide, narrow = parse_case("[30, 40)"), parse_case("[30.001, 40)")
    ratio = log_probability_ratio(wide, narrow)
    assert 0.0300 < ratio < 0.0301
    assert log_probability_ratio(wide, wide) >= 0


def test_the_range_of_a_law_holds_its_mass() -> None:
    union = parse_case("< -3 or [10, 11)")
    law = set_law(union, 2.0, anchor_of(union.parts[0]))
    spans = law.ranges()
    w = np.linspace(-60, 60, 6_001)
    inside = np.any([(w + 6 >= low) & (w + 6 <= high) for low, high in spans], axis=0)
    density = densities(parts(union), 2.0, w)
    assert density[~inside].sum() * (w[1] - w[0]) < 1e-25


def test_a_part_that_is_hardly_there_changes_nothing() -> None:
    """Of two parts, one 40 standard deviations out: e^-800 of the other, which no float can be multiplied by."""
    near, both = parse_case("[0, 1)"), parse_case("[0, 1) or [40, 41)")
    y = np.linspace(-4, 4, 9)
    assert set_law(both, 0.7, 0.0).log_density(y)[0] == pytest.approx(set_law(near, 0.7, 0.0).log_density(y)[0], rel=1e-12)
    assert 0 <= log_probability_ratio(both, near) < 1e-12
    out = parse_case("[-41, -40) or [40, 41)")
    assert log_probability_ratio(out, parse_case("[40, 41)")) == pytest.approx(math.log(2), rel=1e-9)
    assert log_probability_ratio(both, parse_case("[40, 41)")) == pytest.approx(803.2, abs=1.0)


@pytest.mark.parametrize("lam", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("width", [0.05, 0.4, 1.0])
def test_nothing_is_hidden_within_a_panel(lam: float, width: float) -> None:
    """The excess of the wrong sign, at many points of many panels, is never above its bound by convexity; nor far below it."""
    sets = parse_case("< -6 or [0, 0.2) or >= 6"), parse_case("[-6, 0) or [0.2, 6)")
    left = np.arange(-9, 9, width)
    inside = left[:, None] + width * np.linspace(0, 1, 41)
    for a, b in (sets, sets[::-1], (parse_case("[0, 1)"), parse_case("[1, 2)"))):
        for epsilon in (0.0, 0.3, 1.2):
            pair = _Pair(set_law(a, lam, 0.0), set_law(b, lam, 0.0), epsilon)
            for positive in (False, True):
                panels = _Panels(left, left + width, np.full(len(left), positive))
                highest, rounding = _highest(pair, panels)
                excess = pair.excess(inside)[0] * (-1 if positive else 1)
                assert (excess.max(axis=1) <= highest + rounding).all()
                # F is a convex function minus another, both of them smooth: for a narrow panel the bound is near.
                assert (highest - excess.max(axis=1)).max() <= 4 * (1 + lam**2) ** 2 * width**2


@pytest.mark.parametrize("width", [0.1, 1.0, 4.0])
def test_no_density_is_larger_within_a_panel(width: float) -> None:
    """Without lam the law is normal, and on a panel around 0 the bound is the density there; no tilt makes it too small."""
    left = np.arange(-8, 8, width / 4)
    inside = left[:, None] + width * np.linspace(0, 1, 81)
    for lam in (0.0, 0.3, 2.0):
        for union in ("[0, 1)", "< -6 or [0, 0.2) or >= 6"):
            law = set_law(parse_case(union), lam, 0.0)
            densest = np.exp(law.log_density(inside)[0]).max(axis=1)
            assert (_largest_density(law, left, left + width) >= densest * (1 - 1e-12)).all()
    normal = set_law(parse_case("[0, 1)"), 0.0, 0.0)
    around = _largest_density(normal, np.array([-width / 2]), np.array([width / 2]))
    assert around[0] == pytest.approx(1 / math.sqrt(2 * math.pi), rel=1e-9)


def test_a_search_with_a_target_goes_on_at_the_target_itself() -> None:
    """The first pair is just as bad as is allowed, a later one worse: that must be seen."""
    cell = Cell((0.0, 0.0), (1.0, 1.0))
    for texts in (["< 1", ">= 1"], [">= 1", "< 1"], ["< -1", "[-1, 1)", ">= 1"], ["[-1, 1)", ">= 1", "< -1"]):
        cases = parse_cases(texts)
        ranges = [case.end_ranges(cell.means, cell.sds) for case in cases]
        each = [covered_upper(a, b, 0.3, 1.0) for a in ranges for b in ranges if a is not b]
        full, _ = moving_upper(cases, cell, 0.3, 1.0)
        assert full == max(each)
        for target in each:
            assert (moving_upper(cases, cell, 0.3, 1.0, target)[0] <= target) is (full <= target)


def test_a_cell_s_bound_holds_inside_it() -> None:
    cases = parse_cases(["abs < 1", "abs >= 1"])
    cell = Cell((-0.02, 0.02), (0.99, 1.01))
    bound, pair = moving_upper(cases, cell, 0.4, 1.0)
    members = [(m, s) for m in (-0.02, 0.0, 0.02) for s in (0.99, 1.0, 1.01)]
    worst = 0.0
    for mean, sd in members:
        sets = [case.standardised(mean, sd) for case in cases]
        worst = max(worst, *(mixture_hockey_stick(x, y, 0.4, 1.0).value for x, y in (sets, sets[::-1])))
    assert pair == (1, 0)
    assert worst <= bound <= 2 * worst


def test_a_cell_s_bound_tends_to_the_truth() -> None:
    cases = parse_cases(["abs < 1", "abs >= 1"])
    truth = mixture_hockey_stick(cases[1], cases[0], 0.4, 1.0).value
    assert moving_upper(cases, Cell((0.0, 1e-9), (1.0, 1.0)), 0.4, 1.0)[0] == pytest.approx(truth, rel=1e-6)


def test_with_a_target_no_more_is_computed_than_decides() -> None:
    cases = parse_cases(["< -1", "[-1, 1)", ">= 1"])
    cell = Cell((-0.5, 0.5), (1.0, 1.0))
    full, _ = moving_upper(cases, cell, 0.3, 1.0)
    for target in (full * 2, full / 2):
        assert (moving_upper(cases, cell, 0.3, 1.0, target)[0] <= target) == (full <= target)


def test_a_set_without_a_common_part_is_bounded_by_its_intervals() -> None:
    first = [EndRange((0.0, 1.0), (0.5, 1.5)), EndRange((5.0, 6.0), (5.5, 6.5))]
    second = [EndRange((2.0, 3.0), (4.0, 5.0))]
    assert 0 < covered_upper(first, second, 0.3, 0.5) < 1
    assert covered_upper(first, second, math.inf, 0.5) == 1.0


@pytest.mark.parametrize(
    ("a", "b"), [("[-3.5, -2.5) or [2.5, 3.5)", "[1.5, 2.5)"), ("[1.5, 2.5)", "[-3.5, -2.5) or [2.5, 3.5)")]
)
def test_the_bound_by_ratio_is_the_integral_of_what_dominates(a: str, b: str) -> None:
    """r_a f_a+ is above, f_b-/r_b below the density of every member; the bound is the positive part of their difference."""
    first, second = (parse_case(text).end_ranges((-0.05, 0.05), (1.0, 1.0)) for text in (a, b))
    w = np.linspace(-15, 15, 6001)

    def masses(ranges: tuple[EndRange, ...]) -> tuple[Parts, Parts, float]:
        wide = [(moved.low[0], moved.high[1]) for moved in ranges]
        narrow = [(moved.low[1], moved.high[0]) for moved in ranges]
        chance = [sum(math.erf(y / math.sqrt(2)) - math.erf(x / math.sqrt(2)) for x, y in part) for part in (wide, narrow)]
        return wide, narrow, chance[0] / chance[1]

    (a_wide, _, r_a), (_, b_narrow, r_b) = masses(first), masses(second)
    above, below = r_a * densities(a_wide, 1.0, w), densities(b_narrow, 1.0, w) / r_b
    for shift in (-0.05, 0.0, 0.03, 0.05):
        assert (densities(parts(parse_case(a).standardised(shift, 1.0)), 1.0, w) <= above * (1 + 1e-9)).all()
        assert (densities(parts(parse_case(b).standardised(shift, 1.0)), 1.0, w) >= below * (1 - 1e-9)).all()
    integral = float(np.maximum(0.0, above - math.e * below).sum() * (w[1] - w[0]))
    assert covered_upper(first, second, 1.0, 1.0) == pytest.approx(integral, rel=1e-4)


def test_weights_that_shift_between_parts_need_the_factor() -> None:
    """With the mean a little off, one of two far parts holds most of the set: more than at any fixed weights."""
    a, b = parse_case("[-3.5, -2.5) or [2.5, 3.5)"), parse_case("[1.5, 2.5)")
    bound = covered_upper(a.end_ranges((-0.05, 0.05), (1.0, 1.0)), b.end_ranges((-0.05, 0.05), (1.0, 1.0)), 1.0, 2.0)
    member = mixture_hockey_stick(a.standardised(-0.05, 1.0), b.standardised(-0.05, 1.0), 1.0, 2.0).value
    stated = mixture_hockey_stick(a, b, 1.0, 2.0).value
    assert stated * 1.05 < member <= bound < 0.7


def test_a_set_that_may_be_anywhere_is_bounded_by_its_intervals() -> None:
    """|g| >= 0.01 with a mean known to 0.1: taken together its positions leave nothing out."""
    bound, _ = moving_upper(parse_cases(["abs < 0.01", "abs >= 0.01"]), Cell((-0.1, 0.1), (1.0, 1.0)), 0.1, 1.0)
    assert 0 < bound < 1e-3


@pytest.mark.parametrize("bad", BAD)
def test_bad_numbers_are_refused(bad: float) -> None:
    a, b = parse_cases(["< 0", ">= 0"])
    with pytest.raises(UsageError, match="epsilon: must be"):
        mixture_hockey_stick(a, b, 0.5, bad)
    with pytest.raises(UsageError, match="rho: must be between -1 and 1"):
        set_valued_hockey_stick(a, b, bad, 1.0, 1.0)
    with pytest.raises(UsageError, match="variance: must be finite and at least 0"):
        set_valued_hockey_stick(a, b, 0.5, bad, 1.0)
    with pytest.raises(UsageError, match="lam: must be finite"):
        set_law(a, bad, 0.0)
    if bad != math.inf:
        with pytest.raises(UsageError, match="lam: must be at least 0"):
            mixture_hockey_stick(a, b, bad, 1.0)
        with pytest.raises(UsageError, match="gap and lam: must be"):
            pointwise_hockey_stick(bad, 1.0, 1.0)
        with pytest.raises(UsageError, match="epsilon: must be at least 0"):
            moving_upper((a, b), Cell((0.0, 0.0), (1.0, 1.0)), 0.5, bad)


@pytest.mark.parametrize("rho", [1.0001, -2.0])
def test_a_correlation_beyond_one_is_refused(rho: float) -> None:
    with pytest.raises(UsageError, match="rho: must be between -1 and 1"):
        lam_of(rho, 1.0)
