"""What the divergence of two Gaussians is put together from, each piece against many digits: roots, masses, differences."""

from __future__ import annotations

import itertools
import math

import mpmath
import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences.gaussian import (
    Bounds,
    _between,
    _delta_and_upper,
    _kept,
    _kept_upper,
    _log_add,
    _log_mass,
    _log_ndtr,
    _mid,
    _outside,
    _quotient,
    _Roots,
    _roots,
    _value_and_upper,
    gaussian_delta_upper,
    gaussian_epsilon,
    hockey_stick,
    unequal_delta,
    unequal_delta_upper,
)
from attrpriv.numerics.laws.gaussian import GaussianLaw, GaussianMixture
from attrpriv.numerics.laws.lattice import binomial_sum
from attrpriv.numerics.rounding import ULP

INF = math.inf
DIGITS = 60


def below(z: float | mpmath.mpf) -> mpmath.mpf:
    return mpmath.erfc(-mpmath.mpf(z) / mpmath.sqrt(2)) / 2


def mass(low: float, high: float) -> mpmath.mpf:
    return below(-mpmath.mpf(low)) - below(-mpmath.mpf(high)) if low > 0 else below(high) - below(low)


# ---------------------------------------------------------------------------------------------------------------- roots


def true_roots(d: float, v1: float, v2: float, epsilon: float) -> dict[str, mpmath.mpf]:
    """The quadratic A z^2 + 2 d r z + d^2 - 2 (eps + log r) solved by the formula of school, y = d + r z."""
    shift, r = mpmath.mpf(d), mpmath.sqrt(mpmath.mpf(v1) / mpmath.mpf(v2))
    a, b, c = r**2 - 1, 2 * shift * r, shift**2 - 2 * (epsilon + mpmath.log(r))
    disc = max(mpmath.mpf(0), b**2 - 4 * a * c)
    far, near = ((-b - sign * mpmath.sqrt(disc)) / (2 * a) for sign in (1, -1))
    assert abs(far) >= abs(near)
    # The largest excess of the logarithm of the ratio over epsilon, for r < 1: its value at the vertex.
    return {"z_near": near, "z_far": far, "y_near": shift + r * near, "y_far": shift + r * far, "excess": abs(disc / (8 * a))}


@pytest.mark.parametrize(
    ("d", "v1", "v2", "epsilon"),
    [
        (1.3, 2.7, 1.9, 0.7),
        (0.4, 3.1, 1.7, 0.0),
        (0.0, 3.3, 1.2, 0.5),
        (2.6, 0.02, 0.001, 4.1),
        (5.0, 1.0000001, 1.0, 2.2),
        (0.7, 1.3, 1.0, 6.0),
        (1.3, 1.9, 2.7, 0.7),
        (2.2, 0.7, 1.7, 0.2),
        (0.0, 0.4, 1.3, 0.1),
        (3.1, 0.01, 2.3, 1.4),
        (4.0, 2.0, 2.0003, 1.1),
        (7.5, 0.3, 0.5, 0.0),
    ],
)
def test_roots_are_bracketed_closely(d: float, v1: float, v2: float, epsilon: float) -> None:
    found = _roots(d, v1, v2, epsilon)
    assert found is not None
    with mpmath.workdps(DIGITS):
        for name, truth in true_roots(d, v1, v2, epsilon).items():
            if name == "excess":
                assert truth <= found.excess <= truth * (1 + 1e-12) + 1e-12
                continue
            low, high = getattr(found, name)
            assert low <= truth <= high, name
            assert high - low <= 1e-12 * (1 + abs(truth)) * (1 + 1e-3 / abs(v1 / v2 - 1)), name


