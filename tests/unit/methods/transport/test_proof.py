"""The proof of transported averages: distances against exact linear algebra, what is not told, and every guard."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from attrpriv.errors import CertificateError
from attrpriv.methods.base.accuracy import Noise, gaussian_error
from attrpriv.methods.base.clamp import Clamp, Read
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.evidence import Told
from attrpriv.methods.transport.proof import (
    MovedRead,
    TransportCheck,
    TransportEvidence,
    norm,
    output_spread,
    shortening,
    stretch,
)
from tests.unit.methods.proofs import FREE, accepted, gaussian_delta, refused


def read(column: str = "g", **changes: Any) -> Read:
    return Read(**({"coefficients": {column: 1.0}, "centre": 0.0} | changes))


def check(**changes: Any) -> TransportCheck:
    told: dict[str, Any] = {
        "secret": "s", "theta": 0, "reads": (MovedRead(coefficients={"g": 1.0}, by=2.0, off=0.25),),
        "own": (1.3,), "own_off": (0.1,), "credited": ((0.6,),),
    }  # fmt: skip
    return TransportCheck(**(told | changes))


def clamp(**changes: Any) -> Clamp:
    return Clamp(**({"reads": (read(),), "slopes": ((0.5,),), "reach": 0.2} | changes))


def evidence(**changes: Any) -> TransportEvidence:
    told: dict[str, Any] = {
        **FREE, "columns": ("x",), "independent": (0.9,), "least": (0.9, 0.0), "clamp": clamp(), "checks": (check(),),
    }  # fmt: skip
    return TransportEvidence(**(told | changes))


def test_one_average_by_its_formula() -> None:
    """moved = min(2 reach, |slope| (|by| + off)); untold = |own - slope by| + own_off + |slope| off; over the sd."""
    sd = math.sqrt(0.6 + 0.81)
    for slope, reach, period in ((0.5, 0.2, None), (0.5, 5.0, None), (-0.4, 0.1, None), (0.65, 0.0, None), (0.5, 0.2, 3.0)):
        told = evidence(clamp=clamp(slopes=((slope,),), reach=reach, period=period))
        moved = min(2 * reach, abs(slope) * 2.25)
        untold = abs(1.3 - slope * 2.0) + 0.1 + abs(slope) * 0.25
        assert told.distance() == pytest.approx((moved + untold) / sd, rel=1e-8)
        assert told.distance() >= (moved + untold) / sd


def test_a_stair_is_for_values_no_further_apart() -> None:
    told = 0.5 * 2.25
    assert math.isfinite(evidence(clamp=clamp(period=told * (1 + 1e-9))).distance())
    assert evidence(clamp=clamp(period=told * (1 - 1e-9))).distance() == math.inf
    assert refused(evidence(clamp=clamp(period=told * (1 - 1e-9))), 1.0)


def test_of_pairs_further_apart_everything_moves_further() -> None:
    """In proportion; the covariance stays what it is."""
    told = check().stretched(3.0)
    assert (told.reads[0].by, told.reads[0].off) == (6.0, 0.75)
    assert (told.own, told.own_off) == ((1.3 * 3.0,), (0.1 * 3.0,))
    assert (told.credited, told.reads[0].coefficients) == (check().credited, check().reads[0].coefficients)
    wide = evidence(clamp=clamp(reach=50.0))
    assert wide.stretched(3.0).distance() == pytest.approx(3.0 * wide.distance(), rel=1e-9)


def test_the_farthest_check_counts() -> None:
    far = check(own=(4.0,))
    alone = evidence(checks=(far,)).distance()
    assert evidence(checks=(check(), far)).distance() == evidence(checks=(far, check())).distance() == alone


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_delta_is_that_of_two_normal_laws(epsilon: float) -> None:
    wanted = float(gaussian_delta(epsilon, evidence().distance()))
    assert evidence().delta(epsilon) == pytest.approx(wanted, rel=1e-9)
    assert accepted(evidence(), epsilon, wanted * (1 + 1e-9))
    assert not accepted(evidence(), epsilon, wanted * (1 - 1e-9))


# ------------------------------------------------------------------------------------------------------ what is told and not


@pytest.mark.parametrize("seed", range(5))
def test_moves_hold_for_every_corner(seed: int) -> None:
    """Every `by` within its off and every `own` within its own: told and untold lie within theirs, and reach their ends."""
    rng = np.random.default_rng(seed)
    slopes, by, off = rng.normal(size=(2, 2)), rng.normal(size=2), rng.uniform(0, 1, 2)
    own, own_off = rng.normal(size=2), rng.uniform(0, 1, 2)
    reads = tuple(MovedRead(coefficients={"gh"[k]: 1.0}, by=float(by[k]), off=float(off[k])) for k in range(2))
    told = check(reads=reads, own=tuple(own.tolist()), own_off=tuple(own_off.tolist()), credited=((1.0, 0.0), (0.0, 1.0)))
    moves = told.moves(slopes.tolist())
    assert moves.told is not None
    furthest, left = np.zeros(2), np.zeros(2)
    for signs in itertools.product((-1, 0, 1), repeat=4):
        moved = slopes @ (by + off * np.array(signs[:2]))
        shown = own + own_off * np.array(signs[2:]) - moved
        furthest = np.maximum(furthest, np.abs(moved - np.array(moves.told)))
        left = np.maximum(left, np.abs(shown - np.array(moves.untold)))
    assert np.allclose(furthest, moves.told_off, rtol=1e-9)
    assert np.allclose(left, moves.untold_off, rtol=1e-9)
    assert (np.array(moves.told_off) >= furthest - 1e-15).all()
    assert (np.array(moves.untold_off) >= left - 1e-15).all()


def test_a_statistic_that_does_not_move_takes_nothing_back() -> None:
    still = check(reads=(MovedRead(coefficients={"g": 1.0}),), own=(0.5,), own_off=(0.25,), credited=((1.0,),))
    moves = still.moves([[0.75]])
    assert (moves.told, moves.told_off, moves.untold) == ((0.0,), (0.0,), (0.5,))
    assert moves.untold_off == pytest.approx((0.25,), rel=1e-12)


def joint(**changes: Any) -> TransportCheck:
    told: dict[str, Any] = {
        "reads": (MovedRead(coefficients={"g": 1.0}, off=0.7), MovedRead(coefficients={"h": 1.0}, off=0.3)),
        "own": (0.0, 0.0), "own_off": (0.1, 0.2), "regression": ((0.5, -0.2), (0.1, 0.4)),
        "credited": ((1.0, 0.2), (0.2, 2.0)),
    }  # fmt: skip
    return check(**(told | changes))


def test_with_a_regression_any_pair_may_be_meant() -> None:
    slopes = ((0.45, -0.1), (0.1, 0.5))
    moves = joint().moves(slopes)
    assert moves.told is None
    assert moves.untold == (0.0, 0.0)
    assert moves.untold_off == pytest.approx((0.1 + 0.05 * 0.7 + 0.1 * 0.3, 0.2 + 0.0 + 0.1 * 0.3), rel=1e-9)


METRIC = ((0.9, 0.1), (0.1, 1.1))


def several(**changes: Any) -> TransportEvidence:
    told: dict[str, Any] = {
        **FREE, "columns": ("x", "y"), "independent": (0.3, 0.5), "least": (0.3, 0.5, 0.2, 0.2),
        "factor": ((0.2,), (-0.1,)),
        "clamp": Clamp(
            reads=(read(mask=0.2), read("h", mask=0.2)), slopes=((0.45, -0.1), (0.1, 0.5)), reach=0.15, metric=METRIC
        ),
        "checks": (joint(),),
    }  # fmt: skip
    return TransportEvidence(**(told | changes))


def exact_norm(vector: Any, spread: Any) -> Any:
    with mpmath.workdps(40):
        v = mpmath.matrix(vector)
        return mpmath.sqrt((v.T * mpmath.inverse(mpmath.matrix(spread)) * v)[0])


def test_several_averages_against_corners() -> None:
    """2 reach stretched, and the largest norm of what is left over its corners: at least, and with room for the bound."""
    spread = np.array([[1.0, 0.2], [0.2, 2.0]]) + np.diag([0.09, 0.25]) + np.outer([0.2, -0.1], [0.2, -0.1])
    left = joint().moves(several().clamp.slopes).untold_off
    corner = max(float(exact_norm([a * left[0], b * left[1]], spread.tolist())) for a in (-1, 1) for b in (-1, 1))
    wide = math.sqrt(np.linalg.eigvals(np.linalg.solve(spread, np.array(METRIC))).real.max())
    assert wide * 0.3 + corner <= several().distance()
    inverse = np.abs(np.linalg.inv(spread))
    bound = wide * 0.3 + math.sqrt(np.array(left) @ inverse @ np.array(left))
    assert several().distance() == pytest.approx(bound, rel=1e-7)


def test_pieces_against_exact_linear_algebra() -> None:
    spread, metric = np.array([[2.0, 0.7], [0.7, 1.0]]), np.array(METRIC)
    with mpmath.workdps(30):
        root = mpmath.cholesky(mpmath.matrix(metric.tolist()))
        gram = root.T * mpmath.inverse(mpmath.matrix(spread.tolist())) * root
        wanted = float(mpmath.sqrt(max(mpmath.eigsy(gram, eigvals_only=True))))
    assert wanted <= stretch(metric, spread) <= wanted * (1 + 1e-8)
    assert stretch(np.array([[4.0]]), np.array([[0.25]])) == pytest.approx(4.0, rel=1e-8)
    assert norm((1.0, -2.0), (0.0, 0.0), spread) == pytest.approx(float(exact_norm([1.0, -2.0], spread.tolist())), rel=1e-9)
    assert norm((-3.0,), (0.5,), np.array([[4.0]])) == pytest.approx(1.75, rel=1e-9)
    assert shortening(np.array([[3.0]])) == 0.0
    condition = np.linalg.cond(np.array([[1.0, 0.1 / math.sqrt(0.99)], [0.1 / math.sqrt(0.99), 1.0]]))
    assert shortening(metric) == pytest.approx(1e-14 * condition, rel=1e-9)
    made = output_spread(joint(), (0.3, 0.5), ((0.2,), (-0.1,)))
    assert made == pytest.approx(np.array([[1.0 + 0.09 + 0.04, 0.2 - 0.02], [0.2 - 0.02, 2.0 + 0.25 + 0.01]]))
    assert output_spread(joint(), (0.3, 0.5), ()) == pytest.approx(np.array([[1.09, 0.2], [0.2, 2.25]]))


def test_norms_are_in_the_unit_of_each_average() -> None:
    """An average in grams beside one in tons is no rounding's matter."""
    far = np.diag([1e-12, 1e12])
    assert shortening(far) == pytest.approx(1e-14, rel=1e-9)
    assert norm((0.0, 0.0), (3e-6, 4e6), far) == pytest.approx(5.0, rel=1e-8)
    assert norm((0.0, 0.0), (3e-6, 0.0), far) == pytest.approx(3.0, rel=1e-8)


