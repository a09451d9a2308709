r"""A count of a column whose rows are independent given a parameter of the population: its law given another parameter.

    F given phi_i = a  ~  sum over k of w_ak Bin(n, p_k)

| symbol | here |
|---|---|
| p_k | `probabilities[k]`: that a row counts, in state k of the column's own parameter; an interval around the truth |
| w_ak | `weights[a][k]`: the law of the column's parameter given phi_i = a, divided by its sum; 0: impossible |
| error | relative: each true w_ak is within weights[a][k] (1 +- error) |
| drift | of state k: (1 + x)^n - 1, x the largest relative change of p_k and of 1 - p_k within the interval |

A mass of Bin(n, p) is a product of n factors p or 1 - p (times a whole number), so that within the interval it moves by a share
`drift` at most; and a mixture of positive terms is relatively as accurate as the worst of its terms and weights together. The
weights sum to one, so that dividing them by the sum of the floats costs `error` a second time.

What must never change: the laws, in all three forms, keep their promise for every choice of probabilities and weights that
these numbers allow. A weight of 0 is certain, and so is a probability of 0 or 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from attrpriv.errors import UsageError
from attrpriv.numerics.laws.binomial import LogTails, binomial_tails
from attrpriv.numerics.laws.count_cases import MixedMasses
from attrpriv.numerics.laws.fixed_point import fixed_binomial_sum
from attrpriv.numerics.laws.lattice import LatticeLaw, binomial_sum, mixture
from attrpriv.numerics.laws.lattice_law import require_probabilities, up
from attrpriv.numerics.laws.records import Interval01, Number
from attrpriv.numerics.rounding import SOLVED_UP, UNIT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

MOST_ROWS = 10**6
# Weights or probabilities that leave a mass open by more than a tenth say too little.
_MOST_OPEN = 0.1
# The window of a law that is to be accurate in every mass that could matter against Laplace noise.
_WHOLE = 1e-280
# A sum of fixed-point masses is rounded once more: these digits keep it below the promised shortfall.
_GUARD_BITS = 8


@dataclass(frozen=True)
class ParameterCounts:
    """The laws of a count of n rows, one for each possible value of the hidden parameter; any two must look alike.

    >>> school = ParameterCounts(4, ((0.44, 0.44), (0.56, 0.56)), ((1.0, 0.0), (0.0, 1.0)))
    >>> [[round(float(mass), 4) for mass in law.masses] for law in school.laws(0.0)]
    [[0.0983, 0.3091, 0.3643, 0.1908, 0.0375], [0.0375, 0.1908, 0.3643, 0.3091, 0.0983]]
    """

    n: int
    probabilities: tuple[Interval01, ...]
    weights: tuple[tuple[float, ...], ...]
    error: float = 1e-12

    def __post_init__(self) -> None:
        if not 1 <= self.n <= MOST_ROWS:
            raise UsageError(f"rows: must be from 1 to {MOST_ROWS:,}. Got {self.n:,}.")
        if len(self.weights) < 2 or any(len(row) != len(self.probabilities) for row in self.weights):
            raise UsageError("weights: must be two or more rows, each with one number for each probability.")
        for row in self.weights:
            require_probabilities("weights", row)
        for low, high in self.probabilities:
            certain = low == high and low in (0.0, 1.0)
            if not (certain or 1e-290 <= low <= high < 1):
                raise UsageError(f"probability: must be 0, 1, or an interval strictly between them. Got {low} to {high}.")
        if not (self.error >= 0 and self.spread <= _MOST_OPEN):
            raise UsageError(f"law: must be known to within a tenth of each mass. Got {self.spread:.3g} at error {self.error}.")

    @property
    def reach(self) -> int:
        """How far two answers can be apart."""
        return self.n

    @property
    def spread(self) -> float:
        """A bound on the relative error of every mass that the stated numbers themselves leave open."""
        if not self.error < _MOST_OPEN:
            return math.inf
        drift = max(_drift(self.n, pair) for pair in self.probabilities)
        return up((1 + drift) * (1 + self.error) / (1 - self.error) - 1) if drift or self.error else 0.0

    def laws(self, tail: float) -> tuple[LatticeLaw, ...]:
        """The law of F given each value. tail 0: every mass; else a window that leaves out at most `tail`."""
        return _laws(self, tail)

    def whole(self) -> tuple[MixedMasses, ...]:
        """The masses of 0..n given each value; what is too small for a float is in their `floor`."""
        return _whole(self)

    def tails(self) -> tuple[LogTails, ...]:
        """Both tails given each value, as logarithms: nothing underflows."""
        return _tails(self)

    def fixed(self, bits: int) -> tuple[tuple[int, ...], ...]:
        """Masses of 0..n in units of 2^-bits, of the law at the stated numbers, short by less than `fixed_point.SHORT`.

        The truth is within a share `spread` of that law.
        """
        width = bits + _GUARD_BITS
        parts = [fixed_binomial_sum(self.n, Fraction(pair[0]), 0, 0.0, width) for pair in self.probabilities]
        return tuple(_fixed_row(row, parts) for row in self.weights)


def _drift(n: int, pair: Interval01) -> float:
    low, high = (Fraction(end) for end in pair)
    if low == high:
        return 0.0
    ratio = float(max(high / low, (1 - low) / (1 - high)) - 1) * (1 + 4 * UNIT)
    power = n * math.log1p(ratio) * (1 + 8 * UNIT)
    return math.expm1(power) * SOLVED_UP if power < 1 else math.inf


@lru_cache(maxsize=16)
def _laws(counts: ParameterCounts, tail: float) -> tuple[LatticeLaw, ...]:
    parts = [binomial_sum(counts.n, Fraction(pair[0]), 0, 0.0, tail=tail) for pair in counts.probabilities]
    return tuple(_opened(mixture(parts, row), counts.spread) for row in counts.weights)


def _opened(law: LatticeLaw, spread: float) -> LatticeLaw:
    """The same law, when each true mass may be off by this share more."""
    if math.isfinite(law.error):
        return LatticeLaw(law.start, law.masses, up((1 + law.error) * (1 + spread) - 1), up(law.lost * (1 + spread)))
    # On any set a mass moves by at most its share, and the law by at most `spread` altogether.
    return LatticeLaw(law.start, law.masses, math.inf, up(law.lost * (1 + spread) + spread))


@lru_cache(maxsize=4)
def _whole(counts: ParameterCounts) -> tuple[MixedMasses, ...]:
    import numpy as np

    # Windows of single binomial laws: pointwise accurate inside, and what is outside is in `lost`.
    parts = [binomial_sum(counts.n, Fraction(pair[0]), 0, 0.0, tail=_WHOLE) for pair in counts.probabilities]
    found = []
    for row in counts.weights:
        total = math.fsum(row)
        masses, error, floor = np.zeros(counts.n + 1), 0.0, 0.0
        for part, weight in zip(parts, row, strict=True):
            if weight > 0:
                masses[part.start : part.end + 1] += weight / total * part.masses
                error, floor = max(error, part.error), floor + weight / total * part.lost
        rounding = (len(parts) + 8) * UNIT
        error = (1 + error) * (1 + rounding) * (1 + counts.spread) - 1
        # A product with a small weight can leave the floats: fewer than 2^-1000 for each of the masses.
        floor = up(floor * (1 + counts.spread) + (len(parts) * (counts.n + 1)) * 2.0**-1000)
        found.append(MixedMasses(0, masses, up(error), floor))
    return tuple(found)


@lru_cache(maxsize=4)
def _tails(counts: ParameterCounts) -> tuple[LogTails, ...]:
    parts = [_state_tails(counts.n, Fraction(pair[0])) for pair in counts.probabilities]
    return tuple(_mixed_tails(counts, row, parts) for row in counts.weights)


def _state_tails(n: int, p: Number) -> LogTails:
    import numpy as np

    if 0 < p < 1:
        return binomial_tails(n, p)
    # No row counts, or all do.
    never, surely = np.full(n + 1, -math.inf), np.zeros(n + 1)
    if p == 0:
        return LogTails(n, surely, never, 0.0)
    return LogTails(n, np.append(never[1:], 0.0), np.append(surely[1:], -math.inf), 0.0)


def _mixed_tails(counts: ParameterCounts, row: tuple[float, ...], parts: list[LogTails]) -> LogTails:
    import numpy as np

    used = [(part, math.log(weight) - math.log(math.fsum(row))) for part, weight in zip(parts, row, strict=True) if weight > 0]
    below = np.logaddexp.reduce([part.log_below + log for part, log in used], axis=0)
    above = np.logaddexp.reduce([part.log_above + log for part, log in used], axis=0)
    finite = [array[np.isfinite(array)] for array in (below, above)]
    largest = max(float(np.abs(array).max(initial=0.0)) for array in finite)
    # The sum and its logarithm round a few units of the largest term each time.
    rounding = 16 * (len(used) + 1) * (2 + largest) * UNIT
    error = max(part.error for part, _ in used) - math.log1p(-counts.spread) + rounding
    # Sums over all rows are certain: everything is at most n.
    below[-1], above[-1] = 0.0, -math.inf
    return LogTails(counts.n, below, above, up(error))


def _fixed_row(row: tuple[float, ...], parts: list[tuple[int, ...]]) -> tuple[int, ...]:
    """The exact mixture of rounded masses, rounded down."""
    total = sum(map(Fraction, row))
    shares = [Fraction(weight) / total for weight in row]
    common = math.lcm(*(share.denominator for share in shares))
    whole = [int(share * common) for share in shares]
    return tuple(sum(map(int.__mul__, whole, column)) // common >> _GUARD_BITS for column in zip(*parts, strict=True))
