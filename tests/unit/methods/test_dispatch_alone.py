"""Which form plans a problem, what is refused before it is asked, and names and evidence of methods from outside."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from attrpriv.errors import Cause, UsageError
from attrpriv.methods import dispatch, table
from attrpriv.methods.dispatch import form_of, planned_by, too_slow
from attrpriv.methods.table import METHODS, Form, Method, register
from attrpriv.problem.refusal import Refusal
from attrpriv.problem.shapes import LATTICE, MIXED, SHIFT
from attrpriv.queries.query import Query

AVG, SOME, BY, COUNT_SOME = (
    Query("avg", "x"),
    Query("avg", "x", where="y > 1"),
    Query("sum", "x", group_by="g"),
    Query("count", where="y > 1"),
)


def asked(shape: str = SHIFT, *queries: Query, **changes: Any) -> Any:
    told = {
        "non_linear": False,
        "tallied": False,
        "alone": True,
        "individuals": None,
        "theta": (SimpleNamespace(kind="something"),),
        **changes,
    }
    return SimpleNamespace(shape=shape, queries=queries or (AVG,), **told)


def method(*forms: Form, **changes: Any) -> Method:
    return Method("own", forms, **{"page": "own.md", **changes})


def form(*shapes: str, statistics: Any = "any", **changes: Any) -> Form:
    return Form(shapes, f"home of {'-'.join(shapes)} {statistics}", statistics=statistics, **changes)


@pytest.fixture(autouse=True)
def _homes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands at a home answers with its name, and a proof for no single person."""

    def loaded(home: str) -> Any:
        evidence = SimpleNamespace(reads_rows=True)
        return lambda problem: SimpleNamespace(home=home, certificate=SimpleNamespace(individuals=None, evidence=evidence))

    monkeypatch.setattr(dispatch, "load", loaded)


def refused(made: Method, problem: Any) -> Refusal:
    with pytest.raises(Refusal) as caught:
        planned_by(made, problem)
    return caught.value


def test_the_first_form_for_the_shape_and_the_statistics() -> None:
    first, counts, second, rest = form("a"), form("b", statistics="counts"), form("b", statistics="non_linear"), form("b")
    made = method(first, counts, second, rest)
    assert form_of(made, asked("a")) is first
    assert form_of(made, asked("b", tallied=True)) is counts
    assert form_of(made, asked("b", non_linear=True)) is second
    assert form_of(made, asked("b", non_linear=True, tallied=True)) is second
    assert form_of(made, asked("b")) is rest
    assert form_of(made, asked("c")) is None
    anything = form()
    assert form_of(method(first, anything), asked("c")) is anything
    assert form_of(method(first, anything), asked("a")) is first


def test_a_form_that_stands_alone_takes_the_whole_budget() -> None:
    made = method(form(SHIFT, alone=True), form("b"))
    assert planned_by(made, asked()) is not None
    assert refused(made, asked(alone=False)).cause is Cause.BUDGET
    assert planned_by(made, asked("b", alone=False)) is not None


@pytest.mark.parametrize(
    ("statistics", "query", "taken"),
    [
        ("averages", AVG, True), ("averages", SOME, False), ("averages", COUNT_SOME, False), ("averages", BY, False),
        ("subsets", AVG, True), ("subsets", SOME, True), ("subsets", BY, True), ("subsets", COUNT_SOME, False),
        ("any", SOME, True), ("any", COUNT_SOME, True),
    ],
)  # fmt: skip
def test_averages_are_over_all_rows_or_over_subsets(statistics: str, query: Query, taken: bool) -> None:
    made = method(form(SHIFT, statistics=statistics))
    for queries in ((query,), (AVG, query), (query, AVG)):
        if taken:
            assert planned_by(made, asked(SHIFT, *queries)) is not None
        else:
            found = refused(made, asked(SHIFT, *queries))
            assert (found.cause, found.query) == (Cause.STATISTIC, query.text)
            assert ("counts" in str(found.needs)) is (query is COUNT_SOME)


