"""A clamp: what a transported average takes back of the sensitive statistics it depends on, in public numbers.

With x the sensitive statistics that are read (each masked by noise of its own where its `mask` is above 0), c their centres,

    Y = slopes (x - c),        F' = F - Y + h(Y)

where h keeps what may still be seen of Y small:

| | h(Y) |
|---|---|
| `period` None | the point of the ball |y| <= reach that is nearest to Y |
| `period` w | Y lies on a line, at t = m w + r, |r| <= w/2: the point at m min(2 reach, w) + clip(r, -reach, +reach) |

in the norm |y|^2 = y' metric^-1 y; no metric: the plain norm. Reach 0 takes Y back altogether. Two facts carry every proof: the
nearest point of a ball moves no further than Y does, and by 2 reach at most; and along the staircase two points at most w apart
are at most min(2 reach, w) apart afterwards.

What must never change: everything here is public. The sensitive averages are read, used and forgotten (`transport.clamp_draw`).
"""

from __future__ import annotations

from pydantic import Field, model_validator

from attrpriv.frozen import Finite, FrozenMap, FrozenModel, NonNegative, Positive

Rows = tuple[tuple[Finite, ...], ...]


class Read(FrozenModel):
    """A sensitive statistic that is read in the same pass: an average of columns, each times a number."""

    coefficients: FrozenMap[Finite] = Field(min_length=1, description="of each column in the statistic")
    centre: Finite = Field(description="the assumption's own value")
    mask: NonNegative = Field(default=0.0, description="sd of the noise on the statistic, which hides its digits")
    fill: FrozenMap[Finite] = Field(default_factory=dict, description="public value for missing entries of a column")

    @property
    def column(self) -> str:
        """Its name in words: the column, or the columns."""
        return ", ".join(self.coefficients)


class Clamp(FrozenModel):
    """Which statistics are read, around which centres, and how much of them may show; all public."""

    reads: tuple[Read, ...] = Field(min_length=1)
    slopes: Rows = Field(min_length=1, description="from the statistics that are read to each released average")
    reach: NonNegative = Field(description="how far what is left of the secrets may move the answers, to each side")
    metric: Rows = Field(default=(), description="the norm in which that is measured; none: plain")
    period: Positive | None = Field(default=None, description="width of a stair, where only near values must look alike")

    @model_validator(mode="after")
    def _consistent(self) -> Clamp:
        size = len(self.slopes)
        if any(len(row) != len(self.reads) for row in self.slopes):
            raise ValueError("slopes: need one number for each statistic that is read.")
        if self.metric and (len(self.metric) != size or any(len(row) != size for row in self.metric)):
            raise ValueError("metric: must be a square matrix with one row for each average.")
        if size > 1 and not self.metric:
            raise ValueError("metric: is needed for several averages.")
        if self.period is not None and size > 1 and len(self.reads) > 1:
            raise ValueError("period: a staircase is for one average, or for one statistic that is read.")
        return self
