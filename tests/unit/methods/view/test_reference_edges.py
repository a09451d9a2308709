"""A reference view at its edges: its failure by scipy, values that are nearly too rare, types that are not alike."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from scipy.stats import binom

from attrpriv.methods.base.count_test import CountTest, count_test
from attrpriv.methods.base.view_plan import ViewCell
from attrpriv.methods.choice.choose import plan_view_of
from attrpriv.methods.view.coverage import coverage_of, with_coverage
from attrpriv.methods.view.reference import (
    ReferenceEvidence,
    _empty,
    _least,
    _require_kinds,
    _stated_keeps,
    kept_rows,
    plan_reference,
    reference_evidence,
)
from attrpriv.numerics.laws.prediction import at_least, surely
from attrpriv.numerics.rounding import SUM_SLACK
from attrpriv.problem.problem import Problem
from attrpriv.problem.reference import PublicCell, PublicCells, Reference
from attrpriv.problem.refusal import Cause
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from tests.refusing import refuses

TEST = count_test(2.0, 1e-3, 1e-3)
assert TEST is not None


def cells(*told: tuple[int, float | int | None], n: int, counted: bool = False) -> tuple[ViewCell, ...]:
    """Cells of which so many rows are kept, with their share or count."""
    kept = sum(keep for keep, _ in told)
    name = "count" if counted else "share"
    return tuple(
        ViewCell(name=str(k), keep=keep, low=keep, high=n - kept + keep, values=(k,), **{name: known})
        for k, (keep, known) in enumerate(told)
    )


def evidence(n: int = 50, **changes: Any) -> ReferenceEvidence:
    told: dict[str, Any] = {
        "n": n, "columns": ("a",), "cells": cells((5, 0.4), (8, 0.5), n=50), "listed": 3, "least_density": 0.9, "alike": n,
        "level": 1e-3, "rarest_event": 1.0, "digest": "",
    }  # fmt: skip
    return ReferenceEvidence(**(told | changes))


def below(n: int, share: float, k: int) -> float:
    return float(binom.cdf(k - 1, n, share))


# --------------------------------------------------------------------------------------------------------- stated shares


def test_the_failure_of_stated_shares_is_the_sum_of_their_tails() -> None:
    """Behind a test each cell needs its margin too, and the test itself may fail."""
    tails = below(50, 0.9 * 0.4, 5) + below(50, 0.9 * 0.5, 8)
    assert evidence().failure() == pytest.approx(tails, rel=1e-8)
    assert evidence(rarest_event=0.25).delta(0.0) == pytest.approx(4 * tails, rel=1e-8)
    small = CountTest(delta=0.3, scale=1.0, threshold=1, margin=2)
    assert small.proved
    failing = below(50, 0.9 * 0.4, 7) + below(50, 0.9 * 0.5, 10) + math.exp(-2) / (1 + math.exp(-1))
    assert evidence(test=small).failure() == pytest.approx(failing, rel=1e-8)
    assert evidence(test=small.model_copy(update={"delta": 1e-9})).failure() == 1


def test_all_rows_may_be_kept() -> None:
    """P(Bin(4, 1/2) < 2) of either of two values."""
    told = evidence(4, cells=cells((2, 0.5), (2, 0.5), n=4), least_density=1.0)
    assert told.failure() == pytest.approx(2 * 5 / 16, rel=1e-8)


def test_shares_add_up_to_one_but_for_rounding() -> None:
    for more, holds in ((0.0, True), (SUM_SLACK / 2, True), (SUM_SLACK * 2, False)):
        told = evidence(cells=cells((5, 0.5), (5, 0.5 + more), n=50), least_density=1.0)
        assert (told.failure() < 1) is holds


def test_what_cannot_be_told_fails_surely_and_no_more() -> None:
    """A cell of an unknown share is refused even if no row of it is kept; one of share 0 has no row."""
    for told in (
        evidence(cells=cells((5, 0.5), (0, None), n=50)),
        evidence(cells=cells((5, 0.5), (2, 0.0), n=50)),
        evidence(cells=cells((5, 0.0), (2, 0.0), n=50)),
        evidence(alike=51),
        evidence(listed=1),
    ):
        assert told.failure() == 1
        assert told.model_copy(update={"rarest_event": 0.5}).delta(0.0) == 1


def test_a_share_that_a_float_holds_is_not_rounded() -> None:
    assert _least(1.0, 0.5) == 0.5
    assert _least(0.5, 0.25) == 0.125
    assert Fraction(_least(0.9, 0.7)) <= Fraction(63, 100) < Fraction(math.nextafter(_least(0.9, 0.7), 1))


# -------------------------------------------------------------------------------------------------------- public records


def counted(alike: int, level: float, density: float, *keeps: tuple[int, int], **changes: Any) -> ReferenceEvidence:
    told: dict[str, Any] = {
        "cells": cells(*keeps, n=400, counted=True), "records": 300, "alike": alike, "level": level, "least_density": density,
    }  # fmt: skip
    return evidence(400, **(told | changes))


def test_the_failure_of_public_records_is_that_of_rows_alike_and_the_level() -> None:
    """All records may be counted, and each cell must be sure of its rows."""
    keeps = [surely(300, 345, count, 1e-3) for count in (100, 200)]
    told = counted(345, 1e-3, 0.9, (keeps[0], 100), (keeps[1], 200))
    fewer = below(400, 0.9, 345)
    assert 1e-4 < fewer < 1e-2
    assert told.failure() == pytest.approx(fewer + 1e-3, rel=1e-8)
    small = CountTest(delta=0.3, scale=1.0, threshold=1, margin=2)
    behind = counted(345, 1e-3, 0.9, (keeps[0] - 2, 100), (keeps[1] - 2, 200), test=small)
    assert behind.failure() == pytest.approx(fewer + 1e-3 + small.failure, rel=1e-8)
    assert counted(345, 1e-3, 0.9, (keeps[0] - 1, 100), (keeps[1] - 2, 200), test=small).failure() == 1
    assert counted(345, 1e-3, 0.9, (keeps[0] + 1, 100), (keeps[1], 200)).failure() == 1
    assert counted(345, 1e-3, 0.9, (keeps[0], 101), (keeps[1], 200)).failure() == 1
    alike = [surely(300, 400, count, 1e-3) for count in (100, 200)]
    assert counted(400, 1e-3, 1.0, (alike[0], 100), (alike[1], 200)).failure() == pytest.approx(1e-3, rel=1e-8)


def test_a_cell_without_a_count_proves_nothing_even_if_no_row_is_kept() -> None:
    keep = surely(300, 345, 100, 1e-3)
    assert counted(345, 1e-3, 0.9, (keep, 100), (0, 50)).failure() < 1
    without = [ViewCell(name="x", keep=0, low=0, high=400 - keep, values=(9,))]
    first = cells((keep, 100), n=400, counted=True)[0].model_copy(update={"high": 400})
    assert counted(345, 1e-3, 0.9, cells=(first, *without)).failure() == 1


def test_a_failure_is_never_above_one() -> None:
    assert counted(400, 0.9, 0.5, cells=()).failure() == 1


# -------------------------------------------------------------------------------------------------------- how many rows


RECORDS = tuple(PublicCell(values=(k,), count=count) for k, count in enumerate((4, 40, 150, 106)))


def test_a_value_is_shown_with_two_rows_or_not_at_all() -> None:
    """By every table size: what the binomial law lets count on, and nothing of a single row."""
    reference = Reference(file=None, shares={"a": {"values": [0, 1], "shares": [0.1, 0.9]}}, least_density=0.8, failure=0.02)
    public = PublicCells(columns=("a",), cells=(PublicCell(values=(0,), share=0.1), PublicCell(values=(1,), share=0.9)))
    seen = set()
    for n in range(10, 140, 3):
        keeps, alike, level = kept_rows(n, reference, public)
        wanted = [max((k for k in range(n + 1) if below(n, 0.8 * s, k) <= 0.01), default=0) for s in (0.1, 0.9)]
        assert alike == n
        assert level == pytest.approx(0.02, rel=1e-6)
        assert keeps == [k if k >= 2 else 0 for k in wanted]
        seen.add(wanted[0])
    assert seen >= {0, 1, 2, 3}


def test_half_of_the_level_is_for_rows_that_are_not_alike() -> None:
    reference = Reference(file="a.csv", least_density=0.8, failure=0.02)
    public = PublicCells(columns=("a",), records=300, cells=RECORDS)
    keeps, alike, level = kept_rows(400, reference, public)
    assert alike == max(k for k in range(401) if below(400, 0.8, k) <= 0.01)
    assert level == pytest.approx(0.01, rel=1e-6)
    found = [surely(300, alike, count, level) for count in (4, 40, 150, 106)]
    assert keeps == [k if k >= 2 else 0 for k in found]
    assert len(set(keeps)) == 4
    exact = reference.model_copy(update={"least_density": 1.0})
    assert kept_rows(400, exact, public)[1:] == pytest.approx((400, 0.02), rel=1e-6)


def test_behind_a_test_half_of_the_level_and_its_margin_are_left_out() -> None:
    reference = Reference(file="a.csv", least_density=1.0, failure=0.02)
    public = PublicCells(columns=("a",), records=300, cells=RECORDS)
    assert TEST is not None
    keeps, _, level = kept_rows(400, reference, public, TEST)
    assert level == pytest.approx(0.01, rel=1e-6)
    found = [surely(300, 400, count, level) - TEST.margin for count in (4, 40, 150, 106)]
    assert keeps == [k if k >= 2 else 0 for k in found]
    assert keeps[2] > 2
    made = reference_evidence(400, reference, public, TEST)
    total = sum(keeps)
    assert [cell.high for cell in made.cells] == [400 - total + keep for keep in keeps if keep]
    assert made.listed == 4
    assert made.failure() <= 0.02


def test_a_value_without_a_share_keeps_nothing() -> None:
    reference = Reference(file=None, shares={"a": {"values": [0], "shares": [1.0]}}, least_density=0.8)
    made = _stated_keeps(100, reference, [PublicCell(values=(0,)), PublicCell(values=(1,), share=0.5)], 0.02)
    assert made == [0, at_least(100, 0.4, 0.01)]


# ------------------------------------------------------------------------------------------------------------ what is said


def problem(**changes: Any) -> Problem:
    asked: dict[str, Any] = {
        "queries": (Query("count"),), "secrets": (Secret("columns(a)"),), "epsilon": 1.0, "delta": 1e-3, "n": 400,
    }  # fmt: skip
    return Problem(**asked).model_copy(update=changes)


def kinds(own: str, kind: str, values: tuple[Any, ...], *, records: int | None) -> None:
    """Whether a column of this type in the table, and of that one in the reference, hides what is said."""
    public = PublicCells(
        columns=("b", "a"),
        kinds={"b": "text", "a": kind},
        records=records,
        cells=tuple(PublicCell(values=("x", v)) for v in values),
    )
    _require_kinds(problem(types={"b": "text", "a": own}), public)


@pytest.mark.parametrize(
    ("own", "kind", "values", "records", "alike"),
    [
        ("integer", "integer", (1, 2), 9, True),
        ("integer", "float", (1.0, 2.0), 9, True),
        ("integer", "float", (1.0, 2.5), 9, False),
        ("integer", "float", (2.5, 1.0), 9, False),
        ("float", "integer", (1, 2), 9, True),
        ("decimal", "float", (1.5, 2.5), 9, True),
        ("text", "text", ("u", "v"), 9, True),
        ("text", "integer", (1, 2), 9, False),
        ("integer", "text", ("u", "v"), None, False),
        ("date", "text", ("2020-01-01",), None, True),
        ("date", "text", ("2020-01-01",), 9, False),
        ("text", "date", ("2020-01-01",), None, False),
    ],
)
def test_values_are_compared_with_values_of_their_kind(
    own: str, kind: str, values: tuple[Any, ...], records: int | None, alike: bool
) -> None:
    if alike:
        kinds(own, kind, values, records=records)
    else:
        with refuses(Exception, Cause.PUBLIC_FACT, "a written alike"):
            kinds(own, kind, values, records=records)


def test_a_reference_is_a_law_and_its_values() -> None:
    """One without the other is none."""
    public = PublicCells(columns=("a",), kinds={"a": "integer"}, records=300, cells=RECORDS)
    reference = Reference(file="a.csv", least_density=0.8, failure=1e-3, rarest_event=1.0)
    for changes in ({"reference": reference}, {"public_cells": public}):
        with refuses(Exception, Cause.PUBLIC_FACT, "reference"):
            plan_reference(problem(**changes), Secret("columns(a)"))
    assert plan_reference(problem(reference=reference, public_cells=public, types={"a": "integer"}), Secret("columns(a)")).rows


def test_a_promise_of_nothing_is_called_weak() -> None:
    """Only where neither the public's law nor what happened in the table is left open."""
    for density, event, weak in ((1.0, 1.0, True), (0.9, 1.0, False), (1.0, 0.5, False), (0.9, 0.5, False)):
        reference = Reference(file="a.csv", least_density=density, rarest_event=event)
        assert bool(_empty(reference)) is weak


def test_coverage_is_told_of_reference_views_alone() -> None:
    public = PublicCells(columns=("a",), kinds={"a": "integer"}, records=300, cells=RECORDS)
    reference = Reference(file="a.csv", least_density=0.8, failure=1e-3, rarest_event=1.0)
    asked = problem(reference=reference, public_cells=public, types={"a": "integer"})
    plan = plan_view_of(asked)
    assert plan.coverage is not None
    made = plan.certificate.evidence
    assert isinstance(made, ReferenceEvidence)
    assert coverage_of(made, reference, public).delta == made.delta(0.0)
    assert [row.kept for row in plan.coverage.outlook] == [row.rows / 400 for row in plan.coverage.outlook]
    bare = plan.model_copy(update={"coverage": None})
    assert with_coverage(bare, asked).coverage == plan.coverage
    for changes in ({"reference": None}, {"public_cells": None}):
        assert with_coverage(bare, problem(**{"reference": reference, "public_cells": public, **changes})) is bare
    ranged = plan_view_of(problem(secrets=(Secret("share(g = 'F')", between=(0.25, 0.4)),)))
    assert with_coverage(ranged, asked) is ranged
