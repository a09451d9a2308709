"""The laws a release can have. For now: the Gaussian."""

from attrpriv.laws.gaussian import GaussianLaw

__all__ = ["GaussianLaw"]
