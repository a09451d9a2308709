"""Laws of noisy sums over recorded rows, against enumerations and a full inversion; and rows made to break them.

There is no chance here. An error is compared with what the laws themselves say that it is at most.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import ndtr

from attrpriv.errors import UsageError
from attrpriv.noise import granularity
from attrpriv.numerics.calibration.recorded import recorded_delta
from attrpriv.numerics.divergences import recorded_pairs
from attrpriv.numerics.divergences.recorded_pairs import GRID_ETA, epsilon_at, hockey_stick, hockey_stick_lower, worst_at
from attrpriv.numerics.laws import recorded_frequencies
from attrpriv.numerics.laws.recorded_inversion import NoisyLaws, noisy_laws
from attrpriv.numerics.laws.recorded_rows import RecordedRows
from tests.property import real_rows_twin as twin

Numbers = NDArray[np.float64]
SOME = np.random.default_rng(1).integers(0, 7, 60)
FAR = [0] * 40 + [1] * 3 + [0] * 40 + [40] * 20 + [3] * 50 + [5] * 100


def ways(s: Iterable[int], q: Iterable[int], n: int) -> Counter[tuple[int, int]]:
    """In how many ways n rows of the list have each pair of sums, in whole numbers."""
    rows, law = Counter(zip(map(int, s), map(int, q), strict=True)), Counter({(0, 0): 1})
    for _ in range(n):
        longer: Counter[tuple[int, int]] = Counter()
        for (a, b), many in law.items():
            for (x, y), times in rows.items():
                longer[a + x, b + y] += many * times
        law = longer
    return law


def enumerated(law: Counter[tuple[int, int]], total: int, sigma: float, shift: float, laws: NoisyLaws) -> Numbers:
    """The bins' probabilities given that s adds up to the total."""
    there = {q: many for (s, q), many in law.items() if s == total}
    ends = (np.append(laws.bins, laws.bins[-1] + 1) - 0.5) * laws.step
    every = sum(there.values())
    found = np.zeros(len(laws.bins))
    for q, many in there.items():
        found += many / every * np.diff(ndtr((ends - q - shift) / sigma))
    return found


def compare(s: Any, q: Any, n: int, secrets: Sequence[int], sigma: float, step: float, **more: Any) -> NoisyLaws:
    """The laws, after each was found to be as near to the enumeration as it says, and void only where there is no table."""
    law = ways(s, q, n)
    laws = noisy_laws(RecordedRows.of(s, q), n, secrets, sigma, step, **more)
    possible = {total for total, _ in law}
    assert sorted(laws.secrets) == sorted(one for one in secrets if one in possible)
    assert sorted(laws.void) == sorted(one for one in secrets if one not in possible)
    for k, total in enumerate(laws.secrets):
        exact = enumerated(law, int(total), sigma, more.get("shift", 0.0), laws)
        # What lies beyond the bins is off too, and so are floats that sum the enumeration.
        beyond = max(0.0, 1 - math.fsum(exact))
        assert np.abs(laws.probabilities[k] - exact).sum() + beyond <= laws.eta[k] + 2e-14
    return laws


NASTY = {
    "a bit of the secret": (SOME, SOME % 2, 8, range(49)),
    "all even": (2 * SOME, 4 * (SOME % 3), 6, range(73)),
    "negative": (2 * SOME - 6, 3 - 2 * (SOME % 5), 6, range(-36, 37)),
    "the secret itself": (SOME, SOME, 7, range(43)),
    "the secret turned": (SOME, -3 * SOME, 7, range(43)),
    "a constant answer": (SOME, SOME * 0 + 5, 7, range(43)),
    "a constant secret": (SOME * 0 + 3, SOME, 7, [20, 21, 22]),
    "one row": ([4], [9], 5, [19, 20, 21]),
    "holes": ([0, 3, 5, 0, 5], [1, 2, 3, 4, 9], 5, range(-1, 27)),
    "two rows": (SOME, SOME**2, 2, range(13)),
    "a single row of a table": (SOME, SOME**2, 1, range(7)),
    "rare": ([0] * 1000 + [1], [0] * 1000 + [1], 10, range(11)),
    # Rows with s = 1000 weigh less than any float, and powers of theirs are the largest of all: left out, no answer was far.
    "a weight below all floats": ([0] * 43 + [1] * 60 + [2] * 50 + [1000] * 100, FAR, 5, [1, 2, 3]),
    "far apart": ([0, 1, 900], [0, 1, 2], 3, [0, 2, 901, 2700]),
}


