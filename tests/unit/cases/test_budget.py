"""What is left for a calibration, and what is stored: every draw on a grid is paid for, in every plan of the suite."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import mpmath
import pytest

from attrpriv.cases.budget import MOST_LATTICE, MOST_STEPS, budget, sequence_budget
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
    assert transported.grid_eta == pytest.approx(grid(2, 2 + 1)[1], rel=1e-9)
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
    assert found.grid_eta == pytest.approx(eta, rel=1e-9)
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
