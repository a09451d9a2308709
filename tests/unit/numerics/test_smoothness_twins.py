"""Public records against a stated channel: every number against a slow twin that goes from record to record."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from attrpriv.errors import UsageError
from attrpriv.numerics import smoothness
from attrpriv.numerics.smoothness import Function, check_cells, check_places, functions, left_over, separated

Array = NDArray[np.float64]


# --- functions ---------------------------------------------------------------------------------------------------------------


def midranks(values: Sequence[float]) -> list[float]:
    return [(sum(y < x for y in values) + (sum(y == x for y in values) + 1) / 2) / len(values) for x in values]


def variance(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((x - mean) ** 2 for x in values) / (len(values) - 1) if len(values) > 1 else 0.0


def disagreement(values: Sequence[Any]) -> float:
    pairs = list(itertools.combinations(values, 2))
    return sum(a != b for a, b in pairs) / len(pairs) if pairs else 0.0


def within(groups: Sequence[int], other: Sequence[Any], number: bool) -> float:
    told, measure = (midranks(other), variance) if number else (list(other), disagreement)
    parts = [[x for x, g in zip(told, groups, strict=True) if g == group] for group in set(groups)]
    parts = [part for part in parts if len(part) > 1]
    inside = sum(len(part) * measure(part) for part in parts) / sum(map(len, parts))
    return inside / measure(told) if measure(told) else 1.0


def windows(given: Sequence[float]) -> list[int]:
    """Tens of records in order; equal values are in the window of the last of them."""
    firsts = sorted(set(sorted(given)[::10]))
    return [sum(x >= first for first in firsts) for x in given]


def slow_left(given: Sequence[Any], other: Sequence[Any], *, by_number: bool, number: bool) -> float:
    ways = [list(map(sorted(set(given)).index, given)), *([windows(given)] if by_number else [])]
    kept = [groups for groups in ways if sum(n for n in Counter(groups).values() if n > 1) >= 50]
    return min((within(groups, other, number) for groups in kept), default=1.0)


def columns(seed: int, size: int) -> dict[str, NDArray[Any]]:
    """Ties, single records, gaps, and what is not spread evenly."""
    rng = np.random.default_rng(seed)
    base = rng.exponential(3.0, size=size)
    return {
        "fine": base,
        "coarse": np.floor(base * 2),
        "noisy": np.round(base + rng.normal(size=size), 1),
        "letters": np.array(list("abcdefghijklmnopqrstuvwxyz"))[np.minimum(25, (base * 3).astype(int))],
        "coin": np.where(rng.random(size) < 0.3, "x", "y"),
    }


@pytest.mark.parametrize(("seed", "size"), [(1, 60), (2, 73), (3, 52)])
def test_what_is_left_is_that_of_pairs_and_of_ranks(seed: int, size: int) -> None:
    told = columns(seed, size)
    number = {name: name in ("fine", "coarse", "noisy") for name in told}
    found = {}
    for given, other in itertools.permutations(told, 2):
        one, two = told[given].tolist(), told[other].tolist()
        wanted = slow_left(one, two, by_number=number[given], number=number[other])
        found[given, other] = left_over(told[given], told[other])
        assert found[given, other] == pytest.approx(wanted, rel=1e-9, abs=1e-12)
    assert len({round(x, 6) for x in found.values()}) > 10


def test_missing_numbers_are_a_window_of_their_own() -> None:
    """And not in that of the largest ones, of whose disagreement they would then be a part."""
    rng = np.random.default_rng(6)
    base = rng.permutation(np.arange(70.0))
    given = np.where(base < 20, math.nan, base)
    for other in (np.where(base < 20, -5.0, base), np.where(base < 20, "lost", np.where(base < 45, "few", "many"))):
        one = [1e9 if math.isnan(x) else x for x in given.tolist()]  # they begin no window of the others
        groups = [99 if x == 1e9 else place for x, place in zip(one, windows(one), strict=True)]
        number = other.dtype.kind == "f"
        assert left_over(given, other) == pytest.approx(within(groups, other.tolist(), number), rel=1e-9, abs=1e-12)
    assert smoothness._windows(np.array([math.nan, 1.0, math.nan, 2.0])).tolist() == [2, 1, 2, 1]


def test_records_that_are_alone_and_numbers_that_are_not_there() -> None:
    found = smoothness._variances(np.array([2, 0, 2, 2]), np.array([1.0, 5.0, 2.0, 6.0]), np.array([1, 0, 3]))
    assert found.tolist() == [0.0, 0.0, 7.0]
    assert smoothness._windows(np.array([math.nan, math.nan])).tolist() == [0, 0]
    assert smoothness._windows(np.array([math.nan, 5.0])).tolist() == [2, 1]


def test_fifty_records_that_are_alike_are_enough() -> None:
    """Of 25 pairs each with one value; and of a record less, with one that is alone."""
    given = np.array([f"v{k // 2}" for k in range(50)])
    other = np.arange(50.0) // 2
    assert left_over(given, other) == 0.0
    assert left_over(np.append(given[:49], "alone"), other) == 1.0
    assert left_over(np.array(["a"] * 50), np.array(["b"] * 50)) == 1.0  # nothing that could be told


def test_a_function_is_told_from_the_share_on_that_may_be_left() -> None:
    told = columns(4, 60)
    left = left_over(told["fine"], told["noisy"])
    back = left_over(told["noisy"], told["fine"])
    most = max(left, back)
    assert 0 < min(left, back) < most < 1
    both = (Function("noisy", False, left), Function("noisy", True, back))
    assert functions(told["fine"], {"noisy": told["noisy"]}, most) == both
    less = functions(told["fine"], {"noisy": told["noisy"]}, most * (1 - 1e-12))
    assert less == tuple(one for one in both if one.left < most)
    assert functions(told["fine"], {"letters": told["letters"]}, 0.0) == ()
    for bad in (1.0, -1e-9, math.nan):
        with pytest.raises(UsageError, match="most_left"):
            functions(told["fine"], {}, bad)


# --- neighbours --------------------------------------------------------------------------------------------------------------


def slow_features(told: dict[str, NDArray[Any]], numbers: set[str]) -> Array:
    found = []
    for name, column in told.items():
        if name in numbers:
            there = [float(x) for x in column if math.isfinite(x)]
            mean = math.fsum(there) / len(there) if there else 7.0
            found.append([float(x) if math.isfinite(x) else mean for x in column])
            found.append([1.0 if math.isfinite(x) else 0.0 for x in column])
        else:
            levels = sorted(set(column.tolist()), key=lambda level: (-column.tolist().count(level), level))[:100]
            found += [[1.0 if x == level else 0.0 for x in column.tolist()] for level in levels]
    kept = []
    for one in found:
        mean = math.fsum(one) / len(one)
        sd = math.sqrt(math.fsum((x - mean) ** 2 for x in one) / len(one))
        if sd > 1e-12:
            kept.append([(x - mean) / sd for x in one])
    return np.array(kept).T


def slow_direction(lower: Array, upper: Array) -> Array:
    p, n = lower.shape[1], len(lower) + len(upper)
    spread = np.zeros((p, p))
    for group in (lower, upper):
        for row in group - group.mean(axis=0):
            spread += np.outer(row, row) / n
    ridge = max(0.01, p / n) * sum(spread[k, k] for k in range(p)) / p
    return np.asarray(np.linalg.inv(spread + ridge * np.eye(p)) @ (upper.mean(axis=0) - lower.mean(axis=0)))


def slow_distance(lower: Sequence[float], upper: Sequence[float]) -> tuple[float, float]:
    a, b, va, vb = len(lower), len(upper), variance(lower), variance(upper)
    pooled = (va + vb) / 2
    d = (math.fsum(upper) / b - math.fsum(lower) / a) / math.sqrt(pooled)

    def of_squares(group: Sequence[float]) -> float:
        mean = math.fsum(group) / len(group)
        squares = [(x - mean) ** 2 for x in group]
        centre = math.fsum(squares) / len(squares)
        return math.fsum((x - centre) ** 2 for x in squares) / len(squares) / len(group)

    # The delta method: d d/d pooled = -d/(2 pooled), and pooled is half the sum of two variances.
    moved = (d / (2 * pooled)) ** 2 * (of_squares(lower) + of_squares(upper)) / 4
    return d, (va / a + vb / b) / pooled + moved


def slow_separated(lower: Array, upper: Array) -> tuple[float, float]:
    found = []
    for fold in range(5):
        inner = [np.array([row for k, row in enumerate(group) if k % 5 != fold]) for group in (lower, upper)]
        outer = [np.array([row for k, row in enumerate(group) if k % 5 == fold]) for group in (lower, upper)]
        way = slow_direction(*inner)
        found.append(slow_distance((outer[0] @ way).tolist(), (outer[1] @ way).tolist()))
    return sum(d for d, _ in found) / 5, math.sqrt(sum(v for _, v in found)) / 5


def slow_allowed(lower: Sequence[float], upper: Sequence[float], information: float) -> float:
    def quantile(values: Sequence[float], share: float) -> float:
        at = share * (len(values) - 1)
        k = min(int(at), len(values) - 2)
        ordered = sorted(values)
        return ordered[k] + (at - k) * (ordered[k + 1] - ordered[k])

    shares = [(k + 0.5) / 200 for k in range(200)]
    gaps = [quantile(upper, share) - quantile(lower, share) for share in shares]
    return math.sqrt(sum(math.exp(information * gap * gap) - 1 for gap in gaps) / 200)


def table(seed: int, size: int) -> tuple[Array, dict[str, NDArray[Any]], set[str]]:
    rng = np.random.default_rng(seed)
    hidden = np.round(rng.normal(size=size), 1)
    told: dict[str, NDArray[Any]] = {
        "z": np.where(rng.random(size) < 0.1, math.nan, 0.4 * hidden + rng.normal(size=size)),
        "w": rng.exponential(size=size) + 0.2 * hidden,
        "letter": rng.choice(list("aab"), size=size),
        "none": np.full(size, math.nan),
        "one": np.full(size, "same"),
    }
    return hidden, told, {"z", "w", "none"}


def slow_places(
    hidden: Array, features: Array, places: Sequence[float], rows: int, information: float, level: float
) -> list[tuple[Any, ...]]:
    errors, found = NormalDist().inv_cdf(1 - level / len(places)), []
    order = sorted(range(len(hidden)), key=lambda k: hidden[k])
    for place in places:
        lower = [k for k in order if hidden[k] < place][-rows:]
        upper = [k for k in order if hidden[k] >= place][:rows]
        found.append(slow_verdict(hidden, features, lower, upper, place, information, errors))
    return found


def slow_verdict(
    hidden: Array, features: Array, lower: list[int], upper: list[int], place: float, information: float, errors: float
) -> tuple[Any, ...]:
    if min(len(lower), len(upper)) < 50:
        return (place, "too few records", 0.0, 0.0, 0.0, (len(lower), len(upper)))
    d, error = slow_separated(features[lower], features[upper])
    allowed = slow_allowed(hidden[lower].tolist(), hidden[upper].tolist(), information)
    said = "refused" if d - errors * error > allowed else "not refuted"
    return (place, said, d, error, allowed, (len(lower), len(upper)))


def compared(found: Sequence[smoothness.Verdict], wanted: Sequence[tuple[Any, ...]]) -> None:
    for one, other in zip(found, wanted, strict=True):
        assert (one.place, one.finding, one.records) == (other[0], other[1], other[5])
        assert (one.separation, one.error, one.allowed) == pytest.approx(other[2:5], rel=1e-6)


@pytest.mark.parametrize(("rows", "information", "level"), [(60, 0.3, 0.01), (80, 0.01, 0.2), (50, 2.0, 0.05)])
def test_places_as_a_slow_twin_compares_them(rows: int, information: float, level: float) -> None:
    hidden, told, numbers = table(3, 220)
    features = slow_features(told, numbers)
    assert smoothness._features(told, 220) == pytest.approx(features, rel=1e-9, abs=1e-9)
    places = [-0.45, 0.05, 0.3, 2.5]
    found = check_places(hidden, told, places, rows, information, level)
    compared(found, slow_places(hidden, features, places, rows, information, level))
    assert found[-1].finding == "too few records"


def test_cells_as_a_slow_twin_divides_them() -> None:
    """By the value that divides a cell most evenly; the last cell has its end, and an empty one is divided where it begins."""
    hidden, told, numbers = table(5, 330)
    features, edges = slow_features(told, numbers), [-9.0, -0.5, 0.5, float(hidden.max()), 20.0, 30.0]
    for cells in (edges, edges[:4], edges[1:3]):
        wanted = []
        for k, (low, high) in enumerate(itertools.pairwise(cells)):
            last = k == len(cells) - 2
            inside = [i for i, x in enumerate(hidden) if low <= x < high or (last and x == high)]
            values = sorted(set(hidden[inside].tolist()))
            place = min(values, key=lambda v: abs(sum(hidden[i] < v for i in inside) - len(inside) / 2)) if values else low
            halves = [i for i in inside if hidden[i] < place], [i for i in inside if hidden[i] >= place]
            errors = NormalDist().inv_cdf(1 - 0.05 / (len(cells) - 1))
            wanted.append(slow_verdict(hidden, features, *halves, place, 0.2, errors))
        compared(check_cells(hidden, told, cells, 0.2, 0.05), wanted)


@pytest.mark.parametrize("places", [1, 3])
def test_refused_is_what_is_further_than_allowed_and_than_chance(places: int) -> None:
    """Hidden values 0 and 2 only, so that the information can be chosen for which exactly as much is allowed."""
    rng = np.random.default_rng(2)
    hidden = np.repeat([0.0, 2.0], [60, 75])
    told = {"z": 2 * hidden + rng.normal(size=135)}
    verdict = check_places(hidden, told, [2.0] * places, 100, 1.0, 0.03)[0]
    sure = verdict.separation - NormalDist().inv_cdf(1 - 0.03 / places) * verdict.error
    assert sure > 0.5
    for more, said in ((1 - 1e-6, "refused"), (1 + 1e-6, "not refuted")):
        information = math.log1p((more * sure) ** 2) / 4
        assert {one.finding for one in check_places(hidden, told, [2.0] * places, 100, information, 0.03)} == {said}


def test_one_record_on_each_side_may_be_asked_for() -> None:
    hidden = np.repeat([0.0, 2.0], [60, 75])
    assert check_places(hidden, {"z": hidden}, [2.0], 1, 1.0)[0].records == (1, 1)
    for places in ([0.0, math.nan], [math.inf, 0.0]):
        with pytest.raises(UsageError, match="places"):
            check_places(hidden, {"z": hidden}, places, 1, 1.0)
    for level in (0.0, 1.0):
        with pytest.raises(UsageError, match="level"):
            check_places(hidden, {"z": hidden}, [2.0], 1, 1.0, level)


def test_scores_that_are_alike_within_a_group_or_everywhere() -> None:
    """As if one record were on the wrong side: d' is the root of their number. Where all are alike, of means alone."""
    assert smoothness._distance(np.zeros(20), np.full(30, 3.0)) == pytest.approx((math.sqrt(50), 0.0))
    assert smoothness._distance(np.ones(20), np.ones(50)) == (0.0, 1 / 20 + 1 / 50)
    rng = np.random.default_rng(7)
    lower, upper = rng.exponential(size=30), rng.exponential(2.0, size=45)
    assert smoothness._distance(lower, upper) == pytest.approx(slow_distance(lower.tolist(), upper.tolist()), rel=1e-9)


