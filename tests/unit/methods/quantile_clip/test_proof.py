"""The proof of a quantile clip: every lambda counts twice, moments in exact fractions, and every guard."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import pytest

from attrpriv.errors import PolicyError
from attrpriv.methods.base.clamp import Read
from attrpriv.methods.quantile_clip.proof import Moments, QuantileClipEvidence
from tests.unit.methods.proofs import accepted, refused

MOMENTS: dict[str, Any] = {
    "columns": ("x", "g", "h"), "mean": (5.0, 1.0, 2.0), "scale": (2.0, 0.5, 4.0),
    "matrix": ((1.0, 0.25, -0.5), (0.25, 1.0, 0.125), (-0.5, 0.125, 1.0)), "spacing": (0.25, 0.01, 0.01),
}  # fmt: skip


def evidence(moments: dict[str, Any] | None = None, **changes: Any) -> QuantileClipEvidence:
    told: dict[str, Any] = {
        "columns": ("x",), "n": 1000, "moments": Moments(**(MOMENTS | (moments or {}))),
        "reads": (Read(coefficients={"g": 1.0}, centre=1.0), Read(coefficients={"h": 2.0}, centre=4.0)),
        "mask": 0.01, "below": 0.4, "above": 0.5,
    }  # fmt: skip
    return QuantileClipEvidence(**(told | changes))


def covariance(i: int, j: int) -> Fraction:
    return Fraction(MOMENTS["scale"][i]) * Fraction(MOMENTS["scale"][j]) * Fraction(MOMENTS["matrix"][i][j])


def test_slopes_and_variances_in_fractions() -> None:
    """By Cramer's rule, for g and 2 h."""
    a, b, c = covariance(1, 1), 2 * covariance(1, 2), 4 * covariance(2, 2)
    p, q = covariance(0, 1), 2 * covariance(0, 2)
    det = a * c - b * b
    slopes = ((p * c - q * b) / det, (q * a - p * b) / det)
    residual = covariance(0, 0) - slopes[0] * p - slopes[1] * q
    told = evidence()
    assert told.slopes == slopes
    assert told.residual == residual
    assert told.explained == covariance(0, 0) - residual
    assert told.variance == residual / 1000 + Fraction(0.01) ** 2
    assert told.moments.mean_of({"x": 2.0, "h": -1.0}) == 8
    assert told.clip.below == 0.4
    assert told.clip.above == 0.5


def test_a_covariance_is_stated_in_any_unit() -> None:
    """Half as much again of the query's own variance is open, and the statistics explain what they did."""
    told = evidence({"matrix": ((1.5, 0.25, -0.5), *MOMENTS["matrix"][1:])})
    assert told.explained == evidence().explained
    assert told.residual == evidence().residual + 2
    assert told.slopes == evidence().slopes


def lattice(variance: Any) -> Any:
    """lambda of one average on a lattice: -log(1 - 2q/(1-q)), q = e^(-2 pi^2 variance)."""
    q = mpmath.exp(-2 * mpmath.pi**2 * variance)
    return -mpmath.log(1 - 2 * q / (1 - q))


def pieces(told: QuantileClipEvidence) -> tuple[Any, Any, Any]:
    """The three lambdas by their formulas, with 30 digits."""
    spacing = mpmath.mpf(told.moments.spacing[0])
    residual = mpmath.mpf(told.residual.numerator) / told.residual.denominator
    data = residual * told.n / spacing**2
    mask = (mpmath.mpf(told.mask) * told.n / spacing) ** 2
    recorded = lattice(data * mask / (data + mask)) + lattice(data)
    grid = told.grid
    drawn = mpmath.mpf(2) ** -32 * (mpmath.mpf(grid.depth) + 2) + 3 * mpmath.mpf(2) ** -64 + mpmath.mpf(2) ** -39
    slopes = {"x": mpmath.mpf(1), "g": mpmath.mpf(float(told.slopes[0])), "h": 2 * mpmath.mpf(float(told.slopes[1]))}
    kurtosis = sum(
        (slopes[name] * mpmath.mpf(h)) ** 4 for name, h in zip(told.moments.columns, told.moments.spacing, strict=True)
    ) / (residual**2 * 120 * told.n)
    rounding = kurtosis * max(mpmath.mpf(grid.depth) ** 4, 3) / 6
    return recorded, drawn, rounding


