"""A reference: which laws of the hidden columns it states, that no share is above its law's own, and what it refuses."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import pytest

import attrpriv as ap
from attrpriv.errors import PolicyError
from attrpriv.problem.reference import Reference, stated_cells
from attrpriv.problem.reference_laws import LEAST_SHARE


def stated(**law: Any) -> dict[Any, float]:
    """The listed values of a law and their shares."""
    cells = stated_cells(Reference(least_density=0.8, shares={"age": law}), ["age"])
    assert cells is not None
    return {cell.values[0]: cell.share or 0.0 for cell in cells.cells}


def binomial(k: int) -> Fraction:
    chance = Fraction(3, 10)
    return math.comb(20, k) * chance**k * (1 - chance) ** (20 - k)


def poisson(k: int) -> Fraction:
    with mpmath.workdps(60):
        share = mpmath.exp(-3) * mpmath.mpf(3) ** k / mpmath.factorial(k)
        return Fraction(int(mpmath.floor(share * 10**50)) + 1, 10**50)  # from above


LAWS: dict[str, tuple[dict[str, Any], Any]] = {
    "uniform": ({"low": 17, "high": 90}, lambda k: Fraction(1, 74)),
    "binomial": ({"trials": 20, "probability": 0.3}, binomial),
    "poisson": ({"mean": 3}, poisson),
    "geometric": ({"probability": 0.2}, lambda k: Fraction(1, 5) * Fraction(4, 5) ** k),
}


@pytest.mark.parametrize("law", LAWS)
def test_a_share_is_the_laws_own_from_below(law: str) -> None:
    parameters, exact = LAWS[law]
    found = stated(law=law, **parameters)
    for value, share in found.items():
        assert Fraction(share) <= exact(value)
        assert share == pytest.approx(float(exact(value)), rel=1e-15)
    assert sum(map(Fraction, found.values())) <= 1
    assert sum(found.values()) > 1 - 1e-7


@pytest.mark.parametrize("law", ["binomial", "poisson", "geometric"])
def test_every_value_is_listed_that_is_not_too_rare(law: str) -> None:
    parameters, exact = LAWS[law]
    found = stated(law=law, **parameters)
    assert list(found) == list(range(min(found), max(found) + 1))
    assert min(found) == 0
    assert exact(max(found) + 1) < LEAST_SHARE


@pytest.mark.parametrize(
    "law",
    [
        {"law": "poisson", "mean": 10_000},
        {"law": "poisson", "mean": 0.001},
        {"law": "binomial", "trials": 10_000, "probability": 0.999},
        {"law": "binomial", "trials": 1, "probability": 0.5},
        {"law": "geometric", "probability": 0.001},
        {"law": "uniform", "low": -3, "high": -3},
    ],
)
def test_laws_at_their_limits(law: dict[str, Any]) -> None:
    found = stated(**law)
    assert 1 - 2e-5 < math.fsum(found.values()) <= 1
    assert all(isinstance(value, int) for value in found)


def test_combinations_of_several_columns() -> None:
    reference = ap.Reference(
        least_density=0.8, shares={"age, sex": {"values": [[17, "F"], [17, "M"], [None, "M"]], "shares": [0.2, 0.3, 0.5]}}
    )
    cells = stated_cells(reference, ["age", "sex"])
    assert cells is not None
    assert [cell.values for cell in cells.cells] == [(17, "F"), (17, "M"), (None, "M")]
    assert cells.kinds == {"age": "number", "sex": "text"}
    assert stated_cells(reference, ["sex", "age"]) is None


@pytest.mark.parametrize(
    ("stated", "place"),
    [
        ({"age": {"law": "poison", "mean": 3}}, "shares.age: law"),
        ({"age": {"law": "poisson"}}, "shares.age.mean"),
        ({"age": {"law": "poisson", "mean": 0}}, "shares.age.mean"),
        ({"age": {"law": "uniform", "low": 3, "high": 2}}, "shares.age: high"),
        ({"age": {"law": "uniform", "low": 0, "high": 200_000}}, "shares.age: high"),
        ({"age": {"law": "uniform", "low": 0.5, "high": 2}}, "shares.age.low"),
        ({"age": {"law": "binomial", "trials": 3, "probability": 1}}, "shares.age.probability"),
        ({"age": {"law": "geometric", "probability": 1e-9}}, "shares.age.probability"),
        ({"age, sex": {"law": "poisson", "mean": 3}}, "age, sex: must have a value for each"),
        ({"age": {"values": [1, "a"], "shares": [0.5, 0.5]}}, "shares.age: values: must be of one type"),
        ({"age, sex": {"values": [[1, "F"], [2]], "shares": [0.5, 0.5]}}, "shares.age, sex: values: must have one entry"),
        ({"age": {"values": [1, 2], "shares": [0.5]}}, "shares.age: needs a share for each value"),
        ({"age": {"values": [1, 1.0], "shares": [0.5, 0.5]}}, "shares.age: values: must name each value once"),
        ({"age": {"values": [1, 2], "shares": [0.5, 0.6]}}, "shares.age: shares: must add up to 1"),
        ({"age": {"values": [[1, [2]]], "shares": [0.5]}}, "shares.age.values"),
        ({"age": {"law": "poisson", "mean": 3}, "sex": {"values": ["F"], "shares": [1]}}, "shares: several columns"),
        ({"age": {"law": "poisson", "mean": 3}, "file": "census.parquet"}, "one of them"),
        ({}, "one of them"),
        ({"fil": "census.parquet"}, "fil: unknown key. Did you mean file?"),
    ],
)
def test_what_is_refused(stated: dict[str, Any], place: str) -> None:
    with pytest.raises(PolicyError) as caught:
        Reference(**{"least_density": 0.8, **stated})
    assert place in str(caught.value)


def test_a_reference_belongs_to_columns() -> None:
    with pytest.raises(PolicyError, match=r"^reference: is for columns"):
        ap.Policy(
            epsilon=1, protect=[ap.Secret("mean(age)", within=1.0)], reference=Reference(file="census.parquet", least_density=1)
        )


def test_a_policy_survives_json() -> None:
    policy = ap.Policy(
        epsilon=1,
        protect=[ap.Secret("columns(age)")],
        reference=Reference(least_density=0.8, shares={"age": {"law": "poisson", "mean": 3}}),
    )
    again = ap.Policy.from_json(policy.to_json())
    assert again == policy
    assert again.digest == policy.digest
