"""What an assumption says of a secret itself, before anything is released: how likely its values are, and how much it varies.

| belief | of |
|---|---|
| `NormalBelief` | a mean or a sum of normal rows, or the mean of a population |
| `ShareBelief` | a count or a share of rows, by the prior share of the rows that it counts |
| `StatesBelief` | a parameter with finitely many values |

What must never change: chances are the largest and spreads the least that a member of Theta gives, so that a wide tolerance
never leads to a warning.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from attrpriv.numerics.laws.binomial import binomial_above, binomial_below
from attrpriv.problem.counted import case_runs, count_pairs, share_range
from attrpriv.problem.secret import Secret

Pair = tuple[float, float]


class Belief:
    """Says nothing; each kind overrides what it knows."""

    def chances(self, secret: Secret, n: int) -> list[float] | None:
        """Of the secret's range, or of each of its sets or values; None where that is not known."""
        return None

    def spread(self, secret: Secret, n: int) -> float | None:
        """A standard deviation, in the secret's own unit; from below. None where none is known."""
        return None

    def single(self, secret: Secret) -> bool:
        """Whether the secret surely has one value, so that there is nothing to hide."""
        return False


@dataclass(frozen=True)
class NormalBox:
    """A box of normal laws; no centre where no mean is stated."""

    centres: Pair | None
    sds: Pair

    def chance(self, low: float, high: float) -> float:
        """The largest of [low, high], which has one infinite end at most."""
        if self.centres is None:
            return 1.0
        centre = min(max((low + high) / 2, self.centres[0]), self.centres[1])
        near, far = sorted((low - centre, high - centre), key=abs)
        if near * far <= 0:
            return 1.0 if not self.sds[0] else _below(high - centre, self.sds[0]) - _below(low - centre, self.sds[0])
        near, far = abs(near), abs(far)
        return max(_below(-near, sd) - _below(-far, sd) for sd in self._worst(near, far))

    def _worst(self, near: float, far: float) -> list[float]:
        """At which standard deviations the chance of a range beside the centre can be largest."""
        inner = math.sqrt((far - near) * (far + near) / (2 * math.log(far / near))) if math.isfinite(far) else math.inf
        return [sd for sd in (self.sds[0], self.sds[1], min(max(inner, self.sds[0]), self.sds[1])) if sd > 0]


def _below(x: float, sd: float) -> float:
    return math.erfc(-x / sd / math.sqrt(2)) / 2


@dataclass(frozen=True)
class NormalBelief(Belief):
    """A box for each mean or sum of the secret."""

    laws: tuple[NormalBox, ...]

    def chances(self, secret: Secret, n: int) -> list[float] | None:
        if secret.cases is not None:
            return [sum(self.laws[0].chance(part.low, part.high) for part in case.parts) for case in secret.case_sets]
        if isinstance(secret.between, Mapping):  # hidden jointly: all of the ranges hold at once
            ranges = [secret.between[form.text] for form in secret.forms]
            return [min(law.chance(*ends) for law, ends in zip(self.laws, ranges, strict=True))]
        return None if secret.ends is None else [self.laws[0].chance(*secret.ends)]

    def spread(self, secret: Secret, n: int) -> float | None:
        return min((law.sds[0] for law in self.laws), default=None)


@dataclass(frozen=True)
class ShareBelief(Belief):
    """The prior share of the rows that a secret counts: anything from `low` to `high`."""

    low: float
    high: float
    closes: bool = True
    """Whether a share of 0 or 1 leaves one value; not where cases of the assumption look at that for themselves."""

    def chances(self, secret: Secret, n: int) -> list[float] | None:
        if secret.entries is not None:
            return None
        if secret.parameter is not None:
            low, high = share_range(secret)
            return [float(self.low <= high and low <= self.high)]
        if secret.cases is not None:
            return [sum(self._chance(n, *run) for run in runs) for runs in case_runs(secret, n)]
        pairs = count_pairs(secret, n)
        return [self._chance(n, pairs.low, pairs.high)]

    def _chance(self, n: int, low: int, high: int) -> float:
        """P(low <= Bin(n, p) <= high) at the share nearest to the middle, where it is largest or nearly so."""
        p = min(max((low + high) / 2 / n, self.low), self.high)
        inside = 1 - binomial_below(n, p, low) - binomial_above(n, p, high) + 1e-9  # which rounds tails up
        return min(inside, binomial_above(n, p, low - 1), binomial_below(n, p, high + 1))

    def spread(self, secret: Secret, n: int) -> float | None:
        if secret.composition is None:
            return None
        rows = min(math.sqrt(n * p * (1 - p)) for p in (self.low, self.high))
        return rows if secret.composition.kind == "count" else rows / n

    def single(self, secret: Secret) -> bool:
        return self.closes and secret.parameter is None and (self.low, self.high) in ((0.0, 0.0), (1.0, 1.0))


@dataclass(frozen=True)
class StatesBelief(Belief):
    """The chance of each value."""

    weights: tuple[float, ...]
    exact: bool
    """Whether a chance of 0 means that the value cannot be."""

    def chances(self, secret: Secret, n: int) -> list[float] | None:
        return list(self.weights)

    def single(self, secret: Secret) -> bool:
        return self.exact and sum(weight > 0 for weight in self.weights) < 2
