"""The normal distribution function in whole numbers, to any number of bits: no float anywhere.

    Phi(z) = 1/2 + S(z) / (sqrt(2 pi) E(z)),    S = sum over k of z^(2k+1)/(1 3 5 ... (2k+1)),    E = sum of (z^2/2)^k / k!

for z >= 0, and Phi(-z) = 1 - Phi(z). Both series have positive terms only, and S/E <= 1.26, so that nothing cancels.

| symbol | here |
|---|---|
| bits | results are whole numbers of units of 2^-bits |
| width | bits carried: `bits` and a guard |

Every result is within 1 unit of the truth (`fixed_root`: rounded down). Why: each term is made from the one before, rounded
down. It is short by at most 2 units of 2^-width more than what the shortness of that one becomes, which is multiplied by no
more than a term of E. So N terms are short by at most 2 N E units in either series, and S/E is off by less than 5 N, N <= 2^13;
pi and the root are short by a few. The guard has 48 bits.

What must never change: the error is bounded in absolute terms, for every argument up to `LARGEST`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from attrpriv.errors import UsageError

# Beyond this the series would be long; the callers know what happens there without them.
LARGEST = 40
_GUARD = 48
# Up to these sizes no series has more than 2^13 terms before they vanish.
_MOST_BITS = 2048


def fixed_root(square: Fraction, bits: int) -> int:
    """sqrt(square) in units of 2^-bits, rounded down.

    >>> fixed_root(Fraction(2), 10), int(2**10 * 2**0.5)
    (1448, 1448)
    """
    if square < 0:
        raise UsageError("root: must be of a number at least 0.")
    return math.isqrt((square.numerator << (2 * bits)) // square.denominator)


def fixed_exp(exponent: Fraction, bits: int) -> int:
    """e^exponent for an exponent from 0 to 1000, within 1 unit of 2^-bits.

    >>> fixed_exp(Fraction(1), 20), round(2**20 * math.e)
    (2850325, 2850325)
    """
    if not 0 <= exponent <= 1000:
        raise UsageError(f"exponent: must be from 0 to 1000. Got {float(exponent)}.")
    _require_bits(bits)
    # e^x of them are before the point: relative rounding becomes absolute only after that many further bits.
    guard = _GUARD + int(exponent * 3 / 2) + 1
    return _rounded(_exponential(_scaled(exponent, bits + guard), bits + guard), guard)


def fixed_normal_cdf(z: int, bits: int) -> int:
    """Phi(z / 2^bits) in units of 2^-bits, within 1 unit.

    >>> round(fixed_normal_cdf(-(1 << 30), 30) / 2**30, 8)
    0.15865525
    """
    _require_bits(bits)
    if abs(z) > LARGEST << bits:
        raise UsageError(f"z: must be within {LARGEST} standard deviations.")
    width = bits + _GUARD
    x = abs(z) << _GUARD
    square = (x * x) >> width
    term, total, odd = x, x, 1
    while term:
        odd += 2
        term = ((term * square) >> width) // odd
        total += term
    exponential = _exponential(square >> 1, width)
    above = _rounded((total << (2 * width)) // (_root_of_two_pi(width) * exponential), _GUARD)
    half = 1 << (bits - 1)
    return half + above if z >= 0 else half - above


def _exponential(x: int, width: int) -> int:
    """e^x, x >= 0, both in units of 2^-width."""
    term = total = 1 << width
    k = 0
    while term:
        k += 1
        term = ((term * x) >> width) // k
        total += term
    return total


@lru_cache(maxsize=16)
def _root_of_two_pi(width: int) -> int:
    return math.isqrt((2 * _pi(width + 8)) << (width - 8))


def _pi(width: int) -> int:
    """Machin: pi = 16 atan(1/5) - 4 atan(1/239)."""
    guard = 16
    return (16 * _arctangent(5, width + guard) - 4 * _arctangent(239, width + guard)) >> guard


def _arctangent(x: int, width: int) -> int:
    """atan(1/x)."""
    power = (1 << width) // x
    total, k = power, 1
    while power:
        power //= x * x
        k += 2
        total += -(power // k) if k % 4 == 3 else power // k
    return total


def _require_bits(bits: int) -> None:
    if not 0 < bits <= _MOST_BITS:
        raise UsageError(f"bits: must be from 1 to {_MOST_BITS}. Got {bits}.")


def _scaled(value: Fraction, bits: int) -> int:
    return (value.numerator << bits) // value.denominator


def _rounded(value: int, guard: int) -> int:
    return (value + (1 << (guard - 1))) >> guard
