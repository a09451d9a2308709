"""What is charged where an assumption is a list, several secrets are hidden, or several averages asked for: the worst."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.groups import Groups
from attrpriv.assumptions.hierarchy import Hierarchy
from attrpriv.cases import population_shift, unequal
from attrpriv.cases.budget import Budget, budget, real_epsilon
from attrpriv.cases.gaussian import (
    ValueLattice,
    gaussian_assumptions,
    gaussians,
    left_spacing,
    recorded,
    require_rows,
    row_floors,
)
from attrpriv.cases.shift import seen, semidefinite_or_nothing
from attrpriv.cases.subset import Rows
from attrpriv.problem.refusal import Refusal
from attrpriv.problem.secret import Parameter, Secret
from attrpriv.queries.query import Query
from tests.conformance.test_mechanisms import MOMENTS, groups_problem, hierarchy_problem, problem
from tests.unit.methods.proofs import gaussian_delta

INCOME = Secret("mean(income)", within=1_000.0)


def shaped(lam: float, eta: float) -> Gaussian:
    return Gaussian(**MOMENTS, tolerance={"slope": 0.05, "shape": {"lambda": lam, "eta": eta}})


def test_the_shape_that_is_furthest_from_normal_is_paid_for() -> None:
    asked = problem()
    for theta in ((shaped(1e-3, 1e-10), shaped(1e-4, 1e-9)), (shaped(1e-4, 1e-9), shaped(1e-3, 1e-10))):
        found = budget(asked, theta, 0.0, 0.0)
        assert (found.shape_lambda, found.shape_eta) == (1e-3, 1e-9)
    nothing = budget(asked, (), 0.0, 0.0)
    assert (nothing.shape_lambda, nothing.shape_eta, nothing.fit_delta) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("mu", [0.05, 0.3, 2.0])
def test_the_real_epsilon_is_that_of_the_distance_and_of_all_lambdas(mu: float) -> None:
    left = Budget(1.0, 1e-6, 0.01, 0.0, 0.02, 0.04, 0.0, 0.0, 0.0, 0.0, 1e-6, ())
    found = real_epsilon(mu, left)
    assert found is not None
    own = found - 2 * 0.07
    assert gaussian_delta(own, mu) <= 1e-6
    assert own < 1e-6 or gaussian_delta(own * (1 - 1e-6), mu) > mpmath.mpf(1e-6)
    assert real_epsilon(math.inf, left) is None


# --------------------------------------------------------------------------------------------------------- normal rows


def test_what_is_said_of_secrets_holds_for_each_of_them() -> None:
    """A parameter of the population or a share beside a mean; no delta, unless a proof does without."""
    for other in (Parameter("income", within=1.0), Secret("share(income > 1)", between=(0.1, 0.2))):
        for secrets in ((INCOME, other), (other, INCOME), (other,)):
            with pytest.raises(Refusal):
                gaussians(problem(secrets=secrets))
    assert len(gaussians(problem(secrets=(INCOME,)))) == 1
    none = problem(delta=0.0)
    with pytest.raises(Refusal):
        gaussians(none)
    assert len(gaussians(none, pure=True)) == 1


def test_a_secret_of_one_column_makes_no_lattice_coarser() -> None:
    """And of several secrets the coarsest lattice counts, in either order."""
    alone = problem(queries=(Query("avg", "income"),), resolution={})
    assert left_spacing(alone, "income") == (None, False)
    combined = Secret("mean(weight - 3 * income)", within=1.0)
    for secrets in ((combined, INCOME), (INCOME, combined)):
        assert left_spacing(problem(secrets=secrets), "weight") == (3.0, True)


def test_fractions_of_steps_make_up_for_each_other() -> None:
    """3/4 and 2/3 of a step: their multiples are those of 1/12, so that a whole step is one; 2/3 and 4/3 reach 2 of 1/3."""
    for text, steps, factor in (
        ("mean(weight + 0.75 * height + 0.5 * income)", {"height": 1.0, "income": 0.5}, 1),
        ("mean(0.1 * weight + 0.75 * height + 0.5 * income)", {"height": 1.0, "income": 1.0}, 5),
        ("mean(0.1 * weight + 0.3 * height + 0.25 * income)", {"height": 1.0, "income": 1.0}, 1),
        ("mean(0.1 * weight + 0.3 * height + 0.2 * income)", {"height": 1.0, "income": 3.0}, 3),
    ):
        asked = problem(secrets=(Secret(text, within=1.0),), resolution={"weight": 1.0, **steps})
        assert left_spacing(asked, "weight") == (float(factor), True), text


def test_the_floor_of_several_columns_by_the_least_eigenvalue() -> None:
    """In units of the columns' own sds, given one combination, or several statistics at once."""
    names = ("weight", "height", "income")
    sds = np.array([MOMENTS["sd"][name] for name in names])
    rho = np.array([[1.0, 0.5, 0.3], [0.5, 1.0, 0.2], [0.3, 0.2, 1.0]])
    for secret, known in (
        (INCOME, [[0.0, 0.0, 1.0]]),
        (Secret("mean(income - 100 * height)", within=1.0), [[0.0, -100.0, 1.0]]),
        (Secret(("mean(income)", "mean(income + 50 * weight)"), within=1.0), [[0.0, 0.0, 1.0], [50.0, 0.0, 1.0]]),
    ):
        asked = problem(queries=(Query("avg", "weight"), Query("avg", "height")), secrets=(secret,), tolerance=0)
        (floor,) = row_floors(asked, gaussians(asked)[0], ("weight", "height"))
        v = rho * np.outer(sds, sds)
        g = np.array(known)
        shares = []
        for rows in (g, *(g[k : k + 1] for k in range(len(g)))):
            left = v - v @ rows.T @ np.linalg.inv(rows @ v @ rows.T) @ rows @ v
            shares.append(float(np.linalg.eigvalsh((left / np.outer(sds, sds))[:2, :2])[0]))
        assert floor["weight"] == pytest.approx(min(shares) * 25.0**2, rel=1e-6, abs=1e-6)
        assert floor["height"] == pytest.approx(min(shares) * 4.0**2, rel=1e-6, abs=1e-6)


