"""What earlier averages ask of new noise: the condition given them is that of all averages stacked, and every guard fires."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from attrpriv.cases.shift import ShiftCase
from attrpriv.methods.base.certificate import LEAST_LEFT
from attrpriv.methods.base.column_plan import Design
from attrpriv.methods.gaussian import noise as stacked
from attrpriv.methods.gaussian.noise import EarlierAverages, case_noise, conditioned, moving_cases, target
from attrpriv.numerics.calibration.set_valued import MovingNoise
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal
from attrpriv.problem.secret import Secret
from tests.refusing import refuses
from tests.unit.methods.gaussian.test_sets import problem as sets_problem

Matrix = Any
PAST = EarlierAverages(columns=("a", "b"), independent=(0.7, 0.4), factor=((0.3,), (-0.5,)))


def case(seed: int, *, width: int = 2, size: int = 4, **changes: Any) -> ShiftCase:
    """Shifts of four averages along some directions, and a covariance that is far from diagonal."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(size, size))
    made = ShiftCase("s", 0, rng.normal(size=(size, width)), root @ root.T + 0.2 * np.eye(size))
    return ShiftCase(**(vars(made) | changes))


def reached(shifts: Matrix, spread: Matrix) -> float:
    """The largest eigenvalue of B' spread^-1 B."""
    return float(np.linalg.eigvalsh(shifts.T @ np.linalg.inv(spread) @ shifts)[-1])


def drawn(past: EarlierAverages) -> Matrix:
    factor = np.array(past.factor) if past.factor else np.zeros((len(past.columns), 1))
    return np.diag(np.array(past.independent) ** 2) + factor @ factor.T


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("width", [1, 3])
def test_the_condition_given_the_past_is_that_of_all_averages_stacked(seed: int, width: int) -> None:
    """Where all together are exactly m apart, what is new is exactly m apart given the rest, whatever its noise."""
    found = case(seed, width=width)
    own = np.diag([0.5, 1.3]) + 0.2
    noise = np.zeros((4, 4))
    noise[:2, :2], noise[2:, 2:] = drawn(PAST), own
    reach = math.sqrt(reached(found.shifts, found.residual + noise))
    (left,) = conditioned(PAST, [found], reach)
    assert left.shifts.shape == (2, width)
    assert (left.residual == left.residual.T).all()
    assert math.sqrt(reached(left.shifts, left.residual + own)) == pytest.approx(reach, rel=1e-9)
    assert (left.secret, left.theta) == ("s", 0)


def test_without_a_past_cases_are_what_they_are() -> None:
    found = [case(1), case(2)]
    assert conditioned(EarlierAverages(), found, 0.1) == found
    assert target(EarlierAverages(), found, 2.0, 0.49) == pytest.approx(1.4, rel=1e-12)


def test_what_the_past_alone_reaches_must_be_less() -> None:
    found = case(1, width=1)
    alone = math.sqrt(reached(found.shifts[:2], found.residual[:2, :2] + drawn(PAST)))
    conditioned(PAST, [found], alone * (1 + 1e-9))
    for reach in (alone * (1 - 1e-9), alone / 2):
        with refuses(Refusal, Cause.EARLIER, "a larger share of the budget"):
            conditioned(PAST, [found], reach)


def test_a_share_of_what_the_worst_case_leaves_is_aimed_at() -> None:
    """sqrt(D^2 + spend (mu^2 - D^2)), D of the earlier averages alone."""
    cases = [case(1), case(2), case(3)]
    squares = [reached(one.shifts[:2], one.residual[:2, :2] + drawn(PAST)) for one in cases]
    worst = max(squares)
    mu = math.sqrt(worst) * 1.7
    assert sorted(squares)[-2] < 0.995 * worst
    for spend in (0.3, 1.0):
        wanted = math.sqrt(worst + spend * (mu**2 - worst))
        for order in (cases, cases[::-1]):
            assert target(PAST, order, mu, spend) == pytest.approx(wanted, rel=1e-9)
    assert target(PAST, [], 2.0, 0.49) == pytest.approx(1.4, rel=1e-12)  # nothing is protected


def test_next_to_nothing_is_nothing_left() -> None:
    (found,) = [case(2, width=1)]
    spent = reached(found.shifts[:2], found.residual[:2, :2] + drawn(PAST))
    just = math.sqrt(spent / (1 - LEAST_LEFT))  # so much of mu^2 is left as counts for nothing
    assert target(PAST, [found], just * (1 + 0.01 * LEAST_LEFT), 1.0) > 0
    for mu in (just * (1 - 0.01 * LEAST_LEFT), math.sqrt(spent), 0.9 * math.sqrt(spent)):
        with pytest.raises(Refusal) as refused:
            target(PAST, [found], mu, 1.0)
        assert refused.value.cause is Cause.EARLIER


