"""Single persons behind a view: how far one record reaches by enumeration, the test of the counts exactly, forged numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import pytest

from attrpriv.errors import CertificateError, RefusedError, UsageError
from attrpriv.methods.base import view_persons as drawing
from attrpriv.methods.base.count_test import CountTest, at_least, count_test
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.base.view_persons import NoisyAnswer, moved
from attrpriv.methods.base.view_plan import ViewCell, ViewPlan
from attrpriv.methods.choice.choose import plan as plan_problem
from attrpriv.methods.choice.choose import plan_view_of
from attrpriv.methods.view.reference import ReferenceEvidence
from attrpriv.problem.problem import Problem
from attrpriv.problem.reference import PublicCell, PublicCells, Reference, stated_cells
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from attrpriv.queries.sql import parse_queries

LAW = {"sex": {"values": ["F", "M", "X"], "shares": [0.3, 0.5, 0.2]}}
STATED = Reference.checked({**LAW, "least_density": 0.9, "failure": 1e-6, "rarest_event": 1.0})
AVERAGE = Query("avg", "x")


def problem(*queries: str, **changes: Any) -> Problem:
    asked: dict[str, Any] = {
        "queries": tuple(one for text in queries or ("avg(x)",) for one in parse_queries(text)),
        "secrets": (Secret("columns(sex)"),),
        "epsilon": 1.0,
        "delta": 1e-6,
        "n": 4000,
        "reference": STATED,
        "public_cells": stated_cells(STATED, ("sex",)),
        "types": {"sex": "text", "x": "float"},
        "bounds": {"x": (0.0, 10.0)},
        "missing": {"x": 5.0},
        "individuals": 1.0,
    }
    return Problem(**(asked | changes))


def planned(*queries: str, **changes: Any) -> Plan:
    return plan_problem(problem(*queries, **changes), "subsample")


# One changed record, by enumeration: the same ranks, all tables of five rows, all records instead of each.


ROWS, VALUES = 5, (0, 1)
# Cells 0 and 1 are shown, cell 2 is everything else.
KEEPS = ((2, 1), (1, 1))
Row = tuple[int, int]


def kept(table: Sequence[Row], rank: Sequence[int], keeps: Sequence[int]) -> list[list[int]] | None:
    """The positions that are kept of each cell; None: a cell has too few."""
    found = []
    for cell, keep in enumerate(keeps):
        there = sorted((j for j in range(ROWS) if table[j][0] == cell), key=lambda j: rank[j])
        if len(there) < keep:
            return None
        found.append(there[:keep])
    return found


def neighbours() -> Iterator[tuple[tuple[Row, ...], tuple[Row, ...]]]:
    """Every table, with its first, middle or last record changed in every way. By symmetry of ranks the place is no matter."""
    records = [(cell, value) for cell in (0, 1, 2) for value in VALUES]
    for cells in itertools.product((0, 1, 2), repeat=ROWS):
        table = tuple((cell, j % 2) for j, cell in enumerate(cells))
        for j in (0, 2, 4):
            for record in records:
                yield table, (*table[:j], record, *table[j + 1 :])


def replaced(table: Sequence[Row], other: Sequence[Row], rank: Sequence[int], keeps: Sequence[int]) -> list[int] | None:
    """How many rows of each cell are not the same ones, or not the same."""
    one, two = kept(table, rank, keeps), kept(other, rank, keeps)
    if one is None or two is None:
        return None
    return [sum(j not in b or table[j] != other[j] for j in a) for a, b in zip(one, two, strict=True)]


@pytest.mark.parametrize("keeps", KEEPS)
def test_a_changed_record_replaces_at_most_one_row_in_each_of_two_cells(keeps: tuple[int, int]) -> None:
    ranks = [rank for k, rank in enumerate(itertools.permutations(range(ROWS))) if k % 5 == 0]
    found = set()
    for table, other in neighbours():
        for rank in ranks:
            changes = replaced(table, other, rank, keeps)
            if changes is not None:
                found.add(tuple(changes))
    assert found == {(0, 0), (1, 0), (0, 1), (1, 1)}, "two at most, one in each cell, and two does happen"


def worst_change(keeps: Sequence[int], weights: Sequence[Fraction]) -> Fraction:
    """The largest change of sum_c w_c (average over the kept rows of c), values from 0 to 1."""
    worst = Fraction(0)
    for table, other in neighbours():
        for rank in itertools.islice(itertools.permutations(range(ROWS)), 0, None, 7):
            one, two = kept(table, rank, keeps), kept(other, rank, keeps)
            if one is not None and two is not None:
                answers = [
                    sum(w * sum(rows[j][1] for j in there) / len(there) for w, there in zip(weights, chosen, strict=True))
                    for rows, chosen in ((table, one), (other, two))
                ]
                worst = max(worst, abs(Fraction(answers[0] - answers[1])))
    return worst


def small(keeps: Sequence[int]) -> list[ViewCell]:
    return [ViewCell(name=str(k), keep=keep, low=keep, high=ROWS) for k, keep in enumerate(keeps)]


@pytest.mark.parametrize("keeps", KEEPS)
def test_the_reach_of_a_record_is_that_of_two_rows_and_no_less(keeps: tuple[int, int]) -> None:
    """Noise for one row alone, the mutant, would be too little: the privacy loss exceeds epsilon."""
    weights = [Fraction(3, 4), Fraction(1, 4)]
    worst = worst_change(keeps, weights)
    reach = moved(AVERAGE, (0.0, 1.0), 0.0, small(keeps), [float(w) for w in weights], ROWS)
    assert reach is not None
    assert worst == sum(w / keep for w, keep in zip(weights, keeps, strict=True))
    assert 0 <= reach - worst < 1e-15, "two rows, and what rounding may move"
    epsilon, alone = Fraction(1), max(w / keep for w, keep in zip(weights, keeps, strict=True))
    assert worst / (reach / epsilon) <= epsilon
    assert worst / (alone / epsilon) > epsilon, "a Laplace law's loss is the change over its scale"


@pytest.mark.parametrize(
    ("text", "bounds", "reach"),
    [
        ("avg(x)", (0.0, 10.0), Fraction(10)),
        ("avg(x)", (-5.0, 10.0), Fraction(15)),
        ("sum(x)", (2.0, 10.0), Fraction(8 * 100)),
        ("sum(x) filter (where y > 1)", (2.0, 10.0), Fraction(10 * 100)),
        ("sum(x) filter (where y > 1)", (-10.0, -2.0), Fraction(10 * 100)),
        ("count(*) filter (where y > 1)", None, Fraction(100)),
    ],
)
def test_the_reach_of_an_answer(text: str, bounds: tuple[float, float] | None, reach: Fraction) -> None:
    """Of four cells the two largest w/keep are 1/8 and 1/16; a filter can take a value to 0."""
    cells = [ViewCell(name=str(k), keep=keep, low=keep, high=100) for k, keep in enumerate((2, 8, 4, 16))]
    (query,) = parse_queries(text)
    found = moved(query, bounds, 0.0, cells, (0.25, 0.25, 0.25, 0.25), 100)
    assert found is not None
    assert found == pytest.approx(float(reach * (Fraction(1, 8) + Fraction(1, 16))), rel=1e-14)
    assert found >= reach * (Fraction(1, 8) + Fraction(1, 16))


@pytest.mark.parametrize("text", ["avg(x) filter (where y > 1)", "median(x)", "avg(x * y)", "var_pop(x)"])
def test_of_other_statistics_nothing_is_known(text: str) -> None:
    (query,) = parse_queries(text)
    cells = [ViewCell(name="a", keep=2, low=2, high=100)]
    assert moved(query, (0.0, 1.0), 0.0, cells, (1.0,), 100) is None
    assert moved(AVERAGE, None, 0.0, cells, (1.0,), 100) is None
    assert moved(AVERAGE, (0.0, 1.0), None, cells, (1.0,), 100) is None, "a missing entry would show"
    assert moved(AVERAGE, (0.0, 1.0), 0.0, cells, (0.5, 0.5), 100) is None


# The test of the counts, exactly: every slack around the threshold, both ways.


def passes(test: CountTest, slack: int) -> float:
    """P(the view is drawn) for a table with this many rows to spare in its scarcest cell."""
    if slack < 0:
        return 0.0
    return upper(test.threshold - slack, test.scale)


def upper(rows: int, scale: float) -> float:
    """P(Z >= rows) of the discrete Laplace law, summed term by term."""
    q = math.exp(-1 / scale)
    weight = (1 - q) / (1 + q)
    far = max(rows, 0) + math.ceil(800 * scale)
    return math.fsum(weight * q ** abs(k) for k in range(rows, far))


def excess(p: float, other: float, epsilon: float) -> float:
    """The delta that two laws of drawn or not drawn need at this epsilon."""
    ends = [(p, other), (1 - p, 1 - other), (other, p), (1 - other, 1 - p)]
    return max(a - math.exp(epsilon) * b for a, b in ends)


def needed(test: CountTest, epsilon: float) -> float:
    return max(excess(passes(test, s), passes(test, s + 1), epsilon) for s in range(-3, test.margin + 20))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-6), (0.1, 1e-3), (2.0, 1e-9)])
def test_the_test_keeps_epsilon_and_delta_at_every_count(epsilon: float, delta: float) -> None:
    test = count_test(epsilon, delta, 1e-7)
    assert test is not None
    assert test.proved
    assert (test.term.sensitivity + test.term.granularity) / test.term.scale <= epsilon
    assert needed(test, epsilon) <= delta
    assert passes(test, 0) <= delta < passes(test, 1) * math.exp(epsilon), "the threshold is the least"
    lower = test.model_copy(update={"threshold": test.threshold - 1})
    assert needed(lower, epsilon) > delta
    assert not lower.proved
    assert needed(test.model_copy(update={"scale": test.scale / 2}), epsilon) > delta, "less noise tells more"


def test_a_table_with_the_margin_hardly_ever_fails() -> None:
    test = count_test(0.5, 1e-6, 1e-7)
    assert test is not None
    assert 1 - passes(test, test.margin) <= test.failure <= 1e-7
    assert at_least(test.margin - test.threshold, test.scale) > 1e-7, "and no row more is left out"


@pytest.mark.parametrize(("rows", "scale"), [(1, 2.0), (7, 2.0), (40, 10.0), (3, 0.3)])
def test_the_tail_is_that_of_the_law(rows: int, scale: float) -> None:
    assert at_least(rows, scale) == pytest.approx(upper(rows, scale), rel=1e-11)
    assert at_least(0, scale) == 1.0


def test_rows_that_a_draw_asks_for_come_from_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    from attrpriv.methods.base import count_test as module

    test = CountTest(delta=1e-6, scale=2.0, threshold=27, margin=55)
    for noise, spare in ((0, 27), (-3, 30), (27, 0), (26, 1), (90, 0)):
        monkeypatch.setattr(module, "whole_laplace", lambda scale, noise=noise: noise)
        assert test.drawn() == spare, "a table below what is kept is never drawn from"


# The plan.


def proof(plan: Plan) -> ReferenceEvidence:
    assert isinstance(plan.certificate.evidence, ReferenceEvidence)
    return plan.certificate.evidence


def test_epsilon_is_shared_by_the_test_and_all_answers() -> None:
    plan = planned("avg(x)", "count(*) filter (where x > 3)", "count(*)", individuals=2.0, individuals_delta=1e-7)
    rows, test = plan.certificate.individuals, proof(plan).test
    assert rows is not None
    assert test is not None
    assert (rows.epsilon, test.delta) == (2.0, 1e-7)
    assert [term.column for term in rows.terms] == ["the test of the counts", "avg(x)", "count(*) filter (where x > 3)"]
    spent = [(term.sensitivity + term.granularity) / term.scale for term in rows.terms]
    assert spent == pytest.approx([1.0, 0.5, 0.5], rel=1e-8)
    assert sum(spent) <= 2.0
    assert plan.noise_of(plan.queries[2]).kind == "none", "the number of rows is public"
    assert {row.epsilon for row in plan.model_error} == {0.0}
    assert "(2, 1e-07)-differential privacy" in plan.guarantee.statement
    plan.verify()


def test_as_many_rows_are_left_out_as_the_margin_says() -> None:
    """The promise about the hidden columns holds as before: the test's own failure is part of it."""
    with_test, without = planned(), planned(individuals=None)
    test = proof(with_test).test
    assert test is not None
    assert proof(with_test).failure() <= 1e-6
    halved = plan_view_of(problem(reference=STATED.model_copy(update={"failure": 5e-7}), individuals=None))
    assert [cell.keep for cell in halved.cells] == [cell.keep + test.margin for cell in proof(with_test).cells]
    assert all(a.keep < b.keep for a, b in zip(proof(with_test).cells, proof(without).cells, strict=True))
    assert "test" not in proof(without).to_json(), "other records stay as they were"


