"""What a quantile clip draws has the law that its certificate reasons about, and its digits say nothing.

`ALARM` is the false-alarm rate of each test. The exact law of an answer is that of N(t, 1) kept between two bounds, written
here once more from its definition; `tests.property.quantile_twin` ties that to the map itself.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import binomtest, chi2, kstest

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.quantile_clip import plan as quantile_clip
from attrpriv.methods.quantile_clip.draw import clip_cell
from attrpriv.methods.quantile_clip.proof import QuantileClipEvidence
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query

Array = NDArray[np.float64]
ALARM = 1e-7
N = 10_000
SLOPE = 0.3 * 25 / 30_000


def planned(epsilon: float = 1.0, resolution: float = 1.0) -> tuple[Plan, QuantileClipEvidence]:
    gaussian = Gaussian(
        mean={"weight": 150.0, "income": 60_000.0},
        sd={"weight": 25.0, "income": 30_000.0},
        correlation={("weight", "income"): 0.3},
        tolerance=0,
    )
    found = quantile_clip.plan(
        Problem(
            queries=(Query("avg", "weight"),),
            secrets=(Secret("mean(income)", between=(20_000.0, 200_000.0)),),
            epsilon=epsilon,
            n=N,
            theta=(gaussian,),
            resolution={"weight": resolution, "income": 1.0},
        )
    )
    assert isinstance(found.certificate.evidence, QuantileClipEvidence)
    return found, found.certificate.evidence


def law(y: Array, t: float, e1: float, e2: float) -> Array:
    """The distribution function of the clipped value."""
    least = np.maximum(math.exp(-e1) * ndtr(y), 1 - math.exp(e2) * ndtr(-y))
    most = np.minimum(math.exp(e2) * ndtr(y), 1 - math.exp(-e1) * ndtr(-y))
    return np.minimum(most, np.maximum(least, ndtr(y - t)))


# --------------------------------------------------------------------------------------------------- the law of an answer


def drawn(income: float, seed: int, draws: int = 500) -> tuple[Array, float, QuantileClipEvidence]:
    """Answers for tables with this average income, in standard deviations around the centre."""
    found, evidence = planned()
    rng = np.random.default_rng(seed)
    mean, sd = 150 + SLOPE * (income - 60_000), math.sqrt(float(evidence.residual) / N)
    root = math.sqrt(evidence.variance)
    averages = [Fraction(round(weight * N), N) for weight in rng.normal(mean, sd, draws)]  # whole pounds
    answers = np.array([found.answers([average, Fraction(income)])[0] for average in averages])
    return (answers - 150) / root, SLOPE * (income - 60_000) / root, evidence


def fits(answers: Array, t: float, e1: float, e2: float) -> bool:
    """Where an answer has the law, its distribution function is uniform."""
    return float(kstest(law(answers, t, e1, e2), "uniform").pvalue) > ALARM


@pytest.mark.parametrize("income", [20_000.0, 60_100.0])
def test_answers_have_the_exact_law(income: float) -> None:
    answers, t, evidence = drawn(income, 5)
    assert fits(answers, t, evidence.below, evidence.above)


def test_a_law_without_the_lower_bound_is_rejected() -> None:
    """So the test above can fail: at 20,000 the answers would be at -42 standard deviations."""
    answers, t, evidence = drawn(20_000.0, 5)
    assert not fits(answers, t, evidence.below, 50.0)


def test_errors_are_as_predicted() -> None:
    """Within 2%: 200,000 tables, the map in floats; the standard error of the mean square is about half a percent."""
    for epsilon in (0.5, 1.0, 2.0):
        found, evidence = planned(epsilon, 0.001)
        rng = np.random.default_rng(7)
        root, told = math.sqrt(evidence.variance), math.sqrt(float(evidence.explained) / N)
        z, t = rng.normal(size=200_000), rng.normal(size=200_000) * told / root
        off = root * (evidence.clip.moved(z + t, z) - z - t)
        assert math.sqrt(np.mean(off**2)) == pytest.approx(found.error.rmse, rel=0.02)
        assert np.mean(np.abs(off)) == pytest.approx(found.error.mean_absolute, rel=0.02)


def cells_of(evidence: QuantileClipEvidence, income: float, tables: int, seed: int) -> NDArray[np.int64]:
    """The cells that the product decides on, for this many tables given by their sufficient statistics."""
    rng = np.random.default_rng(seed)
    grid, variance = evidence.grid, evidence.variance
    told = evidence.slopes[0] * (Fraction(income) - 60_000)
    rest = rng.normal(0.0, math.sqrt(variance), tables)
    return np.array([clip_cell(evidence.clip, grid, variance, Fraction(r) + told, Fraction(r)) for r in rest.tolist()])


def chi_squared(cells: NDArray[np.int64], evidence: QuantileClipEvidence, t: float, e1: float, e2: float) -> float:
    """The p-value of the counts in 24 bins of equal probability under N(0, 1), against the exact law."""
    step = evidence.grid.step / math.sqrt(evidence.variance)
    edges = np.round(ndtri(np.arange(1, 24) / 24) / step) + 0.5
    counts = np.histogram(cells, np.concatenate([[-np.inf], edges, [np.inf]]))[0]
    masses = np.diff(np.concatenate([[0.0], law(edges * step, t, e1, e2), [1.0]]))
    expected = len(cells) * np.maximum(masses, 1e-12)
    return float(chi2.sf(((counts - expected) ** 2 / expected).sum(), 23))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1.0])
def test_200_000_tables_for_each_secret_of_a_pair(epsilon: float) -> None:
    """Two-sided: the counts fit the certified law, do not fit a mutant's, and no set of bins loses more than epsilon.

    Power: a bound off by 1% moves some bin by 1% of 8,000, and 200,000 tables see 7%; twice the bound moves it by 65%.
    """
    _, evidence = planned(epsilon, 50.0 / 4)
    counts = {}
    for seed, income in enumerate((20_000.0, 200_000.0)):
        t = SLOPE * (income - 60_000) / math.sqrt(evidence.variance)
        cells = cells_of(evidence, income, 200_000, seed)
        assert chi_squared(cells, evidence, t, evidence.below, evidence.above) > ALARM
        for e1, e2 in ((2 * evidence.below, 2 * evidence.above), (evidence.below, 50.0), (50.0, evidence.above)):
            assert chi_squared(cells, evidence, t, e1, e2) < ALARM
        counts[income] = np.bincount(np.digitize(cells, np.linspace(-3, 3, 25) / evidence.grid.step * 0.2385), minlength=26)
    for a, b in itertools.permutations(counts.values()):
        # The count on any union of bins is binomial; 2^26 unions, each within 7 standard deviations.
        keep = a > math.exp(epsilon) * b
        excess = a[keep].sum() - math.exp(epsilon) * b[keep].sum()
        assert excess <= 7 * math.sqrt(a[keep].sum() + math.exp(2 * epsilon) * b[keep].sum() + 1)


# ------------------------------------------------------------------------------------------------------------- digits

# Far above the mean every answer is C+(z), whatever the income is: only the digits of z are left to tell. Two incomes for which
# the lattices of whole pounds, seen from m(income), are half a step apart.
EPSILON = 8.0
LOW = 150_000
HIGH = LOW + round(0.5 / N / SLOPE * 10_000) / 10_000
TRIALS = 1_500


def seen_from(income: float) -> float:
    """Where the lattice lies, in steps, seen from the mean that goes with this income."""
    return N * (150 + SLOPE * (income - 60_000)) % 1


def test_the_lattices_are_half_a_step_apart() -> None:
    assert abs((seen_from(HIGH) - seen_from(LOW)) % 1 - 0.5) < 0.01


def after(z: Array, income: float, evidence: QuantileClipEvidence, rng: np.random.Generator) -> Array:
    """The trap: whole pounds are clipped as they are, and masked afterwards, by a whole step of their lattice."""
    root = math.sqrt(evidence.variance)
    mean = 150 + SLOPE * (income - 60_000)
    pounds = np.round((mean + root * z) * N) / N
    exact = (pounds - mean) / root
    return 150 + root * np.asarray(evidence.clip.upper(exact)) + rng.normal(0.0, 1 / N, len(z))


def decode(answers: Array, evidence: QuantileClipEvidence) -> NDArray[np.bool_]:
    """Whether the digits of what was clipped fit HIGH better than LOW."""
    root = math.sqrt(evidence.variance)
    z, _ = evidence.clip.quantiles(1e6, (answers - 150) / root)
    misfits = []
    for income in (LOW, HIGH):
        steps = N * (150 + SLOPE * (income - 60_000) + root * z)
        misfits.append(np.abs(steps - np.round(steps)))
    return misfits[1] < misfits[0]


def right(release: Callable[[Array, float], Array], trials: int) -> int:
    """How often the decoder is right, on answers where the clip stretches."""
    _, evidence = planned(EPSILON)
    rng = np.random.default_rng(3)
    # z from -2.15 to -2.11 becomes 1.1 to 1.7: a step of the lattice becomes ten and more.
    z = rng.uniform(-2.15, -2.11, trials)
    return sum(
        int((decode(release(part, income), evidence) == (income == HIGH)).sum())
        for part, income in ((z[::2], LOW), (z[1::2], HIGH))
    )


def test_masked_after_the_clip_the_digits_betray_the_secret() -> None:
    _, evidence = planned(EPSILON)
    rng = np.random.default_rng(4)
    assert right(lambda z, income: after(z, income, evidence, rng), 20_000) > 0.98 * 20_000


@pytest.mark.slow
def test_masked_before_it_the_decoder_is_at_chance() -> None:
    found, evidence = planned(EPSILON)
    root = math.sqrt(evidence.variance)

    def release(z: Array, income: float) -> Array:
        mean = 150 + SLOPE * (income - 60_000)
        pounds = [Fraction(round((mean + root * x) * N), N) for x in z]
        return np.array([found.answers([average, Fraction(income)])[0] for average in pounds])

    assert float(binomtest(right(release, TRIALS), TRIALS, 0.5).pvalue) > ALARM


def stretched(income: float, evidence: QuantileClipEvidence, y: Array) -> Array:
    """The exact density of an answer that is masked after the clip: a normal bump for every point of the lattice."""
    root = math.sqrt(evidence.variance)
    mean = 150 + SLOPE * (income - 60_000)
    first, last = (math.ceil((mean + root * z) * N) for z in (-2.3, -2.0))
    z = (np.arange(first, last) / N - mean) / root
    mass = np.exp(-z * z / 2) / math.sqrt(2 * math.pi) / (N * root)
    bumps = np.exp(-(((y[:, None] - evidence.clip.upper(z)) * root * N) ** 2) / 2) * (N * root / math.sqrt(2 * math.pi))
    return np.asarray(bumps @ mass)


def test_trap_the_mask_after_the_clip_in_exact_numbers() -> None:
    """H_8 of the laws for the two incomes, between 1.2 and 2.0 standard deviations alone: promised is 0."""
    _, evidence = planned(EPSILON)
    y = np.linspace(1.2, 2.0, 8_001)
    p, q = stretched(LOW, evidence, y), stretched(HIGH, evidence, y)
    lost = np.maximum(p - math.exp(EPSILON) * q, 0).sum() * (y[1] - y[0])
    assert lost > 0.001
    # The part of the law that lies there, so most of it betrays the secret.
    assert lost > 0.5 * p.sum() * (y[1] - y[0])
