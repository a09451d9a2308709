"""The proof of transported averages one after the other: the distance in exact numbers, and what may follow what."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy.optimize import brentq

from attrpriv.methods.base.clamp import Read
from attrpriv.methods.transport.proof import MovedRead, TransportCheck
from attrpriv.methods.transport.sequence_clamp import clipped, moved_on, shown
from attrpriv.methods.transport.sequence_proof import SequenceEvidence, SequenceStep
from tests.unit.methods.proofs import FREE, accepted, gaussian_delta, refused

CREDITED = ((1.0, 0.3, -0.2), (0.3, 2.0, 0.1), (-0.2, 0.1, 0.5))
NOISE, REACH = (0.5, 0.4, 0.3), (0.1, 0.05, 0.2)
SLOPES = ((0.5,), (0.2,), (-0.3,))


def steps(noise: tuple[float, ...] = NOISE, reach: tuple[float, ...] = REACH) -> tuple[SequenceStep, ...]:
    return tuple(SequenceStep(column=c, noise=n, least=n, reach=r) for c, n, r in zip("xyz", noise, reach, strict=False))


def check(**changes: Any) -> TransportCheck:
    told: dict[str, Any] = {
        "secret": "s", "theta": 0, "reads": (MovedRead(coefficients={"g": 1.0}, by=0.4, off=0.01),),
        "own": (0.21, 0.08, -0.11), "own_off": (0.01, 0.0, 0.02), "credited": ((1.0,),),
    }  # fmt: skip
    return TransportCheck(**(told | changes))


def evidence(**changes: Any) -> SequenceEvidence:
    told: dict[str, Any] = {
        **FREE, "before": 1, "steps": steps(), "reads": (Read(coefficients={"g": 1.0}, centre=0.0),), "slopes": SLOPES,
        "credited": CREDITED, "checks": (check(),),
    }  # fmt: skip
    return SequenceEvidence(**(told | changes))


def exact(told: SequenceEvidence, one: TransportCheck) -> float:
    """sqrt of the sum of (2 reach + |L^-1 untold|)^2 / D, by a Cholesky factor of 40 digits."""
    with mpmath.workdps(40):
        size = len(told.steps)
        a = mpmath.matrix(told.credited) + mpmath.diag([mpmath.mpf(step.noise) ** 2 for step in told.steps])
        root = mpmath.cholesky(a)
        low = mpmath.matrix(size, size)
        for i in range(size):
            for j in range(i + 1):
                low[i, j] = root[i, j] / root[j, j]
        inverse, moves = mpmath.inverse(low), one.moves(told.slopes)
        total = mpmath.mpf(0)
        for k, step in enumerate(told.steps):
            moved = abs(sum(inverse[k, j] * mpmath.mpf(moves.untold[j]) for j in range(size)))
            moved += sum(abs(inverse[k, j]) * mpmath.mpf(moves.untold_off[j]) for j in range(size))
            total += (2 * mpmath.mpf(step.reach) + moved) ** 2 / root[k, k] ** 2
        return float(mpmath.sqrt(total))


@pytest.mark.parametrize("reach", [REACH, (0.0, 0.0, 0.0), (1.0, 0.0, 0.5)])
def test_distance_in_exact_numbers(reach: tuple[float, ...]) -> None:
    told = evidence(steps=steps(reach=reach))
    assert told.distance() == pytest.approx(exact(told, check()), rel=1e-11)
    assert told.distance() >= exact(told, check())
    far = check(own=(0.9, 0.08, -0.11))
    both = evidence(steps=steps(reach=reach), checks=(check(), far))
    assert both.distance() == evidence(steps=steps(reach=reach), checks=(far, check())).distance()
    assert both.distance() == pytest.approx(exact(told, far), rel=1e-11)
    assert told.distance_of(far) == pytest.approx(exact(told, far), rel=1e-11)


def test_delta_and_what_is_spent() -> None:
    told = evidence()
    wanted = float(gaussian_delta(0.5, told.distance()))
    assert told.delta(0.5) == pytest.approx(wanted, rel=1e-9)
    assert accepted(told, 0.5, wanted * (1 + 1e-9))
    assert not accepted(told, 0.5, wanted * (1 - 1e-9))
    for charges in ({}, {"reserve": 0.01}, {"grid_lambda": 0.05}, {"fit_delta": 1e-3, "grid_eta": 1e-3}):
        epsilon, delta = 0.5, 0.2
        lam, eta = charges.get("grid_lambda", 0.0), charges.get("grid_eta", 0.0)
        rest = delta - charges.get("reserve", 0.0) - charges.get("fit_delta", 0.0) - eta * (1 + math.exp(epsilon))
        left, inner = rest * math.exp(-lam), epsilon - 2 * lam
        mu = brentq(lambda x, e=inner, d=left: float(gaussian_delta(e, x)) - d, 1e-3, 9.0, xtol=1e-13)
        assert evidence(**charges).spent(epsilon, delta) == pytest.approx((told.distance() / mu) ** 2, rel=1e-6)
    assert evidence(reserve=0.2).spent(0.5, 0.2) == math.inf
    assert evidence(grid_lambda=0.3).spent(0.5, 0.2) == math.inf
    assert evidence().spent(0.5, told.delta(0.5) * 0.999) == math.inf
    assert evidence().spent(0.5, told.delta(0.5)) == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize(
    "changes",
    [
        {"before": 3},
        {"steps": steps()[:2]},
        {"steps": (*steps()[:2], steps()[0])},
        {"slopes": SLOPES[:2]},
        {"slopes": ((0.5, 0.1), (0.2, 0.1), (-0.3, 0.1))},
        {"slopes": ((0.5,), (0.2,), ())},
        {"credited": CREDITED[:2]},
        {"credited": tuple(row[:2] for row in CREDITED)},
        {"credited": (CREDITED[0], (0.3, 2.0, 0.2), CREDITED[2])},
        {"credited": ((1.0, 0.3, -0.21), *CREDITED[1:])},
        {"credited": ((-0.1, 0.3, -0.2), *CREDITED[1:])},
        {"steps": (steps()[0].model_copy(update={"least": 0.51}), *steps()[1:])},
        {"steps": (*steps()[:2], steps()[2].model_copy(update={"least": 0.31}))},
        {"reads": (Read(coefficients={"g": 1.0}, centre=0.0, mask=0.1),)},
        {"reads": (Read(coefficients={"h": 1.0}, centre=0.0),)},
        {"checks": (check(own=(0.21, 0.08)),)},
        {"checks": (check(own_off=(0.01, 0.0)),)},
        {"checks": (check(reads=(MovedRead(coefficients={"g": 2.0}, by=0.4),)),)},
        {"checks": (check(regression=((0.5,), (0.2,), (-0.3,))),)},  # with an own move, which it would not count
        {"checks": (check(own=(0.0,) * 3, reads=(MovedRead(coefficients={"g": 1.0}),), regression=((0.5,), (0.2,))),)},
    ],
)
def test_what_does_not_belong_together_proves_nothing(changes: dict[str, Any]) -> None:
    assert not refused(evidence(), 5.0)
    assert refused(evidence(**changes), 5.0)


def test_a_noise_equal_to_the_least_is_enough() -> None:
    assert not refused(evidence(steps=tuple(step.model_copy(update={"least": step.noise / 2}) for step in steps())), 5.0)
    told = check(own=(0.0,) * 3, reads=(MovedRead(coefficients={"g": 1.0}, off=0.1),), regression=SLOPES)
    assert not refused(evidence(checks=(told,)), 5.0)


def several(off: float = 0.1, slopes: Any = ((0.5, 0.1), (0.2, -0.2))) -> SequenceEvidence:
    reads = tuple(Read(coefficients={name: 1.0}, centre=0.0) for name in "gh")
    moved = tuple(MovedRead(coefficients={name: 1.0}, off=off) for name in "gh")
    told = check(own=(0.0, 0.0), own_off=(0.0, 0.0), reads=moved, regression=((0.5, 0.1), (0.2, -0.2)))
    size: dict[str, Any] = {"steps": steps()[:2], "credited": ((1.0, 0.3), (0.3, 2.0)), "before": 1}
    return evidence(**size, reads=reads, slopes=slopes, checks=(told,))


def test_several_statistics_are_read_only_where_nothing_is_left_untold() -> None:
    """Up to 1e-6 of a standard deviation of the answers."""
    assert not refused(several(), 5.0)
    slope = 1e-6 / 0.1 * math.sqrt(1.25)
    assert not refused(several(slopes=((0.5 + slope * 0.7, 0.1), (0.2, -0.2))), 5.0)
    assert refused(several(slopes=((0.5 + slope * 1.1, 0.1), (0.2, -0.2))), 5.0)
    one = evidence(slopes=((0.6,), (0.2,), (-0.3,)))
    assert not refused(one, 5.0)


def test_singular_answers_are_infinitely_far() -> None:
    told = evidence(credited=((1.0, 1.0, 1.0),) * 3, steps=steps(noise=(1e-9, 1e-9, 1e-9)))
    assert told.distance() == math.inf
    assert refused(told, 5.0)


# ---------------------------------------------------------------------------------------------------------- what may follow


def first() -> SequenceEvidence:
    size: dict[str, Any] = {"before": 0, "steps": steps()[:1], "slopes": SLOPES[:1], "credited": ((1.0,),)}
    return evidence(**size, checks=(check(own=(0.21,), own_off=(0.01,)),))


def test_what_was_released_is_continued_exactly() -> None:
    assert first().follows(None)
    assert not evidence().follows(None)
    assert evidence().follows(first())
    assert not evidence().follows("something else")
    for changes in (
        {"before": 0},
        {"before": 2},
        {"steps": steps(noise=(0.6, 0.4, 0.3))},
        {"steps": steps(reach=(0.2, 0.05, 0.2))},
        {"slopes": ((0.4,), (0.2,), (-0.3,))},
        {"credited": ((1.1, 0.3, -0.2), *CREDITED[1:])},
        {"reads": (Read(coefficients={"g": 1.0}, centre=1.0),)},
    ):
        assert not evidence(**changes).follows(first()), changes
    for changes in ({"steps": steps(noise=(0.5, 0.7, 0.3))}, {"slopes": ((0.5,), (0.9,), (-0.3,))}):
        assert evidence(**changes).follows(first()), changes


def test_only_what_is_new_is_drawn() -> None:
    told = evidence()
    assert told.columns == ("x", "y", "z")
    assert [step.column for step in told.own_steps] == ["y", "z"]
    assert told.suits(("y", "z"), 9, clipped=False)
    assert not told.suits(("y", "z"), 9, clipped=True)
    assert not told.suits(("z", "y"), 9, clipped=False)
    assert told.covers("y", "gaussian", 0.4)
    for other in (("x", "gaussian", 0.5), ("y", "laplace", 0.4), ("y", "gaussian", 0.41)):
        assert not told.covers(*other)
    assert told.statistics_read() == told.reads
    assert np.array(told.reaches) == pytest.approx(np.array(REACH))


def test_answers_are_moved_by_what_is_told_beyond_each_reach() -> None:
    """x_k = m_k - sum of L_kj y_j, y_k = clip(x_k): by numpy's Cholesky factor; of the second release, the first one known."""
    reads = (Read(coefficients={"g": 1.0, "h": -2.0}, centre=0.25),)
    told = evidence(reads=reads)
    read = {"g": Fraction(9, 5), "h": Fraction(1, 10)}
    m = np.array(SLOPES)[:, 0] * (1.8 - 0.2 - 0.25)
    root = np.linalg.cholesky(np.array(CREDITED) + np.diag(np.array(NOISE) ** 2))
    low = root / np.diag(root)
    x, y = np.zeros(3), np.zeros(3)
    for k in range(3):
        x[k] = m[k] - low[k, :k] @ y[:k]
        y[k] = min(max(x[k], -REACH[k]), REACH[k])
    assert (np.abs(x - y)[1:] > 0.01).all()
    found = moved_on(told, [Fraction(5), Fraction(-3)], read)
    assert [float(one) for one in found] == pytest.approx([5 - x[1] + y[1], -3 - x[2] + y[2]], rel=1e-12)
    assert [float(one) for one in shown(told.innovations(), REACH, [Fraction(float(one)) for one in m])[2]] == pytest.approx(
        [x[2], y[2]], rel=1e-12
    )


def test_without_a_reach_nothing_is_left() -> None:
    for far in (-5, 0, 5):
        assert clipped(Fraction(far), Fraction(0)) == 0
        assert clipped(Fraction(far), Fraction(3)) == max(-3, min(3, far))
    assert not refused(evidence(credited=((0.0,) * 3,) * 3), 90.0)
