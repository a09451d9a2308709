"""What a reference view says before anything is drawn: what it shows, what it never shows, and what else it could be."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from attrpriv.methods.base.view_coverage import FIRST, Coverage
from attrpriv.methods.base.view_plan import ViewPlan
from attrpriv.methods.choice.choose import plan_view_of
from attrpriv.problem.problem import Problem
from attrpriv.problem.reference import PublicCell, PublicCells, Reference
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from attrpriv.queries.sql import parse_queries

# Nine frequent combinations and one of a handful of records.
COUNTS = dict.fromkeys(itertools.product((20, 21, 22, 23), ("F", "M")), 1000) | {(24, "F"): 900, (25, "M"): 3}
PUBLIC = PublicCells(
    columns=("age", "sex"),
    kinds={"age": "integer", "sex": "text"},
    records=sum(COUNTS.values()),
    cells=tuple(PublicCell(values=values, count=count) for values, count in COUNTS.items()),
)


def view(public: PublicCells = PUBLIC, n: int = 5000, **changes: Any) -> ViewPlan:
    reference = Reference(**{"file": "census.parquet", "least_density": 0.7, **changes})
    secret = Secret(f"columns({', '.join(public.columns)})")
    asked = Problem(queries=(Query("count"),), secrets=(secret,), epsilon=1.0, delta=1e-6, n=n)
    return plan_view_of(asked.model_copy(update={"reference": reference, "public_cells": public}))


def coverage(**changes: Any) -> Coverage:
    found = view(**changes).coverage
    assert found is not None
    return found


def test_what_is_shown_and_what_never_is() -> None:
    found = coverage()
    plan = view()
    assert (found.values, found.shown, found.never_shown) == (10, 9, ("25~M",))
    assert found.rows == plan.rows == sum(cell.keep for cell in plan.cells)
    assert found.public == pytest.approx(1 - 3 / sum(COUNTS.values()))
    assert plan.certificate.evidence.delta(0.0) == found.delta <= 1e-6
    assert found.failure <= 1e-9
    for number in (f"{found.rows:,}", "9 of 10", "25~M", f"{found.failure:.2g}", f"{found.delta:.2g}"):
        assert number in " ".join(plan.notes)


def test_the_outlook_has_the_stated_density_among_others_and_each_column_alone() -> None:
    outlook = coverage().outlook
    whole = [row for row in outlook if row.columns == ("age", "sex")]
    assert [row.least_density for row in whole] == [1.0, 0.9, 0.8, 0.7, 0.6, 0.5]
    assert [row.least_density for row in whole if row.stated] == [0.7]
    assert [row.columns for row in outlook if row not in whole] == [("age",), ("sex",)]
    assert [row.rows for row in whole] == sorted((row.rows for row in whole), reverse=True)
    assert all(row.rows == view(least_density=row.least_density).rows for row in whole)


def test_the_outlook_of_a_column_alone_is_that_of_a_policy_with_it_alone() -> None:
    for column in ("age", "sex"):
        (row,) = [row for row in coverage().outlook if row.columns == (column,)]
        assert row.rows == view(PUBLIC.only(column)).rows > coverage().rows


def test_one_column_has_no_rows_of_columns_alone() -> None:
    assert {row.columns for row in coverage(public=PUBLIC.only("age")).outlook} == {("age",)}


def test_stated_shares_have_an_outlook_too() -> None:
    cells = tuple(PublicCell(values=(value, sex), share=0.1) for value in range(4) for sex in "FM")
    public = PublicCells(columns=("age", "sex"), cells=cells)
    found = coverage(public=public, file=None, shares={"age, sex": {"values": [[0, "F"]], "shares": [1]}})
    assert found.public == pytest.approx(0.8)  # not of all that is stated: of the public
    assert [row.columns for row in found.outlook][-2:] == [("age",), ("sex",)]


def test_of_many_values_the_first_are_named_and_json_has_all() -> None:
    cells = tuple(PublicCell(values=(k,), count=1000 if k < 40 else 1) for k in range(100))
    plan = view(PublicCells(columns=("age",), records=40_060, cells=cells), n=40_000)
    assert len(plan.first_cells) == FIRST
    assert plan.more_cells == 35
    assert plan.coverage is not None
    assert len(plan.coverage.to_json()["never_shown"]) == 60
    assert "55 more" in " ".join(plan.coverage.lines)
    assert len(str(plan).splitlines()) < 30


def test_a_plan_survives_json() -> None:
    assert ViewPlan.from_json(view().to_json()) == view()


@pytest.mark.parametrize(
    ("text", "public"),
    [
        ("avg(age)", True),
        ("count(*) filter (where age > 21 and sex = 'F')", True),
        ("SELECT sex, avg(age) FROM data GROUP BY sex", True),
        ("avg(age) filter (where hours > 3)", False),
        ("SELECT sex, avg(hours) FROM data GROUP BY sex", False),
        ("avg(hours)", False),
        ("count(*)", False),
    ],
)
def test_which_answers_are_public_numbers(text: str, public: bool) -> None:
    (query,) = parse_queries(text)
    assert view().is_public(query) == public