@pytest.mark.parametrize("name", NASTY)
def test_rows_made_to_break_it_have_the_law_of_the_enumeration(name: str) -> None:
    s, q, n, secrets = NASTY[name]
    laws = compare(s, q, n, list(secrets), 0.4, 0.25)
    assert laws.largest_eta < 1e-8


def test_a_wide_step_and_noise_and_shift_of_their_own() -> None:
    compare(SOME, SOME % 3, 6, list(range(37)), 0.3, 4.0)
    compare(SOME, SOME % 3, 6, list(range(37)), 0.3, 0.125, shift=3.3)
    sigma, shift = np.array([0.5, 0.8]), np.array([-100.0, 7.25])
    laws = noisy_laws(RecordedRows.of(SOME, SOME % 3), 6, [17, 20], sigma, 0.25, shift)
    for k in range(2):
        alone = noisy_laws(RecordedRows.of(SOME, SOME % 3), 6, [(17, 20)[k]], sigma[k], 0.25, shift[k])
        places = np.searchsorted(laws.bins, alone.bins)
        assert np.abs(laws.probabilities[k][places] - alone.probabilities[0]).sum() < 1e-12


def test_a_spacing_is_a_change_of_units() -> None:
    plain = noisy_laws(RecordedRows.of(SOME, SOME % 3), 6, [17, 20], 0.5, 0.25)
    spaced = noisy_laws(RecordedRows.of(SOME / 10, SOME % 3 * 0.5, spacing=(0.1, 0.5)), 6, [1.7, 2.0], 0.25, 0.125)
    assert plain.bins.tolist() == spaced.bins.tolist()
    assert np.abs(plain.probabilities - spaced.probabilities).sum() < 1e-12


@pytest.mark.parametrize("n", [1, 2, 9])
def test_a_share_is_a_sum_of_noughts_and_ones(n: int) -> None:
    s, q = SOME % 2, (SOME * 3) % 5
    by_powers = compare(s, q, n, list(range(n + 1)), 0.4, 0.25, secret="share")
    by_inversion = noisy_laws(RecordedRows.of(s, q), n, range(n + 1), 0.4, 0.25)
    a, b = (dict(zip(laws.bins.tolist(), laws.probabilities.T, strict=True)) for laws in (by_powers, by_inversion))
    assert sum(float(np.abs(a[j] - b[j]).sum()) for j in a.keys() & b.keys()) < 1e-11


def test_a_share_whose_transform_vanishes() -> None:
    """Rows of +1 and -1: cos(u)^n, which is 0 at many frequencies."""
    compare([0, 0, 1, 1], [-1, 1, -1, 1], 9, list(range(10)), 0.05, 2.0**-5, secret="share")


def test_a_transform_that_nearly_vanishes_is_not_off_by_the_root_of_a_unit() -> None:
    """Of one row with 1 and 3 equally often it is cos u: where that is 1e-8, its square is no larger than a unit of 1."""
    q = [1] * 10_000 + [3] * 10_000 + [7]
    compare([0] + [1] * len(q), [0, *q], 3, [1, 2], 0.4, 0.25, secret="share")
    compare([0] * len(q), q, 1, [0], 0.4, 0.25)


