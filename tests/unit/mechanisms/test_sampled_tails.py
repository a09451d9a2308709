"""Statistics that are not quite normal: the true delta of simulated plans, from the exact laws of quantiles of normal rows.

Of n standard normal rows the quantile is the average plus something independent of it (Basu), so given the average a it is
a + O, where O has the characteristic function of the order statistic divided by that of N(0, 1/n). With noise, the density
follows by one Fourier transform, and the hockey-stick divergence of two secrets by a sum.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from scipy.special import gammaln, log_ndtr

from attrpriv.assumptions import Gaussian
from attrpriv.errors import CertificateError, RefusedError
from attrpriv.framework import Problem, Secret
from attrpriv.framework.sampling import Sampled
from attrpriv.guarantee import sampled as evidence
from attrpriv.mechanisms import plan
from attrpriv.mechanisms import sampled as mechanism
from attrpriv.queries.sql import parse_queries
from tests.unit.mechanisms.test_sampled import groups

POINTS = 1 << 16


def scale(level: float, n: int, gap: float, epsilon: float, delta: float, runs: int) -> float:
    problem = Problem(
        queries=parse_queries(f"approx_quantile(x, {level})"),
        secrets=(Secret("mean(x)", within=gap),),
        epsilon=epsilon,
        delta=delta,
        n=n,
        theta=(Gaussian(mean={"x": 0.0}, sd={"x": 1.0}, tolerance=0),),
        sampled=Sampled(runs=runs),
        resolution={"x": 1e-6},
    )
    return plan(problem, "gaussian_approximation").noise.scale


@cache
def order_statistic(level: float, n: int, half: float) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies, and the transform of the density of the place-th of n standard normal rows on a grid over +-half."""
    place = math.ceil(level * n - 1e-12)
    step = 2 * half / POINTS
    x = (np.arange(POINTS) - POINTS // 2) * step
    logs = gammaln(n + 1) - gammaln(place) - gammaln(n - place + 1) + (place - 1) * log_ndtr(x) + (n - place) * log_ndtr(-x)
    return 2 * np.pi * np.fft.fftfreq(POINTS, step), np.fft.fft(np.exp(logs - x * x / 2)) / math.sqrt(2 * math.pi)


def true_delta(level: float, n: int, noise: float, gap: float, epsilon: float) -> float:
    half = 12 * noise + 8
    frequencies, transform = order_statistic(level, n, half)
    exponent = frequencies**2 * (1 / n - noise**2) / 2
    found = transform * np.exp(np.minimum(exponent, 0.0))  # with more noise than averages have, nothing grows
    assert noise**2 > 1 / n
    density = np.fft.ifft(found).real
    moved = np.fft.ifft(found * np.exp(-1j * frequencies * gap)).real
    floor, step = 1e-13 * density.max(), 2 * half / POINTS
    sides = ((density, moved), (moved, density))
    return max(float(excess[excess > floor].sum()) * step for p, q in sides for excess in [p - math.exp(epsilon) * q])


CASES = [
    (0.001, 1e-6, 0.07, 1_000),  # with more draws it is seen not to be normal, and refused
    (0.001, 1e-3, 0.14, 1_000),
    (0.05, 1e-6, 0.014, 1_000),
    (0.05, 1e-6, 0.014, 20_000),
    (0.5, 1e-6, 0.1, 20_000),
]


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize(("level", "delta", "gap", "runs"), CASES)
def test_no_delta_is_above_the_promise(level: float, delta: float, gap: float, runs: int, epsilon: float) -> None:
    noise = scale(level, 500, gap, epsilon, delta, runs)
    assert true_delta(level, 500, noise, gap, epsilon) <= delta


def test_without_noise_for_the_tails_it_would_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: a law that is taken as normal where a thousand draws cannot tell; hundreds of times delta.

    The certificate finds a plan without that noise, and lets it pass only where its own check is taken out too.
    """
    monkeypatch.setattr(mechanism, "smoothing_noise", lambda *_: 1.1 / 1000)
    with pytest.raises(CertificateError):
        scale(0.001, 1000, 0.07, 1.0, 1e-6, 1_000)
    monkeypatch.setattr(evidence, "tail_share", lambda *_: 0.0)
    noise = scale(0.001, 1000, 0.07, 1.0, 1e-6, 1_000)
    assert true_delta(0.001, 1000, noise, 0.07, 1.0) > 100 * 1e-6


def test_a_law_that_is_not_normal_is_refused_where_draws_can_tell() -> None:
    with pytest.raises(RefusedError, match="away from a normal one"):
        scale(0.001, 500, 0.07, 1.0, 1e-6, 20_000)


def test_few_draws_ask_for_more_noise() -> None:
    few, many = (scale(0.5, 500, 0.001, 1.0, 1e-6, runs) for runs in (1_000, 100_000))
    assert few > 1.5 * many


def test_a_quantile_may_leap_between_counts() -> None:
    """With categories far apart a median leaps where half of the rows are of one: only pairs of ends are not enough."""
    problem = Problem(
        queries=parse_queries("median(hours)"),
        secrets=(Secret("count(gender = 'F')", between=(200, 800), within=20),),
        epsilon=1.0,
        delta=1e-3,
        n=1_000,
        theta=(groups(),),
        sampled=Sampled(runs=1_000),
        resolution={"hours": 0.01},
    )
    with pytest.raises(RefusedError, match="a quantile may leap between two counts"):
        plan(problem, "gaussian_approximation")
    whole = problem.model_copy(update={"secrets": (Secret("count(gender = 'F')", between=(480, 520)),)})
    assert plan(whole, "gaussian_approximation").guarantee.kind == "sampled"


def test_a_large_delta_is_planned_for_a_quarter() -> None:
    assert 0 < scale(0.5, 500, 0.1, 1.0, 0.6, 1_000) <= scale(0.5, 500, 0.1, 1.0, 0.2, 1_000)
