"""The yardsticks for counts: group privacy without an assumption, and the public answer."""

from __future__ import annotations

import math

import pytest

from attrpriv.errors import Cause, RefusedError, UsageError
from attrpriv.methods.choice.choose import plan, rank
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from attrpriv.queries.sql import parse_queries
from tests.refusing import refuses
from tests.unit.methods.counts import column, problem, smokers

PRIOR = {"yes": 0.25}
VALUES = column("x", [0, 1, 3], [0.2, 0.5, 0.3], [0.5, 0.3, 0.2], prior=PRIOR)


@pytest.mark.parametrize(
    ("asked", "width"),
    [
        (problem(), 4),
        (problem(theta=()), 4),
        (problem(VALUES, queries=(Query("sum", "x"),)), 12),
        (problem(VALUES, queries=(Query("count", group_by="x"),)), 8),
    ],
)
def test_group_privacy_lets_every_row_change(asked: object, width: int) -> None:
    made = plan(asked, "group_dp")  # type: ignore[arg-type]
    assert made.tally is not None
    assert made.tally.scale == pytest.approx(width, rel=1e-10)
    assert made.tally.scale > width
    assert "nothing about the law of the rows: any table looks like any other" in made.certificate.assumes
    made.tallied([1] * len(made.tally.cells), [2] * len(made.tally.categories))


def test_group_privacy_with_single_persons() -> None:
    made = plan(problem(individuals=0.1), "group_dp")
    assert made.tally is not None
    assert made.tally.scale == pytest.approx(10, rel=1e-10)
    assert made.certificate.individuals is not None
    made.tallied((1,), (2, 2))


def test_without_an_assumption_categories_are_not_read() -> None:
    made = plan(problem(theta=()), "group_dp")
    assert made.tally is not None
    assert made.tally.categories == ()
    assert problem(theta=()).tallied
    assert not problem(theta=(), queries=(Query("sum", "x"),)).tallied
    assert not problem(theta=(), queries=(Query("count"),)).tallied


def moments(yes: float, no: float, share: float, n: int = 4) -> tuple[float, float]:
    p = share * yes + (1 - share) * no
    return n * p, math.sqrt(n * p * (1 - p))


def test_the_constant_is_what_the_assumption_expects() -> None:
    made = plan(problem(smokers(prior=PRIOR)), "constant")
    mean, sd = moments(0.4, 0.6, 0.25)  # 2.2
    assert made.tally is not None
    assert made.tally.centre == 2
    assert made.error.rmse == pytest.approx(math.hypot(mean - 2, sd))
    assert made.tallied((4,), (0, 4)) == ((2,),)
    assert made.tallied((0,), (0, 4)) == ((2,),)
    assert "a yardstick: auto never chooses it." in made.notes


def test_the_number_of_rows_is_no_yardstick() -> None:
    """It is public, and auto does answer it so."""
    asked = problem(smokers(prior=PRIOR)).model_copy(update={"queries": parse_queries("count(*)")})
    made = plan(asked)
    assert made.mechanism == "constant"
    assert made.error.rmse == 0
    assert not any("yardstick" in note for note in made.notes)


def test_the_constant_of_a_sum() -> None:
    made = plan(problem(VALUES, queries=(Query("sum", "x"), Query("avg", "x"))), "constant")
    law = [0.25 * a + 0.75 * b for a, b in zip([0.2, 0.5, 0.3], [0.5, 0.3, 0.2], strict=True)]
    mean = sum(v * p for v, p in zip((0, 1, 3), law, strict=True))
    variance = sum(v * v * p for v, p in zip((0, 1, 3), law, strict=True)) - mean**2
    centre = round(4 * mean)
    assert made.tallied((0, 0, 4), (0, 4)) == ((centre,), (centre / 4,))
    assert made.error_of(made.queries[0]).rmse == pytest.approx(math.hypot(4 * mean - centre, math.sqrt(4 * variance)))


def test_the_error_of_a_constant_covers_the_box() -> None:
    """Every corner of the box has at most the error that is told."""
    made = plan(problem(smokers((0.3, 0.4), (0.6, 0.7), prior={"yes": (0.2, 0.3)})), "constant")
    assert made.tally is not None
    assert made.tally.centre is not None
    for yes, no, share in [(y, n, s) for y in (0.3, 0.4) for n in (0.6, 0.7) for s in (0.2, 0.3)]:
        mean, sd = moments(yes, no, share)
        assert math.hypot(mean - made.tally.centre, sd) <= (made.error.rmse or 0) + 1e-12


def test_the_constant_needs_a_prior_and_one_number() -> None:
    with refuses(RefusedError, Cause.NUMBERS, "a prior for the share of each category"):
        plan(problem(), "constant")
    with refuses(RefusedError, Cause.TOGETHER, "one query at a time"):
        plan(problem(VALUES, queries=(Query("count", group_by="x"),)), "constant")


def test_auto_never_chooses_a_constant() -> None:
    """Intervals of probabilities: what reads the secret does not cover them for so many rows."""
    far = problem(
        smokers((0.1, 0.11), (0.89, 0.9), prior=PRIOR),
        epsilon=0.01,
        n=100,
        secrets=(Secret("count(smoker = 'yes')", between=(0, 100)),),
    )
    ranking = rank(far)
    assert ranking.plans[0].mechanism == "constant"
    assert ranking.constant_wins
    assert ranking.chosen is not None
    assert ranking.chosen.mechanism != "constant"


def test_group_privacy_needs_no_law_of_what_is_counted() -> None:
    made = plan(problem(queries=(Query("count", where="age > 3"),)), "group_dp")
    assert made.tally is not None
    assert made.tally.scale == pytest.approx(4, rel=1e-10)


def test_bad_usage_is_said_by_group_privacy_too() -> None:
    with pytest.raises(UsageError, match="must give the values of x with their probabilities"):
        plan(problem(queries=(Query("sum", "x", where="x > 3"),)), "group_dp")
