"""From written laws to whole steps: which law is for which value of the secret, what is counted, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from attrpriv.assumptions.counts import Counts
from attrpriv.assumptions.laws import Laws
from attrpriv.cases.stated import Stated, expected_counts, stated
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Cause, Refusal
from attrpriv.problem.secret import Parameter, Secret
from attrpriv.queries.query import Query

FLU = Query("count", where="flu = 1")
LAWS = [[0.1, 0.2, 0.7], [0.2, 0.2, 0.6], [0.3, 0.3, 0.4], [0.5, 0.25, 0.25], [0.6, 0.3, 0.1]]
VISITS = Query("sum", "visits")


def assumed(names: Any = ("0", "1"), **changes: Any) -> Laws:
    given = dict(zip(names, LAWS, strict=False))
    return Laws(**({"statistic": FLU.text, "values": [0, 1, 4], "given": given} | changes))


def problem(*theta: Any, **changes: Any) -> Problem:
    given: dict[str, Any] = {
        "queries": (FLU,), "secrets": (Secret("entries(flu)"),), "epsilon": 1.0, "n": 4, "theta": theta or (assumed(),),
    }  # fmt: skip
    return Problem(**(given | changes))


def laws(found: Stated) -> list[list[float]]:
    (case,) = found.cases
    return [[float(low) for low, _ in law] for law in case.laws.laws]


# ------------------------------------------------------------------------------------------- which law is for which value


def test_laws_of_entries_are_all_compared() -> None:
    found = stated(problem(assumed(("b", "a", "c"))))
    assert laws(found) == [LAWS[1], LAWS[0], LAWS[2]]  # by name
    assert found.cases[0].laws.apart == 2
    assert (found.cases[0].laws.steps, found.low, found.categories, found.one_row) == ((0, 1, 4), None, (), False)
    assert (found.secret, len(found.checks), found.checks[0].theta) == ("entries(flu)", 1, 0)


def test_laws_of_counts_are_in_the_order_of_the_counts_of_the_range() -> None:
    counts = assumed(("3", "1.0", "2"))
    asked = Secret("count(x2 = 1)", between=(1, 3), within=1)
    found = stated(problem(counts, secrets=(asked,)))
    assert laws(found) == [LAWS[1], LAWS[2], LAWS[0]]
    assert (found.cases[0].laws.apart, found.low) == (1, 1)
    assert [(one.name, one.where, one.member) for one in found.categories] == [
        ("inside", "x2 = 1", True), ("outside", None, False),
    ]  # fmt: skip
    every = stated(problem(counts, secrets=(Secret("count(x2 = 1)", between=(1, 3)),)))
    assert every.cases[0].laws.apart == 2
    for names in (("1", "2"), ("1", "2", "3", "03"), ("0", "1", "2"), ("1", "2", "x"), ("1", "2", "2.5")):
        with pytest.raises(Refusal, match="given"):
            stated(problem(assumed(names), secrets=(asked,)))


@pytest.mark.parametrize("names", [("0.25", "0.5", "0.75"), ("25%", "50%", "3/4"), ("0.2500002", "0.4999998", "0.75")])
def test_laws_of_shares_are_named_by_shares(names: tuple[str, ...]) -> None:
    asked = Secret("share(x2 = 1)", between=(0.25, 0.75), within=0.25)
    found = stated(problem(assumed(names), secrets=(asked,)))
    assert laws(found) == LAWS[:3]
    assert (found.cases[0].laws.apart, found.low) == (1, 1)


@pytest.mark.parametrize("name", ["0.2500003", "0.2499997", "0.3", "1/0", "25%%", "none"])
def test_a_share_that_no_table_has_is_refused(name: str) -> None:
    """A name is for a share that is off it by a millionth of a row at most."""
    asked = Secret("share(x2 = 1)", between=(0.25, 0.75))
    with pytest.raises(Refusal, match="given: must name"):
        stated(problem(assumed((name, "0.5", "0.75")), secrets=(asked,)))


def test_laws_of_cases_are_those_of_their_texts() -> None:
    rich = Secret("mean(income)", cases=("< 20", "[20, 50]", "> 50"))
    found = stated(problem(assumed(("[20, 50]", "< 20", "> 50")), secrets=(rich,)))
    assert laws(found) == [LAWS[1], LAWS[0], LAWS[2]]
    assert (found.cases[0].laws.apart, found.low) == (2, None)
    for names in (("< 20", "> 50"), ("< 20", "[20, 50]", "> 50", "more"), ("< 20", "[20, 50]", "> 51")):
        with pytest.raises(Refusal, match="one law for each case"):
            stated(problem(assumed(names), secrets=(rich,)))


@pytest.mark.parametrize(
    "secret",
    [
        Secret("mean(age)", between=(2.0, 3.0)),
        Secret("sum(age)", between=(2.0, 3.0)),
        Parameter("share(x = 1)", between=(0.2, 0.5)),
    ],
)
def test_values_without_end_have_no_stated_laws(secret: Secret) -> None:
    with pytest.raises(Refusal, match="finitely many values"):
        stated(problem(secrets=(secret,)))


def test_every_law_of_a_list_is_of_the_same_values() -> None:
    other = assumed(given={"0": LAWS[3], "1": LAWS[4]})
    found = stated(problem(assumed(), other))
    assert [case.theta for case in found.cases] == [check.theta for check in found.checks] == [0, 1]
    assert found.exact
    wide = assumed(given={"0": [(0.1, 0.3), 0.2, (0.5, 0.7)], "1": LAWS[1]})
    assert not stated(problem(assumed(), wide)).exact
    for more in (assumed(("0", "2")), assumed(("0", "1", "2")), assumed(values=[0, 1, 3]), assumed(statistic=VISITS.text)):
        for both in ((assumed(), more), (more, assumed())):
            with pytest.raises(Refusal, match=r"list must|is not stated"):
                stated(problem(*both))
    sums = {"statistic": "avg(visits)", "values": [0, 0.5, 1]}
    apart = assumed(**sums, row_values=[0, 1, 2]), assumed(**sums, row_values=[0, 1, 2, 4])
    average = {"queries": (Query("avg", "visits"),), "n": 2}
    assert stated(problem(apart[0], apart[0], **average)).exact
    for both in (apart, apart[::-1]):
        with pytest.raises(Refusal, match="same statistic with the same values"):
            stated(problem(*both, **average))


# ------------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("statistic", "query"),
    [
        (FLU.text, Query("count", where="flu = 0")), (FLU.text, Query("count", group_by="flu")),
        (FLU.text, Query("sum", "flu")), ("sum(visits)", Query("sum", "days")), ("sum(visits)", FLU),
        ("sum(visits)", Query("sum", "visits", where="flu = 1")), ("sum(visits)", Query("avg", of=("2 * visits",))),
        ("sum(visits)", Query("count", group_by="visits")),
    ],
)  # fmt: skip
def test_a_statistic_without_a_law_is_refused(statistic: str, query: Query) -> None:
    with pytest.raises(Refusal) as caught:
        stated(problem(assumed(statistic=statistic), queries=(query,), n=1))
    assert caught.value.cause in (Cause.STATISTIC, Cause.MISTAKE)


def test_single_persons_need_values_without_gaps() -> None:
    even = assumed(values=[1, 2, 3])
    assert stated(problem(even, individuals=0.5)).tally.support == (1, 2, 3)
    for values in ([0, 1, 3], [0, 2, 3], [0, 2, 4]):
        with pytest.raises(Refusal, match="could show one row") as caught:
            stated(problem(assumed(values=values), individuals=0.5))
        assert caught.value.cause is Cause.PERSONS


def test_what_is_known_and_how_many_secrets() -> None:
    with pytest.raises(Refusal, match="known_rows") as known:
        stated(problem(known_rows=0.1))
    assert known.value.cause is Cause.PERSONS
    with pytest.raises(Refusal, match="one secret"):
        stated(problem(secrets=(Secret("entries(flu)"), Secret("entries(x)"))))


# ------------------------------------------------------------------------------------------------------- what is counted


def sums(values: Any, rows: Any, n: int, statistic: str = "sum(visits)", **changes: Any) -> Stated:
    query = VISITS if statistic.startswith("sum") else Query("avg", "visits")
    theta = assumed(statistic=statistic, values=values, row_values=rows)
    return stated(problem(theta, queries=(query,), n=n, **changes))


@pytest.mark.parametrize("statistic", ["sum(visits)", "avg(visits)"])
def test_stated_sums_are_steps_from_the_least_that_rows_add_up_to(statistic: str) -> None:
    """Entries of 2.5, 4 and 8.5 are 0, 1 and 4 steps of 1.5 above 2.5; two of them add up to 0 to 8 steps above 5."""
    each = 1.0 if statistic == "sum(visits)" else 0.5
    found = sums([5 * each, 8 * each, 17 * each], [8.5, 2.5, 4], 2, statistic)
    assert (found.tally.unit, found.tally.origin, found.tally.support) == (1.5, 2.5, (0, 2, 8))
    assert found.cases[0].laws.steps == (0, 2, 8)
    assert found.tally.complete
    assert [(cell.name, cell.where, cell.value) for cell in found.tally.cells] == [
        ("2.5", "visits = 2.5", 0), ("4", "visits = 4", 1), ("8.5", "visits = 8.5", 4),
    ]  # fmt: skip
    for wrong in ([3.5, 5, 8], [5, 8, 18.5], [5, 7, 8], [5, 6.500003, 8]):
        with pytest.raises(Refusal, match="values: must be ones that"):
            sums([one * each for one in wrong], [2.5, 4, 8.5], 2, statistic)
    assert sums([5 * each, 6.500001 * each, 8 * each], [2.5, 4, 8.5], 2, statistic).tally.support == (0, 1, 2)


def test_counts_are_whole_numbers_of_rows() -> None:
    found = stated(problem(assumed(values=[0, 2, 4])))
    assert found.tally.support == (0, 2, 4)
    assert [(cell.name, cell.where, cell.value) for cell in found.tally.cells] == [("flu = 1", "flu = 1", 1)]
    assert not found.tally.complete
    assert found.tally.covering == (("not (flu is null)",),)
    for values in ([0, 2, 5], [-1, 0, 1], [0, 0.5, 1]):
        with pytest.raises(Refusal, match="values: must be ones that"):
            stated(problem(assumed(values=values)))


def test_one_row_has_the_stated_values_themselves() -> None:
    found = stated(problem(assumed(statistic="sum(visits)", values=[1, 3, 7]), queries=(VISITS,), n=1))
    assert (found.tally.unit, found.tally.origin, found.tally.support) == (2.0, 1.0, (0, 1, 3))
    with pytest.raises(Refusal, match="row_values"):
        stated(problem(assumed(statistic="sum(visits)", values=[1, 3, 7]), queries=(VISITS,), n=2))
    single = Laws(statistic="sum(visits)", values=[3], given={"0": [1], "1": [1]})
    with pytest.raises(Refusal, match="two or more values"):
        stated(problem(single, queries=(VISITS,), n=1))


def test_bounds_must_leave_the_listed_values_as_they_are() -> None:
    asked: dict[str, Any] = {"values": [4, 6, 8], "rows": [2, 3, 6], "n": 2}
    for bounds in ((2.0, 6.0), (0.0, 9.0)):
        assert sums(**asked, bounds={"visits": bounds}).tally.support == (0, 2, 4)
    for bounds in ((2.5, 6.0), (2.0, 5.5), (2.5, 7.0), (1.0, 5.0)):
        with pytest.raises(Refusal, match="bounds"):
            sums(**asked, bounds={"visits": bounds})
    with pytest.raises(Refusal, match="bins"):
        sums(**asked, bins={"visits": (0.0, 4.0, 9.0)})


def test_what_is_expected_is_of_each_member_at_the_middle_of_intervals() -> None:
    wide = assumed(given={"0": [(0.1, 0.3), 0.2, (0.5, 0.7)], "1": LAWS[4]}, prior={"0": (0.2, 0.4), "1": 0.7})
    (parts,) = expected_counts(stated(problem(wide)))
    assert [part.chance for part in parts.parts] == pytest.approx([0.3, 0.7])
    assert [part.mean for part in parts.parts] == pytest.approx([0.2 + 4 * 0.6, 0.3 + 4 * 0.1])
    assert parts.parts[1].sd == pytest.approx((0.3 + 16 * 0.1 - 0.7**2) ** 0.5)


# ------------------------------------------------------------------------------------------------------ an entry of counts

GIVEN = {"flu = 1": {"a": 0.1, "b": 0.4, "c": 0.7}}


def counts(**changes: Any) -> Counts:
    return Counts(**({"sensitive": "ward", "given": GIVEN, "prior": {"a": 0.5, "b": 0.3, "c": 0.2}} | changes))


def entry(*theta: Counts, **changes: Any) -> Problem:
    return problem(*(theta or (counts(),)), **({"secrets": (Secret("entries(ward)"),)} | changes))


def test_an_entry_is_hidden_in_what_its_own_row_adds() -> None:
    """All pairs of categories, both in a table of one row and behind others."""
    for n in (1, 4):
        found = stated(entry(n=n))
        assert [law[1] for law in laws(found)] == pytest.approx([0.1, 0.4, 0.7])
        (case,) = found.cases
        assert (case.laws.steps, case.laws.apart) == ((0, 1), 2)
        assert (found.low, found.categories, found.one_row) == (None, (), n > 1)
        assert found.tally.support == ((0, 1) if n == 1 else ())
        assert case.prior == pytest.approx((0.5, 0.3, 0.2))


def test_values_that_are_not_told_apart_are_compared_with_each_other() -> None:
    """What counts as `other` has its law twice, and a bin of numbers too."""
    found = stated(entry(counts(other="c")))
    assert [law[1] for law in laws(found)] == pytest.approx([0.1, 0.4, 0.7, 0.7])
    assert found.cases[0].laws.apart == 3
    assert found.cases[0].prior == pytest.approx((0.5, 0.3, 0.2, 0.0))


def test_without_shares_the_values_of_one_row_are_taken_as_likely_as_each_other() -> None:
    for n, prior in ((1, (1 / 3,) * 3), (4, ())):
        assert stated(entry(counts(prior={}), n=n)).cases[0].prior == pytest.approx(prior)


def test_entries_of_other_columns_and_lists_of_unlike_laws_are_refused() -> None:
    with pytest.raises(Refusal, match="the sensitive column"):
        stated(entry(secrets=(Secret("entries(flu)"),)))
    for more in (counts(sensitive="ward", given={"flu = 1": {"a": 0.1, "b": 0.4}}, prior={}),):
        for both in ((counts(), more), (more, counts())):
            with pytest.raises(Refusal):
                stated(entry(*both))
    two = stated(entry(counts(), counts(given={"flu = 1": {"a": 0.2, "b": 0.4, "c": 0.6}})))
    assert [float(case.laws.laws[0][1][0]) for case in two.cases] == pytest.approx([0.1, 0.2])
    with pytest.raises(Refusal):
        stated(entry(counts(), counts(sensitive="school")))
    values = {"visits": {name: {"values": [0, 1], "probabilities": [0.5, 0.5]} for name in "abc"}}
    with pytest.raises(Refusal, match="one count"):
        stated(entry(counts(given=values), queries=(Query("count", group_by="visits"),)))
