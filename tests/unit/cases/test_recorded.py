"""From a policy's words to whole rows: what is summed, which secrets must look alike, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from attrpriv.assumptions.recorded_table import RecordedTable
from attrpriv.assumptions.records import Records
from attrpriv.cases import recorded
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


@pytest.mark.parametrize("entry", [2.125, 2.1250001, 2.375, 2.37524, 2.37476])
def test_an_entry_half_way_between_two_multiples_is_refused(entry: float) -> None:
    """Exact numbers and an engine's floats may round it apart: 0.575 on a spacing of 0.01 is 58 here and 57 there."""
    rows = Records(
        file=RecordedTable.of(ROWS | {"pay": [1.25, entry, None, 9.75]}),
        columns=("school", "pay", "sex"),
        resamples={"number": 0},
    )
    with pytest.raises(Refusal, match="half-way"):
        recorded_case(problem(theta=(rows,)))
    for near, q in ((2.11, 8), (2.37474, 9), (2.37526, 10)):
        (law,) = recorded_case(problem(theta=(listed(ROWS | {"pay": [1.25, near, None, 9.75]}),))).checks[0].laws
        assert law.q[1] == q


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


def test_pairs_are_as_far_apart_as_the_range_at_most() -> None:
    for within, apart in ((0.25, 3), (0.1, 1), (0.9, 9), (50.0, 9)):
        secrets = (
            recorded_case(problem(secrets=(Secret("mean(school)", between=(9.01, 10.0), within=within),))).checks[0].secrets
        )
        assert (secrets.low, secrets.high, secrets.apart) == (91, 100, apart)
    two = recorded_case(problem(secrets=(Secret("mean(school)", between=(9.1, 9.2)),))).checks[0].secrets
    assert (two.low, two.high, two.apart) == (91, 92, 1)


def test_a_range_may_have_so_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """From 91 to 100 these are 10."""
    monkeypatch.setattr(recorded, "_MOST_SECRETS", 10)
    assert recorded_case(problem()).checks
    monkeypatch.setattr(recorded, "_MOST_SECRETS", 9)
    with pytest.raises(Refusal, match="narrow between"):
        recorded_case(problem())


def test_public_rows_may_have_so_many_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "_MOST_ROWS", 4)
    assert recorded_case(problem()).checks
    monkeypatch.setattr(recorded, "_MOST_ROWS", 3)
    with pytest.raises(Refusal, match="different pairs"):
        recorded_case(problem())


def test_rows_that_a_law_lacks_are_not_in_it() -> None:
    theta = listed(ROWS)
    (member,) = theta.members()
    counts = np.array([2, 0, 3, 1])
    law = recorded._law(replace(member, counts=counts), np.array([8, 9, 8, 10]), np.array([1, 1, 1, 2]))
    assert (law.s, law.q, law.counts) == ((8, 10), (1, 2), (5, 1))


def test_every_law_has_all_columns() -> None:
    """Those that are asked for, hidden, or in an event of either."""
    less = Records(
        file=RecordedTable.of({key: ROWS[key] for key in ("school", "sex")}), columns=("school", "sex"), resamples={"number": 0}
    )
    for both in ((listed(ROWS), less), (less, listed(ROWS))):
        for changes in ({}, {"queries": (Query("count", where="pay > 2"),)}):
            with pytest.raises(Refusal, match="must name pay"):
                recorded_case(problem(theta=both, **changes))
    shares = {"queries": (Query("count", where="sex = 'F'"),), "secrets": (Secret("share(pay > 2)", between=(0.2, 0.6)),)}
    with pytest.raises(Refusal, match="must name pay"):
        recorded_case(problem(theta=(less,), **shares))


def test_events_count_one_a_row() -> None:
    asked = problem(queries=(Query("count", where="pay >= 2"),), secrets=(Secret("share(sex = 'F')", between=(0.2, 0.6)),))
    case = recorded_case(asked)
    assert case.asked.unit == case.checks[0].hidden.unit == 1
    assert (case.asked.column, case.checks[0].hidden.column) == (None, None)


@pytest.mark.parametrize(
    ("kind", "values", "resolution", "unit"),
    [
        ("integer", [1, 2, None, 9], None, 1), ("boolean", [1, 0, None, 1], None, 1), (None, [1.0, 2, None, 9], None, 1),
        ("integer", [1, 2, None, 9], 3.0, 1), (None, [1, 2, None, 9], 0.5, 1), ("float", [1.0, 2, None, 9], 0.5, 0.5),
        (None, [1.5, 2, None, 9], 0.5, 0.5), ("float", [1.0, 2, None, 9], None, None),
        (None, [1.5, 2, None, 9], None, None),
    ],
)  # fmt: skip
def test_whole_numbers_are_summed_as_they_are(kind: str | None, values: list[Any], resolution: float | None, unit: Any) -> None:
    """What is asked for is: by its type or, where that is not known, by its values; all else on the declared spacing."""
    types = {"school": "integer", "sex": "text"} | ({} if kind is None else {"pay": kind})
    told = {"pay": resolution} if resolution is not None else {}
    asked = problem(theta=(listed(ROWS | {"pay": values}),), types=types, resolution=told, bounds={}, missing={"pay": 0.0})
    if unit is None:
        with pytest.raises(Refusal, match="needs the spacing of pay"):
            recorded_case(asked)
    else:
        assert recorded_case(asked).asked.unit == unit


def test_texts_and_gaps_are_no_numbers() -> None:
    texts = listed(ROWS | {"sex": ["F", None, "F", "M"]})
    with pytest.raises(Refusal, match="must hold numbers"):
        recorded_case(problem(queries=(Query("avg", "sex"),), theta=(texts,)))


@pytest.mark.parametrize(
    "changes", [{"bounds": {"pay": (0.0, 5.1)}}, {"bounds": {"pay": (0.1, 5.0)}}, {"missing": {"pay": 0.3}}]
)
def test_each_end_lies_on_the_spacing(changes: dict[str, Any]) -> None:
    with pytest.raises(Refusal, match="multiples of its spacing"):
        recorded_case(problem(**changes))


def test_rows_are_clipped_on_both_sides() -> None:
    (law,) = recorded_case(problem(bounds={"pay": (1.5, 5.0)})).checks[0].laws
    assert law.q == (6, 8, 6, 20)
