"""Which secrets have no law, which numbers are none, and how large a window may be."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.laws import recorded_inversion
from attrpriv.numerics.laws.recorded_inversion import NoisyLaws, noisy_laws
from attrpriv.numerics.laws.recorded_rows import RecordedRows
from tests.unit.numerics.laws.test_recorded_inversion import KINDS, N, made, rows_of

# ------------------------------------------------------------------------------------------------------ what has no law


def test_sums_are_void_where_no_rows_have_them_and_out_of_reach_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted from the nearer end, which may be at most so far away."""
    rows = RecordedRows.of([0, 4, 7, 9], [1, 2, 3, 4])
    possible = {sum(one) for one in itertools.combinations_with_replacement((0, 4, 7, 9), 3)}
    for total in range(28):
        if total in possible:
            with pytest.raises(UsageError, match="out of reach"):
                recorded_inversion._require_void(rows, 3, total)
        else:
            recorded_inversion._require_void(rows, 3, total)
    for total, near in ((10, 10), (24, 3), (19, 8)):
        assert total not in possible
        monkeypatch.setattr(recorded_inversion, "_MOST_BINS", near)
        recorded_inversion._require_void(rows, 3, total)
        monkeypatch.setattr(recorded_inversion, "_MOST_BINS", near - 1)
        with pytest.raises(UsageError, match="out of reach"):
            recorded_inversion._require_void(rows, 3, total)


def test_secrets_that_no_rows_have_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = RecordedRows.of([0, 4, 7, 9], [1, 2, 3, 4])
    laws = noisy_laws(rows, 3, [27, 26, 13.5, 8, 2, 0, -1, 28, 11], 0.5, 0.5)
    assert laws.secrets.tolist() == [0, 8, 11, 27]
    assert laws.void == (26.0, 13.5, 2.0, -1.0, 28.0)
    assert laws.probabilities.sum(axis=1) == pytest.approx(np.ones(4))
    nothing = noisy_laws(rows, 3, [2, 1], 0.5, 0.5)
    assert (len(nothing.secrets), len(nothing.bins), len(nothing.eta), nothing.void) == (0, 0, 0, (2.0, 1.0))
    assert (nothing.probabilities.shape, nothing.largest_eta) == ((0, 0), 0.0)
    with pytest.raises(UsageError, match="differ"):
        noisy_laws(rows, 3, [8, 4, 8], 0.5, 0.5)
    # A sum of which its tilt is not sure gets one of its own; of one that even that is not sure of, nothing is told.
    alone = noisy_laws(rows, 3, [8, 11], 0.5, 0.5)
    monkeypatch.setattr(recorded_inversion, "_SURE", 1e-15)
    with pytest.raises(UsageError, match="out of reach"):
        noisy_laws(rows, 3, [8, 11], 0.5, 0.5)
    assert alone.void == ()


