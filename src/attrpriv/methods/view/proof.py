"""The evidence of a secret-free view: fixed numbers of rows of each cell."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

from pydantic import Field

from attrpriv.methods.base.evidence import Evidence
from attrpriv.methods.base.view_plan import ViewCell
from attrpriv.numerics.laws.binomial import binomial_below


class ViewEvidence(Evidence):
    """Fixed numbers of rows of each cell: the law of the view does not depend on the counts, where each is large enough."""

    words: ClassVar[str] = "a view"
    kind: Literal["view"] = "view"
    n: int = Field(ge=2)
    cells: tuple[ViewCell, ...] = Field(min_length=1)
    population: bool = False

    def delta(self, epsilon: float) -> float:
        possible = sum(cell.low for cell in self.cells) <= self.n <= sum(cell.high for cell in self.cells)
        if not possible or any(cell.keep > cell.low or cell.low > cell.high for cell in self.cells):
            return 1.0
        if not self.population:
            return 0.0
        shares = [cell.share for cell in self.cells]
        if any(share is None for share in shares):
            return 1.0
        return math.fsum(binomial_below(self.n, share or 0.0, c.keep) for share, c in zip(shares, self.cells, strict=True))

    def view_of(self) -> tuple[int, tuple[ViewCell, ...]]:
        return self.n, self.cells
