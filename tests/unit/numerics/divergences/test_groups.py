"""Averages of groups: the lemma's set by a grid of pairs of normal laws, and what equalising adds for rounding."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from attrpriv.errors import RefusedError, UsageError
from attrpriv.numerics.divergences.groups import (
    EQUALISED_ETA,
    clamped_gap,
    clamped_group_delta_upper,
    group_delta_upper,
    pair_upper,
)
from attrpriv.numerics.laws.groups import GroupCase

CASE = GroupCase(n=100, low=25, high=40, apart=15, members=((36.0, 11.0), (37.0, 9.0)), rest=((42.0, 3.0),))


def divergence(gap: float, one: float, other: float, epsilon: float) -> float:
    """H of N(0, one) against N(gap, other), by integration."""
    wide = 12 * math.sqrt(max(one, other)) + gap
    xs = np.linspace(-wide, wide, 200_001)
    left = np.exp(-(xs**2) / (2 * one)) / math.sqrt(2 * math.pi * one)
    right = np.exp(-((xs - gap) ** 2) / (2 * other)) / math.sqrt(2 * math.pi * other)
    return float(np.maximum(left - math.exp(epsilon) * right, 0).sum() * (xs[1] - xs[0]))


@pytest.mark.parametrize("spread", [(0.0, 0.3), (0.2, 0.5), (0.4, 0.4)])
@pytest.mark.parametrize("epsilon", [0.1, 0.7])
def test_no_pair_of_the_set_is_further(spread: tuple[float, float], epsilon: float) -> None:
    gap, least = 0.6, 1.5
    worst = 0.0
    for share, more, at in itertools.product((0.5, 1.0), (0.0, 0.5), np.linspace(*spread, 5)):
        small, large = least + more, least + more + float(at)
        worst = max(worst, divergence(share * gap, small, large, epsilon), divergence(share * gap, large, small, epsilon))
    assert pair_upper(gap, least, spread, epsilon) == pytest.approx(worst, rel=1e-5)
    assert pair_upper(gap, least, spread, epsilon) >= worst * (1 - 1e-7)


def test_a_variance_must_be_positive() -> None:
    for least in (0.0, -1.0, math.nan):
        with pytest.raises(UsageError):
            pair_upper(0.1, least, (0.0, 0.1), 1.0)
    for noise in (-1e-9, math.nan, math.inf):
        with pytest.raises(UsageError):
            group_delta_upper(CASE, noise, 1.0)
        with pytest.raises(UsageError):
            clamped_group_delta_upper(CASE, 1.0, noise, 1.0, "direct")
    for reach in (-1e-9, math.nan):
        with pytest.raises(UsageError):
            clamped_group_delta_upper(CASE, reach, 1.0, 1.0, "direct")
    for wrong in ("other", ""):
        with pytest.raises(UsageError):
            group_delta_upper(CASE, 1.0, 1.0, wrong)  # type: ignore[arg-type]
        with pytest.raises(UsageError):
            clamped_group_delta_upper(CASE, 1.0, 1.0, 1.0, wrong)  # type: ignore[arg-type]


def test_equalising_pays_for_its_rounding() -> None:
    """1e-14 (1 + e^eps), which is all that is left where there is much noise."""
    for epsilon in (3.0, 20.0):
        wanted = (1 + math.exp(epsilon)) * EQUALISED_ETA
        assert group_delta_upper(CASE, 1e12, epsilon, "equalised") == pytest.approx(wanted, rel=1e-6, abs=0)
        assert clamped_group_delta_upper(CASE, 0.0, 1e12, epsilon, "equalised") == pytest.approx(wanted, rel=1e-6, abs=0)
    assert EQUALISED_ETA == 1e-14
    assert group_delta_upper(CASE, 1.0, 40.0, "equalised") == 1.0
    with pytest.raises(RefusedError, match="equalising needs"):
        group_delta_upper(replace(CASE, sd_tolerance=0.01), 1.0, 1.0, "equalised")


@pytest.mark.parametrize("form", ["direct", "equalised"])
@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_a_case_is_the_lemma_at_its_own_numbers(form: str, noise: float) -> None:
    told = replace(CASE, known=1, mean_tolerance=0.02)
    least = told.least_variance if form == "direct" else told.equal_variance
    spread = told.spread if form == "direct" else (0.0, told.equal_spread)
    wanted = max(divergence(told.gap, least + noise, least + noise + end, 0.3) for end in spread)
    other = max(divergence(told.gap, least + noise + end, least + noise, 0.3) for end in spread)
    assert group_delta_upper(told, noise, 0.3, form) == pytest.approx(max(wanted, other), rel=1e-5)  # type: ignore[arg-type]


def test_what_a_clamp_leaves_of_the_distance() -> None:
    told = replace(CASE, known=2, mean_tolerance=0.02)
    far = 6.0 * 15 / 100
    amiss, untold = 6.0 * 2 / 100, 0.02 * (11.0 + 3.0) * 15 / 100
    assert told.told == pytest.approx(far)
    assert told.untold == pytest.approx(untold)
    for reach in (0.0, 0.1, 0.44, 0.46, 9.0):
        assert clamped_gap(told, reach) == pytest.approx(min(2 * reach, far) + amiss + untold)
        assert clamped_gap(told, reach, 0.5) == pytest.approx(min(2 * reach, far) + amiss + untold + 0.5 * far)
    assert clamped_gap(told, math.inf) == pytest.approx(told.gap)
    assert clamped_gap(told, math.inf, 0.5) == pytest.approx(told.gap + 0.5 * far)
    assert told.gap == pytest.approx(max(6.0 + 0.02 * 14.0, 5.0 + 0.02 * 12.0) * 15 / 100)


def test_a_clamp_shrinks_the_least_difference_of_variances() -> None:
    """To its share of the distance; to nothing where rows are known."""
    direct = replace(CASE, members=((36.0, 11.0),))
    low, high = direct.spread
    assert low == pytest.approx(high)
    share = 2 * 0.2 / direct.told
    for epsilon in (0.05, 0.3):
        wanted = max(
            divergence(0.4, *pair, epsilon)
            for end in (low * share, high)
            for pair in (
                (direct.least_variance + 0.5, direct.least_variance + 0.5 + end),
                (direct.least_variance + 0.5 + end, direct.least_variance + 0.5),
            )
        )
        assert clamped_group_delta_upper(direct, 0.2, 0.5, epsilon, "direct") == pytest.approx(wanted, rel=1e-5)
    whole = clamped_group_delta_upper(direct, math.inf, 0.5, 0.3, "direct")
    assert whole == pytest.approx(group_delta_upper(direct, 0.5, 0.3), rel=1e-11)
