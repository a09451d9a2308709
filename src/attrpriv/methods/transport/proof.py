"""The evidence of transported averages under a Gaussian assumption (docs/theory/transport.md).

Given all sensitive statistics G, the averages F are N(const + B_theta G, S_theta). Released is F - Y + h(Y) + N(0, Z), with
Y = B0 (G + mask - centre) and h as in `transport.clamp`. Given g_i = a, G = kappa a + E, and neither E nor the masks depend on
a; *given them*, two values of g_i that must look alike move the mean of what is released by at most

    moved + untold,     moved <= min(2 reach, |B0 kappa (a - b)|)     untold = (B_theta - B0) kappa (a - b)

while its covariance is S_theta + Z. So both laws are mixtures, with equal weights, of Gaussians at most that far apart, and the
hockey-stick divergence is jointly convex.

Stored are kappa (a - b) and B_theta kappa (a - b) for the widest pair, each within its `off`; `Moves` makes `told` =
B0 kappa (a - b) and `untold` from them, with the very slopes that the release uses.

What must never change: everything is recomputed from the stored numbers, rounded up. Where several statistics are read, each
has a mask: E lies on a lattice that moves with a, and without the mask its digits would tell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from attrpriv.errors import CertificateError
from attrpriv.frozen import Finite, FrozenMap, FrozenModel, NonNegative
from attrpriv.methods.base.accuracy import BY_FORMULA, Profile
from attrpriv.methods.base.clamp import Clamp, Rows, clamped, statistic
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.evidence import Charged, Told
from attrpriv.methods.base.gaussian_proof import matrix_distance, require_covariance
from attrpriv.numerics.divergences.gaussian import gaussian_delta_upper
from attrpriv.numerics.rounding import COMPUTED_DOWN, COMPUTED_UP, SOLVED_UP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

Vector = tuple[Finite, ...]
Widths = tuple[NonNegative, ...]

# The largest condition for which a norm computed in floats is off by less than `SOLVED`.
_CONDITION = 1e10
# Sums of a few products of floats, in units of the size of their terms.
_ROUNDING = 1e-14


@dataclass(frozen=True)
class Moves:
    """How far the averages move over a widest pair: with what is taken back, and with what is not; `told` None: any way."""

    told: Vector | None
    told_off: Widths
    untold: Vector
    untold_off: Widths


class MovedRead(FrozenModel):
    """How far a statistic that is read moves over a secret's widest pair: `by`, up to `off`."""

    coefficients: FrozenMap[Finite]
    by: Finite = 0.0
    off: NonNegative = 0.0


class TransportCheck(FrozenModel):
    """One secret under one member of Theta. With a `regression` (of the averages on all that is read, in this member) any two
    values that are at most `off` apart in each statistic must look alike, and `own` is not used."""

    secret: str
    theta: int
    reads: tuple[MovedRead, ...] = Field(min_length=1)
    own: Vector = Field(description="how far each average moves over the same pair")
    own_off: Widths
    regression: Rows = ()
    credited: Rows = Field(description="a covariance that the averages have at least, given all that is read")

    def moves(self, slopes: Sequence[Sequence[float]]) -> Moves:
        """What is taken back of a pair with these slopes, and what is not, rounded up."""
        if self.regression:
            return self._joint_moves(slopes)
        told, told_off, untold, untold_off = [], [], [], []
        for row, own, off in zip(slopes, self.own, self.own_off, strict=True):
            middle = sum(b * read.by for b, read in zip(row, self.reads, strict=True))
            width = sum(abs(b) * read.off for b, read in zip(row, self.reads, strict=True))
            size = sum(abs(b) * (abs(read.by) + read.off) for b, read in zip(row, self.reads, strict=True))
            told.append(middle)
            told_off.append(width + _ROUNDING * size)
            untold.append(own - middle)
            untold_off.append(off + width + _ROUNDING * (size + abs(own)))
        return Moves(tuple(told), tuple(told_off), tuple(untold), tuple(untold_off))

    def stretched(self, times: float) -> TransportCheck:
        """Of pairs so many times as far apart: everything moves in proportion."""
        reads = tuple(one.model_copy(update={"by": one.by * times, "off": one.off * times}) for one in self.reads)
        own, off = tuple(x * times for x in self.own), tuple(x * times for x in self.own_off)
        return self.model_copy(update={"reads": reads, "own": own, "own_off": off})

    def _joint_moves(self, slopes: Sequence[Sequence[float]]) -> Moves:
        zero = (0.0,) * len(self.regression)
        left = []
        for row, true, off in zip(slopes, self.regression, self.own_off, strict=True):
            terms = zip(row, true, self.reads, strict=True)
            left.append(off + sum((abs(b - t) + _ROUNDING * (abs(b) + abs(t))) * read.off for b, t, read in terms))
        return Moves(None, zero, zero, tuple(left))


