"""The proof of an average under a hierarchy: shift and variance in exact fractions, and every guard."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from attrpriv.methods.base.clamp import Clamp, Read
from attrpriv.methods.hierarchy.proof import HierarchyCheck, HierarchyEvidence
from tests.unit.methods.proofs import FREE, accepted, gaussian_delta, refused

CHECK: dict[str, Any] = {
    "secret": "s", "apart": 0.6, "query_between": 3.0, "hidden_between": 2.0, "correlation": 0.5,
    "query_within": 0.75, "hidden_within": 0.25,
}  # fmt: skip


def read(**changes: Any) -> Read:
    return Read(**({"coefficients": {"h": 1.0}, "centre": 0.0, "mask": 0.5} | changes))


def clamp(**changes: Any) -> Clamp:
    return Clamp(**({"reads": (read(),), "slopes": ((0.5,),), "reach": 0.125} | changes))


def evidence(check: dict[str, Any] | None = None, **changes: Any) -> HierarchyEvidence:
    told: dict[str, Any] = {
        **FREE, "columns": ("x",), "scale": 0.8, "clamp": clamp(), "check": HierarchyCheck(**(CHECK | (check or {}))),
    }  # fmt: skip
    return HierarchyEvidence(**(told | changes))


def exact(told: HierarchyEvidence) -> float:
    """|min(2 reach, |slope| apart) + |b - slope| apart| over the sd, in fractions."""
    c, taken, reach = told.check, Fraction(told.clamp.slopes[0][0]), Fraction(told.clamp.reach)
    b = Fraction(c.correlation) * Fraction(c.query_between) / Fraction(c.hidden_between)
    moved = min(2 * reach, abs(taken) * Fraction(c.apart)) + abs(b - taken) * Fraction(c.apart)
    variance = Fraction(c.query_between) ** 2 * (1 - Fraction(c.correlation) ** 2) + Fraction(c.query_within) ** 2
    variance += Fraction(told.scale) ** 2
    if reach == 0:
        variance += taken**2 * (Fraction(c.hidden_within) ** 2 + Fraction(told.clamp.reads[0].mask) ** 2)
    return float(moved) / math.sqrt(variance)


@pytest.mark.parametrize("slope", [-0.7, 0.0, 0.5, 0.75, 2.0])
@pytest.mark.parametrize("reach", [0.0, 0.05, 0.125, 3.0])
@pytest.mark.parametrize("check", [{}, {"correlation": -0.9}, {"correlation": 1.0}, {"apart": 7.0, "query_between": 0.5}])
def test_distance_in_fractions(slope: float, reach: float, check: dict[str, Any]) -> None:
    told = evidence(check, clamp=clamp(slopes=((slope,),), reach=reach))
    wanted = exact(told)
    assert wanted <= told.distance() <= wanted * (1 + 1e-11) + 1e-13


def test_delta_is_that_of_two_normal_laws() -> None:
    for epsilon in (0.05, 0.5):
        wanted = float(gaussian_delta(epsilon, exact(evidence())))
        assert evidence().delta(epsilon) == pytest.approx(wanted, rel=1e-8)
        assert accepted(evidence(), epsilon, wanted * (1 + 1e-8))
        assert not accepted(evidence(), epsilon, wanted * (1 - 1e-8))


def test_only_one_other_masked_column_may_be_read() -> None:
    assert not refused(evidence(), 1.0)
    for changes in (
        {"reads": (read(mask=0.0),)},
        {"reads": (read(coefficients={"h": 2.0}),)},
        {"reads": (read(coefficients={"h": 1.0, "k": 1.0}),)},
        {"reads": (read(coefficients={"x": 1.0}),)},
        {"reads": (read(), read(coefficients={"k": 1.0})), "slopes": ((0.5, 0.1),)},
        {"metric": ((1.0,),)},
        {"period": 0.3},
        {"slopes": ((0.5,), (0.5,)), "metric": ((1.0, 0.0), (0.0, 1.0))},
    ):
        assert refused(evidence(clamp=clamp(**changes)), 1.0), changes


def test_what_is_read_and_drawn() -> None:
    told = evidence()
    assert told.taken_back() == told.clamp
    assert told.statistics_read() == told.clamp.reads
    assert told.suits(("x",), 10, clipped=False)
    assert not told.suits(("y",), 10, clipped=False)
    assert told.covers("x", "gaussian", 0.8)
    for other in (("y", "gaussian", 0.8), ("x", "laplace", 0.8), ("x", "gaussian", 0.9)):
        assert not told.covers(*other)
