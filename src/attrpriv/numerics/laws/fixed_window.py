"""The law of a count in whole numbers on a window: no entry above the truth, and the total that they lack is known exactly.

    entries(T)  <=  2^BITS P(F in T)  <=  entries(T) + deficit        for every set T of values, inside the window or not

| symbol | here |
|---|---|
| entries | `WindowLaw.masses`, those of start, start + 1, ...; outside of the window they are 0 |
| deficit | `WindowLaw.deficit` = 2^BITS - sum of the entries: rounding and what lies beyond the window, together |

The right-hand side needs no analysis of errors: the truth sums to 2^BITS, and what is above the entries on T is at most what is
above them everywhere. So only "never above the truth" has to be proved, and that is kept by every product rounded down.

A binomial law is built outwards from its mode m by its exact ratios, each rounded down. They are at most 1 on the way out, so
the weight j steps from the mode is short by at most j, and what lies beyond the last weight is below a geometric series: the
sum of all weights is bounded from above, and the weights are divided by that bound. Convolutions are one product of two long
decimal numbers whose digits are the entries, which is exact and fast for a million rows. Unlike `fixed_point`, which has the
whole support, a window has about 30 standard deviations.

What must never change: entries are never above the truth; nothing here is a float but the probabilities, as the decimal
fractions they are written as.
"""

from __future__ import annotations

import decimal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from attrpriv.errors import UsageError
from attrpriv.numerics.laws.fixed_point import record_masses
from attrpriv.numerics.laws.records import Number, RecordLaws, exactly

BITS = 192
# Digits carried beyond BITS while a binomial law is built.
_GUARD = 40
# Weights of a binomial law below 2^-150 of the mode's, and entries of other laws below 2^-170, are left out at the ends.
_LEAST_WEIGHT = 150
_LEAST_ENTRY = 170
_EXACT = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN, traps=[decimal.Inexact])


@dataclass(frozen=True)
class WindowLaw:
    """Entries in units of 2^-BITS, each at most the truth."""

    start: int
    masses: tuple[int, ...]

    @property
    def deficit(self) -> int:
        """What the entries lack in total."""
        return (1 << BITS) - sum(self.masses)

    def clipped(self, start: int, size: int) -> tuple[int, ...]:
        """The entries of F clipped to start..start + size - 1: what lies outside belongs to the ends.

        >>> WindowLaw(0, (1, 2, 3, 4)).clipped(1, 2)
        (3, 7)
        """
        entries = [0] * size
        for k, mass in enumerate(self.masses, self.start - start):
            entries[min(max(k, 0), size - 1)] += mass
        return tuple(entries)


@lru_cache(maxsize=256)
def window_law(records: RecordLaws, n: int, a: int) -> WindowLaw:
    """The law of the statistic of n rows of which `a` are members; the record laws must be exact.

    >>> law = window_law(RecordLaws.event(0.5, 0.25), 2, 1)
    >>> [mass / 2**BITS for mass in law.masses], law.deficit < 2**8
    ([0.375, 0.5, 0.125], True)
    """
    if not records.exact or not 0 <= a <= n:
        raise UsageError(f"law: needs exact probabilities and a count from 0 to n = {n}.")
    member, rest = ([low for low, _ in law] for law in (records.member, records.rest))
    if records.binary:
        # The probability of the event; that of its complement follows, as everywhere.
        return _product(window_binomial(a, member[1]), window_binomial(n - a, rest[1]))
    return _product(_power(records.values, member, a), _power(records.values, rest, n - a))


def window_binomial(n: int, p: Number) -> WindowLaw:
    """Bin(n, p).

    >>> [mass / 2**BITS for mass in window_binomial(2, 0.5).masses]
    [0.25, 0.5, 0.25]
    """
    exact = exactly(p)
    if n < 0 or not 0 <= exact <= 1:
        raise UsageError(f"binomial: needs n at least 0 and p from 0 to 1. Got n = {n}, p = {p}.")
    if n == 0 or exact in (0, 1):
        return WindowLaw(n if exact == 1 else 0, (2**BITS,))
    odds, mode = exact / (1 - exact), min(n, int((n + 1) * exact))
    above, beyond = _outwards(((n - k) * odds.numerator, (k + 1) * odds.denominator) for k in range(mode, n))
    below, under = _outwards((k * odds.denominator, (n - k + 1) * odds.numerator) for k in range(mode, 0, -1))
    weights = [*reversed(below), 1 << (BITS + _GUARD), *above]
    short = sum(range(len(above) + 1)) + sum(range(len(below) + 1))
    total = sum(weights) + short + beyond + under
    return WindowLaw(mode - len(below), tuple((weight << BITS) // total for weight in weights))


def _outwards(ratios: Iterable[tuple[int, int]]) -> tuple[list[int], int]:
    """Weights from the mode's outwards, rounded down, and a bound on the sum of the true ones beyond the last."""
    weights: list[int] = []
    weight = 1 << (BITS + _GUARD)
    least = weight >> _LEAST_WEIGHT
    for used, (top, bottom) in enumerate(ratios):
        if weight < least:
            # The last weight is short by at most `used`; the ratios decrease from here on, and this one is below 1.
            return weights, (weight + used) * top // (bottom - top) + 1
        weight = weight * top // bottom
        weights.append(weight)
    return weights, 0


def _power(values: Sequence[int], law: Sequence[Number], n: int) -> WindowLaw:
    """The n-th convolution power of one row's law, by squaring, small entries at the ends left out on the way."""
    if n == 0:
        return WindowLaw(0, (2**BITS,))
    one = WindowLaw(values[0], tuple(record_masses(values, law, BITS)))
    result = one
    for digit in bin(n)[3:]:
        result = _trimmed(_product(result, result))
        if digit == "1":
            result = _trimmed(_product(result, one))
    return result


def _trimmed(law: WindowLaw) -> WindowLaw:
    least = 1 << (BITS - _LEAST_ENTRY)
    kept = [k for k, mass in enumerate(law.masses) if mass >= least]
    return WindowLaw(law.start + kept[0], law.masses[kept[0] : kept[-1] + 1])


def _product(p: WindowLaw, q: WindowLaw) -> WindowLaw:
    """The convolution, rounded down."""
    size = len(p.masses) + len(q.masses) - 1
    slot = int((2 * BITS + size.bit_length()) * 0.30103) + 2
    digits = format(_EXACT.multiply(_joined(p.masses, slot), _joined(q.masses, slot)), "f").zfill(size * slot)
    whole = len(digits)
    parts = (digits[max(0, whole - (k + 1) * slot) : whole - k * slot] for k in range(size))
    return WindowLaw(p.start + q.start, tuple(int(part) >> BITS for part in parts))


def _joined(masses: Sequence[int], slot: int) -> decimal.Decimal:
    """One number whose lowest digits are the first entry."""
    return decimal.Decimal("".join(str(mass).zfill(slot) for mass in reversed(masses)))
