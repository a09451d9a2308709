"""A proof for several secrets, or several members of Theta, proves as much as for the worst of them; whatever their order."""

from __future__ import annotations

from typing import Any

import pytest

from attrpriv.assumptions.chain import Chain
from attrpriv.assumptions.counts import Counts
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Parameter, Secret
from attrpriv.queries.query import Query
from tests.conformance.test_mechanisms import (
    PROBLEMS,
    chain_problem,
    counts_problem,
    groups_problem,
    known_law,
    network_problem,
    planned,
    problem,
)

COUNTS = (Secret("count(smoker = 'yes')", between=(10.0, 20.0)), Secret("count(smoker = 'yes')", within=2.0))
EVENT = Counts(sensitive="smoker", given={"stay > 7": {"yes": 0.4, "no": 0.2}}, prior={"yes": 0.4})
CLOSE = Counts(sensitive="smoker", given={"stay > 7": {"yes": 0.3, "no": 0.25}}, prior={"yes": 0.4})
SETS = (
    Secret("count(smoker = 'yes')", cases=("< 10", ">= 10")),
    Secret("count(smoker = 'yes')", cases=("< 3", "[3, 12)", ">= 12")),
)
STEADY, JUMPY = (
    Chain(column="state", states=[0, 1], initial=[1, 0], transition=rows, tolerance=0)
    for rows in ([[0.9, 0.1], [0.4, 0.6]], [[0.6, 0.4], [0.5, 0.5]])
)
SHARES = (Secret("share(gender = 'F')", between=(0.25, 0.4)), Secret("share(gender = 'F')", within=0.02))
MEANS = (Secret("mean(income)", within=1_000.0), Secret("mean(height)", within=0.01))
RANGES = (Secret("mean(income)", between=(20_000.0, 200_000.0)), Secret("mean(height)", between=(60.0, 74.0)))
ASKED: dict[str, tuple[Problem, str]] = {
    "laplace, two secrets": (counts_problem(secrets=COUNTS, theta=(EVENT,), delta=0.0, epsilon=0.5), "laplace"),
    "laplace, two members": (counts_problem(theta=(EVENT, CLOSE), delta=0.0, epsilon=0.5), "laplace"),
    "laplace with delta": (counts_problem(secrets=COUNTS, theta=(EVENT,), epsilon=0.5), "laplace"),
    "gaussian on counts": (counts_problem(secrets=COUNTS, theta=(EVENT,), epsilon=0.5), "gaussian"),
    "sets of counts": (counts_problem(secrets=SETS, theta=(EVENT,), epsilon=0.5), "laplace"),
    "chains": (chain_problem(theta=(STEADY, JUMPY)), "chain_quilt"),
    "chains, by the recursion": (chain_problem(theta=(STEADY, JUMPY)), "laplace"),
    "parameters": (network_problem(secrets=(Parameter("income"), Parameter("gender"))), "markov_quilt"),
    "parameter counts": (
        network_problem(
            queries=(Query("count", where="height = 1"),), theta=(known_law(),), epsilon=0.2, n=30, bins={},
            secrets=(Parameter("income"), Parameter("height")),
        ),
        "laplace",
    ),
    "averages": (problem(secrets=MEANS), "gaussian"),
    "averages by transport": (problem(secrets=RANGES), "transport"),
    "groups": (groups_problem(secrets=SHARES), "gaussian"),
    "a hierarchy": (PROBLEMS["a hierarchy, several secrets"], "gaussian"),
}  # fmt: skip


def only(evidence: Any, check: Any) -> dict[str, Any]:
    """A proof of one of them; of a quilt, which asks for all that are protected, with that one protected."""
    return {"checks": (check,)} | ({"protected": (check.secret,)} if evidence.kind == "quilts" else {})


@pytest.mark.parametrize("label", ASKED)
def test_the_worst_of_several_counts(label: str) -> None:
    asked, name = ASKED[label]
    made = planned(asked, name)
    assert made is not None
    evidence: Any = made.certificate.evidence
    checks = getattr(evidence, "checks", ())
    assert len(checks) > 1, "or the test would be of nothing"
    differ = 0
    for share in (1e-3, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0):
        epsilon = asked.epsilon * share
        alone = [evidence.model_copy(update=only(evidence, one)).delta(epsilon) for one in checks]
        differ += max(alone) > min(alone) * (1 + 1e-6)
        for listed in (checks, checks[::-1]):
            found = evidence.model_copy(update={"checks": tuple(listed)}).delta(epsilon)
            assert found == pytest.approx(max(alone), rel=1e-9, abs=0)
    assert differ, "some of them must ask for more than others"