@pytest.mark.parametrize("width", [1, 3, 12])
def test_the_discriminant_and_its_folds(width: int) -> None:
    """With few columns the ridge is a hundredth; with many it is their number by that of the records."""
    rng = np.random.default_rng(width)
    lower, upper = rng.normal(size=(53, width)), rng.normal(0.4, 1.5, size=(71, width))
    assert smoothness._discriminant(lower, upper) == pytest.approx(slow_direction(lower, upper), rel=1e-6)
    assert separated(lower, upper) == pytest.approx(slow_separated(lower, upper), rel=1e-6)


def test_what_is_allowed_is_finite_however_far_it_is() -> None:
    near, far = np.array([0.0, 1.0, 4.0]), np.array([1.0, 5.0, 5.5, 9.0])
    assert smoothness._allowed(near, far, 0.3) == pytest.approx(slow_allowed(near.tolist(), far.tolist(), 0.3), rel=1e-9)
    assert smoothness._allowed(near, far + 1e3, 1.0) == pytest.approx(math.exp(350.0), rel=1e-9)


def test_the_most_frequent_of_many_levels_have_a_column() -> None:
    """A hundred of them; of the others, which are all as rare, none."""
    levels = [f"v{k:03d}" for k in range(104)]
    column = np.array([*levels, *levels[4:]])
    found = smoothness._one_hot(column)
    assert len(found) == 100
    assert all(one.sum() == 2 for one in found)
    assert smoothness._features({}, 3).tolist() == [[0.0], [0.0], [0.0]]


def test_the_value_in_the_middle_is_the_first_that_divides_most_evenly() -> None:
    assert smoothness._middle(np.array([1.0, 2.0, 2.0, 3.0])) == 2.0
    assert smoothness._middle(np.array([4.0, 3.0, 3.0, 3.0])) == 4.0
    assert smoothness._middle(np.array([5.0, 5.0])) == 5.0
    assert smoothness._middle(np.array([1.0, 2.0, 2.0, 2.0, 3.0, 9.0])) == 3.0
