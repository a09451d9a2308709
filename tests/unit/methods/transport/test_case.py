"""What a clamp is made from: slopes, moves and covariances of the class, against numpy's own conditioning and closed forms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from attrpriv.cases.gaussian import is_exact
from attrpriv.cases.subset import Rows
from attrpriv.methods.transport.case import statistics_of, told, told_over
from attrpriv.methods.transport.plan import members
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Refusal
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from tests.conformance.test_mechanisms import MOMENTS, problem

N = 10_000
NAMES = ("weight", "height", "income")
SD = np.array([MOMENTS["sd"][name] for name in NAMES])
RHO = np.array([[1.0, 0.5, 0.3], [0.5, 1.0, 0.2], [0.3, 0.2, 1.0]])
V = RHO * np.outer(SD, SD)
INCOME = Secret("mean(income)", between=(20_000.0, 200_000.0))
HEIGHT = Secret("mean(height)", within=2.0)


def asked(*queries: str, secrets: tuple[Secret, ...] = (INCOME,), **changes: Any) -> Problem:
    changes.setdefault("tolerance", 0)
    return problem(queries=tuple(Query("avg", name) for name in queries or ("weight",)), secrets=secrets, **changes)


def made(found: Problem, off: float = 0.0) -> Any:
    return told(found, members(found), dict.fromkeys(NAMES, 0.01), off)


@pytest.mark.parametrize("off", [0.0, 0.2])
@pytest.mark.parametrize("known", [0.0, 0.25])
def test_one_average_and_one_statistic(off: float, known: float) -> None:
    case = made(asked(known_rows=known), off)
    slope = V[0, 2] / V[2, 2]
    (check,) = case.checks
    assert case.slopes == pytest.approx(np.array([[slope]]))
    assert check.reads[0].by == pytest.approx(180_000.0)
    assert check.reads[0].off == pytest.approx(0.0, abs=1e-6)
    assert check.own[0] == pytest.approx(slope * 180_000.0)
    assert check.own_off[0] == pytest.approx((off + known) * slope * 180_000.0, rel=1e-6, abs=1e-9)
    left = V[0, 0] - V[0, 2] ** 2 / V[2, 2] - (2 * off + off**2) * slope**2 * V[2, 2]
    assert check.credited[0][0] == pytest.approx((1 - known) * left / N)


@pytest.mark.parametrize("off", [0.0, 0.2])
def test_several_averages_and_one_statistic(off: float) -> None:
    case = made(asked("weight", "height"), off)
    slopes = V[:2, 2] / V[2, 2]
    (check,) = case.checks
    assert case.slopes[:, 0] == pytest.approx(slopes)
    assert check.own == pytest.approx(tuple(slopes * 180_000.0))
    assert check.own_off == pytest.approx(tuple(off * slopes * 180_000.0), rel=1e-6, abs=1e-9)
    left = V[:2, :2] - np.outer(slopes, slopes) * V[2, 2] * (1 + 2 * off + off**2)
    assert np.array(check.credited) == pytest.approx(left / N, rel=1e-6)


def test_the_column_itself_is_told_altogether() -> None:
    case = made(asked("income"), 0.3)
    (check,) = case.checks
    assert case.slopes[0, 0] == pytest.approx(1.0)
    assert check.own_off[0] == pytest.approx(0.0, abs=1e-6)
    assert check.credited[0][0] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("off", [0.0, 0.2])
def test_beside_another_average_the_column_itself_cannot_be_off(off: float) -> None:
    """Its slope on itself is 1 under every law, so the other average keeps its credit."""
    (check,) = made(asked("weight", "income"), off).checks
    left = V[0, 0] - V[0, 2] ** 2 / V[2, 2] * (1 + off) ** 2
    assert np.array(check.credited) == pytest.approx(np.array([[left / N, 0.0], [0.0, 0.0]]), rel=1e-6, abs=1e-6)
    assert check.own_off[1] == pytest.approx(0.0, abs=1e-6)


def test_two_statistics_are_regressed_on_together() -> None:
    """Weight on height and income; each secret moves the other statistic as their correlation says."""
    case = made(asked(secrets=(INCOME, HEIGHT)))
    hidden = V[1:, 1:]
    order = [tuple(one) for one in case.statistics]
    places = [NAMES.index(name) for (name,) in order]
    slopes = np.linalg.solve(V[np.ix_(places, places)], V[places, 0])
    assert case.slopes[0] == pytest.approx(slopes, rel=1e-9)
    left = V[0, 0] - V[places, 0] @ slopes
    for check, (column, gap) in zip(case.checks, (("income", 180_000.0), ("height", 2.0)), strict=True):
        at = NAMES.index(column)
        for read, place in zip(check.reads, places, strict=True):
            assert read.by == pytest.approx(V[place, at] / V[at, at] * gap)
        assert check.own[0] == pytest.approx(V[0, at] / V[at, at] * gap)
        assert check.credited[0][0] == pytest.approx(left / N, rel=1e-6)
    assert hidden.shape == (2, 2)


def test_a_slope_of_the_class_is_in_the_middle_and_moves_are_wide_enough() -> None:
    found = asked(tolerance={"slope": 0.1, "sd": 0.05, "mean": 0.0})
    case = made(found)
    (check,) = case.checks
    slope = V[0, 2] / V[2, 2]
    assert case.slopes[0, 0] == pytest.approx(slope)
    assert check.own[0] == pytest.approx(slope * 180_000.0)
    assert check.own_off[0] == pytest.approx(0.1 * slope * 180_000.0, rel=1e-6)
    assert not is_exact(members(found)[0])
    assert is_exact(members(asked())[0])
    assert is_exact(members(asked(tolerance={"slope": 0, "mean": 0.1}))[0])
    for changes in ({"slope": 0.1}, {"correlation": 0.1}, {"slope": 0, "sd": 0.1}):
        assert not is_exact(members(asked(tolerance=changes))[0])


def test_two_sensitive_columns_move_each_other_within_correlation_and_sds() -> None:
    found = asked(secrets=(INCOME, HEIGHT), tolerance={"correlation": 0.05, "sd": 0.1})
    check = made(found).checks[1]  # height is hidden, income moves with it
    read = next(one for one in check.reads if set(one.coefficients) == {"income"})
    ends = [r * (30_000.0 * s) / (4.0 * t) * 2.0 for r in (0.15, 0.25) for s in (0.9, 1.1) for t in (0.9, 1.1)]
    assert read.by == pytest.approx((min(ends) + max(ends)) / 2)
    assert read.off == pytest.approx((max(ends) - min(ends)) / 2, rel=1e-6)
    own = next(one for one in check.reads if set(one.coefficients) == {"height"})
    assert (own.by, own.off) == (pytest.approx(2.0), pytest.approx(0.0, abs=1e-9))


def test_sets_without_an_end_reach_as_far_as_the_mean_can_be() -> None:
    half = Secret("mean(income)", cases=("< 50000", ">= 50000"))
    found = asked(secrets=(half,))
    (check,) = made(found).checks
    far = check.reads[0].by
    assert far > 2 * 10_000.0
    sd = 30_000.0 / math.sqrt(N)
    assert (far - 2 * 10_000.0) / sd == pytest.approx(round((far - 2 * 10_000.0) / sd), abs=1e-6)
    with pytest.raises(Refusal):
        made(asked(secrets=(half,), tolerance={"slope": 0.1}))


def test_a_multiple_of_a_statistic_is_no_other() -> None:
    found = asked(secrets=(INCOME, Secret("sum(income)", within=1.0), HEIGHT))
    assert [set(one) for one in statistics_of(found)] == [{"income"}, {"height"}]
    mixed = asked(secrets=(Secret("mean(income + 2*height)", within=1.0), Secret("mean(2*income + 4*height)", within=1.0)))
    assert len(statistics_of(mixed)) == 1
    other = asked(secrets=(Secret("mean(income + 2*height)", within=1.0), Secret("mean(2*income + 3*height)", within=1.0)))
    assert len(statistics_of(other)) == 2


def test_all_rows_are_a_subset_too() -> None:
    found = asked("weight", "height")
    theta = members(found)
    plain, over = made(found), told_over(found, Rows.of(found), theta, dict.fromkeys(NAMES, 0.01))
    assert over.checks == plain.checks
