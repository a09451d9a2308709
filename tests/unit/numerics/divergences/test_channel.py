"""What moved rows tell: kappa, delta and mu against many digits, on the private side; the proof's inequalities on examples."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences.channel import (
    Channel,
    best_order,
    curve,
    explained,
    kappa_upper,
    most_information,
    most_mu,
    mu_of,
    renyi_delta_upper,
    renyi_epsilon,
)

BAD = [math.nan, math.inf, -math.inf, -1.0]


def log_uniform(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(math.log(low), math.log(high)).map(math.exp)


def kappa(order: float, e: float) -> mpmath.mpf:
    """By its definition, in digits that cancellation cannot eat."""
    with mpmath.workdps(400):
        a, x = mpmath.mpf(order), mpmath.mpf(e)
        top = mpmath.exp(a * x) - 1 - a * (mpmath.exp(x) - 1)
        return +(top / (2 * a * (a - 1) * (mpmath.exp(x / 2) - 1) ** 2))


def delta(epsilon: float, order: float, mu: float) -> mpmath.mpf:
    with mpmath.workdps(60):
        a, m, eps = mpmath.mpf(order), mpmath.mpf(mu), mpmath.mpf(epsilon)
        return +(mpmath.exp((a - 1) * (a * m * m / 2 - eps)) * (1 - 1 / a) ** a / (a - 1))


@given(order=log_uniform(1e-9, 1e3).map(lambda x: 1 + x), share=log_uniform(1e-140, 1.0))
@settings(max_examples=200, deadline=None)
@example(order=1 + 2.0**-52, share=1.0)
@example(order=2.0, share=1e-140)
@example(order=1000.0, share=1.0)
def test_kappa_is_never_below_the_truth_and_close(order: float, share: float) -> None:
    e = 99.9 / order * share
    found, true = float(kappa_upper(order, np.array([e]))[0]), kappa(order, e)
    assert true <= found <= true * (1 + 1e-11)


def test_kappa_of_nothing_is_one_and_grows() -> None:
    places = np.concatenate([[0.0, 1e-300], np.geomspace(1e-12, 5.0, 200)])
    found = kappa_upper(20.0, places)
    assert 1 <= found[0] <= 1 + 1e-11
    assert np.all(np.diff(found[2:]) >= -1e-11)


@given(
    p=st.lists(st.floats(0.01, 1), min_size=3, max_size=3),
    q=st.lists(st.floats(0.01, 1), min_size=3, max_size=3),
    order=st.floats(1.05, 30),
)
def test_the_score_form_bounds_the_divergence(p: list[float], q: list[float], order: float) -> None:
    """E (p/q)^alpha - 1 <= 2 alpha (alpha-1) kappa(alpha, e) Hellinger integral, e the largest logarithm of a ratio."""
    a, b = np.array(p) / sum(p), np.array(q) / sum(q)
    e = float(np.max(np.abs(np.log(a / b))))
    if order * e > 100:
        return
    left = float(np.sum(b * ((a / b) ** order - 1 - order * (a / b - 1))))
    right = 2 * order * (order - 1) * float(kappa_upper(order, np.array([e]))[0]) * float(np.sum((a**0.5 - b**0.5) ** 2))
    assert left <= right * (1 + 1e-9) + 1e-15


def test_a_kappa_of_half_the_distance_is_too_small() -> None:
    """The mutant: kappa at e/2."""
    a, b = np.array([0.9, 0.1]), np.array([0.1, 0.9])
    e = math.log(9)
    left = float(np.sum(b * ((a / b) ** 3 - 1 - 3 * (a / b - 1))))
    hellinger = float(np.sum((a**0.5 - b**0.5) ** 2))
    assert left <= 12 * float(kappa_upper(3.0, np.array([e]))[0]) * hellinger
    assert left > 12 * float(kappa_upper(3.0, np.array([e / 2]))[0]) * hellinger


@given(epsilon=st.floats(-2, 20), order=log_uniform(1e-6, 1e6).map(lambda x: 1 + x), mu=log_uniform(1e-8, 10))
@settings(max_examples=200, deadline=None)
def test_delta_is_never_below_its_formula_and_close(epsilon: float, order: float, mu: float) -> None:
    found, true = renyi_delta_upper(epsilon, order, mu), min(mpmath.mpf(1), delta(epsilon, order, mu))
    assert true <= found
    size = order * (order * mu * mu + abs(epsilon)) + 20
    assert found <= true * (1 + 1e-13 * size) + 1e-300


@given(epsilon=st.floats(-1, 5), p=st.floats(0.01, 0.99), q=st.floats(0.01, 0.99), order=st.floats(1.01, 50))
def test_delta_bounds_the_hockey_stick_of_two_coins(epsilon: float, p: float, q: float, order: float) -> None:
    renyi = math.log(p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)) / (order - 1)
    mu = math.sqrt(max(1e-12, 2 * renyi / order)) * (1 + 1e-9)
    truth = sum(max(0.0, a - math.exp(epsilon) * b) for a, b in ((p, q), (1 - p, 1 - q)))
    assert renyi_delta_upper(epsilon, order, mu) >= truth - 1e-9


@pytest.mark.parametrize(("epsilon", "mu", "order"), [(0.5, 0.11525, 40), (1.0, 0.22070, 22), (2.0, 0.41987, 12.4)])
def test_the_numbers_of_the_theory(epsilon: float, mu: float, order: float) -> None:
    found = most_mu(epsilon, 1e-6)
    assert mu <= found.mu < mu + 2e-5
    assert found.order == pytest.approx(order, rel=0.01)
    assert mu <= most_mu(epsilon, 1e-6, order).mu <= found.mu * (1 + 1e-12)
    assert delta(epsilon, found.order, found.mu) <= 1e-6


@pytest.mark.parametrize(("epsilon", "order", "mu"), [(0.0, 2.0, 30.0), (1.0, 5.0, 1e200), (-1.0, 3.0, 2.0)])
def test_a_delta_is_a_probability_where_nothing_is_hidden(epsilon: float, order: float, mu: float) -> None:
    assert renyi_delta_upper(epsilon, order, mu) == 1.0


@given(epsilon=st.floats(0, 10), log_delta=st.floats(-30, -1))
@settings(max_examples=50, deadline=None)
def test_most_mu_is_private_and_tight(epsilon: float, log_delta: float) -> None:
    goal = math.exp(log_delta)
    found = most_mu(epsilon, goal)
    assert delta(epsilon, found.order, found.mu) <= goal
    others = [found.order * (1 + x) for x in (-0.01, 0.0, 0.01)]
    assert all(delta(epsilon, order, found.mu * (1 + 1e-6)) > goal for order in others if order > 1)


@given(mu=st.floats(1e-3, 3), log_delta=st.floats(-30, -1))
@settings(max_examples=50, deadline=None)
def test_epsilon_is_private_and_tight(mu: float, log_delta: float) -> None:
    goal = math.exp(log_delta)
    epsilon = renyi_epsilon(mu, goal)
    assert delta(epsilon, best_order(epsilon, mu), mu) <= goal
    if epsilon > 1e-6:
        short = epsilon * (1 - 1e-6)
        assert delta(short, best_order(short, mu), mu) > goal


def test_epsilon_of_no_distance_and_of_a_total_variation_below_delta() -> None:
    assert renyi_epsilon(0.0, 1e-6) == 0.0
    assert renyi_epsilon(1e-9, 0.1) == 0.0
    assert renyi_delta_upper(0.0, 2.0, 0.0) == 0.0
    assert renyi_delta_upper(-1.0, 2.0, 0.0) >= 1 - math.exp(-1)
    assert renyi_delta_upper(1.0, 2.0, 1e200) == 1.0


@given(information=log_uniform(1e-30, 1e30), displacement=log_uniform(1e-30, 1e30))
def test_mu_and_information_are_inverse_on_the_private_side(information: float, displacement: float) -> None:
    mu = mu_of(information, displacement)
    with mpmath.workdps(40):
        assert mpmath.mpf(mu) >= 2 * mpmath.sqrt(mpmath.mpf(information) * mpmath.mpf(displacement))
        back = most_information(displacement, mu)
        assert 4 * mpmath.mpf(back) * mpmath.mpf(displacement) <= mpmath.mpf(mu) ** 2
    assert back == pytest.approx(information, rel=1e-12)
    assert mu_of(back, displacement) <= mu


def test_nothing_moved_tells_nothing() -> None:
    assert mu_of(1e9, 0.0) == 0.0
    assert curve([1e9], 0.0, 1e-6)[0].epsilon == 0.0


def test_the_curve_grows_and_keeps_its_order() -> None:
    points = curve([0.01, 0.02, 0.04], 1.0, 1e-6)
    for here, there in itertools.pairwise(points):
        assert here.mu < there.mu
        assert here.epsilon < there.epsilon
    fixed = curve([0.01, 0.02, 0.04], 1.0, 1e-6, order=30.0)
    assert all(best.epsilon <= any_.epsilon * (1 + 1e-9) for best, any_ in zip(points, fixed, strict=True))
    assert all(delta(p.epsilon, 30.0, p.mu) <= 1e-6 for p in fixed)


def test_two_normal_channels_are_at_the_bound() -> None:
    """z ~ N(b s, 1), iota = b^2: moving every row by d against by -d has D_alpha = alpha mu^2/2 exactly."""
    b, d, rows, order = 0.3, 0.2, 7, 5.0
    divergence = order * rows * (b * 2 * d) ** 2 / 2
    mu = mu_of(b * b, rows * d * d)
    assert divergence == pytest.approx(order * mu * mu / 2, rel=1e-12)
    assert divergence <= order * mu * mu / 2


@pytest.mark.parametrize(("said", "share"), [(0.25, 0.25), ("0.25", 0.25), ("25%", 0.25), (" 25 % ", 0.25)])
def test_what_is_explained(said: float | str, share: float) -> None:
    true = share / (1 - share) / 9.0
    assert true <= explained(said, 9.0) <= true * (1 + 1e-12)


@pytest.mark.parametrize("bad", [0.0, 1.0, 1.5, -0.1, math.nan, math.inf, "", "much", "110%", "nan", "inf"])
def test_a_share_that_is_none_is_refused(bad: float | str) -> None:
    with pytest.raises(UsageError, match="information: "):
        explained(bad, 1.0)


@pytest.mark.parametrize("bad", [*BAD, 0.0])
def test_bad_numbers_are_refused(bad: float) -> None:
    with pytest.raises(UsageError, match="variance: "):
        explained(0.5, bad)
    with pytest.raises(UsageError, match="information: "):
        Channel(bad)
    with pytest.raises(UsageError, match="slope: "):
        Channel(1.0, bad)
    with pytest.raises(UsageError, match="information: "):
        mu_of(bad, 1.0)
    with pytest.raises(UsageError, match="displacement: "):
        most_information(bad, 1.0)
    with pytest.raises(UsageError, match="mu: "):
        most_information(1.0, bad)
    with pytest.raises(UsageError, match="mu: "):
        best_order(1.0, bad)
    with pytest.raises(UsageError, match="delta: "):
        most_mu(1.0, bad)
    with pytest.raises(UsageError, match="order: "):
        most_mu(1.0, 1e-6, bad)
    with pytest.raises(UsageError, match="order: "):
        renyi_epsilon(1.0, 1e-6, bad)
    with pytest.raises(UsageError, match="order: "):
        Channel(1.0).weight(np.zeros(1), bad)


@pytest.mark.parametrize("bad", BAD)
def test_bad_distances_are_refused(bad: float) -> None:
    with pytest.raises(UsageError, match="slope: "):
        kappa_upper(2.0, np.array([0.0, bad]))
    with pytest.raises(UsageError, match="mu: "):
        renyi_delta_upper(1.0, 2.0, bad)
    with pytest.raises(UsageError, match="displacement: "):
        mu_of(1.0, bad)
    with pytest.raises(UsageError, match="epsilon: "):
        most_mu(bad, 1e-6)
    with pytest.raises(UsageError, match="epsilon: "):
        renyi_delta_upper(bad if bad != -1.0 else 1e200, 2.0, 1.0)


def test_a_slope_that_tells_everything_is_refused() -> None:
    with pytest.raises(UsageError, match="slope: "):
        kappa_upper(2.0, np.array([50.1]))
    with pytest.raises(UsageError, match="displacement: so large"):
        mu_of(1.7e308, 1.7e308)


def test_weights() -> None:
    moved = np.array([0.0, 0.1, 0.2])
    assert np.array_equal(Channel(1.0).weight(moved, 5.0), np.ones(3))
    found = Channel(1.0, 3.0).weight(moved, 5.0)
    assert all(kappa(5.0, 6.0 * float(d)) <= float(w) for d, w in zip(moved[1:], found[1:], strict=True))
    assert found[0] == pytest.approx(1.0)


# ------------------------------------------------------------------------------------------------------------------ edges


@pytest.mark.parametrize("order", [1.001, 2.0, 7.5, 40.0])
def test_kappa_of_many_distances_at_once_is_that_of_each(order: float) -> None:
    """The furthest one decides how many terms there are; none of the others may lose by it."""
    places = np.array([0.3, 0.0, 1e-9, 2.4, 0.01, 1e-160, 1.7])
    found = kappa_upper(order, places)
    for e, value in zip(places.tolist(), found.tolist(), strict=True):
        true = kappa(order, max(e, 1e-150))
        assert true <= value <= true * (1 + 1e-11)
    assert kappa_upper(order, np.array([[0.3, 0.1], [0.2, 0.0]])).shape == (2, 2)
    assert kappa_upper(order, np.zeros(0)).shape == (0,)


@pytest.mark.parametrize(("order", "e"), [(2.0, 50.0), (50.0, 2.0), (1.0 + 2.0**-50, 99.0), (4.0, 25.0)])
def test_kappa_as_far_as_it_is_computed(order: float, e: float) -> None:
    found, true = float(kappa_upper(order, np.array([e]))[0]), kappa(order, e)
    assert true <= found <= true * (1 + 1e-11)
    with pytest.raises(UsageError, match="slope: "):
        kappa_upper(order, np.array([0.0, 101.0 / order]))
    for wrong in ([0.1, -1e-9], [-1e-9, 0.1], [-0.1]):
        with pytest.raises(UsageError, match="slope: "):
            kappa_upper(order, np.array(wrong))


def test_orders_from_just_above_one_to_the_largest() -> None:
    for order in (1 + 2.0**-52, 1.5, 2.0, 2.0**50, 2.0**51):
        assert 0 < renyi_delta_upper(3.0, order, 0.1) <= 1
        assert Channel(1.0).weight(np.zeros(2), order).tolist() == [1.0, 1.0]
    for order in (1.0, 0.5, 2.0**51 * (1 + 1e-9), math.inf):
        with pytest.raises(UsageError, match="order: "):
            renyi_delta_upper(3.0, order, 0.1)


def test_a_delta_is_never_rounded_to_nothing() -> None:
    """Where the exponential underflows the least float is left; the same law twice has none."""
    assert 0 < renyi_delta_upper(1e6, 3.0, 0.1) <= 1e-300
    assert renyi_delta_upper(1e6, 3.0, 0.0) == 0.0
    assert renyi_delta_upper(-1e6, 3.0, 0.0) == 1.0
    for epsilon in (-0.25, -1.5):
        assert renyi_delta_upper(epsilon, 3.0, 0.0) == pytest.approx(1 - math.exp(epsilon), rel=1e-12)
    assert renyi_delta_upper(1.0, 3.0, 1e100) == 1.0


@pytest.mark.parametrize("mu", [0.05, 0.5, 4.0, 40.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 2.0, 30.0])
def test_the_best_order_is_best(epsilon: float, mu: float) -> None:
    """No order of a fine grid has less delta; where even the least order has more than all, any is as good."""
    best = best_order(epsilon, mu)
    least = min(delta(epsilon, 1 + b, mu) for b in np.geomspace(1e-6, 1e6, 400).tolist())
    assert delta(epsilon, best, mu) <= least * (1 + 1e-6)


@pytest.mark.parametrize("order", [None, 3.0, 25.0])
@pytest.mark.parametrize("mu", [0.02, 0.7, 6.0])
@pytest.mark.parametrize("goal", [1e-9, 0.3])
def test_epsilon_at_an_order_is_where_delta_is_used_up(mu: float, goal: float, order: float | None) -> None:
    """Just there delta holds, a little below it does not; 0 only where it holds there."""
    epsilon = renyi_epsilon(mu, goal, order)

    def needed(at: float) -> mpmath.mpf:
        return delta(at, best_order(at, mu) if order is None else order, mu)

    assert needed(epsilon) <= goal
    assert (epsilon == 0.0) == (needed(0.0) <= goal * (1 - 1e-9))
    if epsilon:
        assert needed(epsilon * (1 - 1e-9)) > goal
    found = most_mu(max(epsilon, 0.1), goal, order)
    assert found.order == (order or best_order(max(epsilon, 0.1), found.mu))


@pytest.mark.parametrize("low", [1e-300, 1.0, 1e300])
def test_information_of_extreme_numbers(low: float) -> None:
    """Products that leave the floats in one order of factors and not in the other; so large that none is left is refused."""
    back = most_information(low, 0.5)
    with mpmath.workdps(40):
        true = mpmath.mpf(0.5) ** 2 / (4 * mpmath.mpf(low))
        assert true * (1 - mpmath.mpf(10) ** -12) <= mpmath.mpf(back) <= true
    with pytest.raises(UsageError, match="information: "):
        most_information(1e300, 1e-100)
    assert mu_of(1e-320, 1e-2) > 0


@pytest.mark.parametrize("slope", [0.5, 3.0])
def test_weights_of_a_slope_take_the_ratio_of_two_shown_values(slope: float) -> None:
    """kappa at 2 Lambda d: a row that moves by d may change what is shown by a factor in either direction."""
    moved = np.array([0.05, 0.4, 1.3])
    found = Channel(2.0, slope).weight(moved, 4.0)
    for d, value in zip(moved.tolist(), found.tolist(), strict=True):
        true = kappa(4.0, 2 * slope * d)
        assert true <= value <= true * (1 + 1e-9)
