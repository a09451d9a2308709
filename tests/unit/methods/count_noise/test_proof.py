"""The proofs of noise on counts: against the laws of the noisy counts, and every guard."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from attrpriv.methods.count_noise.proof import (
    CountCasesCheck,
    CountCasesEvidence,
    CountCheck,
    CountDirectEvidence,
    CountLaplaceEvidence,
    WassersteinEvidence,
)
from attrpriv.numerics.calibration.direct import shifted_delta
from attrpriv.numerics.divergences.families import family_wasserstein
from attrpriv.numerics.laws.records import CountPairs, RecordLaws
from tests.unit.methods.proofs import accepted, counted, refused, sets_plan

RECORDS, PAIRS = RecordLaws.event(0.4, 0.2), CountPairs(10, 2, 6, 3)
CHECK = CountCheck(secret="s", theta=0, records=RECORDS, pairs=PAIRS)
FAR = CountCheck(secret="s", theta=1, records=RecordLaws.event(0.9, 0.1), pairs=PAIRS)


def law(a: int, check: CountCheck = CHECK) -> np.ndarray:
    """Of the count, where a of ten rows are in the category."""
    n, member, rest = check.pairs.n, float(check.records.member[1][0]), float(check.records.rest[1][0])
    return np.convolve(binom.pmf(np.arange(a + 1), a, member), binom.pmf(np.arange(n - a + 1), n - a, rest))


def noisy(values: np.ndarray, noise: str, scale: float, reach: int = 300) -> np.ndarray:
    if noise == "none":
        return values
    k = np.arange(-reach, reach + 1)
    weights = np.exp(-np.abs(k) / scale) if noise == "laplace" else np.exp(-(k**2) / (2 * scale**2))
    return np.convolve(values, weights / weights.sum())


def pairs(check: CountCheck = CHECK) -> list[tuple[int, int]]:
    inside = range(check.pairs.low, check.pairs.high + 1)
    return [(a, b) for a, b in itertools.permutations(inside, 2) if abs(a - b) <= check.pairs.apart]


def hockey(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


@pytest.mark.parametrize(("noise", "scale"), [("laplace", 1.5), ("gaussian", 1.5), ("none", 0.0)])
@pytest.mark.parametrize("epsilon", [0.1, 0.6])
def test_direct_noise_against_the_laws(noise: Any, scale: float, epsilon: float) -> None:
    exact = max(hockey(noisy(law(a), noise, scale), noisy(law(b), noise, scale), epsilon) for a, b in pairs())
    reached = CountDirectEvidence(checks=(CHECK,), noise=noise, scale=scale).delta(epsilon)
    assert exact * (1 - 1e-9) <= reached <= exact * (1 + 1e-4) + 1e-12
    both = CountDirectEvidence(checks=(CHECK, FAR), noise=noise, scale=scale).delta(epsilon)
    assert both >= max(hockey(noisy(law(a, FAR), noise, scale), noisy(law(b, FAR), noise, scale), epsilon) for a, b in pairs())


@pytest.mark.parametrize("scale", [0.7, 2.0, 9.0])
def test_laplace_noise_is_pure_by_its_exact_loss(scale: float) -> None:
    """Over any rows of the other categories, one row changed is what counts, as often as rows change (the worst of them)."""
    losses = []
    for a, b in pairs():
        p, q = (noisy(law(x), "laplace", scale)[250:-250] for x in (a, b))  # where the cut noise is the noise
        losses.append(float(np.log(p / q).max()))
    told = CountLaplaceEvidence(checks=(CHECK,), scale=scale)
    assert told.loss() >= max(losses) * (1 - 1e-9)
    assert told.delta(told.loss()) == 0.0
    assert told.delta(math.nextafter(told.loss(), 0.0)) == 1.0
    worse = CountLaplaceEvidence(checks=(CHECK, FAR), scale=scale)
    assert worse.loss() == CountLaplaceEvidence(checks=(FAR, CHECK), scale=scale).loss() > told.loss()


def test_what_a_row_moves_bounds_the_loss() -> None:
    """A row that counts for sure in one category only: apart/scale, neither less nor more."""
    sure = CountCheck(secret="s", theta=0, records=RecordLaws.event(1.0, 0.0), pairs=PAIRS)
    assert CountLaplaceEvidence(checks=(sure,), scale=2.0).loss() == pytest.approx(1.5, rel=1e-9)
    assert CountLaplaceEvidence(checks=(sure,), scale=2.0).loss() >= 1.5
    # in a histogram it leaves one cell and enters another
    assert CountLaplaceEvidence(checks=(sure,), scale=2.0, histogram=True).loss() == pytest.approx(3.0, rel=1e-9)
    assert refused(CountLaplaceEvidence(checks=(sure,), scale=0.0))


# ---------------------------------------------------------------------------------------------------------- by a distance


def wasserstein(**changes: Any) -> WassersteinEvidence:
    told: dict[str, Any] = {"checks": (CHECK,), "distance": 3, "ignored": 0.0, "noise": "laplace", "scale": 3.0}
    return WassersteinEvidence(**(told | changes))


def test_a_distance_that_the_laws_exceed_proves_nothing() -> None:
    needed = family_wasserstein(RECORDS, PAIRS, 0.0).distance
    assert 1 <= needed <= 3
    enough = int(needed)
    assert wasserstein(distance=enough, scale=float(enough)).delta(1.0 + 1e-9) == 0.0
    assert wasserstein(distance=enough, scale=float(enough)).delta(1.0 - 1e-9) == 1.0
    assert refused(wasserstein(distance=enough - 1, scale=100.0))
    assert refused(wasserstein(checks=(CHECK, CountCheck(secret="s", theta=1, records=RecordLaws.event(1.0, 0.0), pairs=PAIRS)),
                               distance=enough - 1, scale=100.0))  # fmt: skip


@pytest.mark.parametrize("ignored", [1e-4, 0.02, 0.25])
def test_what_is_ignored_is_most_of_delta(ignored: float) -> None:
    distance = math.ceil(family_wasserstein(RECORDS, PAIRS, ignored).distance)
    told = wasserstein(distance=distance, ignored=ignored, scale=max(1.0, 10.0 * distance))
    assert told.delta(1.0) == pytest.approx(ignored, rel=1e-9)
    assert accepted(told, 1.0, ignored * (1 + 1e-9))
    assert not accepted(told, 1.0, ignored * (1 - 1e-9))
    assert refused(wasserstein(distance=distance, ignored=1.0, scale=max(1.0, 10.0 * distance)))


def test_known_rows_are_covered_for_events_whose_every_count_is_hidden() -> None:
    whole = CountCheck(secret="s", theta=0, records=RECORDS, pairs=CountPairs.all_of(10))
    enough = math.ceil(family_wasserstein(RECORDS, whole.pairs, 0.0).distance)
    given: dict[str, Any] = {"distance": enough, "scale": float(enough), "known": 2}
    assert wasserstein(checks=(whole,), **given).delta(1.01) == 0.0
    values = RecordLaws((0, 2), RECORDS.member, RECORDS.rest)
    for records, pairs_ in (
        (RECORDS, CountPairs(10, 1, 10, 3)),
        (RECORDS, CountPairs(10, 0, 9, 3)),
        (values, CountPairs.all_of(10)),
    ):
        bad = CountCheck(secret="s", theta=0, records=records, pairs=pairs_)
        assert wasserstein(checks=(bad,), distance=40, scale=1e6, known=2).delta(1.0) == 1.0
        assert wasserstein(checks=(bad,), distance=40, scale=1e6).delta(1.0) == 0.0


@pytest.mark.parametrize("distance", [1, 4])
@pytest.mark.parametrize("scale", [0.5, 3.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_noise_moved_by_a_whole_distance(distance: int, scale: float, epsilon: float) -> None:
    k = np.arange(-200, 201)
    weights = np.exp(-(k**2) / (2 * scale**2))
    weights /= weights.sum()
    exact = hockey(np.append(weights, np.zeros(distance)), np.append(np.zeros(distance), weights), epsilon)
    assert shifted_delta("gaussian", scale, distance, epsilon) == pytest.approx(exact, rel=1e-8, abs=1e-14)
    assert shifted_delta("laplace", scale, distance, distance / scale * (1 + 1e-9)) == 0.0
    assert shifted_delta("laplace", scale, distance, distance / scale * (1 - 1e-9)) == 1.0
    assert shifted_delta("none", scale, distance, epsilon) == 1.0
    assert shifted_delta("gaussian", 0.0, distance, epsilon) == shifted_delta("laplace", 0.0, distance, epsilon) == 1.0


# --------------------------------------------------------------------------------------------------------- what is covered


def test_only_what_was_counted_is_covered() -> None:
    direct = CountDirectEvidence(checks=(CHECK,), noise="laplace", scale=2.0)
    moved = wasserstein(scale=2.0)
    plain = CountLaplaceEvidence(checks=(CHECK,), scale=2.0)
    for told in (direct, moved, plain):
        assert told.covers_tally(counted())
        for changes in ({"noise": "gaussian"}, {"scale": 2.1}, {"histogram": True}, {"steps": (0, 2)}):
            assert not told.covers_tally(counted(**changes)), (told.kind, changes)
    cells = CountLaplaceEvidence(checks=(CHECK,), scale=2.0, histogram=True)
    assert cells.covers_tally(counted(histogram=True))
    assert not cells.covers_tally(counted())
    exact = CountLaplaceEvidence(checks=(CHECK,), scale=0.0)
    assert exact.covers_tally(counted(noise="none", scale=0.0))
    assert not exact.covers_tally(counted(noise="laplace", scale=0.0))
    other = CountCheck(secret="s", theta=1, records=RecordLaws((0, 2), RECORDS.member, RECORDS.rest), pairs=PAIRS)
    assert not CountDirectEvidence(checks=(CHECK, other), noise="laplace", scale=2.0).covers_tally(counted())


# -------------------------------------------------------------------------------------------------------- sets of counts


def cases() -> CountCasesEvidence:
    found = sets_plan().certificate.evidence
    assert isinstance(found, CountCasesEvidence)
    return found


def test_sets_of_counts_against_the_mixture() -> None:
    """Below 3 of 8 rows or not, by the prior 0.4, each row with its own law: the mixtures are convolved with the noise."""
    told = cases()
    n, prior = 8, binom.pmf(np.arange(9), 8, 0.4)
    check = CountCheck(secret="s", theta=0, records=told.checks[0].sets.records, pairs=CountPairs.all_of(n))
    mixed = []
    for inside in (range(3), range(3, 9)):
        weights = np.array([prior[a] for a in inside])
        mixed.append(sum(w * law(a, check) for w, a in zip(weights / weights.sum(), inside, strict=True)))
    for noise, scale, epsilon in (("laplace", 2.0, 0.2), ("gaussian", 2.0, 0.2), ("none", 0.0, 0.2), ("laplace", 1.0, 0.4)):
        p, q = (noisy(np.asarray(one), noise, scale) for one in mixed)
        exact = max(hockey(p, q, epsilon), hockey(q, p, epsilon))
        reached = told.model_copy(update={"noise": noise, "scale": scale}).delta(epsilon)
        assert exact * (1 - 1e-9) <= reached <= exact * (1 + 1e-6), (noise, scale)


def test_sets_are_pure_where_every_output_is_close() -> None:
    told = cases()
    assert told.model_copy(update={"noise": "laplace", "scale": 100.0}).delta(0.5) == 0.0
    gaussian = told.model_copy(update={"noise": "gaussian", "scale": 100.0}).delta(0.001)
    assert 0 < gaussian < 1
    assert refused(told.model_copy(update={"noise": "none", "scale": 100.0}), 0.01) or told.model_copy(
        update={"noise": "none", "scale": 100.0}
    ).delta(0.01) >= told.model_copy(update={"noise": "none", "scale": 0.0}).delta(0.01)


def test_the_worst_of_several_sets_counts() -> None:
    told = cases().model_copy(update={"noise": "laplace", "scale": 2.0})
    check = told.checks[0]
    near = CountCasesCheck(secret="t", theta=0, sets=check.sets)
    assert told.model_copy(update={"checks": (check, near)}).delta(0.2) == told.delta(0.2)


def test_noise_on_sets_is_what_was_counted() -> None:
    told = cases().model_copy(update={"noise": "laplace", "scale": 2.0})
    assert told.covers_tally(counted(n=8))
    for changes in ({"noise": "gaussian"}, {"scale": 2.1}, {"histogram": True}, {"steps": (0, 2)}):
        assert not told.covers_tally(counted(n=8, **changes)), changes
