"""The law of the privacy loss, piece by piece: losses, windows, cells and their masses, coordinates, what is charged."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
import scipy.linalg
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import norm

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences import vector_loss
from attrpriv.numerics.divergences.vector_loss import (
    LossLaw,
    _between,
    _cells,
    _convolved,
    _coordinates,
    _ends,
    _fuzz,
    _loss,
    _moved,
    _roots,
    loss_law,
    vector_hockey_upper,
)
from attrpriv.numerics.rounding import ULP

Array = NDArray[np.float64]
# One coordinate's distance and ratio of variances: wider, narrower, next to equal, equal; with and without a distance.
PARTS = [(1.3, 2.7), (0.7, 0.4), (0.0, 3.1), (0.0, 0.3), (2.1, 1.0), (0.6, 1.0002), (0.8, 0.999), (3.0, 0.05), (0.2, 8.0)]


def loss(z: Array | float, d: float, r: float) -> Array:
    """log of the density of N(d, r) over that of N(0, 1)."""
    return np.asarray(norm.logpdf(z, d, math.sqrt(r)) - norm.logpdf(z))


@pytest.mark.parametrize(("d", "r"), PARTS)
def test_a_loss_is_the_ratio_of_two_densities(d: float, r: float) -> None:
    for z in (-4.0, -0.3, 0.0, 0.7, 2.9):
        assert _loss(z, d, r) == pytest.approx(float(loss(z, d, r)), rel=1e-12, abs=1e-13)


@pytest.mark.parametrize(("d", "r"), PARTS)
def test_a_window_holds_the_losses_of_nearly_all_outputs(d: float, r: float) -> None:
    """From the least to the largest one within 9.6 standard deviations, or from -60 on."""
    losses = loss(np.linspace(d - 9.6 * math.sqrt(r), d + 9.6 * math.sqrt(r), 100_001), d, r)
    low, high = _ends(d, r)
    assert low == pytest.approx(max(-60.0, losses.min()), abs=1e-6)
    assert high == pytest.approx(losses.max(), abs=1e-6)


def outputs_below(points: Array, d: float, r: float) -> tuple[Array, Array]:
    """The ends between which (r < 1: outside of which) the loss is at most t, by the formula of school; NaN without any."""
    a, b, c = (1 - 1 / r) / 2, d / r, -d * d / (2 * r) - math.log(r) / 2 - points
    if r == 1:
        return np.full_like(points, -np.inf), -c / b
    with np.errstate(invalid="ignore"):
        root = np.sqrt(b * b - 4 * a * c)
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


def mass_below(points: Array, d: float, r: float, mean: float, variance: float) -> Array:
    """The mass that N(mean, variance) has where the loss is at most t."""
    left, right = outputs_below(points, d, r)
    left, right = np.minimum(left, right), np.maximum(left, right)
    held = ndtr((right - mean) / math.sqrt(variance)) - ndtr((left - mean) / math.sqrt(variance))
    none = np.isnan(left)
    return np.asarray(np.where(none, 0.0, held) if r >= 1 else np.where(none, 1.0, 1 - held))


@pytest.mark.parametrize(("d", "r"), PARTS)
@pytest.mark.parametrize("step", [0.25, 0.0625])
def test_a_cell_gives_its_mass_to_its_ends(d: float, r: float, step: float) -> None:
    """Such that the second law's mass stays what it is: u e^-(t + h) + (p - u) e^-t = q; all by distribution functions."""
    first, masses, lost = _moved(d, r, step)
    low, high = _ends(d, r)
    assert first * step <= low < (first + 1) * step
    last = first + len(masses) - 1
    assert (last - 1) * step < high <= last * step
    points = np.arange(first, last + 1, dtype=np.float64) * step
    p, q = mass_below(points, d, r, d, r), mass_below(points, d, r, 0.0, 1.0)
    up = (np.diff(p) - np.diff(q) * np.exp(np.minimum(points[:-1], 30.0))) / (1 - math.exp(-step))
    wanted = np.zeros(len(points))
    wanted[0] = p[0]
    wanted[:-1] += np.diff(p) - up
    wanted[1:] += up
    # Further up the twin's differences of distribution functions have no digits left.
    good = points < 6
    assert good.sum() > 10
    assert masses[good] == pytest.approx(wanted[good], rel=1e-7, abs=3e-11 / step)
    assert lost == pytest.approx(max(0.0, 1 - p[-1]), abs=1e-13)
    assert 1 <= masses.sum() + lost <= 1 + 1e-11
    assert (masses >= 0).all()


