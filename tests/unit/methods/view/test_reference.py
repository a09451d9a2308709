"""The reference view: how many rows of each public value are kept, and a proof that stands on its own numbers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from scipy.stats import binom

from attrpriv.errors import PolicyError, RefusedError, UsageError
from attrpriv.methods.base.view_plan import ViewPlan
from attrpriv.methods.choice.choose import plan as plan_problem
from attrpriv.methods.choice.choose import plan_view_of
from attrpriv.methods.view.reference import ReferenceEvidence
from attrpriv.problem.problem import Problem
from attrpriv.problem.reference import PublicCell, PublicCells, Reference, stated_cells
from attrpriv.problem.refusal import Cause
from attrpriv.problem.secret import Parameter, Secret
from attrpriv.queries.query import Query
from tests.refusing import refuses
from tests.unit.methods.proofs import accepted, refused

RECORDS = PublicCells(
    columns=("age",),
    kinds={"age": "integer"},
    records=1000,
    cells=tuple(PublicCell(values=(age,), count=count) for age, count in ((17, 3), (18, 197), (19, 300), (20, 500))),
)
LAW = {"age": {"values": [18, 19, 20], "shares": [0.2, 0.3, 0.5]}}
STATED = Reference.checked({**LAW, "least_density": 0.8, "failure": 1e-6, "rarest_event": 1.0})
FILE = Reference(file="census.parquet", least_density=0.8, failure=1e-6, rarest_event=1.0)


def problem(reference: Reference | None = FILE, cells: PublicCells | None = RECORDS, **changes: Any) -> Problem:
    asked: dict[str, Any] = {
        "queries": (Query("avg", "x"),),
        "secrets": (Secret("columns(age)"),),
        "epsilon": 1.0,
        "delta": 1e-6,
        "n": 800,
        "reference": reference,
        "public_cells": cells,
        "types": {"age": "integer", "x": "float"},
    }
    return Problem(**(asked | changes))


def stated(**changes: Any) -> Problem:
    return problem(STATED, stated_cells(STATED, ("age",)), **changes)


def proof(view: ViewPlan) -> ReferenceEvidence:
    assert isinstance(view.certificate.evidence, ReferenceEvidence)
    return view.certificate.evidence


# The secret and the reference.


def test_the_secret_is_columns_together() -> None:
    secret = Secret('COLUMNS(age, "a b", c)')
    assert secret.whole_columns == secret.columns == ("age", "a b", "c")
    assert str(secret) == 'columns(age, "a b", c), everything about them'
    assert Secret("mean(age)", within=1.0).whole_columns == ()
    assert Secret("distribution(g)", between={"F": (0.1, 0.5), "other": (0.5, 0.9)}).whole_columns == ()


@pytest.mark.parametrize("changes", [{"between": (0.0, 1.0)}, {"within": 1.0}, {"cases": ("< 1", ">= 1")}])
def test_it_takes_no_pairs(changes: dict[str, Any]) -> None:
    with pytest.raises(PolicyError, match="everything about these columns"):
        Secret("columns(age)", **changes)


def test_it_is_about_this_table() -> None:
    with pytest.raises(PolicyError, match="Write secret"):
        Parameter("columns(age)")


@pytest.mark.parametrize("text", ["columns(age, age)", "columns(age + 1)", "columns(t.age)"])
def test_it_names_different_columns(text: str) -> None:
    with pytest.raises(PolicyError, match="columns takes different columns"):
        Secret(text)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"least_density": 0.8}, "file of public records"),
        ({"file": "a.csv", "age": {"values": [1], "shares": [1.0]}, "least_density": 0.8}, "one of them"),
        ({"file": "a.csv"}, "least_density"),
        ({"file": "a.csv", "least_density": 0.0}, "least_density"),
        ({"file": "a.csv", "least_density": 1.1}, "least_density"),
        ({"file": "a.csv", "least_density": 0.8, "failure": 0.0}, "failure"),
        ({"file": "a.csv", "least_density": 0.8, "rarest_event": 0.0}, "rarest_event"),
        ({"file": "a.csv", "least_density": float("nan")}, "least_density"),
        ({"age": {"values": [1, 2], "shares": [1.0]}, "least_density": 0.8}, "a share for each value"),
        ({"age": {"values": [1, 1], "shares": [0.5, 0.5]}, "least_density": 0.8}, "each value once"),
        ({"age": {"values": [1, 2], "shares": [0.5, 0.6]}, "least_density": 0.8}, "add up to 1"),
        ({"age": {"values": [1, [2, 3]], "shares": [0.5, 0.0]}, "least_density": 0.8}, "shares"),
        (
            {"age": {"values": [1], "shares": [1.0]}, "sex": {"values": ["F"], "shares": [1.0]}, "least_density": 0.8},
            "shares of each alone do not tell them",
        ),
    ],
)
def test_a_reference_that_says_too_little_or_too_much(told: dict[str, Any], message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        Reference(**told)


def test_what_the_records_may_miss_is_added() -> None:
    assert Reference(file="a", least_density=0.8, failure=1e-9, confidence=0.999).level == pytest.approx(1e-9 + 1e-3)
    assert Reference(file="a", least_density=0.8, failure=1e-9).level == 1e-9


# The plan.


def test_a_view_of_public_records() -> None:
    made = plan_view_of(problem())
    assert [cell.name for cell in made.cells] == ["18", "19", "20"]
    assert all(cell.keep >= 2 and cell.low == cell.keep for cell in made.cells)
    assert (made.certificate.epsilon, made.certificate.delta) == (0.0, 1e-6)
    assert proof(made).failure() <= 1e-6
    assert any("never shown" in note and "17" in note for note in made.notes)
    assert any("of 3 of 4 public values, which 99.70% of the public have" in note for note in made.notes)


def test_a_view_of_stated_shares_keeps_what_the_binomial_law_says() -> None:
    made = plan_view_of(stated())
    for cell, share in zip(made.cells, (0.2, 0.3, 0.5), strict=True):
        kept, more = (float(binom.cdf(k, 800, 0.8 * share)) for k in (cell.keep - 1, cell.keep))
        assert kept <= 1e-6 / 3 < more
    assert proof(made).failure() == pytest.approx(
        sum(float(binom.cdf(c.keep - 1, 800, 0.8 * s)) for c, s in zip(made.cells, (0.2, 0.3, 0.5), strict=True)), rel=1e-8
    )


def test_rarer_events_cost_more() -> None:
    rare = FILE.model_copy(update={"rarest_event": 1e-3, "failure": 1e-9})
    made = plan_view_of(problem(rare))
    assert proof(made).delta(0.0) == pytest.approx(1e3 * proof(made).failure())
    assert 0.9e-6 < proof(made).delta(0.0) <= 1e-6
    with pytest.raises(UsageError, match="delta: must be at least 2e-06"):
        plan_view_of(problem(rare.model_copy(update={"rarest_event": 5e-4})))


def test_a_higher_density_keeps_more() -> None:
    kept = [plan_view_of(problem(FILE.model_copy(update={"least_density": r}))).rows for r in (0.5, 0.8, 0.95, 1.0)]
    assert kept == sorted(set(kept))


def test_only_a_view_hides_columns() -> None:
    with refuses(RefusedError, Cause.SECRET, "a view"):
        plan_problem(problem(bounds={"x": (0.0, 1.0)}), "group_dp")
    assert plan_problem(problem()).mechanism == "subsample"


@pytest.mark.parametrize(
    ("asked", "cause", "needs"),
    [
        (problem(None, None), Cause.PUBLIC_FACT, "reference"),
        (problem(types={"age": "text"}), Cause.PUBLIC_FACT, "age written alike"),
        (problem(delta=9e-7), Cause.BUDGET, "a larger delta"),
        (problem(delta=0.0), Cause.BUDGET, "a larger delta"),
        (problem(n=20), Cause.PRECISION, "fewer hidden columns, or sorted cells"),
        (problem(known_rows=0.1), Cause.PERSONS, "known_rows 0"),
    ],
)
def test_what_cannot_be_hidden_is_refused(asked: Problem, cause: Cause, needs: str) -> None:
    with refuses((RefusedError, UsageError), cause, needs):
        plan_view_of(asked)


def test_a_number_may_be_written_in_two_ways() -> None:
    assert plan_view_of(problem(types={"age": "float"})).rows == plan_view_of(problem()).rows


# The proof.


def changed(evidence: ReferenceEvidence, k: int = 0, **update: Any) -> ReferenceEvidence:
    """The same with one cell changed."""
    cells = tuple(cell.model_copy(update=update) if j == k else cell for j, cell in enumerate(evidence.cells))
    return evidence.model_copy(update={"cells": cells})


@pytest.mark.parametrize("asked", [problem(), stated()], ids=["records", "shares"])
def test_it_is_proved_from_its_own_numbers(asked: Problem) -> None:
    told = proof(plan_view_of(asked))
    again = ReferenceEvidence.from_json(told.to_json())
    assert again == told
    assert accepted(again, 0.0, 1e-6)
    assert not accepted(again, 0.0, again.failure() * (1 - 1e-9))


def kept(evidence: ReferenceEvidence, k: int, more: int) -> ReferenceEvidence:
    """One cell keeps more rows, and every other number follows."""
    keeps = [cell.keep + more * (j == k) for j, cell in enumerate(evidence.cells)]
    cells = tuple(
        cell.model_copy(update={"keep": keep, "low": keep, "high": evidence.n - sum(keeps) + keep})
        for cell, keep in zip(evidence.cells, keeps, strict=True)
    )
    return evidence.model_copy(update={"cells": cells})


@pytest.mark.parametrize("k", [0, 1, 2])
def test_one_row_more_of_any_value_is_not_proved(k: int) -> None:
    told = proof(plan_view_of(problem()))
    assert accepted(kept(told, k, -1), 0.0, 1e-6)
    assert refused(kept(told, k, 1))
    shares = proof(plan_view_of(stated()))
    assert accepted(kept(shares, k, -1), 0.0, 1e-6)
    assert not accepted(kept(shares, k, 2), 0.0, 1e-6)


IMPOSSIBLE: dict[str, Any] = {
    "fewer records than counted": lambda e: e.model_copy(update={"records": 990}),
    "a cell without its count": lambda e: changed(e, count=None),
    "a count that is lower": lambda e: changed(e, count=150),
    "a cell twice": lambda e: changed(e, values=(19,)),
    "values of two columns": lambda e: changed(e, values=(18, 1)),
    "no values": lambda e: changed(e, values=None),
    "a larger public": lambda e: e.model_copy(update={"records": 10_000}),
    "more rows alike": lambda e: e.model_copy(update={"alike": 700}),
    "more rows alike than there are": lambda e: e.model_copy(update={"alike": 801, "least_density": 1.0}),
    "a lower density": lambda e: e.model_copy(update={"least_density": 0.7}),
    "a larger level": lambda e: e.model_copy(update={"level": 2e-6}),
    "rarer events": lambda e: e.model_copy(update={"rarest_event": 0.5}),
    "a range that is lower": lambda e: changed(e, low=0),
    "a range that is higher": lambda e: changed(e, high=800),
    "more values than are listed": lambda e: e.model_copy(update={"listed": 2}),
    "a smaller table": lambda e: e.model_copy(update={"n": 700}),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_forged_numbers_are_refused(name: str) -> None:
    told = proof(plan_view_of(problem()))
    assert not accepted(IMPOSSIBLE[name](told), 0.0, 1e-6)


@pytest.mark.parametrize("change", [{"share": 0.1}, {"share": None}])
def test_forged_shares_are_refused(change: dict[str, Any]) -> None:
    assert not accepted(changed(proof(plan_view_of(stated())), **change), 0.0, 1e-6)


def test_shares_of_more_than_all_are_refused() -> None:
    told = proof(plan_view_of(stated()))
    forged = told
    for k in range(3):
        forged = changed(forged, k, share=0.5)
    assert refused(forged)


def test_a_least_share_is_rounded_down() -> None:
    from attrpriv.methods.view.reference import _least

    for density, share in ((0.8, 0.1), (0.7, 0.3), (0.9, 0.1), (1.0, 1 / 3)):
        assert Fraction(_least(density, share)) <= Fraction(repr(density)) * Fraction(repr(share))
