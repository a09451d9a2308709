"""Releases of other libraries beside counts: what stands for them costs no less than b, and which events may be read."""

from __future__ import annotations

import math
from typing import Any

import pytest

from attrpriv.assumptions.counts import Counts
from attrpriv.errors import QueryError
from attrpriv.methods.choice.choose import plan
from attrpriv.methods.laplace_sequence.outside import OutsideEvidence, curve
from attrpriv.methods.laplace_sequence.proof import CountSequenceEvidence
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Refusal
from tests.unit.methods.laplace_sequence.test_plan import DOSE, GIVEN, asked


def problem(**changes: Any) -> Problem:
    return asked(DOSE, **changes)


def proof(reads: str | None, b: float = 0.3, **changes: Any) -> OutsideEvidence:
    found = curve(problem(**changes), reads).proof(b, "a tree")
    assert isinstance(found, OutsideEvidence)
    return found


def event_loss(rate: float, member: float, rest: float) -> float:
    """Of one row, in a count of an event with noise of this rate."""
    e = math.exp(-rate)
    sides = [[(1 - p) + p * e, (1 - p) * e + p] for p in (member, rest)]
    return max(abs(math.log(x / y)) for x, y in zip(*sides, strict=True))


@pytest.mark.parametrize("b", [0.05, 0.3, 1.5])
def test_whole_rows_cost_b_each_and_an_event_what_its_count_would(b: float) -> None:
    """Four rows change; dose > 2 has a law that differs between them, stay > 7 one that does not."""
    assert proof(None, b).loss() == pytest.approx(4 * b, rel=1e-9)
    worst = max(event_loss(b, 0.4, rest) for rest in (0.2, 0.25))
    assert proof("dose > 2", b).loss() == pytest.approx(4 * worst, rel=1e-9)
    assert proof("dose > 2", b).loss() >= 4 * worst
    assert proof("stay > 7", b).loss() == pytest.approx(0.0, abs=1e-12)
    told = curve(problem(), "dose > 2")
    assert told.loss(b) == proof("dose > 2", b).loss()
    assert told.loss(0.0) == 0.0


@pytest.mark.parametrize("b", [0.05, 0.3, 1.5])
def test_a_column_costs_what_its_histogram_would(b: float) -> None:
    """Noise of rate b/2 on every cell: the cells of a set weigh e^b times as much as the others."""
    member, rest = (0.2, 0.3, 0.5), (0.4, 0.3, 0.3)
    losses = []
    for chosen in range(1, 7):
        weight = [math.exp(b) if chosen >> k & 1 else 1.0 for k in range(3)]
        sides = [sum(w * p for w, p in zip(weight, law, strict=True)) for law in (member, rest)]
        losses.append(abs(math.log(sides[0] / sides[1])))
    told = proof("visits", b)
    assert told.now is not None
    assert (told.now.histogram, told.now.width) == (True, 2)
    assert told.now.rate == pytest.approx(b / 2, rel=1e-12)
    assert told.now.rate * told.now.width >= b
    assert told.loss() == pytest.approx(4 * max(losses), rel=1e-9)


def test_what_came_before_is_lost_too() -> None:
    made = plan(problem(), "laplace")
    first = made.certificate.evidence
    assert isinstance(first, CountSequenceEvidence)
    whole = curve(problem(earlier=made), None)
    assert whole.loss(0.0) == pytest.approx(first.loss(), rel=1e-9)
    assert whole.loss(0.1) == pytest.approx(first.loss() + 0.4, rel=1e-6)
    again = proof("dose > 2", 0.1, earlier=made)
    assert again.past == first.after()
    (draw,) = again.after().draws
    assert draw.rate == pytest.approx(first.after().draws[0].rate + 0.1, rel=1e-12)


@pytest.mark.parametrize("reads", ["dose > 2", "visits"])
def test_what_stands_for_it_must_cost_no_less_than_b(reads: str) -> None:
    told = proof(reads)
    now = told.now
    assert now is not None
    assert math.isfinite(told.loss())
    less = now.model_copy(update={"rate": 0.3 / now.width * (1 - 1e-6)})
    more = now.model_copy(update={"rate": 0.3 / now.width * (1 + 1e-6)})
    assert told.model_copy(update={"now": less}).loss() == math.inf
    assert math.isfinite(told.model_copy(update={"now": more}).loss())


def test_what_it_reads_is_what_stands_for_it() -> None:
    """Whole rows have no draw in their place, and what reads less has one."""
    event, whole = proof("dose > 2"), proof(None)
    assert whole.now is None
    assert event.model_copy(update={"reads": None}).loss() == math.inf
    assert whole.model_copy(update={"reads": "dose > 2"}).loss() == math.inf
    assert event.model_copy(update={"now": None}).loss() == math.inf
    assert whole.after().free == pytest.approx(0.3, rel=1e-12)
    assert whole.after().free >= 0.3


@pytest.mark.parametrize(
    ("reads", "changes"),
    [
        ("smoker", {}),  # what is hidden
        ("dose", {}),  # a column of which only an event is stated
        ("weight", {}),
        ("visits", {"bins": {"visits": (0.0, 2.0, 4.0, 6.0)}}),
    ],
)
def test_what_has_no_stated_law_cannot_be_all_that_is_read(reads: str, changes: dict[str, Any]) -> None:
    with pytest.raises((QueryError, Refusal)):
        curve(problem(theta=(Counts(sensitive="smoker", given=GIVEN),), **changes), reads)