@pytest.mark.parametrize(("d", "r"), [(1.3, 2.7), (0.7, 0.4), (2.1, 1.0)])
def test_what_is_above_the_last_point_is_lost_and_what_is_below_the_first_is_moved_up(
    monkeypatch: pytest.MonkeyPatch, d: float, r: float
) -> None:
    """With a window of one standard deviation both are much."""
    monkeypatch.setattr("attrpriv.numerics.divergences.vector_loss._TAIL", 1.0)
    step = 0.125
    first, masses, lost = _moved(d, r, step)
    held = mass_below(np.array([first, first + len(masses) - 1]) * step, d, r, d, r)
    below, above = float(held[0]), 1 - float(held[1])
    assert lost == pytest.approx(above, abs=1e-12)
    assert masses[0] >= below
    assert masses.sum() == pytest.approx(1 - above, abs=1e-10)
    assert above + below > 0.1


def test_losses_beyond_the_largest_exponent_are_finite() -> None:
    """At a distance of 40 the largest loss is 1184, and e to it no float."""
    _, masses, lost = _moved(40.0, 1.0, 0.5)
    assert np.isfinite(masses).all()
    assert 1 <= masses.sum() + lost < 1 + 1e-9


@pytest.mark.parametrize(("d", "r"), PARTS)
def test_where_a_loss_is_reached(d: float, r: float) -> None:
    points = np.array([-7.5, -1.5, -0.8, -0.25, 0.0, 0.125, 0.7, 1.9, 6.0])
    inside, (left, right) = _roots(points, d, r)
    assert inside is (r >= 1)
    wanted = outputs_below(points, d, r)
    none = np.isnan(wanted[0])
    assert (left <= right).all()
    if r != 1:
        # Nothing, or everything, is that small: both ends are where the loss turns.
        assert left[none] == pytest.approx(np.full(none.sum(), -d / (r - 1)), rel=1e-9, abs=1e-12)
        assert (left[none] == right[none]).all()
    assert left[~none] == pytest.approx(np.minimum(*wanted)[~none], rel=1e-7, abs=1e-9)
    assert right[~none] == pytest.approx(np.maximum(*wanted)[~none], rel=1e-7, abs=1e-9)


# --------------------------------------------------------------------------------------------------------------- masses


@pytest.mark.parametrize("side", [1, -1])
def test_a_normal_mass_is_moved_by_its_rounding_to_the_side_asked_for(side: int) -> None:
    low = np.array([-0.3, 1.0, -9.0, -np.inf, 7.0, 20.0, -2.0, 0.5, 3.0])
    high = np.array([1.1, 1.5, -8.5, -3.0, np.inf, 20.5, 2.0, 0.5, 2.0])
    found = _between(low, high, np.zeros(10), side)
    with mpmath.workdps(40):
        for a, b, value in zip(low.tolist(), high.tolist(), found.tolist(), strict=True):
            if a >= b:
                assert value == 0.0
                continue
            truth = mpmath.ncdf(-a) - mpmath.ncdf(-b) if a > 0 else mpmath.ncdf(b) - mpmath.ncdf(a)
            off = side * (value - truth)
            size = min(abs(a), abs(b))
            assert 0 < off <= 4e-15 * (8 + size * (1 + size)) * truth


def test_a_normal_mass_whose_ends_are_uncertain() -> None:
    """By 1e-6 the first, by 3e-6 the second: the worse of the two at both, four times as much as it moves at most."""
    low, high = np.array([-0.4, 0.3, 2.0]), np.array([0.9, 1.2, 2.7])
    fuzz = np.array([1e-6, 3e-6, 1e-6, 1e-6])
    upper, lower = (_between(low, high, fuzz, side) for side in (1, -1))
    for k in range(3):
        worst = max(fuzz[k], fuzz[k + 1])
        widest = norm.sf(low[k] - worst) - norm.sf(high[k] + worst)
        narrowest = norm.sf(low[k] + worst) - norm.sf(high[k] - worst)
        assert upper[k] >= widest
        assert lower[k] <= narrowest
        true = norm.sf(low[k]) - norm.sf(high[k])
        assert upper[k] - true == pytest.approx(true - lower[k], rel=1e-6)
        assert upper[k] - true <= 20 * worst
    assert upper[2] - (norm.sf(2.0) - norm.sf(2.7)) < 0.1 * (upper[0] - (norm.sf(-0.4) - norm.sf(0.9)))


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("side", [1, -1])
def test_cells_of_growing_and_of_shrinking_sets(inside: bool, side: int) -> None:
    """[left, right] grows with t, or what is outside of (left, right) does: each cell is what is new, at either end."""
    left, right = np.array([-0.2, -0.5, -1.1, -2.0]), np.array([0.1, 0.7, 0.9, 3.0])
    if not inside:
        left, right = left[::-1], right[::-1]
    for fuzz in (0.0, 1e-8):
        found = _cells([left, right], inside, [np.full(4, fuzz)] * 2, side)
        held = norm.cdf(right) - norm.cdf(left)
        sets = held if inside else 1 - held
        wanted = np.concatenate([[sets[0]], np.diff(sets), [1 - sets[-1]]])
        assert found == pytest.approx(wanted, rel=1e-6 if fuzz else 1e-11)
        assert (side * (found - wanted) >= (1e-9 * wanted if fuzz else -1e-15)).all()