def test_nearly_singular_norms_are_refused() -> None:
    near = 1 - 1e-11
    with pytest.raises(CertificateError, match="nearly singular"):
        shortening(np.array([[1.0, near], [near, 1.0]]))
    with pytest.raises(CertificateError, match="nearly singular"):
        norm((0.0, 0.0), (1.0, 1.0), np.array([[1.0, near], [near, 1.0]]))
    shortening(np.array([[1.0, 0.999], [0.999, 1.0]]))


def test_a_stair_is_not_for_any_pair() -> None:
    one = {"columns": ("x",), "independent": (0.3,), "factor": (), "least": (0.3, 0.2, 0.2)}
    alone = joint(own=(0.0,), own_off=(0.1,), regression=((0.5, -0.2),), credited=((1.0,),))
    reads = (read(mask=0.2), read("h", mask=0.2))
    free = Clamp(reads=reads, slopes=((0.45, -0.1),), reach=0.15)
    assert math.isfinite(several(**one, checks=(alone,), clamp=free).distance())
    stairs = Clamp(reads=reads, slopes=((0.45, -0.1),), reach=0.15, period=1e6)
    assert several(**one, checks=(alone,), clamp=stairs).distance() == math.inf


# --------------------------------------------------------------------------------------------------------------- every guard


