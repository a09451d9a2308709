"""The laws a release can have: Gaussian, on whole numbers, mixed; and the sets of values a secret can be known to lie in."""

from attrpriv.numerics.laws.binomial_tails import BinomialTails, binomial_tails
from attrpriv.numerics.laws.count_cases import CountCases, case_laws
from attrpriv.numerics.laws.fixed_point import fixed_binomial_sum, fixed_record_sum
from attrpriv.numerics.laws.gaussian import GaussianLaw
from attrpriv.numerics.laws.gaussian_mixture import GaussianMixture
from attrpriv.numerics.laws.intervals import EndRange, Interval, IntervalUnion, parse_case, parse_cases, require_disjoint
from attrpriv.numerics.laws.lattice import LatticeLaw, binomial_sum, discrete_gaussian, discrete_laplace, mixture, record_sum
from attrpriv.numerics.laws.law_box import Cell, MovingCases, Spread
from attrpriv.numerics.laws.markov import MarkovChain
from attrpriv.numerics.laws.records import CountPairs, RecordLaws

__all__ = [
    "BinomialTails",
    "Cell",
    "CountCases",
    "CountPairs",
    "EndRange",
    "GaussianLaw",
    "GaussianMixture",
    "Interval",
    "IntervalUnion",
    "LatticeLaw",
    "MarkovChain",
    "MovingCases",
    "RecordLaws",
    "Spread",
    "binomial_sum",
    "binomial_tails",
    "case_laws",
    "discrete_gaussian",
    "discrete_laplace",
    "fixed_binomial_sum",
    "fixed_record_sum",
    "mixture",
    "parse_case",
    "parse_cases",
    "record_sum",
    "require_disjoint",
]
