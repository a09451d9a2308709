"""Assumptions: the conditional law of a query given a secret, over a whole class of distributions."""

from attrpriv.assumptions.chain import Chain
from attrpriv.assumptions.counts import Counts
from attrpriv.assumptions.gaussian import Gaussian, Tolerance
from attrpriv.assumptions.groups import Groups, GroupTolerance
from attrpriv.assumptions.hierarchy import Hierarchy
from attrpriv.assumptions.parameter_network import ParameterNetwork

__all__ = ["Chain", "Counts", "Gaussian", "GroupTolerance", "Groups", "Hierarchy", "ParameterNetwork", "Tolerance"]