@pytest.mark.parametrize(
    "changes",
    [
        {"columns": ("x", "x")},
        {"columns": ("x",)},
        {"independent": (0.3,)},
        {"independent": (0.29, 0.5)},  # less than was counted on
        {"independent": (0.3, 0.49)},
        {"least": (0.3, 0.5, 0.2, 0.21)},
        {"least": (0.3, 0.5, 0.2)},
        {"least": (0.3, 0.5, 0.2, 0.2, 0.0)},
        {"factor": ((0.2,),)},
        {"factor": ((0.2,), ())},
        {"factor": ((), ())},
        {"factor": ((0.2,), (0.1, 0.1))},
        {"factor": ((0.2,), (0.1,), (0.1,))},
        {"checks": (joint(own_off=(0.1,)),)},
        {"checks": (joint(own=(0.0,)),)},
        {"checks": (joint(own=(0.0, 0.1)),)},
        {"checks": (joint(credited=((1.0, 0.2),)),)},
        {"checks": (joint(credited=((1.0,), (0.2,))),)},
        {"checks": (joint(credited=((1.0, 0.2), (0.3, 2.0))),)},
        {"checks": (joint(regression=((0.5, -0.2),)),)},
        {"checks": (joint(regression=((0.5,), (0.1,))),)},
        {"checks": (joint(reads=(MovedRead(coefficients={"g": 1.0}, off=0.7), MovedRead(coefficients={"k": 1.0}, off=0.3))),)},
        {"checks": (joint(reads=(MovedRead(coefficients={"g": 1.0}, by=0.1), MovedRead(coefficients={"h": 1.0}))),)},
        {"checks": (joint(reads=(MovedRead(coefficients={"g": 1.0}, off=0.7),)),)},
    ],
)
def test_what_does_not_belong_together_proves_nothing(changes: dict[str, Any]) -> None:
    assert not refused(several(), 5.0)
    assert refused(several(**changes), 5.0)
    assert refused(several(checks=(joint(), *changes["checks"])), 5.0) if "checks" in changes else True


