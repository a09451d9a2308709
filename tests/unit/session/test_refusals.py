"""What a refusal says: the query that is the cause, a way out that is open, and nothing that contradicts itself."""

from __future__ import annotations

import re
from typing import Any

import pytest

import attrpriv as ap
from attrpriv.assumptions.parameter_network import ParameterNetwork
from attrpriv.methods.choice.choose import plan, rank
from attrpriv.problem.problem import Problem
from attrpriv.queries.sql import parse_queries
from tests.unit.methods.markov_quilt.test_plan import problem as network_problem
from tests.unit.methods.markov_quilt.test_score import school

BY_WARD = "SELECT ward, avg(hours) FROM data GROUP BY ward"
SHARE = ap.Secret("share(sex = 'Female')", between=(0.25, 0.4))
BEHIND: dict[str, Any] = {
    "nothing": (),
    "gaussian": ap.Gaussian(
        mean={"sex": 0.3},
        sd={"hours": 10, "age": 10, "sex": 0.5},
        correlation={"hours~sex": 0.1, "age~sex": 0.1, "hours~age": 0.1},
        tolerance={"mean": 0.01, "sd": 0.01, "slope": 0.1},
    ),
    "groups": ap.Groups(
        sensitive="sex",
        mean={"Female": {"hours": 36}, "Male": {"hours": 42}},
        sd={"Female": {"hours": 11}, "Male": {"hours": 12}},
        tolerance={"mean": 0.02, "sd": 0.02},
    ),
    "counts": ap.Counts(sensitive="sex", given={"hours > 40": {"Female": 0.3, "Male": 0.4}}, prior={"Female": 0.3}),
    "network": ParameterNetwork(network=school(), tolerance=0),
}
ASKED = (
    "avg(hours)",
    "avg(hours + age)",
    "avg(hours * age)",
    "avg(hours) filter (where age > 30)",
    "sum(hours) filter (where age > 30)",
    "sum(hours + age) filter (where age > 30)",
    "count(*) filter (where age > 30)",
    "var_pop(hours)",
    "var_pop(hours) filter (where age > 30)",
    BY_WARD,
    "SELECT ward, count(*) FROM data GROUP BY ward",
)


def policy(release: list[str], **changes: Any) -> ap.Policy:
    given: dict[str, Any] = {"rows": 1000, "epsilon": 1.0, "protect": [SHARE], "data": "t.parquet", "release": release}
    return ap.Policy(**(given | changes))


def refusal(release: list[str], **changes: Any) -> str:
    with ap.Session(policy=policy(release, **changes)) as session, pytest.raises(ap.AttrprivError) as caught:
        session.plan()
    return str(caught.value)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_query_that_is_refused_by_itself_is_blamed(place: int) -> None:
    release = ["avg(hours)", "avg(age)"]
    release.insert(place, BY_WARD)
    told = refusal(release)
    assert told.startswith(f"{BY_WARD}, a part of what is asked: ")
    assert "ward needs public categories" in told
    assert "after a view" not in told
    with ap.Session(policy=policy(release, categories={"ward": ["a", "other"]})) as session:  # the way out
        assert session.plan().mechanism == "subsample"


def test_a_count_whose_law_is_not_given_is_blamed_and_not_the_one_before_it() -> None:
    with pytest.raises(
        ap.AttrprivError, match=r"count\(\*\) filter \(where age > 30\), a part of what is asked: .*probability"
    ):
        plan_all(["count(*) filter (where hours > 40)", "count(*) filter (where age > 30)"])


def plan_all(release: list[str]) -> ap.Plan:
    secret = ap.Secret("share(sex = 'Female')", cases=("< 0.3", ">= 0.3"))  # for which there is no view
    with ap.Session(policy=policy(release, assume=BEHIND["counts"], protect=[secret])) as session:
        return session.plan()


@pytest.mark.parametrize("assumed", BEHIND)
@pytest.mark.parametrize("text", ASKED)
def test_no_mechanism_names_itself_as_the_way_out(assumed: str, text: str) -> None:
    theta = () if assumed == "nothing" else (BEHIND[assumed],)
    asked = Problem(queries=parse_queries(text), secrets=(SHARE,), epsilon=1.0, delta=1e-6, n=1000, theta=theta)
    for name, refused in rank(asked).refused.items():
        assert not names_itself(name, refused.reason), f"{name}: {refused.reason}"
        assert "Got ''" not in refused.reason


def names_itself(name: str, reason: str) -> bool:
    without_kinds = re.sub(r"\ban? [a-z_, ]+? assumption|kind: [a-z_]+", "", reason)
    return re.search(rf"(?<![\w.]){name}\b(?! \()", without_kinds) is not None


def test_names_itself_sees_what_it_must() -> None:
    assert names_itself("gaussian", "answers statistics over all rows only; a filter needs gaussian, transport or a view.")
    assert not names_itself("gaussian", "averages over some rows need a gaussian assumption or a view.")


def test_a_combination_of_columns_under_a_network() -> None:
    with pytest.raises(ap.RefusedError, match=r"does not cover avg\(sat \+ weight\).* Or ask for the average of each column"):
        plan(network_problem(queries=parse_queries("avg(weight + sat)"), delta=1e-6), "gaussian")


def test_a_sum_of_two_columns_is_not_answered_by_a_count() -> None:
    """Its filter alone has a law; the sum itself has none."""
    known = ParameterNetwork(
        network=school(),
        tolerance=0,
        attributes={"height": {"family": "bernoulli"}},
        values={"height": {"low": 0.3, "high": 0.7}},
    )
    for mechanism in ("gaussian", "laplace", "wasserstein", "optimal", "constant"):
        asked = network_problem(
            theta=(known,), delta=1e-6, queries=parse_queries("sum(weight + sat) filter (where height > 0)")
        )
        with pytest.raises(ap.RefusedError):
            plan(asked, mechanism)
    text = "sum(hours + age) filter (where hours > 40)"
    chosen = rank(Problem(queries=parse_queries(text), secrets=(SHARE,), epsilon=1.0, n=1000, theta=(BEHIND["counts"],))).chosen
    assert chosen is not None
    assert chosen.mechanism == "subsample"


def test_what_was_tried_is_not_advised() -> None:
    told = refusal(
        ["avg(hours) filter (where age > 30)"], assume=BEHIND["gaussian"], protect=[ap.Secret("mean(sex)", within=0.01)]
    )
    assert "declare sizes" in told
    assert "As a quotient of a sum and a count" in told
    assert "or release it as a ratio" not in told
