"""Laws of an answer around the table's own value: intervals and errors are those of the tail, in any unit."""

from __future__ import annotations

import numpy as np
import pytest

from attrpriv.errors import UsageError
from attrpriv.methods.base.clamp import ClampSpread, MovedSpread
from attrpriv.methods.base.mixed_spread import MixedSpread

Law = MixedSpread | MovedSpread | ClampSpread
WEIGHTS = np.array([0.2, 0.5, 0.3])
LAWS: dict[str, Law] = {
    "a mixture": MixedSpread(np.array([-1.0, 0.1, 2.0]), np.array([0.5, 1.0, 0.2]), WEIGHTS),
    "one normal law": MixedSpread(np.array([0.0]), np.array([1.0]), np.array([1.0])),
    "moved": MovedSpread(np.array([-1.0, 0.0, 3.0]), WEIGHTS, 0.7),
    "cut off": ClampSpread(1.0, 0.8, 0.5),
}


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("name", LAWS)
def test_an_interval_ends_where_the_tail_is_what_may_be_missed(name: str, unit: float) -> None:
    law = LAWS[name].scaled(unit)
    for level in (0.01, 0.5, 0.95, 0.9999):
        reach = law.reach(level)
        assert law.tail(reach) <= (1 - level) * (1 + 1e-9)
        assert law.tail(reach * (1 - 1e-6)) > 1 - level
        assert reach == pytest.approx(unit * LAWS[name].reach(level), rel=1e-9)
    for level in (0.0, 1.0, float("nan")):
        with pytest.raises(UsageError, match="level"):
            law.reach(level)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("name", LAWS)
def test_errors_are_the_moments_of_the_tail(name: str, unit: float) -> None:
    """E|X| is the integral of P(|X| > t), and E X^2 that of 2 t P(|X| > t)."""
    law = LAWS[name].scaled(unit)
    at = (np.arange(4_000) + 0.5) / 4_000 * 12
    tails = np.array([law.tail(float(t) * unit) for t in at])
    error = law.error()
    assert error.mean_absolute == pytest.approx(unit * float(tails.mean()) * 12, rel=1e-4)
    assert error.rmse == pytest.approx(unit * np.sqrt(float((2 * at * tails).mean()) * 12), rel=1e-4)
    assert error.alpha95 == law.reach(0.95)
    assert law.rmse == error.rmse
