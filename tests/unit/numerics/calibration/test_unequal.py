"""Noise for laws of different variance: directly, and by equalising; every pair, both ways."""

from __future__ import annotations

import itertools
import math

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attrpriv.errors import UsageError
from attrpriv.numerics.calibration.gaussian import direct_noise, equalised_noise, gaussian_mu, unequal_noise
from attrpriv.numerics.divergences.gaussian import hockey_stick, unequal_delta
from attrpriv.numerics.laws.gaussian import GaussianLaw
from tests.unit.numerics.divergences.test_unequal import truth

MEANS = st.lists(st.floats(-3, 3).map(lambda x: round(x, 6)), min_size=2, max_size=5)


@st.composite
def families(draw: st.DrawFn) -> tuple[list[float], list[float]]:
    means = draw(MEANS)
    variances = draw(st.lists(st.sampled_from([0.25, 0.5, 1.0, 1.0001, 2.0, 7.5]), min_size=len(means), max_size=len(means)))
    return means, variances


def worst(means: list[float], variances: list[float], noise: float, epsilon: float) -> mpmath.mpf:
    """The largest H over all ordered pairs, in many digits."""
    laws = [GaussianLaw(m, v + noise) for m, v in zip(means, variances, strict=True)]
    found = mpmath.mpf(0)
    for a, b in itertools.permutations(laws, 2):
        if a.variance == b.variance:
            mu = abs(a.mean - b.mean) / math.sqrt(a.variance)
            exact = mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu) if mu else 0
        else:
            exact = truth(a, b, epsilon)
        found = max(found, exact)
    return found


def test_the_variance_alone_is_hidden() -> None:
    """N(0, 4) against N(0, 1): seen although the means are equal."""
    found = unequal_noise([0.0, 0.0], [4.0, 1.0], 1.0, 1e-5)
    assert found.direct.variance == pytest.approx(20.7186, abs=1e-3)
    assert found.direct.pair == (0, 1)
    assert found.equalised == equalised_noise([0.0, 0.0], [4.0, 1.0], 1.0, 1e-5)
    assert (found.equalised.variance, found.equalised.extra, found.equalised.target) == (3.0, 0.0, 4.0)
    assert found.smaller == "equalised"


def test_the_mutant_that_subtracts_the_smaller_variance() -> None:
    """(gap/mu*)^2 - vmin is right for equal variances only: here it asks for nothing, and shows 0.2."""
    mu = gaussian_mu(1.0, 1e-5)
    means, variances = [0.0, 0.01], [4.0, 1.0]
    assert max(0.0, (0.01 / mu) ** 2 - min(variances)) == 0.0
    assert hockey_stick(GaussianLaw(0.0, 4.0), GaussianLaw(0.01, 1.0), 1.0) > 0.19
    assert direct_noise(means, variances, 1.0, 1e-5).variance > 20


def test_the_mutant_that_checks_one_direction() -> None:
    """Narrow over wide is private without any noise; wide over narrow is not."""
    assert unequal_delta(GaussianLaw(0.0, 1.0), GaussianLaw(0.0, 4.0), 1.0) == 0.0
    assert direct_noise([0.0, 0.0], [1.0, 4.0], 1.0, 1e-5).variance == pytest.approx(20.7186, abs=1e-3)


def test_equal_variances_are_algorithm_1() -> None:
    found = unequal_noise([0.0, 1.0], [1.0, 1.0], 1.0, 1e-5)
    wanted = (1 / gaussian_mu(1.0, 1e-5)) ** 2 - 1
    assert found.direct.variance == pytest.approx(wanted, rel=1e-9)
    assert found.equalised.variance == pytest.approx(wanted, rel=1e-9)


@given(family=families(), epsilon=st.sampled_from([0.1, 1.0, 4.0]), delta=st.sampled_from([1e-9, 1e-5, 1e-2]))
@settings(max_examples=60)
def test_direct_noise_is_private_and_least(family: tuple[list[float], list[float]], epsilon: float, delta: float) -> None:
    means, variances = family
    found = direct_noise(means, variances, epsilon, delta)
    assert worst(means, variances, found.variance, epsilon) <= found.upper <= delta
    if found.variance > 0:
        assert worst(means, variances, found.variance * (1 - 1e-7), epsilon) > delta * (1 - 1e-9)


