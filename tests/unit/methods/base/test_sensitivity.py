"""The proofs that assume nothing of the rows: Laplace noise for a whole range, and a public constant."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from attrpriv.methods.base.evidence import ConstantEvidence, LaplaceEvidence, LaplaceTerm
from attrpriv.methods.base.laplace_terms import least_width
from tests.unit.methods.proofs import counted, refused


def term(**changes: Any) -> LaplaceTerm:
    return LaplaceTerm(**({"column": "x", "sensitivity": 3.0, "scale": 8.0, "granularity": 0.25} | changes))


def test_what_is_spent_is_the_sum_over_terms() -> None:
    """(sensitivity + granularity)/scale of each."""
    told = LaplaceEvidence(terms=(term(), term(column="y", sensitivity=1.0, scale=2.0)))
    spent = float(Fraction(13, 32) + Fraction(5, 8))
    assert told.delta(spent * (1 + 1e-11)) == 0.0
    assert told.delta(spent * (1 - 1e-11)) == 1.0
    alone = LaplaceEvidence(terms=(term(),))
    assert alone.delta(13 / 32 * (1 + 1e-11)) == 0.0
    assert alone.delta(13 / 32 * (1 - 1e-11)) == 1.0
    assert refused(LaplaceEvidence(terms=(term(scale=1e-9),)))


def test_what_is_covered() -> None:
    told = LaplaceEvidence(terms=(term(), term(column="y", sensitivity=10.0, scale=2.0)))
    assert told.covers("x", "laplace", 8.0)
    for other in (("x", "gaussian", 8.0), ("x", "laplace", 2.0), ("z", "laplace", 8.0)):
        assert not told.covers(*other)
    read = frozenset({"x"})
    assert told.covers_statistic("x", read, Fraction(3), "laplace", 8.0)
    assert told.covers_statistic("x", read, Fraction(2), "laplace", 8.0)
    assert not told.covers_statistic("x", read, Fraction(3) + Fraction(1, 10**20), "laplace", 8.0)
    assert not told.covers_statistic("x", read, Fraction(3), "gaussian", 8.0)
    assert not told.covers_statistic("y", read, Fraction(3), "laplace", 8.0)
    assert told.width_of("x") == 3.0
    assert told.width_of("z") is None
    assert least_width((term(), term(sensitivity=2.0)), "x") == 2.0


def test_a_count_is_covered_by_noise_for_its_whole_range() -> None:
    told = LaplaceEvidence(terms=(term(sensitivity=30.0),))
    assert told.covers_tally(counted(n=10, width=3, scale=8.0))
    for changes in ({"n": 11}, {"width": 2}, {"scale": 7.0}, {"noise": "none"}):
        assert not told.covers_tally(counted(**({"n": 10, "width": 3, "scale": 8.0} | changes))), changes
    two = LaplaceEvidence(terms=(term(sensitivity=30.0), term(sensitivity=30.0)))
    assert not two.covers_tally(counted(n=10, width=3, scale=8.0))


def test_a_constant_loses_nothing_and_covers_nothing() -> None:
    told = ConstantEvidence()
    assert told.delta(0.0) == 0.0
    assert not told.reads_rows
    assert not told.covers("x", "laplace", 1.0)
    assert not told.covers_tally(counted())
    assert told.spent(1.0, 0.1) == math.inf
    assert told.follows(None)
    assert not told.follows(told)
