"""The laws of a count given each secret, in whole numbers, and the pure loss of what is made of them.

    entry <= 2^BITS P(F = start + f | a) <= entry + SHORT              `SecretLaws.masses[i][f]`
    loss = max over pairs (a, b) and outputs o of  log Q_a(o) / Q_b(o)

| family | laws | when |
|---|---|---|
| `counts` | a = low..high, at the one stated law of the rows | exact record laws |
| `corner` | Bin(k, hi) + Bin(n - k, lo) for *all* k = 0..n, lo and hi the ends of the hull | an event with intervals |

The corner covers the whole box for every mechanism that sees F alone: a row of any probability in [lo, hi] is a mixture of one
that counts with lo and one that counts with hi, so every law given a is a mixture of corner laws, and secrets that differ in
d rows can be split into pairs of corner laws with |k - l| <= d. It does not cover a mechanism that reads a.

What must never change: no float decides. Bounds on both sides are whole numbers, a ratio is bounded from above, and the
logarithm returned has itself been shown to be one: e^loss, summed from below, is at least the ratio. What could be zero on one
side only is an infinite loss.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from attrpriv.errors import Cause, RefusedError, UsageError
from attrpriv.numerics.laws.fixed_point import fixed_binomial_sum, fixed_record_sum
from attrpriv.numerics.laws.records import CountPairs, RecordLaws

BITS = 128
_EXP_BITS = 256
_LEAST_LOSS = 2.0**-200
_LARGEST_LOSS = 500.0

Family = Literal["counts", "corner"]
Rows = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class SecretLaws:
    """Masses in units of 2^-BITS, each short of the truth by less than SHORT, of the values start, start + 1, ...

    Laws i and j must be indistinguishable if |i - j| <= apart.
    """

    start: int
    masses: Rows
    apart: int

    @property
    def values(self) -> int:
        """How many values F can have."""
        return len(self.masses[0])


@lru_cache(maxsize=16)
def secret_laws(records: RecordLaws, pairs: CountPairs, family: Family) -> SecretLaws:
    """The laws that have to be indistinguishable.

    >>> laws = secret_laws(RecordLaws.event(0.5, 0.25), CountPairs.all_of(2), "counts")
    >>> [mass / 2**BITS for mass in laws.masses[1]]
    [0.375, 0.5, 0.125]
    """
    if family == "corner":
        low, high = records.hull
        masses = tuple(fixed_binomial_sum(k, high, pairs.n - k, low, BITS) for k in range(pairs.n + 1))
        return SecretLaws(0, masses, pairs.apart)
    if not records.exact:
        raise RefusedError("optimal: counts with intervals are covered by the corner family only.").because(
            Cause.NUMBERS, "exact probabilities"
        )
    masses = tuple(_law(records, a, pairs.n) for a in range(pairs.low, pairs.high + 1))
    return SecretLaws(pairs.n * records.values[0], masses, pairs.apart)


def loss_upper(uppers: Sequence[Sequence[int]], lowers: Sequence[Sequence[int]], apart: int) -> float:
    """An upper bound on the loss over all pairs at most `apart` apart, from bounds on Q_a(o), all in the same unit.

    >>> loss_upper([[3, 1], [2, 2]], [[3, 1], [2, 2]], 1) >= math.log(2)
    True
    """
    top, bottom = 1, 1
    for column_up, column_low in zip(zip(*uppers, strict=True), zip(*lowers, strict=True), strict=True):
        for b, least in enumerate(column_low):
            most = max(column_up[max(0, b - apart) : b + apart + 1])
            if most > 0 and least <= 0:
                return math.inf
            if most * bottom > top * least:
                top, bottom = most, least
    return log_upper(top, bottom)


def log_upper(top: int, bottom: int) -> float:
    """A float that is at least log(top / bottom), for top >= bottom > 0."""
    if not top >= bottom > 0:
        raise UsageError("ratio: must be at least 1.")
    if top == bottom:
        return 0.0
    if (top // bottom).bit_length() > _LARGEST_LOSS:
        return math.inf
    # Below the floor the series could not tell its sum from 1.
    guess = max(_LEAST_LOSS, math.log1p((top - bottom) / bottom))
    while exp_lower(guess) * bottom < top << _EXP_BITS:
        guess = math.nextafter(guess * (1 + 2.0**-51), math.inf)
    return guess


def exp_lower(x: float) -> int:
    """e^x in units of 2^-256, from below: Taylor's sum of positive terms, each rounded down.

    >>> exp_lower(1.0) / 2**256 == math.e
    True
    """
    if not 0 <= x <= _LARGEST_LOSS:
        raise UsageError(f"exponent: must be from 0 to {_LARGEST_LOSS:g}. Got {x}.")
    numerator, denominator = x.as_integer_ratio()
    argument = (numerator << _EXP_BITS) // denominator
    term = total = 1 << _EXP_BITS
    count = 1
    while term:
        term = (term * argument >> _EXP_BITS) // count
        total += term
        count += 1
    return total


def float_laws(laws: SecretLaws) -> list[list[float]]:
    """The laws as floats, each summing to 1: for a solver, not for a certificate."""
    return [[mass / total for mass in row] for row in laws.masses for total in (sum(row),)]


def require_rows(name: str, rows: Sequence[Sequence[int]], count: int, width: int, total: int) -> None:
    """Each row of weights must be whole numbers at least 0 with the stated sum."""
    whole = all(type(weight) is int and weight >= 0 for row in rows for weight in row)
    if not whole or len(rows) != count or any(len(row) != width or sum(row) != total for row in rows):
        raise UsageError(f"{name}: must be {count} rows of {width} whole numbers at least 0 that sum to {total}.")


def _law(records: RecordLaws, a: int, n: int) -> tuple[int, ...]:
    member, rest = ([low for low, _ in law] for law in (records.member, records.rest))
    if records.binary:
        return fixed_binomial_sum(a, member[1], n - a, rest[1], BITS)
    return fixed_record_sum(records.values, member, a, rest, n - a, BITS)