def test_sums_that_are_far_apart_have_tilts_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one for all of them is not sure of some."""
    rows = RecordedRows.of([0, 1, 4], [1, 5, 2])
    for sums in ([30, 350], [30, 190, 350]):
        laws = noisy_laws(rows, 100, sums, 3.0, 1.0)
        with monkeypatch.context() as patch:
            patch.setattr(recorded_inversion, "spans", lambda reduced, n, rows: [list(range(len(reduced)))])
            again = noisy_laws(rows, 100, sums, 3.0, 1.0)
        assert again.secrets.tolist() == laws.secrets.tolist() == sums
        common = [np.isin(one.bins, other.bins) for one, other in ((laws, again), (again, laws))]
        apart = np.abs(laws.probabilities[:, common[0]] - again.probabilities[:, common[1]]).sum(axis=1)
        assert (apart <= laws.eta + again.eta).all()
        assert again.largest_eta < 1e-9


def test_a_share_is_of_rows_that_are_or_are_not() -> None:
    both, ones, none = (RecordedRows.of(s, [3, 4, 6]) for s in ([0, 1, 1], [1, 1, 1], [0, 0, 0]))
    for rows, known in ((both, [0, 2, 4]), (ones, [4]), (none, [0])):
        laws = noisy_laws(rows, 4, [-1, 0, 1.5, 2, 4, 5], 0.5, 0.5, secret="share")
        assert laws.secrets.tolist() == known
        assert laws.void == tuple(float(x) for x in (-1, 0, 1.5, 2, 4, 5) if x not in known)
        assert all(
            abs(law @ laws.bins * 0.5 - mean) < 1e-9 for law, mean in zip(laws.probabilities, means(rows, known), strict=True)
        )
    nothing = noisy_laws(both, 4, [5, -1], 0.5, 0.5, secret="share")
    assert (len(nothing.secrets), nothing.void) == (0, (5.0, -1.0))
    for s in ([0, 2, 2], [1, 2, 2], [-1, 0, 0], [5, 5, 5]):
        with pytest.raises(UsageError, match="share"):
            noisy_laws(RecordedRows.of(s, [1, 2, 3]), 4, [2], 0.5, 0.5, secret="share")
    with pytest.raises(UsageError, match="share"):
        noisy_laws(RecordedRows.of([0, 0.5, 0], [1, 2, 3], spacing=(0.5, 1)), 4, [2], 0.5, 0.5, secret="share")


def means(rows: RecordedRows, known: Sequence[int]) -> list[float]:
    """Of four rows of which so many are ones."""
    one, none = (5.0, 3.0) if rows.width else (13 / 3, 13 / 3)
    return [4 * none + many * (one - none) for many in known]


@pytest.mark.parametrize(
    ("n", "secrets", "sigma", "step", "shift"),
    [
        (0, [1], 1.0, 1.0, None), (2**31, [1], 1.0, 1.0, None), (4, [], 1.0, 1.0, None), (4, [[1]], 1.0, 1.0, None),
        (4, [1, 2], [1.0, 0.0], 1.0, None), (4, [1], 1.0, 0.0, None), (4, [1], 1.0, math.inf, None),
        (4, [1, 2], [1.0, 1.0, 1.0], 1.0, None), (4, [1], 1.0, 1.0, [1.0, 2.0]), (4, [1, 2], 1.0, 1.0, [0.0, math.inf]),
        (4, [1, 2], [1.0, math.nan], 1.0, None), (4, [1, 2], [[1.0], [2.0]], 1.0, None),
    ],
)  # fmt: skip
def test_numbers_that_are_none_are_refused(n: int, secrets: Any, sigma: Any, step: float, shift: Any) -> None:
    with pytest.raises(UsageError):
        noisy_laws(rows_of(KINDS), n, secrets, sigma, step, shift, "share")


def test_fewer_than_two_thousand_million_rows_are_counted() -> None:
    for n in (1, 2**31 - 1):
        assert noisy_laws(RecordedRows.of([1], [0]), n, [n], 1.0, 1.0, None, "share").secrets.tolist() == [n]
    for n in (0, 2**31):
        with pytest.raises(UsageError, match="fewer than"):
            noisy_laws(RecordedRows.of([1], [0]), n, [n], 1.0, 1.0, None, "share")


# --------------------------------------------------------------------------------------------------------- what is too large


def test_windows_hold_only_so_many_bins(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of(KINDS)

    def laws(step: float = 2.0, shift: float = 0.0) -> NoisyLaws:
        return noisy_laws(rows, N, [1, 4], 0.11, step, shift, "share")

    found = made(rows, N, [1, 4], 0.11, 2.0, secret="share")
    (run,) = found.runs
    low, high = min(run.centres - run.widths[0]), max(run.centres + run.widths[1])
    bins, parts = len(found.laws.bins), 64
    assert bins * parts // 2 < 2 * math.ceil(8.2 * bins * 2 / (2 * math.pi * 0.11)) + 2 <= bins * parts
    for name, most, message in (
        ("_MOST_BINS", bins * parts, "too many bins"),
        ("_MOST_ENTRIES", bins * 2, "too many bins"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(recorded_inversion, name, most)
            laws()
            patch.setattr(recorded_inversion, name, most - 1)
            with pytest.raises(UsageError, match=message):
                laws()
    for factor, message in ((0.999, "too far apart"), (1.001, "too many bins")):
        with monkeypatch.context() as patch:
            patch.setattr(recorded_inversion, "_MOST_BINS", (high - low) / 2 * factor)
            with pytest.raises(UsageError, match=message):
                laws()
    for shift in (1e4, -1e4):
        far = max(abs(low + shift), abs(high + shift)) / 2
        with monkeypatch.context() as patch:
            patch.setattr(recorded_inversion, "_LARGEST_BIN", far * 1.001)
            laws(shift=shift)
            patch.setattr(recorded_inversion, "_LARGEST_BIN", far * 0.999)
            with pytest.raises(UsageError, match="too far apart"):
                laws(shift=shift)