def test_a_set_that_is_next_to_nothing_keeps_its_brackets() -> None:
    """r < 1: where the quadratic is positive shrinks to a point as epsilon grows, here at 1 - log r for d = 1."""
    for d, v1 in ((1.0, 0.5), (2.3, 0.3)):
        last = d * d / (2 * (1 - v1)) - math.log(v1) / 2
        found = _roots(d, v1, 1.0, last)
        assert found is not None
        with mpmath.workdps(DIGITS):
            truth = true_roots(d, v1, 1.0, last)
            for name in ("z_near", "z_far", "y_near", "y_far"):
                low, high = getattr(found, name)
                assert low <= truth[name] <= high
                assert high - low < 1e-5
        assert 0 < found.excess < 1e-13
        assert _roots(d, v1, 1.0, last * (1 - 1e-9)) is not None
        assert _roots(d, v1, 1.0, last * (1 + 1e-9)) is None
    assert _roots(0.0, 0.5, 1.0, 1.0) is None
    assert _roots(0.0, 2.0, 1.0, 1.0) is not None


def test_a_quotient_of_bounds() -> None:
    for top, bottom in itertools.product(((1.0, 2.5), (-3.0, -0.5), (-1.0, 4.0)), ((0.5, 1.7), (2.0, 3.0), (-5.0, -0.25))):
        ends = [x / y for x in top for y in bottom]
        low, high = _quotient(top, bottom)
        assert min(ends) - 1e-13 < low < min(ends) < max(ends) < high < max(ends) + 1e-13
    for bottom in ((-1.0, 2.0), (0.0, 1.0), (-1.0, 0.0)):
        assert _quotient((1.0, 2.0), bottom) == (-INF, INF)


def test_the_middle_of_bounds() -> None:
    assert _mid((1.0, 4.0)) == 2.5
    assert _mid((-1e308, 1.7e308)) == pytest.approx(3.5e307)
    assert _mid((1.5e308, 1.7e308)) == pytest.approx(1.6e308)
    assert _mid((-INF, 4.0)) == -INF
    assert _mid((3.0, INF)) == 3.0


# --------------------------------------------------------------------------------------------------------------- masses


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (-0.3, 1.1),
        (-1.4, 0.2),
        (0.4, 0.9),
        (2.0, 30.0),
        (-9.0, -8.2),
        (20.0, 20.1),
        (1.0, INF),
        (-INF, -3.0),
        (-0.6, 0.6),
        (7.0, 7.0 + 1e-9),
        (-1e-8, 2e-8),
        (-3.0 - 1e-7, -3.0),
        (35.0, 35.001),
    ],
)
def test_a_normal_mass_and_how_much_it_can_be(low: float, high: float) -> None:
    value, most, upper = _log_mass(low, high)
    with mpmath.workdps(DIGITS):
        truth = mpmath.log(mass(low, high))
        least = min(abs(low), abs(high))
        lost = (1 + least**2) / min(1.0, (1 + least) * (high - low))
        assert abs(value - truth) < 2e-15 * lost + 1e-13
        assert truth <= upper <= most
        assert truth <= most <= truth + 6e-14 * lost + 1e-12
    # A unit of each logarithm that is subtracted.
    near, far = sorted((_log_ndtr(-abs(low)), _log_ndtr(-abs(high))))[::-1]
    if low > 0 and 1e-3 < high - low < 5:
        assert most - value >= 4 * ULP * (abs(near) + abs(far)) / -math.expm1(far - near)


@pytest.mark.parametrize(("low", "high"), [(2.0, 2.0 + 1e-12), (30.0, 30.0 + 1e-13), (-5.0 - 1e-12, -5.0), (-1e-13, 1e-13)])
def test_a_narrow_interval_has_at_most_its_width_times_the_largest_density(low: float, high: float) -> None:
    """What differences of logarithms leave open is a thousandth there; the width is right to the last digits."""
    value, most, upper = _log_mass(low, high)
    with mpmath.workdps(DIGITS):
        truth = mpmath.log(mass(low, high))
        assert truth <= upper <= truth + 1e-10
        assert abs(value - truth) < most - value


def test_nothing_is_between_ends_in_the_wrong_order() -> None:
    assert _log_mass(1.0, 1.0) == (-INF, -INF, -INF)
    assert _log_mass(1.5, 1.0) == (-INF, -INF, -INF)


