"""Mixtures of normal laws: never below the integral in many digits, and close to it, on both ways of computing."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences import gaussian_mixture
from attrpriv.numerics.divergences.gaussian import gaussian_delta, hockey_stick
from attrpriv.numerics.divergences.gaussian_mixture import _by_cells, _direction, _excess, _Pair, gaussian_mixture_delta_upper
from attrpriv.numerics.laws.gaussian import GaussianMixture
from attrpriv.numerics.laws.lattice import binomial_sum, record_sum


def truth(p: GaussianMixture, q: GaussianMixture, epsilon: float) -> float:
    """The positive part of f - e^eps g on a fine grid between its sign changes, which are then found by bisection."""
    sd = math.sqrt(p.variance)
    x = np.linspace(min(p.means[0], q.means[0]) - 12 * sd, max(p.means[-1], q.means[-1]) + 12 * sd, 4_001)
    signs = np.array([excess(p, q, epsilon, point) > 0 for point in x])
    edges = [float(x[0])] if signs[0] else []
    changes = np.flatnonzero(signs[1:] != signs[:-1])
    edges.extend(root(p, q, epsilon, float(x[i]), float(x[i + 1])) for i in changes)
    if signs[-1]:
        edges.append(float(x[-1]))
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return float(sum(mass(p, a, b) - mpmath.exp(epsilon) * mass(q, a, b) for a, b in pairs))


def excess(p: GaussianMixture, q: GaussianMixture, epsilon: float, x: float) -> float:
    f, g = (float(np.dot(law.weights, np.exp(-((x - law.means) ** 2) / (2 * law.variance)))) for law in (p, q))
    return f - math.exp(epsilon) * g


def root(p: GaussianMixture, q: GaussianMixture, epsilon: float, low: float, high: float) -> float:
    rising = excess(p, q, epsilon, high) > 0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if (excess(p, q, epsilon, middle) > 0) == rising else (middle, high)
    return high


def mass(law: GaussianMixture, low: float, high: float) -> mpmath.mpf:
    with mpmath.workdps(40):
        sd = mpmath.sqrt(mpmath.mpf(law.variance))
        return mpmath.fsum(
            mpmath.mpf(float(w))
            * (mpmath.ncdf((high - mpmath.mpf(float(m))) / sd) - mpmath.ncdf((low - mpmath.mpf(float(m))) / sd))
            for w, m in zip(law.weights, law.means, strict=True)
        )


def event(n: int, p: float, sd: float) -> GaussianMixture:
    return GaussianMixture.of(binomial_sum(n, p, 0, p), sd * sd)


@pytest.mark.parametrize(("sd", "delta"), [(2.430088, 1e-5), (1.569241, 1e-3)])
def test_the_first_example(sd: float, delta: float) -> None:
    """The least normal noise for Bin(4, .4) against Bin(4, .6) at epsilon 1, both ways."""
    for sign in (1, -1):
        ends = [event(4, p, sd * (1 + shift)) for shift in (-1e-6, 1e-6) for p in (0.4, 0.6)[::sign]]
        assert hockey_stick(ends[0], ends[1], 1.0) > delta > hockey_stick(ends[2], ends[3], 1.0)


@given(n=st.integers(1, 8), p=st.floats(0.05, 0.95), q=st.floats(0.05, 0.95), sd=st.floats(0.3, 4), epsilon=st.floats(0, 2))
@settings(max_examples=15, deadline=None)
def test_events(n: int, p: float, q: float, sd: float, epsilon: float) -> None:
    first, second = event(n, p, sd), event(n, q, sd)
    true = truth(first, second, epsilon)
    room = (1 + math.exp(epsilon)) * 1e-9
    assert true - 1e-14 <= gaussian_mixture_delta_upper(first, second, epsilon) <= true + room
    assert true - 1e-14 <= _by_cells(first, second, epsilon) <= true + room


@given(
    weights=st.lists(st.lists(st.integers(0, 5), min_size=5, max_size=5).filter(any), min_size=2, max_size=2),
    sd=st.floats(0.3, 2),
    epsilon=st.floats(0, 1.5),
)
@settings(max_examples=15, deadline=None)
def test_any_weights(weights: list[list[int]], sd: float, epsilon: float) -> None:
    """Several sign changes."""
    p, q = (GaussianMixture(np.array(row) / sum(row), np.arange(5.0), sd * sd) for row in weights)
    true = truth(p, q, epsilon)
    assert true - 1e-13 <= gaussian_mixture_delta_upper(p, q, epsilon) <= true + 1e-9


def test_several_sign_changes_need_more_than_one_half_line() -> None:
    """The mutant: one crossing, as for events, misses half of it."""
    p, q = GaussianMixture(np.array([0.5, 0, 0.5]), np.arange(3.0), 0.01), GaussianMixture(np.ones(1), np.ones(1), 0.01)
    assert _direction(p, q) == 0
    assert gaussian_mixture_delta_upper(p, q, 1.0) > 0.99
    half_line = max(float(mass(p, x, 50)) - math.e * float(mass(q, x, 50)) for x in np.linspace(-1, 3, 81))
    assert half_line < 0.51


@pytest.mark.parametrize("sd", [0.4, 1.3])
@pytest.mark.parametrize("places", [(1.0, (0.0, 2.0)), (5.0, (0.0, 1.0, 7.0)), (-6.0, (-7.0, -5.0, 1.0)), (0.0, (-9.0, 9.0))])
def test_where_a_law_lies_does_not_matter(places: tuple[float, tuple[float, ...]], sd: float) -> None:
    """One point between others, far or near, on both sides of 0; both ways, and mirrored."""
    middle, around = places
    one = GaussianMixture(np.ones(1), np.array([middle]), sd * sd)
    other = GaussianMixture(np.ones(len(around)) / len(around), np.array(around), sd * sd)
    for p, q in ((one, other), (other, one)):
        assert _direction(p, q) == 0
        true = truth(p, q, 0.3)
        turned = [GaussianMixture(law.weights[::-1], -law.means[::-1], law.variance) for law in (p, q)]
        moved = [GaussianMixture(law.weights, law.means + 1_000.0, law.variance) for law in (p, q)]
        for pair in ((p, q), turned, moved):
            assert true - 1e-13 <= gaussian_mixture_delta_upper(pair[0], pair[1], 0.3) <= true + 1e-9


@pytest.mark.parametrize("half", [1e-3, 0.03, 0.4])
def test_how_much_a_difference_changes_within_a_cell(half: float) -> None:
    """d and a bound on |d'|, against both at many points of every cell: near means, between them and far out."""
    p, q = mixtures = (
        GaussianMixture(np.array([0.7, 0.3]), np.array([0.0, 2.0]), 1.0), GaussianMixture(np.ones(1), np.array([5.0]), 1.0)
    )  # fmt: skip
    centres = np.linspace(-6, 11, 171)
    factor = math.exp(0.5)
    value, change = _excess(p, q, _Pair(p, q, 1), factor, centres, half)

    def sides(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        away = [x[..., None] - law.means for law in mixtures]
        bells = [law.weights * np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) for law, z in zip(mixtures, away, strict=True)]
        slopes = [-(z * bell).sum(axis=-1) for z, bell in zip(away, bells, strict=True)]
        return bells[0].sum(axis=-1) - factor * bells[1].sum(axis=-1), slopes[0] - factor * slopes[1]

    assert value == pytest.approx(sides(centres)[0], rel=1e-9, abs=1e-15)
    inside = centres[:, None] + half * np.linspace(-1, 1, 41)
    steepest = np.abs(sides(inside)[1]).max(axis=1)
    assert (change >= steepest * (1 - 1e-12)).all()
    # Where one bell is all there is the bound is no more than the cell's width makes it.
    alone = centres < -3
    assert (change[alone] <= steepest[alone] * (1 + 2 * half / (3 - 2 * half)) * math.exp(1e-9) * 1.1).all()


