"""The proofs of the optimal mechanism: the output's law for every count, and weights that start where they must."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from attrpriv.methods.optimal.proof import CouplingEvidence, KernelEvidence
from attrpriv.numerics.laws.records import CountPairs, RecordLaws
from tests.unit.methods.proofs import counted, every, refused

N = 6
RECORDS, PAIRS = RecordLaws.event(0.7, 0.2), CountPairs(N, 1, 5, 2)


def law(a: int, member: float = 0.7, rest: float = 0.2) -> np.ndarray:
    return np.convolve(binom.pmf(np.arange(a + 1), a, member), binom.pmf(np.arange(N - a + 1), N - a, rest))


def weights(flat: float) -> tuple[tuple[int, ...], ...]:
    """The count itself with a chance of 1 - flat, else any number."""
    other = round(2**62 * flat / (N + 1))
    return tuple(tuple(other + (2**62 - (N + 1) * other if f == o else 0) for o in range(N + 1)) for f in range(N + 1))


def kernel(flat: float = 0.5, **changes: Any) -> KernelEvidence:
    told: dict[str, Any] = {
        "secret": "s", "records": RECORDS, "pairs": PAIRS, "family": "counts", "start": 0, "weights": weights(flat),
    }  # fmt: skip
    return KernelEvidence(**(told | changes))


@pytest.mark.parametrize("flat", [0.2, 0.5, 0.95])
def test_a_kernel_against_its_output_laws(flat: float) -> None:
    rows = np.array(weights(flat), dtype=np.float64) / 2.0**62
    outputs = {a: law(a) @ rows for a in range(1, 6)}
    loss = max(
        float(np.log(outputs[a] / outputs[b]).max()) for a, b in itertools.permutations(range(1, 6), 2) if abs(a - b) <= 2
    )
    assert kernel(flat).delta(loss * (1 + 1e-9)) == 0.0
    assert kernel(flat).delta(loss * (1 - 1e-9)) == 1.0


def test_one_law_alone_does_not_cover_a_box() -> None:
    box = RecordLaws.event((0.6, 0.7), 0.2)
    assert not refused(kernel())
    assert refused(kernel(records=box))
    assert refused(kernel(start=1))
    assert refused(kernel(start=-1))
    moved = RecordLaws((1, 2), RECORDS.member, RECORDS.rest)
    assert not refused(kernel(records=moved, start=N))
    assert refused(kernel(records=moved, start=0))


def test_the_corner_of_a_box() -> None:
    """Weights that are nearly flat hide every law of the box, and less does not."""
    box = RecordLaws.event((0.6, 0.7), (0.2, 0.25))
    told = kernel(0.999, records=box, family="corner")
    rows = np.array(weights(0.999), dtype=np.float64) / 2.0**62
    worst = 0.0
    for member, rest in itertools.product((0.6, 0.65, 0.7), (0.2, 0.25)):
        outputs = {a: law(a, member, rest) @ rows for a in range(1, 6)}
        pairs = ((a, b) for a, b in itertools.permutations(range(1, 6), 2) if abs(a - b) <= 2)
        worst = max(worst, *(float(np.log(outputs[a] / outputs[b]).max()) for a, b in pairs))
    assert told.delta(worst * (1 - 1e-9)) == 1.0
    assert told.delta(10.0) == 0.0


def coupling() -> CouplingEvidence:
    found = every()["coupling"].certificate.evidence
    assert isinstance(found, CouplingEvidence)
    return found


def test_a_coupling_has_the_loss_of_its_targets() -> None:
    """What is released given a count has the law of its target: compared over all pairs that must look alike."""
    told = coupling()
    pairs, low = told.pairs, told.pairs.low
    targets = [np.array(row, dtype=np.float64) / sum(row) for row in told.targets]
    losses = []
    for a, b in itertools.permutations(range(len(targets)), 2):
        if abs(a - b) <= pairs.apart:
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.where(targets[a] > 0, np.log(targets[a] / targets[b]), -np.inf)
            losses.append(float(ratio.max()))
    if told.shares is None:
        assert low >= 0
        assert told.loss() == pytest.approx(max(losses), rel=1e-6, abs=1e-9)
    assert told.delta(told.loss()) == 0.0
    assert told.delta(math.nextafter(told.loss(), 0.0)) == 1.0
    assert refused(told.model_copy(update={"start": told.start + 1}))


def test_a_population_needs_every_count() -> None:
    told = coupling()
    if told.shares is None and told.pairs != CountPairs.all_of(told.pairs.n):
        assert refused(told.model_copy(update={"shares": (0.2, 0.4)}))
    whole = told.model_copy(update={"shares": (0.2, 0.4), "pairs": CountPairs(told.pairs.n, 0, told.pairs.n, 1)})
    assert refused(whole)


def test_what_is_covered() -> None:
    told = counted(n=N, noise="kernel", scale=0.0)
    assert kernel().covers_tally(told)
    for changes in ({"n": 7}, {"noise": "laplace"}, {"histogram": True}, {"steps": (0, 2)}):
        assert not kernel().covers_tally(counted(**({"n": N, "noise": "kernel", "scale": 0.0} | changes))), changes
    pair = coupling()
    asked: dict[str, Any] = {"n": pair.pairs.n, "noise": "kernel", "scale": 0.0, "steps": pair.records.values}
    assert pair.covers_tally(counted(**asked))
    assert not pair.covers_tally(counted(**(asked | {"n": pair.pairs.n + 1})))
    assert not pair.covers_tally(counted(**(asked | {"histogram": True})))
