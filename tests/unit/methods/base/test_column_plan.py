"""How one average is noised: which noise, on which grid, and what is refused."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from attrpriv.errors import CertificateError, UsageError
from attrpriv.methods.base import column_plan
from attrpriv.methods.base.accuracy import ExpectedError, Noise
from attrpriv.methods.base.column_plan import ColumnPlan, clipped, exact, noisy, own_scale


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """What was drawn, and how: each draw adds a different power of ten."""
    calls: list[tuple[Any, ...]] = []

    def gaussian(value: Fraction, scale: float) -> Fraction:
        calls.append(("gaussian", scale))
        return value + 1

    def gaussian_on(value: Fraction, scale: float, step: float) -> Fraction:
        calls.append(("gaussian on", scale, step))
        return value + 10

    def laplace(value: Fraction, scale: float) -> Fraction:
        calls.append(("laplace", scale))
        return value + 100

    monkeypatch.setattr(column_plan, "add_gaussian", gaussian)
    monkeypatch.setattr(column_plan, "add_gaussian_on", gaussian_on)
    monkeypatch.setattr(column_plan, "add_laplace", laplace)
    return calls


def part(kind: str = "gaussian", individuals: float = 0.0, **changes: Any) -> ColumnPlan:
    noise = Noise(kind=kind, scale=3.0 if kind != "none" else 0.0, individuals=individuals)
    told: dict[str, Any] = {
        "column": "x",
        "noise": noise,
        "independent": 2.0,
        "error": ExpectedError(rmse=1.0, mean_absolute=1.0, alpha95=1.0),
    }
    return ColumnPlan(**(told | changes))


ZERO = Fraction(0)


def test_each_kind_of_noise(drawn: list[tuple[Any, ...]]) -> None:
    assert noisy(part(), ZERO, as_it_is=False) == 1
    assert noisy(part("laplace"), ZERO, as_it_is=False) == 100
    assert noisy(part(), ZERO, hidden=(1.5, 2.0**-40), as_it_is=False) == 10
    assert noisy(part("none"), Fraction(7), as_it_is=True) == 7
    assert drawn == [("gaussian", 2.0), ("laplace", 3.0), ("gaussian on", 1.5, 2.0**-40)]


def test_single_persons_come_on_top(drawn: list[tuple[Any, ...]]) -> None:
    assert noisy(part(individuals=0.5), ZERO, as_it_is=False) == 101
    assert drawn == [("gaussian", 2.0), ("laplace", 0.5)]
    assert noisy(part(individuals=0.5), ZERO, hidden=(1.5, 2.0**-40), as_it_is=False) == 110


def test_no_noise_must_be_covered(drawn: list[tuple[Any, ...]]) -> None:
    with pytest.raises(CertificateError, match="has no noise"):
        noisy(part("none"), Fraction(7), as_it_is=False)
    assert noisy(part("none", centre=5.0), Fraction(7), as_it_is=False) == 5
    assert drawn == []


def test_an_average_is_kept_in_its_bounds() -> None:
    kept = part(clip=(-1.0, 2.0))
    assert [clipped(kept, Fraction(x)) for x in (-5, -1, 0, 2, 9)] == [-1, -1, 0, 2, 2]
    assert clipped(part(), Fraction(99)) == 99
    assert own_scale(part()) == 2.0
    assert own_scale(part("laplace")) == 3.0
    assert exact(0.5) == Fraction(1, 2)
    assert exact(Fraction(1, 3)) == Fraction(1, 3)
    for wrong in (math.nan, math.inf):
        with pytest.raises(UsageError):
            exact(wrong)
