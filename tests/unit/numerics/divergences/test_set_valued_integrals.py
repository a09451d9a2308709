"""What the bound for set-valued secrets adds up: integrals, the error of their rule, and what panels may hide."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from attrpriv.numerics.divergences import set_valued
from attrpriv.numerics.divergences.mixture import SetLaw, set_law
from attrpriv.numerics.divergences.set_valued import (
    _ellipse_bound,
    _Grid,
    _highest,
    _highest_of_least,
    _integrated,
    _largest_density,
    _Pair,
    _Panels,
    _unseen,
)
from attrpriv.numerics.laws.intervals import IntervalUnion, parse_case
from tests.property.set_twin import densities

Array = NDArray[np.float64]


def pair_of(a: str, b: str, lam: float, epsilon: float, reference: float = 0.0) -> _Pair:
    return _Pair(set_law(parse_case(a), lam, reference), set_law(parse_case(b), lam, reference), epsilon)


def twin(union: IntervalUnion, lam: float, w: Array) -> Array:
    return densities([(part.low, part.high) for part in union.parts], lam, w)


def simple(left: Array, right: Array, positive: list[bool], brackets: tuple[Array, Array] | None = None) -> _Grid:
    low, high = brackets or (np.array([]), np.array([]))
    return _Grid(left, right, np.array(positive), _Panels(low, high, np.zeros(len(low), dtype=np.bool_)), 0, True)


@pytest.mark.parametrize(("lam", "epsilon"), [(0.7, 0.3), (2.0, -0.4), (1.3, 0.0)])
def test_panels_taken_as_positive_are_integrated(lam: float, epsilon: float) -> None:
    """Two of three; where the difference is negative there, it takes away. The bound adds next to nothing to it."""
    first, second = parse_case("[0, 1)"), parse_case("[1, 2.5)")
    pair = _Pair(set_law(first, lam, 0.0), set_law(second, lam, 0.0), epsilon)
    left, right = np.array([-1.0, 0.3, 1.1]), np.array([-0.2, 0.9, 2.0])
    value, upper = _integrated(pair, simple(left, right, [True, False, True]))
    nodes, weights = np.polynomial.legendre.leggauss(40)
    wanted = 0.0
    for a, b in ((-1.0, -0.2), (1.1, 2.0)):
        w = (a + b) / 2 + (b - a) / 2 * nodes
        wanted += (b - a) / 2 * float(weights @ (twin(first, lam, w) - math.exp(epsilon) * twin(second, lam, w)))
    assert value == pytest.approx(wanted, rel=1e-11)
    assert value < upper < value + 1e-12
    brackets = np.array([-0.15]), np.array([0.25])
    grid = simple(left, right, [True, False, True], brackets)
    hidden = float(_unseen(pair, grid.bracketed).sum())
    assert hidden > 1e-3
    again = _integrated(pair, grid)
    assert again[0] == value
    assert again[1] == pytest.approx(upper + hidden, rel=1e-12)


def test_a_density_that_is_nothing_beside_the_other_takes_it_all_away() -> None:
    """Differences of logarithms beyond the largest exponent, either way."""
    there, back = pair_of("[0, 1)", "[90, 91)", 1.0, 0.0), pair_of("[90, 91)", "[0, 1)", 1.0, 0.0)
    grid = simple(np.array([0.0]), np.array([1.0]), [True])
    assert 0.3 < _integrated(there, grid)[0] < 0.5
    assert _integrated(back, grid)[0] == 0


@pytest.mark.parametrize("half", [0.04, 0.5])
@pytest.mark.parametrize("epsilon", [0.0, 0.8])
def test_the_error_of_the_rule_by_the_largest_modulus_on_the_ellipse(half: float, epsilon: float) -> None:
    """|f_a - e^eps f_b| for complex outputs on it: the bound's is never less, and for a short panel hardly more."""
    lam, nodes, axis = 1.2, 24, 4.0
    sets = [(0.0, 1.0), (1.5, 2.5)]
    pair = pair_of("[0, 1)", "[1.5, 2.5)", lam, epsilon)
    g, weights = np.polynomial.legendre.leggauss(60)
    angles = np.exp(2j * math.pi * np.arange(720) / 720)
    for middle in (-1.1, 0.7, 3.0):
        ellipse = middle + half * (axis * angles + 1 / (axis * angles)) / 2
        moduli = []
        for low, high in sets:
            points = (low + high) / 2 + (high - low) / 2 * g
            chances = weights * np.exp(-(points**2) / 2)
            chances /= chances.sum()
            moduli.append(np.abs(np.exp(-((ellipse[:, None] - lam * points) ** 2) / 2) @ chances) / math.sqrt(2 * math.pi))
        factor = 64 / 15 * axis ** (-2 * nodes) / (1 - axis**-2)
        largest = float(moduli[0].max() + math.exp(epsilon) * moduli[1].max())
        found = float(_ellipse_bound(pair, np.array([middle]), np.array([half]))[0])
        assert factor * largest * (1 - 1e-9) <= found <= factor * largest * math.exp(5.5 * half**2 + 3.5 * half * (half < 0.1))


