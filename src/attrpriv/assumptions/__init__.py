"""Assumptions: the conditional law of a query given a secret, over a whole class of distributions."""

from attrpriv.assumptions.counts import Counts
from attrpriv.assumptions.gaussian import Gaussian, Tolerance
from attrpriv.assumptions.groups import Groups, GroupTolerance

__all__ = ["Counts", "Gaussian", "GroupTolerance", "Groups", "Tolerance"]