def test_the_ends_outside_take_the_larger_uncertainty_of_both() -> None:
    left, right = np.array([-0.2, -0.5]), np.array([0.1, 0.7])
    for uneven in ([np.array([0.0, 1e-5]), np.zeros(2)], [np.zeros(2), np.array([1e-5, 0.0])]):
        found = _cells([left, right], True, uneven, 1)
        assert found[0] - (norm.cdf(0.1) - norm.cdf(-0.2)) > 1e-5
        assert found[-1] - (1 - norm.cdf(0.7) + norm.cdf(-0.5)) > 1e-5


def test_how_far_an_end_may_be_off() -> None:
    ends = np.array([3.0, -2.0, np.inf, -np.inf])
    assert _fuzz(ends, 1.5, 4.0) == pytest.approx(4 * ULP * np.array([4.5, 3.5, 1.5, 1.5]) / 2, rel=1e-12, abs=0)


def test_losses_of_independent_coordinates_add_up() -> None:
    told, step = [(1.3, 2.7), (0.7, 0.4), (2.1, 1.0)], 0.5
    parts = [_moved(d, r, step) for d, r in told]
    start, masses, lost = _convolved(told, step)
    assert start == sum(part[0] for part in parts)
    assert masses == pytest.approx(np.convolve(np.convolve(parts[0][1], parts[1][1]), parts[2][1]), rel=1e-12)
    assert lost == pytest.approx(sum(part[2] for part in parts), rel=1e-11, abs=0)
    assert lost >= sum(part[2] for part in parts)


# ---------------------------------------------------------------------------------------------------------- coordinates

FIRST = np.array([[2.0, 0.5, -0.3], [0.5, 1.1, 0.2], [-0.3, 0.2, 0.6]])
SECOND = np.array([[9.0, 1.0, 0.7], [1.0, 0.8, -0.2], [0.7, -0.2, 1.7]])
SHIFT = np.array([1.1, -0.6, 0.35])


def test_coordinates_are_those_in_which_both_covariances_are_diagonal() -> None:
    """Generalised eigenvalues, as SciPy finds them."""
    found = _coordinates(SHIFT, FIRST, SECOND)
    assert found is not None
    values, vectors = scipy.linalg.eigh(FIRST, SECOND)
    assert found[1] == pytest.approx(values, rel=1e-12)
    assert found[0] == pytest.approx(np.abs(vectors.T @ SHIFT), rel=1e-10)
    assert (found[0] >= np.abs(vectors.T @ SHIFT)).all()
    assert 0 < found[2] < 1e-10
    law = loss_law(SHIFT, FIRST, SECOND)
    assert (law.parts, law.off) == (3, found[2])


def test_coordinates_that_are_no_different_are_left_out_and_charged() -> None:
    """1e-13 for each ratio taken for 1 and, by the least of the first law's scales, for each move taken for none."""
    first, second = np.diag([0.25, 4.0, 1.0]), np.eye(3)
    found = _coordinates(np.array([0.0, 0.7, 0.0]), first, second)
    assert found is not None
    moves, ratios, off = found
    assert ratios.tolist() == [0.25, 1.0, 4.0]
    assert moves.tolist() == [0.0, 0.0, pytest.approx(0.7)]
    rounding = 64 * 9 * ULP * 4 * (1 + 4)
    assert off == pytest.approx(rounding + (1 + 2 * 2) * 1e-13, rel=1e-6, abs=0)
    for k, parts in ((0, 2), (1, 2), (2, 3)):
        law = loss_law(0.7 * np.eye(3)[k], first, second)
        assert law.parts == parts
    same = loss_law(np.zeros(3), np.eye(3), np.eye(3))
    assert (same.parts, same.lost) == (0, 0.0)
    assert same.off == pytest.approx(64 * 9 * ULP * 2 + 6e-13, rel=1e-6, abs=0)
    assert same.upper(0.7) == pytest.approx(same.off / 2 * (1 + math.exp(0.7)), rel=1e-5, abs=0)
    apart = loss_law(np.array([0.0, 2e-13, 0.0]), np.eye(3), np.eye(3))
    assert apart.parts == 1


