"""`bounds` inside the listed values of a counts assumption: clipped rows would not have the law that is stated."""

from __future__ import annotations

import math

import pytest

from attrpriv import Counts, Secret, plan
from attrpriv.errors import AttrprivError
from attrpriv.methods.base.plan import Plan
from attrpriv.problem.problem import Problem
from attrpriv.queries.query import Query

A, B = (0.0, 0.5, 0.0, 0.5, 0.0), (0.15, 0.0, 0.7, 0.0, 0.15)


def planned(bounds: tuple[float, float] | None) -> Plan:
    law = Counts(
        sensitive="s",
        given={"v": {name: {"values": [0, 1, 2, 3, 4], "probabilities": list(law)} for name, law in (("a", A), ("b", B))}},
    )
    problem = Problem(
        queries=(Query("sum", "v"),),
        secrets=(Secret("count(s = 'a')", within=1),),
        epsilon=0.05,
        n=2,
        theta=(law,),
        known_rows=0.5,
        bounds={} if bounds is None else {"v": bounds},
    )
    return plan(problem, "laplace")


def loss(scale: float, low: int, high: int) -> float:
    """Of the one row that is not known, read clipped to these bounds."""

    def density(law: tuple[float, ...], out: int) -> float:
        return sum(p * math.exp(-abs(out - min(max(v, low), high)) / scale) for v, p in enumerate(law))

    return max(abs(math.log(density(A, out) / density(B, out))) for out in range(-3, 9))


def test_bounds_that_cut_nothing_off_are_fine() -> None:
    scale = planned((0, 4)).noise.scale
    assert scale == planned(None).noise.scale
    assert loss(scale, 0, 4) <= 0.05 < loss(scale, 1, 3)  # what clipping would have cost


@pytest.mark.parametrize("bounds", [(1, 3), (0, 3), (1, 4)], ids=str)
def test_bounds_that_cut_off_listed_values_are_refused(bounds: tuple[float, float]) -> None:
    with pytest.raises(AttrprivError, match="must not cut off what the assumption lists"):
        planned(bounds)
