"""One answer that protects single persons: the error of the choice of rows in its own unit, and who is refused."""

from __future__ import annotations

import pytest

from attrpriv.methods.view.answers import _sampling
from attrpriv.methods.view.persons import _answer
from attrpriv.methods.view.plan import public_shares
from attrpriv.problem.refusal import Cause, Refusal
from tests.refusing import refuses
from tests.unit.methods.view.test_persons import planned, problem


def test_the_choice_of_rows_is_off_in_the_unit_of_the_answer() -> None:
    """A sum over 4,000 rows by 4,000 times as much as an average."""
    asked = problem("avg(x)", "sum(x)")
    made = planned("avg(x)", "sum(x)")
    assert made.view is not None
    assert made.view.persons is not None
    average, total = (answer.sampling for answer in made.view.persons.answers)
    found = _sampling(asked, made.view, public_shares(made.view, {}), asked.queries[0])
    assert found is not None
    assert average == pytest.approx(found[0], rel=1e-12)
    assert total == pytest.approx(4_000 * average, rel=1e-12)


def test_what_has_no_bound_or_no_epsilon_is_not_answered() -> None:
    asked, view = problem(), planned().view
    assert view is not None
    weights = tuple(public_shares(view, {}).values())
    answer, term = _answer(asked, view, weights, asked.queries[0], 0.5, (0.1, 1))
    assert answer.scale == term.scale
    with refuses(Refusal, Cause.PERSONS, "averages, sums and counts"):
        _answer(asked, view, weights, asked.queries[0], 0.5, None)
    with refuses(Refusal, Cause.BUDGET, "a larger individuals"):
        _answer(asked, view, weights, asked.queries[0], 1e-13, (0.1, 1))
