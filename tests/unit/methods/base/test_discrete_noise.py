"""Whole-number noise: moments and quantiles against sums in 40 digits."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import mpmath
import pytest

from attrpriv.errors import UsageError
from attrpriv.methods.base.tally import WholeSpread

Kind = Literal["laplace", "gaussian"]
LAWS: list[tuple[Kind, float]] = [
    (kind, scale) for kind in ("laplace", "gaussian") for scale in (0.05, 0.3, 1.0, 2.446221, 40.0)
]
SCALES = pytest.mark.parametrize(("kind", "scale"), LAWS)


def masses(kind: str, scale: float) -> list[mpmath.mpf]:
    """P(|Z| = 0), P(|Z| = 1), ..."""
    s = mpmath.mpf(scale)
    far = math.ceil(100 * scale) + 10
    weights = [mpmath.exp(-k / s) if kind == "laplace" else mpmath.exp(-(k**2) / (2 * s * s)) for k in range(far)]
    total = weights[0] + 2 * mpmath.fsum(weights[1:])
    return [weights[0] / total, *(2 * w / total for w in weights[1:])]


def convolved(one: list[mpmath.mpf], two: list[mpmath.mpf]) -> list[mpmath.mpf]:
    """|X + Y| of two symmetric laws."""
    sides = [[p / 2 for p in reversed(law[1:])] + [law[0]] + [p / 2 for p in law[1:]] for law in (one, two)]
    middle = len(one) + len(two) - 2
    both = [mpmath.mpf(0)] * (2 * middle + 1)
    for i, p in enumerate(sides[0]):
        for j, q in enumerate(sides[1]):
            both[i + j] += p * q
    return [both[middle], *(2 * both[middle + k] for k in range(1, middle + 1))]


def least(law: list[mpmath.mpf], missed: float) -> int:
    left, t = 1 - law[0], 0
    while left > missed:
        t += 1
        left -= law[t]
    return t


@SCALES
def test_moments(kind: Kind, scale: float) -> None:
    with mpmath.workdps(40):
        law = masses(kind, scale)
        rmse = mpmath.sqrt(mpmath.fsum(k * k * p for k, p in enumerate(law)))
        absolute = mpmath.fsum(k * p for k, p in enumerate(law))
    assert WholeSpread(kind, scale).moments() == pytest.approx((float(rmse), float(absolute)), rel=1e-9, abs=1e-300)
    assert WholeSpread(kind, scale, unit=0.5).moments() == pytest.approx(
        (float(rmse) / 2, float(absolute) / 2), rel=1e-9, abs=1e-300
    )


@SCALES
@pytest.mark.parametrize("level", [0.3, 0.8, 0.95, 0.999])
def test_reach_is_the_least_that_holds(kind: Kind, scale: float, level: float) -> None:
    with mpmath.workdps(40):
        t = least(masses(kind, scale), 1 - level)
    assert WholeSpread(kind, scale).reach(level) == t
    assert WholeSpread(kind, scale, unit=2.5).reach(level) == 2.5 * t


SUMS: list[tuple[Kind, float, float]] = [
    *(("gaussian", 0.8, 1.5), ("gaussian", 3.0, 0.4)),
    *(("laplace", 1.0, 1.0), ("laplace", 1.7, 0.6), ("laplace", 0.45, 1.9)),  # a scale of 1 hides what is divided by it
]


@pytest.mark.parametrize(("kind", "scale", "rows"), SUMS)
def test_a_sum_of_two_is_as_exact_as_one(kind: Kind, scale: float, rows: float) -> None:
    with mpmath.workdps(30):
        law = convolved(masses(kind, scale)[:60], masses("laplace", rows)[:60])
        rmse = float(mpmath.sqrt(mpmath.fsum(k * k * p for k, p in enumerate(law))))
        absolute = float(mpmath.fsum(k * p for k, p in enumerate(law)))
        steps = {level: least(law, 1 - level) for level in (0.3, 0.6, 0.95, 0.999)}
    spread = WholeSpread(kind, scale, rows)
    assert spread.moments()[0] == pytest.approx(rmse, rel=1e-6)
    assert spread.moments()[1] == pytest.approx(absolute, rel=1e-6)  # once the root mean square stood for it
    assert {level: spread.reach(level) for level in steps} == steps


def test_large_sums_follow_the_continuous_laws() -> None:
    below, above = (WholeSpread("gaussian", scale, 2e4) for scale in (9_999.0, 10_001.0))
    assert below.moments() == pytest.approx(above.moments(), rel=3e-4)
    assert below.reach(0.95) == pytest.approx(above.reach(0.95), rel=3e-4)


def test_noise_for_single_rows_alone() -> None:
    assert WholeSpread("none", 0.0, 1.5).moments() == WholeSpread("laplace", 1.5).moments()
    assert WholeSpread("none", 0.0, 1.5).reach(0.95) == WholeSpread("laplace", 1.5).reach(0.95)


def test_no_noise() -> None:
    assert WholeSpread("none", 0.0).moments() == (0.0, 0.0)
    assert WholeSpread("none", 0.0).reach(0.95) == 0


def test_a_kernel_has_its_own_tails() -> None:
    kernel = WholeSpread("kernel", 0.0, unit=2.0, tails=(0.3, 0.04, 0.0))
    assert [kernel.reach(level) for level in (0.5, 0.69, 0.71, 0.95, 0.99)] == [0.0, 0.0, 2.0, 2.0, 4.0]
    assert [replace(kernel, tail_step=3).reach(level) for level in (0.69, 0.71, 0.99)] == [0.0, 6.0, 12.0]
    assert replace(kernel, tails=(0.3, 0.04)).reach(0.99) == 4.0
    assert WholeSpread("kernel", 0.0).reach(0.99) == 0


def test_large_scales_follow_the_normal_law() -> None:
    assert WholeSpread("gaussian", 1e5).reach(0.95) == pytest.approx(195_997, abs=2)
    assert WholeSpread("gaussian", 1e5).moments() == pytest.approx((1e5, 1e5 * math.sqrt(2 / math.pi)))


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, math.nan])
def test_bad_levels(level: float) -> None:
    with pytest.raises(UsageError, match="level: must be above 0 and below 1"):
        WholeSpread("laplace", 1.0).reach(level)
