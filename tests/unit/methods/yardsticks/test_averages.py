"""Group differential privacy and the constant answer."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.errors import Cause, RefusedError
from attrpriv.methods.choice.choose import plan
from attrpriv.noise import granularity
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from tests.refusing import refuses


def problem(**changes: Any) -> Problem:
    stated: dict[str, Any] = {
        "queries": (Query("avg", "y"),),
        "secrets": (Secret("mean(x)", within=1.0),),
        "epsilon": 1.0,
        "n": 100,
        "bounds": {"y": (0.0, 10.0)},
    }
    return Problem(**(stated | changes))


# ------------------------------------------------------------------------------------------------------------------ group_dp


def exact_loss(low: float, high: float, scale: float) -> Fraction:
    """The largest log-ratio of two outputs, in fractions: discrete Laplace noise loses (steps apart)/(scale in steps)."""
    step = Fraction(granularity(scale))
    apart = max(abs(round(Fraction(a) / step) - round(Fraction(b) / step)) for a in (low, high) for b in (low, high))
    return apart * step / Fraction(scale)


@given(
    low=st.floats(-1e6, 1e6),
    width=st.floats(1e-6, 1e6),
    epsilon=st.floats(math.log(1e-6), math.log(100)).map(math.exp),
    columns=st.integers(1, 4),
)
@example(low=0.0, width=1.0, epsilon=0.01, columns=1)  # once a certificate that did not verify
@example(low=0.0, width=1.0, epsilon=0.1, columns=3)
@example(low=1 / 3, width=1e-6, epsilon=1e-6, columns=4)
def test_group_dp_is_pure_for_any_two_tables(low: float, width: float, epsilon: float, columns: int) -> None:
    high = low + width
    names = [f"y{k}" for k in range(columns)]
    asked = problem(
        queries=tuple(Query("avg", name) for name in names), bounds=dict.fromkeys(names, (low, high)), epsilon=epsilon
    )
    found = plan(asked, "group_dp")
    found.certificate.verify()
    assert sum(exact_loss(low, high, part.noise.scale) for part in found.columns) <= Fraction(epsilon)
    # and hardly less: the step of the grid, 2^-32 for each column, is all that is wasted
    wasted = columns * 2.0**-31 / epsilon + 1e-8
    assert sum(exact_loss(low, high, part.noise.scale / (1 + 2 * wasted)) for part in found.columns) > Fraction(epsilon)


def test_forgetting_the_step_of_the_grid_is_rejected() -> None:
    """Bounds that round away from each other: the width alone, over epsilon, is not enough."""
    low, high = -0.75 * 2.0**-32, 1 + 0.75 * 2.0**-32
    scale = (high - low) / 1.0
    assert granularity(scale) == 2.0**-32
    assert exact_loss(low, high, scale) > 1


def test_an_epsilon_below_the_grid_is_refused() -> None:
    with refuses(RefusedError, Cause.BUDGET, "a larger epsilon"):
        plan(problem(epsilon=1e-10), "group_dp")


def test_group_dp_needs_bounds_for_every_column() -> None:
    with pytest.raises(RefusedError, match="needs bounds for z; declare bounds"):
        plan(problem(queries=(Query("avg", "y"), Query("avg", "z"))), "group_dp")
    with refuses(RefusedError, Cause.PUBLIC_FACT, "narrower bounds of y"):
        plan(problem(bounds={"y": (-1.7e308, 1.7e308)}), "group_dp")


def test_group_dp_needs_no_assumption_and_no_delta() -> None:
    found = plan(problem(missing={"y": 5.0}), "group_dp")
    assert found.columns[0].noise.scale == pytest.approx(10.0, rel=1e-8)
    assert found.columns[0].clip == (0.0, 10.0)
    assert found.columns[0].fill == 5.0
    assert found.certificate.assumes[0].startswith("nothing about the law of the rows")


def test_an_average_outside_the_bounds_is_brought_back() -> None:
    """Rounding in an engine may take an average a little outside; more than the bounds' width must not reach the noise."""
    found = plan(problem(), "group_dp")
    answers = [found.randomise(1e9) for _ in range(50)]
    # 10 + Laplace(10): beyond 1,000 with probability below e^-99.
    assert max(answers) < 1_000


# ------------------------------------------------------------------------------------------------------------------ constant


def believing(mean: float, tolerance: float = 0.0, sd: float = 2.0) -> Gaussian:
    return Gaussian(mean={"y": mean}, sd={"y": sd}, tolerance={"mean": tolerance, "sd": 0.1, "slope": 0.0})


@pytest.mark.parametrize("tolerance", [0.0, 0.05, 1.0])
def test_the_constant_answer_errs_as_it_says(tolerance: float) -> None:
    """At the largest bias and sd of the class: |N(bias, sd^2/n)|, by quadrature."""
    found = plan(problem(theta=(believing(7.0, tolerance),)), "constant")
    bias, spread = tolerance * 2.2, 2.2 / 10
    law = norm(bias, spread)
    limits = (bias - 12 * spread, bias + 12 * spread)
    assert found.randomise(123.0) == 7.0
    assert found.error.rmse == pytest.approx(math.sqrt(quad(lambda x: x * x * law.pdf(x), *limits)[0]), rel=1e-6)
    points = [0.0] if limits[0] < 0 < limits[1] else None
    assert found.error.mean_absolute == pytest.approx(quad(lambda x: abs(x) * law.pdf(x), *limits, points=points)[0], rel=1e-6)
    assert found.error.alpha95 is not None
    assert law.sf(found.error.alpha95) + law.cdf(-found.error.alpha95) <= 0.05 + 1e-12


def test_of_several_beliefs_the_constant_takes_the_first_and_errs_with_the_worst() -> None:
    found = plan(problem(theta=(believing(7.0), believing(9.0))), "constant")
    assert found.randomise(0.0) == 7.0
    assert found.error.rmse == pytest.approx(math.hypot(2.0, 2.2 / 10))


def test_constant_needs_the_mean() -> None:
    for theta in ((), (Gaussian(sd={"y": 1.0}, tolerance=0),), (believing(7.0), Gaussian(sd={"y": 1.0}, tolerance=0))):
        with refuses(RefusedError, Cause.NUMBERS, "the mean of y"):
            plan(problem(theta=theta), "constant")


def test_a_constant_sum() -> None:
    found = plan(problem(queries=(Query("sum", "y"),), theta=(believing(7.0),)), "constant")
    assert found.randomise(0.0) == 700.0
