"""The Gaussian mechanism's plan for one average: how much noise, why, and when it refuses."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.worst_case import candidates, witness
from attrpriv.errors import AttrprivError, RefusedError, UsageError
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan
from attrpriv.numerics.calibration.gaussian import gaussian_mu
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from tests.property.twin import drawn_noise, hockey_stick, separation, stated
from tests.unit.assumptions.test_worst_case import full_moments

SCHOOL = {"sd": {"weight": 25.0, "income": 30_000.0}, "correlation": {("weight", "income"): 0.3}}


def problem(**changes: Any) -> Problem:
    """The school: 10,000 students, weight released, mean income hidden within 1,000."""
    moments = {**SCHOOL, "tolerance": {"mean": 0.01, "sd": 0.02, "slope": 0.05}, **changes.pop("moments", {})}
    stated: dict[str, Any] = {
        "queries": (Query("avg", "weight"),),
        "secrets": (Secret("mean(income)", between=(20_000.0, 200_000.0), within=1_000.0),),
        "epsilon": 1.0,
        "delta": 1e-6,
        "n": 10_000,
        "theta": (Gaussian(**moments),),
        "resolution": {"weight": 1.0},
    }
    return Problem(**(stated | changes))


def scale(**changes: Any) -> float:
    return planned(**changes).columns[0].noise.scale


def planned(**changes: Any) -> Plan:
    return plan(problem(**changes), "gaussian")


# ----------------------------------------------------------------------------------------------------------- how much noise


def test_the_school_by_hand() -> None:
    """Steepest slope, widest pair, least residual; epsilon and delta less what grids and the reserve cost."""
    slope = 0.3 * 25 / 30_000 * 1.05
    residual = (25 * 0.98) ** 2 - (slope * 30_000 * 1.02) ** 2
    by_hand = math.sqrt((slope * 1_000 / gaussian_mu(1.0, 0.98e-6)) ** 2 - residual / 10_000)
    assert scale() == pytest.approx(by_hand, rel=1e-6)
    assert scale() > 10 * planned().columns[0].parameters["mask"]


def test_the_certificate_has_those_numbers() -> None:
    found = planned()
    found.certificate.verify()
    (part,) = found.columns
    assert part.parameters["shift"] == pytest.approx(0.3 * 25 / 30_000 * 1.05 * 1_000)
    assert part.parameters["mask"] == 1e-4
    assert found.certificate.exact
    assert found.certificate.gap == 0.0
    assert found.certificate.evidence.delta(1.0) == pytest.approx(1e-6, rel=1e-6)


MORE_NOISE: list[tuple[str, list[dict[str, Any]]]] = [
    ("smaller epsilon", [{"epsilon": e} for e in (10.0, 3.0, 1.0, 0.3, 0.01)]),
    ("smaller delta", [{"delta": d} for d in (0.1, 1e-3, 1e-6, 1e-10)]),
    ("wider pairs", [{"secrets": (Secret("mean(income)", within=w),)} for w in (100.0, 500.0, 1_000.0, 1e5)]),
    ("more known rows", [{"known_rows": k, "secrets": (Secret("mean(income)", within=300.0),)} for k in (0.0, 0.3, 0.6, 0.9)]),
    ("slope tolerance", [{"moments": {"tolerance": {"slope": t}}} for t in (0.0, 0.05, 0.5)]),
    ("sd tolerance", [{"moments": {"tolerance": {"sd": t, "slope": 0.0}}} for t in (0.0, 0.05, 0.3)]),
    ("correlation tolerance", [{"moments": {"tolerance": {"correlation": t}}} for t in (0.0, 0.05, 0.3)]),
    ("stronger correlation", [{"moments": {"correlation": {("weight", "income"): r}}} for r in (0.1, -0.3, 0.6, -0.9)]),
    ("classical", [{"calibration": c} for c in ("analytic", "classical")]),
]


@pytest.mark.parametrize(("what", "steps"), MORE_NOISE, ids=[what for what, _ in MORE_NOISE])
def test_what_asks_for_more_noise(what: str, steps: list[dict[str, Any]]) -> None:
    scales = [scale(**step) for step in steps]
    assert scales == sorted(scales)
    assert scales[-1] > scales[0]


def test_the_sign_of_the_correlation_does_not_matter() -> None:
    there, back = ({"correlation": {("weight", "income"): r}} for r in (0.4, -0.4))
    assert scale(moments=there) == scale(moments=back)


def test_the_mean_tolerance_does_not_matter() -> None:
    """Unknown means cancel in a difference; they count for clipping and for the constant answer only."""
    assert scale(moments={"tolerance": {"mean": 5.0, "slope": 0.0}}) == scale(moments={"tolerance": {"slope": 0.0}})


def test_a_list_of_assumptions_is_as_bad_as_its_worst() -> None:
    members = [problem(moments={"correlation": {("weight", "income"): r}}).theta[0] for r in (-0.6, 0.1)]
    together = planned(theta=tuple(members))
    assert together.columns[0].noise.scale == pytest.approx(max(scale(theta=(m,)) for m in members), rel=1e-9)


def test_a_column_that_is_itself_the_secret() -> None:
    found = planned(queries=(Query("avg", "income"),), resolution={})
    assert found.columns[0].noise.scale == pytest.approx(1_000 / gaussian_mu(1.0, 0.98e-6), rel=1e-6)
    assert found.columns[0].parameters["credited_variance"] == 0.0


def test_a_sum_as_query_and_as_secret() -> None:
    average = planned()
    total = planned(queries=(Query("sum", "weight"),), secrets=(Secret("sum(income)", within=1e7),))
    assert total.columns == average.columns
    assert total.noise.scale == pytest.approx(1e4 * average.noise.scale, rel=1e-15)
    both = planned(queries=(Query("sum", "weight"), Query("avg", "weight")))
    assert both.columns == average.columns
    values = both.answers([Fraction(0)])
    assert values[0] == pytest.approx(1e4 * values[1], rel=1e-12)


def test_an_unrelated_column_needs_no_noise_beyond_the_mask() -> None:
    found = planned(moments={"correlation": {("weight", "income"): 0.0}, "tolerance": 0})
    assert found.columns[0].noise.scale == pytest.approx(1e-4, rel=1e-8)
    assert "weight: no noise is needed beyond the mask of its digits." in found.notes


def test_the_count_is_public() -> None:
    found = planned(queries=(Query("count"),))
    assert found.columns == ()
    assert found.randomise(0.0) == 10_000.0
    assert found.error.rmse == 0.0


# ------------------------------------------------------------------------------------------------------------------ the mask


@pytest.mark.parametrize(
    ("changes", "mask"),
    [
        ({"resolution": {"weight": 2.0}}, 2.0 / 10_000),
        ({"resolution": {"weight": 0.5}, "types": {"weight": "integer"}}, 1.0 / 10_000),
        ({"resolution": {}, "types": {"weight": "integer"}}, 25 / 100 / 50),
        ({"resolution": {}}, 25 / 100 / 50),
        (
            {"resolution": {}, "types": {"weight": "integer"}, "n": 100, "moments": {"sd": {"weight": 5.0, "income": 3e4}}},
            0.015,
        ),
    ],
)
def test_the_mask(changes: dict[str, Any], mask: float) -> None:
    found = planned(**changes)
    assert found.columns[0].parameters["mask"] == pytest.approx(mask)
    assert found.columns[0].noise.scale >= mask


def test_an_undeclared_spacing_is_said() -> None:
    found = planned(resolution={})
    assert any("undeclared spacing" in note and "Declare resolution" in note for note in found.notes)
    assert any(line.startswith("nearly all values of weight lie on a spacing of at most") for line in found.certificate.assumes)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"resolution": {"weight": 13.0}}, "weight: its standard deviation must be at least twice the spacing"),
    ({"resolution": {"income": 20_000.0}}, "income: its standard deviation must be at least twice the spacing"),
    ({"types": {"weight": "boolean"}, "moments": {"sd": {"weight": 0.5, "income": 3e4}}}, "twice the spacing"),
    ({"moments": {"correlation": {("weight", "income"): 1.0}}}, "must have a standard deviation of at least the spacing"),
    ({"resolution": {"weight": 10.0}, "moments": {"correlation": {("weight", "income"): 0.95}}}, "of at least the spacing"),
    ({"moments": {"tolerance": {"correlation": 0.7}}}, "of at least the spacing"),
    ({"n": 50}, "at least 100 rows"),
    ({"theta": ()}, "needs a gaussian assumption"),
    ({"calibration": "classical", "epsilon": 9.0, "delta": 1e-3}, "classical is unsound"),
    ({"delta": 1e-300}, "costs more than epsilon 1, delta 1e-300 allow"),
    ({"epsilon": 1e-9}, "costs more than epsilon 1e-09"),
    ({"n": 2, "known_rows": 0.9999999, "resolution": {}}, "the mask does not cover the spacing"),
]


@pytest.mark.parametrize(("changes", "says"), REFUSED, ids=[says for _, says in REFUSED])
def test_refused_with_the_reason(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(RefusedError, match=says):
        planned(**changes)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"delta": 0.0}, "delta: a Gaussian mechanism needs delta above 0. Got 0"),
        ({"queries": (Query("avg", "height"),)}, "assume: height must have a standard deviation"),
        ({"secrets": (Secret("mean(sat)", within=1.0),)}, "assume: sat must have a standard deviation"),
        ({"secrets": (Secret("mean(income)", between=(-1e200, 1e200)),)}, "choose another unit"),
        ({"secrets": (Secret("mean(income)", between=(-1e308, 1e308)),)}, "choose another unit"),
        ({"secrets": (Secret(("mean(income)", "mean(weight)"), within=1e200),)}, "choose another unit"),
        ({"moments": {"sd": {"weight": 1e200, "income": 1.0}}}, "sd of weight: must be between"),
        ({"moments": {"sd": {"weight": 1e-161, "income": 1.0}}, "resolution": {}}, "sd of weight: must be between"),
        ({"resolution": {"weight": 1e-200}}, "resolution of weight: must be between"),
    ],
)
def test_bad_usage_is_named(changes: dict[str, Any], says: str) -> None:
    """Numbers whose squares leave the floats once crashed, or (tiny ones) let a certificate underflow to nothing."""
    with pytest.raises(UsageError, match=says) as caught:
        planned(**changes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("power", [-29, -10, 0, 10, 28])
def test_units_do_not_matter(power: int) -> None:
    """The same problem in other units has the same noise in those units."""
    unit = 10.0**power
    moments = {"sd": {"weight": 25.0 * unit, "income": 30_000.0}}
    found = planned(moments=moments, resolution={"weight": unit})
    assert found.columns[0].noise.scale == pytest.approx(scale() * unit, rel=1e-9)


@pytest.mark.parametrize("n", [100, 10**4, 10**9, 10**15])
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("delta", [1e-12, 0.5])
def test_extreme_budgets_and_sizes(n: int, epsilon: float, delta: float) -> None:
    try:
        found = planned(n=n, epsilon=epsilon, delta=delta)
    except AttrprivError as refusal:
        assert refusal.exit_code in (2, 3)  # noqa: PT017 - a plan or a refusal, nothing else
        return
    found.certificate.verify()
    worst = separation(problem(n=n), stated(problem().theta[0]), problem().secrets[0], drawn_noise(found))  # type: ignore[arg-type]
    assert hockey_stick(epsilon, worst) <= delta


# ----------------------------------------------------------------------------------------------------- what a certificate says


def test_a_bound_over_the_class_is_reported_with_its_gap() -> None:
    """Three columns, a corner that does not exist: the certificate says so, and at most `gap` of the noise is wasted."""
    theta = Gaussian(
        sd={"y": 1.0, "x": 1.0, "w": 1.0},
        correlation={("y", "x"): 0.1, ("y", "w"): 0.99, ("x", "w"): 0.1},
        tolerance={"correlation": 0.5},
    )
    asked = problem(
        queries=(Query("avg", "y"),), secrets=(Secret("mean(x)", within=1.0),), theta=(theta,), n=10_000, resolution={}
    )
    found = plan(asked, "gaussian")
    assert not found.certificate.exact
    assert 0 < found.certificate.gap < found.columns[0].noise.scale
    assert "comes from a bound over the class" in str(found.certificate)
    needed = found.columns[0].noise.scale - found.certificate.gap
    exists = [full_moments(theta, "y", "x", witness(theta, "y", "x", corner)) for corner in candidates(theta, "y", "x")]
    noise = np.array([[(0.98 * needed) ** 2]])
    assert max(hockey_stick(1.0, separation(asked, moments, asked.secrets[0], noise)) for moments in exists) > asked.delta


def test_classical_calibration_is_not_called_exact() -> None:
    found = planned(calibration="classical")
    assert not found.certificate.exact
    assert found.certificate.gap == pytest.approx(found.columns[0].noise.scale - scale(), rel=1e-6)


def test_what_a_certificate_rests_on() -> None:
    lines = planned().certificate.assumes
    assert "rows are independent and exactly Gaussian: assumed, not tested" in lines
    assert "the adversary knows no row" in lines
    assert "single persons are not protected" in lines
    assert any(
        line.startswith("the adversary knows at most 0.25 of the rows") for line in planned(known_rows=0.25).certificate.assumes
    )
    assert any("missing entries replaced" in line for line in planned(missing={"weight": 150.0}).certificate.assumes)
    assert planned(missing={"weight": 150.0}).columns[0].fill == 150.0


def test_notes() -> None:
    assert any("1 standard error" in note for note in planned().notes)
    assert any("bounds are not applied" in note for note in planned(bounds={"weight": (60.0, 400.0)}).notes)
    zero = planned(moments={"correlation": {("weight", "income"): 0.0}})
    assert any("stated as 0" in note for note in zero.notes)


def test_bounds_that_would_change_the_law_are_not_applied() -> None:
    """Half of all rows outside: clipping them would not leave a normal law."""
    means = {"mean": {"weight": 150.0, "income": 60_000.0}}
    tight = planned(moments=means, bounds={"weight": (150.0, 151.0)})
    wide = planned(moments=means, bounds={"weight": (-300.0, 600.0)}, secrets=(Secret("mean(income)", between=(5e4, 7e4)),))
    assert tight.columns[0].clip is None
    assert wide.columns[0].clip == (-300.0, 600.0)
    assert wide.columns[0].parameters["clipped"] is True


def test_the_real_epsilon_when_slopes_are_further_off() -> None:
    """`model_error`: at that epsilon the promise holds for slopes off by that much more, and hardly below it."""
    found = planned()
    assert [row.off_by for row in found.model_error] == [0.01, 0.02, 0.05, 0.1]
    epsilons = [row.epsilon for row in found.model_error]
    assert all(epsilon is not None and epsilon > 1.0 for epsilon in epsilons)
    assert epsilons == sorted(epsilons, key=lambda epsilon: epsilon or 0.0)
    noise = float(drawn_noise(found)[0, 0])
    for row in found.model_error:
        slope = 0.3 * 25 / 30_000 * 1.05 * (1 + row.off_by)
        residual = ((25 * 0.98) ** 2 - (slope * 30_000 * 1.02) ** 2) / 10_000
        mu = slope * 1_000 / math.sqrt(residual + noise)
        assert row.epsilon is not None
        assert hockey_stick(row.epsilon, mu) <= 1e-6
        assert hockey_stick(0.99 * row.epsilon, mu) > 1e-6


def test_a_plan_is_asked_about_one_query_at_a_time() -> None:
    found = planned(queries=(Query("avg", "weight"), Query("count")))
    with pytest.raises(UsageError, match="has 2 queries"):
        _ = found.noise
    with pytest.raises(UsageError, match="has 2 queries"):
        found.randomise(1.0)
    assert found.noise_of(Query("count")).kind == "none"
    with pytest.raises(UsageError, match="statistic: must be finite"):
        planned().randomise(math.nan)
