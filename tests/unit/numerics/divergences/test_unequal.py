"""Two Gaussians of different variance: never below the truth, and close to it."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences.gaussian import gaussian_delta, hockey_stick, unequal_delta, unequal_delta_upper
from attrpriv.numerics.laws.gaussian import GaussianLaw


def log_uniform(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(math.log(low), math.log(high)).map(math.exp)


def truth(a: GaussianLaw, b: GaussianLaw, epsilon: float, digits: int = 60) -> mpmath.mpf:
    """H by the textbook roots of the quadratic, in many digits."""
    with mpmath.workdps(digits + int(epsilon)):
        s1, s2 = mpmath.sqrt(mpmath.mpf(a.variance)), mpmath.sqrt(mpmath.mpf(b.variance))
        d, r, eps = abs(mpmath.mpf(a.mean) - mpmath.mpf(b.mean)) / s2, s1 / s2, mpmath.mpf(epsilon)
        square = r * r - 1
        disc = d * d + 2 * square * (eps + mpmath.log(r))
        if disc <= 0:
            return mpmath.mpf(0)
        low, high = sorted(((-d * r - mpmath.sqrt(disc)) / square, (-d * r + mpmath.sqrt(disc)) / square))
        inside = _mass(low, high) - mpmath.exp(eps) * _mass(d + r * low, d + r * high)
        if square < 0:
            return inside
        both = _below(low) + _below(-high)
        return both - mpmath.exp(eps) * (_below(d + r * low) + _below(-(d + r * high)))


def _below(z: mpmath.mpf) -> mpmath.mpf:
    return mpmath.erfc(-z / mpmath.sqrt(2)) / 2


def _mass(low: mpmath.mpf, high: mpmath.mpf) -> mpmath.mpf:
    return _below(-low) - _below(-high) if low > 0 else _below(high) - _below(low)


def by_quadrature(a: GaussianLaw, b: GaussianLaw, epsilon: float) -> float:
    """The positive part of p - e^eps q, added up on a fine grid."""
    spread = math.sqrt(a.variance)
    x = np.linspace(a.mean - 12 * spread, a.mean + 12 * spread, 400_001)
    densities = [np.exp(-((x - law.mean) ** 2) / (2 * law.variance)) / math.sqrt(2 * math.pi * law.variance) for law in (a, b)]
    return float(np.maximum(0.0, densities[0] - math.exp(epsilon) * densities[1]).sum() * (x[1] - x[0]))


def test_the_variance_alone_tells() -> None:
    """N(0, 4) against N(0, 1), no shift: a difference of means would see nothing."""
    wide, narrow = GaussianLaw(0.0, 4.0), GaussianLaw(0.0, 1.0)
    assert unequal_delta(wide, narrow, 1.0) == pytest.approx(0.196711, abs=5e-7)
    assert hockey_stick(wide, narrow, 1.0) == pytest.approx(0.196711, abs=5e-7)
    assert float(truth(wide, narrow, 1.0)) == pytest.approx(0.196711, abs=5e-7)


def test_the_two_directions_differ() -> None:
    """One direction only would certify what is not private: narrow over wide shows nothing at epsilon 1."""
    wide, narrow = GaussianLaw(0.0, 4.0), GaussianLaw(0.0, 1.0)
    assert hockey_stick(narrow, wide, 1.0) == 0.0
    assert hockey_stick(narrow, wide, 0.5) == pytest.approx(by_quadrature(narrow, wide, 0.5), rel=1e-6)
    assert hockey_stick(wide, narrow, 1.0) > 0.19


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 4.0])
@pytest.mark.parametrize(
    ("a", "b"), [((0, 4), (1, 1)), ((0, 1), (1, 4)), ((2, 1.1), (0, 1)), ((2, 1), (0, 1.1)), ((-3, 9), (3, 8))]
)
def test_value_agrees_with_quadrature(a: tuple[float, float], b: tuple[float, float], epsilon: float) -> None:
    first, second = GaussianLaw(*a), GaussianLaw(*b)
    assert unequal_delta(first, second, epsilon) == pytest.approx(by_quadrature(first, second, epsilon), rel=1e-6, abs=1e-12)


@given(
    variance=log_uniform(1e-6, 1e6),
    ratio=st.one_of(log_uniform(1e-8, 1e8), st.floats(-1e-2, 1e-2).map(math.exp), st.floats(-1e-14, 1e-14).map(math.exp)),
    shift=st.one_of(st.just(0.0), log_uniform(1e-12, 60)),
    by_first=st.booleans(),
    mean=st.sampled_from([0.0, 3.7, -1e3]),
    epsilon=st.one_of(st.just(0.0), log_uniform(1e-10, 60)),
)
@settings(max_examples=400)
@example(variance=1.0, ratio=1 + 2**-52, shift=0.0, by_first=True, mean=0.0, epsilon=1.0)
@example(variance=1.0, ratio=1 - 2**-53, shift=1.0, by_first=True, mean=0.0, epsilon=0.0)
@example(variance=1.0, ratio=1 - 2**-53, shift=1e-9, by_first=True, mean=0.0, epsilon=0.0)
def test_upper_is_never_below_the_truth(
    variance: float, ratio: float, shift: float, by_first: bool, mean: float, epsilon: float
) -> None:
    other = variance * ratio
    assume(other != variance)
    unit = math.sqrt(variance if by_first else other)
    a, b = GaussianLaw(mean + shift * unit, variance), GaussianLaw(mean, other)
    assert mpmath.mpf(unequal_delta_upper(a, b, epsilon)) >= truth(a, b, epsilon)


@given(ratio=st.floats(0.05, 0.999), shift=st.floats(0, 3), off=st.one_of(st.floats(-1e-2, 1e-2), st.floats(-1e-13, 1e-13)))
@settings(max_examples=200)
def test_upper_where_the_set_vanishes(ratio: float, shift: float, off: float) -> None:
    """r < 1 and epsilon near the largest loss: the set is a sliver, and its edges are ill-conditioned."""
    a, b = GaussianLaw(shift, ratio), GaussianLaw(0.0, 1.0)
    epsilon = (shift**2 / (2 * (1 - ratio)) - math.log(ratio) / 2) * (1 + off)
    assume(0 <= epsilon < 100)
    assert mpmath.mpf(unequal_delta_upper(a, b, epsilon)) >= truth(a, b, epsilon)


@given(ratio=log_uniform(0.01, 100), shift=st.floats(0, 10), epsilon=st.floats(0, 20))
def test_upper_is_close_to_the_truth(ratio: float, shift: float, epsilon: float) -> None:
    assume(abs(ratio - 1) > 1e-6)
    a, b = GaussianLaw(shift, ratio), GaussianLaw(0.0, 1.0)
    size = float(_below(mpmath.mpf(8)))
    assert unequal_delta_upper(a, b, epsilon) - float(truth(a, b, epsilon)) <= 1e-8 * size


@given(shift=st.floats(0.1, 5), epsilon=st.floats(0, 5), off=st.sampled_from([1e-15, -1e-15, 1e-12, -1e-10]))
def test_tends_to_the_equal_case(shift: float, epsilon: float, off: float) -> None:
    a, b = GaussianLaw(shift, 1 + off), GaussianLaw(0.0, 1.0)
    assert unequal_delta(a, b, epsilon) == pytest.approx(gaussian_delta(epsilon, shift), rel=1e-6, abs=1e-13)


@given(ratio=log_uniform(0.1, 10), shift=st.floats(0, 8), more=st.floats(1e-3, 2), epsilon=st.floats(0, 8))
def test_more_distance_shows_more(ratio: float, shift: float, more: float, epsilon: float) -> None:
    assume(ratio != 1)
    nearer = unequal_delta(GaussianLaw(shift, ratio), GaussianLaw(0.0, 1.0), epsilon)
    assert unequal_delta_upper(GaussianLaw(-shift - more, ratio), GaussianLaw(0.0, 1.0), epsilon) >= nearer * (1 - 1e-12)


def test_not_monotone_in_a_variance() -> None:
    """Why all three corners of a variance range are needed: H falls and rises again as one variance grows."""
    values = [unequal_delta(GaussianLaw(1.0, v), GaussianLaw(0.0, 1.0), 0.5) for v in (0.25, 1.0001, 4.0)]
    assert values[0] > values[1] < values[2]


@pytest.mark.parametrize(("a", "b"), [((1e200, 1.0), (0.0, 2.0)), ((0.0, 1e300), (0.0, 1e-300)), ((0.0, 1e-300), (0.0, 1.0))])
def test_out_of_reach_is_told_apart(a: tuple[float, float], b: tuple[float, float]) -> None:
    assert unequal_delta_upper(GaussianLaw(*a), GaussianLaw(*b), 1.0) == 1.0


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0])
def test_bad_input_is_refused(bad: float) -> None:
    with pytest.raises(UsageError, match="epsilon: must be finite and at least 0"):
        hockey_stick(GaussianLaw(0.0, 1.0), GaussianLaw(0.0, 2.0), bad)
    with pytest.raises(UsageError, match="law: needs a finite mean"):
        GaussianLaw(0.0, bad)


def test_equal_variances_have_their_own_function() -> None:
    with pytest.raises(UsageError, match="the two variances must differ"):
        unequal_delta(GaussianLaw(0.0, 1.0), GaussianLaw(1.0, 1.0), 1.0)


@pytest.mark.parametrize(
    ("mean", "variance", "epsilon"), [(1e141, 2.0, 1.0), (0.5, 1e141, 1.0), (0.5, 1e-141, 1.0), (0.5, 2.0, 1e141)]
)
def test_what_is_out_of_reach_of_floats_is_told_apart(mean: float, variance: float, epsilon: float) -> None:
    """Each of distance, ratio and epsilon alone; nothing is claimed of such laws."""
    far = GaussianLaw(mean, variance)
    assert unequal_delta_upper(far, GaussianLaw(0.0, 1.0), epsilon) == 1.0
    assert unequal_delta(far, GaussianLaw(0.0, 1.0), epsilon) == 1.0
    near = unequal_delta_upper(GaussianLaw(0.5, 2.0), GaussianLaw(0.0, 1.0), 1.0)
    assert 0 < near < 0.2


@pytest.mark.parametrize("variance", [0.5, 1e-3, 1e-6])
@pytest.mark.parametrize("distance", [1.0, 20.0])
@pytest.mark.parametrize("share", [1e-9, 1e-7, 1e-5])
def test_where_the_ratio_hardly_exceeds_epsilon(variance: float, distance: float, share: float) -> None:
    """Its largest excess is next to nothing, and so is the set; the bound by that excess is half as much again at most."""
    epsilon = (distance**2 / (2 * (1 - variance)) - math.log(variance) / 2) * (1 - share)
    one, other = GaussianLaw(distance, variance), GaussianLaw(0.0, 1.0)
    true = truth(one, other, epsilon)
    if true > 1e-30:
        assert true <= unequal_delta_upper(one, other, epsilon) <= 1.6 * true
