"""What must look alike: secrets, pairs and the problem. No data, no noise."""

from attrpriv.framework.assumption import Assumption
from attrpriv.framework.problem import Problem
from attrpriv.framework.secret import Secret

__all__ = ["Assumption", "Problem", "Secret"]
