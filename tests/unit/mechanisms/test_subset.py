"""Averages over a subset of public size: the law they rest on, the noise it asks for, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from attrpriv.assumptions import Gaussian
from attrpriv.errors import AttrprivError, CertificateError, RefusedError, UsageError
from attrpriv.framework import Problem, Secret
from attrpriv.mechanisms import plan as plan_problem
from attrpriv.mechanisms.plan import Plan
from attrpriv.mechanisms.registry import MECHANISMS
from attrpriv.queries.sql import parse_queries

N, M = 10_000, 400
SD = {"weight": 25.0, "height": 4.0, "income": 30.0}
RHO = {("weight", "income"): 0.6, ("height", "income"): 0.2, ("weight", "height"): 0.5}
TYPES = {**dict.fromkeys(SD, "integer"), "ward": "text", "age": "integer"}
IN_A = "avg(weight) filter (where ward = 'a')"


def problem(text: str = IN_A, **changes: Any) -> Problem:
    given: dict[str, Any] = {
        "queries": parse_queries(text),
        "secrets": (Secret("mean(income)", between=(20, 200), within=1),),
        "epsilon": 1.0,
        "delta": 1e-6,
        "n": N,
        "theta": (Gaussian(mean={"income": 60}, sd=SD, correlation=RHO, tolerance=0),),
        "types": TYPES,
        "sizes": {"ward = 'a'": M},
    }
    return Problem(**{**given, **changes})


def plan(text: str = IN_A, **changes: Any) -> Plan:
    return plan_problem(problem(text, **changes), "gaussian")


def distance(scale: float, gap: float, m: int) -> float:
    """Of F given two values of g, from the covariances of a subset's average and the table's."""
    vxx, vyy, vxy = SD["weight"] ** 2, SD["income"] ** 2, 0.6 * SD["weight"] * SD["income"]
    shift = (vxy / N) / (vyy / N) * gap
    return shift / math.sqrt(vxx / m - (vxy / N) ** 2 / (vyy / N) + scale**2)


def test_the_covariances_are_those_of_simulated_tables() -> None:
    """8,000 tables of 50 rows, a subset of 10: within five standard errors, below 1e-5 by chance; the wrong ones are not."""
    rng, n, m, runs = np.random.default_rng(4), 50, 10, 8_000
    y = rng.normal(0, 1, (runs, n))
    x = 0.8 * y + rng.normal(0, 0.6, (runs, n))
    f, g = x[:, :m].mean(axis=1), y.mean(axis=1)
    slope = float((f * g).sum() / (g * g).sum())
    left = float(np.var(f - slope * g))
    true = 1 / m - 0.8**2 / n
    assert slope == pytest.approx(0.8, abs=5 * math.sqrt(true * n / runs))
    assert left == pytest.approx(true, rel=5 * math.sqrt(2 / runs))
    assert left > (1 - 0.8**2) / m, "the lower bound that is credited"
    assert left != pytest.approx((1 - 0.8**2) / n, rel=5 * math.sqrt(2 / runs)), "the mutant: the variance over all rows"


def test_the_noise_hides_the_secret_by_the_subset_s_own_law() -> None:
    made = plan()
    (part,) = made.columns
    assert distance(part.noise.scale, 1.0, M) <= part.parameters["mu"]
    assert not made.certificate.exact
    assert made.certificate.evidence.columns == ("weight filter (where ward = 'a')",)  # type: ignore[union-attr]
    made.verify()
    # The mutant: the plan of the whole table, whose mask is that of averages of more rows.
    whole = plan("avg(weight)").columns[0]
    assert whole.parameters["mask"] < part.parameters["mask"]


@pytest.mark.parametrize("size", [100, 400, 10_000])
def test_noise_is_what_a_table_of_that_size_needs(size: int) -> None:
    found = plan(sizes={"ward = 'a'": size}).columns[0].noise.scale
    assert found == plan("avg(weight)", n=size).columns[0].noise.scale


def test_several_averages_over_one_subset() -> None:
    made = plan("avg(weight - height) filter (where ward = 'a'), avg(height) filter (where ward = 'a')")
    assert [part.column for part in made.columns] == [
        "-height + weight filter (where ward = 'a')",
        "height filter (where ward = 'a')",
    ]
    made.verify()


def test_such_a_plan_answers_nothing_else() -> None:
    made = plan()
    other = made.model_copy(update={"subset": None})
    with pytest.raises(CertificateError, match="a filter or a group"):
        other.answers([0])  # type: ignore[list-item]


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "no size": (IN_A, {"sizes": {}}, "needs the subset's size as a public number"),
    "too large": (IN_A, {"sizes": {"ward = 'a'": N + 1}}, "sizes: must say how many of the 10000 rows"),
    "by an assumed column": (
        "avg(weight) filter (where height > 60)",
        {"sizes": {"height > 60": 500}},
        "do not have the assumed law",
    ),
    "by the secret": ("avg(weight) filter (where income > 60)", {"sizes": {"income > 60": 500}}, "do not have the assumed law"),
    "two subsets": (f"{IN_A}, avg(height)", {}, "averages over one subset"),
    "a sum": ("sum(weight) filter (where ward = 'a')", {}, "answers statistics over all rows only"),
    "by group": ("SELECT ward, avg(weight) FROM data GROUP BY ward", {}, "answers statistics over all rows only"),
    "a share of the budget": (IN_A, {"spend": 0.5}, "shares no budget"),
    "known rows": (IN_A, {"known_rows": 0.01}, "known_rows, individuals"),
    "individuals": (IN_A, {"individuals": 1.0}, "known_rows, individuals"),
    "a hidden sum": (IN_A, {"secrets": (Secret("sum(income)", within=100),)}, "not sums or cases"),
    "cases": (IN_A, {"secrets": (Secret("mean(income)", cases=("< 50", ">= 50")),)}, "not sums or cases"),
    "few rows": (IN_A, {"sizes": {"ward = 'a'": 50}}, "need at least 100 rows"),
    "products": ("avg(weight*height) filter (where ward = 'a')", {}, "Three ways"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    text, changes, message = REFUSED[name]
    with pytest.raises(AttrprivError) as caught:
        plan(text, **changes)
    assert message in str(caught.value)
    assert isinstance(caught.value, RefusedError | UsageError)


@pytest.mark.parametrize("mechanism", [name for name in MECHANISMS if name != "gaussian"])
def test_no_other_mechanism_takes_a_subset(mechanism: str) -> None:
    with pytest.raises(RefusedError):
        plan_problem(problem(bounds={"weight": (0.0, 500.0)}), mechanism)


def test_what_may_follow_is_not_covered() -> None:
    asked = problem("avg(height)", spend=0.5, earlier=plan().certificate.evidence)
    with pytest.raises(AttrprivError, match="of some of the rows"):
        plan_problem(asked, "gaussian")