@given(family=families(), epsilon=st.sampled_from([0.1, 1.0]), delta=st.sampled_from([1e-9, 1e-3]))
@settings(max_examples=60)
def test_equalised_outputs_are_private(family: tuple[list[float], list[float]], epsilon: float, delta: float) -> None:
    means, variances = family
    found = equalised_noise(means, variances, epsilon, delta)
    outputs = [v + found.noise_for(v) for v in variances]
    assert outputs == pytest.approx([found.target] * len(outputs), rel=1e-15)
    assert found.variance == max(found.noise_for(v) for v in variances)
    assert found.extra >= 0
    assert worst(means, [found.target] * len(means), 0.0, epsilon) <= found.upper <= delta


@given(family=families())
@settings(max_examples=40)
def test_the_smaller_one_is_named(family: tuple[list[float], list[float]]) -> None:
    found = unequal_noise(*family, 1.0, 1e-5)
    assert (found.smaller == "direct") == (found.direct.variance <= found.equalised.variance)


def test_only_the_pairs_asked_for() -> None:
    means, variances = [0.0, 1.0, 9.0], [1.0, 1.0, 2.0]
    near = direct_noise(means, variances, 1.0, 1e-5, pairs=[(0, 1)])
    assert near.variance == pytest.approx((1 / gaussian_mu(1.0, 1e-5)) ** 2 - 1, rel=1e-9)
    assert direct_noise(means, variances, 1.0, 1e-5).pair == (0, 2)
    # An equalised output must look the same for a law that no pair names: its owner may be the one who releases.
    assert equalised_noise(means, variances, 1.0, 1e-5, pairs=[(0, 1)]).target >= 2.0


def test_a_law_without_spread() -> None:
    found = unequal_noise([0.0, 1.0], [0.0, 0.0], 1.0, 1e-5)
    assert found.direct.variance == pytest.approx((1 / gaussian_mu(1.0, 1e-5)) ** 2, rel=1e-9)
    assert unequal_noise([2.0, 2.0], [0.0, 0.0], 1.0, 1e-5).direct.variance == 0.0
    assert unequal_noise([2.0, 2.0], [0.0, 1.0], 1.0, 1e-5).direct.variance > 0


def test_noise_for_a_foreign_variance_is_refused() -> None:
    with pytest.raises(UsageError, match="variance: must be from 0 to"):
        equalised_noise([0.0, 0.0], [4.0, 1.0], 1.0, 1e-5).noise_for(5.0)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_bad_numbers_are_refused(bad: float) -> None:
    with pytest.raises(UsageError, match="needs finite means and variances"):
        unequal_noise([0.0, bad], [1.0, 1.0], 1.0, 1e-5)
    with pytest.raises(UsageError, match="needs finite means and variances"):
        unequal_noise([0.0, 0.0], [1.0, bad], 1.0, 1e-5)
    with pytest.raises(UsageError, match="epsilon: must be finite"):
        unequal_noise([0.0, 0.0], [1.0, 2.0], bad, 1e-5)
    with pytest.raises(UsageError, match="delta: "):
        unequal_noise([0.0, 0.0], [1.0, 2.0], 1.0, bad)


@pytest.mark.parametrize(
    ("means", "variances", "pairs", "message"),
    [
        ([0.0], [1.0], None, "two or more"),
        ([0.0, 1.0], [1.0], None, "two or more"),
        ([0.0, 1.0], [1.0, -1.0], None, "variances at least 0"),
        ([0.0, 1.0], [1.0, 1.0], [], "at least one pair"),
        ([0.0, 1.0], [1.0, 1.0], [(0, 0)], "two different laws"),
        ([0.0, 1.0], [1.0, 1.0], [(0, 2)], "two different laws"),
    ],
)
def test_bad_families_are_refused(
    means: list[float], variances: list[float], pairs: list[tuple[int, int]] | None, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        unequal_noise(means, variances, 1.0, 1e-5, pairs)
