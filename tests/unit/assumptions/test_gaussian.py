"""The Gaussian assumption: moments, their box, and every way of stating them wrongly."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from attrpriv.assumptions.gaussian import Gaussian, Tolerance
from attrpriv.errors import PolicyError
from attrpriv.problem.assumption import Assumption


def gaussian(**changes: Any) -> Gaussian:
    stated: dict[str, Any] = {
        "mean": {"income": 60_000.0},
        "sd": {"weight": 25.0, "income": 30_000.0},
        "correlation": {("weight", "income"): 0.3},
        "tolerance": {"mean": 0.01, "sd": 0.02, "slope": 0.05},
    }
    return Gaussian(**(stated | changes))


def test_moments() -> None:
    g = gaussian()
    assert g.columns == ("weight", "income")
    assert g.slope("weight", "income") == pytest.approx(0.3 * 25 / 30_000)
    assert g.correlation_of("income", "weight") == 0.3
    assert g.correlation_of("income", "income") == 1.0
    assert g.sd_range("weight") == pytest.approx((24.5, 25.5))
    assert np.array_equal(g.correlation_matrix(("income", "weight")), [[1.0, 0.3], [0.3, 1.0]])
    assert "tolerance mean 0.01 sd, sd 0.02, slope 0.05" in str(g)


def test_covariance_says_the_same_as_sd_and_correlation() -> None:
    cov = {("weight", "weight"): 625.0, ("income", "income"): 9e8, ("weight", "income"): 0.3 * 25 * 30_000}
    same = gaussian(sd=None, correlation=None, covariance=cov)
    assert same.columns == ("weight", "income")
    assert same.sd_of("weight") == 25.0
    assert same.correlation_of("weight", "income") == pytest.approx(0.3)
    assert same.slope("weight", "income") == pytest.approx(gaussian().slope("weight", "income"))


def test_keys_as_text_or_as_pairs() -> None:
    assert gaussian(correlation={"weight~income": 0.3}) == gaussian(correlation={("weight", "income"): 0.3})
    assert gaussian(correlation={" income ~ weight ": 0.3}).correlation_of("weight", "income") == 0.3


def test_zero_tolerance_is_said() -> None:
    g = gaussian(tolerance=0)
    assert g.tolerance == Tolerance(correlation=0.0)
    assert "every stated moment is taken as exact" in str(g)
    assert g.sd_range("weight") == (25.0, 25.0)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"tolerance": None}, "must be a mapping such as"),
        ({"tolerance": 0.05}, "or 0. Got 0.05"),
        ({"tolerance": False}, "or 0. Got False"),
        ({"tolerance": {"mean": 0.01}}, "slope or correlation, one of them .* Got neither"),
        ({"tolerance": {"slope": 0.1, "correlation": 0.1}}, "one of them .* Got both"),
        ({"tolerance": {"slope": -0.1}}, "tolerance.slope"),
        ({"tolerance": {"slope": math.nan}}, "tolerance.slope"),
        ({"tolerance": {"slope": 0.1, "sd": 1.0}}, "tolerance.sd"),
        ({"tolerance": {"slope": 0.1, "mean": math.inf}}, "tolerance.mean"),
        ({"tolerance": {"slope": 0.1, "kurtosis": 0.1}}, "unknown key"),
        ({"sd": {"weight": 25.0, "income": 0.0}}, "sd.income"),
        ({"sd": {"weight": -1.0, "income": 1.0}}, "sd.weight"),
        ({"sd": {"weight": math.nan, "income": 1.0}}, "sd.weight"),
        ({"sd": {"weight": "25", "income": 1.0}}, "sd.weight"),
        ({"sd": {"weight": True, "income": 1.0}}, "sd.weight"),
        ({"correlation": {("weight", "income"): 1.01}}, "between -1 and 1. Got 1.01"),
        ({"correlation": {("weight", "income"): math.nan}}, "correlation"),
        ({"correlation": {("weight", "weight"): 1.0, ("weight", "income"): 0.3}}, "must name two different columns"),
        ({"correlation": {("weight", "income"): 0.3, ("income", "weight"): 0.3}}, "must name each pair once"),
        ({"correlation": {"weight": 0.3}}, "keys must name two columns"),
        ({"correlation": {"weight~": 0.3}}, "keys must name two columns"),
        ({"correlation": {"a~b~c": 0.3}}, "keys must name two columns"),
        ({"correlation": {3: 0.3}}, "keys must name two columns"),
        ({"correlation": 0.3}, "correlation"),
        ({"correlation": {}}, "every pair of columns is needed .* Missing: weight~income"),
        ({"correlation": None}, "every pair of columns is needed"),
        ({"correlation": {("weight", "income"): 0.3, ("weight", "sat"): 0.1}}, "sat is not a column with a standard deviation"),
        ({"mean": {"sat": 1.0}}, "mean: sat is not a column"),
        ({"mean": {"income": math.inf}}, "mean.income"),
        ({"sd": None}, "one of the two forms"),
        ({"covariance": {("weight", "weight"): 1.0}}, "one of the two forms"),
        ({"kind": "groups"}, "kind"),
        ({"median": 3}, "unknown key"),
    ],
)
def test_wrong_statements_are_named(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(PolicyError, match=says) as caught:
        gaussian(**changes)
    assert "\n" not in str(caught.value)


def test_tolerance_has_no_default() -> None:
    with pytest.raises(PolicyError, match="tolerance: is required and has no default"):
        Gaussian(sd={"x": 1.0})  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("covariance", "says"),
    [
        ({("a", "a"): 0.0, ("b", "b"): 1.0, ("a", "b"): 0.0}, "a~a must be a positive variance"),
        ({("a", "a"): -1.0}, "a~a must be a positive variance"),
        ({("a", "a"): 1.0, ("b", "b"): 1.0}, "Missing: a~b"),
        ({("a", "a"): 1.0, ("a", "b"): 0.1}, "covariance: b is not a column"),
        ({("a", "a"): 1.0, ("b", "b"): 1.0, ("a", "b"): 1.1}, "positive semidefinite"),
    ],
)
def test_wrong_covariances(covariance: dict[tuple[str, str], float], says: str) -> None:
    with pytest.raises(PolicyError, match=says):
        Gaussian(covariance=covariance, tolerance=0)


def test_correlations_that_no_table_can_have() -> None:
    sd = {"a": 1.0, "b": 1.0, "c": 1.0}
    pairs = {("a", "b"): 0.9, ("b", "c"): 0.9, ("a", "c"): 0.0}
    with pytest.raises(PolicyError, match=r"positive semidefinite, .* Got a smallest eigenvalue"):
        Gaussian(sd=sd, correlation=pairs, tolerance=0)
    assert Gaussian(sd=sd, correlation=pairs | {("a", "c"): 0.7}, tolerance=0).columns == ("a", "b", "c")


def test_a_singular_matrix_is_allowed() -> None:
    """Perfect correlation is a distribution; rounding of its zero eigenvalue is no reason to refuse it."""
    g = Gaussian(
        sd={"a": 1.0, "b": 3.0, "c": 2.0}, correlation=dict.fromkeys([("a", "b"), ("a", "c"), ("b", "c")], 1.0), tolerance=0
    )
    assert g.slope("b", "a") == 3.0


def test_frozen() -> None:
    g = gaussian()
    with pytest.raises(ValidationError):
        g.kind = "gaussian"  # type: ignore[misc]
    for mapping in (g.sd, g.mean, g.correlation):
        assert mapping is not None
        with pytest.raises(TypeError):
            mapping["weight"] = 1.0  # type: ignore[index]
    assert hash(g) == hash(gaussian())


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.booleans())
def test_json_round_trip(seed: int, size: int, covariance: bool) -> None:
    rng = np.random.default_rng(seed)
    names = [f"c {k}" for k in range(size)]
    root = rng.normal(size=(size, size + 1))
    v = root @ root.T
    sd = np.sqrt(np.diag(v))
    tolerance = {"sd": 0.1, "correlation": 0.2} if covariance else {"mean": 0.3, "slope": 0.2}
    if covariance:
        pairs = {(a, b): float(v[i, j]) for i, a in enumerate(names) for j, b in enumerate(names) if i <= j}
        g = Gaussian(covariance=pairs, tolerance=tolerance)
    else:
        pairs = {(a, b): float(v[i, j] / sd[i] / sd[j]) for i, a in enumerate(names) for j, b in enumerate(names) if i < j}
        g = Gaussian(
            mean={names[0]: 1.5}, sd=dict(zip(names, map(float, sd), strict=True)), correlation=pairs, tolerance=tolerance
        )
    assert Gaussian.from_json(g.to_json()) == g
    assert Assumption.of_kind(g.to_json()) == g


def test_an_unknown_kind_is_named() -> None:
    with pytest.raises(ValueError, match=r"kind must be one of .*gaussian.*\. Got 'cauchy'"):
        Assumption.of_kind({"kind": "cauchy"})
    with pytest.raises(ValueError, match="Got None"):
        Assumption.of_kind(7)


def test_what_is_known_exactly_is_said_so() -> None:
    stated: dict[str, Any] = {"sd": {"a": 1.0, "b": 2.0}, "correlation": {"a~b": 0.3}}
    assert Gaussian(**stated, tolerance=0).explained()[1:] == (
        "They may know every standard deviation exactly and every mean exactly.",
        "They may know every correlation exactly.",
    )
    assert Gaussian(**stated, tolerance={"mean": 0.01, "sd": 0.02, "slope": 0.05}).explained()[1:] == (
        "They may know every standard deviation to within 0.02 of itself and every mean to within 0.01 sd.",
        "They may know every regression slope to within 0.05 of itself.",
    )