def test_slopes_of_any_sign_are_not_hidden_by_common_noise() -> None:
    either = case(1, width=1, signless=True)
    own = EarlierAverages(columns=("a", "b"), independent=(0.7, 0.4))
    assert target(own, [either], 50.0, 0.5) > 0
    assert target(PAST, [case(1, width=1)], 50.0, 0.5) > 0
    with pytest.raises(Refusal) as refused:
        target(PAST, [either], 50.0, 0.5)
    assert refused.value.cause is Cause.EARLIER


# ------------------------------------------------------------------------------------------------------ the noise of both


@pytest.mark.parametrize("old", [(), ((0.3, 0.1), (-0.5, 0.2))])
@pytest.mark.parametrize("new", [(), ((1.5, -0.7, 0.2),)])
def test_noise_that_was_drawn_and_new_noise_share_nothing(old: Matrix, new: Matrix) -> None:
    past = EarlierAverages(columns=("a", "b"), independent=(0.7, 0.4), factor=old)
    both = past.with_new(Design((0.9,), new))
    assert both.independent == (0.7, 0.4, 0.9)
    whole = np.zeros((3, 3))
    whole[:2, :2] = drawn(past)
    whole[2, 2] = 0.81 + sum(x * x for row in new for x in row)
    assert both.covariance() == pytest.approx(whole)
    assert past.noise() == pytest.approx(whole[:2, :2])
    assert past.common == (2 if old else 0)
    # The numbers that each common draw is multiplied with: what was drawn comes first.
    widths = {len(row) for row in both.factor}
    assert widths == ({past.common + (3 if new else 0)} if old or new else set())
    if old:
        assert [row[:2] for row in both.factor] == [*old, (0.0, 0.0)]


def test_a_first_release_has_no_past() -> None:
    first = EarlierAverages().with_new(Design((0.9, 0.8), ((0.1,), (0.2,))))
    assert (first.independent, first.factor) == ((0.9, 0.8), ((0.1,), (0.2,)))


def test_less_noise_below_the_digits_than_is_asked_for_now_is_refused() -> None:
    """A float's rounding is forgiven; each average counts."""
    PAST.require_masked({"a": 0.7, "b": 0.4, "c": 99.0})
    PAST.require_masked({"a": 0.7 * (1 + 1e-12), "b": 0.1})
    for masks in ({"a": 0.71, "b": 0.4}, {"a": 0.7, "b": 0.41}):
        with refuses(Refusal, Cause.EARLIER, "the resolution of earlier releases"):
            PAST.require_masked(masks)


# --------------------------------------------------------------------------------------------------------- sets of values


def test_sets_are_planned_for_one_average_and_no_known_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """At least with the mask's variance; one search for each secret and member."""
    seen: list[tuple[float, float, float]] = []

    def moving(cases: Any, epsilon: float, delta: float, least: float) -> MovingNoise:
        seen.append((epsilon, delta, least))
        return cast(MovingNoise, SimpleNamespace(variance=1.0))

    monkeypatch.setattr(stacked, "moving_variance", moving)
    problem = sets_problem(["< 0.005", ">= 0.005"])
    theta: Any = (*problem.theta, *problem.theta)
    found = case_noise(problem, theta, 0.7, 1e-5, 0.3)
    assert [(one.secret, one.theta) for one in found] == [(problem.secrets[0], 0), (problem.secrets[0], 1)]
    assert len(seen) == 2
    for told in seen:
        assert told == pytest.approx((0.7, 1e-5, 0.09))
    with refuses(Refusal, Cause.PERSONS, "known_rows 0"):
        case_noise(problem.model_copy(update={"known_rows": 0.01}), theta, 0.7, 1e-5, 0.3)
    for queries in (problem.queries * 2, ()):
        other = SimpleNamespace(secrets=problem.secrets, columns=("q",) * len(queries), known_rows=0.0, n=problem.n)
        with pytest.raises(Refusal) as refused:
            case_noise(cast(Problem, other), theta, 0.7, 1e-5, 0.3)
        assert refused.value.cause is Cause.TOGETHER
    # Near values are no sets.
    near = problem.model_copy(update={"secrets": (Secret("mean(g)", within=1.0),)})
    assert case_noise(near, theta, 0.7, 1e-5, 0.3) == []


def test_sets_of_a_sum_are_those_of_the_mean_in_its_own_unit() -> None:
    problem = sets_problem(["< 0.005", ">= 0.005"])
    member: Any = problem.theta[0]
    n = problem.n
    summed = Secret("sum(g)", cases=(f"< {0.005 * n}", f">= {0.005 * n}"))
    mean, total = (moving_cases(problem, member, "q", secret) for secret in (problem.secrets[0], summed))
    assert total.strength == mean.strength
    assert total.box == mean.box
    assert [str(one) for one in total.cases] == [str(one) for one in mean.cases]
    for secret in (Secret("mean(2 * g)", within=1.0), Secret("mean(g + q)", within=1.0)):
        with refuses(Refusal, Cause.SECRET, "the mean or sum of one column"):
            moving_cases(problem, member, "q", secret)
