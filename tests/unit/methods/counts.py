"""Small problems about counts, for the tests of the mechanisms."""

from __future__ import annotations

from typing import Any

from attrpriv.assumptions.counts import Counts
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query

STAY = "stay > 7"
ALL = Secret("count(smoker = 'yes')", between=(0, 4))


def smokers(yes: Any = 0.4, no: Any = 0.6, **more: Any) -> Counts:
    return Counts(**({"sensitive": "smoker", "given": {STAY: {"yes": yes, "no": no}}} | more))


def column(name: str, values: list[Any], yes: list[Any], no: list[Any], **more: Any) -> Counts:
    """A column with values, in both categories."""
    laws = {"yes": {"values": values, "probabilities": yes}, "no": {"values": values, "probabilities": no}}
    return Counts(**({"sensitive": "smoker", "given": {name: laws}} | more))


def problem(*theta: Counts, **changes: Any) -> Problem:
    """The paper's first example: four rows, probabilities 0.4 and 0.6, all counts alike."""
    stated: dict[str, Any] = {
        "queries": (Query("count", where=STAY),),
        "secrets": (ALL,),
        "epsilon": 1.0,
        "delta": 0.0,
        "n": 4,
        "theta": theta or (smokers(),),
    }
    return Problem(**(stated | changes))
