"""From a method and a problem to a plan: what is checked of every plan, whoever wrote its method."""

from __future__ import annotations

import pytest

from attrpriv.methods import dispatch
from attrpriv.methods.choice.choose import plan
from attrpriv.methods.table import methods
from attrpriv.problem.refusal import Cause, Refusal
from tests.conformance.test_mechanisms import problem


def test_a_plan_that_forgets_single_persons_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method from outside may not look at `individuals` at all."""
    asked = problem(individuals=1.0, bounds={"weight": (-500.0, 800.0)})
    forgetful = plan(asked.model_copy(update={"individuals": None}), "gaussian")
    honest = plan(asked, "gaussian")
    assert forgetful.certificate.individuals is None
    assert honest.certificate.individuals is not None
    for made in (forgetful, plan(asked.model_copy(update={"individuals": 2.0}), "gaussian")):
        monkeypatch.setattr(dispatch, "load", lambda home, made=made: lambda asked: made)
        with pytest.raises(Refusal) as refused:
            dispatch.planned_by(methods()["gaussian"], asked)
        assert refused.value.cause is Cause.PERSONS
    monkeypatch.setattr(dispatch, "load", lambda home: lambda asked: honest)
    assert dispatch.planned_by(methods()["gaussian"], asked) is honest


def test_a_public_constant_tells_of_nobody() -> None:
    asked = problem(individuals=1.0, bounds={"weight": (-500.0, 800.0)})
    assert plan(asked, "constant").certificate.individuals is None
