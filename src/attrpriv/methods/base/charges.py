"""What a promise pays besides its calibration: grids, recorded values, shape, clipping, fits, and a reserve.

With lambda and eta the sums of their kinds, laws that are (eps', delta')-close become
(eps' + 2 lambda, e^lambda delta' + eta (1 + e^(eps' + lambda)))-close; the rest is added to delta.
"""

from __future__ import annotations

import math

from pydantic import Field

from attrpriv.methods.base.evidence import Evidence
from attrpriv.numerics.rounding import COMPUTED_UP, ROUNDED_DOWN


class Charged(Evidence):
    """Evidence that carries these charges. None has a default: what is left out by mistake must not count as free."""

    grid_lambda: float = Field(ge=0)
    lattice_lambda: float = Field(ge=0)
    grid_eta: float = Field(ge=0)
    shape_lambda: float = Field(ge=0)
    shape_eta: float = Field(ge=0)
    clip_delta: float = Field(ge=0)
    fit_delta: float = Field(ge=0)
    reserve: float = Field(ge=0)

    @property
    def lam(self) -> float:
        return self.grid_lambda + self.lattice_lambda + self.shape_lambda

    def inner(self, epsilon: float) -> float | None:
        """The epsilon that is left for the calibration, rounded down; None where nothing is."""
        inner = epsilon - 2 * self.lam
        return max(0.0, inner * ROUNDED_DOWN - 1e-300) if inner >= 0 else None

    def charged(self, worst: float, epsilon: float) -> float:
        """The delta of the whole promise, where the calibration alone reaches `worst` at the inner epsilon."""
        close = math.exp(self.lam) * worst + (self.grid_eta + self.shape_eta) * (1 + math.exp(epsilon))
        return (close + self.clip_delta + self.fit_delta + self.reserve) * COMPUTED_UP


CHARGES: tuple[str, ...] = tuple(name for name in Charged.model_fields if name not in Evidence.model_fields)
