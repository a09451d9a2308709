"""Public records against what an owner states about a column: they may refuse a cell or set a break point, never approve one.

1. *Functions.* A column that a value of the hidden one determines (education from education-num), or that determines it, tells
the value itself. `left_over` is the share of a column's disagreement that is left between two records of one value, or of a
narrow window of values, of the other column: 0 for a function, about 1 for a column that has nothing to do with it.

2. *Neighbours.* Two groups of records with neighbouring values, z from P and from Q. A channel of information iota at order 2
has chi^2(K(u) || K(v)) <= e^(iota (u-v)^2) - 1, and by joint convexity chi^2(P || Q) is at most the mean of that over any
pairing of the two groups' values; they are paired in order. For every function f of z, by Cauchy-Schwarz,

    (E_P f - E_Q f)^2 <= chi^2(P || Q) Var_Q f,  and the same with P and Q exchanged,

so that d' = |E_P f - E_Q f| / sqrt((Var_P f + Var_Q f)/2) is at most the root of that mean, about sqrt(iota) times the
distance. (The score form has d'^2 <= x/(1 - x/4), x = iota (u-v)^2, below e^x - 1 for x up to 2.) f is a linear discriminant
from the other records of the two groups, so that d' does not flatter itself. A certificate of order alpha needs the assumption
at that order only, which lets D_2 be alpha/2 times as large: a refusal says that the stated number cannot be meant as it is
for normal rows.

| symbol | here |
|---|---|
| d', its standard error | `Verdict.separation`, `Verdict.error` |
| the root of the mean | `Verdict.allowed` |

What must never change: everything is computed from public records, and no verdict says that an assumption holds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from attrpriv.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Column = NDArray[Any]

_WINDOW = 10
_FEWEST = 50
_FOLDS = 5
_LEVELS = 100
_RIDGE = 0.01
_PAIRS = 200

Finding = Literal["refused", "not refuted", "too few records"]


# ----------------------------------------------------------------------------------------------------------------------------
# Functions.


@dataclass(frozen=True)
class Function:
    """A column that is nearly a function of the hidden one (`determines` False) or nearly determines it (True)."""

    column: str
    determines: bool
    left: float


def functions(hidden: Column, columns: Mapping[str, Column], most_left: float = 0.02) -> tuple[Function, ...]:
    """The columns of which at most this share is left once the hidden value is known, or the other way round.

    >>> import numpy as np
    >>> income = np.arange(1000.0)
    >>> functions(income, {"tax": 0.3 * income, "day": np.arange(1000) * 7919 % 7})
    (Function(column='tax', determines=False, left=...), Function(column='tax', determines=True, left=...))
    """
    if not 0 <= most_left < 1:
        raise UsageError(f"most_left: must be from 0 to below 1. Got {most_left}.")
    found = []
    for name, column in columns.items():
        pairs = ((False, left_over(hidden, column)), (True, left_over(column, hidden)))
        found += [Function(name, determines, left) for determines, left in pairs if left <= most_left]
    return tuple(found)


def left_over(given: Column, other: Column) -> float:
    """The share of the other column's disagreement between two records that is left between records alike in `given`.

    >>> import numpy as np
    >>> left_over(np.repeat([1, 2, 3], 40), np.repeat(["a", "b", "b"], 40))
    0.0
    """
    import numpy as np

    if len(given) != len(other):
        raise UsageError(f"columns: must have as many records each. Got {len(given)} and {len(other)}.")
    alike = [_codes(given)]
    if _is_number(given):
        alike.append(_windows(given))
    return min((_within(groups, other) for groups in alike if np.sum(np.bincount(groups)[groups] > 1) >= _FEWEST), default=1.0)


def _windows(given: Column) -> NDArray[np.int64]:
    """Records in the order of `given`, so many at a time; equal values stay together, and missing ones are by themselves."""
    import numpy as np

    numbers = np.asarray(given, dtype=np.float64)
    order = np.sort(numbers[np.isfinite(numbers)])
    if order.size == 0:
        return np.zeros(numbers.size, dtype=np.int64)
    firsts = np.unique(order[::_WINDOW])
    places = np.searchsorted(firsts, numbers, side="right")
    return np.asarray(np.where(np.isnan(numbers), firsts.size + 1, places), dtype=np.int64)


def _within(groups: NDArray[np.int64], other: Column) -> float:
    """Disagreement within groups by disagreement overall: different categories, or squared differences of ranks."""
    import numpy as np

    sizes = np.bincount(groups)
    weights = np.where(sizes > 1, sizes, 0) / max(1, int(np.sum(sizes[sizes > 1])))
    if _is_number(other):
        _, codes, times = np.unique(np.asarray(other, dtype=np.float64), return_inverse=True, return_counts=True)
        ranks = (np.cumsum(times) - (times - 1) / 2)[codes] / len(other)
        overall, inside = float(np.var(ranks, ddof=1)), _variances(groups, ranks, sizes)
    else:
        codes = _codes(other)
        overall, inside = float(_differing(np.zeros_like(codes), codes)[0]), _differing(groups, codes)
    # A column with one value has nothing that could be told.
    return 1.0 if overall == 0.0 else float(np.dot(weights, inside)) / overall


def _variances(groups: NDArray[np.int64], values: Array, sizes: NDArray[np.int64]) -> Array:
    import numpy as np

    means = np.bincount(groups, values) / np.maximum(1, sizes)
    return np.asarray(np.bincount(groups, (values - means[groups]) ** 2) / np.maximum(1, sizes - 1), dtype=np.float64)


def _differing(groups: NDArray[np.int64], codes: NDArray[np.int64]) -> Array:
    """For each group the share of pairs of records with different categories."""
    import numpy as np

    both, times = np.unique(groups * (int(codes.max()) + 1) + codes, return_counts=True)
    sizes = np.bincount(groups)
    same = np.bincount(both // (int(codes.max()) + 1), times * (times - 1.0), minlength=sizes.size)
    return np.asarray(1 - same / np.maximum(1.0, sizes * (sizes - 1.0)), dtype=np.float64)


# ----------------------------------------------------------------------------------------------------------------------------
# Neighbours.


@dataclass(frozen=True)
class Verdict:
    """Records on both sides of `place`: how far apart they look, and how far the stated information lets them.

    Where there are too few records, all numbers are 0 and nothing is known.
    """

    place: float
    finding: Finding
    separation: float
    error: float
    allowed: float
    records: tuple[int, int]


def check_places(
    hidden: Array, columns: Mapping[str, Column], places: Sequence[float], rows: int, information: float, level: float = 0.01
) -> tuple[Verdict, ...]:
    """Compares about `rows` records below each place with as many from it on; `level`: chance of refusing any wrongly."""
    import numpy as np

    if rows < 1 or not all(map(math.isfinite, places)):
        raise UsageError(f"places: must be finite, with at least one record on each side. Got {rows} records.")
    values, features = _numbers(hidden), _features(columns, len(hidden))
    order = np.argsort(values, kind="stable")
    places_in_order = np.searchsorted(values[order], list(places))
    pairs = [(order[: int(at)][-rows:], order[int(at) :][:rows]) for at in places_in_order]
    return _verdicts(values, features, list(places), pairs, information, level)


def check_cells(
    hidden: Array, columns: Mapping[str, Column], edges: Sequence[float], information: float, level: float = 0.01
) -> tuple[Verdict, ...]:
    """Compares the lower with the upper half of the records of each cell [edge, next edge); equal values stay together."""
    import numpy as np

    values, features = _numbers(hidden), _features(columns, len(hidden))
    places, pairs = [], []
    for number, (low, high) in enumerate(itertools.pairwise(edges), start=2):
        inside = np.flatnonzero((values >= low) & ((values < high) | ((values == high) & (number == len(edges)))))
        place = _middle(values[inside]) if inside.size else low
        places.append(place)
        pairs.append((inside[values[inside] < place], inside[values[inside] >= place]))
    return _verdicts(values, features, places, pairs, information, level)


def break_points(verdicts: Sequence[Verdict]) -> tuple[float, ...]:
    """Where records were refused: no cell may reach across."""
    return tuple(verdict.place for verdict in verdicts if verdict.finding == "refused")


def _middle(values: Array) -> float:
    """The value that divides them most evenly, as the first of the upper half."""
    import numpy as np

    different, first = np.unique(np.sort(values), return_index=True)
    return float(different[int(np.argmin(np.abs(first - values.size / 2)))])


def _verdicts(
    values: Array,
    features: Array,
    places: Sequence[float],
    pairs: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
    information: float,
    level: float,
) -> tuple[Verdict, ...]:
    from scipy.special import ndtri

    if not (math.isfinite(information) and information > 0 and 0 < level < 1):
        raise UsageError(f"information: must be finite and above 0, a level between 0 and 1. Got {information} and {level}.")
    errors = -float(ndtri(level / max(1, len(places))))
    return tuple(
        _verdict(place, values, features, lower, upper, information, errors)
        for place, (lower, upper) in zip(places, pairs, strict=True)
    )


def _verdict(
    place: float,
    values: Array,
    features: Array,
    lower: NDArray[np.int64],
    upper: NDArray[np.int64],
    information: float,
    errors: float,
) -> Verdict:
    records = (int(lower.size), int(upper.size))
    if min(records) < _FEWEST:
        return Verdict(float(place), "too few records", 0.0, 0.0, 0.0, records)
    separation, error = separated(features[lower], features[upper])
    allowed = _allowed(values[lower], values[upper], information)
    finding: Finding = "refused" if separation - errors * error > allowed else "not refuted"
    return Verdict(float(place), finding, separation, error, allowed, records)


def _allowed(lower: Array, upper: Array, information: float) -> float:
    """The root of the mean of e^(iota d^2) - 1 over the values in order."""
    import numpy as np

    shares = (np.arange(_PAIRS) + 0.5) / _PAIRS
    distance = np.quantile(upper, shares) - np.quantile(lower, shares)
    # Beyond this everything is allowed, and the number only has to be finite.
    return math.sqrt(float(np.mean(np.expm1(np.minimum(700.0, information * distance * distance)))))


def separated(lower: Array, upper: Array) -> tuple[float, float]:
    """d' of a cross-fitted linear discriminant between two groups of records, and its standard error."""
    import numpy as np

    found = []
    for fold in range(_FOLDS):
        tested = [np.arange(len(group)) % _FOLDS == fold for group in (lower, upper)]
        direction = _discriminant(lower[~tested[0]], upper[~tested[1]])
        found.append(_distance(lower[tested[0]] @ direction, upper[tested[1]] @ direction))
    mean = math.fsum(value for value, _ in found) / _FOLDS
    return mean, math.sqrt(math.fsum(variance for _, variance in found)) / _FOLDS


