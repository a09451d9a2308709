"""The epsilon of a release that is planned already, if rows are like recorded ones: from below and from above.

    Y = F + shift(S) + N(0, sigma(S)^2),     F the sum of q over n rows, S the secret; both may depend on S

Laws are on bins of a 48th to a 96th of the spread of Y, with slopes, so that Y need not be rounded. The upper end is for all
values that were compared, the lower one is of the pair that is worst.

What must never change: `at_least` is below the truth and `at_most` above it, errors of every kind included.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from attrpriv.errors import UsageError
from attrpriv.numerics.divergences.recorded_pairs import hockey_stick, hockey_stick_lower, worst_at
from attrpriv.numerics.laws.recorded_inversion import noisy_laws

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from attrpriv.numerics.laws.recorded_inversion import NoisyLaws
    from attrpriv.numerics.laws.recorded_rows import RecordedRows

    Array = NDArray[np.float64]
    Whole = NDArray[np.int64]

# Bins to a spread, at least; values of the secret, at most; and bins times values.
_BINS = 48
MOST_VALUES = 2001
_MOST_ENTRIES = 1 << 22
_HALVINGS = 24
# Frequencies times distinct rows times tilts, above which nothing is begun: some ten seconds.
_MOST_WORK = 4e8
# A window has so many spreads, a tilt serves so many standard deviations of the hidden sum, and noise ends frequencies here.
_WINDOW, _TILT, _LAST = 20.0, 5.0, 8.2


@dataclass(frozen=True)
class Moved:
    """What is added to the sum where the secret has each of its values: a shift, and the sd of noise."""

    shift: Array
    sigma: Array


@dataclass(frozen=True)
class Trial:
    """The least epsilon at the delta that was asked for lies between these; the pair is in units of the secret's sum."""

    at_least: float
    at_most: float
    pair: tuple[float, float]
    looked: int


@dataclass(frozen=True)
class Values:
    """The values of a hidden sum: `first`, `first + apart`, ... Pairs at most `within` steps apart are hidden."""

    first: float
    apart: float
    many: int
    within: int

    def thinned(self, most: int) -> Whole:
        """At most so many of them, the pairs that are `within` apart among them: value k is followed by value k + within."""
        if self.many <= most:
            return np.arange(self.many)
        reach = min(self.within, self.many - 1)
        steps = min(reach, max(1, most * reach // self.many - 1))
        places = np.arange((self.many - 1) * steps // reach + 2) * reach // steps
        return np.unique(np.append(places[places < self.many], self.many - 1))

    def at(self, places: Whole) -> Array:
        return np.asarray(self.first + self.apart * places, dtype=np.float64)


def tried_on_rows(
    rows: RecordedRows,
    n: int,
    values: Values,
    moved: Callable[[Array], Moved],
    delta: float,
    secret: Literal["sum", "share"] = "sum",
) -> Trial:
    """The epsilon at `delta` over all pairs of values, of a release that adds what `moved` says for each of them.

    >>> from attrpriv.numerics.laws.recorded_rows import RecordedRows
    >>> rows = RecordedRows.of([0, 0, 1, 1], [0, 1, 1, 2])
    >>> noise = lambda sums: Moved(0 * sums, 0 * sums + 12.0)
    >>> found = tried_on_rows(rows, 20, Values(8.0, 1.0, 5, 4), noise, 1e-6)
    >>> found.at_least <= found.at_most <= found.at_least * 1.01, found.pair, found.looked
    (True, (8.0, 12.0), 5)
    """
    if not 0 < delta < 1:
        raise UsageError(f"delta: must be above 0 and below 1. Got {delta}.")
    added = moved(values.at(values.thinned(MOST_VALUES)))
    if work(rows, n, values, float(added.sigma.min()), secret) > _MOST_WORK:
        raise UsageError(
            "records: takes too long, because there is little noise against the spread of the rows, and many different rows or "
            "values of the secret. Round the columns, or narrow the secret's range."
        )
    laws = _laws(rows, n, values, moved, secret)
    if len(laws.secrets) < 2:
        raise UsageError("records: no table of rows like these has two of the secret's values. Widen its range.")
    within = values.within * values.apart
    most, pair = worst_at(laws, delta, within=within)
    start = most if math.isfinite(most) else _most_provable(laws, delta)
    pair = pair or hockey_stick(laws, start * 0.999, within=within, close=1e-6).pair
    return Trial(_at_least(laws, pair, delta, start), most, (min(pair), max(pair)), len(laws.secrets))


def _laws(
    rows: RecordedRows, n: int, values: Values, moved: Callable[[Array], Moved], secret: Literal["sum", "share"]
) -> NoisyLaws:
    places = values.thinned(MOST_VALUES)
    sums = values.at(places)
    step = _step(rows, n, moved(sums))

    def of(some: Array) -> NoisyLaws:
        added = moved(some)
        return noisy_laws(rows, n, some, added.sigma, step, added.shift, secret, rounded=False)

    ends = of(sums[[0, -1]])
    most = max(2, _MOST_ENTRIES // max(1, len(ends.bins)))
    return of(sums if len(sums) <= most else values.at(values.thinned(most)))


def work(rows: RecordedRows, n: int, values: Values, sigma: float, secret: Literal["sum", "share"]) -> float:
    """About how many terms there are: frequencies that the noise leaves, times distinct rows, times tilts."""
    residual, slope, hidden = _moments(rows)
    spread, reach = math.sqrt(n * residual + sigma**2), values.apart * (values.many - 1)
    window = _WINDOW * spread + abs(slope) * reach
    tilts = 1.0 if secret == "share" or hidden == 0 else 1 + reach / (_TILT * math.sqrt(n * hidden))
    return _LAST * window / (2 * math.pi * sigma) * len(rows.s) * tilts


def _moments(rows: RecordedRows) -> tuple[float, float, float]:
    """Of one row, in units of the columns: the variance that q has left given s, its slope on s, and the variance of s."""
    total = rows.total
    q, s = rows.q * float(rows.spacing[1]), rows.s * float(rows.spacing[0] * rows.divisor)
    dq, ds = q - rows.counts @ q / total, s - rows.counts @ s / total
    squares, both, hidden = (float(rows.counts @ one) / total for one in (dq * dq, dq * ds, ds * ds))
    slope = both / hidden if hidden > 0 else 0.0
    return max(0.0, squares - slope * both), slope, hidden


def _step(rows: RecordedRows, n: int, added: Moved) -> float:
    """A power of two, so that bins are a 48th to a 96th of the spread of what is released."""
    spread = math.sqrt(n * _moments(rows)[0] + float(added.sigma.min()) ** 2)
    return math.ldexp(1.0, math.floor(math.log2(spread / _BINS)))


def _most_provable(laws: NoisyLaws, delta: float) -> float:
    """Where errors of the laws would make up all of delta."""
    return max(0.0, math.log(delta / (laws.largest_eta + 1e-10)))


def _at_least(laws: NoisyLaws, pair: tuple[float, float], delta: float, most: float) -> float:
    """An epsilon at which this pair has more than delta; 0 where none is found."""
    places = int(np.searchsorted(laws.secrets, pair[0])), int(np.searchsorted(laws.secrets, pair[1]))
    low, high = 0.0, most
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if hockey_stick_lower(laws, middle, pairs=[places]) > delta else (low, middle)
    return low