@pytest.mark.parametrize(("rounds", "room"), [(0, 0.02), (1, 1e-4), (2, 1e-6)])
def test_cells_that_stay_uncertain_are_counted(monkeypatch: pytest.MonkeyPatch, rounds: int, room: float) -> None:
    """However seldom they are cut finer: never below the truth, and nearer to it each time."""
    monkeypatch.setattr(gaussian_mixture, "_ROUNDS", rounds)
    p, q = (GaussianMixture(np.array(row), np.arange(4.0), 0.09) for row in ((0.4, 0.1, 0.4, 0.1), (0.1, 0.4, 0.1, 0.4)))
    for epsilon in (0.0, 0.3, 1.0):
        true = truth(p, q, epsilon)
        found = gaussian_mixture_delta_upper(p, q, epsilon)
        assert true + room / 1000 < found < true + room


def test_one_component_is_the_gaussian_formula() -> None:
    for distance in (0.5, 2.0, 6.0):
        p, q = (GaussianMixture(np.ones(1), np.array([mean]), 4.0) for mean in (0.0, distance))
        for epsilon in (0.0, 0.7, 3.0):
            exactly = gaussian_delta(epsilon, distance / 2)
            assert exactly <= gaussian_mixture_delta_upper(p, q, epsilon) <= exactly + 1e-9


