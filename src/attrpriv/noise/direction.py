"""The first coordinates of a uniform direction in many dimensions.

    z = (g_1, ..., g_k) / sqrt(g_1^2 + ... + g_k^2 + c)        g normal, c chi-square with m - k degrees of freedom

is distributed as the first k coordinates of a uniform unit vector in m dimensions. The normals come from OpenDP's exact sampler
on a grid of 2^-56. c is twice a Gamma variable of shape a = (m-k)/2, drawn in a few steps however large m is
(`marsaglia2000gamma`): with d = a - 1/3 and another normal x,

    c = 2 d v,    v = (1 + x / (3 sqrt d))^3,    kept with the chance e^h(x),    h(x) = x^2/2 + d - d v + d log v

and otherwise drawn again. With t = 1 + x / (3 sqrt d) the derivative of h is sqrt(d) (1 - t)^3 / t, so h is largest at x = 0,
where it is 0: e^h is a chance.

How exact. Weights e^(-x^2/2) on the grid, kept with the chance e^h, are weights f(x) = e^(d - d v + d log v) on the grid; and f
is, up to a factor, the density of x for which c is chi-square. f is log-concave with one peak, so on either side of it a sum
of f over the grid lies between two integrals whose ends are a step apart, and the sum of all is off by at most a step times the
peak: x is at most 3 steps of 2^-56 from one of density f, if the two are drawn together by their quantiles. Then c is off by a
share of at most 3 * 2^-56 / (t sqrt d), which is below 2^-54 on average for m - k >= LEAST_REST. The normals are off by no more
steps. So z, in units of its own length, is off by less than 2^-52 on average; `RELATIVE_ERROR`, 2^-44, is more than a hundred
times that.

Whether a draw is kept is decided by a uniform number of 256 bits and by 100 decimal digits. At d = 10^12, the most that a table
can ask for, the terms of h cancel to 12 digits fewer: the chance of a wrong decision is below 2^-250.

What must never change: randomness is the operating system's; there is no seed. What a draw costs does not depend on any table.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_EVEN, Context, Decimal, DivisionByZero, InvalidOperation, Overflow, localcontext
from fractions import Fraction
from secrets import randbits

from attrpriv.errors import UsageError
from attrpriv.noise.exact import MOST_BITS, whole_gaussian

RELATIVE_ERROR = 2.0**-44
LEAST_REST = 10
# Of square roots: whole numbers of this many binary digits.
ROOT_BITS = 160
_UNIFORM_BITS = 256
# Its own, whatever a caller has set for the thread.
_PRECISE = Context(
    prec=100,
    rounding=ROUND_HALF_EVEN,
    Emin=-999_999,
    Emax=999_999,
    capitals=1,
    clamp=0,
    flags=[],
    traps=[InvalidOperation, DivisionByZero, Overflow],
)


def direction(coordinates: int, dimension: int) -> tuple[Fraction, ...]:
    """The first `coordinates` of a uniform unit vector in this dimension."""
    if not (coordinates >= 1 and dimension - coordinates >= LEAST_REST):
        raise UsageError(f"dimension: must exceed the coordinates by {LEAST_REST} or more. Got {dimension}, {coordinates}.")
    normals = [_normal() for _ in range(coordinates)]
    squared = sum((normal**2 for normal in normals), _chi_squared(dimension - coordinates))
    length = root(squared)
    return tuple(normal / length for normal in normals)


def root(value: Fraction) -> Fraction:
    """The square root of a number that is not negative, to about 160 binary digits and from below.

    >>> float(root(Fraction(2))) == math.sqrt(2)
    True
    """
    if value < 0:
        raise UsageError("root: of a negative number.")
    top, bottom = value.numerator, value.denominator
    shift = max(0, 2 * ROOT_BITS - top.bit_length() + bottom.bit_length())
    shift += shift % 2
    return Fraction(math.isqrt((top << shift) // bottom), 1 << (shift // 2))


def _normal() -> Fraction:
    return Fraction(whole_gaussian(2.0**MOST_BITS), 2**MOST_BITS)


def _chi_squared(freedom: int) -> Fraction:
    """A chi-square draw with this many degrees of freedom, at least LEAST_REST."""
    with localcontext(_PRECISE):
        while True:
            normal = _normal()
            proposed, chance = _proposal(freedom, Decimal(normal.numerator) / normal.denominator)
            if chance is not None and _log_uniform() < chance:
                return Fraction(proposed)


def _proposal(freedom: int, x: Decimal) -> tuple[Decimal, Decimal | None]:
    """2 d v, and the logarithm of the chance to keep it; None: it has none."""
    d = Decimal(3 * freedom - 2) / 6
    v = (1 + x / (3 * d.sqrt())) ** 3
    return 2 * d * v, (x * x / 2 + d * (1 - v + v.ln()) if v > 0 else None)


def _log_uniform() -> Decimal:
    return (Decimal(2 * randbits(_UNIFORM_BITS) + 1) / Decimal(2 << _UNIFORM_BITS)).ln()
