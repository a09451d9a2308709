"""Problems about counts: which laws must look alike, by their definitions, and what is not a problem about counts."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from attrpriv.assumptions.counts import Counts
from attrpriv.cases.lattice import counted, one_query, rows_apart, worst_law
from attrpriv.problem.refusal import Refusal
from attrpriv.problem.secret import Parameter, Secret
from attrpriv.queries.query import Query
from tests.conformance.test_mechanisms import counts_problem

EVENT = "stay > 7"


def stated(yes: Any, no: Any, prior: Any = 0.4) -> Counts:
    return Counts(sensitive="smoker", given={EVENT: {"yes": yes, "no": no}}, prior={"yes": prior})


@pytest.mark.parametrize(
    ("theta", "open_"),
    [
        ([stated(0.4, 0.2)], False),
        ([stated(0.4, (0.2, 0.3))], True),
        ([stated((0.3, 0.4), 0.2)], True),
        ([stated(0.4, 0.2, (0.3, 0.4))], True),
        ([stated(0.4, 0.2), stated(0.5, 0.2)], False),
        ([stated(0.4, 0.2), stated(0.5, (0.2, 0.3))], True),
        ([stated(0.4, (0.2, 0.3)), stated(0.5, 0.2)], True),
        ([stated(0.4, 0.2), stated(0.5, 0.2, (0.3, 0.4))], True),
        ([stated(0.4, 0.2, (0.3, 0.4)), stated(0.5, 0.2)], True),
    ],
)
def test_one_interval_anywhere_is_said(theta: list[Counts], open_: bool) -> None:
    """An error that is expected at one law of many must not read as the error at the law."""
    assert bool(worst_law(counted(counts_problem(theta=tuple(theta))))) is open_


@pytest.mark.parametrize(
    ("share", "rows"), [(0.0, 0), (0.1, 4), (0.025, 1), (0.01, 1), (0.26, 11), (0.975, 39), (0.7, 28), (0.35, 14)]
)
def test_known_rows_are_whole_rows_from_above(share: float, rows: int) -> None:
    """0.7 and 0.35 of 40 are whole numbers as they are written, and would not be as binary fractions."""
    assert counted(counts_problem(known_rows=share)).known == rows


def test_a_share_of_the_population_mixes_the_two_laws() -> None:
    low, high = Fraction("0.2"), Fraction("0.5")
    member, rest = Fraction("0.4"), Fraction("0.2")
    (case,) = counted(
        counts_problem(theta=(stated(0.4, 0.2),), secrets=(Parameter("share(smoker = 'yes')", between=(0.2, 0.5)),))
    ).cases
    assert case.population
    for law, share in ((case.records.member, high), (case.records.rest, low)):
        yes = share * member + (1 - share) * rest
        assert [tuple(Fraction(repr(x)) if isinstance(x, float) else x for x in pair) for pair in law] == [
            (1 - yes, 1 - yes),
            (yes, yes),
        ]
    # All rows may change their law, so every count is as far from every other as can be.
    assert (case.pairs.low, case.pairs.high, case.pairs.apart) == (0, 40, 40)
    assert [pair[0] for pair in case.rows.member] == [0.6, 0.4]
    assert [pair[0] for pair in case.rows.rest] == [0.8, 0.2]


def test_how_many_rows_change() -> None:
    asked = counts_problem(
        theta=(stated(0.4, 0.2), stated(0.5, 0.2)),
        secrets=(
            Secret("count(smoker = 'yes')", between=(10.0, 20.0)),
            Secret("count(smoker = 'yes')", within=3.0),
            Parameter("share(smoker = 'yes')", between=(0.2, 0.5)),
        ),
    )
    assert [(k, apart) for _, k, apart in rows_apart(asked)] == [(k, apart) for k in (0, 1) for apart in (10, 3, 40)]


@pytest.mark.parametrize(
    ("queries", "found"),
    [
        ((Query("count"), Query("count", where=EVENT)), Query("count", where=EVENT)),
        ((Query("sum", "visits"), Query("avg", "visits"), Query("count")), Query("sum", "visits")),
        ((Query("count"),), None),
        ((Query("count", where=EVENT), Query("sum", "visits")), None),
        ((Query("count", where=EVENT), Query("count", where="stay > 8")), None),
        ((Query("count", group_by="ward"), Query("count", where=EVENT)), None),
        ((Query("count", group_by="ward"), Query("count", group_by="visits")), None),
    ],
)
def test_all_of_one_call_come_from_one_tally(queries: tuple[Query, ...], found: Query | None) -> None:
    asked = counts_problem(queries=queries)
    if found is None:
        with pytest.raises(Refusal):
            one_query(asked)
    else:
        assert one_query(asked) == found


@pytest.mark.parametrize("prior", [0, 1, (0, 0), (1, 1)])
def test_a_count_that_cannot_vary_hides_nothing(prior: Any) -> None:
    with pytest.raises(Refusal, match="prior share"):
        counted(counts_problem(theta=(stated(0.4, 0.2, prior),)))


@pytest.mark.parametrize("prior", [(0, 1), (0, 1e-9), (1 - 1e-9, 1), 0.4])
def test_a_count_that_can_vary_is_hidden(prior: Any) -> None:
    assert counted(counts_problem(theta=(stated(0.4, 0.2, prior),))).cases


def test_members_of_theta_have_one_sensitive_column_with_one_list_of_categories() -> None:
    first = stated(0.4, 0.2)
    others = [
        Counts(sensitive="drinker", given={EVENT: {"yes": 0.4, "no": 0.2}}),
        Counts(sensitive="smoker", given={EVENT: {"yes": 0.4, "no": 0.2, "maybe": 0.3}}),
        Counts(sensitive="smoker", given={EVENT: {"yes": 0.4, "no": 0.2}}, other="no"),
    ]
    for other in others:
        for theta in ((first, other), (first, first, other), (other, first)):
            with pytest.raises(Refusal):
                counted(counts_problem(theta=theta))
    assert len(counted(counts_problem(theta=(first, first))).cases) == 2
