"""The proof of averages freed of what counts tell: tails are paid for, spreads are those of brute force, guards hold."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from attrpriv.errors import UsageError
from attrpriv.methods.base.checks import GroupCheck
from attrpriv.methods.group_transport.proof import GroupTransportEvidence, GroupVectorTransportEvidence, between_of
from attrpriv.numerics.calibration.groups import equalise
from attrpriv.numerics.laws.groups import GroupCase, VectorCase
from tests.unit.methods.proofs import FREE, accepted, gaussian_delta, refused

CASE = GroupCase(n=100, low=10, high=60, apart=30, members=((36.0, 11.0),), rest=((42.0, 3.0),))
SHARES = (0.25, 0.4)


def check(case: Any = CASE, **changes: Any) -> GroupCheck:
    return GroupCheck(**({"secret": "s", "theta": 0, "case": case} | changes))


def evidence(**changes: Any) -> GroupTransportEvidence:
    told: dict[str, Any] = {
        **FREE, "columns": ("x",), "form": "equalised", "scale": 2.0, "reach": 0.1, "centre": 40.0, "check": check(),
    }  # fmt: skip
    return GroupTransportEvidence(**(told | changes))


@pytest.mark.parametrize("reach", [0.05, 0.3, 5.0])
def test_twice_the_reach_is_left_of_what_counts_tell(reach: float) -> None:
    variance = max((a * 121.0 + (100 - a) * 9.0) / 100**2 for a in (10, 60)) + 4.0
    gap = min(2 * reach, 30 * 6.0 / 100)
    exact = float(gaussian_delta(0.2, gap / math.sqrt(variance)))
    assert evidence(reach=reach).delta(0.2) == pytest.approx(exact, rel=1e-5, abs=1e-12)


def tail(case: Any = CASE) -> float:
    low, high = SHARES
    outside = binom.cdf(case.low - 1, case.n, low) + binom.sf(case.high, case.n, high)
    return float(outside + binom.sf(case.apart, case.n, high - low))


@pytest.mark.parametrize("form", ["direct", "equalised"])
def test_the_tail_of_a_population_is_most_of_delta(form: str) -> None:
    told, exact = evidence(form=form, scale=1000.0, check=check(shares=SHARES)), tail()
    assert told.delta(1.0) == pytest.approx(exact, rel=1e-6, abs=1e-12)
    assert accepted(told, 1.0, exact * (1 + 1e-6) + 1e-12)
    assert not accepted(told, 1.0, exact * (1 - 1e-6) - 1e-12)
    assert evidence(form=form, scale=1000.0).delta(1.0) <= 1e-12


def test_two_shares_are_as_far_apart_as_they_are() -> None:
    found = between_of(check(shares=(0.25, 0.4)))
    assert found is not None
    assert found.n == 100
    assert Fraction(found.width) >= Fraction(0.4) - Fraction(0.25)
    assert found.width == pytest.approx(0.15, rel=1e-12)
    assert between_of(check()) is None
    whole = between_of(check(shares=(0.0, 1.0)))
    assert whole is not None
    assert whole.width == 1.0


def test_counts_may_not_be_read_where_rows_are_known() -> None:
    known = replace(CASE, known=2)
    assert evidence(check=check(known), scale=50.0).delta(1.0) < 1
    for form in ("direct", "equalised"):
        assert refused(evidence(form=form, check=check(known, shares=SHARES), scale=50.0), 1.0)


def spread_by_force(case: GroupCase, form: str) -> float:
    """The largest difference of two variances after equalising by stated sds, over corners of the box: exactly."""
    shares = [(1 + sign * Fraction(case.sd_tolerance)) ** 2 - 1 for sign in (-1, 1)]
    worst = Fraction(0)
    for (_, s), (_, t) in itertools.product(case.members, case.rest):
        for one, other in itertools.product(shares, shares):
            # A row that changes sides: what it really has, less what it is stated to have, on each side.
            worst = max(worst, abs(one * Fraction(s) ** 2 - other * Fraction(t) ** 2))
    return float(worst * case.apart / case.n**2)


@pytest.mark.parametrize("sds", [(11.0, 3.0), (0.5, 0.25), (2.0, 0.1), (3.0, 3.0), (0.2, 7.0)])
@pytest.mark.parametrize("tolerance", [0.0, 0.01, 0.3])
def test_spreads_of_unequal_sds_against_brute_force(sds: tuple[float, float], tolerance: float) -> None:
    """Neither sd is 1, so that no power of it can be another one."""
    case = replace(CASE, members=((36.0, sds[0]), (30.0, 2 * sds[0])), rest=((42.0, sds[1]),), sd_tolerance=tolerance)
    exact = spread_by_force(case, "equalised")
    assert case.matched_spread == pytest.approx(exact, rel=1e-14)
    assert Fraction(case.matched_spread) >= Fraction(exact) * (1 - Fraction(1, 10**15))
    least = min(
        (a * min(s for _, s in case.members) ** 2 + (case.n - a) * sds[1] ** 2) / case.n**2 for a in (case.low, case.high)
    )
    assert case.least_variance == pytest.approx(least * (1 - tolerance) ** 2, rel=1e-12)
    most = max((a * (2 * sds[0]) ** 2 + (case.n - a) * sds[1] ** 2) / case.n**2 for a in (case.low, case.high))
    assert case.most_variance == pytest.approx(most * (1 + tolerance) ** 2, rel=1e-12)
    assert case.matched_variance == pytest.approx(most * (1 - tolerance) ** 2, rel=1e-12)
    ends = [[(1 - tolerance) ** 2 * s**2, (1 + tolerance) ** 2 * (2 * s) ** 2] for s in sds[:1]]
    other = [(1 - tolerance) ** 2 * sds[1] ** 2, (1 + tolerance) ** 2 * sds[1] ** 2]
    low, high = ends[0][0] - other[1], ends[0][1] - other[0]
    assert case.spread[1] == pytest.approx(max(abs(low), abs(high)) * case.apart / case.n**2, rel=1e-12)
    assert case.spread[0] == pytest.approx((0.0 if low <= 0 <= high else min(abs(low), abs(high))) * case.apart / case.n**2)


def test_known_rows_take_their_part_of_everything() -> None:
    case = replace(CASE, known=4, apart=3, high=40)
    plain = replace(case, known=0)
    for name in ("least_variance", "equal_variance", "matched_variance"):
        assert getattr(plain, name) - getattr(case, name) == pytest.approx(4 * 121.0 / 100**2, rel=1e-9), name
    assert case.equal_spread == pytest.approx((121.0 - 9.0) * 3 / 100**2)
    assert plain.equal_spread == 0.0
    assert case.matched_spread == pytest.approx((121.0 - 9.0) * 3 / 100**2)
    assert case.taken_amiss == pytest.approx(6.0 * 3 / 100)
    assert replace(case, known=2).taken_amiss == pytest.approx(6.0 * 2 / 100)
    assert replace(case, known=2).equal_spread == pytest.approx((121.0 - 9.0) * 2 / 100**2)


def test_what_is_told_of_a_table() -> None:
    assert evidence().told(((30,), (70,))) == (Fraction(30 * 36 + 70 * 42, 100) - 40,)
    for counts in (((30,), (71,)), ((30, 0), (70,)), ((), (100,))):
        with pytest.raises(UsageError):
            evidence().told(counts)


def test_what_is_drawn_is_what_was_counted_on() -> None:
    assert evidence().covers("x", "gaussian", 2.0)
    for told in (("y", "gaussian", 2.0), ("x", "laplace", 2.0), ("x", "gaussian", 2.1)):
        assert not evidence().covers(*told)


# ---------------------------------------------------------------------------------------------------------- several averages

ONE = ((1.0, 0.2), (0.2, 2.0))
OTHER = ((2.0, -0.3), (-0.3, 1.0))
PAIR = VectorCase(n=50, low=10, high=20, apart=10, members=(((3.0, 1.0), ONE),), rest=(((1.0, 2.0), OTHER),))
METRIC = ((0.5, 0.1), (0.1, 0.8))


def several(case: Any = PAIR, **changes: Any) -> GroupVectorTransportEvidence:
    told: dict[str, Any] = {
        **FREE, "columns": ("x", "y"), "form": "equalised", "check": check(case), "equalised": equalise(PAIR),
        "independent": (0.3, 0.4), "factor": ((0.1, 0.0), (0.2, 0.3)), "reach": 0.1, "metric": METRIC, "centre": (1.0, 2.0),
    }  # fmt: skip
    return GroupVectorTransportEvidence(**(told | changes))


@pytest.mark.parametrize("reach", [0.02, 0.1, 9.0])
def test_a_ball_is_left_of_what_counts_tell(reach: float) -> None:
    """stretch min(2 reach, |told|), both norms by numpy's own solver."""
    factor = np.array([[0.1, 0.0], [0.2, 0.3]])
    total = np.array(equalise(PAIR).target) + np.diag([0.09, 0.16]) + factor @ factor.T
    shift, metric = np.array([2.0, -1.0]) * 10 / 50, np.array(METRIC)
    stretch = math.sqrt(np.linalg.eigvals(np.linalg.solve(total, metric)).real.max())
    apart = stretch * min(2 * reach, math.sqrt(shift @ np.linalg.solve(metric, shift)))
    exact = float(gaussian_delta(0.2, apart))
    assert exact * (1 - 1e-9) <= several(reach=reach).delta(0.2) <= exact * (1 + 1e-5) + 1e-11


