"""Many transported answers about one table, one guarantee: the clamp with innovations (docs/theory/sequences.md).

Y are averages with noise of their own, one after the other; m what the sensitive statistics tell of them, measured from a
public centre; A = L D L' the covariance of what is left, L with ones on its diagonal. Answer k is

    out_k = Y_k - x_k + y_k,      x_k = m_k - sum over j < k of L_kj y_j,      y_k = clip(x_k, -reach_k, +reach_k)

| symbol | here |
|---|---|
| L (below its diagonal), D | `Innovations.gains`, `spreads`: public; rows do not change when more answers follow |
| x_k, y_k | `shown`: what the owner knows beyond the public, and how much of it is left in the answer |
| L^-1 b | `passed_on`: where an error b of what is told comes out |

Whatever m is, given it and the answers before, out_k is N(public number + y_k, D_k). So two tables differ by a Gaussian step of
at most 2 reach_k/sqrt(D_k) at each answer, and all answers together by the root of the sum of squares, also where the next
average, its noise and its reach are chosen after seeing the answers before, as long as that sum stays below a total fixed
beforehand.

What must never change: L and D are the same numbers whenever and wherever they are computed, to a hundred digits, because every
later answer builds on what the earlier ones showed. No answer is needed for that, and nothing secret is kept.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from attrpriv.errors import RefusedError, UsageError
from attrpriv.methods.base.clamp import MovedSpread, normal_points, statistic
from attrpriv.numerics.rounding import COMPUTED_UP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from attrpriv.methods.transport.sequence_proof import SequenceEvidence

    Matrix = NDArray[np.float64]

Number = float | Decimal

# Digits of every step. An answer of which less than this share is left open, given the others, is refused: so a hundred
# digits leave far more than floats have.
_DIGITS = 100
_NOTHING = Decimal("1e-12")
_BITS = 128


@contextmanager
def _digits() -> Iterator[None]:
    with decimal.localcontext(decimal.Context(prec=_DIGITS, rounding=decimal.ROUND_HALF_EVEN)):
        yield


@dataclass(frozen=True)
class Innovations:
    """A = L D L': what each answer has of its own, given those before it."""

    gains: tuple[tuple[Decimal, ...], ...] = ()
    spreads: tuple[Decimal, ...] = ()

    @classmethod
    def of(cls, covariance: Sequence[Sequence[Number]]) -> Innovations:
        """Of a covariance, noise included; its entries are taken as the numbers they are."""
        found = cls()
        for k, row in enumerate(covariance):
            found = found.after(row[: k + 1])
        return found

    def after(self, row: Sequence[Number]) -> Innovations:
        """With one more answer: its covariances with those before, and its own variance last."""
        if len(row) != len(self.spreads) + 1 or not all(math.isfinite(x) for x in row):
            raise UsageError("covariance: must be a finite number for each answer so far, and for the new one.")
        with _digits():
            gain, own = self._gain(row[:-1])
            variance = Decimal(row[-1])
            spread = variance - own
            if not spread > _NOTHING * variance:
                raise RefusedError("answers: nothing of one is left open, given the others; answer it from earlier answers.")
        return Innovations((*self.gains, gain), (*self.spreads, spread))

    def gain(self, row: Sequence[Number]) -> tuple[tuple[Decimal, ...], Decimal]:
        """L of a new answer, from its covariances with those before, and how much of its variance they tell."""
        with _digits():
            return self._gain(row)

    def _gain(self, row: Sequence[Number]) -> tuple[tuple[Decimal, ...], Decimal]:
        weighed: list[Decimal] = []
        for j, shared in enumerate(row):
            told = sum((w * g for w, g in zip(weighed, self.gains[j], strict=True)), Decimal(0))
            weighed.append(Decimal(shared) - told)
        gain = tuple(w / spread for w, spread in zip(weighed, self.spreads, strict=True))
        return gain, sum((w * g for w, g in zip(weighed, gain, strict=True)), Decimal(0))

    @staticmethod
    def variance(own: float, noise: float) -> Decimal:
        """Of an average with noise of this standard deviation."""
        with _digits():
            return Decimal(own) + Decimal(noise) ** 2

    @cached_property
    def inverse(self) -> tuple[tuple[Decimal, ...], ...]:
        """The rows of L^-1, each up to its diagonal."""
        rows: list[tuple[Decimal, ...]] = []
        with _digits():
            for gain in self.gains:
                rows.append(_inverse_row(gain, rows))
        return tuple(rows)

    def passed_on(self, middle: Sequence[float], off: Sequence[float]) -> list[Decimal]:
        """The largest |(L^-1 b)_k| for each k, over all b with entries within `off` of `middle`."""
        with _digits():
            return [_largest(row, middle, off) for row in self.inverse]

    def passed_on_next(self, gain: Sequence[Decimal], middle: Sequence[float], off: Sequence[float]) -> Decimal:
        """The same of the next answer, with this row of L."""
        with _digits():
            return _largest(_inverse_row(gain, self.inverse), middle, off)

    def distance(self, reaches: Sequence[float], middle: Sequence[float], off: Sequence[float]) -> float:
        """How far two tables can be apart, in standard deviations, where what is told is off by some b as above; rounded up."""
        with _digits():
            parts = zip(reaches, self.passed_on(middle, off), self.spreads, strict=True)
            square = sum(((2 * Decimal(reach) + moved) ** 2 / spread for reach, moved, spread in parts), Decimal(0))
            return float(square.sqrt()) * COMPUTED_UP