def test_the_same_law_and_a_bounded_ratio() -> None:
    p = event(4, 0.4, 1.0)
    assert gaussian_mixture_delta_upper(p, p, 0.5) < 1e-12
    # Beyond the largest log-ratio of the weights nothing is left.
    assert gaussian_mixture_delta_upper(p, event(4, 0.6, 1.0), 1.7) < 1e-12


def test_what_is_lost_is_charged() -> None:
    whole = [event(30, p, 1.0) for p in (0.4, 0.5)]
    windows = [GaussianMixture.of(binomial_sum(30, p, 0, p, tail=1e-3), 1.0) for p in (0.4, 0.5)]
    assert windows[0].lost > 0
    upper = [gaussian_mixture_delta_upper(p, q, 0.5) for p, q in (windows, whole)]
    assert upper[0] >= upper[1] + windows[0].lost / 2


def test_a_million_rows() -> None:
    laws = [GaussianMixture.of(binomial_sum(a, 0.4, 10**6 - a, 0.6, tail=1e-12), 100.0**2) for a in (500_000, 500_500)]
    sd = math.sqrt(240_000 + 100**2)
    assert hockey_stick(laws[0], laws[1], 0.1) == pytest.approx(gaussian_delta(0.1, 100 / sd), rel=1e-3)


def test_integer_records() -> None:
    laws = [record_sum((0, 1, 4), (0.5, 0.3, 0.2), a, (0.2, 0.3, 0.5), 5 - a) for a in (1, 4)]
    p, q = (GaussianMixture.of(law, 1.0) for law in laws)
    true = truth(p, q, 0.5)
    assert true <= hockey_stick(p, q, 0.5) <= true + 1e-9


@pytest.mark.parametrize(
    "make",
    [
        lambda: GaussianMixture(np.array([]), np.array([]), 1.0),
        lambda: GaussianMixture(np.ones(1), np.ones(2), 1.0),
        lambda: GaussianMixture(np.ones(2) / 2, np.zeros(2), 1.0),
        lambda: GaussianMixture(np.ones(1), np.zeros(1), 0.0),
        lambda: GaussianMixture(np.ones(1), np.array([math.nan]), 1.0),
        lambda: GaussianMixture(np.array([-1.0, 2.0]), np.arange(2.0), 1.0),
        lambda: GaussianMixture(np.ones(1), np.zeros(1), 1.0, math.nan),
        lambda: gaussian_mixture_delta_upper(event(2, 0.5, 1.0), event(2, 0.5, 2.0), 1.0),
        lambda: gaussian_mixture_delta_upper(event(2, 0.5, 1.0), event(2, 0.6, 1.0), math.nan),
        lambda: gaussian_mixture_delta_upper(event(2, 0.5, 1.0), event(2, 0.6, 1.0), -1.0),
    ],
)
def test_what_is_refused(make: object) -> None:
    with pytest.raises(UsageError):
        make()  # type: ignore[operator]
