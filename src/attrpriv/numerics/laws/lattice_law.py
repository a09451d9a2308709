"""A law on whole numbers as floats, together with a bound on how wrong the floats are.

    |true(T) - masses(T)| <= error * masses(T) + lost      for every set T, and for each point of the window even without `lost`

| symbol | here |
|---|---|
| masses(T) | the sum of `masses[k]` over all k with start + k in T |
| error | relative: each true mass in the window is within masses[k] (1 +- error). Infinite: nothing is said about a point |
| lost | what the window leaves out; if `error` is infinite, everything by which masses(T) can be wrong |

`pointwise` (a finite error and nothing lost) is what a claim of pure epsilon needs: then masses[k] = 0 exactly where the true
mass is 0, and there is none outside. What must never change: both bounds hold for the law that the floats given as parameters
define, taken as the exact rationals they are (probabilities that do not quite sum to 1 are divided by their sum). A mass below
2^-1000 is never claimed to be accurate: it makes `error` infinite, or is left out and counted in `lost`.

Sums are of positive terms, so their relative error grows with the number of terms and not with cancellation. The FFT is
different: its error is absolute. If a transform of N points is accurate to kappa in Euclidean norm, then by Parseval's equation
the computed convolution is off by at most 2 kappa (|p|_2 |q|_1 + |q|_2 |p|_1) in that norm, up to terms of second order, and by
sqrt(N) times as much in total. kappa = 16 log2(N) 2^-53 is twice what radix 2 is proved to need (key
`higham2002accuracy`, section 24.1).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.numerics.rounding import SUM_SLACK, UNIT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

# The least mass for which products of positive floats keep their relative accuracy.
SMALLEST = 2.0**-1000
# Products up to which a direct sum is used, where it need not be; and beyond which it is refused.
DIRECT = 2**25
_LARGEST = 2**36


@dataclass(frozen=True, eq=False)
class LatticeLaw:
    """Masses of start, start + 1, ..., and how far they are from the truth.

    `start` is the least value, `masses[k]` the probability of start + k, `error` the relative error of each mass, `lost` the
    mass that is not shown.

    >>> law = LatticeLaw.of({0: 0.25, 1: 0.5, 2: 0.25})
    >>> law.convolve(law, exact=True).masses.tolist()
    [0.0625, 0.25, 0.375, 0.25, 0.0625]
    """

    start: int
    masses: Array
    error: float
    lost: float

    def __post_init__(self) -> None:
        import numpy as np

        masses = np.array(self.masses, dtype=np.float64)
        if masses.ndim != 1 or masses.size == 0 or not np.all(np.isfinite(masses)) or float(masses.min()) < 0:
            raise UsageError("masses: must be a non-empty row of finite numbers that are at least 0.")
        if not self.error >= 0 or not (math.isfinite(self.lost) and self.lost >= 0):
            raise UsageError(f"law: error and lost must be at least 0. Got {self.error} and {self.lost}.")
        masses.flags.writeable = False
        object.__setattr__(self, "masses", masses)
        # A relative error of one or more says nothing below, and would be used as if it did.
        if self.error >= 0.5 and not math.isinf(self.error):
            object.__setattr__(self, "lost", up(self.lost + self.error * float(masses.sum())))
            object.__setattr__(self, "error", math.inf)

    @staticmethod
    def of(probabilities: Mapping[int, float | Fraction]) -> LatticeLaw:
        """The law with these probabilities, divided by their sum."""
        import numpy as np

        total = require_probabilities("probabilities", tuple(probabilities.values()))
        if any(not isinstance(value, int) for value in probabilities):
            raise UsageError("probabilities: the values of a law on the lattice must be whole numbers.")
        positive = {value: probability for value, probability in probabilities.items() if probability > 0}
        start = min(positive)
        masses = np.zeros(max(positive) - start + 1)
        for value, probability in positive.items():
            masses[value - start] = float(probability) / total
        there = np.isin(np.arange(start, start + len(masses)), list(positive))
        # The sum is off by a unit, the quotient by another; each fraction by one more, as is the sum of them.
        fractions = any(isinstance(probability, Fraction) for probability in positive.values())
        return accurate(start, masses, there, error=(8 if fractions else 4) * UNIT, lost=0.0)

    @property
    def end(self) -> int:
        """The last value of the window."""
        return self.start + len(self.masses) - 1

    @property
    def pointwise(self) -> bool:
        """Whether every true mass, anywhere, is known up to a factor 1 +- error."""
        return math.isfinite(self.error) and self.lost == 0

    @property
    def distance(self) -> float:
        """A bound on |true(T) - masses(T)| over all sets T."""
        if math.isinf(self.error):
            return self.lost
        return up(self.lost + self.error * float(self.masses.sum()))

    @property
    def mean(self) -> float:
        """Of the masses, the best float."""
        import numpy as np

        return self.start + float((np.arange(len(self.masses)) * self.masses).sum() / self.masses.sum())

    @property
    def variance(self) -> float:
        """Of the masses, the best float."""
        import numpy as np

        away = np.arange(len(self.masses)) - (self.mean - self.start)
        return float(np.dot(away * away, self.masses) / self.masses.sum())

    def cdf(self) -> Array:
        """Cumulative sums of the masses: entry k is off by at most `distance` and a share (k + 1) 2^-53 of itself."""
        return self.masses.cumsum()

    def shifted(self, by: int) -> LatticeLaw:
        """The law of X + by."""
        return LatticeLaw(self.start + by, self.masses, self.error, self.lost)

    def mirrored(self) -> LatticeLaw:
        """The law of -X."""
        return LatticeLaw(-self.end, self.masses[::-1], self.error, self.lost)

    def trimmed(self, tail: float) -> LatticeLaw:
        """The same without the ends of the window, as many as together hold at most `tail`."""
        import numpy as np

        below, above = np.cumsum(self.masses), np.cumsum(self.masses[::-1])
        share = tail / 2 * (1 - 4 * len(self.masses) * UNIT)
        left = int(np.searchsorted(below, share, side="right"))
        right = int(np.searchsorted(above, share, side="right"))
        if left + right == 0 or left + right >= len(self.masses):
            return self
        cut = float(below[left - 1] if left else 0.0) + float(above[right - 1] if right else 0.0)
        size = up(cut * (1 + len(self.masses) * 2 * UNIT) * (1 + (self.error if math.isfinite(self.error) else 0.0)))
        return LatticeLaw(self.start + left, self.masses[left : len(self.masses) - right], self.error, up(self.lost + size))

    def convolve(self, other: LatticeLaw, *, exact: bool, direct: int | None = None) -> LatticeLaw:
        """The law of X + Y, independent. `exact`: by positive terms; else a long sum is an FFT, with an absolute error.

        A sum is long from more than `direct` products on.
        """
        size = len(self.masses) * len(other.masses)
        if exact and size > _LARGEST:
            raise UsageError(f"convolve: {size:.1e} products are too many for an exact sum. Give a tail.")
        return _direct(self, other) if exact or size <= (DIRECT if direct is None else direct) else _fft(self, other)


def mixture(laws: Sequence[LatticeLaw], weights: Sequence[float]) -> LatticeLaw:
    """The law of a draw from laws[i] with probability weights[i].

    `laws` are laws on whole numbers, `weights` their probabilities, which sum to 1.

    >>> mixture([LatticeLaw.of({0: 1.0}), LatticeLaw.of({1: 0.5, 2: 0.5})], [0.5, 0.5]).masses.tolist()
    [0.5, 0.25, 0.25]
    """
    import numpy as np

    if len(laws) != len(weights) or not laws:
        raise UsageError(f"weights: must be one for each of the laws. Got {len(weights)} for {len(laws)}.")
    total = require_probabilities("weights", weights)
    used = [(law, weight / total) for law, weight in zip(laws, weights, strict=True) if weight > 0]
    start, end = min(law.start for law, _ in used), max(law.end for law, _ in used)
    masses, there = np.zeros(end - start + 1), np.zeros(end - start + 1, dtype=bool)
    for law, weight in used:
        place = slice(law.start - start, law.end - start + 1)
        masses[place] += weight * law.masses
        there[place] |= law.masses > 0
    rounding = (len(used) + 6) * UNIT
    if all(law.pointwise for law, _ in used):
        return accurate(start, masses, there, error=max(law.error for law, _ in used) * (1 + rounding) + rounding, lost=0.0)
    lost = math.fsum(weight * law.distance for law, weight in used) + 2 * rounding
    return LatticeLaw(start, masses, math.inf, up(lost))


def up(x: float) -> float:
    """A bound that survives the handful of roundings it was computed with."""
    return x * (1 + 16 * UNIT) + math.ulp(0.0) if x > 0 else 0.0


def require_probabilities(name: str, probabilities: Sequence[float | Fraction]) -> float:
    """Their sum, which must be close to 1."""
    if not probabilities or any(not (math.isfinite(p) and 0 <= p <= 1) for p in probabilities):
        raise UsageError(f"{name}: must be one or more numbers between 0 and 1. Got {list(probabilities)[:8]}.")
    total = math.fsum(probabilities)
    if abs(total - 1) > SUM_SLACK:
        raise UsageError(f"{name}: must sum to 1. Got {total:.12g}.")
    return total


def accurate(start: int, masses: Array, there: NDArray[np.bool_], *, error: float, lost: float) -> LatticeLaw:
    """A law whose masses are accurate to `error` where they are not too small; `there` says where the true mass is positive.

    Where one is too small, only a total is claimed: each such mass is off by less than 2^-999.
    """
    if bool((masses[there] >= SMALLEST).all()):
        return LatticeLaw(start, masses, error, lost)
    total = up(float(masses.sum()) * error + lost + len(masses) * 2 * SMALLEST)
    return LatticeLaw(start, masses, math.inf, total)


def _direct(p: LatticeLaw, q: LatticeLaw) -> LatticeLaw:
    """Sums of positive terms in any order: m of them lose at most a share (m + 1) 2^-53."""
    import numpy as np

    masses = np.convolve(p.masses, q.masses)
    rounding = (min(len(p.masses), len(q.masses)) + 3) * UNIT
    if not (p.pointwise and q.pointwise):
        return LatticeLaw(p.start + q.start, masses, math.inf, up(_lost(p, q) + rounding * float(masses.sum())))
    error = ((1 + p.error) * (1 + q.error) - 1) * (1 + rounding) + rounding * (1 + p.error) * (1 + q.error)
    return accurate(p.start + q.start, masses, _support(p, q), error=up(error) + 2 * UNIT, lost=0.0)


def _support(p: LatticeLaw, q: LatticeLaw) -> NDArray[np.bool_]:
    """Where the true sum has mass, for two pointwise laws."""
    import numpy as np

    there = p.masses > 0, q.masses > 0
    if there[0].all() and there[1].all():
        return np.ones(len(p.masses) + len(q.masses) - 1, dtype=bool)
    return np.convolve(there[0].astype(np.float64), there[1].astype(np.float64)) > 0.5


def _lost(p: LatticeLaw, q: LatticeLaw) -> float:
    """P * Q - p * q = (P - p) * Q + p * (Q - q): on every set at most the one distance, and the other times the mass of p."""
    return up(p.distance + q.distance * float(p.masses.sum()))


def _fft(p: LatticeLaw, q: LatticeLaw) -> LatticeLaw:
    """By the transform. With F accurate to kappa in norm, F(p)F(q) is off by at most sqrt(N) (k |p|_2 |q|_1 + ...) in norm."""
    import numpy as np
    from scipy.fft import irfft, rfft

    size = len(p.masses) + len(q.masses) - 1
    points = 1 << (size - 1).bit_length()
    masses = np.maximum(irfft(rfft(p.masses, points) * rfft(q.masses, points), points)[:size], 0.0)
    kappa = _kappa(points)
    one_p, one_q = float(p.masses.sum()), float(q.masses.sum())
    # No BLAS: for so little work its threads cost more than they bring.
    two_p, two_q = (math.sqrt(float((law.masses * law.masses).sum())) * (1 + 64 * UNIT) for law in (p, q))
    # The transform of p is off by kappa sqrt(N) |p|_2 in norm and of q nowhere larger than |q|_1, and the other way round; the
    # product adds its rounding, and the way back kappa times the norm of the result, at most |p|_2 |q|_1.
    norm = (two_p * one_q + two_q * one_p) * (2 * kappa + 8 * UNIT) * (1 + math.sqrt(points) * kappa)
    return LatticeLaw(p.start + q.start, masses, math.inf, up(_lost(p, q) + math.sqrt(points) * norm))


def _kappa(points: int) -> float:
    """Relative error in Euclidean norm of a transform of 2^t points: t times 16 units (radix 2 needs fewer than 8)."""
    return 16 * UNIT * max(1, points.bit_length())
