"""The laws a release can have: the Gaussian, and the sets of values a secret can be known to lie in."""

from attrpriv.laws.gaussian import GaussianLaw
from attrpriv.laws.intervals import EndRange, Interval, IntervalUnion, parse_case, parse_cases, require_disjoint
from attrpriv.laws.moving_cases import Cell, MovingCases, Spread

__all__ = [
    "Cell",
    "EndRange",
    "GaussianLaw",
    "Interval",
    "IntervalUnion",
    "MovingCases",
    "Spread",
    "parse_case",
    "parse_cases",
    "require_disjoint",
]