def test_the_error_of_the_rule_of_a_normal_density() -> None:
    """Without lam all is closed: the density at the end nearer to 0, and two factors for how far it may rise between."""
    pair = pair_of("[0, 1)", "[1, 2)", 0.0, 0.6)
    middle, half = np.array([-3.0, 2.0, 5.0]), np.array([0.5, 0.25, 0.375])
    found = _ellipse_bound(pair, middle, half)
    for m, h, bound in zip(middle.tolist(), half.tolist(), found.tolist(), strict=True):
        across, up = 2.125 * h, 1.875 * h
        near = abs(m) - across
        density = math.exp(-(near**2) / 2 + across**2 / 2) / math.sqrt(2 * math.pi)
        wanted = 64 / 15 * 4.0**-48 / (1 - 1 / 16) * math.exp(up**2 / 2) * density * (1 + math.exp(0.6))
        assert bound == pytest.approx(wanted, rel=1e-9, abs=0)


# -------------------------------------------------------------------------------------------------------------- unseen


def test_the_largest_density_between_two_points_of_a_normal_law() -> None:
    law = set_law(parse_case("[0, 1)"), 0.0, 0.0)
    left, right = np.array([-2.0, 0.5, -1.0]), np.array([-1.5, 2.5, 2.0])
    near = np.array([1.5, 0.5, 1.0])
    wanted = np.exp(-(near**2) / 2 + ((right - left) / 2) ** 2 / 2) / math.sqrt(2 * math.pi)
    assert _largest_density(law, left, right) == pytest.approx(wanted, rel=1e-12)


def test_the_lesser_of_two_lines_is_highest_at_an_end_or_where_they_meet() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.normal(size=(2, 400)), rng.normal(size=(2, 400))
    first[:, 0] = second[:, 0]
    t = np.linspace(0, 1, 2001)[:, None]
    brute_force = np.minimum(first[0] + t * (first[1] - first[0]), second[0] + t * (second[1] - second[0])).max(axis=0)
    found = _highest_of_least(first, second)
    assert (found >= brute_force - 1e-12).all()
    assert (found <= brute_force + 1e-3 * (np.abs(np.diff(first, axis=0)) + np.abs(np.diff(second, axis=0)))[0]).all()


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("epsilon", [0.0, 0.7])
def test_the_excess_between_chords_and_their_continuations(positive: bool, epsilon: float) -> None:
    """F = log f + w^2/2 at four points: above by the chord, below by the greater continuation of the neighbours' chords."""
    pair = pair_of("[0, 0.7)", "[0.7, 2) or [-1.5, -1)", 1.4, epsilon, reference=0.35)
    left, width = np.array([-2.0, -0.9, 0.1, 1.3]), np.array([0.5, 1.0, 0.3, 0.8])
    panels = _Panels(left, left + width, np.full(4, positive))
    found, rounding = _highest(pair, panels)
    t = np.linspace(0, 1, 4001)
    for k in range(4):
        at = left[k] + width[k] * np.array([-1.0, 0.0, 1.0, 2.0])
        curves = [law.log_density(at)[0] + at**2 / 2 for law in (pair.a, pair.b)]
        up, down = curves[::-1] if positive else curves
        chord = up[1] + t * (up[2] - up[1])
        under = np.maximum(down[1] + t * (down[1] - down[0]), down[2] - (1 - t) * (down[3] - down[2]))
        wanted = float((chord - under).max()) + (epsilon if positive else -epsilon)
        assert found[k] == pytest.approx(wanted, abs=1e-3 * width[k])
        assert found[k] >= wanted - 1e-12
        errors = sum(law.log_density(at)[1].max() for law in (pair.a, pair.b))
        assert rounding[k] >= errors / 2


