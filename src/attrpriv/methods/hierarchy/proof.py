"""The evidence of a transported average under a hierarchy (docs/theory/hierarchy.md).

Given phi_i = a, the sensitive average is x = a + e with e ~ N(0, D_i/n) independent of a and of the query average F, whose law
is N(m_j + b (a - m_i), V). Released is F - y + clip(y, -reach, +reach) + N(0, scale^2), y = slope (x + mask - centre).

*Given e and the mask's noise*, which have the same law for every a, two values of phi_i at most `apart` from each other move
the mean of the released value by at most

    min(2 reach, |slope| apart) + |b - slope| apart

and its variance is V + scale^2. So the two laws are mixtures, with equal weights, of Gaussians at most that far apart, and the
hockey-stick divergence is jointly convex. With reach 0 the released value is Gaussian itself, and slope^2 (D_i/n + mask^2)
counts towards its variance.

What must never change: everything is recomputed from the stored numbers, rounded up; the query column is not the sensitive one.
"""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from attrpriv.frozen import Finite, FrozenModel, Positive
from attrpriv.methods.base.accuracy import BY_FORMULA, Profile
from attrpriv.methods.base.clamp import Clamp
from attrpriv.methods.base.evidence import Charged
from attrpriv.numerics.divergences.gaussian import gaussian_delta_upper
from attrpriv.numerics.rounding import COMPUTED_UP

# Covers the rounding of a slope, in units of itself, and of the sum of squares below.
_ULPS = 1e-15


class HierarchyCheck(FrozenModel):
    """One secret: how populations vary, and how averages of the table's n rows vary around them."""

    secret: str
    apart: Positive = Field(description="the largest distance of two values that must look alike")
    query_between: Positive
    hidden_between: Positive
    correlation: Annotated[Finite, Field(ge=-1, le=1)]
    query_within: Positive = Field(description="standard deviation of the query average around its population's mean")
    hidden_within: Positive

    @property
    def slope(self) -> float:
        """b = S_ij / S_ii."""
        return self.correlation * self.query_between / self.hidden_between

    @property
    def variance(self) -> float:
        """V = S_jj - S_ij^2/S_ii + D_j/n, without cancellation."""
        return self.query_between**2 * (1 - self.correlation) * (1 + self.correlation) + self.query_within**2


class HierarchyEvidence(Charged):
    """Noise of one standard deviation on one average, and a clamp on what the sensitive column tells of it."""

    words: ClassVar[str] = "averages under a hierarchy"
    room: ClassVar[str] = "A hierarchy takes no tolerance in this version."
    told_by: ClassVar[Profile] = BY_FORMULA
    kind: Literal["hierarchy"] = "hierarchy"
    columns: tuple[str, ...] = Field(min_length=1, max_length=1)
    scale: Positive
    clamp: Clamp
    check: HierarchyCheck

    def delta(self, epsilon: float) -> float:
        inner = self.inner(epsilon)
        if inner is None or not self._readable():
            return 1.0
        return self.charged(gaussian_delta_upper(inner, self.distance()), epsilon)

    def describe(self) -> tuple[str, ...]:
        return (f"worst for {self.check.secret}: outputs {self.distance():.6g} standard deviations apart",)

    def suits(self, columns: tuple[str, ...], n: int, *, clipped: bool) -> bool:
        return columns == self.columns

    def taken_back(self) -> Clamp:
        return self.clamp

    def _readable(self) -> bool:
        """One other column is read, as it is and masked, and clamped to a plain interval."""
        reads, clamp = self.clamp.reads, self.clamp
        plain = not clamp.metric and clamp.period is None and len(clamp.slopes) == 1
        one = len(reads) == 1 and tuple(reads[0].coefficients.values()) == (1,) and reads[0].mask > 0
        return plain and one and self.columns != (reads[0].column,)

    def distance(self) -> float:
        """The largest distance of two output laws, in standard deviations, rounded up."""
        return self.shift() / math.sqrt(self.variance()) * COMPUTED_UP

    def shift(self) -> float:
        """How far two values of the secret move the released mean, once the sensitive average's own error is given."""
        slope, taken, apart = self.check.slope, self.clamp.slopes[0][0], self.check.apart
        left = abs(slope - taken) + _ULPS * (abs(slope) + abs(taken))
        return min(2 * self.clamp.reach, abs(taken) * apart) + left * apart

    def variance(self) -> float:
        own = self.check.variance + self.scale**2
        if self.clamp.reach == 0:
            own += self.clamp.slopes[0][0] ** 2 * (self.check.hidden_within**2 + self.clamp.reads[0].mask ** 2)
        return own * (1 - _ULPS)

    def covers(self, column: str, kind: str, scale: float) -> bool:
        """Whether noise of this kind and scale on this column is what was counted on."""
        return kind == "gaussian" and (column,) == self.columns and scale == self.scale