def test_one_combination_under_a_tolerance_has_a_floor() -> None:
    asked = problem(
        queries=(Query("avg", "weight"), Query("avg", "height")),
        secrets=(Secret("mean(income + weight)", within=1.0),),
        tolerance={"sd": 0.01, "slope": 0.01},
    )
    (floor,) = row_floors(asked, gaussians(asked)[0], ("weight", "height"))
    assert 0 < floor["weight"] < 25.0**2


def test_an_undeclared_spacing_is_covered_for_the_member_with_the_smallest_sd() -> None:
    """Half of the least sd, where masks cover more."""
    told = [Gaussian(**(MOMENTS | {"sd": MOMENTS["sd"] | {"weight": sd}}), tolerance=0) for sd in (25.0, 16.0)]
    for theta in (told, told[::-1]):
        asked = problem(theta=tuple(theta), resolution={}, n=1_000_000)
        found = recorded(asked, gaussians(asked), {"weight": 1.0})
        assert found.spacing["weight"] == pytest.approx(8.0, rel=1e-9)


def test_slopes_that_are_off_lie_beyond_both_ends_of_their_interval() -> None:
    """Two averages: each end of a slope's interval is further out by the share of the steeper end."""
    asked = problem(queries=(Query("avg", "weight"), Query("avg", "height")), secrets=(INCOME,), tolerance={"slope": 0.1})
    steep = np.array([0.3 * 25.0, 0.2 * 4.0]) / 30_000.0 * 1_000.0
    for off in (0.0, 0.05):
        cases = seen(asked, gaussians(asked), off)
        reach = 1.1 * off
        expected = {(a, b) for a in (0.9 - reach, 1.1 + reach) for b in (0.9 - reach, 1.1 + reach)}
        found = {tuple(float(x) for x in np.round(np.abs(case.shifts[:, 0]) / steep, 9)) for case in cases}
        assert found == {tuple(float(x) for x in np.round(one, 9)) for one in expected}