def test_answers_so_far_from_nought_that_floats_do_not_tell_bins_apart_are_refused() -> None:
    """The window used to be four bins wide, and said that hardly anything lies outside of it."""
    rows, far = RecordedRows.of([0, 1], [0, 1]), 2.0**44
    compare([0, 1], [0, 1], 3, [0, 1], 0.5, 0.25, shift=far)
    with pytest.raises(UsageError, match="too far apart"):
        noisy_laws(rows, 3, [0, 1], 2.0**-20, 2.0**-22, far)


def test_where_nothing_is_told_the_pair_is_one_that_the_promise_covers() -> None:
    """Values 10 apart are told apart; those within 1 have the same law to the last digit."""
    lines = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    laws = NoisyLaws(np.array([0.0, 1.0, 10.0, 11.0]), np.arange(2), 1.0, lines, np.full(4, 1e-15))
    assert hockey_stick(laws, 1.0, within=1).pair in {(0.0, 1.0), (10.0, 11.0)}
    assert hockey_stick_lower(laws, 1.0, within=1) == 0
    epsilon, pair = worst_at(laws, 1e-3, within=1)
    assert epsilon < 1e-6
    assert pair in {(0.0, 1.0), (10.0, 11.0)}
    assert hockey_stick(laws, 1.0, within=0.5).pair == (0.0, 0.0)


def test_a_share_without_one_kind_of_rows() -> None:
    laws = noisy_laws(RecordedRows.of([1, 1], [-1, 1]), 5, [4, 5], 0.5, 0.25, secret="share")
    assert (laws.secrets.tolist(), laws.void) == ([5.0], (4.0,))


@settings(max_examples=25)
@given(st.data())
def test_any_small_rows_have_the_law_of_the_enumeration(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 5))
    s, q = (data.draw(st.lists(st.integers(-6, 6), min_size=size, max_size=size)) for _ in range(2))
    n = data.draw(st.integers(1, 5))
    low, high = n * min(s), n * max(s)
    compare(s, q, n, list(range(low - 1, high + 2)), data.draw(st.sampled_from([0.2, 1.0, 5.0])), 0.25)


def folded(laws: NoisyLaws, on_circle: Numbers) -> Numbers:
    """Bins of a circle, which begin at 0, in the order of the laws'."""
    return np.roll(on_circle, -(int(laws.bins[0]) % len(on_circle)))


@pytest.mark.parametrize(("n", "q"), [(50, SOME**2), (1000, SOME % 2), (1000, 5 * SOME + SOME**2)])
def test_more_rows_have_the_law_of_a_full_inversion(n: int, q: Any) -> None:
    rows, sigma, total = RecordedRows.of(SOME, q), 0.05 * math.sqrt(n) * float(np.std(q)), 3 * n + 1
    step = 2.0 ** math.floor(math.log2(sigma / 8))
    laws = noisy_laws(rows, n, [total], sigma, step)
    circle = twin.Circle(len(laws.bins) * step, len(laws.bins))
    full = folded(laws, twin.given_sum(twin.Pairs.of(SOME.astype(float), q.astype(float)), n, total, sigma, 0.0, circle))
    assert np.abs(laws.probabilities[0] - full).sum() / 2 < 1e-10
    assert laws.largest_eta < 1e-9


def test_a_bit_of_the_secret_stays_a_bit() -> None:
    """The sum of s mod 2 has the parity of the secret: what lies near 0 in t alone would give total variation 1/2."""
    laws = noisy_laws(RecordedRows.of(SOME, SOME % 2), 1000, [3000, 3001], 0.1, 0.5)
    even = laws.probabilities[:, laws.bins % 4 == 0].sum(axis=1)
    odd = laws.probabilities[:, laws.bins % 4 == 2].sum(axis=1)
    assert even[0] > 0.98 > 0.02 > odd[0]
    assert odd[1] > 0.98 > 0.02 > even[1]