def test_several_statistics_are_masked_and_plain() -> None:
    slopes, metric = several().clamp.slopes, METRIC

    def with_reads(*reads: Read, **changes: Any) -> TransportEvidence:
        moved = tuple(MovedRead(coefficients=dict(one.coefficients), off=0.1) for one in reads)
        told = Clamp(reads=reads, slopes=slopes, reach=0.15, metric=metric)
        return several(clamp=told, checks=(joint(reads=moved),), least=(0.3, 0.5, 0.0, 0.0), **changes)

    assert not refused(with_reads(read(mask=0.2), read("h", mask=0.2)), 5.0)
    assert refused(with_reads(read(mask=0.0), read("h", mask=0.2)), 5.0)
    assert refused(with_reads(read(mask=0.2), read("h", mask=0.0)), 5.0)
    assert refused(with_reads(read(mask=0.2), read("x", mask=0.2)), 5.0)
    assert refused(with_reads(read(mask=0.2), read(coefficients={"h": 1.0, "k": 1.0}, mask=0.2)), 5.0)
    assert not refused(evidence(), 5.0)  # one statistic needs no mask
    assert not refused(evidence(least=(0.9, 0.0), independent=(0.9,)), 5.0)
    assert refused(evidence(least=(0.9 * (1 + 1e-15), 0.0)), 5.0)


def test_what_is_drawn_and_read() -> None:
    told = several()
    assert told.suits(("x", "y"), 9, clipped=True)
    assert not told.suits(("y", "x"), 9, clipped=False)
    assert told.common_noise() == told.factor
    assert told.taken_back() == told.clamp
    assert told.covers("y", "gaussian", 0.5)
    for other in (("y", "gaussian", 0.3), ("y", "laplace", 0.5), ("z", "gaussian", 0.5)):
        assert not told.covers(*other)


def test_where_all_that_is_read_is_known_so_is_the_move() -> None:
    """Y = slopes (g - centre), of which the nearest point of a ball is left; not where a mask hides what was read."""
    metric = ((0.5, 0.1), (0.1, 0.8))
    moved = clamp(reads=(read(centre=1.0),), slopes=((0.5,), (0.2,)), reach=0.25, metric=metric)
    told = evidence(columns=("x", "y"), independent=(0.9, 0.7), least=(0.9, 0.7, 0.0), clamp=moved)
    known = Told(read={"g": Fraction(4), "more": Fraction(1)})
    shown = np.array([1.5, 0.6])
    length = math.sqrt(shown @ np.linalg.solve(np.array(metric), shown))
    assert length > 0.25
    for place in (0, 1):
        part = ColumnPlan(column="xy"[place], noise=Noise(kind="gaussian", scale=0.3), error=gaussian_error(0.3))
        found = told.given(part, place, known)
        assert found is not None
        assert float(found[0]) == pytest.approx(-shown[place] * (1 - 0.25 / length), rel=1e-9)
        assert found[1] == 0.3
        assert told.given(part, place, Told(read={"g": Fraction(4)})) == found
        assert told.given(part, place, Told()) is None
        masked = moved.model_copy(update={"reads": (read(centre=1.0, mask=0.1),)})
        assert told.model_copy(update={"clamp": masked}).given(part, place, known) is None
