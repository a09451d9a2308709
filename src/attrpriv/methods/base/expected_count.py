"""How far a count is from a fixed number, over the tables of one law of the rows: the error of the constant answer.

    F given a:   a rows of the category and n - a others;     a by the prior, in the range of the secret
    mean_absolute = E|F - c|,   rmse^2 = E (F - c)^2,   alpha95 = the least t with P(|F - c| > t) <= .05

The law of F is a mixture over a. In few rows its parts are exact; in many they are normal laws. For expected errors only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attrpriv.methods.base.accuracy import ExpectedError, folded_size, folded_tail
from attrpriv.numerics.laws.float_law import float_law
from attrpriv.numerics.laws.lattice import binomial_sum
from attrpriv.numerics.laws.lattice_law import LatticeLaw
from attrpriv.numerics.laws.records import RecordLaws

if TYPE_CHECKING:
    from attrpriv.numerics.laws.count_cases import CountPrior

# Supports up to this size are looked at value by value; of more rows, so many counts are looked at.
_FEW_VALUES = 400
_NODES = 65
_HALVINGS = 60


@dataclass(frozen=True)
class Part:
    """A part of a mixture: its chance, mean and standard deviation, and its law where that is looked at."""

    chance: float
    mean: float
    sd: float
    law: LatticeLaw | None = None


@dataclass(frozen=True)
class ExpectedCount:
    """The law of a count over all tables of one law of the rows."""

    parts: tuple[Part, ...]

    @property
    def mean(self) -> float:
        return math.fsum(part.chance * part.mean for part in self.parts)

    @property
    def sd(self) -> float:
        return self._rmse(self.mean)

    def _rmse(self, centre: float) -> float:
        return math.sqrt(math.fsum(p.chance * (p.sd**2 + (p.mean - centre) ** 2) for p in self.parts))

    def error(self, centre: int) -> ExpectedError:
        """Of the answer `centre`."""
        laws = [(part.chance, part.law) for part in self.parts if part.law is not None]
        if len(laws) == len(self.parts):
            size, reach = _whole(laws, centre)
        else:
            size = math.fsum(p.chance * folded_size(p.mean - centre, p.sd) for p in self.parts)
            reach = self._reach(centre)
        return ExpectedError(rmse=self._rmse(centre), mean_absolute=size, alpha95=reach)

    def _reach(self, centre: float) -> float:
        low, high = 0.0, self._rmse(centre) / math.sqrt(0.05)  # Chebyshev
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            missed = math.fsum(p.chance * folded_tail(p.mean - centre, p.sd, middle) for p in self.parts)
            low, high = (middle, high) if missed > 0.05 else (low, middle)
        return high


def _whole(laws: Sequence[tuple[float, LatticeLaw]], centre: int) -> tuple[float, float]:
    """E|F - c| and alpha95 by adding up."""
    chances: dict[int, float] = {}
    for chance, law in laws:
        for value, mass in enumerate(law.masses.tolist(), law.start):
            away = abs(value - centre)
            chances[away] = chances.get(away, 0.0) + chance * mass
    left, reach = 1.0, 0
    for away in sorted(chances):
        left, reach = left - chances[away], away
        if left <= 0.05:
            break
    return math.fsum(away * chance for away, chance in chances.items()), float(reach)


def expected_count(records: RecordLaws, prior: CountPrior) -> ExpectedCount:
    """Under one law of the rows, given by the lower ends of `records`."""
    counts, chances = prior.nodes(_NODES)
    few = prior.n * records.width < _FEW_VALUES
    (m1, v1), (m0, v0) = (_moments(records.values, [float(low) for low, _ in law]) for law in (records.member, records.rest))
    parts = []
    for a, chance in zip(counts.tolist(), chances.tolist(), strict=True):
        law = float_law(records, prior.n, a) if few else None
        rest = prior.n - a
        parts.append(Part(chance, a * m1 + rest * m0, math.sqrt(a * v1 + rest * v0), law))
    return ExpectedCount(tuple(parts))


def expected_events(n: int, states: Sequence[float], probabilities: Sequence[float]) -> ExpectedCount:
    """Of a population in one of some states: all rows count with the same probability."""
    parts = []
    for chance, p in zip(states, probabilities, strict=True):
        law = binomial_sum(n, p, 0, 0.0) if n < _FEW_VALUES else None
        parts.append(Part(chance, n * p, math.sqrt(n * p * (1 - p)), law))
    return ExpectedCount(tuple(parts))


def _moments(values: Sequence[int], law: Sequence[float]) -> tuple[float, float]:
    total = math.fsum(law)
    mean = math.fsum(v * p for v, p in zip(values, law, strict=True)) / total
    return mean, max(0.0, math.fsum((v - mean) ** 2 * p for v, p in zip(values, law, strict=True)) / total)