def _discriminant(lower: Array, upper: Array) -> Array:
    """The direction of Fisher's discriminant, with a ridge as large as its columns are many."""
    import numpy as np

    centred = np.concatenate([lower - lower.mean(axis=0), upper - upper.mean(axis=0)])
    spread = centred.T @ centred / len(centred)
    size = float(np.trace(spread)) / max(1, len(spread))
    ridge = max(_RIDGE, len(spread) / len(centred)) * size + 1e-12
    return np.linalg.solve(spread + ridge * np.eye(len(spread)), upper.mean(axis=0) - lower.mean(axis=0))


def _distance(lower: Array, upper: Array) -> tuple[float, float]:
    """(mean difference)/(pooled standard deviation) of scores, and the variance of that estimate by its first order."""
    import numpy as np

    difference = float(upper.mean() - lower.mean())
    count = len(lower) + len(upper)
    # Scores that are all alike within both groups count as if one record were on the wrong side.
    pooled = max((float(lower.var(ddof=1)) + float(upper.var(ddof=1))) / 2, difference * difference / count)
    if pooled == 0.0:
        return 0.0, 1 / len(lower) + 1 / len(upper)
    of_means = sum(float(group.var(ddof=1)) / len(group) for group in (lower, upper)) / pooled
    of_spread = sum(float(np.var((group - group.mean()) ** 2)) / len(group) for group in (lower, upper)) / 4
    value = difference / math.sqrt(pooled)
    return value, of_means + value * value * of_spread / (4 * pooled * pooled)