class TransportEvidence(Charged):
    """Averages moved along the statistics that are read, and Gaussian noise."""

    words: ClassVar[str] = "averages by transport, all at once"
    told_by: ClassVar[Profile] = BY_FORMULA
    by_secret: ClassVar[tuple[str, ...]] = ("checks",)
    kind: Literal["transport"] = "transport"
    columns: tuple[str, ...] = Field(min_length=1)
    independent: tuple[NonNegative, ...]
    factor: Rows = ()
    least: Widths = Field(description="noise that the charge for recorded values counts on: on averages, then on what is read")
    clamp: Clamp
    checks: tuple[TransportCheck, ...] = Field(min_length=1)

    def delta(self, epsilon: float) -> float:
        inner = self.inner(epsilon)
        if inner is None or not (self._consistent() and self._masked()):
            return 1.0
        return self.charged(gaussian_delta_upper(inner, self.distance()), epsilon)

    def stretched(self, times: float) -> TransportEvidence:
        return self.model_copy(update={"checks": tuple(check.stretched(times) for check in self.checks)})

    def describe(self) -> tuple[str, ...]:
        return tuple(
            f"worst for {check.secret}: outputs {self.distance_of(check):.6g} standard deviations apart"
            for check in self.checks
        )

    def suits(self, columns: tuple[str, ...], n: int, *, clipped: bool) -> bool:
        """Rows of slopes and of the factor belong to columns by their order."""
        return columns == self.columns

    def common_noise(self) -> Rows:
        return self.factor

    def taken_back(self) -> Clamp:
        return self.clamp

    def given(self, part: ColumnPlan, place: int, told: Told) -> tuple[Fraction, float] | None:
        """Where all that is read is known, and not masked."""
        reads = self.clamp.reads
        if any(read.mask or not set(read.coefficients) <= set(told.read) for read in reads):
            return None
        hidden = [statistic(read, told.read) for read in reads]
        return clamped(self.clamp, [Fraction(0)] * len(self.columns), hidden, 1)[place], part.noise.scale

    def _consistent(self) -> bool:
        """Whether everything speaks of the same averages and the same statistics, with at least the noise counted on."""
        size, read = len(self.columns), [one.coefficients for one in self.clamp.reads]
        noise = (*self.independent, *(one.mask for one in self.clamp.reads))
        fits = [len(set(self.columns)) == len(self.clamp.slopes) == len(self.independent) == size]
        fits.append(
            len(noise) == len(self.least) and all(drawn >= least for drawn, least in zip(noise, self.least, strict=True))
        )
        fits.append(all(row and len(row) == len(self.factor[0]) for row in self.factor) and len(self.factor) in (0, size))
        for check in self.checks:
            fits.append([one.coefficients for one in check.reads] == read)
            fits.append(len(check.own) == len(check.own_off) == len(check.credited) == size)
            fits.append(all(len(row) == size for row in check.credited))
            fits.append(not check.regression or [len(row) for row in check.regression] == [len(read)] * size)
            fits.append(not check.regression or not any((*check.own, *(one.by for one in check.reads))))
        return all(fits)

    def _masked(self) -> bool:
        reads = self.clamp.reads
        if len(reads) == 1:
            return True
        itself = any(set(read.coefficients) & set(self.columns) for read in reads)
        return not itself and all(read.mask > 0 and len(read.coefficients) == 1 for read in reads)

    def distance(self) -> float:
        """The largest distance of two output laws, in standard deviations, rounded up."""
        return max(self.distance_of(check) for check in self.checks)

    def distance_of(self, check: TransportCheck) -> float:
        spread, metric, moves = self.spread(check), self._metric(), check.moves(self.clamp.slopes)
        slack, reach, period = shortening(metric), self.clamp.reach, self.clamp.period
        if moves.told is None:
            moved, within = 2 * reach * (SOLVED_UP + slack), period is None
        else:
            told = norm(moves.told, moves.told_off, metric)
            within = period is None or told <= period * COMPUTED_DOWN
            moved = min(2 * reach * SOLVED_UP, told) + slack * (2 * reach if period is None else told)
        if not within:
            return math.inf
        return (stretch(metric, spread) * moved + norm(moves.untold, moves.untold_off, spread)) * COMPUTED_UP

    def _metric(self) -> Matrix:
        import numpy as np

        return np.array(self.clamp.metric or ((1.0,),), dtype=np.float64)

    def spread(self, check: TransportCheck) -> Matrix:
        """The covariance of the released averages given all that is read, from below."""
        return output_spread(check, self.independent, self.factor)

    def covers(self, column: str, kind: str, scale: float) -> bool:
        """Whether noise of this kind and scale on this column alone is what was counted on."""
        return kind == "gaussian" and dict(zip(self.columns, self.independent, strict=True)).get(column) == scale


