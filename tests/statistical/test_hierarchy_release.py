"""What a transported plan draws has the law that its certificate reasons about, and its digits say nothing.

`ALARM` is the false-alarm rate of each test. The exact law is that of `tests.property.hierarchy_twin`, which uses no attrpriv.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binomtest, kstest

from attrpriv.assumptions.hierarchy import Hierarchy
from attrpriv.methods.base.clamp import Clamp
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan
from attrpriv.noise import add_gaussian
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Parameter
from attrpriv.queries.query import Query
from tests.property.hierarchy_twin import Release, Twin

ALARM = 1e-7
TRIALS = 3_000
N = 10_000
TWIN = Twin(query_between=5.0, hidden_between=8_000.0, correlation=0.3, query_within=0.25, hidden_within=300.0)


def planned(n: int = N, **resolution: float) -> Plan:
    hierarchy = Hierarchy(
        mean={"weight": 150.0, "income": 60_000.0},
        between_sd={"weight": 5.0, "income": 8_000.0},
        between_correlation={("weight", "income"): 0.3},
        within_sd={"weight": 25.0, "income": 30_000.0},
        tolerance=0,
    )
    found = plan(
        Problem(
            queries=(Query("avg", "weight"),),
            secrets=(Parameter("income", between=(40_000.0, 80_000.0)),),
            epsilon=1.0,
            delta=1e-3,
            n=n,
            theta=(hierarchy,),
            resolution={"weight": 1.0, "income": 1.0} | resolution,
        ),
        "transport",
    )
    assert found.certificate.evidence.taken_back() is not None
    return found


# --------------------------------------------------------------------------------------------------- the law of an answer


def drawn(found: Plan, a: float, seed: int, draw: int = 1_200) -> list[float]:
    """Answers for tables of populations with phi_i = a: averages from the model, noise from the plan."""
    rng = np.random.default_rng(seed)
    mean, cov = TWIN.given(a)
    pairs = rng.multivariate_normal([mean[1] + 150, mean[0] + 60_000], cov[::-1, ::-1], draw)
    return [found.answers([Fraction(float(f)), Fraction(float(x))])[0] - 150 for f, x in pairs]


def law(found: Plan, a: float, double: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    clamp = found.certificate.evidence.taken_back()
    assert clamp is not None
    release = Release(clamp.slopes[0][0], double * clamp.reach, double * clamp.reach, clamp.reads[0].mask, found.noise.scale)
    grid = np.linspace(-40, 40, 40_001)
    return grid, np.cumsum(release.density(TWIN, a, grid)) * (grid[1] - grid[0])


@pytest.mark.parametrize("a", [-20_000.0, 1_000.0, 20_000.0])
def test_answers_have_the_exact_law(a: float) -> None:
    found = planned()
    grid, cdf = law(found, a)
    assert kstest(drawn(found, a, 5), lambda o: np.interp(o, grid, cdf)).pvalue > ALARM


def test_the_law_without_a_clamp_is_rejected() -> None:
    """So the test above can fail: at phi_i 20,000 above its mean the answers would be 3.75 higher."""
    found = planned()
    grid, cdf = law(found, 20_000.0, double=100.0)
    assert kstest(drawn(found, 20_000.0, 5), lambda o: np.interp(o, grid, cdf)).pvalue < ALARM


@pytest.mark.slow
def test_intervals_hold_their_level_over_populations() -> None:
    """P(table's own average in the interval) = .9 over the assumption's populations; false alarm below 1e-7."""
    found = planned()
    rng = np.random.default_rng(8)
    rng_pairs = rng.multivariate_normal([60_000.0, 150.0], TWIN.joint()[1:, 1:], TRIALS)
    reach = found.spread_of(found.queries[0]).reach(0.9)
    off = [abs(found.answers([Fraction(float(f)), Fraction(float(x))])[0] - f) for x, f in rng_pairs]
    assert float(binomtest(sum(o <= reach for o in off), TRIALS, 0.9).pvalue) > ALARM
    assert math.sqrt(np.mean(np.square(off))) == pytest.approx(found.error.rmse, rel=0.15)
    assert np.mean(off) == pytest.approx(found.error.mean_absolute, rel=0.15)


# ------------------------------------------------------------------------------------------------------------- digits

# Two totals of the sensitive column for which what is taken back differs by half a step of the lattice of weights.
CLAMP = planned().certificate.evidence.taken_back()
assert CLAMP is not None
SLOPE, CENTRE, REACH = Fraction(CLAMP.slopes[0][0]), Fraction(CLAMP.reads[0].centre), Fraction(CLAMP.reach)
LOW = Fraction(75_000)
HIGH = LOW + Fraction(round(Fraction(1, 2) / SLOPE), N)


def told(hidden: Fraction) -> Fraction:
    y = SLOPE * (hidden - CENTRE)
    return y - min(max(y, -REACH), REACH)


def decode(answer: Fraction) -> Fraction:
    """The candidate for which the answer's digits fit the lattice of weights better."""

    def misfit(candidate: Fraction) -> Fraction:
        steps = N * (answer + told(candidate))
        return abs(steps - round(steps))

    return min((LOW, HIGH), key=misfit)


def right_guesses(answer: object, trials: int = TRIALS) -> int:
    rng = np.random.default_rng(11)
    right = 0
    for _ in range(trials):
        hidden = (LOW, HIGH)[int(rng.integers(2))]
        weight = Fraction(round(rng.normal(150.0, 4.8) * N), N)
        right += decode(answer(weight, hidden)) == hidden  # type: ignore[operator]
    return right


def at_chance(right: int, trials: int = TRIALS) -> bool:
    return float(binomtest(right, trials, 0.5).pvalue) > ALARM


def test_the_candidates_are_beyond_the_clamp_and_half_a_step_apart() -> None:
    assert told(LOW) > 0
    steps = N * (told(HIGH) - told(LOW))
    assert abs(steps - Fraction(1, 2)) < Fraction(1, 100)


def test_without_the_mask_the_digits_betray_the_sensitive_average() -> None:
    assert right_guesses(lambda weight, hidden: weight - told(hidden)) == TRIALS


@pytest.mark.slow
def test_with_the_mask_the_decoder_is_at_chance() -> None:
    found = planned()
    assert at_chance(right_guesses(lambda weight, hidden: Fraction(found.answers([weight, hidden])[0])))


def test_a_quarter_of_the_mask_is_not_enough() -> None:
    assert not at_chance(right_guesses(lambda weight, hidden: add_gaussian(weight - told(hidden), 0.25 / N)))


def test_a_clamp_is_a_public_value() -> None:
    assert isinstance(CLAMP, Clamp)
    assert planned().certificate.evidence.taken_back() == CLAMP