@pytest.mark.parametrize("wrong", [0, 1])
def test_what_eigenvectors_are_off_by_is_charged(monkeypatch: pytest.MonkeyPatch, wrong: int) -> None:
    """Of either decomposition, too long by 1e-4: then covariances are off by 2e-4 of themselves, in both directions.

    Where the first is off both laws are measured in the same wrong unit, and only the second's is seen to be.
    """
    right = np.linalg.eigh
    calls: list[int] = []

    def eigh(matrix: Array) -> tuple[Array, Array]:
        values, vectors = right(matrix)
        calls.append(len(calls))
        return values, vectors * (1 + 1e-4 * (calls[-1] == wrong))

    monkeypatch.setattr("numpy.linalg.eigh", eigh)
    found = _coordinates(SHIFT, FIRST, SECOND)
    assert found is not None
    assert found[2] == pytest.approx((2e-4 + 1e-8) * math.sqrt(3) * (1 + wrong), rel=1e-6)


def test_no_coordinates_where_rounding_is_too_much() -> None:
    assert _coordinates(np.zeros(1), np.array([[1.4e13]]), np.eye(1)) is not None
    assert _coordinates(np.zeros(1), np.array([[2.2e13]]), np.eye(1)) is None
    assert _coordinates(np.zeros(1), np.array([[2e-9]]), np.eye(1)) is not None
    assert _coordinates(np.zeros(1), np.array([[0.9e-9]]), np.eye(1)) is None
    for second in (np.diag([1.0, 0.0]), np.ones((2, 2))):
        assert _coordinates(np.zeros(2), np.eye(2), second) is None
        assert loss_law(np.zeros(2), np.eye(2), second).upper(0.3) == 1.0
    assert loss_law(np.array([1.0]), np.array([[1e9]]), np.eye(1)).upper(0.3) == 1.0


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_one_number_that_is_not_finite_is_an_error(which: int, bad: float) -> None:
    told = [np.array([1.0, 0.5]), np.eye(2), np.eye(2) * 2]
    told[which] = told[which].copy()
    told[which][(0,) * told[which].ndim] = bad
    with pytest.raises(UsageError, match="finite"):
        loss_law(*told)


# ---------------------------------------------------------------------------------------------------------------- the bound


def test_an_epsilon_from_0_to_600() -> None:
    law = LossLaw(2, np.array([0.2, 0.3, 0.5]), 0.25, 1, 0.0, 0.0)
    assert law.upper(600.0) == 1e-18
    assert law.upper(0.0) > 0.4
    for bad in (-1e-9, 600.1, math.nan, math.inf):
        with pytest.raises(UsageError, match="epsilon"):
            law.upper(bad)


def test_every_part_may_be_off_at_both_of_its_ends() -> None:
    """By 1e-10 each; and a mass that is convolved is rounded."""
    masses = np.array([0.2, 0.3, 0.4])
    for parts, epsilon in ((1, 0.55), (3, 0.0), (4, 0.3)):
        kept = sum(
            m * max(0.0, -math.expm1(epsilon - 2 * parts * 1e-10 - k / 4)) for k, m in zip((2, 3, 4), masses, strict=True)
        )
        wanted = kept * (1 + 1e-11) + 0.01 + 0.02 / 2 * (1 + math.exp(epsilon)) + 1e-18
        assert LossLaw(2, masses, 0.25, parts, 0.01, 0.02).upper(epsilon) == pytest.approx(wanted, rel=3e-14)


@pytest.mark.parametrize("epsilon", [0.0, 0.6, 2.0])
def test_wide_and_narrow_coordinates_together_are_the_integral(epsilon: float) -> None:
    """A product of normal laws in two directions, one wider and one narrower; the inner one by a distribution function."""
    (d, r), (e, s) = (0.9, 1.8), (0.5, 0.6)
    x = np.linspace(d - 9 * math.sqrt(r), d + 9 * math.sqrt(r), 1201)
    rest = epsilon - loss(x, d, r)
    kept, gone = (1 - mass_below(rest, e, s, *law) for law in ((e, s), (0.0, 1.0)))
    gain = norm.pdf(x, d, math.sqrt(r)) * kept - math.exp(epsilon) * norm.pdf(x) * gone
    total = float(gain.sum() * (x[1] - x[0]))
    found = vector_hockey_upper(np.array([d, e]), np.diag([r, s]), np.eye(2), epsilon)
    assert total * (1 - 1e-6) <= found <= total * (1 + 2e-3)


def test_the_first_law_s_cells_are_rounded_up_and_the_second_s_down(monkeypatch: pytest.MonkeyPatch) -> None:
    sides = []
    right = vector_loss._cells

    def cells(ends: list[Array], inside: bool, fuzz: list[Array], side: int) -> Array:
        sides.append((side, float(ends[1][0])))
        return right(ends, inside, fuzz, side)

    monkeypatch.setattr(vector_loss, "_cells", cells)
    _moved(0.8, 1.7, 0.25)
    (up, standard), (down, plain) = sides
    assert (up, down) == (1, -1)
    assert standard == pytest.approx((plain - 0.8) / math.sqrt(1.7))
