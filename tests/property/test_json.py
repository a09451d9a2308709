"""Values survive JSON: problems, plans, certificates and guarantees come back equal, and plans still hold."""

from __future__ import annotations

import json
import math

from hypothesis import HealthCheck, given, settings

from attrpriv.errors import AttrprivError
from attrpriv.methods.base.certificate import Certificate, Guarantee
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.choice.choose import plan, rank
from attrpriv.methods.table import MECHANISMS
from attrpriv.problem.problem import Problem
from tests.property.problems import problems


def through_json(value: object) -> str:
    """Strict JSON text: NaN and infinities are errors."""
    return json.dumps(value, allow_nan=False)


@given(problem=problems())
@settings(max_examples=60)
def test_problems(problem: Problem) -> None:
    again = Problem.from_json(through_json(problem.to_json()))
    assert again == problem
    assert hash(again) == hash(problem)
    assert str(again) == str(problem)
    assert "nan" not in str(problem).lower().split()


@given(problem=problems(most_queries=2))
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_plans(problem: Problem) -> None:
    for name in MECHANISMS:
        try:
            found = plan(problem, name)
        except AttrprivError:
            continue
        again = Plan.from_json(through_json(found.to_json()))
        assert again == found
        assert again.mechanism == name
        assert Certificate.from_json(through_json(found.certificate.to_json())) == found.certificate
        assert Guarantee.from_json(through_json(found.guarantee.to_json())) == found.guarantee
        again.certificate.verify()
        assert plan(Problem.from_json(problem.to_json()), name) == found
        assert str(again) == str(found)
        for text in (str(found), str(found.certificate), str(found.guarantee)):
            assert text.strip()
            assert not {"nan", "inf", "none"} & set(text.lower().replace(",", " ").replace("none noise", "no noise").split())


@given(problem=problems(most_queries=2))
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
def test_what_plan_prints_is_json_of_finite_numbers(problem: Problem) -> None:
    """Every mechanism for every query is there once: planned, or refused with a reason."""
    ranking = rank(problem)
    entries = json.loads(through_json(ranking.entries()))
    asked = [query.text for query in problem.queries]
    assert sorted((e["query"], e["mechanism"]) for e in entries) == sorted((q, m) for q in asked for m in MECHANISMS)
    for entry in entries:
        if "refused" in entry:
            assert entry["refused"]
            continue
        assert entry["n"] == problem.n
        assert math.isfinite(entry["noise"]["scale"])
        assert entry["certificate"]["epsilon"] == entry["epsilon"] <= problem.epsilon
    chosen = {entry["mechanism"] for entry in entries if entry.get("chosen")}
    assert len(chosen) <= 1
    assert "constant" not in chosen
