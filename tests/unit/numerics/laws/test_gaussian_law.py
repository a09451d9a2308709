"""A law that exists is a law."""

from __future__ import annotations

import dataclasses
import math

import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.laws.gaussian import GaussianLaw


@pytest.mark.parametrize(
    ("mean", "variance"),
    [(math.nan, 1.0), (math.inf, 1.0), (0.0, 0.0), (0.0, -1.0), (0.0, math.nan), (0.0, math.inf)],
)
def test_needs_a_finite_mean_and_a_positive_variance(mean: float, variance: float) -> None:
    with pytest.raises(UsageError, match="law: needs a finite mean and a positive variance"):
        GaussianLaw(mean, variance)


def test_is_frozen() -> None:
    law = GaussianLaw(1.0, 2.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        law.mean = 3.0  # type: ignore[misc]
    assert law == GaussianLaw(1.0, 2.0)
