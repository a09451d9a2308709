"""Single persons behind a view: how far a record reaches, which noise is covered, and the test of the counts to a row."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest

from attrpriv.errors import CertificateError
from attrpriv.methods.base import count_test as counting
from attrpriv.methods.base import view_persons as module
from attrpriv.methods.base.accuracy import Noise, Spread
from attrpriv.methods.base.count_test import NAME, CountTest, at_least, count_test
from attrpriv.methods.base.evidence import LaplaceEvidence, LaplaceTerm
from attrpriv.methods.base.view_persons import (
    NoisyAnswer,
    ViewPersons,
    moved,
    persons_covered,
    persons_drawn,
    persons_noise,
    persons_spread,
)
from attrpriv.methods.base.view_plan import ViewCell
from attrpriv.noise import GRID_BITS, granularity
from attrpriv.queries.query import Query

AVG, SUM, COUNT = Query("avg", "x"), Query("sum", "x", where="y > 1"), Query("count", where="y > 1")


def cells(*keeps: int) -> list[ViewCell]:
    return [ViewCell(name=str(k), keep=keep, low=keep, high=50) for k, keep in enumerate(keeps)]


# ------------------------------------------------------------------------------------------------------------- the reach


def test_a_record_reaches_two_rows_of_the_heaviest_cells() -> None:
    """Weights over kept rows of 1/20, 1/16 and 1/10; rounding is below 1e-15 of everything."""
    weights, kept = (0.2, 0.5, 0.3), cells(4, 8, 3)
    exact = Fraction(0.3) / 3 + Fraction(0.5) / 8
    for query, bounds, width in (
        (AVG, (-3.0, 5.0), 8),
        (AVG, (2.0, 5.0), 3),
        (SUM, (2.0, 5.0), 5 * 30),
        (SUM, (-5.0, -2.0), 5 * 30),
        (COUNT, None, 30),
    ):
        found = moved(query, bounds, 1.0, kept, weights, 30)
        assert found is not None
        assert exact * width < found < exact * width * (1 + Fraction(1, 10**15))


@pytest.mark.parametrize(
    ("query", "bounds", "fill", "keeps", "weights"),
    [
        (AVG, None, 1.0, (4, 8), (0.5, 0.5)),
        (AVG, (0.0, 1.0), None, (4, 8), (0.5, 0.5)),
        (AVG, (0.0, 1.0), 1.0, (4, 0), (0.5, 0.5)),
        (AVG, (0.0, 1.0), 1.0, (4, 8), (0.5, 0.25, 0.25)),
        (Query("avg", "x", where="y > 1"), (0.0, 1.0), 1.0, (4, 8), (0.5, 0.5)),
        (Query("count", group_by="x"), None, None, (4, 8), (0.5, 0.5)),
        (Query("var_pop", "x"), (0.0, 1.0), 1.0, (4, 8), (0.5, 0.5)),
    ],
)
def test_of_what_is_not_told_nothing_is_known(query: Query, bounds: Any, fill: Any, keeps: Any, weights: Any) -> None:
    assert moved(query, bounds, fill, cells(*keeps), weights, 30) is None


# ----------------------------------------------------------------------------------------------------------- the noise

TEST = CountTest(delta=1e-3, scale=2.0, threshold=14, margin=30)
WEIGHTS = (0.25, 0.75)
ANSWERS = (
    NoisyAnswer(query=AVG, bounds=(0.0, 4.0), fill=1.0, scale=3.0, sampling=0.5),
    NoisyAnswer(query=SUM, bounds=(0.0, 4.0), fill=1.0, scale=70.0, sampling=0.0),
)


def reach(answer: NoisyAnswer) -> float:
    found = moved(answer.query, answer.bounds, answer.fill, cells(2, 5), WEIGHTS, 30)
    assert found is not None
    return math.nextafter(float(found), math.inf)


def terms(**changes: Any) -> list[LaplaceTerm]:
    return [
        TEST.term,
        *(
            LaplaceTerm(
                **(
                    {"column": a.query.text, "sensitivity": reach(a), "scale": a.scale, "granularity": granularity(a.scale)}
                    | changes
                )
            )
            for a in ANSWERS
        ),
    ]


class Certified:
    def __init__(self, rows: Any, row_test: Any = TEST) -> None:
        self.individuals, self.evidence = rows, SimpleNamespace(row_test=lambda: row_test)

    def model_copy(self, update: dict[str, Any]) -> Any:
        assert update == {"individuals": None}
        return "the view's own"


def view(persons: Any, **changes: Any) -> Any:
    def noisy(query: Query) -> NoisyAnswer | None:
        return next((one for one in ANSWERS if one.query == query), None)

    return SimpleNamespace(
        **{"persons": persons, "n": 30, "cells": cells(2, 5), "certificate": "the view's own", "noisy": noisy, **changes}
    )


PERSONS = ViewPersons(weights=WEIGHTS, answers=ANSWERS)
QUERIES = (AVG, Query("count"), SUM)


def covered(rows: Any, persons: Any = PERSONS, test: Any = TEST, queries: Any = QUERIES, **changes: Any) -> bool:
    plan: Any = SimpleNamespace(certificate=Certified(rows, test), queries=queries, n=30)
    return persons_covered(view(persons, **changes), plan)


def test_the_proof_of_a_view_covers_every_answer() -> None:
    good = LaplaceEvidence(epsilon=1.0, terms=tuple(terms()))
    assert covered(good)
    assert covered(None, None, None)
    assert not covered(None, None, None, certificate="another")
    assert not covered(good, certificate="another")
    for rows, persons, test in (
        (None, PERSONS, TEST),
        (good, None, TEST),
        (good, PERSONS, None),
        (None, None, TEST),
        (good, None, None),
        (None, PERSONS, None),
    ):
        assert not covered(rows, persons, test)
    assert not covered(good, n=31)
    assert not covered(good, queries=(AVG, Query("count")))
    assert not covered(good, queries=QUERIES[::-1])
    assert not covered(good, test=TEST.model_copy(update={"scale": 2.5}))
    for wrong in (terms()[:2], [*terms(), terms()[-1]], terms()[1:], [terms()[1], TEST.term, terms()[2]]):
        assert not covered(LaplaceEvidence(epsilon=1.0, terms=tuple(wrong)))
    for place in (1, 2):
        for changes in (
            {"column": "z"},
            {"scale": 99.0},
            {"granularity": 1.0},
            {"sensitivity": reach(ANSWERS[place - 1]) * (1 - 1e-9)},
        ):
            made = terms()
            made[place] = made[place].model_copy(update=changes)
            assert not covered(LaplaceEvidence(epsilon=1.0, terms=tuple(made)))
    assert not covered(good, persons=PERSONS.model_copy(update={"weights": (0.3, 0.75)}))


def test_the_noise_of_an_answer() -> None:
    made = view(PERSONS)
    assert [persons_noise(made, one) for one in (AVG, COUNT)] == [Noise(kind="laplace", scale=3.0), Noise(kind="none")]
    assert [persons_spread(made, one) for one in (AVG, SUM, COUNT)] == [
        Spread("gaussian", 0.5, 3.0), Spread("laplace", 70.0), Spread("none", 0.0),
    ]  # fmt: skip


def test_an_answer_weighs_the_average_of_each_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """Totals of 3 over two rows and 10 over five: 0.25 * 1.5 + 0.75 * 2."""
    monkeypatch.setattr(module, "add_laplace", lambda value, scale: value + 1000 * Fraction(scale))
    plan: Any = SimpleNamespace(queries=QUERIES, n=30)
    found = [[Fraction(3), Fraction(10)], [Fraction(1), Fraction(5)]]
    assert persons_drawn(view(PERSONS), plan, found) == ((1.875 + 3000,), (30,), ((0.125 + 0.75) * 30 + 70_000,))
    for persons, totals in ((None, found), (PERSONS, found[:1]), (PERSONS, [*found, found[0]]), (None, [])):
        with pytest.raises(CertificateError, match="a view answers with noise"):
            persons_drawn(view(persons), plan, totals)


# ------------------------------------------------------------------------------------------------------------ the counts


def test_a_tail_in_closed_form() -> None:
    for scale in (0.4, 1.0, 7.5):
        q = math.exp(-1 / scale)
        for rows in (1, 2, 9):
            exact = (1 - q) / (1 + q) * q**rows / (1 - q)  # a geometric sum
            assert exact <= at_least(rows, scale) <= exact * (1 + 1e-9)
        assert at_least(0, scale) == at_least(-5, scale) == 1.0


def test_a_test_is_proved_up_to_its_delta() -> None:
    delta = at_least(14, 2.0)
    for threshold, margin, chance, proved in (
        (14, 30, delta, True),
        (14, 14, delta, True),
        (14, 13, delta, False),
        (13, 30, delta, False),
        (14, 30, delta * (1 - 1e-9), False),
    ):
        assert CountTest(delta=chance, scale=2.0, threshold=threshold, margin=margin).proved is proved
    assert CountTest(delta=0.1, scale=2.0, threshold=14, margin=30).failure == at_least(17, 2.0)
    assert TEST.term == LaplaceTerm(column=NAME, sensitivity=1.0, scale=2.0, granularity=granularity(2.0))


def test_a_view_asks_for_so_many_rows_to_spare(monkeypatch: pytest.MonkeyPatch) -> None:
    for noise, spare in ((0, 14), (-3, 17), (3, 11), (14, 0), (20, 0)):
        monkeypatch.setattr(counting, "whole_laplace", lambda scale, noise=noise: noise)
        assert TEST.drawn() == spare


@pytest.mark.parametrize("epsilon", [0.1, 0.7, 3.0])
@pytest.mark.parametrize(("delta", "failure"), [(1e-6, 1e-9), (0.01, 0.3), (0.6, 0.9)])
def test_a_test_has_the_least_threshold_and_margin(epsilon: float, delta: float, failure: float) -> None:
    made = count_test(epsilon, delta, failure)
    assert made is not None
    assert made.scale == pytest.approx(1 / (epsilon - 2.0**-GRID_BITS), rel=2e-9)
    assert made.scale * epsilon >= 1
    assert made.proved
    assert made.threshold == 1 or at_least(made.threshold - 1, made.scale) > delta * (1 - 1e-9)
    assert made.failure <= failure
    assert made.margin == made.threshold or at_least(made.margin - made.threshold, made.scale) > failure * (1 - 1e-9)


def test_a_grid_may_cost_all_of_it() -> None:
    assert count_test(2.0**-GRID_BITS, 1e-3, 1e-3) is None
    assert count_test(2.0**-GRID_BITS * 1.5, 1e-3, 1e-3) is not None