def test_statistics_of_no_variance_are_refused_jointly() -> None:
    """Two columns that are one: their difference is 0 in every row."""
    same = Gaussian(
        sd={"weight": 25.0, "income": 2.0, "age": 2.0},
        correlation={("weight", "income"): 0.0, ("weight", "age"): 0.0, ("income", "age"): 1.0},
        tolerance=0,
    )
    joint = Secret(("mean(income - age)", "mean(weight)"), within=1.0)
    asked = problem(theta=(same,), secrets=(joint,), resolution={}, bounds={})
    with pytest.raises(Refusal, match="determine one another"):
        seen(asked, (same,))


# ----------------------------------------------------------------------------------------------- populations, and groups


def hierarchy(weight: float) -> Hierarchy:
    return Hierarchy(
        mean=MOMENTS["mean"],
        between_sd={"weight": 5.0, "height": 1.0, "income": 8_000.0},
        between_correlation=MOMENTS["correlation"],
        within_sd=MOMENTS["sd"] | {"weight": weight},
        tolerance=0,
    )


def test_masks_are_for_the_member_with_the_largest_sd_and_the_charge_for_the_least() -> None:
    asked = hierarchy_problem(resolution={})
    for theta in ((hierarchy(25.0), hierarchy(16.0)), (hierarchy(16.0), hierarchy(25.0))):
        found = population_shift.recorded(asked, theta, ("weight",))
        mask = 25.0 / math.sqrt(asked.n) / 50
        assert found.masks["weight"] == pytest.approx(mask)
        assert found.spacing["weight"] == pytest.approx(min(mask * asked.n / 1.5, 8.0))


def test_whole_numbers_of_undeclared_spacing_are_covered_beyond_it() -> None:
    """By their column's type they have a spacing of 1; their masks cover more."""
    typed = {"weight": "integer", "hours": "integer"}
    mask = max(1.5 / 10_000, 25.0 / 100 / 50)
    found = population_shift.recorded(hierarchy_problem(resolution={}, types=typed), (hierarchy(25.0),), ("weight",))
    assert found.spacing["weight"] == pytest.approx(min(mask * 10_000 / 1.5, 12.5))
    asked = groups_problem(resolution={}, types=typed, tolerance=0)
    told = unequal.recorded(asked, unequal.groups_of(asked))
    own = max(1.5 / 1_000, 12.0 / math.sqrt(1_000) / 50)
    assert told.spacing["hours"] == pytest.approx(max(1.0, min(own * 1_000 / 1.5, 5.5)))
    assert told.spacing["hours"] > 1.0


def test_where_every_row_may_be_known_nothing_masks_the_lattice() -> None:
    """999 of 1,000 rows leave one; of 999.5 none is left."""
    for known, covered in ((0.999, True), (0.9995, False)):
        asked = groups_problem(known_rows=known, tolerance=0)
        if covered:
            assert unequal.recorded(asked, unequal.groups_of(asked)).charge < 1
        else:
            with pytest.raises(Refusal):
                unequal.recorded(asked, unequal.groups_of(asked))


def test_small_numbers_have_small_spacings() -> None:
    groups = Groups(
        sensitive="gender", mean={"F": {"hours": 0.3}, "M": {"hours": 0.4}}, sd={"F": {"hours": 0.11}, "M": {"hours": 0.12}},
        correlation={"F": {}, "M": {}}, prior={"F": 0.3, "M": 0.7}, tolerance=0,
    )  # fmt: skip
    asked = groups_problem(theta=(groups,), resolution={})
    found = unequal.recorded(asked, (groups,))
    assert found.spacing["hours"] == pytest.approx(min(0.12 * math.sqrt(1_000) / 50 / 1.5, 0.055))
    tiny = Hierarchy(**(hierarchy(0.2).model_dump() | {"between_sd": {"weight": 0.1, "height": 1.0, "income": 8_000.0}}))
    known = population_shift.recorded(hierarchy_problem(resolution={}), (tiny,), ("weight",))
    assert known.spacing["weight"] == pytest.approx(min(0.2 * 100 / 50 / 1.5, 0.1))


