"""A problem is valid when it exists, and holds public facts only."""

from __future__ import annotations

import math
from typing import Any

import pytest

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.errors import PolicyError
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query


def problem(**changes: Any) -> Problem:
    stated: dict[str, Any] = {
        "queries": (Query("avg", "y"), Query("sum", "y"), Query("count"), Query("avg", "z")),
        "secrets": (Secret("mean(x)", within=1.0),),
        "epsilon": 1.0,
        "delta": 1e-6,
        "n": 100,
        "theta": (Gaussian(sd={"y": 1.0}, tolerance=0),),
    }
    return Problem(**(stated | changes))


def test_columns_are_named_once_in_order() -> None:
    assert problem().columns == ("y", "z")
    assert problem(queries=(Query("count"),)).columns == ()


def test_spacing() -> None:
    """Whole numbers and booleans are at least 1 apart, whatever was declared."""
    p = problem(resolution={"y": 0.5, "z": 0.5}, types={"y": "integer", "z": "float", "b": "boolean", "f": "float"})
    assert p.spacing("y") == (1.0, True)
    assert p.spacing("z") == (0.5, True)
    assert p.spacing("b") == (1.0, False)
    assert p.spacing("f") == (None, False)
    assert problem(resolution={"y": 10.0}, types={"y": "integer"}).spacing("y") == (10.0, True)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon: must be greater than 0. Got -1.0"),
        ({"epsilon": 101.0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"epsilon": "1"}, "epsilon"),
        ({"delta": -1e-9}, "delta"),
        ({"delta": 1.0}, "delta"),
        ({"delta": math.nan}, "delta"),
        ({"n": 1}, "n: must be at least 2"),
        ({"n": 0}, "n: "),
        ({"n": 100.0}, "n: "),
        ({"n": True}, "n: "),
        ({"queries": ()}, "queries"),
        ({"secrets": ()}, "secrets"),
        ({"known_rows": 1.0}, "known_rows"),
        ({"known_rows": -0.1}, "known_rows"),
        ({"known_rows": math.nan}, "known_rows"),
        ({"bounds": {"y": (1.0, 0.0)}}, "bounds.y"),
        ({"bounds": {"y": (0.0, math.inf)}}, "bounds.y"),
        ({"resolution": {"y": 0.0}}, "resolution.y"),
        ({"resolution": {"y": -1.0}}, "resolution.y"),
        ({"missing": {"y": math.nan}}, "missing.y"),
        ({"calibration": "guess"}, "calibration"),
        ({"theta": ({"kind": "cauchy"},)}, "kind must be one of"),
        ({"seed": 1}, "unknown key"),
    ],
)
def test_bad_problems(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(PolicyError, match=says) as caught:
        problem(**changes)
    assert "\n" not in str(caught.value)


def test_rendering() -> None:
    shown = str(problem())
    assert shown.splitlines()[0] == "release avg(y), sum(y), count(*), avg(z) of n = 100 rows"
    assert "hide    mean(x), values at most 1 apart" in shown
    assert "assume  nothing" in str(problem(theta=()))


def test_a_changed_problem_says_what_follows_from_its_own_queries() -> None:
    made = problem()
    names = ("public", "alone", "shape", "tallied", "non_linear", "columns", "combined", "wheres", "forms", "read_columns")
    before = {name: getattr(made, name) for name in names}
    other = {"queries": (Query("count"),), "spend": 0.5, "theta": ()}
    changed, again = made.model_copy(update=other), problem(**other)
    assert {name: getattr(changed, name) for name in names} == {name: getattr(again, name) for name in names}
    assert {name: getattr(made, name) for name in names} == before


def test_a_changed_secret_says_what_follows_from_its_own_values() -> None:
    names = ("text", "forms", "columns", "single", "gap", "ends", "composition", "entries", "attribute", "whole_columns")
    made, again = Secret("mean(x)", within=1.0), Secret("sum(y)", between=(0.0, 9.0))
    before = {name: getattr(made, name) for name in names}
    changed = made.model_copy(update={"secret": "sum(y)", "within": None, "between": (0.0, 9.0)})
    assert {name: getattr(changed, name) for name in names} == {name: getattr(again, name) for name in names} != before
