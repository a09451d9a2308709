"""The evidence of transported averages released one after the other: one proof for all of them (docs/theory/sequences.md).

Released so far, in this order, is out_k = F_k - x_k + y_k + N(0, noise_k^2) with x, y as in `methods.transport.sequence_clamp`,
made from m = B0 (G - centre), the reaches, and A = credited + diag(noise^2) = L D L'. For a secret g_i and a member of Theta,
two values that must look alike are at most

    sqrt( sum over k of (2 reach_k + |(L^-1 untold)_k|)^2 / D_k ),       untold = (B_theta - B0) kappa_i (a - b)

standard deviations apart, whatever the answers were and however later averages were chosen because of them.

What must never change: everything is recomputed from the stored numbers, rounded up. No answer and nothing of the table is
stored: what the owner needs for the next answer is made from the table's own G alone. Several statistics are read only where
nothing is left untold, because their averages lie on lattices, and two values of one then have no common values of the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Literal

from pydantic import Field

from attrpriv.errors import RefusedError
from attrpriv.frozen import FrozenModel, NonNegative, Positive
from attrpriv.methods.base.accuracy import BY_FORMULA, ErrorLaw, Profile
from attrpriv.methods.base.clamp import Read, Rows
from attrpriv.methods.base.column_plan import ColumnPlan
from attrpriv.methods.base.evidence import Charged, Told
from attrpriv.methods.base.gaussian_proof import shaped
from attrpriv.methods.transport.proof import TransportCheck
from attrpriv.methods.transport.sequence_clamp import Innovations, moved_on, sequence_spreads
from attrpriv.numerics.calibration.gaussian import gaussian_mu
from attrpriv.numerics.divergences.gaussian import gaussian_delta_upper
from attrpriv.numerics.rounding import COMPUTED_UP, LEFT_DOWN

# Slopes on several statistics are solved in floats; in standard deviations of an answer they may be off by this much.
_ROUNDING = 1e-6


class SequenceStep(FrozenModel):
    """One answer: the average of a column, its own noise, and how far what is read may move it to each side."""

    column: str
    noise: Positive
    least: Positive = Field(description="noise that the charge for recorded values counts on")
    reach: NonNegative


class SequenceEvidence(Charged):
    """All averages released so far about one table, and those of this release: the last `len(steps) - before`."""

    words: ClassVar[str] = "averages by transport"
    goes_on: ClassVar[bool] = True
    told_by: ClassVar[Profile] = BY_FORMULA
    kind: Literal["transport_sequence"] = "transport_sequence"
    before: int = Field(default=0, ge=0, description="so many of the steps, the first ones, were released earlier")
    steps: tuple[SequenceStep, ...] = Field(min_length=1)
    reads: tuple[Read, ...] = Field(min_length=1)
    slopes: Rows = Field(description="from the statistics that are read to each average")
    credited: Rows = Field(description="a covariance that the averages have at least, given all that is read")
    checks: tuple[TransportCheck, ...] = Field(min_length=1)

    def delta(self, epsilon: float) -> float:
        inner = self.inner(epsilon)
        if inner is None or not self._consistent():
            return 1.0
        return self.charged(gaussian_delta_upper(inner, self.distance()), epsilon)

    def describe(self) -> tuple[str, ...]:
        return tuple(
            f"worst for {check.secret}: outputs {self.distance_of(check):.6g} standard deviations apart"
            for check in self.checks
        )

    def suits(self, columns: tuple[str, ...], n: int, *, clipped: bool) -> bool:
        return not clipped and columns == tuple(step.column for step in self.own_steps)

    def statistics_read(self) -> tuple[Read, ...]:
        return self.reads

    def spent(self, epsilon: float, delta: float) -> float:
        """The share of the budget that everything released so far uses: squares of distances add up. From above."""
        inner = self.inner(epsilon)
        if inner is None or not self.delta(epsilon) <= delta:
            return math.inf
        left = (delta - self.charged(0.0, epsilon)) * math.exp(-self.lam) * LEFT_DOWN
        if not left > 0:
            return math.inf
        return (self.distance() / gaussian_mu(inner, left)) ** 2 * COMPUTED_UP

    def follows(self, earlier: object | None) -> bool:
        """Whether the first steps are all that this evidence is about, made from the very same numbers."""
        if earlier is None:
            return self.before == 0
        if not isinstance(earlier, SequenceEvidence):
            return False
        size = self.before
        block = tuple(row[:size] for row in self.credited[:size])
        mine = (self.steps[:size], self.reads, self.slopes[:size], block)
        return mine == (earlier.steps, earlier.reads, earlier.slopes, earlier.credited)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(step.column for step in self.steps)

    @property
    def reaches(self) -> tuple[float, ...]:
        return tuple(step.reach for step in self.steps)

    @property
    def own_steps(self) -> tuple[SequenceStep, ...]:
        """What this release adds to the earlier ones."""
        return self.steps[self.before :]

    def _consistent(self) -> bool:
        """Whether everything speaks of the same averages and the same statistics, with at least the noise counted on."""
        size, read = len(self.steps), [one.coefficients for one in self.reads]
        fits = [len(set(self.columns)) == len(self.slopes) == len(self.credited) == size, self.before < size]
        fits.append(all(len(row) == len(read) for row in self.slopes))
        fits.append(shaped(self.credited, size, size) and self._symmetric())
        fits.append(all(step.noise >= step.least for step in self.steps) and not any(one.mask for one in self.reads))
        for check in self.checks:
            fits.append([one.coefficients for one in check.reads] == read)
            fits.append(len(check.own) == len(check.own_off) == size)
            fits.append(not check.regression or [len(row) for row in check.regression] == [len(read)] * size)
            fits.append(not check.regression or not any((*check.own, *(one.by for one in check.reads))))
        return all(fits) and (len(read) == 1 or self._all_told())

    def _symmetric(self) -> bool:
        pairs = [(j, k) for k in range(len(self.credited)) for j in range(k + 1)]
        return all(self.credited[j][k] == self.credited[k][j] and self.credited[k][k] >= 0 for j, k in pairs)

    def _all_told(self) -> bool:
        """Whether the slopes are those of the class, up to rounding."""
        nothing = (0.0,) * len(self.steps)
        return all(self._apart(nothing, check) <= _ROUNDING for check in self.checks)

    def innovations(self) -> Innovations:
        """L and D of everything released, noise included."""
        return innovations_of(self.credited, tuple(step.noise for step in self.steps))

    def distance(self) -> float:
        """The largest distance of two laws of all answers, in standard deviations, rounded up; infinite where A is singular."""
        return max(self.distance_of(check) for check in self.checks)

    def distance_of(self, check: TransportCheck) -> float:
        return self._apart(self.reaches, check)

    def _apart(self, reaches: Sequence[float], check: TransportCheck) -> float:
        moves = check.moves(self.slopes)
        try:
            return self.innovations().distance(reaches, moves.untold, moves.untold_off)
        except RefusedError:
            return math.inf

    def moved(self, columns: Sequence[ColumnPlan], averages: Sequence[Fraction], told: Told) -> list[Fraction]:
        return moved_on(self, averages, told.read)

    def error_law(self, columns: Sequence[ColumnPlan], place: int) -> ErrorLaw:
        part = columns[place]
        return sequence_spreads(self, part.parameters["wander"], part.parameters["bias"])[place]

    def covers(self, column: str, kind: str, scale: float) -> bool:
        """Whether noise of this kind and scale on this column alone is what was counted on."""
        return kind == "gaussian" and {step.column: step.noise for step in self.own_steps}.get(column) == scale


@lru_cache(maxsize=64)
def innovations_of(credited: Rows, noise: tuple[float, ...]) -> Innovations:
    """A = credited + diag(noise^2), factored; the square is exact."""
    found = Innovations()
    for k, (row, scale) in enumerate(zip(credited, noise, strict=True)):
        found = found.after((*row[:k], Innovations.variance(row[k], scale)))
    return found