def test_an_interval_too_narrow_for_two_logarithms_still_has_a_bound() -> None:
    value, _, upper = _log_mass(1e-300, 3e-300)
    assert value == -INF
    assert upper == pytest.approx(math.log(2e-300) - 0.5 * math.log(2 * math.pi), rel=1e-12)


def test_logarithms_are_added() -> None:
    assert _log_add(-2.0, -3.5) == _log_add(-3.5, -2.0) == pytest.approx(math.log(math.exp(-2) + math.exp(-3.5)), rel=1e-15)
    assert _log_add(-1000.0, -1001.0) == pytest.approx(-1000 + math.log1p(math.exp(-1)), rel=1e-15)
    assert _log_add(-INF, -4.0) == _log_add(-4.0, -INF) == -4.0
    assert _log_add(-INF, -INF) == -INF


# ---------------------------------------------------------------------------------------------------------- differences


@pytest.mark.parametrize("log_p", [-0.001, -0.7, -3.0, -50.0, -600.0])
@pytest.mark.parametrize("less", [0.01, 0.5, 2.0, 40.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 5.0])
def test_what_is_kept_of_one_probability_after_another(log_p: float, less: float, epsilon: float) -> None:
    """e^p - e^(eps + q), where the second is smaller, and 0 where it is not."""
    log_q = log_p - epsilon - less
    with mpmath.workdps(DIGITS):
        first = mpmath.exp(mpmath.mpf(log_p))
        truth = first - mpmath.exp(mpmath.mpf(epsilon) + mpmath.mpf(log_q))
        assert abs(_kept(log_p, log_q, epsilon) - truth) <= 1e-15 * first * (10 + abs(log_p))
        assert truth <= _kept_upper(log_p, log_q, epsilon) <= truth + 3e-14 * first * (2 + abs(log_p) + abs(log_q) + epsilon)
    over = log_p - epsilon + less
    assert _kept(log_p, over, epsilon) == 0.0
    assert 0 < _kept_upper(log_p, over, epsilon) <= 1e-14 * math.exp(log_p) * (1 + epsilon) + 1e-323


def test_what_is_kept_of_nothing_and_after_nothing() -> None:
    assert _kept(-INF, -3.0, 1.0) == 0.0
    assert 0 < _kept_upper(-INF, -3.0, 1.0) < 1e-320
    assert _kept(-2.0, -INF, 1.0) == pytest.approx(math.exp(-2), rel=1e-15)
    assert math.exp(-2) <= _kept_upper(-2.0, -INF, 1.0) <= math.exp(-2) * (1 + 1e-12)


def test_what_is_below_every_float_is_not_nothing() -> None:
    assert _kept_upper(-750.0, -INF, 0.3) > 0
    assert 0 < _kept_upper(-700.0, -INF, 0.3) < 1.01e-304
    tails = _Roots((39.0, 39.0), (39.5, 39.5), (50.0, 50.0), (51.0, 51.0), 2.0)
    assert 0 < _between(tails, 0.3)[1] < 1e-320
    # What is added is no more than the least float.
    slight = _Roots((-0.9, -0.9), (1.4, 1.4), (0.2, 0.2), (0.8, 0.8), 1e-30)
    assert 7e-31 < _between(slight, 0.3)[1] < 1e-30


def wide(middle: float, half: float) -> Bounds:
    return middle - half, middle + half


@pytest.mark.parametrize("epsilon", [0.0, 0.4])
def test_outside_of_two_roots(epsilon: float) -> None:
    """Brackets as wide as none is: the value takes their middles, the bound the ends with the most of P and the least of Q."""
    roots = _Roots(wide(0.9, 0.03), wide(-1.4, 0.02), wide(2.1, 0.05), wide(-2.6, 0.04), 0.0)

    def kept(z_near: float, z_far: float, y_near: float, y_far: float) -> mpmath.mpf:
        return below(z_far) + below(-z_near) - mpmath.exp(epsilon) * (below(y_far) + below(-y_near))

    value, upper = _outside(roots, epsilon)
    with mpmath.workdps(DIGITS):
        assert value == pytest.approx(float(kept(0.9, -1.4, 2.1, -2.6)), rel=1e-13)
        truth = kept(roots.z_near[0], roots.z_far[1], roots.y_near[1], roots.y_far[0])
        assert truth <= upper <= truth * (1 + 1e-12)
    everything = _Roots(wide(-30.0, 1.0), wide(-40.0, 1.0), wide(50.0, 1.0), wide(-60.0, 1.0), 0.0)
    assert _outside(everything, epsilon)[1] == 1.0


