"""What a plan draws has the law that its certificate counts on; the same tests reject a tenth less noise.

Each test function returns a p-value. A sample is rejected where one is below `ALARM`; with at most four of them to a sample,
the false-alarm rate of a test is at most 4e-7. How often the mutant would be missed is computed in `test_power`, not guessed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2, gamma, kstest, laplace, ncx2, norm

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan
from attrpriv.noise import add_gaussian, add_laplace, granularity
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query

Vector = NDArray[np.float64]

ALARM = 1e-7
MANY, FEW, MUTANT = 100_000, 20_000, 6_000
BINS = 64
STATISTIC = 151.3718


def problem(kind: str = "avg") -> Problem:
    """The school: weight given income, noise well above the mask."""
    return Problem(
        queries=(Query("sum" if kind == "sum" else "avg", "weight"),),
        secrets=(Secret("mean(income)", between=(20_000.0, 200_000.0), within=1_000.0),),
        epsilon=1.0,
        delta=1e-6,
        n=10_000,
        theta=(
            Gaussian(
                sd={"weight": 25.0, "income": 30_000.0},
                correlation={("weight", "income"): 0.3},
                tolerance={"mean": 0.01, "sd": 0.02, "slope": 0.05},
            ),
        ),
        bounds={"weight": (60.0, 400.0)},
        resolution={"weight": 1.0},
    )


# -------------------------------------------------------------------------------------------------------------- the tests


def two_sided(tail: float) -> float:
    return 2 * min(tail, 1 - tail)


def variance_test(errors: Vector) -> float:
    """Sum of squares of standard normals: chi-square, exactly."""
    return two_sided(float(chi2.cdf((errors**2).sum(), len(errors))))


def mean_test(errors: Vector) -> float:
    return two_sided(float(norm.cdf(errors.mean() * math.sqrt(len(errors)))))


def bins_test(errors: Vector, quantile: Callable[[Vector], Vector] = norm.ppf) -> float:
    """Chi-square over equally likely bins."""
    edges = quantile(np.linspace(0, 1, BINS + 1)[1:-1])
    observed = np.bincount(np.searchsorted(edges, errors), minlength=BINS)
    expected = len(errors) / BINS
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), BINS - 1))


def kolmogorov_test(errors: Vector, law: Any = norm.cdf) -> float:
    return float(kstest(errors, law, method="asymp").pvalue)


def size_test(errors: Vector) -> float:
    """Sum of absolute values of standard Laplace draws: a Gamma law, exactly."""
    return two_sided(float(gamma.cdf(np.abs(errors).sum(), len(errors))))


def normal_p_values(errors: Vector) -> list[float]:
    return [variance_test(errors), mean_test(errors), bins_test(errors), kolmogorov_test(errors)]


def laplace_p_values(errors: Vector) -> list[float]:
    return [size_test(errors), bins_test(errors, laplace.ppf), kolmogorov_test(errors, laplace.cdf)]


def draws(found: Plan, count: int, statistic: float = STATISTIC) -> Vector:
    return np.array([found.randomise(statistic) for _ in range(count)])


# ------------------------------------------------------------------------------------------------------- what is released


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_draws_have_the_certified_law(count: int) -> None:
    """`plan.randomise`, Gaussian: variance, mean, 64 bins and Kolmogorov-Smirnov against N(statistic, scale^2)."""
    found = plan(problem(), "gaussian")
    answers = draws(found, count)
    step = granularity(found.noise.scale)
    assert (np.mod(answers, step) == 0).all()
    assert len(set(answers.tolist())) > 0.999 * count
    assert min(normal_p_values((answers - STATISTIC) / found.noise.scale)) > ALARM


@pytest.mark.slow
def test_a_sum_has_n_times_the_noise_of_its_average() -> None:
    found = plan(problem("sum"), "gaussian")
    assert found.noise.scale == pytest.approx(10_000 * plan(problem(), "gaussian").noise.scale, rel=1e-12)
    answers = draws(found, 5_000, 1.5e6)
    assert min(normal_p_values((answers - 1.5e6) / found.noise.scale)) > ALARM


@pytest.mark.slow
def test_group_dp_draws_have_the_laplace_law() -> None:
    found = plan(problem(), "group_dp")
    errors = (draws(found, FEW) - STATISTIC) / found.noise.scale
    assert min(laplace_p_values(errors)) > ALARM


def test_two_draws_differ() -> None:
    """Randomness comes from the operating system: no draw repeats, and no generator can be seeded to make it."""
    found = plan(problem(), "gaussian")
    np.random.seed(0)  # the point is that it does nothing
    first = draws(found, 20)
    np.random.seed(0)
    assert not set(first.tolist()) & set(draws(found, 20).tolist())


# --------------------------------------------------------------------------------------------------------------- the mutant


def test_a_tenth_less_noise_is_rejected() -> None:
    """Drawn by the same exact sampler at nine tenths of the scale: 6,000 draws are enough."""
    found = plan(problem(), "gaussian")
    value, scale = Fraction(STATISTIC), found.noise.scale
    errors = np.array([float(add_gaussian(value, 0.9 * scale) - value) for _ in range(MUTANT)]) / scale
    assert variance_test(errors) < ALARM
    assert min(normal_p_values(errors)) < ALARM


def test_a_fifth_less_laplace_noise_is_rejected() -> None:
    found = plan(problem(), "group_dp")
    value, scale = Fraction(STATISTIC), found.noise.scale
    errors = np.array([float(add_laplace(value, 0.8 * scale) - value) for _ in range(MUTANT)]) / scale
    assert size_test(errors) < ALARM
    assert min(laplace_p_values(errors)) < ALARM


def test_a_shift_by_a_twentieth_of_the_noise_is_rejected() -> None:
    """The mean test alone finds it in 100,000 draws; here by arithmetic on the released law, shifted."""
    rng = np.random.default_rng(3)
    assert mean_test(rng.normal(0.05, 1, size=MANY)) < ALARM
    assert mean_test(rng.normal(0.0, 1, size=MANY)) > ALARM


def test_power() -> None:
    """How often a mutant would pass, from the laws of the tests' statistics.

    A tenth less Gaussian noise: below 1e-6 of samples of 6,000 by the variance, 1e-100 of samples of 100,000; there also 1e-100
    by the bins and 1e-20 by Kolmogorov-Smirnov. Laplace noise: a fifth less below 1e-20 of 6,000, a tenth less below 1e-15 of
    20,000.
    """
    assert missed(chi2, 0.81, MUTANT) < 1e-6
    assert missed(chi2, 0.81, MANY) < 1e-100
    edges = norm.ppf(np.linspace(0, 1, BINS + 1))
    shares = np.diff(norm.cdf(edges / 0.9))
    noncentrality = MANY * float(((shares - 1 / BINS) ** 2 * BINS).sum())
    assert float(ncx2.cdf(chi2.isf(ALARM, BINS - 1), BINS - 1, noncentrality)) < 1e-100
    # The empirical distribution function at the place where both laws differ most is a binomial share.
    z = np.linspace(0, 3, 3001)
    gap = float((norm.cdf(z / 0.9) - norm.cdf(z)).max())
    allowed = math.sqrt(math.log(2 / ALARM) / 2 / MANY)
    assert float(norm.cdf(-(gap - allowed) * math.sqrt(MANY) / 0.5)) < 1e-20
    assert missed(gamma, 0.8, MUTANT) < 1e-20
    assert missed(gamma, 0.9, FEW) < 1e-15


def missed(law: Any, ratio: float, count: int) -> float:
    """P(a statistic of this law, times the ratio, lies where the two-sided test accepts)."""
    low, high = law.ppf(ALARM / 2, count), law.isf(ALARM / 2, count)
    return float(law.sf(low / ratio, count) - law.sf(high / ratio, count))
