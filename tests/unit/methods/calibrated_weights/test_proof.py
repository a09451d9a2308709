"""The proof of calibrated weights: D and L in exact fractions, every charge, and every guard."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from scipy.stats import chi2

from attrpriv.errors import CertificateError
from attrpriv.methods.calibrated_weights.proof import (
    LEAST_REST,
    MOST_JOINT,
    WeightedColumn,
    WeightsCheck,
    WeightsEvidence,
    direction_eta,
)
from tests.unit.methods.proofs import FREE, accepted, refused

LOW = ((2.0, 0.5), (0.5, 1.0))


def check(**changes: Any) -> WeightsCheck:
    told: dict[str, Any] = {
        "secret": "s", "theta": 0, "forms": ((1.0, -2.0),), "ranges": ((-0.3, 0.5),), "low": LOW, "reach": (0.1, 0.2),
    }  # fmt: skip
    return WeightsCheck(**(told | changes))


def column(name: str) -> WeightedColumn:
    return WeightedColumn(column=name, centre=0.0, step=1e-3)


def evidence(**changes: Any) -> WeightsEvidence:
    told: dict[str, Any] = {
        **FREE, "rows": 400, "columns": (column("x"),), "sensitive": (column("g"), column("h")), "target": (0.1, 0.2),
        "bound": 0.01, "masks": (0.05,), "checks": (check(),),
    }  # fmt: skip
    return WeightsEvidence(**(told | changes))


def quadratic(matrix: Any, vector: Any) -> Fraction:
    """d' M^-1 d, for two by two or one by one, by the adjugate."""
    m = [[Fraction(x) for x in row] for row in matrix]
    d = [Fraction(x) for x in vector]
    if len(m) == 1:
        return d[0] ** 2 / m[0][0]
    det = m[0][0] * m[1][1] - m[0][1] * m[1][0]
    return (d[0] ** 2 * m[1][1] - 2 * d[0] * d[1] * m[0][1] + d[1] ** 2 * m[0][0]) / det


@pytest.mark.parametrize("forms", [((1.0, -2.0),), ((1.0, 0.0),), ((0.5, 0.25), (0.0, 1.0))])
def test_distance_and_wandering_in_fractions(forms: Any) -> None:
    ranges = ((-0.3, 0.5), (0.1, 0.9))[: len(forms)]
    target, rows = (0.1, 0.2), 400
    failure = check(forms=forms, ranges=ranges).failure(rows, target)
    f = [[Fraction(x) for x in form] for form in forms]
    low = [[Fraction(x) for x in row] for row in LOW]
    fixed = [[sum(a[i] * low[i][j] * b[j] for i in range(2) for j in range(2)) for b in f] for a in f]
    at = [sum(c * Fraction(t) for c, t in zip(form, target, strict=True)) for form in f]
    distance = max(
        quadratic(fixed, [t - Fraction(g) for t, g in zip(at, corner, strict=True)]) for corner in itertools.product(*ranges)
    )
    wander = max(quadratic(low, (a * Fraction(0.1), b * Fraction(0.2))) for a in (-1, 1) for b in (-1, 1))
    assert (failure.rows, failure.columns, failure.fixed) == (rows, 2, len(forms))
    assert rows * distance <= Fraction(failure.distance) <= rows * distance * (1 + Fraction(1, 10**14))
    if len(forms) < 2:
        assert rows * wander <= Fraction(failure.wander) <= rows * wander * (1 + Fraction(1, 10**14))
    else:
        assert failure.wander < 1e-300


def test_all_fixed_fails_by_a_chi_square() -> None:
    """Where every sensitive mean is fixed the chance is that of a chi-square below D/(nQ - 1), by scipy."""
    told = evidence(checks=(check(forms=((1.0, 0.0), (0.0, 1.0)), ranges=((-0.3, 0.5), (0.1, 0.9))),))
    case = told.checks[0].failure(400, (0.1, 0.2))
    for excess in (case.distance / 350, case.distance / 300):
        bound = (1 + excess) / 400
        exact = float(chi2.cdf(case.distance / (400 * bound - 1), 400 - 2))
        assert evidence(checks=told.checks, bound=bound).failing() == pytest.approx(exact, rel=1e-6)


def test_the_worst_check_counts() -> None:
    far = check(ranges=((-0.3, 0.6),))
    bound = (1 + far.failure(400, (0.1, 0.2)).distance / 200) / 400
    alone = evidence(checks=(far,), bound=bound).failing()
    assert 1 > alone > evidence(bound=bound).failing() * 2
    for checks in ((check(), far), (far, check())):
        assert evidence(checks=checks, bound=bound).failing() == alone


