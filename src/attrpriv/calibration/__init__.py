"""Calibration: the least noise that keeps a promise, always returned on the private side."""

from attrpriv.calibration.gaussian import classical_mu, gaussian_mu, noise_variance
from attrpriv.calibration.moving_cases import CheckedCell, MovingNoise, moving_variance
from attrpriv.calibration.search import largest_private
from attrpriv.calibration.set_valued import SetValuedNoise, set_valued_lam, set_valued_variance
from attrpriv.calibration.unequal import DirectNoise, EqualisedNoise, UnequalNoise, direct_noise, equalised_noise, unequal_noise

__all__ = [
    "CheckedCell",
    "DirectNoise",
    "EqualisedNoise",
    "MovingNoise",
    "SetValuedNoise",
    "UnequalNoise",
    "classical_mu",
    "direct_noise",
    "equalised_noise",
    "gaussian_mu",
    "largest_private",
    "moving_variance",
    "noise_variance",
    "set_valued_lam",
    "set_valued_variance",
    "unequal_noise",
]
