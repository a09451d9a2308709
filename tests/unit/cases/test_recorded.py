"""From a policy's words to whole rows: what is summed, which secrets must look alike, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from attrpriv.assumptions.recorded_table import RecordedTable
from attrpriv.assumptions.records import Records
from attrpriv.cases.recorded import recorded_case
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal
from attrpriv.problem.secret import Parameter, Secret
from attrpriv.queries.query import Query

ROWS: dict[str, Any] = {
    "school": [8, 9, 10, 12],
    "pay": [1.25, 2.0, None, 9.75],
    "sex": ["F", "M", "F", "M"],
}


def listed(rows: dict[str, Any]) -> Records:
    return Records(file=RecordedTable.of(rows), columns=("school", "pay", "sex"), resamples={"number": 0})


def problem(**changes: Any) -> Problem:
    theta = listed(ROWS)
    stated: dict[str, Any] = {
        "queries": (Query("avg", "pay"),),
        "secrets": (Secret("mean(school)", between=(9.01, 10.0), within=0.25),),
        "epsilon": 1.0,
        "delta": 1e-6,
        "n": 10,
        "theta": (theta,),
        "resolution": {"pay": 0.25},
        "bounds": {"pay": (0.0, 5.0)},
        "missing": {"pay": 1.0},
        "types": {"school": "integer", "pay": "float", "sex": "text"},
    }
    return Problem(**(stated | changes))


def test_rows_are_filled_clipped_and_rounded_as_they_are_read() -> None:
    case = recorded_case(problem())
    (law,) = case.checks[0].laws
    assert case.asked.unit == Fraction(1, 4)
    assert list(zip(law.s, law.q, law.counts, strict=True)) == [(8, 5, 1), (9, 8, 1), (10, 4, 1), (12, 20, 1)]


def test_a_mean_is_hidden_in_whole_sums() -> None:
    """90.1 to 100 in sums of 10 rows; a distance of 2.5 rows up, because hiding more is safe."""
    secrets = recorded_case(problem()).checks[0].secrets
    assert (secrets.kind, secrets.low, secrets.high, secrets.apart) == ("sum", 91, 100, 3)
    of_sum = recorded_case(problem(secrets=(Secret("sum(school)", between=(90.1, 100.0)),))).checks[0].secrets
    assert (of_sum.low, of_sum.high, of_sum.apart) == (91, 100, 9)


def test_a_hidden_entry_is_never_rounded() -> None:
    """Sums off the spacing have no law here: 9 years, or half a year for a missing entry, on a spacing of 2."""
    rows = ROWS | {"school": [8, 10, 10, 12]}
    even = listed(rows)
    coarse = {"resolution": {"pay": 0.25, "school": 2.0}}
    secrets = recorded_case(problem(theta=(even,), **coarse)).checks[0].secrets
    assert (secrets.low, secrets.high, secrets.apart) == (46, 50, 2)
    with pytest.raises(Refusal, match="as they are") as refused:
        recorded_case(problem(**coarse))
    assert refused.value.cause is Cause.PUBLIC_FACT
    gap = listed(ROWS | {"school": [8, 10, None, 12]})
    with pytest.raises(Refusal, match="as they are"):
        recorded_case(
            problem(theta=(gap,), missing={"pay": 1.0, "school": 0.5}, types={"school": "float", "pay": "float"}, **coarse)
        )


@pytest.mark.parametrize("entry", [2.125, 2.1250001])
def test_an_entry_half_way_between_two_multiples_is_refused(entry: float) -> None:
    """Exact numbers and an engine's floats may round it apart: 0.575 on a spacing of 0.01 is 58 here and 57 there."""
    rows = Records(
        file=RecordedTable.of(ROWS | {"pay": [1.25, entry, None, 9.75]}),
        columns=("school", "pay", "sex"),
        resamples={"number": 0},
    )
    with pytest.raises(Refusal, match="half-way"):
        recorded_case(problem(theta=(rows,)))
    near = Records(
        file=RecordedTable.of(ROWS | {"pay": [1.25, 2.11, None, 9.75]}),
        columns=("school", "pay", "sex"),
        resamples={"number": 0},
    )
    assert recorded_case(problem(theta=(near,))).checks[0].laws


def test_the_secret_is_not_clipped() -> None:
    (law,) = recorded_case(problem(bounds={"pay": (0.0, 5.0), "school": (0.0, 11.0)})).checks[0].laws
    assert law.s == (8, 9, 10, 12)


def test_a_share_and_an_event() -> None:
    asked = problem(
        queries=(Query("count", where="pay >= 2"), Query("count")),
        secrets=(Secret("share(sex = 'F')", between=(0.2, 0.6), within=0.1),),
    )
    case = recorded_case(asked)
    assert (case.checks[0].secrets.low, case.checks[0].secrets.high, case.checks[0].secrets.apart) == (2, 6, 1)
    (law,) = case.checks[0].laws
    assert list(zip(law.s, law.q, law.counts, strict=True)) == [(0, 1, 2), (1, 0, 2)]  # events are not clipped, but filled


@pytest.mark.parametrize(
    ("changes", "cause", "told"),
    [
        ({"queries": (Query("avg", "pay"), Query("avg", "school"))}, Cause.TOGETHER, "together with"),
        ({"queries": (Query("sum", "pay", where="sex = 'F'"),)}, Cause.STATISTIC, "over all rows"),
        ({"queries": (Query("count", group_by="sex"),)}, Cause.STATISTIC, "over all rows"),
        ({"queries": (Query("count"),)}, Cause.STATISTIC, "number of rows is public"),
        ({"queries": (Query("count", where="age > 3"),)}, Cause.NUMBERS, "must name age"),
        ({"queries": (Query("count", where="sex > 3"),)}, Cause.STATISTIC, "must compare sex with text"),
        ({"queries": (Query("avg", "sex"),)}, Cause.STATISTIC, "must hold numbers"),
        ({"resolution": {}}, Cause.PUBLIC_FACT, "needs the spacing of pay"),
        ({"bounds": {"pay": (0.1, 5.0)}}, Cause.PUBLIC_FACT, "multiples of its spacing"),
        ({"missing": {"pay": 1.1}}, Cause.PUBLIC_FACT, "multiples of its spacing"),
        ({"missing": {}}, Cause.PUBLIC_FACT, "missing entries of pay"),
        ({"known_rows": 0.1}, Cause.PERSONS, "known rows"),
        ({"individuals": 1.0}, Cause.PERSONS, "single persons"),
        ({"secrets": (Secret("mean(school)", within=1.0),)}, Cause.SECRET, "needs between"),
        ({"secrets": (Secret("mean(school + pay)", between=(9.0, 10.0)),)}, Cause.SECRET, "a mean, a sum, a count or a share"),
        ({"secrets": (Secret("mean(school)", cases=("< 9", ">= 9")),)}, Cause.SECRET, "a mean, a sum, a count or a share"),
        ({"secrets": (Parameter("share(sex = 'F')", between=(0.2, 0.6)),)}, Cause.SECRET, "of this table"),
        ({"n": 1_000_000}, Cause.SIZE, "narrow between"),
    ],
)
def test_what_is_not_covered_is_refused(changes: dict[str, Any], cause: Cause, told: str) -> None:
    with pytest.raises(Refusal, match=told) as caught:
        recorded_case(problem(**changes))
    assert caught.value.cause is cause
    assert caught.value.needs
