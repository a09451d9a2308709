"""What is left for a calibration, and what is stored: every draw on a grid is paid for, in every plan of the suite."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.stats import norm

from attrpriv.cases.budget import MOST_LATTICE, MOST_STEPS, Budget, allowed_distance, budget, clip_charge, sequence_budget
from attrpriv.cases.gaussian import gaussians
from attrpriv.methods.base.evidence import Charged
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan
from attrpriv.methods.table import MECHANISMS
from attrpriv.numerics.calibration.groups import equalise
from attrpriv.problem.refusal import Refusal
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from tests.conformance.test_mechanisms import PROBLEMS, groups_problem, planned, problem
from tests.unit.methods.proofs import every

SHAPED = {"slope": 0.05, "shape": {"lambda": 1e-3, "eta": 1e-9}}


def grid(columns: int, shared: int) -> tuple[float, float]:
    """(lambda, eta): 37 steps of 2^-32 and a square for each average, a quarter more with common noise; 2^-34 for that."""
    with mpmath.workdps(30):
        reach = mpmath.mpf(2) ** -32 * (mpmath.mpf(5) / 4 if shared else 1)
        fine = mpmath.mpf(2) ** -34
        lam = columns * (37 * reach + reach**2) + shared * (37 * fine + fine**2)
        return float(lam), float((columns + shared) * mpmath.mpf("2.2") * mpmath.exp(mpmath.mpf(-(37**2)) / 2))


@cache
def charged_plans() -> tuple[Plan, ...]:
    made = [*every().values(), *(planned(asked, name) for asked in PROBLEMS.values() for name in MECHANISMS)]
    return tuple(one for one in made if one is not None and isinstance(one.certificate.evidence, Charged))


def draws(evidence: Any) -> tuple[int, int]:
    """Averages with noise of their own, and further numbers that are drawn on a common grid: read off the proof."""
    columns = len(evidence.steps) if evidence.kind == "transport_sequence" else len(evidence.columns)
    factor = getattr(evidence, "factor", ())
    shared = len(factor[0]) if factor else 0
    clamp = evidence.taken_back()
    shared += sum(read.mask > 0 for read in clamp.reads) if clamp is not None else 0
    equalised = getattr(evidence, "equalised", None)
    shared += sum(len(part.factor[0]) for part in equalised.parts) if equalised is not None else 0
    return columns, shared


def test_every_draw_is_paid_for() -> None:
    """And no plan pays for many more than it makes, but in a sequence, where as many are paid for as there can be."""
    kinds = set()
    for made in charged_plans():
        evidence: Any = made.certificate.evidence
        lam, eta = grid(*draws(evidence))
        assert evidence.grid_lambda >= lam * (1 - 1e-12), evidence.kind
        assert evidence.grid_eta >= eta * (1 - 1e-12), evidence.kind
        if not evidence.goes_on:
            columns, shared = draws(evidence)
            assert evidence.grid_lambda <= grid(columns, shared + 2 * columns + 1)[0] * (1 + 1e-9), evidence.kind
        kinds.add(evidence.kind)
    assert len(kinds) >= 8


def test_several_averages_pay_for_all_numbers_that_common_noise_may_be_made_of() -> None:
    """Of transport: one for each average, one for each statistic that is read, and one for each mask; of groups: all parts."""
    asked = problem(
        queries=(Query("avg", "weight"), Query("avg", "height")),
        secrets=(Secret("mean(income)", between=(20_000.0, 200_000.0)),),
        tolerance=0,
    )
    transported: Any = plan(asked, "transport").certificate.evidence
    assert transported.kind == "transport"
    assert transported.grid_lambda == pytest.approx(grid(2, 2 + 1)[0], rel=1e-9)
    assert transported.grid_eta == pytest.approx(grid(2, 2 + 1)[1], rel=1e-9, abs=0)
    grouped = groups_problem(queries=(Query("avg", "hours"), Query("avg", "age")), tolerance=0)
    for name in ("gaussian", "transport"):
        evidence: Any = plan(grouped, name).certificate.evidence
        parts = sum(len(part.factor[0]) for part in equalise(evidence.check.case).parts)
        assert parts > 0
        assert evidence.grid_lambda == pytest.approx(grid(2, parts + 2)[0], rel=1e-9)


def test_every_plan_keeps_a_reserve() -> None:
    for made in charged_plans():
        evidence: Any = made.certificate.evidence
        assert evidence.reserve == pytest.approx(0.02 * made.delta, rel=0.6)  # of the delta before a fit's risk
        assert evidence.reserve > 0


@pytest.mark.parametrize(("columns", "common"), [(None, None), (3, None), (2, 5), (1, 0)])
@pytest.mark.parametrize("tolerance", [0, SHAPED])
def test_what_is_left(columns: int | None, common: int | None, tolerance: Any) -> None:
    asked = problem(tolerance=tolerance)
    found = budget(asked, asked.theta, 1e-4, 1e-8, common, columns)
    count = 1 if columns is None else columns
    lam, eta = grid(count, (0 if count == 1 else count) if common is None else common)
    shape_lambda, shape_eta = (1e-3, 1e-9) if tolerance else (0.0, 0.0)
    assert found.grid_lambda == pytest.approx(lam, rel=1e-9)
    assert found.grid_eta == pytest.approx(eta, rel=1e-9, abs=0)
    assert (found.lattice_lambda, found.shape_lambda, found.shape_eta, found.clip_delta) == (
        1e-4,
        shape_lambda,
        shape_eta,
        1e-8,
    )
    total = lam + 1e-4 + shape_lambda
    assert found.epsilon == pytest.approx(1.0 - 2 * total, rel=1e-9)
    assert found.epsilon <= 1.0 - 2 * total
    left = 1e-6 * 0.98 - 1e-8 - (eta + shape_eta) * (1 + math.e)
    assert found.delta == pytest.approx(left * math.exp(-total), rel=1e-8)
    assert found.excess == pytest.approx(2 * total)
    assert found.reserve == pytest.approx(2e-8)
    assert found.fit_delta == 0.0
    assert found.promised == 1e-6


def test_nothing_is_left() -> None:
    asked = problem()
    for lattice, clip in ((0.5, 0.0), (0.0, 0.98e-6), (0.6, 0.0), (0.0, 2e-6)):
        with pytest.raises(Refusal):
            budget(asked, asked.theta, lattice, clip)
    assert budget(asked, asked.theta, 0.49, 0.0).epsilon < 0.03
    assert budget(asked, asked.theta, 0.0, 0.97e-6).delta < 2e-8


def test_a_sequence_pays_for_all_that_may_come() -> None:
    asked = problem()
    found = sequence_budget(asked, asked.theta, 3, 1e-9, common=0)
    assert found.lattice_lambda == MOST_LATTICE
    assert found.grid_lambda == pytest.approx(grid(MOST_STEPS, 0)[0], rel=1e-9)
    assert found.clip_delta == 0.0
    assert sequence_budget(asked, asked.theta, MOST_STEPS, MOST_LATTICE).grid_lambda == pytest.approx(grid(40, 40)[0], rel=1e-9)
    for averages, lattice in ((MOST_STEPS + 1, 0.0), (1, MOST_LATTICE * (1 + 1e-9))):
        with pytest.raises(Refusal):
            sequence_budget(asked, asked.theta, averages, lattice)
    classical = asked.model_copy(update={"calibration": "classical"})
    with pytest.raises(Refusal):
        sequence_budget(classical, asked.theta, 1, 0.0)


# ------------------------------------------------------------------------------------------------------------------ clipping

EXACT = {"secrets": (Secret("mean(income)", between=(59_000.0, 61_000.0)),), "delta": 0.4, "tolerance": 0}


def clipped(bounds: tuple[float, float], mean: float, slope: float, far: float) -> float:
    """n P(a row is outside), for an income that is at most so far from its mean: slope 0.3 * 25 / 30,000 or another."""
    low, high = bounds
    reach = abs(slope) * far
    return 10_000 * float(norm.cdf((low - mean + reach) / 25) + norm.sf((high - mean - reach) / 25))


@pytest.mark.parametrize("bounds", [(0.0, 1_000.0), (-1_000.0, 300.0), (10.0, 290.0), (25.0, 310.0)])
def test_what_clipping_costs(bounds: tuple[float, float]) -> None:
    """Either end alone, or both: the chance that some row is clipped, wherever in its range the secret is."""
    asked = problem(**EXACT, bounds={"weight": bounds})
    wanted = (1 + math.e) * clipped(bounds, 150.0, 0.3 * 25 / 30_000, 1_000.0)
    assert clip_charge(asked, gaussians(asked), "weight") == pytest.approx(wanted, rel=1e-6, abs=0)
    for tenth in (0.999, 1.001):  # a tenth of delta at most
        found = clip_charge(asked.model_copy(update={"delta": 10 * wanted * tenth}), gaussians(asked), "weight")
        assert (found is None) is (tenth < 1)
    two = problem(**EXACT, bounds={"weight": bounds}, queries=(Query("avg", "weight"), Query("avg", "height")))
    for twentieth in (0.999, 1.001):
        found = clip_charge(two.model_copy(update={"delta": 20 * wanted * twentieth}), gaussians(two), "weight")
        assert (found is None) is (twentieth < 1)


def test_the_furthest_value_of_a_secret_counts() -> None:
    """One end of its range is further from the mean than the other, or a sum is in other units than its mean."""
    for between in ((40_000.0, 61_000.0), (59_000.0, 80_000.0)):
        asked = problem(**(EXACT | {"secrets": (Secret("mean(income)", between=between),)}), bounds={"weight": (0.0, 290.0)})
        wanted = (1 + math.e) * clipped((0.0, 290.0), 150.0, 0.3 * 25 / 30_000, 20_000.0)
        assert clip_charge(asked, gaussians(asked), "weight") == pytest.approx(wanted, rel=1e-6, abs=0)
        total = (Secret("sum(income)", between=(between[0] * 10_000, between[1] * 10_000)),)
        summed = problem(**(EXACT | {"secrets": total}), bounds={"weight": (0.0, 290.0)})
        assert clip_charge(summed, gaussians(summed), "weight") == pytest.approx(wanted, rel=1e-6, abs=0)


@pytest.mark.parametrize("bounds", [(10.0, 1_000.0), (-1_000.0, 290.0)])
def test_no_member_of_the_class_clips_more(bounds: tuple[float, float]) -> None:
    """Means, sds and slopes anywhere within the tolerance: the charge covers each, and all of the tolerances are in it."""
    rng = np.random.default_rng(3)
    alone = clip_charge(problem(**EXACT, bounds={"weight": bounds}), gaussians(problem(**EXACT)), "weight")
    assert alone is not None
    for told in (
        {"mean": 0.05, "slope": 0.0},
        {"sd": 0.05, "slope": 0.0},
        {"slope": 0.5},
        {"mean": 0.02, "sd": 0.02, "slope": 0.2},
    ):
        asked = problem(**(EXACT | {"tolerance": told}), bounds={"weight": bounds})
        found = clip_charge(asked, gaussians(asked), "weight")
        assert found is not None
        assert found > alone * (1 + 1e-9)
        worst = 0.0
        for signs in [*np.array(np.meshgrid(*[[-1, 1]] * 4)).reshape(4, -1).T, *rng.uniform(-1, 1, (50, 4))]:
            mean, sd, slope, hidden = (float(x) for x in signs)
            own = 25 * (1 + told.get("sd", 0.0) * sd)
            wander = 60_000 + told.get("mean", 0.0) * hidden * 30_000 * (1 + told.get("sd", 0.0))
            for end in (59_000.0, 61_000.0):
                at = 150 + told.get("mean", 0.0) * mean * own
                at += 0.3 * 25 / 30_000 * (1 + told.get("slope", 0.0) * slope) * (end - wander)
                worst = max(worst, 10_000 * float(norm.cdf((bounds[0] - at) / own) + norm.sf((bounds[1] - at) / own)))
        assert (1 + math.e) * worst <= found <= 1.2 * (1 + math.e) * worst


def test_where_clipping_is_not_bounded() -> None:
    """Rows that somebody knows, secrets without a range, columns whose mean is not stated."""
    free: dict[str, Any] = EXACT | {"bounds": {"weight": (0.0, 1_000.0)}}
    assert clip_charge(problem(**free), gaussians(problem(**free)), "weight") is not None
    known = problem(**free, known_rows=0.01)
    open_ended = problem(**(free | {"secrets": (Secret("mean(income)", within=1_000.0),)}))
    several = problem(**(free | {"secrets": (*EXACT["secrets"], Secret("mean(income)", within=1_000.0))}))  # type: ignore[misc]
    for asked in (known, open_ended, several):
        assert clip_charge(asked, gaussians(asked), "weight") is None
    for lacking in ("weight", "income"):
        mean = {name: at for name, at in {"weight": 150.0, "income": 60_000.0, "height": 67.0}.items() if name != lacking}
        theta = (gaussians(asked)[0].model_copy(update={"mean": mean}),)
        assert clip_charge(problem(**free), theta, "weight") is None


@pytest.mark.parametrize(("calibration", "epsilon"), [("analytic", 0.5), ("classical", 0.5), ("analytic", 3.0)])
def test_how_far_outputs_may_be_apart(calibration: str, epsilon: float) -> None:
    """Balle and Wang's curve at the distance is the calibration's delta; the classical constant is a smaller distance."""
    left = Budget(epsilon, 1e-6, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1e-6, ())
    found = allowed_distance(problem(calibration=calibration), left)
    with mpmath.workdps(40):
        mu = mpmath.mpf(found)
        delta = mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)
    if calibration == "analytic":
        assert float(delta) == pytest.approx(1e-6, rel=1e-6, abs=0)
        assert delta <= 1e-6
    else:
        assert found == pytest.approx(epsilon / math.sqrt(2 * math.log(1.25 / 1e-6)), rel=1e-9)
        assert delta < 1e-6
