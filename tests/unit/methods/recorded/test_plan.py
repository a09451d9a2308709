"""What a plan for recorded laws says and draws: its noise, its tails, its tally, and what it refuses."""

from __future__ import annotations

import math
from typing import Any

import pytest
from scipy.stats import norm

from attrpriv.errors import RefusedError, UsageError
from attrpriv.methods.choice.choose import plan
from attrpriv.methods.recorded import plan as forms
from attrpriv.queries.query import Query
from tests.conformance.test_mechanisms import records_problem
from tests.unit.methods.recorded.test_recorded import COUNT


def test_an_average_has_the_noise_and_the_rounding_of_its_sum() -> None:
    made = plan(records_problem(queries=(Query("avg", "hours"), Query("sum", "hours"), Query("count"))), "gaussian")
    (column,), told = made.columns, made.certificate.evidence
    evidence: Any = told
    sd = math.hypot(evidence.scale, evidence.step / math.sqrt(12))
    assert column.noise.scale == pytest.approx(sd / made.n, rel=1e-12)
    assert column.independent == evidence.own_noise
    assert column.error.rmse == pytest.approx(sd / made.n, rel=1e-6)
    assert [error.rmse for error in made.errors] == [pytest.approx(sd / made.n), pytest.approx(sd), 0.0]


def test_a_count_counts_each_row_once_and_tells_how_far_it_may_be_off() -> None:
    """Noise beyond a number, after rounding to a step and to a whole number."""
    made = plan(records_problem(**COUNT), "gaussian")
    evidence: Any = made.certificate.evidence
    assert made.tally is not None
    assert [(cell.where, cell.value) for cell in made.tally.cells] == [("hours >= 40", 1)]
    assert (made.tally.noise, made.tally.scale, made.tally.complete) == ("kernel", evidence.scale, False)
    each, off = made.tally.tail_step, evidence.step / 2 + 0.5
    assert len(made.tally.tails) == 160
    for k, tail in enumerate(made.tally.tails):
        assert tail == pytest.approx(min(1.0, 2 * norm.sf(max(0.0, k * each - off) / evidence.scale)), rel=1e-9, abs=1e-300)
    assert 2 * norm.sf(each * 80 / evidence.scale) <= 1e-12
    (error,) = made.errors
    assert error.rmse == pytest.approx(math.hypot(evidence.scale, max(evidence.step, 1.0) / math.sqrt(12)), rel=1e-6)


def test_the_least_noise_that_is_tried_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    made = plan(records_problem(), "gaussian")
    assert not any("less is not tried" in note for note in made.notes)
    monkeypatch.setattr(forms, "FLOOR", 20.0)
    again = plan(records_problem(), "gaussian")
    evidence: Any = again.certificate.evidence
    sd = max(law.moments()[1] for check in evidence.checks for law in check.laws)
    assert evidence.scale == pytest.approx(20.0 * sd * math.sqrt(again.n), rel=1e-9)
    assert [note for note in again.notes if "less is not tried" in note] == [
        "noise of 2000% of the sum's own spread is enough; less is not tried."
    ]


def test_a_kernel_is_for_one_secret_under_one_assumption() -> None:
    (theta,) = records_problem().theta
    with pytest.raises(RefusedError, match="one secret under one assumption"):
        plan(records_problem(theta=(theta, theta)), "transport")
    assert plan(records_problem(theta=(theta, theta)), "gaussian").certificate.evidence.kind == "recorded"


def test_calibrations_are_exact_and_noise_needs_delta() -> None:
    with pytest.raises((RefusedError, UsageError), match="under records it is exact"):
        plan(records_problem(calibration="classical"), "gaussian")
    for name in ("gaussian", "transport"):
        with pytest.raises((RefusedError, UsageError), match="delta"):
            plan(records_problem(delta=0.0), name)


@pytest.mark.parametrize(
    ("changes", "kind", "categories"),
    [
        ({}, "recorded_transport", 0),
        ({"secrets": COUNT["secrets"]}, "recorded_share_transport", 2),
        (COUNT, "recorded_transport", 2),
    ],
)
def test_rows_of_the_secret_are_counted_where_it_is_a_share(changes: dict[str, Any], kind: str, categories: int) -> None:
    made = plan(records_problem(**changes), "transport")
    assert made.certificate.evidence.kind == kind
    read = made.categories if made.tally is None else made.tally.categories
    assert [(one.name, one.where, one.member) for one in read] == [
        ("sex = 'F'", "sex = 'F'", True), ("others", None, False),
    ][:categories]  # fmt: skip
