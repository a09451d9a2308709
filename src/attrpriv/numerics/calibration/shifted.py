"""Whole-number noise against itself, moved by a whole distance: how much it hides, and how much of it a distance needs."""

from __future__ import annotations

import math

from attrpriv.numerics.calibration.direct import least_scale
from attrpriv.numerics.calibration.gaussian import gaussian_mu
from attrpriv.numerics.divergences.lattice import lattice_delta_upper
from attrpriv.numerics.laws.lattice import discrete_gaussian
from attrpriv.numerics.rounding import COMPUTED_UP


def shifted_delta(noise: str, scale: float, distance: int, epsilon: float) -> float:
    """H_epsilon, from above, of whole-number noise against itself moved by a whole distance."""
    if noise == "none" or not scale > 0:
        return 1.0
    if noise == "laplace":
        return 0.0 if distance / scale * COMPUTED_UP <= epsilon else 1.0
    law = discrete_gaussian(scale, tail=math.exp(-600))
    return lattice_delta_upper(law, law.shifted(distance), epsilon)


def shift_scale(distance: int, epsilon: float, delta: float, error: float) -> float | None:
    """The least whole-number Gaussian noise that hides a shift by `distance`; None where it is clearly more than `error`.

    Rounded to whole numbers a Gaussian hides hardly more than it does without, so the continuous one tells whether to look.
    """
    if distance == 0:
        return 0.0
    start = distance / gaussian_mu(epsilon, delta)
    if start > 1.25 * error + 1:
        return None
    return least_scale(lambda scale: shifted_delta("gaussian", scale, distance, epsilon) <= delta, start)
