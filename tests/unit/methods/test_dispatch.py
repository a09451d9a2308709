"""From a method and a problem to a plan: what is checked of every plan, whoever wrote its method."""

from __future__ import annotations

import pytest

import attrpriv as ap
from attrpriv.errors import RefusedError
from attrpriv.methods import dispatch
from attrpriv.methods.choice.choose import plan
from attrpriv.methods.table import methods
from attrpriv.problem.refusal import Cause, Refusal
from attrpriv.queries.sql import parse_queries
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


SMOKERS = ap.Counts(sensitive="smoker", given={"stay > 7": {"yes": 0.4, "no": 0.2}}, prior={"yes": 0.3, "no": 0.7})
COSTS = ap.Groups(
    sensitive="smoker",
    mean={"yes": {"cost": 5000.0}, "no": {"cost": 4000.0}},
    sd={"yes": {"cost": 900.0}, "no": {"cost": 900.0}},
    prior={"yes": 0.3, "no": 0.7},
    tolerance=0,
)
SOME = "count(*) filter (where stay > 7)"
BY_STAY = "SELECT stay, count(*) FROM data GROUP BY stay"


def asking(query: str, *theta: ap.Assumption) -> ap.Problem:
    secret = ap.Secret("share(smoker = 'yes')", between=(0.2, 0.4))
    return ap.Problem(queries=tuple(parse_queries(query)), secrets=(secret,), epsilon=1.0, delta=1e-6, n=1000, theta=theta)


@pytest.mark.parametrize("query", [SOME, BY_STAY])
@pytest.mark.parametrize("theta", [(), (COSTS,), (COSTS, SMOKERS)], ids=["nothing", "groups", "a list"])
def test_the_constant_answers_no_count_of_which_nothing_is_assumed(query: str, theta: tuple[ap.Assumption, ...]) -> None:
    """It made a plan without an answer and with no error, and the table of mechanisms ended with a StopIteration."""
    asked = asking(query, *theta)
    with pytest.raises(RefusedError):
        plan(asked, "constant")
    assert "constant" in ap.rank(asked).refused
    assert plan(asking("avg(cost)", COSTS), "constant").columns[0].centre == pytest.approx(4300)


def test_a_list_of_several_kinds_says_that_one_of_them_holds() -> None:
    """Whoever lists counts and groups means both; it was told to state counts, which is there."""
    for query in (SOME, "avg(cost)"):
        refused = ap.rank(asking(query, COSTS, SMOKERS)).refused
        for name in ("laplace", "gaussian", "optimal", "transport"):
            assert refused[name].reason == (
                "of the assumptions listed (counts, groups) one holds, not all of them; state one kind. "
                "Beside counts an average needs bounds alone."
            )
    other = ap.Gaussian(mean={"cost": 4000}, sd={"cost": 900}, tolerance=0)
    assert ap.rank(asking("avg(cost)", COSTS, other)).refused["gaussian"].reason.endswith("state one kind.")
