"""What a transported plan draws has the law that its certificate reasons about, and its digits say nothing.

Tables are simulated as the sufficient statistics that a plan reads: averages, given the secret. The law they are compared with
is that of `tests.property.transport_twin`, which uses no attrpriv. `ALARM` is the false-alarm rate of each two-sided test.

Power. Half the reach moves the answers of `SHARP` by a quarter of mu* = 2.1, that is .53 of their sd, where the distribution
functions differ by .21: with 1,200 answers the test then fails to reject with probability below 1e-9 (Kolmogorov's law around
.21 sqrt(1200) = 7.2, against a critical value of 2.9). In the slow tests, at epsilon 1 and with 200,000 tables, half the reach
is .06 sd, .024 apart, 10.5 against 2.9: below 1e-40. A clamp that lacks the side on which the secret lies moves answers by many
sds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest, kstest

from attrpriv.assumptions.gaussian import Gaussian
from attrpriv.methods.base.clamp import Clamp, clamped
from attrpriv.methods.base.plan import Plan
from attrpriv.methods.transport import plan as gaussian_transport
from attrpriv.methods.transport.proof import TransportEvidence
from attrpriv.noise import add_gaussian
from attrpriv.problem.problem import Problem
from attrpriv.problem.secret import Secret
from attrpriv.queries.query import Query
from tests.property.transport_twin import Array, Mixture, Release, World

ALARM = 1e-7
N = 10_000
MEAN = {"w": 150.0, "x": 60_000.0, "y": 40.0}
SD = {"w": 25.0, "x": 30_000.0, "y": 12.0}
RHO = {("w", "x"): 0.3, ("w", "y"): 0.2, ("x", "y"): 0.4}
NAMES = tuple(SD)
COVARIANCE = np.array(
    [[SD[a] * SD[b] * (1.0 if a == b else RHO.get((a, b), RHO.get((b, a), 0.0))) for b in NAMES] for a in NAMES]
)
WORLD = World(NAMES, COVARIANCE, N)
X = Secret("mean(x)", between=(20_000.0, 200_000.0))
Y = Secret("mean(y)", between=(30.0, 60.0))
SHARP = {"epsilon": 5.0, "delta": 0.05}


def planned(*secrets: Secret, **changes: Any) -> tuple[Plan, Clamp]:
    rows = Gaussian(mean=MEAN, sd=SD, correlation=RHO, tolerance=0)
    stated = {
        "queries": (Query("avg", "w"),),
        "secrets": secrets,
        "epsilon": 1.0,
        "delta": 1e-6,
        "n": N,
        "theta": (rows,),
        "resolution": {"w": 1.0, "x": 1.0, "y": 1.0},
    }
    found = gaussian_transport.plan(Problem(**stated | changes))
    assert isinstance(found.certificate.evidence, TransportEvidence)
    return found, found.certificate.evidence.clamp


def release_of(found: Plan, clamp: Clamp) -> Release:
    return Release(
        ("w",),
        tuple(read.coefficients for read in clamp.reads),
        np.array(clamp.slopes),
        clamp.reach,
        clamp.reach,
        np.array([[found.noise.scale**2]]),
        clamp.period,
        masks=tuple(read.mask for read in clamp.reads),
    )


def tables(secret: str, a: float, draws: int, seed: int) -> list[dict[str, Fraction]]:
    """Averages of all columns given that this one's is `a` above its mean."""
    rng, k = np.random.default_rng(seed), NAMES.index(secret)
    v = COVARIANCE / N
    mean, left = v[:, k] / v[k, k] * a, v - np.outer(v[:, k], v[:, k]) / v[k, k]
    values, vectors = np.linalg.eigh(left)
    drawn = mean + rng.normal(size=(draws, len(NAMES))) @ (vectors * np.sqrt(np.maximum(values, 0))).T
    drawn[:, k] = a
    drawn += [MEAN[name] for name in NAMES]
    return [dict(zip(NAMES, map(Fraction, row), strict=True)) for row in drawn.tolist()]


def answered(found: Plan, drawn: list[dict[str, Fraction]]) -> Array:
    """Through the plan itself."""
    names = ["w", *found.read_columns]
    return np.array([found.answers([table[name] for name in names])[0] - MEAN["w"] for table in drawn])


def moved(found: Plan, clamp: Clamp, drawn: list[dict[str, Fraction]], seed: int) -> Array:
    """The plan's own arithmetic with noise from numpy, for many tables; `test_noise_law` has the samplers."""
    rng = np.random.default_rng((seed, 1))
    bare = clamp.model_copy(update={"reads": tuple(read.model_copy(update={"mask": 0.0}) for read in clamp.reads)})
    masks = rng.normal(size=(len(drawn), len(clamp.reads))) * [read.mask for read in clamp.reads]
    answers = []
    for table, mask in zip(drawn, masks.tolist(), strict=True):
        hidden = [table[read.column] + Fraction(x) for read, x in zip(clamp.reads, mask, strict=True)]
        answers.append(float(clamped(bare, [table["w"]], hidden, 40)[0]) - MEAN["w"])
    return np.array(answers) + rng.normal(0, found.columns[0].independent, len(drawn))


