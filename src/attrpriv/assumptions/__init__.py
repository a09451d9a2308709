"""Assumptions: the conditional law of a query given a secret, over a whole class of distributions."""

from attrpriv.assumptions.gaussian import Gaussian, Tolerance

__all__ = ["Gaussian", "Tolerance"]