def test_the_secret_that_clips_most_counts_and_averages_share_what_it_may_cost() -> None:
    near, far = Parameter("income", between=(59_000.0, 61_000.0)), Parameter("income", between=(20_000.0, 100_000.0))
    bounds = {"weight": (-60.0, 340.0)}
    alone: list[Any] = []
    for secrets in ((near,), (far,), (near, far), (far, near)):
        asked = hierarchy_problem(bounds=bounds, delta=0.4, secrets=secrets)
        alone.append(population_shift.clip_charges(asked, population_shift.hierarchies(asked))["weight"])
    assert alone[0] < alone[1] == alone[2] == alone[3]
    for queries, share in (((Query("avg", "weight"),), 10), ((Query("avg", "weight"), Query("avg", "height")), 20)):
        for factor, taken in ((1 + 1e-9, True), (1 - 1e-9, False)):
            asked = hierarchy_problem(bounds=bounds, delta=alone[0] * share * factor, secrets=(near,), queries=queries)
            found = population_shift.clip_charges(asked, population_shift.hierarchies(asked))["weight"]
            assert (found is not None) is taken


@pytest.mark.parametrize("rate", [0.06, 1.0, 30.0])
def test_the_real_epsilon_of_groups_is_found_from_above(rate: float) -> None:
    """Of a curve e^(-rate epsilon), from 1e-6 on: below the promise, or many times above it; above 500 there is none."""
    exact = 6 * math.log(10) / rate
    found = unequal.real_epsilon(lambda epsilon: math.exp(-rate * epsilon), groups_problem())
    assert exact * (1 - 1e-12) <= found <= exact * (1 + 1e-9)
    assert unequal.real_epsilon(lambda epsilon: 1.0, groups_problem()) == math.inf


def test_one_member_without_a_shape_needs_as_many_rows_as_if_none_had_one() -> None:
    """And what is said of the shape is the furthest of all."""
    plain = Gaussian(**MOMENTS, tolerance=0.0)
    for theta in ((plain, shaped(1e-3, 1e-9)), (shaped(1e-3, 1e-9), plain)):
        with pytest.raises(Refusal):
            require_rows(problem(theta=theta), theta, 99)
        require_rows(problem(theta=theta), theta, 100)
    pair = (shaped(1e-3, 1e-10), shaped(1e-4, 1e-9))
    require_rows(problem(theta=pair), pair, 99)
    for theta in (pair, pair[::-1]):
        lines = gaussian_assumptions(problem(theta=theta), theta, ValueLattice(0.0, {}))
        assert "e^0.001 " in lines[0]
        assert "probability 1e-09" in lines[0]


def test_a_column_that_is_hidden_itself_has_no_lattice_to_charge_for() -> None:
    asked = problem(queries=(Query("avg", "income"),), secrets=(INCOME,), tolerance=0)
    found = recorded(asked, gaussians(asked), {"income": 1.0})
    assert (found.charge, found.spacing) == (0.0, {"income": 1.0})


def test_what_is_no_covariance_is_nothing_in_small_units_too() -> None:
    for unit in (1e-14, 1.0, 1e14):
        assert (semidefinite_or_nothing(unit * np.array([[1.0, 2.0], [2.0, 1.0]])) == 0).all()
        assert (semidefinite_or_nothing(unit * np.array([[2.0, 1.0], [1.0, 2.0]])) > 0).all()


def test_sets_beside_a_distance_are_not_covered_over_a_subset() -> None:
    sets = Secret("mean(income)", cases=["< 60000", ">= 60000"])
    query = Query("avg", "weight", where="ward = 'a'")
    assert Rows.of(problem(queries=(query,), secrets=(INCOME,), sizes={"ward = 'a'": 400})).sizes == (400,)
    for secrets in ((sets, INCOME), (INCOME, sets), (sets,)):
        with pytest.raises(Refusal):
            Rows.of(problem(queries=(query,), secrets=secrets, sizes={"ward = 'a'": 400}))
