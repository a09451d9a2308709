"""A count under a parameter network: which entries count, in which law, and what has no law."""

from __future__ import annotations

from typing import Any

import pytest

from attrpriv.assumptions.parameter_network import ParameterNetwork
from attrpriv.cases.parameter_lattice import parameter_counted
from attrpriv.numerics.networks.network import Network, Node
from attrpriv.problem.problem import Problem
from attrpriv.problem.refusal import Refusal
from attrpriv.problem.secret import Parameter, Secret
from attrpriv.queries.query import Query
from tests.unit.methods.parameter_counts.test_plan import FLIP, TALL, assumed, network, problem

WARDS = {
    "family": "categorical",
    "categories": ("A", "B", "C"),
    "probabilities": {"0.3": (0.1, 0.2, 0.7), "0.5": (0.6, 0.3, 0.1)},
}


def two_columns(**changes: Any) -> ParameterNetwork:
    """tall is 0 or 1, ward is A, B or C; both follow income."""
    ward = Node(states=("0.3", "0.5"), parents=("income",), table=((0.9, 0.1), (0.2, 0.8)))
    over = Network(nodes={**network().nodes, "ward": ward})
    return assumed(over, **({"attributes": {"tall": {"family": "bernoulli"}, "ward": WARDS}} | changes))


def asked(query: Query, **changes: Any) -> Problem:
    return problem(**({"queries": (query,), "theta": (two_columns(),), "types": {"tall": "integer", "ward": "text"}} | changes))


@pytest.mark.parametrize(
    ("where", "low", "high", "counted"),
    [
        ("tall = 1", 0.3, 0.5, "tall = 1"),
        ("tall = 0", 0.7, 0.5, "tall = 0"),
        ("ward = 'A'", 0.1, 0.6, "ward is 'A'"),
        ("ward in ('A', 'C')", 0.8, 0.7, "ward is 'A' or ward is 'C'"),
        ("not ward = 'A'", 0.9, 0.4, "ward is 'B' or ward is 'C'"),
    ],
)
def test_an_event_is_the_union_of_the_entries_it_holds_for(where: str, low: float, high: float, counted: str) -> None:
    found = parameter_counted(asked(Query("count", where=where)))
    (cell,) = found.tally.cells
    assert (found.event, cell.value, found.tally.complete, found.tally.width) == (counted, 1, False, 1)
    (case,) = found.cases
    assert [pair[0] for pair in case.counts.probabilities] == pytest.approx([low, high])
    assert [pair[1] for pair in case.counts.probabilities] == pytest.approx([low, high])
    assert case.counts.n == 20
    weights = FLIP if found.column == "tall" else ((0.9, 0.1), (0.2, 0.8))
    for given, stated in zip(case.counts.weights, weights, strict=True):
        assert given == pytest.approx(stated)
    assert case.prior == pytest.approx((0.5, 0.5))
    (check,) = found.checks
    assert (check.secret, check.theta, check.counts) == ("income", 0, case.counts)


@pytest.mark.parametrize("query", [Query("sum", "tall"), Query("avg", "tall")])
def test_a_sum_of_zeros_and_ones_counts_the_ones(query: Query) -> None:
    assert parameter_counted(asked(query)).event == "tall = 1"
    truth = parameter_counted(asked(query, types={"tall": "boolean"}))
    assert truth.event == "tall = true"
    assert truth.tally.covering == (("tall = false", "tall = true"),)
    assert parameter_counted(asked(query)).tally.covering == (("tall = 0", "tall = 1"),)


@pytest.mark.parametrize(
    ("query", "changes"),
    [
        (Query("count", where="tall = 1 and ward = 'A'"), {}),
        (Query("count", group_by="ward"), {}),
        (Query("sum", "ward"), {}),
        (Query("avg", "ward"), {}),
        (Query("sum", "tall", where="tall = 1"), {}),
        (TALL, {"bins": {"tall": (0.0, 1.0)}}),
        (TALL, {"types": {"tall": "text"}}),
        (TALL, {"known_rows": 0.1}),
        (TALL, {"theta": ()}),
        (TALL, {"theta": (two_columns(), two_columns(tolerance=0.01))}),
        (TALL, {"secrets": (Parameter("income"), Secret("mean(income)", within=1.0))}),
        (
            Query("count", where="ward = 'A'"),
            {"theta": (two_columns(), two_columns(attributes={"ward": WARDS | {"categories": ("A", "B", "D")}}))},
        ),
    ],
)
def test_what_has_no_law_is_refused(query: Query, changes: dict[str, Any]) -> None:
    with pytest.raises(Refusal):
        parameter_counted(asked(query, **changes))


def test_a_parameter_of_two_values_is_hidden_and_one_of_a_single_value_is_not() -> None:
    """And there is a case for each parameter under each network of a list."""
    sure = Network(nodes={**network().nodes, "income": Node(states=("low", "high"), table=((1.0, 0.0),))})
    with pytest.raises(Refusal):
        parameter_counted(problem(theta=(assumed(sure),)))
    found = parameter_counted(problem(theta=(assumed(), assumed()), secrets=(Parameter("income"), Parameter("tall"))))
    assert [(case.secret, case.theta) for case in found.cases] == [("income", 0), ("tall", 0), ("income", 1), ("tall", 1)]
    assert list(found.cases[1].counts.weights) == [pytest.approx((1.0, 0.0)), pytest.approx((0.0, 1.0))]