def test_what_a_panel_may_hide() -> None:
    """Its width times the largest density, times what the excess makes of it; by curvature without what rounding leaves."""
    pair = pair_of("[0, 0.7)", "[0.7, 2) or [-1.5, -1)", 1.4, 0.2)
    left, right = np.array([-3.0, -0.5, 0.2, 0.6, 3.0]), np.array([-2.2, 0.1, 0.5, 1.6, 4.0])
    for positive in (False, True):
        panels = _Panels(left, right, np.full(5, positive))
        highest, rounding = _highest(pair, panels)
        assert (highest > 0).any()
        assert (highest < 0).any()
        mass = (right - left) * _largest_density(pair.a, left, right)
        for by_curvature in (False, True):
            found = _unseen(pair, panels, by_curvature=by_curvature)
            for k in range(5):
                wrong = max(0.0, highest[k] + (0.0 if by_curvature else rounding[k]))
                wanted = mass[k] * (math.exp(wrong) - 1 if positive else 1 - math.exp(-wrong))
                assert found[k] == pytest.approx(wanted, rel=1e-9, abs=1e-300)
    w = np.linspace(0, 1, 2001)[:, None] * (right - left) + left
    gain = np.exp(pair.a.log_density(w)[0]) - math.exp(0.2) * np.exp(pair.b.log_density(w)[0])
    for positive, sign in ((False, 1), (True, -1)):
        hidden = np.maximum(0.0, sign * gain).mean(axis=0) * (right - left)
        assert (_unseen(pair, _Panels(left, right, np.full(5, positive))) >= hidden).all()


def test_what_rounding_alone_leaves_open_is_not_refined() -> None:
    """A law against itself: the excess is within its rounding everywhere, which no finer grid can settle."""
    law = set_law(parse_case("[0, 1)"), 0.0, 0.0)
    panels = _Panels(np.array([-0.5, 0.5]), np.array([0.5, 1.5]), np.array([False, True]))
    assert (_unseen(_Pair(law, law, 0.0), panels, by_curvature=True) == 0).all()
    assert (_unseen(_Pair(law, law, 0.0), panels) > 0).all()


def test_an_excess_beyond_the_largest_exponent_is_finite() -> None:
    pair = pair_of("[0, 1)", "[90, 91)", 1.0, 0.0)
    for positive in (False, True):
        swapped = _Pair(pair.b, pair.a, 0.0) if positive else pair
        hidden = _unseen(swapped, _Panels(np.array([0.0]), np.array([1.0]), np.array([positive])))
        assert np.isfinite(hidden).all()
        assert (hidden >= (0.0 if positive else 0.3)).all()


def test_an_excess_is_the_difference_of_two_logarithms_less_epsilon() -> None:
    first, second = parse_case("[0, 0.7)"), parse_case("[0.7, 2)")
    w = np.linspace(-2, 3, 11)
    for epsilon in (0.0, 0.9, -0.4):
        value, error = _Pair(set_law(first, 1.4, 0.0), set_law(second, 1.4, 0.0), epsilon).excess(w)
        assert value == pytest.approx(np.log(twin(first, 1.4, w) / twin(second, 1.4, w)) - epsilon, abs=1e-11)
        own = [set_law(union, 1.4, 0.0).log_density(w)[1] for union in (first, second)]
        assert (error >= own[0] + own[1]).all()
        assert (error <= 1e-11).all()