def fits(answers: Array, law: Mixture) -> bool:
    grid = np.linspace(law.means.min() - 9 * law.sd, law.means.max() + 9 * law.sd, 8001)
    cdf = [law.cdf(float(o)) for o in grid]
    return float(kstest(answers, lambda o: np.interp(o, grid, cdf)).pvalue) > ALARM


def mutants(release: Release, side: float) -> list[Release]:
    """Half the reach, and no clamp on the side where the secret lies."""
    lacking = replace(release, high=math.inf) if side > 0 else replace(release, low=math.inf)
    halved = replace(release, low=release.low / 2, high=release.high / 2)
    return [halved] if release.period is not None else [halved, lacking]


# --------------------------------------------------------------------------------------------------- the law of an answer

FAST: dict[str, tuple[tuple[Secret, ...], str, float]] = {
    "one secret, far": ((X,), "x", 100_000.0),
    "one secret, far below": ((X,), "x", -40_000.0),
    "two secrets, far": ((X, Y), "y", 15.0),
    "two secrets, near": ((X, Y), "x", 200.0),
}


@pytest.mark.parametrize("name", list(FAST))
def test_answers_have_the_certified_law(name: str) -> None:
    secrets, secret, a = FAST[name]
    found, clamp = planned(*secrets, **SHARP)
    answers = answered(found, tables(secret, a, 1_200, 5))
    release = release_of(found, clamp)
    assert fits(answers, WORLD.law(release, {secret: 1.0}, a))
    if "far" in name:
        assert not any(fits(answers, WORLD.law(mutant, {secret: 1.0}, a)) for mutant in mutants(release, a))