# ----------------------------------------------------------------------------------------------------------------------------
# Columns.


def _features(columns: Mapping[str, Column], records: int) -> Array:
    """Numbers standardised, with a column for missing ones; categories as one column each."""
    import numpy as np

    found: list[Array] = []
    for name, column in columns.items():
        if len(column) != records:
            raise UsageError(f"columns: {name} must have as many records as the hidden one. Got {len(column)} and {records}.")
        found += _numeric(column) if _is_number(column) else _one_hot(column)
    kept = [(part - part.mean()) / part.std() for part in found if part.std() > 0]
    return np.asarray(np.stack(kept, axis=1) if kept else np.zeros((records, 1)), dtype=np.float64)


def _numeric(column: Column) -> list[Array]:
    import numpy as np

    numbers = np.asarray(column, dtype=np.float64)
    there = np.isfinite(numbers)
    middle = float(np.mean(numbers[there])) if there.any() else 0.0
    return [np.where(there, numbers, middle), there.astype(np.float64)]


def _one_hot(column: Column) -> list[Array]:
    import numpy as np

    codes = _codes(column)
    frequent = np.argsort(-np.bincount(codes), kind="stable")[:_LEVELS]
    return [(codes == level).astype(np.float64) for level in frequent]


def _is_number(column: Column) -> bool:
    import numpy as np

    return bool(np.issubdtype(np.asarray(column).dtype, np.number))


def _codes(column: Column) -> NDArray[np.int64]:
    import numpy as np

    given = np.asarray(column)
    return np.asarray(np.unique(given if _is_number(given) else given.astype(str), return_inverse=True)[1], dtype=np.int64)


def _numbers(hidden: Column) -> Array:
    import numpy as np

    values = np.asarray(hidden, dtype=np.float64)
    if values.ndim != 1 or not np.all(np.isfinite(values)):
        raise UsageError("hidden: must be finite numbers, one for each record.")
    return values
