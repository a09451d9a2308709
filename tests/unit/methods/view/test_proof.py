"""The proof of a view: as many rows of each cell as it surely has, or else the tail of a binomial law."""

from __future__ import annotations

from typing import Any

import pytest
from scipy.stats import binom

from attrpriv.methods.base.view_plan import ViewCell
from attrpriv.methods.view.plan import ViewEvidence
from tests.unit.methods.proofs import accepted, refused


def cell(name: str, keep: int, low: int, high: int, **more: Any) -> ViewCell:
    return ViewCell(name=name, keep=keep, low=low, high=high, **more)


def evidence(*cells: ViewCell, **changes: Any) -> ViewEvidence:
    told = cells or (cell("F", 10, 10, 16), cell("M", 24, 24, 30))
    return ViewEvidence(**({"n": 40, "cells": told} | changes))


def test_the_counts_must_be_possible() -> None:
    assert evidence().delta(0.0) == 0.0
    for low, n, holds in ((34, 34, True), (34, 33, False), (46, 46, True), (46, 47, False)):
        assert (evidence(n=n).delta(1.0) == 0.0) is holds, (low, n)


def test_no_more_rows_than_a_cell_surely_has() -> None:
    assert not refused(evidence(cell("F", 10, 10, 16), cell("M", 0, 24, 30)))
    assert refused(evidence(cell("F", 11, 10, 16), cell("M", 24, 24, 30)))
    assert refused(evidence(cell("F", 10, 10, 16), cell("M", 25, 24, 30)))
    assert refused(evidence(cell("F", 0, 17, 16), cell("M", 0, 0, 30)))
    assert not refused(evidence(cell("F", 10, 16, 16), cell("M", 24, 24, 30)))


def test_a_population_adds_the_chance_of_too_few_rows() -> None:
    """Just below the sum of both tails the promise fails, just above it holds."""
    for keeps in ((8, 20), (10, 24), (0, 24)):
        told = evidence(cell("F", keeps[0], 10, 16, share=0.3), cell("M", keeps[1], 24, 30, share=0.6), population=True)
        exact = float(binom.cdf(keeps[0] - 1, 40, 0.3) + binom.cdf(keeps[1] - 1, 40, 0.6))
        assert told.delta(0.0) == pytest.approx(exact, rel=1e-8)
        assert accepted(told, 0.0, exact * (1 + 1e-8))
        assert not accepted(told, 0.0, exact * (1 - 1e-9))


def test_a_population_needs_the_share_of_every_cell() -> None:
    whole = (cell("F", 1, 10, 16, share=0.3), cell("M", 1, 24, 30, share=0.6))
    assert evidence(*whole, population=True).delta(1.0) < 1e-4
    assert refused(evidence(whole[0], cell("M", 1, 24, 30), population=True))
    assert refused(evidence(cell("F", 1, 10, 16), whole[1], population=True))
    assert evidence(cell("F", 1, 10, 16, share=0.0), whole[1], population=True).delta(1.0) >= 1.0
