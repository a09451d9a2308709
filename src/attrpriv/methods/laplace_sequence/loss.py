r"""What several counts, sums and histograms with Laplace noise lose together.

    output_k = F_k + Z_k,   P(Z_k = z) proportional to e^(-|z|/scale_k),   F_k a sum over rows of whole numbers

| symbol | here |
|---|---|
| r_k | `Asked.rate`: the sum of 1/scale over all outputs of the same F: they lose what one output of scale 1/r_k loses |
| D_k | `Asked.width`: how far one row moves F_k; of a histogram 2 |
| l_k | D_k - \|o - y_k\|, y_k what the row adds, o one of its values; of a histogram 2 if its cell is in a set A, else 0 |

The loss of one row that changes its category is at most the least of these (docs/theory/count-sequences.md has the proofs):

- *nothing known*: sum of r_k D_k;
- *one law*: the exact loss of F_k alone at scale 1/r_k, and r_j D_j for every other one;
- *every law, but not the joint one*: with D = sum of r_k D_k, kappa = (e^D - 1)/D and any z > 0,

      1/z + log z - 1 + sum over k of r_k max over o of [ (kappa/z) E_top l_k - E_bottom l_k ].

What must never change: no bound uses that columns are independent given the category, and each is rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.numerics.calibration.laplace import RowTerms, row_terms
from attrpriv.numerics.laws.records import RecordLaws
from attrpriv.numerics.rounding import COMPUTED_UP, ULP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

# Beyond this a row gives itself away whatever is known of its law, and e^D would leave the floats.
_FAR = 200.0
_POINTS = 24


@dataclass(frozen=True)
class Asked:
    """One statistic and all the noise on it; `records` is None where its law is not known, or may not be used."""

    records: RecordLaws | None
    histogram: bool
    width: int
    rate: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.rate) and self.rate > 0 and self.width >= 1):
            raise UsageError(f"rate: must be positive and finite, the width at least 1. Got {self.rate} and {self.width}.")
        if self.records is not None and self.width != (2 if self.histogram else self.records.width):
            raise UsageError(f"width: must be what one row can move by the law. Got {self.width}.")

    @property
    def span(self) -> float:
        """What a row costs if nothing is known of its law."""
        return self.rate * self.width


def row_loss(asked: Sequence[Asked], free: float = 0.0, *, going_on: bool = False) -> float:
    """The most that one row can lose in all outputs together, from above; `free` is what outputs without a law cost a row.

    `going_on` leaves out the bound by one law. It is of little use once there are more statistics, so that whoever plans by it
    may leave nothing for them: an event of the same law for all rows costs nothing alone, with any noise.

    >>> stay = RecordLaws.event(0.4, 0.6)
    >>> round(4 * row_loss([Asked(stay, False, 1, 1 / 1.548642)]), 6)
    0.5
    """
    if not (math.isfinite(free) and free >= 0):
        raise UsageError(f"free: must be finite and at least 0. Got {free}.")
    spans = [one.span for one in asked]
    bounds = [math.fsum([*spans, free])]
    bounds += [
        _alone(one.records, one.histogram, one.rate) + math.fsum([*spans[:k], *spans[k + 1 :], free])
        for k, one in enumerate(asked)
        if one.records is not None and not going_on
    ]
    known = [one for one in asked if one.records is not None]
    if len(known) > 1 or (known and going_on):
        lawless = math.fsum([one.span for one in asked if one.records is None] + [free])
        bounds.append(_by_margins(known) + lawless)
    return min(bounds) * COMPUTED_UP


@lru_cache(maxsize=1024)
def _alone(records: RecordLaws, histogram: bool, rate: float) -> float:
    """The exact loss of one statistic, at 1/rate rounded down: less noise loses more."""
    return _terms(records, histogram).largest(math.nextafter(1 / rate, 0.0), +1)


def _by_margins(known: Sequence[Asked]) -> float:
    """The bound that uses the law of each statistic; infinite where it is out of reach."""
    total = math.fsum(one.span for one in known) * COMPUTED_UP
    if not 0 < total <= _FAR:
        return math.inf
    laws = tuple((one.records, one.histogram, one.width) for one in known if one.records is not None)
    return max(_one_way(_stacked(laws, way), [one.rate for one in known], total) for way in (0, 1))


def _one_way(means: _Means, rates: Sequence[float], total: float) -> float:
    """The least over z, on a grid of its logarithm and two finer ones."""
    import numpy as np

    each = np.repeat(np.array(rates), means.lengths)
    top, bottom = each * means.top, each * means.bottom
    starts = np.cumsum(means.lengths) - means.lengths
    slack = ULP * (64 + 8 * len(rates)) * (1 + total)
    logs = np.linspace(0.0, total, _POINTS)
    for _ in range(3):
        weight = math.expm1(total) / total * np.exp(-logs)
        largest = np.maximum.reduceat(weight[:, None] * top - bottom, starts, axis=1).sum(axis=1)
        values = np.expm1(-logs) + logs + largest + slack * (1 + weight)  # 1/z - 1 + log z, and the sum
        best = int(values.argmin())
        found = float(values[best])
        logs = np.linspace(logs[max(0, best - 1)], logs[min(_POINTS - 1, best + 1)], _POINTS)
    return math.inf if math.isnan(found) else max(0.0, found)


@lru_cache(maxsize=256)
def _terms(records: RecordLaws, histogram: bool) -> RowTerms:
    return row_terms(records, histogram)


@dataclass(frozen=True, eq=False)
class _Means:
    """The largest E_top l of each output, and the least E_bottom l; several statistics one after the other."""

    top: Floats
    bottom: Floats
    lengths: NDArray[np.int_]


@lru_cache(maxsize=64)
def _stacked(laws: tuple[tuple[RecordLaws, bool, int], ...], way: int) -> _Means:
    """Members against the rest (0), or the reverse (1)."""
    import numpy as np

    sides = [_means(*law)[way] for law in laws]
    top, bottom = (np.concatenate([side[k] for side in sides]) for k in (0, 1))
    return _Means(top, bottom, np.array([len(side[0]) for side in sides]))


@lru_cache(maxsize=256)
def _means(records: RecordLaws, histogram: bool, width: int) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """For both ways."""
    import numpy as np

    terms = _terms(records, histogram)
    slack = ULP * width * (terms.rounding + 4 * terms.distance.shape[1] + 8)
    nearest = width - (terms.top * terms.distance).sum(axis=1) + slack
    furthest = width - (terms.bottom * terms.distance).sum(axis=1) - slack
    top, bottom = np.clip(nearest, 0.0, width), np.clip(furthest, 0.0, width)
    half = len(top) // 2
    return (top[:half], bottom[:half]), (top[half:], bottom[half:])
