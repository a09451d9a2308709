"""The chain assumption: what it accepts, what it refuses in one line, and that it survives JSON."""

from __future__ import annotations

from typing import Any

import pytest

from attrpriv.assumptions.chain import Chain
from attrpriv.errors import PolicyError
from attrpriv.numerics.laws.chain_family import ChainFamily
from attrpriv.numerics.laws.markov import MarkovChain

STATED: dict[str, Any] = {
    "column": "state",
    "states": [0, 1],
    "initial": [1, 0],
    "transition": [[0.9, 0.1], [0.4, 0.6]],
    "tolerance": 0,
}


def test_one_chain() -> None:
    chain = Chain(**STATED)
    assert chain.members == (MarkovChain((1.0, 0.0), ((0.9, 0.1), (0.4, 0.6))),)
    assert str(chain) == "the entries of state in the order of the rows are a Markov chain with states 0, 1"
    assert Chain.from_json(chain.to_json()) == chain
    assert chain.to_json()["initial"] == [1.0, 0.0]


def test_lists_are_every_start_with_every_matrix() -> None:
    chain = Chain(
        **STATED | {"initial": [[1, 0], [0.5, 0.5]], "transition": [[[0.9, 0.1], [0.4, 0.6]], [[0.8, 0.2], [0.3, 0.7]]]}
    )
    assert len(chain.members) == 4
    assert Chain.from_json(chain.to_json()) == chain
    assert "one of 4 chains" in str(chain)


def test_any_start_a_tolerance_and_several_persons() -> None:
    chain = Chain(**STATED | {"initial": "any", "tolerance": 0.05, "longest": 30})
    assert chain.members == (ChainFamily(((0.85, 0.05), (0.35, 0.55)), ((0.95, 0.15), (0.45, 0.65))),)
    assert Chain.from_json(chain.to_json()) == chain
    assert chain.to_json()["initial"] == "any"
    assert str(chain) == (
        "the entries of state in the order of the rows of each person (at most 30 entries) are a Markov chain with states 0, 1,"
        " each probability to move on within 0.05 of those stated, whatever its start"
    )


INTERVALS = {"low": [[0.8, 0.05], [0.3, 0.5]], "high": [[0.95, 0.2], [0.5, 0.7]]}


def test_intervals_of_each_probability_to_move_on() -> None:
    chain = Chain(**STATED | {"transition": INTERVALS})
    assert chain.members == (ChainFamily(((0.8, 0.05), (0.3, 0.5)), ((0.95, 0.2), (0.5, 0.7))),)
    assert Chain.from_json(chain.to_json()) == chain
    assert chain.to_json()["transition"] == INTERVALS
    assert str(chain).endswith("states 0, 1, each probability to move on within its interval, whatever its start")
    alike = Chain(**STATED | {"transition": [[0.75, 0.25], [0.25, 0.75]], "tolerance": 0.125})
    low, high = [[0.625, 0.125], [0.125, 0.625]], [[0.875, 0.375], [0.375, 0.875]]
    assert Chain(**STATED | {"transition": {"low": low, "high": high}}).members == alike.members


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"tolerance": 0.1}, "chain: tolerance: must be 0 where intervals are stated. Got 0.1."),
        ({"transition": {"low": INTERVALS["low"]}}, "transition.high: is required"),
        ({"transition": INTERVALS | {"to": 1}}, "transition.to: unknown key"),
        (
            {"transition": {"low": INTERVALS["high"], "high": INTERVALS["low"]}},
            "chain: transition: row 1: must be probabilities or intervals [low, high] from 0 to 1. Got 0.95 to 0.8.",
        ),
        ({"transition": INTERVALS | {"high": [[0.85, 0.1], [0.5, 0.7]]}}, "chain: transition: row 1: must hold a law"),
        ({"transition": INTERVALS | {"high": [[0.95, float("nan")], [0.5, 0.7]]}}, "transition.high[0][1]: must be a finite"),
        ({"transition": INTERVALS | {"high": [[0.95, 1.5], [0.5, 0.7]]}}, "chain: transition: row 1: must be probabilities"),
        ({"transition": INTERVALS | {"high": [[0.95, 0.2]]}}, "chain: transition: must have as many upper as lower rows."),
        ({"transition": INTERVALS, "initial": [0.5, 0.6]}, "chain: initial: must sum to 1."),
        (
            {"transition": INTERVALS, "initial": "any", "states": [0, 1, 2]},
            "chain: transition: must have one row for each of 3",
        ),
    ],
)
def test_intervals_that_are_none(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(PolicyError) as caught:
        Chain(**STATED | {"transition": INTERVALS} | changes)
    assert str(caught.value).startswith(says)


def test_names_are_states_too() -> None:
    assert not Chain(**STATED | {"states": ["home", "away"]}).numeric


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"transition": [[0.9, 0.2], [0.4, 0.6]]}, "chain: transition: row 1: must sum to 1. Got a sum of 1.1, off by +0.1."),
        ({"initial": [0.5, 0.4]}, "chain: initial: must sum to 1. Got a sum of 0.9, off by -0.1."),
        ({"transition": [[1.1, -0.1], [0.4, 0.6]]}, "chain: transition: row 1: probabilities must be from 0 to 1. Got 1.1."),
        ({"transition": [[0.9, 0.1]]}, "chain: transition: must have one row for each of 2 states. Got 1."),
        ({"states": [0, 1, 2]}, "chain: initial: must have one probability for each of 3 states."),
        ({"states": [0, 0]}, "chain: states: must be different. Got [0, 0]."),
        ({"states": [0, "1"]}, "chain: states: must be all numbers or all names. Got [0, '1']."),
        ({"initial": 1}, "initial: must be any, a list of probabilities, one a state, or a list of such. Got 1."),
        ({"initial": "some"}, "initial: must be any, a list of probabilities, one a state, or a list of such. Got 'some'."),
        ({"transition": [0.9, 0.1]}, "transition: must be a matrix, one row a state, or a list of such. Got [0.9, 0.1]."),
        ({"tolerance": 1}, "tolerance: must be less than 1. Got 1."),
        ({"longest": 0}, "longest: must be at least 1. Got 0."),
        ({"longest": True}, "longest: must be a whole number. Got True."),
        ({"longest": 2.0}, "longest: must be a whole number. Got 2.0."),
        ({"initial": [3, 0], "tolerance": 0.05}, "chain: initial: probabilities must be from 0 to 1. Got 3."),
        ({"initial": [0.5, 0.4, 0.1], "tolerance": 0.05}, "chain: transition: must have one row for each of 3 states. Got 2."),
        ({"initial": [], "tolerance": 0.05}, "chain: initial: must have from 2 to 64 probabilities, one a state. Got 0."),
        (
            {"transition": [[0.9, 0.2], [0.4, 0.6]], "tolerance": 0.1},
            "chain: transition: row 1: must sum to 1. Got a sum of 1.1, off by +0.1.",
        ),
        (
            {"transition": [[0.9, 0.2], [0.4, 0.6]], "initial": "any"},
            "chain: transition: row 1: must sum to 1. Got a sum of 1.1, off by +0.1.",
        ),
        ({"tolerance": None}, "tolerance: "),
    ],
)
def test_bad_chains_in_one_line(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(PolicyError) as caught:
        Chain(**STATED | changes)
    assert str(caught.value).startswith(says)
    assert "\n" not in str(caught.value)


def test_the_tolerance_must_be_said() -> None:
    with pytest.raises(PolicyError, match="tolerance: is required"):
        Chain(**{key: value for key, value in STATED.items() if key != "tolerance"})
