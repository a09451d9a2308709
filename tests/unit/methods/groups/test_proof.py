"""The proof of averages that hide a share: tails are paid for, variances are those of the categories, guards hold."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from attrpriv.methods.base.checks import GroupCheck
from attrpriv.methods.base.equalising import belong_together, common_bits
from attrpriv.methods.groups.proof import GroupEvidence, GroupVectorEvidence
from attrpriv.numerics.calibration.groups import Part, equalise
from attrpriv.numerics.laws.groups import GroupCase, VectorCase
from tests.unit.methods.proofs import FREE, accepted, gaussian_delta, refused

CASE = GroupCase(n=100, low=25, high=40, apart=15, members=((36.0, 11.0),), rest=((42.0, 3.0),))
SHARES = (0.25, 0.4)


def check(case: Any = CASE, **changes: Any) -> GroupCheck:
    return GroupCheck(**({"secret": "s", "theta": 0, "case": case} | changes))


def evidence(**changes: Any) -> GroupEvidence:
    told: dict[str, Any] = {**FREE, "columns": ("x",), "form": "direct", "scale": 2.0, "checks": (check(),)}
    return GroupEvidence(**(told | changes))


def divergence(gap: float, one: float, other: float, epsilon: float) -> float:
    """H of N(0, one) against N(gap, other), by integration."""
    xs = np.linspace(-60, 60, 400_001)
    left = np.exp(-(xs**2) / (2 * one)) / math.sqrt(2 * math.pi * one)
    right = np.exp(-((xs - gap) ** 2) / (2 * other)) / math.sqrt(2 * math.pi * other)
    return float(np.maximum(left - math.exp(epsilon) * right, 0).sum() * (xs[1] - xs[0]))


def laws(a: int, case: GroupCase = CASE) -> tuple[float, float]:
    """Mean and variance of an average with a rows inside."""
    (m, s), (o, t) = case.members[0], case.rest[0]
    return (a * m + (case.n - a) * o) / case.n, (a * s**2 + (case.n - a) * t**2) / case.n**2


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_direct_noise_against_all_pairs_of_counts(epsilon: float) -> None:
    """The worst of the counts 25 and 40 and of those in between, 15 apart or less, both ways, each by integration."""
    worst = 0.0
    for a, b in ((25, 40), (40, 25), (25, 39), (30, 40), (26, 33)):
        (m, v), (o, w) = laws(a), laws(b)
        worst = max(worst, divergence(abs(m - o), v + 4.0, w + 4.0, epsilon))
    reached = evidence().delta(epsilon)
    assert worst * (1 - 1e-6) <= reached <= worst * (1 + 1e-4)


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_equalised_noise_has_one_variance(epsilon: float) -> None:
    gap = 15 * 6.0 / 100
    variance = max(laws(25)[1], laws(40)[1]) + 4.0
    exact = float(gaussian_delta(epsilon, gap / math.sqrt(variance)))
    assert evidence(form="equalised").delta(epsilon) == pytest.approx(exact, rel=1e-6)


def test_one_table_is_brought_to_one_variance() -> None:
    """Equalised noise serves one secret; a proof for two of them is none."""
    assert evidence(checks=(check(), check(secret="t"))).delta(1.0) == evidence().delta(1.0)
    assert refused(evidence(form="equalised", checks=(check(), check(secret="t"))))


def tail(case: Any = CASE, shares: tuple[float, float] = SHARES) -> float:
    """The chance of a table outside, or further apart than is hidden: by scipy."""
    low, high = shares
    outside = binom.cdf(case.low - 1, case.n, low) + binom.sf(case.high, case.n, high)
    return float(outside + (binom.sf(case.apart, case.n, high - low) if case.apart < case.high - case.low else 0.0))


FAR = GroupCase(n=100, low=10, high=60, apart=30, members=((36.0, 11.0),), rest=((42.0, 3.0),))


@pytest.mark.parametrize("case", [FAR, replace(FAR, apart=50), replace(FAR, low=20)])
@pytest.mark.parametrize("form", ["direct", "equalised"])
def test_the_tail_of_a_population_is_most_of_delta(case: GroupCase, form: str) -> None:
    """With so much noise that nothing else is left, a promise just below the tail fails, and just above it holds."""
    told = evidence(form=form, scale=1000.0, checks=(check(case, shares=SHARES),))
    exact = tail(case)
    reached = told.delta(1.0)
    assert reached == pytest.approx(exact, rel=1e-6, abs=1e-12)
    assert accepted(told, 1.0, exact * (1 + 1e-6) + 1e-12)
    assert not accepted(told, 1.0, exact * (1 - 1e-6) - 1e-12)
    assert evidence(form=form, scale=1000.0, checks=(check(case),)).delta(1.0) <= 1e-12


def test_a_tail_is_added_to_what_noise_leaves() -> None:
    for scale in (0.8, 2.0):
        plain = evidence(scale=scale, checks=(check(FAR),)).delta(0.5)
        whole = evidence(scale=scale, checks=(check(FAR, shares=SHARES),)).delta(0.5)
        assert whole - plain == pytest.approx(tail(FAR), rel=1e-6)


def test_counts_may_not_be_read_where_rows_are_known() -> None:
    known = replace(CASE, known=2)
    for form, shares, holds in (
        ("direct", None, True), ("direct", SHARES, True), ("equalised", None, True), ("equalised", SHARES, False),
    ):  # fmt: skip
        told = evidence(form=form, scale=50.0, checks=(check(known, shares=shares),))
        assert (told.delta(1.0) < 1) is holds, (form, shares)
        assert check(known, shares=shares).readable is (shares is None)
        assert check(CASE, shares=shares).readable


def test_what_is_drawn_is_what_was_counted_on() -> None:
    assert evidence().covers("x", "gaussian", 2.0)
    for told in (("y", "gaussian", 2.0), ("x", "laplace", 2.0), ("x", "gaussian", 2.1)):
        assert not evidence().covers(*told)


# ---------------------------------------------------------------------------------------------------------- several averages

ONE = ((1.0, 0.2), (0.2, 2.0))
OTHER = ((2.0, -0.3), (-0.3, 1.0))
PAIR = VectorCase(n=50, low=10, high=20, apart=10, members=(((3.0, 1.0), ONE),), rest=(((1.0, 2.0), OTHER),))


def several(case: Any = PAIR, **changes: Any) -> GroupVectorEvidence:
    told: dict[str, Any] = {
        **FREE, "columns": ("x", "y"), "check": check(case), "equalised": equalise(PAIR), "independent": (0.3, 0.4),
        "factor": ((0.1, 0.0), (0.2, 0.3)),
    }  # fmt: skip
    return GroupVectorEvidence(**(told | changes))


def covariance(a: int) -> np.ndarray:
    return np.asarray((a * np.array(ONE) + (50 - a) * np.array(OTHER)) / 50**2)


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_several_averages_have_one_covariance_and_one_shift(epsilon: float) -> None:
    """The target is at least the covariance of every table; with all noise on top the shift is that of two normal laws."""
    target = np.array(equalise(PAIR).target)
    for a in range(10, 21):
        assert np.linalg.eigvalsh(target - covariance(a))[0] >= -1e-12
    factor = np.array([[0.1, 0.0], [0.2, 0.3]])
    total = target + np.diag([0.09, 0.16]) + factor @ factor.T
    shift = np.array([2.0, -1.0]) * 10 / 50
    exact = float(gaussian_delta(epsilon, math.sqrt(shift @ np.linalg.solve(total, shift))))
    assert exact * (1 - 1e-9) <= several().delta(epsilon) <= exact * (1 + 1e-6)


def test_the_tail_counts_for_several_averages_too() -> None:
    wide = replace(PAIR, low=5, high=30, apart=20)
    noise: dict[str, Any] = {"equalised": equalise(wide), "independent": (100.0, 100.0), "factor": ()}
    exact = tail(wide)
    told = several(**noise, check=check(wide, shares=SHARES))
    assert told.delta(1.0) == pytest.approx(exact, rel=1e-5, abs=1e-11)
    assert accepted(told, 1.0, exact * (1 + 1e-5) + 1e-11)
    assert not accepted(told, 1.0, exact * (1 - 1e-5))


def test_a_table_that_is_not_brought_to_the_target_shows() -> None:
    """A part of the noise that is left out makes covariances differ, which is charged."""
    whole, least = equalise(PAIR), several().delta(1.0)
    for k in range(len(whole.parts)):
        fewer = type(whole)(whole.target, whole.parts[:k] + whole.parts[k + 1 :])
        assert several(equalised=fewer).delta(1.0) > least + 1e-4


def test_matrices_of_other_shapes_prove_nothing() -> None:
    whole = equalise(PAIR)
    assert not refused(several(), 1.0)
    for changes in (
        {"columns": ("x", "y", "z")},
        {"independent": (0.3,)},
        {"independent": (0.3, 0.4, 0.5)},
        {"factor": ((0.1, 0.0),)},
        {"factor": ((0.1, 0.0), (0.2,))},
        {"factor": ((0.1,), (0.2,), (0.3,))},
        {"equalised": type(whole)(whole.target[:1], whole.parts)},
        {"equalised": type(whole)((whole.target[0][:1],) * 2, whole.parts)},
        {"check": check(CASE)},
    ):
        assert refused(several(**changes), 1.0), changes
    for part in (
        Part("member", 1, whole.parts[0].factor),
        Part("rest", 1, whole.parts[0].factor),
        Part("low", 1, whole.parts[0].factor),
        Part("high", -1, whole.parts[0].factor),
        Part("low", 0, whole.parts[0].factor[:1]),
    ):
        assert not belong_together(PAIR, type(whole)(whole.target, (part,)), (0.3, 0.4), ())
    assert belong_together(PAIR, whole, (0.3, 0.4), ())


def test_the_grid_of_common_noise_is_fine_enough() -> None:
    """2^-34 of the least sd of each average's own noise, and of what a part can have at least: a row's share of n."""
    parts = (Part("low", 0, ((3.0,), (0.0,))),)
    for independent, factor, n in (
        ((0.5, 4.0), ((1.0, -2.0), (1.0, 1.0)), 4),
        ((100.0, 100.0), (), 10_000),
        ((1.0, 1e-6), (), 4),
    ):
        bits = common_bits(independent, factor, parts, n)
        rows = [[*(factor[k] if factor else ()), parts[0].factor[k][0]] for k in range(2)]
        worst = max(sum(map(abs, row)) / own for row, own in zip(rows, independent, strict=True))
        needed = max(Fraction(worst), Fraction(math.isqrt(n)), Fraction(1)) * 2**34
        assert 2**bits >= needed * (1 - Fraction(1, 10**9))
        assert 2 ** (bits - 1) < needed * (1 + Fraction(1, 10**9))


def test_what_equalising_adds_at_most() -> None:
    parts = equalise(PAIR).parts
    for k in range(2):
        exact = math.sqrt(sum(x * x for part in parts for x in part.factor[k]))
        assert several().most_equalising()[k] == pytest.approx(exact)
    assert several().bits() == common_bits((0.3, 0.4), ((0.1, 0.0), (0.2, 0.3)), parts, 50)


def test_order_and_noise_of_several_averages() -> None:
    assert several().suits(("x", "y"), 50, clipped=False)
    assert not several().suits(("y", "x"), 50, clipped=False)
    assert several().common_noise() == ((0.1, 0.0), (0.2, 0.3))
    assert several().covers("y", "gaussian", 0.4)
    for told in (("y", "gaussian", 0.3), ("y", "laplace", 0.4), ("z", "gaussian", 0.4)):
        assert not several().covers(*told)
