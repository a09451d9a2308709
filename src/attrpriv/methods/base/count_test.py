"""A noisy test that a table has rows to spare in every cell: what stands before a view where single persons are protected.

With slack = min over cells of (rows - rows kept) and Z discrete Laplace noise of this scale,

    passed  =  slack >= 0  and  slack + Z >= threshold

A changed record moves the slack by at most 1. Between two tables of slack 0 or more the outcome is 1/scale-differentially
private. Where one of them has less, the other one has slack 0 at most and passes with P(Z >= threshold) <= delta; the first
never does. A table with `margin` rows to spare in each cell fails with P(Z < threshold - margin) (docs/theory/view.md).
"""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import Field

from attrpriv.frozen import Finite, FrozenModel, Positive
from attrpriv.methods.base.evidence import LaplaceTerm
from attrpriv.noise import GRID_BITS, granularity, whole_laplace
from attrpriv.numerics.rounding import COMPUTED_UP, SOLVED_DOWN

Chance = Annotated[Finite, Field(gt=0, lt=1)]
NAME = "the test of the counts"


class CountTest(FrozenModel):
    """The numbers of the test, and what they prove."""

    delta: Chance = Field(description="at most this likely is a pass where a changed record could make the view impossible")
    scale: Positive = Field(description="of the discrete Laplace noise on the slack")
    threshold: int = Field(ge=1)
    margin: int = Field(ge=1, description="rows to spare in each cell with which the test hardly ever fails")

    @property
    def proved(self) -> bool:
        """Whether the numbers keep delta, and leave a chance of failure that `failure` bounds."""
        return self.margin >= self.threshold and at_least(self.threshold, self.scale) <= self.delta

    @property
    def failure(self) -> float:
        """P(Z < threshold - margin), from above; the law is symmetric."""
        return at_least(self.margin - self.threshold + 1, self.scale)

    @property
    def term(self) -> LaplaceTerm:
        """What the test costs single persons: one row, at this scale."""
        return LaplaceTerm(column=NAME, sensitivity=1.0, scale=self.scale, granularity=granularity(self.scale))

    def drawn(self) -> int:
        """How many rows every cell must have to spare for this table to pass. Secret: it is drawn before the table is read."""
        return max(0, self.threshold - whole_laplace(self.scale))


def at_least(rows: int, scale: float) -> float:
    """P(Z >= rows) for rows >= 1, from above: e^(-rows/scale) / (1 + e^(-1/scale))."""
    if rows < 1:
        return 1.0
    return math.exp(-rows / scale) / (1 + math.exp(-1 / scale)) * COMPUTED_UP + 1e-300


def count_test(epsilon: float, delta: float, failure: float) -> CountTest | None:
    """The test of this epsilon and delta, and a margin with which it fails at most this often; None: the grid costs more."""
    spendable = epsilon * SOLVED_DOWN - 2.0**-GRID_BITS
    if not spendable > 0:
        return None
    scale = 1 / spendable
    threshold = _rows(delta, scale)
    return CountTest(delta=delta, scale=scale, threshold=threshold, margin=threshold - 1 + _rows(failure, scale))


def _rows(chance: float, scale: float) -> int:
    """The least number, up to one, that the noise reaches with at most this chance."""
    rows = max(1, math.floor(scale * (-math.log(chance) - math.log1p(math.exp(-1 / scale)))))
    while at_least(rows, scale) > chance:
        rows += 1
    return rows