@pytest.mark.parametrize("epsilon", [0.0, 0.4])
def test_between_two_roots(epsilon: float) -> None:
    """The same for r < 1; the bound is also no more than P's mass times what its largest excess leaves."""
    roots = _Roots(wide(-0.9, 0.03), wide(1.4, 0.02), wide(0.2, 0.05), wide(0.8, 0.04), 3.0)

    def kept(z_near: float, z_far: float, y_near: float, y_far: float) -> mpmath.mpf:
        return mass(z_near, z_far) - mpmath.exp(epsilon) * mass(y_near, y_far)

    value, upper = _between(roots, epsilon)
    with mpmath.workdps(DIGITS):
        assert value == pytest.approx(float(kept(-0.9, 1.4, 0.2, 0.8)), rel=1e-13)
        truth = kept(roots.z_near[0], roots.z_far[1], roots.y_near[1], roots.y_far[0])
        assert truth <= upper <= truth * (1 + 1e-12)
        for excess in (0.01, 0.3):
            small = _Roots(roots.z_near, roots.z_far, roots.y_near, roots.y_far, excess)
            most = mass(roots.z_near[0], roots.z_far[1]) * -mpmath.expm1(-mpmath.mpf(excess))
            assert most < truth
            assert most <= _between(small, epsilon)[1] <= most * (1 + 1e-12)
        # Brackets of Q's ends that overlap: nothing is sure to be in its set.
        sliver = _Roots(roots.z_near, roots.z_far, wide(0.2, 0.05), wide(0.25, 0.05), 3.0)
        whole = mass(roots.z_near[0], roots.z_far[1])
        assert whole * -mpmath.expm1(-3) <= _between(sliver, epsilon)[1] <= whole
        # Narrow intervals, whose logarithms are known to a hundredth only: Q's is taken at its least, whatever its width says.
        z, y = (0.1, 0.1 + 1e-12), (2.0, 2.0 + 1e-12)
        truth = mass(*z) - mpmath.exp(epsilon) * mass(*y)
        narrow = _Roots((z[0], z[0]), (z[1], z[1]), (y[0], y[0]), (y[1], y[1]), 5.0)
        assert truth * (1 + 1e-5) <= _between(narrow, epsilon)[1] <= truth * 1.02
    assert _between(_Roots(wide(-30.0, 1.0), wide(30.0, 1.0), (50.0, 50.0), (50.0, 50.0), 700.0), epsilon)[1] == 1.0


# -------------------------------------------------------------------------------------------------------- equal variances


@pytest.mark.parametrize("mu", [1e-3, 0.07, 0.9, 3.1, 12.0, 40.0])
@pytest.mark.parametrize("epsilon", [0.0, 1e-4, 0.3, 2.4, 31.0])
def test_value_and_bound_of_equal_variances(epsilon: float, mu: float) -> None:
    """Both as near to the truth as the size of the first probability allows."""
    value, upper = _delta_and_upper(epsilon, mu)
    with mpmath.workdps(100):
        first = below(mpmath.mpf(mu) / 2 - mpmath.mpf(epsilon) / mu)
        truth = first - mpmath.exp(epsilon) * below(-mpmath.mpf(mu) / 2 - mpmath.mpf(epsilon) / mu)
        room = 1e-14 * (4 + mu**2 + (epsilon / mu) ** 2) * first
        assert abs(value - truth) <= room + 1e-320
        assert truth <= upper <= truth + 4 * room + 1e-320


