"""The epsilon of a planned release on recorded rows: between both ends, against listed tables; and rows made to break it.

There is no chance here.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from attrpriv.errors import UsageError
from attrpriv.numerics.calibration import recorded_trial
from attrpriv.numerics.calibration.recorded_trial import Moved, Trial, Values, tried_on_rows
from attrpriv.numerics.laws.recorded_rows import RecordedRows

Numbers = NDArray[np.float64]
SOME = np.random.default_rng(1).integers(0, 7, 60)
N, DELTA = 4, 1e-4
_KINDS: tuple[Literal["sum", "share"], ...] = ("share", "sum")


def noise(sigma: float, slope: float = 0.0) -> Any:
    """Noise, and a shift against the secret."""
    return lambda sums: Moved(-slope * sums, 0 * sums + sigma)


def listed(s: Any, q: Any, n: int, first: int, second: int, added: Any) -> float:
    """The least epsilon of a pair, both ways, from densities of listed tables on a fine grid."""
    sums: dict[int, list[int]] = {first: [], second: []}
    for rows in itertools.product(range(len(s)), repeat=n):
        total = sum(int(s[k]) for k in rows)
        if total in sums:
            sums[total].append(sum(int(q[k]) for k in rows))
    moved = added(np.array([float(first), float(second)]))
    means = [np.array(sums[one], dtype=np.float64) + moved.shift[k] for k, one in enumerate((first, second))]
    width = float(moved.sigma.min()) / 400
    low, high = min(map(np.min, means)), max(map(np.max, means))
    at = np.arange(low - 9 * moved.sigma.max(), high + 9 * moved.sigma.max(), width)
    laws = [_density(one, float(moved.sigma[k]), at) * width for k, one in enumerate(means)]

    def delta(epsilon: float) -> float:
        return max(float(np.maximum(a - math.exp(epsilon) * b, 0).sum()) for a, b in (laws, laws[::-1]))

    ends = 0.0, 60.0
    for _ in range(50):
        middle = sum(ends) / 2
        ends = (ends[0], middle) if delta(middle) <= DELTA else (middle, ends[1])
    return ends[1]


def _density(means: Numbers, sigma: float, at: Numbers) -> Numbers:
    found, counts = np.unique(means, return_counts=True)
    z = (at[:, None] - found) / sigma
    return np.asarray(np.exp(-z * z / 2) @ (counts / counts.sum()) / (sigma * math.sqrt(2 * math.pi)))


ROWS = {
    "plain": ([0, 1, 2, 2, 3], [1, 0, 4, 2, 6]),
    "all even": ([0, 2, 4, 4, 6], [2, 0, 8, 4, 12]),
    "a bit of the secret": ([0, 1, 2, 3, 4], [0, 1, 0, 1, 0]),
    "the secret itself": ([0, 1, 2, 2, 3], [0, 1, 2, 2, 3]),
    "a constant answer": ([0, 1, 2, 2, 3], [5, 5, 5, 5, 5]),
    "a heavy tail": ([0, 1, 2, 2, 3], [0, 0, 1, 500, 0]),
}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("slope", [0.0, 0.7])
def test_epsilon_is_that_of_listed_tables(name: str, slope: float) -> None:
    s, q = ROWS[name]
    apart = 2 if name == "all even" else 1
    added = noise(max(4.0, 1.5 * float(np.std(q))), slope)
    found = tried_on_rows(RecordedRows.of(s, q), N, Values(4.0, float(apart), 3, 2), added, DELTA)
    places = [4 + apart * k for k in range(3)]
    truth = max(listed(s, q, N, a, b, added) for a, b in itertools.combinations(places, 2))
    assert found.at_least <= truth * 1.001 + 1e-6
    assert truth <= found.at_most * 1.001 + 1e-6
    assert found.at_most <= found.at_least * 1.02 + 2e-3
    assert found.looked == 3


def test_two_rows() -> None:
    s, q = ROWS["plain"]
    found = tried_on_rows(RecordedRows.of(s, q), 2, Values(1.0, 1.0, 5, 4), noise(5.0), DELTA)
    truth = max(listed(s, q, 2, a, b, noise(5.0)) for a, b in itertools.combinations(range(1, 6), 2))
    assert found.at_least <= truth * 1.001 <= found.at_most * 1.002


@pytest.mark.parametrize("change", ["less noise", "another slope"])
def test_another_release_has_another_epsilon(change: str) -> None:
    """Mutants: a tenth less noise, and a slope that is off, are seen in the number."""
    rows = RecordedRows.of(SOME, SOME + SOME % 3)
    values = Values(280.0, 1.0, 41, 20)
    told = tried_on_rows(rows, 100, values, noise(20.0, 0.5), 1e-6)
    mutant = noise(18.0, 0.5) if change == "less noise" else noise(20.0, 0.4)
    found = tried_on_rows(rows, 100, values, mutant, 1e-6)
    assert found.at_least > 1.05 * told.at_most


def test_a_share_is_a_sum_of_noughts_and_ones() -> None:
    rows, values = RecordedRows.of(SOME % 2, SOME), Values(20.0, 1.0, 11, 10)
    found = [tried_on_rows(rows, 50, values, noise(30.0), 1e-6, kind) for kind in _KINDS]
    assert [one.pair for one in found] == [(20.0, 30.0)] * 2
    assert found[0].at_least <= found[1].at_most <= found[1].at_least * 1.01 <= found[0].at_most * 1.02


def test_what_is_out_of_reach_is_refused() -> None:
    far = SOME.copy()
    far[3] = 10**9
    with pytest.raises(UsageError):
        tried_on_rows(RecordedRows.of(SOME, far), 50, Values(140.0, 1.0, 5, 4), noise(3.0), 1e-6)
    with pytest.raises(UsageError, match="takes too long"):
        tried_on_rows(
            RecordedRows.of(range(500), [37 * k % 500 for k in range(500)]), 10**6, Values(2e8, 1.0, 5, 4), noise(1.0), 1e-6
        )
    with pytest.raises(UsageError, match="has two of the secret's values"):
        tried_on_rows(RecordedRows.of([0, 2], [0, 1]), 3, Values(1.0, 2.0, 2, 1), noise(3.0), 1e-6)
    for delta in (0.0, 1.0, math.nan):
        with pytest.raises(UsageError, match="delta"):
            tried_on_rows(RecordedRows.of(SOME, SOME), 50, Values(140.0, 1.0, 5, 4), noise(3.0), delta)


def test_a_large_loss_is_told_from_below_alone() -> None:
    found = tried_on_rows(RecordedRows.of(SOME, SOME), 50, Values(140.0, 1.0, 31, 30), noise(1.0), 1e-6)
    assert 5 < found.at_least < 12
    assert found.at_most == math.inf


def test_fewer_values_keep_the_pairs_that_are_furthest_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    values = Values(0.0, 1.0, 10_001, 300)
    places = values.thinned(500)
    assert len(places) <= 501
    assert (places[0], places[-1]) == (0, 10_000)
    assert set(places + 300) & set(places) == {one for one in places + 300 if one < 10_000}
    assert values.thinned(10_001).tolist() == list(range(10_001))

    def tried() -> Trial:
        return tried_on_rows(RecordedRows.of(SOME, SOME % 3), 100, Values(250.0, 1.0, 101, 20), noise(20.0), 1e-6)

    all_of_them = tried()
    monkeypatch.setattr(recorded_trial, "MOST_VALUES", 30)
    fewer = tried()
    assert fewer.looked <= 31 < all_of_them.looked
    assert fewer.at_least <= all_of_them.at_most
