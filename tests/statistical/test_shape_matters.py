"""Why the shape of rows matters: what methods that rest on normal rows give away on the real rows of Adult.

Tables with a given mean of the sensitive column are drawn from the tilted law, to which rows given that mean tend. Assumptions
are fitted as they were before rows were looked at: from moments alone. The seeds are fixed. Without the data: skipped.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq

import attrpriv as ap
from attrpriv.assumptions.fit import fit_moments
from attrpriv.methods.calibrated_weights.proof import WeightsEvidence
from attrpriv.methods.choice.choose import plan
from attrpriv.numerics.calibration.gaussian import gaussian_mu
from attrpriv.problem.problem import Problem
from attrpriv.queries.sql import parse_queries
from examples.adult import load
from tests.statistical.test_shape_coverage import DEFAULT, NUMERIC, Sample

Numbers = NDArray[np.float64]
N, EPSILON, DELTA = 1000, 1.0, 1e-6


@pytest.fixture(scope="module")
def adult(shared: Path) -> dict[str, Numbers]:
    if not all((shared / "data" / name).is_file() for name in load.FILES):
        pytest.skip("needs the UCI Adult data in ../shared/data")
    table = load.load(shared / "data").train
    return {column: table[column].to_numpy().astype(np.float64) for column in NUMERIC}


def problem(adult: dict[str, Numbers], released: str, hidden: str, between: tuple[float, float]) -> Problem:
    rows = np.stack([adult[released], adult[hidden]], axis=1)
    moments = Sample(len(rows), (released, hidden), tuple(rows.mean(axis=0)), tuple(map(tuple, np.cov(rows, rowvar=False))))
    box = fit_moments(moments, sensitive=[hidden], queries=[released], confidence=DEFAULT).gaussian
    secret = ap.Secret(f"mean({hidden})", between=between)
    policy = ap.Policy(epsilon=EPSILON, delta=DELTA, protect=[secret], assume=box)
    return policy.problem(parse_queries(f"avg({released})"), N, dict.fromkeys(NUMERIC, "integer"))


def weights(asked: Problem) -> WeightsEvidence:
    evidence = plan(asked, "calibrated_weights").certificate.evidence
    assert isinstance(evidence, WeightsEvidence)
    return evidence


def tilted(values: Numbers, mean: float) -> Numbers:
    """The probability of each row in the law nearest to that of the data with this mean."""
    z, d = (values - values.mean()) / values.std(), (mean - values.mean()) / values.std()

    def law(t: float) -> Numbers:
        weight = np.exp(t * z - np.max(t * z))
        return np.asarray(weight / weight.sum(), dtype=np.float64)

    return law(float(brentq(lambda t: float(law(t) @ z) - d, -50.0, 50.0)))


def tables(probabilities: Numbers, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    reached = np.cumsum(probabilities)
    return np.searchsorted(reached / reached[-1], rng.random((count, N)))


def test_the_failure_of_weights_tells_a_heavy_tailed_secret(adult: dict[str, Numbers]) -> None:
    """Promised is a failure with probability 1e-6 at most, whatever the secret is."""
    evidence = weights(problem(adult, "hours_per_week", "capital_gain", (500, 2000)))
    assert evidence.failing() <= DELTA
    gain, rng = adult["capital_gain"], np.random.default_rng(1)
    failed = []
    for mean in (500, 2000):
        drawn = gain[tables(tilted(gain, mean), 400, rng)]
        needed = (1 + (evidence.target[0] - drawn.mean(axis=1)) ** 2 / drawn.var(axis=1)) / N
        failed.append(float(np.mean(needed > evidence.bound)))
    assert failed[0] > 0.4
    assert failed[1] < 0.02


@pytest.mark.slow
def test_weights_on_rows_of_unequal_spread_miss_the_promise(adult: dict[str, Numbers]) -> None:
    """An adversary who looks whether the answer lies far out is right too often; the event is chosen on other tables."""
    evidence = weights(problem(adult, "capital_gain", "education_num", (9.5, 10.7)))
    rng = np.random.default_rng(2)
    low, high = (answers(adult, evidence, mean, rng) for mean in (9.5, 10.7))
    both = np.concatenate([low[0], high[0]])
    ends = np.quantile(both, np.linspace(0.001, 0.999, 200))

    def gain(k: int, below: float, above: float) -> float:
        outside = [float(np.mean((one[k] < below) | (one[k] > above))) for one in (low, high)]
        return outside[0] - math.exp(EPSILON) * outside[1]

    below = max(ends, key=lambda c: gain(0, c, math.inf))
    above = max(ends, key=lambda c: gain(0, -math.inf, c))
    assert gain(1, below, above) > 1000 * DELTA  # about 0.01


def answers(
    adult: dict[str, Numbers], evidence: WeightsEvidence, mean: float, rng: np.random.Generator
) -> tuple[Numbers, Numbers]:
    """What calibrated weights answer on tables with this mean, in two halves."""
    law, found = tilted(adult["education_num"], mean), []
    for _ in range(12):
        rows = tables(law, 1000, rng)
        x, y = adult["education_num"][rows], adult["capital_gain"][rows]
        centre = x.mean(axis=1, keepdims=True)
        d = x - centre
        squares = (d * d).sum(axis=1, keepdims=True)
        w = 1 / N + d * (evidence.target[0] - centre) / squares
        left = np.sqrt(np.maximum(evidence.bound - (w * w).sum(axis=1), 0.0))
        residual = y - y.mean(axis=1, keepdims=True) - (d * y).sum(axis=1, keepdims=True) / squares * d
        # a random direction among those that leave the weights' sums alone
        found.append((w * y).sum(axis=1) + left * np.sqrt((residual**2).sum(axis=1) / (N - 2)) * rng.normal(size=len(y)))
    return np.concatenate(found[:6]), np.concatenate(found[6:])


@pytest.mark.parametrize(
    ("released", "hidden", "mean"),
    [
        ("age", "education_num", 10.7),
        ("age", "education_num", 9.5),
        ("hours_per_week", "age", 41),
        ("hours_per_week", "age", 36),
    ],
)
def test_curvature_moves_an_average_by_what_the_theory_says(
    adult: dict[str, Numbers], released: str, hidden: str, mean: float
) -> None:
    """Nearly as far as the whole budget allows two answers to be apart; `transport` takes back a line."""
    q, g = adult[released], adult[hidden]
    z, d = (g - g.mean()) / g.std(), (mean - g.mean()) / g.std()
    slope = float(np.mean((q - q.mean()) * z))
    e = q - q.mean() - slope * z
    moved = float(tilted(g, mean) @ e) / e.std() * math.sqrt(N)
    curvature = float(np.mean(e * z * z)) / e.std()
    assert moved == pytest.approx(math.sqrt(N) * d**2 * curvature / 2, rel=0.05)
    assert abs(moved) > 0.8 * gaussian_mu(EPSILON, DELTA)
