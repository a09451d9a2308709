"""Fitted boxes contain the truth as often as they say, over simulated public tables; and so the noise they lead to suffices.

A simulated table is its sufficient statistics: the mean of n normal rows and, independently, their covariance (Bartlett's
decomposition of a Wishart matrix). The tests are one-sided binomial tests: a coverage of exactly the confidence would fail one
of them with probability `FALSE_ALARM`. The seeds are fixed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from attrpriv.assumptions import fit as module
from attrpriv.assumptions.fit import Fit, fit_moments
from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.assumptions.worst_case import worst
from attrpriv.numerics.calibration.gaussian import gaussian_mu
from attrpriv.numerics.divergences.gaussian import gaussian_delta

Matrix = NDArray[np.float64]
FALSE_ALARM = 1e-7
DIGEST = "0" * 64


@dataclass(frozen=True)
class Truth:
    """A population, and which of its columns are published and which are sensitive."""

    columns: tuple[str, ...]
    mean: Matrix
    sd: Matrix
    correlation: Matrix
    queries: tuple[str, ...]
    sensitive: tuple[str, ...]

    @property
    def covariance(self) -> Matrix:
        return self.correlation * np.outer(self.sd, self.sd)

    def slope(self, q: int, g: int) -> float:
        return float(self.correlation[q, g] * self.sd[q] / self.sd[g])


def truth(rho: Sequence[Sequence[float]], queries: str, sensitive: str) -> Truth:
    size = len(rho)
    means, sds = np.array([150.0, 6e4, 1050.0, 66.0]), np.array([25.0, 3e4, 200.0, 4.0])
    return Truth(tuple("wish"[:size]), means[:size], sds[:size], np.array(rho), tuple(queries), tuple(sensitive))


SCHOOL = truth([[1, 0.3], [0.3, 1]], "w", "i")
STRONG = truth([[1, -0.95], [-0.95, 1]], "w", "i")
UNRELATED = truth([[1, 0.0], [0.0, 1]], "w", "i")  # no relative tolerance is natural
FOUR = truth([[1, 0.3, 0.1, 0.5], [0.3, 1, 0.4, 0.1], [0.1, 0.4, 1, 0.0], [0.5, 0.1, 0.0, 1]], "wh", "is")


@dataclass(frozen=True)
class Sample:
    rows: int
    columns: tuple[str, ...]
    means: tuple[float, ...]
    covariance: tuple[tuple[float, ...], ...]
    digest: str = DIGEST


def samples(law: Truth, rows: int, count: int, seed: int) -> Iterator[Sample]:
    """Public tables of so many rows, by their means and covariances."""
    rng = np.random.default_rng(seed)
    size = len(law.columns)
    root = np.linalg.cholesky(law.covariance)
    means = law.mean + rng.normal(size=(count, size)) @ root.T / math.sqrt(rows)
    bartlett = np.tril(rng.normal(size=(count, size, size)), -1)
    for k in range(size):
        bartlett[:, k, k] = np.sqrt(rng.chisquare(rows - 1 - k, size=count))
    factor = root @ bartlett
    covariances = factor @ factor.transpose(0, 2, 1) / (rows - 1)
    for mean, covariance in zip(means.tolist(), covariances.tolist(), strict=True):
        yield Sample(rows, law.columns, tuple(mean), tuple(map(tuple, covariance)))


def fits(law: Truth, rows: int, confidence: float, count: int, seed: int) -> Iterator[Fit]:
    for sample in samples(law, rows, count, seed):
        yield fit_moments(sample, sensitive=law.sensitive, queries=law.queries, confidence=confidence)


def inside(box: Gaussian, law: Truth) -> bool:
    """Whether the population is one of the box, by what the assumption's page says of each tolerance."""
    t, size = box.tolerance, range(len(law.columns))
    for k, column in enumerate(law.columns):
        stated = box.sd_of(column)
        if abs(law.sd[k] - stated) > t.sd * stated:
            return False
        if abs(law.mean[k] - box.mean[column]) > t.mean * min(law.sd[k], stated):
            return False
    pairs = [(q, g) for q in size for g in size if q != g]
    if t.correlation is not None:
        stated_of = box.correlation_of
        return all(abs(law.correlation[j, k] - stated_of(law.columns[j], law.columns[k])) <= t.correlation for j, k in pairs)
    return all(_slope_inside(box, law, q, g) for q, g in pairs)


def _slope_inside(box: Gaussian, law: Truth, q: int, g: int) -> bool:
    first, second = law.columns[q], law.columns[g]
    t, r = box.tolerance.sd, box.tolerance.slope or 0.0
    if first in law.queries and second in law.sensitive:
        stated = box.slope(first, second)
        return abs(law.slope(q, g) - stated) <= r * abs(stated)
    # Among others the correlation may move as far as such a slope and the sds allow.
    rho, stretch = box.correlation_of(first, second), (1 + t) / (1 - t)
    ends = [rho * (1 + sign * r) * s for sign in (-1, 1) for s in (stretch, 1 / stretch)]
    return bool(min(ends) <= law.correlation[q, g] <= max(ends))


def too_many(misses: int, count: int, risk: float) -> bool:
    """Whether so many misses out of `count` would surprise someone who believes in the risk."""
    return bool(stats.binom.sf(misses - 1, count, risk) < FALSE_ALARM)


