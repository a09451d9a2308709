"""The evidence of a statistic whose conditional laws were simulated (docs/theory/sampled.md).

Of each secret and each member of Theta, for each window of values that must look alike: how far means are apart (`gap`), the
least variance, and how far variances are apart (`spread`), all with the stated confidence. Taking the laws as normal, the rest
is recomputed.

What must never change: the promise is recomputed from these numbers, and holds with noise of at least `floor` that makes tails
nearly normal. That the numbers
are right is a matter of the simulation, which is made again where a record is checked. No rule goes on from here: a simulated
law says nothing about what two answers tell together.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field

from attrpriv.calibration.sampled import TAIL_CHARGE, TAIL_SHARE, Extent, Shape, sampled_delta_upper, tail_share
from attrpriv.framework.model import Finite, FrozenMap, FrozenModel, NonNegative, Positive
from attrpriv.guarantee.charges import Charged

# The square of a stored standard deviation is rounded.
_SQUARED = 1 - 1e-15


class SampledCheck(FrozenModel):
    """One secret under one member of Theta, for values that must look alike; in the statistic's unit."""

    secret: str
    theta: int
    values: tuple[Finite, ...] = Field(min_length=1, description="the values of the secret that were simulated")
    laws: int = Field(ge=1, description="how many distributions of the class were simulated at them")
    gap: NonNegative = Field(description="means are at most this far apart, with the stated confidence")
    least: Positive = Field(description="no variance is below, with the stated confidence")
    spread: NonNegative = Field(description="variances are at most this far apart, with the stated confidence")
    distance: NonNegative = Field(description="the largest distance of a simulated distribution function from a normal one")
    skewed: NonNegative | None = Field(
        default=0.0, description="how much further means are apart for each unit of co-skewness; null: without bound"
    )

    @property
    def extent(self) -> Extent:
        return Extent(self.gap, self.least, self.spread)


class SampledEvidence(Charged):
    """Noise of one standard deviation on one statistic."""

    kind: Literal["sampled"] = "sampled"
    columns: tuple[str, ...] = Field(min_length=1, max_length=1, description="the statistic, by its text")
    scale: Positive
    floor: Positive = Field(description="the least noise: it masks the digits of recorded values")
    runs: int = Field(ge=1)
    confidence: Annotated[Finite, Field(ge=0.5, lt=1)] = Field(description="of all simulated numbers together")
    seed: str = Field(description="of the simulation, which is public; the noise has none")
    allowed: NonNegative = Field(description="the distance from a normal law that chance and the stated shape explain")
    tail: Annotated[Finite, Field(gt=0, lt=0.5)] = Field(description="the size of the tails that must be nearly normal")
    variance: NonNegative = Field(description="the largest one of a law that depends on a secret, 0 where none does")
    skewness: NonNegative = Field(description="of such laws, at most, without its sign")
    kurtosis: NonNegative = Field(description="the excess of such laws, at most, without its sign")
    spacing: FrozenMap[Positive] = Field(description="of each column, the spacing of its values that the floor covers")
    checks: tuple[SampledCheck, ...] = Field(min_length=1)

    @property
    def final(self) -> bool:
        """Whether nothing may follow."""
        return True

    @property
    def distance(self) -> float:
        return max(check.distance for check in self.checks)

    def delta(self, epsilon: float) -> float:
        inner = self.inner(epsilon)
        if inner is None or self.scale < self.floor or self.distance > self.allowed:
            return 1.0
        noise = self.scale**2 * _SQUARED
        worst = max(sampled_delta_upper(check.extent, noise, inner) for check in self.checks)
        shape = Shape(self.variance, self.skewness, self.kurtosis)
        if not tail_share(shape, noise, self.tail) <= TAIL_SHARE:
            return 1.0
        # Tails smaller than those that were looked at are not known to be nearly normal: no less than these is promised.
        return self.charged(max(self.tail if self.variance else 0.0, worst * TAIL_CHARGE), epsilon)

    def covers_statistic(
        self, statistic: str, columns: frozenset[str], width: Fraction | None, kind: str, scale: float
    ) -> bool:
        """Whether this statistic, kept in no range, with noise of this kind and scale is what was counted on."""
        read = columns == set(self.spacing)
        return read and width is None and kind == "gaussian" and (statistic,) == self.columns and scale == self.scale