@pytest.mark.parametrize(
    ("asks", "rows", "reads", "taken"),
    [
        (None, None, True, True), (0.5, None, True, False), (0.5, None, False, True),
        (0.5, SimpleNamespace(epsilon=0.5), True, True), (0.5, SimpleNamespace(epsilon=0.4), True, True),
        (0.5, SimpleNamespace(epsilon=0.6), True, False),
        (0.5, SimpleNamespace(epsilon=None), True, False), (None, SimpleNamespace(epsilon=0.6), True, True),
    ],
)  # fmt: skip
def test_single_persons_are_protected_as_asked(
    asks: Any, rows: Any, reads: bool, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan: Any = SimpleNamespace(certificate=SimpleNamespace(individuals=rows, evidence=SimpleNamespace(reads_rows=reads)))
    monkeypatch.setattr(dispatch, "load", lambda home: lambda problem: plan)
    made, problem = method(form(SHIFT)), asked(individuals=asks)
    if taken:
        assert planned_by(made, problem) is plan
    else:
        assert refused(made, problem).cause is Cause.PERSONS


def test_what_takes_another_shape_says_which() -> None:
    averages = method(form(SHIFT, statistics="averages"), asks=("gaussian",))
    counting = method(form(LATTICE), asks=("counts", "stated"))
    assert refused(averages, asked(MIXED)).cause is Cause.NUMBERS
    tallied = asked("c", COUNT_SOME, tallied=True)
    assert refused(averages, tallied).cause is Cause.STATISTIC
    assert "gaussian" in str(refused(averages, tallied).needs)
    assert refused(counting, tallied).cause is Cause.ASSUMPTION
    assert "counts" in str(refused(counting, tallied).needs)
    assert refused(averages, asked("c", SOME)).cause is Cause.STATISTIC
    assert refused(averages, asked("c")).cause is Cause.ASSUMPTION
    assert "gaussian" in str(refused(averages, asked("c")).needs)
    assert refused(averages, asked("c", COUNT_SOME, tallied=True, theta=())).cause is Cause.STATISTIC
    two = method(form(SHIFT, statistics="averages"), form("b", statistics="subsets"), asks=("gaussian", "groups"))
    assert refused(two, asked("c", SOME)).cause is Cause.ASSUMPTION
    assert tuple(refused(two, asked("c")).needs) == ("gaussian", "groups")
    assert refused(method(form("b")), asked("c")).cause is Cause.ASSUMPTION


def test_what_is_slow_is_said_by_the_form_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "load", lambda home: lambda problem: f"{home} of {problem.shape}")
    assert too_slow(method(form("a", too_slow="rows")), asked("a")) == "rows of a"
    assert too_slow(method(form("a")), asked("a")) is None
    assert too_slow(method(form("a", too_slow="rows")), asked("b")) is None


# --------------------------------------------------------------------------------------------------------- the table


def test_a_method_has_a_name_and_evidence_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "_REGISTERED", {})
    own = method(form(), proofs={"own evidence": ".own"})
    assert register(own) is own
    assert register(own) is own  # again, as when a module is loaded twice
    assert list(table._REGISTERED.items()) == [("own", own)]
    with pytest.raises(UsageError, match="a name of its own"):
        register(method(form("b"), proofs={}))
    for kind, owner in (("own evidence", "own"), ("gaussian", "gaussian"), ("view", "subsample")):
        with pytest.raises(UsageError, match=f"which is {owner}'s"):
            register(Method("another", (form(),), page="own.md", proofs={"fine": ".a", kind: ".b"}))
    with pytest.raises(UsageError, match="a name of its own"):
        register(METHODS[0])
    assert list(table.methods())[-1] == "own"


def test_the_shapes_of_a_method_are_those_of_its_forms() -> None:
    assert method(form("a", "b"), form("b", "c")).shapes() == ("a", "b", "c")
    assert method(form("a"), form()).shapes() == ()
    assert (method(form()).without_assumption, method(form(), asks=("gaussian",)).without_assumption) == (True, False)
    assert (method(form(), covers=frozenset({"any"})).views, method(form(), covers=frozenset({"subsets"})).views) == (
        True,
        False,
    )