def test_cutting_frequencies_on_trust_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant: frequencies t far from 0 are left out without a look."""
    whole = recorded_frequencies.SumInversion._survivors

    def near_nought(self: Any, *given_: Any) -> Any:
        line, k, seen = whole(self, *given_)
        near = np.minimum(k, self.turn - k) < self.turn / 4
        return line[near], k[near], seen

    monkeypatch.setattr(recorded_frequencies.SumInversion, "_survivors", near_nought)
    with pytest.raises(AssertionError):
        compare(*NASTY["a bit of the secret"][:3], [20, 21], 0.4, 0.25)


def test_what_is_out_of_reach_is_refused() -> None:
    heavy = (SOME % 3).copy()
    heavy[5] = 10**9
    with pytest.raises(UsageError, match="too far apart for the step"):
        noisy_laws(RecordedRows.of(SOME, heavy), 1000, [3000], 0.5, 0.125)
    with pytest.raises(UsageError, match="takes too many values"):
        noisy_laws(RecordedRows.of(heavy, SOME), 30, [30, 10**9 + 30], 3.0, 1.0)


def test_what_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_frequencies, "_MOST_TERMS", 1000)
    with pytest.raises(UsageError, match="too many frequencies"):
        noisy_laws(RecordedRows.of(SOME, SOME % 3), 50, [150], 0.5, 0.25)


@pytest.mark.parametrize(
    ("s", "q", "message"),
    [
        ([0.5, 1], [1, 2], "s: must lie on a spacing"),
        ([1, math.nan], [1, 2], "s: must be finite"),
        ([1, 2], [1, math.inf], "q: must be finite"),
        ([1, 2], [1, 2.0**60], "q: must be finite and at most"),
        ([1, 2], [1], "one entry for each row"),
        ([], [], "there must be a row"),
    ],
)
def test_rows_that_are_none_are_refused(s: Any, q: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        RecordedRows.of(s, q)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_noise_that_is_none_is_refused(bad: float) -> None:
    rows = RecordedRows.of([0, 1], [0, 1])
    for sigma, step in ((bad, 1.0), (1.0, bad)):
        with pytest.raises(UsageError):
            noisy_laws(rows, 3, [1], sigma, step)
    with pytest.raises(UsageError):
        noisy_laws(rows, 3, [1], 1.0, 1.0, shift=math.nan)


# ------------------------------------------------------------------------------------------------------------- pairs of secrets


def brute(laws: NoisyLaws, epsilon: float, within: float) -> float:
    found = 0.0
    for a in range(len(laws.secrets)):
        for b in range(len(laws.secrets)):
            if abs(laws.secrets[a] - laws.secrets[b]) <= within:
                over = laws.probabilities[a] - math.exp(epsilon) * laws.probabilities[b]
                found = max(found, float(np.maximum(over, 0.0).sum()))
    return found


@pytest.mark.parametrize("within", [1, 3, 10, 100])
@pytest.mark.parametrize("epsilon", [0.0, 0.7, 3.0])
def test_blocks_find_what_every_pair_gives(within: int, epsilon: float) -> None:
    laws = noisy_laws(RecordedRows.of(SOME, SOME % 2 + SOME // 3), 12, range(20, 61), 1.0, 0.5)
    most = brute(laws, epsilon, within)
    charge = (1 + math.exp(epsilon)) * (laws.largest_eta + GRID_ETA)
    found = hockey_stick(laws, epsilon, within=within)
    assert most <= found.delta <= most * 1.002 + 1.01 * charge
    assert abs(found.pair[0] - found.pair[1]) <= within
    assert hockey_stick_lower(laws, epsilon, within=within) <= most
    assert hockey_stick(laws, epsilon, within=within, enough=most * 2).delta >= most


def test_listed_pairs_are_looked_at_both_ways() -> None:
    laws = noisy_laws(RecordedRows.of([0, 1], [0, 3]), 6, [1, 2, 3], np.array([0.5, 1.0, 2.0]), 0.5)
    for pair in ((0, 2), (2, 0)):
        assert hockey_stick(laws, 0.5, pairs=[pair]).delta == pytest.approx(
            max(twin.delta(laws.probabilities[a], laws.probabilities[b], 0.5) for a, b in ((0, 2), (2, 0))), rel=1e-6
        )
    with pytest.raises(UsageError, match="pairs"):
        hockey_stick(laws, 0.5, pairs=[(0, 3)])


def test_epsilon_at_is_on_the_private_side() -> None:
    laws = noisy_laws(RecordedRows.of(SOME, SOME % 2 + SOME // 3), 12, range(20, 61), 1.0, 0.5)
    epsilon = epsilon_at(laws, 1e-3, within=5)
    assert hockey_stick(laws, epsilon, within=5, close=1e-6).delta <= 1e-3
    assert brute(laws, epsilon * 0.998, 5) > 1e-3
    same, pair = worst_at(laws, 1e-3, within=5)
    assert same == epsilon
    assert pair is not None
    first, second = (list(laws.secrets).index(one) for one in pair)
    assert hockey_stick_lower(laws, epsilon * 0.998, pairs=[(first, second)]) > 1e-3


def test_the_search_for_the_worst_pair_may_fail_and_all_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    laws = noisy_laws(RecordedRows.of(SOME, SOME % 2 + SOME // 3), 12, range(20, 61), 1.0, 0.5)
    found = epsilon_at(laws, 1e-3, within=5)
    monkeypatch.setattr(recorded_pairs, "_MOST_PAIRS", 0)
    again, pair = worst_at(laws, 1e-3, within=5)
    assert pair is None
    assert again == pytest.approx(found, rel=2e-3)
    assert hockey_stick(laws, again, within=5, close=1e-6).delta <= 1e-3


def test_what_the_laws_miss_is_charged() -> None:
    laws = noisy_laws(RecordedRows.of(SOME, SOME % 2), 12, range(30, 40), 5.0, 0.5)
    wide = NoisyLaws(laws.secrets, laws.bins, laws.step, laws.probabilities, laws.eta + 1e-4)
    gained = hockey_stick(wide, 1.0).delta - hockey_stick(laws, 1.0).delta
    assert gained == pytest.approx((1 + math.e) * 1e-4, rel=1e-6)
    assert hockey_stick(NoisyLaws(laws.secrets, laws.bins, laws.step, laws.probabilities, laws.eta + 1.0), 0.0).delta == 1.0


def test_the_grid_of_the_noise_is_charged() -> None:
    """Rounding to a grid of 2^-32 sigma moves a normal law by half a step; noise on the grid is drawn by `noise.exact`."""
    moved = max(granularity(sigma) / sigma for sigma in (1.0, 1.5, 1.999, 2.0, 1e-9, 3e17)) / 2
    assert 2 * math.erf(moved / 2 / math.sqrt(2)) <= GRID_ETA
    exact = NoisyLaws(np.zeros(2), np.arange(2), 1.0, np.array([[0.5, 0.5], [0.5, 0.5]]), np.zeros(2))
    assert hockey_stick(exact, 1.0, pairs=[(0, 1)]).delta >= (1 + math.e) * GRID_ETA


def test_a_pair_that_no_law_has_is_refused() -> None:
    even, odd = RecordedRows.of([0, 2], [0, 1]), RecordedRows.of([1, 3], [0, 1])
    with pytest.raises(UsageError, match="under each law listed"):
        recorded_delta([even, odd], 3, [2, 3], 5.0, 1.0)
    assert recorded_delta([even, RecordedRows.of([0, 1], [0, 1])], 3, [2, 3], 50.0, 1.0) < 1e-6


def test_no_number_is_no_pass() -> None:
    laws = noisy_laws(RecordedRows.of(SOME, SOME % 2), 12, [30, 31], 5.0, 0.5)
    broken = NoisyLaws(laws.secrets, laws.bins, laws.step, laws.probabilities * math.nan, laws.eta)
    for one, epsilon in ((broken, 1.0), (laws, math.nan), (laws, math.inf), (laws, -1.0)):
        with pytest.raises(UsageError):
            recorded_pairs.hockey_stick(one, epsilon)
