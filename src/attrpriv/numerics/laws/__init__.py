"""The laws a release can have: Gaussian, on whole numbers, mixed; and the sets of values a secret can be known to lie in.

Each name loads its module when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrpriv.lazy import attribute

if TYPE_CHECKING:
    from attrpriv.numerics.laws.binomial import BinomialTails, binomial_tails
    from attrpriv.numerics.laws.chain_family import ChainFamily
    from attrpriv.numerics.laws.chain_law import chain_sum
    from attrpriv.numerics.laws.count_cases import CountCases, case_laws
    from attrpriv.numerics.laws.fixed_point import fixed_binomial_sum, fixed_record_sum
    from attrpriv.numerics.laws.gaussian import GaussianLaw, GaussianMixture
    from attrpriv.numerics.laws.intervals import EndRange, Interval, IntervalUnion, parse_case, parse_cases, require_disjoint
    from attrpriv.numerics.laws.lattice import (
        LatticeLaw,
        binomial_sum,
        discrete_gaussian,
        discrete_laplace,
        mixture,
        record_sum,
    )
    from attrpriv.numerics.laws.law_box import Cell, MovingCases, Spread
    from attrpriv.numerics.laws.markov import MarkovChain
    from attrpriv.numerics.laws.recorded_inversion import NoisyLaws, noisy_laws
    from attrpriv.numerics.laws.recorded_rows import RecordedRows
    from attrpriv.numerics.laws.records import CountPairs, RecordLaws

_HOME = {
    "BinomialTails": "attrpriv.numerics.laws.binomial",
    "Cell": "attrpriv.numerics.laws.law_box",
    "ChainFamily": "attrpriv.numerics.laws.chain_family",
    "CountCases": "attrpriv.numerics.laws.count_cases",
    "CountPairs": "attrpriv.numerics.laws.records",
    "EndRange": "attrpriv.numerics.laws.intervals",
    "GaussianLaw": "attrpriv.numerics.laws.gaussian",
    "GaussianMixture": "attrpriv.numerics.laws.gaussian",
    "Interval": "attrpriv.numerics.laws.intervals",
    "IntervalUnion": "attrpriv.numerics.laws.intervals",
    "LatticeLaw": "attrpriv.numerics.laws.lattice",
    "MarkovChain": "attrpriv.numerics.laws.markov",
    "MovingCases": "attrpriv.numerics.laws.law_box",
    "NoisyLaws": "attrpriv.numerics.laws.recorded_inversion",
    "RecordLaws": "attrpriv.numerics.laws.records",
    "RecordedRows": "attrpriv.numerics.laws.recorded_rows",
    "Spread": "attrpriv.numerics.laws.law_box",
    "binomial_sum": "attrpriv.numerics.laws.lattice",
    "binomial_tails": "attrpriv.numerics.laws.binomial",
    "case_laws": "attrpriv.numerics.laws.count_cases",
    "chain_sum": "attrpriv.numerics.laws.chain_law",
    "discrete_gaussian": "attrpriv.numerics.laws.lattice",
    "discrete_laplace": "attrpriv.numerics.laws.lattice",
    "fixed_binomial_sum": "attrpriv.numerics.laws.fixed_point",
    "fixed_record_sum": "attrpriv.numerics.laws.fixed_point",
    "mixture": "attrpriv.numerics.laws.lattice",
    "noisy_laws": "attrpriv.numerics.laws.recorded_inversion",
    "parse_case": "attrpriv.numerics.laws.intervals",
    "parse_cases": "attrpriv.numerics.laws.intervals",
    "record_sum": "attrpriv.numerics.laws.lattice",
    "require_disjoint": "attrpriv.numerics.laws.intervals",
}

__all__ = [
    "BinomialTails",
    "Cell",
    "ChainFamily",
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
    "NoisyLaws",
    "RecordLaws",
    "RecordedRows",
    "Spread",
    "binomial_sum",
    "binomial_tails",
    "case_laws",
    "chain_sum",
    "discrete_gaussian",
    "discrete_laplace",
    "fixed_binomial_sum",
    "fixed_record_sum",
    "mixture",
    "noisy_laws",
    "parse_case",
    "parse_cases",
    "record_sum",
    "require_disjoint",
]


def __getattr__(name: str) -> Any:
    return attribute(__name__, _HOME, name)


def __dir__() -> list[str]:
    return sorted(__all__)