def test_public_records_leave_the_margin_out_too() -> None:
    cells = tuple(PublicCell(values=(age,), count=count) for age, count in ((18, 3000), (19, 4000), (20, 30)))
    records = PublicCells(columns=("age",), kinds={"age": "integer"}, records=7030, cells=cells)
    file = Reference(file="census.parquet", least_density=0.9, failure=1e-6, rarest_event=1.0)
    changes = {"reference": file, "public_cells": records, "secrets": (Secret("columns(age)"),)}
    with_test = planned(**changes, types={"age": "integer", "x": "float"})
    without = planned(**changes, types={"age": "integer", "x": "float"}, individuals=None)
    test = proof(with_test).test
    assert test is not None
    margins = [b.keep - a.keep for a, b in zip(proof(with_test).cells, proof(without).cells, strict=True)]
    assert all(test.margin <= margin <= test.margin + 20 for margin in margins)
    assert proof(with_test).failure() <= 1e-6


@pytest.mark.parametrize(
    ("changes", "kind", "text"),
    [
        ({"bounds": {}}, UsageError, "needs bounds for x"),
        ({"missing": {}}, UsageError, "needs a public value for missing entries of x"),
        ({"queries": parse_queries("median(x)")}, RefusedError, "Got median(x)"),
        ({"queries": parse_queries("avg(x) filter (where y > 1)")}, RefusedError, "is a sum over a count"),
        ({"queries": parse_queries("avg(x * y)")}, RefusedError, "averages and sums of a column"),
        ({"spend": 0.5}, RefusedError, "Ask for everything together (spend 1)"),
        ({"individuals": 1e-12}, RefusedError, "costs more than this epsilon allows"),
        ({"individuals": 0.01}, RefusedError, "no value is so frequent"),
        (
            {"secrets": (Secret("share(sex = 'F')", between=(0.25, 0.4)),), "reference": None, "public_cells": None},
            RefusedError,
            "not in one of ranges",
        ),
    ],
)
def test_what_is_not_proved_is_refused(changes: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as caught:
        planned(**changes)
    assert text in str(caught.value)


# Forged numbers.


Forge = Callable[[Plan], Plan]


def with_view(plan: Plan, **changes: Any) -> Plan:
    assert plan.view is not None
    return plan.rebuilt(view=plan.view.model_copy(update=changes))


def with_persons(plan: Plan, **changes: Any) -> Plan:
    assert plan.view is not None
    assert plan.view.persons is not None
    return with_view(plan, persons=plan.view.persons.model_copy(update=changes))


def with_answer(plan: Plan, **changes: Any) -> Plan:
    assert plan.view is not None
    assert plan.view.persons is not None
    first, *rest = plan.view.persons.answers
    return with_persons(plan, answers=(first.model_copy(update=changes), *rest))


def with_term(plan: Plan, place: int, **changes: Any) -> Plan:
    rows = plan.certificate.individuals
    assert rows is not None
    terms = list(rows.terms)
    terms[place] = terms[place].model_copy(update=changes)
    forged = rows.model_copy(update={"terms": tuple(terms)})
    return plan.rebuilt(certificate=plan.certificate.model_copy(update={"individuals": forged}))


def with_test(plan: Plan, **changes: Any) -> Plan:
    test = proof(plan).test
    assert test is not None
    evidence = proof(plan).model_copy(update={"test": test.model_copy(update=changes)})
    certificate = plan.certificate.model_copy(update={"evidence": evidence})
    hidden = certificate.model_copy(update={"individuals": None})
    return with_view(plan.rebuilt(certificate=certificate), certificate=hidden)


def without_test(plan: Plan) -> Plan:
    evidence = proof(plan).model_copy(update={"test": None})
    certificate = plan.certificate.model_copy(update={"evidence": evidence})
    hidden = certificate.model_copy(update={"individuals": None})
    return with_view(plan.rebuilt(certificate=certificate), certificate=hidden)


def without_noise(plan: Plan) -> Plan:
    hidden = plan.certificate.model_copy(update={"individuals": None})
    return with_view(plan.rebuilt(certificate=hidden), persons=None)


FORGED: dict[str, Forge] = {
    "less noise": lambda plan: with_answer(plan, scale=0.001),
    "less noise in both": lambda plan: with_term(with_answer(plan, scale=0.001), 1, scale=0.001),
    "a smaller reach": lambda plan: with_term(plan, 1, sensitivity=1e-4),
    "a finer grid": lambda plan: with_term(plan, 1, granularity=1e-30),
    "wider bounds": lambda plan: with_answer(plan, bounds=(0.0, 1000.0)),
    "no bounds": lambda plan: with_answer(plan, bounds=None),
    "missing entries show": lambda plan: with_answer(plan, fill=None),
    "another query": lambda plan: with_answer(plan, query=Query("sum", "x")),
    "heavier cells": lambda plan: with_persons(plan, weights=(5.0, 5.0, 5.0)),
    "a weight too few": lambda plan: with_persons(plan, weights=(0.3, 0.5)),
    "no answers": lambda plan: with_persons(plan, answers=()),
    "no noise": without_noise,
    "no noise, proof stays": lambda plan: with_view(plan, persons=None),
    "no test": without_test,
    "a test with less noise": lambda plan: with_test(plan, scale=0.5),
    "a lower threshold": lambda plan: with_test(plan, threshold=3),
    "a smaller delta": lambda plan: with_test(plan, delta=1e-15),
    "a smaller margin": lambda plan: with_test(plan, margin=42),
    "a margin below the threshold": lambda plan: with_test(plan, margin=1),
    "a test that costs nothing": lambda plan: with_term(plan, 0, sensitivity=0.01),
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_forged_numbers_are_refused(forge: Forge) -> None:
    plan = planned("avg(x)", "count(*) filter (where x > 3)")
    plan.verify()
    with pytest.raises(CertificateError):
        forge(plan).verify()


# The noise.


def test_answers_are_exact_until_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned("avg(x)", "sum(x)", "count(*) filter (where x > 3)", "count(*)")
    assert plan.view is not None
    seen: list[tuple[Fraction, float]] = []

    def noisy(value: Fraction, scale: float) -> Fraction:
        seen.append((value, scale))
        return value + 1

    monkeypatch.setattr(drawing, "add_laplace", noisy)
    totals = [[Fraction(k, 3), Fraction(7, 3), Fraction(1)] for k in (1, 2, 4)]
    told = plan.answered(totals)
    weights = [Fraction(cell.share or 0.0) for cell in plan.view.cells]
    means = [sum(w * t / cell.keep for w, t, cell in zip(weights, total, plan.view.cells, strict=True)) for total in totals]
    exact = [means[0], 4000 * means[1], 4000 * means[2]]
    assert [value for value, _ in seen] == pytest.approx([float(value) for value in exact], rel=1e-12)
    assert [scale for _, scale in seen] == [plan.noise_of(query).scale for query in plan.queries[:3]]
    assert told == ((float(seen[0][0] + 1),), (float(seen[1][0] + 1),), (float(seen[2][0] + 1),), (4000,))


def test_a_plan_without_persons_draws_nothing() -> None:
    with pytest.raises(CertificateError, match="or draws nothing"):
        planned(individuals=None).answered([[Fraction(1)] * 3])


def test_the_interval_is_of_public_numbers() -> None:
    """The choice of rows and the noise, both before any row is read."""
    plan = planned()
    found: NoisyAnswer | None = None if plan.view is None else plan.view.noisy(plan.queries[0])
    assert found is not None
    cells = plan.view.cells if isinstance(plan.view, ViewPlan) else ()
    by_hand = math.sqrt(
        sum((cell.share or 0) ** 2 * 25 * cell.high / (cell.high - 1) * (1 / cell.keep - 1 / cell.high) for cell in cells)
    )
    assert found.sampling == pytest.approx(by_hand, rel=1e-12)
    assert plan.error.rmse == pytest.approx(math.hypot(found.sampling, found.scale * math.sqrt(2)), rel=1e-12)
    reach = plan.spread_of(plan.queries[0]).reach(0.95)
    assert 1.9 * found.sampling < reach < 1.96 * found.sampling + 3 * found.scale