@pytest.mark.parametrize(
    ("changes", "moments"),
    [
        ({}, {}),
        ({"mask": 2e-4}, {}),  # where the lattice shows most: mask n / spacing is 0.8
        ({"n": 3, "mask": 0.5}, {"spacing": (1.4, 2.0, 3.0)}),  # where rounding shows most
        ({"below": 0.05, "above": 3.0}, {}),  # where cells are drawn from far out
    ],
)
def test_every_lambda_counts_twice(changes: dict[str, Any], moments: dict[str, Any]) -> None:
    told = evidence(moments, **changes)
    with mpmath.workdps(30):
        recorded, drawn, rounding = pieces(told)
        loss = float(mpmath.mpf(told.below) + told.above + 2 * (recorded + drawn + rounding))
        assert float(told.kurtosis) == pytest.approx(float(rounding * 6 / max(told.grid.depth**4, 3.0)), rel=1e-9)
    assert told.lattice == pytest.approx(float(recorded), rel=1e-4)
    assert told.lam == pytest.approx(float(recorded + drawn + rounding), rel=1e-4)
    assert float(drawn) > 1e-9
    assert told.loss() == pytest.approx(loss, rel=1e-11)
    for factor, holds in ((1 + 1e-11, True), (1 - 1e-11, False)):
        assert accepted(told, loss * factor, 0.0) is holds


def test_from_its_loss_on_a_promise_holds_without_delta_and_below_not_at_all() -> None:
    told = evidence()
    assert told.delta(told.loss()) == told.delta(9.0) == 0
    assert told.delta(math.nextafter(told.loss(), 0)) == told.delta(0.0) == 1


def test_what_must_be_so() -> None:
    assert not refused(evidence())
    swapped = {"columns": ("g", "x", "h")}
    for told in (
        evidence(swapped),
        evidence(columns=("g",)),
        evidence(reads=(Read(coefficients={"g": 1.0}, centre=1.0),)),  # h is in the moments and not read
        evidence(reads=(*evidence().reads, Read(coefficients={"x": 1.0}, centre=1.0))),
    ):
        assert refused(told)
    # A row of the query varies by itself by its spacing at least.
    root = math.sqrt(evidence().residual)
    assert not refused(evidence({"spacing": (root * (1 - 1e-9), 0.01, 0.01)}, mask=1.0))
    assert refused(evidence({"spacing": (root * (1 + 1e-9), 0.01, 0.01)}, mask=1.0))
    # By exactly as much is enough: nothing is told of a row of sd 2.
    alone = {"matrix": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.125), (0.0, 0.125, 1.0)), "spacing": (2.0, 0.01, 0.01)}
    assert not refused(evidence(alone, mask=1.0))


@pytest.mark.parametrize(
    "changes",
    [
        {"columns": ("x", "g", "g")},
        {"mean": (5.0, 1.0)},
        {"scale": (2.0, 0.5)},
        {"spacing": (0.25, 0.01)},
        {"matrix": MOMENTS["matrix"][:2]},
        {"matrix": tuple(row[:2] for row in MOMENTS["matrix"])},
        {"matrix": (MOMENTS["matrix"][0], (0.25, 1.0, 0.12), MOMENTS["matrix"][2])},
        {"matrix": ((1.0, 0.24, -0.5), *MOMENTS["matrix"][1:])},
        {"matrix": ((1.0, 0.25, -0.4), *MOMENTS["matrix"][1:])},
    ],
)
def test_moments_that_do_not_belong_together(changes: dict[str, Any]) -> None:
    with pytest.raises(PolicyError):
        Moments(**(MOMENTS | changes))


def test_what_is_drawn_is_what_was_counted_on() -> None:
    told = evidence()
    assert told.covers("x", "gaussian", 0.01)
    for other in (("g", "gaussian", 0.01), ("x", "laplace", 0.01), ("x", "gaussian", 0.02)):
        assert not told.covers(*other)
    assert told.suits(("x",), 1000, clipped=False)
    assert not told.suits(("x",), 1000, clipped=True)
    assert not told.suits(("x",), 999, clipped=False)
    assert not told.suits(("y",), 1000, clipped=False)
    assert told.statistics_read() == told.reads
