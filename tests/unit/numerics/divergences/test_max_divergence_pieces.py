"""The distance of a density from a Gaussian law, piece by piece: the rule, what is refused, the search, what is charged."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import ndtr

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences.gaussian import hockey_stick
from attrpriv.numerics.divergences.max_divergence import (
    _edges,
    _least,
    _Sampled,
    _values,
    approximate_max_divergence,
    corrected_guarantee,
)
from attrpriv.numerics.laws.gaussian import GaussianLaw

LAW = GaussianLaw(1.5, 0.49)


def normal(mean: float, variance: float, scale: float = 1.0) -> Callable[[float], float]:
    return lambda x: scale * math.exp(-((x - mean) ** 2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)


def sampled(density: Callable[[float], float], parts: int = 1) -> _Sampled:
    return _Sampled.of(density, LAW, _edges((0.2, 4.0), ()), False, parts)


@pytest.mark.parametrize("parts", [1, 2])
def test_a_rule_knows_both_densities_and_what_is_outside(parts: int) -> None:
    found = sampled(normal(1.7, 0.81), parts)
    assert len(found.p) == 1024 * 16 * parts
    assert found.weights.sum() == pytest.approx(3.8, rel=1e-13)
    assert found.mass == pytest.approx(float(ndtr((4.0 - 1.7) / 0.9) - ndtr((0.2 - 1.7) / 0.9)), rel=1e-13)
    outside = float(ndtr((0.2 - 1.5) / 0.7) + ndtr(-(4.0 - 1.5) / 0.7))
    assert found.outside == pytest.approx(outside, rel=1e-13)
    assert float(found.q @ found.weights) == pytest.approx(1 - outside, rel=1e-13)
    # The mean over the support of each: nodes and values belong together.
    assert float((found.p * found.q) @ found.weights) == pytest.approx(product(1.7, 0.81, 1.5, 0.49, 0.2, 4.0), rel=1e-12)


def product(m: float, v: float, other: float, w: float, low: float, high: float) -> float:
    """The integral of the product of two normal densities: another one, of their precision-weighted mean."""
    variance = v * w / (v + w)
    mean = (m * w + other * v) / (v + w)
    share = ndtr((high - mean) / math.sqrt(variance)) - ndtr((low - mean) / math.sqrt(variance))
    return math.exp(-((m - other) ** 2) / (2 * (v + w))) / math.sqrt(2 * math.pi * (v + w)) * float(share)


@pytest.mark.parametrize("lambda_", [0.0, 0.3, 1.1])
def test_both_ways_of_a_distance(lambda_: float) -> None:
    """On a support that holds all: the closed forms, of which the second law's has what is outside on top."""
    found = _Sampled.of(normal(1.7, 0.81), LAW, _edges((-9.0, 11.0), ()), False, 1)
    other = GaussianLaw(1.7, 0.81)
    assert found.both(lambda_)[0] == pytest.approx(hockey_stick(other, LAW, lambda_), rel=1e-5)
    assert found.both(lambda_)[1] == pytest.approx(hockey_stick(LAW, other, lambda_), rel=1e-5, abs=1e-12)
    cut = sampled(normal(1.7, 0.81))
    inside = float(np.maximum(0.0, cut.q - math.exp(lambda_) * cut.p) @ cut.weights)
    assert cut.both(lambda_)[1] == pytest.approx(inside + cut.outside, rel=1e-12)
    assert cut.outside > 0.03


def test_what_a_density_may_be() -> None:
    points = np.array([0.5, 1.0, 2.0])
    assert _values(lambda x: x * x, points, False).tolist() == [0.25, 1.0, 4.0]
    assert _values(lambda x: 0.0, points, False).tolist() == [0.0, 0.0, 0.0]
    assert _values(math.log, points, True) == pytest.approx(points)
    assert _values(lambda x: -math.inf if x < 1 else -2.0, points, True) == pytest.approx([0.0, math.exp(-2), math.exp(-2)])
    for bad, log in ((math.nan, False), (math.inf, False), (-1e-300, False), (math.nan, True), (math.inf, True)):
        with pytest.raises(UsageError, match="density"):
            _values(lambda x, bad=bad: bad if x == 1.0 else 0.5, points, log)  # type: ignore[misc]


def test_panels_end_at_kinks() -> None:
    edges = _edges((-1.0, 3.0), (0.0001, -1.0, 3.0, 2.5))
    assert len(edges) == 1024 + 1 + 1  # two of them are ends, and 2.5 is an edge already
    assert (edges[0], edges[-1]) == (-1.0, 3.0)
    assert {0.0001, 2.5} <= set(edges.tolist())
    assert (np.diff(edges) > 0).all()
    for support in ((1.0, 1.0), (2.0, 1.0), (-math.inf, 1.0), (0.0, math.inf), (math.nan, 1.0), (0.0, math.nan)):
        with pytest.raises(UsageError, match="support"):
            _edges(support, ())
    for kinks in ((0.5, 3.1), (-1.1, 0.5)):
        with pytest.raises(UsageError, match="kinks"):
            _edges((-1.0, 3.0), kinks)


