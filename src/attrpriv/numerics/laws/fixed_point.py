"""The laws of counts in whole numbers: masses times 2^bits, rounded down, with no float anywhere.

    true mass * 2^bits - SHORT  <  entry  <=  true mass * 2^bits          for every entry

| symbol | here |
|---|---|
| bits | `bits`, at least 1: the unit is 2^-bits |
| guard | the digits carried beyond them, so that all roundings together stay below one unit |

Probabilities are the decimal fractions that the floats are written as, or Fractions. Those of a record law are divided by their
exact sum; the complement of p is exactly 1 - p.

Why SHORT = 2. Let p and q be rounded down from laws with an entry short of the truth by at most x and y units. The true
convolution exceeds the sum of products by at most sum (P - p) Q + sum p (Q - q) <= x + y, because Q and p sum to at most 1, and
rounding it down costs less than 1 more. One row costs less than 1, so n rows cost less than 2n - 1 units, and less than 2n + 1
if one of the two powers is empty. With 2^guard > 2n + 2 that is below one unit of 2^-bits, and the last rounding costs less
than another one.

What must never change: entries are never above the truth. A certificate that needs masses from above adds SHORT.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from attrpriv.errors import UsageError
from attrpriv.numerics.laws.records import exactly
from attrpriv.numerics.rounding import SUM_SLACK

# Every entry is short of the truth by less than this many units.
SHORT = 2

Masses = list[int]


def fixed_binomial_sum(a: int, p1: float | Fraction, b: int, p0: float | Fraction, bits: int) -> tuple[int, ...]:
    """The law of Bin(a, p1) + Bin(b, p0) on 0..a+b.

    `a` rows count 1 with probability `p1`, `b` rows with `p0`; masses are whole multiples of 2^-`bits`.

    >>> fixed_binomial_sum(1, 0.5, 1, 0.25, 8)
    (96, 128, 32)
    """
    laws = [(1 - exactly(p), exactly(p)) for p in (p1, p0)]
    return fixed_record_sum((0, 1), laws[0], a, laws[1], b, bits)


def fixed_record_sum(
    values: Sequence[int],
    law1: Sequence[float | Fraction],
    a: int,
    law0: Sequence[float | Fraction],
    b: int,
    bits: int,
) -> tuple[int, ...]:
    """The law of the sum of `a` draws from law1 and `b` from law0; the first entry is that of (a + b) * values[0].

    `values` are what a row may count, `law1` and `law0` their probabilities; masses are whole multiples of 2^-`bits`.

    >>> fixed_record_sum((1, 2, 4), (0.5, 0.25, 0.25), 2, (1.0, 0.0, 0.0), 0, 8)
    (64, 64, 16, 64, 32, 0, 16)
    """
    if a < 0 or b < 0 or bits < 1:
        raise UsageError(f"fixed point: needs at least 0 rows of each kind and 1 bit. Got {a}, {b} rows and {bits} bits.")
    guard = (2 * (a + b) + 2).bit_length()
    width = bits + guard
    powers = [_power(record_masses(values, law, width), n, width) for law, n in ((law1, a), (law0, b))]
    return tuple(mass >> guard for mass in _product(powers[0], powers[1], width))


def record_masses(values: Sequence[int], law: Sequence[float | Fraction], width: int) -> Masses:
    """One row: each probability divided by their sum, rounded down."""
    if len(values) != len(law) or any(x >= y for x, y in pairwise(values)):
        raise UsageError(f"values: must be in increasing order, one for each probability. Got {len(values)}, {len(law)}.")
    exact = [exactly(p) for p in law]
    total = sum(exact, Fraction(0))
    if min(exact) < 0 or abs(total - 1) > Fraction(SUM_SLACK):
        raise UsageError(f"law: probabilities must be at least 0 and sum to 1. Got a sum of {float(total):.12g}.")
    masses = [0] * (values[-1] - values[0] + 1)
    for value, probability in zip(values, exact, strict=True):
        masses[value - values[0]] = int(probability / total * 2**width)
    return masses


def _power(law: Masses, n: int, width: int) -> Masses:
    if n == 0:
        return [1 << width]
    result = law
    for digit in bin(n)[3:]:
        result = _product(result, result, width)
        if digit == "1":
            result = _product(result, law, width)
    return result


def _product(p: Masses, q: Masses, width: int) -> Masses:
    """The convolution, rounded down: one multiplication of two long numbers whose digits are the masses."""
    size = len(p) + len(q) - 1
    slot = (2 * width + size.bit_length() + 8) // 8
    digits = (_joined(p, slot) * _joined(q, slot)).to_bytes(slot * (size + 1), "little")
    return [int.from_bytes(digits[k * slot : (k + 1) * slot], "little") >> width for k in range(size)]


def _joined(masses: Masses, slot: int) -> int:
    return int.from_bytes(b"".join(mass.to_bytes(slot, "little") for mass in masses), "little")
