"""An average with noise for one row: what it costs a row, and what its evidence covers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from attrpriv.methods.base.evidence import LaplaceTerm
from attrpriv.methods.laplace_sequence.proof import CountDraw, CountHistory, SequenceCheck
from attrpriv.methods.laplace_sequence.row_average import RowAverageEvidence, row_term

TERM = LaplaceTerm(column="y", sensitivity=0.75, scale=4.0, granularity=0.125)


def evidence(**changes: Any) -> RowAverageEvidence:
    check = SequenceCheck(secret="s", theta=0, apart=3, laws=())
    return RowAverageEvidence(**({"n": 8, "term": TERM, "checks": (check,)} | changes))


def test_a_row_moves_an_average_by_its_share_and_a_step_of_the_grid() -> None:
    told = evidence()
    exact = Fraction(7, 8) / 4
    assert exact <= Fraction(told.b) <= exact * (1 + Fraction(1, 10**9))
    assert told.after() == CountHistory().spending(told.b)
    assert float(3 * exact) <= told.loss() <= float(3 * exact) * (1 + 1e-9)
    past = CountHistory(free=0.5)
    assert evidence(past=past).loss() == pytest.approx(3 * (0.5 + 7 / 32), rel=1e-9)


def test_it_draws_no_count_beside_the_average() -> None:
    assert evidence(now=CountDraw(statistic="count", identity="i", width=1, rate=0.1)).loss() == math.inf


@pytest.mark.parametrize(("width", "n"), [(6.0, 8), (0.1, 3), (1e9, 7)])
def test_one_row_moves_the_average_by_an_nth_of_the_width(width: float, n: int) -> None:
    term = row_term("y", width, n, 2.0, 0.5)
    exact = Fraction(width) / n
    assert exact < Fraction(term.sensitivity) <= exact * (1 + Fraction(1, 10**12))
    assert (term.column, term.scale, term.granularity) == ("y", 2.0, 0.5)


def test_what_it_covers() -> None:
    told = evidence()
    assert told.covers("y", "laplace", 4.0)
    for column, kind, scale in (("x", "laplace", 4.0), ("y", "gaussian", 4.0), ("y", "laplace", 3.0)):
        assert not told.covers(column, kind, scale)
    assert told.suits(("y",), 8, clipped=True)
    for columns, n, clipped in ((("x",), 8, True), (("y", "y"), 8, True), (("y",), 7, True), (("y",), 8, False)):
        assert not told.suits(columns, n, clipped=clipped)
    width = told.width_of("y")
    assert width is not None
    assert 6.0 * (1 - 1e-12) <= width <= 6.0
    assert told.width_of("x") is None