def _inverse_row(gain: Sequence[Decimal], rows: Sequence[Sequence[Decimal]]) -> tuple[Decimal, ...]:
    size = len(gain)
    taken = [sum((gain[j] * rows[j][i] for j in range(i, size) if gain[j]), Decimal(0)) for i in range(size)]
    return (*(-x for x in taken), Decimal(1))


def _largest(row: Sequence[Decimal], middle: Sequence[float], off: Sequence[float]) -> Decimal:
    along = sum((x * Decimal(b) for x, b in zip(row, middle, strict=False) if x), Decimal(0))
    return abs(along) + sum((abs(x) * Decimal(w) for x, w in zip(row, off, strict=False) if x), Decimal(0))


def shown(innovations: Innovations, reaches: Sequence[float], told: Sequence[Fraction]) -> list[tuple[Fraction, Fraction]]:
    """x_k and y_k of each answer, in fractions. Secret: only out_k, with noise, leaves the owner."""
    found: list[tuple[Fraction, Fraction]] = []
    for gain, reach, own in zip(innovations.gains, reaches, told, strict=True):
        x = beyond(gain, own, [y for _, y in found])
        found.append((x, clipped(x, Fraction(reach))))
    return found


def beyond(gain: Sequence[Decimal], told: Fraction, kept: Sequence[Fraction]) -> Fraction:
    """x of one answer: what the owner knows of it beyond the public, where so much of it was shown in those before."""
    return told - sum((Fraction(g) * y for g, y in zip(gain, kept, strict=True)), Fraction(0))


def clipped(x: Fraction, reach: Fraction) -> Fraction:
    """On a public grid within the reach, so that digits do not pile up; every step is proved for whatever lies within it."""
    step = reach / 2**_BITS
    return round(min(max(x, -reach), reach) / step) * step if step else Fraction(0)


# ----------------------------------------------------------------------------------------------------------------------------
# Transported averages of a sequence in use: one release's answers, and how far they will be from the table's own.
#
#     out_k = F_k - x_k + y_k + noise,     x_k = m_k - sum over j < k of L_kj y_j,     y_k = clip(x_k, -reach_k, +reach_k)
#
# m = B0 (G - centre) for all averages so far, earlier ones included: G is read again each time, and what was shown before
# follows from it. Given the assumption x_k - y_k has a law that no answer changes, so that errors are known before.
#
# What must never change: everything about the table is in fractions, used and forgotten; no answer is read.


def moved_on(evidence: SequenceEvidence, averages: Sequence[Fraction], read: Mapping[str, Fraction]) -> list[Fraction]:
    """This release's averages without what the hidden statistics tell of them beyond each reach; noise comes after."""
    apart = [statistic(one, read) - Fraction(one.centre) for one in evidence.reads]
    told = [sum((Fraction(b) * x for b, x in zip(row, apart, strict=True)), Fraction(0)) for row in evidence.slopes]
    found = shown(evidence.innovations(), evidence.reaches, told)[evidence.before :]
    return [average - x + y for average, (x, y) in zip(averages, found, strict=True)]


def sequence_spreads(
    evidence: SequenceEvidence, wander: Sequence[Sequence[float]], bias: Sequence[float]
) -> tuple[MovedSpread, ...]:
    """The law of the error of each of this release's answers, over the tables of the assumption."""
    import numpy as np

    points, weights = normal_points(len(wander[0]))
    told = points @ np.array(wander, dtype=np.float64).T + np.asarray(bias, dtype=np.float64)
    kept = np.zeros_like(told)
    spreads = []
    for k, (gain, step) in enumerate(zip(evidence.innovations().gains, evidence.steps, strict=True)):
        x = beyond_many(told[:, k], gain, kept[:, :k])
        kept[:, k] = np.clip(x, -step.reach, step.reach)
        spreads.append(MovedSpread(x - kept[:, k], weights, step.noise))
    return tuple(spreads[evidence.before :])


def beyond_many(told: Matrix, gain: Sequence[Decimal], kept: Matrix) -> Matrix:
    """x_k in floats, for many tables at once."""
    import numpy as np

    return np.asarray(told - kept @ np.array([float(g) for g in gain], dtype=np.float64))