STAIRS = (Secret("mean(x)", within=300.0),)
SLOW: dict[str, tuple[tuple[Secret, ...], str, tuple[float, float]]] = {
    "one secret": ((X,), "x", (-40_000.0, 140_000.0)),
    "stairs": (STAIRS, "x", (1_000.0, 1_300.0)),
    "two secrets, x": ((X, Y), "x", (-40_000.0, 140_000.0)),
    "two secrets, y": ((X, Y), "y", (-10.0, 20.0)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(SLOW))
def test_200_000_tables_given_each_secret_of_a_pair(name: str) -> None:
    secrets, secret, pair = SLOW[name]
    found, clamp = planned(*secrets)
    release = release_of(found, clamp)
    for seed, a in enumerate(pair):
        answers = moved(found, clamp, tables(secret, a, 200_000, seed), seed)
        assert fits(answers, WORLD.law(release, {secret: 1.0}, a))
        for mutant in mutants(release, a):
            assert not fits(answers, WORLD.law(mutant, {secret: 1.0}, a))


def populations(draws: int, seed: int) -> list[dict[str, Fraction]]:
    rng = np.random.default_rng(seed)
    drawn = rng.multivariate_normal([MEAN[name] for name in NAMES], COVARIANCE / N, draws)
    return [dict(zip(NAMES, map(Fraction, row), strict=True)) for row in drawn.tolist()]


@pytest.mark.slow
@pytest.mark.parametrize("secrets", [(X,), STAIRS, (X, Y)])
def test_the_error_is_as_predicted_within_two_percent(secrets: tuple[Secret, ...]) -> None:
    """200,000 tables: the rmse of such errors has a standard error below .3%, so 2% is over 6 of them."""
    found, clamp = planned(*secrets)
    drawn = populations(200_000, 7)
    off = moved(found, clamp, drawn, 7) - np.array([float(table["w"]) - MEAN["w"] for table in drawn])
    assert math.sqrt(np.mean(off**2)) == pytest.approx(found.error.rmse, rel=0.02)
    assert np.mean(np.abs(off)) == pytest.approx(found.error.mean_absolute, rel=0.02)


@pytest.mark.parametrize("secrets", [(X,), (X, Y)])
def test_intervals_hold_their_level(secrets: tuple[Secret, ...]) -> None:
    found, clamp = planned(*secrets)
    drawn = populations(4_000, 8)
    off = np.abs(moved(found, clamp, drawn, 7) - np.array([float(table["w"]) - MEAN["w"] for table in drawn]))
    inside = int((off <= found.spread_of(found.queries[0]).reach(0.9)).sum())
    assert float(binomtest(inside, len(drawn), 0.9).pvalue) > ALARM


# ----------------------------------------------------------------------------------------------------------------- digits

# Whole numbers everywhere. w moves by exactly half of y, so that sums of w less half of sums of y lie on halves.
TRIALS = 1_000
WHOLE = Gaussian(
    mean={"w": 150.0, "x": 60_000.0, "y": 40.0},
    sd={"w": 40.0, "x": 30_000.0, "y": 40.0},
    correlation={("w", "x"): 0.3, ("w", "y"): 0.5, ("x", "y"): 0.0},
    tolerance=0,
)


def told(clamp: Clamp, hidden: dict[str, Fraction]) -> Fraction:
    """What is taken back and not given again, in the plain words of the clamp."""
    reach = Fraction(clamp.reach)
    y = sum(
        (
            Fraction(b) * (hidden[read.column] - Fraction(read.centre))
            for b, read in zip(clamp.slopes[0], clamp.reads, strict=True)
        ),
        Fraction(0),
    )
    return y - min(max(y, -reach), reach)


class Decoder:
    """Tells two values of mean(x) apart by digits alone: answers plus what was taken back for a candidate lie on halves."""

    def __init__(self, secrets: tuple[Secret, ...]) -> None:
        self.found, self.clamp = planned(*secrets, theta=(WHOLE,))
        slope = Fraction(self.clamp.slopes[0][0])
        self.low = Fraction(130_000)
        self.high = self.low + Fraction(round(Fraction(1, 4) / slope), N)  # a quarter: between the halves

    def misfit(self, answer: Fraction, candidate: Fraction) -> Fraction:
        steps = 2 * N * (answer + told(self.clamp, {"x": candidate, "y": Fraction(40)}))
        return abs(steps - round(steps))

    def right(self, answer: Callable[[Fraction, dict[str, Fraction]], Fraction]) -> int:
        rng, right = np.random.default_rng(11), 0
        for _ in range(TRIALS):
            x = (self.low, self.high)[int(rng.integers(2))]
            y = Fraction(round(rng.normal(40.0, 0.4) * N), N)
            centre = 150 + 0.5 * float(y - 40) + 0.0004 * float(x - 60_000)
            w = Fraction(round(rng.normal(centre, 0.3) * N), N)
            released = answer(w, {"x": x, "y": y})
            guess = self.low if self.misfit(released, self.low) <= self.misfit(released, self.high) else self.high
            right += guess == x
        return right


def at_chance(right: int) -> bool:
    return float(binomtest(right, TRIALS, 0.5).pvalue) > ALARM


@pytest.mark.parametrize("secrets", [(X,), (X, Y)], ids=["one secret", "two secrets"])
def test_digits(secrets: tuple[Secret, ...]) -> None:
    """Without masks the digits give mean(x) away every time, also through the digits of y; with them the decoder is at chance.

    A tenth of the mask is still read: right with probability .79, which 1,000 trials miss with probability below 1e-30.
    """
    decoder = Decoder(secrets)
    clamp, found = decoder.clamp, decoder.found
    if len(secrets) == 2:
        assert clamp.slopes[0][1] == 0.5
    names = ["w", *found.read_columns]
    assert decoder.right(lambda w, hidden: w - told(clamp, hidden)) == TRIALS
    assert at_chance(decoder.right(lambda w, hidden: Fraction(found.answers([{"w": w, **hidden}[c] for c in names])[0])))
    weak = 0.1 / N
    assert not at_chance(decoder.right(lambda w, hidden: add_gaussian(w - told(clamp, hidden), weak)))


def test_the_reads_are_masked_where_there_are_several() -> None:
    assert [read.mask for read in planned(X, Y)[1].reads] == [1 / N, 1 / N]
    assert [read.mask for read in planned(X)[1].reads] == [0.0]


def test_a_combination_with_the_published_column_is_masked_to_its_own_lattice() -> None:
    """Given the sum of w - 10 y the sum of whole w's is known up to 10: without the wider mask its last digit tells."""
    secret = Secret("mean(w - 10 * y)", between=(-400.0, -100.0))
    found, clamp = planned(secret, theta=(WHOLE,), n=1000)
    assert found.noise.scale == pytest.approx(10 / 1000, rel=1e-6)
    slope, centre = Fraction(clamp.slopes[0][0]), Fraction(clamp.reads[0].centre)
    reach = Fraction(clamp.reach)

    def guess(answer: Fraction, sums: tuple[int, int]) -> int:
        def misfit(total: int) -> Fraction:
            y = slope * (Fraction(total, 1000) - centre)
            steps = (1000 * (answer + y - min(max(y, -reach), reach)) - total) / 10
            return abs(steps - round(steps))

        return min(sums, key=misfit)

    rng = np.random.default_rng(2)
    rights = {0.1: 0, 1.0: 0}
    for _ in range(TRIALS):
        pair = (-249_000, -248_995)
        total = pair[int(rng.integers(2))]
        w = total + 10 * round(rng.normal(40_000, 100))
        y = (w - total) // 10
        names = ["w", *found.read_columns]
        read = {"w": Fraction(w, 1000), "y": Fraction(y, 1000)}
        averages = [read[name] for name in names]
        rights[1.0] += guess(Fraction(found.answers(averages)[0]), pair) == total
        told_y = slope * (Fraction(total, 1000) - centre)
        plain = averages[0] - told_y + min(max(told_y, -reach), reach)
        rights[0.1] += guess(add_gaussian(plain, 1 / 1000), pair) == total  # the mask of the column's own spacing
    assert at_chance(rights[1.0])
    assert rights[0.1] > 0.95 * TRIALS