def test_delta_is_failing_and_the_direction() -> None:
    """The direction's inexactness is sqrt(nQ) k 2^-44/sqrt(2 pi) in total variation, paid 1 + e^(2 lambda) times."""
    for columns, lam in ((("x",), 0.0), (("x", "y"), 0.2)):
        told = evidence(
            columns=tuple(map(column, columns)), masks=(0.05,) * len(columns), bound=10.0, grid_lambda=lam, rows=4000
        )
        with mpmath.workdps(30):
            eta = mpmath.sqrt(mpmath.mpf(4000) * 10) * len(columns) * mpmath.mpf(2) ** -44 / mpmath.sqrt(2 * mpmath.pi)
            inexact = float(eta * (1 + mpmath.exp(2 * mpmath.mpf(lam))))
        assert told.direction_eta() == direction_eta(4000, 10.0, len(columns)) == pytest.approx(float(eta), rel=1e-9)
        assert told.failing() < 1e-30
        assert told.delta(1.0) == pytest.approx(inexact, rel=1e-9)
        assert accepted(told, 1.0, inexact * (1 + 1e-9))
        assert not accepted(told, 1.0, inexact * (1 - 1e-9))


def test_charges_need_their_epsilon() -> None:
    told = evidence(grid_lambda=0.25)
    assert told.delta(0.5 * (1 + 1e-9)) < 1
    assert told.delta(0.5 * (1 - 1e-9)) == 1.0
    assert evidence().delta(0.0) < 1


def test_rows_masks_and_names() -> None:
    assert evidence().delta(1.0) < 1
    # n must exceed the three columns by more than LEAST_REST
    small: dict[str, Any] = {"bound": 1000.0, "checks": (check(ranges=((0.0, 0.1),)),)}
    assert evidence(rows=3 + LEAST_REST + 1, **small).delta(1.0) < 1
    assert evidence(rows=3 + LEAST_REST, **small).delta(1.0) == 1.0
    assert refused(evidence(masks=(0.05, 0.05)))
    assert refused(evidence(masks=()))
    assert refused(evidence(columns=(column("g"),)))
    assert refused(evidence(columns=(column("x"), column("x")), masks=(0.1, 0.1)))
    assert refused(evidence(sensitive=(column("g"), column("g"))))


@pytest.mark.parametrize(
    "changes",
    [
        {"forms": ((1.0,),)},
        {"forms": ((1.0, -2.0), (1.0, 0.0))},
        {"ranges": ((-0.3, 0.5), (0.0, 1.0))},
        {"reach": (0.1,)},
        {"low": ((2.0, 0.5),)},
        {"low": ((2.0, 0.5), (0.4, 1.0))},
        {"low": ((2.0, 0.5), (0.5, 0.125))},
        {"low": ((-2.0, 0.5), (0.5, 1.0))},
        {"low": ((2.0, 0.5), (0.5, 0.1))},
        {"forms": ((0.0, 0.0),)},
    ],
)
def test_numbers_that_do_not_belong_together(changes: dict[str, Any]) -> None:
    assert refused(evidence(checks=(check(**changes),)))
    with pytest.raises(CertificateError):
        check(**changes).failure(400, (0.1, 0.2))


def test_no_more_corners_than_can_be_looked_at() -> None:
    size = MOST_JOINT + 1
    unit = tuple(tuple(float(i == j) for j in range(size)) for i in range(size))
    told: dict[str, Any] = {"low": unit, "reach": (0.0,) * size}
    check(forms=unit[:MOST_JOINT], ranges=((0.0, 0.1),) * MOST_JOINT, **told).failure(400, (0.0,) * size)
    with pytest.raises(CertificateError):
        check(forms=unit, ranges=((0.0, 0.1),) * size, **told).failure(400, (0.0,) * size)
    with pytest.raises(CertificateError):
        check().failure(400, (0.1,))


def test_what_is_drawn_is_what_was_counted_on() -> None:
    told = evidence(columns=(column("x"), column("y")), masks=(0.05, 0.06))
    assert told.covers("y", "gaussian", 0.06)
    for other in (("y", "gaussian", 0.05), ("y", "laplace", 0.06), ("g", "gaussian", 0.05)):
        assert not told.covers(*other)
    assert math.isfinite(told.failing())
