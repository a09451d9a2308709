"""The one search: what it returns has been shown to be private."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attrpriv.errors import UsageError
from attrpriv.numerics.search import largest_private, least_epsilon


@given(threshold=st.floats(1e-300, 1e300), strict=st.booleans())
def test_returns_the_last_private_float(threshold: float, strict: bool) -> None:
    seen: dict[float, bool] = {}

    def is_private(value: float) -> bool:
        seen[value] = value < threshold if strict else value <= threshold
        return seen[value]

    found = largest_private(is_private)
    assert seen[found] is True
    assert found == pytest.approx(threshold, rel=1e-15, abs=0)
    assert found < threshold if strict else found == threshold


def test_nothing_private() -> None:
    with pytest.raises(UsageError, match="no positive value is private"):
        largest_private(lambda value: False)


def test_everything_private() -> None:
    with pytest.raises(UsageError, match="every value is private"):
        largest_private(lambda value: True)


def test_a_nan_is_not_private() -> None:
    """Comparisons with NaN are false, so a predicate that computes one is on the safe side of the search."""
    with pytest.raises(UsageError):
        largest_private(lambda value: value * float("nan") <= 1.0)


@given(st.floats(0.1, 50.0), st.floats(1e-12, 0.3), st.floats(0.01, 30.0), st.sampled_from([1e-2, 1e-3, 1e-6]))
def test_the_least_epsilon_is_one_that_holds_and_nearly_the_least(
    slope: float, delta: float, start: float, close: float
) -> None:
    seen: dict[float, float] = {}

    def reached(epsilon: float) -> float:
        seen[epsilon] = 0.5 * math.exp(-slope * epsilon - 0.1 * epsilon**2)
        return seen[epsilon]

    found = least_epsilon(reached, delta, start=start, close=close)
    assert seen[found] <= delta
    assert found == 0.0 or reached(found * (1 - 1.01 * close)) > delta
    assert len(seen) < 60


def test_an_epsilon_where_delta_jumps() -> None:
    """Pure epsilon is all or nothing."""
    assert least_epsilon(lambda epsilon: 0.0 if epsilon >= 3.25 else 1.0, 0.0) == pytest.approx(3.25, rel=1e-3)
    assert least_epsilon(lambda epsilon: 0.0 if epsilon >= 3.25 else 1.0, 0.0) >= 3.25


def test_no_epsilon() -> None:
    assert least_epsilon(lambda epsilon: 1e-3, 1e-6) == math.inf
    assert least_epsilon(lambda epsilon: math.nan, 1e-6) == math.inf
