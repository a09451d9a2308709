"""The normal law, as a frozen value with no behaviour beyond its own moments."""

from __future__ import annotations

import math
from dataclasses import dataclass

from attrpriv.errors import UsageError


@dataclass(frozen=True)
class GaussianLaw:
    """N(mean, variance) with a positive variance."""

    mean: float
    variance: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.mean) and math.isfinite(self.variance) and self.variance > 0):
            raise UsageError(
                f"law: needs a finite mean and a positive variance. Got mean {self.mean}, variance {self.variance}."
            )
