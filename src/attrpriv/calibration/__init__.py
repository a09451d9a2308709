"""Calibration: the least noise that keeps a promise, always returned on the private side."""

from attrpriv.calibration.gaussian import classical_mu, gaussian_mu, noise_variance
from attrpriv.calibration.search import largest_private

__all__ = ["classical_mu", "gaussian_mu", "largest_private", "noise_variance"]
