"""What a groups assumption says of averages: the mask of recorded values, clipping, and which secrets it can hide."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import pytest
from scipy.stats import binom, norm

from attrpriv.assumptions.groups import Groups
from attrpriv.cases.unequal import categories_of, checks, clip_charge, groups_of, known_rows, members_of, recorded
from attrpriv.errors import QueryError
from attrpriv.numerics.laws.groups import GroupCase
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Refusal
from attrpriv.problem.secret import Parameter, Secret
from attrpriv.queries.query import Query
from tests.conformance.test_mechanisms import groups_problem


def groups(problem: Problem) -> tuple[Groups, ...]:
    return groups_of(problem)


def lattice(variance: Any, columns: int) -> float:
    """-log(1 - x), x = (1 + 2q/(1-q))^columns - 1, q = e^(-2 pi^2 variance): with 30 digits."""
    with mpmath.workdps(400):
        q = mpmath.exp(-2 * mpmath.pi**2 * mpmath.mpf(variance))
        x = (1 + 2 * q / (1 - q)) ** columns - 1
        return float(-mpmath.log(1 - x))


def test_a_declared_spacing_is_masked_by_itself() -> None:
    problem = groups_problem()
    found = recorded(problem, groups(problem))
    assert found.masks == {"hours": pytest.approx(1.0 / 1000)}
    assert found.spacing == {"hours": 1.0}
    data = 1000 * (11.0 * 0.98) ** 2
    assert found.charge == pytest.approx(lattice(data / (data + 1), 1), rel=1e-6)


def test_known_rows_hide_nothing_of_the_lattice() -> None:
    problem = groups_problem(known_rows=0.9, resolution={"hours": 5.0}, tolerance=0)
    assert known_rows(problem) == 900
    assert known_rows(groups_problem(known_rows=0.0005)) == 1
    found = recorded(problem, groups(problem))
    data = 100 * 11.0**2 / 25
    assert found.charge == pytest.approx(lattice(data / (data + 1), 1), rel=1e-6)
    assert found.charge > recorded(groups_problem(resolution={"hours": 5.0}, tolerance=0), groups(problem)).charge


def test_several_columns_share_what_is_left() -> None:
    """The least eigenvalue of the correlations within a category, and one charge for both."""
    problem = groups_problem(
        queries=(Query("avg", "hours"), Query("avg", "age")), tolerance=0, resolution={"hours": 5.0, "age": 4.0}
    )
    found = recorded(problem, groups(problem))
    share = 1 - 0.2
    data = min(1000 * 11.0**2 * share / 25, 1000 * 9.0**2 * share / 16)
    assert found.charge == pytest.approx(lattice(data / (data + 1), 2), rel=1e-6)
    assert found.masks == {"hours": pytest.approx(5 / 1000), "age": pytest.approx(4 / 1000)}


def test_an_undeclared_spacing_is_covered_up_to_its_mask() -> None:
    """The mask is a fiftieth of the largest sd of the average; a spacing of so many masks over 1.5, or half a sd."""
    problem = groups_problem(resolution={}, tolerance=0)
    found = recorded(problem, groups(problem))
    mask = 12.0 / math.sqrt(1000) / 50
    assert found.masks["hours"] == pytest.approx(mask)
    assert found.spacing["hours"] == pytest.approx(min(mask * 1000 / 1.5, 11.0 / 2))
    wide = groups_problem(resolution={}, tolerance=0, n=100_000)
    told = recorded(wide, groups(wide))
    assert told.spacing["hours"] == pytest.approx(11.0 / 2)
    narrow = groups_problem(resolution={}, tolerance=0, n=100)
    little = recorded(narrow, groups(narrow))
    assert little.spacing["hours"] == pytest.approx(12.0 / 10 / 50 * 100 / 1.5)
    data, masked = 100 * (11.0 / little.spacing["hours"]) ** 2, (little.masks["hours"] * 100 / little.spacing["hours"]) ** 2
    assert little.charge == pytest.approx(lattice(data * masked / (data + masked), 1), rel=1e-6, abs=1e-300)


def test_few_or_coarse_values_are_refused() -> None:
    for changes, fine in (({"n": 100}, True), ({"n": 99}, False), ({"resolution": {"hours": 5.39}}, True),
                          ({"resolution": {"hours": 5.4}}, False)):  # fmt: skip
        problem = groups_problem(**changes)
        if fine:
            recorded(problem, groups(problem))
        else:
            with pytest.raises(Refusal):
                recorded(problem, groups(problem))
    free = groups_problem(n=20, resolution={})
    assert recorded(free, groups(free)).charge < 1


def test_clipping_costs_the_chance_that_a_row_is_clipped() -> None:
    for bounds, tolerance in (((-100.0, 150.0), 0), ((-60.0, 140.0), {"mean": 0.5, "sd": 0.1})):
        problem = groups_problem(bounds={"hours": bounds}, tolerance=tolerance, delta=0.4)
        share, widened = (0.5, 1.1) if tolerance else (0.0, 1.0)
        chance = 0.0
        for mean, sd in ((36.0, 11.0), (42.0, 12.0)):
            s = sd * widened
            tails = norm.cdf((bounds[0] - mean + share * s) / s) + norm.sf((bounds[1] - mean - share * s) / s)
            chance = max(chance, 1000 * float(tails))
        found = clip_charge(problem, groups(problem), "hours")
        assert found == pytest.approx((1 + math.e) * chance, rel=1e-6, abs=0)
        assert found is not None
        # It may take a tenth of delta.
        for delta, holds in ((found * 10 * (1 + 1e-9), True), (found * 10 * (1 - 1e-9), False)):
            asked = problem.model_copy(update={"delta": delta})
            assert (clip_charge(asked, groups(problem), "hours") is not None) is holds
    assert clip_charge(groups_problem(), groups(groups_problem()), "hours") is None
    known = groups_problem(bounds={"hours": (-100.0, 150.0)}, known_rows=0.1)
    assert clip_charge(known, groups(known), "hours") is None


def test_which_counts_must_look_alike() -> None:
    problem = groups_problem(secrets=(Secret("count(gender = 'F')", between=(250.0, 400.0), within=20.0),), tolerance=0)
    (found,) = checks(problem, groups(problem))
    assert isinstance(found.case, GroupCase)
    assert (found.case.n, found.case.low, found.case.high, found.case.apart, found.case.known) == (1000, 250, 400, 20, 0)
    assert (found.case.members, found.case.rest) == (((36.0, 11.0),), ((42.0, 12.0),))
    assert found.shares is None
    assert found.tail == 0.0
    two = groups_problem(queries=(Query("avg", "hours"), Query("avg", "age")), tolerance=0)
    (vector,) = checks(two, groups(two))
    assert vector.case.size == 2  # type: ignore[union-attr]


def test_a_population_has_a_tenth_of_delta_for_its_tail() -> None:
    problem = groups_problem(secrets=(Parameter("share(gender = 'F')", between=(0.25, 0.4)),), tolerance=0)
    (found,) = checks(problem, groups(problem))
    assert found.shares == (0.25, 0.4)
    low, high, apart = found.case.low, found.case.high, found.case.apart
    tail = binom.cdf(low - 1, 1000, 0.25) + binom.sf(high, 1000, 0.4) + binom.sf(apart, 1000, 0.15)
    assert float(tail) <= 1e-7
    assert found.tail == pytest.approx(float(tail), rel=1e-6)


def test_secrets_that_are_no_counts() -> None:
    told = groups(groups_problem())[0]
    with pytest.raises(QueryError):
        members_of(told, Secret("mean(hours)", within=1.0))
    assert members_of(told, Secret("share(gender = 'F')", between=(0.1, 0.2))) == ("F",)
    named = categories_of(groups_problem(), told)
    assert [(one.name, one.member) for one in named] == [("F", True), ("M", False)]


def test_which_assumptions_will_do() -> None:
    problem = groups_problem()
    (told,) = groups(problem)
    for changes in (
        {"theta": ()},
        {"delta": 0.0},
        {"queries": (Query("avg", "weight"),)},
        {"queries": (Query("count"),)},
        {"theta": (told, told.model_copy(update={"sensitive": "sex"}))},
    ):
        with pytest.raises(Refusal):
            groups_of(problem.model_copy(update=changes))
    assert groups_of(problem.model_copy(update={"theta": (told, told)})) == (told, told)