def test_the_tail_counts_for_several_averages_too() -> None:
    wide = replace(PAIR, low=5, high=30, apart=20)
    low, high = SHARES
    exact = float(binom.cdf(4, 50, low) + binom.sf(30, 50, high) + binom.sf(20, 50, high - low))
    noise: dict[str, Any] = {"equalised": equalise(wide), "independent": (100.0, 100.0), "factor": (), "reach": 1e-3}
    told = several(**noise, check=check(wide, shares=SHARES))
    assert told.delta(1.0) == pytest.approx(exact, rel=1e-5, abs=1e-11)
    assert accepted(told, 1.0, exact * (1 + 1e-5) + 1e-11)
    assert not accepted(told, 1.0, exact * (1 - 1e-5))


def test_matrices_of_other_shapes_prove_nothing() -> None:
    assert not refused(several(), 1.0)
    for changes in (
        {"columns": ("x", "y", "z")},
        {"independent": (0.3,)},
        {"metric": METRIC[:1]},
        {"metric": ((0.5, 0.1), (0.1,))},
        {"metric": (*METRIC, (0.0, 0.0))},
        {"centre": (1.0,)},
        {"factor": ((0.1, 0.0),)},
        {"factor": ((0.1, 0.0), (0.2,))},
        {"check": check(CASE)},
    ):
        assert refused(several(**changes), 1.0), changes
    assert refused(evidence(check=check(PAIR)), 1.0)
    assert several(check=check(CASE)).told(((30,), (70,))) == evidence(check=check(PAIR)).told(((10,), (40,))) == ()


def test_what_is_told_of_several_averages() -> None:
    found = several().told(((20,), (30,)))
    assert found == (Fraction(20 * 3 + 30 * 1, 50) - 1, Fraction(20 * 1 + 30 * 2, 50) - 2)


def test_order_and_noise_of_several_averages() -> None:
    assert several().suits(("x", "y"), 50, clipped=False)
    assert not several().suits(("y", "x"), 50, clipped=False)
    assert several().common_noise() == ((0.1, 0.0), (0.2, 0.3))
    assert several().covers("y", "gaussian", 0.4)
    for told in (("y", "gaussian", 0.3), ("y", "laplace", 0.4), ("z", "gaussian", 0.4)):
        assert not several().covers(*told)
    parts = equalise(PAIR).parts
    for k in range(2):
        assert several().most_equalising()[k] == pytest.approx(math.sqrt(sum(x * x for part in parts for x in part.factor[k])))
