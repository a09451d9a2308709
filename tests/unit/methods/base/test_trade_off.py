"""What promises leave to the best test: against the laws that keep a promise and tell most, and against plain arithmetic."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial

import mpmath
import pytest
from scipy.stats import norm

from attrpriv.methods.base.accuracy import BY_FORMULA, BY_LAWS, Profile
from attrpriv.methods.base.trade_off import MOST, TradeOff, trade_off

PROMISES = [(0.3, 0.04), (1.2, 0.0), (2.5, 1e-3), (0.0, 0.2), (0.0, 0.0)]
ALARMS = (0.0, 0.003, 0.05, 0.21, 0.4, 0.7, 0.96, 1.0)


def worst(epsilon: float, delta: float) -> list[tuple[float, float]]:
    """The chances of four answers under either value: no other laws with this promise are told apart more easily."""
    share = (1 - delta) / (1 + math.exp(epsilon))
    return [(delta, 0.0), (share * math.exp(epsilon), share), (share, share * math.exp(epsilon)), (0.0, delta)]


def least_misses(law: list[tuple[float, float]], alarms: float) -> float:
    """By Neyman and Pearson: the likeliest answers first, as many as there may be false alarms."""
    left, caught = alarms, 0.0
    for one, other in sorted(law, key=lambda pair: pair[0] / pair[1] if pair[1] else math.inf):
        taken = 1.0 if one <= left else left / one
        left, caught = left - taken * one, caught + taken * other
    return max(0.0, 1 - caught)


@pytest.mark.parametrize("promise", PROMISES)
def test_one_promise_leaves_what_its_worst_laws_leave(promise: tuple[float, float]) -> None:
    law, found = worst(*promise), TradeOff(promises=(promise,))
    for alarms in ALARMS:
        assert found.misses(alarms) == pytest.approx(least_misses(law, alarms), abs=1e-13)
    apart = sum(abs(one - other) for one, other in law) / 2
    assert 0.5 + apart / 2 <= found.right <= (0.5 + apart / 2) * (1 + 1e-9)


@pytest.mark.parametrize("pair", list(itertools.combinations(PROMISES, 2)))
def test_of_several_promises_each_one_holds(pair: tuple[tuple[float, float], ...]) -> None:
    alone = [TradeOff(promises=(one,)) for one in pair]
    for both in (TradeOff(promises=pair), alone[0].also(alone[1]), alone[1].also(alone[0])):
        for alarms in ALARMS:
            assert both.misses(alarms) == max(one.misses(alarms) for one in alone)
        assert both.right == min(one.right for one in alone)
        assert set(both.promises) == set(pair)
    assert alone[1].also(alone[0]).promises == tuple(sorted(pair))


def test_a_curve_goes_from_no_alarm_to_nothing_else() -> None:
    found = TradeOff(promises=((0.3, 0.04), (0.9, 0.001)))
    alarms = [one for one, _ in found.curve]
    assert (alarms[0], alarms[24], alarms[-1]) == (0.0, 0.5, 1.0)
    assert alarms == sorted(set(alarms))
    assert all(misses == found.misses(one) for one, misses in found.curve)


def test_a_promise_that_says_nothing_leaves_everything() -> None:
    for promises in ((), ((5.0, 1.0),), ((0.1, 3.0),)):
        found = TradeOff(promises=promises)
        assert found.right == 1
        assert [found.misses(alarms) for alarms in ALARMS] == [0.0] * len(ALARMS)


def test_the_least_epsilon_of_a_delta() -> None:
    found = TradeOff(promises=((0.0, 0.3), (0.5, 0.01), (2.0, 0.0), (3.0, 1e-9)))
    wanted = {0.3: 0.0, 0.29: 0.5, 0.01: 0.5, 0.0099: 2.0, 0.0: 2.0}
    assert {delta: found.epsilon(delta) for delta in wanted} == wanted
    assert TradeOff(promises=((0.5, 0.01),)).epsilon(0.009) is None


@pytest.mark.parametrize(
    ("promises", "delta", "loss"),
    [
        (((0.7, 0.0),), 0.0, 0.7),
        (((0.7, 0.0),), 0.01, 0.7),
        (((0.7, 0.01),), 0.0, None),
        (((0.7, 0.01),), 0.01, 0.7 + math.log(2)),
        (((0.7, 0.01),), 0.004, None),  # more than twice delta says nothing
        (((0.7, 0.01),), 0.005, None),
        (((0.7, 0.01),), 0.04, 0.7 - math.log(1 - 1 / 8)),
        (((0.7, 0.01), (1.0, 0.0)), 0.01, 1.0),
        (((0.7, 0.01), (1.0, 0.0)), 0.04, 0.7 - math.log(7 / 8)),
        (((0.7, 0.01), (1.9, 1e-4)), 0.004, 1.9 - math.log(1 - 1 / 80)),
        ((), 0.01, None),
    ],
)
def test_odds_change_by_more_than_a_loss_rarely(
    promises: tuple[tuple[float, float], ...], delta: float, loss: float | None
) -> None:
    """Where d of the answers are beyond epsilon, at most d / (1 - e^(epsilon - e)) are beyond e: twice delta there."""
    found = TradeOff(promises=promises).loss(delta)
    assert (found is None) == (loss is None)
    if found is not None and loss is not None:
        assert loss * (1 - 1e-15) <= found <= loss * (1 + 1e-9)


# Steps.


@pytest.mark.parametrize("steps", [2, 3, 7])
def test_steps_are_as_near_to_each_other_as_promised(steps: int) -> None:
    """Along a chain of steps P0 <= e^eps P1 + d <= e^eps (e^eps P2 + d) + d, and so on."""
    promises = ((0.0, 1e-4), (1e-13, 1e-4), (1e-9, 1e-4), (0.01, 0.002), (0.8, 1e-5), (1.5, 0.0))
    found = TradeOff(promises=promises).in_steps(steps).promises
    assert len(found) == len(promises)
    with mpmath.workdps(40):
        for (epsilon, delta), (eps, d) in zip(found, promises, strict=True):
            sums = mpmath.fsum(d * mpmath.exp(k * mpmath.mpf(eps)) for k in range(steps))
            assert epsilon == steps * eps
            assert sums * (1 - mpmath.mpf(10) ** -15) <= delta <= sums * (1 + mpmath.mpf(10) ** -9)


def test_one_step_is_the_promise_itself() -> None:
    found = TradeOff(promises=((0.3, 0.04), (700.0, 0.0)))
    assert found.in_steps(1) is found


def test_steps_that_say_nothing_are_left_out() -> None:
    for eps, delta, kept in (
        (MOST / 2, 0.0, True),
        (MOST / 2, 1e-200, True),
        (MOST / 2 * (1 + 1e-12), 0.0, False),
        (400.0, 1e-300, False),  # e^800 is no float
        (0.0, 0.49, True),
        (0.0, 0.51, False),
        (1.0, 0.26, True),  # (1 + e) * 0.26 is 0.967
        (1.0, 0.27, False),
    ):
        assert bool(TradeOff(promises=((eps, delta),)).in_steps(2).promises) is kept, (eps, delta)


# From a proof.


def asked(deltas: Callable[[float], float], epsilon: float, delta: float, profile: Profile) -> tuple[TradeOff, list[float]]:
    at: list[float] = []

    def noted(one: float) -> float:
        at.append(one)
        return deltas(one)

    return trade_off(noted, epsilon, delta, profile), at


def normal(mu: float) -> Callable[[float], float]:
    return lambda eps: float(norm.cdf(mu / 2 - eps / mu) - math.exp(eps) * norm.cdf(-mu / 2 - eps / mu))


def test_a_proof_is_asked_at_the_promise_and_at_shares_of_it() -> None:
    found, at = asked(lambda eps: 0.5 / (1 + eps), 0.8, 1e-3, BY_LAWS)
    assert set(at) == {0.8, *(0.8 * share for share in BY_LAWS.shares)}
    assert found.promises == tuple((eps, 0.5 / (1 + eps)) for eps in sorted(set(at)))
    own, at = asked(lambda eps: 0.1, 0.8, 1e-3, Profile((0.5,)))
    assert sorted(at) == [0.4, 0.8]
    assert own.promises == ((0.4, 0.1), (0.8, 0.1))


def test_no_more_is_asked_than_floats_hold() -> None:
    for profile in (BY_LAWS, BY_FORMULA):
        found, at = asked(lambda eps: 0.3, 500.0, 1e-3, profile)
        assert max(at) == MOST
        assert found.epsilon(0.2) is None
        assert found.epsilon(0.3) == 0


@pytest.mark.parametrize("mu", [0.05, 0.7, 6.0, 20.0])
@pytest.mark.parametrize("delta", [1e-9, 0.01])
def test_the_least_epsilon_is_found_from_above(mu: float, delta: float) -> None:
    """Also where the promised epsilon is far from it: 2^-12 of the room between two that were asked."""
    deltas = normal(mu)
    found, at = asked(deltas, 1.0, delta, BY_FORMULA)
    least = found.epsilon(delta)
    assert least is not None
    assert deltas(least) <= delta
    assert deltas(max(0.0, least * (1 - 1e-3) - 1e-9)) > delta or least == 0
    assert len(at) <= len(BY_FORMULA.shares) + 14 + 12
    assert found.promises == tuple((eps, deltas(eps)) for eps in sorted(set(at)) if deltas(eps) < 1)


def test_nothing_is_looked_for_where_delta_holds_at_0() -> None:
    _, at = asked(lambda eps: 0.0, 1.0, 1e-3, BY_FORMULA)
    assert set(at) == {1.0, *BY_FORMULA.shares}


def sometimes(wrong: float, epsilon: float) -> float:
    return wrong if epsilon < 0.3 else 0.25


def test_what_is_no_share_proves_nothing() -> None:
    for wrong in (1.0, 1.5, -1e-9, math.nan, math.inf):
        found, _ = asked(partial(sometimes, wrong), 1.0, 0.3, BY_LAWS)
        assert {delta for _, delta in found.promises} == {0.25}
        assert min(eps for eps, _ in found.promises) == 0.5
    assert asked(lambda eps: 0.0, 1.0, 0.3, BY_LAWS)[0].promises[0] == (0.0, 0.0)
