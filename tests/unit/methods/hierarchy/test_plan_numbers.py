"""What plans under a hierarchy say of themselves: how near they are to the least noise, and what holds for steeper slopes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from attrpriv.assumptions.hierarchy import Hierarchy
from attrpriv.cases.shift import ShiftCase
from attrpriv.errors import Cause, RefusedError
from attrpriv.methods.base.gaussian_proof import GaussianEvidence
from attrpriv.methods.choice.choose import plan
from attrpriv.methods.hierarchy.means import _is_covariance
from attrpriv.problem.secret import Parameter
from attrpriv.queries.query import Query
from tests.refusing import refuses
from tests.unit.methods.hierarchy.test_plans import INCOME, NUMBERS, problem, transported
from tests.unit.methods.proofs import gaussian_delta

NAMES = ("weight", "income", "height")
BETWEEN = np.array([[25.0, 12_000.0, 2.0], [12_000.0, 64e6, -1_600.0], [2.0, -1_600.0, 1.0]])
WITHIN = np.array([625.0, 9e8, 16.0])
HEIGHT = Parameter("height", within=2.0)
BOTH = (Query("avg", "weight"), Query("avg", "height"))


def law(asked: tuple[str, ...], hidden: str, apart: float, off: float = 0.0, n: int = 10_000) -> tuple[Any, Any]:
    """How averages move over a widest pair, and their covariance given it; with slopes steeper by a share, but for its own."""
    at, places = NAMES.index(hidden), [NAMES.index(name) for name in asked]
    slopes = BETWEEN[places, at] / BETWEEN[at, at]
    steeper = slopes * np.array([1.0 if name == hidden else 1 + off for name in asked])
    spread = BETWEEN[np.ix_(places, places)] - np.outer(steeper, steeper) * BETWEEN[at, at] + np.diag(WITHIN[places] / n)
    return steeper * apart, spread


def noise_of(found: Any) -> Any:
    evidence = found.certificate.evidence
    noise = np.diag(np.array(evidence.independent) ** 2)
    return noise + np.array(evidence.factor) @ np.array(evidence.factor).T if evidence.factor else noise


def test_one_average_has_the_least_noise_there_is() -> None:
    for secrets in ((INCOME,), (HEIGHT,), (INCOME, HEIGHT)):
        found = plan(problem(secrets=secrets), "gaussian")
        assert found.certificate.exact
        assert found.certificate.gap == 0
        assert found.noise.individuals == 0
        assert found.error.rmse == found.noise.scale


def test_of_several_averages_the_gap_is_that_of_the_one_furthest_from_its_own_least_noise() -> None:
    """Alone each would need max(mask^2, (shift/mu)^2 - variance) of the worst secret."""
    found = plan(problem(queries=BOTH, secrets=(INCOME, HEIGHT)), "gaussian")
    mu = found.columns[0].parameters["mu"]
    gaps = []
    for k, part in enumerate(found.columns):
        laws = [law(("weight", "height"), "income", 40_000.0), law(("weight", "height"), "height", 2.0)]
        needed = [(shift[k] / mu) ** 2 - spread[k, k] for shift, spread in laws]
        gaps.append(part.noise.scale - math.sqrt(max(part.parameters["mask"] ** 2, *needed)))
    assert not found.certificate.exact
    assert found.certificate.gap == pytest.approx(max(gaps), rel=1e-6)
    assert max(gaps) > 1.01 * min(gaps)


def test_what_is_shown_of_an_average_is_its_furthest_move_and_its_least_spread() -> None:
    found = plan(problem(queries=BOTH, secrets=(INCOME, HEIGHT)), "gaussian")
    laws = [law(("weight", "height"), "income", 40_000.0), law(("weight", "height"), "height", 2.0)]
    for k, part in enumerate(found.columns):
        shifts, spreads = [abs(shift[k]) for shift, _ in laws], [spread[k, k] for _, spread in laws]
        assert part.parameters["shift"] == pytest.approx(max(shifts), rel=1e-9)
        assert part.parameters["credited_variance"] == pytest.approx(min(spreads), rel=1e-9)
        assert max(shifts) > 1.1 * min(shifts)
        assert max(spreads) > 1.01 * min(spreads)


def test_bounds_that_are_not_applied_cost_nothing() -> None:
    for name in ("gaussian", "transport"):
        narrow = plan(problem(bounds={"weight": (60.0, 250.0)}), name)
        assert narrow.columns[0].clip is None
        assert narrow.noise.scale == plan(problem(), name).noise.scale
        assert narrow.certificate.evidence.clip_delta == 0  # type: ignore[attr-defined]


@pytest.mark.parametrize("secrets", [(INCOME,), (INCOME, HEIGHT)])
@pytest.mark.parametrize("queries", [BOTH[:1], BOTH])
def test_what_holds_for_steeper_slopes_is_what_the_laws_say(secrets: tuple[Any, ...], queries: tuple[Query, ...]) -> None:
    """With 98% of delta, the rest being in reserve: of the worst secret, at each share."""
    found = plan(problem(queries=queries, secrets=secrets), "gaussian")
    assert isinstance(found.certificate.evidence, GaussianEvidence)
    asked = ("weight", "height")[: len(queries)]
    for row in found.model_error:
        worst, laws = 0.0, [law(asked, secret.columns[0], secret.gap, row.off_by) for secret in secrets]
        if any(np.linalg.eigvalsh(spread)[0] < 0 for _, spread in laws):
            assert row.epsilon is None
            continue
        for shift, spread in laws:
            worst = max(worst, math.sqrt(shift @ np.linalg.solve(spread + noise_of(found), shift)))
        assert row.epsilon is not None
        assert float(gaussian_delta(row.epsilon, worst)) == pytest.approx(0.98e-6, rel=0.01)


def test_populations_that_cannot_be_have_no_epsilon() -> None:
    """At a correlation of .95, slopes 10% steeper would explain more than there is; the correlation is then above 1."""
    steep = NUMBERS | {
        "between_correlation": {("weight", "income"): 0.95, ("weight", "height"): 0.0, ("height", "income"): 0.0},
        "within_sd": {"weight": 2.5, "income": 30_000.0, "height": 4.0},
    }
    for name in ("gaussian", "transport"):
        found = plan(problem(theta=(Hierarchy(**steep),)), name)
        assert [row.epsilon is None for row in found.model_error] == [False, False, False, True]


@pytest.mark.parametrize(
    ("rows", "possible"),
    [
        (((0.3, 0.1), (0.1, 0.2)), True),
        (((0.0, 0.0), (0.0, 1.0)), False),
        (((1.0, 0.0), (0.0, -0.1)), False),
        (((1.0, 1.1), (1.1, 1.0)), False),
        (((1e-8, 0.5), (0.5, 1e8)), True),
        (((1e-8, 1.5), (1.5, 1e8)), False),
    ],
)
def test_what_counts_as_a_covariance(rows: tuple[tuple[float, ...], ...], possible: bool) -> None:
    assert _is_covariance(ShiftCase("s", 0, np.ones((2, 1)), np.array(rows))) is possible


# ---------------------------------------------------------------------------------------------------------------- transport


def test_averages_vary_around_their_populations_by_their_own_standard_errors() -> None:
    _, evidence = transported(n=400)
    check = evidence.check
    assert (check.query_between, check.hidden_between, check.correlation) == (5.0, 8_000.0, 0.3)
    assert (check.query_within, check.hidden_within) == pytest.approx((25 / 20, 30_000 / 20))
    assert check.apart == 40_000.0


def test_what_is_read_has_its_own_public_value_for_missing_entries() -> None:
    _, evidence = transported(missing={"income": 55_000.0, "weight": 150.0})
    assert dict(evidence.clamp.reads[0].fill) == {"income": 55_000.0}
    assert evidence.clamp.reads[0].centre == 60_000.0


NARROW = NUMBERS | {
    "between_correlation": {("weight", "income"): 0.99999, ("weight", "height"): 0.0, ("height", "income"): 0.0},
    "within_sd": {"weight": 2.0, "income": 30_000.0, "height": 4.0},
}


def test_where_the_mask_is_enough_there_is_nothing_to_take_back() -> None:
    """Up to the pair whose move is mu standard deviations of the average with its mask; a little further there is."""
    asked: dict[str, Any] = {"theta": (Hierarchy(**NARROW),), "n": 100}
    found, evidence = transported(**asked)
    parameters = found.columns[0].parameters
    mask = parameters["mask"]
    assert mask**2 > 1e-3 * evidence.check.variance
    most = parameters["mu"] * math.sqrt(evidence.check.variance + mask**2) / abs(evidence.check.slope)
    near = Parameter("income", within=most * (1 - 1e-5))
    with refuses(RefusedError, Cause.NOTHING_FOUND, "mechanism gaussian"):
        plan(problem(**asked, secrets=(near,)), "transport")
    plan(problem(**asked, secrets=(Parameter("income", within=most * (1 + 1e-5)),)), "transport")


def test_a_clamp_is_as_good_as_can_be_where_it_needs_no_noise() -> None:
    """A linear form is always; a clamp that is widened by noise has a gap, the noise beyond its mask."""
    found, evidence = transported()
    assert evidence.clamp.reach > 0
    assert (found.certificate.exact, found.certificate.gap) == (True, 0.0)
    near, linear = transported(secrets=(Parameter("income", between=(40_000.0, 80_000.0), within=6_500.0),))
    assert linear.clamp.reach == 0
    assert (near.certificate.exact, near.certificate.gap) == (True, 0.0)
    wide, widened = transported(theta=(Hierarchy(**NARROW),), n=100_000, epsilon=8.0, delta=0.1)
    assert widened.clamp.reach > 0
    assert not wide.certificate.exact
    assert wide.certificate.gap == pytest.approx(widened.scale - wide.columns[0].parameters["mask"], rel=1e-12)
    assert wide.certificate.gap > 0


def test_a_correlation_further_from_zero_is_what_slopes_are_off_by() -> None:
    found, evidence = transported()
    check, clamp = evidence.check, evidence.clamp
    for row in found.model_error:
        steeper = 3 / 16_000 * (1 + row.off_by)
        moved = min(2 * clamp.reach, clamp.slopes[0][0] * 40_000) + (steeper - clamp.slopes[0][0]) * 40_000
        variance = 25 * (1 - (0.3 * (1 + row.off_by)) ** 2) + check.query_within**2 + evidence.scale**2
        assert row.epsilon is not None
        assert float(gaussian_delta(row.epsilon, moved / math.sqrt(variance))) == pytest.approx(0.98e-6, rel=0.01)
