"""Chen and Ohrimenko's experiment on the Adult data: five statistics of 100 rows; do 20% or 30% of the population earn much?

What is assumed here and not by `attrpriv plan`: that the number of never married persons and of women, sums of 100 zeros and
ones, are normal within a class. A plan refuses such columns, whose sd is below twice their spacing. The promise is therefore
made at the level of the library, from the classes' means and covariances of all complete rows; the lattice of every column is
masked and charged as anywhere else; and an attack on subsets of the real rows shows what the promise is worth.

Tables and noise are drawn anew on every run; each statistical assertion names how often it fails although all is well.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from attrpriv.methods.base.checks import GroupCheck
from attrpriv.methods.group_transport.correction import Expected, vector_moves
from attrpriv.methods.group_transport.proof import GroupVectorTransportEvidence
from attrpriv.methods.group_transport.vector_clamp import VectorClamp, best_vector_clamp, beyond, clamped_vector_delta
from attrpriv.numerics.calibration.gaussian import grid_charge, lattice_lambda
from attrpriv.numerics.calibration.groups import equalise, population_range
from attrpriv.numerics.divergences.group_vector_clamp import Ball
from attrpriv.numerics.divergences.groups import Between
from attrpriv.numerics.laws.groups import Law, VectorCase

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

ROWS, SHARES, DELTA = 100, (0.2, 0.3), 0.001
COLUMNS = ("age", "education", "never_married", "women", "hours")
# From averages to the five statistics: two of them are numbers of persons.
UNIT = np.array([1.0, 1.0, 100.0, 100.0, 1.0])
NAMES = ("adult.data", "adult.test")
PUBLISHED = {0.2: 69.85, 1.0: 13.40, 5.0: 1.24}


@dataclass(frozen=True, eq=False)
class Adult:
    values: Array
    high: Flags

    def law(self, high: bool) -> Law:
        rows = self.values[self.high == high]
        matrix = np.cov(rows.T)
        return tuple(rows.mean(axis=0).tolist()), tuple(map(tuple, ((matrix + matrix.T) / 2).tolist()))

    def subsets(
        self, share: float, number: int, rng: np.random.Generator, exact: bool = False
    ) -> tuple[Array, NDArray[np.int64]]:
        """The statistics of real rows, drawn from a population with this share, and how many of them earn much."""
        counts = np.full(number, round(ROWS * share)) if exact else rng.binomial(ROWS, share, size=number)
        pools = self.values[self.high], self.values[~self.high]
        means = np.empty((number, len(COLUMNS)))
        for k, count in enumerate(counts):
            inside = pools[0][rng.integers(0, len(pools[0]), count)]
            outside = pools[1][rng.integers(0, len(pools[1]), ROWS - count)]
            means[k] = (inside.sum(axis=0) + outside.sum(axis=0)) / ROWS
        return means, counts


def records(folder: Path) -> Iterator[list[str]]:
    for name in NAMES:
        with (folder / name).open(encoding="utf-8", newline="") as lines:
            for row in csv.reader(lines, skipinitialspace=True):
                if len(row) == 15 and "?" not in row:
                    yield row


@pytest.fixture(scope="module")
def adult(shared: Path) -> Adult:
    if not all((shared / "data" / name).is_file() for name in NAMES):
        pytest.skip("needs the UCI Adult data in ../shared/data")
    rows = list(records(shared / "data"))
    values = [[float(r[0]), float(r[4]), float(r[5] == "Never-married"), float(r[9] == "Female"), float(r[12])] for r in rows]
    return Adult(np.array(values), np.array([r[14].startswith(">50K") for r in rows]))


@dataclass(frozen=True, eq=False)
class Release:
    """A plan at the level of the library: the evidence that a certificate would hold, and the tables it was made for."""

    evidence: GroupVectorTransportEvidence
    way: VectorClamp
    case: VectorCase

    def moved(self, means: Array, counts: NDArray[np.int64], rng: np.random.Generator) -> Array:
        """Released averages of many tables: what the counts tell taken back, and all the noise."""
        laws = np.array([self.case.members[0][0], self.case.rest[0][0]])
        told = np.column_stack([counts, ROWS - counts]) @ laws / ROWS - np.array(self.evidence.centre)
        shown = means - beyond(Ball(self.evidence.reach, np.array(self.evidence.metric)), told)
        shown = shown + rng.normal(size=shown.shape) * np.array(self.evidence.independent)
        if self.evidence.factor:
            factor = np.array(self.evidence.factor)
            shown = shown + rng.normal(size=(len(shown), factor.shape[1])) @ factor.T
        x = np.clip((counts - self.case.low) / (self.case.high - self.case.low), 0.0, 1.0)
        for part in self.evidence.equalised.parts:
            factor, weight = np.array(part.factor), {"low": 1 - x, "high": x}[part.role]
            shown = shown + np.sqrt(weight)[:, None] * (rng.normal(size=(len(shown), factor.shape[1])) @ factor.T)
        return np.asarray(shown)


def planned(adult: Adult, epsilon: float, mask: float) -> Release:
    """The least expected error at this epsilon.

    All columns have spacing 1. Their averages are masked by one spacing as a plan does; those of the two columns of zeros and
    ones, whose errors count a hundredfold, by `mask` spacings, and what that leaves of the lattice is charged.
    """
    masks = [1.0, 1.0, mask, mask, 1.0]
    found = population_range(ROWS, *SHARES, 0.1 * DELTA)
    case = VectorCase(ROWS, found.low, found.high, found.apart, (adult.law(True),), (adult.law(False),))
    parts = equalise(case).parts
    grid_lambda, grid_eta = grid_charge(len(COLUMNS), sum(len(part.factor[0]) for part in parts) + len(COLUMNS))
    lattice = lattice_charge(case, masks)
    lam = grid_lambda + lattice
    inner = (epsilon - 2 * lam) * (1 - 1e-12)
    left = (0.98 * DELTA - grid_eta * (1 + math.exp(epsilon))) * math.exp(-lam) - found.tail
    middle = sum(SHARES) / 2
    centre = tuple(middle * a + (1 - middle) * b for a, b in zip(case.members[0][0], case.rest[0][0], strict=True))
    moves = vector_moves(case, parts, centre, Expected(SHARES[1], (1.0,), (1.0,)))
    floors = [one / ROWS for one in masks]
    way = best_vector_clamp(case, inner, left * (1 - 1e-6), moves, floors, Between(ROWS, SHARES[1] - SHARES[0]))
    evidence = GroupVectorTransportEvidence(
        columns=COLUMNS,
        form=way.form,
        check=GroupCheck(secret="share", theta=0, case=case, shares=SHARES),
        equalised=way.equalised,
        independent=way.independent,
        factor=way.factor,
        reach=way.reach,
        metric=way.metric,
        centre=centre,
        grid_lambda=grid_lambda,
        lattice_lambda=lattice,
        grid_eta=grid_eta,
        shape_lambda=0.0,
        shape_eta=0.0,
        clip_delta=0.0,
        fit_delta=0.0,
        reserve=0.02 * DELTA,
    )
    return Release(evidence, way, case)


def lattice_charge(case: VectorCase, masks: list[float]) -> float:
    """By Poisson summation, as `numerics.calibration.gaussian` has it for equal masks: least variances, least eigenvalue."""
    laws = [np.array(law[1]) for law in (case.members[0], case.rest[0])]
    share = min(float(np.linalg.eigvalsh(m / np.sqrt(np.outer(np.diag(m), np.diag(m))))[0]) for m in laws)
    wave = 1.0
    for k, mask in enumerate(masks):
        data = ROWS * share * min(float(matrix[k, k]) for matrix in laws)
        q = math.exp(-2 * math.pi**2 * data * mask**2 / (data + mask**2))
        wave *= 1 + 2 * q / (1 - q)
    if len(set(masks)) == 1:
        least = min(ROWS * share * float(np.diag(matrix).min()) for matrix in laws)
        assert -math.log(2 - wave) <= lattice_lambda(least * masks[0] ** 2 / (least + masks[0] ** 2), len(masks))
    return -math.log(2 - wave)


# ------------------------------------------------------------------------------------------------------------- the errors


@pytest.mark.slow
def test_the_published_setting(adult: Adult) -> None:
    assert len(adult.values) == 45_222
    assert int(adult.high.sum()) == 11_208
    means = [np.array(adult.law(high)[0]) for high in (True, False)]
    assert float(np.linalg.norm(0.1 * UNIT * (means[0] - means[1]))) == pytest.approx(4.2913, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "mask", "most"), [(0.2, 1.0, 4.0), (1.0, 1.0, 4.0), (5.0, 1.0, 2.5), (5.0, 0.5, 1.2)])
def test_errors_and_the_best_attack(adult: Adult, epsilon: float, mask: float, most: float) -> None:
    """20,000 subsets of real rows for each share.

    Six standard errors of the mean error are below 0.03 (0.01 where noise is small): it is seen above what is asked for less
    than once in 10^8 runs. The attack's accuracy on 20,000 fresh tables is off by more than 0.02 less than once in 10^6 runs
    (Hoeffding), and its power is that of the difference to what it reaches without any defence.
    """
    rng = np.random.default_rng()
    release = planned(adult, epsilon, mask)
    assert release.evidence.delta(epsilon) <= DELTA
    released, own = [], []
    for share in SHARES:
        means, counts = adult.subsets(share, 20_000, rng)
        released.append(release.moved(means, counts, rng))
        own.append(means)
    errors = [float(np.linalg.norm((a - b) * UNIT, axis=1).mean()) for a, b in zip(released, own, strict=True)]
    assert sum(errors) / 2 <= most
    assert sum(errors) / 2 < PUBLISHED[epsilon] * (1 if mask == 0.5 or epsilon < 5 else 2)
    margin = math.sqrt(math.log(2e6) / (2 * 20_000))
    before, _ = attacked(own[0], own[1])
    after, scores = attacked(released[0], released[1])
    assert after <= (math.exp(epsilon) + DELTA) / (1 + math.exp(epsilon)) + margin
    if epsilon <= 1:
        assert after < before - 2 * margin
    for p, q in (scores, scores[::-1]):
        for level in np.linspace(-3, 3, 25):
            for sign in (1, -1):
                inside = [float(np.mean(sign * s > level)) for s in (p, q)]
                assert inside[0] - math.exp(epsilon) * inside[1] <= DELTA + (1 + math.exp(epsilon)) * margin


def attacked(low: Array, high: Array) -> tuple[float, tuple[Array, Array]]:
    """The likelihood ratio of two normal laws, fitted on half of the tables and used on the other half."""
    half = len(low) // 2
    logs = []
    for train in (low[:half], high[:half]):
        mean, matrix = train.mean(axis=0), np.cov(train.T)
        inverse, size = np.linalg.inv(matrix), np.linalg.slogdet(matrix)[1]
        off = [test[half:] - mean for test in (low, high)]
        logs.append([-np.einsum("ni,ij,nj->n", x, inverse, x) / 2 - size / 2 for x in off])
    scores = logs[1][0] - logs[0][0], logs[1][1] - logs[0][1]
    right = float((np.mean(scores[0] < 0) + np.mean(scores[1] > 0)) / 2)
    return right, scores


@pytest.mark.slow
def test_undefended_the_share_is_guessed_as_published(adult: Adult) -> None:
    """0.76 where the *tables* have exactly 20 and 30 such rows; a little less where only their populations differ."""
    rng = np.random.default_rng()
    margin = math.sqrt(math.log(2e6) / (2 * 20_000))
    exact = [adult.subsets(share, 20_000, rng, exact=True)[0] for share in SHARES]
    chance = [adult.subsets(share, 20_000, rng)[0] for share in SHARES]
    assert attacked(*exact)[0] == pytest.approx(0.76, abs=0.01 + margin)
    assert 0.68 < attacked(*chance)[0] < attacked(*exact)[0]


@pytest.mark.slow
def test_the_direct_law_is_what_makes_the_difference(adult: Adult) -> None:
    """At epsilon 5: nothing is equalised, and with the covariances made equal the error would be twice as large."""
    release = planned(adult, 5.0, 0.5)
    assert release.way.form == "direct"
    assert not release.evidence.equalised.parts
    wide = release.evidence.model_copy(update={"reach": 2 * release.evidence.reach})
    assert wide.delta(5.0) > DELTA, "the mutant: half of tau"
    assert clamped_vector_delta(release.case, release.way)(5.0) > clamped_vector_delta(
        release.case, release.way, Between(ROWS, 0.1)
    )(5.0)
