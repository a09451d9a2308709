"""Digits betray secrets, and the mask hides them (theory of recorded values).

Weights and incomes are whole numbers. An answer shifted by a public slope times the secret, F - b (g - m) + c, lies on the
lattice Z/n moved by a public multiple of g: whoever tries both candidates for g and looks whether the digits fit knows which
one holds, whatever the normal law says about the rest. With the mask drawn first the digits say nothing.

The decoder uses digits alone. Under the mask it is right with probability 1/2 + x/pi, x = 2 exp(-2 pi^2) = 5e-9, so the number
of right guesses is binomial with one half: `ALARM` is the false-alarm rate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan
from attrpriv.noise import add_gaussian
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query

ALARM = 1e-7
TRIALS = 3_000
N = 10_000
MEAN_WEIGHT, MEAN_INCOME = 150, 60_000
# The public slope, and two values of mean(income) for which the shifted lattices are about half a step apart.
SLOPE = Fraction(250013, 10**9)
LOW, HIGH = Fraction(60_010), Fraction(60_010) + Fraction(2_000, N)
OFFSET = Fraction(12345, 1000)


def masked_plan() -> Plan:
    """Values 1 apart need no noise beyond the mask: the data hide so small a shift themselves."""
    found = plan(
        Problem(
            queries=(Query("avg", "weight"),),
            secrets=(Secret("mean(income)", between=(20_000.0, 200_000.0), within=1.0),),
            epsilon=1.0,
            delta=1e-6,
            n=N,
            theta=(Gaussian(sd={"weight": 25.0, "income": 30_000.0}, correlation={("weight", "income"): 0.3}, tolerance=0),),
            types={"weight": "integer", "income": "integer"},
            resolution={"weight": 1.0, "income": 1.0},
        ),
        "gaussian",
    )
    assert found.noise.scale == pytest.approx(1 / N, rel=1e-6)
    return found


def rows_average(secret: Fraction, rng: np.random.Generator) -> Fraction:
    """The average of N whole-number weights given the secret: normal, on the lattice."""
    centre = MEAN_WEIGHT + SLOPE * (secret - MEAN_INCOME)
    total = rng.normal(float(N * centre), 25.0 * math.sqrt(N * (1 - 0.3**2)))
    return Fraction(round(total), N)


def decode(answer: Fraction) -> Fraction:
    """The candidate for which the answer's digits fit the lattice better."""

    def misfit(candidate: Fraction) -> Fraction:
        steps = N * (answer - OFFSET + SLOPE * (candidate - MEAN_INCOME))
        return abs(steps - round(steps))

    return min((LOW, HIGH), key=misfit)


def right_guesses(mask: Callable[[Fraction], Fraction], trials: int = TRIALS) -> int:
    rng = np.random.default_rng(11)
    right = 0
    for _ in range(trials):
        secret = (LOW, HIGH)[int(rng.integers(2))]
        shifted = mask(rows_average(secret, rng)) - SLOPE * (secret - MEAN_INCOME) + OFFSET
        right += decode(shifted) == secret
    return right


def at_chance(right: int, trials: int = TRIALS) -> bool:
    return float(binomtest(right, trials, 0.5).pvalue) > ALARM


def test_the_candidates_shift_the_lattice_by_half_a_step() -> None:
    steps = N * SLOPE * (HIGH - LOW)
    assert abs(steps - math.floor(steps) - Fraction(1, 2)) < Fraction(1, 100)


def test_without_the_mask_the_digits_betray_the_secret() -> None:
    assert right_guesses(lambda average: average) == TRIALS


@pytest.mark.slow
def test_with_the_mask_the_decoder_is_at_chance() -> None:
    """False alarm below 1e-7. Power: a quarter of the mask would be found with certainty, see below."""
    found = masked_plan()
    assert at_chance(right_guesses(lambda average: Fraction(found.randomise(average))))


def test_a_quarter_of_the_mask_is_not_enough() -> None:
    """x = 2 exp(-2 pi^2/16) = .58: right with probability .68, and 3,000 trials miss that with probability below 1e-40."""
    x = 2 * math.exp(-2 * math.pi**2 / 16)
    chance = 0.5 + x / math.pi
    most = next(k for k in range(TRIALS // 2, TRIALS) if not at_chance(k))
    assert float(binom.cdf(most - 1, TRIALS, chance)) < 1e-40
    assert not at_chance(right_guesses(lambda average: add_gaussian(average, 0.25 / N)))
