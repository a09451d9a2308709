"""Divergences between laws: how far apart two outputs are, never underestimated."""

from attrpriv.divergences.hockey_stick import gaussian_delta, gaussian_delta_upper, gaussian_epsilon, hockey_stick

__all__ = ["gaussian_delta", "gaussian_delta_upper", "gaussian_epsilon", "hockey_stick"]