# --------------------------------------------------------------------------------------------------------------- rounding


class Unsure(SetLaw):
    """A law whose logarithm is said to be off by 0.01, above a point by 0.03."""

    def log_density(self, y: Array) -> tuple[Array, Array]:
        value, _ = super().log_density(y)
        return value, np.where(y > 0.5, 0.03, 0.01)


def unsure(law: SetLaw) -> Unsure:
    return Unsure(law.parts, law.lam, law.reference, law.share_error)


def test_what_either_density_is_off_by_is_in_the_integral() -> None:
    """A share of 0.01 of the first law at least, for each of the two: where the difference is positive it is the larger one."""
    sure = pair_of("[0, 1)", "[1, 2.5)", 0.7, 0.3)
    grid = simple(np.array([-1.0]), np.array([0.5]), [True])
    value, upper = _integrated(sure, grid)
    w = np.linspace(-1, 0.5, 20_001)
    mass = float(twin(parse_case("[0, 1)"), 0.7, w).mean() * 1.5)
    for pair in (_Pair(unsure(sure.a), sure.b, 0.3), _Pair(sure.a, unsure(sure.b), 0.3)):
        found = _integrated(pair, grid)
        assert found[0] == value
        assert upper + 0.01 * mass < found[1] < upper + 0.15 * mass
    both = _integrated(_Pair(unsure(sure.a), unsure(sure.b), 0.3), grid)
    assert both[1] - upper > max(_integrated(_Pair(unsure(sure.a), sure.b, 0.3), grid)[1] - upper, 0.02 * mass)


def test_the_error_of_the_rule_is_in_the_integral(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is that of [-1, 1], so that a panel has its half-width times as much."""
    pair = pair_of("[0, 1)", "[1, 2.5)", 0.7, 0.3)
    grid = simple(np.array([-1.0, 0.3, 1.1]), np.array([-0.2, 0.9, 2.0]), [True, False, True])
    value, upper = _integrated(pair, grid)
    monkeypatch.setattr(set_valued, "_ellipse_bound", lambda pair, middle, half: np.array([0.25, 0.5]))
    found = _integrated(pair, grid)
    assert found[0] == value
    assert found[1] == pytest.approx(upper + 0.25 * 0.4 + 0.5 * 0.45, rel=1e-12)


def test_a_density_is_as_large_as_its_rounding_allows() -> None:
    law = unsure(set_law(parse_case("[0, 1)"), 0.0, 0.0))
    left, right = np.array([-0.5, -0.25]), np.array([0.25, 0.75])
    wanted = np.exp(-(np.array([0.25, 0.25]) ** 2) / 2 + ((right - left) / 2) ** 2 / 2) / math.sqrt(2 * math.pi)
    found = _largest_density(law, left, right)
    assert found[0] == pytest.approx(wanted[0] * math.exp(0.01), rel=1e-9)
    # At the nearer end it is off by 0.01; the further one, off by 0.03, is lower still.
    assert found[1] == pytest.approx(wanted[1] * math.exp(0.01), rel=1e-9)


def test_an_excess_is_off_by_what_all_of_its_four_points_are() -> None:
    """A continued chord is twice one value less another: three times the error of one law, and once that of the other."""
    sure = pair_of("[0, 0.7)", "[0.7, 2)", 1.4, 0.2)
    # Of the first panel's points only the last is above 0.5, of the second's none.
    panels = _Panels(np.array([-0.2, -2.0]), np.array([0.2, -1.5]), np.array([False, False]))
    for pair in (_Pair(unsure(sure.a), sure.b, 0.2), _Pair(sure.a, unsure(sure.b), 0.2)):
        assert (_highest(pair, panels)[1] >= 3 * np.array([0.03, 0.01])).all()
    assert (_highest(_Pair(unsure(sure.a), unsure(sure.b), 0.2), panels)[1] >= 4 * np.array([0.03, 0.01])).all()
    assert (_highest(sure, panels)[1] < 1e-9).all()