def output_spread(check: TransportCheck, independent: Sequence[float], factor: Rows) -> Matrix:
    """What the averages vary by themselves, plus noise."""
    import numpy as np

    credited = np.array(check.credited, dtype=np.float64)
    require_covariance(credited)
    common = np.array(factor, dtype=np.float64) if factor else np.zeros((len(independent), 1))
    return np.asarray(credited + np.diag(np.array(independent) ** 2) + common @ common.T, dtype=np.float64)


def stretch(metric: Matrix, spread: Matrix) -> float:
    """The largest |y| in the norm of `spread` where it is 1 in that of `metric`: sqrt(lambda_max(spread^-1 metric))."""
    import numpy as np

    if len(metric) == 1:
        return math.sqrt(float(metric[0, 0]) / float(spread[0, 0])) * SOLVED_UP
    return matrix_distance(np.linalg.cholesky(metric).tolist(), spread) * SOLVED_UP


def shortening(metric: Matrix) -> float:
    """By which share the length of a vector, which is a float, may be off where averages are moved."""
    import numpy as np

    if len(metric) == 1:
        return 0.0
    scale = np.sqrt(np.diag(metric))
    condition = float(np.linalg.cond(metric / np.outer(scale, scale)))
    if not condition < _CONDITION:
        raise CertificateError("certificate: the spread of the averages is nearly singular.")
    return 1e-14 * condition


def norm(middle: Sequence[float], off: Sequence[float], spread: Matrix) -> float:
    """The largest norm of a vector with entries within `off` of `middle`, from above."""
    import numpy as np

    if len(spread) == 1:
        return (abs(middle[0]) + off[0]) / math.sqrt(float(spread[0, 0])) * COMPUTED_UP
    found = matrix_distance([[x] for x in middle], spread)
    if any(off):
        scale = np.sqrt(np.diag(spread))
        unit, widths = spread / np.outer(scale, scale), np.array(off) / scale
        if not np.linalg.cond(unit) < _CONDITION:
            raise CertificateError("certificate: the spread of the averages is nearly singular.")
        found += math.sqrt(float(widths @ np.abs(np.linalg.inv(unit)) @ widths)) * SOLVED_UP
    return found * COMPUTED_UP
