"""A reference view that may lose no more than the policy's delta is planned, to the last digit."""

from __future__ import annotations

import pytest

import attrpriv as ap
from attrpriv.methods.view.reference import plan_reference
from attrpriv.problem.reference import PublicCell, PublicCells

RECORDS = PublicCells(
    columns=("age",), records=600, cells=tuple(PublicCell(values=(age,), count=200 * (age - 16)) for age in (17, 18))
)


@pytest.mark.parametrize("least_density", [0.5, 0.8, 1.0])
@pytest.mark.parametrize(("failure", "event"), [(1e-6, 1.0), (1e-9, 1e-3), (3e-7, 0.3), (1e-7, 0.1), (7e-8, 0.07), (1e-4, 1.0)])
def test_a_failure_that_takes_all_of_delta_is_planned(least_density: float, failure: float, event: float) -> None:
    reference = ap.Reference(file="records.parquet", least_density=least_density, failure=failure, rarest_event=event)
    policy = ap.Policy(epsilon=1.0, delta=reference.level / event, protect=[ap.Secret("columns(age)")], reference=reference)
    problem = policy.problem([ap.count()], 400, {"age": "integer"}, RECORDS)
    plan = plan_reference(problem, policy.protect[0])
    assert plan.certificate.evidence.delta(0.0) <= policy.delta
    assert plan.rows > 50