def test_the_least_lambda_from_above() -> None:
    assert _least(lambda x: True) == 0.0
    for least in (1e-9, 3e-6, 0.7, 123.4, 500.0):
        found = _least(lambda x, least=least: x >= least)  # type: ignore[misc]
        assert found is not None
        assert least <= found <= least * (1 + 2e-9)
    # Doubling from 1e-6 the next one above 536.9 would be above 600.
    assert _least(lambda x: x >= 540.0) is None
    assert _least(lambda x: False) is None


def test_a_mass_that_is_not_one_is_charged_or_refused() -> None:
    """5e-4 too little: the distance is that of the density as it is, with 5e-4 on top of both of its sides."""
    law = GaussianLaw(0.0, 1.0)
    scale, eta = 1 - 5e-4, 0.01
    found = approximate_max_divergence(normal(0.3, 1.0, scale), law, eta, support=(-12.0, 12.0))
    shifted = GaussianLaw(0.3, 1.0)
    there = scale * hockey_stick(shifted, law, found.lambda_ - math.log(scale))
    back = hockey_stick(law, shifted, found.lambda_ + math.log(scale))
    assert found.error == pytest.approx(5e-4, rel=1e-3)
    assert found.mass == pytest.approx(scale, rel=1e-12)
    assert found.density_over_gaussian == pytest.approx(there, rel=1e-4)
    assert found.gaussian_over_density == pytest.approx(back, rel=1e-4)
    assert max(there, back) + 5e-4 == pytest.approx(eta, rel=1e-4)
    assert found.eta == eta
    assert approximate_max_divergence(normal(0.3, 1.0, 1 + 9e-4), law, eta, support=(-12.0, 12.0)).error > 9e-4
    for wrong in (1 + 1.1e-3, 1 - 1.1e-3):
        with pytest.raises(UsageError, match="mass 1"):
            approximate_max_divergence(normal(0.3, 1.0, wrong), law, eta, support=(-12.0, 12.0))


@pytest.mark.parametrize("middle", [0.41234, 0.2781])
def test_what_two_grids_differ_by_is_the_error(middle: float) -> None:
    """A density with jumps that nobody named: both of its masses, and both distances at the lambda that was found."""
    law, support = GaussianLaw(0.0, 1.0), (-9.0, 9.0)

    def density(x: float) -> float:
        return (
            1.02 * normal(0.0, 1.0)(x)
            if x < middle
            else normal(0.0, 1.0)(x) * (1 - 1.02 * float(ndtr(middle))) / float(ndtr(-middle))
        )

    found = approximate_max_divergence(density, law, 6e-3, support=support)
    coarse, fine = (_Sampled.of(density, law, _edges(support, ()), False, parts) for parts in (1, 2))
    forward, backward = fine.both(found.lambda_)
    first, second = coarse.both(found.lambda_)
    error = max(abs(fine.mass - coarse.mass), abs(fine.mass - 1)) + 1e-13
    off = max(abs(forward - first), abs(backward - second))
    assert found.error == pytest.approx(error + off, rel=1e-9)
    assert error > 1e-8
    assert off > 1e-8
    assert max(forward, backward) + found.error <= 6e-3
    if found.lambda_ > 0:
        less = found.lambda_ * (1 - 1e-6)
        sides = fine.both(less), coarse.both(less)
        assert max(sides[0]) + error + max(abs(a - b) for a, b in zip(*sides, strict=True)) > 6e-3


def test_an_eta_from_0_to_1() -> None:
    law = GaussianLaw(0.0, 1.0)
    for bad in (-1e-9, 1.0, math.nan):
        with pytest.raises(UsageError, match="eta"):
            approximate_max_divergence(normal(0.0, 1.0), law, bad, support=(-12.0, 12.0))
    assert approximate_max_divergence(normal(0.0, 1.0), law, 0.999, support=(-12.0, 12.0)).lambda_ == 0.0


def test_a_correction_in_all_its_terms() -> None:
    """By hand: e^0.3 0.02 + 0.004 (1 + e^1), at 0.7 + 0.6."""
    found = corrected_guarantee(0.7, 0.02, 0.3, 0.004)
    wanted = 0.02 * 1.3498588075760032 + 0.004 * 3.718281828459045
    assert 1.3 <= found[0] <= 1.3 * (1 + 1e-13)
    assert wanted <= found[1] <= wanted * (1 + 1e-13)
    assert corrected_guarantee(0.7, 0.02, 0.0, 0.004)[0] == 0.7
    assert corrected_guarantee(0.0, 0.0, 0.0, 0.0) == (0.0, 0.0)
    assert corrected_guarantee(600.0, 0.5, 0.0, 0.0)[1] == pytest.approx(0.5)
    assert corrected_guarantee(0.0, 0.0, 300.0, 0.0)[0] == pytest.approx(600.0)
    assert corrected_guarantee(1.0, 0.9, 0.5, 0.1)[1] == 1.0
    for epsilon, lambda_ in ((600.1, 0.0), (0.0, 300.1), (300.0, 150.1)):
        with pytest.raises(UsageError, match="at most 600"):
            corrected_guarantee(epsilon, 0.0, lambda_, 0.0)
    for k in range(4):
        for bad in (-1e-300, math.nan, math.inf):
            told = [1.0, 1e-3, 0.1, 0.01]
            told[k] = bad
            with pytest.raises(UsageError, match="finite and at least 0"):
                corrected_guarantee(*told)
