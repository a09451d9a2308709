"""The one search: what it returns has been shown to be private."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attrpriv.calibration import largest_private
from attrpriv.errors import UsageError


@given(threshold=st.floats(1e-300, 1e300), strict=st.booleans())
def test_returns_the_last_private_float(threshold: float, strict: bool) -> None:
    seen: dict[float, bool] = {}

    def is_private(value: float) -> bool:
        seen[value] = value < threshold if strict else value <= threshold
        return seen[value]

    found = largest_private(is_private)
    assert seen[found] is True
    assert found == pytest.approx(threshold, rel=1e-15)
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
