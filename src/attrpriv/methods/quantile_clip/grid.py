"""What it costs that a quantile clip is drawn and computed in digits: factors only, so that delta stays 0.

The noise that masks the digits of F is drawn on a grid of r = 2^-32 of its scale s or finer; each of its steps is filled with
`digits` further random bits; the clip is then decided in whole numbers of `bits` bits, and the answer is a public cell

    m0 + k step,    k = -last, ..., last        (the two outermost hold everything beyond)

| symbol | here |
|---|---|
| V, omega | the variance of the masked F given G; step / sqrt(V) |
| A | `reach`: answers end about A sqrt(V) from the centre |
| K | `depth`: no cell, and no end of the range, asks for z beyond +-K |
| M | e^-below omega phi(A): the least mass of a cell |

Within +-K the masked law is within a factor of the normal one that grows with |z|, no faster than e^(r (|z| + 1) + 2 r^2); over
a tail that makes r (K + 2) + 3 r^2 (`draw_charge`). Decisions are right except within 2^13 e^max(below, above) units of 2^-bits
of a boundary, and a boundary is out of place by one filled step at most: `digits` and `bits` are so many that both together
move less than 2^-40 of the least cell, which is charged as 2^-39. docs/theory/quantile-clip.md has the proof.

What must never change: everything here is public, and nothing is charged to delta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from attrpriv.errors import UsageError
from attrpriv.numerics.calibration.quantile_clip import QuantileClip
from attrpriv.numerics.laws.normal_digits import LARGEST
from attrpriv.numerics.rounding import COMPUTED_DOWN, COMPUTED_UP, SOLVED_UP

# Answers this far out, in standard deviations, do not happen: beyond them the ends of the range cost no accuracy.
_FAR = 36.0
_STEP_BITS = 6
_GRID_RATIO = 2.0**-32
_CELLS = 2.0**-39


@dataclass(frozen=True)
class QuantileGrid:
    """The public cells of an answer, and how many digits it takes to decide among them."""

    step: float
    last: int
    reach: float
    depth: float
    digits: int
    bits: int

    @property
    def draw_charge(self) -> float:
        """lambda for the grids of the noise, of the decisions and of the answers."""
        return (_GRID_RATIO * (self.depth + 2) + 3 * _GRID_RATIO**2 + _CELLS) * COMPUTED_UP


def quantile_grid(clip: QuantileClip, spread: float, mask: float) -> QuantileGrid:
    """The grid for a masked number of standard deviation `spread`, `mask` of which is noise.

    >>> grid = quantile_grid(QuantileClip(0.5, 0.5), 0.25, 1e-4)
    >>> grid.step == 2.0**-20, grid.reach, round(grid.depth, 2), grid.digits, grid.bits, f"{grid.draw_charge:.0e}"
    (True, 7.0, 7.07, 54, 113, '2e-09')
    """
    if not (0 < mask <= spread < math.inf):
        raise UsageError(f"mask: must be positive and at most the spread, {spread}. Got {mask}.")
    step = math.ldexp(1.0, math.frexp(mask)[1] - 1 - _STEP_BITS)
    reach = float(math.ceil(math.sqrt(_FAR + 2 * (clip.below + clip.above))))
    most = max(clip.below, clip.above)
    depth = math.sqrt(reach**2 + 2 * most) * SOLVED_UP
    if not depth < LARGEST - 1:
        raise UsageError(f"epsilon: is too large for a quantile clip. Got {clip.below + clip.above}.")
    # log2 of e^below / phi(A), of e^max, and of 1/omega, all from above.
    least = (clip.below + reach**2 / 2) / math.log(2) + 1.4
    digits = math.ceil(16 + least)
    bits = math.ceil(42 + 13 + most / math.log(2) + least + math.log2(spread / step) + 1)
    return QuantileGrid(step, math.floor(reach * spread / step * COMPUTED_DOWN), reach, depth, digits, bits)


def rounding_charge(depth: float, kurtosis: float) -> float:
    """lambda for averages of rounded values, estimated: four times what an excess kurtosis does to a log density at `depth`.

    The density of a nearly normal average at z is off by a factor of about exp(kurtosis (z^4 - 6 z^2 + 3)/24). Computed exactly
    for coarsely rounded rows, twice that is exceeded where the sensitive average lies four standard errors out, by a half.
    """
    if not (kurtosis >= 0 and math.isfinite(kurtosis)):
        raise UsageError(f"kurtosis: must be finite and at least 0. Got {kurtosis}.")
    return kurtosis * max(depth**4, 3.0) / 6 * COMPUTED_UP
