"""The evidence of transported averages under a Gaussian assumption (docs/theory/transport.md).

Given all sensitive statistics G, the averages F are N(const + B_theta G, S_theta). Released is F - Y + h(Y) + N(0, Z), with
Y = B0 (G + mask - centre) and h as in `guarantee.clamp`. Given g_i = a, G = kappa a + E, and neither E nor the masks depend on
a; *given them*, two values of g_i that must look alike move the mean of what is released by at most

    moved + untold,     moved <= min(2 reach, |B0 kappa (a - b)|)     untold = (B_theta - B0) kappa (a - b)

while its covariance is S_theta + Z. So both laws are mixtures, with equal weights, of Gaussians at most that far apart, and the
hockey-stick divergence is jointly convex.

`told` and `untold` are B0 kappa (a - b) and (B_theta - B0) kappa (a - b) for the widest pair, each entry within its `_off`.

What must never change: everything is recomputed from the stored numbers, rounded up. Where several statistics are read, each
has a mask: E lies on a lattice that moves with a, and without the mask its digits would tell.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from attrpriv.divergences import gaussian_delta_upper
from attrpriv.errors import CertificateError
from attrpriv.framework.model import Finite, FrozenModel, NonNegative
from attrpriv.guarantee.charges import ROUND_UP, Charged
from attrpriv.guarantee.clamp import Clamp, Rows
from attrpriv.guarantee.gaussian import matrix_distance

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

Vector = tuple[Finite, ...]
Widths = tuple[NonNegative, ...]

# A norm computed in floats, from a matrix no worse conditioned than below, is off by less than this share.
_NORM = 1 + 1e-9
_CONDITION = 1e10


class TransportCheck(FrozenModel):
    """One secret under one member of Theta; `told` None: any two values of the statistics that are read must look alike."""

    secret: str
    theta: int
    told: Vector | None
    told_off: Widths
    untold: Vector
    untold_off: Widths
    credited: Rows = Field(description="a covariance that the averages have at least, given all that is read")


class TransportEvidence(Charged):
    """Averages moved along the statistics that are read, and Gaussian noise."""

    kind: Literal["transport"] = "transport"
    columns: tuple[str, ...] = Field(min_length=1)
    independent: tuple[NonNegative, ...]
    factor: Rows = ()
    clamp: Clamp
    checks: tuple[TransportCheck, ...] = Field(min_length=1)

    def delta(self, epsilon: float) -> float:
        inner = self.inner(epsilon)
        if inner is None or len(self.clamp.slopes) != len(self.columns) or not self._masked():
            return 1.0
        return self.charged(gaussian_delta_upper(inner, self.distance()), epsilon)

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
        spread, metric = self.spread(check), self._metric()
        moved = 2 * self.clamp.reach * _NORM
        if check.told is not None:
            told = norm(check.told, check.told_off, metric)
            moved = min(moved, told)
            if self.clamp.period is not None and told > self.clamp.period * (1 - 1e-12):
                return math.inf
        elif self.clamp.period is not None:
            return math.inf
        return (stretch(metric, spread) * moved + norm(check.untold, check.untold_off, spread)) * ROUND_UP

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
    scale = np.sqrt(np.maximum(np.diag(credited), 1e-300))
    if np.linalg.eigvalsh(credited / np.outer(scale, scale))[0] < -1e-9:
        raise CertificateError("certificate: a credited covariance must be semidefinite.")
    common = np.array(factor, dtype=np.float64) if factor else np.zeros((len(independent), 1))
    return np.asarray(credited + np.diag(np.array(independent) ** 2) + common @ common.T, dtype=np.float64)


def stretch(metric: Matrix, spread: Matrix) -> float:
    """The largest |y| in the norm of `spread` where it is 1 in that of `metric`: sqrt(lambda_max(spread^-1 metric))."""
    import numpy as np

    if len(metric) == 1:
        return math.sqrt(float(metric[0, 0]) / float(spread[0, 0])) * _NORM
    return matrix_distance(np.linalg.cholesky(metric).tolist(), spread) * _NORM


def norm(middle: Sequence[float], off: Sequence[float], spread: Matrix) -> float:
    """The largest norm of a vector with entries within `off` of `middle`, from above."""
    import numpy as np

    if len(spread) == 1:
        return (abs(middle[0]) + off[0]) / math.sqrt(float(spread[0, 0])) * ROUND_UP
    found = matrix_distance([[x] for x in middle], spread)
    if any(off):
        scale = np.sqrt(np.diag(spread))
        unit, widths = spread / np.outer(scale, scale), np.array(off) / scale
        if not np.linalg.cond(unit) < _CONDITION:
            raise CertificateError("certificate: the spread of the averages is nearly singular.")
        found += math.sqrt(float(widths @ np.abs(np.linalg.inv(unit)) @ widths)) * _NORM
    return found * ROUND_UP
