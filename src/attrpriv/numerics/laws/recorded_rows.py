"""Public rows as a law: the distinct rows (s, q) of two columns with how often each occurs, and the tilts of that law.

    row = (s, q) with probability counts/total;   s is hidden through its sum, q is asked for through its sum

| symbol | here |
|---|---|
| s | `s`, whole numbers from 0 on with greatest common divisor 1; the column is `spacing[0] * (least + divisor * s)` |
| q | `q`, whole numbers; the column is `spacing[1] * q` |
| w | a tilt: probabilities in proportion to counts e^(theta s), under which the law of sum q given sum s is the same |

What must never change: a row of the column is exactly its whole numbers; what does not lie on the spacing is refused, never
rounded. Counts are whole numbers, and no row is left out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from attrpriv.errors import UsageError
from attrpriv.numerics.rounding import SOLVED_UP, UNIT

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Whole = NDArray[np.int64]
    Array = NDArray[np.float64]

# Larger whole numbers, and sums of them, are no longer exact as floats.
_LARGEST = 2**40
# How far a value may be from a whole number of spacings, in spacings: what dividing two floats does.
_OFF = 1e-9
_AT_ONCE = 1 << 18
# Of a centre so many bits are kept, so that it times the number of rows is exact.
_CENTRE_BITS = 22
# One tilt serves at most so many standard deviations of the hidden sum on either side of its middle.
_REACH = 2.5
# At the end of its reach a sum has a smaller chance than in the middle, and so a larger error: by this factor over the root of
# n, or by the least factor, at most. Errors grow like that root; so they stay below some 1e-10 for up to a million rows.
_GROWS, _GROWS_LEAST = 800.0, 1.05


@dataclass(frozen=True, eq=False)
class RecordedRows:
    """Distinct rows, sorted by s and then q, with how often each occurs.

    `s` and `q` are whole numbers: of the hidden column `least` + `divisor` s, and of the summed one; `counts` says how often
    each row occurs, `spacing` what one of each column stands for. Made by `RecordedRows.of`.
    """

    s: Whole
    q: Whole
    counts: Whole
    least: int
    divisor: int
    spacing: tuple[Fraction, Fraction]

    @classmethod
    def of(
        cls,
        s: ArrayLike,
        q: ArrayLike,
        counts: ArrayLike | None = None,
        *,
        spacing: tuple[float | Fraction, float | Fraction] = (1, 1),
    ) -> RecordedRows:
        """The rows of two columns, on whole numbers or on a stated spacing.

        >>> rows = RecordedRows.of([8, 8, 12, 10], [1, 1, 0, 5])
        >>> rows.s.tolist(), rows.q.tolist(), rows.counts.tolist(), rows.least, rows.divisor
        ([0, 1, 2], [1, 5, 0], [2, 1, 1], 8, 2)
        """
        apart = tuple(_spacing(name, one) for name, one in zip(("s", "q"), spacing, strict=True))
        columns = [whole(name, values, one) for name, values, one in zip(("s", "q"), (s, q), apart, strict=True)]
        often = np.ones(len(columns[0]), dtype=np.int64) if counts is None else whole("counts", counts, Fraction(1))
        if not len(columns[0]) == len(columns[1]) == len(often) > 0:
            raise UsageError("rows: s, q and counts must have one entry for each row, and there must be a row.")
        if bool((often < 0).any()) or int(often.sum()) < 1:
            raise UsageError("counts: must be at least 0, and not all of them 0.")
        there = often > 0
        found, where = np.unique(np.stack([one[there] for one in columns]), axis=1, return_inverse=True)
        total = np.zeros(found.shape[1], dtype=np.int64)
        np.add.at(total, where.reshape(-1), often[there])
        least = int(found[0].min())
        divisor = math.gcd(*(int(value) - least for value in np.unique(found[0]))) or 1
        return cls((found[0] - least) // divisor, found[1], total, least, divisor, (apart[0], apart[1]))

    @property
    def total(self) -> int:
        """How many rows there are."""
        return int(self.counts.sum())

    @property
    def width(self) -> int:
        """The largest s."""
        return int(self.s[-1])

    def only(self, value: int) -> RecordedRows:
        """The rows whose s is this one of its whole numbers; their s is constant, and so is its sum."""
        there = self.s == value
        at = self.least + self.divisor * value
        return RecordedRows(self.s[there] * 0, self.q[there], self.counts[there], at, 1, self.spacing)

    def reduced(self, n: int, secret: float | Fraction) -> int | None:
        """The sum of s over n rows, as the whole numbers here, that a sum of the column is; None where there is none."""
        steps = _nearest(Fraction(secret) / self.spacing[0])
        if steps is None or (steps - n * self.least) % self.divisor:
            return None
        found = (steps - n * self.least) // self.divisor
        return found if 0 <= found <= n * self.width else None

    def attainable(self, n: int, most: int) -> NDArray[np.bool_]:
        """Whether n rows can have a sum of s of 0, 1, ..., `most`: by the least number of rows that are not 0."""
        needed = np.full(most + 1, np.iinfo(np.int64).max // 2, dtype=np.int64)
        needed[0] = 0
        for value in (int(v) for v in np.unique(self.s) if 0 < v <= most):
            for start in range(min(value, most + 1 - value)):
                line = needed[start::value]
                # The fewest rows when the rest is made of this value: the least of needed - k, plus k again.
                line[:] = np.minimum.accumulate(line - np.arange(len(line))) + np.arange(len(line))
        return np.asarray(needed <= n)


def whole(name: str, values: ArrayLike, spacing: Fraction) -> Whole:
    """The whole numbers of spacings that values are."""
    array = np.asarray(values)
    if array.dtype.kind in "iu" and spacing == 1:
        found = array.astype(np.int64).reshape(-1)
    else:
        numbers = np.asarray(array, dtype=np.float64).reshape(-1)
        steps = numbers / float(spacing)
        if not bool(np.isfinite(steps).all()) or bool((np.abs(steps) > _LARGEST).any()):
            raise UsageError(f"{name}: must be finite and at most 2^40 spacings. Got one that is not.")
        rounded = np.rint(steps)
        if bool((np.abs(steps - rounded) > _OFF * (1 + np.abs(steps))).any()):
            raise UsageError(f"{name}: must lie on a spacing of {float(spacing):g}. State a finer one, or round the column.")
        found = rounded.astype(np.int64)
    if found.size and int(np.abs(found).max()) > _LARGEST:
        raise UsageError(f"{name}: must be finite and at most 2^40 spacings. Got one that is not.")
    return found


def _spacing(name: str, value: float | Fraction) -> Fraction:
    number = Fraction(value) if isinstance(value, Fraction | int) else Fraction(repr(float(value)))
    if not number > 0:
        raise UsageError(f"spacing of {name}: must be above 0. Got {value}.")
    return number


def _nearest(steps: Fraction) -> int | None:
    found = round(steps)
    return found if abs(steps - found) <= Fraction(_OFF) * (1 + abs(steps)) else None


def short(value: float) -> float:
    """The value with few bits, so that products with a number of rows are exact."""
    if value == 0:
        return 0.0
    mantissa, exponent = math.frexp(value)
    return math.ldexp(round(math.ldexp(mantissa, _CENTRE_BITS)), exponent - _CENTRE_BITS)


@dataclass(frozen=True, eq=False)
class Tilt:
    """Weights w in proportion to counts e^(theta s), under which s has nearly the mean that was asked for.

    `ends[k]:ends[k + 1]` are the rows whose s is `values[k]`; `weights` are of rows and `of_value` of values of s. `centre`
    has few bits. `log_weights` are finite also where a weight is below all floats. `share_s` and `share_q` are E|s - centre|
    and E|q - centre|, each row times the units (2^-53) by which its weight, its angle and what is added up of them may be off
    relatively.
    """

    rows: RecordedRows
    theta: float
    values: Array
    ends: tuple[int, ...]
    weights: Array
    log_weights: Array
    of_value: Array
    centre: tuple[float, float]
    spread: tuple[float, float, float]
    share_s: float
    share_q: float

    @classmethod
    def at(cls, rows: RecordedRows, mean: float) -> Tilt:
        values, first = np.unique(rows.s, return_index=True)
        ends = (*first.tolist(), len(rows.s))
        masses = np.add.reduceat(rows.counts.astype(np.float64), first)
        away = values.astype(np.float64) - mean
        theta = _tilting(away, masses)
        top = np.max(theta * away + np.log(masses))
        lengths = np.diff(ends)
        unscaled = rows.counts * np.repeat(np.exp(theta * away - top), lengths)
        whole_weight = pairwise(unscaled)
        weights = unscaled / whole_weight
        log_weights = np.log(rows.counts) + np.repeat(theta * away - top, lengths) - math.log(whole_weight)
        of_value = np.array([float(pairwise(weights[a:b])) for a, b in itertools.pairwise(ends)])
        q = rows.q.astype(np.float64)
        s = rows.s.astype(np.float64)
        centre = (short(float(weights @ s)), short(float(weights @ q)))
        ds, dq = s - centre[0], q - centre[1]
        units = 72 + math.log2(len(weights)) + 2 * math.log2(len(values) + 1) + 2 * np.repeat(np.abs(theta * away), lengths)
        return cls(
            rows,
            theta,
            values.astype(np.float64),
            ends,
            weights,
            log_weights,
            of_value,
            centre,
            (float(weights @ ds**2), float(weights @ dq**2), float(weights @ (ds * dq))),
            float((weights * units) @ np.abs(ds)) * SOLVED_UP,
            float((weights * units) @ np.abs(dq)) * SOLVED_UP,
        )

    def log_moments(self, of_s: Array, of_q: Array) -> Array:
        """At least log E[e^(mu (s - centre) + lambda (q - centre))], for each mu and lambda; infinite beyond the floats."""
        s, q = self.rows.s - self.centre[0], self.rows.q - self.centre[1]
        # Of the weights, of their sum, and of the powers, which are off by their sizes.
        units = 256 + len(self.weights) + 8 * float(np.abs(self.log_weights).max())
        found = np.empty(len(of_s))
        reach = np.abs(of_s) * float(np.abs(s).max()) + np.abs(of_q) * float(np.abs(q).max())
        size = max(1, _AT_ONCE // len(s))
        for start in range(0, len(of_s), size):
            part = slice(start, start + size)
            powers = np.where(reach[part, None] < 1e300, of_s[part, None] * s + of_q[part, None] * q, 0.0)
            # A weight that is 0 as a float may still carry the greatest of all terms: weights are added as logarithms.
            powers += self.log_weights
            top = powers.max(axis=1)
            log = top + np.log(np.exp(powers - top[:, None]).sum(axis=1))
            found[part] = np.where(reach[part] < 1e300, log, math.inf) + UNIT * (units + 8 * reach[part])
        return found


def _tilting(away: Array, masses: Array) -> float:
    """The theta at which the mean of what is `away` is nearly 0: any theta is right, and this one is good."""
    if not (away[0] < 0 < away[-1]):
        return 0.0
    low = high = 0.0

    def mean(theta: float) -> float:
        powers = theta * away
        return float((masses * np.exp(powers - powers.max())) @ away)

    step = 1 / float(np.abs(away).max())
    while mean(high) < 0 and high < 1e6 * step:
        low, high = high, 2 * high + step
    while mean(low) > 0 and low > -1e6 * step:
        high, low = low, 2 * low - step
    for _ in range(200):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if mean(middle) < 0 else (low, middle)
    return (low + high) / 2


def pairwise(terms: NDArray[Any]) -> NDArray[Any]:
    """Sums along the last axis by halving: off by a unit of the terms' sizes for each halving."""
    while terms.shape[-1] > 1:
        if terms.shape[-1] % 2:
            terms = np.concatenate([terms, np.zeros_like(terms[..., :1])], axis=-1)
        terms = terms[..., ::2] + terms[..., 1::2]
    return np.asarray(terms[..., 0])


def _reach(n: int) -> float:
    """How far a tilt reaches, in standard deviations: chances fall like exp(-x^2/2)."""
    return min(_REACH, math.sqrt(2 * math.log(max(_GROWS_LEAST, _GROWS / math.sqrt(n)))))


def spans(reduced: Sequence[int], n: int, rows: RecordedRows) -> list[list[int]]:
    """The places of sorted sums, in runs that one tilt serves."""
    found: list[list[int]] = []
    place, reach = 0, _reach(n)
    while place < len(reduced):
        spread = Tilt.at(rows, min(max(reduced[place] / n, 0.5 / n), rows.width - 0.5 / n)).spread[0]
        most = reduced[place] + 2 * reach * math.sqrt(n * spread)
        last = place
        while last + 1 < len(reduced) and reduced[last + 1] <= most:
            last += 1
        found.append(list(range(place, last + 1)))
        place = last + 1
    return found