CASES = [
    pytest.param(SCHOOL, 60, 0.9, id="school, 60 rows, 0.9"),
    pytest.param(SCHOOL, 2000, 0.9, id="school, 2000 rows, 0.9"),
    pytest.param(SCHOOL, 2000, 0.99, id="school, 2000 rows, 0.99"),
    pytest.param(STRONG, 300, 0.9, id="strong, 300 rows, 0.9"),
    pytest.param(UNRELATED, 1000, 0.9, id="unrelated, 1000 rows, 0.9"),
    pytest.param(FOUR, 1000, 0.9, id="four columns, 1000 rows, 0.9"),
    pytest.param(FOUR, 1000, 0.99, id="four columns, 1000 rows, 0.99"),
]


def misses(law: Truth, rows: int, confidence: float, count: int) -> int:
    return sum(not inside(fit.gaussian, law) for fit in fits(law, rows, confidence, count, seed=rows))


@pytest.mark.parametrize(("law", "rows", "confidence"), CASES)
def test_boxes_contain_the_truth(law: Truth, rows: int, confidence: float) -> None:
    assert not too_many(misses(law, rows, confidence, 1000), 1000, 1 - confidence)


@pytest.mark.slow
@pytest.mark.parametrize(("law", "rows", "confidence"), CASES)
def test_boxes_contain_the_truth_in_many_tables(law: Truth, rows: int, confidence: float) -> None:
    assert not too_many(misses(law, rows, confidence, 20_000), 20_000, 1 - confidence)


@pytest.mark.parametrize(("law", "rows", "confidence"), CASES)
def test_half_as_wide_would_be_noticed(law: Truth, rows: int, confidence: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: every interval has half its width."""
    student, ratios = module._student, module._sd_ratios
    monkeypatch.setattr(module, "_student", lambda *of: student(*of) / 2)
    monkeypatch.setattr(module, "_sd_ratios", lambda *of: tuple((1 + ratio) / 2 for ratio in ratios(*of)))
    assert too_many(misses(law, rows, confidence, 500), 500, 1 - confidence)


@pytest.mark.parametrize("mutant", ["mean", "sd", "slope"])
def test_a_single_tolerance_forgotten_would_be_noticed(mutant: str) -> None:
    boxes = [fit.gaussian for fit in fits(SCHOOL, 2000, 0.9, 300, seed=1)]
    broken = [box.model_copy(update={"tolerance": box.tolerance.model_copy(update={mutant: 0.0})}) for box in boxes]
    assert too_many(sum(not inside(box, SCHOOL) for box in broken), len(broken), 0.1)


def test_each_interval_misses_as_often_as_it_may_and_no_less() -> None:
    """They are exact: at confidence 0.5, six intervals miss in 1/12 of the tables each; two-sided here, to 1 in 10^7."""
    count = 4000
    found: dict[tuple[str, str, str | None], int] = {}
    really = {("mean", "w"): 150.0, ("mean", "i"): 6e4, ("sd", "w"): 25.0, ("sd", "i"): 3e4}
    really |= {("slope", "w"): SCHOOL.slope(0, 1), ("residual sd", "w"): 25 * math.sqrt(1 - 0.09)}
    for fit in fits(SCHOOL, 100, 0.5, count, seed=4):
        for interval in fit.intervals:
            key = (interval.kind, interval.of, interval.on)
            missed = not interval.low <= really[interval.kind, interval.of] <= interval.high
            found[key] = found.get(key, 0) + missed
    assert len(found) == 6
    for missed_by in found.values():
        assert stats.binomtest(missed_by, count, 1 / 12).pvalue > FALSE_ALARM


# -------------------------------------------------------------------------------------------------- what comes of it


def true_delta(box: Gaussian, epsilon: float, delta: float, gap: float, n: int) -> float:
    """Plan the average of w on the box, then look at it with the eyes of someone who knows the population."""
    mu = gaussian_mu(epsilon, delta)
    stretch = (gap / mu) ** 2
    noise = max(0.0, worst(box, "w", "i", stretch, 1 / n).need(stretch, 1 / n))
    residual = SCHOOL.sd[0] ** 2 * (1 - SCHOOL.correlation[0, 1] ** 2) / n
    return gaussian_delta(epsilon, SCHOOL.slope(0, 1) * gap / math.sqrt(residual + noise))


@pytest.mark.parametrize("gap", [1000.0, 20_000.0])
def test_the_plug_in_fails_every_other_time_and_the_box_never(gap: float) -> None:
    epsilon, delta, count = 1.0, 1e-6, 400
    plug_in = boxed = 0
    for fit in fits(SCHOOL, 2000, 1 - delta / 2, count, seed=7):
        exact = fit.gaussian.model_copy(update={"tolerance": fit.gaussian.tolerance.model_copy(update={"sd": 0, "slope": 0})})
        plug_in += true_delta(exact, epsilon, delta, gap, 10_000) > delta
        boxed += true_delta(fit.gaussian, epsilon, delta, gap, 10_000) > delta
    assert 0.3 * count < plug_in < 0.7 * count
    assert boxed == 0


def test_the_promise_on_average_over_public_tables() -> None:
    """(epsilon, delta + risk): with a risk worth seeing, the mean of the true delta over public tables stays below."""
    delta, confidence = 1e-6, 0.5
    deltas = [true_delta(fit.gaussian, 1.0, delta, 20_000.0, 10_000) for fit in fits(SCHOOL, 200, confidence, 1000, seed=8)]
    assert np.mean(deltas) <= delta + 1 - confidence
    assert np.mean(np.array(deltas) > delta) <= 1 - confidence
