"""The leakage map of an assumption about categories: what averages, counts and values tell of the share of some of them.

Of `groups` and `counts`. A table has n rows, m of them in the categories that a secret counts. For two numbers m that must look
alike, each statistic has two laws, and the best guess between them is right in (1 + TV) / 2 of all cases:

| statistic | its law given m | TV |
|---|---|---|
| an average, `groups` | normal: m means and variances of a category inside, n - m of one outside | closed form |
| a share of an event, `counts` | two binomial laws, added | enumerated |
| an average of listed values, `counts` | normal for many rows | closed form, with the mean of both variances |

Which categories the rows inside and outside have is not assumed: of all pairs, and of both ends of the secret's range, the one
that tells most. Moments are taken as they are stated, without their tolerance; of an interval, the end that tells most.
Where the secret is a parameter of the population, m varies by itself, and its variance is added.

What must never change: no row is read.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attrpriv.assumptions.counts import Counts
from attrpriv.assumptions.groups import Groups
from attrpriv.assumptions.probabilities import Pair, filled
from attrpriv.problem.counted import count_pairs, share_range
from attrpriv.problem.secret import Secret
from attrpriv.queries.conditions import parse_condition
from attrpriv.queries.query import quoted

MOST_VALUES = 4  # of a column: those that tell most
_SDS = 12  # beyond them a binomial law has less than can be seen
_FEW = 40
Moments = tuple[float, float]  # of what a row adds: mean and variance


@dataclass(frozen=True)
class TwoValues:
    """Two numbers of rows that a secret may count, of n; as shares of a population where `population` says so."""

    n: int
    first: float
    second: float
    population: bool

    @staticmethod
    def of(secret: Secret, n: int) -> tuple[TwoValues, TwoValues]:
        """The furthest that must look alike, at both ends of the range."""
        if secret.parameter is not None:
            low, high = (share * n for share in share_range(secret))
            return TwoValues(n, low, high, True), TwoValues(n, low, high, True)
        pairs = count_pairs(secret, n)
        low, high, apart = pairs.low, pairs.high, pairs.apart
        return TwoValues(n, low, low + apart, False), TwoValues(n, high - apart, high, False)

    def normal(self, inside: Moments, outside: Moments) -> tuple[Moments, Moments]:
        """The moments of an average of all rows, at the first value and at the second."""
        first, second = (self._moments(m / self.n, inside, outside) for m in (self.first, self.second))
        return first, second

    def _moments(self, share: float, inside: Moments, outside: Moments) -> Moments:
        within = share * inside[1] + (1 - share) * outside[1]
        between = share * (1 - share) * (inside[0] - outside[0]) ** 2 if self.population else 0.0
        return share * inside[0] + (1 - share) * outside[0], (within + between) / self.n


@dataclass(frozen=True)
class Told:
    """One statistic, and how often a guess from it is right."""

    statistic: str
    right: float


def told_by_groups(law: Groups, secret: Secret, n: int) -> Iterator[Told]:
    """What each average tells."""
    members = law.members_of(secret)
    rest = [name for name in law.categories if name not in members]
    values = TwoValues.of(secret, n)
    for column in law.columns:
        moments = {name: (law.mean_of(name, column), law.sd_of(name, column) ** 2) for name in law.categories}
        pairs = [(moments[a], moments[b]) for a, b in itertools.product(members, rest)]
        right = max(right_of_normals(*two.normal(*pair)) for two in values for pair in pairs)
        yield Told(f"avg({quoted(column)})", right)


def told_by_counts(law: Counts, secret: Secret, n: int, bins: Mapping[str, Sequence[float]]) -> Iterator[Told]:
    """What the share of each named event tells, and of each listed column its average and the shares of its values."""
    members = law.members_of(secret, bins)
    sides = (sorted(members), [name for name in law.categories if name not in members])
    values = TwoValues.of(secret, n)
    for event in law.named_events():
        yield Told(f"share({event})", _right_of_event(law.event(parse_condition(event), bins), sides, values))
    for column in law.listed_values():
        names, laws = law.values(column, bins)
        if all(isinstance(name, int | float) for name in names) and column not in bins:
            yield Told(f"avg({quoted(column)})", _right_of_values([float(x) for x in names], laws, sides, values))
        shares = [
            Told(
                f"share({_condition(column, name, k, bins)})",
                _right_of_event({category: law[k] for category, law in laws.items()}, sides, values),
            )
            for k, name in enumerate(names)
        ]
        most = 1 if len(shares) == 2 else MOST_VALUES  # of two values, one says it all
        yield from sorted(shares, key=lambda one: -one.right)[:most]


def _condition(column: str, name: int | float | str, k: int, bins: Mapping[str, Sequence[float]]) -> str:
    if column in bins:
        edges = bins[column]
        end = "<=" if k == len(edges) - 2 else "<"
        return f"{quoted(column)} >= {edges[k]:g} and {quoted(column)} {end} {edges[k + 1]:g}"
    literal = "'" + name.replace("'", "''") + "'" if isinstance(name, str) else f"{name}"
    return f"{quoted(column)} = {literal}"


# ------------------------------------------------------------------------------------------------------- right guesses

Sides = tuple[Sequence[str], Sequence[str]]


def right_of_normals(first: Moments, second: Moments) -> float:
    """How often the best guess between two normal laws is right; each is a mean and a variance.

    >>> round(right_of_normals((0, 1), (1, 1)), 4), right_of_normals((0, 1), (0, 1))
    (0.6915, 0.5)
    """
    from scipy.special import ndtr

    (m0, v0), (m1, v1) = sorted((first, second), key=lambda law: law[1])
    if v0 == v1:
        return float(ndtr(abs(m1 - m0) / math.sqrt(v0) / 2))
    # The narrower law is the likelier one between the two points where the densities cross.
    middle = (m0 * v1 - m1 * v0) / (v1 - v0)
    reach = math.sqrt(v0 * v1 * ((m0 - m1) ** 2 + (v1 - v0) * math.log(v1 / v0))) / (v1 - v0)
    inside = [float(ndtr((middle + reach - m) / s) - ndtr((middle - reach - m) / s)) for m, s in _sds((m0, v0), (m1, v1))]
    return min(1.0, 0.5 + (inside[0] - inside[1]) / 2)


def _sds(*laws: Moments) -> list[Moments]:
    return [(mean, math.sqrt(variance)) for mean, variance in laws]


def _right_of_values(
    values: Sequence[float], laws: Mapping[str, tuple[Pair, ...]], sides: Sides, two: Sequence[TwoValues]
) -> float:
    """Of an average of listed values; of intervals, the laws of the least and the largest mean."""
    from scipy.special import ndtr

    order = sorted(range(len(values)), key=lambda k: values[k])
    moments = {name: [_row(values, filled(law, places)) for places in (order, order[::-1])] for name, law in laws.items()}
    apart = [
        _apart(*one.normal(inside, outside))
        for one in two
        for a, b in itertools.product(*sides)
        for inside, outside in itertools.product(moments[a], moments[b])
    ]
    return float(ndtr(max(apart) / 2))


def _row(values: Sequence[float], law: Sequence[float]) -> Moments:
    mean = math.fsum(p * x for p, x in zip(law, values, strict=True))
    return mean, math.fsum(p * (x - mean) ** 2 for p, x in zip(law, values, strict=True))


def _apart(first: Moments, second: Moments) -> float:
    """How many standard deviations lie between two laws, by the mean of their variances."""
    distance, variance = abs(first[0] - second[0]), (first[1] + second[1]) / 2
    if variance == 0:
        return math.inf if distance else 0.0
    return distance / math.sqrt(variance)


def _right_of_event(chances: Mapping[str, Pair], sides: Sides, two: Sequence[TwoValues]) -> float:
    """Of the share of an event: the pair of laws that is furthest apart is looked for, and then enumerated."""
    found = [
        (one, p, q)
        for one in two
        for a, b in itertools.product(*sides)
        for p, q in itertools.product(set(map(float, chances[a])), set(map(float, chances[b])))
    ]
    one, p, q = max(found, key=lambda it: _apart(*it[0].normal((it[1], it[1] * (1 - it[1])), (it[2], it[2] * (1 - it[2])))))
    return right_of_counts(one, p, q)


def right_of_counts(two: TwoValues, inside: float, outside: float) -> float:
    """How often the best guess is right from the number of rows of an event with these probabilities inside and outside."""
    laws = [_count_law(two, m, inside, outside) for m in (two.first, two.second)]
    low = min(start for start, _ in laws)
    size = max(start + len(law) for start, law in laws) - low
    padded = np.zeros((2, size))
    for row, (start, law) in zip(padded, laws, strict=True):
        row[start - low : start - low + len(law)] = law
    return min(1.0, 0.5 + float(np.abs(padded[0] - padded[1]).sum()) / 4)


def _count_law(two: TwoValues, m: float, inside: float, outside: float) -> tuple[int, NDArray[np.float64]]:
    """The first count with a chance to be seen, and the chances from there on."""
    if two.population:
        share = m / two.n
        return _binomial(two.n, share * inside + (1 - share) * outside)
    from scipy.signal import fftconvolve

    (first, left), (second, right) = _binomial(int(m), inside), _binomial(two.n - int(m), outside)
    return first + second, np.clip(fftconvolve(left, right), 0.0, 1.0)


def _binomial(n: int, p: float) -> tuple[int, NDArray[np.float64]]:
    from scipy.stats import binom

    reach = _SDS * math.sqrt(n * p * (1 - p)) + _FEW
    low, high = max(0, math.floor(n * p - reach)), min(n, math.ceil(n * p + reach))
    return low, np.asarray(binom.pmf(np.arange(low, high + 1), n, p), dtype=np.float64)
