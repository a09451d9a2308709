"""The hierarchy assumption: what it accepts, how it refuses, and the plain numbers it becomes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from attrpriv.assumptions.hierarchy import Hierarchy
from attrpriv.errors import PolicyError
from attrpriv.problem.assumption import Assumption


def hierarchy(**changed: Any) -> Hierarchy:
    base: dict[str, Any] = {
        "mean": {"weight": 150.0, "income": 60_000.0},
        "between_sd": {"weight": 5.0, "income": 8_000.0, "height": 2.0},
        "between_correlation": {("weight", "income"): 0.3, "height~weight": 0.5, "height~income": -0.2},
        "within_sd": {"weight": 25.0, "income": 30_000.0, "height": 4.0},
        "tolerance": 0,
    }
    return Hierarchy(**{**base, **changed})


def test_what_it_says() -> None:
    made = hierarchy()
    assert made.columns == ("weight", "income", "height")
    assert made.slope("weight", "income") == pytest.approx(0.3 * 5 / 8000)
    assert made.slope("income", "income") == 1
    assert made.correlation_of("weight", "height") == made.correlation_of("height", "weight") == 0.5
    assert "tolerance 0" in str(made)


def test_it_goes_through_json_and_stays_as_it_is() -> None:
    made = hierarchy()
    again = Assumption.of_kind(json.loads(json.dumps(made.to_json())))
    assert again == made
    assert hash(again) == hash(made)


@pytest.mark.parametrize("hidden", ["income", "height", "weight"])
def test_the_spread_given_a_population_is_the_schur_complement(hidden: str) -> None:
    """By conditioning the whole joint covariance of phi and the averages, with numpy alone."""
    made, n = hierarchy(), 50
    names = made.columns
    sds = np.array([made.between_sd[c] for c in names])
    between = np.outer(sds, sds) * np.array([[1, 0.3, 0.5], [0.3, 1, -0.2], [0.5, -0.2, 1]])
    averages = between + np.diag([made.within_sd[c] ** 2 / n for c in names])
    i = names.index(hidden)
    moved = between[:, i] / between[i, i]
    np.testing.assert_allclose([made.slope(c, hidden) for c in names], moved, rtol=1e-12)
    wanted = averages - np.outer(between[:, i], between[i]) / between[i, i]
    np.testing.assert_allclose(made.spread_given(names, hidden, n), wanted, rtol=1e-9, atol=1e-9 * 8000)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"tolerance": 0.1}, "tolerance: must be 0 in this version"),
        ({"tolerance": {"mean": 0}}, "tolerance: must be 0 in this version"),
        ({"tolerance": False}, "tolerance: must be 0 in this version"),
        ({"between_sd": {}}, "between_sd: must name at least one column"),
        ({"between_sd": {"weight": 0.0}}, "between_sd.weight: "),
        ({"between_sd": {"weight": float("nan")}}, "between_sd.weight: "),
        ({"mean": {"shoe": 1.0}}, "mean: needs the columns of between_sd.*unknown shoe"),
        ({"within_sd": {"weight": 25.0}}, "within_sd: needs the columns of between_sd.*missing income, height"),
        ({"between_correlation": {"weight~income": 0.3}}, "between_correlation: every pair.*Missing: weight~height"),
        ({"between_correlation": {"weight~shoe": 0.3}}, "between_correlation: weight~shoe must name two"),
        ({"between_correlation": {"weight~weight": 1.0}}, "between_correlation: weight~weight must name two"),
        (
            {"between_correlation": {"weight~income": 1.3, "height~weight": 0.5, "height~income": 0.0}},
            "between_correlation: weight~income: must be between -1 and 1",
        ),
        (
            {"between_correlation": {"weight~income": 0.9, "height~weight": 0.9, "height~income": -0.9}},
            "must be positive semidefinite",
        ),
    ],
)
def test_bad_numbers_are_refused_in_one_line(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(PolicyError, match=says) as caught:
        hierarchy(**changed)
    assert "\n" not in str(caught.value)


def test_tolerance_has_no_default() -> None:
    with pytest.raises(PolicyError, match="tolerance: is required"):
        Hierarchy(between_sd={"a": 1.0}, within_sd={"a": 1.0})  # type: ignore[call-arg]


def test_what_is_nearly_determined_is_not_credited_beyond_rounding() -> None:
    """Two columns that together all but determine the hidden one: in floats the residual once looked 7,000 times as large."""
    import mpmath

    rho = {"a~h": 0.9999999593512047, "b~h": 0.9998410308803215, "a~b": 0.999846074090644}
    names = ("a", "b", "h")
    found = Hierarchy(
        mean=dict.fromkeys(names, 0.0),
        between_sd=dict.fromkeys(names, 1.0),
        between_correlation=rho,
        within_sd={"a": 5.9e-10, "b": 5.9e-10, "h": 1.0},
        tolerance=0,
    ).spread_given(("a", "b"), "h", 10_000)
    with mpmath.workdps(60):
        r = {pair: mpmath.mpf(value) for pair, value in rho.items()}
        own = mpmath.mpf(5.9e-10) ** 2 / 10_000
        cross = r["a~b"] - r["a~h"] * r["b~h"]
        true = mpmath.matrix([[1 - r["a~h"] ** 2 + own, cross], [cross, 1 - r["b~h"] ** 2 + own]])
        left = true - mpmath.matrix(found.tolist())
        assert min(mpmath.eigsy(left, eigvals_only=True)) >= 0, "the credit is below the truth in every direction"
