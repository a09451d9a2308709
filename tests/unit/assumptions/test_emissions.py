"""What a parameter network says of an event of one column."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from attrpriv.assumptions.emissions import conditional_states, event_probabilities, listed_values
from attrpriv.assumptions.parameter_network import ParameterNetwork
from attrpriv.errors import QueryError, UsageError
from attrpriv.numerics.networks.network import Network, Node
from attrpriv.queries.conditions import parse_condition

NODES = {
    "income": Node(states=("low", "high", "never"), table=((0.6, 0.4, 0.0),)),
    "tall": Node(states=("0.3", "0.5"), parents=("income",), table=((0.7, 0.3), (0.2, 0.8), (0.5, 0.5))),
    "ward": Node(states=("rich", "poor"), parents=("income",), table=((0.1, 0.9), (0.8, 0.2), (0.5, 0.5))),
}
WARDS = {
    "family": "categorical",
    "categories": ("A", "B", "C"),
    "probabilities": {"rich": (0.1, 0.2, 0.7), "poor": (0.6, 0.3, 0.1)},
}


def school(**attributes: Any) -> ParameterNetwork:
    given = {"tall": {"family": "bernoulli"}, "ward": WARDS} | attributes
    return ParameterNetwork(network=Network(nodes=NODES), attributes=given, tolerance=0)


def test_impossible_values_are_left_out_and_the_rest_is_the_posterior() -> None:
    given = conditional_states(school(), "tall", "income")
    assert given.values == ("low", "high")
    assert given.prior == pytest.approx((0.6, 0.4))
    assert given.error >= 1e-12
    posterior = school().posterior("tall", "income")
    assert list(posterior.given) == list(given.values)
    for row, pairs in zip(given.weights, posterior.given.values(), strict=True):
        assert row == pytest.approx([low for low, _ in pairs], rel=1e-12)
    back = conditional_states(school(), "income", "tall")
    assert back.weights[0] == pytest.approx((0.42 / 0.5, 0.08 / 0.5, 0.0))
    assert back.weights[0][2] == 0


def test_a_column_given_itself() -> None:
    assert conditional_states(school(), "tall", "tall").weights == ((1.0, 0.0), (0.0, 1.0))


@pytest.mark.parametrize(
    ("event", "low", "high"),
    [("tall = 1", 0.3, 0.5), ("tall = 0", 0.7, 0.5), ("tall != 1", 0.7, 0.5), ("tall >= 0", 1.0, 1.0), ("tall > 1", 0.0, 0.0)],
)
def test_events_of_a_bernoulli_column(event: str, low: float, high: float) -> None:
    assert event_probabilities(school(), "tall", parse_condition(event), {}, boolean=False) == ((low, low), (high, high))


def test_a_boolean_column() -> None:
    assert event_probabilities(school(), "tall", parse_condition("tall = true"), {}, boolean=True) == ((0.3, 0.3), (0.5, 0.5))
    assert listed_values(school(), "tall", boolean=True) == (False, True)


def test_events_of_categories_are_sums_of_decimal_fractions() -> None:
    """In floats 0.1 + 0.2 is not 0.3."""
    found = event_probabilities(school(), "ward", parse_condition("ward in ('A', 'B')"), {}, boolean=False)
    assert found == ((0.3, 0.3), (0.9, 0.9))
    assert event_probabilities(school(), "ward", parse_condition("not (ward = 'C')"), {}, boolean=False) == found


def test_probabilities_that_miss_one_leave_an_interval() -> None:
    off = WARDS | {"probabilities": {"rich": (0.1, 0.2, 0.7 + 5e-10), "poor": (0.6, 0.3, 0.1)}}
    (low, high), _ = event_probabilities(school(ward=off), "ward", parse_condition("ward = 'A'"), {}, boolean=False)
    assert low < high
    assert Fraction(low) <= Fraction(1, 10) <= Fraction(high)


def test_bins_are_categories() -> None:
    found = event_probabilities(school(), "ward", parse_condition("ward < 20"), {"ward": (0, 10, 20, 30)}, boolean=False)
    assert found == ((0.3, 0.3), (0.9, 0.9))


@pytest.mark.parametrize(
    "emission", [{"family": "none"}, {"family": "normal", "sd": 1.0}, {"family": "categorical", "categories": ("A", "B")}]
)
def test_a_law_that_is_not_stated(emission: dict[str, Any]) -> None:
    values = {"tall": {"0.3": 0.3, "0.5": 0.5}}
    member = ParameterNetwork(network=Network(nodes=NODES), values=values, attributes={"tall": emission}, tolerance=0)
    with pytest.raises(QueryError, match="must say how tall follows from its parameter"):
        event_probabilities(member, "tall", parse_condition("tall = 1"), {}, boolean=False)


def test_unknown_parameters_and_tiny_probabilities() -> None:
    with pytest.raises(UsageError, match=r"must be in the network\. Got hair"):
        conditional_states(school(), "hair", "income")
    tiny = {
        "a": Node(states=("0", "1"), table=((1e-200, 1.0),)),
        "b": Node(states=("0", "1"), parents=("a",), table=((1e-200, 1.0), (0.5, 0.5))),
    }
    with pytest.raises(UsageError, match="too small for a float"):
        conditional_states(ParameterNetwork(network=Network(nodes=tiny), tolerance=0), "b", "a")