def test_a_bound_of_one_and_less() -> None:
    assert gaussian_delta_upper(0.0, 100.0) == 1.0
    assert 0.0 < gaussian_delta_upper(1.0, 1e-310) < 1e-320
    assert _delta_and_upper(3.0, 0.0) == (0.0, 0.0)


@pytest.mark.parametrize("mu", [0.02, 0.5, 3.0, 40.0])
@pytest.mark.parametrize("delta", [1e-9, 0.01, 0.3])
def test_an_epsilon_is_the_least_up_to_its_last_digits(mu: float, delta: float) -> None:
    found = gaussian_epsilon(mu, delta)
    assert gaussian_delta_upper(found, mu) <= delta
    assert found == 0 or gaussian_delta_upper(found * (1 - 1e-11), mu) > delta


def test_an_epsilon_of_zero_where_delta_is_met_exactly() -> None:
    exactly = gaussian_delta_upper(0.0, 0.7)
    assert gaussian_epsilon(0.7, exactly) == 0.0
    assert 0 < gaussian_epsilon(0.7, math.nextafter(exactly, 0.0)) < 1e-12


# ---------------------------------------------------------------------------------------------------------- kinds of laws


def test_two_laws_are_measured_by_the_sd_of_the_second() -> None:
    """Scaling both laws changes nothing, in either order and of either kind."""
    assert unequal_delta(GaussianLaw(1.0, 2.0), GaussianLaw(0.0, 1.0), 0.0) > 0.3
    assert _value_and_upper(GaussianLaw(0.0, 0.5), GaussianLaw(0.0, 1.0), 1.0) == (0.0, 0.0)
    assert _value_and_upper(GaussianLaw(0.0, 2.0), GaussianLaw(0.0, 1.0), 1e150) == (1.0, 1.0)
    for mean, one, other in ((1.3, 2.7, 1.9), (0.6, 0.3, 1.7), (2.0, 1.5, 1.5)):
        truth = hockey_stick(GaussianLaw(mean, one), GaussianLaw(0.0, other), 0.4)
        for scale in (0.25, 16.0):
            moved = hockey_stick(GaussianLaw(5 - mean * scale, one * scale**2), GaussianLaw(5.0, other * scale**2), 0.4)
            assert moved == pytest.approx(truth, rel=1e-10)


def test_laws_of_two_kinds_have_no_divergence() -> None:
    normal, lattice = GaussianLaw(0.0, 1.0), binomial_sum(4, 0.4, 0, 0.6)
    mixed = GaussianMixture.of(lattice, 1.0)
    for pair in itertools.permutations((normal, lattice, mixed), 2):
        with pytest.raises(UsageError, match="one kind"):
            hockey_stick(*pair, 1.0)  # type: ignore[call-overload]


@pytest.mark.parametrize("largest", [1e140])
def test_just_within_the_reach_of_floats_there_is_an_answer(largest: float) -> None:
    """A distance, a ratio of variances and an epsilon below the largest are computed with, at it they are not."""
    unit = GaussianLaw(0.0, 1.0)
    assert unequal_delta(GaussianLaw(0.0, 2.0), unit, largest / 2) == 0.0
    assert unequal_delta(GaussianLaw(0.0, 2.0), unit, largest) == 1.0
    assert unequal_delta(GaussianLaw(0.0, 2 / largest), unit, largest / 2) == 0.0
    assert unequal_delta(GaussianLaw(0.0, 0.5 / largest), unit, largest / 2) == 1.0
    # P(|z| > sqrt 2): both logarithms are as large as their difference can be.
    assert unequal_delta(GaussianLaw(0.0, largest / 2), unit, largest / 2) == pytest.approx(math.erfc(1.0), rel=1e-9)
    assert unequal_delta(GaussianLaw(0.0, largest * 2), unit, largest / 2) == 1.0
    assert unequal_delta(GaussianLaw(largest / 2, 0.5), unit, largest / 2) == 1.0
    with pytest.raises(UsageError, match="epsilon"):
        unequal_delta_upper(GaussianLaw(0.0, 2.0), unit, -1e-9)
