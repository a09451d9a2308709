"""Public rows as whole numbers, and the tilts of their law: against fractions, 40 digits, and all tables of few rows."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest

from attrpriv.errors import UsageError
from attrpriv.numerics.laws import recorded_rows
from attrpriv.numerics.laws.recorded_rows import RecordedRows, Tilt, pairwise, short, spans, whole
from attrpriv.numerics.rounding import UNIT

# Values of s with gaps and unequal numbers of rows; q is skewed, of both signs and tied to s.
S, Q, COUNTS = [5, 5, 7, 11, 11, 11, 17], [3, -4, 2, 9, -1, 9, 40], [3, 1, 5, 2, 7, 1, 4]
ROWS = RecordedRows.of(S, Q, COUNTS)
MOST = 2**40


# --------------------------------------------------------------------------------------------------------- whole numbers


def test_rows_that_are_alike_are_one_and_rows_that_do_not_occur_are_none() -> None:
    rows = RecordedRows.of([11, 5, 5, 7, 11, 8], [9, 3, 3, 2, 9, 0], [2, 1, 2, 5, 1, 0])
    assert (rows.least, rows.divisor) == (5, 2)  # 8 has no row, and would make it 1
    assert list(zip(rows.s, rows.q, rows.counts, strict=True)) == [(0, 3, 3), (1, 2, 5), (3, 9, 3)]
    assert (rows.total, rows.width) == (11, 3)
    alone = RecordedRows.of([6], [1])
    assert (alone.least, alone.divisor, alone.s.tolist(), alone.counts.tolist()) == (6, 1, [0], [1])
    assert RecordedRows.of([1, 2], [3, 4], [0, 1]).total == 1


@pytest.mark.parametrize(
    ("s", "q", "counts"),
    [
        ([1, 2], [1], [1, 1]), ([1], [1, 2], [1, 1]), ([1, 2], [1, 2], [1]), ([], [], []), ([1, 2], [1, 2], [0, 0]),
        ([1, 2], [1, 2], [3, -1]), ([1, 2], [1, 2], [-1, -1]), ([1, 2], [1, 2], [1.5, 1]),
    ],
)  # fmt: skip
def test_rows_and_counts_that_do_not_fit_are_refused(s: list[int], q: list[int], counts: list[float]) -> None:
    with pytest.raises(UsageError):
        RecordedRows.of(s, q, counts)


def test_columns_are_counted_in_their_own_spacings() -> None:
    rows = RecordedRows.of([0.1, 0.4, 0.7], [2.5, 0.0, -7.5], spacing=(0.1, Fraction(5, 2)))
    assert rows.spacing == (Fraction(1, 10), Fraction(5, 2))
    assert (rows.least, rows.divisor, rows.s.tolist(), rows.q.tolist()) == (1, 3, [0, 1, 2], [1, 0, -3])
    for wrong in (0, 0.0, -1, Fraction(-1, 2)):
        with pytest.raises(UsageError, match="spacing of q"):
            RecordedRows.of([1], [1], spacing=(1, wrong))


@pytest.mark.parametrize("number", [3.0, -250.0])
def test_what_lies_off_the_spacing_by_more_than_a_division_does_is_refused(number: float) -> None:
    near = 1e-9 * (1 + abs(number))
    for sign in (-1, 1):
        assert whole("q", [(number + sign * 0.99 * near) / 4], Fraction(1, 4)).tolist() == [number]
        with pytest.raises(UsageError, match=r"must lie on a spacing of 0\.25"):
            whole("q", [number / 4, (number + sign * 1.01 * near) / 4], Fraction(1, 4))


def test_whole_numbers_have_at_most_forty_bits() -> None:
    for spacing in (Fraction(1), Fraction(2), Fraction(1, 2)):
        for sign in (-1, 1):
            values: list[Any] = [np.array([sign * MOST * float(spacing)])]
            values += [np.array([sign * MOST * int(spacing)])] if spacing >= 1 else []
            for value in values:
                assert whole("q", value, spacing).tolist() == [sign * MOST]
                beyond = value + sign * np.ceil(float(spacing)).astype(value.dtype)
                with pytest.raises(UsageError, match="at most 2"):
                    whole("q", beyond, spacing)
    assert whole("q", np.array([4, -6]), Fraction(2)).tolist() == [2, -3]
    assert whole("q", [], Fraction(1)).size == 0


def test_a_sum_of_the_column_is_a_sum_of_whole_numbers_or_none() -> None:
    """Of two or three rows with s = 0.5, 0.7, 1.1, 1.7."""
    rows = RecordedRows.of([x / 10 for x in S], Q, spacing=(0.1, 1))
    assert (rows.least, rows.divisor, rows.width) == (5, 2, 6)
    for n in (2, 3):
        sums = range(5 * n, 17 * n + 1, 2)
        for tenths in range(60):
            assert rows.reduced(n, tenths / 10) == ((tenths - 5 * n) // 2 if tenths in sums else None)
    near = Fraction(1, 10**9) * 24
    assert rows.reduced(3, (23 + near * Fraction(99, 100)) / 10) == rows.reduced(3, (23 - near * Fraction(99, 100)) / 10) == 4
    assert rows.reduced(3, (23 + near * Fraction(101, 100)) / 10) is None
    assert rows.reduced(3, (23 - near * Fraction(101, 100)) / 10) is None


@pytest.mark.parametrize("n", [1, 2, 3, 5])
@pytest.mark.parametrize("s", [[0, 3, 5, 9], [0, 1, 6]])
def test_sums_are_attainable_where_some_rows_have_them(n: int, s: list[int]) -> None:
    rows = RecordedRows.of(s, s)
    sums = {sum(one) for one in itertools.combinations_with_replacement(rows.s.tolist(), n)}
    for most in (0, 1, 3, 8, 9, 10, 47):
        assert rows.attainable(n, most).tolist() == [k in sums for k in range(most + 1)]


def test_the_rows_of_one_value_keep_what_they_add() -> None:
    rows = RecordedRows.of([x / 10 for x in S], Q, COUNTS, spacing=(0.1, 1))
    only = rows.only(3)
    assert (only.least, only.divisor, only.width, only.spacing) == (11, 1, 0, rows.spacing)
    assert list(zip(only.s, only.q, only.counts, strict=True)) == [(0, -1, 7), (0, 9, 3)]
    assert only.reduced(4, 4.4) == 0


@pytest.mark.parametrize("value", [0.1, -37.3, 1 / 3 * 2**30, 5e-9, 4.0])
def test_short_numbers_are_the_nearest_of_22_bits(value: float) -> None:
    step = Fraction(2) ** (math.floor(math.log2(abs(value))) + 1 - 22)
    assert Fraction(short(value)) == round(Fraction(value) / step) * step
    assert short(0.0) == 0.0


# ------------------------------------------------------------------------------------------------------------------- tilts


def weights_of(theta: float) -> list[mpmath.mpf]:
    found = [int(c) * mpmath.exp(mpmath.mpf(theta) * int(s)) for s, c in zip(ROWS.s, ROWS.counts, strict=True)]
    return [one / mpmath.fsum(found) for one in found]


@pytest.mark.parametrize("mean", [0.4, 2.5, 5.5])
def test_a_tilt_is_the_law_with_each_row_weighed_by_its_s(mean: float) -> None:
    tilt = Tilt.at(ROWS, mean)
    s, q = ROWS.s.tolist(), ROWS.q.tolist()
    with mpmath.workdps(40):
        exact = weights_of(tilt.theta)
        assert float(mpmath.fdot(exact, s)) == pytest.approx(mean, rel=1e-9)
        assert tilt.weights == pytest.approx([float(w) for w in exact], rel=1e-13)
        assert tilt.log_weights == pytest.approx([float(mpmath.log(w)) for w in exact], rel=1e-13)
        middles = [float(mpmath.fdot(exact, one)) for one in (s, q)]
    assert tilt.values.tolist() == [0, 1, 3, 6]
    assert [s[a:b] for a, b in itertools.pairwise(tilt.ends)] == [[0, 0], [1], [3, 3], [6]]
    assert tilt.of_value == pytest.approx([tilt.weights[a:b].sum() for a, b in itertools.pairwise(tilt.ends)], rel=1e-15)
    assert tilt.centre == pytest.approx(tuple(middles), rel=2.0**-22)
    assert all(Fraction(one).numerator < 2**22 for one in tilt.centre)
    ds, dq = ROWS.s - tilt.centre[0], ROWS.q - tilt.centre[1]
    moments = [float(tilt.weights @ one) for one in (ds * ds, dq * dq, ds * dq)]
    assert tilt.spread == pytest.approx(moments, rel=1e-13)


@pytest.mark.parametrize("mean", [0.4, 5.5])
def test_the_shares_that_rounding_may_move_are_those_of_the_contract(mean: float) -> None:
    """Of each row: 72 units, a unit for each halving of rows, two for each halving of values, and two times the exponent."""
    tilt = Tilt.at(ROWS, mean)
    units = 72 + math.log2(6) + 2 * math.log2(5) + 2 * np.abs(tilt.theta * (ROWS.s - mean))
    assert float(units.max() - units.min()) > 1  # or the exponents do not count
    for share, column, centre in zip((tilt.share_s, tilt.share_q), (ROWS.s, ROWS.q), tilt.centre, strict=True):
        wanted = float(tilt.weights @ (units * np.abs(column - centre)))
        assert wanted <= share <= wanted * (1 + 1e-6)


def test_rows_of_one_value_are_not_tilted() -> None:
    tilt = Tilt.at(ROWS.only(3), 0.0)
    assert (tilt.theta, tilt.centre[0], tilt.spread[0]) == (0.0, 0.0, 0.0)
    assert tilt.weights.tolist() == [0.7, 0.3]


@pytest.mark.parametrize("at_once", [1, 1 << 18])
def test_moments_are_bounded_from_above(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded_rows, "_AT_ONCE", at_once)
    tilt = Tilt.at(ROWS, 2.5)
    of_s, of_q = np.array([0.3, 0.0, -2.0, 0.7, -50.0]), np.array([-0.2, 0.0, 0.1, 3.0, -11.0])
    found = tilt.log_moments(of_s, of_q)
    with mpmath.workdps(40):
        exact = weights_of(tilt.theta)
        away = [
            (int(a) - mpmath.mpf(tilt.centre[0]), int(b) - mpmath.mpf(tilt.centre[1]))
            for a, b in zip(ROWS.s, ROWS.q, strict=True)
        ]
        for k, (mu, lean) in enumerate(zip(of_s, of_q, strict=True)):
            truth = mpmath.log(mpmath.fsum(w * mpmath.exp(mu * a + lean * b) for w, (a, b) in zip(exact, away, strict=True)))
            assert float(truth) <= found[k] <= float(truth) + 1e-12 * (1 + abs(float(truth)))
    # Where the truth is 0 the allowance is seen alone: 256 units, one for each row, 8 for each unit of the largest exponent.
    units = 256 + 6 + 8 * float(np.abs(tilt.log_weights).max())
    assert found[1] == pytest.approx(UNIT * units, rel=0.02, abs=0)


def test_moments_beyond_the_floats_are_infinite() -> None:
    """Where the exponents, each with its largest value of s or q, could add up to 1e300."""
    tilt = Tilt.at(ROWS, 2.5)
    s, q = (float(np.abs(column - centre).max()) for column, centre in zip((ROWS.s, ROWS.q), tilt.centre, strict=True))
    for signs in itertools.product((-1, 1), repeat=2):
        ends = np.array([[0.6, 0.3], [0.3, 0.6], [0.6, 0.6], [1.01, 0.0], [0.0, 1.01], [0.98, 0.0], [0.0, 0.98]])
        found = tilt.log_moments(signs[0] * ends[:, 0] * 1e300 / s, signs[1] * ends[:, 1] * 1e300 / q)
        assert np.isinf(found).tolist() == [False, False, True, True, True, False, False]
        assert not np.isnan(found).any()


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 7, 8, 9])
def test_sums_by_halving_are_sums(length: int) -> None:
    terms = (np.arange(3 * length).reshape(3, length) + 1) ** 2
    assert pairwise(terms).tolist() == terms.sum(axis=1).tolist()
    assert float(pairwise(terms[0])) == terms[0].sum()


@pytest.mark.parametrize("n", [30, 20_000, 900_000])
def test_one_tilt_serves_sums_that_are_not_far_apart(n: int) -> None:
    """Each place is in one run. Chances fall like e^(-x^2/2): to one 800/sqrt(n)-th, or to 1/1.05."""
    reach = min(2.5, math.sqrt(2 * math.log(max(1.05, 800 / math.sqrt(n)))))
    sums = [1, 2, *range(n // 2, n // 2 + 40 * math.isqrt(n), math.isqrt(n) // 3), 6 * n - 1]
    runs = spans(sums, n, ROWS)
    assert [place for run in runs for place in run] == list(range(len(sums)))
    assert 3 < len(runs) < len(sums)
    for run, after in itertools.pairwise(runs):
        first = sums[run[0]]
        sd = math.sqrt(n * Tilt.at(ROWS, min(max(first / n, 0.5 / n), 6 - 0.5 / n)).spread[0])
        assert sums[run[-1]] <= first + 2 * reach * sd < sums[after[0]]
    assert spans([], n, ROWS) == []
